//! The session descriptions that we send.
use std::{fmt::Write as _, net::IpAddr};

use bytes::Bytes;

use super::{Capabilities, Codec, Crypto, Media, read::Description};

/// Everything we can do, as one stream.
pub(super) fn offer(ours: &Capabilities) -> Bytes {
    let mut text = head(ours);
    let mut lines = String::new();
    let mut numbers = String::new();
    for codec in &ours.codecs {
        describe(&mut numbers, &mut lines, *codec, codec.payload_type());
    }
    let mut events: Vec<(u8, u32)> = ours
        .codecs
        .iter()
        .map(|codec| (codec.event_payload_type(), codec.clock()))
        .collect();
    events.sort_unstable();
    events.dedup();
    for (number, clock) in events.into_iter().filter(|_| ours.telephone_event) {
        describe_events(&mut numbers, &mut lines, number, clock);
    }
    let protocol = if ours.crypto_required { "RTP/SAVP" } else { "RTP/AVP" };
    text.push_str(&format!(
        "m=audio {} {protocol}{numbers}\r\n{lines}",
        ours.address.port()
    ));
    if ours.crypto_required {
        ours.crypto
            .iter()
            .for_each(|line| text.push_str(&format!("a=crypto:{line}\r\n")));
    }
    tail(&mut text, ours.ptime_ms, ours.direction.as_str(), ours.rtcp_mux);
    Bytes::from(text)
}

/// One codec in the stream at `taken`, with the peer's own numbers; each other stream refused.
pub(super) fn answer(
    ours: &Capabilities,
    theirs: &Description,
    taken: usize,
    media: &Media,
    crypto_tag: Option<u32>,
) -> Bytes {
    let mut text = head(ours);
    for (at, stream) in theirs.streams.iter().enumerate() {
        if at != taken {
            let words = if stream.words.is_empty() {
                "0".to_owned()
            } else {
                stream.words.join(" ")
            };
            text.push_str(&format!("m={} 0 {} {words}\r\n", stream.kind, stream.protocol));
            continue;
        }
        let (mut numbers, mut lines) = (String::new(), String::new());
        describe(&mut numbers, &mut lines, media.codec, media.payload_type);
        if let Some(number) = media.telephone_event {
            let clock = stream.event_clock(number);
            describe_events(&mut numbers, &mut lines, number, clock);
        }
        text.push_str(&format!(
            "m=audio {} {}{numbers}\r\n{lines}",
            ours.address.port(),
            stream.protocol
        ));
        if let (Some(keys), Some(tag)) = (&media.crypto, crypto_tag) {
            let line = Crypto {
                tag,
                suite: keys.suite,
                key: keys.send.clone(),
            };
            text.push_str(&format!("a=crypto:{line}\r\n"));
        }
        tail(&mut text, media.ptime_ms, media.direction.as_str(), media.rtcp_mux);
    }
    Bytes::from(text)
}

fn head(ours: &Capabilities) -> String {
    let ip = ours.address.ip();
    let family = match ip {
        IpAddr::V4(_) => "IP4",
        IpAddr::V6(_) => "IP6",
    };
    let (id, version) = (ours.session_id, ours.version);
    format!("v=0\r\no=- {id} {version} IN {family} {ip}\r\ns=-\r\nc=IN {family} {ip}\r\nt=0 0\r\n")
}

fn tail(text: &mut String, ptime_ms: u32, direction: &str, rtcp_mux: bool) {
    text.push_str(&format!("a=ptime:{ptime_ms}\r\na={direction}\r\n"));
    if rtcp_mux {
        text.push_str("a=rtcp-mux\r\n");
    }
}

fn describe(numbers: &mut String, lines: &mut String, codec: Codec, number: u8) {
    // Writing to a text cannot fail.
    let _ = write!(numbers, " {number}");
    let _ = write!(lines, "a=rtpmap:{number} {}\r\n", codec.encoding());
    if codec == Codec::Opus {
        let _ = write!(lines, "a=fmtp:{number} useinbandfec=1\r\n");
    }
}

/// All sixteen keys.
fn describe_events(numbers: &mut String, lines: &mut String, number: u8, clock: u32) {
    let _ = write!(numbers, " {number}");
    let _ = write!(
        lines,
        "a=rtpmap:{number} telephone-event/{clock}\r\na=fmtp:{number} 0-15\r\n"
    );
}
