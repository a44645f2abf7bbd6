//! Waiting in the time of the machine: a peer's timers and sound go by it, whatever the service's clock says.
use std::time::Instant;

/// For ever, if there is no such moment.
#[expect(clippy::disallowed_methods, reason = "SIP and sound run in real time")]
pub async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
