//! Recordings at rest: encrypted, in a folder or in an S3 store.
//!
//! `seal` says how an object looks, `place` where it is. A name is `<tenant id>/<recording id>.wav`, `<tenant id>/<sample id>.sample`
//! for what a voice is cloned from, `<tenant id>/<file id>.evidence` for what proves a consent, or `<tenant id>/<file id>.export` for a
//! file of an export, and is sealed into its object, so that one cannot be passed off as another. The whole of a recording is never
//! sealed in memory: it goes in parts, and is read by the range.
mod place;
mod range;
pub(super) mod seal;

pub use place::S3Options;
pub use range::{RangeAsked, range};
pub use seal::Plain;

use crate::outbound::trouble;
use bytes::Bytes;
use entities::boxed;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, path::Path as ObjectPath};
use place::Place;
use runtime::supervise::join_text;
use seal::{HEADER, Keys, Opener, Sealer, plain_size};
use std::{fmt, ops::Range, sync::Arc};
use uuid::Uuid;

/// Cloning is cheap.
#[derive(Clone)]
pub struct Vault {
    store: Arc<dyn ObjectStore>,
    place: Place,
    keys: Arc<Keys>,
    /// What no message may show.
    hidden: Arc<[String]>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({})", self.store)
    }
}

/// What was put away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub bytes: u64,
    /// Of the plain bytes, in lower-case hex.
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The store is away, refuses, or does not have it: may pass.
    #[error("the recordings' store failed: {0}")]
    Store(String),
    /// What is there is not what was put, or its key is not ours: does not pass.
    #[error("a recording is damaged: {0}")]
    Damaged(String),
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Bytes of one request to the store, and of the sealed copy in memory. S3 takes 10,000 parts of at least 5 MiB.
const PART: usize = 8 * 1024 * 1024;
/// Characters of a message from the store that are kept.
const MESSAGE_LIMIT: usize = 800;
/// Plain bytes that `pieces` hands out at once.
const PIECE: u64 = 1024 * 1024;

impl Vault {
    /// `url` is a path, `file:///path` or `s3://bucket/prefix`. New recordings are sealed with `key`; those under the
    /// `previous` ones still open. Asks nothing of the store: see `check`.
    pub fn open(url: &str, s3: S3Options, key: [u8; 32], previous: Vec<[u8; 32]>) -> Result<Self, String> {
        let (store, place) = place::open(url, &s3)?;
        let hidden = [s3.secret_access_key, s3.access_key_id].into_iter().flatten();
        Ok(Vault {
            store,
            place,
            keys: Arc::new(Keys::new(&key, &previous)),
            hidden: hidden.filter(|secret| !secret.is_empty()).collect(),
        })
    }

    /// What seals and opens its objects.
    pub(super) fn keys(&self) -> Arc<Keys> {
        self.keys.clone()
    }

    /// Writes, reads and removes a small object: can the store be used?
    #[boxed]
    pub async fn check(&self) -> Result<()> {
        let name = format!("check-{:032x}", rand::random::<u128>());
        let probe = Bytes::from_static(b"Callboard was here");
        let stored = self.write(&name, probe.clone().into()).await;
        let read = match stored {
            Ok(_) => self.read_range(&name, 0..probe.len() as u64).await,
            Err(failure) => Err(failure),
        };
        // Also after a failure, for a write may have come to pass.
        let erased = self.remove(&name).await;
        if read? != probe {
            return Err(Failure::Store(
                "it returned something other than what was stored".to_owned(),
            ));
        }
        erased
    }

    /// Puts a recording away, in the place of an earlier one of that name. It is there as a whole or not at all.
    /// In a folder, what an earlier `put` that was cut off left beside it goes.
    #[boxed]
    pub async fn put(&self, name: &str, plain: Vec<u8>) -> Result<Stored> {
        self.put_read(name, Bytes::from(plain).into()).await
    }

    /// The same, of what is read meanwhile, on threads that may wait.
    #[boxed]
    pub async fn put_read(&self, name: &str, plain: Plain) -> Result<Stored> {
        let name = checked(name)?;
        if let Place::Folder(root) = &self.place {
            let (root, name) = (root.clone(), name.to_owned());
            let cleared = off_thread(move || place::clear(&root, &name)).await?;
            cleared.map_err(|error| self.failure(&error))?;
        }
        self.write(name, plain).await
    }

    /// Plain bytes of a recording; none when it is not there.
    #[boxed]
    pub async fn size(&self, name: &str) -> Result<Option<u64>> {
        self.stat(checked(name)?).await
    }

    /// A range of the plain bytes. Fails when it reaches beyond them, or when the recording is not there.
    #[boxed]
    pub async fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes> {
        self.read_range(checked(name)?, range).await
    }

    /// Removes a recording and what an interrupted `put` left of it in a folder; that it is not there is fine.
    #[boxed]
    pub async fn erase(&self, name: &str) -> Result<()> {
        self.remove(checked(name)?).await
    }

    async fn write(&self, name: &str, plain: Plain) -> Result<Stored> {
        let path = self.place.path(name);
        let bytes = plain.bytes();
        let (part, mut sealer) = next_part(Sealer::new(&self.keys, name, plain)).await?;
        if part.len() < PART {
            let put = self.store.put(&path, part.into()).await;
            put.map_err(|error| self.failure(&error))?;
        } else {
            sealer = self.write_parts(&path, part, sealer).await?;
        }
        Ok(Stored {
            bytes,
            sha256: hex(&sealer.sha256()),
        })
    }

    async fn write_parts(&self, path: &ObjectPath, first: Vec<u8>, sealer: Sealer) -> Result<Sealer> {
        let upload = self.store.put_multipart(path).await;
        let mut upload = upload.map_err(|error| self.failure(&error))?;
        let written = async {
            let (mut part, mut sealer) = (first, sealer);
            while !part.is_empty() {
                let put = upload.put_part(part.into()).await;
                put.map_err(|error| self.failure(&error))?;
                (part, sealer) = next_part(sealer).await?;
            }
            upload.complete().await.map_err(|error| self.failure(&error))?;
            Ok(sealer)
        }
        .await;
        if written.is_err() {
            // The first failure is the one to tell.
            let _ = upload.abort().await;
        }
        written
    }

    async fn stat(&self, name: &str) -> Result<Option<u64>> {
        match self.store.head(&self.place.path(name)).await {
            Ok(found) => {
                let impossible = || Failure::Damaged(format!("`{name}` has a size that no recording has"));
                plain_size(found.size).map(Some).ok_or_else(impossible)
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    async fn read_range(&self, name: &str, range: Range<u64>) -> Result<Bytes> {
        let missing = || Failure::Store(format!("`{name}` is not there"));
        let size = self.stat(name).await?.ok_or_else(missing)?;
        if range.start > range.end || range.end > size {
            return Err(Failure::Store(format!("bytes {range:?} of `{name}`, which has {size}")));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let header = self.fetch(name, 0..HEADER as u64).await?;
        let opener = Opener::new(&self.keys, name, &header, size)?;
        let sealed = self.fetch(name, opener.place(&range)).await?;
        off_thread(move || opener.open(&range, &sealed)).await?
    }

    async fn fetch(&self, name: &str, range: Range<u64>) -> Result<Bytes> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let got = self.store.get_opts(&self.place.path(name), options).await;
        let got = got.map_err(|error| self.failure(&error))?;
        got.bytes().await.map_err(|error| self.failure(&error))
    }

    async fn remove(&self, name: &str) -> Result<()> {
        match &self.place {
            Place::Folder(root) => {
                let (root, name) = (root.clone(), name.to_owned());
                let erased = off_thread(move || place::erase(&root, &name)).await?;
                erased.map_err(|error| self.failure(&error))
            }
            Place::Bucket { .. } => match self.store.delete(&self.place.path(name)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.failure(&error)),
            },
        }
    }

    /// A store's message may repeat our request, and with it our keys.
    fn failure(&self, error: &dyn fmt::Display) -> Failure {
        let shown = self
            .hidden
            .iter()
            .fold(trouble::plain(error.to_string()), |text, secret| {
                text.replace(secret.as_str(), "***")
            });
        Failure::Store(shown.chars().take(MESSAGE_LIMIT).collect())
    }
}

/// A range in ranges of at most 1 MiB, to be read and sent one after the other: so a long recording is never whole in
/// memory.
pub fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let piece = at..((at / PIECE + 1).saturating_mul(PIECE)).min(range.end);
        at = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Sealing and hashing a part takes milliseconds, too long for a thread that others wait for.
async fn next_part(mut sealer: Sealer) -> Result<(Vec<u8>, Sealer)> {
    off_thread(move || sealer.part(PART).map(|part| (part, sealer))).await?
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::Store(format!("the work on a recording stopped: {}", join_text(error))))
}

/// `<tenant id>/<recording id>.wav`, `<tenant id>/<sample id>.sample` or `<tenant id>/<file id>.evidence`, ids in lower case, and nothing
/// else: no name leads out of its place.
fn checked(name: &str) -> Result<&str> {
    let is_id = |id: &str| Uuid::try_parse(id).is_ok_and(|parsed| parsed.hyphenated().to_string() == id);
    let kinds = [".wav", ".sample", ".evidence", ".export"];
    let ids = kinds.into_iter().find_map(|kind| name.strip_suffix(kind));
    let ids = ids.and_then(|ids| ids.split_once('/'));
    match ids {
        Some((tenant, recording)) if is_id(tenant) && is_id(recording) => Ok(name),
        _ => Err(Failure::Store(
            "a recording's name is <tenant id>/<recording id>.wav".to_owned(),
        )),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "vault_tests.rs"]
mod tests;
