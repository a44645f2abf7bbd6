//! A workspace's calls over time, for graphs.
use super::{caller::Caller, error::ApiResult, extract::Params};
use crate::state::State;
use actix_web::web::{self, Data};
use entities::{
    call_hour::{self as store, Model},
    values::Moment,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// How far back, and in which steps.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
pub enum Period {
    /// By the hour.
    #[default]
    #[serde(rename = "24h")]
    Day,
    /// By the day, in UTC.
    #[serde(rename = "30d")]
    Month,
}

impl Period {
    /// Length of a step in milliseconds, and how many there are.
    fn steps(self) -> (i64, i64) {
        match self {
            Period::Day => (HOUR_MS, 24),
            Period::Month => (DAY_MS, 30),
        }
    }
}

/// Calls that have ended, and how many of them somebody has answered.
#[derive(Default, Serialize, JsonSchema)]
pub struct CallCounts {
    /// Placed, or come in; those in rooms count, too.
    pub started: i64,
    /// A person or a machine picked up.
    pub answered: i64,
    pub duration_seconds: i64,
    pub cost_cents: i64,
}

impl CallCounts {
    fn add(&mut self, hour: &Model) {
        self.started += hour.started;
        self.answered += hour.answered;
        self.duration_seconds += hour.duration_seconds;
        self.cost_cents += hour.cost_cents;
    }
}

/// One hour, or one day.
#[derive(Serialize, JsonSchema)]
pub struct CallBucket {
    /// Its first moment.
    pub at: Moment,
    #[serde(flatten)]
    pub counts: CallCounts,
}

/// Calls over time.
#[derive(Serialize, JsonSchema)]
pub struct CallStatsView {
    pub period: Period,
    /// The first bucket's first moment.
    pub since: Moment,
    /// Oldest first, and up to now; hours and days without a call are there, too.
    pub buckets: Vec<CallBucket>,
    /// Of all buckets together.
    #[serde(flatten)]
    pub counts: CallCounts,
    /// Answered of started, 0 to 1; null without a call.
    pub answer_rate: Option<f64>,
}

fn view(period: Period, now: Moment, hours: &[Model]) -> CallStatsView {
    let (step, count) = period.steps();
    let first = now.millis().div_euclid(step) - count + 1;
    let mut buckets: Vec<CallBucket> = (0..count)
        .map(|n| CallBucket {
            at: Moment::from_millis((first + n) * step),
            counts: CallCounts::default(),
        })
        .collect();
    let mut counts = CallCounts::default();
    for hour in hours {
        let place = usize::try_from(hour.hour.millis().div_euclid(step) - first);
        // A clock that was wrong has counted some in the future.
        if let Some(bucket) = place.ok().and_then(|place| buckets.get_mut(place)) {
            bucket.counts.add(hour);
            counts.add(hour);
        }
    }
    CallStatsView {
        period,
        since: Moment::from_millis(first * step),
        buckets,
        answer_rate: (counts.started > 0).then(|| counts.answered as f64 / counts.started as f64),
        counts,
    }
}

/// GET /v1/sessions/stats
pub async fn get(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<CallStatsView>> {
    let period: Period = params.text("period")?.unwrap_or_default();
    params.finish()?;
    let now = state.deps.clock.now();
    let (step, count) = period.steps();
    let since = Moment::from_millis((now.millis().div_euclid(step) - count + 1) * step);
    let hours = store::since(&state.deps.db.read, caller.tenant_id(), caller.env(), since).await?;
    Ok(web::Json(view(period, now, &hours)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{ids::TenantId, values::Env};

    fn hour(hours: i64) -> Model {
        Model {
            started: 4,
            answered: 1,
            ..Model::empty(
                TenantId(uuid::Uuid::nil()),
                Env::Live,
                Moment::from_millis(hours * HOUR_MS),
            )
        }
    }

    #[test]
    fn each_hour_and_each_day_is_there_once_and_what_is_outside_is_not_counted() {
        let now = Moment::from_millis(1_000 * HOUR_MS + 12_345);
        let hours = [hour(976), hour(977), hour(1_000), hour(1_001)];
        let day = view(Period::Day, now, &hours);
        assert_eq!((day.buckets.len(), day.buckets[0].counts.started), (24, 4));
        assert_eq!(day.buckets[23].at, Moment::from_millis(1_000 * HOUR_MS));
        assert_eq!((day.counts.started, day.answer_rate), (8, Some(0.25)));
        let month = view(Period::Month, now, &hours);
        // 1,000 hours are 41 days and 16 hours: the last bucket is that day.
        assert_eq!(
            (month.buckets.len(), month.buckets[29].at),
            (30, Moment::from_millis(41 * DAY_MS))
        );
        assert_eq!(
            month.buckets[29].counts.started, 8,
            "the hour to come is one of this day"
        );
        assert_eq!(month.buckets[28].counts.started, 8, "the day before");
        assert!(view(Period::Day, now, &[]).answer_rate.is_none());
    }
}
