//! Sending again what an endpoint missed: a stored job in slices, oldest first, that goes on after a crash.
//!
//! | Missed delivery | What becomes of it |
//! |---|---|
//! | held | pending, due at once |
//! | held, and its 24 hours since the first attempt are over | cancelled, and a replay goes out in its place |
//! | failed | a replay goes out |
//! | either, and a replay of it has arrived or is on its way | nothing |
//!
//! Each slice is one transaction that also moves the job's cursor: done once, however often it is run.
use super::{lane::Wake, machine};
use crate::{deps::Deps, supervise::panic_text, writer::Commit};
use entities::{
    Error, Result,
    delivery::{self, Model as Delivery, Origin, Status as DeliveryStatus},
    event,
    ids::{EndpointId, Owned, RecoveryId},
    recovery::{self, Model as Recovery, Status},
    values::Moment,
    webhook_endpoint::{self as endpoint, Status as EndpointStatus},
};
use futures_util::FutureExt;
use sea_orm::DatabaseTransaction;
use std::{collections::HashMap, panic::AssertUnwindSafe};

/// Deliveries dealt with in one transaction.
const SLICE: u64 = 500;

/// Stores the job and starts it. One at a time per endpoint.
pub async fn start(
    deps: &Deps,
    id: RecoveryId,
    endpoint: Owned<EndpointId>,
    (since, until): (Moment, Option<Moment>),
) -> Result<Recovery> {
    let now = deps.clock.now();
    let job = Recovery {
        id,
        tenant_id: endpoint.tenant_id,
        env: endpoint.env,
        endpoint_id: endpoint.id,
        since,
        until: until.unwrap_or(now),
        status: Status::Running,
        after_id: None,
        released: 0,
        replayed: 0,
        created_at: now,
        ended_at: None,
    };
    let row = job.clone();
    deps.writer
        .run(move |db| {
            let row = row.clone();
            Box::pin(async move {
                check(db, &row).await?;
                recovery::save(db, &row).await?;
                Ok(((), Commit::default()))
            })
        })
        .await?;
    run(deps, job.id, endpoint);
    Ok(job)
}

async fn check(db: &DatabaseTransaction, job: &Recovery) -> Result<()> {
    let refused = |state, hint| Error::InvalidState {
        kind: "webhook endpoint",
        state,
        command: "be recovered",
        hint,
    };
    match endpoint::load(db, job.endpoint()).await?.status {
        EndpointStatus::Active => {}
        EndpointStatus::Suspended => return Err(refused("suspended", "POST …/enable first")),
        EndpointStatus::Disabled => return Err(refused("disabled", "set its `status` to `active` first")),
    }
    match recovery::latest(db, job.endpoint_id).await? {
        Some(latest) if latest.status == Status::Running && latest.id != job.id => Err(refused(
            "recovering",
            "a recovery is under way: see `recovery` in GET …/stats",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Works a job off, in the background. What stops it is taken up again by the reconcile.
pub fn run(deps: &Deps, id: RecoveryId, endpoint: Owned<EndpointId>) {
    let (deps, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.clone().spawn(async move {
        let _busy = busy;
        match AssertUnwindSafe(slices(&deps, id, endpoint)).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, recovery = %id, "a recovery was interrupted; it goes on soon"),
            Err(panic) => {
                tracing::error!(panic = panic_text(&*panic), recovery = %id, "a recovery panicked; it goes on soon")
            }
        }
    });
}

async fn slices(deps: &Deps, id: RecoveryId, endpoint: Owned<EndpointId>) -> Result<()> {
    loop {
        let (ids, clock, schedule) = (deps.ids.clone(), deps.clock.clone(), deps.limits.schedule.clone());
        let goes_on = deps
            .writer
            .run(move |db| {
                let (ids, clock, schedule) = (ids.clone(), clock.clone(), schedule.clone());
                Box::pin(async move {
                    let Some(job) = recovery::load(db, id)
                        .await?
                        .filter(|job| job.status == Status::Running)
                    else {
                        return Ok((false, Commit::default()));
                    };
                    slice(db, job, &ids, &schedule, clock.now()).await
                })
            })
            .await?;
        if let Some(tree) = deps.tree() {
            tree.lanes.tell(endpoint, Wake::new(&deps.clock));
        }
        if !goes_on {
            return Ok(());
        }
    }
}

/// One slice: answers whether another follows.
async fn slice(
    db: &DatabaseTransaction,
    mut job: Recovery,
    ids: &crate::ids::Ids,
    schedule: &machine::Schedule,
    now: Moment,
) -> Result<(bool, Commit)> {
    let receives = match endpoint::load(db, job.endpoint()).await {
        Ok(endpoint) => endpoint.status == EndpointStatus::Active,
        Err(Error::NotFound(_)) => false,
        Err(error) => return Err(error),
    };
    let missed = if receives {
        delivery::missed(db, job.endpoint_id, (job.since, job.until), job.after_id, SLICE).await?
    } else {
        Vec::new()
    };
    let seqs: Vec<i64> = missed.iter().map(|delivery| delivery.event_seq).collect();
    let replayed = delivery::replayed(db, job.endpoint_id, &seqs).await?;
    let (released, again): (Vec<_>, Vec<_>) = missed
        .iter()
        .filter(|delivery| !replayed.contains(&delivery.event_seq))
        .partition(|delivery| delivery.status == DeliveryStatus::Held && !machine::is_expired(delivery, schedule, now));
    let released: Vec<_> = released.into_iter().map(|delivery| delivery.id).collect();
    delivery::release(db, job.endpoint_id, &released, now).await?;
    let mut commit = Commit::default();
    commit.changes.deliveries = replays(db, &again, ids, now).await?;
    commit.changes.delivery_updates = again
        .iter()
        .filter(|delivery| delivery.status == DeliveryStatus::Held)
        .map(|delivery| Delivery {
            status: DeliveryStatus::Cancelled,
            ..(*delivery).clone()
        })
        .collect();
    job.released += i64::try_from(released.len()).unwrap_or(0);
    job.replayed += i64::try_from(again.len()).unwrap_or(0);
    job.after_id = missed.last().map(|delivery| delivery.id).or(job.after_id);
    let goes_on = missed.len() as u64 == SLICE;
    if !goes_on {
        job.status = if receives { Status::Completed } else { Status::Stopped };
        job.ended_at = Some(now);
    }
    recovery::save(db, &job).await?;
    Ok((goes_on, commit))
}

async fn replays(
    db: &DatabaseTransaction,
    of: &[&Delivery],
    ids: &crate::ids::Ids,
    now: Moment,
) -> Result<Vec<Delivery>> {
    let seqs: Vec<i64> = of.iter().map(|delivery| delivery.event_seq).collect();
    let events: HashMap<i64, event::Model> = event::of_seqs(db, &seqs)
        .await?
        .into_iter()
        .map(|event| (event.seq, event))
        .collect();
    let replay = |delivery: &&Delivery| {
        let event = events.get(&delivery.event_seq)?;
        Some(Delivery {
            replay_of: Some(delivery.id),
            ..Delivery::new(ids.next(), delivery.endpoint_id, event, Origin::Replay, now)
        })
    };
    Ok(of.iter().filter_map(replay).collect())
}
