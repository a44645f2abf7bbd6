//! The places of commits: numbers that grow with each fact whose order counts.
//!
//! One process alone counts on from the last one. Nodes reserve blocks, each above all that were reserved before; whoever takes a
//! workspace begins a new one. So nothing is numbered twice, and within a workspace later is larger.
use entities::{
    Error, Result, boxed, campaign_move, connection::Connection, consent, dial, dnc, event, ledger, message_send, meta,
    workspace_lease::Share,
};

/// So many are at hand before a batch: more than all but the largest ones need.
const ROOM: i64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    next: i64,
    /// The first that is not ours. `None`: all are.
    end: Option<i64>,
}

impl Places {
    /// For whoever gives none.
    pub fn none() -> Self {
        Places { next: 0, end: Some(0) }
    }

    /// A node has none before it has a workspace.
    #[boxed]
    pub async fn at_start(db: &Connection, share: Share) -> Result<Self> {
        match share {
            Share::Whole => Self::counted_on(db).await,
            Share::Of(_) => Ok(Self::none()),
        }
    }

    /// In a transaction: what others have written by now comes before.
    #[boxed]
    pub async fn renewed(db: &Connection, share: Share) -> Result<Self> {
        match share {
            Share::Whole => Self::counted_on(db).await,
            Share::Of(_) => Self::reserved(db).await,
        }
    }

    /// Reserves more, if few are left.
    #[boxed]
    pub async fn make_room(&mut self, db: &Connection) -> Result<()> {
        if self.end.is_some_and(|end| end - self.next < ROOM) {
            *self = Self::reserved(db).await?;
        }
        Ok(())
    }

    pub fn next(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    /// Did they suffice? A batch that is too large is written item by item.
    pub fn check(&self) -> Result<()> {
        match self.end {
            Some(end) if self.next > end => Err(Error::Internal(format!(
                "a batch needs more than the {ROOM} places that were reserved"
            ))),
            _ => Ok(()),
        }
    }

    async fn counted_on(db: &Connection) -> Result<Self> {
        // What was left free stays so.
        let free = meta::get(db, meta::PLACES).await?.and_then(|place| place.parse().ok());
        let next = (last(db).await? + 1).max(free.unwrap_or(0));
        Ok(Places { next, end: None })
    }

    async fn reserved(db: &Connection) -> Result<Self> {
        // One process alone may have counted on meanwhile.
        let at_least = last(db).await? + 1;
        let next = meta::reserve(db, meta::PLACES, at_least).await?;
        let end = Some(next + meta::BLOCK);
        Ok(Places { next, end })
    }
}

/// Leaves so many places free: others may have been given them, of which this database knows nothing.
#[boxed]
pub async fn leave_free(db: &Connection, count: i64) -> Result<()> {
    let next = last(db).await? + 1;
    meta::reserve(db, meta::PLACES, next.saturating_add(count))
        .await
        .map(drop)
}

/// The last place that anything was given.
async fn last(db: &Connection) -> Result<i64> {
    let last = [
        event::last_seq(db).await?,
        dnc::last_seq(db).await?,
        consent::last_seq(db).await?,
        campaign_move::last_seq(db).await?,
        dial::last_seq_of_open(db).await?,
        ledger::last_seq(db).await?,
        message_send::last_seq(db).await?,
    ];
    Ok(last.into_iter().max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_one_by_one_and_never_beyond_what_was_reserved() {
        let mut places = Places { next: 7, end: Some(9) };
        assert_eq!((places.next(), places.next()), (7, 8));
        assert!(places.check().is_ok());
        places.next();
        assert!(places.check().is_err());
        let mut all = Places { next: 7, end: None };
        assert_eq!(all.next(), 7);
        assert!(all.check().is_ok());
    }
}
