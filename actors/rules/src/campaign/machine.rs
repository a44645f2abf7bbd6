//! A campaign: draft -> armed -> running <-> paused, running -> closing -> completed. Completed is final.
//!
//! | status (specification) | phase here |
//! |---|---|
//! | `draft` | Draft; Armed: started, and waiting for `schedule.starts_at` |
//! | `running` | Running; Closing: canceled or over, what was not called is put away and calls in flight run to their end |
//! | `paused` | Paused: by hand, or for the quiet hours of everybody who is left |
//! | `completed` | Completed |
//!
//! Source: specification, "Campaign"; CONTRACT §4.
mod steps;

use super::patch::Patch;
use crate::{
    effect::{Effect, Work},
    event::CampaignCreated,
    machine::Machine,
};
use entities::{
    Error, Result,
    campaign::{AgentSnapshot, CompletedReason, Model as Row, PauseReason, Plan, Status},
    ids::{CampaignId, Owned},
    tally::Model as Tally,
    values::Moment,
};
use std::sync::Arc;
use steps::{change_draft, change_rules, close, complete, pause, rest, resume, reviewed, start, start_or_arm};

#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    pub key: Owned<CampaignId>,
    pub plan: Arc<Plan>,
    /// The agent as it was at the start.
    pub agent: Option<Arc<AgentSnapshot>>,
    pub phase: Phase,
    /// The version that changed its rules last.
    pub rules_version: i32,
    /// The version whose change of rules not everybody who waits was judged by yet.
    pub review_of: Option<i32>,
    /// It is gone for its users.
    pub deleted_at: Option<Moment>,
    pub created_at: Moment,
    pub version: i32,
}

/// Data lives only in the state where it exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    Draft,
    Armed {
        armed_at: Moment,
    },
    Running {
        started_at: Moment,
    },
    Paused {
        started_at: Moment,
        paused_at: Moment,
        cause: Cause,
    },
    Closing {
        started_at: Option<Moment>,
        since: Moment,
        reason: CompletedReason,
    },
    Completed {
        started_at: Option<Moment>,
        closed_at: Option<Moment>,
        at: Moment,
        reason: CompletedReason,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Until `resume`.
    Manual,
    /// Until somebody may be called again.
    QuietHours { next_open_at: Moment },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Look at the time.
    Tick,
    Start {
        /// Who calls; `None` for a campaign that writes.
        agent: Option<Box<AgentSnapshot>>,
        contacts: i64,
    },
    /// Other settings.
    Change(Box<Patch>),
    Pause,
    Resume,
    /// Everybody who is left is in their quiet hours until then: `waiting` of `total` contacts.
    Rest {
        next_open_at: Moment,
        total: i64,
        waiting: i64,
        /// The campaign's, as it was when that was found: other rules since then may say otherwise.
        version: i32,
    },
    /// Who is left has changed: is everybody still in their quiet hours?
    Reconsider,
    /// Of those who were being reached when it was said that all are in their quiet hours, one may be reached again from then on.
    Awake {
        from: Moment,
    },
    /// Everybody who waits was judged by the rules of that version.
    Reviewed {
        of: i32,
    },
    Cancel,
    /// Every contact has reached a terminal state, by these counts.
    Drained(Tally),
    Delete,
}

impl Campaign {
    pub fn draft(key: Owned<CampaignId>, mut plan: Plan, now: Moment) -> (Self, Vec<Effect>) {
        plan.session_type = Some(plan.session_type());
        let created = CampaignCreated {
            campaign_id: key.id,
            name: plan.name.to_string(),
            channel: plan.channel,
            session_type: plan.session_type(),
        };
        let campaign = Campaign {
            key,
            plan: Arc::new(plan),
            agent: None,
            phase: Phase::Draft,
            rules_version: 0,
            review_of: None,
            deleted_at: None,
            created_at: now,
            version: 1,
        };
        (campaign, vec![Effect::emit(created)])
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
            armed_at: None,
            next_open_at: None,
            wake_at: next_deadline(self),
            started_at: None,
            paused_at: None,
            completed_at: None,
            completed_reason: None,
            deleted_at: self.deleted_at,
            rules_version: self.rules_version,
            review_of: self.review_of,
            version: self.version,
            created_at: self.created_at,
        };
        match self.phase {
            Phase::Draft => {}
            Phase::Armed { armed_at } => row.armed_at = Some(armed_at),
            Phase::Running { started_at } => {
                row.status = Status::Running;
                row.started_at = Some(started_at);
            }
            Phase::Paused {
                started_at,
                paused_at,
                cause,
            } => {
                row.status = Status::Paused;
                row.started_at = Some(started_at);
                row.paused_at = Some(paused_at);
                (row.pause_reason, row.next_open_at) = match cause {
                    Cause::Manual => (Some(PauseReason::Manual), None),
                    Cause::QuietHours { next_open_at } => (Some(PauseReason::QuietHours), Some(next_open_at)),
                };
            }
            Phase::Closing {
                started_at,
                since,
                reason,
            } => {
                row.status = Status::Running;
                row.started_at = started_at;
                row.cancel_requested_at = Some(since);
                row.completed_reason = Some(reason);
            }
            Phase::Completed {
                started_at,
                closed_at,
                at,
                reason,
            } => {
                row.status = Status::Completed;
                row.started_at = started_at;
                row.cancel_requested_at = closed_at;
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
            (Status::Draft, _) => match row.armed_at {
                Some(armed_at) => Phase::Armed { armed_at },
                None => Phase::Draft,
            },
            (Status::Completed, closed_at) => Phase::Completed {
                started_at: row.started_at,
                closed_at,
                at: row.completed_at.ok_or_else(|| missing("completed_at"))?,
                reason: row.completed_reason.ok_or_else(|| missing("completed_reason"))?,
            },
            (Status::Running | Status::Paused, Some(since)) => Phase::Closing {
                started_at: row.started_at,
                since,
                reason: row.completed_reason.unwrap_or(CompletedReason::Canceled),
            },
            (Status::Running, None) => Phase::Running {
                started_at: started_at()?,
            },
            (Status::Paused, None) => Phase::Paused {
                started_at: started_at()?,
                paused_at: row.paused_at.ok_or_else(|| missing("paused_at"))?,
                cause: match row.pause_reason.ok_or_else(|| missing("pause_reason"))? {
                    PauseReason::Manual => Cause::Manual,
                    PauseReason::QuietHours => Cause::QuietHours {
                        next_open_at: row.next_open_at.ok_or_else(|| missing("next_open_at"))?,
                    },
                },
            },
        };
        Ok(Campaign {
            key: Owned::new(row.tenant_id, row.env, row.id),
            plan: Arc::new(row.plan),
            agent: row.agent.map(Arc::new),
            phase,
            rules_version: row.rules_version,
            review_of: row.review_of,
            deleted_at: row.deleted_at,
            created_at: row.created_at,
            version: row.version,
        })
    }
}

/// The whole life of a campaign. Pure: no clock, database, network or randomness.
pub fn transition(campaign: Campaign, command: Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    use Command::*;
    use Phase::*;
    if campaign.deleted_at.is_some() {
        return match command {
            Tick | Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. } | Drained(_) => Ok((campaign, Vec::new())),
            Start { .. } | Change(_) | Pause | Resume | Cancel | Delete => Err(Error::NotFound("campaign")),
        };
    }
    let over = campaign.plan.schedule.ends_at.is_some_and(|end| now >= end);
    match (&campaign.phase, command) {
        (Draft, Start { contacts: 0, .. }) => Err(refused("draft", "start", "it has no contacts: add some first")),
        (Draft, Start { .. }) if over => Err(refused("draft", "start", "its `schedule.ends_at` has passed")),
        (Draft, Start { agent, .. }) => start_or_arm(campaign, agent.map(|agent| *agent), now),
        // The service was down for the whole of it.
        (Armed { .. }, Tick) if over => close(None, CompletedReason::Ended, campaign, now),
        (Armed { .. }, Tick) if campaign.starts_at() <= now => start(campaign, now),

        (Running { started_at } | Paused { started_at, .. }, Tick) if over => {
            close(Some(*started_at), CompletedReason::Ended, campaign, now)
        }
        (
            Paused {
                started_at,
                cause: Cause::QuietHours { next_open_at },
                ..
            },
            Tick,
        ) if now >= *next_open_at => resume(*started_at, campaign),
        (
            Paused {
                started_at,
                cause: Cause::QuietHours { .. },
                ..
            },
            Reconsider,
        ) => resume(*started_at, campaign),
        (
            Paused {
                started_at,
                cause: Cause::QuietHours { .. },
                ..
            },
            Awake { from },
        ) if now >= from => resume(*started_at, campaign),
        (
            Paused {
                started_at,
                paused_at,
                cause: Cause::QuietHours { next_open_at },
            },
            Awake { from },
        ) if from < *next_open_at => {
            let phase = Paused {
                started_at: *started_at,
                paused_at: *paused_at,
                cause: Cause::QuietHours { next_open_at: from },
            };
            Ok((Campaign { phase, ..campaign }, Vec::new()))
        }

        (
            Running { started_at },
            Rest {
                next_open_at,
                total,
                waiting,
                version,
            },
        ) if next_open_at > now && version == campaign.version => {
            rest(*started_at, next_open_at, (total, waiting), campaign, now)
        }
        (Running { started_at }, Pause) => pause(*started_at, campaign, now),
        // A manual pause overrides that for the quiet hours.
        (
            Paused {
                started_at,
                cause: Cause::QuietHours { .. },
                ..
            },
            Pause,
        ) => pause(*started_at, campaign, now),
        (
            Paused {
                started_at,
                cause: Cause::Manual,
                ..
            },
            Resume,
        ) => resume(*started_at, campaign),
        (Draft | Armed { .. }, Cancel) => close(None, CompletedReason::Canceled, campaign, now),
        (Running { started_at } | Paused { started_at, .. }, Cancel) => {
            close(Some(*started_at), CompletedReason::Canceled, campaign, now)
        }

        (Draft, Change(patch)) => change_draft(campaign, &patch),
        (Armed { .. } | Running { .. } | Paused { .. }, Change(patch)) => change_rules(campaign, &patch),

        (Running { .. } | Paused { .. }, Reviewed { of }) if campaign.review_of == Some(of) => Ok(reviewed(campaign)),

        (Running { started_at }, Drained(tally)) => complete(
            Some(*started_at),
            None,
            CompletedReason::Finished,
            campaign.clone(),
            &tally,
            now,
        ),
        (
            Closing {
                started_at,
                since,
                reason,
            },
            Drained(tally),
        ) => complete(*started_at, Some(*since), *reason, campaign.clone(), &tally, now),
        // One that is found closing after a crash goes on with it.
        (Closing { reason, .. }, Tick) => {
            let rest = Work::PutAwayContacts {
                campaign: campaign.key,
                reason: *reason,
            }
            .into();
            Ok((campaign, vec![rest]))
        }
        (Draft | Completed { .. }, Delete) => Ok((
            Campaign {
                deleted_at: Some(now),
                ..campaign
            },
            Vec::new(),
        )),

        // Asked twice, or told late: no change, not an error.
        (_, Tick) => Ok((campaign, Vec::new())),
        (Paused { .. }, Pause)
        | (Armed { .. } | Running { .. }, Start { .. })
        | (Running { .. }, Resume)
        | (Closing { .. }, Cancel) => Ok((campaign, Vec::new())),
        (
            Draft | Armed { .. } | Running { .. } | Paused { .. } | Closing { .. } | Completed { .. },
            Rest { .. } | Reconsider | Awake { .. } | Reviewed { .. },
        ) => Ok((campaign, Vec::new())),
        // A paused campaign completes when it is resumed. Source: specification, "Campaign": completion leaves `running`.
        (Paused { .. } | Completed { .. } | Draft | Armed { .. }, Drained(_)) => Ok((campaign, Vec::new())),

        (
            Paused {
                cause: Cause::QuietHours { .. },
                ..
            },
            Resume,
        ) => Err(refused(
            "paused",
            "be resumed",
            "everybody who is left is in their quiet hours; it resumes by itself at `next_open_at`",
        )),
        (Draft, Pause) => Err(refused("draft", "be paused", "it has not been started")),
        (Draft, Resume) => Err(refused("draft", "be resumed", "it has not been started: use start")),
        (Armed { .. }, Pause) => Err(refused(
            "armed",
            "be paused",
            "it has not begun: change `schedule.starts_at`, or cancel it",
        )),
        (Armed { .. }, Resume) => Err(refused(
            "armed",
            "be resumed",
            "it begins by itself at `schedule.starts_at`",
        )),
        (Paused { .. }, Start { .. }) => Err(refused("paused", "be started", "use resume")),
        (Closing { .. }, Start { .. }) => Err(refused("closing", "be started", "its time is over: duplicate it")),
        (Closing { .. }, Pause) => Err(refused("closing", "be paused", "its time is over")),
        (Closing { .. }, Resume) => Err(refused("closing", "be resumed", "its time is over: duplicate it")),
        (Closing { .. }, Change(_)) => Err(refused("closing", "be changed", "its time is over: duplicate it")),
        (Completed { .. }, Start { .. }) => Err(refused("completed", "be started", "duplicate it")),
        (Completed { .. }, Pause) => Err(refused("completed", "be paused", "it is over")),
        (Completed { .. }, Resume) => Err(refused("completed", "be resumed", "it is over")),
        (Completed { .. }, Cancel) => Err(refused("completed", "be canceled", "it is over")),
        (Completed { .. }, Change(_)) => Err(refused("completed", "be changed", "it is over: duplicate it")),
        (Armed { .. }, Delete) => Err(refused("armed", "be deleted", "cancel it first")),
        (Running { .. }, Delete) => Err(refused("running", "be deleted", "cancel it first")),
        (Paused { .. }, Delete) => Err(refused("paused", "be deleted", "cancel it first")),
        (Closing { .. }, Delete) => Err(refused("closing", "be deleted", "wait until it has completed")),
    }
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(campaign: &Campaign) -> Option<Moment> {
    let ends_at = campaign.plan.schedule.ends_at;
    match campaign.phase {
        Phase::Armed { .. } => Some(ends_at.map_or(campaign.starts_at(), |end| end.min(campaign.starts_at()))),
        Phase::Running { .. }
        | Phase::Paused {
            cause: Cause::Manual, ..
        } => ends_at,
        Phase::Paused {
            cause: Cause::QuietHours { next_open_at },
            ..
        } => Some(ends_at.map_or(next_open_at, |end| end.min(next_open_at))),
        Phase::Draft | Phase::Closing { .. } | Phase::Completed { .. } => None,
    }
}

impl Campaign {
    /// When an armed campaign begins.
    fn starts_at(&self) -> Moment {
        match (self.plan.schedule.starts_at, &self.phase) {
            (Some(at), _) => at,
            (None, Phase::Armed { armed_at }) => *armed_at,
            (None, _) => self.created_at,
        }
    }
}

fn refused(state: &'static str, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "campaign",
        state,
        command,
        hint,
    }
}

impl Machine for Campaign {
    type Key = CampaignId;
    type Command = Command;
    const KIND: &'static str = "campaign";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> Owned<CampaignId> {
        self.key
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    fn version(&self) -> i32 {
        self.version
    }
    fn is_at_rest(&self) -> bool {
        !matches!(self.phase, Phase::Running { .. } | Phase::Closing { .. }) && self.next_deadline().is_none()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
