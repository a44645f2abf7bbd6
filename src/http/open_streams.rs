//! Event streams that are open.
use super::caller::By;
use entities::ids::{ApiKeyId, TenantId};
use runtime::clock::Busy;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, watch};

/// What a stream was admitted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    Key(ApiKeyId),
    /// A session of the dashboard, in a workspace of its user's.
    Login(TenantId, Arc<str>),
}

impl Pass {
    pub fn of(tenant: TenantId, by: &By) -> Self {
        match by {
            By::Key(key) => Pass::Key(key.id),
            By::Member { login_hash, .. } => Pass::Login(tenant, login_hash.clone()),
        }
    }
}

pub struct Streams {
    pub ending: watch::Sender<bool>,
    pub open: Mutex<Open>,
    /// The first one was opened.
    pub opened: Notify,
}

#[derive(Default)]
pub struct Open {
    /// How many there are of each, and what tells them that it is no longer valid.
    pub by_pass: HashMap<Pass, (usize, watch::Sender<bool>)>,
    /// Somebody looks at what they were admitted by.
    pub watched: bool,
    /// Held from the opening of the first one until the alarm for its pass stands.
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

    /// By what open streams were admitted. `None`, and watched no more: there are none.
    pub fn passes(&self) -> Option<Vec<Pass>> {
        let mut open = self.lock();
        open.watched = !open.by_pass.is_empty();
        open.watched.then(|| open.by_pass.keys().cloned().collect())
    }

    /// Ends the streams of those that are not valid.
    pub fn end(&self, passes: &[Pass], valid: &HashSet<Pass>) {
        let open = self.lock();
        let invalid = passes.iter().filter(|pass| !valid.contains(pass));
        for (_, ended) in invalid.filter_map(|pass| open.by_pass.get(pass)) {
            ended.send_replace(true);
        }
    }
}
