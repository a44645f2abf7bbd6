//! Webhook endpoints: where a tenant's events go.
use crate::{
    boxed, bulk,
    connection::Connection,
    error::{Error, Result},
    ids::{EndpointId, TenantId, TenantScoped},
    page::{self, Listed, Page},
    values::{Env, Moment, WebhookUrl},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, FromJsonQueryResult, FromQueryResult, QuerySelect, entity::prelude::*, sea_query::Expr,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Receives events.
    Active,
    /// Too many deliveries failed in a row: what it would receive is held.
    Suspended,
    /// Turned off by its user: no deliveries are made for it.
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Ordering {
    /// First attempts of events about one session, campaign or contact arrive one after the other, in order.
    Session,
    /// No delivery waits for another.
    None,
}

/// Event types and patterns (`*`, `session.*`), checked against the catalogue before they get here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
#[schemars(description = "`*`, groups as `session.*`, or exact event types.")]
pub struct Patterns(pub Vec<String>);

impl Patterns {
    pub fn matches(&self, event_type: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => event_type.starts_with(prefix),
            None => pattern == event_type,
        })
    }
}

/// Headers of the user's own, sent with every delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Headers(pub BTreeMap<String, String>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_endpoints")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: EndpointId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub url: WebhookUrl,
    #[sea_orm(column_type = "JsonBinary")]
    pub event_types: Patterns,
    pub description: Option<String>,
    pub timeout_ms: i32,
    /// Sealed: a header may hold a credential.
    #[sea_orm(column_type = "Text")]
    pub sealed_headers: String,
    pub max_concurrency: i32,
    pub ordering: Ordering,
    pub status: Status,
    /// Live deliveries that ended failed since the last success.
    pub failure_streak: i32,
    pub suspended_at: Option<Moment>,
    /// The `whsec_` secret, sealed.
    #[sea_orm(column_type = "Text")]
    pub sealed_secret: String,
    /// The secret's last four characters.
    pub secret_hint: String,
    /// The secret before the last rotation, sealed: it signs along until it expires.
    #[sea_orm(column_type = "Text", nullable)]
    pub sealed_previous_secret: Option<String>,
    pub previous_secret_expires_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

/// What the writer must know of an endpoint to fan out to it.
#[derive(Clone, Debug, FromQueryResult)]
pub struct Subscriber {
    pub id: EndpointId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub event_types: Patterns,
    pub status: Status,
}

impl Model {
    pub fn subscriber(&self) -> Subscriber {
        Subscriber {
            id: self.id,
            tenant_id: self.tenant_id,
            env: self.env,
            event_types: self.event_types.clone(),
            status: self.status,
        }
    }

    pub fn key(&self) -> TenantScoped<EndpointId> {
        TenantScoped::new(self.tenant_id, self.env, self.id)
    }
}

fn present() -> sea_orm::Select<Entity> {
    Entity::find().filter(Column::DeletedAt.is_null())
}

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<EndpointId>) -> Result<Model> {
    let select = present()
        .filter(Column::Id.eq(key.id))
        .filter(Column::TenantId.eq(key.tenant_id))
        .filter(Column::Env.eq(key.env));
    select.one(db).await?.ok_or(Error::NotFound("webhook endpoint"))
}

#[boxed]
pub async fn list(db: &Connection, tenant: TenantId, env: Env, page: Page) -> Result<Listed<Model>> {
    let select = present()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env));
    page::fetch(db, select, Column::Id, Column::CreatedAt, page).await
}

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId, env: Env) -> Result<u64> {
    Ok(present()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .count(db)
        .await?)
}

/// A page of those for which deliveries are made, of all those workspaces, by id.
#[boxed]
pub async fn receiving(
    db: &Connection,
    share: Share,
    after: Option<EndpointId>,
    limit: u64,
) -> Result<Vec<Subscriber>> {
    let columns = [
        Column::Id,
        Column::TenantId,
        Column::Env,
        Column::EventTypes,
        Column::Status,
    ];
    let mine = present().filter(share.of(Column::TenantId));
    let receiving = mine.filter(Column::Status.ne(Status::Disabled));
    let next = page::next(receiving, Column::Id, after, limit)
        .select_only()
        .columns(columns);
    Ok(next.into_model().all(db).await?)
}

/// A tenant's endpoints that receive now.
#[boxed]
pub async fn active(db: &Connection, tenant: TenantId, env: Env) -> Result<Vec<Model>> {
    let select = present()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::Status.eq(Status::Active));
    Ok(select.all(db).await?)
}

/// Whose these are, of those workspaces; deleted ones too.
#[boxed]
pub async fn keys(db: &Connection, share: Share, ids: &[EndpointId]) -> Result<Vec<TenantScoped<EndpointId>>> {
    let mut keys = Vec::with_capacity(ids.len());
    for ids in bulk::padded(ids) {
        let mine = Entity::find().filter(share.of(Column::TenantId));
        let rows = mine.filter(Column::Id.is_in(ids)).all(db).await?;
        keys.extend(rows.iter().map(Model::key));
    }
    Ok(keys)
}

/// Endpoints whose previous secret must be forgotten in time.
#[boxed]
pub async fn in_overlap(db: &Connection, share: Share) -> Result<Vec<TenantScoped<EndpointId>>> {
    let select = present()
        .filter(share.of(Column::TenantId))
        .filter(Expr::cust("previous_secret_expires_at IS NOT NULL"));
    Ok(select.all(db).await?.iter().map(Model::key).collect())
}

/// All that were ever made, of all tenants: for sealing their secrets anew.
#[boxed]
pub async fn all(db: &Connection) -> Result<Vec<Model>> {
    Ok(Entity::find().all(db).await?)
}

/// A page of all that were ever made, of all tenants, deleted ones too: for the audit.
pub async fn all_after(db: &Connection, after: Option<EndpointId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

#[boxed]
pub async fn reseal(
    db: &Connection,
    id: EndpointId,
    sealed_secret: String,
    sealed_previous_secret: Option<String>,
    sealed_headers: String,
) -> Result<()> {
    let update = Entity::update_many()
        .col_expr(Column::SealedSecret, Expr::value(sealed_secret))
        .col_expr(Column::SealedPreviousSecret, Expr::value(sealed_previous_secret))
        .col_expr(Column::SealedHeaders, Expr::value(sealed_headers));
    update.filter(Column::Id.eq(id)).exec(db).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_pattern_matches_all_a_group_or_one_type() {
        let of = |pattern: &str| Patterns(vec![pattern.into()]);
        assert!(of("*").matches("session.ended"));
        assert!(of("session.*").matches("session.ended"));
        assert!(of("session.ended").matches("session.ended"));
        assert!(!of("session.ended").matches("session.ended2"));
        assert!(!of("campaign.*").matches("session.ended"));
    }
}
