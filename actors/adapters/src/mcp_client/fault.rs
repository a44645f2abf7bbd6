//! Why a tool was not found or its call came to nothing, in words for whoever configures it and for the model that called it.
use super::rpc::{Refusal, VERSIONS};
use crate::provider_http::loggable;
use http::HeaderMap;
use rules::delivery::failure::Failure;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// No whole answer came.
    Failed(Failure),
    /// An HTTP status other than 2xx.
    Status(u16),
    /// The server speaks no revision of the protocol that is spoken here.
    Version,
    /// The server does not keep to the protocol; in words that follow "its answer".
    Protocol(&'static str),
    /// More bytes than these.
    TooLarge(usize),
    /// A JSON-RPC error.
    Refused { code: i64, message: String },
    /// The tool itself says that it failed.
    Tool(String),
}

impl Fault {
    pub(super) fn refused(refusal: Refusal, headers: &HeaderMap) -> Self {
        Fault::Refused {
            code: refusal.code,
            message: shown(&refusal.message, headers),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Failed(failure) => f.write_str(failure.code()),
            Fault::Status(status) => write!(f, "the MCP server answered {status}"),
            Fault::Version => {
                let known = VERSIONS.join(", ");
                write!(
                    f,
                    "the MCP server speaks none of these revisions of the protocol: {known}"
                )
            }
            Fault::Protocol(why) => write!(f, "the MCP server does not keep to the protocol: its answer {why}"),
            Fault::TooLarge(limit) => write!(f, "the answer is larger than {} KiB", limit / 1024),
            Fault::Refused { code, message } => write!(f, "the MCP server refused: {message} ({code})"),
            Fault::Tool(message) => write!(f, "the tool failed: {message}"),
        }
    }
}

/// Letters of a server's own words that are looked at: of those that a header's value stands in, what is longer is never shown.
const MAX_READ: usize = 2_000;
/// A shorter word of a header is no secret.
const MIN_SECRET: usize = 8;

/// A server's words for a person's eyes: one line, short, and without what we sent it in headers, should it repeat that.
pub(super) fn shown(words: &str, headers: &HeaderMap) -> String {
    let mut words: String = words.chars().take(MAX_READ).collect();
    let values = headers.values().filter_map(|value| value.to_str().ok());
    // `Bearer` and a token are two.
    for secret in values
        .flat_map(str::split_whitespace)
        .filter(|word| word.len() >= MIN_SECRET)
    {
        if words.contains(secret) {
            words = words.replace(secret, "[secret]");
        }
    }
    loggable(&words, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_a_server_says_is_short_and_repeats_no_secret() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer sk-0123456789"));
        headers.insert("x-team", HeaderValue::from_static("blue"));
        for (said, expected) in [
            ("no such\n us\u{7}er", "no such user"),
            ("bad token sk-0123456789 of blue", "bad token [secret] of blue"),
            ("Bearer sk-0123456789", "Bearer [secret]"),
        ] {
            assert_eq!(shown(said, &headers), expected);
        }
        assert_eq!(shown(&"ü".repeat(100_000), &headers).chars().count(), 300);
    }
}
