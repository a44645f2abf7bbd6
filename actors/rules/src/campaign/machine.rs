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
mod phases;
mod steps;

use super::patch::Patch;
use crate::{effect::Effect, event::CampaignCreated, machine::Machine};
use entities::{
    Error, Result,
    campaign::{AgentSnapshot, CompletedReason, Plan},
    ids::{ApiKeyId, CampaignId, TenantScoped},
    tally::Model as Tally,
    values::Moment,
};
use phases::{when_completed, when_deleted, while_armed, while_closing, while_draft, while_paused, while_running};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    pub key: TenantScoped<CampaignId>,
    pub plan: Arc<Plan>,
    /// The agent as it was at the start.
    pub agent: Option<Arc<AgentSnapshot>>,
    pub phase: Phase,
    /// The version that changed its rules last.
    pub rules_version: i32,
    /// The version whose change of rules not everybody who waits was judged by yet.
    pub review_of: Option<i32>,
    /// The API key that started it, if its calls count for that one's limits.
    pub api_key_id: Option<ApiKeyId>,
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
        /// The key that asks for it, if that one has limits.
        api_key_id: Option<ApiKeyId>,
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
    pub fn draft(key: TenantScoped<CampaignId>, mut plan: Plan, now: Moment) -> (Self, Vec<Effect>) {
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
            api_key_id: None,
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
}

/// The whole life of a campaign. Pure: no clock, database, network or randomness.
pub fn transition(campaign: Campaign, command: Command, now: Moment) -> Result<(Campaign, Vec<Effect>)> {
    if campaign.deleted_at.is_some() {
        return when_deleted(campaign, &command);
    }
    match campaign.phase {
        Phase::Draft => while_draft(campaign, command, now),
        Phase::Armed { .. } => while_armed(campaign, command, now),
        Phase::Running { started_at } => while_running(started_at, campaign, command, now),
        Phase::Paused { .. } => while_paused(campaign, command, now),
        Phase::Closing {
            started_at,
            since,
            reason,
        } => while_closing((started_at, since, reason), campaign, command, now),
        Phase::Completed { .. } => when_completed(campaign, &command, now),
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

    fn owner(&self) -> TenantScoped<CampaignId> {
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
