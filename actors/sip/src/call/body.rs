//! Bodies, and the headers that tell what we can do.
use bytes::Bytes;

use super::{ALLOW, SUPPORTED};
use crate::message::{
    Fields, Headers, Name, Request, Response,
    address::{param, unquoted},
};

/// Parts of a body that are looked at.
const MOST_PARTS: usize = 16;
/// Characters of what stands between them. RFC 2046 §5.1.1.
const MOST_BOUNDARY: usize = 70;

/// The session description of a message, if it has one: its body, or the first part that is one. Carriers send it beside ISUP
/// (RFC 3204) or a location (RFC 6442).
pub(super) fn description(headers: &impl Fields, body: &Bytes) -> Option<Bytes> {
    let kind = headers.header_text(Name::CONTENT_TYPE).unwrap_or_default();
    // Of one that does not say what it is, how it begins tells.
    let is_whole = is_description(&kind) || kind.trim().is_empty() && body.starts_with(b"v=");
    let found = match is_whole {
        true => Some(body.clone()),
        false => parts(&kind, body).into_iter().find_map(|part| description_of(&part)),
    };
    found.filter(|sdp| !sdp.is_empty())
}

/// 415 to an offer or an INVITE whose body nobody here reads; one that need not be understood is passed over. Source: RFC 3261,
/// section 8.2.3; RFC 3204, section 5.
pub(super) fn unreadable(request: &Request, tag: &str) -> Option<Response> {
    let disposition = request.header_text("Content-Disposition").unwrap_or_default();
    let handling = param(&disposition, "handling").unwrap_or_default();
    let is_optional = handling.eq_ignore_ascii_case("optional");
    if request.body.is_empty() || is_optional || description(request, &request.body).is_some() {
        return None;
    }
    let mut response = request.response(415, "Unsupported Media Type", Some(tag));
    response.headers.insert(Name::ACCEPT, "application/sdp");
    Some(response)
}

fn is_description(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/sdp")
}

/// Each with its headers; none, if the body is in one piece.
fn parts(kind: &str, body: &Bytes) -> Vec<Bytes> {
    let (name, params) = kind.split_once(';').unwrap_or((kind, ""));
    let is_mixed = name.trim().to_ascii_lowercase().starts_with("multipart/");
    let boundary = param(params, "boundary").map(unquoted).unwrap_or_default();
    if !is_mixed || boundary.is_empty() || boundary.len() > MOST_BOUNDARY {
        return Vec::new();
    }
    let mark = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut rest = after(body, mark.as_bytes());
    while let Some(from) = rest.filter(|_| parts.len() < MOST_PARTS) {
        let Some(end) = find(&from, mark.as_bytes()) else { break };
        parts.push(from.slice(..end));
        rest = Some(from.slice(end + mark.len()..));
    }
    parts
}

/// The line end before the next part belongs to what stands between them.
fn description_of(part: &Bytes) -> Option<Bytes> {
    const END: &[u8] = b"\r\n\r\n";
    let head = find(part, END)?;
    let lines = String::from_utf8_lossy(&part[..head]).into_owned();
    let is_it = lines
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(name, kind)| {
            let name = name.trim();
            (name.eq_ignore_ascii_case("Content-Type") || name.eq_ignore_ascii_case("c")) && is_description(kind)
        });
    let content = part.slice(head + END.len()..);
    let length = content.strip_suffix(b"\r\n").unwrap_or(&content).len();
    is_it.then(|| content.slice(..length))
}

fn after(bytes: &Bytes, mark: &[u8]) -> Option<Bytes> {
    find(bytes, mark).map(|at| bytes.slice(at + mark.len()..))
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// What every 2xx and every request that sets a session up says of us.
pub(super) fn describe(headers: &mut Headers) {
    headers.insert(Name::ALLOW, ALLOW);
    headers.insert(Name::SUPPORTED, SUPPORTED);
}

pub(super) fn carry(headers: &mut Headers, body: &mut Bytes, sdp: Bytes) {
    headers.insert(Name::CONTENT_TYPE, "application/sdp");
    *body = sdp;
}
