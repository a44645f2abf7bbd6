//! Talks that are being classified.
use entities::ids::SessionId;
use runtime::job::Running;
use tokio::sync::Semaphore;

/// Talks that are being classified.
pub struct Evaluations {
    pub(super) running: Running<SessionId>,
    pub(super) permits: Semaphore,
}

/// A model that is asked too much at once answers nobody.
const AT_ONCE: usize = 8;

impl Default for Evaluations {
    fn default() -> Self {
        Evaluations {
            running: Running::default(),
            permits: Semaphore::new(AT_ONCE),
        }
    }
}
