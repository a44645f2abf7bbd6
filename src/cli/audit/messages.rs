//! SMS and e-mails, and every intent to hand one over. What came in is no message of ours and has no line.
use super::Dump;
use crate::error::CannotStart;
use entities::{email_message, message_send, sms_message};
use sea_orm::ActiveEnum;
use serde_json::{Value, json};
use std::io::Write;

/// The line of a message: the two tables have these columns in common. `phase` is what is stored, finer than what is told.
/// `is_judged`: somebody has ordered it, so the law was asked;
/// what the service answers by itself is on no record. `held`: what the ledger holds for it now. `wake_at`: when it is looked at next, by itself.
macro_rules! message_line {
    ($row:ident, $kind:literal, $address:ident) => {
        json!({
            "kind": $kind,
            "id": $row.id,
            "tenant": $row.tenant_id,
            "env": $row.env,
            "campaign": $row.campaign_id,
            "contact": $row.contact_id,
            "address": $row.$address,
            "phase": $row.phase.to_value(),
            "status": $row.phase.status(),
            "price": $row.price_cents,
            "held": $row.held_cents,
            "cost": $row.cost_cents,
            "settled": $row.settled,
            "attempts": $row.attempts,
            "is_judged": $row.legal.is_some(),
            "error": $row.error_code,
            "wake_at": $row.wake_at,
            "created_at": $row.created_at,
            "sent_at": $row.sent_at,
            "ended_at": $row.ended_at,
        })
    };
}

impl<W: Write> Dump<'_, W> {
    pub(super) async fn messages(&mut self) -> Result<(), CannotStart> {
        self.table(
            sms_message::outbound_after,
            |row| (row.tenant_id, row.id),
            |row| message_line!(row, "sms", to_number),
        )
        .await?;
        self.table(
            email_message::all_after,
            |row| (row.tenant_id, row.id),
            |row| message_line!(row, "email", to_address),
        )
        .await?;
        // The table's own key is most of the row.
        self.table(message_send::all_after, |row| (row.tenant_id, row.clone()), send_line)
            .await
    }
}

fn send_line(row: &message_send::Model) -> Value {
    json!({
        "kind": "send",
        "message": row.message_id,
        "n": row.n,
        "tenant": row.tenant_id,
        "env": row.env,
        "channel": row.channel.to_value(),
        "address": row.address,
        "campaign": row.campaign_id,
        "seq": row.seq,
        "sent_at": row.sent_at,
    })
}
