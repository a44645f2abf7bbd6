//! What is known of a request that was made outside: how long its parts took, and why nothing came back.

/// Microseconds. A stage that did not happen has none: on a connection that was open already there is no look-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    pub dns_us: Option<u64>,
    pub connect_us: Option<u64>,
    pub tls_us: Option<u64>,
    /// From the start to the answer's head.
    pub first_byte_us: Option<u64>,
    pub total_us: u64,
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    BlockedTarget(String),
    Timeout,
    Dns(String),
    Connect(String),
    Tls(String),
    /// Reset, cut off, or not HTTP.
    BadAnswer(String),
}

impl Failure {
    /// A word for the log and the API.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::BlockedTarget(_) => "blocked_target",
            Failure::Timeout => "timeout",
            Failure::Dns(_) => "dns_failed",
            Failure::Connect(_) => "connect_failed",
            Failure::Tls(_) => "tls_failed",
            Failure::BadAnswer(_) => "bad_answer",
        }
    }
}
