//! What is kept of exports: how many and how much, and how one goes before its time, because nobody wants it any more or because somebody
//! who is in it was erased. It is marked first, so that whatever stops the removal of its files it goes on.
use crate::deps::Deps;
use entities::{
    Error, Result,
    attempt::Model as Record,
    boxed,
    compliance_export::{self as store, ExportStatus, Model},
    connection::Connection,
    ids::{AttemptId, CampaignId, ComplianceExportId, TenantId, TenantScoped},
    values::{Env, Moment},
};
use rules::commit::Commit;
use std::collections::{BTreeMap, BTreeSet};

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

/// A row of the chain whose content goes, and how exports come by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blanked {
    pub n: i64,
    campaign_id: Option<CampaignId>,
    /// Under what the people of its attempt are found.
    hashes: Vec<String>,
}

impl Blanked {
    /// Those of these rows that have a content. Of each attempt all are there.
    pub fn of(rows: &[Record]) -> Vec<Blanked> {
        let mut hashes: BTreeMap<AttemptId, BTreeSet<&String>> = BTreeMap::new();
        for row in rows {
            let its = hashes.entry(row.attempt_id).or_default();
            its.extend(row.number_hash.iter().chain(&row.email_hash));
        }
        let hashes_of = |attempt: AttemptId| hashes.get(&attempt).into_iter().flatten().copied().cloned().collect();
        let naming = rows.iter().filter(|row| row.content.is_some());
        let blanked = naming.map(|row| Blanked {
            n: row.n,
            campaign_id: row.campaign_id,
            hashes: hashes_of(row.attempt_id),
        });
        blanked.collect()
    }
}

/// Marks those that hold one of these rows: from its commit on nobody fetches them. One that has yet to come to them goes on, and takes
/// them as they are then. Asked inside the transaction that blanks the rows.
#[boxed]
pub async fn expire_holding(
    db: &Connection,
    owner: (TenantId, Env),
    rows: &[Blanked],
    now: Moment,
) -> Result<Vec<Model>> {
    let places = rows.iter().map(|row| row.n);
    let (Some(first), Some(last)) = (places.clone().min(), places.max()) else {
        return Ok(Vec::new());
    };
    let mut marked = Vec::new();
    for job in store::holding(db, owner, (first, last)).await? {
        match fate(&job, rows) {
            Fate::Stays => {}
            Fate::ReadsAgain => {
                let blanked = job.blanked + 1;
                store::save(db, &Model { blanked, ..job }).await?;
            }
            Fate::Expires => {
                let job = expired(job, now);
                store::save(db, &job).await?;
                marked.push(job);
            }
        }
    }
    Ok(marked)
}

/// What becomes of an export when rows are blanked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    /// What it reads at the moment may be as it was before.
    ReadsAgain,
    Expires,
}

fn fate(job: &Model, rows: &[Blanked]) -> Fate {
    let first = rows.iter().filter(|row| wants(job, row)).map(|row| row.n).min();
    match (first, job.status) {
        (None, _) => Fate::Stays,
        (Some(n), ExportStatus::Running) if n >= job.next_n => Fate::ReadsAgain,
        // One that has failed may have left a file that was not noted.
        (Some(_), ExportStatus::Running | ExportStatus::Completed | ExportStatus::Failed | ExportStatus::Expired) => {
            Fate::Expires
        }
    }
}

/// Is that row one of those that were asked for?
fn wants(job: &Model, row: &Blanked) -> bool {
    let is_theirs = job.number_hash.as_ref().is_none_or(|hash| row.hashes.contains(hash));
    let is_of_campaign = job.campaign_id.is_none_or(|campaign| row.campaign_id == Some(campaign));
    (job.first_n..=job.last_n).contains(&row.n) && is_theirs && is_of_campaign
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

#[cfg(test)]
mod tests {
    use super::*;
    use entities::compliance_export::ExportFormat;
    use uuid::Uuid;

    const CAMPAIGN: CampaignId = CampaignId(Uuid::from_u128(7));

    /// Of the rows 10 to 20, the next part beginning with the 15th.
    fn export(status: ExportStatus, number_hash: Option<&str>, campaign_id: Option<CampaignId>) -> Model {
        Model {
            id: ComplianceExportId(Uuid::nil()),
            tenant_id: TenantId(Uuid::nil()),
            env: Env::Live,
            status,
            format: ExportFormat::Jsonl,
            number_hash: number_hash.map(str::to_owned),
            campaign_id,
            since: None,
            until: None,
            first_n: 10,
            last_n: 20,
            next_n: 15,
            blanked: 0,
            row_count: 0,
            files: Default::default(),
            bytes: 0,
            manifest: None,
            signature: None,
            public_key: None,
            error: None,
            created_by: None,
            created_at: Moment::from_millis(0),
            ended_at: None,
        }
    }

    #[test]
    fn an_export_goes_if_it_has_a_row_that_is_blanked() {
        use ExportStatus::{Completed, Failed, Running};
        let other = CampaignId(Uuid::from_u128(8));
        for (status, hash, campaign, places, expected) in [
            (Completed, None, None, [9, 21], Fate::Stays),
            (Completed, None, None, [9, 20], Fate::Expires),
            (Failed, None, None, [9, 20], Fate::Expires),
            (Running, None, None, [14, 15], Fate::Expires),
            (Running, None, None, [15, 20], Fate::ReadsAgain),
            (Running, None, None, [9, 21], Fate::Stays),
            // By the number, and by the address that was known with it.
            (Completed, Some("ann"), None, [10, 11], Fate::Expires),
            (Completed, Some("ann@"), None, [10, 11], Fate::Expires),
            (Completed, Some("bob"), None, [10, 11], Fate::Stays),
            (Running, Some("bob"), None, [15, 16], Fate::Stays),
            (Completed, None, Some(CAMPAIGN), [10, 11], Fate::Expires),
            (Completed, None, Some(other), [10, 11], Fate::Stays),
            (Completed, Some("ann"), Some(other), [10, 11], Fate::Stays),
        ] {
            let rows = places.map(|n| Blanked {
                n,
                campaign_id: Some(CAMPAIGN),
                hashes: vec!["ann".into(), "ann@".into()],
            });
            let found = fate(&export(status, hash, campaign), &rows);
            assert_eq!(found, expected, "{status:?} {hash:?} {campaign:?} {places:?}");
        }
    }
}
