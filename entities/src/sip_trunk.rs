//! SIP trunks: a tenant's ways to the telephone network. Shared by its two envs.
use crate::{
    boxed,
    bulk::{self, OnConflict},
    campaign::CallsPerSecond,
    connection::Connection,
    error::{Error, Result},
    ids::{TenantId, TrunkId},
    owned::of_tenant,
    page::{self, Listed, Page},
    values::{Bounded, Domain, Moment, SipHost, Text},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, entity::prelude::*, sea_query::Expr};
use serde::{Deserialize, Serialize};

/// What a user decides about a trunk, without its password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
pub struct Definition {
    pub name: Text<1, 200>,
    /// The peer: a name or an address, and a port if it is not 5060 (5061 with TLS).
    pub host: SipHost,
    #[serde(default)]
    pub transport: Transport,
    /// Who we are to the peer, where it asks.
    #[serde(default)]
    pub username: Option<Text<1, 255>>,
    /// The domain of our own addresses; null: the peer's host.
    #[serde(default)]
    pub from_domain: Option<Domain>,
    /// Calls started per second that the peer takes.
    #[serde(default)]
    pub max_calls_per_second: CallsPerSecond,
    /// Concurrent calls that the peer takes; null: as many as the workspace has.
    #[serde(default)]
    pub max_concurrency: Option<Bounded<1, 100_000>>,
}

impl Definition {
    /// The port that is meant. Source: RFC 3261, section 19.1.2.
    pub fn port(&self) -> u16 {
        self.host.port().unwrap_or(match self.transport {
            Transport::Udp | Transport::Tcp => 5060,
            Transport::Tls => 5061,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    #[default]
    Udp,
    Tcp,
    Tls,
}

/// What its last test found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not tested since it was made, or since its peer was changed.
    #[default]
    Untested,
    /// The peer answered in SIP, whatever it said.
    Reachable,
    /// It did not.
    Unreachable,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "sip_trunks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TrunkId,
    pub tenant_id: TenantId,
    #[sea_orm(column_type = "JsonBinary")]
    pub definition: Definition,
    pub sealed_password: Option<String>,
    pub status: Status,
    pub tested_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub deleted_at: Option<Moment>,
}
impl ActiveModelBehavior for ActiveModel {}

of_tenant!(TrunkId, "SIP trunk");

#[boxed]
pub async fn count(db: &Connection, tenant: TenantId) -> Result<u64> {
    Ok(owned(tenant).count(db).await?)
}

/// Inserts version 1, else replaces the predecessor.
#[boxed]
pub async fn save(db: &Connection, row: &Model) -> Result<()> {
    bulk::save(db, std::slice::from_ref(row), OnConflict::ReplacePredecessor)
        .await
        .map(drop)
}

/// What a test found; nothing, if the trunk was changed meanwhile.
#[boxed]
pub async fn tested(db: &Connection, row: &Model, status: Status, at: Moment) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::TestedAt, Expr::value(at))
        .filter(Column::Id.eq(row.id))
        .filter(Column::Version.eq(row.version))
        .exec(db)
        .await?;
    Ok(())
}

/// All trunks with a password, a page at a time: to seal them anew.
pub async fn sealed_after(db: &Connection, after: Option<TrunkId>, limit: u64) -> Result<Vec<Model>> {
    let with_password = Entity::find().filter(Column::SealedPassword.is_not_null());
    page::behind(db, with_password, Column::Id, after, limit).await
}

#[boxed]
pub async fn reseal(db: &Connection, id: TrunkId, sealed_password: String) -> Result<()> {
    Entity::update_many()
        .col_expr(Column::SealedPassword, Expr::value(sealed_password))
        .filter(Column::Id.eq(id))
        .exec(db)
        .await?;
    Ok(())
}
