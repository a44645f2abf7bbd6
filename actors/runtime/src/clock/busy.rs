//! What is under way, so that a manual clock can wait for it.
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Activity {
    pub(super) count: AtomicU64,
    quiet: Notify,
}

/// Held by work under way. Costs nothing on the wall clock.
#[derive(Default)]
#[must_use = "dropping it says that the work is over"]
pub struct Busy(pub(super) Option<Arc<Activity>>);

impl Clone for Busy {
    fn clone(&self) -> Self {
        if let Some(activity) = &self.0 {
            activity.count.fetch_add(1, Ordering::SeqCst);
        }
        Busy(self.0.clone())
    }
}
impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(activity) = &self.0
            && activity.count.fetch_sub(1, Ordering::SeqCst) == 1
        {
            activity.quiet.notify_waiters();
        }
    }
}

/// Waits until nothing is under way.
pub(super) async fn quiet(activity: &Activity) {
    loop {
        let notified = activity.quiet.notified();
        tokio::pin!(notified);
        // Registered before the look at the counter, so that no wake-up falls between the two.
        notified.as_mut().enable();
        if activity.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        notified.await;
    }
}
