//! Who may become a member of a workspace: whoever holds the link that was sent to the address. The row holds the link's hash.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    connection::Connection,
    error::{Error, Result},
    ids::{InvitationId, TenantId, UserId},
    page::{self, Listed, Page},
    values::{Moment, Role},
};
use sea_orm::entity::prelude::*;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "invitations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: InvitationId,
    pub tenant_id: TenantId,
    /// In lower case; of a workspace once.
    pub email: String,
    pub role: Role,
    pub invited_by: UserId,
    /// SHA-256 of the link's token, hex.
    pub token_hash: String,
    pub created_at: Moment,
    pub expires_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// Those whose time is not over.
#[boxed]
pub async fn list(db: &Connection, tenant: TenantId, now: Moment, page: Page) -> Result<Listed<Model>> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::ExpiresAt.gt(now));
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

/// Those of other addresses whose time is not over.
#[boxed]
pub async fn count_others(db: &Connection, tenant: TenantId, email: &str, now: Moment) -> Result<u64> {
    let select = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Email.ne(email))
        .filter(Column::ExpiresAt.gt(now));
    Ok(select.count(db).await?)
}

/// Those that somebody has made who may no longer.
#[boxed]
pub async fn void_of(db: &Connection, tenant: TenantId, by: UserId) -> Result<()> {
    Entity::delete_many()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::InvitedBy.eq(by))
        .exec(db)
        .await?;
    Ok(())
}

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, id: InvitationId) -> Result<Model> {
    let select = Entity::find_by_id(id).filter(Column::TenantId.eq(tenant));
    select.one(db).await?.ok_or(Error::NotFound("invitation"))
}

/// The one behind a link, unless its time is over.
#[boxed]
pub async fn by_token(db: &Connection, token_hash: &str, now: Moment) -> Result<Option<Model>> {
    let select = Entity::find()
        .filter(Column::TokenHash.eq(token_hash))
        .filter(Column::ExpiresAt.gt(now));
    Ok(select.one(db).await?)
}

/// Adds one; an older one of that address is void.
#[boxed]
pub async fn add(db: &Connection, row: Model) -> Result<()> {
    let of_address = Entity::delete_many()
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::Email.eq(&row.email));
    of_address.exec(db).await?;
    bulk::save(db, &[row], OnConflict::Fail).await.map(drop)
}

/// Takes one away; `false`: somebody else has.
#[boxed]
pub async fn take(db: &Connection, id: InvitationId) -> Result<bool> {
    Ok(Entity::delete_by_id(id).exec(db).await?.rows_affected == 1)
}

/// Forgets those whose time is over.
#[boxed]
pub async fn prune(db: &Connection, now: Moment) -> Result<()> {
    Entity::delete_many()
        .filter(Column::ExpiresAt.lte(now))
        .exec(db)
        .await?;
    Ok(())
}
