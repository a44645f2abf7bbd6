//! Multipart forms with large files, read part by part: never more than one file is in memory.
use super::super::{
    bodies::BodyPermit,
    error::{ApiError, Code},
};
use crate::http::extract::room_for;
use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::{HttpMessage, HttpRequest, error::PayloadError, http::header};
use actors::voice_clone::samples::{MAX_FILE, MAX_TOTAL};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use runtime::keyring::hex;
use sha2::{Digest, Sha256};
use std::{
    cell::{Cell, RefCell},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

/// Bytes of a field that is no file.
const MAX_TEXT: usize = 4 * 1024;
/// Bytes of a whole body: the samples and what stands between them.
const MAX_BODY: u64 = MAX_TOTAL + 1024 * 1024;
/// Bytes that come without becoming part of a field: a part's head has no end.
const MAX_UNREAD: usize = 4 * 1024 * 1024;
/// Without a byte.
const IDLE: Duration = Duration::from_secs(30);
/// For the whole body.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// Bytes of a refused body that are still read, so that its sender hears why.
const MAX_DRAINED: u64 = 64 * 1024 * 1024;

/// A part of a form.
pub enum Part {
    Text {
        name: String,
        value: String,
    },
    File {
        name: String,
        file_name: String,
        file: Vec<u8>,
    },
}

/// What was sent, whatever stands between its parts: put here once a form was read to its end.
#[derive(Clone, Default)]
pub struct Fingerprint(Rc<RefCell<Option<String>>>);

impl Fingerprint {
    pub fn get(&self) -> Option<String> {
        self.0.borrow().clone()
    }
}

/// A form while it is read.
pub struct Form {
    parts: Multipart,
    source: Source,
    hash: Sha256,
    fingerprint: Fingerprint,
    begun: tokio::time::Instant,
    /// For what is in memory of it: a file at a time.
    permit: BodyPermit,
}

impl Form {
    pub fn is_one(request: &HttpRequest) -> bool {
        request.content_type().eq_ignore_ascii_case("multipart/form-data")
    }

    pub fn new(
        request: &HttpRequest,
        payload: impl Stream<Item = Result<Bytes, PayloadError>> + 'static,
    ) -> Result<Self, ApiError> {
        if !Self::is_one(request) {
            return Err(ApiError::unsupported_media_type("multipart/form-data"));
        }
        let length = request.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > MAX_BODY) {
            return Err(too_much());
        }
        let mut hash = Sha256::new();
        hash.update(request.method().as_str());
        hash.update(request.path());
        let source = Source::new(payload);
        let fingerprint = request.extensions().get::<Fingerprint>().cloned().unwrap_or_default();
        Ok(Form {
            parts: Multipart::new(request.headers(), source.clone()),
            source,
            hash,
            fingerprint,
            begun: tokio::time::Instant::now(),
            permit: room_for(request)?,
        })
    }

    /// None: the end.
    pub async fn next(&mut self) -> Result<Option<Part>, ApiError> {
        self.permit.free();
        let Some(field) = in_time(self.begun, self.parts.next()).await? else {
            *self.fingerprint.0.borrow_mut() = Some(format!("form:{}", hex(&self.hash.clone().finalize())));
            return Ok(None);
        };
        self.source.read();
        let mut field = field.map_err(|error| self.source.refusal(&error))?;
        let name = field.name().unwrap_or_default().to_owned();
        let disposition = field.content_disposition();
        let file_name = disposition.and_then(|about| about.get_filename()).map(shown);
        let is_file = file_name.is_some() || matches!(name.as_str(), "samples" | "consent_evidence");
        let content = self
            .content(&mut field, if is_file { MAX_FILE } else { MAX_TEXT })
            .await;
        let content = content.map_err(|refused| refused.unwrap_or_else(|| too_long(is_file, &name)))?;
        self.note(&name, file_name.as_deref(), &content);
        if is_file {
            return Ok(Some(Part::File {
                name,
                file_name: file_name.unwrap_or_else(|| "sample".into()),
                file: content,
            }));
        }
        let value = String::from_utf8(content).ok().filter(|text| !text.contains('\0'));
        let value = value.ok_or_else(|| ApiError::validation(name.clone(), "is not UTF-8 text"))?;
        Ok(Some(Part::Text { name, value }))
    }

    /// `Err(None)`: it is longer than `limit`.
    async fn content(&mut self, field: &mut Field, limit: usize) -> Result<Vec<u8>, Option<ApiError>> {
        let mut content = Vec::new();
        while let Some(chunk) = in_time(self.begun, field.next()).await? {
            let chunk = chunk.map_err(|error| self.source.refusal(&error))?;
            self.source.read();
            if content.len() + chunk.len() > limit {
                return Err(None);
            }
            self.permit.take(chunk.len())?;
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    fn note(&mut self, name: &str, file_name: Option<&str>, content: &[u8]) {
        for part in [name.as_bytes(), file_name.unwrap_or_default().as_bytes(), content] {
            self.hash.update((part.len() as u64).to_be_bytes());
            self.hash.update(part);
        }
    }

    /// Reads to the end, for its fingerprint only.
    pub async fn skip(mut self) -> Result<(), ApiError> {
        while self.next().await?.is_some() {}
        Ok(())
    }

    /// Reads on after a refusal, within limits: who is still sending hears no answer.
    pub async fn drain(self) {
        let mut source = self.source;
        let most = source.state.total.get().saturating_add(MAX_DRAINED);
        drop((self.parts, self.permit));
        while source.state.total.get() < most
            && let Ok(Some(Ok(_))) = tokio::time::timeout(IDLE, source.next()).await
        {
            source.read();
        }
    }
}

fn too_much() -> ApiError {
    ApiError::too_large(usize::try_from(MAX_BODY).unwrap_or(usize::MAX))
}

fn too_long(is_file: bool, name: &str) -> ApiError {
    if is_file {
        let message = format!("a file is larger than {MAX_FILE} bytes; send shorter or compressed ones");
        ApiError::Frame(Code::PayloadTooLarge, message, Some(name.to_owned()))
    } else {
        ApiError::validation(name, format!("is longer than {MAX_TEXT} bytes"))
    }
}

/// For people, and safe to be shown: no path, no control characters, 120 characters.
fn shown(file_name: &str) -> String {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(120).collect();
    if name.trim().is_empty() { "sample".into() } else { name }
}

async fn in_time<T>(begun: tokio::time::Instant, reading: impl Future<Output = T>) -> Result<T, ApiError> {
    let late = |_| ApiError::body_too_slow();
    let left = DEADLINE.saturating_sub(begun.elapsed());
    tokio::time::timeout(IDLE.min(left), reading).await.map_err(late)
}

/// The body, counted. Cloning it gives a second hand on the same body.
#[derive(Clone)]
struct Source {
    state: Rc<Counted>,
}

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

struct Counted {
    body: RefCell<Body>,
    total: Cell<u64>,
    unread: Cell<usize>,
}

impl Source {
    fn new(body: impl Stream<Item = Result<Bytes, PayloadError>> + 'static) -> Self {
        Source {
            state: Rc::new(Counted {
                body: RefCell::new(Box::pin(body)),
                total: Cell::new(0),
                unread: Cell::new(0),
            }),
        }
    }

    /// What came so far has become part of a field.
    fn read(&self) {
        self.state.unread.set(0);
    }

    fn refusal(&self, error: &MultipartError) -> ApiError {
        if self.state.total.get() > MAX_BODY {
            return too_much();
        }
        if self.state.unread.get() > MAX_UNREAD {
            return ApiError::validation("", "a part of the form has headers that never end");
        }
        tracing::debug!(%error, "a form cannot be read");
        ApiError::validation(
            "",
            "the form cannot be read; send it as multipart/form-data, each part with its name",
        )
    }
}

impl Stream for Source {
    type Item = Result<Bytes, PayloadError>;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let state = &self.state;
        let polled = state.body.borrow_mut().as_mut().poll_next(cx);
        if let Poll::Ready(Some(Ok(chunk))) = &polled {
            state.total.set(state.total.get().saturating_add(chunk.len() as u64));
            state.unread.set(state.unread.get() + chunk.len());
            if state.total.get() > MAX_BODY || state.unread.get() > MAX_UNREAD {
                return Poll::Ready(Some(Err(PayloadError::Overflow)));
            }
        }
        polled
    }
}
