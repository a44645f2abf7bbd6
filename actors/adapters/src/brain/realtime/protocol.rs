//! The words of the protocol: what is asked of the provider, and what of its answers is understood.
//!
//! Source: OpenAI, "Realtime API reference", the names of general availability; where providers still speak those of the
//! beta, both are taken. What is not known here is let pass: an event as [`Event::Other`], a field unseen.
use super::sound::Format;
pub use crate::provider_problem::Problem;
use crate::{brain::Briefing, transcription::language_code};
use rules::conversation::tools::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the service asks for.
#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub enum Ask<'a> {
    #[serde(rename = "session.update")]
    Settle { session: Value },
    #[serde(rename = "input_audio_buffer.append")]
    Append {
        /** Base64. */
        audio: String,
    },
    #[serde(rename = "input_audio_buffer.commit")]
    Commit,
    #[serde(rename = "input_audio_buffer.clear")]
    Clear,
    #[serde(rename = "conversation.item.create")]
    Add { item: NewItem<'a> },
    #[serde(rename = "conversation.item.truncate")]
    Cut {
        item_id: &'a str,
        content_index: u32,
        audio_end_ms: u64,
    },
    #[serde(rename = "conversation.item.delete")]
    Remove { item_id: &'a str },
    #[serde(rename = "response.create")]
    Answer {
        #[serde(skip_serializing_if = "Option::is_none")]
        response: Option<Wish>,
    },
    #[serde(rename = "response.cancel")]
    Stop,
}

/// An ask as it is sent, with its name, which an `error` event repeats.
pub fn named(event_id: &str, ask: Ask<'_>) -> String {
    #[derive(Serialize)]
    struct Named<'a> {
        event_id: &'a str,
        #[serde(flatten)]
        ask: Ask<'a>,
    }
    // Strings and numbers only: there is nothing in it that could fail.
    serde_json::to_string(&Named { event_id, ask }).unwrap_or_default()
}

/// The name of the commit of that number: they are counted over a connection, from 0.
pub fn commit_name(number: u64) -> String {
    format!("{COMMIT}{number}")
}

/// The number in such a name.
pub fn commit_number(name: &str) -> Option<u64> {
    name.strip_prefix(COMMIT)?.parse().ok()
}

const COMMIT: &str = "commit-";

/// A commit was refused; where it does not say which, it is the next that has no answer.
pub fn is_of_a_commit(error: &Problem) -> bool {
    let number = error.event_id.as_deref().and_then(commit_number);
    number.is_some() || error.refuses_some_commit()
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NewItem<'a> {
    Message {
        /// Of our own, where it may have to be removed again.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        role: &'static str,
        content: [Text<'a>; 1],
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Text<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
}

/// What one answer is to be like, against the session's own settings.
#[derive(Debug, Serialize)]
pub struct Wish {
    pub instructions: String,
}

/// A session that speaks only when it is asked to: whose turn it is, is decided here. `transcription`: see [`transcription()`].
pub fn session(briefing: &Briefing, format: Format, transcription: Option<&Value>) -> Value {
    let mut output = json!({"format": described(format)});
    if let Some(voice) = &briefing.voice {
        output["voice"] = json!(voice);
    }
    let mut instructions = briefing.instructions.clone();
    if !briefing.language.is_empty() {
        instructions = format!("{instructions}\n\nSpeak the language `{}` (BCP 47).", briefing.language);
    }
    let tools = briefing.tools.iter().map(
        |Tool {
             name,
             description,
             parameters,
         }| { json!({"type": "function", "name": name, "description": description, "parameters": parameters}) },
    );
    let mut input = json!({"format": described(format), "turn_detection": null});
    if let Some(transcription) = transcription {
        input["transcription"] = transcription.clone();
    }
    json!({
        "type": "realtime",
        "instructions": instructions,
        "output_modalities": ["audio"],
        "tools": tools.collect::<Vec<_>>(),
        "audio": {"input": input, "output": output},
    })
}

/// Who writes down what the model hears. `language`: BCP 47.
pub fn transcription(model: &str, language: &str) -> Value {
    let mut transcription = json!({"model": model});
    if let Some(code) = language_code(language) {
        transcription["language"] = json!(code);
    }
    transcription
}

fn described(format: Format) -> Value {
    match format {
        Format::MuLaw => json!({"type": format.name()}),
        Format::Pcm => json!({"type": format.name(), "rate": 24_000}),
    }
}

/// What the provider says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    #[serde(rename = "session.created")]
    SessionCreated,
    #[serde(rename = "session.updated")]
    SessionUpdated {
        #[serde(default)]
        session: Value,
    },
    /// The sound that was put in is an item now. They come in the order of the commits.
    #[serde(rename = "input_audio_buffer.committed")]
    Committed { item_id: Option<String> },
    /// Words of what was put in, piece by piece,
    #[serde(rename = "conversation.item.input_audio_transcription.delta")]
    InputDelta {
        item_id: Option<String>,
        delta: Option<String>,
    },
    /// all of them,
    #[serde(rename = "conversation.item.input_audio_transcription.completed")]
    InputWords {
        item_id: Option<String>,
        transcript: Option<String>,
    },
    /// or none: it was not understood.
    #[serde(rename = "conversation.item.input_audio_transcription.failed")]
    InputFailed { item_id: Option<String> },
    #[serde(rename = "response.created")]
    Begun { response: Response },
    #[serde(rename = "response.output_item.added")]
    ItemAdded { response_id: Option<String>, item: Item },
    #[serde(rename = "response.output_audio.delta", alias = "response.audio.delta")]
    Sound(Delta),
    #[serde(
        rename = "response.output_audio_transcript.delta",
        alias = "response.audio_transcript.delta",
        alias = "response.output_text.delta",
        alias = "response.text.delta"
    )]
    Words(Delta),
    #[serde(
        rename = "response.output_audio_transcript.done",
        alias = "response.audio_transcript.done",
        alias = "response.output_text.done",
        alias = "response.text.done"
    )]
    AllWords {
        response_id: Option<String>,
        #[serde(default)]
        item_id: String,
        #[serde(alias = "text")]
        transcript: Option<String>,
    },
    /// The beta's has no name: that comes with the item.
    #[serde(rename = "response.function_call_arguments.done")]
    Arguments {
        response_id: Option<String>,
        #[serde(default)]
        item_id: String,
        call_id: Option<String>,
        name: Option<String>,
        arguments: Option<String>,
    },
    #[serde(rename = "response.output_item.done")]
    ItemDone { response_id: Option<String>, item: Item },
    #[serde(rename = "response.done")]
    Done { response: Response },
    #[serde(rename = "error")]
    Error {
        #[serde(default)]
        error: Problem,
    },
    #[serde(other)]
    Other,
}

impl Event {
    /// The answer that it belongs to.
    pub fn response(&self) -> Option<&str> {
        match self {
            Event::Begun { response } | Event::Done { response } => response.id.as_deref(),
            Event::Sound(delta) | Event::Words(delta) => delta.response_id.as_deref(),
            Event::ItemAdded { response_id, .. }
            | Event::AllWords { response_id, .. }
            | Event::Arguments { response_id, .. }
            | Event::ItemDone { response_id, .. } => response_id.as_deref(),
            Event::SessionCreated | Event::SessionUpdated { .. } => None,
            Event::InputDelta { .. } | Event::InputWords { .. } | Event::InputFailed { .. } => None,
            Event::Committed { .. } | Event::Error { .. } | Event::Other => None,
        }
    }

    /// Does it tell of words of what was put in?
    pub fn is_of_input(&self) -> bool {
        matches!(
            self,
            Event::InputDelta { .. } | Event::InputWords { .. } | Event::InputFailed { .. }
        )
    }
}

#[derive(Debug, Deserialize)]
pub struct Delta {
    pub response_id: Option<String>,
    #[serde(default)]
    pub item_id: String,
    pub delta: String,
}

#[derive(Debug, Deserialize)]
pub struct Item {
    #[serde(default)]
    pub id: String,
    #[serde(rename = "type", default)]
    pub kind: String,
    pub status: Option<String>,
    pub name: Option<String>,
    pub call_id: Option<String>,
    pub arguments: Option<String>,
    pub content: Option<Vec<Part>>,
}

impl Item {
    /// What is said in it.
    pub fn words(&self) -> String {
        let parts = self.content.iter().flatten();
        parts
            .filter_map(|part| part.transcript.as_deref().or(part.text.as_deref()))
            .collect()
    }
}

#[derive(Debug, Deserialize)]
pub struct Part {
    pub text: Option<String>,
    pub transcript: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Response {
    pub id: Option<String>,
    pub status: Option<String>,
    pub status_details: Option<Details>,
    pub output: Option<Vec<Item>>,
}

/// Why an answer is not complete.
#[derive(Debug, Deserialize)]
pub struct Details {
    pub reason: Option<String>,
    pub error: Option<Problem>,
}
