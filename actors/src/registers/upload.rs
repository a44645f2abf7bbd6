//! A file that was read becomes a register's: what it holds is written in slices, under an id that nobody knows yet, and the row that
//! names it last. Whatever stops that in between leaves the file before. What is refused, replaced or deleted is removed at once, also if
//! whoever asked has gone, and what a process leaves that ends in between within two days ([`super::watch`]).
use super::{
    lookup::Registers,
    reading::{Read, Reading},
    runs::Chunks,
    settle::{check_name, room, settle},
    spool::Spool,
};
use crate::{deps::Deps, slices::Slices};
use entities::{
    Error, Result, boxed,
    ids::{RegisterFileId, TenantId},
    register::{self, Model, chunk},
    values::Env,
};
use rules::{
    commit::Commit,
    effect::Hint,
    registers::version::{Change, File, Upload},
};
use runtime::bulkhead::Permit;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Rows of one transaction: half a MiB.
pub const ROWS: usize = 16;

impl Registers {
    /// What would be refused whatever the file holds is refused before it is read. Answers what reads it.
    #[boxed]
    pub async fn begin(&self, deps: &Deps, upload: &Upload) -> Result<Reading<Spool>> {
        check_name(&deps.db.read, upload).await?;
        let most = room(&deps.db.read, upload).await?;
        let folder = self.folder.clone();
        let spool = aside(move || Spool::new(&folder, most)).await?;
        let hasher = self.hasher.clone();
        Ok(Reading::with(spool, hasher, upload.country, upload.fetched_at, most))
    }

    /// Stores a file when it is its turn.
    #[boxed]
    async fn put(&self, deps: &Deps, upload: Upload, read: Read<Spool>) -> Result<(Model, Change)> {
        let closed = |_| Error::Unavailable("the service is shutting down".into());
        let _turn = self.turns.acquire().await.map_err(closed)?;
        let current = register::of_name(&deps.db.read, upload.owner, &upload.name).await?;
        upload.check_day(current.as_ref(), &read.content)?;
        let known = current.as_ref().filter(|row| upload.is_known(row, &read.content));
        let mut file = File {
            id: deps.ids.next(),
            content: read.content.clone(),
            numbers: known.map_or(0, |row| row.numbers),
        };
        let (owner, id, is_stored) = (upload.owner.0, file.id, known.is_none());
        let stored = async {
            if is_stored {
                let chunks = aside(move || read.sorted().map(|read| read.chunks(id))).await?;
                file.numbers = write(deps, &upload, chunks).await?;
            }
            give(deps, upload, file, is_stored).await
        };
        let stored = stored.await;
        let useless = match &stored {
            Ok((_, Change::Replaced)) => current.map(|row| row.file_id),
            Ok((_, Change::Nothing | Change::Refreshed)) => None,
            Err(_) => is_stored.then_some(id),
        };
        if let Some(file) = useless {
            remove(deps, owner, file).await;
        }
        stored
    }
}

/// Stores a workspace's file, when it is its turn. Answers the register, and what has become of it. It is done also if nobody waits for it any
/// more: else whoever leaves in the middle, again and again, fills the disk. `place` is held until then.
#[boxed]
pub async fn store(deps: &Deps, place: Permit, upload: Upload, read: Read<Spool>) -> Result<(Model, Change)> {
    let (its, tenant) = (deps.clone(), upload.owner.0);
    let storing = detached(deps, tenant, async move {
        let _place = place;
        let stored = its.registers.put(&its, upload, read).await?;
        if stored.1 != Change::Nothing {
            // Campaigns that have waited for it go on, and whom it lists nobody keeps at hand.
            its.router.perform(vec![Hint::CampaignsChanged(tenant).into()]);
        }
        Ok::<_, Error>(stored)
    });
    let stopped = |_| Error::Internal("a file of a register could not be stored".into());
    storing.await.map_err(stopped)?
}

/// Deletes a workspace's register, also if nobody waits for it any more. What its file holds goes in the background.
#[boxed]
pub async fn delete(deps: &Deps, owner: (TenantId, Env), name: String) -> Result<()> {
    let its = deps.clone();
    let deleting = detached(deps, owner.0, async move {
        let deleting = its.writer.run(owner.0, move |db| {
            let name = name.clone();
            Box::pin(async move {
                let row = register::of_name(db, owner, &name).await?;
                register::remove(db, owner, &name).await?;
                Ok((row, Commit::default()))
            })
        });
        if let Some(row) = deleting.await? {
            let all = its.clone();
            detached(&its, owner.0, async move { remove(&all, owner.0, row.file_id).await });
        }
        Ok::<_, Error>(())
    });
    let stopped = |_| Error::Internal("a register could not be deleted".into());
    deleting.await.map_err(stopped)?
}

/// Goes on also when whoever asked has gone, or has waited for too long. The workspace stays on this node meanwhile.
fn detached<T: Send + 'static>(
    deps: &Deps,
    tenant: TenantId,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let held = (deps.clock.busy(), deps.stay(tenant));
    deps.runtime.spawn(async move {
        let _held = held;
        work.await
    })
}

async fn give(deps: &Deps, upload: Upload, file: File, is_stored: bool) -> Result<(Model, Change)> {
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

/// What that file holds, so that nobody can fill the disk with what is refused, replaced or deleted again and again.
async fn remove(deps: &Deps, tenant: TenantId, file: RegisterFileId) {
    if let Err(failure) = remove_all(deps, tenant, file).await {
        tracing::warn!(%failure, "a file that no register has is removed later");
    }
}

/// A register that has it, maybe by a commit whose answer was lost, keeps it.
async fn remove_all(deps: &Deps, tenant: TenantId, file: RegisterFileId) -> Result<()> {
    let mut slices = Slices::of(ROWS);
    loop {
        let rows = slices.rows() as u64;
        let slice = slices.write(deps, tenant, move |db| {
            Box::pin(async move {
                let removed = chunk::remove_some(db, file, rows).await?;
                Ok((removed, Commit::default()))
            })
        });
        if slice.await? == 0 {
            return Ok(());
        }
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
    aside(move || {
        let rows = chunks.take(ROWS);
        Ok((chunks, rows))
    })
    .await
}

/// On a thread for which nobody waits.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::Internal("a file of a register could not be sorted".into()))?
}

/// Files begun before then are whole, or will never be.
pub fn given_up_before(now: entities::values::Moment) -> RegisterFileId {
    /// More than any upload takes.
    const LONGEST_SECONDS: i64 = 24 * 3600;
    RegisterFileId::floor(now.plus_seconds(-LONGEST_SECONDS))
}
