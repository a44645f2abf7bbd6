//! Prepaid credits: an account and an append-only ledger per workspace and env, and what a session has set aside. Contacts are
//! reached by their campaign's channel.
use crate::{columns::*, schema::Schema};
use sea_orm::{DbErr, sea_query::{Alias, Index, Table, TableCreateStatement}};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    for table in tables() {
        schema.create(table).await?;
    }
    let columns = vec![
        ("sessions", big_integer("hold_cents").default(0).to_owned()),
        ("contacts", text("channel").default("phone").to_owned()),
        ("contacts", text("address").default("").to_owned()),
    ];
    schema.apply(columns, Vec::new(), &STATEMENTS).await
}

fn tables() -> Vec<TableCreateStatement> {
    let mut key = Index::create().to_owned();
    key.col(Alias::new("tenant_id")).col(Alias::new("env"));
    let accounts = Table::create()
        .table(Alias::new("credit_accounts"))
        .col(uuid("tenant_id"))
        .col(text("env"))
        .col(big_integer("balance_cents"))
        .col(big_integer("held_cents"))
        .col(big_integer_null("warning_threshold_cents"))
        .col(big_integer_null("depleted_at"))
        .col(big_integer("entries"))
        .col(text("last_hash"))
        .col(big_integer("last_seq"))
        .col(integer("version"))
        .col(big_integer("updated_at"))
        .primary_key(&mut key)
        .to_owned();
    let mut key = Index::create().to_owned();
    key.col(Alias::new("tenant_id"))
        .col(Alias::new("env"))
        .col(Alias::new("n"));
    let entries = Table::create()
        .table(Alias::new("ledger_entries"))
        .col(uuid("tenant_id"))
        .col(text("env"))
        .col(big_integer("n"))
        .col(uuid("id"))
        .col(text("kind"))
        .col(text("from_book"))
        .col(text("to_book"))
        .col(big_integer("cents"))
        .col(uuid_null("subject_id"))
        .col(text_null("note"))
        .col(big_integer("balance_after_cents"))
        .col(big_integer("held_after_cents"))
        .col(text("hash"))
        .col(big_integer("seq"))
        .col(big_integer("created_at"))
        .primary_key(&mut key)
        .to_owned();
    let grants = Table::create()
        .table(Alias::new("credit_grants"))
        .col(uuid("id").primary_key())
        .col(uuid("tenant_id"))
        .col(text("env"))
        .col(big_integer("cents"))
        .col(text("note"))
        .col(big_integer("created_at"))
        .to_owned();
    vec![accounts, entries, grants]
}

const STATEMENTS: [&str; 5] = [
    // Lists are paged by id; the same order as `n`.
    "CREATE INDEX ledger_entries_by_id ON ledger_entries (tenant_id, env, id)",
    "CREATE INDEX ledger_entries_by_subject ON ledger_entries (tenant_id, env, subject_id) WHERE subject_id IS NOT NULL",
    // A contact is reached at its number, or at its e-mail address, and is in its campaign once by that.
    "UPDATE contacts SET address = phone_number",
    "DROP INDEX contacts_number",
    "CREATE UNIQUE INDEX contacts_address ON contacts (campaign_id, address)",
];
