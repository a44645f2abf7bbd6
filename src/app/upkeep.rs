//! What runs beside everything else for as long as the service does.
use crate::state::State;
use actors::deps::Deps;
use entities::lock::Lock;
use std::{sync::Arc, time::Duration};

/// Looks every second whether another process has taken the database over. The lock on a server's database goes with its
/// connection: it is taken again every ten seconds, if it can be.
pub(super) fn watch_lock(deps: &Deps, lock: Arc<Lock>) {
    const LOCK_EVERY: u32 = 10;
    let deps = deps.clone();
    deps.runtime.clone().spawn(async move {
        for look in 1_u32.. {
            #[expect(clippy::disallowed_methods, reason = "the other process keeps its own time")]
            tokio::time::sleep(Duration::from_secs(1)).await;
            if deps.is_draining() {
                return;
            }
            let held = match look % LOCK_EVERY {
                0 => lock.is_held().await,
                _ => Ok(true),
            };
            let known = match held {
                Ok(true) => deps.fence.ask(&deps.db).await,
                // It is about to take the database over.
                Ok(false) => return deps.fence.give_up(),
                Err(error) => Err(error),
            };
            if let Err(error) = known {
                tracing::warn!(%error, "could not check whether this process still owns the database");
            }
        }
    });
}

/// Forgets keys and addresses that have been quiet, and folds what was measured: both would grow for ever.
pub(super) fn keep_up(state: Arc<State>) {
    state.deps.runtime.clone().spawn(async move {
        loop {
            let _busy = state.deps.clock.sleep(Duration::from_secs(60)).await;
            state.limits.tidy();
            state.metrics.run_upkeep();
        }
    });
}
