//! The rows that an export wants, in the order of the chain.
use entities::{
    Result,
    attempt::{self, Model as Record},
    boxed,
    compliance_export::Model,
    connection::Connection,
    ids::AttemptId,
};
use std::collections::BTreeSet;

/// Rows that are read at once, and that are looked through at once for a campaign's.
const PAGE: u64 = 1_000;
const STRETCH: i64 = 4_000;
/// Openings and wishes of one person, at most: more are in another export, of a later time.
const OF_PERSON: u64 = 5_000;

/// Some of them, and up to where the chain was looked through.
pub(super) struct Rows {
    pub rows: Vec<Record>,
    pub looked_until: i64,
}

/// The next behind that place.
#[boxed]
pub(super) async fn next(db: &Connection, job: &Model, after: i64) -> Result<Rows> {
    let owner = (job.tenant_id, job.env);
    if let Some(hash) = &job.number_hash {
        return of_person(db, job, hash, after).await;
    }
    if let Some(campaign) = job.campaign_id {
        let looked_until = job.last_n.min(after.saturating_add(STRETCH));
        let rows = attempt::of_campaign(db, owner, campaign, (after, looked_until)).await?;
        return Ok(Rows { rows, looked_until });
    }
    let mut rows = attempt::range(db, owner, after, PAGE).await?;
    rows.retain(|row| row.n <= job.last_n);
    // Fewer than there should be: the rest was let go meanwhile.
    let looked_until = match rows.last() {
        Some(last) => last.n,
        None => job.last_n,
    };
    Ok(Rows { rows, looked_until })
}

/// All of them at once: what came of an attempt is found by its opening.
async fn of_person(db: &Connection, job: &Model, hash: &str, after: i64) -> Result<Rows> {
    let owner = (job.tenant_id, job.env);
    let hashes = [hash.to_owned()];
    let mut rows = attempt::of_person(db, owner, &hashes, job.first_n - 1, OF_PERSON).await?;
    let attempts: BTreeSet<AttemptId> = rows.iter().map(|row| row.attempt_id).collect();
    let attempts: Vec<AttemptId> = attempts.into_iter().collect();
    rows.extend(attempt::of_attempts(db, owner, &attempts).await?);
    if let Some(campaign) = job.campaign_id {
        rows.retain(|row| row.campaign_id == Some(campaign));
    }
    rows.retain(|row| row.n > after && (job.first_n..=job.last_n).contains(&row.n));
    rows.sort_by_key(|row| row.n);
    rows.dedup_by_key(|row| row.n);
    Ok(Rows {
        rows,
        looked_until: job.last_n,
    })
}
