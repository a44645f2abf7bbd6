//! Where a workspace may call, and what a trunk's peer proves itself with.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        // None: its own country.
        ("tenants", json_binary_null("countries")),
        ("sip_trunks", text_null("sealed_inbound_password")),
    ];
    schema.apply(columns, Vec::new(), &[]).await
}
