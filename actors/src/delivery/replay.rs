//! Sending an event again, with the same id and bytes: to one endpoint, or to all that receive its type.
use crate::{deps::Deps, router::LaneHint};
use entities::{
    Error, Result, boxed,
    delivery::{self, Model as Delivery, Origin},
    event,
    ids::{DeliveryId, EndpointId, TenantScoped},
    values::Moment,
    webhook_endpoint::{self as endpoint, Status},
};
use rules::commit::Commit;

/// Makes the deliveries and wakes their lanes. Without an endpoint: all active ones that subscribe to the type.
#[boxed]
pub async fn replay(deps: &Deps, event: &event::Model, to: Option<EndpointId>) -> Result<Vec<Delivery>> {
    let receivers = receivers(deps, event, to).await?;
    let before = delivery::of_event(&deps.db.read, event).await?;
    let now = deps.clock.now();
    let replays: Vec<Delivery> = receivers
        .iter()
        .map(|receiver| of(deps.ids.next(), receiver.id, event, &before, now))
        .collect();
    let mut commit = Commit::default();
    commit.changes.deliveries = replays.clone();
    deps.writer.commit(event.tenant_id.into(), commit).await?;
    for receiver in receivers {
        deps.router.lane(receiver.key(), LaneHint::Wake);
    }
    Ok(replays)
}

fn of(id: DeliveryId, to: EndpointId, event: &event::Model, before: &[Delivery], now: Moment) -> Delivery {
    let original = before
        .iter()
        .find(|delivery| delivery.endpoint_id == to && delivery.origin == Origin::Live);
    Delivery {
        replay_of: original.map(|delivery| delivery.id),
        ..Delivery::new(id, to, event, Origin::Replay, now)
    }
}

async fn receivers(deps: &Deps, event: &event::Model, to: Option<EndpointId>) -> Result<Vec<endpoint::Model>> {
    let refused = |state, hint| Error::InvalidState {
        kind: "webhook endpoint",
        state,
        command: "receive a replay",
        hint,
    };
    let Some(id) = to else {
        let all = endpoint::active(&deps.db.read, event.tenant_id, event.env).await?;
        let subscribed: Vec<_> = all
            .into_iter()
            .filter(|endpoint| endpoint.event_types.matches(&event.event_type))
            .collect();
        if subscribed.is_empty() {
            return Err(refused(
                "missing",
                "no active endpoint subscribes to this type; name one with `endpoint_id`",
            ));
        }
        return Ok(subscribed);
    };
    let endpoint = endpoint::load(&deps.db.read, TenantScoped::new(event.tenant_id, event.env, id)).await?;
    match endpoint.status {
        Status::Active => Ok(vec![endpoint]),
        Status::Suspended => Err(refused("suspended", "POST …/enable first")),
        Status::Disabled => Err(refused("disabled", "set its `status` to `active` first")),
    }
}
