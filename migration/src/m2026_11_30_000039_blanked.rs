//! Erasing somebody spares the exports that have not come to them yet: they are told, so that what they have read meanwhile is not kept.
use crate::{columns::*, schema::Schema};
use sea_orm::DbErr;

pub async fn up(schema: &Schema<'_>) -> Result<(), DbErr> {
    let columns = vec![("compliance_exports", integer("blanked").default(0).to_owned())];
    schema.apply(columns, Vec::new(), &[]).await
}
