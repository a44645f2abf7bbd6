//! What registers that are asked over an API have answered about numbers.
use crate::schema::Schema;
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.apply(Vec::new(), Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    "CREATE TABLE register_answers (
        tenant_id uuid NOT NULL,
        env varchar(8) NOT NULL,
        phone_number varchar(16) NOT NULL,
        name varchar(32) NOT NULL,
        id uuid NOT NULL,
        is_listed boolean NOT NULL,
        listed_on integer,
        as_of bigint NOT NULL,
        asked_at bigint NOT NULL,
        PRIMARY KEY (tenant_id, env, phone_number, name)
    )",
    // A dial looks in its transaction whether the answers that it rests on are the newest.
    "CREATE INDEX register_answers_id ON register_answers (id)",
    "CREATE INDEX register_answers_age ON register_answers (asked_at)",
];
