//! What a lane reads: its endpoint, and what is due. What must not be sent any more is put away on the occasion.
use super::{attempt::Target, settling};
use crate::{deps::Deps, leases::Of};
use entities::{
    Result, boxed,
    changes::Queue as QueueChange,
    delivery::{self, Model as Delivery},
    endpoint_health, event,
    ids::{DeliveryId, EndpointId, TenantScoped},
    webhook_endpoint::{self as endpoint, Status},
};
use rules::{
    commit::{Commit, Committed},
    delivery::{
        lane::{Due, LaneSettings},
        queue::{Item, WINDOW_BYTES},
        settle::EndpointState,
    },
};
use runtime::at_rest;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The endpoint as it is now.
#[boxed]
pub async fn settings(deps: &Deps, id: TenantScoped<EndpointId>) -> Result<LaneSettings<Arc<Target>>> {
    let mut endpoint_state = EndpointState::new(id.id);
    endpoint_state.endpoint = settling::found(endpoint::load(&deps.db.read, id).await)?;
    if let Some(health) = endpoint_health::find(&deps.db.read, id.id).await? {
        endpoint_state.health = health;
    }
    let active = endpoint_state
        .endpoint
        .as_ref()
        .filter(|endpoint| endpoint.status == Status::Active);
    let target = active
        .map(|endpoint| Target::of(deps, endpoint))
        .transpose()?
        .map(Arc::new);
    if target.is_none() {
        put_away(deps, id).await?;
    }
    Ok(LaneSettings { target, endpoint_state })
}

/// Deliveries that are open although their endpoint is not active: the rest of a queue that was too long for the transaction
/// that stopped it, or what a crash left. Slice by slice, each with a look at what the endpoint is by then.
async fn put_away(deps: &Deps, id: TenantScoped<EndpointId>) -> Result<()> {
    loop {
        let endpoint = settling::found(endpoint::load(&deps.db.read, id).await)?;
        let left = delivery::has_open(&deps.db.read, id.id).await?
            || (endpoint.is_none() && delivery::has_held(&deps.db.read, id.id).await?);
        if !left || endpoint.is_some_and(|endpoint| endpoint.status == Status::Active) {
            return Ok(());
        }
        deps.writer
            .run(id.tenant_id, move |db| {
                Box::pin(async move {
                    let endpoint = settling::found(endpoint::load(db, id).await)?;
                    let queue = match endpoint.map(|endpoint| endpoint.status) {
                        Some(Status::Active) => return Ok(((), Commit::default())),
                        Some(Status::Suspended) => QueueChange::Hold,
                        Some(Status::Disabled) => QueueChange::CancelOpen,
                        None => QueueChange::CancelAll,
                    };
                    let mut commit = Commit::default();
                    commit.changes.queues.push((id.id, queue));
                    Ok(((), commit))
                })
            })
            .await?;
    }
}

/// Events read at once: their bodies may be large.
const READ: usize = 64;

/// What is due, in its order, but for what the lane has in hand.
#[boxed]
pub async fn due(
    deps: &Deps,
    key: TenantScoped<EndpointId>,
    limit: usize,
    in_hand: &HashSet<DeliveryId>,
) -> Result<Due> {
    let (endpoint, now) = (key.id, deps.clock.now());
    let rows = delivery::due(&deps.db.read, endpoint, now, limit as u64).await?;
    let mut more = rows.len() == limit;
    let rows: Vec<_> = rows.into_iter().filter(|row| !in_hand.contains(&row.id)).collect();
    let (mut deliveries, mut bytes): (Vec<Item>, usize) = (Vec::new(), 0);
    for rows in rows.chunks(READ) {
        if bytes >= WINDOW_BYTES {
            more = true;
            break;
        }
        let seqs: Vec<i64> = rows.iter().map(|row| row.event_seq).collect();
        let events = event::of_seqs(&deps.db.read, &seqs).await?;
        let events = events.into_iter().map(|event| {
            let event = at_rest::opened(&deps.keyring, event)?;
            Ok((event.seq, Arc::new(event)))
        });
        let events: HashMap<i64, Committed> = events.collect::<Result<_>>()?;
        let (there, gone): (Vec<_>, Vec<_>) = rows.iter().partition(|row| events.contains_key(&row.event_seq));
        for row in there {
            let event = &events[&row.event_seq];
            bytes += event.body.len();
            deliveries.push((row.clone(), event.clone()));
        }
        cancel(deps, key.tenant_id.into(), gone).await?;
    }
    let next_due_at = delivery::next_due_at(&deps.db.read, endpoint, now).await?;
    Ok(Due {
        deliveries,
        more,
        next_due_at,
    })
}

/// A replay of an event that was pruned at that moment has nothing left to send.
async fn cancel(deps: &Deps, of: Of, gone: Vec<&Delivery>) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    let cancelled = gone.into_iter().map(|delivery| Delivery {
        status: delivery::Status::Cancelled,
        next_attempt_at: None,
        ..delivery.clone()
    });
    let mut commit = Commit::default();
    commit.changes.delivery_updates = cancelled.collect();
    deps.writer.commit(of, commit).await
}
