//! Against real local servers that speak each protocol.
mod batch;
mod deepgram;
mod fallback;
mod faults;
mod flux;
mod realtime;

use super::*;
use crate::{
    local_servers::{hearing_server, transcription_server},
    sound::HEARING,
};
use hearing_server::{Asked, Came, HearingServer, Protocol, Say};
use std::sync::atomic::{AtomicU64, Ordering};

const KEY: &str = "sk-secret/1234";

/// So little patience that tests of it are short.
fn short() -> Patience {
    Patience {
        connect: Duration::from_secs(2),
        answer: Duration::from_millis(400),
        rest: Duration::from_millis(50),
        back_off: Duration::from_millis(5),
        ..Patience::default()
    }
}

fn provider_with(kind: Kind, url: &str, patience: Patience) -> Provider {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Provider::with_patience(kind, url, Some(KEY), "", patience).unwrap()
}

fn kind_of(protocol: Protocol) -> Kind {
    match protocol {
        Protocol::Realtime => Kind::OpenaiRealtime,
        Protocol::Listen => Kind::Deepgram,
        Protocol::Flux => Kind::DeepgramFlux,
    }
}

/// The words of some speech.
async fn transcribe(provider: &Provider, speech: &Pcm, language: &str) -> Result<String, Failure> {
    let mut talk = Talk::of(provider.open(Ask {
        language: language.into(),
        names: Vec::new(),
    }));
    talk.begin().await;
    let sound = speech.at(HEARING);
    for piece in sound.samples.chunks(1_600) {
        talk.tell(Hear::Sound(Pcm::new(HEARING, piece))).await;
    }
    talk.tell(Hear::Finalize).await;
    loop {
        match talk.next().await {
            Transcribed::Final(words) => return Ok(words),
            Transcribed::Failed(failure) => return Err(failure),
            _ => {}
        }
    }
}

/// Of the first turn.
fn partial(words: &str) -> Transcribed {
    let words = words.to_owned();
    Transcribed::Partial { turn: 1, words }
}

/// A talk with the provider. Its turns are numbered from 1.
struct Talk {
    transcript: Transcript,
    turns: AtomicU64,
}

impl Talk {
    fn open(provider: &Provider) -> Self {
        Talk::of(provider.open(Ask {
            language: "de-AT".into(),
            names: vec!["Callboard".into(), "Ann Lee".into()],
        }))
    }

    fn of(transcript: Transcript) -> Self {
        let turns = AtomicU64::new(0);
        Talk { transcript, turns }
    }

    fn with(server: &HearingServer, protocol: Protocol, patience: Patience) -> Self {
        Talk::open(&provider_with(kind_of(protocol), &server.url, patience))
    }

    async fn tell(&self, hear: Hear) {
        self.transcript.input.send(hear).await.unwrap();
    }

    /// The next turn.
    async fn begin(&self) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(Hear::Begin(turn)).await;
    }

    /// In pieces of 20 ms.
    async fn speak(&self, ms: usize) {
        for _ in 0..ms / 20 {
            self.tell(Hear::Sound(Pcm::new(16_000, vec![1_000; 320]))).await;
        }
    }

    /// A whole turn of so many milliseconds.
    async fn turn(&self, ms: usize) {
        self.begin().await;
        self.speak(ms).await;
        self.tell(Hear::Finalize).await;
    }

    async fn next(&mut self) -> Transcribed {
        let next = tokio::time::timeout(Duration::from_secs(30), self.transcript.events.recv());
        next.await.expect("in time").expect("it goes on")
    }

    /// The next answer, and the last partial before it.
    async fn answer(&mut self) -> (Result<String, &'static str>, Option<String>) {
        let mut partial = None;
        loop {
            match self.next().await {
                Transcribed::Final(words) => return (Ok(words), partial),
                Transcribed::Failed(failure) => return (Err(failure.name()), partial),
                Transcribed::Partial { words, .. } => partial = Some(words),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn words(&mut self) -> Result<String, &'static str> {
        self.answer().await.0
    }
}

fn some(words: &str) -> Vec<Say> {
    vec![Say::Words(words.into())]
}
