//! A contact whose turn may come, and what it needs for that.
use crate::{
    eligibility::{Rule, Verdict},
    hours::CallingHours,
    law::Judged,
};
use entities::{
    contact::{Address, Model as Contact, SkipReason, WaitReason},
    ids::ContactId,
    values::Moment,
};
use std::cmp::Reverse;

/// A contact with what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub contact: Contact,
    pub address: Option<Address>,
    pub verdict: Verdict,
    /// That gave the verdict; `None`: all say yes.
    pub rule: Option<Rule>,
    /// Of one that is never dispatched: the rule of the law behind that, if it is one.
    pub law_rule: Option<String>,
    /// What the law says of it, and by what.
    pub judged: Option<Box<Judged>>,
}

impl Candidate {
    pub(super) fn is_ready(&self) -> bool {
        self.verdict == Verdict::Yes
    }

    /// Higher priorities first, then the list's order.
    pub(super) fn rank(&self) -> (i32, Reverse<ContactId>) {
        (self.contact.priority, Reverse(self.contact.id))
    }

    /// What becomes of it when it is not dispatched now; `None`: it stays as it is, and is read again.
    pub(super) fn settlement(&self) -> Option<Settlement> {
        match (self.verdict, self.rule) {
            (Verdict::Never(reason), _) => Some(Settlement::Skip(reason)),
            (Verdict::Wait(Some(until)), Some(Rule::Caps)) => Some(Settlement::Defer(until, WaitReason::Cap)),
            (Verdict::Wait(Some(until)), _) => {
                let reason = self.contact.wait_reason.unwrap_or(WaitReason::NotBefore);
                Some(Settlement::Defer(until, reason))
            }
            // The tenant is held up.
            (Verdict::Wait(None) | Verdict::Yes, _) => None,
        }
    }
}

/// That a contact is not dispatched at all, or not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    Skip(SkipReason),
    Defer(Moment, WaitReason),
}

/// A contact that may be called, or written to, and between which moments that may start.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub contact: Contact,
    pub address: Address,
    pub hours: Within,
    /// What the law says of it, and by what.
    pub judged: Option<Box<Judged>>,
}

/// Between which moments something may start: by our time, and by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    pub ours: (Moment, Moment),
    pub wall: (Moment, Moment),
}

impl Within {
    /// What starts at `at` and rings for `ring_ms`, while the wall clock is `behind_ms` behind our time.
    pub fn of(
        calling_hours: &CallingHours,
        at: Moment,
        ours: (Moment, Moment),
        (ring_ms, behind_ms): (i64, i64),
    ) -> Self {
        let wall = match calling_hours {
            _ if behind_ms == 0 => Some(ours),
            CallingHours::Hours(hours) => hours.wall_window(at.plus_millis(-behind_ms), ring_ms),
            CallingHours::Uncallable => None,
        };
        // A span that nothing lies in: the guard refuses it, and whoever planned it looks again.
        let never = (at, at.plus_millis(-1));
        Within {
            ours,
            wall: wall.unwrap_or(never),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::samples::{contact, noon};

    #[test]
    fn what_becomes_of_one_who_is_not_called_now() {
        use entities::contact::{SkipReason::*, WaitReason::*};
        let until = noon().plus_seconds(60);
        let wait = Verdict::Wait(Some(until));
        let defer = |reason| Some(Settlement::Defer(until, reason));
        let skip = |reason| Some(Settlement::Skip(reason));
        // The verdict, the rule that gave it, for what the contact has waited until now: what becomes of it.
        for (verdict, rule, waited_for, expected) in [
            (Verdict::Yes, None, None, None),
            (Verdict::Yes, None, Some(Retry), None),
            // The tenant is held up: nobody can say until when.
            (Verdict::Wait(None), Some(Rule::Credits), None, None),
            (Verdict::Wait(None), Some(Rule::Caps), Some(Retry), None),
            // A cap is its own reason, whatever it was before.
            (wait, Some(Rule::Caps), None, defer(Cap)),
            (wait, Some(Rule::Caps), Some(Retry), defer(Cap)),
            (wait, Some(Rule::Caps), Some(NotBefore), defer(Cap)),
            // Other rules only put it off: what it waits for stays.
            (wait, Some(Rule::Hours), Some(Retry), defer(Retry)),
            (wait, Some(Rule::Hours), Some(Cap), defer(Cap)),
            (wait, Some(Rule::Hours), None, defer(NotBefore)),
            (wait, Some(Rule::NotBefore), None, defer(NotBefore)),
            (wait, Some(Rule::NotBefore), Some(Retry), defer(Retry)),
            (wait, Some(Rule::Suspension), None, defer(NotBefore)),
            (Verdict::Never(Invalid), Some(Rule::Number), None, skip(Invalid)),
            (
                Verdict::Never(DncBlocked),
                Some(Rule::Dnc),
                Some(Retry),
                skip(DncBlocked),
            ),
            (
                Verdict::Never(TenantSuspended),
                Some(Rule::Suspension),
                None,
                skip(TenantSuspended),
            ),
            // Not put off: the cap is never free again in time, or is not waited for.
            (
                Verdict::Never(DailyCapReached),
                Some(Rule::Caps),
                Some(Cap),
                skip(DailyCapReached),
            ),
            (
                Verdict::Never(QuietHoursExpired),
                Some(Rule::Hours),
                Some(Retry),
                skip(QuietHoursExpired),
            ),
            // Nobody's verdict, but the campaign's own.
            (Verdict::Never(DailyCapReached), None, None, skip(DailyCapReached)),
        ] {
            let mut contact = contact(0, 0, "UTC");
            contact.wait_reason = waited_for;
            let candidate = Candidate {
                address: contact.reachable_at(),
                contact,
                verdict,
                rule,
                law_rule: None,
                judged: None,
            };
            let found = candidate.settlement();
            assert_eq!(found, expected, "{verdict:?} by {rule:?}, waited for {waited_for:?}");
        }
    }
}
