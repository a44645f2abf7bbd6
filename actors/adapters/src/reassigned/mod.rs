//! Who knows whether numbers were given to somebody else.
pub mod database;

use entities::{
    reassigned::ReassignedAnswer,
    values::{E164, Moment},
};
use futures_util::future::BoxFuture;

/// Has this number another owner than it had then?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub number: E164,
    pub since: Moment,
}

/// Why there is no answer, in words for the operator's log: one line, bounded, without the key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// Questions that are asked at once, at most.
pub const AT_ONCE: usize = 250;

pub trait Database: Send + Sync {
    /// The answers, in the order of the questions: one for each, or none at all.
    fn ask<'a>(&'a self, questions: &'a [Question]) -> BoxFuture<'a, Result<Vec<ReassignedAnswer>, Failure>>;
}
