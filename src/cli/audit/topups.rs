//! Top-ups: what was asked for, and how it went. What they moved is among the postings.
use entities::topup::Model;
use serde_json::{Value, json};

pub(super) fn topup_line(row: &Model) -> Value {
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
