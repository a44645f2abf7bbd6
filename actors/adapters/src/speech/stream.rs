//! Sound on its way.
use super::{RATE, SpeechError, Watermark, piece::ItsTurn};
use crate::sound::{self, Timings};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream, Stream},
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Why sound comes by another way than the usual one. Cloning is cheap: clones are the same.
#[derive(Clone, Default)]
pub struct Detour(Arc<Mutex<Option<(&'static str, SpeechError)>>>);

impl Detour {
    /// By this way it could not come.
    pub fn around(&self, way: &'static str, error: SpeechError) {
        *self.lock() = Some((way, error));
    }

    fn lock(&self) -> MutexGuard<'_, Option<(&'static str, SpeechError)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sound as it comes: 16 bits, mono, at the voice's own rate. After an error nothing more comes. Dropping it cancels the request
/// at once.
pub struct SpeechStream {
    /// Samples per second.
    pub rate: u32,
    /// When its words are heard, where the provider tells that.
    pub timings: Timings,
    /// When it is asked for, where other pieces are said before it; `None`: at once.
    pub its_turn: Option<ItsTurn>,
    detour: Detour,
    chunks: BoxStream<'static, Result<Vec<i16>, SpeechError>>,
}

impl SpeechStream {
    pub fn new(rate: u32, chunks: impl Stream<Item = Result<Vec<i16>, SpeechError>> + Send + 'static) -> Self {
        SpeechStream {
            rate,
            timings: Timings::default(),
            its_turn: None,
            detour: Detour::default(),
            chunks: chunks.fuse().boxed(),
        }
    }

    /// Of a piece of a turn.
    pub fn in_turn(self, timings: Timings, its_turn: ItsTurn, detour: Detour) -> Self {
        SpeechStream {
            timings,
            its_turn: Some(its_turn),
            detour,
            ..self
        }
    }

    /// The same sound with a watermark in it.
    pub(super) fn marked(self, mut watermark: Box<dyn Watermark>) -> Self {
        let chunks = self.chunks.map(move |chunk| {
            chunk.map(|mut samples| {
                watermark.mark(&mut samples);
                samples
            })
        });
        SpeechStream {
            chunks: chunks.fuse().boxed(),
            ..self
        }
    }

    /// The way by which it did not come, and why; told once.
    pub fn detour(&self) -> Option<(&'static str, SpeechError)> {
        self.detour.lock().take()
    }

    /// Of a text without a word.
    pub fn nothing() -> Self {
        SpeechStream::new(RATE, stream::empty())
    }

    /// The next piece, of any length but 0; none when all was said. May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Vec<i16>, SpeechError>> {
        self.chunks.next().await
    }

    /// All of it, as a WAV file.
    pub async fn wav(mut self) -> Result<Vec<u8>, SpeechError> {
        let mut samples = Vec::new();
        while let Some(piece) = self.next().await {
            samples.extend(piece?);
        }
        // Into memory: there is nothing that could fail.
        sound::wav(&samples, self.rate).map_err(|_| SpeechError::Garbage)
    }
}

impl fmt::Debug for SpeechStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpeechStream")
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}
