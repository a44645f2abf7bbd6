//! What a trunk's peer has shown, in one look: does it answer, and does it take us for who we say we are?
use super::board::Refused;
use sip::registration::State;

/// What is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Has its host led to an address?
    pub is_found: bool,
    /// To OPTIONS. `None`: nobody asks, or nothing is known yet.
    pub answers: Option<bool>,
    /// `None`: we do not register.
    pub registration: Option<&'a State>,
    /// Does a binding stand, whatever becomes of its refresh?
    pub is_bound: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub up: bool,
    pub refused: Option<Refused>,
}

/// A trunk that registers is up once it has: before, no call comes in, and carriers refuse what goes out. One that does not is up
/// until two requests were met with silence: whoever dials over it finds out.
pub fn standing(known: Known<'_>) -> Standing {
    let refused = match known.registration {
        Some(State::Refused { code, reason, .. }) => Some(Refused {
            sip_code: *code,
            reason: reason.clone(),
        }),
        Some(State::Off | State::Registering | State::Registered { .. } | State::Failed { .. }) | None => None,
    };
    let may_call = known.registration.is_none() || known.is_bound;
    Standing {
        up: known.is_found && known.answers != Some(false) && may_call,
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_trunk_stands_as_its_peer_shows() {
        let now = Instant::now();
        let registered = State::Registered { until: now };
        let failed = State::Failed { next_try: now };
        let refused = State::Refused {
            code: 403,
            reason: "Forbidden".into(),
            next_try: now,
        };
        // Found, answers, registration, bound: up, refused.
        let table = [
            (false, None, None, false, false, false),
            (true, None, None, false, true, false),
            (true, Some(true), None, false, true, false),
            (true, Some(false), None, false, false, false),
            (true, None, Some(&State::Off), false, false, false),
            (true, None, Some(&State::Registering), false, false, false),
            (true, None, Some(&registered), true, true, false),
            (true, Some(false), Some(&registered), true, false, false),
            (true, Some(true), Some(&State::Registering), true, true, false),
            (true, None, Some(&failed), true, true, false),
            (true, Some(true), Some(&failed), false, false, false),
            (true, Some(true), Some(&refused), false, false, true),
            // The registrar takes us no more, though the binding of before stands.
            (true, Some(true), Some(&refused), true, true, true),
            (false, None, Some(&registered), true, false, false),
        ];
        for (is_found, answers, registration, is_bound, up, is_refused) in table {
            let known = Known {
                is_found,
                answers,
                registration,
                is_bound,
            };
            let Standing { up: is_up, refused } = standing(known);
            assert_eq!((is_up, refused.is_some()), (up, is_refused), "{known:?}");
        }
    }
}
