//! The phone's side of a call that a `BytePeer` has picked up: its own requests inside the call, and their answers.
use super::{
    PATIENCE,
    byte_peer::{BytePeer, Heard},
    pause,
};
use std::time::Instant;

pub struct Dialog<'a> {
    peer: &'a BytePeer,
    /// The service's, answered as `byte_peer::response` does.
    invite: Heard,
}

impl<'a> Dialog<'a> {
    pub fn of(peer: &'a BytePeer, invite: Heard) -> Self {
        Dialog { peer, invite }
    }

    /// Sends it once, and waits for its final answer. `more`: further lines, each with its end.
    pub async fn asks(&self, method: &str, number: u32, more: &str, body: &str) -> Heard {
        self.write((method, number), &format!("{method}-{number}"), more, body);
        let cseq = format!("{number} {method}");
        let is_final = |heard: &Heard| heard.text.starts_with("SIP/2.0 ") && !heard.what().starts_with('1');
        let began = Instant::now();
        loop {
            let mut all = self.peer.all().into_iter();
            if let Some(answer) = all.find(|heard| is_final(heard) && heard.header("CSeq") == Some(&*cseq)) {
                return answer;
            }
            assert!(began.elapsed() < PATIENCE, "{cseq} was not answered");
            pause(5).await;
        }
    }

    /// The ACK of an INVITE. That of a refusal belongs to the transaction that was refused. (RFC 3261, section 17.1.1.3.)
    pub fn acknowledges(&self, answer: &Heard, body: &str) {
        let cseq = answer.header("CSeq").unwrap_or_default();
        let number: u32 = cseq.split(' ').next().and_then(|number| number.parse().ok()).unwrap();
        let of = if answer.what() == "200" { "ACK" } else { "INVITE" };
        self.write(("ACK", number), &format!("{of}-{number}"), "", body);
    }

    fn write(&self, (method, number): (&str, u32), branch: &str, more: &str, body: &str) {
        let named = |name: &str| self.invite.header(name).unwrap_or_default();
        let (at, contact) = (self.peer.address(), named("Contact"));
        let target = contact.split(['<', '>']).nth(1).unwrap_or(contact);
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let text = format!(
            "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bK-{branch};rport\r\nMax-Forwards: 70\r\n\
             From: {};tag=bytes\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {number} {method}\r\nContact: <sip:phone@{at}>\r\n\
             {more}{kind}Content-Length: {}\r\n\r\n{body}",
            named("To"),
            named("From"),
            named("Call-ID"),
            body.len(),
        );
        self.peer.send(text.as_bytes(), self.invite.from);
    }
}
