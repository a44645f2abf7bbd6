//! What is to be written, all or nothing.
use crate::event::EventDraft;
use entities::{changes::Changes, event as stored};
use std::sync::Arc;

/// What one actor wants written, all or nothing.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub changes: Changes,
    pub events: Vec<EventDraft>,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.changes.is_empty()
    }
}

/// An event that has just been committed, for those who watch.
pub type Committed = Arc<stored::Model>;
