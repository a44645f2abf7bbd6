//! Files of registers in memory: each is loaded once, by one of those who want it. Those of the operator stay, for all workspaces look
//! into them; of the others the one that was not looked into for longest makes room, and no workspace takes all of it.
use super::hashes::Listed;
use entities::{
    Result,
    ids::{RegisterFileId, RegisterId, TenantId},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{OnceCell, Semaphore};

/// Of the whole, what the files of one workspace may take: enough for all numbers that it may have, with the default setting.
const SHARES: usize = 3;
/// Files of workspaces that are loaded at once: so many may lie beside what has room already.
const LOADS: usize = 2;

pub struct Shelf {
    /// Bytes of all. The operator's stay even so, and a file that is larger than what is left is kept all the same, as the only one of
    /// the workspaces'.
    most: usize,
    loads: Semaphore,
    held: Mutex<Held>,
}

/// A file that somebody wants to look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub register: RegisterId,
    pub file: RegisterFileId,
    /// None: the operator.
    pub workspace: Option<TenantId>,
    /// What it will take.
    pub bytes: usize,
}

#[derive(Default)]
struct Held {
    files: HashMap<RegisterFileId, Slot>,
    /// Counts looks.
    looks: u64,
}

struct Slot {
    wanted: Wanted,
    file: Arc<OnceCell<Arc<Listed>>>,
    /// It is being loaded: its bytes are set aside.
    is_loading: bool,
    /// The last look into it.
    used: u64,
}

impl Slot {
    fn bytes(&self) -> usize {
        match self.file.get() {
            Some(file) => file.bytes(),
            None if self.is_loading => self.wanted.bytes,
            None => 0,
        }
    }
}

impl Held {
    /// Of those of one workspace, or of all files.
    fn bytes(&self, of: Option<TenantId>) -> usize {
        let those = self.files.values();
        let those = those.filter(|slot| of.is_none() || slot.wanted.workspace == of);
        those.map(Slot::bytes).sum()
    }

    /// Whatever was not looked into for longest makes room, until all of them, of one workspace or of all, take no more than `most`. The
    /// operator's stay, and so does what is being loaded.
    fn shrink(&mut self, of: Option<TenantId>, most: usize) {
        while self.bytes(of) > most {
            let may_go = |slot: &Slot| {
                let owner = slot.wanted.workspace;
                slot.file.initialized() && owner.is_some() && (of.is_none() || owner == of)
            };
            let others = self.files.iter().filter(|(_, slot)| may_go(slot));
            let Some(oldest) = others.min_by_key(|(_, slot)| slot.used).map(|(id, _)| *id) else {
                return;
            };
            self.files.remove(&oldest);
        }
    }
}

/// A load that is under way; dropped, nothing is set aside for it any more.
struct Loading<'a> {
    shelf: &'a Shelf,
    file: RegisterFileId,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.shelf.lock().files.get_mut(&self.file) {
            slot.is_loading = false;
        }
    }
}

impl Shelf {
    pub fn new(most: usize) -> Self {
        Shelf {
            most,
            loads: Semaphore::new(LOADS),
            held: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That file; `load` reads it, if nobody has or is about to.
    pub async fn get<F>(&self, wanted: Wanted, load: impl FnOnce() -> F) -> Result<Arc<Listed>>
    where
        F: Future<Output = Result<Listed>>,
    {
        let cell = self.cell(wanted);
        let listed = cell.get_or_try_init(|| async {
            // Nobody waits for the operator's behind what workspaces have uploaded. It is never closed.
            let _turn = match wanted.workspace {
                Some(_) => self.loads.acquire().await.ok(),
                None => None,
            };
            let _loading = self.make_room(wanted);
            load().await.map(Arc::new)
        });
        match listed.await {
            Ok(listed) => Ok(listed.clone()),
            Err(error) => {
                self.forget(wanted.file, &cell);
                Err(error)
            }
        }
    }

    fn cell(&self, wanted: Wanted) -> Arc<OnceCell<Arc<Listed>>> {
        let mut held = self.lock();
        held.looks += 1;
        let looks = held.looks;
        let slot = held.files.entry(wanted.file).or_insert_with(|| Slot {
            wanted,
            file: Arc::default(),
            is_loading: false,
            used: looks,
        });
        slot.used = looks;
        slot.file.clone()
    }

    /// Of the register there is a new file; and all together must not take too much, this one included.
    fn make_room(&self, wanted: Wanted) -> Loading<'_> {
        let mut held = self.lock();
        held.files
            .retain(|id, slot| *id == wanted.file || slot.wanted.register != wanted.register);
        if let Some(slot) = held.files.get_mut(&wanted.file) {
            slot.is_loading = true;
        }
        if wanted.workspace.is_some() {
            held.shrink(wanted.workspace, self.most / SHARES);
        }
        held.shrink(None, self.most);
        Loading {
            shelf: self,
            file: wanted.file,
        }
    }

    fn forget(&self, file: RegisterFileId, cell: &Arc<OnceCell<Arc<Listed>>>) {
        let mut held = self.lock();
        let is_this = |slot: &Slot| Arc::ptr_eq(&slot.file, cell) && !slot.file.initialized();
        if held.files.get(&file).is_some_and(is_this) {
            held.files.remove(&file);
        }
    }

    /// Bytes of all that are loaded, or are about to be.
    pub fn bytes(&self) -> usize {
        self.lock().bytes(None)
    }
}

#[cfg(test)]
#[path = "shelf_tests.rs"]
mod tests;
