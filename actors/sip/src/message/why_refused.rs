//! Why a call was not connected, as its final answer says beside code and phrase: what a network that blocks calls tells the caller.
use super::{
    Fields,
    address::{Address, param},
    method::is_token,
};

/// Values of `Reason` that are looked at, over all of its lines.
const MOST_REASONS: usize = 4;

/// As it stands. Nobody has cut it yet: a header has kilobytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhyRefused {
    pub reasons: Vec<Reason>,
    /// Where the one who has blocked the call says who he is. Source: RFC 8688, section 3.2.2 (608).
    pub jcard_url: Option<String>,
}

/// One value of a `Reason`. Source: RFC 3326, section 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// Whose causes these are, such as `SIP` or `Q.850`.
    pub protocol: String,
    pub cause: Option<u16>,
    /// Which network says so, such as `LN`. Source: RFC 8606, section 4.
    pub location: Option<String>,
    pub text: Option<String>,
}

impl WhyRefused {
    pub fn of(answer: &impl Fields) -> Self {
        let reasons = answer.list("Reason");
        WhyRefused {
            reasons: reasons
                .iter()
                .filter_map(|value| Reason::read(value))
                .take(MOST_REASONS)
                .collect(),
            jcard_url: answer.list("Call-Info").iter().find_map(|value| jcard_url(value)),
        }
    }
}

impl Reason {
    fn read(value: &str) -> Option<Self> {
        let (protocol, params) = value.split_once(';').unwrap_or((value, ""));
        let protocol = protocol.trim();
        if protocol.is_empty() || !is_token(protocol) {
            return None;
        }
        let text = |name| param(params, name).map(unescaped).filter(|text| !text.is_empty());
        Some(Reason {
            protocol: protocol.to_owned(),
            cause: param(params, "cause").and_then(|cause| cause.parse().ok()),
            location: text("location"),
            text: text("text"),
        })
    }
}

/// Of one value of a `Call-Info`. The draft of RFC 8688 said `jcard`, as RFC 9796 does.
fn jcard_url(value: &str) -> Option<String> {
    let address = Address::read(value);
    let purpose = address.param("purpose")?.to_ascii_lowercase();
    let is_card = matches!(purpose.as_str(), "jwscard" | "jcard");
    let scheme = address.uri.split_once(':')?.0.to_ascii_lowercase();
    (is_card && matches!(scheme.as_str(), "https" | "http")).then(|| address.uri.to_owned())
}

/// In a quoted string `\` stands before a character that means itself. Source: RFC 3261, section 25.1.
fn unescaped(text: &str) -> String {
    let mut is_escaped = false;
    text.chars()
        .filter(|c| {
            is_escaped = *c == '\\' && !is_escaped;
            !is_escaped
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, Response, Unreadable, read_datagram};

    fn read(headers: &str) -> Result<Response, Unreadable> {
        let text = format!(
            "SIP/2.0 603 Network Blocked\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>;tag=2\r\n\
             Call-ID: 1\r\nCSeq: 1 INVITE\r\n{headers}Content-Length: 0\r\n\r\n"
        );
        match read_datagram(text.as_bytes())? {
            Message::Response(response) => Ok(response),
            Message::Request(_) => panic!("no response"),
        }
    }

    fn why(headers: &str) -> WhyRefused {
        WhyRefused::of(&read(headers).unwrap())
    }

    fn reason(protocol: &str, cause: Option<u16>, location: Option<&str>, text: Option<&str>) -> Reason {
        Reason {
            protocol: protocol.to_owned(),
            cause,
            location: location.map(str::to_owned),
            text: text.map(str::to_owned),
        }
    }

    /// As carriers send it. Source: ATIS-1000099.
    #[test]
    fn a_network_that_blocks_says_who_it_is() {
        for (value, expected) in [
            (
                "SIP;cause=603;text=\"v=analytics1;url=https://block.example/a,b\";location=LN",
                reason(
                    "SIP",
                    Some(603),
                    Some("LN"),
                    Some("v=analytics1;url=https://block.example/a,b"),
                ),
            ),
            (
                "Q.850 ; cause=21 ; location=RLN ; text=\"v=analytics1;tel=+12025550199\"",
                reason("Q.850", Some(21), Some("RLN"), Some("v=analytics1;tel=+12025550199")),
            ),
            (
                "q.850;cause=\"21\";text=\"a \\\"b\\\" \\\\ c\"",
                reason("q.850", Some(21), None, Some("a \"b\" \\ c")),
            ),
            ("SIP;cause=99999;text=\"\"", reason("SIP", None, None, None)),
            ("SIP", reason("SIP", None, None, None)),
        ] {
            assert_eq!(why(&format!("Reason: {value}\r\n")).reasons, [expected], "{value}");
        }
        let two = why("Reason: SIP;cause=603, Q.850;cause=21\r\nReason: X;cause=1\r\n").reasons;
        let protocols: Vec<_> = two.iter().map(|reason| reason.protocol.as_str()).collect();
        assert_eq!(protocols, ["SIP", "Q.850", "X"]);
    }

    #[test]
    fn what_is_no_reason_is_none_and_of_many_there_are_few() {
        for value in ["", ";cause=1", "\"SIP;cause=603", "two words;cause=1"] {
            assert_eq!(why(&format!("Reason: {value}\r\n")), WhyRefused::default(), "{value}");
        }
        let many = "Reason: SIP;cause=603\r\n".repeat(100);
        assert_eq!(why(&many).reasons.len(), MOST_REASONS);
        assert_eq!(
            why(&format!("Reason: SIP{}\r\n", ",SIP".repeat(1_000))).reasons.len(),
            MOST_REASONS
        );
        // It does not even come so far.
        let long = format!("Reason: SIP;cause=603;text=\"{}\"\r\n", "x".repeat(10_240));
        assert_eq!(read(&long).err(), Some(Unreadable::HeaderTooLong));
    }

    #[test]
    fn the_card_of_a_608_is_found() {
        for (value, expected) in [
            (
                "<https://block.example/complaint>;purpose=jwscard",
                Some("https://block.example/complaint"),
            ),
            (
                "<https://x.example/icon.png>;purpose=icon, <HTTP://block.example/c>; purpose=JCARD",
                Some("HTTP://block.example/c"),
            ),
            ("<https://block.example/c>;purpose=info", None),
            ("<https://block.example/c>", None),
            ("<javascript:alert(1)>;purpose=jwscard", None),
            ("<sip:a@h>;purpose=jwscard", None),
            ("", None),
        ] {
            let found = why(&format!("Call-Info: {value}\r\n")).jcard_url;
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn an_attestation_is_one_letter_of_three() {
        for (header, expected) in [
            ("P-Attestation-Indicator: A", Some('A')),
            ("p-attestation-indicator: b ", Some('B')),
            ("Attestation-Info: C", Some('C')),
            ("Attestation-Info: C\r\nP-Attestation-Indicator: A", Some('A')),
            ("P-Attestation-Indicator: D", None),
            ("P-Attestation-Indicator: AA", None),
            ("P-Attestation-Indicator:", None),
            ("X-Attestation-Info: A", None),
            (
                "Identity: eyJhbGciOiJFUzI1NiJ9..c2ln;info=<https://c.example/c.pem>",
                None,
            ),
        ] {
            let response = read(&format!("{header}\r\n")).unwrap();
            assert_eq!(response.attestation(), expected, "{header}");
        }
    }
}
