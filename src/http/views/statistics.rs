//! How a campaign does: its pace, its slots, its answer rate by hour.
use super::campaigns::CountsView;
use entities::{
    abandonment::{Abandonment, Answers},
    campaign::{self, Status},
    campaign_hour,
    ids::CampaignId,
    tally,
    values::Moment,
};
use rules::dispatch::limiting::LimitingFactor;
use schemars::JsonSchema;
use serde::Serialize;

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
    /// Of calls that a person has answered: how many were abandoned.
    pub abandonment: AbandonmentView,
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
/// Calls that a person has answered, and those of them that were abandoned. Hours that lie only partly in a span count with what was
/// abandoned in them alone.
#[derive(Serialize, JsonSchema)]
pub struct AbandonmentView {
    pub last_24_hours: AnswersView,
    pub last_30_days: AnswersView,
}
#[derive(Serialize, JsonSchema)]
pub struct AnswersView {
    pub answered_live: i64,
    pub abandoned: i64,
    /// `abandoned` by `answered_live`, 0 to 1; null without any.
    pub rate: Option<f64>,
}
impl From<Answers> for AnswersView {
    fn from(Answers { live, abandoned }: Answers) -> Self {
        AnswersView {
            answered_live: live,
            abandoned,
            rate: rate(abandoned.min(live), live),
        }
    }
}
#[derive(Serialize, JsonSchema)]
pub struct CampaignHourView {
    pub hour: Moment,
    pub started: i64,
    pub answered: i64,
    pub ended: i64,
    pub answer_rate: Option<f64>,
    /// A person picked up.
    pub answered_live: i64,
    /// Of those: with nothing of the agent's to be heard in time.
    pub abandoned: i64,
}

/// What the statistics are made of.
pub struct Stats {
    pub row: campaign::Model,
    pub tally: tally::Model,
    pub live: usize,
    pub slots: i32,
    pub hours: Vec<campaign_hour::Model>,
    pub abandonment: Abandonment,
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
            abandonment: AbandonmentView {
                last_24_hours: stats.abandonment.day.into(),
                last_30_days: stats.abandonment.month.into(),
            },
            hours: stats
                .hours
                .iter()
                .map(|hour| CampaignHourView {
                    hour: hour.hour,
                    started: hour.dialed,
                    answered: hour.answered,
                    ended: hour.ended,
                    answer_rate: rate(hour.answered, hour.ended),
                    answered_live: hour.answered_live,
                    abandoned: hour.abandoned,
                })
                .collect(),
            limiting_factor: stats.limiting_factor,
            expected_finish_at: stats.finishes_at,
            started_at: stats.row.started_at,
            completed_at: stats.row.completed_at,
        }
    }
}
