//! What is kept of exports: how many and how much, and how one goes before its time, because nobody wants it any more or because somebody
//! who is in it was erased. It is marked first, so that whatever stops the removal of its files it goes on.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed,
    compliance_export::{self as store, ExportStatus, Model},
    connection::Connection,
    ids::{ComplianceExportId, TenantId, TenantScoped},
    values::{Env, Moment},
};
use rules::commit::Commit;

/// Exports that a workspace keeps at once, and the bytes of their files: the largest twice. Source: this service's limits.
pub const MOST_KEPT: i64 = 20;
pub const MOST_BYTES: i64 = 64 * 1024 * 1024 * 1024;

/// Is there room for another one?
pub(super) async fn check_another(db: &Connection, tenant: TenantId) -> Result<()> {
    let (exports, bytes) = store::kept(db, tenant).await?;
    if exports >= MOST_KEPT {
        return Err(Error::PlanLimit(format!(
            "{MOST_KEPT} exports are kept already: delete those that you have fetched"
        )));
    }
    fits(bytes)
}

/// Is there room for a file of so many bytes?
pub(super) async fn check_room(db: &Connection, tenant: TenantId, more: i64) -> Result<()> {
    let (_, bytes) = store::kept(db, tenant).await?;
    fits(bytes.saturating_add(more))
}

fn fits(bytes: i64) -> Result<()> {
    match bytes <= MOST_BYTES {
        true => Ok(()),
        false => Err(Error::PlanLimit(format!(
            "the exports that are kept would have more than {} GiB: delete those that you have fetched, or ask for a shorter time",
            MOST_BYTES >> 30
        ))),
    }
}

/// Deletes one with its files. One that is being written stops, and goes then.
#[boxed]
pub async fn delete(deps: &Deps, key: TenantScoped<ComplianceExportId>) -> Result<()> {
    let now = deps.clock.now();
    let marking = deps.writer.run(key.tenant_id, move |db| {
        Box::pin(async move {
            let job = expired(store::load(db, key).await?, now);
            store::save(db, &job).await?;
            Ok((job, Commit::default()))
        })
    });
    let job = marking.await?;
    discard(deps, &job).await
}

/// Marks those that hold one of these rows of the chain: from its commit on nobody fetches them. Asked inside the transaction that blanks
/// the rows.
#[boxed]
pub async fn expire_holding(
    db: &Connection,
    owner: (TenantId, Env),
    places: &[i64],
    now: Moment,
) -> Result<Vec<Model>> {
    let (Some(first), Some(last)) = (places.iter().min(), places.iter().max()) else {
        return Ok(Vec::new());
    };
    let mut marked = Vec::new();
    for job in store::holding(db, owner, (*first, *last)).await? {
        if places.iter().any(|n| (job.first_n..=job.last_n).contains(n)) {
            let job = expired(job, now);
            store::save(db, &job).await?;
            marked.push(job);
        }
    }
    Ok(marked)
}

fn expired(job: Model, now: Moment) -> Model {
    Model {
        status: ExportStatus::Expired,
        ended_at: job.ended_at.or(Some(now)),
        ..job
    }
}

/// Removes one of which nothing is to be kept. What is being written at the moment is left to who writes it.
#[boxed]
pub async fn discard(deps: &Deps, export: &Model) -> Result<()> {
    match deps.exports.running.is_at_work(export.id) {
        true => Ok(()),
        false => remove(deps, export).await,
    }
}

/// Its files first: a row that is there tells what is to be erased.
pub(super) async fn remove(deps: &Deps, export: &Model) -> Result<()> {
    super::erase(deps, export).await?;
    let id = export.id;
    deps.writer
        .upkeep(export.tenant_id, move |db| {
            Box::pin(async move { store::remove(db, &[id]).await })
        })
        .await
}
