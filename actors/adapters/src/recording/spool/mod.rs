//! Sound of live lines on its way to a recording: spooled to a folder of this machine while it is heard, sealed like recordings.
//!
//! One thread writes for all lines (`thread`), and media never waits for it: what its inbox has no room for is not recorded, and
//! is silence. A spool is a file (`file`) of pieces with their places (`piece`), so that what is missing moves nothing. What is
//! left of a process that was killed is found by the next one. A folder serves one process at a time (`folder`), and all of it has a
//! limit (`space`). A disk that hangs makes whoever asks wait for 30 s, and fails them. A name is `<tenant id>/<session id>.spool`.
mod failure;
mod file;
mod folder;
mod line;
mod message;
mod piece;
mod space;
mod thread;
mod track;
mod wav;

pub use failure::Unrecorded;
pub use folder::{ENDING, Resealed, reseal};
pub use line::Told;
pub use piece::{LONGEST, Side};
pub use track::Track;
pub use wav::Made;

use crate::recording::{mix::Channels, vault::Vault};
use entities::boxed;
use folder::Refused;
use line::Line;
use message::Message;
use runtime::{clock::Clock, supervise::join_text};
use space::Space;
use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    time::{Duration, Instant},
};
use thread::{Alive, Thread};
use tokio::sync::{Semaphore, oneshot};

pub type Result<T, E = String> = std::result::Result<T, E>;

/// Pieces that wait to be written, 8 MB at most: two seconds of eighty rooms.
const INBOX: usize = 8_192;
/// A disk that needs longer for an answer has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Whoever finds the inbox full looks again after this.
const LOOKS_AGAIN: Duration = Duration::from_millis(20);
/// Threads that read the folder at once: so many are lost to a disk that hangs, and no more.
const READERS: usize = 8;

/// All spools. Cloning is cheap.
#[derive(Clone)]
pub struct Spools(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    vault: Vault,
    to: SyncSender<Message>,
    /// Lines that are recorded, and those that have ended a moment ago.
    open: Mutex<HashMap<String, Arc<Line>>>,
    used: Arc<AtomicU64>,
    /// There is a thread that writes.
    writes: Arc<AtomicBool>,
    /// The folder cannot be used.
    is_off: bool,
    lock: Option<File>,
    readers: Arc<Semaphore>,
    patience: Duration,
}

/// A spool that nobody in this process writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub name: String,
    /// Since it was last written to, by the machine's clock.
    pub age: Duration,
}

impl Spools {
    /// In that folder, which is made if it is not there, of so many bytes in all, half of them for one tenant; sealed with the
    /// vault's keys. Fails when another process has the folder. One that cannot be used fails every recording of a line, but not
    /// the start.
    pub fn start(folder: &Path, most_bytes: u64, vault: &Vault) -> Result<Self> {
        let (to, inbox) = mpsc::sync_channel(INBOX);
        let mut shared = Shared {
            folder: folder.to_owned(),
            vault: vault.clone(),
            to,
            open: Mutex::default(),
            used: Arc::default(),
            writes: Arc::default(),
            is_off: false,
            lock: None,
            readers: Arc::new(Semaphore::new(READERS)),
            patience: PATIENCE,
        };
        match shared.take(most_bytes, inbox) {
            Ok(()) => {}
            Err(Refused::InUse) => {
                return Err(format!(
                    "the folder `{}` is in use by another Callboard process; stop that one, or name another folder",
                    folder.display()
                ));
            }
            Err(Refused::Unusable(why)) => {
                shared.is_off = true;
                let folder = folder.display();
                tracing::error!(
                    why,
                    %folder,
                    "recordings_spool cannot be used: NO ROOM IS RECORDED until it names a folder that can be written to"
                );
            }
        }
        Ok(Spools(Arc::new(shared)))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Line>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all that is spooled.
    pub fn bytes(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Can lines be recorded?
    pub fn writes(&self) -> bool {
        self.0.writes.load(Ordering::Acquire)
    }

    /// The folder could not be used at the start: what an earlier process has left in it is not seen.
    pub fn is_off(&self) -> bool {
        self.0.is_off
    }

    /// Another process may use the folder from now on.
    pub fn release(&self) {
        if let Some(lock) = &self.0.lock {
            drop(lock.unlock());
        }
    }

    /// Records a line from now on, for so many seconds at most. `told` hears why nothing more is recorded, if something fails: at
    /// once, where nothing can be. `None`: it is not recorded, or is already.
    pub fn begin(&self, name: &str, most_seconds: u64, told: Told) -> Option<Track> {
        let line = {
            let mut open = self.open();
            if open.contains_key(name) {
                return None;
            }
            let line = Arc::new(Line::new(name, most_seconds, told));
            open.insert(name.to_owned(), line.clone());
            line
        };
        if !self.writes() {
            line.fail(Unrecorded::NotWritten);
            return None;
        }
        let to = self.0.to.clone();
        Some(Track { line, to })
    }

    /// Ends a line's recording, if it has not ended, and writes all of it; answers whether it has failed. `Err`: that is not known
    /// yet. A line of another process, or of none, needs no closing.
    #[boxed]
    pub async fn close(&self, name: &str) -> Result<Result<(), Unrecorded>> {
        let Some(line) = self.open().get(name).cloned() else {
            return Ok(Ok(()));
        };
        line.end(Instant::now());
        let closed = match self.writes() {
            true => self.ask(move |reply| Message::Close(line, reply)).await?,
            // What was written until then counts.
            false => line.failure().map_or(Ok(()), Err),
        };
        self.open().remove(name);
        Ok(closed)
    }

    /// Removes what was spooled, and records no more of that line.
    #[boxed]
    pub async fn erase(&self, name: &str) -> Result<()> {
        if let Some(line) = self.open().remove(name) {
            line.is_over.store(true, Ordering::Relaxed);
        }
        if !self.writes() {
            let path = self.0.folder.join(name);
            let removed = self.aside(move || folder::remove(&path).map_err(|error| error.to_string()));
            return removed.await;
        }
        let name = name.to_owned();
        self.ask(move |reply| Message::Remove(name, reply)).await?
    }

    /// Everything that came before this is written.
    #[boxed]
    pub async fn flush(&self) -> Result<()> {
        match self.is_off() {
            true => Ok(()),
            false => self.ask(Message::Flush).await,
        }
    }

    async fn ask<T: Send + 'static>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let mut message = message(reply);
        let gone = || "the thread that spools sound gives no answer".to_owned();
        let answered = async {
            // Media fills the inbox as it pleases; no thread of ours waits for that.
            loop {
                match self.0.to.try_send(message) {
                    Ok(()) => break,
                    Err(TrySendError::Full(back)) => message = back,
                    Err(TrySendError::Disconnected(_)) => return Err(gone()),
                }
                let _busy = Clock::wall().sleep(LOOKS_AGAIN).await;
            }
            answer.await.map_err(|_| gone())
        };
        self.within(answered).await
    }

    /// Waits for the disk, but not for ever.
    async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.0.patience, work).await {
            Ok(done) => done,
            Err(_) => Err(format!("the disk has not answered for {:?}", self.0.patience)),
        }
    }

    /// Reads the folder, on a thread that may wait.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let readers = self.0.readers.clone();
        let done = async {
            let permit = readers.acquire_owned().await.map_err(|error| error.to_string())?;
            let done = tokio::task::spawn_blocking(move || {
                // Until it is done, even if nobody waits for it any more.
                let _permit = permit;
                work()
            });
            done.await.map_err(join_text)?
        };
        self.within(done).await
    }

    /// What was spooled, as a recording; `None`: there is nothing.
    #[boxed]
    pub async fn recording(&self, name: &str, channels: Channels) -> Result<Option<Made>> {
        let (path, name, keys) = (self.0.folder.join(name), name.to_owned(), self.0.vault.keys());
        self.aside(move || wav::open(&path, &keys, &name, channels)).await
    }

    /// Spools that nobody in this process writes, by their names, so many at most, from behind that name on.
    #[boxed]
    pub async fn left(&self, after: Option<String>, most: usize) -> Result<Vec<Left>> {
        let its = self.clone();
        self.aside(move || its.look_for(after.as_deref(), most)).await
    }

    fn look_for(&self, after: Option<&str>, most: usize) -> Result<Vec<Left>> {
        let folder = &self.0.folder;
        let mut names = folder::names(folder)?;
        names.retain(|name| after.is_none_or(|after| name.as_str() > after) && !self.open().contains_key(name));
        names.truncate(most);
        let left = names.into_iter().map(|name| {
            let age = folder::age(&folder.join(&name));
            Left { name, age }
        });
        Ok(left.collect())
    }
}

impl Shared {
    /// Takes the folder and begins to write into it.
    fn take(&mut self, most_bytes: u64, inbox: Receiver<Message>) -> Result<(), Refused> {
        let (lock, found) = folder::open(&self.folder, self.patience)?;
        self.lock = lock;
        let space = Space::new(most_bytes, found);
        self.used = space.used();
        let thread = Thread {
            folder: self.folder.clone(),
            keys: self.vault.keys(),
            space,
            open: HashMap::new(),
        };
        let alive = Alive(self.writes.clone());
        self.writes.store(true, Ordering::Release);
        let started = std::thread::Builder::new().name("spool".to_owned()).spawn(move || {
            let _alive = alive;
            thread.run(&inbox);
        });
        started.map(drop).map_err(|error| Refused::Unusable(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
