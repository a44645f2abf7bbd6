//! Exports of the record: stored jobs that write it into sealed files, part by part, and at the end sign a manifest of them. A part is
//! written and then noted: one that a crash cuts off is written again under the same name.
pub mod at_work;
mod collect;
mod keeping;
mod table;

pub use keeping::{Blanked, MOST_BYTES, MOST_KEPT, delete, discard, expire_holding};

use super::person;
use crate::deps::Deps;
use bytes::Bytes;
use collect::{Reader, Rows};
use entities::{
    Error, Result,
    attempt::{Model as Record, RecordKind, anchor, chain, first_since},
    compliance_export::{self as store, ExportFile, ExportFormat, ExportStatus, Model},
    ids::{CampaignId, ComplianceExportId, TenantId, TenantScoped},
    values::{Env, Moment},
};
use rules::{
    commit::Commit,
    law::record::line::{Line, MANIFEST_FORM, Manifest, ManifestFile, Place},
};
use runtime::signing::SigningKey;
use serde::Deserialize;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Bytes of one file, or so: it is put together in memory.
const PART_BYTES: usize = 16 * 1024 * 1024;
/// Files of one export, at most.
const MOST_PARTS: usize = 2_000;
/// Exports of one tenant at once.
const MAX_RUNNING: u64 = 3;

/// What is to be exported.
#[derive(Clone, Debug)]
pub struct New {
    pub id: ComplianceExportId,
    pub format: ExportFormat,
    /// A number in E.164, or an address in lower case; none: everybody's.
    pub person: Option<String>,
    pub campaign_id: Option<CampaignId>,
    pub since: Option<Moment>,
    pub until: Option<Moment>,
    pub created_by: String,
}

/// Stores the job, over the record as it is now, and starts it.
pub async fn start(deps: &Deps, owner: (TenantId, Env), new: New) -> Result<Model> {
    let number_hash = new
        .person
        .as_deref()
        .map(|person| person::hash(&person::key(&deps.links), owner.0, person));
    let job = Model {
        id: new.id,
        tenant_id: owner.0,
        env: owner.1,
        status: ExportStatus::Running,
        format: new.format,
        number_hash,
        campaign_id: new.campaign_id,
        since: new.since,
        until: new.until,
        first_n: 1,
        last_n: 0,
        next_n: 1,
        blanked: 0,
        row_count: 0,
        files: Default::default(),
        bytes: 0,
        manifest: None,
        signature: None,
        public_key: None,
        error: None,
        created_by: Some(new.created_by),
        created_at: deps.clock.now(),
        ended_at: None,
    };
    let row = deps
        .writer
        .run(owner.0, move |db| {
            let mut job = job.clone();
            Box::pin(async move {
                // A repeat of a request that was cut off after its commit.
                match store::load(db, job.key()).await {
                    Ok(known) => return Ok((known, Commit::default())),
                    Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
                if store::count_running(db, job.tenant_id).await? >= MAX_RUNNING {
                    return Err(Error::PlanLimit(format!(
                        "{MAX_RUNNING} exports are running already: wait until one has ended"
                    )));
                }
                keeping::check_another(db, job.tenant_id).await?;
                let owner = (job.tenant_id, job.env);
                (job.first_n, job.last_n) = chain::bounds(db, owner).await?;
                if let Some(since) = job.since {
                    job.first_n = job.first_n.max(first_since(db, owner, since).await?);
                }
                if let Some(until) = job.until {
                    job.last_n = job.last_n.min(first_since(db, owner, until).await? - 1);
                }
                job.next_n = job.first_n;
                store::save(db, &job).await?;
                Ok((job, Commit::default()))
            })
        })
        .await?;
    run(deps, row.key());
    Ok(row)
}

/// Works a job off, in the background.
pub fn run(deps: &Deps, key: TenantScoped<ComplianceExportId>) {
    let its = deps.clone();
    deps.jobs.run(&deps.exports.running, key.id, "export", async move {
        let stay = its.stay(key.tenant_id);
        let outcome = parts(&its, key).await;
        drop(stay);
        match outcome {
            // It was deleted, and is gone.
            Err(Error::NotFound(_)) => Ok(()),
            Err(error) if !error.retryable() => give_up(&its, key, &error).await,
            other => other,
        }
    });
}

async fn parts(deps: &Deps, key: TenantScoped<ComplianceExportId>) -> Result<()> {
    let mut reader = Reader::default();
    loop {
        // Before it is read: much may happen until it is its turn.
        let _turn = deps.exports.turn().await?;
        let job = store::load(&deps.db.read, key).await?;
        match job.status {
            ExportStatus::Running => {}
            ExportStatus::Expired => return keeping::remove(deps, &job).await,
            ExportStatus::Completed | ExportStatus::Failed => return Ok(()),
        }
        if job.next_n > job.last_n {
            return finish(deps, job).await;
        }
        let (part, next_n) = part(deps, &job, &mut reader).await?;
        advance(deps, &job, next_n, part).await?;
    }
}

/// The next file, if there is anything to be in it, and where the one after it begins.
async fn part(deps: &Deps, job: &Model, reader: &mut Reader) -> Result<(Option<ExportFile>, i64)> {
    if job.files.0.len() >= MOST_PARTS {
        return Err(Error::PlanLimit(format!(
            "an export has at most {MOST_PARTS} files: ask for a shorter time"
        )));
    }
    let mut draft = Draft::new(job.format)?;
    let mut after = job.next_n - 1;
    while draft.bytes.len() < PART_BYTES && after < job.last_n {
        let Rows { rows, looked_until } = reader.next(&deps.db.reports, job, after).await?;
        for row in &rows {
            draft.add(row)?;
        }
        after = looked_until;
    }
    if draft.rows == 0 {
        return Ok((None, after + 1));
    }
    let number = job.files.0.len() + 1;
    let bytes = Bytes::from(draft.bytes);
    let size = bytes.len();
    let name = file_name(job.key(), number);
    deps.pass(job.tenant_id).await?;
    let stored = deps.studio.vault.put_read(&name, bytes.into()).await;
    let stored = stored.map_err(|failure| Error::Unavailable(failure.to_string()))?;
    let file = ExportFile {
        part: i32::try_from(number).unwrap_or(i32::MAX),
        bytes: i64::try_from(size).unwrap_or(i64::MAX),
        sha256: stored.sha256,
        rows: draft.rows,
        first_n: draft.first_n,
        last_n: draft.last_n,
        laws: draft.laws.into_iter().collect(),
    };
    Ok((Some(file), after + 1))
}

/// A file that is being put together.
struct Draft {
    format: ExportFormat,
    bytes: Vec<u8>,
    rows: i64,
    first_n: i64,
    last_n: i64,
    laws: BTreeSet<String>,
}

impl Draft {
    fn new(format: ExportFormat) -> Result<Self> {
        Ok(Draft {
            format,
            bytes: match format {
                ExportFormat::Jsonl => Vec::new(),
                ExportFormat::Csv => table::header()?,
            },
            rows: 0,
            first_n: 0,
            last_n: 0,
            laws: BTreeSet::new(),
        })
    }

    fn add(&mut self, row: &Record) -> Result<()> {
        match self.format {
            ExportFormat::Jsonl => {
                let line = Line::of(row).and_then(|line| serde_json::to_vec(&line));
                self.bytes.extend(line.map_err(|_| unreadable(row))?);
                self.bytes.push(b'\n');
            }
            ExportFormat::Csv => self.bytes.extend(table::line(row)?),
        }
        if row.kind == RecordKind::Attempt {
            let named: Named = serde_json::from_str(&row.body).map_err(|_| unreadable(row))?;
            self.laws.insert(named.law);
        }
        if self.rows == 0 {
            self.first_n = row.n;
        }
        (self.rows, self.last_n) = (self.rows + 1, row.n);
        Ok(())
    }
}

/// Of an opening only that.
#[derive(Deserialize)]
struct Named {
    law: String,
}

fn unreadable(row: &Record) -> Error {
    Error::Corrupt {
        table: "attempt_records",
        column: "body",
        id: format!("{} {} {}", row.tenant_id, row.env, row.n),
    }
}

/// Notes a part, or that there was nothing to write so far. `before`: as the export was when the part was begun.
async fn advance(deps: &Deps, before: &Model, next_n: i64, part: Option<ExportFile>) -> Result<()> {
    let (key, began, blanked) = (before.key(), before.next_n, before.blanked);
    deps.writer
        .run(key.tenant_id, move |db| {
            let part = part.clone();
            Box::pin(async move {
                let mut job = store::load(db, key).await?;
                if job.status != ExportStatus::Running {
                    return Ok(((), Commit::default()));
                }
                // Somebody else has been here.
                if job.next_n != began {
                    return Err(Error::Stale);
                }
                // Somebody was erased who may stand in this part: it is made again, under the same name.
                if job.blanked != blanked {
                    return Ok(((), Commit::default()));
                }
                let bytes = part.as_ref().map_or(0, |part| part.bytes);
                keeping::check_room(db, job.tenant_id, bytes).await?;
                job.next_n = next_n;
                job.bytes += bytes;
                job.row_count += part.as_ref().map_or(0, |part| part.rows);
                job.files.0.extend(part);
                store::save(db, &job).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

/// All parts are written: what they are is signed.
async fn finish(deps: &Deps, job: Model) -> Result<()> {
    let key = SigningKey::of(&deps.links)?;
    let owner = (job.tenant_id, job.env);
    let end = chain::load(&deps.db.read, owner).await?;
    let anchor = anchor::load(&deps.db.read, owner).await?;
    let now = deps.clock.now();
    let head = end.map_or_else(
        || Place {
            n: 0,
            hash: String::new(),
        },
        |end| Place {
            n: end.n,
            hash: end.hash,
        },
    );
    let anchor = anchor.map(|anchor| Place {
        n: anchor.n,
        hash: anchor.hash,
    });
    let manifest = serde_json::to_string(&manifest(&job, head, anchor, now));
    let manifest = manifest.map_err(|error| Error::Internal(format!("a manifest cannot be written down: {error}")))?;
    let done = Model {
        signature: Some(key.sign(manifest.as_bytes())?),
        public_key: Some(key.public_key()),
        manifest: Some(manifest),
        status: ExportStatus::Completed,
        ended_at: Some(now),
        ..job
    };
    deps.writer
        .run(owner.0, move |db| {
            let done = done.clone();
            Box::pin(async move {
                let known = store::load(db, done.key()).await?;
                if known.status == ExportStatus::Running {
                    store::save(db, &done).await?;
                }
                Ok(((), Commit::default()))
            })
        })
        .await
}

fn manifest(job: &Model, head: Place, anchor: Option<Place>, made_at: Moment) -> Manifest {
    let laws: BTreeSet<&String> = job.files.0.iter().flat_map(|file| &file.laws).collect();
    let files = job.files.0.iter().map(|file| ManifestFile {
        part: file.part,
        bytes: file.bytes,
        sha256: file.sha256.clone(),
        rows: file.rows,
        first_n: file.first_n,
        last_n: file.last_n,
    });
    Manifest {
        form: MANIFEST_FORM.to_owned(),
        export_id: job.id,
        tenant_id: job.tenant_id,
        env: job.env,
        made_at,
        format: job.format,
        is_whole: job.number_hash.is_none() && job.campaign_id.is_none(),
        of_person: job.number_hash.is_some(),
        campaign_id: job.campaign_id,
        since: job.since,
        until: job.until,
        files: files.collect(),
        rows: job.row_count,
        first_n: job.first_n,
        last_n: job.last_n,
        head,
        anchor,
        laws: laws.into_iter().cloned().collect(),
    }
}

/// It cannot go on: the job says why.
async fn give_up(deps: &Deps, key: TenantScoped<ComplianceExportId>, error: &Error) -> Result<()> {
    let (why, now) = (error.to_string(), deps.clock.now());
    if matches!(error, Error::Internal(_) | Error::Corrupt { .. }) {
        tracing::error!(%error, export = %key.id, "an export failed");
    }
    deps.writer
        .run(key.tenant_id, move |db| {
            let why = why.clone();
            Box::pin(async move {
                let mut job = store::load(db, key).await?;
                if job.status != ExportStatus::Running {
                    return Ok(((), Commit::default()));
                }
                job.status = ExportStatus::Failed;
                job.error = Some(why);
                job.ended_at = Some(now);
                store::save(db, &job).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

/// Where a part lies in the vault: the same, however often it is written. Parts have the export's id but for its last bits.
pub fn file_name(key: TenantScoped<ComplianceExportId>, part: usize) -> String {
    let id = Uuid::from_u128(key.id.0.as_u128() ^ part as u128);
    format!("{}/{id}.export", key.tenant_id)
}

/// Erases what an export has written; that it is not there is fine.
async fn erase(deps: &Deps, export: &Model) -> Result<()> {
    // One more may be there that was not noted.
    for part in 1..=export.files.0.len() + 1 {
        deps.pass(export.tenant_id).await?;
        let erased = deps.studio.vault.erase(&file_name(export.key(), part)).await;
        erased.map_err(|failure| Error::Unavailable(failure.to_string()))?;
    }
    Ok(())
}
