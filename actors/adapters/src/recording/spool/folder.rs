//! The folder of spools: a folder per tenant, and a lock, for one process at a time writes and removes what is there.
use super::file::{self, NEW, Result, make_folder};
use crate::recording::vault::Vault;
use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

/// The ending of a spool's name.
pub const ENDING: &str = "spool";
const LOCK: &str = ".lock";

/// Why a folder is not ours.
#[derive(Debug)]
pub enum Refused {
    /// Another process has it.
    InUse,
    /// It is not there and cannot be made, or cannot be written to.
    Unusable(String),
}

/// What was found in a folder that is ours: its lock, and the bytes of each file by its name.
pub type Opened = (Option<File>, HashMap<String, u64>);

/// Takes the folder and looks through it, on a thread of its own: a disk that hangs does not keep the service from starting.
pub fn open(folder: &Path, patience: Duration) -> Result<Opened, Refused> {
    let (to, opened) = mpsc::sync_channel(1);
    let folder = folder.to_owned();
    let open = move || {
        let opened = take(&folder).and_then(|lock| {
            let found = clear(&folder).map_err(Refused::Unusable)?;
            Ok((lock, found))
        });
        // Nobody may wait for it any more: then the lock goes with it.
        let _ = to.send(opened);
    };
    let started = std::thread::Builder::new().name("spool-open".to_owned()).spawn(open);
    started.map_err(|error| Refused::Unusable(error.to_string()))?;
    let late = |_| Err(Refused::Unusable(format!("the disk has not answered for {patience:?}")));
    opened.recv_timeout(patience).unwrap_or_else(late)
}

/// Makes the folder, if it is not there, and takes it for this process, until the lock is released or dropped. `None`: its
/// file system knows no locks.
fn take(folder: &Path) -> Result<Option<File>, Refused> {
    let unusable = |error: io::Error| Refused::Unusable(error.to_string());
    make_folder(folder).map_err(unusable)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(folder.join(LOCK)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Refused::InUse),
        Err(TryLockError::Error(error)) => {
            let folder = folder.display();
            tracing::warn!(%error, %folder, "recordings_spool cannot be locked: no other service may use this folder");
            Ok(None)
        }
    }
}

/// Removes what was being sealed anew; answers the bytes of each file that is left, by its name.
fn clear(folder: &Path) -> Result<HashMap<String, u64>> {
    let mut sizes = HashMap::new();
    for path in files(folder)? {
        if has_ending(&path, NEW) {
            remove(&path).map_err(|error| error.to_string())?;
        } else if let (Some(name), Ok(known)) = (name(folder, &path), std::fs::metadata(&path)) {
            sizes.insert(name, known.len());
        }
    }
    Ok(sizes)
}

/// The names of all spools, sorted.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let files = files(folder)?;
    let spools = files.iter().filter(|path| has_ending(path, ENDING));
    let mut names: Vec<String> = spools.filter_map(|path| name(folder, path)).collect();
    names.sort();
    Ok(names)
}

/// What came of sealing spools anew.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    pub done: u32,
    /// Those that could not be, by their names, and why.
    pub left: Vec<(String, String)>,
}

/// Seals every spool in a folder anew, with the vault's current key. One that is damaged stays as it is. Blocks.
pub fn reseal(folder: &Path, vault: &Vault) -> Result<Resealed> {
    let mut resealed = Resealed::default();
    for name in names(folder)? {
        match file::reseal(&folder.join(&name), &vault.keys(), &name) {
            Ok(done) => resealed.done += u32::from(done),
            Err(why) => resealed.left.push((name, why)),
        }
    }
    Ok(resealed)
}

/// Since it was last written to, by the machine's clock; zero where that is not known.
pub fn age(path: &Path) -> Duration {
    let written = std::fs::metadata(path).and_then(|known| known.modified()).ok();
    written.and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// That it is not there is fine.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Err(error),
        _ => Ok(()),
    }
}

fn name(folder: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(folder).ok()?.to_str()?.to_owned())
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
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<io::Result<_>>().map_err(|error| error.to_string())
}
