//! Against real local servers that speak each protocol.
mod cast;
mod faults;
mod socket;
mod stream_input;
mod turns;
mod wire;

use super::*;
use crate::{
    local_servers::{cartesia_server, elevenlabs_server, speech_server},
    provider_http::ApiKey,
};
use speech_server::{Answer, SpeechServer, Step};

const KEY: &str = "sk-secret-1234";

/// So little patience that tests of it are short.
const SHORT: Limits = Limits {
    first_byte: Duration::from_millis(200),
    silence: Duration::from_millis(200),
    whole: Duration::from_secs(10),
};

/// As little while something is said, and all the time for its beginning.
const SHORT_PAUSES: Limits = Limits {
    first_byte: Duration::from_secs(60),
    ..SHORT
};

fn key() -> Option<ApiKey> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    ApiKey::of(Some(KEY)).unwrap()
}

fn openai(server: &SpeechServer, limits: Limits) -> openai::Openai {
    openai::Openai::new(&format!("{}/v1", server.url()), key(), "kokoro", limits).unwrap()
}

fn asked(text: &str) -> Utterance {
    Utterance {
        text: text.into(),
        language: "de-AT".into(),
        voice: "ann".into(),
        ..Utterance::default()
    }
}

/// A piece of that turn.
fn asked_in(turn: &Turn, text: &str) -> Utterance {
    Utterance {
        turn: turn.piece(),
        ..asked(text)
    }
}

/// All of it, or the error that ended it with what came before.
async fn heard(mut stream: SpeechStream) -> Result<Vec<i16>, (SpeechError, usize)> {
    let mut sound = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => sound.extend(piece),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return Err((error, sound.len()));
            }
        }
    }
    Ok(sound)
}
