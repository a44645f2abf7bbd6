//! Top-ups: what was asked for, and how it went. What they moved is among the postings.
use super::{Dump, PAGE};
use crate::error::CannotStart;
use entities::topup::{self, Model};
use serde_json::{Value, json};
use std::io::Write;

impl<W: Write> Dump<'_, W> {
    pub(super) async fn topups(&mut self) -> Result<(), CannotStart> {
        let mut after = None;
        loop {
            let mut rows = topup::all_after(self.db, after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.id);
            rows.retain(|row| self.is_wanted(row.tenant_id));
            for row in &rows {
                self.line(&topup_line(row))?;
            }
        }
    }
}

fn topup_line(row: &Model) -> Value {
    json!({
        "kind": "topup",
        "id": row.id,
        "tenant": row.tenant_id,
        "env": row.env,
        "cents": row.amount_cents,
        "status": row.status,
        "processor": row.processor,
        "payment_intent": row.processor_payment_intent_id,
        "refunded": row.refunded_cents,
        "created_at": row.created_at,
        "settled_at": row.settled_at,
    })
}
