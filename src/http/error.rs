//! The one table from errors to what the client sees, and the error body of CONTRACT §1.
mod code;

pub use code::Code;

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
    /// Code, message, the field.
    Frame(Code, String, Option<String>),
    /// 429 with the seconds to wait.
    TooMany(Code, String, u64),
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
        ApiError::Frame(Code::Unauthenticated, message.into(), None)
    }
    pub fn forbidden(message: impl Into<String>) -> Self {
        ApiError::Frame(Code::Forbidden, message.into(), None)
    }
    /// A password in the body is not the user's. Not 401: the session is a good one.
    pub fn wrong_password(param: &str) -> Self {
        let message = "the password is wrong".into();
        ApiError::Frame(Code::Forbidden, message, Some(param.into()))
    }
    /// The session is a good one, but its password was given too long ago for this. `param` tells it from a role that does
    /// not suffice.
    pub fn password_wanted() -> Self {
        let message = "give your password once more (POST /v1/_internal/reauthenticate), then repeat this request";
        ApiError::Frame(Code::Forbidden, message.into(), Some("password".into()))
    }
    pub fn invalid_json(message: impl Into<String>) -> Self {
        ApiError::Frame(Code::InvalidJson, message.into(), None)
    }
    pub fn validation(param: impl Into<String>, message: impl Into<String>) -> Self {
        ApiError::Service(Error::invalid(param, message))
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        ApiError::Frame(Code::NotFound, message.into(), None)
    }
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes; send less at once");
        ApiError::Frame(Code::PayloadTooLarge, message, None)
    }
    pub fn body_too_slow() -> Self {
        let message = "the body did not arrive in time; send it faster, or less at once".into();
        ApiError::Frame(Code::RequestTimeout, message, None)
    }
    /// What no program means to send.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        ApiError::Frame(Code::InvalidRequest, message.into(), None)
    }
    pub fn unsupported_media_type(wanted: &str) -> Self {
        let message = format!("send it with `Content-Type: {wanted}`");
        ApiError::Frame(Code::UnsupportedMediaType, message, None)
    }

    /// Variant -> code, public message, field. What is internal goes to the log, not to the client.
    fn public(&self) -> (Code, String, Option<String>) {
        match self {
            ApiError::Frame(code, message, param) => (*code, message.clone(), param.clone()),
            ApiError::TooMany(code, message, _) => (*code, message.clone(), None),
            ApiError::Busy(message) => {
                let message = format!("{message}; try again shortly");
                (Code::Unavailable, message, None)
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

    fn of_service(error: &Error) -> (Code, String, Option<String>) {
        match error {
            Error::NotFound(kind) => (Code::NotFound, format!("no such {kind}"), None),
            Error::Invalid { field, reason } => refused(field, reason),
            // There is one at least.
            Error::Faults(faults) => faults.first().map_or_else(
                || refused("", "is not valid"),
                |fault| refused(&fault.field, &fault.reason),
            ),
            Error::InvalidState { .. } => (Code::InvalidState, error.to_string(), None),
            Error::AlreadyExists { field } => (Code::AlreadyExists, error.to_string(), Some((*field).into())),
            Error::InUse(why) => (Code::InUse, why.clone(), None),
            Error::PlanLimit(why) => (Code::PlanLimit, why.clone(), None),
            Error::Forbidden { field, reason } => (Code::Forbidden, sentence(field, reason), Some((*field).into())),
            Error::Stale => (
                Code::InvalidState,
                "another request changed it at the same moment: read it again, then retry".into(),
                None,
            ),
            Error::NotConfigured(why) => (Code::NotConfigured, why.clone(), None),
            Error::ConcurrencyFull { .. } => (Code::ConcurrencyFull, error.to_string(), None),
            Error::NumberNotVerified => (Code::NumberNotVerified, error.to_string(), Some("to_number".into())),
            Error::RecipientOnDnc => (Code::RecipientOnDnc, error.to_string(), Some("to_number".into())),
            Error::ComplianceBlocked { rule, .. } => (Code::ComplianceBlocked, error.to_string(), Some(rule.clone())),
            Error::OutsideCallingHours { .. } => {
                (Code::OutsideCallingHours, error.to_string(), Some("to_number".into()))
            }
            Error::DailyCapReached { .. } => (Code::DailyCapReached, error.to_string(), Some("to_number".into())),
            Error::KeyLimit { limit, reason, .. } => rate_limited(limit, reason),
            Error::InsufficientCredits => (Code::InsufficientCredits, error.to_string(), None),
            Error::Unavailable(_) | Error::Fenced | Error::Moved | Error::Collision(_) => (
                Code::Unavailable,
                "the service cannot do this now; try again shortly".into(),
                None,
            ),
            Error::Held(why) => (Code::Unavailable, (*why).into(), None),
            Error::Corrupt { .. } | Error::Internal(_) => (
                Code::InternalError,
                "this is a fault of the service; the operator finds it in the log by the request id".into(),
                None,
            ),
        }
    }
}

/// The first of the faults; all of them are its details.
fn refused(field: &str, reason: &str) -> (Code, String, Option<String>) {
    (
        Code::ValidationFailed,
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

fn rate_limited(limit: &str, reason: &str) -> (Code, String, Option<String>) {
    let (reason, limit) = (reason.to_owned(), Some(limit.to_owned()));
    (Code::RateLimited, reason, limit)
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
            ApiError::Frame(code, message, _) | ApiError::TooMany(code, message, _) => {
                write!(f, "{}: {message}", code.as_str())
            }
            ApiError::Busy(message) => write!(f, "unavailable: {message}"),
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.public().0.status()
    }
    fn error_response(&self) -> HttpResponse {
        let (code, message, param) = self.public();
        let status = code.status();
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
            | ApiError::Frame(Code::Unavailable, ..)
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
                code: code.as_str(),
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
