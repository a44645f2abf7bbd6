//! RFC 3261 §13.2 and §9.1, RFC 3262 §4, and the lines of the table of expectations.
use super::*;

#[test]
fn answers_to_an_invite() {
    callers(&[
        (
            "answered",
            "> INVITE 1 sdp=1 Supported:100rel,_timer Session-Expires:1800;refresher=uac Min-SE:90 Max-Forwards:70
             < 100 INVITE 1
             * Trying
             < 100 INVITE 1
             < 180 INVITE 1
             * Rang 180
             < 180 INVITE 1
             < 200 INVITE 1 sdp=9
             * PickedUp 9
             > ACK 1
             ! HangUp 16
             > BYE 2 Reason:Q.850;cause=16
             < 200 BYE 2
             @ 32000
             * Gone",
        ),
        (
            "answered at once, hung up by them",
            "> INVITE 1
             < 200 INVITE 1 sdp=9
             * PickedUp 9
             > ACK 1
             < BYE 5 Reason:Q.850;cause=16;text=\"Bye\"
             > 200 BYE 5
             * RemoteHungUp 16
             ? settled
             @ 32000
             * Gone",
        ),
        (
            "early sound, and a 200 without a description",
            "> INVITE 1
             < 183 INVITE 1 sdp=8
             * Rang 183
             * Early 8
             < 183 INVITE 1 sdp=8
             < 180 INVITE 1
             * Rang 180
             < 200 INVITE 1
             * PickedUp 8
             > ACK 1",
        ),
        (
            "refused, by the cause of the network",
            "> INVITE 1
             < 486 INVITE 1 Reason:Q.850;cause=17
             > ACK 1
             * Refused 486 17 false
             * Gone",
        ),
        (
            "refused after it rang",
            "> INVITE 1
             < 180 INVITE 1
             * Rang 180
             < 503 INVITE 1 Retry-After:7
             > ACK 1
             * Refused 503 - true
             * Gone",
        ),
        (
            "sent elsewhere: not followed",
            "> INVITE 1
             < 302 INVITE 1
             > ACK 1
             * Refused 302 - false
             * Gone",
        ),
        (
            "nothing in 64·T1",
            "> INVITE 1
             @ 31999
             @ 1
             * NoAnswer
             * Gone",
        ),
        (
            "no connection",
            "> INVITE 1
             x
             * TransportFailed
             * Gone",
        ),
    ]);
}

#[test]
fn credentials() {
    callers(&[
        (
            "asked, and given",
            "> INVITE 1
             < 407 INVITE 1
             > ACK 1
             * Challenged 407 2
             ! Authorized
             > INVITE 2 Authorization:Digest sdp=1
             < 200 INVITE 2 sdp=9
             * PickedUp 9
             > ACK 2 Authorization:Digest",
        ),
        (
            "by proxy and peer, and no fourth time",
            "> INVITE 1
             < 407 INVITE 1
             > ACK 1
             * Challenged 407 2
             ! Authorized
             > INVITE 2
             < 401 INVITE 2
             > ACK 2
             * Challenged 401 3
             ! Authorized
             > INVITE 3
             < 401 INVITE 3
             > ACK 3
             * Challenged 401 4
             ! Authorized
             > INVITE 4
             < 401 INVITE 4
             > ACK 4
             * Refused 401 - false
             * Gone",
        ),
        (
            "none to give",
            "> INVITE 1
             < 401 INVITE 1
             > ACK 1
             * Challenged 401 2
             ! Unauthorized
             * Refused 401 - false
             * Gone",
        ),
        (
            "never given",
            "> INVITE 1
             < 401 INVITE 1
             > ACK 1
             * Challenged 401 2
             @ 10000
             * Refused 401 - false
             * Gone",
        ),
        (
            "cancelled meanwhile",
            "> INVITE 1
             < 401 INVITE 1
             > ACK 1
             * Challenged 401 2
             ! Cancel
             * Refused 487 - false
             * Gone
             ! Authorized",
        ),
        (
            "of a BYE",
            "> INVITE 1
             < 200 INVITE 1 sdp=9
             * PickedUp 9
             > ACK 1
             ! HangUp 16
             > BYE 2
             < 401 BYE 2
             * Challenged 401 3
             ! Authorized
             > BYE 3 Authorization:Digest Reason:Q.850;cause=16
             < 200 BYE 3
             @ 32000
             * Gone",
        ),
    ]);
}

#[test]
fn cancelling() {
    callers(&[
        (
            "while it rings",
            "> INVITE 1
             < 180 INVITE 1
             * Rang 180
             ! Cancel
             > CANCEL 1
             ! HangUp 16
             < 200 CANCEL 1
             < 487 INVITE 1
             > ACK 1
             * Refused 487 - true
             * Gone",
        ),
        (
            "before anything came: kept until then",
            "> INVITE 1
             ! HangUp 16
             < 100 INVITE 1
             > CANCEL 1
             < 180 INVITE 1
             < 200 CANCEL 1
             < 487 INVITE 1
             > ACK 1
             * Refused 487 - true
             * Gone",
        ),
        (
            "before anything came, and nothing comes",
            "> INVITE 1
             ! Cancel
             @ 32000
             * NoAnswer
             * Gone",
        ),
        (
            "crossed by the 200",
            "> INVITE 1
             < 180 INVITE 1
             * Rang 180
             ! Cancel
             > CANCEL 1
             < 200 INVITE 1 sdp=9
             > ACK 1
             > BYE 1001 Reason:Q.850;cause=16
             * Refused 487 - true
             < 200 CANCEL 1
             < 200 INVITE 1 sdp=9
             > ACK 1
             < 200 BYE 1001
             @ 32000
             * Gone",
        ),
        (
            "a refusal of another kind was faster",
            "> INVITE 1
             < 180 INVITE 1
             * Rang 180
             ! Cancel
             > CANCEL 1
             < 486 INVITE 1
             > ACK 1
             * Refused 486 - true
             < 481 CANCEL 1
             * Gone",
        ),
        (
            "challenged meanwhile: nobody proves anything for a call that is not wanted",
            "> INVITE 1
             ! Cancel
             < 401 INVITE 1
             > ACK 1
             * Refused 487 - false
             * Gone",
        ),
        (
            "picked up by the first try alone: the second is forgotten all the same",
            "> INVITE 1
             < 407 INVITE 1
             > ACK 1
             * Challenged 407 2
             ! Authorized
             > INVITE 2
             < 180 INVITE 2
             * Rang 180
             ! Cancel
             > CANCEL 2
             < 200 CANCEL 2
             < 200 INVITE 1 tag=c
             > ACK 1
             > BYE 1001
             < 200 BYE 1001
             @ 32000
             * Refused 487 - true
             * Gone",
        ),
        (
            "heeded by nobody: forgotten, but a late 200 is turned away",
            "> INVITE 1
             < 180 INVITE 1
             * Rang 180
             ! Cancel
             > CANCEL 1
             < 200 CANCEL 1
             @ 32000
             * Refused 487 - true
             * Gone
             < 200 INVITE 1
             > ACK 1
             > BYE 1001
             < 200 INVITE 1
             > ACK 1",
        ),
    ]);
}

#[test]
fn forks() {
    callers(&[(
        "the first stays, each other is turned away once",
        "> INVITE 1
         < 180 INVITE 1 tag=b
         * Rang 180
         < 183 INVITE 1 tag=c
         * Rang 183
         < 200 INVITE 1 tag=c sdp=9
         * PickedUp 9
         > ACK 1
         < 200 INVITE 1 tag=b sdp=8
         > ACK 1
         > BYE 1001
         < 200 INVITE 1 tag=b sdp=8
         > ACK 1
         < 200 INVITE 1 tag=c sdp=9
         > ACK 1
         < 200 BYE 1001
         < 200 INVITE 1 tag=d
         > ACK 1
         > BYE 1001
         < 481 BYE 1001
         < BYE 7 tag=b
         > 481 BYE 7
         < BYE 7 tag=c
         > 200 BYE 7
         * RemoteHungUp -
         @ 32000
         * Gone",
    )]);
}

#[test]
fn more_forks_than_eight_are_not_remembered() {
    let mut script = "> INVITE 1\n< 200 INVITE 1 tag=a sdp=9\n* PickedUp 9\n> ACK 1\n".to_owned();
    for fork in 0..7 {
        script += &format!("< 200 INVITE 1 tag=f{fork}\n> ACK 1\n> BYE 1001\n");
    }
    for fork in 8..40 {
        script += &format!("< 200 INVITE 1 tag=f{fork}\n");
    }
    // Each BYE of a fork has a branch of its own, or its answers would be another's.
    let script = Script::caller("forks", Transport::Tcp).run(&script);
    let mut branches: Vec<_> = script
        .sent
        .iter()
        .map(|request| request.top_via_branch().unwrap())
        .collect();
    let count = branches.len();
    branches.sort();
    branches.dedup();
    assert_eq!(branches.len(), count);
}

#[test]
fn reliable_provisional_answers() {
    callers(&[
        (
            "in their order",
            "> INVITE 1
             < 183 INVITE 1 Require:100rel RSeq:41 sdp=8
             > PRACK 2 RAck:41_1_INVITE
             * Rang 183
             * Early 8
             < 183 INVITE 1 Require:100rel RSeq:41 sdp=8
             < 180 INVITE 1 Require:100rel RSeq:43
             < 200 PRACK 2
             < 180 INVITE 1 Require:100rel RSeq:42
             > PRACK 3 RAck:42_1_INVITE
             * Rang 180
             < 200 PRACK 3
             < 200 INVITE 1
             * PickedUp 8
             > ACK 1
             ! HangUp 16
             > BYE 4",
        ),
        (
            "without a number: not told, but it may have rung",
            "> INVITE 1
             < 180 INVITE 1 Require:100rel
             < 503 INVITE 1
             > ACK 1
             * Refused 503 - true
             * Gone",
        ),
        (
            "with credentials: each PRACK has a number of its own",
            "> INVITE 1
             < 183 INVITE 1 Require:100rel RSeq:1
             > PRACK 2
             * Rang 183
             < 407 PRACK 2
             * Challenged 407 3
             ! Authorized
             > PRACK 3 Authorization:Digest RAck:1_1_INVITE
             < 200 PRACK 3
             < 180 INVITE 1 Require:100rel RSeq:2
             > PRACK 4 RAck:2_1_INVITE
             * Rang 180
             < 200 PRACK 4
             < 200 INVITE 1 sdp=9
             * PickedUp 9
             > ACK 1
             ! HangUp 16
             > BYE 5",
        ),
        (
            "of two peers, each counting for itself",
            "> INVITE 1
             < 180 INVITE 1 tag=b Require:100rel RSeq:1
             > PRACK 2 RAck:1_1_INVITE
             * Rang 180
             < 183 INVITE 1 tag=c Require:100rel RSeq:1
             > PRACK 2 RAck:1_1_INVITE
             * Rang 183",
        ),
    ]);
}

#[test]
fn the_interval_of_the_session_timer() {
    callers(&[
        (
            "longer, once",
            "> INVITE 1 Session-Expires:1800;refresher=uac
             < 422 INVITE 1 Min-SE:3600
             > ACK 1
             > INVITE 2 Session-Expires:3600;refresher=uac Min-SE:3600 sdp=1
             < 422 INVITE 2 Min-SE:7200
             > ACK 2
             * Refused 422 - false
             * Gone",
        ),
        (
            "longer, with credentials whose count goes on",
            "> INVITE 1
             < 401 INVITE 1
             > ACK 1
             * Challenged 401 2
             ! Authorized
             > INVITE 2 Authorization:Digest
             < 422 INVITE 2 Min-SE:3600
             > ACK 2
             * Challenged 422 3
             ! Authorized
             > INVITE 3 Session-Expires:3600;refresher=uac
             < 422 INVITE 3 Min-SE:7200
             > ACK 3
             * Refused 422 - false
             * Gone",
        ),
        (
            "longer, and there are no credentials any more",
            "> INVITE 1
             < 401 INVITE 1
             > ACK 1
             * Challenged 401 2
             ! Authorized
             > INVITE 2
             < 422 INVITE 2 Min-SE:3600
             > ACK 2
             * Challenged 422 3
             ! Unauthorized
             * Refused 422 - false
             * Gone",
        ),
        (
            "without a number",
            "> INVITE 1
             < 422 INVITE 1
             > ACK 1
             * Refused 422 - false
             * Gone",
        ),
    ]);
}

/// A lost INVITE, and a lost ACK: over UDP both are sent again, and never another INVITE.
#[test]
fn over_udp_messages_are_repeated() {
    Script::caller("udp", Transport::Udp).run(
        "> INVITE 1
         @ 500
         > INVITE 1
         @ 1000
         > INVITE 1
         < 200 INVITE 1 sdp=9
         * PickedUp 9
         > ACK 1
         < 200 INVITE 1 sdp=9
         > ACK 1
         ! HangUp 31
         > BYE 2
         @ 500
         > BYE 2
         < BYE 3
         > 200 BYE 3
         < BYE 3
         > 200 BYE 3
         < 481 BYE 2
         @ 32000
         * Gone",
    );
}
