//! Clones of voices, the samples they are made from, and whether a workspace's plan has them.
use crate::{columns::*, schema::Schema, steps::{editable, table}};
use sea_orm::{DbErr, sea_query::ColumnDef};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let plan = boolean("voice_clones").default(true).to_owned();
    let tables = vec![table("voices", 1, voices()), table("voice_samples", 1, voice_samples())];
    schema.apply(vec![("tenants", plan)], tables, &STATEMENTS).await
}

fn voices() -> Vec<ColumnDef> {
    editable(vec![
        // Where its events go: the env of the key that created it.
        text("env").to_owned(),
        text("name").to_owned(),
        text_null("language").to_owned(),
        text("provider").to_owned(),
        text_null("provider_voice_id").to_owned(),
        text("status").to_owned(),
        integer("samples").to_owned(),
        integer("run").to_owned(),
        big_integer_null("deadline").to_owned(),
        big_integer_null("submitted_at").to_owned(),
        boolean("leftovers").to_owned(),
        big_integer_null("wake_at").to_owned(),
        integer("tries").to_owned(),
        text_null("error_code").to_owned(),
        text_null("error_message").to_owned(),
        big_integer("consent_attested_at").to_owned(),
        big_integer_null("ready_at").to_owned(),
    ])
}

fn voice_samples() -> Vec<ColumnDef> {
    vec![
        uuid("id").to_owned(),
        uuid("tenant_id").to_owned(),
        uuid("voice_id").to_owned(),
        // Its place among the samples of its voice.
        integer("place").to_owned(),
        boolean("stored").to_owned(),
        text("file_name").to_owned(),
        text_null("format").to_owned(),
        big_integer("bytes").to_owned(),
        // Of the file, hex.
        text("sha256").to_owned(),
        big_integer_null("duration_ms").to_owned(),
        double_null("loudness_lufs").to_owned(),
        text_null("fault").to_owned(),
        big_integer("created_at").to_owned(),
    ]
}

const STATEMENTS: [&str; 4] = [
    "CREATE INDEX voices_tenant ON voices (tenant_id, id) WHERE deleted_at IS NULL",
    "CREATE INDEX voices_wake ON voices (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX voice_samples_voice ON voice_samples (voice_id, place)",
    "CREATE INDEX voice_samples_uploading ON voice_samples (created_at) WHERE NOT stored",
];
