//! Until a moment that may never come.
use futures_util::future::pending;
use tokio::time::{Instant, timeout_at};

/// Never, if there is no such moment.
pub async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => {
            // What stands behind never comes: this is a pause.
            let _ = timeout_at(moment, pending::<()>()).await;
        }
        None => pending().await,
    }
}
