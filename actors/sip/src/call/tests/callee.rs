//! RFC 3261 §13.3 and §15.1, RFC 3262 §3, RFC 4028 §9.
use super::*;

#[test]
fn an_invite_is_answered() {
    callees(&[
        (
            "rings, is picked up, hangs up",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Ring
             > 180 INVITE 1 Contact:<sip:us@192.0.2.1:5060> !Require
             ! Accept 1
             > 200 INVITE 1 sdp=1 Supported:100rel,_timer
             < ACK 1
             * Acked
             ! HangUp 16
             > BYE 1 Reason:Q.850;cause=16
             < 200 BYE 1
             @ 32000
             * Gone",
        ),
        (
            "early sound",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! EarlyMedia 1
             > 183 INVITE 1 sdp=1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1
             * Acked
             < BYE 2
             > 200 BYE 2
             * RemoteHungUp -
             * Gone",
        ),
        (
            "refused",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Refuse 486
             > 486 INVITE 1
             ! Accept
             ! Ring
             < ACK 1
             * Gone",
        ),
        (
            "hung up before it was picked up",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! HangUp 16
             > 480 INVITE 1
             < ACK 1
             * Gone",
        ),
        (
            "without an offer: the ACK answers ours",
            "< INVITE 1
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1 sdp=9
             * Acked
             * OfferAnswered 9",
        ),
        (
            "beside the signalling of the old network",
            "< INVITE 1 sdp=9 parts
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1
             * Acked
             < INVITE 2 sdp=10 parts
             > 100 INVITE 2
             * Offer 10",
        ),
        (
            "without an offer: the ACK of a stranger answers nothing, and what is not a description neither",
            "< INVITE 1
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1 tag=z sdp=8
             < ACK 1 body=garbage
             * Acked
             * OfferAnswered -",
        ),
        (
            "whose ACK is a stranger's first",
            "< INVITE 1
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1 tag=z sdp=8
             < ACK 1 sdp=9
             * Acked
             * OfferAnswered 9",
        ),
        (
            "by two ways, as a proxy forks it",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             < INVITE 1 sdp=9 branch=other anew
             > 482 INVITE 1
             ! Ring
             > 180 INVITE 1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1 branch=other
             < ACK 1
             * Acked",
        ),
        (
            "with a body that is no description",
            "< INVITE 1 Content-Type:text/plain body=hello
             > 415 INVITE 1 Accept:application/sdp
             < ACK 1
             * Gone",
        ),
        (
            "with one that need not be understood, and later with one that has to be",
            "< INVITE 1 Content-Type:text/plain Content-Disposition:render;handling=optional body=hello
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1 sdp=9
             * Acked
             * OfferAnswered 9
             < INVITE 2 Content-Type:text/plain body=hello
             > 415 INVITE 2 Accept:application/sdp",
        ),
        (
            "with an extension that we do not know",
            "< INVITE 1 Require:100rel,teleport
             > 420 INVITE 1 Unsupported:teleport
             < ACK 1
             * Gone",
        ),
    ]);
}

#[test]
fn the_caller_gives_up() {
    callees(&[
        (
            "by CANCEL",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Ring
             > 180 INVITE 1
             < CANCEL 1 Reason:Q.850;cause=26
             > 200 CANCEL 1
             > 487 INVITE 1
             * Cancelled 26
             ! Accept
             < ACK 1
             * Gone",
        ),
        (
            "by BYE",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             < BYE 2
             > 487 INVITE 1
             > 200 BYE 2
             * Cancelled -
             < ACK 1
             * Gone",
        ),
        (
            "by a CANCEL that comes too late",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1
             < CANCEL 1
             > 200 CANCEL 1
             < ACK 1
             * Acked",
        ),
        (
            "by a CANCEL of something else",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             < CANCEL 1 branch=other
             > 481 CANCEL 1
             < CANCEL 7
             > 481 CANCEL 7",
        ),
    ]);
}

#[test]
fn the_ack() {
    callees(&[
        (
            "never comes",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1
             @ 1500
             > 200 INVITE 1
             > 200 INVITE 1
             @ 2000
             > 200 INVITE 1
             @ 28400
             > 200 INVITE 1
             > 200 INVITE 1
             > 200 INVITE 1
             > 200 INVITE 1
             > 200 INVITE 1
             > 200 INVITE 1
             > 200 INVITE 1
             @ 100
             > BYE 1 Reason:Q.850;cause=102
             * NeverAcked
             < 481 BYE 1
             * Gone",
        ),
        (
            "is awaited by a BYE",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1
             ! HangUp 16
             < ACK 1
             > BYE 1
             * Acked
             < ACK 1
             < 200 BYE 1
             @ 32000
             * Gone",
        ),
        (
            "is overtaken by their BYE",
            "< INVITE 1 sdp=9
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1
             < BYE 2
             > 200 BYE 2
             * RemoteHungUp -
             * Gone
             < ACK 1",
        ),
    ]);
}

#[test]
fn reliable_provisional_answers() {
    callees(&[
        (
            "are sent until they are acknowledged, one at a time",
            "< INVITE 1 sdp=9 Require:100rel
             > 100 INVITE 1
             ! Ring
             > 180 INVITE 1 Require:100rel RSeq:1
             @ 500
             > 180 INVITE 1 RSeq:1
             ! EarlyMedia 1
             < PRACK 2 RAck:2_1_INVITE
             > 481 PRACK 2
             < PRACK 3 RAck:1_1_INVITE
             > 183 INVITE 1 RSeq:2 sdp=1
             > 200 PRACK 3
             ! Accept 1
             < PRACK 4 RAck:2_1_INVITE
             > 200 INVITE 1 sdp=1
             > 200 PRACK 4
             < PRACK 5 RAck:2_1_INVITE
             > 481 PRACK 5
             < ACK 1
             * Acked",
        ),
        (
            "of an offer of ours, which their PRACK answers",
            "< INVITE 1 Require:100rel
             > 100 INVITE 1
             ! Ring
             ! EarlyMedia 1
             > 183 INVITE 1 Require:100rel RSeq:1 sdp=1
             ! Accept 1
             < PRACK 2 RAck:1_1_INVITE sdp=9
             > 200 INVITE 1 !Content-Type
             > 200 PRACK 2
             * OfferAnswered 9
             < ACK 1
             * Acked",
        ),
        (
            "of an offer of ours, which only their ACK answers",
            "< INVITE 1 Require:100rel
             > 100 INVITE 1
             ! EarlyMedia 1
             > 183 INVITE 1 RSeq:1 sdp=1
             < PRACK 2 RAck:1_1_INVITE
             > 200 PRACK 2
             ! Accept 1
             > 200 INVITE 1 sdp=1
             < ACK 1 sdp=9
             * Acked
             * OfferAnswered 9",
        ),
        (
            "are not wanted",
            "< INVITE 1 sdp=9 Supported:100rel
             > 100 INVITE 1
             ! Ring
             > 180 INVITE 1 !RSeq
             < PRACK 2 RAck:1_1_INVITE
             > 481 PRACK 2",
        ),
    ]);
}

#[test]
fn a_provisional_answer_that_nobody_acknowledges_ends_the_call() {
    let mut script = "< INVITE 1 sdp=9 Require:100rel\n> 100 INVITE 1\n! Ring\n> 180 INVITE 1\n@ 31999\n".to_owned();
    // At 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s.
    script += &"> 180 INVITE 1\n".repeat(6);
    script += "@ 1\n> 504 INVITE 1\n* NeverAcked\n< ACK 1\n* Gone";
    Script::callee("never", Transport::Tcp).run(&script);
}

#[test]
fn the_session_timer() {
    callees(&[
        (
            "too short",
            "< INVITE 1 sdp=9 Supported:timer Session-Expires:60
             > 422 INVITE 1 Min-SE:90
             < ACK 1
             * Gone",
        ),
        (
            "theirs, which they refresh",
            "< INVITE 1 sdp=9 Supported:timer Session-Expires:120
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 Session-Expires:120;refresher=uac Require:timer
             < ACK 1
             * Acked
             @ 60000
             < UPDATE 2 Supported:timer Session-Expires:120;refresher=uac
             > 200 UPDATE 2 Session-Expires:120;refresher=uac
             @ 87999
             @ 1
             > BYE 1
             * SessionExpired
             < 200 BYE 1
             * Gone",
        ),
        (
            "ours, by UPDATE",
            "< INVITE 1 sdp=9 Supported:timer Allow:INVITE,UPDATE
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 Session-Expires:1800;refresher=uas !Require
             < ACK 1
             * Acked
             @ 899999
             @ 1
             > UPDATE 1 Session-Expires:1800;refresher=uac
             < 200 UPDATE 1 Session-Expires:1800;refresher=uac
             @ 900000
             > UPDATE 2
             < 481 UPDATE 2
             > BYE 3
             * RemoteHungUp -",
        ),
        (
            "of a proxy, for a caller that knows none",
            "< INVITE 1 sdp=9 Session-Expires:60
             > 100 INVITE 1
             ! Accept 1
             > 200 INVITE 1 Session-Expires:90;refresher=uas !Require",
        ),
    ]);
}

#[test]
fn over_udp_the_same_invite_is_one_call() {
    Script::callee("udp", Transport::Udp).run(
        "< INVITE 1 sdp=9
         > 100 INVITE 1
         < INVITE 1 sdp=9
         > 100 INVITE 1
         ! Accept 1
         > 200 INVITE 1
         < INVITE 1 sdp=9
         < ACK 1
         * Acked
         < ACK 1
         < BYE 2
         > 200 BYE 2
         * RemoteHungUp -
         @ 32000
         * Gone",
    );
}
