//! What both ends do once picked up. RFC 3261 §12.2, §14, §15; RFC 3264 §8; RFC 3515; RFC 4028.
use super::*;

const PICKED_UP: &str = "> INVITE 1\n< 200 INVITE 1 sdp=9\n* PickedUp 9\n> ACK 1\n";
const ANSWERED: &str = "< INVITE 1 sdp=9\n> 100 INVITE 1\n! Accept 1\n> 200 INVITE 1\n< ACK 1\n* Acked\n";

/// Each from both ends: the numbers of our requests begin at 2 for the caller and at 1 for the callee, theirs are free.
fn talks(table: &[(&str, &str)]) {
    for (title, script) in table {
        let caller = script.replace("{1}", "2").replace("{2}", "3").replace("{3}", "4");
        Script::caller(title, Transport::Tcp).run(PICKED_UP).run(&caller);
        let callee = script.replace("{1}", "1").replace("{2}", "2").replace("{3}", "3");
        Script::callee(title, Transport::Tcp).run(ANSWERED).run(&callee);
    }
}

#[test]
fn the_end() {
    talks(&[
        (
            "ours",
            "? open
             ! HangUp 31
             > BYE {1} Reason:Q.850;cause=31
             ! HangUp 16
             ! Offer 2
             ? open
             < 200 BYE {1}
             ? settled
             @ 32000
             * Gone",
        ),
        (
            "crossed",
            "! HangUp 16
             > BYE {1}
             < BYE 50
             > 200 BYE 50
             < 481 BYE {1}
             @ 32000
             * Gone",
        ),
        (
            "ours, while an offer of ours is open that nobody answers",
            "! Offer 2
             > INVITE {1}
             ! HangUp 16
             > BYE {2}
             < 100 INVITE {1}
             < 200 BYE {2}
             ? settled
             @ 32000
             * Gone",
        ),
        (
            "ours, and the open offer is refused for it",
            "! Offer 2
             > INVITE {1}
             < 100 INVITE {1}
             ! HangUp 16
             > BYE {2}
             < 487 INVITE {1}
             > ACK {1}
             < 200 BYE {2}
             @ 32000
             * Gone",
        ),
        (
            "unheard",
            "! HangUp 16
             > BYE {1}
             @ 32000
             * Gone",
        ),
        (
            "after which nobody knows the dialog",
            "! HangUp 16
             > BYE {1}
             < INFO 50 body=x
             > 481 INFO 50
             < INVITE 51 sdp=8
             > 481 INVITE 51",
        ),
    ]);
}

#[test]
fn requests_of_theirs() {
    talks(&[
        ("OPTIONS", "< OPTIONS 50\n> 200 OPTIONS 50 Accept:application/sdp"),
        (
            "INFO",
            "< INFO 50 body=Signal=5\n> 200 INFO 50\n* Info Signal=5\n< INFO 51\n> 200 INFO 51",
        ),
        ("REFER", "< REFER 50 Refer-To:<sip:x@y>\n> 603 REFER 50"),
        (
            "MESSAGE",
            "< MESSAGE 50\n> 405 MESSAGE 50 Allow:INVITE,_ACK,_CANCEL,_BYE,_OPTIONS,_INFO,_UPDATE,_PRACK,_NOTIFY",
        ),
        ("an unknown one", "< DANCE 50\n> 405 DANCE 50"),
        ("a stranger's", "< BYE 50 tag=z\n> 481 BYE 50"),
        ("PRACK of nothing", "< PRACK 50 RAck:1_1_INVITE\n> 481 PRACK 50"),
        (
            "NOTIFY of nothing",
            "< NOTIFY 50 Event:refer body=SIP/2.0_200_OK\n> 481 NOTIFY 50",
        ),
        (
            "an extension",
            "< INFO 50 Require:teleport\n> 420 INFO 50 Unsupported:teleport",
        ),
        ("an old number", "< INFO 50\n> 200 INFO 50\n< INFO 49\n> 500 INFO 49"),
        ("an ACK of nothing", "< ACK 50"),
    ]);
}

#[test]
fn offers_of_theirs() {
    talks(&[
        (
            "by re-INVITE",
            "< INVITE 50 sdp=10
             > 100 INVITE 50
             * Offer 10
             ! AnswerOffer 2
             > 200 INVITE 50 sdp=2
             ! AnswerOffer 3
             < ACK 50",
        ),
        (
            "by UPDATE",
            "< UPDATE 50 sdp=10
             * Offer 10
             ! AnswerOffer 2
             > 200 UPDATE 50 sdp=2",
        ),
        (
            "none: ours stands in the 200",
            "< INVITE 50
             > 100 INVITE 50
             * Offer -
             ! AnswerOffer 2
             > 200 INVITE 50 sdp=2
             < INVITE 51 sdp=11
             > 491 INVITE 51
             < ACK 51
             < ACK 50 sdp=10
             * OfferAnswered 10",
        ),
        (
            "the same again: a refresh",
            "< INVITE 50 sdp=9
             > 200 INVITE 50 sdp=1
             < ACK 50
             < UPDATE 51
             > 200 UPDATE 51 sdp=-",
        ),
        (
            "refused: the session stays",
            "< INVITE 50 sdp=10
             > 100 INVITE 50
             * Offer 10
             ! RefuseOffer
             > 488 INVITE 50
             < ACK 50
             < INVITE 51 sdp=9
             > 200 INVITE 51 sdp=1",
        ),
        (
            "two at once",
            "< INVITE 50 sdp=10
             > 100 INVITE 50
             * Offer 10
             < UPDATE 51 sdp=11
             > 500 UPDATE 51",
        ),
        (
            "taken back",
            "< INVITE 50 sdp=10
             > 100 INVITE 50
             * Offer 10
             < CANCEL 50
             > 200 CANCEL 50
             > 487 INVITE 50
             ! AnswerOffer 2
             < ACK 50",
        ),
        (
            "that our user says nothing to",
            "< INVITE 50 sdp=10
             > 100 INVITE 50
             * Offer 10
             @ 10000
             > 500 INVITE 50
             < ACK 50",
        ),
        (
            "with the call ended meanwhile",
            "< INVITE 50 sdp=10
             > 100 INVITE 50
             * Offer 10
             ! HangUp 16
             > BYE {1}
             > 487 INVITE 50",
        ),
    ]);
}

#[test]
fn offers_of_ours() {
    talks(&[
        (
            "taken; the next waits its turn, and only the last counts",
            "! Offer 2
             > INVITE {1} sdp=2
             ! Offer 3
             ! Offer 4
             < 100 INVITE {1}
             < 200 INVITE {1} sdp=10
             > ACK {1}
             > INVITE {2} sdp=4
             * OfferAnswered 10
             < 200 INVITE {1} sdp=10
             > ACK {1}
             < 200 INVITE {2} sdp=11
             > ACK {2}
             * OfferAnswered 11",
        ),
        (
            "refused",
            "! Offer 2
             > INVITE {1}
             < 488 INVITE {1}
             > ACK {1}
             * OfferRefused 488",
        ),
        (
            "to a peer that is at work on another",
            "! Offer 2
             > INVITE {1} sdp=2
             < 500 INVITE {1} Retry-After:7
             > ACK {1}
             @ 6999
             @ 1
             > INVITE {2} sdp=2
             < 500 INVITE {2} Retry-After:33
             > ACK {2}
             * OfferRefused 500",
        ),
        (
            "met by one of theirs",
            "! Offer 2
             > INVITE {1}
             < INVITE 50 sdp=10
             > 491 INVITE 50
             < ACK 50
             < UPDATE 51 sdp=10
             > 491 UPDATE 51
             < UPDATE 52
             > 200 UPDATE 52",
        ),
        (
            "to a peer that knows the call no more",
            "! Offer 2
             > INVITE {1}
             < 481 INVITE {1}
             > ACK {1}
             > BYE {2}
             * RemoteHungUp -",
        ),
        (
            "to a peer that is silent",
            "! Offer 2
             > INVITE {1}
             @ 32000
             > BYE {2}
             * RemoteHungUp -
             @ 32000
             * Gone",
        ),
        (
            "to a peer that is at work for ever",
            "! Offer 2
             > INVITE {1}
             < 100 INVITE {1}
             @ 64000
             * OfferRefused 408",
        ),
        (
            "with credentials",
            "! Offer 2
             > INVITE {1}
             < 401 INVITE {1}
             > ACK {1}
             * Challenged 401 {2}
             ! Authorized
             > INVITE {2} Authorization:Digest sdp=2
             < 200 INVITE {2} sdp=10
             > ACK {2} Authorization:Digest
             * OfferAnswered 10",
        ),
        (
            "without",
            "! Offer 2
             > INVITE {1}
             < 401 INVITE {1}
             > ACK {1}
             * Challenged 401 {2}
             ! Unauthorized
             * OfferRefused 401",
        ),
    ]);
}

/// Four times in all, and each end after pauses of its own.
#[test]
fn offers_that_cross() {
    let tries = |script: Script, first: u32, pause: u32| {
        let mut text = format!("! Offer 2\n> INVITE {first}\n");
        for number in first..first + 3 {
            text += &format!(
                "< 491 INVITE {number}\n> ACK {number}\n@ {pause}\n> INVITE {}\n",
                number + 1
            );
        }
        let last = first + 3;
        script
            .run(&text)
            .run(&format!("< 491 INVITE {last}\n> ACK {last}\n* OfferRefused 491"));
    };
    tries(Script::caller("owner", Transport::Tcp).run(PICKED_UP), 2, 4000);
    tries(Script::callee("other", Transport::Tcp).run(ANSWERED), 1, 2000);
    // The owner never asks before 2.1 s are over.
    Script::caller("owner", Transport::Tcp)
        .run(PICKED_UP)
        .run("! Offer 2\n> INVITE 2\n< 491 INVITE 2\n> ACK 2\n@ 2099");
}

#[test]
fn transfers() {
    talks(&[
        (
            "that succeed",
            "! Refer
             > REFER {1} Refer-To:<sip:third@198.51.100.9>
             ! Refer
             < NOTIFY 50 Event:refer Subscription-State:active body=SIP/2.0_100_Trying
             > 200 NOTIFY 50
             * ReferProgress 100
             < 202 REFER {1}
             < NOTIFY 51 Event:presence body=SIP/2.0_200_OK
             > 481 NOTIFY 51
             < NOTIFY 52 Event:refer;id=2 Subscription-State:terminated;reason=noresource body=SIP/2.0_200_OK
             > 200 NOTIFY 52
             * ReferProgress 200
             < NOTIFY 53 Event:refer body=SIP/2.0_200_OK
             > 481 NOTIFY 53",
        ),
        (
            "that are refused",
            "! Refer\n> REFER {1}\n< 603 REFER {1}\n* ReferProgress 603",
        ),
        (
            "that are not answered",
            "! Refer\n> REFER {1}\n@ 32000\n* ReferProgress 408",
        ),
        (
            "of which nobody tells the end",
            "! Refer
             > REFER {1}
             < 202 REFER {1}
             < NOTIFY 50 Event:refer Subscription-State:terminated
             > 200 NOTIFY 50
             * ReferProgress 408",
        ),
        (
            "of which nobody tells anything, and another after it",
            "! Refer
             > REFER {1}
             < 202 REFER {1}
             @ 44000
             < NOTIFY 50 Event:refer body=SIP/2.0_180_Ringing
             > 200 NOTIFY 50
             * ReferProgress 180
             @ 1000
             * ReferProgress 408
             < NOTIFY 51 Event:refer body=SIP/2.0_200_OK
             > 481 NOTIFY 51
             ! Refer
             > REFER {2}",
        ),
        (
            "with credentials",
            "! Refer
             > REFER {1}
             < 407 REFER {1}
             * Challenged 407 {2}
             ! Authorized
             > REFER {2} Authorization:Digest
             < 202 REFER {2}",
        ),
    ]);
}

#[test]
fn keys_by_info() {
    talks(&[
        (
            "taken",
            "! Info\n> INFO {1} Content-Type:application/dtmf-relay\n< 200 INFO {1}",
        ),
        ("not taken", "! Info\n> INFO {1}\n< 415 INFO {1}"),
        (
            "of a call that is gone",
            "! Info\n> INFO {1}\n< 481 INFO {1}\n> BYE {2}\n* RemoteHungUp -",
        ),
    ]);
}

#[test]
fn the_session_is_refreshed() {
    let caller = |title, answer: &str, script: &str| {
        let begun = format!("> INVITE 1\n< 200 INVITE 1 sdp=9 {answer}\n* PickedUp 9\n> ACK 1\n");
        Script::caller(title, Transport::Tcp).run(&begun).run(script);
    };
    caller(
        "by UPDATE, and by re-INVITE when it is not taken",
        "Session-Expires:1800;refresher=uac Allow:INVITE,UPDATE",
        "@ 900000
         > UPDATE 2
         < 405 UPDATE 2
         > INVITE 3 sdp=1 Session-Expires:1800;refresher=uac
         < 200 INVITE 3 sdp=9 Session-Expires:1800;refresher=uac
         > ACK 3
         @ 900000
         > INVITE 4 sdp=1
         < 422 INVITE 4 Min-SE:3600
         > ACK 4
         > INVITE 5 sdp=1 Session-Expires:3600;refresher=uac
         < 488 INVITE 5
         > ACK 5
         @ 867999
         @ 1
         > BYE 6
         * SessionExpired
         < 200 BYE 6
         * Gone",
    );
    caller(
        "meeting one of theirs, and again after it",
        "Session-Expires:1800;refresher=uac",
        "@ 900000
         > INVITE 2 sdp=1
         < INVITE 50 sdp=9 Supported:timer Session-Expires:1800
         > 491 INVITE 50
         < ACK 50 branch=INVITE50
         < 491 INVITE 2
         > ACK 2
         < INVITE 51 sdp=9 Supported:timer Session-Expires:1800;refresher=uas
         > 200 INVITE 51 sdp=1 Session-Expires:1800;refresher=uas
         < ACK 51
         @ 4000
         > INVITE 3 sdp=1 Session-Expires:1800;refresher=uac
         < 200 INVITE 3 sdp=9 Session-Expires:1800;refresher=uac
         > ACK 3
         @ 899999
         @ 1
         > INVITE 4 sdp=1",
    );
    caller(
        "by UPDATE, again after the pause, while the peer cannot take it",
        "Session-Expires:1800;refresher=uac Allow:INVITE,UPDATE",
        "@ 900000
         > UPDATE 2
         < 491 UPDATE 2
         @ 2099
         @ 1901
         > UPDATE 3 Session-Expires:1800;refresher=uac
         < 500 UPDATE 3 Retry-After:5
         @ 4999
         @ 1
         > UPDATE 4
         < 200 UPDATE 4 Session-Expires:1800;refresher=uac
         @ 899999
         @ 1
         > UPDATE 5
         < 503 UPDATE 5 Retry-After:1800
         > INVITE 6 sdp=1 Session-Expires:1800;refresher=uac
         < 200 INVITE 6 sdp=9 Session-Expires:1800;refresher=uac
         > ACK 6
         @ 900000
         > UPDATE 7",
    );
    caller(
        "by UPDATE, four times in all, and then by re-INVITE",
        "Session-Expires:1800;refresher=uac Allow:INVITE,UPDATE",
        "@ 900000
         > UPDATE 2
         < 491 UPDATE 2
         @ 4000
         > UPDATE 3
         < 491 UPDATE 3
         @ 4000
         > UPDATE 4
         < 491 UPDATE 4
         @ 4000
         > UPDATE 5
         < 491 UPDATE 5
         > INVITE 6 sdp=1",
    );
    caller(
        "at once, if the session is over before the pause",
        "Session-Expires:90;refresher=uac Allow:INVITE,UPDATE",
        "@ 45000
         > UPDATE 2
         < 500 UPDATE 2 Retry-After:15
         > INVITE 3 sdp=1",
    );
    caller(
        "by them",
        "Session-Expires:90;refresher=uas",
        "@ 59999\n@ 1\n> BYE 2\n* SessionExpired",
    );
    caller("never", "", "@ 4000000");
}

#[test]
fn the_peer_may_move() {
    let script = Script::caller("moves", Transport::Tcp)
        .run(PICKED_UP)
        .run("< UPDATE 50\n> 200 UPDATE 50");
    let row = script.call.as_ref().unwrap().dialog().unwrap();
    assert_eq!(row.remote_target, "sip:them@198.51.100.9:5070");
    assert_eq!((row.remote_tag.as_str(), row.cseq), ("b", 1));
}

#[test]
fn open_requests_are_bounded() {
    let mut script = Script::caller("many", Transport::Udp);
    script = script.run(PICKED_UP);
    // The oldest that was answered gives way; should it come once more, its number tells.
    let mut text = String::new();
    for number in 0..3 * MOST_SERVERS {
        text += &format!(
            "< INFO {} body=Signal=5\n> 200 INFO {0}\n* Info Signal=5\n",
            100 + number
        );
    }
    text += "< INFO 195\n> 200 INFO 195\n< INFO 100\n> 500 INFO 100";
    script = script.run(&text);
    assert_eq!(script.call.as_ref().unwrap().servers.len(), MOST_SERVERS);
}

/// Only an INVITE without its ACK holds its place; and whoever hangs up is heard all the same.
#[test]
fn a_storm_of_offers_does_not_keep_the_end_away() {
    let mut text = String::new();
    for number in 0..MOST_SERVERS {
        text += &format!("< INVITE {} sdp=9\n> 200 INVITE {0} sdp=1\n", 100 + number);
    }
    text += "< INVITE 200 sdp=9\n> 503 INVITE 200 Retry-After:5\n< INFO 201\n> 503 INFO 201\n\
             < BYE 202\n> 200 BYE 202\n* RemoteHungUp -\n@ 32000\n* Gone";
    Script::caller("storm", Transport::Tcp).run(PICKED_UP).run(&text);
    // One that keeps the rules refreshes as often as it likes.
    let mut text = String::new();
    for number in 0..3 * MOST_SERVERS {
        text += &format!("< INVITE {} sdp=9\n> 200 INVITE {0} sdp=1\n< ACK {0}\n", 100 + number);
    }
    Script::caller("refreshes", Transport::Tcp).run(PICKED_UP).run(&text);
}
