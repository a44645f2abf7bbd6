//! Sessions that are not over: who takes a slot, who waits for one, and which should have an actor.
use super::{Column, Direction, Entity, Model, Phase, owned};
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::{ApiKeyId, CampaignId, SessionId, TenantId, TenantScoped, TrunkId},
    keys, page,
    values::{E164, Env, Moment},
    workspace_lease::Share,
};
use sea_orm::{
    Condition, Order, QueryOrder, QuerySelect, QueryTrait,
    entity::prelude::*,
    sea_query::{Expr, ExprTrait},
};
use std::collections::HashMap;

/// A call that takes a slot, as the dispatcher counts it.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    pub id: SessionId,
    pub env: Env,
    pub campaign_id: Option<CampaignId>,
    pub direction: Direction,
    pub trunk_id: Option<TrunkId>,
}

/// What a slot is held by.
type Held = (SessionId, Env, Option<CampaignId>, Direction, Option<TrunkId>);

/// The tenant's sessions that take a slot: dialled and not ended.
#[boxed]
pub async fn live(db: &Connection, tenant: TenantId) -> Result<Vec<Live>> {
    let select = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_live());
    let rows: Vec<Held> = select
        .select_only()
        .columns([
            Column::Id,
            Column::Env,
            Column::CampaignId,
            Column::Direction,
            Column::TrunkId,
        ])
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(id, env, campaign_id, direction, trunk_id)| Live {
            id,
            env,
            campaign_id,
            direction,
            trunk_id,
        })
        .collect())
}

/// Sessions that are passed over, because what they go over, or whose they are, takes nothing now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub sandbox: bool,
    pub trunks: Vec<TrunkId>,
    /// Live ones without a trunk.
    pub without_trunk: bool,
    /// Those of keys whose limits leave no room.
    pub api_keys: Vec<ApiKeyId>,
}

/// The tenant's sessions that wait for a slot, the oldest first.
#[boxed]
pub async fn queued(
    db: &Connection,
    tenant: TenantId,
    after: Option<SessionId>,
    passed: &Passed,
    limit: u64,
) -> Result<Vec<Model>> {
    let mut waiting = Entity::find().filter(Column::TenantId.eq(tenant)).filter(is_queued());
    if passed.sandbox {
        waiting = waiting.filter(Column::Env.ne(Env::Test));
    }
    if passed.without_trunk {
        let has_way = Condition::any()
            .add(Column::Env.eq(Env::Test))
            .add(Column::TrunkId.is_not_null());
        waiting = waiting.filter(has_way);
    }
    if !passed.trunks.is_empty() {
        let others = Condition::any()
            .add(Column::TrunkId.is_null())
            .add(Column::TrunkId.is_not_in(passed.trunks.iter().copied()));
        waiting = waiting.filter(others);
    }
    if !passed.api_keys.is_empty() {
        let others = Condition::any()
            .add(Column::ApiKeyId.is_null())
            .add(Column::ApiKeyId.is_not_in(passed.api_keys.iter().copied()));
        waiting = waiting.filter(others);
    }
    page::behind(db, waiting, Column::Id, after, limit).await
}

/// What the tenant's live calls that wait show, and what they are to go over: each pair once.
#[boxed]
pub async fn ways_of_waiting(db: &Connection, tenant: TenantId) -> Result<Vec<(E164, Option<TrunkId>)>> {
    let select = waiting_live(tenant)
        .select_only()
        .columns([Column::FromNumber, Column::TrunkId])
        .distinct();
    Ok(select.into_tuple().all(db).await?)
}

/// Those of them that go one way: the first few.
#[boxed]
pub async fn waiting_on_way(
    db: &Connection,
    tenant: TenantId,
    (number, trunk): (&E164, Option<TrunkId>),
    limit: u64,
) -> Result<Vec<Model>> {
    let all = waiting_live(tenant).filter(Column::FromNumber.eq(number.clone()));
    let all = match trunk {
        Some(trunk) => all.filter(Column::TrunkId.eq(trunk)),
        None => all.filter(Column::TrunkId.is_null()),
    };
    Ok(all.limit(limit).all(db).await?)
}

fn waiting_live(tenant: TenantId) -> sea_orm::Select<Entity> {
    let waits = Expr::cust("phase <> 'ended' AND phase IN ('scheduled', 'queued')");
    owned(tenant, Env::Live)
        .filter(waits)
        .filter(Column::RoomId.is_null())
        .filter(Column::FromNumber.is_not_null())
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
    share: Share,
    after: Option<TenantScoped<SessionId>>,
    limit: u64,
) -> Result<Vec<TenantScoped<SessionId>>> {
    let mine = Entity::find().filter(share.of(Column::TenantId));
    let mut open = mine.filter(is_open()).filter(awaits_nobody());
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

/// The tenant's calls that a backup says are not over, and that may have been placed, or have ended, by then.
#[boxed]
pub async fn may_have_run(
    db: &Connection,
    tenant: TenantId,
    by: Moment,
    after: Option<SessionId>,
    limit: u64,
) -> Result<Vec<TenantScoped<SessionId>>> {
    let later = Condition::all()
        .add(Column::Phase.eq(Phase::Scheduled))
        .add(Column::CampaignId.is_null())
        .add(Column::ScheduledAt.gt(by));
    let left = Entity::find()
        .apply_if(after, |left, after| left.filter(Column::Id.gt(after)))
        .filter(Column::TenantId.eq(tenant))
        .filter(is_open())
        .filter(awaits_nobody())
        .filter(Column::CreatedAt.lte(by))
        .filter(later.not())
        .order_by(Column::Id, Order::Asc)
        .limit(limit);
    keys::of(db, left, [Column::TenantId, Column::Env, Column::Id]).await
}

/// Tenants with a session that waits for a slot.
#[boxed]
pub async fn tenants_in_queue(db: &Connection, share: Share) -> Result<Vec<TenantId>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TenantId)
        .filter(share.of(Column::TenantId))
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

/// Live calls of the tenant by the trunk that they go over, those that came in among them.
#[boxed]
pub async fn in_use_by_trunk(db: &Connection, tenant: TenantId) -> Result<HashMap<TrunkId, i64>> {
    let select = Entity::find()
        .select_only()
        .column(Column::TrunkId)
        .column_as(Column::Id.count(), "calls")
        .filter(Column::TenantId.eq(tenant))
        .filter(is_live())
        .filter(Column::TrunkId.is_not_null())
        .group_by(Column::TrunkId);
    let counts: Vec<(TrunkId, i64)> = select.into_tuple().all(db).await?;
    Ok(counts.into_iter().collect())
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
    for chunk in bulk::padded(ids) {
        let select = Entity::find()
            .select_only()
            .columns([Column::Id, Column::Phase])
            .filter(Column::Id.is_in(chunk));
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
pub(super) fn is_queued() -> Expr {
    Expr::cust("phase <> 'ended' AND phase = 'queued'")
}
/// Dialled and not ended: takes a slot.
pub(super) fn is_live() -> Expr {
    Expr::cust("phase <> 'ended' AND phase IN ('dialing', 'ringing', 'answered', 'conversing', 'transferring')")
}
