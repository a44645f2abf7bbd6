//! What a transaction waits for.
use std::time::{Duration, Instant};

/// When a message is sent again, and when a state ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// The moment, and the pause that leads there: timers A, E and G, and that of the 2xx.
    pub again: Option<(Instant, Duration)>,
    /// Timers B, D, F and K of a client, M; H, I, J and L of a server.
    pub ends_at: Option<Instant>,
}

impl Timers {
    pub const STOPPED: Timers = Timers {
        again: None,
        ends_at: None,
    };

    pub fn deadline(&self) -> Option<Instant> {
        let again = self.again.map(|(at, _)| at);
        [again, self.ends_at].into_iter().flatten().min()
    }

    pub fn has_ended(&self, now: Instant) -> bool {
        self.ends_at.is_some_and(|at| now >= at)
    }

    /// The pause that is over, if something is to be sent again now.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        self.again.filter(|(at, _)| now >= *at).map(|(_, pause)| pause)
    }

    /// After a stall only one copy is sent, not all that were missed: the next pause begins now.
    pub fn again_after(&mut self, pause: Duration, now: Instant) {
        self.again = Some((now + pause, pause));
    }
}
