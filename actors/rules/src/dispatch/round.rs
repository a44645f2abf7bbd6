//! How much one round does at most, and when the next one is due.
use entities::values::Moment;

/// Calls committed together.
pub const ROUND: usize = 128;
/// The moment at which there may be something to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeAt(pub Option<Moment>);

impl WakeAt {
    pub fn no_later_than(&mut self, at: Moment) {
        self.0 = Some(self.0.map_or(at, |known| known.min(at)));
    }
}
