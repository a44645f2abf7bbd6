//! Piper's own HTTP server: a whole WAV for each text, so first clauses and single sentences are what it is fast with.
//!
//! Source: OHF-Voice/piper1-gpl, `docs/API_HTTP.md`.
use super::{LONGEST_SECONDS, SpeechError, SpeechStream, Synthesizer, Utterance, http};
use crate::{
    provider_http::{self, ApiKey, Limits},
    recording::voice::wave,
};
use futures_util::{FutureExt, future::BoxFuture, stream};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use url::Url;

/// Samples per second that most of its voices have; what others send is brought to it.
const RATE: u32 = 22_050;
/// Bytes of a WAV, of the best that it could be.
const MAX_WAV: usize = LONGEST_SECONDS * 48_000 * 2;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Piper {
    base: Url,
    /// It asks for none; what stands before it may.
    api_key: Option<ApiKey>,
    http: Client,
    limits: Limits,
    /// A release that is asked at the root.
    is_older: Arc<AtomicBool>,
}

impl Piper {
    /// `url` as `http://127.0.0.1:5000`; with a path, that is what is asked. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, limits: Limits) -> Result<Self, String> {
        Ok(Piper {
            base: provider_http::base_url(url, "http://127.0.0.1:5000")?,
            api_key,
            http: provider_http::client(|builder| builder)?,
            limits,
            is_older: Arc::default(),
        })
    }

    async fn sound(self, body: Value) -> Result<Vec<i16>, SpeechError> {
        let has_path = self.base.path() != "/";
        let at_root = has_path || self.is_older.load(Ordering::Relaxed);
        let wav = match self.post(at_root, &body).await {
            Err(SpeechError::Refused { status: 404 | 405 }) if !at_root => {
                let wav = self.post(true, &body).await?;
                self.is_older.store(true, Ordering::Relaxed);
                wav
            }
            answer => answer?,
        };
        let parsed = tokio::task::spawn_blocking(move || wave::parse(&wav, RATE)).await;
        let sound = parsed.map_err(|_| SpeechError::Garbage)?;
        let sound = sound.map_err(|_| SpeechError::Garbage)?;
        match sound.len() > RATE as usize * LONGEST_SECONDS {
            true => Err(SpeechError::TooLong),
            false => Ok(sound),
        }
    }

    async fn post(&self, at_root: bool, body: &Value) -> Result<Vec<u8>, SpeechError> {
        let mut url = self.base.clone();
        if !at_root {
            url.set_path("/synthesize");
        }
        let request = self.with_key(self.http.post(url)).json(body);
        http::whole(request, self.limits, MAX_WAV).await
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.api_key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }
}

impl Synthesizer for Piper {
    fn name(&self) -> &'static str {
        "piper"
    }

    fn speak(&self, asked: Utterance) -> SpeechStream {
        let mut body = json!({ "text": asked.text });
        // Without one it is the voice that the server was started with.
        if !asked.voice.is_empty() {
            body["voice"] = asked.voice.into();
        }
        SpeechStream::new(RATE, stream::once(self.clone().sound(body)))
    }

    fn warm(&self, _: &str, _: &str) -> BoxFuture<'_, ()> {
        let mut url = self.base.clone();
        url.set_path("/info");
        http::warm(self.with_key(self.http.get(url))).boxed()
    }
}
