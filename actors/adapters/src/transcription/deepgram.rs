//! Deepgram's `/v1/listen`: one stream of sound, and results that say which part of it they are of.
//!
//! Whose turn it is, is decided by the talk, so its own endpointing is off, and `Finalize` asks for what it still holds back.
//! Source: developers.deepgram.com, "Live audio", "Finalize", "Audio keep alive", "Close stream".
use super::{
    dialect::{Dialect, Heard, KeepAlive, bytes, position},
    turn::Piece,
};
use crate::speech::SpeechError;
use serde::Deserialize;
use std::collections::VecDeque;
use tokio_tungstenite::tungstenite::Message;

/// What is said in the address.
pub fn query(model: &str, language: Option<&str>, names: Vec<String>) -> Vec<(&'static str, String)> {
    let fixed = [
        ("encoding", "linear16"),
        ("sample_rate", "16000"),
        ("channels", "1"),
        ("model", model),
        ("language", language.unwrap_or("multi")),
        ("interim_results", "true"),
        ("endpointing", "false"),
        ("punctuate", "true"),
        ("smart_format", "true"),
    ];
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    fixed.into_iter().chain(key_terms(model, names)).collect()
}

/// The name of a word to expect.
pub const KEY_TERM: &str = "keyterm";
/// It takes 500 tokens of them, which it counts itself: so many words, and characters in all, are surely fewer.
const MOST_TERMS: usize = 50;
const MOST_CHARACTERS: usize = 200;

/// Words to expect, told to those models that take them: the first of them.
pub fn key_terms(model: &str, names: Vec<String>) -> impl Iterator<Item = (&'static str, String)> {
    let takes_them = ["nova-3", "flux"].iter().any(|name| model.starts_with(name));
    let mut characters = 0;
    names
        .into_iter()
        .filter(move |_| takes_them)
        .take(MOST_TERMS)
        .take_while(move |name| {
            characters += name.chars().count();
            characters <= MOST_CHARACTERS
        })
        .map(|name| (KEY_TERM, name))
}

/// Flushes whose answers have not come.
const MOST_FLUSHES: usize = 64;
/// Samples by which a time is rounded.
const NEAR: u64 = 800;
/// Samples by which the answer to a flush may end before it.
const SLACK: u64 = 8_000;

#[derive(Debug, Default)]
pub struct Deepgram {
    flushes: VecDeque<u64>,
    /// Up to there all is known.
    done_to: u64,
}

/// What it sends, as far as it matters.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    /// Seconds, as is its duration.
    start: Option<f64>,
    duration: Option<f64>,
    #[serde(default)]
    is_final: bool,
    #[serde(default)]
    speech_final: bool,
    #[serde(default)]
    from_finalize: bool,
    /// Of other events it is a list.
    channel: Option<serde_json::Value>,
}

impl Event {
    fn words(&self) -> Option<String> {
        let words = self.channel.as_ref()?.pointer("/alternatives/0/transcript")?;
        words.as_str().map(str::to_owned)
    }
}

impl Deepgram {
    fn flush_now(&mut self, at: u64) -> Vec<Message> {
        if self.flushes.len() >= MOST_FLUSHES {
            self.flushes.pop_front();
        }
        self.flushes.push_back(at);
        vec![Message::text(r#"{"type":"Finalize"}"#)]
    }

    /// Where an answer to a flush ends: at the last flush that it reaches. `end`: what it says itself.
    fn flushed_to(&mut self, end: Option<u64>) -> Option<u64> {
        let Some(end) = end else {
            return self.flushes.pop_front();
        };
        let mut reached = None;
        let mut slack = SLACK;
        while let Some(at) = self.flushes.front().filter(|at| **at <= end.saturating_add(slack)) {
            reached = Some((*at).max(end));
            // A later one has an answer of its own.
            slack = NEAR;
            self.flushes.pop_front();
        }
        reached.or(Some(end))
    }
}

impl Dialect for Deepgram {
    /// Where nothing is held back it may stay silent.
    fn is_sure(&self) -> bool {
        false
    }

    fn sound(&mut self, samples: &[i16]) -> Message {
        Message::binary(bytes(samples))
    }

    fn flush(&mut self, at: u64) -> Vec<Message> {
        self.flush_now(at)
    }

    /// What is left of it must not run into the next turn's words.
    fn discard(&mut self, _from: u64, at: u64) -> Result<Vec<Message>, SpeechError> {
        Ok(self.flush_now(at))
    }

    /// A text: sound would be paid for.
    fn keep_alive(&mut self) -> Option<KeepAlive> {
        Some(KeepAlive {
            message: Message::text(r#"{"type":"KeepAlive"}"#),
            samples: 0,
        })
    }

    fn farewell(&mut self) -> Option<Message> {
        Some(close_stream())
    }

    fn read(&mut self, text: &str, at: u64) -> Result<Vec<Heard>, SpeechError> {
        let event: Event = serde_json::from_str(text).map_err(|_| SpeechError::Garbage)?;
        match event.kind.as_str() {
            "Results" => {}
            "Error" => return Err(SpeechError::Refused { status: 500 }),
            _ => return Ok(Vec::new()),
        }
        let words = event.words().ok_or(SpeechError::Garbage)?;
        let from = event.start.map_or(self.done_to, position);
        let end = event.duration.map(|duration| from.saturating_add(position(duration)));
        let to = match event.from_finalize {
            true => self.flushed_to(end),
            false => end,
        };
        let to = to.unwrap_or(at).min(at);
        let is_done = event.is_final || event.speech_final || event.from_finalize;
        if is_done {
            self.done_to = self.done_to.max(to);
        }
        Ok(vec![Heard::Words(Piece {
            from,
            to,
            text: words,
            is_done,
        })])
    }
}

pub fn close_stream() -> Message {
    Message::text(r#"{"type":"CloseStream"}"#)
}
