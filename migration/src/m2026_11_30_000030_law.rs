//! What the rules of calling ask of a contact and of a message: where the person is, what was agreed to, what it is for.
use crate::{
    columns::{json_binary_null, text_null, uuid_null},
    schema::Schema,
};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        ("contacts", text_null("region")),
        ("contacts", uuid_null("consent_id")),
        ("sms_messages", json_binary_null("legal")),
        ("email_messages", json_binary_null("legal")),
    ];
    schema.apply(columns, Vec::new(), &[]).await
}
