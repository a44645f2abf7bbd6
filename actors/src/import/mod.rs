//! Reading lists in: stored jobs over a CSV file, in slices of one transaction each. A slice also moves the job's place in the
//! file, so that each row is read in once, however often the job is taken up. Cells are parted by commas, semicolons or tabs.
//!
//! The first row names the columns. Contacts: `phone_number` and the other fields of a contact; columns of other names become
//! variables. Do-not-call entries: `phone_number` or `email`, `channels`, `reason`.
mod columns;
mod file;

use crate::{
    contact::intake,
    deps::Deps,
    dnc::{self, Outcome},
    slices::Slices,
};
use columns::Columns;
use csv::ByteRecord;
use entities::{
    Error, Result,
    dnc::{Channels, DncChannel, Source},
    ids::{CampaignId, ImportId, Owned},
    import::{self, ImportStatus, Kind, Model, Rejection, Rejections},
    values::{Country, E164},
};
use rules::{
    barred::{self, Entry, Whom},
    commit::Commit,
    effect::Hint,
};
use sea_orm::DatabaseTransaction;
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// Contacts read in by one transaction: rows of one number are merged within it, so that it is always as many.
const CONTACTS: usize = 100;
/// Rows of the do-not-call list read in by one transaction, at most; each makes two entries at most.
const ENTRIES: usize = 500;
/// Imports of one tenant at once.
const MAX_RUNNING: u64 = 10;

/// What is to be read in, and where to.
pub struct New {
    pub id: ImportId,
    pub kind: Kind,
    pub campaign: Option<CampaignId>,
    pub body: String,
}

/// Stores the job and starts it. A file that cannot be read at all is refused.
pub async fn start<I>(deps: &Deps, owner: Owned<I>, new: New) -> Result<Model> {
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
        created_at: deps.clock.now(),
        ended_at: None,
    };
    let (job, body) = (row.clone(), new.body);
    let row = deps
        .writer
        .run(move |db| {
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
pub fn run(deps: &Deps, key: Owned<ImportId>) {
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

/// Some rows of the file, and where they end.
#[derive(Default)]
struct Slice {
    rows: Vec<(u64, Result<Value, String>)>,
    begins: i64,
    ends: i64,
    is_last: bool,
}

async fn slices(deps: &Deps, key: Owned<ImportId>) -> Result<()> {
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
    };
    loop {
        let slice = read(&columns, &body, &mut lines, done, size.rows());
        let (ends, is_last) = (slice.ends, slice.is_last);
        match (job.kind, job.campaign_id) {
            (Kind::Contacts, Some(campaign)) => {
                let campaign = Owned::new(key.tenant_id, key.env, campaign);
                contacts(deps, &mut size, key, campaign, country, slice).await?;
            }
            (Kind::Contacts, None) => return Err(Error::NotFound("campaign")),
            (Kind::Dnc, _) => entries(deps, &mut size, key, country, slice).await?,
        }
        if is_last {
            return Ok(());
        }
        done = ends;
    }
}

/// So many rows from byte `from` on, the first row of the file left out.
fn read(columns: &Columns, body: &str, lines: &mut Lines, from: i64, rows: usize) -> Slice {
    let start = usize::try_from(from).unwrap_or(0).min(body.len());
    let rest = body.get(start..).unwrap_or_default();
    let mut reader = file::reader(rest.as_bytes(), columns.delimiter);
    let mut slice = Slice {
        begins: from,
        ends: from,
        ..Slice::default()
    };
    let mut record = ByteRecord::new();
    let mut is_header = start == 0;
    while slice.rows.len() < rows {
        // Reading from memory, and flexible: there is nothing that can fail.
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            slice.is_last = true;
            break;
        }
        slice.ends = from + i64::try_from(reader.position().byte()).unwrap_or(0);
        if std::mem::take(&mut is_header) {
            continue;
        }
        let at = record.position().map_or(0, csv::Position::byte);
        let line = lines.of(body, start.saturating_add(usize::try_from(at).unwrap_or(usize::MAX)));
        let too_many = (record.len() > columns.names.len()).then(|| {
            format!(
                "has {} cells, but the first row names {} columns",
                record.len(),
                columns.names.len()
            )
        });
        let object = too_many.map_or_else(|| columns.object(&record), Err);
        slice.rows.push((line, object));
    }
    slice
}

/// Counts lines while it goes through a file: cells may hold several.
#[derive(Default)]
struct Lines {
    counted: usize,
    ends: u64,
}

impl Lines {
    /// The line, from 1, of the row that begins at byte `at`.
    fn of(&mut self, body: &str, at: usize) -> u64 {
        let bytes = body.as_bytes();
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        // The row before may have left its end of line, and empty lines are no rows.
        let skipped = bytes
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| is_end(byte))
            .count();
        let begins = at.saturating_add(skipped);
        let new = bytes.get(self.counted..begins).unwrap_or_default();
        self.ends += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = begins;
        self.ends + 1
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
    db: &DatabaseTransaction,
    key: Owned<ImportId>,
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
    key: Owned<ImportId>,
    campaign: Owned<CampaignId>,
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
    size.write(deps, move |db| {
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

async fn entries(deps: &Deps, size: &mut Slices, key: Owned<ImportId>, country: Country, slice: Slice) -> Result<()> {
    let (mut rejected, mut asked) = (unreadable(&slice.rows), Vec::new());
    for (line, row) in &slice.rows {
        let Ok(row) = row else { continue };
        match entries_of(deps, row, country) {
            Ok(entries) => asked.extend(entries),
            Err(Error::Invalid { field, reason }) => rejected.push(Rejection {
                line: *line,
                code: "validation_failed".into(),
                message: entities::error::sentence(&field, &reason),
                param: Some(field),
            }),
            Err(error) => return Err(error),
        }
    }
    rejected.sort_by_key(|rejection| rejection.line);
    let (slice, asked, rejected, now) = (Arc::new(slice), Arc::new(asked), Arc::new(rejected), deps.clock.now());
    size.write(deps, move |db| {
        let (slice, asked, rejected) = (slice.clone(), asked.clone(), rejected.clone());
        Box::pin(async move {
            let mut commit = Commit::default();
            let mut outcomes = Outcomes {
                rejected: rejected.to_vec(),
                ..Outcomes::default()
            };
            let mut written: HashMap<Whom, usize> = HashMap::new();
            for entry in asked.iter() {
                let (row, outcome) = dnc::place(db, (key.tenant_id, key.env), entry.clone(), now).await?;
                // A second one in the same slice is not in the database yet: it widens the first.
                let first = written.get(&entry.whom).and_then(|at| commit.changes.dnc.get_mut(*at));
                if let Some(first) = first {
                    let all = first.channels.0.iter().chain(&row.channels.0);
                    first.channels = Channels::of(all.copied().collect());
                    outcomes.duplicates += 1;
                    continue;
                }
                outcomes.accepted += i64::from(outcome == Outcome::New);
                outcomes.duplicates += i64::from(outcome != Outcome::New);
                if outcome != Outcome::Known {
                    written.insert(entry.whom.clone(), commit.changes.dnc.len());
                    commit.changes.dnc.push(row);
                }
            }
            let goes_on = advance(db, key, &slice, outcomes, now).await?;
            if goes_on { Ok(((), commit)) } else { Err(Error::Stale) }
        })
    })
    .await
}

/// What a row bars: a number, an address, or both.
fn entries_of(deps: &Deps, row: &Value, country: Country) -> Result<Vec<Entry>> {
    let cell = |name: &str| row.get(name).and_then(Value::as_str);
    let variables = row.get("variables");
    let extra = |name: &str| variables.and_then(|all| all.get(name)).and_then(Value::as_str);
    let names = extra("channels")
        .unwrap_or_default()
        .split([',', ';', ' '])
        .map(str::trim);
    let channels = names.filter(|name| !name.is_empty()).map(|name| match name {
        "phone" => Ok(DncChannel::Phone),
        "sms" => Ok(DncChannel::Sms),
        "email" => Ok(DncChannel::Email),
        other => Err(Error::invalid(
            "channels",
            format!("`{other}` is not a channel: use phone, sms or email"),
        )),
    });
    let channels: Vec<DncChannel> = channels.collect::<Result<_>>()?;
    let reason = extra("reason").map(str::to_owned);
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > 500) {
        return Err(Error::invalid("reason", "has more than 500 characters"));
    }
    // Doubt goes against us: whoever is behind an extension, the line is not called.
    let number = cell("phone_number").map(|text| E164::parse_line(text, country));
    let number = number.transpose().map_err(|why| Error::invalid("phone_number", why))?;
    let email = cell("email").map(barred::email).transpose()?;
    let entry = |whom, channels| Entry {
        id: deps.ids.next(),
        whom,
        channels,
        reason: reason.clone(),
        source: Source::Import,
        session_id: None,
    };
    match (number, email) {
        (Some(number), None) => Ok(vec![entry(Whom::Number(number), channels)]),
        (None, Some(email)) => Ok(vec![entry(Whom::Email(email), channels)]),
        // Of the channels that are named, each has its own.
        (Some(number), Some(email)) => {
            let (of_email, of_number): (Vec<_>, Vec<_>) = channels
                .iter()
                .copied()
                .partition(|channel| *channel == DncChannel::Email);
            let both = [(Whom::Number(number), of_number), (Whom::Email(email), of_email)];
            let meant = both
                .into_iter()
                .filter(|(_, own)| channels.is_empty() || !own.is_empty());
            Ok(meant.map(|(whom, own)| entry(whom, own)).collect())
        }
        (None, None) => Err(Error::invalid("phone_number", "is empty")),
    }
}

/// It cannot go on: what was read in stays, and the job says why.
async fn give_up(deps: &Deps, key: Owned<ImportId>, error: &Error) -> Result<()> {
    let (why, now) = (error.to_string(), deps.clock.now());
    if matches!(error, Error::Internal(_) | Error::Corrupt { .. }) {
        tracing::error!(%error, import = %key.id, "an import failed");
    }
    deps.writer
        .run(move |db| {
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
