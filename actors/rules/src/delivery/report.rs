//! What is known after an attempt to deliver.
use super::{
    failure::{Failure, Timings},
    machine::{AttemptOutcome, Verdict},
};
use entities::{
    delivery::Model as Delivery,
    delivery_attempt::{self, ResponseHeaders},
    values::Moment,
};
use std::net::SocketAddr;

/// What is known after an attempt.
#[derive(Clone, Debug)]
pub struct Report {
    pub outcome: AttemptOutcome,
    pub started_at: Moment,
    /// Unix seconds in the signature's base.
    pub signed_at: i64,
    pub timings: Timings,
    pub remote: Option<SocketAddr>,
    pub response_headers: ResponseHeaders,
    pub response_body: Option<String>,
}

impl Report {
    /// For an attempt that ended in a fault of ours.
    pub fn of_fault(at: Moment) -> Self {
        Report {
            outcome: AttemptOutcome::Failed(Failure::BadAnswer("internal fault".into())),
            started_at: at,
            signed_at: 0,
            timings: Timings::default(),
            remote: None,
            response_headers: ResponseHeaders::default(),
            response_body: None,
        }
    }

    pub fn duration_ms(&self) -> i32 {
        millis(self.timings.total_us)
    }

    /// `None` after a success.
    pub fn error_code(&self) -> Option<&'static str> {
        match (&self.outcome, self.outcome.verdict()) {
            (_, Verdict::Delivered) => None,
            (AttemptOutcome::Answered { .. }, _) => Some("http_status"),
            (AttemptOutcome::Failed(failure), _) => Some(failure.code()),
        }
    }

    /// What went wrong, for people.
    pub fn error_message(&self) -> Option<String> {
        match (&self.outcome, self.outcome.verdict()) {
            (_, Verdict::Delivered) => None,
            (AttemptOutcome::Answered { status, .. }, _) => {
                Some(format!("the receiver answered {status}; any 2xx counts as success"))
            }
            (AttemptOutcome::Failed(Failure::Timeout), _) => {
                Some("no complete answer within the endpoint's timeout_ms".into())
            }
            (
                AttemptOutcome::Failed(
                    Failure::BlockedTarget(why)
                    | Failure::Dns(why)
                    | Failure::Connect(why)
                    | Failure::Tls(why)
                    | Failure::BadAnswer(why),
                ),
                _,
            ) => Some(why.chars().take(500).collect()),
        }
    }

    /// The attempt as it is logged; `delivery` has counted it.
    pub fn log(&self, delivery: &Delivery) -> delivery_attempt::Model {
        delivery_attempt::Model {
            delivery_id: delivery.id,
            n: delivery.attempts,
            started_at: self.started_at,
            signed_at: self.signed_at,
            duration_ms: self.duration_ms(),
            dns_ms: self.timings.dns_us.map(millis),
            connect_ms: self.timings.connect_us.map(millis),
            tls_ms: self.timings.tls_us.map(millis),
            first_byte_ms: self.timings.first_byte_us.map(millis),
            remote_address: self.remote.map(|address| address.to_string()),
            status: self.outcome.status().into(),
            error_code: self.error_code().map(str::to_owned),
            error_message: self.error_message(),
            response_headers: self.response_headers.clone(),
            response_body: self.response_body.clone(),
        }
    }
}

fn millis(micros: u64) -> i32 {
    i32::try_from(micros / 1000).unwrap_or(i32::MAX)
}
