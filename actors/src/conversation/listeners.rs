//! Who listens to live calls: `GET /v1/sessions/{id}/stream`.
use entities::{ids::SessionId, transcript::Turn};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast;

/// Only calls that somebody listens to are in it.
#[derive(Default)]
pub struct Listeners(Mutex<HashMap<SessionId, broadcast::Sender<(usize, Turn)>>>);

/// Turns that a listener may lag behind.
const WINDOW: usize = 64;

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, broadcast::Sender<(usize, Turn)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every turn from now on, each with its place in the transcript; closed at the call's end.
    pub fn listen(&self, session: SessionId) -> broadcast::Receiver<(usize, Turn)> {
        let mut all = self.lock();
        all.retain(|_, sender| sender.receiver_count() > 0);
        all.entry(session)
            .or_insert_with(|| broadcast::channel(WINDOW).0)
            .subscribe()
    }

    pub fn tell(&self, session: SessionId, place: usize, turn: &Turn) {
        if let Some(sender) = self.lock().get(&session) {
            // They may all have gone.
            let _ = sender.send((place, turn.clone()));
        }
    }

    pub fn end(&self, session: SessionId) {
        self.lock().remove(&session);
    }
}
