//! Servers that speak ElevenLabs' protocol: its own voices, and the clones that were made there.
//!
//! The pieces of a turn go into one websocket (`stream-input`), which is opened before it is needed; where none can be opened, each
//! piece is a request (`stream`), for the rest of the talk.
mod endpoint;
mod socket;
mod spare;

pub use endpoint::Endpoint;

use super::{
    RATE, SpeechError, SpeechStream, Synthesizer, Utterance, generation, http,
    piece::{Failure, Piece, piece},
    stream::Detour,
};
use crate::sound::Timings;
use endpoint::VoiceIn;
use futures_util::{FutureExt, future::BoxFuture, stream};
use socket::Opener;
use spare::Spares;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// How the way is called that is not taken where it fails.
const SOCKET: &str = "elevenlabs stream-input";

/// For one talk.
pub struct Elevenlabs {
    endpoint: Arc<Endpoint>,
    spares: Arc<Spares>,
    /// A socket could not be opened.
    is_without_socket: Arc<AtomicBool>,
}

impl Elevenlabs {
    pub fn new(endpoint: Arc<Endpoint>) -> Self {
        Elevenlabs {
            spares: Arc::new(Spares::new(endpoint.clone())),
            is_without_socket: Arc::new(AtomicBool::new(!endpoint.has_socket())),
            endpoint,
        }
    }

    fn has_socket(&self) -> bool {
        !self.is_without_socket.load(Ordering::Relaxed)
    }
}

/// An utterance on its way.
struct Spoken {
    asked: Utterance,
    way: Way,
    endpoint: Arc<Endpoint>,
    is_without_socket: Arc<AtomicBool>,
    detour: Detour,
}

enum Way {
    Socket(Piece),
    Request(SpeechStream),
}

impl Synthesizer for Elevenlabs {
    fn name(&self) -> &'static str {
        "elevenlabs"
    }

    fn speak(&self, asked: Utterance) -> SpeechStream {
        if !self.has_socket() {
            return self.endpoint.request(&asked);
        }
        let (timings, detour) = (Timings::default(), Detour::default());
        let (saying, piece) = piece(&asked.text, asked.places.clone(), timings.clone(), self.endpoint.limits);
        let who = Arc::as_ptr(&self.spares).addr();
        asked.turn.say(who, saying, |pieces| {
            let opener = Opener::new(&self.spares, VoiceIn::of(&asked));
            tokio::spawn(generation::run(opener, pieces));
        });
        let its_turn = piece.its_turn();
        let spoken = Spoken {
            asked,
            way: Way::Socket(piece),
            endpoint: self.endpoint.clone(),
            is_without_socket: self.is_without_socket.clone(),
            detour: detour.clone(),
        };
        SpeechStream::new(RATE, stream::try_unfold(spoken, next)).in_turn(timings, its_turn, detour)
    }

    fn warm(&self, voice: &str, language: &str) -> BoxFuture<'_, ()> {
        let voice = VoiceIn {
            voice: voice.to_owned(),
            language: language.to_owned(),
        };
        async move {
            if self.has_socket() && self.spares.keep(&voice).await.is_ok() {
                return;
            }
            // The first words will tell.
            http::warm(self.endpoint.models()).await;
        }
        .boxed()
    }
}

async fn next(mut spoken: Spoken) -> Result<Option<(Vec<i16>, Spoken)>, SpeechError> {
    let next = match &mut spoken.way {
        Way::Socket(piece) => match piece.next().await {
            Ok(samples) => samples,
            Err(Failure::Broken(error)) => return Err(error),
            Err(Failure::Unopened(error)) => {
                // Of several pieces that meet it, the first tells.
                if !spoken.is_without_socket.swap(true, Ordering::Relaxed) {
                    spoken.detour.around(SOCKET, error);
                }
                let mut request = spoken.endpoint.request(&spoken.asked);
                let samples = request.next().await.transpose()?;
                spoken.way = Way::Request(request);
                samples
            }
        },
        Way::Request(request) => request.next().await.transpose()?,
    };
    Ok(next.map(|samples| (samples, spoken)))
}
