//! A voice provider that speaks ElevenLabs' protocol, at an address that the operator names.
//!
//! Voices are labelled with our id and run (`callboard_voice`, `callboard_run`), so that what a crash or a late answer left
//! there is found. Nothing is ever asked twice: making a voice is not idempotent.
//! Source: elevenlabs.io/docs/api-reference, "Voices" and "Text to Speech".
use super::provider::{Cloner, Copy, Order, Recording, Refused};
use crate::{
    provider_http,
    recording::vault::{self, Vault},
};
use bytes::BytesMut;
use entities::ids::VoiceId;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use reqwest::{
    Body, RequestBuilder, Response, StatusCode,
    multipart::{Form, Part},
};
use serde::Deserialize;
use serde_json::json;
use std::{fmt, sync::Arc, time::Duration};
use url::Url;
use zeroize::Zeroizing;

/// For all but the making of a voice.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer: a list of thousands of voices, or minutes of sound.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// Samples per second of what it speaks.
const RATE: u32 = 16_000;

/// Cheap to clone.
#[derive(Clone)]
pub struct Elevenlabs {
    base: Url,
    api_key: Arc<Zeroizing<String>>,
    http: reqwest::Client,
}

impl fmt::Debug for Elevenlabs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elevenlabs({})", self.base)
    }
}

#[derive(Deserialize)]
struct Added {
    voice_id: String,
    #[serde(default)]
    requires_verification: bool,
}
#[derive(Deserialize)]
struct Listed {
    voices: Vec<Known>,
}
#[derive(Deserialize)]
struct Known {
    voice_id: String,
    #[serde(default)]
    labels: Option<Labels>,
}
#[derive(Deserialize)]
struct Labels {
    callboard_voice: Option<String>,
    callboard_run: Option<String>,
}

impl Elevenlabs {
    /// `url` as `https://api.elevenlabs.io`. Fails, in words for an operator, on what cannot be used.
    pub fn new(url: &str, api_key: &str) -> Result<Self, String> {
        let base = provider_http::base_url(url, "https://api.elevenlabs.io")?;
        let api_key = api_key.trim();
        if api_key.is_empty() || !api_key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("needs voice_provider_api_key, in visible characters".into());
        }
        let http = provider_http::client(|builder| builder)?;
        Ok(Elevenlabs {
            base,
            api_key: Arc::new(Zeroizing::new(api_key.to_owned())),
            http,
        })
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url
    }

    /// Sends, and reads the whole answer; what comes back has a 2xx.
    async fn ask(&self, request: RequestBuilder, patience: Duration) -> Result<(StatusCode, BytesMut), Refused> {
        let request = request.header("xi-api-key", self.api_key.as_str()).timeout(patience);
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        let body = self.read(response).await?;
        if status.is_success() {
            return Ok((status, body));
        }
        Err(Refused {
            why: self.tame(&format!("answered {}: {}", status.as_u16(), said(&body))),
            // It says no; after a fault of its own nobody knows.
            in_doubt: status.is_server_error(),
            timed_out: false,
        })
    }

    async fn read(&self, response: Response) -> Result<BytesMut, Refused> {
        let (mut body, mut stream) = (BytesMut::new(), response.bytes_stream());
        while let Some(chunk) = stream.next().await {
            body.extend_from_slice(&chunk.map_err(|error| self.lost(&error))?);
            if body.len() > MAX_ANSWER {
                return Err(self.unusable("sent more than 16 MiB"));
            }
        }
        Ok(body)
    }

    fn lost(&self, error: &reqwest::Error) -> Refused {
        let why = if error.is_timeout() {
            "did not answer in time"
        } else if error.is_connect() {
            "cannot be reached"
        } else {
            "broke the connection off"
        };
        Refused {
            why: why.into(),
            in_doubt: !error.is_connect(),
            timed_out: error.is_timeout(),
        }
    }

    fn unusable(&self, why: &str) -> Refused {
        Refused {
            why: self.tame(why),
            in_doubt: true,
            timed_out: false,
        }
    }

    /// One line, bounded, without the key.
    fn tame(&self, words: &str) -> String {
        provider_http::loggable(words, Some(self.api_key.as_str()))
    }

    async fn add(&self, order: Order) -> Result<String, Refused> {
        let labels = json!({ "callboard_voice": order.voice_id, "callboard_run": order.run.to_string() });
        let mut form = Form::new().text("name", order.name).text("labels", labels.to_string());
        for recording in order.recordings {
            form = form.part("files", part(order.vault.clone(), recording));
        }
        let request = self.http.post(self.url(&["voices", "add"])).multipart(form);
        let (_, body) = self.ask(request, order.patience).await?;
        let added: Added = serde_json::from_slice(&body).map_err(|_| self.unusable("answered with something else"))?;
        if added.requires_verification {
            return Err(self.unusable("wants the voice verified by hand, which it cannot be here"));
        }
        Ok(added.voice_id)
    }
}

/// A file, read from the vault while it is sent.
fn part(vault: Vault, recording: Recording) -> Part {
    let Recording {
        file_name,
        format,
        bytes,
        name,
    } = recording;
    let pieces: Vec<_> = vault::pieces(0..bytes).collect();
    let stream = stream::iter(pieces).then(move |piece| {
        let (vault, name) = (vault.clone(), name.clone());
        async move { vault.read(&name, piece).await }
    });
    let part = Part::stream_with_length(Body::wrap_stream(stream), bytes).file_name(file_name);
    let mut headers = reqwest::header::HeaderMap::new();
    let kind = match format {
        "mp3" => "audio/mpeg",
        "flac" => "audio/flac",
        "ogg" => "audio/ogg",
        _ => "audio/wav",
    };
    headers.insert(
        reqwest::header::CONTENT_TYPE,
        reqwest::header::HeaderValue::from_static(kind),
    );
    part.headers(headers)
}

/// What it says of its failure: `{"detail": {"message": …}}`, `{"detail": "…"}`, or nothing.
fn said(body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = &value["detail"];
    let message = detail["message"].as_str().or(detail.as_str());
    message.unwrap_or("no reason").to_owned()
}

impl Cloner for Elevenlabs {
    fn create(&self, order: Order) -> BoxFuture<'_, Result<String, Refused>> {
        self.add(order).boxed()
    }

    fn copies(&self, voice: VoiceId) -> BoxFuture<'_, Result<Vec<Copy>, Refused>> {
        async move {
            let (_, body) = self.ask(self.http.get(self.url(&["voices"])), TIMEOUT).await?;
            let listed: Listed =
                serde_json::from_slice(&body).map_err(|_| self.unusable("answered with something else"))?;
            let own = |known: Known| {
                let labels = known.labels?;
                let is_its = labels.callboard_voice? == voice.to_string();
                let run = labels.callboard_run?.parse().ok()?;
                is_its.then_some(Copy {
                    provider_voice_id: known.voice_id,
                    run,
                })
            };
            Ok(listed.voices.into_iter().filter_map(own).collect())
        }
        .boxed()
    }

    fn delete(&self, provider_voice_id: String) -> BoxFuture<'_, Result<(), Refused>> {
        async move {
            let url = self.url(&["voices", &provider_voice_id]);
            let request = self.http.delete(url).header("xi-api-key", self.api_key.as_str());
            let response = request.timeout(TIMEOUT).send().await;
            let response = response.map_err(|error| self.lost(&error))?;
            let status = response.status();
            let body = self.read(response).await?;
            // It says 400 as well for a voice that is not there.
            let text = String::from_utf8_lossy(&body);
            let is_gone = status == StatusCode::NOT_FOUND
                || text.contains("voice_does_not_exist")
                || text.contains("voice_not_found");
            if status.is_success() || is_gone {
                return Ok(());
            }
            Err(self.unusable(&format!("answered {}: {}", status.as_u16(), said(&body))))
        }
        .boxed()
    }

    fn speak(&self, provider_voice_id: String, text: String, _: String) -> BoxFuture<'_, Result<Vec<u8>, Refused>> {
        async move {
            let mut url = self.url(&["text-to-speech", &provider_voice_id]);
            url.set_query(Some("output_format=pcm_16000"));
            let request = self.http.post(url).json(&json!({ "text": text }));
            let (_, pcm) = self.ask(request, TIMEOUT).await?;
            wav(&pcm).ok_or_else(|| self.unusable("sent no sound"))
        }
        .boxed()
    }
}

/// A WAV file of samples of 16 bits, little endian, mono.
fn wav(pcm: &[u8]) -> Option<Vec<u8>> {
    let mut file = std::io::Cursor::new(Vec::with_capacity(pcm.len() + 44));
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: RATE,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::new(&mut file, spec).ok()?;
    let samples = pcm.as_chunks::<2>().0;
    if samples.is_empty() {
        return None;
    }
    for sample in samples {
        writer.write_sample(i16::from_le_bytes(*sample)).ok()?;
    }
    writer.finalize().ok()?;
    Some(file.into_inner())
}
