//! Sessions that wait for a slot: the API's, and those that a trunk sent back. They come before campaigns' contacts.
use super::{
    candidate::Within,
    concurrency::Slot,
    funds,
    pace::{self, LEAD},
    queue::Queue,
    round::{ROUND, WakeAt},
    route::{Closed, Route},
    slots::Slots,
    snapshot::Snapshot,
};
use crate::{
    eligibility::{self, ContactRecord, Rule, Terms, Verdict, ring_ms},
    hours::{CallingHours, LawHours, Rules},
    session::{
        command::{Command, RejectReason},
        machine::cost,
    },
};
use entities::{
    Result,
    campaign::Caps,
    session::{Direction, Model as Row},
    values::{Cents, Env, Moment, Zone},
};

/// A round, as far as it has come.
pub struct Begun {
    pub slots: Slots,
    /// Sessions that have their turn in it.
    pub turns: usize,
    pub wake_at: WakeAt,
    /// What takes none of the sessions that wait.
    pub closed: Closed,
}

impl Begun {
    pub fn new(snapshot: &Snapshot, wake_at: WakeAt) -> Self {
        Begun {
            slots: snapshot.slots(),
            turns: 0,
            wake_at,
            closed: Closed::default(),
        }
    }
}

/// Has a session that waits its turn?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// At that moment, with so much set aside, if it may be called then.
    Turn { at: Moment, hold: Cents },
    /// Its campaign is paused: it waits with it, and is looked at again when that one changes.
    WithItsCampaign,
    /// A slot, credits, or its own end must come first.
    Stays,
    /// What it goes over takes no call now; those behind it may go over something else.
    NoTrunk,
    /// The limits of its API key leave no room now; those behind it may be somebody else's.
    KeyIsFull,
    /// The number that it shows has no trunk any more: it is told so.
    Nowhere,
    /// Neither it nor anybody behind it has a token now.
    NoToken,
}

/// `is_in_hand`: it was sent back a moment ago, and is let go of first.
pub fn admit(snapshot: &mut Snapshot, begun: &mut Begun, row: &Row, is_in_hand: bool, now: Moment) -> Admission {
    let env = row.env;
    let queue = row.campaign_id.map(|id| snapshot.campaigns.get(&id));
    if let Some(None) = queue {
        return Admission::WithItsCampaign;
    }
    let campaign_is_full = queue
        .flatten()
        .is_some_and(|queue| queue.is_braked() || !queue.has_slot_of_its_own(&begun.slots));
    if campaign_is_full || is_in_hand || snapshot.live.contains_key(&row.id) {
        return Admission::Stays;
    }
    if let Some(key) = row.api_key_id
        && let Some(until) = snapshot.keys.full_until(Some(key), most(row), now)
    {
        begun.closed.note_key(key);
        begun.wake_at.no_later_than(until);
        return Admission::KeyIsFull;
    }
    // Others may go over another one.
    let route = Route::of(env, row.trunk_id);
    if route == Route::Nowhere {
        return Admission::Nowhere;
    }
    let opens_at = snapshot.trunks.opens_at(route, &begun.slots, now);
    let Some(opens_at) = opens_at.filter(|at| *at <= now.plus(LEAD)) else {
        begun.closed.note(route);
        if let Some(at) = opens_at {
            begun.wake_at.no_later_than(pace::planned_from(at));
        }
        return Admission::NoTrunk;
    };
    // One that a trunk sent back has its hold.
    let wanted = match row.hold_cents {
        Cents(0) => snapshot
            .terms
            .hold(row.price_cents_per_minute, row.max_duration_seconds),
        _ => Cents(0),
    };
    snapshot.funds.want(env, snapshot.terms.least(wanted));
    let hold = snapshot.funds.for_call(&snapshot.terms, env, wanted);
    let is_blocked = snapshot.is_blocked(env);
    if hold.is_none() && !is_blocked {
        begun.wake_at.no_later_than(now.plus_seconds(funds::LOOK_SECONDS));
    }
    // Woken by what frees it; the other env's calls go on.
    let may = !is_blocked && begun.slots.tenant_has_one(env) && begun.turns < ROUND;
    let Some(hold) = hold.filter(|_| may) else {
        return Admission::Stays;
    };
    let at = snapshot.pace.earliest(now);
    if at > now.plus(LEAD) {
        begun.wake_at.no_later_than(pace::planned_from(at));
        return Admission::NoToken;
    }
    Admission::Turn {
        at: at.max(opens_at),
        hold,
    }
}

/// What it can cost.
fn most(row: &Row) -> Cents {
    cost(row.price_cents_per_minute, row.max_duration_seconds)
}

/// It may be called: takes what its call needs. False: the token is not due, after all.
pub fn take(snapshot: &mut Snapshot, begun: &mut Begun, row: &Row, (at, hold): (Moment, Cents)) -> bool {
    if !snapshot.spend(Some(Route::of(row.env, row.trunk_id)), at) {
        return false;
    }
    begun.turns += 1;
    begun.slots.take(Slot {
        env: row.env,
        campaign_id: row.campaign_id,
        direction: Direction::Outbound,
        trunk_id: row.trunk_id,
    });
    snapshot.funds.take(row.env, hold);
    snapshot.keys.take(row.api_key_id, most(row), at);
    true
}

/// What guards a session that waits.
pub struct Guards<'a> {
    /// Its campaign's; `None`: it is a direct call.
    pub queue: Option<&'a Queue>,
    /// The caps of direct calls.
    pub direct: &'a Caps,
    /// The workspace's.
    pub zone: Zone,
    pub behind_ms: i64,
    /// The law's windows, where it binds.
    pub law: Option<LawHours>,
}

impl Guards<'_> {
    fn rules(&self, row: &Row) -> Rules {
        match self.queue {
            Some(queue) => queue.rules.clone(),
            None => Rules::direct(row.env, self.zone).under(self.law.clone()),
        }
    }

    /// A call that a trunk sent back was counted when it was dialled.
    pub fn caps(&self) -> Caps {
        match self.queue {
            Some(_) => Caps {
                per_number_24h: None,
                per_number_7d: None,
                ..Caps::default()
            },
            None => self.direct.clone(),
        }
    }
}

/// Whether a session whose turn it is may be called.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Between these moments.
    Call(Within),
    /// It hears why not.
    Tell(Command),
    /// Not at that moment; it is looked at again.
    NotNow,
}

/// May a call be placed whose turn it is? It has a slot and is paid for, so those rules say yes. What the law wants of whoever calls may be
/// mended: it waits for that.
pub fn ruling(guards: &Guards<'_>, row: &Row, record: &ContactRecord, at: Moment) -> Result<Ruling> {
    let rules = guards.rules(row);
    let calling_hours = rules.of_person(row.callee()?, row.timezone, row.region());
    let ring_ms = ring_ms(row.ring_timeout_seconds);
    let behind_ms = guards.behind_ms;
    let terms = Terms {
        caps: &guards.caps(),
        ends_at: rules.ends_at,
        ring_ms,
        suspended_since: None,
        credits_gone: false,
        behind_ms,
    };
    let command = match eligibility::first_no(&Rule::ALL, record, &calling_hours, &terms, at) {
        None => {
            let CallingHours::Hours(hours) = &calling_hours else {
                return Ok(Ruling::NotNow);
            };
            return Ok(hours.open_window(at).map_or(Ruling::NotNow, |open_window| {
                let ours = (open_window.from, open_window.until.plus_millis(-ring_ms));
                Ruling::Call(Within::of(&calling_hours, at, ours, (ring_ms, behind_ms)))
            }));
        }
        Some((Rule::Hours, Verdict::Wait(Some(until)))) if row.scheduled_at.is_some() || guards.queue.is_some() => {
            Command::Postpone { until }
        }
        Some((Rule::Number, _)) if !record.has_number => Command::Reject(match row.env {
            Env::Test => RejectReason::NotVerified,
            Env::Live => RejectReason::OutOfReach,
        }),
        Some((Rule::Dnc, _)) => Command::Reject(RejectReason::OnDnc),
        Some((rule, Verdict::Wait(_))) if rule.is_of_the_law() => return Ok(Ruling::NotNow),
        Some((rule, _)) if rule.is_of_the_law() => Command::Reject(RejectReason::AgainstTheLaw),
        Some((Rule::Caps, _)) => Command::Reject(RejectReason::CapReached),
        Some(_) => Command::Reject(RejectReason::OutsideHours),
    };
    Ok(Ruling::Tell(command))
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
