//! The participant's turn that is under way.
use super::user_input::Said;
use adapters::brain::{LiveSound, Speech};
use entities::values::Moment;
use media::mic::Gathered;
use runtime::clock::Busy;
use tokio::sync::{mpsc, watch};

/// From its first sound to its end.
pub struct Turn {
    /// From 1, whether it counts or not.
    pub id: u64,
    /// Of the utterance, while it counts.
    pub number: Option<u64>,
    /// The detector's number of it; none: it has told of no beginning.
    pub heard_as: Option<u64>,
    pub began: Moment,
    pub said: Gathered,
    /// Milliseconds at its end in which nobody spoke.
    pub quiet_ms: u64,
    /// The detector hears it still.
    pub is_heard: bool,
    pub live: Option<mpsc::Sender<LiveSound>>,
    /// While it is provisional.
    pub settle: Option<watch::Sender<Option<bool>>>,
    /// Once its sound is over.
    pub busy: Option<Busy>,
}

impl Turn {
    pub fn begun(id: u64, heard_as: Option<u64>, began: Moment, live: Option<mpsc::Sender<LiveSound>>) -> Self {
        Turn {
            id,
            number: None,
            heard_as,
            began,
            said: Gathered::default(),
            quiet_ms: 0,
            is_heard: true,
            live,
            settle: None,
            busy: None,
        }
    }

    /// What was said so far, in these words.
    pub fn said(&self, text: String) -> Said {
        Said {
            began: self.began,
            ms: self.said.ms(),
            speech: Speech {
                text,
                audio: Some(self.said.sound()),
            },
        }
    }
}
