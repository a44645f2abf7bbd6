//! Requests that belong to another one's hop: they go where it went, under its branch.
use crate::message::{Fields, Headers, Method, Name, Request, Response, address::split_list, copy};
use bytes::Bytes;

/// The ACK to an INVITE's answer of 300 or more. Source: RFC 3261, sections 17.1.1.3 and 22.1.
pub fn ack(invite: &Request, response: &Response) -> Request {
    let mut request = follow(invite, Method::ACK);
    copy(&response.headers, &mut request.headers, &Name::TO);
    for name in [Name::AUTHORIZATION, Name::PROXY_AUTHORIZATION] {
        copy(&invite.headers, &mut request.headers, &name);
    }
    request
}

/// The CANCEL of an INVITE that has not been answered. Source: RFC 3261, section 9.1.
pub fn cancel(invite: &Request) -> Request {
    let mut request = follow(invite, Method::CANCEL);
    copy(&invite.headers, &mut request.headers, &Name::TO);
    request
}

/// Everything but To.
fn follow(invite: &Request, method: Method) -> Request {
    let mut headers = Headers::new();
    // Only the top one, which is ours.
    if let Some(via) = invite.header_text(Name::VIA)
        && let Some(top) = split_list(&via).first()
    {
        headers.insert(Name::VIA, *top);
    }
    headers.insert(Name::MAX_FORWARDS, "70");
    for name in [Name::FROM, Name::CALL_ID, Name::ROUTE] {
        copy(&invite.headers, &mut headers, &name);
    }
    headers.insert(Name::CSEQ, format!("{} {method}", invite.cseq().0));
    Request {
        method,
        uri: invite.uri.clone(),
        headers,
        body: Bytes::new(),
    }
}
