//! The moment at which something is decided, by both clocks.
use super::Moment;

/// Now, by our time and by the wall clock of the machine. Mostly they are the same; after the wall clock was set they are not,
/// and what must not happen outside its hours must not happen by either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub ours: Moment,
    pub wall: Moment,
    /// The wall clock has stepped, and nobody knows yet whether it is right.
    pub in_doubt: bool,
}

impl Times {
    /// Of one clock that is believed.
    pub fn at(now: Moment) -> Self {
        Times {
            ours: now,
            wall: now,
            in_doubt: false,
        }
    }

    /// How far the wall clock is behind our time; negative: ahead of it.
    pub fn behind_ms(self) -> i64 {
        self.ours.millis() - self.wall.millis()
    }

    /// For what is erased when it is old: too early is worse than too late.
    pub fn earlier(self) -> Moment {
        self.ours.min(self.wall)
    }

    /// For what opens something until a moment: too late is worse than too early.
    pub fn later(self) -> Moment {
        self.ours.max(self.wall)
    }
}
