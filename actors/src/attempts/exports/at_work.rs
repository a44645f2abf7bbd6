//! Exports that are being written.
use entities::{Error, Result, ids::ComplianceExportId};
use runtime::job::Running;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Exports that are being written.
pub struct Exports {
    pub(super) running: Running<ComplianceExportId>,
    turns: Semaphore,
}

/// Parts of all workspaces that are made at once: each is put together in memory.
const AT_ONCE: usize = 4;

impl Default for Exports {
    fn default() -> Self {
        Exports {
            running: Running::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl Exports {
    /// Waits until a part may be made. Who has come first goes first, so that no workspace waits for all parts of another.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        let closed = |_| Error::Unavailable("the service is shutting down".into());
        self.turns.acquire().await.map_err(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn so_many_parts_are_made_at_once_and_no_more() {
        let exports = Exports::default();
        let mut held: Vec<_> = (0..AT_ONCE)
            .map(|_| exports.turn().now_or_never().unwrap().unwrap())
            .collect();
        assert!(exports.turn().now_or_never().is_none());
        held.pop();
        assert!(exports.turn().now_or_never().unwrap().is_ok());
    }
}
