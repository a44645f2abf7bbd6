//! What goes into a leg and what comes out.
use std::{fmt, time::Duration};

use bytes::Bytes;

use crate::{
    dialog::Sender,
    leg::{CallIdentity, Hop},
    message::{Name, Request, Response, SipUri, WhyRefused},
};

/// Our side of a leg.
#[derive(Clone)]
pub struct Local {
    pub identity: CallIdentity,
    pub sender: Sender,
    /// Seconds of the session timer that we ask for; `None`: none of our own. RFC 4028.
    pub session_expires: Option<u32>,
}

/// A call that is to be placed.
#[derive(Clone)]
pub struct Dial {
    pub local: Local,
    /// What stands behind the `@` of the Call-ID.
    pub host: String,
    /// The Request-URI, and To.
    pub to: SipUri,
    /// `"Name" <sip:…>`, without a tag.
    pub from: String,
    /// Pre-loaded routes, each as `<sip:…;lr>`.
    pub route: Vec<String>,
    /// P-Asserted-Identity, Diversion, credentials that are known already.
    pub headers: Vec<(Name, String)>,
    /// Our offer.
    pub sdp: Bytes,
}

/// What is printed of it is its name: descriptions hold keys, URIs hold numbers.
#[derive(Clone)]
pub enum Command {
    /// 180.
    Ring,
    /// 183 with an answer to their offer.
    EarlyMedia { sdp: Bytes },
    /// 200, with an answer to their offer; if they made none, with our offer.
    Accept { sdp: Bytes },
    Refuse {
        code: u16,
        reason: String,
        retry_after: Option<Duration>,
    },
    /// No more of a call that nobody has picked up yet.
    Cancel,
    /// Ends the leg, whatever its state. The cause is of Q.850.
    HangUp { q850: u8 },
    /// A new offer inside the talk: to hold, to resume, to move. A later one replaces one that still waits.
    Offer { sdp: Bytes },
    /// To `Happening::Offer`.
    AnswerOffer { sdp: Bytes },
    /// To `Happening::Offer`: 488, and the session stays as it was.
    RefuseOffer,
    /// A key, as a body of `application/dtmf-relay`.
    Info { content_type: String, body: Bytes },
    /// Hands the callee over to somebody else.
    Refer { to: SipUri },
    /// The request of `Happening::Challenged`, with its credentials.
    Authorized(Box<Request>),
    /// To `Happening::Challenged`: there are no credentials, or they were refused. Number and method are its request's.
    Unauthorized(Box<Request>),
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "Ring",
            Self::EarlyMedia { .. } => "EarlyMedia",
            Self::Accept { .. } => "Accept",
            Self::Refuse { .. } => "Refuse",
            Self::Cancel => "Cancel",
            Self::HangUp { .. } => "HangUp",
            Self::Offer { .. } => "Offer",
            Self::AnswerOffer { .. } => "AnswerOffer",
            Self::RefuseOffer => "RefuseOffer",
            Self::Info { .. } => "Info",
            Self::Refer { .. } => "Refer",
            Self::Authorized(_) => "Authorized",
            Self::Unauthorized(_) => "Unauthorized",
        })
    }
}

/// Without `Debug`, as `Happening`: what is sent and told holds numbers, keys and credentials.
#[derive(Clone)]
pub enum Output {
    Send { bytes: Bytes, hop: Hop },
    Happening(Happening),
}

#[derive(Clone)]
pub enum Happening {
    /// 100.
    Trying,
    /// 101 to 199: it may ring.
    Rang {
        code: u16,
    },
    /// Sound before the pick-up.
    Early {
        sdp: Bytes,
    },
    /// 200. If it brought no description, that of the early sound.
    PickedUp {
        sdp: Bytes,
    },
    /// Nobody has picked up. `rang`: one of 101 to 199 came before. After our Cancel: 487, whoever said it.
    Refused {
        code: u16,
        reason: String,
        q850: Option<u8>,
        retry_after: Option<Duration>,
        rang: bool,
        why: WhyRefused,
    },
    /// 401 or 407, or a 422 to a request that had credentials, whose next one needs them anew: `Command::Authorized` gives the request
    /// back with them, `Command::Unauthorized` without.
    Challenged {
        request: Box<Request>,
        response: Box<Response>,
    },
    /// No answer of any kind in 64·T1.
    NoAnswer,
    TransportFailed,
    /// The caller gave up before we had picked up.
    Cancelled {
        q850: Option<u8>,
        reason: Option<String>,
    },
    /// A new offer of the peer; without description it wants ours. Answered within 10 s, or it is refused.
    Offer {
        sdp: Option<Bytes>,
    },
    /// To an offer of ours.
    OfferAnswered {
        sdp: Bytes,
    },
    /// The session stays as it was.
    OfferRefused {
        code: u16,
    },
    Info {
        content_type: String,
        body: Bytes,
    },
    /// The caller knows that we have picked up.
    Acked,
    /// It never said so; the leg ends.
    NeverAcked,
    /// How our REFER fares: 202 is not told, 100 to 199 is under way, 200 to 299 done, else failed.
    ReferProgress {
        code: u16,
    },
    RemoteHungUp {
        q850: Option<u8>,
        reason: Option<String>,
    },
    /// Nobody refreshed the session in time; the leg ends.
    SessionExpired,
    /// Nothing of the leg is left. Always the last.
    Gone,
}

/// What the next process needs to hang up. RFC 3261 §12.
#[derive(Clone, PartialEq, Eq)]
pub struct DialogRow {
    pub call_id: String,
    pub local_tag: String,
    pub remote_tag: String,
    pub remote_target: String,
    /// In the order in which a request of ours passes them.
    pub route_set: Vec<String>,
    /// The number of our last request.
    pub cseq: u32,
}
