//! What is known of a top-up's refunds: the last sum that was told, and those that failed.
use crate::schema::Schema;
use sea_orm::{DbBackend, DbErr};

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let (json, object) = match schema.backend() {
        DbBackend::Postgres => ("jsonb", "jsonb_build_object"),
        _ => ("jsonb_text", "json_object"),
    };
    for statement in [
        format!("ALTER TABLE topups ADD COLUMN refunds {json} NOT NULL DEFAULT '{{}}'"),
        format!("UPDATE topups SET refunds = {object}('told_cents', refunded_cents) WHERE refunded_cents > 0"),
    ] {
        schema.execute(&statement).await?;
    }
    Ok(())
}
