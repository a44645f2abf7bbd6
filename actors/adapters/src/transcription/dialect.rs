//! What the protocols have in common: how sound and questions are told, and what is understood of the answers.
use super::turn::Piece;
use crate::speech::SpeechError;
use tokio_tungstenite::tungstenite::Message;

/// One connection's end of a protocol; it only writes and reads messages. Positions are those of [`super::turn`].
pub trait Dialect: Send {
    /// What is said first.
    fn opening(&mut self) -> Vec<Message> {
        Vec::new()
    }
    /// Samples that a message of sound has, but at the end of a turn; `None`: any number.
    fn message(&self) -> Option<usize> {
        None
    }
    /// Does every flush have an answer?
    fn is_sure(&self) -> bool;
    fn sound(&mut self, samples: &[i16]) -> Message;
    /// All before `at` is wanted now.
    fn flush(&mut self, at: u64) -> Vec<Message>;
    /// Nobody wants what is between `from` and `at`. An error ends the connection.
    fn discard(&mut self, from: u64, at: u64) -> Result<Vec<Message>, SpeechError>;
    /// Tells that we are still there.
    fn keep_alive(&mut self) -> Option<KeepAlive> {
        None
    }
    fn farewell(&mut self) -> Option<Message> {
        None
    }
    /// `at`: so much has been sent. An error ends the connection.
    fn read(&mut self, text: &str, at: u64) -> Result<Vec<Heard>, SpeechError>;
}

pub struct KeepAlive {
    pub message: Message,
    /// Samples that it holds.
    pub samples: usize,
}

/// What is understood of a message.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Words(Piece),
    /// There are none, and will be none, for that sound.
    Lost {
        from: u64,
        to: u64,
        error: SpeechError,
    },
    /// Of the turn in which the last words were.
    EagerEnd,
    Resumed,
    TurnEnd,
}

/// 16 bits, little endian.
pub fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// A position from seconds. What is not a time is 0, what is beyond all time its end.
pub fn position(seconds: f64) -> u64 {
    (seconds * 16_000.0).round() as u64
}
