//! Sessions that are not over: who takes a slot, who waits for one, and which should have an actor.
use super::{Column, Direction, Entity, Model, Phase, owned};
use crate::{
    boxed,
    connection::Connection,
    error::Result,
    ids::{CampaignId, SessionId, TenantId, TenantScoped},
    keys, page,
    values::Env,
};
use sea_orm::{
    Order, QueryOrder, QuerySelect,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};

/// A call that takes a slot, as the dispatcher counts it.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    pub id: SessionId,
    pub env: Env,
    pub campaign_id: Option<CampaignId>,
    pub direction: Direction,
}

/// The tenant's sessions that take a slot: dialled and not ended.
#[boxed]
pub async fn live(db: &Connection, tenant: TenantId) -> Result<Vec<Live>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_live());
    let rows: Vec<(SessionId, Env, Option<CampaignId>, Direction)> = select
        .select_only()
        .columns([Column::Id, Column::Env, Column::CampaignId, Column::Direction])
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(id, env, campaign_id, direction)| Live {
            id,
            env,
            campaign_id,
            direction,
        })
        .collect())
}

/// The tenant's sessions that wait for a slot, the oldest first.
#[boxed]
pub async fn queued(db: &Connection, tenant: TenantId, after: Option<SessionId>, limit: u64) -> Result<Vec<Model>> {
    let waiting = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_queued());
    page::behind(db, waiting, Column::Id, after, limit).await
}

/// A campaign's calls that a trunk sent back and that wait for their turn again.
#[boxed]
pub async fn sent_back(db: &Connection, campaign: TenantScoped<CampaignId>) -> Result<Vec<TenantScoped<SessionId>>> {
    let waits = Expr::cust("phase <> 'ended' AND phase IN ('scheduled', 'queued')");
    let select = owned(campaign.tenant_id, campaign.env)
        .filter(waits)
        .filter(Column::CampaignId.eq(campaign.id))
        .select_only()
        .column(Column::Id);
    let ids: Vec<SessionId> = select.into_tuple().all(db).await?;
    let key = |id| TenantScoped::new(campaign.tenant_id, campaign.env, id);
    Ok(ids.into_iter().map(key).collect())
}

/// Sessions that have not ended, of all tenants, and for which nobody else waits: each should have an actor. Tenant by tenant, as
/// the small index of open sessions has them: in the order of ids alone SQLite walks past all that have ended.
#[boxed]
pub async fn open(
    db: &Connection,
    after: Option<TenantScoped<SessionId>>,
    limit: u64,
) -> Result<Vec<TenantScoped<SessionId>>> {
    let mut open = Entity::find().filter(is_open()).filter(awaits_nobody());
    if let Some(after) = after {
        let behind = Expr::tuple([Expr::col(Column::TenantId), Expr::col(Column::Id)])
            .gt(Expr::tuple([Expr::value(after.tenant_id), Expr::value(after.id)]));
        open = open.filter(behind);
    }
    let next = open
        .order_by(Column::TenantId, Order::Asc)
        .order_by(Column::Id, Order::Asc)
        .limit(limit);
    keys::of(db, next, [Column::TenantId, Column::Env, Column::Id]).await
}

/// Tenants with a session that waits for a slot.
#[boxed]
pub async fn tenants_in_queue(db: &Connection) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .filter(is_queued())
        .distinct();
    Ok(select.into_tuple().all(db).await?)
}

/// Calls in use now, by where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    pub campaign: u64,
    pub api: u64,
    pub inbound: u64,
    pub room: u64,
}
impl InUse {
    pub fn total(self) -> u64 {
        self.outbound() + self.inbound + self.room
    }
    pub fn outbound(self) -> u64 {
        self.campaign + self.api
    }
}

#[boxed]
pub async fn in_use(db: &Connection, tenant: TenantId, env: Env) -> Result<InUse> {
    let mine = || owned(tenant, env).filter(is_live());
    let outbound = || mine().filter(Column::Direction.eq(Direction::Outbound));
    Ok(InUse {
        campaign: outbound().filter(Column::CampaignId.is_not_null()).count(db).await?,
        api: outbound().filter(Column::CampaignId.is_null()).count(db).await?,
        inbound: mine()
            .filter(Column::Direction.eq(Direction::Inbound))
            .filter(Column::RoomId.is_null())
            .count(db)
            .await?,
        room: mine().filter(Column::RoomId.is_not_null()).count(db).await?,
    })
}

/// Sessions of the tenant and env that wait for a slot now.
#[boxed]
pub async fn count_in_line(db: &Connection, tenant: TenantId, env: Env) -> Result<u64> {
    Ok(owned(tenant, env).filter(is_queued()).count(db).await?)
}

/// Sessions of the tenant and env that wait for their time or for a slot.
#[boxed]
pub async fn count_queued(db: &Connection, tenant: TenantId, env: Env) -> Result<u64> {
    let waits = Expr::cust("phase <> 'ended' AND phase IN ('scheduled', 'queued')");
    Ok(owned(tenant, env)
        .filter(waits)
        .filter(awaits_nobody())
        .count(db)
        .await?)
}

/// How far those of `ids` are that there are.
#[boxed]
pub async fn phases(db: &Connection, ids: &[SessionId]) -> Result<Vec<(SessionId, Phase)>> {
    let mut found = Vec::new();
    for chunk in ids.chunks(500) {
        let select = Entity::find()
            .select_only()
            .columns([Column::Id, Column::Phase])
            .filter(Column::Id.is_in(chunk.iter().copied()));
        found.extend(select.into_tuple::<(SessionId, Phase)>().all(db).await?);
    }
    Ok(found)
}

/// Written out, not bound: only so do the databases see that the small index of open sessions serves.
fn is_open() -> Expr {
    Expr::cust("phase <> 'ended'")
}
/// Nobody has joined its room: only the room knows whether somebody will.
fn awaits_nobody() -> Expr {
    Expr::cust("(phase <> 'scheduled' OR room_id IS NULL)")
}
fn is_queued() -> Expr {
    Expr::cust("phase <> 'ended' AND phase = 'queued'")
}
/// Dialled and not ended: takes a slot.
fn is_live() -> Expr {
    Expr::cust("phase <> 'ended' AND phase IN ('dialing', 'ringing', 'answered', 'conversing', 'transferring')")
}
