//! Registers of numbers that must not be called, where they are asked about each number and not given out as files.
pub mod http;

pub use crate::look_up::Failure;

use entities::values::{E164, Moment};
use futures_util::future::BoxFuture;

/// What a register says of some numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// As of when it says so; not later than it was asked.
    pub as_of: Moment,
    /// In the order of the numbers, one for each.
    pub listings: Vec<Listing>,
}

/// What it says of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    pub is_listed: bool,
    /// Since which day, as [`rules::registers::day`] counts them; none: it does not say so.
    pub listed_on: Option<u16>,
}

pub trait RegisterApi: Send + Sync {
    /// An answer about each of the numbers, or none at all. `now`: by the clock that shows less.
    fn ask<'a>(&'a self, numbers: &'a [E164], now: Moment) -> BoxFuture<'a, Result<Answers, Failure>>;
}
