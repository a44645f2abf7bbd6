//! Reading lists in: stored jobs over a CSV file, in slices of one transaction each. A slice also moves the job's place in the
//! file, so that each row is read in once, however often the job is taken up. Cells are parted by commas, semicolons or tabs.
//!
//! The first row names the columns. Contacts: `phone_number` and the other fields of a contact; columns of other names become
//! variables. Do-not-call entries: `phone_number` or `email`, `channels`, `reason`. Consents: the fields of a consent.
mod columns;
mod consents;
mod entries;
mod file;
mod rows;

use crate::{contact::intake, deps::Deps, slices::Slices};
use columns::Columns;
use consents::consents;
use entities::{
    Error, Result,
    connection::Transaction,
    ids::{CampaignId, ImportId, TenantScoped},
    import::{self, ImportStatus, Kind, Model, Rejection, Rejections},
    values::Country,
};
use entries::entries;
use rows::{Lines, Slice, read};
use rules::{commit::Commit, effect::Hint};
use serde_json::Value;
use std::sync::Arc;

/// Contacts read in by one transaction: rows of one number are merged within it, so that it is always as many.
const CONTACTS: usize = 100;
/// Rows of the do-not-call list read in by one transaction, at most; each makes two entries at most.
const ENTRIES: usize = 500;
/// Consents read in by one transaction, at most: each comes with its texts.
const CONSENTS: usize = 200;
/// Imports of one tenant at once.
const MAX_RUNNING: u64 = 10;

/// What is to be read in, and where to.
pub struct New {
    pub id: ImportId,
    pub kind: Kind,
    pub campaign: Option<CampaignId>,
    pub created_by: String,
    pub body: String,
}

/// Stores the job and starts it. A file that cannot be read at all is refused.
pub async fn start<I>(deps: &Deps, owner: TenantScoped<I>, new: New) -> Result<Model> {
    let columns = Columns::read(new.kind, &new.body)?;
    file::check_quotes(&new.body, columns.delimiter).map_err(|why| Error::invalid("", why))?;
    let row = Model {
        id: new.id,
        tenant_id: owner.tenant_id,
        env: owner.env,
        campaign_id: new.campaign,
        kind: new.kind,
        delimiter: columns.delimiter,
        status: ImportStatus::Running,
        bytes: i64::try_from(new.body.len()).unwrap_or(i64::MAX),
        bytes_done: 0,
        rows_done: 0,
        accepted: 0,
        duplicates: 0,
        rejected: 0,
        rejections: Rejections::default(),
        error: None,
        created_by: Some(new.created_by),
        created_at: deps.clock.now(),
        ended_at: None,
    };
    let (job, body) = (row.clone(), new.body);
    let row = deps
        .writer
        .run(row.tenant_id, move |db| {
            let (job, body) = (job.clone(), body.clone());
            Box::pin(async move {
                // A repeat of a request that was cut off after its commit.
                match import::load(db, job.key()).await {
                    Ok(known) => return Ok((known, Commit::default())),
                    Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
                if import::count_running(db, job.tenant_id).await? >= MAX_RUNNING {
                    return Err(Error::PlanLimit(format!(
                        "{MAX_RUNNING} imports are running already: wait until one has ended"
                    )));
                }
                import::begin(db, job.clone(), body).await?;
                Ok((job, Commit::default()))
            })
        })
        .await?;
    run(deps, row.key());
    Ok(row)
}

/// Works a job off, in the background.
pub fn run(deps: &Deps, key: TenantScoped<ImportId>) {
    let work = {
        let deps = deps.clone();
        async move {
            let outcome = slices(&deps, key).await;
            match outcome {
                Err(error) if !error.retryable() => give_up(&deps, key, &error).await,
                other => other,
            }
        }
    };
    deps.jobs.run(&deps.imports, key.id, "import", work);
}

async fn slices(deps: &Deps, key: TenantScoped<ImportId>) -> Result<()> {
    let db = &deps.db.read;
    let job = import::load(db, key).await?;
    if job.status != ImportStatus::Running {
        return Ok(());
    }
    let body = import::body(db, key.id).await?;
    let columns = Columns::read(job.kind, &body)?;
    let tenant = entities::tenant::load(db, key.tenant_id).await?;
    let country: Country = tenant.country.parse().map_err(|_| Error::Corrupt {
        table: "tenants",
        column: "country",
        id: tenant.id.to_string(),
    })?;
    let mut done = job.bytes_done;
    let mut lines = Lines::default();
    let mut size = match job.kind {
        Kind::Contacts => Slices::of(CONTACTS),
        Kind::Dnc => Slices::new(ENTRIES),
        Kind::Consents => Slices::new(CONSENTS),
    };
    loop {
        let slice = read(&columns, &body, &mut lines, done, size.rows());
        let (ends, is_last) = (slice.ends, slice.is_last);
        match (job.kind, job.campaign_id) {
            (Kind::Contacts, Some(campaign)) => {
                let campaign = TenantScoped::new(key.tenant_id, key.env, campaign);
                contacts(deps, &mut size, key, campaign, country, slice).await?;
            }
            (Kind::Contacts, None) => return Err(Error::NotFound("campaign")),
            (Kind::Dnc, _) => {
                let by = (country, job.created_by.as_deref());
                entries(deps, &mut size, key, by, slice).await?;
            }
            (Kind::Consents, _) => {
                let by = (country, job.created_by.as_deref());
                consents(deps, &mut size, key, by, slice).await?;
            }
        }
        if is_last {
            return Ok(());
        }
        done = ends;
    }
}

/// What one slice came to.
#[derive(Default)]
struct Outcomes {
    accepted: i64,
    duplicates: i64,
    rejected: Vec<Rejection>,
}

/// Stores how far the job is, in the transaction that reads the slice in; false: somebody else has been here.
async fn advance(
    db: &Transaction,
    key: TenantScoped<ImportId>,
    slice: &Slice,
    outcomes: Outcomes,
    now: entities::values::Moment,
) -> Result<bool> {
    let mut job = import::load(db, key).await?;
    if job.status != ImportStatus::Running || job.bytes_done != slice.begins {
        return Ok(false);
    }
    job.bytes_done = slice.ends;
    job.rows_done += i64::try_from(slice.rows.len()).unwrap_or(0);
    job.accepted += outcomes.accepted;
    job.duplicates += outcomes.duplicates;
    job.rejected += i64::try_from(outcomes.rejected.len()).unwrap_or(0);
    let room = Rejections::MAX.saturating_sub(job.rejections.0.len());
    job.rejections.0.extend(outcomes.rejected.into_iter().take(room));
    if slice.is_last {
        job.status = ImportStatus::Completed;
        job.ended_at = Some(now);
    }
    import::save(db, &job).await?;
    Ok(true)
}

fn unreadable(rows: &[(u64, Result<Value, String>)]) -> Vec<Rejection> {
    let refused = rows.iter().filter_map(|(line, row)| {
        Some(Rejection {
            line: *line,
            code: "validation_failed".into(),
            param: None,
            message: row.as_ref().err()?.clone(),
        })
    });
    refused.collect()
}

async fn contacts(
    deps: &Deps,
    size: &mut Slices,
    key: TenantScoped<ImportId>,
    campaign: TenantScoped<CampaignId>,
    country: Country,
    slice: Slice,
) -> Result<()> {
    let (lines, given): (Vec<u64>, Vec<Value>) = slice
        .rows
        .iter()
        .filter_map(|(line, row)| Some((*line, row.as_ref().ok()?.clone())))
        .unzip();
    let plan = entities::campaign::load(&deps.db.read, campaign).await?.plan;
    let reading = intake::Reading::of(&plan, country)?;
    let sorted = Arc::new(intake::sort(deps, campaign, &reading, given));
    let ends = slice.is_last;
    let (slice, lines, now) = (Arc::new(slice), Arc::new(lines), deps.clock.now());
    size.write(deps, key.tenant_id, move |db| {
        let (sorted, slice, lines) = (sorted.clone(), slice.clone(), lines.clone());
        Box::pin(async move {
            let (added, commit) = intake::insert(db, campaign, &sorted).await?;
            let mut rejected = unreadable(&slice.rows);
            rejected.extend(added.rejected.into_iter().map(|refused| Rejection {
                line: lines.get(refused.index).copied().unwrap_or(0),
                code: refused.code.into(),
                param: refused.param,
                message: refused.message,
            }));
            rejected.sort_by_key(|rejection| rejection.line);
            let outcomes = Outcomes {
                accepted: i64::try_from(added.accepted).unwrap_or(0),
                duplicates: i64::try_from(added.duplicates).unwrap_or(0),
                rejected,
            };
            let goes_on = advance(db, key, &slice, outcomes, now).await?;
            if goes_on { Ok(((), commit)) } else { Err(Error::Stale) }
        })
    })
    .await?;
    // Who sleeps is looked at when all is read in, and not for every slice.
    let hint = if ends {
        Hint::ContactsChanged(campaign).into()
    } else {
        Hint::CampaignsChanged(campaign.tenant_id).into()
    };
    deps.router.perform(vec![hint]);
    Ok(())
}

/// It cannot go on: what was read in stays, and the job says why.
async fn give_up(deps: &Deps, key: TenantScoped<ImportId>, error: &Error) -> Result<()> {
    let (why, now) = (error.to_string(), deps.clock.now());
    if matches!(error, Error::Internal(_) | Error::Corrupt { .. }) {
        tracing::error!(%error, import = %key.id, "an import failed");
    }
    deps.writer
        .run(key.tenant_id, move |db| {
            let why = why.clone();
            Box::pin(async move {
                let mut job = import::load(db, key).await?;
                job.status = ImportStatus::Failed;
                job.error = Some(why);
                job.ended_at = Some(now);
                import::save(db, &job).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}
