//! Reads a page's offer and writes the answer.
use super::{
    Change, Codec, Connection,
    codec::{PayloadDecoder, PayloadEncoder},
    connection::{Herald, Link},
    mux::Mux,
};
use crate::bridge::MediaBridge;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use str0m::{Candidate, Rtc, change::SdpOffer, crypto, rtp::Extension};
use tokio::{runtime::Handle, sync::oneshot};

/// Bytes of an offer; browsers write 2 to 8 KB for sound and data.
const LONGEST: usize = 32 * 1024;
/// Sections of an offer; a page has two.
const SECTIONS: usize = 8;
/// Bytes of a data channel message that the browser is told it may send; those over a kilobyte are dropped.
const MESSAGE: u32 = 4_096;

/// Why an offer cannot be answered, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadOffer(pub String);

/// An offer that was answered; nothing is connected yet.
pub struct Offered {
    rtc: Rtc,
    ufrag: String,
    answer: String,
    codec: Codec,
    encoder: PayloadEncoder,
    decoder: PayloadDecoder,
    mux: Arc<Mux>,
    runtime: Handle,
}

impl Offered {
    pub(super) fn read(sdp: &str, mux: Arc<Mux>, runtime: Handle) -> Result<Self, BadOffer> {
        check(sdp)?;
        for codec in Codec::ALL {
            let (rtc, answer) = answer(sdp, codec, &mux)?;
            if !has_sound(&answer) {
                continue;
            }
            if !answer.contains("a=fingerprint:") {
                return Err(bad("the connection would not be encrypted; offer DTLS-SRTP"));
            }
            return Self::accept(rtc, &answer, codec, mux, runtime);
        }
        Err(bad(
            "the offer's audio has none of opus, PCMU and PCMA; add one of them",
        ))
    }

    fn accept(mut rtc: Rtc, answer: &str, codec: Codec, mux: Arc<Mux>, runtime: Handle) -> Result<Self, BadOffer> {
        let ready = |error| bad(&format!("sound cannot be set up: {error}"));
        Ok(Offered {
            ufrag: rtc.direct_api().local_ice_credentials().ufrag,
            rtc,
            answer: in_frames(answer),
            codec,
            encoder: PayloadEncoder::new(codec).map_err(ready)?,
            decoder: PayloadDecoder::new(codec).map_err(ready)?,
            mux,
            runtime,
        })
    }

    /// The SDP for the page.
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// What the connection will speak.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// From now on the browser's packets are taken. `changed` is called on a thread of media and must not wait; not for what
    /// the owner does itself, which is dropping the connection or closing the bridge. A bridge has one connection at a time: drop the
    /// one before first, or each of them plays half of what is said.
    pub fn connect(self, bridge: Arc<MediaBridge>, changed: impl Fn(Change) + Send + Sync + 'static) -> Connection {
        let (hold, dropped) = oneshot::channel();
        let (seat, inbox) = self.mux.seat(self.ufrag);
        let herald = Herald::new(Box::new(changed));
        let link = Link::new(self.rtc, self.codec, self.encoder, self.decoder, seat, bridge, herald);
        self.runtime.spawn(link.run(inbox, dropped));
        Connection { hold }
    }
}

fn bad(reason: &str) -> BadOffer {
    BadOffer(reason.into())
}

/// What can be told without understanding it.
fn check(sdp: &str) -> Result<(), BadOffer> {
    if sdp.len() > LONGEST {
        return Err(BadOffer(format!(
            "the offer is too large, {} bytes; offer one audio track and one data channel (at most {LONGEST} bytes)",
            sdp.len()
        )));
    }
    let sections = sdp.lines().filter(|line| line.starts_with("m=")).count();
    if sections > SECTIONS {
        return Err(BadOffer(format!(
            "the offer has {sections} media sections; offer one audio track and one data channel"
        )));
    }
    // Only the first is used, and it must be such that the agent can be heard.
    let Some(audio) = section(sdp, "audio") else {
        return Err(bad("the offer has no audio; add an audio track (sendrecv)"));
    };
    if audio
        .lines()
        .any(|line| matches!(line.trim_end(), "a=sendonly" | "a=inactive"))
    {
        return Err(bad("the offer's audio cannot receive; offer it as sendrecv"));
    }
    Ok(())
}

fn answer(sdp: &str, codec: Codec, mux: &Mux) -> Result<(Rtc, String), BadOffer> {
    let understand = |reason: String| {
        tracing::debug!(reason, "an offer cannot be used");
        bad(
            "the offer cannot be used; send the SDP of `RTCPeerConnection.createOffer` as it is, with its fingerprint and ICE lines",
        )
    };
    let offer = SdpOffer::from_sdp_string(sdp).map_err(|error| understand(error.to_string()))?;
    // Lost sound is not waited for longer than a person would notice.
    let config = Rtc::builder()
        // Only what tells streams apart. With transport-wide-cc a browser reports when each packet came, up to twenty times a
        // second; that is for pacing pictures, and nobody here reads it.
        .clear_extension_map()
        .set_extension(4, Extension::RtpMid)
        .set_crypto_provider(Arc::new(crypto::from_feature_flags()))
        .set_ice_lite(true)
        .set_reordering_size_audio(5)
        .set_reordering_timeout_audio(Some(Duration::from_millis(100)))
        .set_sctp_max_message_size(MESSAGE);
    let mut rtc = codec.only(config).build(Instant::now());
    for address in &mux.announced {
        let candidate = Candidate::host(*address, "udp").map_err(|error| understand(error.to_string()))?;
        rtc.add_local_candidate(candidate);
    }
    let answer = rtc
        .sdp_api()
        .accept_offer(offer)
        .map_err(|error| understand(error.to_string()))?;
    Ok((rtc, answer.to_sdp_string()))
}

/// From its `m=` line to before the next one.
fn section<'a>(sdp: &'a str, kind: &str) -> Option<&'a str> {
    let mut starts = sdp
        .match_indices("m=")
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || sdp.as_bytes()[at - 1] == b'\n');
    let start = starts.find(|at| {
        sdp[at + 2..]
            .strip_prefix(kind)
            .is_some_and(|rest| rest.starts_with(' '))
    })?;
    let end = sdp[start..].find("\nm=").map_or(sdp.len(), |end| start + end + 1);
    Some(&sdp[start..end])
}

/// A section that was refused has port 0.
fn has_sound(answer: &str) -> bool {
    section(answer, "audio").is_some_and(|audio| !audio.starts_with("m=audio 0 "))
}

/// Asks for packets of 20 ms: longer ones of Opus cannot be decoded here.
fn in_frames(answer: &str) -> String {
    let Some(audio) = section(answer, "audio") else {
        return answer.into();
    };
    answer.replacen(audio, &format!("{audio}a=ptime:20\r\na=maxptime:20\r\n"), 1)
}
