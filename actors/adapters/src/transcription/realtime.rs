//! OpenAI's Realtime API as a transcription session, also of speaches: sound is appended, committed at the end of a turn, and each
//! commit becomes an item with its words.
//!
//! Whose turn it is, is decided by the talk, so its own turn detection is off.
//! Source: developers.openai.com, "Realtime transcription".
use super::{
    dialect::{Dialect, Heard, bytes},
    items::Items,
};
use crate::{
    provider_problem::Problem,
    sound::{HEARING, Resampler},
    speech::SpeechError,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use std::mem;
use tokio_tungstenite::tungstenite::Message;

/// Samples per second of its `audio/pcm`.
const WIDE: u32 = 24_000;
/// Samples of 16 kHz that a commit has at least, else it is refused: 100 ms.
const LEAST: u64 = 1_600;

/// What is said in the address. OpenAI takes the model from the session, and refuses it here; others want it here.
pub fn query(model: &str, language: Option<&str>, is_openai: bool) -> Vec<(&'static str, String)> {
    let told = [("model", Some(model)), ("language", language)];
    let told = told.into_iter().filter(|_| !is_openai);
    let told = told.filter_map(|(name, value)| Some((name, value?.to_owned())));
    [("intent", "transcription".to_owned())]
        .into_iter()
        .chain(told)
        .collect()
}

/// Words to expect, for those models that take them.
pub fn prompt(model: &str, names: &[String]) -> Option<String> {
    let takes_one = ["whisper-1", "gpt-4o"].iter().any(|name| model.starts_with(name));
    (takes_one && !names.is_empty()).then(|| names.join(", "))
}

pub struct Realtime {
    session: Value,
    resampler: Option<Resampler>,
    items: Items,
    /// Samples that are not committed.
    buffered: u64,
}

/// What it sends, as far as it matters.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    item_id: Option<String>,
    delta: Option<String>,
    transcript: Option<String>,
    error: Option<Problem>,
}

/// The failure that it is. Some number their codes as HTTP does.
fn failure(problem: &Problem) -> SpeechError {
    const STATUSES: [(&str, u16); 7] = [
        ("rate_limit_exceeded", 429),
        ("rate_limit_error", 429),
        ("insufficient_quota", 402),
        ("invalid_api_key", 401),
        ("authentication_error", 401),
        ("model_not_found", 404),
        ("invalid_request_error", 400),
    ];
    let named = STATUSES.iter().find(|(name, _)| problem.names(name));
    let numbered = problem.code.as_ref().and_then(|code| code.parse().ok());
    let numbered = numbered.filter(|status| (400..600).contains(status));
    let status = numbered.or(named.map(|(_, status)| *status));
    SpeechError::of_status(status.unwrap_or(500), None)
}

impl Realtime {
    /// `language`: a code, if there is one that is known. `prompt`: for models that take one.
    pub fn new(model: &str, language: Option<&str>, prompt: Option<&str>) -> Self {
        let mut transcription = json!({ "model": model });
        for (name, value) in [("language", language), ("prompt", prompt)] {
            if let Some(value) = value {
                transcription[name] = value.into();
            }
        }
        let session = json!({
            "type": "transcription",
            "audio": { "input": {
                "format": { "type": "audio/pcm", "rate": WIDE },
                "transcription": transcription,
                "turn_detection": null,
            } },
        });
        Realtime {
            session,
            // Fails only of rates that are zero.
            resampler: Resampler::new(HEARING, WIDE).ok(),
            items: Items::default(),
            buffered: 0,
        }
    }

    fn append(&mut self, samples: &[i16]) -> Message {
        let wide = self.resampler.as_mut().map(|resampler| resampler.resample(samples));
        let audio = STANDARD.encode(bytes(&wide.unwrap_or_default()));
        text(&json!({ "type": "input_audio_buffer.append", "audio": audio }))
    }
}

impl Dialect for Realtime {
    fn opening(&mut self) -> Vec<Message> {
        vec![text(&json!({ "type": "session.update", "session": self.session }))]
    }

    fn is_sure(&self) -> bool {
        true
    }

    fn sound(&mut self, samples: &[i16]) -> Message {
        self.buffered += samples.len() as u64;
        self.append(samples)
    }

    fn flush(&mut self, at: u64) -> Vec<Message> {
        // Nothing new: what was committed before answers this too.
        if self.buffered == 0 || self.items.is_full() {
            return Vec::new();
        }
        let missing = LEAST.saturating_sub(self.buffered) as usize;
        let silence = (missing > 0).then(|| self.append(&vec![0; missing]));
        self.items.commit(at);
        self.buffered = 0;
        let commit = text(&json!({ "type": "input_audio_buffer.commit" }));
        silence.into_iter().chain([commit]).collect()
    }

    fn discard(&mut self, from: u64, at: u64) -> Result<Vec<Message>, SpeechError> {
        self.items.discard(from, at)?;
        Ok(match mem::take(&mut self.buffered) {
            0 => Vec::new(),
            _ => vec![text(&json!({ "type": "input_audio_buffer.clear" }))],
        })
    }

    fn read(&mut self, message: &str, at: u64) -> Result<Vec<Heard>, SpeechError> {
        let event: Event = serde_json::from_str(message).map_err(|_| SpeechError::Garbage)?;
        let what = event.kind.strip_prefix("conversation.item.input_audio_transcription.");
        match (what, event.kind.as_str(), event.item_id) {
            (_, "error", _) => match event.error {
                // There was no sound in it.
                Some(problem) if problem.names("input_audio_buffer_commit_empty") => {
                    Ok(self.items.conclude(None, Ok(None)))
                }
                problem => Err(problem.as_ref().map_or(SpeechError::Refused { status: 500 }, failure)),
            },
            (_, "input_audio_buffer.committed", Some(id)) => {
                if self.items.confirm(id, at)? {
                    self.buffered = 0;
                }
                Ok(self.items.outcomes())
            }
            (Some("delta"), _, Some(id)) => {
                let delta = event.delta.unwrap_or_default();
                Ok(self.items.delta(&id, &delta, at).into_iter().collect())
            }
            (Some("completed"), _, Some(id)) => Ok(self.items.conclude(Some(&id), Ok(event.transcript))),
            (Some("failed"), _, Some(id)) => {
                let error = event.error.as_ref().map_or(SpeechError::Garbage, failure);
                Ok(self.items.conclude(Some(&id), Err(error)))
            }
            (Some("delta" | "completed" | "failed"), ..) | (_, "input_audio_buffer.committed", None) => {
                Err(SpeechError::Garbage)
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn text(event: &Value) -> Message {
    Message::text(event.to_string())
}
