//! Legs of live calls that are on the wire: what another process needs to end what this one left behind when it was killed.
//!
//! A leg's row is committed before its INVITE leaves, and goes when its last transaction is over, not with its session. What is
//! not here is derived from the session and the leg's number: the tags of ours and the branches.
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::{SessionId, SipLegId, TenantId, TrunkId},
    page,
    sip_trunk::Transport,
    values::{Env, Moment},
    workspace_lease,
};
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Serialize};

/// What ends it if nobody else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(16))", rename_all = "snake_case")]
pub enum Phase {
    /// Its INVITE may have left, or has come and is not answered: CANCEL, or a final answer.
    Inviting,
    /// Picked up: BYE.
    Confirmed,
    /// BYE or CANCEL may have left: once more.
    Ending,
}

/// Record-Route as the dialog follows it: one URI with its brackets each, the next hop first. Source: RFC 3261, section 12.1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct RouteSet(pub Vec<String>);

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sip_legs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: SipLegId,
    pub tenant_id: TenantId,
    pub env: Env,
    pub session_id: SessionId,
    /// Of one session no two are the same. 1 for a call that has come in; for one that is placed anything, and one more for each target
    /// that is tried after the first.
    pub leg: i32,
    pub trunk_id: TrunkId,
    pub call_id: String,
    /// Where its requests go: an address and a port.
    pub target: String,
    pub transport: Transport,
    pub phase: Phase,
    /// Our side of the dialog, without its tag: the From of an INVITE of ours.
    pub local_uri: String,
    /// The other side, without its tag: the To of an INVITE of ours.
    pub remote_uri: String,
    pub remote_tag: Option<String>,
    /// The other side's Contact; before there is one, the Request-URI of the INVITE.
    pub remote_target: String,
    #[sea_orm(column_type = "JsonBinary")]
    pub route_set: RouteSet,
    /// The number of our last request when this was written; some may have been sent since. Less than 2^31. Source: RFC 3261,
    /// section 12.2.1.1.
    pub cseq: i64,
    pub created_at: Moment,
}
impl ActiveModelBehavior for ActiveModel {}

/// The legs of a session, the first of them first.
#[boxed]
pub async fn of_session(db: &Connection, session: SessionId) -> Result<Vec<Model>> {
    let mut legs = Entity::find().filter(Column::SessionId.eq(session)).all(db).await?;
    legs.sort_by_key(|row| row.leg);
    Ok(legs)
}

/// The leg of that Call-ID, for a message that no leg of this process knows.
#[boxed]
pub async fn of_call_id(db: &Connection, call_id: &str) -> Result<Option<Model>> {
    Ok(Entity::find().filter(Column::CallId.eq(call_id)).one(db).await?)
}

/// All legs of all tenants, a page at a time: a process that starts ends those that it finds.
#[boxed]
pub async fn all_open(
    db: &Connection,
    of: Option<&[TenantId]>,
    after: Option<SipLegId>,
    limit: u64,
) -> Result<Vec<Model>> {
    let all = Entity::find().filter(workspace_lease::any_of(Column::TenantId, of));
    page::behind(db, all, Column::Id, after, limit).await
}

/// Nothing of these is on the wire any more.
#[boxed]
pub async fn delete(db: &Connection, legs: &[SipLegId]) -> Result<()> {
    for some in bulk::padded(legs) {
        Entity::delete_many().filter(Column::Id.is_in(some)).exec(db).await?;
    }
    Ok(())
}
