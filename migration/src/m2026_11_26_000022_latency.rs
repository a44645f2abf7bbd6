//! How soon the other side of a talk was answered.
use crate::{columns::json_binary_null, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    schema.add_column("sessions", json_binary_null("latency")).await
}
