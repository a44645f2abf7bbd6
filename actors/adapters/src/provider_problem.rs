//! What providers that speak OpenAI's Realtime protocol say is wrong.
use serde::Deserialize;
use serde_json::Value;

/// What is wrong. Providers differ in its shape: some say it in one text, some number their codes.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub struct Problem {
    /// The kind of errors that it is one of: `type`.
    pub kind: Option<String>,
    pub code: Option<String>,
    pub message: Option<String>,
    pub param: Option<String>,
    /// The name of the ask that it is about.
    pub event_id: Option<String>,
}

impl From<Value> for Problem {
    fn from(value: Value) -> Self {
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let field = |name: &str| value.get(name).and_then(text);
        Problem {
            kind: field("type"),
            code: field("code"),
            message: if value.is_object() {
                field("message")
            } else {
                text(&value)
            },
            param: field("param"),
            event_id: field("event_id"),
        }
    }
}

impl Problem {
    /// Is it that one?
    pub fn names(&self, name: &str) -> bool {
        [&self.code, &self.kind]
            .into_iter()
            .flatten()
            .any(|known| known == name)
    }

    /// Does it say that sound cannot travel like that?
    pub fn names_the_format(&self) -> bool {
        let texts = [&self.param, &self.message, &self.code].into_iter().flatten();
        texts
            .map(|text| text.to_lowercase())
            .any(|text| text.contains("format") || text.contains("pcm"))
    }

    /// Does it say that nobody writes down what is heard?
    pub fn names_the_transcription(&self) -> bool {
        let texts = [&self.param, &self.message, &self.code].into_iter().flatten();
        texts
            .map(|text| text.to_lowercase())
            .any(|text| text.contains("transcription"))
    }

    /// There was nothing to call off any more.
    pub fn is_not_running(&self) -> bool {
        self.code.as_deref() == Some("response_cancel_not_active")
    }

    /// Of a commit it is the answer, though it does not say of which.
    pub fn refuses_some_commit(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.event_id.is_none() && code.starts_with("input_audio_buffer_commit")
    }

    pub fn words(&self) -> &str {
        self.message
            .as_deref()
            .or(self.code.as_deref())
            .unwrap_or("no reason given")
    }
}
