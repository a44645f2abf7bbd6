//! The one table from errors to what the client sees, and the error body of CONTRACT §1.
use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use entities::{
    Error,
    error::{Fault, sentence},
};
use serde::Serialize;
use std::fmt;

tokio::task_local! {
    /// The id of the request being answered, for the error's body.
    pub static REQUEST_ID: String;
}

pub fn request_id() -> String {
    REQUEST_ID.try_with(String::clone).unwrap_or_default()
}

/// In the extensions of a response: it is of this moment only, and changed nothing. A repeat asks anew.
#[derive(Clone, Copy, Debug)]
pub struct NotKept;

/// What an HTTP handler fails with: an error of the service, or one of the frame around it.
#[derive(Debug)]
pub enum ApiError {
    Service(Error),
    /// The same where it is of this moment only, such as somebody else's outage: a repeat asks anew, also under the same
    /// `Idempotency-Key`.
    Passing(Error),
    /// Status, code, message, the field.
    Frame(StatusCode, &'static str, String, Option<String>),
    /// 429 with the seconds to wait.
    TooMany(&'static str, String, u64),
    /// 503: others use what this would need.
    Busy(String),
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        ApiError::Service(error)
    }
}

impl ApiError {
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        ApiError::Frame(StatusCode::UNAUTHORIZED, "unauthenticated", message.into(), None)
    }
    pub fn forbidden(message: impl Into<String>) -> Self {
        ApiError::Frame(StatusCode::FORBIDDEN, "forbidden", message.into(), None)
    }
    /// A password in the body is not the user's. Not 401: the session is a good one.
    pub fn wrong_password(param: &str) -> Self {
        let message = "the password is wrong".into();
        ApiError::Frame(StatusCode::FORBIDDEN, "forbidden", message, Some(param.into()))
    }
    /// The session is a good one, but its password was given too long ago for this. `param` tells it from a role that does
    /// not suffice.
    pub fn password_wanted() -> Self {
        let message = "give your password once more (POST /v1/_internal/reauthenticate), then repeat this request";
        ApiError::Frame(
            StatusCode::FORBIDDEN,
            "forbidden",
            message.into(),
            Some("password".into()),
        )
    }
    pub fn invalid_json(message: impl Into<String>) -> Self {
        ApiError::Frame(StatusCode::BAD_REQUEST, "invalid_json", message.into(), None)
    }
    pub fn validation(param: impl Into<String>, message: impl Into<String>) -> Self {
        ApiError::Service(Error::invalid(param, message))
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        ApiError::Frame(StatusCode::NOT_FOUND, "not_found", message.into(), None)
    }
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes; send less at once");
        ApiError::Frame(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message, None)
    }
    pub fn body_too_slow() -> Self {
        let message = "the body did not arrive in time; send it faster, or less at once".into();
        ApiError::Frame(StatusCode::REQUEST_TIMEOUT, "request_timeout", message, None)
    }
    /// What no program means to send.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        ApiError::Frame(StatusCode::BAD_REQUEST, "invalid_request", message.into(), None)
    }
    pub fn unsupported_media_type(wanted: &str) -> Self {
        let message = format!("send it with `Content-Type: {wanted}`");
        ApiError::Frame(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            message,
            None,
        )
    }

    /// Variant -> status, code, public message, field. What is internal goes to the log, not to the client.
    fn public(&self) -> (StatusCode, &'static str, String, Option<String>) {
        match self {
            ApiError::Frame(status, code, message, param) => (*status, code, message.clone(), param.clone()),
            ApiError::TooMany(code, message, _) => (StatusCode::TOO_MANY_REQUESTS, code, message.clone(), None),
            ApiError::Busy(message) => {
                let message = format!("{message}; try again shortly");
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", message, None)
            }
            ApiError::Service(error) | ApiError::Passing(error) => ApiError::of_service(error),
        }
    }

    /// All that is wrong with what was sent, in the order in which it was found.
    fn faults(&self) -> Vec<Fault> {
        match self {
            ApiError::Service(Error::Invalid { field, reason })
            | ApiError::Passing(Error::Invalid { field, reason }) => {
                vec![Fault::of_value(field, reason)]
            }
            ApiError::Service(Error::Faults(faults)) | ApiError::Passing(Error::Faults(faults)) => faults.clone(),
            _ => Vec::new(),
        }
    }

    fn of_service(error: &Error) -> (StatusCode, &'static str, String, Option<String>) {
        use StatusCode as S;
        match error {
            Error::NotFound(kind) => (S::NOT_FOUND, "not_found", format!("no such {kind}"), None),
            Error::Invalid { field, reason } => refused(field, reason),
            // There is one at least.
            Error::Faults(faults) => faults.first().map_or_else(
                || refused("", "is not valid"),
                |fault| refused(&fault.field, &fault.reason),
            ),
            Error::InvalidState { .. } => (S::CONFLICT, "invalid_state", error.to_string(), None),
            Error::AlreadyExists { field } => (S::CONFLICT, "already_exists", error.to_string(), Some((*field).into())),
            Error::InUse(why) => (S::CONFLICT, "in_use", why.clone(), None),
            Error::PlanLimit(why) => (S::FORBIDDEN, "plan_limit", why.clone(), None),
            Error::Forbidden { field, reason } => (
                S::FORBIDDEN,
                "forbidden",
                sentence(field, reason),
                Some((*field).into()),
            ),
            Error::Stale => (
                S::CONFLICT,
                "invalid_state",
                "another request changed it at the same moment: read it again, then retry".into(),
                None,
            ),
            Error::NotConfigured(why) => (S::NOT_IMPLEMENTED, "not_configured", why.clone(), None),
            Error::ConcurrencyFull { .. } => (S::TOO_MANY_REQUESTS, "concurrency_full", error.to_string(), None),
            Error::NumberNotVerified => (
                S::FORBIDDEN,
                "number_not_verified",
                error.to_string(),
                Some("to_number".into()),
            ),
            Error::RecipientOnDnc => (
                S::CONFLICT,
                "recipient_on_dnc",
                error.to_string(),
                Some("to_number".into()),
            ),
            Error::OutsideCallingHours { .. } => (
                S::CONFLICT,
                "outside_calling_hours",
                error.to_string(),
                Some("to_number".into()),
            ),
            Error::DailyCapReached { .. } => (
                S::CONFLICT,
                "daily_cap_reached",
                error.to_string(),
                Some("to_number".into()),
            ),
            Error::KeyLimit { limit, reason, .. } => rate_limited(limit, reason),
            Error::InsufficientCredits => (S::PAYMENT_REQUIRED, "insufficient_credits", error.to_string(), None),
            Error::Unavailable(_) | Error::Fenced | Error::Moved | Error::Collision(_) => (
                S::SERVICE_UNAVAILABLE,
                "unavailable",
                "the service cannot do this now; try again shortly".into(),
                None,
            ),
            Error::Held(why) => (S::SERVICE_UNAVAILABLE, "unavailable", (*why).into(), None),
            Error::Corrupt { .. } | Error::Internal(_) => (
                S::INTERNAL_SERVER_ERROR,
                "internal_error",
                "this is a fault of the service; the operator finds it in the log by the request id".into(),
                None,
            ),
        }
    }
}

/// The first of the faults; all of them are its details.
fn refused(field: &str, reason: &str) -> (StatusCode, &'static str, String, Option<String>) {
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        "validation_failed",
        short(sentence(field, reason), SENTENCE),
        Some(short(field.to_owned(), FIELD)).filter(|field| !field.is_empty()),
    )
}

/// Characters of a field's name, and of a sentence: names come from whoever has sent them, and what is told is kept with its
/// `Idempotency-Key`.
const FIELD: usize = 200;
const SENTENCE: usize = 2_000;

fn short(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn rate_limited(limit: &str, reason: &str) -> (StatusCode, &'static str, String, Option<String>) {
    let (reason, limit) = (reason.to_owned(), Some(limit.to_owned()));
    (StatusCode::TOO_MANY_REQUESTS, "rate_limited", reason, limit)
}

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}
#[derive(Serialize)]
struct Inner<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Detail>,
    request_id: &'a str,
}
/// Of `validation_failed`: one of the things that are wrong.
#[derive(Serialize)]
struct Detail {
    #[serde(skip_serializing_if = "String::is_empty")]
    param: String,
    code: &'static str,
    message: String,
}

impl From<Fault> for Detail {
    fn from(fault: Fault) -> Self {
        Detail {
            message: short(sentence(&fault.field, &fault.reason), SENTENCE),
            code: fault.code.as_str(),
            param: short(fault.field, FIELD),
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Service(error) | ApiError::Passing(error) => error.fmt(f),
            ApiError::Frame(_, code, message, _) | ApiError::TooMany(code, message, _) => {
                write!(f, "{code}: {message}")
            }
            ApiError::Busy(message) => write!(f, "unavailable: {message}"),
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.public().0
    }
    fn error_response(&self) -> HttpResponse {
        let (status, code, message, param) = self.public();
        let request_id = request_id();
        // Anybody can ask for more than there is: only what is our fault is an error.
        match status {
            StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(error = %self, request_id, "a request failed"),
            // What is held is held by will, and told once where it begins.
            _ if matches!(self, ApiError::Service(Error::Held(_))) => {}
            StatusCode::SERVICE_UNAVAILABLE => {
                tracing::warn!(error = %self, request_id, "a request was answered with 503")
            }
            _ => {}
        }
        let mut response = HttpResponse::build(status);
        match self {
            ApiError::TooMany(_, _, seconds) => response.insert_header(("Retry-After", seconds.to_string())),
            ApiError::Busy(_)
            | ApiError::Frame(StatusCode::SERVICE_UNAVAILABLE, ..)
            | ApiError::Service(
                Error::Unavailable(_)
                | Error::Fenced
                | Error::Moved
                | Error::Collision(_)
                | Error::ConcurrencyFull { .. },
            ) => response.insert_header(("Retry-After", "1")),
            ApiError::Service(Error::Held(_)) => response.insert_header(("Retry-After", "30")),
            ApiError::Service(Error::KeyLimit {
                retry_after_seconds, ..
            }) => response.insert_header(("Retry-After", retry_after_seconds.to_string())),
            _ => &mut response,
        };
        if status == StatusCode::UNAUTHORIZED {
            response.insert_header(("WWW-Authenticate", "Bearer"));
        }
        let mut response = response.json(Body {
            error: Inner {
                code,
                message: &message,
                param: param.as_deref(),
                details: self.faults().into_iter().map(Detail::from).collect(),
                request_id: &request_id,
            },
        });
        if matches!(self, ApiError::Passing(_)) {
            response.extensions_mut().insert(NotKept);
        }
        response
    }
}

pub type ApiResult<T> = Result<T, ApiError>;
