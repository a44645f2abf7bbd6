//! Sending again what an endpoint missed: a stored job in slices, oldest first, that goes on after a crash.
//!
//! | Missed delivery | What becomes of it |
//! |---|---|
//! | held | pending, due at once |
//! | held, and its 24 hours since the first attempt are over | cancelled, and a replay goes out in its place |
//! | failed | a replay goes out |
//! | any, and the event has arrived or is on its way otherwise | nothing; one that is held is cancelled |
//!
//! Each slice is one transaction that also moves the job's cursor: done once, however often it is run.
use crate::{deps::Deps, router::LaneHint, slices::Slices};
use entities::{
    Error, Result, boxed,
    connection::Transaction,
    delivery::{self, Model as Delivery, Origin, Status as DeliveryStatus},
    event,
    ids::{DeliveryId, EndpointId, RecoveryId, TenantScoped},
    recovery::{self, Model as Recovery, Status},
    values::Moment,
    webhook_endpoint::{self as endpoint, Status as EndpointStatus},
};
use rules::{commit::Commit, delivery::machine};
use std::collections::HashMap;

/// Deliveries dealt with in one transaction, at most.
const MOST: usize = 500;

/// Stores the job and starts it. One at a time per endpoint.
#[boxed]
pub async fn start(
    deps: &Deps,
    id: RecoveryId,
    endpoint: TenantScoped<EndpointId>,
    (since, until): (Moment, Option<Moment>),
) -> Result<Recovery> {
    let now = deps.clock.now();
    let job = Recovery {
        id,
        tenant_id: endpoint.tenant_id,
        env: endpoint.env,
        endpoint_id: endpoint.id,
        since,
        // What this very job sends again, and fails, is none of its own business.
        until: until.map_or(now, |until| until.min(now)),
        status: Status::Running,
        after_id: None,
        released: 0,
        replayed: 0,
        created_at: now,
        ended_at: None,
    };
    let row = job.clone();
    deps.writer
        .run(endpoint.tenant_id, move |db| {
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

async fn check(db: &Transaction, job: &Recovery) -> Result<()> {
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
pub fn run(deps: &Deps, id: RecoveryId, endpoint: TenantScoped<EndpointId>) {
    let work = {
        let deps = deps.clone();
        async move { slices(&deps, id, endpoint).await }
    };
    deps.jobs.run(&deps.recoveries, id, "recovery", work);
}

/// Looks at the log with a reader, slice by slice; the writer gets only what there is to do.
async fn slices(deps: &Deps, id: RecoveryId, endpoint: TenantScoped<EndpointId>) -> Result<()> {
    let Some(job) = recovery::load(&deps.db.read, id).await? else {
        return Ok(());
    };
    let mut after = job.after_id.unwrap_or(DeliveryId::floor(job.since));
    let mut slices = Slices::new(MOST);
    loop {
        let rows = slices.rows();
        let seen = delivery::log_after(&deps.db.read, endpoint.id, after, rows as u64).await?;
        let ends = seen.len() < rows || seen.last().is_some_and(|last| last.created_at >= job.until);
        after = seen.last().map_or(after, |last| last.id);
        let missed: Vec<DeliveryId> = seen
            .iter()
            .filter(|delivery| is_missed(delivery, &job))
            .map(|row| row.id)
            .collect();
        if missed.is_empty() && !ends {
            continue;
        }
        let (ids, clock, schedule) = (deps.ids.clone(), deps.clock.clone(), deps.limits.schedule.clone());
        let goes_on = slices
            .write(deps, endpoint.tenant_id, move |db| {
                let (ids, clock, schedule, missed) = (ids.clone(), clock.clone(), schedule.clone(), missed.clone());
                Box::pin(async move {
                    let Some(mut job) = recovery::load(db, id)
                        .await?
                        .filter(|job| job.status == Status::Running)
                    else {
                        return Ok((false, Commit::default()));
                    };
                    job.after_id = Some(after);
                    slice(db, job, &missed, ends, &ids, &schedule, clock.now()).await
                })
            })
            .await?;
        deps.router.lane(endpoint, LaneHint::Wake);
        if !goes_on {
            return Ok(());
        }
    }
}

/// Live ones, and replays that came to no better end.
fn is_missed(delivery: &Delivery, job: &Recovery) -> bool {
    let missed = matches!(delivery.status, DeliveryStatus::Held | DeliveryStatus::Failed);
    let span = delivery.created_at >= job.since && delivery.created_at < job.until;
    missed && span && delivery.origin != Origin::Test
}

/// One slice: answers whether another follows.
async fn slice(
    db: &Transaction,
    mut job: Recovery,
    missed: &[DeliveryId],
    ends: bool,
    ids: &runtime::ids::Ids,
    schedule: &machine::Schedule,
    now: Moment,
) -> Result<(bool, Commit)> {
    let receives = match endpoint::load(db, job.endpoint()).await {
        Ok(endpoint) => endpoint.status == EndpointStatus::Active,
        Err(Error::NotFound(_)) => false,
        Err(error) => return Err(error),
    };
    let mut commit = Commit::default();
    if receives {
        let missed = delivery::of_ids(db, job.endpoint_id, missed).await?;
        let missed: Vec<_> = missed
            .into_iter()
            .filter(|delivery| is_missed(delivery, &job))
            .collect();
        let seqs: Vec<i64> = missed.iter().map(|delivery| delivery.event_seq).collect();
        let mut on_their_way = delivery::on_their_way(db, job.endpoint_id, &seqs).await?;
        // Once each: an event may have failed more than once, live and as a replay.
        let (fresh, known): (Vec<_>, Vec<_>) = missed
            .iter()
            .partition(|delivery| on_their_way.insert(delivery.event_seq));
        let (released, again): (Vec<_>, Vec<_>) = fresh.into_iter().partition(|delivery| {
            delivery.status == DeliveryStatus::Held && !machine::is_expired(delivery, schedule, now)
        });
        let released: Vec<_> = released.into_iter().map(|delivery| delivery.id).collect();
        delivery::release(db, job.endpoint_id, &released, now).await?;
        commit.changes.deliveries = replays(db, &again, ids, now).await?;
        let superseded = again
            .iter()
            .chain(&known)
            .filter(|delivery| delivery.status == DeliveryStatus::Held);
        commit.changes.delivery_updates = superseded
            .map(|delivery| Delivery {
                status: DeliveryStatus::Cancelled,
                ..(*delivery).clone()
            })
            .collect();
        job.released += i64::try_from(released.len()).unwrap_or(0);
        job.replayed += i64::try_from(commit.changes.deliveries.len()).unwrap_or(0);
    }
    if ends || !receives {
        job.status = if receives { Status::Completed } else { Status::Stopped };
        job.ended_at = Some(now);
    }
    recovery::save(db, &job).await?;
    Ok((job.status == Status::Running, commit))
}

async fn replays(db: &Transaction, of: &[&Delivery], ids: &runtime::ids::Ids, now: Moment) -> Result<Vec<Delivery>> {
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
