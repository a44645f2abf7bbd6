//! Sound on its way.
use super::{RATE, SpeechError};
use crate::sound;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream, Stream},
};
use std::fmt;

/// Sound as it comes: 16 bits, mono, at the voice's own rate. After an error nothing more comes. Dropping it cancels the request
/// at once.
pub struct SpeechStream {
    /// Samples per second.
    pub rate: u32,
    chunks: BoxStream<'static, Result<Vec<i16>, SpeechError>>,
}

impl SpeechStream {
    pub fn new(rate: u32, chunks: impl Stream<Item = Result<Vec<i16>, SpeechError>> + Send + 'static) -> Self {
        SpeechStream {
            rate,
            chunks: chunks.fuse().boxed(),
        }
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
