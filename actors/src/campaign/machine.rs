//! A campaign: draft -> running <-> paused, running -> completed. Completed is final.
//!
//! `cancel` leads to completed too: first nothing more is dispatched and what was not called is canceled (Canceling, which
//! reads as `running` with `cancel_requested_at`), and when the calls in flight have ended, completed.
//! Source: specification, "Campaign"; CONTRACT §4.
use crate::{
    effect::Effect,
    event::{CampaignCompleted, CampaignCreated, CampaignPaused, CampaignStarted},
};
use entities::{
    Error, Result,
    campaign::{AgentSnapshot, CompletedReason, Model as Row, PauseReason, Plan, Status},
    changes::Guard,
    ids::{CampaignId, Owned},
    tally::Model as Tally,
    values::Moment,
};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    pub key: Owned<CampaignId>,
    pub plan: Arc<Plan>,
    /// The agent as it was at the start.
    pub agent: Option<Arc<AgentSnapshot>>,
    pub phase: Phase,
    pub created_at: Moment,
    pub version: i32,
}

/// Data lives only in the state where it exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    Draft,
    Running {
        started_at: Moment,
    },
    Paused {
        started_at: Moment,
        paused_at: Moment,
        reason: PauseReason,
    },
    Canceling {
        started_at: Option<Moment>,
        since: Moment,
    },
    Completed {
        started_at: Option<Moment>,
        canceled_at: Option<Moment>,
        at: Moment,
        reason: CompletedReason,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    Start {
        agent: Box<AgentSnapshot>,
        contacts: i64,
    },
    Pause,
    Resume,
    Cancel,
    /// Every contact has reached a terminal state, by these counts.
    Drained(Tally),
}

impl Campaign {
    pub fn draft(key: Owned<CampaignId>, plan: Plan, now: Moment) -> (Self, Vec<Effect>) {
        let created = CampaignCreated {
            campaign_id: key.id,
            name: plan.name.to_string(),
            channel: plan.channel,
            session_type: plan.session_type,
        };
        let campaign = Campaign {
            key,
            plan: Arc::new(plan),
            agent: None,
            phase: Phase::Draft,
            created_at: now,
            version: 1,
        };
        (campaign, vec![Effect::Emit(created.into())])
    }

    /// Are contacts dispatched?
    pub fn is_dispatching(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// The row that says all this.
    pub fn row(&self) -> Row {
        let mut row = Row {
            id: self.key.id,
            tenant_id: self.key.tenant_id,
            env: self.key.env,
            plan: (*self.plan).clone(),
            agent: self.agent.as_deref().cloned(),
            status: Status::Draft,
            pause_reason: None,
            cancel_requested_at: None,
            started_at: None,
            paused_at: None,
            completed_at: None,
            completed_reason: None,
            version: self.version,
            created_at: self.created_at,
        };
        match self.phase {
            Phase::Draft => {}
            Phase::Running { started_at } => {
                row.status = Status::Running;
                row.started_at = Some(started_at);
            }
            Phase::Paused {
                started_at,
                paused_at,
                reason,
            } => {
                row.status = Status::Paused;
                row.started_at = Some(started_at);
                row.paused_at = Some(paused_at);
                row.pause_reason = Some(reason);
            }
            Phase::Canceling { started_at, since } => {
                row.status = Status::Running;
                row.started_at = started_at;
                row.cancel_requested_at = Some(since);
            }
            Phase::Completed {
                started_at,
                canceled_at,
                at,
                reason,
            } => {
                row.status = Status::Completed;
                row.started_at = started_at;
                row.cancel_requested_at = canceled_at;
                row.completed_at = Some(at);
                row.completed_reason = Some(reason);
            }
        }
        row
    }

    /// The state that a stored row says.
    pub fn from_row(row: Row) -> Result<Self> {
        let missing = |column| Error::Corrupt {
            table: "campaigns",
            column,
            id: row.id.to_string(),
        };
        let started_at = || row.started_at.ok_or_else(|| missing("started_at"));
        let phase = match (row.status, row.cancel_requested_at) {
            (Status::Draft, _) => Phase::Draft,
            (Status::Completed, canceled_at) => Phase::Completed {
                started_at: row.started_at,
                canceled_at,
                at: row.completed_at.ok_or_else(|| missing("completed_at"))?,
                reason: row.completed_reason.ok_or_else(|| missing("completed_reason"))?,
            },
            (Status::Running | Status::Paused, Some(since)) => Phase::Canceling {
                started_at: row.started_at,
                since,
            },
            (Status::Running, None) => Phase::Running {
                started_at: started_at()?,
            },
            (Status::Paused, None) => Phase::Paused {
                started_at: started_at()?,
                paused_at: row.paused_at.ok_or_else(|| missing("paused_at"))?,
                reason: row.pause_reason.ok_or_else(|| missing("pause_reason"))?,
            },
        };
        Ok(Campaign {
            key: Owned::new(row.tenant_id, row.env, row.id),
            plan: Arc::new(row.plan),
            agent: row.agent.map(Arc::new),
            phase,
            created_at: row.created_at,
            version: row.version,
        })
    }
}

/// The whole life of a campaign. Pure: no clock, database, network or randomness.
pub fn transition(campaign: Campaign, command: Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    use Phase::*;
    match (&campaign.phase, command) {
        (Draft, Start { contacts: 0, .. }) => Err(refused("draft", "start", "it has no contacts: add some first")),
        (Draft, Start { agent, .. }) => start(campaign, *agent, now),
        (Running { started_at }, Pause) => pause(*started_at, campaign, now),
        (Paused { started_at, .. }, Resume) => resume(*started_at, campaign),
        (Draft, Cancel) => cancel(None, campaign, now),
        (Running { started_at } | Paused { started_at, .. }, Cancel) => cancel(Some(*started_at), campaign, now),
        (Running { started_at }, Drained(tally)) => complete(
            campaign.clone(),
            Some(*started_at),
            None,
            CompletedReason::Finished,
            &tally,
            now,
        ),
        (Canceling { started_at, since }, Drained(tally)) => complete(
            campaign.clone(),
            *started_at,
            Some(*since),
            CompletedReason::Canceled,
            &tally,
            now,
        ),

        // A campaign found canceling after a crash goes on with it.
        (Canceling { .. }, Tick) => Ok((
            campaign.clone(),
            vec![Effect::CancelContacts { campaign: campaign.key }],
        )),
        // Asked twice, or told late: no change, not an error.
        (_, Tick) => Ok((campaign, Vec::new())),
        (Paused { .. }, Pause) | (Running { .. }, Start { .. } | Resume) | (Canceling { .. }, Cancel) => {
            Ok((campaign, Vec::new()))
        }
        // A paused campaign completes when it is resumed. Source: specification, "Campaign": completion leaves `running`.
        (Paused { .. } | Completed { .. } | Draft, Drained(_)) => Ok((campaign, Vec::new())),

        (Draft, Pause) => Err(refused("draft", "be paused", "it has not been started")),
        (Draft, Resume) => Err(refused("draft", "be resumed", "it has not been started: use start")),
        (Paused { .. }, Start { .. }) => Err(refused("paused", "be started", "use resume")),
        (Canceling { .. }, Start { .. }) => Err(refused("canceling", "be started", "it was canceled: duplicate it")),
        (Canceling { .. }, Pause) => Err(refused("canceling", "be paused", "it was canceled")),
        (Canceling { .. }, Resume) => Err(refused("canceling", "be resumed", "it was canceled")),
        (Completed { .. }, Start { .. }) => Err(refused("completed", "be started", "create a new one")),
        (Completed { .. }, Pause) => Err(refused("completed", "be paused", "it is over")),
        (Completed { .. }, Resume) => Err(refused("completed", "be resumed", "it is over")),
        (Completed { .. }, Cancel) => Err(refused("completed", "be canceled", "it is over")),
    }
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(_: &Campaign) -> Option<Moment> {
    None
}

fn start(mut campaign: Campaign, agent: AgentSnapshot, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    campaign.agent = Some(Arc::new(agent));
    campaign.phase = Phase::Running { started_at: now };
    let started = CampaignStarted {
        campaign_id: campaign.key.id,
        started_at: now,
    };
    let effects = vec![
        Effect::Emit(started.into()),
        Effect::CampaignsChanged(campaign.key.tenant_id),
    ];
    Ok((campaign, effects))
}

fn pause(started_at: Moment, mut campaign: Campaign, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    let reason = PauseReason::Manual;
    campaign.phase = Phase::Paused {
        started_at,
        paused_at: now,
        reason,
    };
    let paused = CampaignPaused {
        campaign_id: campaign.key.id,
        paused_at: now,
        reason,
    };
    let effects = vec![
        Effect::Emit(paused.into()),
        Effect::CampaignsChanged(campaign.key.tenant_id),
    ];
    Ok((campaign, effects))
}

fn resume(started_at: Moment, mut campaign: Campaign) -> Result<(Campaign, Vec<Effect>)> {
    campaign.phase = Phase::Running { started_at };
    let effects = vec![
        Effect::CampaignsChanged(campaign.key.tenant_id),
        Effect::CheckDrained(campaign.key),
    ];
    Ok((campaign, effects))
}

fn cancel(started_at: Option<Moment>, mut campaign: Campaign, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    campaign.phase = Phase::Canceling { started_at, since: now };
    let effects = vec![
        Effect::CampaignsChanged(campaign.key.tenant_id),
        Effect::CancelContacts { campaign: campaign.key },
    ];
    Ok((campaign, effects))
}

/// What happens when a campaign is over: this list, in this order.
fn complete(
    mut campaign: Campaign,
    started_at: Option<Moment>,
    canceled_at: Option<Moment>,
    reason: CompletedReason,
    tally: &Tally,
    now: Moment,
) -> Result<(Campaign, Vec<Effect>)> {
    if tally.unfinished() != 0 {
        return Ok((campaign, Vec::new()));
    }
    campaign.phase = Phase::Completed {
        started_at,
        canceled_at,
        at: now,
        reason,
    };
    let completed = CampaignCompleted {
        campaign_id: campaign.key.id,
        completed_at: now,
        total_contacts: tally.total,
        completed_sessions: tally.completed_sessions,
        failed_sessions: tally.failed_sessions,
    };
    let effects = vec![
        // A contact added at this moment keeps the campaign open.
        Effect::Require(Guard::Drained {
            campaign_id: campaign.key.id,
            total: tally.total,
        }),
        Effect::Emit(completed.into()),
        Effect::CampaignsChanged(campaign.key.tenant_id),
    ];
    Ok((campaign, effects))
}

fn refused(state: &'static str, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "campaign",
        state,
        command,
        hint,
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
