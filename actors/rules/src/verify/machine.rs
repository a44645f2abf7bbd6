//! Whose a number is, proved by a code. Nothing -> Pending -> Verified <-> Claiming. What is verified stays so, until it is
//! deleted, whatever becomes of a code that shall claim it for live use.
//!
//! | From | Command | To |
//! |---|---|---|
//! | nothing, Pending | Ask | Pending with the new code; the old one is good for nothing |
//! | Verified, Claiming | Ask, and the code would claim the number | Claiming with the new code |
//! | Verified, Claiming | Ask, and it would not | refused: there is nothing to prove |
//! | Pending or Claiming, in time, tries left | Confirm, right | Verified |
//! | Pending or Claiming, in time, tries left | Confirm, wrong | the same, one try less |
//! | Pending or Claiming, too late or no tries left | Confirm, right or wrong | refused: ask again |
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
    Pending {
        expires_at: Moment,
        wrong_tries: i32,
    },
    Verified {
        at: Moment,
    },
    /// Verified, and one more code is waited for, which came to the number.
    Claiming {
        at: Moment,
        expires_at: Moment,
        wrong_tries: i32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A new code was made. Would it claim the number for live use, and has the workspace not claimed it?
    Ask { claims: bool },
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
    let expires_at = now.plus_seconds(GOOD_FOR_SECONDS);
    match (phase, command) {
        (None | Some(Phase::Pending { .. }), Command::Ask { .. }) => {
            let asked = Phase::Pending {
                expires_at,
                wrong_tries: 0,
            };
            Ok((asked, Said::Done))
        }
        (Some(Phase::Verified { at } | Phase::Claiming { at, .. }), Command::Ask { claims: true }) => {
            let asked = Phase::Claiming {
                at,
                expires_at,
                wrong_tries: 0,
            };
            Ok((asked, Said::Done))
        }
        (Some(Phase::Verified { .. } | Phase::Claiming { .. }), Command::Ask { claims: false }) => {
            Err(Error::AlreadyExists { field: "phone_number" })
        }
        (
            Some(
                waiting @ (Phase::Pending {
                    expires_at,
                    wrong_tries,
                }
                | Phase::Claiming {
                    expires_at,
                    wrong_tries,
                    ..
                }),
            ),
            Command::Confirm { right },
        ) => {
            check_code(expires_at, wrong_tries, now)?;
            Ok(match right {
                true => (Phase::Verified { at: now }, Said::Done),
                false => missed(waiting, wrong_tries + 1),
            })
        }
        // A second time is no change, not an error.
        (Some(verified @ Phase::Verified { .. }), Command::Confirm { .. }) => Ok((verified, Said::Done)),
        (None, Command::Confirm { .. }) => Err(Error::NotFound("verified number")),
    }
}

/// Is the code still good for anything?
fn check_code(expires_at: Moment, wrong_tries: i32, now: Moment) -> Result<()> {
    if wrong_tries >= TRIES {
        return Err(refused("pending", "too many codes were wrong; ask for a new one"));
    }
    if now >= expires_at {
        return Err(refused("pending", "its code has expired; ask for a new one"));
    }
    Ok(())
}

/// The code was wrong for the `wrong_tries`th time.
fn missed(waiting: Phase, wrong_tries: i32) -> (Phase, Said) {
    let after = match waiting {
        Phase::Pending { expires_at, .. } => Phase::Pending {
            expires_at,
            wrong_tries,
        },
        Phase::Claiming { at, expires_at, .. } => Phase::Claiming {
            at,
            expires_at,
            wrong_tries,
        },
        verified @ Phase::Verified { .. } => verified,
    };
    let left = TRIES - wrong_tries;
    (after, Said::Wrong { left })
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
#[path = "machine_tests.rs"]
mod tests;
