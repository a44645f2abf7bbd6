//! What recurs: the reconcile, the flush of `last_used_at`, the database's log file, rows whose time is over.
use crate::{
    attempts,
    deps::Deps,
    holds::{self, ClockStatus},
    leases::{Of, Since},
    reconcile::{reconcile, reconcile_unless_quiet},
    registers, retention,
    slices::Slices,
    voice::standby,
};
use entities::{
    Result, boxed, delivery, idempotency,
    ids::ApiKeyId,
    inbound_call,
    meta::{self, HEARTBEAT},
    values::Moment,
};
use futures_util::FutureExt;
use rules::commit::Commit;
use runtime::supervise::panic_text;
use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Keys used since the last flush: `last_used_at` is written every few seconds, not at every request.
#[derive(Clone, Default)]
pub struct KeysUsed(Arc<Mutex<HashMap<ApiKeyId, Moment>>>);

impl KeysUsed {
    pub fn note(&self, key: ApiKeyId, now: Moment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now);
    }

    #[boxed]
    pub async fn flush(&self, deps: &Deps) -> Result<()> {
        let used: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).drain().collect();
        if used.is_empty() {
            return Ok(());
        }
        let again = used.clone();
        let written = deps
            .writer
            .upkeep(Of::Anybody, move |db| {
                let used = used.clone();
                Box::pin(async move { entities::api_key::touch(db, &used).await })
            })
            .await;
        if written.is_err() {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, at) in again {
                // A use since then is the later one.
                noted.entry(key).or_insert(at);
            }
        }
        written
    }
}

const RECONCILE_EVERY: Duration = Duration::from_secs(30);
const FLUSH_EVERY: Duration = Duration::from_secs(3);
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// Days are what is asked for.
const RETAIN_EVERY: Duration = Duration::from_secs(3600);
const TIDY_EVERY: Duration = Duration::from_secs(60);
const WATCH_EVERY: Duration = Duration::from_secs(15 * 60);
/// How long an answer can be had again with its `Idempotency-Key`. Source: CONTRACT §1.
const KEEP_IDEMPOTENCY_KEYS: Duration = Duration::from_secs(24 * 3600);
/// Dashboard sessions end after this long, and after this long without a request.
pub const LOGIN_ABSOLUTE: Duration = Duration::from_secs(7 * 24 * 3600);
pub const LOGIN_IDLE: Duration = Duration::from_secs(12 * 3600);
/// A link for a new password opens something for so long.
pub const PASSWORD_RESET: Duration = Duration::from_secs(3600);

/// Starts the recurring work. It ends with the runtime.
pub fn start(deps: &Deps, keys_used: KeysUsed) {
    every(deps, RECONCILE_EVERY, "reconcile", |deps| async move {
        reconcile_unless_quiet(&deps).await
    });
    // One alarm for these: none keeps another from its work.
    every(
        deps,
        FLUSH_EVERY,
        "last use of keys, a look at the clock, or a heartbeat",
        move |deps| {
            let keys_used = keys_used.clone();
            async move {
                let flushed = keys_used.flush(&deps).await;
                let watched = match holds::watch(&deps).await {
                    // Nothing holds anybody any more: everybody goes on.
                    Ok(true) => reconcile(&deps).await,
                    watched => watched.map(drop),
                };
                all([beat(&deps).await, watched, flushed])
            }
        },
    );
    every(deps, TIDY_EVERY, "measuring the queues", |deps| async move {
        measure(&deps).await
    });
    every(deps, TIDY_EVERY, "tidying", |deps| async move { tidy(&deps).await });
    every(deps, TIDY_EVERY, "removing deleted campaigns", |deps| async move {
        clear_away(&deps).await
    });
    every(deps, PRUNE_EVERY, "pruning", |deps| async move {
        standby::sweep(&deps).await;
        retention::installation::prune(&deps).await
    });
    every(deps, WATCH_EVERY, "watching registers", |deps| async move {
        let watched = registers::watch::watch(&deps).await;
        all([watched, registers::watch::sweep(&deps).await])
    });
    every(deps, RETAIN_EVERY, "pruning of workspaces", |deps| async move {
        retention::workspaces::prune(&deps).await
    });
    every(
        deps,
        RETAIN_EVERY,
        "signing and pruning of the record",
        |deps| async move {
            let signed = attempts::heads::sign(&deps).await;
            all([attempts::retention::prune(&deps).await, signed])
        },
    );
}

/// Of several things that were done whatever became of the others: the first failure. The others are only in the log.
fn all<const N: usize>(done: [Result<()>; N]) -> Result<()> {
    let mut failures = done.into_iter().filter_map(Result::err);
    let first = failures.next();
    for error in failures {
        tracing::warn!(%error, "a part of the recurring work failed");
    }
    first.map_or(Ok(()), Err)
}

fn every<F, Fut>(deps: &Deps, period: Duration, what: &'static str, work: F)
where
    F: Fn(Deps) -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let (deps, mut busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.clone().spawn(async move {
        loop {
            busy = deps.clock.busy_until(deps.clock.now().plus(period), busy).await;
            match AssertUnwindSafe(work(deps.clone())).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "{what} failed; trying again in {period:?}"),
                Err(panic) => tracing::error!(
                    panic = panic_text(&*panic),
                    "{what} panicked; trying again in {period:?}"
                ),
            }
        }
    });
}

/// What waits to be delivered, for the metrics.
#[boxed]
pub async fn measure(deps: &Deps) -> Result<()> {
    // Of all, and so told by one.
    let waiting = match deps.fence.leases().serves(Of::Installation) {
        true => delivery::waiting(&deps.db.read, None).await?,
        false => delivery::Waiting::default(),
    };
    for (status, count) in [
        ("pending", waiting.pending),
        ("retrying", waiting.retrying),
        ("held", waiting.held),
    ] {
        metrics::gauge!("callboard_deliveries_waiting", "status" => status).set(count as f64);
    }
    let overdue = waiting
        .oldest_due_at
        .map_or(0.0, |at| deps.clock.now().since(at).as_secs_f64());
    metrics::gauge!("callboard_delivery_oldest_due_seconds").set(overdue);
    Ok(())
}

/// Rows that one transaction removes, at most.
const MOST: usize = 1_000;

/// Removes what deleted campaigns have left behind, slice by slice.
async fn clear_away(deps: &Deps) -> Result<()> {
    if !deps.fence.leases().serves(Of::Installation) {
        return Ok(());
    }
    let mut slices = Slices::new(MOST);
    while let Some(campaign) = entities::campaign::first_deleted(&deps.db.read).await? {
        let rows = slices.rows() as u64;
        let slice = slices.write(deps, Of::Installation, move |db| {
            Box::pin(async move {
                let removed = entities::contact::remove_some(db, campaign, rows).await?;
                Ok((removed, Commit::default()))
            })
        });
        slice.await?;
    }
    Ok(())
}

async fn tidy(deps: &Deps) -> Result<()> {
    if !deps.fence.leases().serves(Of::Installation) {
        return Ok(());
    }
    let (times, clock) = (deps.clock.times(), ClockStatus::of(&deps.clock).text());
    // What is deleted does not come back: by the clock that shows less.
    let now = times.earlier();
    let before = move |age: Duration| now.plus_millis(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    if !times.in_doubt {
        forget_answers(deps, before(KEEP_IDEMPOTENCY_KEYS)).await?;
        forget_inbound_calls(deps, before(KEEP_INBOUND_CALLS)).await?;
    }
    deps.writer
        .upkeep(Of::Installation, move |db| {
            let clock = clock.clone();
            Box::pin(async move {
                entities::meta::set(db, entities::meta::CLOCK, &clock).await?;
                if times.in_doubt {
                    return Ok(());
                }
                entities::login::prune(db, before(LOGIN_ABSOLUTE), before(LOGIN_IDLE)).await?;
                entities::invitation::prune(db, before(Duration::ZERO)).await?;
                entities::password_reset::prune(db, before(PASSWORD_RESET)).await?;
                entities::audit_log::prune(db, before(KEEP_AUDIT_LOG)).await?;
                entities::db::optimize(db).await
            })
        })
        .await
}

/// One key may leave a million of them a day.
async fn forget_answers(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    while let Some(until) = idempotency::oldest(&deps.db.read, before, slices.rows() as u64).await? {
        let slice = slices.write(deps, Of::Installation, move |db| {
            Box::pin(async move { Ok((idempotency::prune(db, until).await?, Commit::default())) })
        });
        slice.await?;
    }
    Ok(())
}

async fn forget_inbound_calls(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    loop {
        let ids = inbound_call::oldest(&deps.db.read, before, slices.rows() as u64).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let slice = slices.write(deps, Of::Installation, move |db| {
            let ids = ids.clone();
            Box::pin(async move { Ok((inbound_call::prune(db, &ids).await?, Commit::default())) })
        });
        slice.await?;
    }
}

/// Their numbers' rates look back a day.
const KEEP_INBOUND_CALLS: Duration = Duration::from_secs(31 * 24 * 3600);
/// Who changed whose access.
const KEEP_AUDIT_LOG: Duration = Duration::from_secs(400 * 24 * 3600);

/// By then the calls of the process before have ended. Until then its last beat is still needed, by whoever comes after a crash of
/// this one.
const HANDED_OVER_SECONDS: i64 = 30;

/// While calls are carried: this is written every few seconds.
#[boxed]
pub async fn beat(deps: &Deps) -> Result<()> {
    if deps.fence.leases().node().is_some() {
        // Its own row says so.
        return Ok(());
    }
    let (now, Since { last_seen, taken_at }) = (deps.clock.now(), deps.heartbeat);
    let is_needed = last_seen.is_some() && now < taken_at.plus_seconds(HANDED_OVER_SECONDS);
    if is_needed || deps.calls.count() == 0 {
        return Ok(());
    }
    let now = now.to_string();
    let write = deps.writer.upkeep(Of::Installation, move |db| {
        let now = now.clone();
        Box::pin(async move { meta::set(db, HEARTBEAT, &now).await })
    });
    write.await
}
