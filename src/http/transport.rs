//! Does a sign-in hold? Outside `--dev` the cookie is `__Host-…; Secure`: a browser that came over plain http drops it without
//! a word, and nobody is signed in. So that is refused before a password is looked at, or a one-time link spent.
use super::{
    error::{ApiError, ApiResult},
    extract::header_text,
};
use crate::state::State;
use actix_web::HttpRequest;
use std::net::IpAddr;

/// Refuses a sign-in whose cookie the browser would drop.
pub fn keeps_cookies(state: &State, request: &HttpRequest) -> ApiResult<()> {
    if !state.settings.secure_cookies() {
        return Ok(());
    }
    let (origin, host) = (header_text(request, "origin"), header_text(request, "host"));
    let forwarded_proto = header_text(request, "x-forwarded-proto").filter(|_| state.settings.trusted_proxy);
    let base_url = state.settings.public_url();
    let came = Came {
        origin: origin.as_deref(),
        forwarded_proto: forwarded_proto.as_deref(),
        host: host.as_deref(),
        base_url: &base_url,
    };
    if came.safely() {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "this page came over plain http, where browsers drop the session's cookie: put a TLS proxy in front and set \
         CALLBOARD_BASE_URL to its https:// address, or open the page as http://localhost on the server's own machine",
    ))
}

/// What tells how a request came.
struct Came<'a> {
    /// What the browser itself says of its page; browsers send it with every POST.
    origin: Option<&'a str>,
    /// What the proxy says, if it is trusted.
    forwarded_proto: Option<&'a str>,
    host: Option<&'a str>,
    base_url: &'a str,
}

impl Came<'_> {
    /// Over TLS, or from the machine itself, which browsers take for as good.
    fn safely(&self) -> bool {
        if let Some((scheme, authority)) = self.origin.and_then(|origin| origin.split_once("://")) {
            return scheme == "https" || is_loopback(authority);
        }
        let is_local = self.host.is_some_and(is_loopback);
        if let Some(proto) = self.forwarded_proto {
            // The client's own end of a chain of proxies comes first.
            let first = proto.split(',').next().unwrap_or_default().trim();
            return first.eq_ignore_ascii_case("https") || is_local;
        }
        self.base_url.starts_with("https://") || is_local
    }
}

/// Is the host of `host[:port]` this machine, by a name that browsers trust?
fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secure_cookie_needs_tls_or_this_machine() {
        const PLAIN: &str = "http://127.0.0.1:8080";
        const TLS: &str = "https://callboard.example.com";
        // Origin, X-Forwarded-Proto, Host, base_url: does the cookie hold?
        for (origin, forwarded_proto, host, base_url, expected) in [
            (
                Some("http://192.0.2.7:8080"),
                None,
                Some("192.0.2.7:8080"),
                PLAIN,
                false,
            ),
            (Some("http://callboard.lan"), None, Some("callboard.lan"), PLAIN, false),
            // The proxy is there, and this page went past it.
            (Some("http://192.0.2.7:8080"), None, Some("192.0.2.7:8080"), TLS, false),
            // The browser knows better than whoever forwards.
            (Some("http://192.0.2.7"), Some("https"), Some("192.0.2.7"), TLS, false),
            (
                Some("https://callboard.example.com"),
                Some("http"),
                Some("x"),
                PLAIN,
                true,
            ),
            (
                Some("https://callboard.example.com"),
                None,
                Some("callboard.example.com"),
                TLS,
                true,
            ),
            (Some("http://localhost:8080"), None, Some("localhost:8080"), PLAIN, true),
            (Some("http://127.0.0.1:8080"), None, Some("127.0.0.1:8080"), PLAIN, true),
            (Some("http://[::1]:8080"), None, Some("[::1]:8080"), PLAIN, true),
            (
                Some("http://localhost.example.com"),
                None,
                Some("localhost.example.com"),
                PLAIN,
                false,
            ),
            (
                Some("http://127.0.0.1.example.com"),
                None,
                Some("127.0.0.1.example.com"),
                PLAIN,
                false,
            ),
            // No browser, or one that hides its origin.
            (None, None, Some("192.0.2.7:8080"), PLAIN, false),
            (Some("null"), None, Some("192.0.2.7:8080"), PLAIN, false),
            (None, None, Some("localhost:8080"), PLAIN, true),
            (None, None, None, PLAIN, false),
            (None, None, Some("callboard.example.com"), TLS, true),
            (None, Some("http"), Some("callboard.example.com"), TLS, false),
            (None, Some("https, http"), Some("inner:8080"), PLAIN, true),
        ] {
            let came = Came {
                origin,
                forwarded_proto,
                host,
                base_url,
            };
            assert_eq!(
                came.safely(),
                expected,
                "{origin:?} {forwarded_proto:?} {host:?} {base_url}"
            );
        }
    }
}
