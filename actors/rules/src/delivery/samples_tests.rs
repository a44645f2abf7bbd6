//! An endpoint, deliveries and answers, for the tests of all that deals with deliveries.
use crate::{
    credits::terms::Terms,
    delivery::{
        failure::Timings,
        machine::{AttemptOutcome, Schedule},
        queue::Item,
        report::Report,
        settle::EndpointState,
    },
    limits::{Limits, Retention},
};
use entities::{
    delivery::{Model as Delivery, Origin},
    delivery_attempt::ResponseHeaders,
    event,
    ids::{DeliveryId, EndpointId, EventId, TenantId},
    values::{Env, Moment, WebhookUrl},
    webhook_endpoint::{Model as Endpoint, Ordering, Patterns, Status},
};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

pub(super) fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

/// Suspended by so many failures in a row.
pub(super) fn limits(suspend_after: i32) -> Limits {
    Limits {
        max_calls_per_second: 1.0,
        max_concurrency: 1,
        schedule: Schedule::default(),
        suspend_after,
        retention: Retention::default(),
        number_cap_24h: 0,
        number_cap_7d: 0,
        call_price_cents_per_minute: 0,
        sms_price_cents_per_segment: 0,
        email_price_cents: 0,
        credits: Terms::default(),
        allow_costly_numbers: false,
        blocked_prefixes: Default::default(),
        opt_out_purge_grace: Duration::ZERO,
    }
}

/// Keeps the order; eight at once.
#[rustfmt::skip]
pub(super) fn endpoint(status: Status, version: i32) -> Endpoint {
    Endpoint {
        id: EndpointId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        url: WebhookUrl::parse("https://receiver.test/").unwrap(), event_types: Patterns(vec!["*".into()]),
        description: None, timeout_ms: 15_000, max_concurrency: 8, ordering: Ordering::Session,
        sealed_headers: "headers".into(), status, failure_streak: 0, suspended_at: None,
        sealed_secret: "secret".into(), secret_hint: "abcd".into(),
        sealed_previous_secret: None, previous_secret_expires_at: None,
        version, created_at: at(0), updated_at: at(0), deleted_at: None,
    }
}

pub(super) fn endpoint_state(endpoint: Endpoint) -> EndpointState {
    EndpointState {
        endpoint: Some(endpoint.clone()),
        ..EndpointState::new(endpoint.id)
    }
}

/// A live one, due `now`.
pub(super) fn item(number: i64, subject: u128, now: Moment) -> Item {
    let id = Uuid::from_u128(u128::try_from(number).unwrap());
    let event = event::Model {
        seq: number,
        id: EventId(id),
        tenant_id: TenantId(Uuid::from_u128(2)),
        env: Env::Test,
        event_type: "session.started".into(),
        subject_id: Uuid::from_u128(subject),
        created_at: now,
        body: "{}".into(),
    };
    let delivery = Delivery::new(
        DeliveryId(id),
        EndpointId(Uuid::from_u128(1)),
        &event,
        Origin::Live,
        now,
    );
    (delivery, Arc::new(event))
}

/// An answer without `Retry-After`.
pub(super) fn answer(status: u16) -> AttemptOutcome {
    AttemptOutcome::Answered {
        status,
        retry_after: None,
    }
}

/// An answer that asks for a pause.
pub(super) fn asking(status: u16, seconds: u64) -> AttemptOutcome {
    AttemptOutcome::Answered {
        status,
        retry_after: Some(Duration::from_secs(seconds)),
    }
}

pub(super) fn report(outcome: AttemptOutcome, started_at: Moment) -> Report {
    Report {
        outcome,
        started_at,
        signed_at: 0,
        timings: Timings::default(),
        remote: None,
        response_headers: ResponseHeaders::default(),
        response_body: None,
    }
}
