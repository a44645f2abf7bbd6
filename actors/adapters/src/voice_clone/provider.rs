//! Who makes clones: one trait, the operator's provider behind it, and the sandbox.
use crate::recording::{
    mix::{self, Channels, Piece},
    vault::Vault,
    voice::{Speaker, Voice},
};
use entities::{boxed, ids::VoiceId};
use futures_util::{FutureExt, future::BoxFuture};
use rules::voice_clone::machine::{Code, Refusal};
use std::time::Duration;

/// A clone to be made.
pub struct Order {
    pub voice_id: VoiceId,
    /// Which training of it: the copies of one voice are told apart by it.
    pub run: i32,
    pub name: String,
    pub recordings: Vec<Recording>,
    pub vault: Vault,
    /// There is no use for an answer after that.
    pub patience: Duration,
}

/// A sample that was found good.
pub struct Recording {
    pub file_name: String,
    pub format: &'static str,
    pub bytes: u64,
    /// In the vault.
    pub name: String,
}

/// A clone as its provider has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    pub provider_voice_id: String,
    pub run: i32,
}

/// The provider says no, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// For the user: bounded, one line, without the key.
    pub why: String,
    /// It may have done it all the same.
    pub in_doubt: bool,
    pub timed_out: bool,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let code = if refused.timed_out {
            Code::TimedOut
        } else {
            Code::ProviderError
        };
        Refusal {
            code,
            message: format!("the voice provider {}", refused.why),
            leftovers: refused.in_doubt,
        }
    }
}

pub trait Cloner: Send + Sync {
    /// Makes a voice; answers what the provider calls it. Asked once per run.
    fn create(&self, order: Order) -> BoxFuture<'_, Result<String, Refused>>;
    /// What it has of a voice.
    fn copies(&self, voice: VoiceId) -> BoxFuture<'_, Result<Vec<Copy>, Refused>>;
    /// That there is none is fine.
    fn delete(&self, provider_voice_id: String) -> BoxFuture<'_, Result<(), Refused>>;
    /// A WAV file.
    fn speak(
        &self,
        provider_voice_id: String,
        text: String,
        language: String,
    ) -> BoxFuture<'_, Result<Vec<u8>, Refused>>;
}

/// For test keys: makes every voice whose samples are good, at once, and speaks with the service's own voice.
pub struct Sandbox(pub Voice);

impl Cloner for Sandbox {
    fn create(&self, order: Order) -> BoxFuture<'_, Result<String, Refused>> {
        async move { Ok(format!("sandbox-{}", order.voice_id)) }.boxed()
    }
    fn copies(&self, _: VoiceId) -> BoxFuture<'_, Result<Vec<Copy>, Refused>> {
        async { Ok(Vec::new()) }.boxed()
    }
    fn delete(&self, _: String) -> BoxFuture<'_, Result<(), Refused>> {
        async { Ok(()) }.boxed()
    }
    fn speak(&self, _: String, text: String, language: String) -> BoxFuture<'_, Result<Vec<u8>, Refused>> {
        async move { Ok(say(&self.0, &text, &language, Speaker::Agent).await) }.boxed()
    }
}

/// What a voice of this machine says, as a WAV file: 8 kHz, mono.
#[boxed]
pub async fn say(voice: &Voice, text: &str, language: &str, speaker: Speaker) -> Vec<u8> {
    let piece = Piece {
        speaker,
        start_ms: 0,
        sound: voice.speak(text, language, speaker).await,
        cut_ms: None,
    };
    mix::wav(&[piece], Channels::Mono)
}
