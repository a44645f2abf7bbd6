//! Files of registers in memory: each is loaded once, by one of those who want it, and the one that was not looked into for longest
//! makes room.
use super::hashes::Listed;
use entities::{
    Result,
    ids::{RegisterFileId, RegisterId},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::OnceCell;

pub struct Shelf {
    /// Bytes of all; one file that is larger is kept all the same, alone.
    most: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    files: HashMap<RegisterFileId, Slot>,
    /// Counts looks.
    looks: u64,
}

struct Slot {
    register: RegisterId,
    file: Arc<OnceCell<Arc<Listed>>>,
    /// The last look into it.
    used: u64,
}

impl Slot {
    fn bytes(&self) -> usize {
        self.file.get().map_or(0, |file| file.bytes())
    }
}

impl Shelf {
    pub fn new(most: usize) -> Self {
        Shelf {
            most,
            held: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of that register; `load` reads it, if nobody has or is about to.
    pub async fn get<F>(
        &self,
        register: RegisterId,
        file: RegisterFileId,
        load: impl FnOnce() -> F,
    ) -> Result<Arc<Listed>>
    where
        F: Future<Output = Result<Listed>>,
    {
        let cell = self.cell(register, file);
        let is_new = !cell.initialized();
        let listed = cell.get_or_try_init(|| async { load().await.map(Arc::new) }).await;
        match listed {
            Ok(listed) => {
                if is_new {
                    self.make_room(register, file);
                }
                Ok(listed.clone())
            }
            Err(error) => {
                self.forget(file, &cell);
                Err(error)
            }
        }
    }

    fn cell(&self, register: RegisterId, file: RegisterFileId) -> Arc<OnceCell<Arc<Listed>>> {
        let mut held = self.lock();
        held.looks += 1;
        let looks = held.looks;
        let slot = held.files.entry(file).or_insert_with(|| Slot {
            register,
            file: Arc::default(),
            used: looks,
        });
        slot.used = looks;
        slot.file.clone()
    }

    /// Of the register there is a new file; and all together must not take too much.
    fn make_room(&self, register: RegisterId, file: RegisterFileId) {
        let mut held = self.lock();
        held.files.retain(|id, slot| *id == file || slot.register != register);
        loop {
            let all: usize = held.files.values().map(Slot::bytes).sum();
            let others = held.files.iter().filter(|(id, slot)| **id != file && slot.bytes() > 0);
            let oldest = others.min_by_key(|(_, slot)| slot.used).map(|(id, _)| *id);
            match oldest.filter(|_| all > self.most) {
                Some(oldest) => drop(held.files.remove(&oldest)),
                None => return,
            }
        }
    }

    fn forget(&self, file: RegisterFileId, cell: &Arc<OnceCell<Arc<Listed>>>) {
        let mut held = self.lock();
        let is_this = |slot: &Slot| Arc::ptr_eq(&slot.file, cell) && !slot.file.initialized();
        if held.files.get(&file).is_some_and(is_this) {
            held.files.remove(&file);
        }
    }

    /// Bytes of all that are loaded.
    pub fn bytes(&self) -> usize {
        self.lock().files.values().map(Slot::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use uuid::Uuid;

    fn ids(register: u128, file: u128) -> (RegisterId, RegisterFileId) {
        (Uuid::from_u128(register).into(), Uuid::from_u128(file).into())
    }

    /// Of so many numbers: eight bytes each.
    fn listed(numbers: u64) -> Listed {
        Listed::of((0..numbers).collect(), Vec::new()).unwrap()
    }

    async fn get(shelf: &Shelf, (register, file): (RegisterId, RegisterFileId), loads: &AtomicUsize) -> usize {
        let load = || async {
            loads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok(listed(100))
        };
        shelf.get(register, file, load).await.unwrap().len()
    }

    #[tokio::test]
    async fn many_who_want_a_file_at_once_load_it_once() {
        let (shelf, loads) = (Shelf::new(10_000), AtomicUsize::new(0));
        let all = (0..20).map(|_| get(&shelf, ids(1, 1), &loads));
        assert_eq!(futures_util::future::join_all(all).await, vec![100; 20]);
        assert_eq!((loads.load(Ordering::SeqCst), shelf.bytes()), (1, 800));
    }

    #[tokio::test]
    async fn the_one_not_used_for_longest_makes_room() {
        let (shelf, loads) = (Shelf::new(1_600), AtomicUsize::new(0));
        for (register, expected) in [(1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (3, 3), (2, 4), (1, 5)] {
            get(&shelf, ids(register, register), &loads).await;
            assert_eq!(loads.load(Ordering::SeqCst), expected, "{register}");
            assert!(shelf.bytes() <= 1_600);
        }
        let (small, loads) = (Shelf::new(10), AtomicUsize::new(0));
        for _ in 0..2 {
            get(&small, ids(1, 1), &loads).await;
        }
        assert_eq!(
            (loads.load(Ordering::SeqCst), small.bytes()),
            (1, 800),
            "larger than all, and kept"
        );
    }

    #[tokio::test]
    async fn a_new_file_of_a_register_takes_the_old_ones_place() {
        let (shelf, loads) = (Shelf::new(1 << 20), AtomicUsize::new(0));
        for (file, expected) in [(1, 800), (2, 800), (3, 800)] {
            get(&shelf, ids(1, file), &loads).await;
            assert_eq!(shelf.bytes(), expected);
        }
        get(&shelf, ids(2, 9), &loads).await;
        assert_eq!(shelf.bytes(), 1_600);
    }

    #[tokio::test]
    async fn what_could_not_be_loaded_is_tried_again() {
        let shelf = Shelf::new(1 << 20);
        let (register, file) = ids(1, 1);
        let failed = shelf.get(register, file, || async { Err(Error::Stale) }).await;
        assert!(matches!(failed, Err(Error::Stale)));
        assert_eq!(get(&shelf, (register, file), &AtomicUsize::new(0)).await, 100);
    }
}
