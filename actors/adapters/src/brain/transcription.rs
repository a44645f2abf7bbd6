//! Speech to words, behind an OpenAI-compatible `/v1/audio/transcriptions`.
//!
//! Source: platform.openai.com, "Create transcription": a multipart form with a file, a model and a language.
use super::{
    Failure,
    chat::{self, Limits, Patience, Refusal, read},
};
use crate::sound::Pcm;
use entities::boxed;
use hound::{SampleFormat, WavSpec, WavWriter};
use reqwest::multipart::{Form, Part};
use rules::conversation::guard;
use serde::Deserialize;
use std::{io::Cursor, time::Duration};

/// Bytes of an answer.
const MAX_BODY: usize = 64 * 1024;
/// For one utterance in all, a second try included: somebody waits for an answer to it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider(chat::Provider);

#[derive(Deserialize)]
struct Transcription {
    text: String,
}

impl Provider {
    /// `url`: the base, as `https://host/v1`; `https://host` means the same. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<&str>, model: &str) -> Result<Self, String> {
        let names_a_path = url::Url::parse(url).is_ok_and(|url| url.path() != "/");
        let path: &[&str] = match names_a_path {
            true => &["audio", "transcriptions"],
            false => &["v1", "audio", "transcriptions"],
        };
        let mut provider = chat::Provider::of(url, path, api_key, model)?;
        provider.limits = Limits {
            first_byte: PATIENCE,
            silence: PATIENCE,
            whole: PATIENCE,
        };
        Ok(Provider(provider))
    }

    /// The words of some speech; none if there is no word in it. `language`: BCP 47. A failure says nothing of what was said.
    #[boxed]
    pub async fn transcribe(&self, speech: &Pcm, language: &str) -> Result<String, Failure> {
        let wav = wav(speech).map_err(|why| self.0.failure(&why))?;
        let mut patience = Patience::new(self.0.limits);
        let language = language.split(['-', '_']).next().unwrap_or_default().to_lowercase();
        let form = || {
            // A content type that can be read, so there is nothing that could fail.
            let part = Part::bytes(wav.clone()).file_name("speech.wav");
            let part = part.mime_str("audio/wav").unwrap_or_else(|_| Part::bytes(wav.clone()));
            let form = Form::new().part("file", part).text("model", self.0.model.to_string());
            let form = form.text("response_format", "json");
            match language.len() {
                2 | 3 => form.text("language", language.clone()),
                _ => form,
            }
        };
        let answer = self.0.post(|post| post.multipart(form()), &mut patience).await;
        let response = answer.map_err(|refusal| self.0.failure(&in_own_words(&refusal)))?;
        let body = read(response, MAX_BODY, &mut patience).await;
        let body = body.map_err(|why| self.0.failure(&why))?;
        let heard: Result<Transcription, _> = serde_json::from_slice(&body);
        let heard = heard.map_err(|_| self.0.failure("its answer is not JSON with a `text`"))?;
        Ok(guard::clean(&heard.text, guard::MAX_WORDS).trim().to_owned())
    }
}

/// Without the provider's words, which may repeat what was said.
fn in_own_words(refusal: &Refusal) -> String {
    match refusal.status {
        Some(status) => format!("it answered {}", status.as_u16()),
        None => refusal.words.clone(),
    }
}

/// At its own rate, 16 kHz of a microphone: what is above 4 kHz tells an f from an s.
fn wav(speech: &Pcm) -> Result<Vec<u8>, String> {
    let spec = WavSpec {
        channels: 1,
        sample_rate: speech.rate,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let mut file = Cursor::new(Vec::new());
    let write = |file: &mut Cursor<Vec<u8>>| {
        let mut writer = WavWriter::new(file, spec)?;
        for sample in speech.samples.iter() {
            writer.write_sample(*sample)?;
        }
        writer.finalize()
    };
    write(&mut file).map_err(|error: hound::Error| error.to_string())?;
    Ok(file.into_inner())
}

#[cfg(test)]
#[path = "transcription_tests.rs"]
pub mod tests;
