//! What proves that somebody's voice may be cloned, and what a recording says of the machine that speaks in it.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![
        // None: a tick, and nothing that shows it.
        ("voices", json_binary_null("consent")),
        ("recordings", json_binary_null("synthetic")),
    ];
    schema.apply(columns, Vec::new(), &[]).await
}
