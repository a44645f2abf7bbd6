//! Workspaces.
use crate::{
    boxed,
    connection::Connection,
    error::{Error, Result},
    ids::TenantId,
    values::{Countries, Country, Env, Moment, Zone},
};
use sea_orm::{Order, QueryOrder, QuerySelect, entity::prelude::*, sea_query::Expr};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "tenants")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TenantId,
    /// The name in addresses: `[a-z0-9-]{2,40}`.
    #[sea_orm(unique)]
    pub slug: String,
    pub name: String,
    /// ISO 3166-1 alpha-2; how numbers without `+` are read.
    pub country: String,
    /// Where it is, for calls whose zone is unknown.
    pub timezone: Zone,
    /// Calls at once, in each env. At most the operator's maximum.
    pub concurrency_limit: i32,
    /// Of these, kept free for calls that come in.
    pub inbound_reserve: i32,
    /// The operator's plan: may it train clones of voices?
    #[sea_orm(default_value = true)]
    pub voice_clones: bool,
    /// Where its live calls may ring, as the operator says; none: in its own country.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub countries: Option<Countries>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Where it is.
    pub fn own_country(&self) -> Result<Country> {
        self.country.parse().map_err(|_| Error::Corrupt {
            table: "tenants",
            column: "country",
            id: self.id.to_string(),
        })
    }

    /// Where its live calls may ring.
    pub fn callable_countries(&self) -> Result<Countries> {
        match &self.countries {
            Some(countries) => Ok(countries.clone()),
            None => self.own_country().map(Countries::from),
        }
    }
}

#[boxed]
pub async fn load(db: &Connection, id: TenantId) -> Result<Model> {
    Entity::find_by_id(id)
        .one(db)
        .await?
        .ok_or(Error::NotFound("workspace"))
}

/// How its numbers without `+` are read.
#[boxed]
pub async fn country(db: &Connection, id: TenantId) -> Result<Country> {
    load(db, id).await?.own_country()
}

/// Keeps other processes from holding the workspace until the transaction ends. (On SQLite one transaction writes at a time
/// anyway.)
#[boxed]
pub async fn hold(db: &Connection, id: TenantId) -> Result<()> {
    let held = Entity::find_by_id(id).lock_exclusive().one(db).await?;
    held.map(drop).ok_or(Error::NotFound("workspace"))
}

/// Is it as it was known, and does nothing keep it from dialling? Asked inside the transaction that commits a dial.
#[boxed]
pub async fn is_free(db: &Connection, id: TenantId, env: Env, version: i32) -> Result<bool> {
    let free = Expr::cust(format!(
        "NOT EXISTS (SELECT 1 FROM dispatch_blocks WHERE dispatch_blocks.tenant_id = tenants.id AND dispatch_blocks.env = '{env}')"
    ));
    let found = Entity::find_by_id(id).filter(Column::Version.eq(version)).filter(free);
    Ok(found.count(db).await? > 0)
}

#[boxed]
pub async fn by_slug(db: &Connection, slug: &str) -> Result<Model> {
    Entity::find()
        .filter(Column::Slug.eq(slug))
        .one(db)
        .await?
        .ok_or(Error::NotFound("workspace"))
}

#[boxed]
pub async fn slug_is_taken(db: &Connection, slug: &str) -> Result<bool> {
    Ok(Entity::find().filter(Column::Slug.eq(slug)).count(db).await? > 0)
}

#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    Ok(Entity::find().order_by(Column::Slug, Order::Asc).all(db).await?)
}
