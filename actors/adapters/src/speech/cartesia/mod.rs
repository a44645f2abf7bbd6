//! Cartesia: one websocket for a talk, and a context on it for each turn.
//!
//! Source: docs.cartesia.ai/api-reference, "Text-to-Speech (WebSocket)", "Contexts" and "Context flushing", 2026-03-01.
mod connect;
mod context;
mod link;

pub use connect::Endpoint;

use super::{
    RATE, SpeechError, SpeechStream, Synthesizer, Utterance, generation,
    piece::{Failure, Piece, piece},
    stream::Detour,
};
use crate::sound::Timings;
use context::{Opener, Talk};
use futures_util::{FutureExt, future::BoxFuture, stream};
use std::sync::Arc;
use tokio::time::timeout;

/// For one talk: its socket is opened with the first words, or before, and again when it broke.
pub struct Cartesia(Arc<Talk>);

impl Cartesia {
    pub fn new(endpoint: Endpoint) -> Self {
        Cartesia(Arc::new(Talk::new(endpoint)))
    }
}

impl Synthesizer for Cartesia {
    fn name(&self) -> &'static str {
        "cartesia"
    }

    fn speak(&self, asked: Utterance) -> SpeechStream {
        let timings = Timings::default();
        let limits = self.0.endpoint.limits;
        let (saying, piece) = piece(&asked.text, asked.places.clone(), timings.clone(), limits);
        asked.turn.say(Arc::as_ptr(&self.0).addr(), saying, |pieces| {
            let opener = Opener::new(self.0.clone(), &asked);
            tokio::spawn(generation::run(opener, pieces));
        });
        let its_turn = piece.its_turn();
        SpeechStream::new(RATE, stream::try_unfold(piece, next)).in_turn(timings, its_turn, Detour::default())
    }

    fn warm(&self, _: &str, _: &str) -> BoxFuture<'_, ()> {
        async {
            // The first words will tell.
            let _ = timeout(self.0.endpoint.limits.first_byte, self.0.link()).await;
        }
        .boxed()
    }
}

async fn next(mut piece: Piece) -> Result<Option<(Vec<i16>, Piece)>, SpeechError> {
    match piece.next().await {
        Ok(samples) => Ok(samples.map(|samples| (samples, piece))),
        Err(Failure::Unopened(error) | Failure::Broken(error)) => Err(error),
    }
}
