//! The sandbox's calls.
use super::log::Log;
use crate::call::leg::{Control, Leg};
use entities::{ids::SessionId, values::Moment};
use runtime::clock::Busy;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
};
use tokio::{sync::mpsc, task::AbortHandle};

/// How the sandbox behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ringing and talking times are divided by it.
    pub speed: f64,
    /// Calls beyond so many a second are refused, as by a trunk that is full; 0: none is.
    pub calls_per_second: f64,
    /// Where its calls are noted; empty: nowhere.
    pub log: PathBuf,
}

pub struct Sandbox {
    pub(super) speed: f64,
    pub(super) rate: Option<Mutex<RateWindow>>,
    pub(super) log: Arc<Log>,
    pub(super) live: Arc<Mutex<Live>>,
}

pub type Live = HashMap<SessionId, Entry>;

pub struct Entry {
    pub(super) task: AbortHandle,
    pub(super) leg: Arc<Leg>,
    pub(super) inbox: mpsc::Sender<(Control, Option<Busy>)>,
    /// Its person waits to be told something.
    pub(super) listens: Arc<AtomicBool>,
}

/// What a call can be told before it listens.
pub const INBOX: usize = 16;

/// Calls of the current second.
pub struct RateWindow {
    pub(super) per_second: f64,
    pub(super) second: i64,
    pub(super) calls: f64,
}

impl RateWindow {
    pub(super) fn take(&mut self, now: Moment) -> bool {
        let second = now.millis().div_euclid(1000);
        if second != self.second {
            (self.second, self.calls) = (second, 0.0);
        }
        self.calls += 1.0;
        self.calls <= self.per_second
    }
}

impl Sandbox {
    pub fn new(options: Options) -> std::io::Result<Self> {
        let rate = RateWindow {
            per_second: options.calls_per_second,
            second: 0,
            calls: 0.0,
        };
        Ok(Sandbox {
            speed: options.speed,
            rate: (options.calls_per_second > 0.0).then_some(Mutex::new(rate)),
            log: Arc::new(Log::open(&options.log)?),
            live: Arc::default(),
        })
    }

    pub(super) fn has_room(&self, now: Moment) -> bool {
        let Some(rate) = &self.rate else { return true };
        rate.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }
}
