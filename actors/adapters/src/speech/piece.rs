//! One piece of text on its way to its sound, where it is a socket's task that has it said: what the task holds of it, and what
//! whoever listens holds.
use super::{
    RATE, SpeechError,
    letters::{Places, Reader},
    pcm::Pcm,
};
use crate::{
    provider_http::{Limits, Patience},
    sound::{Timings, ms_of},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// When all that is said before a piece has been made, and it is asked for.
pub type ItsTurn = Shared<BoxFuture<'static, Instant>>;

/// Why nothing more comes of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no socket: nothing has been asked.
    Unopened(SpeechError),
    Broken(SpeechError),
}

/// What the task holds.
pub struct Saying {
    pub text: String,
    pub reader: Reader,
    /// Holds no more than an utterance may have.
    sounds: mpsc::UnboundedSender<Result<Vec<i16>, Failure>>,
    turn: Option<oneshot::Sender<Instant>>,
    pcm: Pcm,
    samples: u64,
}

/// What whoever listens holds. Dropping it calls the piece off.
pub struct Piece {
    heard: mpsc::UnboundedReceiver<Result<Vec<i16>, Failure>>,
    its_turn: ItsTurn,
    patience: Patience,
    has_begun: bool,
}

/// Both ends of one.
pub fn piece(text: &str, places: Places, timings: Timings, limits: Limits) -> (Saying, Piece) {
    let ((sounds, heard), (turn, comes)) = (mpsc::unbounded_channel(), oneshot::channel());
    // One that is given up before its turn is over as well.
    let its_turn = comes.map(|at| at.unwrap_or_else(|_| Instant::now()));
    let saying = Saying {
        text: text.to_owned(),
        reader: Reader::of(text, places, timings),
        sounds,
        turn: Some(turn),
        pcm: Pcm::at(RATE),
        samples: 0,
    };
    let piece = Piece {
        heard,
        its_turn: its_turn.boxed().shared(),
        patience: Patience::new(limits),
        has_begun: false,
    };
    (saying, piece)
}

impl Saying {
    /// Somebody listens.
    pub fn is_wanted(&self) -> bool {
        !self.sounds.is_closed()
    }

    /// Waits until nobody listens any more.
    pub async fn unwanted(&self) {
        self.sounds.closed().await;
    }

    /// It is its turn.
    pub fn begin(&mut self) {
        if let Some(turn) = self.turn.take() {
            // Nobody may listen any more.
            let _ = turn.send(Instant::now());
        }
    }

    pub fn has_sound(&self) -> bool {
        self.pcm.has_begun()
    }

    /// Milliseconds of what has come.
    pub fn ms(&self) -> u64 {
        ms_of(self.samples, RATE)
    }

    pub fn sound(&mut self, bytes: &[u8]) -> Result<(), SpeechError> {
        let samples = self.pcm.take(bytes)?;
        self.samples += samples.len() as u64;
        if !samples.is_empty() {
            // Nobody may listen any more, which is looked after elsewhere.
            let _ = self.sounds.send(Ok(samples));
        }
        Ok(())
    }

    /// All of it has come.
    pub fn end(self) {
        if let Err(error) = self.pcm.end() {
            self.fail(Failure::Broken(error));
        }
    }

    pub fn fail(self, failure: Failure) {
        // Nobody may listen any more.
        let _ = self.sounds.send(Err(failure));
    }
}

impl Piece {
    pub fn its_turn(&self) -> ItsTurn {
        self.its_turn.clone()
    }

    /// The next samples; none when all was said. Time is counted from its turn on: until then others are heard.
    pub async fn next(&mut self) -> Result<Option<Vec<i16>>, Failure> {
        let asked = self.its_turn.clone().await;
        let Limits {
            first_byte, silence, ..
        } = self.patience.limits;
        let (limit, error) = match self.has_begun {
            false => (first_byte.saturating_sub(asked.elapsed()), SpeechError::Timeout),
            true => (silence, SpeechError::Stalled),
        };
        let piece = self.patience.wait(limit, self.heard.recv()).await;
        let piece = piece.ok_or(Failure::Broken(error))?.transpose()?;
        self.has_begun |= piece.is_some();
        Ok(piece)
    }
}
