//! Stored jobs: worked off in slices in the background, and taken up again by the reconcile after whatever stopped them.
use crate::{clock::Clock, supervise::panic_text};
use entities::Result;
use futures_util::FutureExt;
use std::{
    collections::HashSet,
    fmt::Display,
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::runtime::Handle;

/// Jobs that are being worked off, so that a reconcile starts none a second time.
pub struct Running<I>(Arc<Mutex<HashSet<I>>>);

impl<I> Default for Running<I> {
    fn default() -> Self {
        Running(Arc::default())
    }
}

struct AtWork<I: Copy + Eq + Hash>(Arc<Mutex<HashSet<I>>>, I);
impl<I: Copy + Eq + Hash> Drop for AtWork<I> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

impl<I: Copy + Eq + Hash> Running<I> {
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Is that one being worked off?
    pub fn is_at_work(&self, id: I) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    fn begin(&self, id: I) -> Option<AtWork<I>> {
        let fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        fresh.then(|| AtWork(self.0.clone(), id))
    }
}

/// What jobs are run with. Cloning is cheap.
#[derive(Clone)]
pub struct Jobs {
    pub clock: Clock,
    pub runtime: Handle,
}

impl Jobs {
    /// Works a job off, unless somebody is at it already.
    pub fn run<I>(
        &self,
        running: &Running<I>,
        id: I,
        what: &'static str,
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) where
        I: Copy + Eq + Hash + Display + Send + 'static,
    {
        let Some(at_work) = running.begin(id) else { return };
        let busy = self.clock.busy();
        self.runtime.spawn(async move {
            let (_busy, _at_work) = (busy, at_work);
            match AssertUnwindSafe(work).catch_unwind().await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, %id, "a {what} was interrupted; it goes on soon"),
                Err(panic) => {
                    tracing::error!(panic = panic_text(&*panic), %id, "a {what} panicked; it goes on soon");
                }
            }
        });
    }
}
