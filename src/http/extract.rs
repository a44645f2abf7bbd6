//! Reading requests: bodies, ids and query parameters, each with an error that names the field and says what to do.
use super::{
    bodies::{MIB, Owner, Room},
    caller::Caller,
    error::{ApiError, ApiResult},
    peer::{peer, state_of},
};
use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    error::PayloadError,
    http::{Method, header},
    web::{Bytes, BytesMut},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::{page::Page, values::Moment};
use futures_util::{Stream, StreamExt, future::LocalBoxFuture};
use rules::{
    event::CATALOGUE,
    shape::{self, Misshapen},
};
use serde::de::{DeserializeOwned, IgnoredAny};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    future::{Ready, ready},
    str::FromStr,
    time::Duration,
};
use uuid::Uuid;

/// For bodies that anybody may send, and that hold a few short fields.
pub const SMALL: usize = 4 * 1024;

/// A JSON body of at most `LIMIT` bytes.
pub struct Json<T, const LIMIT: usize = MIB>(pub T);

impl<T: DeserializeOwned, const LIMIT: usize> FromRequest for Json<T, LIMIT> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let json = check_json(request);
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            json?;
            let body = read(&request, &mut payload, LIMIT).await?;
            parse(&body).map(Json)
        })
    }
}

/// A JSON body, or none: for actions whose arguments all have defaults.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest for OptionalJson<T> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let json = check_json(request);
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let body = read(&request, &mut payload, MIB).await?;
            if body.is_empty() {
                return Ok(OptionalJson(T::default()));
            }
            json?;
            parse(&body).map(OptionalJson)
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
                parse::<Empty>(&body)?;
            }
            Ok(Nothing)
        })
    }
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
pub fn room_for(request: &HttpRequest) -> ApiResult<Room> {
    let state = state_of(request);
    let tenant = request.extensions().get::<Caller>().map(Caller::tenant_id);
    let owner = tenant.map_or_else(|| Owner::Network(peer(&state, request)), Owner::Workspace);
    Room::begin(&state.bodies, owner)
}

/// The length that the head names; 0 without one.
fn announced(request: &HttpRequest) -> usize {
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
    let announced = announced(request);
    if announced > limit {
        return Err(ApiError::too_large(limit));
    }
    let mut room = room_for(request)?;
    room.announce(announced)?;
    let body = read_into(&mut room, payload, limit, patience).await?;
    room.keep_for(request);
    Ok(body)
}

/// `patience`: how long the next bytes are waited for, after so long and so many bytes.
async fn read_into(
    room: &mut Room,
    payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
    limit: usize,
    patience: fn(Duration, usize) -> Duration,
) -> Result<BytesMut, ApiError> {
    let begun = tokio::time::Instant::now();
    let mut body = BytesMut::new();
    loop {
        let next = tokio::time::timeout(patience(begun.elapsed(), body.len()), payload.next());
        let Some(chunk) = next.await.map_err(|_| ApiError::body_too_slow())? else {
            return Ok(body);
        };
        let chunk = chunk.map_err(|_| ApiError::invalid_json("the body broke off before its end; send it again"))?;
        if body.len() + chunk.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        room.take(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
}

fn patience(elapsed: Duration, arrived: usize) -> Duration {
    let earned = Duration::from_secs(arrived as u64 / LEAST_PER_SECOND);
    (GRACE + earned).saturating_sub(elapsed).min(IDLE)
}

/// JSON to a value. What is not JSON is a 400; JSON of another shape is a 422 that names the field.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
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
    shape::parse_text(body).map_err(misshapen)
}

/// The same for a value that has been parsed as JSON.
pub fn parse_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, ApiError> {
    shape::parse_value(value).map_err(misshapen)
}

pub fn misshapen(Misshapen { param, message }: Misshapen) -> ApiError {
    ApiError::validation(param, message)
}

/// Does a JSON text hold an escaped NUL? (A raw one is no JSON.) PostgreSQL cannot store it.
fn has_nul(body: &[u8]) -> bool {
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

/// The `{id}` of a path. What is not an id is an object that does not exist.
pub struct Id<I>(pub I);

impl<I: FromStr> FromRequest for Id<I> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let id = request.match_info().get("id").and_then(|text| text.parse().ok());
        ready(
            id.map(Id)
                .ok_or_else(|| ApiError::not_found("there is no object with this id; ids are UUIDs")),
        )
    }
}

/// Query parameters, taken one by one; what is left over at the end is a mistake of the client.
pub struct Params {
    given: BTreeMap<String, String>,
}

impl FromRequest for Params {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let mut given = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(request.query_string().as_bytes()) {
            // PostgreSQL cannot look for it.
            if value.contains('\0') {
                return ready(Err(ApiError::validation(name, "must not contain NUL characters")));
            }
            if given.insert(name.to_string(), value.into_owned()).is_some() {
                return ready(Err(ApiError::validation(name, "is given twice")));
            }
        }
        ready(Ok(Params { given }))
    }
}

impl Params {
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.given.remove(name)
    }

    /// A value that JSON would hold as a text.
    pub fn text<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let value = shape::parse_part(serde_json::Value::String(text));
        value.map(Some).map_err(|why| ApiError::validation(name, why))
    }

    /// One of the catalogue's types.
    pub fn event_type(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        if CATALOGUE.iter().any(|known| known.name == text) {
            Ok(Some(text))
        } else {
            let message = format!("`{text}` is not an event type; see GET /v1/event_types");
            Err(ApiError::validation(name, message))
        }
    }

    fn time(&mut self, name: &str) -> Result<Option<Moment>, ApiError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        Moment::parse(&text)
            .map(Some)
            .map_err(|why| ApiError::validation(name, why))
    }

    /// `limit`, `cursor`, `order`, `created_after` and `created_before`.
    pub fn page(&mut self) -> Result<Page, ApiError> {
        let mut page = Page::default();
        if let Some(limit) = self.take("limit") {
            let parsed = limit.parse().ok().filter(|limit| (1..=100).contains(limit));
            page.limit = parsed.ok_or_else(|| {
                ApiError::validation("limit", format!("must be a number from 1 to 100, not `{limit}`"))
            })?;
        }
        if let Some(order) = self.take("order") {
            page.newest_first = match order.as_str() {
                "desc" => true,
                "asc" => false,
                _ => {
                    return Err(ApiError::validation(
                        "order",
                        format!("must be `asc` or `desc`, not `{order}`"),
                    ));
                }
            };
        }
        if let Some(cursor) = self.take("cursor") {
            let bad = || {
                ApiError::validation(
                    "cursor",
                    "is not a cursor of this list: use the `next_cursor` of an answer as it is",
                )
            };
            page.after = Some(decode_cursor(&cursor).ok_or_else(bad)?);
        }
        page.created_after = self.time("created_after")?;
        page.created_before = self.time("created_before")?;
        Ok(page)
    }

    /// Nothing may be left over.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.given.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::validation(name, "is not a parameter of this request")),
        }
    }
}

pub fn encode_cursor(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

fn decode_cursor(cursor: &str) -> Option<Uuid> {
    Uuid::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
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
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only its errors are looked at")]
        name: String,
        #[expect(dead_code, reason = "only its errors are looked at")]
        pacing: Option<Inner>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its errors are looked at")]
        rate: u8,
    }

    fn error(body: &str) -> (&'static str, Option<String>) {
        match parse::<Outer>(body.as_bytes()).unwrap_err() {
            ApiError::Frame(_, code, _, param) => (code, param),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_message_is_a_sentence_with_the_field_in_it() {
        for (body, expected) in [
            ("", "the body is empty; send a JSON object"),
            (
                r#"{"name":"#,
                "the body is not valid JSON: it ends too early (line 1, column 8)",
            ),
            (r"[]", "send a JSON object"),
            (r"{}", "`name` is required"),
            (r#"{"name":7}"#, "`name` must be a string, not `7`"),
            (
                r#"{"name":"x","pacing":{"rat":3}}"#,
                "`pacing.rat` is not a known field; allowed: `rate`",
            ),
        ] {
            let refused = parse::<Outer>(body.as_bytes()).unwrap_err();
            let answer = actix_web::ResponseError::error_response(&refused).into_body();
            let answer = actix_web::body::to_bytes(answer).await.unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(answer["error"]["message"], expected, "{body}");
        }
    }

    #[test]
    fn a_body_that_stalls_or_drips_is_waited_for_no_longer() {
        for (elapsed, arrived, expected) in [
            (0, 0, 10),
            (4, 1, 10),
            (12, 1, 3),
            (15, 1, 0),
            (20, 5 * 64 * 1024, 0),
            (20, 10 * MIB, 10),
            (170, 10 * MIB, 5),
            (200, 10 * MIB, 0),
        ] {
            let left = patience(Duration::from_secs(elapsed), arrived);
            assert_eq!(left, Duration::from_secs(expected), "{elapsed} s, {arrived} bytes");
        }
    }

    #[tokio::test]
    async fn a_body_holds_room_while_it_comes_and_none_when_its_sender_is_gone() {
        use super::super::bodies::{Bodies, Owner};
        use futures_util::{FutureExt, stream};
        let bodies = std::sync::Arc::<Bodies>::default();
        let owner = Owner::Workspace(Uuid::from_u128(1).into());
        let half = || {
            let bytes = Bytes::from(vec![b'x'; MIB]);
            stream::iter([Ok(bytes)]).chain(stream::pending())
        };
        let (mut room, mut payload) = (Room::begin(&bodies, owner).unwrap(), half());
        let reading = read_into(&mut room, &mut payload, 10 * MIB, patience).now_or_never();
        assert!(reading.is_none(), "it waits for the rest");
        assert!(bodies.held() >= MIB);
        drop(room);
        assert_eq!(bodies.held(), 0);
        let (mut room, mut payload) = (Room::begin(&bodies, owner).unwrap(), half());
        let late = read_into(&mut room, &mut payload, 10 * MIB, |_, _| Duration::ZERO).await;
        let status = actix_web::ResponseError::status_code(&late.unwrap_err());
        assert_eq!(status.as_u16(), 408);
        let mut payload = half();
        let large = read_into(&mut room, &mut payload, MIB - 1, patience).await;
        assert_eq!(actix_web::ResponseError::status_code(&large.unwrap_err()).as_u16(), 413);
    }

    #[test]
    fn errors_name_the_field() {
        let validation = |param: &str| ("validation_failed", Some(param.to_owned()));
        assert_eq!(error(r#"{"name":"#), ("invalid_json", None));
        assert_eq!(error(r#"{"name":"x"} trailing"#), ("invalid_json", None));
        assert_eq!(error(r#"{"name":"x","nmae":1}"#), validation("nmae"));
        assert_eq!(error(r"{}"), validation("name"));
        assert_eq!(error(r#"{"name":1}"#), validation("name"));
        assert_eq!(
            error(r#"{"name":"x","pacing":{"rate":300}}"#),
            validation("pacing.rate")
        );
        assert_eq!(error(r#"{"name":"x","pacing":{"rat":3}}"#), validation("pacing.rat"));
        assert_eq!(error(r#"{"name":"x","pacing":{}}"#), validation("pacing.rate"));
        assert_eq!(error(r#"{"name":"a\u0000b"}"#), validation(""));
        assert!(
            parse::<Outer>(br#"{"name":"a\\u0000b"}"#).is_ok(),
            "a text about an escape"
        );
    }
}
