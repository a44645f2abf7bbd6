//! Whose turn it is in a queue: due retries, then priority, then the list's order.
use super::Queue;
use crate::{
    dispatch::{
        candidate::{Candidate, Turn, Within},
        group::Group,
        limiting::LimitingFactor,
        route::Route,
        usage::Allowance,
    },
    eligibility::{self, RING_MS, Rule, Verdict},
    hours::{CallingHours, OpenWindow},
    law::NoRoom,
    sms::text::SmsText,
};
use entities::{
    campaign::OnCap,
    contact::{SkipReason, Status},
    values::{E164, Moment},
};

enum Head<'a> {
    Due,
    Fresh(&'a str),
}

impl Queue {
    /// A contact that is not called now: it is skipped, or put off. Costs neither token nor slot.
    pub(in crate::dispatch) fn pop_settled(&mut self) -> Option<Candidate> {
        let is_settled = |candidate: &Candidate| !candidate.is_ready();
        if self.due.front().is_some_and(is_settled) {
            return self.due.pop_front();
        }
        let (is_lawful, ends_at) = (self.is_lawful(), self.rules.ends_at);
        for group in self.groups.values_mut() {
            if group.fresh.front().is_some_and(is_settled) {
                return group.fresh.pop_front();
            }
            if let Some(reason) = group.ends_as()
                && let Some(candidate) = group.fresh.pop_front()
            {
                let is_shut = is_lawful && reason == SkipReason::QuietHoursExpired;
                let judged = candidate.judged.as_ref().filter(|_| is_shut);
                let law_rule = judged.and_then(|judged| eligibility::shut_by(&judged.judgement, ends_at));
                return Some(Candidate {
                    verdict: Verdict::Never(reason),
                    law_rule,
                    ..candidate
                });
            }
        }
        None
    }

    /// Its own caps are reached for good, or for a day and it does not want to wait.
    pub(in crate::dispatch) fn caps_end_it(&self, now: Moment) -> bool {
        let skips = self.plan.caps.on_cap == OnCap::Skip;
        match self.allowance(now) {
            Allowance::Yes | Allowance::WhenOneEnds => false,
            Allowance::From(at) => skips || self.rules.ends_at.is_some_and(|end| at >= end),
            Allowance::Never => skips,
        }
    }

    /// A contact that the campaign's own caps leave out.
    pub(in crate::dispatch) fn pop_capped(&mut self) -> Option<Candidate> {
        let in_hand = self.left.pop_front().or_else(|| self.due.pop_front());
        let fresh = || self.groups.values_mut().find_map(|group| group.fresh.pop_front());
        let candidate = in_hand.or_else(fresh)?;
        let verdict = match candidate.verdict {
            // By its own cause, which comes first.
            Verdict::Never(reason) => Verdict::Never(reason),
            Verdict::Yes | Verdict::Wait(_) => Verdict::Never(SkipReason::DailyCapReached),
        };
        Some(Candidate { verdict, ..candidate })
    }

    /// Whose turn it is: due retries, then priority, then position.
    fn head(&self, at: Moment) -> Option<Head<'_>> {
        if self.rules.ends_at.is_some_and(|end| at >= end) {
            return None;
        }
        let ready = |candidate: &&Candidate| candidate.is_ready();
        let due = self
            .due
            .front()
            .filter(ready)
            .filter(|due| self.open_window_of(&due.contact.zone, at).is_some());
        if due.is_some_and(|due| due.contact.status == Status::Waiting) {
            return Some(Head::Due);
        }
        let fresh = self
            .groups
            .iter()
            .filter(|(_, group)| group.open_window(at).is_some())
            .filter_map(|(name, group)| Some((name, group.fresh.front().filter(ready)?)))
            .max_by_key(|(_, candidate)| candidate.rank());
        match (due, fresh) {
            (Some(due), Some((_, fresh))) if due.rank() > fresh.rank() => Some(Head::Due),
            (_, Some((name, _))) => Some(Head::Fresh(name)),
            (Some(_), None) => Some(Head::Due),
            (None, None) => None,
        }
    }

    pub(in crate::dispatch) fn has_turn(&self, at: Moment) -> bool {
        self.head(at).is_some()
    }

    /// The text of an SMS to whoever has that turn, as it leaves.
    pub(in crate::dispatch) fn text(&self, turn: &Turn, body: String) -> Result<SmsText, NoRoom> {
        match (&self.legal, &turn.judged) {
            (Some(legal), Some(judged)) => legal.text(&judged.facts, body),
            (_, _) => Ok(SmsText::of(body)),
        }
    }

    /// Since when the contact whose turn it is finds no slot, which is so now; `None`: it is nobody's turn. Another contact's
    /// wait is not its own.
    pub(in crate::dispatch) fn no_slot_since(&mut self, now: Moment) -> Option<Moment> {
        let next = match self.head(now)? {
            Head::Due => self.due.front(),
            Head::Fresh(name) => self.groups.get(name)?.fresh.front(),
        };
        let id = next?.contact.id;
        let since = match self.turn_since {
            Some((whose, since)) if whose == id => since,
            Some(_) | None => now,
        };
        self.turn_since = Some((id, since));
        Some(since)
    }

    /// Takes the contact whose turn it is, for a call that starts at `at`.
    pub(in crate::dispatch) fn pop_turn(&mut self, at: Moment) -> Option<Turn> {
        let (candidate, open_window) = match self.head(at)? {
            Head::Due => {
                let open_window = self
                    .due
                    .front()
                    .and_then(|due| self.open_window_of(&due.contact.zone, at))?;
                (self.due.pop_front()?, open_window)
            }
            Head::Fresh(name) => {
                let name = name.to_owned();
                let group = self.groups.get_mut(&name)?;
                let open_window = group.open_window(at)?;
                (group.fresh.pop_front()?, open_window)
            }
        };
        self.turn_since = None;
        let ours = (open_window.from, self.last_start(open_window));
        let hours = match self.behind_ms {
            0 => Within { ours, wall: ours },
            behind_ms => Within::of(&self.rules.of(&candidate.contact.zone), at, ours, (RING_MS, behind_ms)),
        };
        Some(Turn {
            address: candidate.address?,
            contact: candidate.contact,
            hours,
            judged: candidate.judged,
        })
    }

    /// When a call in this window may start at the latest: all its ringing lies inside, and the campaign has not ended.
    fn last_start(&self, open_window: OpenWindow) -> Moment {
        let closes = open_window.until.plus_millis(-RING_MS);
        self.rules.ends_at.map_or(closes, |end| closes.min(end.plus_millis(-1)))
    }

    pub(super) fn open_window_of(&self, zone: &str, at: Moment) -> Option<OpenWindow> {
        match self.rules.of(zone) {
            CallingHours::Hours(hours) => hours
                .open_window(at)
                .filter(|open_window| at.plus_millis(RING_MS) <= open_window.until),
            CallingHours::Uncallable => None,
        }
    }

    /// The rule of the law that lets nobody of a group be reached that could be otherwise.
    pub(in crate::dispatch) fn held_by(&self) -> Option<LimitingFactor> {
        let rule = self.groups.values().find_map(Group::held_by)?;
        Some(match rule {
            // A consent waits only for what a register has to say.
            Rule::Register | Rule::Reassigned | Rule::Consent => LimitingFactor::Register,
            Rule::CallerId => LimitingFactor::CallerId,
            Rule::Abandonment => LimitingFactor::Abandonment,
            _ => LimitingFactor::Disclosure,
        })
    }

    /// When this campaign may have something to dispatch that it has not now.
    pub(in crate::dispatch) fn wake_at(&self) -> Option<Moment> {
        let openings = self.groups.values().filter_map(Group::opens_at);
        openings.chain(self.next_due_at).min()
    }

    /// If everybody who is left is in their quiet hours: when the first of them may be called again.
    pub(in crate::dispatch) fn rests_until(&self, now: Moment) -> Option<Moment> {
        let waiting = self.waiting_zones.as_ref().filter(|_| self.wants_waiting_zones())?;
        let mut opens = self.groups.values().filter_map(Group::opens_at).min();
        for zone in waiting {
            let CallingHours::Hours(hours) = self.rules.of(zone) else {
                return None;
            };
            let at = hours
                .next_opening_by_both(now, RING_MS, self.behind_ms)
                .filter(|at| *at > now)?;
            opens = Some(opens.map_or(at, |opens| opens.min(at)));
        }
        opens
    }

    /// The caller ids take turns, those of each route for themselves, among those that may be shown to that person. `None`: whichever
    /// route.
    pub(in crate::dispatch) fn next_from_number(
        &mut self,
        route: Option<Route>,
        turn: &Turn,
        at: Moment,
    ) -> Option<E164> {
        let is_meant = |its: Route| route.is_none_or(|route| its == route);
        let legal = self.legal.as_ref();
        let next = match legal
            .filter(|legal| legal.is_enforced && legal.callers.len() > 1)
            .zip(turn.judged.as_ref())
        {
            Some((legal, judged)) => self.callers.next_shown(legal.shown_in(&judged.facts), at, is_meant),
            None => self.callers.next(at, is_meant),
        };
        let number = next?.number.clone();
        self.callers.called(&number);
        Some(number)
    }

    /// It cannot be written to yet, and stays the next: where it came from, for what is due is read anew without the fresh ones.
    pub(in crate::dispatch) fn put_back(&mut self, turn: Turn) {
        let candidate = Candidate {
            contact: turn.contact,
            address: Some(turn.address),
            verdict: Verdict::Yes,
            rule: None,
            law_rule: None,
            judged: turn.judged,
        };
        match self.groups.get_mut(&candidate.contact.zone) {
            Some(group) if candidate.contact.next_attempt_at.is_none() => group.fresh.push_front(candidate),
            Some(_) | None => self.due.push_front(candidate),
        }
    }
}
