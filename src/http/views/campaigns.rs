//! Campaigns, their contacts, and what is to be expected of them.
use actors::{
    campaign::outlook::Outlook,
    contact::{edit::Eligibility, intake::Added},
    deps::Deps,
    dispatcher::board::LimitingFactor,
};
use chrono::TimeZone;
use entities::{
    campaign::{self, Status},
    campaign_hour,
    contact::{self, SkipReason, WaitReason},
    dispatch_block,
    ids::{CampaignId, ContactId, DeliveryRowId, SessionId},
    tally,
    values::{Env, Moment, Variables, Zone},
};
use rules::eligibility::{Rule, Verdict};
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
    Suspension,
    /// The operator has paused all dispatch.
    OperatorPause,
}

/// What is known of that, for a tenant's campaigns.
pub struct Blocked {
    pub workspace: Vec<dispatch_block::Reason>,
    /// The operator has paused all dispatch.
    pub is_paused: bool,
    pub board: Deps,
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
            match self.board.board.limiting(row.id) {
                Some(LimitingFactor::Concurrency) => all.push(BlockedBy::Concurrency),
                Some(LimitingFactor::Trunk) => all.push(BlockedBy::Trunk),
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

/// How a campaign is doing.
#[derive(Serialize, JsonSchema)]
pub struct CampaignStatsView {
    pub campaign_id: CampaignId,
    pub status: Status,
    pub counts: CountsView,
    pub completed_sessions: i64,
    pub failed_sessions: i64,
    /// What its calls have cost.
    pub cost_cents: i64,
    pub slots: SlotsView,
    /// Calls started per second, over the last minute.
    pub attempts_per_second: f64,
    /// Calls that a person or a machine answered among those that have ended, 0 to 1.
    pub answer_rate: Option<f64>,
    /// By the hour in which calls were started, the last 7 days.
    pub hours: Vec<CampaignHourView>,
    /// What keeps it from dialling faster; null unless it runs.
    pub limiting_factor: Option<LimitingFactor>,
    /// When all contacts left will have been called, at this pace; null if unknown.
    pub expected_finish_at: Option<Moment>,
    pub started_at: Option<Moment>,
    pub completed_at: Option<Moment>,
}
/// Concurrent calls.
#[derive(Serialize, JsonSchema)]
pub struct SlotsView {
    pub in_use: i64,
    /// The lower of the campaign's and the workspace's.
    pub limit: i32,
}
#[derive(Serialize, JsonSchema)]
pub struct CampaignHourView {
    pub hour: Moment,
    pub started: i64,
    pub answered: i64,
    pub ended: i64,
    pub answer_rate: Option<f64>,
}

/// What the statistics are made of.
pub struct Stats {
    pub row: campaign::Model,
    pub tally: tally::Model,
    pub live: usize,
    pub slots: i32,
    pub hours: Vec<campaign_hour::Model>,
    pub dials_per_second: f64,
    pub limiting_factor: Option<LimitingFactor>,
    pub finishes_at: Option<Moment>,
    pub now: Moment,
}

fn rate(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl CampaignStatsView {
    pub fn of(stats: Stats) -> Self {
        let (answered, ended) = stats.hours.iter().fold((0, 0), |(answered, ended), hour| {
            (answered + hour.answered, ended + hour.ended)
        });
        CampaignStatsView {
            campaign_id: stats.row.id,
            status: stats.row.status,
            counts: (&stats.tally).into(),
            completed_sessions: stats.tally.completed_sessions,
            failed_sessions: stats.tally.failed_sessions,
            cost_cents: stats.tally.cost_cents,
            slots: SlotsView {
                in_use: i64::try_from(stats.live).unwrap_or(i64::MAX),
                limit: stats.slots,
            },
            attempts_per_second: stats.dials_per_second,
            answer_rate: rate(answered, ended),
            hours: stats
                .hours
                .iter()
                .map(|hour| CampaignHourView {
                    hour: hour.hour,
                    started: hour.dialed,
                    answered: hour.answered,
                    ended: hour.ended,
                    answer_rate: rate(hour.answered, hour.ended),
                })
                .collect(),
            limiting_factor: stats.limiting_factor,
            expected_finish_at: stats.finishes_at,
            started_at: stats.row.started_at,
            completed_at: stats.row.completed_at,
        }
    }
}

/// What to expect of a campaign, before it starts or while it runs.
#[derive(Serialize, JsonSchema)]
pub struct OutlookView {
    pub campaign_id: CampaignId,
    /// The moment it describes: requests that arrive while it is worked out share one answer.
    pub generated_at: Moment,
    /// Nothing keeps it from being started.
    pub ready: bool,
    /// What does, and what to do about it.
    pub problems: Vec<ProblemView>,
    /// Contacts that have not reached a final status.
    pub contacts: i64,
    /// Those that will be called, as far as is known now.
    pub eligible: i64,
    /// Those that will be skipped, by reason.
    pub skips: SkipsView,
    /// Numbers that were called as often as the caps allow: they wait, unless `caps.on_cap` says `skip`.
    pub capped: i64,
    /// Contacts by the zones whose hours they keep, the largest group first.
    pub zones: Vec<ZoneView>,
    /// The pace that can be expected.
    pub calls_per_second: f64,
    /// When everybody will have been called once; null if that is more than 60 days away or cannot be said.
    pub expected_finish_at: Option<Moment>,
}
#[derive(Serialize, JsonSchema)]
pub struct ProblemView {
    pub code: &'static str,
    pub message: &'static str,
}
#[derive(Serialize, JsonSchema)]
pub struct SkipsView {
    pub invalid: i64,
    pub dnc_blocked: i64,
    pub daily_cap_reached: i64,
    pub quiet_hours_expired: i64,
}
#[derive(Serialize, JsonSchema)]
pub struct ZoneView {
    /// All of them must be open; empty: nobody of these can be called.
    pub timezones: Vec<Zone>,
    pub contacts: i64,
    pub open_now: bool,
    /// When the first of them may be called; null: not before the campaign ends.
    pub opens_at: Option<Moment>,
}

impl OutlookView {
    pub fn of(
        row: &campaign::Model,
        outlook: Outlook,
        (has_agent, has_sender, is_filled): (bool, bool, bool),
        now: Moment,
    ) -> Self {
        let ended = row.plan.schedule.ends_at.is_some_and(|end| end <= now);
        let possible = [
            (
                row.status != Status::Draft || has_agent,
                "no_agent",
                "it has no agent: set `agent_id`",
            ),
            (
                outlook.open > 0,
                "no_contacts",
                "nobody is left to be called: add contacts",
            ),
            (
                outlook.eligible > 0,
                "nobody_eligible",
                "none of its contacts can be called: see `skips`",
            ),
            (!ended, "ended", "its `schedule.ends_at` has passed"),
            (
                has_sender,
                "not_configured",
                "no provider is configured for live calls or messages of its channel",
            ),
            (
                is_filled,
                "missing_variables",
                "its template is missing, or needs a variable that a contact does not have",
            ),
        ];
        let problems: Vec<_> = possible
            .into_iter()
            .filter(|(fine, ..)| !fine)
            .map(|(_, code, message)| ProblemView { code, message })
            .collect();
        let mut groups = outlook.groups;
        groups.sort_by_key(|group| std::cmp::Reverse(group.contacts));
        OutlookView {
            campaign_id: row.id,
            generated_at: now,
            ready: problems.is_empty(),
            problems,
            contacts: outlook.open,
            eligible: outlook.eligible,
            skips: SkipsView {
                invalid: outlook.skips.invalid,
                dnc_blocked: outlook.skips.barred,
                daily_cap_reached: outlook.skips.capped,
                quiet_hours_expired: outlook.skips.expired,
            },
            capped: outlook.capped,
            zones: groups
                .into_iter()
                .map(|group| ZoneView {
                    timezones: group.zones.into_iter().map(Zone::from).collect(),
                    contacts: group.contacts,
                    open_now: group.opens_at.is_some_and(|at| at <= now),
                    opens_at: group.opens_at,
                })
                .collect(),
            calls_per_second: outlook.calls_per_second,
            expected_finish_at: outlook.finishes_at,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct ContactView {
    pub id: ContactId,
    pub campaign_id: CampaignId,
    pub external_id: Option<String>,
    /// Null: none was given.
    pub phone_number: Option<String>,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    /// Where the person is, if given.
    pub timezone: Option<Zone>,
    pub variables: Variables,
    pub priority: i32,
    pub not_before: Option<Moment>,
    pub status: contact::Status,
    pub wait_reason: Option<WaitReason>,
    pub attempts: i32,
    pub last_session_id: Option<SessionId>,
    /// The SMS or the e-mail, in a campaign that writes.
    pub last_message_id: Option<DeliveryRowId>,
    /// Not called before this, for `wait_reason`.
    pub next_attempt_at: Option<Moment>,
    pub skip_reason: Option<SkipReason>,
    /// How its last talk was classified.
    pub disposition_code: Option<String>,
    pub created_at: Moment,
}
impl From<contact::Model> for ContactView {
    fn from(contact: contact::Model) -> Self {
        let (phone_number, last_session_id) = (contact.number(), contact.last_session_id());
        ContactView {
            id: contact.id,
            campaign_id: contact.campaign_id,
            external_id: contact.external_id,
            phone_number,
            last_session_id,
            last_message_id: contact
                .last_row_id
                .filter(|_| contact.channel != campaign::Channel::Phone),
            email: contact.email,
            first_name: contact.first_name,
            last_name: contact.last_name,
            timezone: contact.timezone,
            variables: contact.variables,
            priority: contact.priority,
            not_before: contact.not_before,
            status: contact.status,
            wait_reason: contact.wait_reason,
            attempts: contact.attempts,
            next_attempt_at: contact.next_attempt_at,
            skip_reason: contact.skip_reason,
            disposition_code: contact.disposition_code,
            created_at: contact.created_at,
        }
    }
}

/// Whether one contact may be called now: every rule with its verdict.
#[derive(Serialize, JsonSchema)]
pub struct EligibilityView {
    pub contact_id: ContactId,
    /// It waits to be called, its campaign runs, and every rule says yes.
    pub eligible: bool,
    pub status: contact::Status,
    pub campaign_status: Status,
    /// In the order in which they are asked.
    pub rules: Vec<RuleView>,
    /// The zones whose hours count, all of which must be open.
    pub zones: Vec<LocalTimeView>,
    /// When its hours are open next; null: not within a year.
    pub next_opening_at: Option<Moment>,
}
#[derive(Serialize, JsonSchema)]
pub struct RuleView {
    pub rule: Rule,
    pub verdict: VerdictView,
    /// It waits until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// It will be skipped for this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<SkipReason>,
}
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictView {
    Yes,
    Wait,
    Never,
}
#[derive(Serialize, JsonSchema)]
pub struct LocalTimeView {
    pub timezone: Zone,
    /// The time there, with its offset from UTC.
    pub local_time: String,
}

impl EligibilityView {
    pub fn of(found: Eligibility, now: Moment) -> Self {
        let waits = matches!(
            found.contact.status,
            contact::Status::Pending | contact::Status::Waiting
        );
        let runs = found.campaign.status == Status::Running && found.campaign.cancel_requested_at.is_none();
        let local = |zone: chrono_tz::Tz| LocalTimeView {
            timezone: zone.into(),
            local_time: zone
                .from_utc_datetime(&now.datetime().naive_utc())
                .format("%Y-%m-%dT%H:%M:%S%:z")
                .to_string(),
        };
        EligibilityView {
            contact_id: found.contact.id,
            eligible: waits && runs && found.rules.iter().all(|(_, verdict)| *verdict == Verdict::Yes),
            status: found.contact.status,
            campaign_status: found.campaign.status,
            rules: found.rules.iter().map(RuleView::from).collect(),
            zones: found.zones.into_iter().map(local).collect(),
            next_opening_at: found.next_opening,
        }
    }
}
impl From<&(Rule, Verdict)> for RuleView {
    fn from((rule, verdict): &(Rule, Verdict)) -> Self {
        let (verdict, until, skip_reason) = match verdict {
            Verdict::Yes => (VerdictView::Yes, None, None),
            Verdict::Wait(until) => (VerdictView::Wait, *until, None),
            Verdict::Never(reason) => (VerdictView::Never, None, Some(*reason)),
        };
        RuleView {
            rule: *rule,
            verdict,
            until,
            skip_reason,
        }
    }
}
