//! Servers with OpenAI's `/audio/speech`: OpenAI, Kokoro-FastAPI, speaches and others.
//!
//! Source: platform.openai.com, "Create speech". `pcm` is 16 bits, little endian, mono, 24 kHz, without a head.
use super::{RATE, SpeechStream, Synthesizer, Utterance, http};
use crate::provider_http::{self, ApiKey, Limits};
use futures_util::{FutureExt, future::BoxFuture};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use url::Url;

#[derive(Debug)]
pub struct Openai {
    speech: Url,
    models: Url,
    /// Servers of one's own ask for none.
    api_key: Option<ApiKey>,
    model: Arc<str>,
    http: Client,
    limits: Limits,
}

impl Openai {
    /// `url`: the base, as `https://host/v1`; `https://host` means the same. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, model: &str, limits: Limits) -> Result<Self, String> {
        let base = provider_http::base_url(url, "https://host/v1")?;
        let below = |path: &[&str]| {
            let mut url = base.clone();
            let version: &[&str] = if base.path() == "/" { &["v1"] } else { &[] };
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.pop_if_empty().extend(version).extend(path);
            }
            url
        };
        Ok(Openai {
            speech: below(&["audio", "speech"]),
            models: below(&["models"]),
            api_key,
            model: model.into(),
            http: provider_http::client(|builder| builder)?,
            limits,
        })
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.api_key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }
}

impl Synthesizer for Openai {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn speak(&self, asked: Utterance) -> SpeechStream {
        // The account's own voices are named by an object.
        let voice = match asked.voice.starts_with("voice_") {
            true => json!({ "id": asked.voice }),
            false => Value::String(asked.voice),
        };
        let body = json!({
            "model": *self.model,
            "input": asked.text,
            "voice": voice,
            "response_format": "pcm",
        });
        let request = self.with_key(self.http.post(self.speech.clone())).json(&body);
        http::streamed(RATE, request, self.limits)
    }

    fn warm(&self, _: &str, _: &str) -> BoxFuture<'_, ()> {
        http::warm(self.with_key(self.http.get(self.models.clone()))).boxed()
    }
}
