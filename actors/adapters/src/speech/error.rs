//! Why there is no sound, or no more of it; and where speech becomes words, why there are none.
use std::time::Duration;
use tokio_tungstenite::tungstenite::{Error, http::header::RETRY_AFTER};

/// Never the provider's own words. Reads after "the speech provider".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeechError {
    #[error("cannot be reached")]
    Absent,
    /// No sound came in time.
    #[error("did not answer in time")]
    Timeout,
    /// It began, and then nothing came.
    #[error("stopped in the middle")]
    Stalled,
    /// It has had enough for now.
    #[error("has reached its limit")]
    Limited { retry_after: Option<Duration> },
    /// A key, a voice, a model, the credit there: the status tells.
    #[error("answered {status}")]
    Refused { status: u16 },
    #[error("did not send what was asked for")]
    Garbage,
    #[error("sent too much")]
    TooLong,
    #[error("broke the connection off")]
    Closed,
}

impl SpeechError {
    /// For timeline and metrics.
    pub fn name(self) -> &'static str {
        match self {
            SpeechError::Absent => "absent",
            SpeechError::Timeout => "timeout",
            SpeechError::Stalled => "stalled",
            SpeechError::Limited { .. } => "limited",
            SpeechError::Refused { .. } => "refused",
            SpeechError::Garbage => "garbage",
            SpeechError::TooLong => "too_long",
            SpeechError::Closed => "closed",
        }
    }

    /// What a status says that is no 2xx. `retry_after`: the header's text, in seconds.
    pub(crate) fn of_status(status: u16, retry_after: Option<&str>) -> Self {
        if status != 429 {
            return SpeechError::Refused { status };
        }
        let seconds = retry_after.and_then(|text| text.trim().parse().ok());
        SpeechError::Limited {
            retry_after: seconds.map(|seconds: u64| Duration::from_secs(seconds.min(3600))),
        }
    }

    /// Why a websocket could not be opened.
    pub(crate) fn of_handshake(error: &Error) -> Self {
        match error {
            Error::Http(refusal) => {
                let wait = refusal.headers().get(RETRY_AFTER);
                let wait = wait.and_then(|value| value.to_str().ok());
                SpeechError::of_status(refusal.status().as_u16(), wait)
            }
            Error::Io(_) | Error::Tls(_) | Error::Url(_) => SpeechError::Absent,
            _ => SpeechError::Garbage,
        }
    }
}
