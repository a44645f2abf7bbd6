//! Top-ups: what somebody pays for credits, and what became of it.
use crate::{columns::*, schema::Schema};
use sea_orm::{DbErr, sea_query::{Alias, Table}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let topups = Table::create()
        .table(Alias::new("topups"))
        .col(uuid("id").primary_key())
        .col(uuid("tenant_id"))
        .col(text("env"))
        .col(big_integer("amount_cents"))
        .col(text("currency"))
        .col(text("processor"))
        .col(text("status"))
        .col(big_integer("refunded_cents"))
        .col(text_null("processor_payment_intent_id"))
        .col(text_null("processor_session_id"))
        .col(text_null("checkout_url"))
        .col(text_null("success_url"))
        .col(text_null("cancel_url"))
        .col(text_null("error"))
        // When the processor is asked what became of it.
        .col(big_integer_null("ask_at"))
        .col(big_integer("created_at"))
        .col(big_integer_null("settled_at"))
        .col(big_integer_null("expires_at"))
        .col(integer("version"))
        .to_owned();
    schema.apply(Vec::new(), vec![topups], &STATEMENTS).await
}

const STATEMENTS: [&str; 5] = [
    "CREATE INDEX topups_tenant ON topups (tenant_id, env, id)",
    "CREATE INDEX topups_pending ON topups (tenant_id, env) WHERE status = 'pending'",
    "CREATE INDEX topups_ask ON topups (ask_at) WHERE ask_at IS NOT NULL",
    "CREATE UNIQUE INDEX topups_payment ON topups (processor_payment_intent_id) WHERE processor_payment_intent_id IS NOT NULL",
    "CREATE UNIQUE INDEX topups_session ON topups (processor_session_id) WHERE processor_session_id IS NOT NULL",
];
