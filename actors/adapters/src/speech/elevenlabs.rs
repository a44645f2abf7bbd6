//! Servers that speak ElevenLabs' protocol: its own voices, and the clones that were made there.
//!
//! Source: elevenlabs.io/docs/api-reference, "Stream speech".
use super::{RATE, SpeechStream, Synthesizer, Utterance, http, primary};
use crate::provider_http::{self, ApiKey, Limits};
use futures_util::{FutureExt, future::BoxFuture};
use reqwest::{Client, RequestBuilder};
use serde_json::json;
use std::sync::Arc;
use url::Url;

/// Languages that its fast models know. They refuse to be told of another; untold, they guess.
const LANGUAGES: [&str; 31] = [
    "ar", "bg", "cs", "da", "de", "el", "en", "es", "fi", "fr", "hi", "hr", "hu", "id", "it", "ja", "ko", "ms", "nl",
    "no", "pl", "pt", "ro", "ru", "sk", "sv", "ta", "tr", "uk", "vi", "zh",
];

#[derive(Debug)]
pub struct Elevenlabs {
    base: Url,
    api_key: Option<ApiKey>,
    model: Arc<str>,
    http: Client,
    limits: Limits,
}

impl Elevenlabs {
    /// `url` as `https://api.elevenlabs.io`. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, model: &str, limits: Limits) -> Result<Self, String> {
        Ok(Elevenlabs {
            base: provider_http::base_url(url, "https://api.elevenlabs.io")?,
            api_key,
            model: model.into(),
            http: provider_http::client(|builder| builder)?,
            limits,
        })
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url
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

impl Synthesizer for Elevenlabs {
    fn name(&self) -> &'static str {
        "elevenlabs"
    }

    fn speak(&self, asked: Utterance) -> SpeechStream {
        let mut url = self.url(&["text-to-speech", &asked.voice, "stream"]);
        url.set_query(Some(&format!("output_format=pcm_{RATE}")));
        let mut body = json!({ "text": asked.text, "model_id": *self.model });
        if let Some(code) = self.language_code(&asked.language) {
            body["language_code"] = code.into();
        }
        http::streamed(RATE, self.with_key(self.http.post(url)).json(&body), self.limits)
    }

    fn warm(&self) -> BoxFuture<'_, ()> {
        http::warm(self.with_key(self.http.get(self.url(&["models"])))).boxed()
    }
}
