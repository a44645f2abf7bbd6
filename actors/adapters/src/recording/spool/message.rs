//! What the thread that writes is told.
use super::{failure::Unrecorded, line::Line, piece::Side};
use std::sync::Arc;
use tokio::sync::oneshot::Sender as Reply;

pub enum Message {
    Sound {
        line: Arc<Line>,
        side: Side,
        at: u64,
        rate: u32,
        samples: Box<[i16]>,
    },
    /// Nothing more comes: all of it is written, unless it has failed.
    Close(Arc<Line>, Reply<Result<(), Unrecorded>>),
    /// The spool of that name is removed; that it is not there is fine.
    Remove(String, Reply<Result<(), String>>),
    /// What waits is written.
    Flush(Reply<()>),
}

impl Message {
    /// The line that it is about.
    pub fn line(&self) -> Option<Arc<Line>> {
        match self {
            Message::Sound { line, .. } | Message::Close(line, _) => Some(line.clone()),
            Message::Remove(..) | Message::Flush(_) => None,
        }
    }
}
