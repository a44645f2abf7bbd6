//! All that is recorded about one person, in the order of the chain. Only openings and wishes say whom they are about, and what came of an
//! opening may stand anywhere behind it: so the places of its rows are looked up first, those of many at once, and then the rows are
//! read in their order. Only their places are held, and of these only so many.
use super::{BOTH, By, Column, Model, about, owned};
use crate::{
    boxed, bulk,
    connection::Connection,
    error::Result,
    ids::{AttemptId, TenantId},
    page,
    values::Env,
};
use sea_orm::{QuerySelect, entity::prelude::*};
use std::collections::{BTreeSet, VecDeque};

/// Openings and wishes that are asked for at once, and rows that are read at once.
const AT_ONCE: usize = 512;

/// A walk through the rows of the person whose number or address has that hash.
#[derive(Debug)]
pub struct PersonRows {
    owner: (TenantId, Env),
    hashes: [String; 1],
    /// Up to here all was read.
    after: i64,
    until: i64,
    /// Places that are held at most.
    most: usize,
    /// The next ones, in their order.
    ahead: VecDeque<i64>,
    /// There are no others behind these.
    is_all: bool,
}

impl PersonRows {
    /// Of the rows behind `after`, up to `until`. `most`: places that are held at once; whoever has more rows is looked through once for
    /// each so many.
    pub fn new(owner: (TenantId, Env), hash: &str, (after, until): (i64, i64), most: usize) -> Self {
        PersonRows {
            owner,
            hashes: [hash.to_owned()],
            after,
            until,
            most: most.max(1),
            ahead: VecDeque::new(),
            is_all: false,
        }
    }

    /// The place up to which all was read.
    pub fn read_until(&self) -> i64 {
        self.after
    }

    /// The next rows, in their order; none: there are no more.
    #[boxed]
    pub async fn next(&mut self, db: &Connection) -> Result<Vec<Model>> {
        loop {
            if self.ahead.is_empty() && !self.is_all {
                self.look_ahead(db).await?;
            }
            let places: Vec<i64> = self.ahead.iter().take(AT_ONCE).copied().collect();
            let rows = self.rows_at(db, &places).await?;
            self.ahead.drain(..places.len());
            let is_over = self.ahead.is_empty() && self.is_all;
            self.after = match places.last() {
                Some(last) if !is_over => *last,
                Some(_) | None => self.until,
            };
            // All of these may have been let go meanwhile.
            if is_over || !rows.is_empty() {
                return Ok(rows);
            }
        }
    }

    /// Finds the lowest of the places that are left.
    async fn look_ahead(&mut self, db: &Connection) -> Result<()> {
        let mut lowest = BTreeSet::new();
        for by in BOTH {
            let mut behind = 0;
            loop {
                let found = self.attempts(db, by, behind).await?;
                let ids: BTreeSet<AttemptId> = found.iter().map(|(_, attempt)| *attempt).collect();
                let ids: Vec<AttemptId> = ids.into_iter().collect();
                for place in self.places(db, &ids).await? {
                    lowest.insert(place);
                    if lowest.len() > self.most {
                        lowest.pop_last();
                    }
                }
                match found.last() {
                    Some((last, _)) if found.len() == AT_ONCE => behind = *last,
                    Some(_) | None => break,
                }
            }
        }
        self.is_all = lowest.len() < self.most;
        self.ahead = lowest.into_iter().collect();
        Ok(())
    }

    /// The next openings and wishes: where each stands, and of which attempt it is.
    async fn attempts(&self, db: &Connection, by: By, behind: i64) -> Result<Vec<(i64, AttemptId)>> {
        let rows = owned(self.owner)
            .select_only()
            .column(Column::N)
            .column(Column::AttemptId)
            .filter(about(by, &self.hashes))
            .filter(Column::N.lte(self.until));
        let rows = page::next(rows, Column::N, Some(behind), AT_ONCE as u64);
        let found: Vec<(i64, AttemptId)> = rows.into_tuple().all(db).await?;
        Ok(found)
    }

    /// Where the rows of these attempts stand, of those that are left: the index of attempts alone knows it.
    async fn places(&self, db: &Connection, ids: &[AttemptId]) -> Result<Vec<i64>> {
        let mut all = Vec::new();
        for chunk in bulk::padded(ids) {
            let rows = owned(self.owner)
                .select_only()
                .column(Column::N)
                .filter(Column::AttemptId.is_in(chunk))
                .filter(Column::N.gt(self.after))
                .filter(Column::N.lte(self.until));
            let found: Vec<i64> = rows.into_tuple().all(db).await?;
            all.extend(found);
        }
        Ok(all)
    }

    async fn rows_at(&self, db: &Connection, places: &[i64]) -> Result<Vec<Model>> {
        let mut rows = Vec::new();
        for chunk in bulk::padded(places) {
            rows.extend(owned(self.owner).filter(Column::N.is_in(chunk)).all(db).await?);
        }
        rows.sort_by_key(|row: &Model| row.n);
        Ok(rows)
    }
}
