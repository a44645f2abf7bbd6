//! What one running campaign has to dispatch: a small window of its contacts, its hours and its pace.
//!
//! Fresh contacts are read by groups that keep the same hours, so that a closed group costs nothing; what waits for a time
//! is read when the time has come. Memory does not grow with the list.
use super::funds::Funds;
use crate::{
    deps::Deps,
    people::{People, people},
    session::caller_id,
};
use entities::{
    Error, Result,
    campaign::{AgentSnapshot, Channel, Model as Row, Plan},
    campaign_hour,
    contact::{self, Address, Model as Contact, Status},
    ids::{CampaignId, TenantId},
    session,
    values::{Cents, E164, Env, Moment, Zone},
};
use rules::{
    campaign::letter::Letter,
    dispatch::pace::Pace,
    eligibility::{self, RING_MS, Rule, Terms, Verdict},
    hours::{self, Rules, Spell, Standing},
    session::{
        machine::cost,
        settings::{self, Asked},
    },
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Contacts read at once.
const WINDOW: u64 = 128;
/// Contacts read at once of each of many groups.
const SMALL_WINDOW: u64 = 16;

pub struct Queue {
    pub id: CampaignId,
    pub version: i32,
    pub env: Env,
    pub plan: Plan,
    /// Who calls; `None`: it writes.
    pub agent: Option<Arc<AgentSnapshot>>,
    /// What it writes; `None`: it calls.
    pub letter: Option<Arc<Letter>>,
    /// How its calls are handled.
    pub options: session::Options,
    pub rules: Rules,
    pub pace: Pace,
    pub day: Day,
    pub budget: Budget,
    /// What each of its calls, if there is so much, or of its messages sets aside.
    pub hold: Cents,
    /// The least that one of its messages costs.
    least: Cents,
    /// The most that one of them costs.
    dearest: Cents,
    /// As many of its messages as may be are on their way.
    pub door_is_shut: bool,
    /// How far the wall clock was behind our time when the hours were last looked at.
    behind_ms: i64,
    groups: BTreeMap<String, Group>,
    /// Read because their time had come.
    due: VecDeque<Candidate>,
    /// Read because nobody of them is called any more.
    left: VecDeque<Candidate>,
    /// There may be some.
    has_left: bool,
    /// When the next contact's time comes, as far as is known.
    next_due_at: Option<Moment>,
    /// Contacts may have begun to wait, or to be fresh, since the rows were read.
    look_for_due: bool,
    /// Who waits is judged by other rules just now: of them nobody is dispatched until that is done.
    pub in_review: bool,
    pub rules_version: i32,
    /// A call has ended, so there may be more that was spent.
    look_for_costs: bool,
    /// Since when the contact whose turn it is finds no slot.
    pub turn_since: Option<Moment>,
    next_from: usize,
}

/// Calls of a campaign in its local day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    pub dialed: i64,
    pub ends: Moment,
}

/// What a campaign has cost, and what its calls in flight may cost yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub spent_cents: i64,
    pub reserved_cents: i64,
}

/// Contacts that keep the same hours.
struct Group {
    standing: Standing,
    /// What is known of its hours, and until when that holds.
    hours: HoursNow,
    fresh: VecDeque<Candidate>,
    /// No fresh contact is left.
    exhausted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoursNow {
    Unknown,
    Open(Spell),
    Closed {
        until: Moment,
    },
    /// Nobody of the group can be called any more.
    Never,
}

/// A contact with what is known of it.
pub struct Candidate {
    pub contact: Contact,
    pub address: Option<Address>,
    pub verdict: Verdict,
    pub rule: Option<Rule>,
}

/// A contact that may be called, or written to, and between which moments that may start.
pub struct Turn {
    pub contact: Contact,
    pub address: Address,
    pub hours: Within,
}

/// Between which moments something may start: by our time, and by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    pub ours: (Moment, Moment),
    pub wall: (Moment, Moment),
}

impl Within {
    /// What starts at `at` and rings for `ring_ms`, while the wall clock is `behind_ms` behind our time.
    pub fn of(standing: &Standing, at: Moment, ours: (Moment, Moment), (ring_ms, behind_ms): (i64, i64)) -> Self {
        let wall = match standing {
            _ if behind_ms == 0 => Some(ours),
            Standing::Hours(hours) => hours.wall_spell(at.plus_millis(-behind_ms), ring_ms),
            Standing::Uncallable => None,
        };
        // A span that nothing lies in: the guard refuses it, and whoever planned it looks again.
        let never = (at, at.plus_millis(-1));
        Within {
            ours,
            wall: wall.unwrap_or(never),
        }
    }
}

/// What the tenant's own state says to all its campaigns.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    pub tenant: TenantId,
    pub zone: Zone,
    pub suspended_since: Option<Moment>,
    pub credits_gone: bool,
}

impl Queue {
    /// `old` is the same campaign's queue before: its pace runs on.
    pub async fn of(row: Row, old: Option<Queue>, zone: Zone, deps: &Deps) -> Result<Self> {
        let rate = row.plan.pacing.calls_per_second.get();
        let (pace, next_from, turn_since, dearest_yet) = match old {
            Some(old) => (old.pace.at_rate(rate), old.next_from, old.turn_since, old.dearest),
            None => (Pace::new(rate), 0, None, Cents(0)),
        };
        let missing = || Error::Corrupt {
            table: "campaigns",
            column: "agent",
            id: row.id.to_string(),
        };
        let letter = Letter::read(&row.plan)?;
        let agent = row.agent.clone();
        if letter.is_none() && agent.is_none() {
            return Err(missing());
        }
        let rules = Rules::new(&row.plan.schedule, row.env, zone);
        let db = &deps.db.read;
        let times = deps.clock.times();
        // By the clock whose day began earlier, and ends later.
        let (begins, ends) = hours::day_of(rules.zone, times.earlier());
        let ends = ends.plus_millis(times.behind_ms().max(0));
        let dialed = match row.plan.caps.campaign_per_day {
            Some(_) => campaign_hour::dialed_since(db, row.id, begins).await?,
            None => 0,
        };
        let spent_cents = match row.plan.caps.budget_cents {
            Some(_) => entities::tally::load(db, row.id).await?.cost_cents,
            None => 0,
        };
        let asked = Asked {
            voicemail: row.plan.voicemail.clone(),
            dispositions: &row.plan.dispositions,
            ..Asked::default()
        };
        let options = agent.as_ref().map(|agent| settings::options(&agent.definition, asked));
        let mut plan = row.plan;
        if plan.from_numbers.is_empty() && plan.channel == Channel::Phone {
            let default = caller_id::default_of(db, (row.tenant_id, row.env)).await?;
            plan.from_numbers.extend(default);
        }
        let limits = &deps.limits;
        let (hold, dearest) = match (&letter, &agent) {
            // Longer texts with their variables show when they are written.
            (Some(Letter::Sms(_)), _) => {
                let price = Cents(limits.sms_price_cents_per_segment.into());
                (price, price.max(dearest_yet))
            }
            (Some(Letter::Email(_)), _) => {
                let price = Cents(limits.email_price_cents.into());
                (price, price)
            }
            (None, agent) => {
                let seconds = agent
                    .as_ref()
                    .map_or(0, |agent| agent.definition.max_duration_seconds.get());
                let price = limits.call_price_cents_per_minute;
                (limits.credits.hold(price, seconds), cost(price, seconds))
            }
        };
        let mut queue = Queue {
            hold,
            least: hold,
            dearest,
            door_is_shut: false,
            letter: letter.map(Arc::new),
            id: row.id,
            version: row.version,
            env: row.env,
            plan,
            agent: agent.map(Arc::new),
            options: options.unwrap_or_default(),
            rules,
            pace,
            day: Day { dialed, ends },
            budget: Budget {
                spent_cents,
                reserved_cents: 0,
            },
            behind_ms: times.behind_ms(),
            groups: BTreeMap::new(),
            due: VecDeque::new(),
            left: VecDeque::new(),
            has_left: true,
            next_due_at: None,
            look_for_due: true,
            rules_version: row.rules_version,
            in_review: row.review_of.is_some(),
            look_for_costs: false,
            turn_since,
            next_from,
        };
        for name in contact::fresh_zones(db, queue.id).await? {
            queue.group(&name);
        }
        Ok(queue)
    }

    fn group(&mut self, name: &str) -> &mut Group {
        let rules = &self.rules;
        self.groups.entry(name.to_owned()).or_insert_with(|| Group {
            standing: rules.of(name),
            hours: HoursNow::Unknown,
            fresh: VecDeque::new(),
            exhausted: false,
        })
    }

    /// A live campaign whose last number with a trunk is gone: there is nobody to call as.
    pub fn lacks_caller(&self) -> bool {
        self.letter.is_none() && self.plan.from_numbers.is_empty()
    }

    pub fn weight(&self) -> i64 {
        i64::from(self.plan.pacing.weight.get())
    }

    /// A call has ended: its contact may have begun to wait, and it may have cost something.
    pub fn one_ended(&mut self) {
        // Without retries nobody begins to wait.
        self.look_for_due |= self.plan.retry.max_attempts.get() > 1;
        self.look_for_costs = self.plan.caps.budget_cents.is_some();
    }

    /// A contact was put off.
    pub fn one_deferred(&mut self) {
        self.look_for_due = true;
    }

    /// Reads the next contacts of everybody who may be called now, if none of them are at hand.
    pub async fn refill(&mut self, deps: &Deps, now: Moment, so: Circumstances) -> Result<()> {
        let db = &deps.db.read;
        self.behind_ms = deps.clock.times().behind_ms();
        if self.look_for_costs {
            self.budget.spent_cents = entities::tally::load(db, self.id).await?.cost_cents;
            self.look_for_costs = false;
        }
        // The hours of who was read may have ended since: they are put off.
        let is_late = |due: &Candidate| due.verdict == Verdict::Yes && self.spell_of(&due.contact.zone, now).is_none();
        if self.due.front().is_some_and(is_late) {
            self.due.clear();
            self.look_for_due = true;
        }
        let may_be_due = self.look_for_due || self.next_due_at.is_some_and(|at| at <= now);
        if may_be_due && self.due.is_empty() && !self.in_review {
            let due = contact::due(db, self.id, now, WINDOW).await?;
            self.next_due_at = if due.is_empty() {
                contact::next_due_at(db, self.id).await?
            } else {
                Some(now)
            };
            self.look_for_due = false;
            let mut due = self.judged(deps, due, now, so).await?;
            // Retries first, the longest due first; then those who had to wait for a time, as they rank.
            due.sort_by_key(|candidate| {
                let is_retry = candidate.contact.status == Status::Waiting;
                (!is_retry, std::cmp::Reverse((!is_retry).then(|| rank(candidate))))
            });
            self.due = due.into();
        }
        let ends_at = self.rules.ends_at;
        for group in self.groups.values_mut() {
            group.look(now, ends_at, self.behind_ms);
        }
        let wanting = |group: &Group| !group.exhausted && group.fresh.is_empty() && !group.is_closed();
        let names: Vec<String> = self
            .groups
            .iter()
            .filter(|(_, group)| wanting(group))
            .map(|(name, _)| name.clone())
            .collect();
        let size = if names.len() > 4 { SMALL_WINDOW } else { WINDOW };
        for name in names {
            let read = contact::fresh(db, self.id, &name, size).await?;
            let exhausted = (read.len() as u64) < size;
            let judged = self.judged(deps, read, now, so).await?;
            let group = self.group(&name);
            group.exhausted = exhausted;
            group.fresh = judged.into();
        }
        self.groups
            .retain(|_, group| !(group.exhausted && group.fresh.is_empty()));
        Ok(())
    }

    /// What is known of each, for all of them at once.
    async fn judged(
        &mut self,
        deps: &Deps,
        contacts: Vec<Contact>,
        now: Moment,
        so: Circumstances,
    ) -> Result<Vec<Candidate>> {
        // One that came in while the campaign was of another channel has nothing to be reached by.
        let channel = self.plan.channel;
        let at = |contact: &Contact| contact.reachable_at().filter(|_| contact.channel == channel);
        let addresses: Vec<Option<Address>> = contacts.iter().map(at).collect();
        let known: Vec<Address> = addresses.iter().flatten().cloned().collect();
        let whose = People {
            owner: (so.tenant, self.env),
            channel,
            itself: None,
        };
        let people = people(deps, &deps.db.read, whose, known, now).await?;
        let terms = Terms {
            caps: &self.plan.caps,
            ends_at: self.rules.ends_at,
            ring_ms: RING_MS,
            suspended_since: so.suspended_since,
            credits_gone: so.credits_gone,
            behind_ms: self.behind_ms,
        };
        let judged = contacts.into_iter().zip(addresses).map(|(contact, address)| {
            let mut person = address
                .as_ref()
                .and_then(|address| people.get(address))
                .cloned()
                .unwrap_or_default();
            person.not_before = contact.not_before;
            let standing = self.rules.of(&contact.zone);
            // Fresh contacts' hours are their group's; who waits for a time is put off to the next opening.
            let rules = if contact.next_attempt_at.is_some() {
                &Rule::ALL[..]
            } else {
                &Rule::ALL[..6]
            };
            let found = eligibility::first_no(rules, &person, &standing, &terms, now);
            Candidate {
                contact,
                address,
                verdict: found.map_or(Verdict::Yes, |(_, verdict)| verdict),
                rule: found.map(|(rule, _)| rule),
            }
        });
        Ok(judged.collect())
    }

    /// A contact that is not called now: it is skipped, or put off. Costs neither token nor slot.
    pub fn pop_settled(&mut self) -> Option<Candidate> {
        let is_settled = |candidate: &Candidate| candidate.verdict != Verdict::Yes;
        if self.due.front().is_some_and(is_settled) {
            return self.due.pop_front();
        }
        for group in self.groups.values_mut() {
            if group.fresh.front().is_some_and(is_settled) {
                return group.fresh.pop_front();
            }
            if let Some(reason) = group.ends_as()
                && let Some(candidate) = group.fresh.pop_front()
            {
                return Some(Candidate {
                    verdict: Verdict::Never(reason),
                    ..candidate
                });
            }
        }
        None
    }

    /// Its own caps are reached for good, or for a day and it does not want to wait.
    pub fn caps_end_it(&mut self, now: Moment) -> bool {
        let skips = self.plan.caps.on_cap == entities::campaign::OnCap::Skip;
        match self.allowance(now) {
            Allowance::Yes | Allowance::WhenOneEnds => false,
            Allowance::From(at) => skips || self.rules.ends_at.is_some_and(|end| at >= end),
            Allowance::Never => skips,
        }
    }

    /// A contact that the campaign's own caps leave out.
    pub fn pop_capped(&mut self) -> Option<Candidate> {
        let in_hand = self.left.pop_front().or_else(|| self.due.pop_front());
        let fresh = || self.groups.values_mut().find_map(|group| group.fresh.pop_front());
        let candidate = in_hand.or_else(fresh)?;
        let verdict = match candidate.verdict {
            // By its own cause, which comes first.
            Verdict::Never(reason) => Verdict::Never(reason),
            Verdict::Yes | Verdict::Wait(_) => Verdict::Never(contact::SkipReason::DailyCapReached),
        };
        Some(Candidate { verdict, ..candidate })
    }

    /// Reads those who were never called and wait for nothing but their hours: the campaign's own caps leave them out. Only while
    /// none of its calls is planned.
    pub async fn read_left(&mut self, deps: &Deps, now: Moment, so: Circumstances) -> Result<()> {
        let is_in_hand = !self.due.is_empty() || self.groups.values().any(|group| !group.fresh.is_empty());
        if !self.has_left || !self.left.is_empty() || is_in_hand {
            return Ok(());
        }
        let left = contact::fresh_of_all_zones(&deps.db.read, self.id, WINDOW).await?;
        // Whoever comes later makes another version of the campaign, and so another queue.
        self.has_left = !left.is_empty();
        self.left = self.judged(deps, left, now, so).await?.into();
        Ok(())
    }

    /// Whose turn it is: due retries, then priority, then position.
    fn head(&self, at: Moment) -> Option<Head<'_>> {
        if self.rules.ends_at.is_some_and(|end| at >= end) {
            return None;
        }
        let ready = |candidate: &&Candidate| candidate.verdict == Verdict::Yes;
        let due = self
            .due
            .front()
            .filter(ready)
            .filter(|due| self.spell_of(&due.contact.zone, at).is_some());
        if due.is_some_and(|due| due.contact.status == Status::Waiting) {
            return Some(Head::Due);
        }
        let fresh = self
            .groups
            .iter()
            .filter(|(_, group)| group.spell(at).is_some())
            .filter_map(|(name, group)| Some((name, group.fresh.front().filter(ready)?)))
            .max_by_key(|(_, candidate)| rank(candidate));
        match (due, fresh) {
            (Some(due), Some((_, fresh))) if rank(due) > rank(fresh) => Some(Head::Due),
            (_, Some((name, _))) => Some(Head::Fresh(name)),
            (Some(_), None) => Some(Head::Due),
            (None, None) => None,
        }
    }

    pub fn has_turn(&self, at: Moment) -> bool {
        self.head(at).is_some()
    }

    /// Takes the contact whose turn it is, for a call that starts at `at`.
    pub fn pop_turn(&mut self, at: Moment) -> Option<Turn> {
        let (candidate, spell) = match self.head(at)? {
            Head::Due => {
                let spell = self.due.front().and_then(|due| self.spell_of(&due.contact.zone, at))?;
                (self.due.pop_front()?, spell)
            }
            Head::Fresh(name) => {
                let name = name.to_owned();
                let group = self.groups.get_mut(&name)?;
                let spell = group.spell(at)?;
                (group.fresh.pop_front()?, spell)
            }
        };
        self.turn_since = None;
        let ours = (spell.from, self.last_start(spell));
        let hours = match self.behind_ms {
            0 => Within { ours, wall: ours },
            behind_ms => Within::of(&self.rules.of(&candidate.contact.zone), at, ours, (RING_MS, behind_ms)),
        };
        Some(Turn {
            address: candidate.address?,
            contact: candidate.contact,
            hours,
        })
    }

    /// When a call in this spell may start at the latest: all its ringing lies inside, and the campaign has not ended.
    fn last_start(&self, spell: Spell) -> Moment {
        let closes = spell.until.plus_millis(-RING_MS);
        self.rules.ends_at.map_or(closes, |end| closes.min(end.plus_millis(-1)))
    }

    fn spell_of(&self, zone: &str, at: Moment) -> Option<Spell> {
        match self.rules.of(zone) {
            Standing::Hours(hours) => hours.spell(at).filter(|spell| at.plus_millis(RING_MS) <= spell.until),
            Standing::Uncallable => None,
        }
    }

    /// When this campaign may have something to dispatch that it has not now.
    pub fn wake_at(&self) -> Option<Moment> {
        let openings = self.groups.values().filter_map(|group| match group.hours {
            HoursNow::Closed { until } => Some(until),
            HoursNow::Unknown | HoursNow::Open(_) | HoursNow::Never => None,
        });
        openings.chain(self.next_due_at).min()
    }

    /// If everybody who is left is in their quiet hours: when the first of them may be called again.
    pub async fn rests_until(&self, deps: &Deps, now: Moment) -> Result<Option<Moment>> {
        let is_closed = |group: &Group| matches!(group.hours, HoursNow::Closed { .. });
        if self.in_review || !self.due.is_empty() || !self.groups.values().all(is_closed) {
            return Ok(None);
        }
        let mut opens = self.groups.values().filter_map(Group::opens_at).min();
        for zone in contact::due_zones(&deps.db.read, self.id).await? {
            match self.rules.of(&zone) {
                Standing::Hours(hours) => match hours.next_opening_by_both(now, RING_MS, self.behind_ms) {
                    Some(at) if at > now => opens = Some(opens.map_or(at, |opens| opens.min(at))),
                    Some(_) | None => return Ok(None),
                },
                Standing::Uncallable => return Ok(None),
            }
        }
        Ok(opens)
    }

    /// The caller ids take turns, from the first on.
    pub fn next_from_number(&mut self) -> Option<E164> {
        let numbers = &self.plan.from_numbers;
        // There may be fewer than a moment ago.
        let at = if self.next_from < numbers.len() {
            self.next_from
        } else {
            0
        };
        self.next_from = at + 1;
        numbers.get(at).cloned()
    }

    /// Do the credits cover its next call, or message?
    pub fn is_covered(&self, deps: &Deps, funds: &Funds) -> bool {
        funds.cover(self.env, self.least_needed(deps))
    }

    /// The least that must be available for that.
    pub fn least_needed(&self, deps: &Deps) -> Cents {
        match self.letter {
            Some(_) => self.hold,
            None => deps.limits.credits.least(self.hold),
        }
    }

    /// What one of its calls, or messages, costs at most.
    pub fn dearest(&self) -> i64 {
        self.dearest.0
    }

    /// A call or a message is on its way.
    pub fn one_dispatched(&mut self) {
        self.day.dialed += 1;
        self.budget.reserved_cents += self.dearest();
    }

    /// It cannot be written to yet, and stays the next.
    pub fn put_back(&mut self, turn: Turn) {
        self.due.push_front(Candidate {
            contact: turn.contact,
            address: Some(turn.address),
            verdict: Verdict::Yes,
            rule: None,
        });
    }

    /// What its calls in flight, or its messages, may cost yet.
    pub async fn reserve(&mut self, deps: &Deps, calls: i64) -> Result<()> {
        let in_flight = match (&self.letter, self.plan.caps.budget_cents) {
            (Some(_), Some(_)) => {
                let tally = entities::tally::load(&deps.db.read, self.id).await?;
                self.budget.spent_cents = tally.cost_cents;
                tally.dispatched
            }
            (Some(_), None) | (None, _) => calls,
        };
        self.budget.reserved_cents = in_flight * self.dearest();
        Ok(())
    }

    /// A message of that price is on its way.
    pub fn one_written(&mut self, price: Cents) {
        self.hold = self.least;
        self.dearest = self.dearest.max(price);
        self.one_dispatched();
    }

    /// May it dial one more call today, and within its budget? If not, from when on; `None`: never.
    pub fn allowance(&mut self, at: Moment) -> Allowance {
        if let Some(budget) = self.plan.caps.budget_cents {
            let most = self.budget.spent_cents + self.budget.reserved_cents + self.dearest();
            if most > i64::from(budget.get()) {
                // A call in flight may turn out cheaper than it might have been.
                return if self.budget.reserved_cents > 0 {
                    Allowance::WhenOneEnds
                } else {
                    Allowance::Never
                };
            }
        }
        if at >= self.day.ends {
            self.day = Day {
                dialed: 0,
                ends: hours::day_of(self.rules.zone, at).1,
            };
        }
        match self.plan.caps.campaign_per_day {
            Some(most) if self.day.dialed >= i64::from(most.get()) => Allowance::From(self.day.ends),
            Some(_) | None => Allowance::Yes,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    Yes,
    /// The day's calls are used up.
    From(Moment),
    /// The calls in flight may use up the budget.
    WhenOneEnds,
    /// The budget is used up.
    Never,
}

enum Head<'a> {
    Due,
    Fresh(&'a str),
}

/// Higher priorities first, then the list's order.
fn rank(candidate: &Candidate) -> (i32, std::cmp::Reverse<entities::ids::ContactId>) {
    (candidate.contact.priority, std::cmp::Reverse(candidate.contact.id))
}

impl Group {
    /// Looks at the clock, if what is known of the hours is over.
    fn look(&mut self, now: Moment, ends_at: Option<Moment>, behind_ms: i64) {
        let known = match self.hours {
            HoursNow::Unknown => false,
            HoursNow::Open(spell) => now.plus_millis(RING_MS) <= spell.until,
            HoursNow::Closed { until } => now < until,
            HoursNow::Never => true,
        };
        let Standing::Hours(hours) = &self.standing else {
            self.hours = HoursNow::Never;
            return;
        };
        if known {
            return;
        }
        self.hours = match hours.next_opening_by_both(now, RING_MS, behind_ms) {
            Some(at) if ends_at.is_some_and(|end| at >= end) => HoursNow::Never,
            Some(at) if at > now => HoursNow::Closed { until: at },
            Some(_) => hours.spell(now).map_or(HoursNow::Never, HoursNow::Open),
            None => HoursNow::Never,
        };
    }

    fn is_closed(&self) -> bool {
        matches!(self.hours, HoursNow::Closed { .. } | HoursNow::Unknown)
    }

    fn opens_at(&self) -> Option<Moment> {
        match self.hours {
            HoursNow::Closed { until } => Some(until),
            HoursNow::Unknown | HoursNow::Open(_) | HoursNow::Never => None,
        }
    }

    /// Why none of its contacts can be called any more.
    fn ends_as(&self) -> Option<contact::SkipReason> {
        match (&self.standing, self.hours) {
            (Standing::Uncallable, _) => Some(contact::SkipReason::Invalid),
            (Standing::Hours(_), HoursNow::Never) => Some(contact::SkipReason::QuietHoursExpired),
            (Standing::Hours(_), HoursNow::Unknown | HoursNow::Open(_) | HoursNow::Closed { .. }) => None,
        }
    }

    /// The open spell in which a call may start at `at` and ring.
    fn spell(&self, at: Moment) -> Option<Spell> {
        match self.hours {
            HoursNow::Open(spell) if spell.from <= at && at.plus_millis(RING_MS) <= spell.until => Some(spell),
            HoursNow::Open(_) | HoursNow::Unknown | HoursNow::Closed { .. } | HoursNow::Never => None,
        }
    }
}
