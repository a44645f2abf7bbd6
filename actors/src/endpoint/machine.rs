//! A webhook endpoint: active <-> disabled, and deleted from either. Deleted is final.
use crate::effect::Effect;
use entities::{
    Error, Result,
    values::{Moment, WebhookUrl},
    webhook_endpoint::{Model as Endpoint, Patterns, Status},
};

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Tick,
    Change(Change),
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
    pub status: Option<Status>,
}

/// The whole life of an endpoint. Pure.
pub fn transition(endpoint: Endpoint, command: Command, now: Moment) -> Result<(Endpoint, Vec<Effect>)> {
    match (endpoint.deleted_at, command) {
        (None, Command::Change(change)) => Ok(apply(endpoint, change, now)),
        (None, Command::Delete) => Ok(delete(endpoint, now)),
        (_, Command::Tick) | (Some(_), Command::Delete) => Ok((endpoint, Vec::new())),
        (Some(_), Command::Change(_)) => Err(Error::NotFound("webhook endpoint")),
    }
}

/// The next moment at which `Tick` can matter.
pub fn next_deadline(_: &Endpoint) -> Option<Moment> {
    None
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
        status,
    } = change;
    endpoint.url = url.unwrap_or(endpoint.url);
    endpoint.event_types = event_types.unwrap_or(endpoint.event_types);
    endpoint.description = description.unwrap_or(endpoint.description);
    endpoint.timeout_ms = timeout_ms.unwrap_or(endpoint.timeout_ms);
    endpoint.sealed_headers = sealed_headers.unwrap_or(endpoint.sealed_headers);
    endpoint.max_concurrency = max_concurrency.unwrap_or(endpoint.max_concurrency);
    endpoint.status = status.unwrap_or(endpoint.status);
    if endpoint == before {
        return (endpoint, Vec::new());
    }
    endpoint.updated_at = now;
    let mut effects = Vec::new();
    if before.status == Status::Active && endpoint.status == Status::Disabled {
        effects.push(Effect::CancelDeliveries {
            endpoint: endpoint.key(),
        });
    }
    effects.push(Effect::EndpointChanged(endpoint.key()));
    (endpoint, effects)
}

fn delete(mut endpoint: Endpoint, now: Moment) -> (Endpoint, Vec<Effect>) {
    endpoint.deleted_at = Some(now);
    endpoint.updated_at = now;
    let effects = vec![
        Effect::CancelDeliveries {
            endpoint: endpoint.key(),
        },
        Effect::EndpointChanged(endpoint.key()),
    ];
    (endpoint, effects)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
