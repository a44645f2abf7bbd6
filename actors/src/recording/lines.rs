//! The lines that carry sound, whoever carries them: a talk on one of them can be recorded as it is heard.
use entities::ids::SessionId;
use media::bridge::MediaBridge;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// By the session that is talked on them.
#[derive(Default)]
pub struct Lines(Arc<Mutex<HashMap<SessionId, Weak<MediaBridge>>>>);

/// A line that is there until this is dropped.
pub struct Attached {
    lines: Lines,
    session: SessionId,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.lines.lock().remove(&self.session);
    }
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<MediaBridge>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A talk's line, which may be recorded from now on.
    pub fn attach(&self, session: SessionId, bridge: &Arc<MediaBridge>) -> Attached {
        self.lock().insert(session, Arc::downgrade(bridge));
        let lines = Lines(self.0.clone());
        Attached { lines, session }
    }

    pub(super) fn bridge(&self, session: SessionId) -> Option<Arc<MediaBridge>> {
        self.lock().get(&session)?.upgrade()
    }
}
