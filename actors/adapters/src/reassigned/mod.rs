//! Who knows whether numbers were given to somebody else.
pub mod database;

pub use crate::look_up::{AT_ONCE, Failure};

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

pub trait Database: Send + Sync {
    /// The answers, in the order of the questions: one for each, or none at all.
    fn ask<'a>(&'a self, questions: &'a [Question]) -> BoxFuture<'a, Result<Vec<ReassignedAnswer>, Failure>>;
}
