//! Replies to requests that are refused before anybody looks at them.
use super::{Fields, Name, Request, Response};

/// 483 to a request that may not go on. We are nobody's proxy, so that 0 is fine for what ends here; only a loop brings it to a
/// server that would have sent it on. Source: RFC 3261, section 8.1.1.6 and 16.3.
pub fn too_many_hops(request: &Request, tag: &str) -> Option<Response> {
    let hops = request.header_text(Name::MAX_FORWARDS)?;
    let is_zero = !hops.is_empty() && hops.bytes().all(|byte| byte == b'0');
    is_zero.then(|| request.response(483, "Too Many Hops", Some(tag)))
}

/// 420 to a request that requires what is not in `known`. ACK and CANCEL are never refused so. Source: RFC 3261, section 8.2.2.3.
pub fn bad_extension(request: &Request, known: &[&str], tag: &str) -> Option<Response> {
    if matches!(request.method, super::Method::ACK | super::Method::CANCEL) {
        return None;
    }
    let unknown: Vec<String> = request
        .list(Name::REQUIRE)
        .into_iter()
        .filter(|option| !known.iter().any(|known| known.eq_ignore_ascii_case(option)))
        .collect();
    if unknown.is_empty() {
        return None;
    }
    let mut response = request.response(420, "Bad Extension", Some(tag));
    response.headers.insert(Name::UNSUPPORTED, unknown.join(", "));
    Some(response)
}

/// 482 to a request that came here by another way already. Source: RFC 3261, section 8.2.2.2.
pub fn merged(request: &Request, tag: &str) -> Response {
    request.response(482, "Loop Detected", Some(tag))
}
