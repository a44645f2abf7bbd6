//! Requests with an `Idempotency-Key` that are running in this process.
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Keys whose first request is running in this process.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<HashSet<String>>>);

impl Running {
    pub fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
