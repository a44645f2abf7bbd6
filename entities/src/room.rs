//! Rooms: links by which a person talks with an agent in a browser. What is said there is the session's.
use crate::{
    boxed,
    connection::Connection,
    db::Db,
    error::{Error, Result},
    ids::{AgentId, ParticipantId, RoomId, SessionId, TenantId, TenantScoped},
    keys,
    page::{self, Listed, Page},
    session,
    values::{Env, Moment},
    workspace_lease::Share,
};
use schemars::JsonSchema;
use sea_orm::{
    DeriveActiveEnum, EnumIter, JoinType, Order, QueryOrder, QuerySelect, QueryTrait, entity::prelude::*,
    sea_query::Expr,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Created,
    /// The participant has opened the page but not joined.
    Viewed,
    /// The participant and the agent talk.
    Joined,
    Completed,
    /// Nobody joined in time.
    Expired,
    /// It could not be established, or broke off.
    Failed,
}

/// Why a room has failed. Source: CONTRACT §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(24))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RoomErrorCode")]
pub enum ErrorCode {
    AgentUnreachable,
    /// The browser could not be reached.
    IceFailed,
    /// The browser stopped sending.
    MediaTimeout,
    InsufficientCredits,
    ConcurrencyFull,
    InternalError,
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "rooms")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RoomId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub status: Status,
    /// The random part of its link, 128 bits in hex. Of no use without this service's key.
    pub nonce: String,
    pub expires_at: Moment,
    pub viewed_at: Option<Moment>,
    pub participant_id: Option<ParticipantId>,
    /// While the browser is being connected: until when.
    pub connect_by: Option<Moment>,
    pub joined_at: Option<Moment>,
    /// Nothing has come from the browser since then.
    pub lost_at: Option<Moment>,
    pub ended_at: Option<Moment>,
    pub error_code: Option<ErrorCode>,
    pub error_message: Option<String>,
    /// When it must be looked at again.
    pub wake_at: Option<Moment>,
    pub deleted_at: Option<Moment>,
    pub version: i32,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// A room that is made now, for a day; its session and agent follow.
    pub fn new(owner: (TenantId, Env), id: RoomId, nonce: String, now: Moment) -> Self {
        Model {
            id,
            tenant_id: owner.0,
            env: owner.1,
            session_id: SessionId(Uuid::nil()),
            agent_id: AgentId(Uuid::nil()),
            status: Status::Created,
            nonce,
            expires_at: now.plus_seconds(86_400),
            viewed_at: None,
            participant_id: None,
            connect_by: None,
            joined_at: None,
            lost_at: None,
            ended_at: None,
            error_code: None,
            error_message: None,
            wake_at: None,
            deleted_at: None,
            version: 1,
            created_at: now,
        }
    }
    pub fn key(&self) -> TenantScoped<RoomId> {
        TenantScoped::new(self.tenant_id, self.env, self.id)
    }
    pub fn session(&self) -> TenantScoped<SessionId> {
        TenantScoped::new(self.tenant_id, self.env, self.session_id)
    }
}

/// Written out, not bound: only so do the databases see that the small index of rooms with a deadline serves.
fn is_open() -> Expr {
    Expr::cust("wake_at IS NOT NULL")
}

fn owned(tenant: TenantId, env: Env) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Env.eq(env))
        .filter(Column::DeletedAt.is_null())
}

#[boxed]
pub async fn load(db: &Connection, key: TenantScoped<RoomId>) -> Result<Model> {
    let found = owned(key.tenant_id, key.env).filter(Column::Id.eq(key.id));
    found.one(db).await?.ok_or(Error::NotFound("room"))
}

/// For a link that carries its own proof.
#[boxed]
pub async fn behind_link(db: &Connection, id: RoomId) -> Result<Option<Model>> {
    Ok(Entity::find_by_id(id)
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await?)
}

#[boxed]
pub async fn list(db: &Db, owner: (TenantId, Env), status: Option<Status>, page: Page) -> Result<Listed<Model>> {
    let all = owned(owner.0, owner.1).apply_if(status, |all, status| all.filter(Column::Status.eq(status)));
    page::fetch(&db.read, all, Column::Id, Column::CreatedAt, page).await
}

/// The tenant's rooms that have not ended.
#[boxed]
pub async fn count_open(db: &Connection, tenant: TenantId, env: Env) -> Result<u64> {
    Ok(owned(tenant, env).filter(is_open()).count(db).await?)
}

/// Rooms of all tenants that must be looked at by then.
#[boxed]
pub async fn due(db: &Connection, share: Share, by: Moment, limit: u64) -> Result<Vec<TenantScoped<RoomId>>> {
    let open = Entity::find().filter(share.of(Column::TenantId)).filter(is_open());
    let due = keys::due(open, Column::WakeAt, by, limit);
    keys::of(db, due, [Column::TenantId, Column::Env, Column::Id]).await
}

/// Open rooms whose session has ended: a crash, or a lost hint, kept them from following.
#[boxed]
pub async fn behind(db: &Connection, share: Share, limit: u64) -> Result<Vec<(TenantScoped<RoomId>, session::Model)>> {
    let open = Entity::find()
        .filter(share.of(Column::TenantId))
        .filter(is_open())
        .join(JoinType::InnerJoin, sessions())
        .filter(session::Column::Phase.eq(session::Phase::Ended))
        // From the small index of open rooms on: in no order SQLite begins with every session that has ended.
        .order_by(Column::WakeAt, Order::Asc)
        .limit(limit)
        .all(db)
        .await?;
    let ids: Vec<SessionId> = open.iter().map(|room| room.session_id).collect();
    let ended = session::of_ids(db, &ids).await?;
    let of = |room: &Model| ended.iter().find(|session| session.id == room.session_id).cloned();
    Ok(open.iter().filter_map(|room| Some((room.key(), of(room)?))).collect())
}

/// Rooms that have ended, of sessions that have not.
#[boxed]
pub async fn ahead(db: &Connection, share: Share, limit: u64) -> Result<Vec<Model>> {
    let select = Entity::find()
        .filter(share.of(Column::TenantId))
        .join(JoinType::InnerJoin, sessions())
        .filter(Expr::cust("phase <> 'ended' AND room_id IS NOT NULL"))
        .filter(Column::EndedAt.is_not_null());
    Ok(select.limit(limit).all(db).await?)
}

fn sessions() -> RelationDef {
    Entity::belongs_to(session::Entity)
        .from(Column::SessionId)
        .to(session::Column::Id)
        .into()
}

/// All rooms of all tenants, a page at a time: for the audit.
pub async fn all_after(db: &Connection, after: Option<RoomId>, limit: u64) -> Result<Vec<Model>> {
    page::behind(db, Entity::find(), Column::Id, after, limit).await
}

/// Removes the rooms in which these sessions were held.
#[boxed]
pub async fn remove(db: &Connection, sessions: &[SessionId]) -> Result<()> {
    keys::remove(db, Entity, Column::SessionId, sessions).await
}
