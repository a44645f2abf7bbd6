//! The rows that an export wants, in the order of the chain.
use entities::{
    Result,
    attempt::{self, Model as Record, PersonRows},
    boxed,
    compliance_export::Model,
    connection::Connection,
};

/// Rows that are read at once.
const PAGE: u64 = 1_000;
/// Places of one person's rows that are held at once, by each export of one that is being written.
const PLACES: usize = 100_000;

/// Some of them, and up to where the chain was looked through.
pub(super) struct Rows {
    pub rows: Vec<Record>,
    pub looked_until: i64,
}

/// Reads them, part after part.
#[derive(Default)]
pub(super) struct Reader {
    /// Of one person: where the next ones stand.
    person: Option<PersonRows>,
}

impl Reader {
    /// The next behind that place.
    #[boxed]
    pub(super) async fn next(&mut self, db: &Connection, job: &Model, after: i64) -> Result<Rows> {
        let owner = (job.tenant_id, job.env);
        if let Some(hash) = &job.number_hash {
            return self.of_person(db, job, hash, after).await;
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

    async fn of_person(&mut self, db: &Connection, job: &Model, hash: &str, after: i64) -> Result<Rows> {
        // A part that was not noted is read again.
        let going_on = self.person.take().filter(|walk| walk.read_until() == after);
        let mut walk = going_on.unwrap_or_else(|| {
            let owner = (job.tenant_id, job.env);
            PersonRows::new(owner, hash, (after, job.last_n), PLACES)
        });
        let mut rows = walk.next(db).await?;
        let looked_until = walk.read_until();
        self.person = Some(walk);
        if let Some(campaign) = job.campaign_id {
            rows.retain(|row| row.campaign_id == Some(campaign));
        }
        Ok(Rows { rows, looked_until })
    }
}
