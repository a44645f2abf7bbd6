//! Reading requests: bodies, ids and query parameters, each with an error that names the field and says what to do.
mod params;

pub use params::{Id, Params, encode_cursor};

use super::{
    bodies::{BodyPermit, MIB, Owner},
    caller::Caller,
    error::{ApiError, ApiResult},
    examples,
    peer::{peer, state_of},
};
use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    error::PayloadError,
    http::{Method, header},
    web::{Bytes, BytesMut},
};
use entities::{Error, error::Fault};
use futures_util::{Stream, StreamExt, future::LocalBoxFuture};
use rules::shape;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use std::{borrow::Cow, time::Duration};

/// For bodies that anybody may send, and that hold a few short fields.
pub const SMALL: usize = 4 * 1024;

/// A JSON body of at most `LIMIT` bytes.
pub struct Json<T, const LIMIT: usize = MIB>(pub T);

impl<T: DeserializeOwned, const LIMIT: usize> FromRequest for Json<T, LIMIT> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (json, request, mut payload) = json_body(request, payload);
        Box::pin(async move {
            json?;
            let body = read(&request, &mut payload, LIMIT).await?;
            parse(&body, &|| examples::good_body(&request)).map(Json)
        })
    }
}

/// A JSON body, or none: for actions whose arguments all have defaults.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest for OptionalJson<T> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (json, request, mut payload) = json_body(request, payload);
        Box::pin(async move {
            let body = read(&request, &mut payload, MIB).await?;
            if body.is_empty() {
                return Ok(OptionalJson(T::default()));
            }
            json?;
            parse(&body, &|| examples::good_body(&request)).map(OptionalJson)
        })
    }
}

/// A CSV file as the body, of at most `LIMIT` bytes, UTF-8.
pub struct Csv<const LIMIT: usize>(pub String);

impl<const LIMIT: usize> FromRequest for Csv<LIMIT> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_csv = request.content_type().eq_ignore_ascii_case("text/csv");
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            if !is_csv {
                return Err(ApiError::unsupported_media_type("text/csv"));
            }
            let body = read(&request, &mut payload, LIMIT).await?;
            let text = String::from_utf8(body.to_vec());
            text.map(Csv)
                .map_err(|_| ApiError::validation("", "the file is not UTF-8: save it as CSV UTF-8"))
        })
    }
}

/// A form's fields in their order, as browsers and telephone services post them; at most 100, of 64 KiB together.
pub struct Form(pub Vec<(String, String)>);

impl FromRequest for Form {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        const TYPE: &str = "application/x-www-form-urlencoded";
        const MAX_FIELDS: usize = 100;
        let is_form = request.content_type().eq_ignore_ascii_case(TYPE);
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let body = read(&request, &mut payload, MIB / 16).await?;
            // What has no field has no type either.
            if !is_form && !body.is_empty() {
                return Err(ApiError::unsupported_media_type(TYPE));
            }
            let fields: Vec<(String, String)> = url::form_urlencoded::parse(&body)
                .take(MAX_FIELDS + 1)
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect();
            if fields.len() > MAX_FIELDS {
                return Err(ApiError::validation(
                    "",
                    format!("the form has more than {MAX_FIELDS} fields"),
                ));
            }
            Ok(Form(fields))
        })
    }
}

/// No body, or an empty object: for actions that take no arguments.
pub struct Nothing;

impl FromRequest for Nothing {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Empty {}
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let body = read(&request, &mut payload, MIB).await?;
            if !body.is_empty() {
                parse::<Empty>(&body, &|| None)?;
            }
            Ok(Nothing)
        })
    }
}

/// What a reader of JSON takes along: whether the body says that it is JSON, and what to read it from.
fn json_body(request: &HttpRequest, payload: &mut Payload) -> (Result<(), ApiError>, HttpRequest, Payload) {
    (check_json(request), request.clone(), payload.take())
}

fn check_json(request: &HttpRequest) -> Result<(), ApiError> {
    let merge_patch = *request.method() == Method::PATCH
        && request
            .content_type()
            .eq_ignore_ascii_case("application/merge-patch+json");
    if merge_patch || request.content_type().eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(ApiError::unsupported_media_type("application/json"))
    }
}

/// Room for the body of this request.
pub fn room_for(request: &HttpRequest) -> ApiResult<BodyPermit> {
    let state = state_of(request);
    let tenant = request.extensions().get::<Caller>().map(Caller::tenant_id);
    let owner = tenant.map_or_else(|| Owner::Network(peer(&state, request)), Owner::Workspace);
    BodyPermit::begin(&state.bodies, owner)
}

/// The length that the head names; 0 without one.
pub fn announced(request: &HttpRequest) -> usize {
    let length = request.headers().get(header::CONTENT_LENGTH);
    length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// Without a byte of a body.
const IDLE: Duration = Duration::from_secs(10);
/// A body has so long, and as much again as [`LEAST_PER_SECOND`] allows it.
const GRACE: Duration = Duration::from_secs(15);
/// Bytes of a body. One that comes more slowly holds what others could use.
const LEAST_PER_SECOND: u64 = 64 * 1024;

/// Reads a body, `limit` bytes at most.
pub async fn read(request: &HttpRequest, payload: &mut Payload, limit: usize) -> Result<BytesMut, ApiError> {
    read_with(room_for(request)?, request, payload, limit).await
}

/// The same, with room that was set aside already.
pub async fn read_with(
    mut permit: BodyPermit,
    request: &HttpRequest,
    payload: &mut Payload,
    limit: usize,
) -> Result<BytesMut, ApiError> {
    let announced = announced(request);
    if announced > limit {
        return Err(ApiError::too_large(limit));
    }
    permit.announce(announced)?;
    let body = read_into(&mut permit, payload, limit, patience).await?;
    permit.keep_for(request);
    Ok(body)
}

/// How a body begins, at least so much of it; and whether that was all.
pub async fn read_beginning(
    permit: &mut BodyPermit,
    payload: &mut Payload,
    enough: usize,
) -> Result<(BytesMut, bool), ApiError> {
    let (begun, mut body) = (tokio::time::Instant::now(), BytesMut::new());
    while body.len() <= enough {
        let Some(chunk) = next_chunk(payload, patience(begun.elapsed(), body.len())).await? else {
            return Ok((body, true));
        };
        permit.take(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
    Ok((body, false))
}

async fn next_chunk(
    payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
    patience: Duration,
) -> Result<Option<Bytes>, ApiError> {
    let next = tokio::time::timeout(patience, payload.next());
    let chunk = next.await.map_err(|_| ApiError::body_too_slow())?;
    chunk
        .transpose()
        .map_err(|_| ApiError::invalid_json("the body broke off before its end; send it again"))
}

/// `patience`: how long the next bytes are waited for, after so long and so many bytes.
async fn read_into(
    permit: &mut BodyPermit,
    payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
    limit: usize,
    patience: fn(Duration, usize) -> Duration,
) -> Result<BytesMut, ApiError> {
    let begun = tokio::time::Instant::now();
    let mut body = BytesMut::new();
    loop {
        let Some(chunk) = next_chunk(payload, patience(begun.elapsed(), body.len())).await? else {
            return Ok(body);
        };
        if body.len() + chunk.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        permit.take(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
}

/// How long the next bytes of a body are waited for, after so long and so many bytes.
pub fn patience(elapsed: Duration, arrived: usize) -> Duration {
    let earned = Duration::from_secs(arrived as u64 / LEAST_PER_SECOND);
    (GRACE + earned).saturating_sub(elapsed).min(IDLE)
}

/// JSON to a value. What is not JSON is a 400; JSON of another shape is a 422 that names every field that is wrong. `good`: a body
/// that can be read; it is looked for only if this one cannot.
pub fn parse<T: DeserializeOwned>(body: &[u8], good: &dyn Fn() -> Option<&'static Value>) -> Result<T, ApiError> {
    check_object(body)?;
    shape::parse_text(body).map_err(|first| refused(shape::faults_of_text::<T>(body, good(), first)))
}

/// What is the same for every shape, so that it is compiled once.
fn check_object(body: &[u8]) -> Result<(), ApiError> {
    if has_nul(body) {
        return Err(ApiError::validation(
            "",
            "texts must not contain NUL characters (\\u0000)",
        ));
    }
    // Is it JSON to its last byte? Then what is wrong below is its shape.
    let json = serde_json::from_slice::<IgnoredAny>(body);
    json.map_err(|error| {
        let why = match body.trim_ascii() {
            [] => "the body is empty; send a JSON object".to_owned(),
            _ => format!("the body is not valid JSON: {}", shape::not_json(&error)),
        };
        ApiError::invalid_json(why)
    })?;
    // serde would take a list for a struct, its fields in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(ApiError::validation("", "send a JSON object"));
    }
    Ok(())
}

/// The same for a value that has been parsed as JSON. `good`: one that can be read, such as what a change begins with.
pub fn parse_value<T: DeserializeOwned>(value: Value, good: &Value) -> Result<T, ApiError> {
    shape::parse_all(value, good).map_err(refused)
}

/// What a JSON merge patch makes of a value.
pub fn merged<T: DeserializeOwned>(before: Value, patch: Value) -> Result<T, ApiError> {
    let mut after = before.clone();
    shape::merge(&mut after, patch);
    parse_value(after, &before)
}

/// The same for what is left of a body when `taken` was taken out of it, which is allowed, too.
pub fn parse_rest<T: DeserializeOwned>(rest: Value, good: &Value, taken: &str) -> Result<T, Error> {
    shape::parse_all(rest, good).map_err(|mut faults| {
        for fault in faults.iter_mut().filter(|fault| !fault.field.contains('.')) {
            fault.reason = fault
                .reason
                .replacen("; allowed: ", &format!("; allowed: `{taken}`, "), 1);
        }
        Error::Faults(faults)
    })
}

pub fn refused(faults: Vec<Fault>) -> ApiError {
    Error::Faults(faults).into()
}

/// Does a JSON text hold an escaped NUL? (A raw one is no JSON.) PostgreSQL cannot store it.
pub fn has_nul(body: &[u8]) -> bool {
    body.windows(6).enumerate().any(|(at, window)| {
        // An even number of backslashes before it means that it is text about an escape, not an escape.
        window == b"\\u0000"
            && body[..at]
                .iter()
                .rev()
                .take_while(|byte| **byte == b'\\')
                .count()
                .is_multiple_of(2)
    })
}

/// The value of a header, if it is readable.
pub fn header_text<'a>(request: &'a HttpRequest, name: &str) -> Option<Cow<'a, str>> {
    request
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(Cow::Borrowed)
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
