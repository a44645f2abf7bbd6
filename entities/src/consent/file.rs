//! Files that prove consents, on their way into the recordings' store and out of it. A file's row comes first and says `stored: false`;
//! what no consent has taken is found by it and erased.
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{ConsentFileId, TenantId},
    keys, page,
    values::Moment,
    workspace_lease::Share,
};
use sea_orm::{QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "consent_files")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ConsentFileId,
    pub tenant_id: TenantId,
    /// A consent has it. Else it is on its way into the store, or nobody wants it any more.
    pub stored: bool,
    /// Of the file, as it was uploaded.
    pub bytes: i64,
    /// When its upload began.
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Begun before then, and no consent's: nobody is at them any more.
#[boxed]
pub async fn abandoned(db: &Connection, share: Share, before: Moment, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(share.of(Column::TenantId))
        .filter(Expr::cust("NOT stored"))
        .filter(Column::CreatedAt.lt(before));
    Ok(select.limit(limit).all(db).await?)
}

/// Bytes of all of a workspace, in both environments, those on their way included.
#[boxed]
pub async fn bytes_of(db: &Connection, tenant: TenantId) -> Result<i64> {
    let select = Entity::find()
        .select_only()
        .column_as(Expr::cust("CAST(COALESCE(SUM(bytes), 0) AS BIGINT)"), "bytes")
        .filter(Column::TenantId.eq(tenant));
    Ok(select.into_tuple().one(db).await?.unwrap_or(0))
}

/// No consent's any more.
#[boxed]
pub async fn abandon(db: &Connection, id: ConsentFileId) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::Stored, Expr::value(false))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}

/// All of all tenants, a page at a time: to seal them anew.
pub async fn all_after(db: &Connection, after: Option<ConsentFileId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

#[boxed]
pub async fn remove(db: &Connection, ids: &[ConsentFileId]) -> Result<()> {
    keys::remove(db, Entity, Column::Id, ids).await
}
