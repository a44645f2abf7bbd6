//! What keeps everything from leaving for people, of all workspaces: the operator's pause, which is a row, and a wall clock in
//! doubt. The guards of what leaves ask for both inside their transaction; here stands what is known before, and who is told.
pub mod state;
use crate::{
    deps::Deps,
    holds::state::{Hold, Seen},
    leases::Of,
};
use entities::{
    Error, Result, boxed,
    connection::Connection,
    db::Db,
    dispatch_pause, event,
    meta::{self, CLOCK, CLOCK_ACCEPTED},
    values::Moment,
};
use rules::commit::Commit;
use runtime::clock::{Clock, Doubt};
use serde::{Deserialize, Serialize};

/// What holds everything, as far as is known without asking the database.
pub fn known(deps: &Deps) -> Option<Hold> {
    if deps.holds.paused_since().is_some() {
        Some(Hold::Operator)
    } else {
        deps.clock.is_in_doubt().then_some(Hold::Clock)
    }
}

/// Reads whether there is a pause: whoever begins or ends one may be another process, which sends no hints.
#[boxed]
pub async fn look(deps: &Deps) -> Result<Option<Hold>> {
    let paused_since = dispatch_pause::since(&deps.db.read).await?;
    deps.holds.lock().paused_since = paused_since;
    Ok(known(deps))
}

/// The same, asking the database only whether a pause that is known has ended.
#[boxed]
pub async fn still(deps: &Deps) -> Result<Option<Hold>> {
    match known(deps) {
        Some(Hold::Operator) => look(deps).await,
        hold => Ok(hold),
    }
}

/// For what is to leave at once, because somebody asks for it.
#[boxed]
pub async fn check(deps: &Deps) -> Result<()> {
    match look(deps).await? {
        Some(hold) => Err(Error::Held(hold.why())),
        None => Ok(()),
    }
}

/// The clock as this process sees it: a row, for the next start and for the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStatus {
    pub now: Moment,
    pub wall_clock: Moment,
    /// How far the wall clock is ahead of our time; negative: behind it.
    pub gap_ms: i64,
    pub doubt: Option<Doubt>,
}

impl ClockStatus {
    pub fn of(clock: &Clock) -> Self {
        let times = clock.times();
        ClockStatus {
            now: times.ours,
            wall_clock: times.wall,
            gap_ms: -times.behind_ms(),
            doubt: clock.doubt(),
        }
    }

    /// As it is stored.
    pub fn text(&self) -> String {
        // A plain struct: it always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As the running service has stored it last, at most a minute ago.
    #[boxed]
    pub async fn stored(db: &Connection) -> Result<Option<Self>> {
        let text = meta::get(db, CLOCK).await?;
        // One that a newer version has written is none to this one.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

/// At a start, before anything is stored: compares the clock with where the last run had come to, and begins the pause that was
/// asked for.
#[boxed]
pub async fn begin(db: &Db, clock: &Clock, pauses: bool) -> Result<()> {
    let stored = ClockStatus::stored(&db.read).await?.map(|status| status.now);
    let newest = event::last_id(&db.read).await?;
    let newest = newest.map(|id| Moment::from_millis(i64::try_from(id.0.as_u128() >> 80).unwrap_or(0)));
    if let Some(last) = stored.max(newest) {
        clock.start_after(last);
    }
    let transaction = db.begin().await?;
    meta::set(&transaction, CLOCK, &ClockStatus::of(clock).text()).await?;
    if pauses {
        dispatch_pause::begin(&transaction, clock.now()).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Where our time goes on after a restore: by the clock, by which the operator goes.
#[boxed]
pub async fn restored(db: &Connection, clock: &Clock) -> Result<()> {
    meta::set(db, CLOCK, &ClockStatus::of(clock).text()).await
}

/// Looks at both, every few seconds: tells what has changed and hears what the operator says. `true`: from now on nothing holds
/// anybody any more.
#[boxed]
pub async fn watch(deps: &Deps) -> Result<bool> {
    look(deps).await?;
    if let Some(doubt) = deps.clock.doubt()
        && meta::get(&deps.db.read, CLOCK_ACCEPTED).await? == Some(doubt.since.to_string())
    {
        deps.clock.accept(doubt.since);
    }
    measure(deps);
    let seen = Seen {
        paused_since: deps.holds.paused_since(),
        in_doubt_since: deps.clock.doubt().map(|doubt| doubt.since),
    };
    let before = std::mem::replace(&mut deps.holds.lock().told, seen);
    // Of several nodes each stores its own doubt, again and again: the last word is that of whoever has one.
    if seen.in_doubt_since.is_some() && deps.fence.leases().node().is_some() {
        store(deps).await?;
    }
    if seen == before {
        return Ok(false);
    }
    tell(deps, before, seen);
    if seen.in_doubt_since != before.in_doubt_since {
        store(deps).await?;
    }
    Ok(before.holds() && !seen.holds())
}

fn tell(deps: &Deps, before: Seen, seen: Seen) {
    if seen.in_doubt_since != before.in_doubt_since {
        match deps.clock.doubt() {
            Some(doubt) => tracing::error!(
                step_seconds = doubt.step_ms / 1000,
                believed_at = %doubt.believed_at,
                "the wall clock does not agree with the monotonic clock, or with the stored times: nothing is dialled, sent or erased \
                 until it has stood still for ten minutes; `callboard clock accept` says that it is right"
            ),
            None => tracing::info!("the wall clock is trusted again"),
        }
    }
    match (before.paused_since, seen.paused_since) {
        (None, Some(since)) => {
            tracing::warn!(%since, "dispatch is paused: no call and no message leaves until `callboard dispatch resume`")
        }
        (Some(_), None) => tracing::info!("dispatch resumes"),
        (None, None) | (Some(_), Some(_)) => {}
    }
}

pub fn measure(deps: &Deps) {
    let times = deps.clock.times();
    let paused = deps.holds.paused_since().is_some();
    metrics::gauge!("callboard_clock_gap_seconds").set(-times.behind_ms() as f64 / 1000.0);
    metrics::gauge!("callboard_clock_suspect").set(f64::from(u8::from(times.in_doubt)));
    metrics::gauge!("callboard_dispatch_paused").set(f64::from(u8::from(paused)));
}

async fn store(deps: &Deps) -> Result<()> {
    let text = ClockStatus::of(&deps.clock).text();
    deps.writer
        .run(Of::Anybody, move |db| {
            let text = text.clone();
            Box::pin(async move {
                meta::set(db, CLOCK, &text).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}
