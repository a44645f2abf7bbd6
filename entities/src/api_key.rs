//! API keys: what programs show. Only the hash of a key is kept.
use crate::{
    boxed,
    connection::Connection,
    error::{Error, Result},
    ids::{ApiKeyId, TenantId},
    page::{self, Listed, Page},
    values::{Env, Moment, Scopes},
};
use sea_orm::{Condition, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: ApiKeyId,
    pub tenant_id: TenantId,
    pub name: String,
    /// The key's first 12 characters, for lists and logs.
    pub key_prefix: String,
    /// SHA-256 of the full key, hex.
    #[sea_orm(unique)]
    pub key_hash: String,
    pub env: Env,
    #[sea_orm(column_type = "JsonBinary")]
    pub scopes: Scopes,
    /// What its calls may cost in a day (UTC); none: no limit.
    pub max_spend_cents_per_day: Option<i32>,
    /// How many of its calls may be dialled in any minute; none: no limit.
    pub max_calls_per_minute: Option<i32>,
    pub expires_at: Option<Moment>,
    pub created_at: Moment,
    /// Written every few seconds at most.
    pub last_used_at: Option<Moment>,
    pub revoked_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Its calls count.
    pub fn has_limits(&self) -> bool {
        self.max_spend_cents_per_day.is_some() || self.max_calls_per_minute.is_some()
    }

    /// What is asked for with it remembers it by this.
    pub fn counted(&self) -> Option<ApiKeyId> {
        self.has_limits().then_some(self.id)
    }
}

/// The key of that hash, revoked or expired ones too: the caller decides. Read at every request, so that a revocation
/// by any process counts at once.
#[boxed]
pub async fn by_hash(db: &Connection, key_hash: &str) -> Result<Option<Model>> {
    Ok(Entity::find().filter(Column::KeyHash.eq(key_hash)).one(db).await?)
}

#[boxed]
pub async fn load(db: &Connection, tenant: TenantId, id: ApiKeyId) -> Result<Model> {
    Entity::find_by_id(id)
        .filter(Column::TenantId.eq(tenant))
        .one(db)
        .await?
        .ok_or(Error::NotFound("API key"))
}

#[boxed]
pub async fn list(db: &Connection, tenant: TenantId, page: Page) -> Result<Listed<Model>> {
    page::fetch(
        db,
        Entity::find().filter(Column::TenantId.eq(tenant)),
        Column::Id,
        Column::CreatedAt,
        page,
    )
    .await
}

/// How many keys of a workspace are neither revoked nor expired. Until the transaction ends no other process counts them.
#[boxed]
pub async fn count_active(db: &Connection, tenant: TenantId, now: Moment) -> Result<u64> {
    crate::tenant::hold(db, tenant).await?;
    let in_time = Condition::any()
        .add(Column::ExpiresAt.is_null())
        .add(Column::ExpiresAt.gt(now));
    let active = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::RevokedAt.is_null())
        .filter(in_time);
    Ok(active.count(db).await?)
}

/// Those of them that are still there, revoked and expired ones too.
#[boxed]
pub async fn of_ids(db: &Connection, ids: &[ApiKeyId]) -> Result<Vec<Model>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(Entity::find()
        .filter(Column::Id.is_in(ids.iter().copied()))
        .all(db)
        .await?)
}

/// Revokes at once. A second time changes nothing, and answers `false`.
#[boxed]
pub async fn revoke(db: &Connection, tenant: TenantId, id: ApiKeyId, now: Moment) -> Result<bool> {
    load(db, tenant, id).await?;
    let update = Entity::update_many().col_expr(Column::RevokedAt, Expr::value(now));
    let revoked = update
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.eq(id))
        .filter(Column::RevokedAt.is_null())
        .exec(db)
        .await?;
    Ok(revoked.rows_affected == 1)
}

#[boxed]
pub async fn touch(db: &Connection, used: &[(ApiKeyId, Moment)]) -> Result<()> {
    for (id, at) in used {
        Entity::update_many()
            .col_expr(Column::LastUsedAt, Expr::value(*at))
            .filter(Column::Id.eq(*id))
            .exec(db)
            .await?;
    }
    Ok(())
}

/// All keys of all tenants, revoked ones too, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<ApiKeyId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}
