//! What a lane knows of its endpoint's settings.
use super::message::LaneSettings;
use crate::delivery::settle::EndpointState;
use entities::{
    endpoint_health::Model as Health,
    webhook_endpoint::{Model as Endpoint, Ordering},
};

pub(super) enum Known<T> {
    /// They were not read yet. Nothing can be committed either: nobody knows what to count on.
    Nothing,
    /// They may have changed since they were read.
    Outdated(Option<Receiver<T>>),
    /// `None`: the endpoint is not active.
    Current(Option<Receiver<T>>),
}

pub(super) struct Receiver<T> {
    pub(super) target: T,
    pub(super) ordering: Ordering,
}

impl<T> Known<T> {
    pub(super) fn outdate(&mut self) {
        if let Known::Current(receiver) = self {
            *self = Known::Outdated(receiver.take());
        }
    }

    /// Nobody is sent to any more, as far as is known.
    pub(super) fn forget_receiver(&mut self) {
        match self {
            Known::Nothing => {}
            Known::Outdated(receiver) | Known::Current(receiver) => *receiver = None,
        }
    }

    pub(super) fn receiver(&self) -> Option<&Receiver<T>> {
        match self {
            Known::Nothing => None,
            Known::Outdated(receiver) | Known::Current(receiver) => receiver.as_ref(),
        }
    }

    pub(super) fn is_current(&self) -> bool {
        matches!(self, Known::Current(_))
    }
}

impl<T> LaneSettings<T> {
    pub(super) fn is_older_than(&self, known: &EndpointState) -> bool {
        let [read, known] =
            [&self.endpoint_state, known].map(|endpoint_state| version(endpoint_state.endpoint.as_ref()));
        // One that is deleted has no version, and nothing comes after it.
        read.is_some() && read < known
    }
}

pub(super) fn version(endpoint: Option<&Endpoint>) -> Option<i32> {
    endpoint.map(|endpoint| endpoint.version)
}

/// The newer of what is known and what was read or committed: an attempt since then may have asked for a longer pause.
pub(super) fn newer(known: &Health, other: Health) -> Health {
    Health {
        last_success_at: known.last_success_at.max(other.last_success_at),
        paused_until: known.paused_until.max(other.paused_until),
        ..other
    }
}
