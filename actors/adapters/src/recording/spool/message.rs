//! What the thread that writes is told.
use super::{line::Line, piece::Side};
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
    /// Nothing more comes: all of it is written.
    Close(Arc<Line>, Reply<Result<(), String>>),
    /// The spool of that name is removed; that it is not there is fine.
    Remove(String, Reply<Result<(), String>>),
    /// What waits is written.
    Flush(Reply<()>),
}
