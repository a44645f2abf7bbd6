//! As the operator says: events with their deliveries, answers of receivers, messages.
use super::{KEEP_LINKS, before};
use crate::{deps::Deps, leases::Of, slices::Slices};
use entities::{
    Result, boxed, caller_rest, delivery, delivery_attempt, email_message, endpoint_hour, event, ids::DeliveryId, mail,
    meta, number_hour, recovery, sms_message, values::Moment,
};
use rules::commit::Commit;
use std::time::Duration;

/// Events, messages or attempts in one transaction, at most.
const MOST: usize = 500;
/// Slices in one run: a backlog is worked off over some runs.
const SLICES: usize = 2000;
/// Ids named in one statement.
const NAMED: usize = 500;

#[boxed]
pub async fn prune(deps: &Deps) -> Result<()> {
    if !deps.fence.leases().serves(Of::Installation) {
        return Ok(());
    }
    let times = deps.clock.times();
    if times.in_doubt {
        return Ok(());
    }
    let now = times.earlier();
    let old = before(now, deps.limits.retention.events);
    events(deps, old).await?;
    answers(deps, before(now, deps.limits.retention.answers)).await?;
    texts(deps, old).await?;
    emails(deps, old, old.min(before(now, KEEP_LINKS))).await?;
    rests_of_people(deps, before(now, KEEP_RESTS)).await?;
    callers(deps, before(now, KEEP_CALLERS)).await?;
    rest(deps, old).await
}

/// The longest rest that a law asks for is a year. Source: RCW 80.36.390 (Washington).
const KEEP_RESTS: Duration = Duration::from_secs(400 * 24 * 3600);
/// A day is what is looked at.
const KEEP_CALLERS: Duration = Duration::from_secs(35 * 24 * 3600);

async fn rests_of_people(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    for _ in 0..SLICES {
        let Some(until) = entities::rest::oldest(&deps.db.read, before, slices.rows() as u64).await? else {
            return Ok(());
        };
        let slice = slices.write(deps, Of::Installation, move |db| {
            Box::pin(async move {
                entities::rest::prune(db, until).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
    Ok(())
}

async fn callers(deps: &Deps, before: Moment) -> Result<()> {
    if !number_hour::any_before(&deps.db.read, before).await? {
        return Ok(());
    }
    deps.writer
        .run(Of::Installation, move |db| {
            Box::pin(async move {
                number_hour::prune(db, before).await?;
                caller_rest::prune(db, before).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

async fn texts(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    for _ in 0..SLICES {
        let ids = sms_message::oldest(&deps.db.read, before, slices.rows() as u64).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let slice = slices.write(deps, Of::Installation, move |db| {
            let ids = ids.clone();
            Box::pin(async move {
                sms_message::prune(db, &ids).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
    Ok(())
}

async fn emails(deps: &Deps, before: Moment, marketing_before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    for _ in 0..SLICES {
        let ids = email_message::oldest(&deps.db.read, before, marketing_before, slices.rows() as u64).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let slice = slices.write(deps, Of::Installation, move |db| {
            let ids = ids.clone();
            Box::pin(async move {
                email_message::prune(db, &ids).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
    Ok(())
}

async fn events(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    // Events that are still to be delivered stay: the next slice begins behind them.
    let mut after = 0;
    for _ in 0..SLICES {
        // Looked up by a reader first: mostly there is nothing, and the writer is not asked.
        let seqs = event::oldest(&deps.db.read, deps.share(), after, before, slices.rows() as u64).await?;
        let Some(last) = seqs.last() else { return Ok(()) };
        after = *last;
        let slice = slices.write(deps, Of::Installation, move |db| {
            let seqs = seqs.clone();
            Box::pin(async move {
                let deliveries = delivery::prune(db, &seqs).await?;
                for ids in deliveries.chunks(NAMED) {
                    delivery_attempt::prune(db, ids).await?;
                }
                event::prune(db, &seqs).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
    Ok(())
}

async fn answers(deps: &Deps, before: Moment) -> Result<()> {
    let mut slices = Slices::new(MOST);
    for _ in 0..SLICES {
        let before = DeliveryId::floor(before);
        let after = meta::get(&deps.db.read, meta::FORGOTTEN_ANSWERS)
            .await?
            .and_then(|id| id.parse().ok());
        if !delivery_attempt::any_between(&deps.db.read, after, before).await? {
            return Ok(());
        }
        let rows = slices.rows() as u64;
        let slice = slices.write(deps, Of::Installation, move |db| {
            Box::pin(async move {
                if let Some(last) = delivery_attempt::forget_answers(db, after, before, rows).await? {
                    meta::set(db, meta::FORGOTTEN_ANSWERS, &last.to_string()).await?;
                }
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
    Ok(())
}

async fn rest(deps: &Deps, before: Moment) -> Result<()> {
    let db = &deps.db.read;
    let any = endpoint_hour::any_before(db, before).await?
        || recovery::any_before(db, before).await?
        || mail::any_before(db, before).await?;
    if !any {
        return Ok(());
    }
    deps.writer
        .run(Of::Installation, move |db| {
            Box::pin(async move {
                endpoint_hour::prune(db, before).await?;
                recovery::prune(db, before).await?;
                mail::prune(db, before).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}
