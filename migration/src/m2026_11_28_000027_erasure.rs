//! What was said in a message can be erased; and all that is held about a person is found: texts by who wrote them, calls and contacts by
//! their e-mail address, contacts that are written to by their number.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        ("sms_messages", big_integer_null("deleted_at")),
        ("email_messages", big_integer_null("deleted_at")),
    ];
    schema.apply(columns, Vec::new(), STATEMENTS).await
}

const STATEMENTS: &[&str] = &[
    "CREATE INDEX sms_messages_from ON sms_messages (tenant_id, env, from_number, id) WHERE from_number IS NOT NULL",
    "CREATE INDEX sessions_email ON sessions (tenant_id, env, lower(email), id) WHERE email IS NOT NULL",
    "CREATE INDEX contacts_email ON contacts (tenant_id, env, lower(email), id) WHERE email IS NOT NULL",
    "CREATE INDEX contacts_number ON contacts (tenant_id, env, phone_number, id) WHERE channel = 'email' AND phone_number <> ''",
];
