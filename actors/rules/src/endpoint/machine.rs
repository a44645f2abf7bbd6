//! A webhook endpoint. Deleted is final.
//!
//! | From | Command | To |
//! |---|---|---|
//! | active | `CountFailure`, the tenth in a row or a 410 | suspended: the notice, an e-mail, what is open is held |
//! | suspended | `Enable`, or a change to `active` | active: nothing is sent by itself |
//! | active, suspended | a change to `disabled` | disabled: what is open is cancelled |
//! | disabled | `Enable`, or a change to `active` | active |
//! | any | `Delete` | deleted: what is open or held is cancelled |
//!
//! Source: specification, "Webhook endpoint"; CONTRACT §6.
use super::notice;
use crate::{
    effect::{Effect, Fact, Hint},
    event::WebhookEndpointDisabledNotice,
    machine::Machine,
};
use entities::{
    Error, Result,
    changes::Queue,
    ids::{EndpointId, TenantScoped},
    values::{Moment, WebhookUrl},
    webhook_endpoint::{Model as Endpoint, Ordering, Patterns, Status},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Tick,
    Change(Change),
    Enable,
    /// A new secret; the one before signs along for `overlap`.
    RotateSecret {
        sealed_secret: String,
        secret_hint: String,
        overlap: Duration,
    },
    RevokePreviousSecret,
    /// A live delivery succeeded.
    CountSuccess,
    /// A live delivery ended failed. `last_status` is 0 when no answer came.
    CountFailure {
        last_status: u16,
        suspend_after: i32,
    },
    Delete,
}

/// What a PATCH may change; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub url: Option<WebhookUrl>,
    pub event_types: Option<Patterns>,
    pub description: Option<Option<String>>,
    pub timeout_ms: Option<i32>,
    pub sealed_headers: Option<String>,
    pub max_concurrency: Option<i32>,
    pub ordering: Option<Ordering>,
    pub status: Option<Switch>,
}

/// What its user may make of it; `suspended` is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    Active,
    Disabled,
}

/// "The receiver is gone for good."
const GONE: u16 = 410;

/// The whole life of an endpoint. Pure.
pub fn transition(endpoint: Endpoint, command: Command, now: Moment) -> Result<(Endpoint, Vec<Effect>)> {
    use Command::*;
    match (endpoint.deleted_at, command) {
        (None, Tick) => Ok(forget_previous_secret(endpoint, now)),
        (None, Change(change)) => Ok(apply(endpoint, change, now)),
        (None, Enable) => Ok(enable(endpoint, now)),
        (
            None,
            RotateSecret {
                sealed_secret,
                secret_hint,
                overlap,
            },
        ) => Ok(rotate(endpoint, sealed_secret, secret_hint, overlap, now)),
        (None, RevokePreviousSecret) => Ok(revoke_previous_secret(endpoint, now)),
        (None, CountSuccess) => Ok((
            Endpoint {
                failure_streak: 0,
                ..endpoint
            },
            Vec::new(),
        )),
        (
            None,
            CountFailure {
                last_status,
                suspend_after,
            },
        ) => Ok(count_failure(endpoint, last_status, suspend_after, now)),
        (None, Delete) => Ok(delete(endpoint, now)),
        // Attempts under way outlive their endpoint.
        (_, Tick) | (Some(_), Delete | CountSuccess | CountFailure { .. }) => Ok((endpoint, Vec::new())),
        (Some(_), Change(_) | Enable | RotateSecret { .. } | RevokePreviousSecret) => {
            Err(Error::NotFound("webhook endpoint"))
        }
    }
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(endpoint: &Endpoint) -> Option<Moment> {
    endpoint
        .previous_secret_expires_at
        .filter(|_| endpoint.deleted_at.is_none())
}

fn apply(mut endpoint: Endpoint, change: Change, now: Moment) -> (Endpoint, Vec<Effect>) {
    let before = endpoint.clone();
    let Change {
        url,
        event_types,
        description,
        timeout_ms,
        sealed_headers,
        max_concurrency,
        ordering,
        status,
    } = change;
    endpoint.url = url.unwrap_or(endpoint.url);
    endpoint.event_types = event_types.unwrap_or(endpoint.event_types);
    endpoint.description = description.unwrap_or(endpoint.description);
    endpoint.timeout_ms = timeout_ms.unwrap_or(endpoint.timeout_ms);
    endpoint.sealed_headers = sealed_headers.unwrap_or(endpoint.sealed_headers);
    endpoint.max_concurrency = max_concurrency.unwrap_or(endpoint.max_concurrency);
    endpoint.ordering = ordering.unwrap_or(endpoint.ordering);
    let mut effects = Vec::new();
    match (endpoint.status, status) {
        (Status::Suspended | Status::Disabled, Some(Switch::Active)) => wake(&mut endpoint),
        (Status::Active | Status::Suspended, Some(Switch::Disabled)) => {
            endpoint.status = Status::Disabled;
            endpoint.suspended_at = None;
            effects.push(queue(&endpoint, Queue::CancelOpen));
        }
        (Status::Active, Some(Switch::Active)) | (Status::Disabled, Some(Switch::Disabled)) | (_, None) => {}
    }
    if endpoint == before {
        return (endpoint, Vec::new());
    }
    changed(endpoint, effects, now)
}

fn enable(mut endpoint: Endpoint, now: Moment) -> (Endpoint, Vec<Effect>) {
    let before = endpoint.clone();
    wake(&mut endpoint);
    if endpoint == before {
        return (endpoint, Vec::new());
    }
    changed(endpoint, Vec::new(), now)
}

/// It receives again, with a clean record. What is held stays so until it is recovered.
fn wake(endpoint: &mut Endpoint) {
    endpoint.status = Status::Active;
    endpoint.failure_streak = 0;
    endpoint.suspended_at = None;
}

fn rotate(
    mut endpoint: Endpoint,
    sealed_secret: String,
    secret_hint: String,
    overlap: Duration,
    now: Moment,
) -> (Endpoint, Vec<Effect>) {
    let replaced = std::mem::replace(&mut endpoint.sealed_secret, sealed_secret);
    endpoint.secret_hint = secret_hint;
    // Of an overlap under way the oldest secret ends now: two sign at most.
    let overlaps = !overlap.is_zero();
    endpoint.sealed_previous_secret = overlaps.then_some(replaced);
    endpoint.previous_secret_expires_at = overlaps.then(|| now.plus(overlap));
    changed(endpoint, Vec::new(), now)
}

fn revoke_previous_secret(mut endpoint: Endpoint, now: Moment) -> (Endpoint, Vec<Effect>) {
    if endpoint.sealed_previous_secret.is_none() {
        return (endpoint, Vec::new());
    }
    endpoint.sealed_previous_secret = None;
    endpoint.previous_secret_expires_at = None;
    changed(endpoint, Vec::new(), now)
}

fn forget_previous_secret(endpoint: Endpoint, now: Moment) -> (Endpoint, Vec<Effect>) {
    match endpoint.previous_secret_expires_at {
        Some(expires_at) if now >= expires_at => revoke_previous_secret(endpoint, now),
        Some(_) | None => (endpoint, Vec::new()),
    }
}

fn count_failure(mut endpoint: Endpoint, last_status: u16, suspend_after: i32, now: Moment) -> (Endpoint, Vec<Effect>) {
    endpoint.failure_streak = endpoint.failure_streak.saturating_add(1);
    let too_many = endpoint.failure_streak >= suspend_after || last_status == GONE;
    match endpoint.status {
        Status::Active if too_many => suspend(endpoint, last_status, now),
        // What was under way when it stopped still counts.
        Status::Active | Status::Suspended | Status::Disabled => (endpoint, Vec::new()),
    }
}

/// What happens when an endpoint is suspended: this list, in this order.
fn suspend(mut endpoint: Endpoint, last_status: u16, now: Moment) -> (Endpoint, Vec<Effect>) {
    endpoint.status = Status::Suspended;
    endpoint.suspended_at = Some(now);
    let notice = WebhookEndpointDisabledNotice {
        endpoint_id: endpoint.id,
        url: endpoint.url.as_str().to_owned(),
        disabled_at: now,
        failure_streak: endpoint.failure_streak,
        last_status: last_status.into(),
    };
    let effects = vec![
        queue(&endpoint, Queue::Hold),
        Fact::MailOwners(notice::mail(&endpoint, &notice)).into(),
        Effect::emit(notice),
        Hint::MailQueued.into(),
    ];
    changed(endpoint, effects, now)
}

fn delete(mut endpoint: Endpoint, now: Moment) -> (Endpoint, Vec<Effect>) {
    endpoint.deleted_at = Some(now);
    let effects = vec![queue(&endpoint, Queue::CancelAll)];
    changed(endpoint, effects, now)
}

fn queue(endpoint: &Endpoint, queue: Queue) -> Effect {
    Fact::Deliveries {
        endpoint: endpoint.key(),
        queue,
    }
    .into()
}

fn changed(mut endpoint: Endpoint, mut effects: Vec<Effect>, now: Moment) -> (Endpoint, Vec<Effect>) {
    endpoint.updated_at = now;
    effects.push(Hint::EndpointChanged(endpoint.key()).into());
    (endpoint, effects)
}

impl Machine for Endpoint {
    type Key = EndpointId;
    type Command = Command;
    const KIND: &'static str = "endpoint";
    const TICK: Command = Command::Tick;

    fn owner(&self) -> TenantScoped<EndpointId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        next_deadline(self)
    }
    fn version(&self) -> i32 {
        self.version
    }
    /// Settings change rarely: read them when they do. A secret that signs along must be forgotten in time.
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
