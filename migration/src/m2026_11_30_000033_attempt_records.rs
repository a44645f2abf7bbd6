//! The record that proves every attempt to reach somebody: a chain of rows per workspace and environment, its heads, and what was
//! exported of it.
use crate::{columns::*, schema::Schema, steps::*};
use sea_orm::{
    DbErr,
    sea_query::{ColumnDef, TableCreateStatement},
};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let tables = vec![records(), chains(schema), anchors(schema), heads(schema), exports()];
    schema.apply(Vec::new(), tables, STATEMENTS).await
}

/// Of whose chain a row is.
fn owned(own: Vec<ColumnDef>) -> Vec<ColumnDef> {
    let mut columns = vec![uuid("tenant_id"), text("env")];
    columns.extend(own);
    columns
}

/// `body` and `content` are texts, not JSON of the database's: what was hashed is kept to the byte.
fn records() -> TableCreateStatement {
    let own = vec![
        big_integer("n"),
        text("kind"),
        uuid("attempt_id"),
        integer("dial_n"),
        uuid_null("campaign_id"),
        text_null("number_hash"),
        text_null("email_hash"),
        uuid_null("consent_id"),
        big_integer("at"),
        text("body"),
        text_null("content"),
        text_null("content_sha256"),
        text("prev_hash"),
        text("hash"),
    ];
    table("attempt_records", 3, owned(own))
}

fn chains(schema: &Schema<'_>) -> TableCreateStatement {
    let own = vec![
        big_integer("n"),
        text("hash"),
        integer("version"),
        big_integer("updated_at"),
    ];
    clustered(schema.backend(), "attempt_chains", 2, owned(own))
}

fn anchors(schema: &Schema<'_>) -> TableCreateStatement {
    let own = vec![
        big_integer("n"),
        text("hash"),
        big_integer("recorded_at"),
        big_integer("pruned_at"),
    ];
    clustered(schema.backend(), "attempt_anchors", 2, owned(own))
}

fn heads(schema: &Schema<'_>) -> TableCreateStatement {
    let own = vec![
        text("day"),
        big_integer("n"),
        text("hash"),
        big_integer("signed_at"),
        text("public_key"),
        text("signature"),
    ];
    clustered(schema.backend(), "attempt_heads", 3, owned(own))
}

fn exports() -> TableCreateStatement {
    let columns = vec![
        uuid("id"),
        uuid("tenant_id"),
        text("env"),
        text("status"),
        text("format"),
        text_null("number_hash"),
        uuid_null("campaign_id"),
        big_integer_null("since"),
        big_integer_null("until"),
        big_integer("first_n"),
        big_integer("last_n"),
        big_integer("next_n"),
        big_integer("row_count"),
        json_binary("files"),
        big_integer("bytes"),
        text_null("manifest"),
        text_null("signature"),
        text_null("public_key"),
        text_null("error"),
        text_null("created_by"),
        big_integer("created_at"),
        big_integer_null("ended_at"),
    ];
    table("compliance_exports", 1, columns)
}

const STATEMENTS: &[&str] = &[
    // Whose they are comes first in each: else SQLite walks the whole chain by its key where more than one id is asked for.
    "CREATE INDEX attempt_records_attempt ON attempt_records (tenant_id, env, attempt_id, n)",
    "CREATE INDEX attempt_records_campaign ON attempt_records (tenant_id, env, campaign_id, n) WHERE campaign_id IS NOT NULL",
    // Only openings and wishes say whom they are about; what follows an opening is found by it.
    "CREATE INDEX attempt_records_person ON attempt_records (tenant_id, env, number_hash, n) WHERE number_hash IS NOT NULL",
    "CREATE INDEX attempt_records_address ON attempt_records (tenant_id, env, email_hash, n) WHERE email_hash IS NOT NULL",
    // When a consent was last used: so long it is kept.
    "CREATE INDEX attempt_records_consent ON attempt_records (tenant_id, env, consent_id, at) WHERE consent_id IS NOT NULL",
    "CREATE INDEX compliance_exports_list ON compliance_exports (tenant_id, env, id)",
    "CREATE INDEX compliance_exports_running ON compliance_exports (tenant_id) WHERE status = 'running'",
    "CREATE INDEX compliance_exports_expired ON compliance_exports (tenant_id) WHERE status = 'expired'",
];
