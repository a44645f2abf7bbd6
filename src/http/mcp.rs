//! `POST /mcp`: the Model Context Protocol over streamable HTTP. Each message is answered by itself, as JSON; there is no session and
//! no stream.
//!
//! The key is shown to the API before anything of the body is read, and again with each request that a tool makes. So whoever has none
//! costs no more here than at `/v1/me`; and this node needs not have the workspace, for those requests find their own way.
use super::{
    bodies::{BodyPermit, Owner},
    bulkheads::Bulkheads,
    error::{ApiError, ApiResult, Code},
    extract::{self, header_text},
    own_api::OwnApi,
};
use crate::{
    mcp::{
        api::{self, Api, ApiAnswer, ApiRequest, Method},
        message::{self, Incoming, Message},
        server,
        version::Version,
    },
    state::State,
};
use actix_http::Request;
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, ResponseError,
    body::{BodySize, BoxBody, MessageBody},
    dev::Payload,
    http::{
        StatusCode, Uri,
        header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, RETRY_AFTER},
    },
    web::{self, Data},
};
use entities::ids::TenantId;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use std::{future::poll_fn, pin::Pin};

/// Bytes of a body. Arguments are short.
const MAX_BODY: usize = 64 * 1024;
/// What the requests of a tool take over from the one that asks for it: who asks, and from where.
const TAKEN_OVER: [HeaderName; 4] = [
    AUTHORIZATION,
    HOST,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("x-forwarded-for"),
];

/// POST /mcp
pub async fn post(state: Data<State>, request: HttpRequest, payload: web::Payload) -> ApiResult<HttpResponse> {
    check_origin(&state, &request)?;
    let own = Own::of(&state, &request)?;
    let me = own.asked(&api::me()).await?;
    if me.status() != StatusCode::OK {
        // 401, or 429: what the API says of this key is all there is to say.
        return Ok(me);
    }
    let me = read(me, api::MAX_ANSWER)
        .await
        .map_err(|why| ApiError::Busy(why.into()))?;
    let tenant = tenant_of(&me).ok_or_else(|| entities::Error::Internal("/v1/me names no workspace".into()))?;
    let _permit = state.bulkheads.tool_call(tenant)?;
    if !request.content_type().eq_ignore_ascii_case("application/json") {
        return Err(ApiError::unsupported_media_type("application/json"));
    }
    let version = version_of(&request)?;
    let room = BodyPermit::begin(&state.bodies, Owner::Workspace(tenant))?;
    let mut payload: Payload = payload.into_inner();
    let body = extract::read_with(room, &request, &mut payload, MAX_BODY).await?;
    let known = Some(Known { me, tenant });
    let own = Own { known, ..own };
    Ok(answered(&own, version, message::read(&body, version)).await)
}

async fn answered(own: &Own<'_>, version: Version, incoming: Incoming) -> HttpResponse {
    let messages = match incoming {
        Incoming::One(message) => {
            // What is no request is not answered as one. Source: specification, "Sending Messages to the Server".
            let status = match &message {
                Message::Invalid { id: Value::Null, .. } => StatusCode::BAD_REQUEST,
                Message::Invalid { .. }
                | Message::Request { .. }
                | Message::Notification { .. }
                | Message::Response => StatusCode::OK,
            };
            return match server::answer(own, version, message).await {
                Some(answer) => HttpResponse::build(status).json(answer),
                None => HttpResponse::Accepted().finish(),
            };
        }
        Incoming::Batch(messages) => messages,
    };
    let mut answers: Vec<Value> = Vec::new();
    // One after the other: a batch is no way to ask for more at once.
    for message in messages {
        answers.extend(server::answer(own, version, message).await);
    }
    match answers.is_empty() {
        true => HttpResponse::Accepted().finish(),
        false => HttpResponse::Ok().json(answers),
    }
}

/// Programs send no `Origin`; pages do. One whose name leads here by DNS rebinding still has its own. Source: specification, "Security
/// Warning".
fn check_origin(state: &State, request: &HttpRequest) -> ApiResult<()> {
    let ours = origin(&state.settings.public_url());
    for given in request.headers().get_all(ORIGIN) {
        let given = given.to_str().ok().and_then(origin);
        if given.is_none() || given != ours {
            return Err(ApiError::forbidden(
                "this request comes from a page of another origin; send it from a program, without the header Origin",
            ));
        }
    }
    Ok(())
}

fn origin(text: &str) -> Option<String> {
    let origin = url::Url::parse(text).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

fn version_of(request: &HttpRequest) -> ApiResult<Version> {
    const NAME: &str = "MCP-Protocol-Version";
    if !request.headers().contains_key(NAME) {
        return Ok(Version::ASSUMED);
    }
    let given = header_text(request, NAME).and_then(|text| Version::parse(text.trim()));
    given.ok_or_else(|| {
        let known = Version::ALL.map(Version::as_str).join(", ");
        let message = format!("`{NAME}` must be the version that `initialize` has answered, one of {known}");
        ApiError::Frame(Code::InvalidRequest, message, Some(NAME.into()))
    })
}

fn tenant_of(me: &ApiAnswer) -> Option<TenantId> {
    me.json()?["tenant"]["id"].as_str()?.parse().ok()
}

/// The service's own API, asked with the caller's key.
struct Own<'a> {
    api: &'a OwnApi,
    bulkheads: &'a Bulkheads,
    request: &'a HttpRequest,
    /// What was answered before the body was read.
    known: Option<Known>,
}

struct Known {
    me: ApiAnswer,
    tenant: TenantId,
}

impl<'a> Own<'a> {
    fn of(state: &'a State, request: &'a HttpRequest) -> ApiResult<Self> {
        let api = request.app_data::<OwnApi>();
        let api = api.ok_or_else(|| entities::Error::Internal("the app was built without its own API".into()))?;
        Ok(Own {
            api,
            bulkheads: &state.bulkheads,
            request,
            known: None,
        })
    }

    async fn asked(&self, asked: &ApiRequest) -> Result<HttpResponse<BoxBody>, entities::Error> {
        let uri = asked.target.parse::<Uri>();
        let uri = uri.map_err(|error| entities::Error::Internal(format!("a tool's request: {error}")))?;
        let mut request = Request::new();
        let head = request.head_mut();
        head.method = match asked.method {
            Method::Get => actix_web::http::Method::GET,
            Method::Post => actix_web::http::Method::POST,
        };
        head.uri = uri;
        head.peer_addr = self.request.peer_addr();
        for name in TAKEN_OVER {
            for value in self.request.headers().get_all(&name) {
                head.headers.append(name.clone(), value.clone());
            }
        }
        self.api.ask(request).await
    }
}

impl Api for Own<'_> {
    fn send<'a>(&'a self, request: &'a ApiRequest) -> LocalBoxFuture<'a, Result<ApiAnswer, String>> {
        Box::pin(async move {
            if let Some(known) = self.known.as_ref().filter(|_| *request == api::me()) {
                return Ok(known.me.clone());
            }
            let answer = self.asked(request).await;
            let answer = answer.map_err(|error| {
                tracing::error!(%error, "a tool's request was not made");
                "this is a fault of the service; the operator finds it in the log".to_owned()
            })?;
            let room = match &self.known {
                Some(known) if request.most > api::MAX_ANSWER && is_long(&answer) => {
                    self.bulkheads.long_answer(known.tenant).map(Some)
                }
                Some(_) | None => Ok(None),
            };
            let (answer, _room) = match room {
                Ok(room) => (answer, room),
                Err(full) => (full.error_response(), None),
            };
            read(answer, request.most).await.map_err(str::to_owned)
        })
    }
}

/// Longer than most are, or of a length that nobody knows.
fn is_long(answer: &HttpResponse<BoxBody>) -> bool {
    match answer.body().size() {
        BodySize::None => false,
        BodySize::Sized(bytes) => usize::try_from(bytes).map_or(true, |bytes| bytes > api::MAX_ANSWER),
        BodySize::Stream => true,
    }
}

/// As much of an answer as is wanted. What is left is dropped, and not made any more.
async fn read(answer: HttpResponse<BoxBody>, most: usize) -> Result<ApiAnswer, &'static str> {
    let retry_after = answer.headers().get(RETRY_AFTER);
    let mut read = ApiAnswer {
        status: answer.status().as_u16(),
        retry_after: retry_after.and_then(|value| value.to_str().ok()?.parse().ok()),
        ..ApiAnswer::default()
    };
    let mut body = answer.into_body();
    while let Some(piece) = poll_fn(|context| Pin::new(&mut body).poll_next(context)).await {
        let piece = piece.map_err(|_| "the answer broke off")?;
        let room = most - read.body.len();
        read.body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            read.is_cut = true;
            break;
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (one, other, expected) in [
            ("https://calls.example.com", "https://calls.example.com:443/x", true),
            ("https://calls.example.com", "https://CALLS.example.com", true),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("http://127.0.0.1:8080", "http://localhost:8080", false),
            ("https://calls.example.com", "http://calls.example.com", false),
            (
                "https://calls.example.com",
                "https://calls.example.com.evil.example",
                false,
            ),
        ] {
            assert_eq!(origin(one) == origin(other), expected, "{one} {other}");
        }
        for opaque in ["null", "", "file:///etc/passwd", "data:text/html,x"] {
            assert_eq!(origin(opaque), None, "{opaque}");
        }
    }

    #[test]
    fn an_answer_is_long_by_its_length() {
        let most = api::MAX_ANSWER;
        for (body, expected) in [(0, false), (most, false), (most + 1, true)] {
            assert_eq!(is_long(&HttpResponse::Ok().body("x".repeat(body))), expected, "{body}");
        }
        let pieces = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(web::Bytes::from_static(b"xy")));
        assert!(is_long(&HttpResponse::Ok().streaming(pieces)));
    }

    #[actix_web::test]
    async fn no_more_of_an_answer_is_read_than_is_wanted() {
        let answer = || HttpResponse::Ok().insert_header((RETRY_AFTER, "7")).body("0123456789");
        let whole = read(answer(), 10).await.unwrap();
        assert_eq!(
            (&whole.body[..], whole.is_cut, whole.retry_after),
            (&b"0123456789"[..], false, Some(7))
        );
        let cut = read(answer(), 4).await.unwrap();
        assert_eq!((&cut.body[..], cut.is_cut), (&b"0123"[..], true));
        let pieces = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(web::Bytes::from_static(b"xy")));
        let endless = read(HttpResponse::Ok().streaming(pieces), 5).await.unwrap();
        assert_eq!((&endless.body[..], endless.is_cut), (&b"xyxyx"[..], true));
    }
}
