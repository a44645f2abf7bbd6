//! A file that was read becomes a register's: what it holds is written in slices, under an id that nobody knows yet, and the row that
//! names it last. Whatever stops that in between leaves the file before; what was written is removed within two days ([`super::watch`]).
use super::{
    lookup::Registers,
    reading::Read,
    runs::Chunks,
    settle::{check_name, settle},
};
use crate::{deps::Deps, slices::Slices};
use entities::{
    Error, Result, boxed,
    ids::RegisterFileId,
    register::{self, Model, chunk},
};
use rules::{
    commit::Commit,
    registers::version::{Change, File, Upload},
};
use std::sync::Arc;

/// Rows of one transaction: half a MiB.
pub const ROWS: usize = 16;

impl Registers {
    /// What would be refused whatever the file holds is refused before it is read.
    #[boxed]
    pub async fn begin(&self, deps: &Deps, upload: &Upload) -> Result<()> {
        check_name(&deps.db.read, upload).await
    }

    /// Stores a workspace's file. Answers the register, and what has become of it.
    #[boxed]
    pub async fn store(&self, deps: &Deps, upload: Upload, read: Read) -> Result<(Model, Change)> {
        let current = register::of_name(&deps.db.read, upload.owner, &upload.name).await?;
        upload.check_day(current.as_ref(), &read.sha256, &read.key_check)?;
        let known = current.filter(|row| upload.is_known(row, &read.sha256, &read.key_check));
        let mut file = File {
            id: deps.ids.next(),
            sha256: read.sha256.clone(),
            key_check: read.key_check.clone(),
            has_dates: read.has_dates,
            numbers: known.as_ref().map_or(0, |row| row.numbers),
        };
        let is_stored = known.is_none();
        if is_stored {
            file.numbers = write(deps, &upload, read.chunks(file.id)).await?;
        }
        let (tenant, now) = (upload.owner.0, deps.clock.now());
        let (upload, file) = (Arc::new(upload), Arc::new(file));
        let settled = deps.writer.run(tenant, move |db| {
            let (upload, file) = (upload.clone(), file.clone());
            Box::pin(async move {
                let settled = settle(db, &upload, &file, is_stored, now).await?;
                Ok((settled, Commit::default()))
            })
        });
        settled.await
    }
}

/// Answers how many numbers there are.
async fn write(deps: &Deps, upload: &Upload, mut chunks: Chunks) -> Result<i64> {
    let mut slices = Slices::of(ROWS);
    loop {
        let (rest, rows) = some(chunks).await?;
        chunks = rest;
        if rows.is_empty() {
            return Ok(chunks.numbers());
        }
        let rows = Arc::new(rows);
        let slice = slices.write(deps, upload.owner.0, move |db| {
            let rows = rows.clone();
            Box::pin(async move {
                chunk::add(db, &rows).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
    }
}

/// The next rows; merging them takes processor time.
pub async fn some(mut chunks: Chunks) -> Result<(Chunks, Vec<chunk::Model>)> {
    let merged = tokio::task::spawn_blocking(move || {
        let rows = chunks.take(ROWS);
        (chunks, rows)
    });
    merged
        .await
        .map_err(|_| Error::Internal("a file of a register could not be merged".into()))
}

/// Files begun before then are whole, or will never be.
pub fn given_up_before(now: entities::values::Moment) -> RegisterFileId {
    /// More than any upload takes.
    const LONGEST_SECONDS: i64 = 24 * 3600;
    RegisterFileId::floor(now.plus_seconds(-LONGEST_SECONDS))
}
