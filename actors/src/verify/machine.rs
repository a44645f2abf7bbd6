//! Whose a number is, proved by a code. Nothing -> Pending -> Verified; Verified is final, until it is deleted.
//!
//! | From | Command | To |
//! |---|---|---|
//! | nothing, Pending | Ask | Pending with the new code; the old one is good for nothing |
//! | Verified | Ask | refused: there is nothing to prove |
//! | Pending, in time, tries left | Confirm, right | Verified |
//! | Pending, in time, tries left | Confirm, wrong | Pending, one try less |
//! | Pending, too late or no tries left | Confirm, right or wrong | refused: ask again |
//! | Verified | Confirm, right or wrong | no change |
//!
//! Before a code is made at all, [`too_many`] is asked.
use entities::{Error, Result, values::Moment};

/// Seconds for which a code is good.
pub const GOOD_FOR_SECONDS: i64 = 600;
/// Wrong tries that a code survives less one: with the fifth it is good for nothing.
pub const TRIES: i32 = 5;
/// Codes for one number, and for all of a workspace's numbers, in [`WINDOW_SECONDS`].
pub const CODES_PER_NUMBER: usize = 5;
pub const CODES_PER_TENANT: usize = 50;
pub const WINDOW_SECONDS: i64 = 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending { expires_at: Moment, wrong_tries: i32 },
    Verified { at: Moment },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A new code was made.
    Ask,
    /// Somebody says the code; is it the right one?
    Confirm { right: bool },
}

/// What was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Done,
    /// The code was wrong; so many tries are left.
    Wrong {
        left: i32,
    },
}

/// The whole life of a verification. Pure.
pub fn transition(phase: Option<Phase>, command: Command, now: Moment) -> Result<(Phase, Said)> {
    match (phase, command) {
        (None | Some(Phase::Pending { .. }), Command::Ask) => {
            let expires_at = now.plus_seconds(GOOD_FOR_SECONDS);
            let asked = Phase::Pending {
                expires_at,
                wrong_tries: 0,
            };
            Ok((asked, Said::Done))
        }
        (Some(Phase::Verified { .. }), Command::Ask) => Err(Error::AlreadyExists { field: "phone_number" }),
        (Some(Phase::Pending { wrong_tries, .. }), Command::Confirm { .. }) if wrong_tries >= TRIES => {
            Err(refused("pending", "too many codes were wrong; ask for a new one"))
        }
        (Some(Phase::Pending { expires_at, .. }), Command::Confirm { .. }) if now >= expires_at => {
            Err(refused("pending", "its code has expired; ask for a new one"))
        }
        (Some(Phase::Pending { .. }), Command::Confirm { right: true }) => {
            Ok((Phase::Verified { at: now }, Said::Done))
        }
        (
            Some(Phase::Pending {
                expires_at,
                wrong_tries,
            }),
            Command::Confirm { right: false },
        ) => {
            let wrong_tries = wrong_tries + 1;
            let left = TRIES - wrong_tries;
            Ok((
                Phase::Pending {
                    expires_at,
                    wrong_tries,
                },
                Said::Wrong { left },
            ))
        }
        // A second time is no change, not an error.
        (Some(verified @ Phase::Verified { .. }), Command::Confirm { .. }) => Ok((verified, Said::Done)),
        (None, Command::Confirm { .. }) => Err(Error::NotFound("verified number")),
    }
}

fn refused(state: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "verified number",
        state,
        command: "be confirmed",
        hint,
    }
}

/// Until when no further code may be made: those of the last [`WINDOW_SECONDS`], for this number and for all, the oldest first.
pub fn too_many(of_number: &[Moment], of_tenant: &[Moment], now: Moment) -> Option<Moment> {
    let frees = |made: &[Moment], most: usize| {
        let since = now.plus_seconds(-WINDOW_SECONDS);
        let recent: Vec<_> = made.iter().filter(|at| **at > since).collect();
        let oldest = recent.len().checked_sub(most).and_then(|at| recent.get(at));
        oldest.map(|at| at.plus_seconds(WINDOW_SECONDS))
    };
    frees(of_number, CODES_PER_NUMBER).max(frees(of_tenant, CODES_PER_TENANT))
}

#[cfg(test)]
mod tests {
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
            (None, Command::Ask, 0, Ok((fresh(0), Said::Done))),
            (None, RIGHT, 0, Err("no such verified number")),
            (None, WRONG, 0, Err("no such verified number")),
            (pending(0), Command::Ask, 5, Ok((fresh(5), Said::Done))),
            (pending(TRIES), Command::Ask, 5, Ok((fresh(5), Said::Done))),
            (
                pending(2),
                Command::Ask,
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
            (verified, Command::Ask, 1, Err("phone_number is already taken")),
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
}
