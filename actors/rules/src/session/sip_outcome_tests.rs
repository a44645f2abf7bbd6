//! Every answer that a carrier can give, line by line.
use super::*;

/// Of an answer without `Reason` headers.
fn outcome(code: u16, phrase: &str, q850: Option<u8>, rang: bool) -> Outcome {
    let reason = phrase.to_owned();
    let said = SipAnswer {
        code,
        reason,
        q850,
        ..SipAnswer::default()
    };
    super::outcome(&said, rang)
}

/// What an answer makes of a call, without its words.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Busy,
    NoAnswer,
    Declined,
    Blocked,
    Invalid,
    Congested,
    Rejected,
}
use Is::*;

fn is(refusal: &Refusal) -> Is {
    match refusal {
        Refusal::Busy => Busy,
        Refusal::NoAnswer => NoAnswer,
        Refusal::Declined => Declined,
        Refusal::Blocked(_) => Blocked,
        Refusal::InvalidNumber(_) => Invalid,
        Refusal::Congested => Congested,
        Refusal::Rejected(_) => Rejected,
        Refusal::Unreachable(why) => panic!("an answer is one: {why}"),
        Refusal::NotPlaced => panic!("an answer is one to something"),
    }
}

/// Code, phrase, outcome before anything rang, outcome after.
#[rustfmt::skip]
const CODES: &[(u16, &str, Is, Is)] = &[
    (300, "Multiple Choices", Rejected, Rejected),
    (301, "Moved Permanently", Rejected, Rejected),
    (302, "Moved Temporarily", Rejected, Rejected),
    (305, "Use Proxy", Rejected, Rejected),
    (380, "Alternative Service", Rejected, Rejected),
    (400, "Bad Request", Rejected, Rejected),
    (401, "Unauthorized", Rejected, Rejected),
    (402, "Payment Required", Rejected, Rejected),
    (403, "Forbidden", Rejected, Rejected),
    (404, "Not Found", Invalid, Invalid),
    (405, "Method Not Allowed", Rejected, Rejected),
    (406, "Not Acceptable", Rejected, Rejected),
    (407, "Proxy Authentication Required", Rejected, Rejected),
    (408, "Request Timeout", NoAnswer, NoAnswer),
    (410, "Gone", Invalid, Invalid),
    (413, "Request Entity Too Large", Rejected, Rejected),
    (414, "Request-URI Too Long", Rejected, Rejected),
    (415, "Unsupported Media Type", Rejected, Rejected),
    (416, "Unsupported URI Scheme", Rejected, Rejected),
    (420, "Bad Extension", Rejected, Rejected),
    (422, "Session Interval Too Small", Rejected, Rejected),
    (428, "Use Identity Header", Rejected, Rejected),
    (429, "Provide Referrer Identity", Congested, Rejected),
    (433, "Anonymity Disallowed", Rejected, Rejected),
    (436, "Bad Identity Info", Rejected, Rejected),
    (437, "Unsupported Credential", Rejected, Rejected),
    (438, "Invalid Identity Header", Rejected, Rejected),
    (480, "Temporarily Unavailable", NoAnswer, NoAnswer),
    (481, "Call/Transaction Does Not Exist", Rejected, Rejected),
    (482, "Loop Detected", Rejected, Rejected),
    (483, "Too Many Hops", Rejected, Rejected),
    (484, "Address Incomplete", Invalid, Invalid),
    (485, "Ambiguous", Invalid, Invalid),
    (486, "Busy Here", Busy, Busy),
    (487, "Request Terminated", NoAnswer, NoAnswer),
    (488, "Not Acceptable Here", Rejected, Rejected),
    (493, "Undecipherable", Rejected, Rejected),
    (500, "Server Internal Error", Rejected, Rejected),
    (501, "Not Implemented", Rejected, Rejected),
    (502, "Bad Gateway", Rejected, Rejected),
    (503, "Service Unavailable", Congested, Rejected),
    (504, "Server Time-out", Rejected, Rejected),
    (505, "Version Not Supported", Rejected, Rejected),
    (513, "Message Too Large", Rejected, Rejected),
    (580, "Precondition Failure", Rejected, Rejected),
    (600, "Busy Everywhere", Busy, Busy),
    (603, "Decline", Declined, Declined),
    (604, "Does Not Exist Anywhere", Invalid, Invalid),
    (606, "Not Acceptable", Rejected, Rejected),
    (607, "Unwanted", Declined, Declined),
    (608, "Rejected", Blocked, Blocked),
    (699, "", Rejected, Rejected),
];

#[test]
fn each_code_is_one_outcome_before_anything_rang_and_one_after() {
    for (code, phrase, unrung, rung) in CODES {
        for (rang, wanted) in [(false, unrung), (true, rung)] {
            let came = outcome(*code, phrase, None, rang);
            assert_eq!(is(&came.refusal), *wanted, "{code} {phrase}, rang: {rang}");
            assert_eq!(came.is_unauthorized, matches!(code, 401 | 407), "{code}");
        }
    }
}

#[test]
fn a_limit_that_is_named_waits_for_the_same_attempt_unless_it_may_have_rung() {
    for (code, phrase) in [
        (503, "Trunk CPS limit exceeded"),
        (503, "CPS Limit reached P05"),
        (403, "User channel limit exceeded D1"),
        (403, "Forbidden; 32203 Maximum concurrent calls reached"),
        (500, "More than 10 calls per second"),
        (403, "Rate limit"),
        (503, "Too many calls at once"),
        (429, "Too Many Requests"),
    ] {
        assert_eq!(
            is(&outcome(code, phrase, None, false).refusal),
            Congested,
            "{code} {phrase}"
        );
        assert_eq!(
            is(&outcome(code, phrase, None, true).refusal),
            Rejected,
            "{code} {phrase}"
        );
        // Whatever cause the gateway has added.
        let limited = matches!(code, 403 | 500 | 503);
        let with_cause = is(&outcome(code, phrase, Some(21), false).refusal);
        assert!(!limited || with_cause == Congested, "{code} {phrase}");
    }
    for (code, phrase) in [
        (403, "Channel not allowed"),
        (403, "Caller limit"),
        (480, "CPS limit"),
        (404, "Capacity reached"),
    ] {
        assert_ne!(
            is(&outcome(code, phrase, None, false).refusal),
            Congested,
            "{code} {phrase}"
        );
    }
}

#[test]
fn a_cause_says_more_than_the_code_that_a_gateway_made_of_it() {
    for (code, cause, wanted) in [
        (480, 17, Busy),
        (503, 17, Busy),
        (404, 17, Busy),
        (500, 18, NoAnswer),
        (503, 19, NoAnswer),
        (404, 20, NoAnswer),
        (500, 31, NoAnswer),
        (504, 31, NoAnswer),
        // A trunk that is full says so with that cause too.
        (503, 31, Congested),
        (488, 31, Rejected),
        (503, 34, Congested),
        (500, 1, Invalid),
        (503, 1, Invalid),
        (480, 22, Invalid),
        (403, 28, Invalid),
        (480, 21, Rejected),
        (487, 57, Rejected),
        (408, 21, Rejected),
        (403, 21, Rejected),
        (403, 57, Rejected),
        (404, 21, Invalid),
        (480, 16, NoAnswer),
        // Who was called has said it.
        (486, 18, Busy),
        (600, 1, Busy),
        (603, 17, Declined),
        (607, 1, Declined),
        (604, 17, Invalid),
        (480, 0, NoAnswer),
        (480, 255, NoAnswer),
    ] {
        let came = is(&outcome(code, "", Some(cause), false).refusal);
        assert_eq!(came, wanted, "{code} with cause {cause}");
    }
}

#[test]
fn a_block_of_a_machine_is_told_from_a_no_of_a_person_and_says_so() {
    let of_a_person = outcome(603, "Decline", None, true).refusal;
    assert_eq!(of_a_person, Refusal::Declined);
    for (code, phrase) in [
        (603, "Network Blocked"),
        (603, "network blocked; v=analytics1"),
        (608, "Rejected"),
    ] {
        let Refusal::Blocked(why) = outcome(code, phrase, Some(21), true).refusal else {
            panic!("{code} {phrase}")
        };
        assert!(why.contains(phrase) && why.contains("not by the person"), "{why}");
    }
}

/// As carriers and gateways pass it on. Source: ATIS-1000099.
#[test]
fn a_reason_tells_a_block_too() {
    for (code, protocol, cause, text, wanted) in [
        (
            603,
            "SIP",
            Some(603),
            "v=analytics1;url=https://block.example/r",
            Blocked,
        ),
        (603, "Q.850", Some(21), "v=analytics1;tel=+18005550199", Blocked),
        (603, "q.850", Some(21), "Network Blocked", Blocked),
        (603, "sip", Some(608), "network blocked", Blocked),
        (
            607,
            "SIP",
            Some(603),
            "v=analytics1;url=https://block.example/r",
            Blocked,
        ),
        // Whoever was called has said no, or so it seems.
        (603, "Q.850", Some(21), "Call Rejected", Declined),
        (
            603,
            "Q.850",
            Some(16),
            "v=analytics1;url=https://block.example/r",
            Declined,
        ),
        (603, "SIP", Some(603), "Decline", Declined),
        (603, "X", Some(603), "Network Blocked", Declined),
        (603, "SIP", None, "Network Blocked", Declined),
        (607, "SIP", Some(607), "Unwanted", Declined),
        // Another code says what it says.
        (486, "SIP", Some(603), "Network Blocked", Busy),
    ] {
        let reason = SipReason {
            protocol: protocol.into(),
            cause,
            location: Some("LN".into()),
            text: Some(text.into()),
        };
        let said = SipAnswer {
            code,
            reason: "As the gateway says".into(),
            q850: None,
            reasons: vec![reason],
            jcard_url: None,
        };
        let came = super::outcome(&said, true).refusal;
        assert_eq!(is(&came), wanted, "{said:?}");
        if let Refusal::Blocked(why) = came {
            assert!(why.ends_with(text), "whoever has blocked it is told: {why}");
        }
    }
}

#[test]
fn what_went_wrong_is_said_in_the_carriers_words_on_one_line() {
    let why = |code, phrase: &str, q850| match outcome(code, phrase, q850, true).refusal {
        Refusal::Rejected(why) | Refusal::InvalidNumber(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        why(403, "Forbidden", Some(21)),
        "the carrier answered 403 Forbidden (Q.850 21)"
    );
    assert_eq!(
        why(404, " Not\r\nFound ", None),
        "the carrier answered 404 Not  Found: there is no such number"
    );
    assert_eq!(why(488, "", None), "the carrier answered 488: no common codec");
    assert!(why(302, "Moved Temporarily", None).contains("do not follow"));
    assert!(why(407, "Proxy Authentication Required", None).contains("credentials"));
    let longest = why(500, &"ü".repeat(70_000), None);
    assert!(longest.chars().count() < 300, "{}", longest.len());
}

#[test]
fn an_announcement_refines_only_what_says_little() {
    for (code, wanted) in [
        (480, Invalid),
        (487, Invalid),
        (503, Invalid),
        (486, Busy),
        (603, Declined),
        (403, Rejected),
    ] {
        let refusal = outcome(code, "", None, true).refusal;
        assert_eq!(is(&after_announcement(code, refusal)), wanted, "{code}");
    }
}

#[test]
fn no_answer_whatsoever_is_without_an_outcome() {
    for code in 0..=999 {
        for cause in [None, Some(1), Some(16), Some(17), Some(31), Some(127)] {
            let came = outcome(code, "x", cause, true).refusal;
            assert_ne!(is(&came), Congested, "{code}: it may have rung");
        }
    }
}
