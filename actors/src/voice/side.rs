//! What a line can do beside carrying sound.
use entities::values::E164;
use futures_util::future::{BoxFuture, FutureExt, ready};

/// Of one line.
pub trait Side: Send + Sync {
    /// Keys that the agent presses.
    fn press(&self, digits: &str);
    /// Calls somebody else to take over; `Err`: why nobody did. It may be dropped: then nobody is wanted any more.
    fn hand_over<'a>(&'a self, to: &'a E164) -> BoxFuture<'a, Result<(), String>>;
}

/// A browser's: nobody there listens to keys, and it has no telephone line.
pub struct Browser;

impl Side for Browser {
    fn press(&self, _: &str) {}

    fn hand_over<'a>(&'a self, _: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        ready(Err("a room has no telephone line".to_owned())).boxed()
    }
}
