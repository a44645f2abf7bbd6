//! Event streams that are open.
use entities::ids::ApiKeyId;
use runtime::clock::Busy;
use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, watch};

pub struct Streams {
    pub ending: watch::Sender<bool>,
    pub open: Mutex<Open>,
    /// The first one was opened.
    pub opened: Notify,
}

#[derive(Default)]
pub struct Open {
    /// How many there are of each key, and what tells them that it is no longer valid.
    pub by_key: HashMap<ApiKeyId, (usize, watch::Sender<bool>)>,
    /// Somebody looks at the keys.
    pub watched: bool,
    /// Held from the opening of the first one until the alarm for its key stands.
    pub busy: Busy,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            ending: watch::channel(false).0,
            open: Mutex::default(),
            opened: Notify::new(),
        }
    }
}

impl Streams {
    pub fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of open streams. `None`, and watched no more: there are none.
    pub fn keys(&self) -> Option<Vec<ApiKeyId>> {
        let mut open = self.lock();
        open.watched = !open.by_key.is_empty();
        open.watched.then(|| open.by_key.keys().copied().collect())
    }

    /// Ends those of the keys that are not valid.
    pub fn end(&self, keys: &[ApiKeyId], valid: &HashSet<ApiKeyId>) {
        let open = self.lock();
        let invalid = keys.iter().filter(|key| !valid.contains(key));
        for (_, ended) in invalid.filter_map(|key| open.by_key.get(key)) {
            ended.send_replace(true);
        }
    }
}
