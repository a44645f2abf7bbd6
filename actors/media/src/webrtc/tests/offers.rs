//! What is answered, and what is not.
use super::*;

fn offer() -> String {
    Peer::offer(Codec::Opus).1
}

/// Without the section of that kind.
fn without(sdp: &str, kind: &str) -> String {
    let (head, sections) = sdp.split_once("m=").unwrap();
    let kept: Vec<&str> = sections
        .split("\r\nm=")
        .map(str::trim_end)
        .filter(|section| !section.starts_with(kind))
        .collect();
    let mids: Vec<&str> = kept.iter().map(|section| value(section, "a=mid:")).collect();
    let head: String = head
        .lines()
        .map(|line| match line.starts_with("a=group:BUNDLE") {
            true => format!("a=group:BUNDLE {}\r\n", mids.join(" ")),
            false => format!("{line}\r\n"),
        })
        .collect();
    format!("{head}m={}\r\n", kept.join("\r\nm="))
}

fn lines(sdp: &str, keep: impl Fn(&str) -> bool) -> String {
    sdp.lines()
        .filter(|line| keep(line))
        .map(|line| format!("{line}\r\n"))
        .collect()
}

#[tokio::test]
async fn bad_offers_are_refused_with_what_to_do() {
    let media = media();
    let good = offer();
    assert!(media.offer(&good).is_ok());
    let refused = [
        ("empty", String::new(), "audio"),
        ("no SDP", "hello".into(), "audio"),
        ("too large", format!("{good}{}", "a=x\r\n".repeat(7_000)), "too large"),
        (
            "too many sections",
            format!("{good}{}", "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n".repeat(9)),
            "sections",
        ),
        ("data only", without(&good, "audio"), "no audio"),
        ("a picture", good.replace("m=audio", "m=video"), "no audio"),
        ("deaf", good.replace("a=sendrecv", "a=sendonly"), "sendrecv"),
        ("inactive", good.replace("a=sendrecv", "a=inactive"), "sendrecv"),
        (
            "no codec we know",
            good.replace("opus/48000", "opal/48000"),
            "opus, PCMU and PCMA",
        ),
        (
            "no fingerprint",
            lines(&good, |line| !line.starts_with("a=fingerprint")),
            "fingerprint",
        ),
        (
            "no encryption",
            good.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"),
            "cannot be used",
        ),
        (
            "no ICE",
            lines(&good, |line| !line.starts_with("a=ice-")),
            "cannot be used",
        ),
        ("cut off", good[..good.len() / 2].into(), "cannot be used"),
    ];
    for (what, sdp, reason) in refused {
        let refused = media.offer(&sdp).map(|offered| offered.answer().to_string());
        assert!(
            refused.as_ref().is_err_and(|bad| bad.0.contains(reason)),
            "{what}: {refused:?}"
        );
    }
    assert_eq!(media.connections(), 0);
}

#[tokio::test]
async fn the_answer_is_encrypted_light_and_names_the_port() {
    let media = media();
    let offered = media.offer(&offer()).unwrap();
    let answer = offered.answer();
    let port = media.local_addr().port().to_string();
    for part in [
        "a=ice-lite",
        "a=fingerprint:sha-256",
        "a=setup:passive",
        "opus/48000/2",
        "a=maxptime:20",
        "urn:ietf:params:rtp-hdrext:sdes:mid",
        "m=application 9",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let candidates: Vec<_> = answer.lines().filter(|line| line.starts_with("a=candidate")).collect();
    assert!(
        candidates
            .iter()
            .all(|line| line.contains(&format!(" 127.0.0.1 {port} typ host"))),
        "{candidates:?}"
    );
    assert!(!candidates.is_empty());
    assert!(!answer.contains("PCMU"), "one codec is enough: {answer}");
    assert!(
        !answer.contains("transport-wide-cc"),
        "a browser would number each packet: {answer}"
    );
}

#[tokio::test]
async fn opus_is_preferred_and_old_phones_sound_too() {
    let media = media();
    for codec in Codec::ALL {
        let offered = media.offer(&Peer::offer(codec).1).unwrap();
        assert_eq!(offered.codec(), codec);
    }
    let both = offer().replace("UDP/TLS/RTP/SAVPF ", "UDP/TLS/RTP/SAVPF 0 ");
    assert_eq!(media.offer(&both).unwrap().codec(), Codec::Opus);
    // Captions are not everything.
    let sound_only = without(&offer(), "application");
    assert_eq!(media.offer(&sound_only).map(|offered| offered.codec()), Ok(Codec::Opus));
}

#[tokio::test]
async fn no_offer_makes_it_panic() {
    let media = media();
    let good = offer().into_bytes();
    let mut seed = 7_u64;
    let mut chance = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..=chance(4) {
            let at = chance(bytes.len());
            match chance(4) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = b" \r\n:=/0a9"[chance(9)],
                2 => drop(bytes.remove(at)),
                _ => {
                    let piece = bytes[at..(at + 1 + chance(80)).min(bytes.len())].to_vec();
                    let to = chance(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
        }
        // Whatever it says to it.
        let _ = media.offer(&String::from_utf8_lossy(&bytes));
    }
    assert!(media.offer(&offer()).is_ok());
}
