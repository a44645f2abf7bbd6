//! Sound of live lines on its way to a recording: spooled to a folder of this machine while it is heard, sealed like recordings.
//!
//! One thread writes for all lines (`thread`), and media never waits for it: what its inbox has no room for is not recorded, and
//! is silence. A spool is a file (`file`) of pieces with their places (`piece`), so that what is missing moves nothing. What is
//! left of a process that was killed is found by the next one. A name is `<tenant id>/<session id>.spool`.
mod file;
mod line;
mod message;
mod piece;
mod thread;
mod track;
mod wav;

pub use line::Told;
pub use piece::{LONGEST, Side};
pub use track::Track;
pub use wav::Made;

use crate::recording::{mix::Channels, vault::Vault};
use entities::boxed;
use file::NEW;
use line::Line;
use message::Message;
use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, SyncSender},
    },
    time::Instant,
};
use thread::Thread;
use tokio::sync::oneshot;

pub type Result<T, E = String> = std::result::Result<T, E>;

/// Pieces that wait to be written, 8 MB at most: two seconds of eighty rooms.
const INBOX: usize = 8_192;
/// The ending of a spool's name.
pub const ENDING: &str = "spool";

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
}

impl Spools {
    /// In that folder, which is made if it is not there, of so many bytes in all; sealed with the vault's keys.
    pub fn start(folder: &Path, most_bytes: u64, vault: &Vault) -> Result<Self> {
        file::make_folder(folder)?;
        let files = files(folder)?;
        for half in files.iter().filter(|path| has_ending(path, NEW)) {
            std::fs::remove_file(half).map_err(|error| error.to_string())?;
        }
        let sizes = files.iter().filter_map(|path| std::fs::metadata(path).ok());
        let used = Arc::new(AtomicU64::new(sizes.map(|known| known.len()).sum()));
        let (to, inbox) = mpsc::sync_channel(INBOX);
        let thread = Thread {
            folder: folder.to_owned(),
            keys: vault.keys(),
            used: used.clone(),
            most: most_bytes,
            open: HashMap::new(),
        };
        let started = std::thread::Builder::new()
            .name("spool".to_owned())
            .spawn(move || thread.run(&inbox));
        started.map_err(|error| error.to_string())?;
        Ok(Spools(Arc::new(Shared {
            folder: folder.to_owned(),
            vault: vault.clone(),
            to,
            open: Mutex::default(),
            used,
        })))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Line>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all that is spooled.
    pub fn bytes(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Records a line from now on, for so many seconds at most. `told` hears why nothing more is recorded, if something fails.
    /// `None`: it is recorded already.
    pub fn begin(&self, name: &str, most_seconds: u64, told: Told) -> Option<Track> {
        let mut open = self.open();
        if open.contains_key(name) {
            return None;
        }
        let line = Arc::new(Line::new(name, most_seconds, told));
        open.insert(name.to_owned(), line.clone());
        let to = self.0.to.clone();
        Some(Track { line, to })
    }

    /// Ends a line's recording, if it has not ended, and writes all of it. `Err`: it has failed. A line of another process, or of none,
    /// needs no closing.
    #[boxed]
    pub async fn close(&self, name: &str) -> Result<()> {
        let Some(line) = self.open().get(name).cloned() else {
            return Ok(());
        };
        line.end(Instant::now());
        let closed = self.ask(move |reply| Message::Close(line, reply)).await;
        self.open().remove(name);
        closed?
    }

    /// Removes what was spooled, and records no more of that line.
    #[boxed]
    pub async fn erase(&self, name: &str) -> Result<()> {
        if let Some(line) = self.open().remove(name) {
            line.is_over.store(true, Ordering::Relaxed);
        }
        let name = name.to_owned();
        self.ask(move |reply| Message::Remove(name, reply)).await?
    }

    /// Everything that came before this is written.
    #[boxed]
    pub async fn flush(&self) -> Result<()> {
        self.ask(Message::Flush).await
    }

    async fn ask<T: Send + 'static>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let (to, message) = (self.0.to.clone(), message(reply));
        let gone = "the thread that spools sound has ended";
        // A full inbox is waited for, elsewhere.
        let sent = tokio::task::spawn_blocking(move || to.send(message).is_ok()).await;
        match sent {
            Ok(true) => answer.await.map_err(|_| gone.to_owned()),
            Ok(false) | Err(_) => Err(gone.to_owned()),
        }
    }

    /// What was spooled, as a recording; `None`: there is nothing.
    #[boxed]
    pub async fn recording(&self, name: &str, channels: Channels) -> Result<Option<Made>> {
        let (path, name, keys) = (self.0.folder.join(name), name.to_owned(), self.0.vault.keys());
        let opened = tokio::task::spawn_blocking(move || wav::open(&path, &keys, &name, channels)).await;
        opened.map_err(|error| error.to_string())?
    }

    /// Of spools that nobody in this process writes, so many at most.
    #[boxed]
    pub async fn left(&self, most: usize) -> Result<Vec<String>> {
        let folder = self.0.folder.clone();
        let found = tokio::task::spawn_blocking(move || names(&folder)).await;
        let mut names = found.map_err(|error| error.to_string())??;
        let open = self.open();
        names.retain(|name| !open.contains_key(name));
        names.truncate(most);
        Ok(names)
    }
}

/// Seals every spool in a folder anew, with the vault's current key; answers how many there are. Blocks.
pub fn reseal(folder: &Path, vault: &Vault) -> Result<u32> {
    let mut resealed = 0;
    for name in names(folder)? {
        let done = file::reseal(&folder.join(&name), &vault.keys(), &name);
        resealed += u32::from(done.map_err(|why| format!("{name}: {why}"))?);
    }
    Ok(resealed)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let files = files(folder)?.into_iter().filter(|path| has_ending(path, ENDING));
    let name = |path: PathBuf| Some(path.strip_prefix(folder).ok()?.to_str()?.to_owned());
    Ok(files.filter_map(name).collect())
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension() == Some(OsStr::new(ending))
}

/// One folder per tenant.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for tenant in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        found.extend(entries(&tenant)?);
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<std::io::Result<_>>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
