//! One answer, whose pieces belong together: who can says them in one go, so that the voice runs on from one to the next.
use super::{
    SpeechError,
    piece::{Failure, Saying},
};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::mpsc::{self, error::TrySendError};

/// Pieces that wait for those before them; a talk asks for three at once.
const WAITING: usize = 16;

/// Whoever has the pieces said, and where they go.
type Going = Mutex<Option<(usize, mpsc::Sender<Saying>)>>;

/// Held by whoever asks for the pieces, for as long as another one may follow.
#[derive(Clone, Default)]
pub struct Turn(Arc<Going>);

/// What a piece knows of its turn; of none, it is one by itself. Cheap to clone.
#[derive(Clone, Default)]
pub struct InTurn(Weak<Going>);

impl Turn {
    pub fn piece(&self) -> InTurn {
        InTurn(Arc::downgrade(&self.0))
    }
}

impl InTurn {
    /// Hands a piece to whoever has those before it, or begins with it. `who` tells synthesizers apart. Pieces are said in the order
    /// of these calls; the receiver ends when no other can follow.
    pub fn say(&self, who: usize, saying: Saying, begin: impl FnOnce(mpsc::Receiver<Saying>)) {
        let turn = self.0.upgrade();
        let mut going = turn
            .as_ref()
            .map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let saying = match going.as_deref() {
            Some(Some((whose, sender))) if *whose == who => match sender.try_send(saying) {
                Ok(()) => return,
                Err(TrySendError::Closed(saying)) => saying,
                Err(TrySendError::Full(saying)) => {
                    return saying.fail(Failure::Broken(SpeechError::Limited { retry_after: None }));
                }
            },
            _ => saying,
        };
        let (sender, pieces) = mpsc::channel(WAITING);
        // It is empty, and its other end is here.
        let _ = sender.try_send(saying);
        if let Some(going) = going.as_deref_mut() {
            *going = Some((who, sender));
        }
        begin(pieces);
    }
}

impl fmt::Debug for InTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InTurn")
    }
}
