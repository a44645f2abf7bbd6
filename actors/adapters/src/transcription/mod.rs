//! Speech to text: a talk says where a turn of the speaker begins, gives its sound, and asks for its words.
pub use crate::brain::{Failure, transcription::Provider};

use crate::sound::{HEARING, Pcm};
use tokio::sync::mpsc;

/// What is known of a talk before its first word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// BCP 47.
    pub language: String,
    /// Words to expect.
    pub names: Vec<String>,
}

/// One talk's way to a provider. Dropping it, or one of its ends, ends it.
#[derive(Debug)]
pub struct Transcript {
    pub input: mpsc::Sender<Hear>,
    pub events: mpsc::Receiver<Transcribed>,
}

/// What a provider gets to hear.
#[derive(Clone, Debug, PartialEq)]
pub enum Hear {
    /// A turn of the speaker begins. Of the one before, what was asked for still comes.
    Begin,
    /// 16 kHz mono, 16 to 100 ms.
    Sound(Pcm),
    /// The words of all since `Begin` are wanted. May be asked again in the same turn.
    Finalize,
    /// Forget all since `Begin`.
    Discard,
}

/// What a provider has understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Transcribed {
    /// All words since `Begin` so far.
    Partial(String),
    /// Exactly one of this or `Failed` for each `Finalize`, in their order: all words since `Begin`.
    Final(String),
    /// By providers that detect turns: this may have been all,
    EagerEnd(String),
    /// it was not,
    Resumed,
    /// it was.
    TurnEnd(String),
    /// In place of a `Final`.
    Failed(Failure),
}

/// Inputs that wait for a provider.
const INPUTS: usize = 256;
/// Samples that are kept of a turn: 45 s.
const LONGEST: usize = 45 * HEARING as usize;

impl Provider {
    /// For one talk, at once.
    pub fn open(&self, ask: Ask) -> Transcript {
        let (input, heard) = mpsc::channel(INPUTS);
        let (understood, events) = mpsc::channel(1);
        tokio::spawn(understand(self.clone(), ask, heard, understood));
        Transcript { input, events }
    }

    /// Does it say when a turn is over?
    pub fn detects_turns(&self) -> bool {
        false
    }

    /// For metrics and timeline.
    pub fn name(&self) -> &'static str {
        "openai"
    }
}

/// A turn at a time.
async fn understand(
    provider: Provider,
    ask: Ask,
    mut heard: mpsc::Receiver<Hear>,
    understood: mpsc::Sender<Transcribed>,
) {
    let mut turn = Vec::new();
    while let Some(hear) = heard.recv().await {
        match hear {
            Hear::Begin | Hear::Discard => turn.clear(),
            Hear::Sound(sound) if turn.len() < LONGEST => turn.extend_from_slice(&sound.samples),
            Hear::Sound(_) => {}
            Hear::Finalize => {
                let answer = provider.transcribe(&Pcm::new(HEARING, &turn[..]), &ask.language).await;
                let answer = answer.map_or_else(Transcribed::Failed, Transcribed::Final);
                if understood.send(answer).await.is_err() {
                    return;
                }
            }
        }
    }
}
