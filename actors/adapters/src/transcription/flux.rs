//! Deepgram Flux, `/v2/listen`: a model that says itself when a turn is over, and before that, when it seems so.
//!
//! Source: developers.deepgram.com/docs/flux, "Quickstart", "State machine", "Force end of turn".
use super::{
    deepgram::{close_stream, key_terms},
    dialect::{Dialect, Heard, KeepAlive, bytes, position},
    turn::Piece,
};
use crate::speech::SpeechError;
use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

/// Samples: 80 ms, which it wants at once.
const MESSAGE: usize = 1_280;
/// Samples by which a turn may end before the flush that ended it.
const SLACK: u64 = 8_000;

/// Languages that it takes a hint for; others it refuses.
const HINTS: [&str; 10] = ["en", "es", "fr", "de", "hi", "ru", "pt", "ja", "it", "nl"];

/// What is said in the address. Without a model it is the one for the language.
pub fn query(model: &str, language: Option<&str>, names: Vec<String>) -> Vec<(&'static str, String)> {
    let model = match (model, language) {
        ("", Some("en")) => "flux-general-en",
        ("", _) => "flux-general-multi",
        (model, _) => model,
    };
    let fixed = [
        ("encoding", "linear16"),
        ("sample_rate", "16000"),
        ("model", model),
        ("eot_threshold", "0.7"),
        ("eager_eot_threshold", "0.4"),
        ("eot_timeout_ms", "5000"),
    ];
    let hint = language.filter(|code| model.ends_with("-multi") && HINTS.contains(code));
    let fixed = fixed.into_iter().chain(hint.map(|code| ("language_hint", code)));
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    fixed.chain(key_terms(model, names)).collect()
}

#[derive(Debug, Default)]
pub struct Flux {
    /// Its turn that goes on: which, and where it began.
    turn: Option<(u64, u64)>,
    flush: Option<u64>,
    done_to: u64,
}

/// What it sends, as far as it matters.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    event: String,
    #[serde(default)]
    turn_index: u64,
    #[serde(default)]
    transcript: String,
    /// Seconds.
    audio_window_start: Option<f64>,
    audio_window_end: Option<f64>,
}

impl Flux {
    fn end_turn(&mut self, at: u64) -> Vec<Message> {
        self.flush = Some(at);
        vec![Message::text(r#"{"type":"ForceEndTurn"}"#)]
    }
}

impl Dialect for Flux {
    fn message(&self) -> Option<usize> {
        Some(MESSAGE)
    }

    /// Where no turn goes on there is none to end.
    fn is_sure(&self) -> bool {
        false
    }

    fn sound(&mut self, samples: &[i16]) -> Message {
        Message::binary(bytes(samples))
    }

    fn flush(&mut self, at: u64) -> Vec<Message> {
        self.end_turn(at)
    }

    /// What is left of it must not run into the next turn's words.
    fn discard(&mut self, _from: u64, at: u64) -> Result<Vec<Message>, SpeechError> {
        Ok(match self.turn {
            Some(_) => self.end_turn(at),
            None => Vec::new(),
        })
    }

    /// It has no message for that: a little silence.
    fn keep_alive(&mut self) -> Option<KeepAlive> {
        Some(KeepAlive {
            message: Message::binary(vec![0; 2 * MESSAGE]),
            samples: MESSAGE,
        })
    }

    fn farewell(&mut self) -> Option<Message> {
        Some(close_stream())
    }

    fn read(&mut self, text: &str, at: u64) -> Result<Vec<Heard>, SpeechError> {
        let event: Event = serde_json::from_str(text).map_err(|_| SpeechError::Garbage)?;
        match event.kind.as_str() {
            "TurnInfo" => {}
            "Error" => return Err(SpeechError::Refused { status: 500 }),
            _ => return Ok(Vec::new()),
        }
        let is_over = event.event == "EndOfTurn";
        let mut to = event.audio_window_end.map_or(at, position).min(at);
        let from = match self.turn {
            Some((index, from)) if index == event.turn_index => from,
            _ => {
                let start = event.audio_window_start.map_or(self.done_to, position);
                start.max(self.done_to).min(to)
            }
        };
        self.turn = (!is_over).then_some((event.turn_index, from));
        if is_over {
            if let Some(flush) = self.flush.take_if(|flush| *flush <= to.saturating_add(SLACK)) {
                to = to.max(flush);
            }
            self.done_to = self.done_to.max(to);
        }
        let follows = match event.event.as_str() {
            "StartOfTurn" | "Update" => None,
            "EagerEndOfTurn" => Some(Heard::EagerEnd),
            "TurnResumed" => Some(Heard::Resumed),
            "EndOfTurn" => Some(Heard::TurnEnd),
            _ => return Ok(Vec::new()),
        };
        let words = Heard::Words(Piece {
            from,
            to,
            text: event.transcript,
            is_done: is_over,
        });
        Ok([Some(words), follows].into_iter().flatten().collect())
    }
}
