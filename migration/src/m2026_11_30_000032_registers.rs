//! Registers of numbers that must not be called, and what the service for reassigned numbers has answered.
use crate::schema::Schema;
use sea_orm::{DbBackend, DbErr};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let bytes = match schema.backend() {
        DbBackend::Postgres => "bytea",
        _ => "blob",
    };
    // Each row has some thousand numbers. It names the file and not the register: a file is written before its register has it.
    let chunks = format!(
        "CREATE TABLE register_chunks (
            file_id uuid NOT NULL,
            n integer NOT NULL,
            hashes {bytes} NOT NULL,
            days {bytes},
            PRIMARY KEY (file_id, n)
        )"
    );
    schema.execute(&chunks).await?;
    let json = match schema.backend() {
        DbBackend::Postgres => "jsonb",
        _ => "jsonb_text",
    };
    // The operator's own have the id that no workspace has.
    let registers = format!(
        "CREATE TABLE registers (
            id uuid NOT NULL PRIMARY KEY,
            tenant_id uuid NOT NULL,
            env varchar(8) NOT NULL,
            name varchar(32) NOT NULL,
            country varchar(2) NOT NULL,
            version integer NOT NULL,
            file_id uuid NOT NULL,
            key_check varchar(16) NOT NULL,
            has_dates boolean NOT NULL,
            area_codes {json},
            numbers bigint NOT NULL,
            sha256 varchar(64) NOT NULL,
            fetched_at bigint NOT NULL,
            uploaded_at bigint NOT NULL,
            uploaded_by text,
            warned integer NOT NULL,
            created_at bigint NOT NULL
        )"
    );
    schema.execute(&registers).await?;
    schema.apply(Vec::new(), Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    "CREATE UNIQUE INDEX registers_name ON registers (tenant_id, env, name)",
    "CREATE TABLE reassigned_checks (
        tenant_id uuid NOT NULL,
        env varchar(8) NOT NULL,
        phone_number varchar(16) NOT NULL,
        since bigint NOT NULL,
        answer varchar(16) NOT NULL,
        checked_at bigint NOT NULL,
        PRIMARY KEY (tenant_id, env, phone_number)
    )",
    "CREATE INDEX reassigned_checks_age ON reassigned_checks (checked_at)",
];
