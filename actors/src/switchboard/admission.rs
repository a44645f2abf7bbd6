//! What comes in, one message after the other: read, and handed to whoever speaks under its Call-ID.
//!
//! A new INVITE begins a call (`inbound`), an answer to an INVITE that nobody remembers is hung up (`orphans`), and the rest is
//! answered here. Nothing here waits: each call is a task of its own.
use super::{
    inbound, orphans,
    phones::Switchboard,
    reply::{out_of_call, send, stamped},
    sockets::{Incoming, What, dropped},
    table::{Arrival, Delivery, Source},
};
use crate::deps::Deps;
use runtime::supervise::panic_text;
use sip::message::{Fields, Message, Method, Request, Response, read_datagram, refuse::too_many_hops};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::sync::mpsc;

/// Looks at one after the other, for as long as anything can come. What makes it fail is dropped: all calls hear by it.
pub async fn run(deps: Deps, switchboard: Switchboard, mut arriving: mpsc::Receiver<Incoming>) {
    while let Some(incoming) = arriving.recv().await {
        let taken = catch_unwind(AssertUnwindSafe(|| take(&deps, &switchboard, incoming)));
        if let Err(panic) = taken {
            dropped("panic");
            tracing::error!(panic = panic_text(&*panic), "taking in a SIP message panicked");
        }
    }
}

fn take(deps: &Deps, switchboard: &Switchboard, Incoming { what, source }: Incoming) {
    let message = match what {
        What::Message(message) => message,
        What::Datagram(bytes) => match read_datagram(&bytes) {
            Ok(message) => message,
            Err(why) => {
                dropped("unreadable");
                return tracing::debug!(%why, source = %source.address, "a datagram of a trunk's peer is not a SIP message");
            }
        },
    };
    match message {
        Message::Request(request) => take_request(deps, switchboard, stamped(request, &source), source),
        Message::Response(response) => take_response(deps, switchboard, response, source),
    }
}

fn take_response(deps: &Deps, switchboard: &Switchboard, response: Response, source: Source) {
    let calls = switchboard.line.calls();
    if calls.knows(response.call_id()) {
        let call_id = response.call_id().to_owned();
        let message = Message::Response(response);
        return deliver(switchboard, &call_id, Arrival::Message { message, source });
    }
    // Somebody has picked up whom no process of ours remembers.
    if response.is_success() && response.cseq().1 == Method::INVITE {
        orphans::turn_away(deps, switchboard, response, source);
    }
}

fn take_request(deps: &Deps, switchboard: &Switchboard, request: Request, source: Source) {
    let call_id = request.call_id().to_owned();
    if switchboard.line.calls().knows(&call_id) {
        let message = Message::Request(request);
        return deliver(switchboard, &call_id, Arrival::Message { message, source });
    }
    let tag = tag_of(switchboard, &request);
    if let Some(refusal) = too_many_hops(&request, &tag) {
        return send(switchboard, &request, &source, &refusal);
    }
    if request.method == Method::INVITE && request.to_tag().is_none() {
        return inbound::arrived(deps, switchboard, request, source, tag);
    }
    if let Some(reply) = out_of_call(&request, &tag, deps.is_draining()) {
        send(switchboard, &request, &source, &reply);
    }
}

fn deliver(switchboard: &Switchboard, call_id: &str, arrival: Arrival) {
    match switchboard.line.calls().deliver(call_id, arrival) {
        // It ends at this moment: whoever sent it repeats it.
        Delivery::Taken | Delivery::Nobody => {}
        Delivery::Full => dropped("owner_full"),
    }
}

/// Of a reply without a dialog: the same to each repeat of a request.
fn tag_of(switchboard: &Switchboard, request: &Request) -> String {
    let call = uuid::Uuid::from_u128(0);
    let branch = request.top_via_branch().unwrap_or_default();
    let derived = switchboard
        .identity
        .branch(call, 0, &format!("{} {branch}", request.call_id()), 0);
    derived.chars().skip("z9hG4bK".len()).take(16).collect()
}
