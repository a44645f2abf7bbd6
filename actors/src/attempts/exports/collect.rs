//! The rows that an export wants, in the order of the chain.
use entities::{
    Result,
    attempt::{self, Model as Record},
    boxed,
    compliance_export::Model,
    connection::Connection,
};

/// Rows that are read at once.
const PAGE: u64 = 1_000;
/// Openings and wishes of one person that are read at once, with what came of the person's attempts meanwhile.
const OF_PERSON: u64 = 500;

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
    let mut rows = match job.campaign_id {
        Some(campaign) => attempt::of_campaign(db, owner, campaign, after, PAGE).await?,
        None => attempt::range(db, owner, after, PAGE).await?,
    };
    // Fewer than were asked for: there are no more, or the rest was let go meanwhile.
    let looked_until = match rows.last() {
        Some(last) if rows.len() as u64 >= PAGE => last.n.min(job.last_n),
        Some(_) | None => job.last_n,
    };
    rows.retain(|row| row.n <= job.last_n);
    Ok(Rows { rows, looked_until })
}

/// A stretch of the chain that holds so many of the person's openings and wishes: with them come all rows there that follow an opening of
/// the person's, also of an earlier stretch.
async fn of_person(db: &Connection, job: &Model, hash: &str, after: i64) -> Result<Rows> {
    let owner = (job.tenant_id, job.env);
    let hashes = [hash.to_owned()];
    let first = attempt::of_person(db, owner, &hashes, after, OF_PERSON).await?;
    let looked_until = match first.last() {
        Some(last) if first.len() as u64 >= OF_PERSON => last.n.min(job.last_n),
        Some(_) | None => job.last_n,
    };
    let mut rows = attempt::following_person(db, owner, &hashes, (after, looked_until)).await?;
    if let Some(campaign) = job.campaign_id {
        rows.retain(|row| row.campaign_id == Some(campaign));
    }
    Ok(Rows { rows, looked_until })
}
