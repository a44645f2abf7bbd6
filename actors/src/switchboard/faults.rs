//! Test switch: whichever part of the switchboard looks next panics, as a fault of ours would make it. Nothing in the service turns it.
use std::sync::atomic::{AtomicBool, Ordering};

/// What panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The task of a call that is talked on.
    Call,
    /// What a media thread does for the leg of one.
    Sound,
    /// The task that speaks with a trunk's peer.
    Trunk,
}

#[derive(Debug, Default)]
pub struct Faults {
    call: AtomicBool,
    sound: AtomicBool,
    trunk: AtomicBool,
}

impl Faults {
    fn of(&self, part: Part) -> &AtomicBool {
        match part {
            Part::Call => &self.call,
            Part::Sound => &self.sound,
            Part::Trunk => &self.trunk,
        }
    }

    pub fn set(&self, part: Part) {
        self.of(part).store(true, Ordering::SeqCst);
    }

    /// `true` once for each time that it was set.
    pub fn take(&self, part: Part) -> bool {
        self.of(part).swap(false, Ordering::SeqCst)
    }
}
