//! Sound in the answer to an HTTP request; or in the request, and words in the answer.
use super::{SpeechError, SpeechStream, pcm::Pcm};
use crate::provider_http::{Limits, Patience};
use bytes::Bytes;
use futures_util::stream;
use reqwest::{
    RequestBuilder, Response,
    header::{CONTENT_TYPE, HeaderName, RETRY_AFTER},
};
use std::{mem, time::Duration};
use tokio::time::{Instant, timeout};

/// To open a connection that is not needed yet.
const WARM_UP: Duration = Duration::from_secs(5);
/// Bytes of an answer that is read only so that its connection can be kept.
const MAX_LIST: usize = 2 * 1024 * 1024;

/// The samples of a body, as they come.
pub fn streamed(rate: u32, request: RequestBuilder, limits: Limits) -> SpeechStream {
    let sound = Sound {
        answer: Answer::unasked(request, limits, is_no_sound),
        pcm: Pcm::at(rate),
    };
    SpeechStream::new(rate, stream::try_unfold(sound, next))
}

async fn next(mut sound: Sound) -> Result<Option<(Vec<i16>, Sound)>, SpeechError> {
    let piece = sound.next().await?;
    Ok(piece.map(|piece| (piece, sound)))
}

/// Sound as a whole body, of at most so many bytes.
pub async fn whole(request: RequestBuilder, limits: Limits, max_bytes: usize) -> Result<Vec<u8>, SpeechError> {
    read(Answer::unasked(request, limits, is_no_sound), max_bytes).await
}

/// The same of any content type.
pub async fn body(request: RequestBuilder, limits: Limits, max_bytes: usize) -> Result<Vec<u8>, SpeechError> {
    read(Answer::unasked(request, limits, |_| false), max_bytes).await
}

async fn read(mut answer: Answer, max_bytes: usize) -> Result<Vec<u8>, SpeechError> {
    let mut body = Vec::new();
    // Nothing of it can be heard before its end.
    while let Some(piece) = answer.piece(body.is_empty()).await? {
        if body.len() + piece.len() > max_bytes {
            return Err(SpeechError::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Asks for something small, so that there is a connection when the first words come.
pub async fn warm(request: RequestBuilder) {
    let reading = async {
        let mut left = MAX_LIST;
        let Ok(mut response) = request.send().await else { return };
        while let Ok(Some(piece)) = response.chunk().await {
            match left.checked_sub(piece.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    // The first words will tell.
    let _ = timeout(WARM_UP, reading).await;
}

struct Sound {
    answer: Answer,
    pcm: Pcm,
}

impl Sound {
    async fn next(&mut self) -> Result<Option<Vec<i16>>, SpeechError> {
        loop {
            let Some(piece) = self.answer.piece(!self.pcm.has_begun()).await? else {
                return self.pcm.end().map(|()| None);
            };
            let samples = self.pcm.take(&piece)?;
            if !samples.is_empty() {
                return Ok(Some(samples));
            }
        }
    }
}

/// A request, and later the body that answers it.
struct Answer {
    stage: Stage,
    patience: Patience,
    /// When it was asked for.
    begun: Option<Instant>,
    /// By its content type.
    is_wrong: fn(&str) -> bool,
}

#[derive(Default)]
enum Stage {
    Unasked(Box<RequestBuilder>),
    Open(Box<Response>),
    #[default]
    Over,
}

impl Answer {
    fn unasked(request: RequestBuilder, limits: Limits, is_wrong: fn(&str) -> bool) -> Self {
        Answer {
            stage: Stage::Unasked(Box::new(request)),
            patience: Patience::new(limits),
            begun: None,
            is_wrong,
        }
    }

    /// The next piece of the body. `silent`: nothing of it was heard yet.
    async fn piece(&mut self, silent: bool) -> Result<Option<Bytes>, SpeechError> {
        let mut response = match mem::take(&mut self.stage) {
            Stage::Unasked(request) => Box::new(self.ask(*request).await?),
            Stage::Open(response) => response,
            Stage::Over => return Ok(None),
        };
        let piece = self.wait(silent, response.chunk()).await?;
        let piece = piece.map_err(|error| lost(&error))?;
        if piece.is_some() {
            self.stage = Stage::Open(response);
        }
        Ok(piece)
    }

    async fn ask(&mut self, request: RequestBuilder) -> Result<Response, SpeechError> {
        let response = self.wait(true, request.send()).await?;
        let response = response.map_err(|error| lost(&error))?;
        let header = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        let status = response.status();
        if !status.is_success() {
            return Err(SpeechError::of_status(status.as_u16(), header(RETRY_AFTER)));
        }
        if header(CONTENT_TYPE).is_some_and(self.is_wrong) {
            return Err(SpeechError::Garbage);
        }
        Ok(response)
    }

    /// Until the first sound the time runs from the beginning; later, from piece to piece.
    async fn wait<T>(&mut self, silent: bool, answer: impl Future<Output = T>) -> Result<T, SpeechError> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let Limits {
            first_byte, silence, ..
        } = self.patience.limits;
        let (limit, error) = match silent {
            true => (first_byte.saturating_sub(begun.elapsed()), SpeechError::Timeout),
            false => (silence, SpeechError::Stalled),
        };
        self.patience.wait(limit, answer).await.ok_or(error)
    }
}

/// Words, or sound in a form that was not asked for.
fn is_no_sound(content_type: &str) -> bool {
    let kind = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let compressed = ["mpeg", "mp3", "ogg", "opus", "aac", "flac", "mp4", "webm"];
    match kind.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) => kind != "octet-stream",
        Some(("audio", kind)) => compressed.contains(&kind),
        _ => false,
    }
}

/// In our words only: an error of the client names the address.
fn lost(error: &reqwest::Error) -> SpeechError {
    if error.is_connect() {
        SpeechError::Absent
    } else if error.is_timeout() {
        SpeechError::Timeout
    } else {
        SpeechError::Closed
    }
}
