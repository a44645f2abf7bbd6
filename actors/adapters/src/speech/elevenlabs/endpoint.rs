//! Where it is, and what it is asked.
//!
//! Source: elevenlabs.io/docs/api-reference, "Stream speech" and "WebSocket".
use crate::{
    provider_http::{self, ApiKey, Limits},
    provider_socket::{Address, Socket},
    speech::{RATE, SpeechError, SpeechStream, Utterance, http, primary},
};
use reqwest::{Client, RequestBuilder};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::http::header::HeaderName;
use url::Url;

/// Languages that its fast models know. They refuse to be told of another; untold, they guess.
const LANGUAGES: [&str; 31] = [
    "ar", "bg", "cs", "da", "de", "el", "en", "es", "fi", "fr", "hi", "hr", "hu", "id", "it", "ja", "ko", "ms", "nl",
    "no", "pl", "pt", "ro", "ru", "sk", "sv", "ta", "tr", "uk", "vi", "zh",
];

/// A socket that takes longer is not waited for: a request may still be answered before another voice speaks.
const OPENING: Duration = Duration::from_secs(2);

/// Seconds after which it closes a socket on which nothing is asked: the most that it grants.
const INACTIVITY: u32 = 180;

/// One for all talks.
#[derive(Debug)]
pub struct Endpoint {
    base: Url,
    address: Address,
    api_key: Option<ApiKey>,
    model: Arc<str>,
    http: Client,
    pub limits: Limits,
}

/// What a socket is opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceIn {
    pub voice: String,
    /// BCP 47.
    pub language: String,
}

impl VoiceIn {
    pub fn of(asked: &Utterance) -> Self {
        VoiceIn {
            voice: asked.voice.clone(),
            language: asked.language.clone(),
        }
    }
}

impl Endpoint {
    /// `url` as `https://api.elevenlabs.io`. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, model: &str, limits: Limits) -> Result<Self, String> {
        const EXAMPLE: &str = "https://api.elevenlabs.io";
        Ok(Endpoint {
            base: provider_http::base_url(url, EXAMPLE)?,
            address: Address::new(url, EXAMPLE)?,
            api_key,
            model: model.into(),
            http: provider_http::client(|builder| builder)?,
            limits,
        })
    }

    /// It has none for its newest model.
    pub fn has_socket(&self) -> bool {
        !self.model.starts_with("eleven_v3")
    }

    /// Opens one for that voice.
    pub async fn connect(&self, voice: &VoiceIn) -> Result<Socket, SpeechError> {
        let mut address = self.address.clone();
        address.url = below(&address.url, &["text-to-speech", &voice.voice, "stream-input"]);
        // Clauses and sentences are sent whole; and each sound with its letters.
        let (format, inactivity) = (format!("pcm_{RATE}"), INACTIVITY.to_string());
        address.url.query_pairs_mut().extend_pairs([
            ("model_id", &*self.model),
            ("output_format", format.as_str()),
            ("auto_mode", "true"),
            ("sync_alignment", "true"),
            ("inactivity_timeout", inactivity.as_str()),
        ]);
        if let Some(code) = self.language_code(&voice.language) {
            address.url.query_pairs_mut().append_pair("language_code", &code);
        }
        let key = self.api_key.as_ref();
        let key = key.map(|key| (HeaderName::from_static("xi-api-key"), key.header()));
        match timeout(OPENING, address.open(key)).await {
            Ok(socket) => socket.map_err(|error| SpeechError::of_handshake(&error)),
            Err(_) => Err(SpeechError::Timeout),
        }
    }

    /// It says it by itself, in the answer to a request.
    pub fn request(&self, asked: &Utterance) -> SpeechStream {
        let mut url = below(&self.base, &["text-to-speech", &asked.voice, "stream"]);
        url.set_query(Some(&format!("output_format=pcm_{RATE}")));
        let mut body = json!({ "text": asked.text, "model_id": *self.model });
        if let Some(code) = self.language_code(&asked.language) {
            body["language_code"] = code.into();
        }
        http::streamed(RATE, self.with_key(self.http.post(url)).json(&body), self.limits)
    }

    /// Asks for something small.
    pub fn models(&self) -> RequestBuilder {
        self.with_key(self.http.get(below(&self.base, &["models"])))
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.api_key {
            Some(key) => request.header("xi-api-key", key.header()),
            None => request,
        }
    }

    /// What the model is told of the language.
    fn language_code(&self, language: &str) -> Option<String> {
        // The older ones take no such word.
        let takes_it = ["eleven_flash_v2_5", "eleven_turbo_v2_5", "eleven_v3"].contains(&&*self.model);
        let code = match primary(language)?.as_str() {
            "nb" | "nn" => "no".to_owned(),
            other => other.to_owned(),
        };
        (takes_it && LANGUAGES.contains(&code.as_str())).then_some(code)
    }
}

fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().push("v1").extend(path);
    }
    url
}
