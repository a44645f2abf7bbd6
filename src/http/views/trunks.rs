//! SIP trunks.
use actors::{
    deps::Deps,
    trunk::board::{Refused, Target},
};
use entities::{
    ids::TrunkId,
    sip_trunk::{Definition, Model, Status, Transport},
    values::Moment,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{collections::HashMap, time::Instant};

#[derive(Serialize, JsonSchema)]
pub struct TrunkView {
    pub id: TrunkId,
    #[serde(flatten)]
    pub definition: Definition,
    /// Is there a password? It is not shown again.
    pub password_set: bool,
    /// Is there a password in `inbound_auth`? It is not shown again.
    pub inbound_password_set: bool,
    /// What the last test found; `untested` again when `host`, `outbound_proxy` or `transport` are changed.
    pub status: Status,
    pub tested_at: Option<Moment>,
    pub state: TrunkStateView,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// How it stands now.
#[derive(Serialize, JsonSchema)]
pub struct TrunkStateView {
    /// Does the peer answer, and where we register, are we registered? Null: not known yet.
    pub up: Option<bool>,
    pub registered_until: Option<Moment>,
    /// The peer does not take us for who we are: nothing is dialled until that changes.
    pub refused: Option<TrunkRefusedView>,
    /// The peer has asked for a rest: nothing is dialled before then.
    pub paused_until: Option<Moment>,
    /// The addresses that `host` leads to.
    pub targets: Vec<TrunkTargetView>,
    /// Concurrent calls, those that came in and both legs of a transfer among them.
    pub in_use: i64,
    /// Calls that are started per second at most: `max_calls_per_second`, and less for a while after the peer had no room.
    pub calls_per_second: f64,
}

#[derive(Serialize, JsonSchema)]
pub struct TrunkRefusedView {
    pub sip_code: u16,
    /// In the peer's words.
    pub reason: String,
}

#[derive(Serialize, JsonSchema)]
pub struct TrunkTargetView {
    /// With its port.
    pub address: String,
    pub transport: Transport,
    /// It has not failed a moment ago.
    pub up: bool,
}

impl TrunkView {
    /// `in_use`: the calls that are on each of the workspace's.
    pub fn of(deps: &Deps, row: Model, in_use: &HashMap<TrunkId, i64>) -> Self {
        let seen = deps.trunks.seen(row.id);
        let known = deps.trunks.state(row.id);
        let most = row
            .definition
            .max_calls_per_second
            .get()
            .min(deps.limits.max_calls_per_second);
        let board = known.clone().unwrap_or_default();
        TrunkView {
            id: row.id,
            password_set: row.sealed_password.is_some(),
            inbound_password_set: row.sealed_inbound_password.is_some(),
            status: row.status,
            tested_at: row.tested_at,
            state: TrunkStateView {
                up: known.map(|state| state.up),
                registered_until: board
                    .registered
                    .map(|binding| binding.until(Instant::now(), deps.clock.now())),
                refused: board
                    .refused
                    .map(|Refused { sip_code, reason }| TrunkRefusedView { sip_code, reason }),
                paused_until: board.paused_until.filter(|until| *until > deps.clock.now()),
                targets: board.targets.into_iter().map(TrunkTargetView::from).collect(),
                in_use: in_use.get(&row.id).copied().unwrap_or(0) + seen.more_legs,
                calls_per_second: deps.trunks.calls_per_second(row.id).unwrap_or(most).min(most),
            },
            created_at: row.created_at,
            updated_at: row.updated_at,
            definition: row.definition,
        }
    }
}

impl From<Target> for TrunkTargetView {
    fn from(target: Target) -> Self {
        TrunkTargetView {
            address: target.address.to_string(),
            transport: target.transport,
            up: target.up,
        }
    }
}
