//! What was said in a message can be erased; and a text that came in is found by who wrote it.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        ("sms_messages", big_integer_null("deleted_at")),
        ("email_messages", big_integer_null("deleted_at")),
    ];
    schema.apply(columns, Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] =
    &["CREATE INDEX sms_messages_from ON sms_messages (tenant_id, env, from_number, id) WHERE from_number IS NOT NULL"];
