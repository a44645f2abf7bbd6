//! The rule of the law by which a contact was skipped.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    // None: it was not one of the law's, or nobody has noted it yet.
    let columns = vec![("contacts", text_null("skip_rule"))];
    schema.apply(columns, Vec::new(), &[]).await
}
