//! A request on its way to another node, and the answer on its way back.
use super::{
    AsAsked, Body, Home, MOVED,
    proof::{self, HOP, Hop},
};
use crate::{
    http::{
        bodies::{BodyPermit, Owner},
        error::{ApiError, ApiResult, Code, REQUEST_ID},
        events::HEARTBEAT,
        extract,
        peer::peer,
        peers::{Carried, Piece},
        traced,
    },
    state::State,
};
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, ResponseError,
    body::{BoxBody, SizedStream},
    dev::Payload,
    http::{
        StatusCode,
        header::{HeaderName, HeaderValue},
    },
    web::Bytes,
};
use adapters::otlp::trace_header::TRACEPARENT;
use entities::{
    ids::TenantId,
    workspace_lease::{self, Owner as Node},
};
use futures_util::{Stream, StreamExt};
use http_body_util::{BodyExt, BodyStream, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use runtime::keyring::purpose;
use std::{io, time::Duration};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Bodies that are not longer are kept until they are answered, and sent again to where the workspace has gone.
const KEPT: usize = 64 * 1024;
/// Pieces of a longer one that are on their way.
const PIECES: usize = 4;
/// While an answer is awaited: does that node still have the workspace?
const LOOK: Duration = Duration::from_secs(1);
/// Two heartbeats of an event stream, and some more.
const SILENCE: Duration = Duration::from_secs(2 * HEARTBEAT.as_secs() + 5);

/// A body that is to be handed on.
pub enum Outgoing {
    Kept(Bytes),
    /// Each piece as it comes.
    Streamed(ReceiverStream<Piece>, Pump),
}

/// Reads a body for as long as this is kept.
pub struct Pump(actix_web::rt::task::JoinHandle<()>);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub enum Outcome {
    Answered(HttpResponse),
    /// The node could not be reached, or does not have the workspace any more; the body, if it was kept.
    Untouched(Option<Outgoing>),
}

/// The body of a request, from whoever sends it: kept, if it is short.
pub async fn outgoing(state: &State, request: &HttpRequest, home: Home, body: &mut Body<'_>) -> ApiResult<Outgoing> {
    let payload = match body {
        Body::Read(bytes) => return Ok(Outgoing::Kept(bytes.clone())),
        Body::Coming(payload) => payload,
    };
    if extract::announced(request) > KEPT {
        let payload = std::mem::replace(*payload, Payload::None);
        return Ok(streamed(Bytes::new(), payload));
    }
    // Who has shown no key is a stranger still: the workspace is not charged for them.
    let mut room = match home {
        Home::OfKey(tenant) => BodyPermit::begin(&state.bodies, Owner::Workspace(tenant))?,
        Home::Anywhere | Home::Of(_) => extract::room_for(request)?,
    };
    // One that does not say how long it is may be longer all the same.
    match extract::read_beginning(&mut room, payload, KEPT).await? {
        (whole, true) => Ok(Outgoing::Kept(whole.freeze())),
        (beginning, false) => {
            let payload = std::mem::replace(*payload, Payload::None);
            Ok(streamed(beginning.freeze(), payload))
        }
    }
}

/// What has come of it, and the rest as it comes.
fn streamed(beginning: Bytes, mut payload: Payload) -> Outgoing {
    let (sender, pieces) = mpsc::channel(PIECES);
    // On this thread, which alone may read it. It ends with the one who sends, or with the one who takes.
    let pump = actix_web::rt::spawn(async move {
        if !beginning.is_empty() && sender.send(Ok(Frame::data(beginning))).await.is_err() {
            return;
        }
        while let Some(piece) = payload.next().await {
            let piece = piece.map(Frame::data).map_err(io::Error::other);
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    });
    Outgoing::Streamed(ReceiverStream::new(pieces), Pump(pump))
}

/// Of one connection only, and not of what is asked.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Asks that node, as long as it has the workspace.
pub async fn hand_on(state: &State, (tenant, to): (TenantId, &Node), request: &HttpRequest, body: Outgoing) -> Outcome {
    let (kept, body, _pump) = match body {
        Outgoing::Kept(bytes) => (Some(bytes.clone()), Either::Left(Full::new(bytes)), None),
        Outgoing::Streamed(pieces, pump) => (None, Either::Right(StreamBody::new(pieces)), Some(pump)),
    };
    let only_reads = request.method().is_safe();
    let untouched = || Outcome::Untouched(kept.clone().map(Outgoing::Kept));
    let Some(outgoing) = addressed(state, to, request, body) else {
        return untouched();
    };
    metrics::counter!("callboard_requests_handed_on_total").increment(1);
    // Whoever asked has left: so has the node that asks for them.
    let mut asking = Aborting(state.deps.runtime.spawn(state.peers.request(outgoing)));
    loop {
        let answer = match tokio::time::timeout(LOOK, &mut asking).await {
            Ok(answer) => answer,
            // A node that stands still says nothing, and may have lost the workspace by now.
            Err(_) => match workspace_lease::owner(&state.deps.db.read, tenant).await {
                Ok(owner) if owner.as_ref().map(|owner| owner.id) != Some(to.id) => {
                    return if only_reads {
                        untouched()
                    } else {
                        Outcome::Answered(lost())
                    };
                }
                _ => continue,
            },
        };
        return match answer {
            Ok(Ok(answer)) if answer.headers().contains_key(MOVED) => untouched(),
            Ok(Ok(answer)) => Outcome::Answered(answered(answer, state)),
            Ok(Err(error)) if error.is_connect() || only_reads => {
                tracing::debug!(node = to.name, %error, "a node could not be reached");
                untouched()
            }
            Ok(Err(error)) => {
                tracing::warn!(node = to.name, %error, "a node did not answer");
                Outcome::Answered(lost())
            }
            Err(_) => Outcome::Answered(lost()),
        };
    }
}

/// Ends with whoever waits for it.
struct Aborting<T>(tokio::task::JoinHandle<T>);

impl<T> Future for Aborting<T> {
    type Output = Result<T, tokio::task::JoinError>;
    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// It may have been done, or not.
fn lost() -> HttpResponse {
    let message = "the node that serves this workspace stopped responding, and the request may or may not have taken effect: retry \
                   it with the same Idempotency-Key, or check before you retry";
    ApiError::Frame(Code::Unavailable, message.into(), None).error_response()
}

fn addressed(state: &State, to: &Node, request: &HttpRequest, body: Carried) -> Option<http::Request<Carried>> {
    let target = request.extensions().get::<AsAsked>()?.0.clone();
    let method = request.method().as_str();
    let hop = Hop {
        peer: peer(state, request),
        request_id: REQUEST_ID.try_with(Clone::clone).ok()?,
    };
    let key = state.deps.links.signing(purpose::NODES);
    let proof = proof::made(&key, to.id, (method, &target), &hop);
    // There it is a part of what is done here.
    let traced = traced::of(request).trace();
    let mut outgoing = http::Request::builder()
        .method(method)
        .uri(format!("http://{}{target}", to.address));
    for (name, value) in request.headers() {
        if !HOP_BY_HOP.contains(&name.as_str())
            && name != HOP
            && name.as_str() != "expect"
            && name.as_str() != "content-length"
            && (name.as_str() != TRACEPARENT || traced.is_none())
        {
            outgoing = outgoing.header(name.as_str(), value.as_bytes());
        }
    }
    if let (Either::Right(_), Some(length)) = (&body, request.headers().get("content-length")) {
        outgoing = outgoing.header("content-length", length.as_bytes());
    }
    if let Some(trace) = traced {
        outgoing = outgoing.header(TRACEPARENT, trace.context.to_string());
    }
    outgoing.header(HOP.as_str(), proof).body(body).ok()
}

fn answered(answer: http::Response<Incoming>, state: &State) -> HttpResponse {
    let (head, body) = answer.into_parts();
    let status = StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = HttpResponse::new(status);
    let mut length = None;
    for (name, value) in &head.headers {
        if name == "content-length" {
            length = value.to_str().ok().and_then(|length| length.parse::<u64>().ok());
            continue;
        }
        let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_str().as_bytes()),
            HeaderValue::from_bytes(value.as_bytes()),
        ) else {
            continue;
        };
        if !HOP_BY_HOP.contains(&name.as_str()) {
            response.headers_mut().append(name, value);
        }
    }
    let is_stream = head
        .headers
        .get("content-type")
        .is_some_and(|kind| kind == "text/event-stream");
    if is_stream {
        let ending = state.streams.ending.subscribe();
        let pieces = as_it_happens(body, ending);
        return response.set_body(BoxBody::new(actix_web::body::BodyStream::new(pieces)));
    }
    let pieces = pieces(body);
    match length {
        Some(0) => response.set_body(BoxBody::new(())),
        Some(length) => response.set_body(BoxBody::new(SizedStream::new(length, pieces))),
        None => response.set_body(BoxBody::new(actix_web::body::BodyStream::new(pieces))),
    }
}

fn pieces(body: Incoming) -> impl Stream<Item = Result<Bytes, io::Error>> + Unpin {
    Box::pin(
        BodyStream::new(body.map_err(io::Error::other)).filter_map(|piece| async {
            match piece {
                Ok(frame) => frame.into_data().ok().map(Ok),
                Err(error) => Some(Err(error)),
            }
        }),
    )
}

/// An event stream: it ends with this service, and when nothing comes any more, not even a heartbeat. Its reader connects again.
fn as_it_happens(
    body: Incoming,
    ending: tokio::sync::watch::Receiver<bool>,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Unpin {
    let begun = (pieces(body), ending);
    Box::pin(futures_util::stream::unfold(
        begun,
        |(mut pieces, mut ending)| async move {
            let next = tokio::select! {
                next = tokio::time::timeout(SILENCE, pieces.next()) => next.ok().flatten(),
                _ = ending.wait_for(|ending| *ending) => None,
            };
            next.map(|piece| (piece, (pieces, ending)))
        },
    ))
}
