//! What a number's proof does, line by line; and how many codes there are.
use super::*;

fn at(second: i64) -> Moment {
    Moment::from_millis(1_700_000_000_000).plus_seconds(second)
}
fn pending(wrong_tries: i32) -> Option<Phase> {
    Some(Phase::Pending {
        expires_at: at(GOOD_FOR_SECONDS),
        wrong_tries,
    })
}
fn claiming(wrong_tries: i32) -> Option<Phase> {
    Some(Phase::Claiming {
        at: at(-1),
        expires_at: at(GOOD_FOR_SECONDS),
        wrong_tries,
    })
}
const ASK: Command = Command::Ask { claims: false };
const CLAIM: Command = Command::Ask { claims: true };
const RIGHT: Command = Command::Confirm { right: true };
const WRONG: Command = Command::Confirm { right: false };

#[test]
fn every_state_and_command() {
    let proven = Phase::Verified { at: at(-1) };
    let verified = Some(proven);
    let fresh = |second: i64| Phase::Pending {
        expires_at: at(second + GOOD_FOR_SECONDS),
        wrong_tries: 0,
    };
    let last = GOOD_FOR_SECONDS - 1;
    let table = [
        (None, ASK, 0, Ok((fresh(0), Said::Done))),
        (None, RIGHT, 0, Err("no such verified number")),
        (None, WRONG, 0, Err("no such verified number")),
        (pending(0), ASK, 5, Ok((fresh(5), Said::Done))),
        (pending(TRIES), ASK, 5, Ok((fresh(5), Said::Done))),
        (
            pending(2),
            ASK,
            GOOD_FOR_SECONDS + 9,
            Ok((fresh(GOOD_FOR_SECONDS + 9), Said::Done)),
        ),
        (
            pending(0),
            RIGHT,
            last,
            Ok((Phase::Verified { at: at(last) }, Said::Done)),
        ),
        (
            pending(TRIES - 1),
            RIGHT,
            1,
            Ok((Phase::Verified { at: at(1) }, Said::Done)),
        ),
        (pending(0), WRONG, 1, Ok((pending(1).unwrap(), Said::Wrong { left: 4 }))),
        (
            pending(TRIES - 1),
            WRONG,
            1,
            Ok((pending(TRIES).unwrap(), Said::Wrong { left: 0 })),
        ),
        (pending(TRIES), RIGHT, 1, Err("too many codes were wrong")),
        (pending(TRIES), WRONG, 1, Err("too many codes were wrong")),
        (pending(0), RIGHT, GOOD_FOR_SECONDS, Err("has expired")),
        (pending(0), WRONG, GOOD_FOR_SECONDS, Err("has expired")),
        (verified, ASK, 1, Err("phone_number is already taken")),
        (None, CLAIM, 0, Ok((fresh(0), Said::Done))),
        (pending(3), CLAIM, 5, Ok((fresh(5), Said::Done))),
        (verified, CLAIM, 0, Ok((claiming(0).unwrap(), Said::Done))),
        (claiming(TRIES), CLAIM, 0, Ok((claiming(0).unwrap(), Said::Done))),
        (claiming(2), ASK, 1, Err("phone_number is already taken")),
        (
            claiming(0),
            RIGHT,
            last,
            Ok((Phase::Verified { at: at(last) }, Said::Done)),
        ),
        (
            claiming(0),
            WRONG,
            1,
            Ok((claiming(1).unwrap(), Said::Wrong { left: 4 })),
        ),
        (claiming(TRIES), RIGHT, 1, Err("too many codes were wrong")),
        (claiming(TRIES), WRONG, 1, Err("too many codes were wrong")),
        (claiming(0), RIGHT, GOOD_FOR_SECONDS, Err("has expired")),
        (claiming(0), WRONG, GOOD_FOR_SECONDS, Err("has expired")),
        (verified, RIGHT, 1, Ok((proven, Said::Done))),
        (verified, WRONG, 1, Ok((proven, Said::Done))),
    ];
    for (phase, command, second, expected) in table {
        let found = transition(phase, command, at(second));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{phase:?} {command:?}"),
            (Err(error), Err(words)) => {
                let said = error.to_string();
                assert!(said.contains(words), "{phase:?} {command:?}: {said}");
            }
            (found, _) => panic!("{phase:?} {command:?} at {second}: {found:?}"),
        }
    }
}

#[test]
fn five_codes_an_hour_for_a_number_and_fifty_for_a_workspace() {
    let made: Vec<Moment> = (0..5).map(|minute| at(minute * 60)).collect();
    assert_eq!(too_many(&made[..4], &made[..4], at(300)), None);
    assert_eq!(
        too_many(&made, &made, at(300)),
        Some(at(WINDOW_SECONDS)),
        "until the first is an hour old"
    );
    assert_eq!(too_many(&made, &made, at(WINDOW_SECONDS)), None);
    let all: Vec<Moment> = (0..50).map(at).collect();
    assert_eq!(too_many(&[], &all[..49], at(60)), None);
    assert_eq!(too_many(&[], &all, at(60)), Some(at(WINDOW_SECONDS)));
    assert_eq!(too_many(&made, &all, at(300)), Some(at(WINDOW_SECONDS)));
}
