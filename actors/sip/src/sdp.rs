//! Session descriptions of one phone call: one audio stream, offered or answered (RFC 8866, RFC 3264).
//!
//! Lines are read one by one, each by itself: a codec, a stream or an attribute that we do not know must not cost the
//! call. `ezk-sdp-types` refuses a whole description for one such line (`m=image … t38`), and its reader of `a=crypto`
//! overflows on `|2^32`; so nothing of it is used here.
mod codec;
mod crypto;
mod read;
mod write;

use std::net::SocketAddr;

use bytes::Bytes;

pub use codec::Codec;
pub use crypto::{Crypto, Key, SrtpKeys, Suite};
use read::{Description, Stream};

/// Who sends. Of a [`Media`]: seen from us, `SendOnly` means that we send and hear nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    SendRecv,
    SendOnly,
    RecvOnly,
    Inactive,
}

impl Direction {
    fn of(sends: bool, receives: bool) -> Self {
        match (sends, receives) {
            (true, true) => Self::SendRecv,
            (true, false) => Self::SendOnly,
            (false, true) => Self::RecvOnly,
            (false, false) => Self::Inactive,
        }
    }

    pub fn sends(self) -> bool {
        matches!(self, Self::SendRecv | Self::SendOnly)
    }

    pub fn receives(self) -> bool {
        matches!(self, Self::SendRecv | Self::RecvOnly)
    }

    /// The same as the other side sees it.
    #[must_use]
    pub fn flipped(self) -> Self {
        Self::of(self.receives(), self.sends())
    }

    /// What is left if both must agree.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of(self.sends() && other.sends(), self.receives() && other.receives())
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SendRecv => "sendrecv",
            Self::SendOnly => "sendonly",
            Self::RecvOnly => "recvonly",
            Self::Inactive => "inactive",
        }
    }
}

/// What we can do, and where we listen: all that an offer or an answer of ours says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Where we receive RTP, as the peer can reach it.
    pub address: SocketAddr,
    /// In order of preference.
    pub codecs: Vec<Codec>,
    pub telephone_event: bool,
    /// What we send if the peer asks for nothing else, in milliseconds.
    pub ptime_ms: u32,
    /// `SendRecv`; `SendOnly` or `Inactive` while we hold the peer.
    pub direction: Direction,
    pub rtcp_mux: bool,
    /// Our keys, one per suite, in order of preference (RFC 4568); empty: SRTP is neither offered nor taken.
    pub crypto: Vec<Crypto>,
    /// Offer SRTP only, and take nothing else. Without it an offer of SRTP is taken, but none is made.
    pub crypto_required: bool,
    /// `o=`: constant for the call.
    pub session_id: u64,
    /// `o=`: rises by one with each description that differs from the one before (RFC 3264 §8).
    pub version: u64,
}

/// The audio stream that both sides agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Where the peer receives RTP.
    pub address: SocketAddr,
    pub codec: Codec,
    /// The peer's number for the codec: what we send, and expect.
    pub payload_type: u8,
    /// The peer's number for RFC 4733 events; `None`: not agreed.
    pub telephone_event: Option<u8>,
    /// How long the packets are that the peer wants, 10 to 60 ms.
    pub ptime_ms: u32,
    /// Seen from us.
    pub direction: Direction,
    pub crypto: Option<SrtpKeys>,
    pub rtcp_mux: bool,
}

impl Media {
    /// The peer holds us: it wants to hear nothing.
    pub fn is_held(&self) -> bool {
        !self.direction.sends()
    }
}

/// Why two descriptions do not make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the session description cannot be read: {0}")]
    Unreadable(&'static str),
    #[error("the session description has no audio stream")]
    NoAudio,
    #[error("no common codec")]
    NoCommonCodec,
    #[error("one side requires SRTP and the other does not take it")]
    Encryption,
}

/// The offer that says what we can do.
pub fn offer(ours: &Capabilities) -> Bytes {
    write::offer(ours)
}

/// Reads the answer to an offer of ours. RFC 3264 §7.
pub fn negotiate(ours: &Capabilities, answer: &[u8]) -> Result<Media, Mismatch> {
    let theirs = Description::read(answer)?;
    // We offer one stream: it is answered by the first, whatever else is said.
    let stream = theirs.streams.first().ok_or(Mismatch::NoAudio)?;
    agree(ours, &theirs, stream, Role::Offerer)
}

/// Answers the offer of a peer: the first audio stream that suits is taken, all others are refused (port 0), in their
/// order. RFC 3264 §6.
pub fn answer(offer: &[u8], ours: &Capabilities) -> Result<(Bytes, Media), Mismatch> {
    let theirs = Description::read(offer)?;
    let mut failed = Mismatch::NoAudio;
    for (at, stream) in theirs.streams.iter().enumerate() {
        match agree(ours, &theirs, stream, Role::Answerer) {
            Ok(media) => {
                let tag = stream
                    .crypto
                    .iter()
                    .find(|line| of_suite(line, &media))
                    .map(|line| line.tag);
                return Ok((write::answer(ours, &theirs, at, &media, tag), media));
            }
            // The reason of an audio stream tells more than that there are others.
            Err(Mismatch::NoAudio) => {}
            Err(reason) => failed = reason,
        }
    }
    Err(failed)
}

fn of_suite(line: &Crypto, media: &Media) -> bool {
    media.crypto.as_ref().is_some_and(|keys| keys.suite == line.suite)
}

/// Both describe the same. Such an offer only refreshes the session (RFC 3264 §8, RFC 4028 §7.4). The `o=` line alone does not tell:
/// some phones hold without a new version.
pub fn is_unchanged(before: &[u8], after: &[u8]) -> bool {
    before == after && read::has_origin(after)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Offerer,
    Answerer,
}

fn agree(ours: &Capabilities, theirs: &Description, stream: &Stream, role: Role) -> Result<Media, Mismatch> {
    if !stream.is_audio || stream.port == 0 {
        return Err(Mismatch::NoAudio);
    }
    let crypto = agree_on_crypto(ours, stream, role)?;
    let ip = stream
        .address
        .or(theirs.address)
        .ok_or(Mismatch::Unreadable("no address of the audio stream"))?;
    let (payload_type, codec) = stream
        .formats()
        .filter_map(|(number, format)| Some((number, format.codec()?)))
        .find(|(_, codec)| ours.codecs.contains(codec))
        .ok_or(Mismatch::NoCommonCodec)?;
    let wanted = stream.direction.or(theirs.direction).unwrap_or_default();
    // Before RFC 3264 a call was held by the address 0.0.0.0: there is nowhere to send to.
    let theirs_now = if ip.is_unspecified() {
        Direction::of(wanted.sends(), false)
    } else {
        wanted
    };
    Ok(Media {
        address: SocketAddr::new(ip, stream.port),
        codec,
        payload_type,
        telephone_event: ours.telephone_event.then(|| stream.telephone_event(codec)).flatten(),
        ptime_ms: stream
            .ptime_ms
            .map_or(ours.ptime_ms, |ptime| (ptime / 10 * 10).clamp(10, 60)),
        direction: theirs_now.flipped().and(ours.direction),
        crypto,
        rtcp_mux: stream.rtcp_mux && ours.rtcp_mux,
    })
}

fn agree_on_crypto(ours: &Capabilities, stream: &Stream, role: Role) -> Result<Option<SrtpKeys>, Mismatch> {
    let offered = role == Role::Offerer && ours.crypto_required;
    match (
        stream.is_secure,
        offered || (role == Role::Answerer && !ours.crypto.is_empty()),
    ) {
        (false, _) if ours.crypto_required => Err(Mismatch::Encryption),
        (false, _) => Ok(None),
        (true, false) => Err(Mismatch::Encryption),
        (true, true) => {
            let mut pairs = stream.crypto.iter().filter_map(|line| {
                let own = ours.crypto.iter().find(|own| own.suite == line.suite)?;
                // An answer repeats the tag of the line that it takes (RFC 4568 §5.1.3).
                let is_fitting = role == Role::Answerer || own.tag == line.tag;
                is_fitting.then(|| SrtpKeys {
                    suite: line.suite,
                    send: own.key.clone(),
                    receive: line.key.clone(),
                })
            });
            pairs.next().map(Some).ok_or(Mismatch::Encryption)
        }
    }
}

#[cfg(test)]
mod tests;
