//! Campaigns, and what keeps them from dialling.
use actors::{contact::intake::Added, deps::Deps};
use entities::{
    campaign::{self, Status},
    dispatch_block,
    ids::CampaignId,
    tally,
    values::{Env, Moment},
};
use rules::dispatch::limiting::LimitingFactor;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub struct CampaignView {
    pub id: CampaignId,
    #[serde(flatten)]
    pub plan: campaign::Plan,
    pub env: Env,
    pub status: Status,
    pub pause_reason: Option<campaign::PauseReason>,
    /// While paused for quiet hours: when it resumes by itself.
    pub next_open_at: Option<Moment>,
    /// Started, and waiting for `schedule.starts_at`.
    pub armed: bool,
    /// What keeps it from dialling although it is running.
    pub blocked_by: Vec<BlockedBy>,
    /// It was canceled, or its time is over; calls in flight run to their end.
    pub cancel_requested_at: Option<Moment>,
    /// The agent's version when the campaign started.
    pub agent_version: Option<i32>,
    pub counts: CountsView,
    pub started_at: Option<Moment>,
    pub completed_at: Option<Moment>,
    pub completed_reason: Option<campaign::CompletedReason>,
    pub created_at: Moment,
}

/// What keeps a running campaign from dialling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    Credits,
    Concurrency,
    Trunk,
    /// A limit of the API key that started it.
    ApiKey,
    /// So many of its calls were answered and abandoned that the law's limit is near; goes on by itself when the rate is lower.
    Abandonment,
    /// A register that the law wants to be looked into is missing, or older than it may be.
    Register,
    /// None of its numbers may be shown there, or nobody who takes opt-outs answers them.
    CallerId,
    /// What the law wants to be said cannot be: who the workspace is, or in the agent's language.
    Disclosure,
    Suspension,
    /// The operator has paused all dispatch.
    OperatorPause,
}

/// What is known of that, for a tenant's campaigns.
pub struct Blocked {
    pub workspace: Vec<dispatch_block::Reason>,
    /// The operator has paused all dispatch.
    pub is_paused: bool,
    pub deps: Deps,
}

impl Blocked {
    fn by(&self, row: &campaign::Model) -> Vec<BlockedBy> {
        if row.status == Status::Completed || row.status == Status::Draft {
            return Vec::new();
        }
        let mut all: Vec<BlockedBy> = self
            .workspace
            .iter()
            .map(|reason| match reason {
                dispatch_block::Reason::Credits => BlockedBy::Credits,
                dispatch_block::Reason::Suspension => BlockedBy::Suspension,
            })
            .collect();
        if self.is_paused {
            all.push(BlockedBy::OperatorPause);
        }
        if row.status == Status::Running {
            match self.deps.pacing_report.limiting(row.id) {
                Some(LimitingFactor::Concurrency) => all.push(BlockedBy::Concurrency),
                Some(LimitingFactor::Trunk) => all.push(BlockedBy::Trunk),
                Some(LimitingFactor::ApiKey) => all.push(BlockedBy::ApiKey),
                Some(LimitingFactor::Abandonment) => all.push(BlockedBy::Abandonment),
                Some(LimitingFactor::Register) => all.push(BlockedBy::Register),
                Some(LimitingFactor::CallerId) => all.push(BlockedBy::CallerId),
                Some(LimitingFactor::Disclosure) => all.push(BlockedBy::Disclosure),
                // What is left does not cover one more call.
                Some(LimitingFactor::Credits) if !all.contains(&BlockedBy::Credits) => all.push(BlockedBy::Credits),
                Some(_) | None => {}
            }
        }
        all
    }
}

impl CampaignView {
    pub fn of(row: campaign::Model, tally: &tally::Model, blocked: &Blocked) -> Self {
        CampaignView {
            id: row.id,
            blocked_by: blocked.by(&row),
            plan: row.plan,
            env: row.env,
            status: row.status,
            pause_reason: row.pause_reason,
            next_open_at: row.next_open_at,
            armed: row.armed_at.is_some(),
            cancel_requested_at: row.cancel_requested_at,
            agent_version: row.agent.map(|agent| agent.version),
            counts: tally.into(),
            started_at: row.started_at,
            completed_at: row.completed_at,
            // Until it has completed it only says why it will.
            completed_reason: row.completed_reason.filter(|_| row.status == Status::Completed),
            created_at: row.created_at,
        }
    }
}

/// Contacts by status.
#[derive(Serialize, JsonSchema)]
pub struct CountsView {
    pub total: i64,
    pub pending: i64,
    pub waiting: i64,
    pub dispatched: i64,
    pub completed: i64,
    pub failed: i64,
    pub skipped: i64,
    pub canceled: i64,
}
impl From<&tally::Model> for CountsView {
    fn from(tally: &tally::Model) -> Self {
        CountsView {
            total: tally.total,
            pending: tally.pending,
            waiting: tally.waiting,
            dispatched: tally.dispatched,
            completed: tally.completed,
            failed: tally.failed,
            skipped: tally.skipped,
            canceled: tally.canceled,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct CampaignRunView {
    #[serde(flatten)]
    pub campaign: CampaignView,
    pub contacts: Added,
}
