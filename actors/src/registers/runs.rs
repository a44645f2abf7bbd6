//! The numbers of a file that is being read, in little more memory than they take in the end: sorted run by run as they come, and
//! merged when all are there.
use super::hashes::{packed, packed_days};
use entities::{Result, ids::RegisterFileId, register::chunk};
use rules::registers::day;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Numbers of one run: 8 MB while it is sorted.
const RUN: usize = 512 * 1024;
/// Numbers of one row of the database: 32 KiB.
const PER_CHUNK: usize = 4096;

/// Where numbers wait until all of a file are there.
pub trait Numbers {
    /// `false`: there are too many.
    fn add(&mut self, hash: u64, day: u16) -> Result<bool>;
    fn is_empty(&self) -> bool;
}

/// Numbers as they come.
pub struct Runs {
    done: Vec<Run>,
    /// Those of the run that is not full.
    open: Vec<(u64, u16)>,
    length: usize,
    left: usize,
}

/// In order, each once.
struct Run {
    hashes: Vec<u64>,
    /// Empty: none has a day.
    days: Vec<u16>,
}

impl Runs {
    /// Takes no more than so many numbers.
    pub fn new(most: usize) -> Self {
        Self::with_length(RUN, most)
    }

    fn with_length(length: usize, most: usize) -> Self {
        Runs {
            done: Vec::new(),
            open: Vec::new(),
            length,
            left: most,
        }
    }

    /// `false`: there are too many.
    pub fn push(&mut self, hash: u64, day: u16) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        self.open.push((hash, day));
        if self.open.len() >= self.length {
            self.seal();
        }
        true
    }

    pub fn is_empty(&self) -> bool {
        self.done.is_empty() && self.open.is_empty()
    }

    fn seal(&mut self) {
        // Of one number the latest day counts; that nobody knows it counts as the very latest.
        self.open.sort_unstable_by_key(|(hash, day)| (*hash, Reverse(*day)));
        self.open.dedup_by_key(|(hash, _)| *hash);
        let is_dated = self.open.iter().any(|(_, day)| *day != day::UNKNOWN);
        self.done.push(Run {
            hashes: self.open.iter().map(|(hash, _)| *hash).collect(),
            days: match is_dated {
                true => self.open.iter().map(|(_, day)| *day).collect(),
                false => Vec::new(),
            },
        });
        self.open.clear();
    }

    /// All of them in order, each once.
    pub fn merged(mut self) -> Merged {
        if !self.open.is_empty() {
            self.seal();
        }
        let mut merged = Merged {
            heads: BinaryHeap::with_capacity(self.done.len()),
            places: vec![0; self.done.len()],
            runs: self.done,
            last: None,
        };
        for nth in 0..merged.runs.len() {
            merged.advance(nth);
        }
        merged
    }
}

impl Numbers for Runs {
    fn add(&mut self, hash: u64, day: u16) -> Result<bool> {
        Ok(self.push(hash, day))
    }

    fn is_empty(&self) -> bool {
        Runs::is_empty(self)
    }
}

/// Sorted runs, as one.
pub struct Merged {
    runs: Vec<Run>,
    /// How far each run is read.
    places: Vec<usize>,
    /// The next number of each run, the latest day of a number first.
    heads: BinaryHeap<Reverse<(u64, Reverse<u16>, usize)>>,
    last: Option<u64>,
}

impl Merged {
    fn advance(&mut self, nth: usize) {
        let (Some(run), Some(place)) = (self.runs.get(nth), self.places.get_mut(nth)) else {
            return;
        };
        if let Some(hash) = run.hashes.get(*place) {
            let day = run.days.get(*place).copied().unwrap_or(day::UNKNOWN);
            self.heads.push(Reverse((*hash, Reverse(day), nth)));
            *place += 1;
        }
    }
}

impl Iterator for Merged {
    type Item = (u64, u16);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Reverse((hash, Reverse(day), nth)) = self.heads.pop()?;
            self.advance(nth);
            if self.last != Some(hash) {
                self.last = Some(hash);
                return Some((hash, day));
            }
        }
    }
}

/// The rows of a file, some at a time.
pub struct Chunks {
    merged: Merged,
    file: RegisterFileId,
    has_dates: bool,
    next: i32,
    numbers: i64,
}

impl Chunks {
    pub fn new(merged: Merged, file: RegisterFileId, has_dates: bool) -> Self {
        Chunks {
            merged,
            file,
            has_dates,
            next: 0,
            numbers: 0,
        }
    }

    /// So many more rows; none: all were taken.
    pub fn take(&mut self, rows: usize) -> Vec<chunk::Model> {
        std::iter::from_fn(|| self.row()).take(rows).collect()
    }

    fn row(&mut self) -> Option<chunk::Model> {
        let (hashes, days): (Vec<u64>, Vec<u16>) = self.merged.by_ref().take(PER_CHUNK).unzip();
        if hashes.is_empty() {
            return None;
        }
        let n = self.next;
        self.next += 1;
        self.numbers += i64::try_from(hashes.len()).unwrap_or(0);
        Some(chunk::Model {
            file_id: self.file,
            n,
            hashes: packed(&hashes),
            days: self.has_dates.then(|| packed_days(&days)),
        })
    }

    /// Numbers in all rows that were taken.
    pub fn numbers(&self) -> i64 {
        self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::{super::hashes::unpack, *};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn runs(length: usize, numbers: &[(u64, u16)]) -> Runs {
        let mut runs = Runs::with_length(length, usize::MAX);
        assert!(numbers.iter().all(|(hash, day)| runs.push(*hash, *day)));
        runs
    }

    #[test]
    fn no_more_are_taken_than_may_be() {
        let mut runs = Runs::with_length(2, 3);
        let taken: Vec<bool> = (0..5).map(|n| runs.push(n, day::UNKNOWN)).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(!runs.is_empty() && Runs::new(5).is_empty());
    }

    #[test]
    fn rows_are_numbered_and_full_but_for_the_last() {
        let numbers: Vec<(u64, u16)> = (0..10_000).rev().map(|n| (n, day::UNKNOWN)).collect();
        let file = Uuid::from_u128(7).into();
        let mut chunks = Chunks::new(runs(999, &numbers).merged(), file, false);
        let (first, rest) = (chunks.take(2), chunks.take(100));
        assert_eq!((first.len(), rest.len(), chunks.take(1).len()), (2, 1, 0));
        assert_eq!(chunks.numbers(), 10_000);
        let mut read = Vec::new();
        for (n, row) in first.iter().chain(&rest).enumerate() {
            assert_eq!(
                (row.file_id, row.n, &row.days),
                (file, i32::try_from(n).unwrap(), &None)
            );
            assert!(unpack(&row.hashes, &mut read));
        }
        assert_eq!(read, (0..10_000).collect::<Vec<_>>());
        let mut dated = Chunks::new(runs(10, &[(1, 5)]).merged(), file, true);
        assert_eq!(dated.take(1)[0].days.as_deref(), Some(&[0, 5][..]));
        assert!(Chunks::new(runs(10, &[]).merged(), file, true).take(1).is_empty());
    }

    proptest! {
        /// Whatever comes in whatever order and however often: all of it in order, each once, with its latest day.
        #[test]
        fn runs_come_together_as_a_map_would_have_them(
            numbers in prop::collection::vec((0_u64..200, prop_oneof![Just(day::UNKNOWN), 0_u16..50]), 0..300),
            length in 1_usize..40,
        ) {
            let mut expected: BTreeMap<u64, u16> = BTreeMap::new();
            for (hash, day) in &numbers {
                let known = expected.entry(*hash).or_insert(*day);
                *known = (*known).max(*day);
            }
            let merged: Vec<(u64, u16)> = runs(length, &numbers).merged().collect();
            prop_assert_eq!(merged, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
