//! Work on many rows, cut into transactions that keep nobody waiting for long: the writer is one, and whoever writes meanwhile
//! waits for a slice at most. How many rows that are depends on what they are and on the database, so it is measured.
use crate::{deps::Deps, leases::Of};
use entities::{Result, connection::Transaction};
use futures_util::future::BoxFuture;
use rules::commit::Commit;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// What a slice is to take, its commit included.
const AIM: Duration = Duration::from_millis(3);
/// Rows of the first slice, of which nothing is known yet; and of one where the commit itself takes longer than that.
const FIRST: usize = 50;
const LEAST: usize = 25;
/// Who waited so long for the writer is not alone.
const CROWDED: Duration = Duration::from_millis(1);
/// So many times as long as a slice had it, others have the writer then; and the longest rest.
const SHARE: u32 = 3;
const REST: Duration = Duration::from_millis(50);

/// The slices of one job.
pub struct Slices {
    rows: usize,
    least: usize,
    most: usize,
}

impl Slices {
    /// No slice is larger than `most` rows, however fast the database is.
    pub fn new(most: usize) -> Self {
        Slices {
            rows: FIRST.min(most),
            least: LEAST.min(most),
            most,
        }
    }

    /// All of one size, where what comes out depends on what is in a slice.
    pub fn of(rows: usize) -> Self {
        Slices {
            rows,
            least: rows,
            most: rows,
        }
    }

    /// Rows of the next slice.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Writes a slice of that many rows; resolves after its commit, and after others have had their turn.
    pub async fn write<T, F>(&mut self, deps: &Deps, of: impl Into<Of>, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'a> Fn(&'a Transaction) -> BoxFuture<'a, Result<(T, Commit)>> + Send + Sync + 'static,
    {
        let handed_in = Instant::now();
        let begun: Arc<Mutex<Option<Instant>>> = Arc::default();
        let noted = begun.clone();
        let writing = deps.writer.run(of, move |db| {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            job(db)
        });
        let done = writing.await?;
        let begun = *begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.unwrap_or(handed_in);
        let took = begun.elapsed();
        self.rows = next(self.rows, took).clamp(self.least, self.most);
        if begun.duration_since(handed_in) >= CROWDED {
            deps.clock.rest((took * SHARE).min(REST)).await;
        }
        Ok(done)
    }
}

/// As many rows as fit into the aim at the pace of the last slice. It grows slowly, for a slice may have been quick by chance.
fn next(rows: usize, took: Duration) -> usize {
    let micros = took.as_micros().max(1);
    let fits = AIM.as_micros().saturating_mul(rows as u128) / micros;
    let fits = usize::try_from(fits).unwrap_or(usize::MAX);
    fits.min(rows + rows / 4 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_as_many_rows_as_fit_into_its_time() {
        for (rows, millis, expected) in [
            (100, 3, 100),
            // Too slow: at once as few as fit.
            (100, 10, 30),
            (1_000, 100, 30),
            (500, 102, 14),
            (25, 60_000, 0),
            // Quick: a quarter more each time.
            (100, 1, 126),
            (25, 0, 32),
        ] {
            assert_eq!(
                next(rows, Duration::from_millis(millis)),
                expected,
                "{rows} in {millis} ms"
            );
        }
    }

    #[test]
    fn it_finds_its_size_from_either_side() {
        // 50 µs a row, and 1 ms for the commit.
        let took = |rows: usize| Duration::from_micros(1_000 + 50 * rows as u64);
        for first in [25, 1_000] {
            let mut rows = first;
            for _ in 0..20 {
                rows = next(rows, took(rows));
            }
            assert!((35..=45).contains(&rows), "{rows} from {first}");
        }
    }

    #[test]
    fn it_stays_within_its_bounds() {
        for (slices, bounds) in [
            (Slices::new(1_000), (50, 25, 1_000)),
            (Slices::new(20), (20, 20, 20)),
            (Slices::of(7), (7, 7, 7)),
        ] {
            assert_eq!((slices.rows(), slices.least, slices.most), bounds);
        }
    }
}
