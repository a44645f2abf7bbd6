//! A carrier's final answer, as the rules take it.
use rules::session::sip_answer::{SipAnswer, SipReason};
use sip::message::{Reason, WhyRefused};

/// Of code, phrase and cause, and of what else it says of why.
pub fn sip_answer((code, reason, q850): (u16, String, Option<u8>), why: WhyRefused) -> SipAnswer {
    let WhyRefused { reasons, jcard_url } = why;
    SipAnswer {
        code,
        reason,
        q850,
        reasons: reasons.into_iter().map(sip_reason).collect(),
        jcard_url,
    }
}

fn sip_reason(reason: Reason) -> SipReason {
    let Reason {
        protocol,
        cause,
        location,
        text,
    } = reason;
    SipReason {
        protocol,
        cause,
        location,
        text,
    }
}
