//! A tenant whose rows are kept in lists: what is planned is done at once, and nobody ever picks up.
use super::{
    rows::{fresh, read},
    wishes::{campaign, limits, plan_of},
    *,
};
use crate::{
    contact::machine::{self, Attempt, Command, Ending},
    credits::terms::Terms,
    dispatch::{
        concurrency::Concurrency,
        fair::RoundRobin,
        key_limits::KeyLimits,
        pace::Pace,
        queue::Rows,
        trunk::{Trunk, Trunks},
        usage::Usage,
    },
    hours::{self, Rules},
};
use entities::{
    abandonment::{Abandonment, AbandonmentLimit},
    campaign::{Model as Campaign, Retry},
    contact::{Status, WaitReason},
    ids::{ContactId, DeliveryRowId, SessionId, TrunkId},
    session::{EndReason, Status as SessionStatus},
    values::{E164, Zone},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// What live calls go over unless a test says otherwise.
pub const TRUNK: TrunkId = TrunkId(Uuid::from_u128(70));

/// A call under way.
struct Live {
    id: SessionId,
    ends_at: Moment,
    contact: Contact,
}

pub struct Tenant {
    pub snapshot: Snapshot,
    pub campaigns: BTreeMap<CampaignId, Campaign>,
    /// Those who wait: for their first call, or for a time.
    pub rows: BTreeMap<CampaignId, Vec<Contact>>,
    pub now: Moment,
    pub behind_ms: i64,
    /// How long each call takes.
    seconds: i64,
    live: Vec<Live>,
    /// When which campaign called whom.
    pub calls: Vec<(Moment, CampaignId, ContactId)>,
    /// When which trunk took a call.
    pub over: Vec<(Moment, Option<TrunkId>)>,
    pub written: Vec<(CampaignId, ContactId)>,
    /// Places for texts that are left; whoever takes one keeps it.
    pub doors: PerEnv<usize>,
    pub settled: Vec<(CampaignId, Settlement)>,
    pub late: usize,
    /// Sessions that have their turn in each round.
    pub turns: usize,
    /// All queues are made anew before every nth round; 0: never.
    pub reopens: usize,
    /// What live calls go over that show these numbers; all others go over `TRUNK`.
    pub trunks_of: HashMap<E164, TrunkId>,
    /// What the law allows of abandoned calls, and what each campaign has abandoned.
    pub abandonment: Vec<AbandonmentLimit>,
    pub abandoned: Abandonment,
}

impl Tenant {
    /// `seconds`: how long each call takes.
    pub fn new(concurrency: Concurrency, rate: f64, seconds: i64) -> Self {
        let purse = Purse::new(Cents(1_000_000_000), Cents(1_000_000_000));
        let mut trunks = Trunks::new(1_000.0);
        trunks.live.insert(TRUNK, Trunk::new(1_000.0));
        Tenant {
            snapshot: Snapshot {
                concurrency,
                terms: Terms::default(),
                pace: Pace::new(rate),
                trunks,
                blocks: Vec::new(),
                funds: Funds::new(|_| purse),
                keys: KeyLimits::default(),
                campaigns: BTreeMap::new(),
                ring: RoundRobin::default(),
                live: HashMap::new(),
            },
            campaigns: BTreeMap::new(),
            rows: BTreeMap::new(),
            now: noon(),
            behind_ms: 0,
            seconds,
            live: Vec::new(),
            calls: Vec::new(),
            over: Vec::new(),
            written: Vec::new(),
            doors: PerEnv::new(|_| 0),
            settled: Vec::new(),
            late: 0,
            turns: 0,
            reopens: 0,
            trunks_of: HashMap::new(),
            abandonment: Vec::new(),
            abandoned: Abandonment::default(),
        }
    }

    pub fn with(self, n: usize, fields: Value, contacts: usize, zone: &str) -> Self {
        self.with_in(Env::Test, n, fields, contacts, zone)
    }

    pub fn with_in(mut self, env: Env, n: usize, fields: Value, contacts: usize, zone: &str) -> Self {
        let campaign = campaign(env, n, plan_of(&fields));
        let (id, channel) = (campaign.id, campaign.plan.channel);
        let rows = (0..contacts).map(|contact_n| Contact {
            env,
            channel,
            ..contact(n, contact_n, zone)
        });
        self.rows.insert(id, rows.collect());
        self.campaigns.insert(id, campaign);
        self.open(id, None);
        self
    }

    fn open(&mut self, id: CampaignId, old: Option<Queue>) {
        let campaign = self.campaigns[&id].clone();
        let rules = Rules::new(&campaign.plan.schedule, campaign.env, Zone::NEW_YORK);
        let usage = match &old {
            Some(old) => Usage {
                reserved_cents: 0,
                ..old.usage
            },
            None => Usage {
                dialed_today: 0,
                day_ends: hours::day_of(rules.zone, self.now).1,
                spent_cents: 0,
                reserved_cents: 0,
            },
        };
        let zones: BTreeSet<String> = fresh(&self.rows[&id]).map(|contact| contact.zone.clone()).collect();
        let trunk_of = |number: &E164| self.trunks_of.get(number).copied().unwrap_or(TRUNK);
        let numbers = campaign.plan.from_numbers.iter();
        let rows = Rows {
            trunks: numbers.map(|number| (number.clone(), trunk_of(number))).collect(),
            resting: HashMap::new(),
            legal: None,
            abandonment: self.abandonment.clone(),
            abandoned: self.abandoned,
            campaign,
            usage,
            zones: zones.into_iter().collect(),
        };
        let queue = Queue::new(rows, rules, old, &limits(), self.behind_ms).unwrap();
        self.snapshot.campaigns.insert(id, queue);
        self.snapshot.ring.keep(self.snapshot.campaigns.keys().copied());
    }

    /// Its row has changed: its queue is made anew.
    pub fn reopen(&mut self, n: usize) {
        let id = campaign_id(n);
        let old = self.snapshot.campaigns.remove(&id);
        self.open(id, old);
    }

    /// It has this plan from now on.
    pub fn change(&mut self, n: usize, fields: &Value) {
        self.campaigns.get_mut(&campaign_id(n)).unwrap().plan = plan_of(fields);
        self.reopen(n);
    }

    pub fn queue(&self, n: usize) -> &Queue {
        &self.snapshot.campaigns[&campaign_id(n)]
    }

    pub fn queue_mut(&mut self, n: usize) -> &mut Queue {
        self.snapshot.campaigns.get_mut(&campaign_id(n)).unwrap()
    }

    pub fn row_mut(&mut self, campaign: usize, n: usize) -> &mut Contact {
        let rows = self.rows.get_mut(&campaign_id(campaign)).unwrap();
        rows.iter_mut().find(|row| row.id == contact_id(campaign, n)).unwrap()
    }

    /// It was called before in vain, and is called again from that moment on.
    pub fn retries(&mut self, campaign: usize, n: usize, at: Moment) {
        let row = self.row_mut(campaign, n);
        (row.status, row.attempts) = (Status::Waiting, 1);
        (row.next_attempt_at, row.wait_reason) = (Some(at), Some(WaitReason::Retry));
        row.last_row_id = Some(DeliveryRowId(Uuid::from_u128(9)));
    }

    /// It was to wait until that moment, and was not called before.
    pub fn waits(&mut self, campaign: usize, n: usize, at: Moment) {
        let row = self.row_mut(campaign, n);
        (row.next_attempt_at, row.wait_reason) = (Some(at), Some(WaitReason::NotBefore));
    }

    /// What the dispatcher reads before it plans.
    fn fill(&mut self) {
        let (now, slots) = (self.now, self.snapshot.slots());
        let so = PerEnv::new(|env| (!self.snapshot.is_held(env, now)).then(|| self.snapshot.circumstances(env)));
        for queue in self.snapshot.campaigns.values_mut() {
            let Some(so) = *so.get(queue.env) else { continue };
            queue.look(now, self.behind_ms);
            queue.reserve(slots.used(queue.env, Some(queue.id)));
            read(queue, &self.rows[&queue.id], self.turns == 0, (now, so));
        }
    }

    /// One round, and what it decides done.
    pub fn round(&mut self) -> Plan {
        self.fill();
        let doors = Doors {
            sms: self.doors,
            email: 0,
        };
        let mut begun = Begun::new(&self.snapshot, WakeAt::default());
        begun.turns = self.turns;
        let plan = plan(&mut self.snapshot, begun, doors, self.late, self.now);
        self.check(&plan);
        self.perform(&plan);
        plan
    }

    /// What holds of every plan.
    fn check(&self, plan: &Plan) {
        let size = plan.calls.len() + plan.messages.len() + plan.settled.len();
        assert!(self.turns + size <= ROUND, "more than a round");
        assert!(plan.calls.is_sorted_by_key(|call| call.at));
        for (n, call) in plan.calls.iter().enumerate() {
            let lies_ahead = self.now <= call.at && call.at <= self.now.plus(LEAD);
            assert!(lies_ahead, "planned too far ahead");
            let (first, last) = call.turn.hours.ours;
            assert!(first <= call.at && call.at <= last, "outside its hours");
            if call.turn.contact.status != Status::Waiting && !self.snapshot.campaigns[&call.campaign].in_review {
                self.passes_over_nobody(call.campaign, plan, n);
            }
        }
    }

    /// The nth call is to somebody who was never called: no retry is due then, but those whose time came in the last second,
    /// who may not have been read yet.
    fn passes_over_nobody(&self, campaign: CampaignId, plan: &Plan, n: usize) {
        let is_due = |row: &&Contact| {
            let at = row.next_attempt_at.filter(|_| row.status == Status::Waiting);
            at.is_some_and(|at| at.plus_seconds(1) <= self.now)
        };
        for row in self.rows[&campaign].iter().filter(is_due) {
            let is_called = plan.calls[..n].iter().any(|call| call.turn.contact.id == row.id);
            let is_settled = plan.settled.iter().any(|settled| settled.contact.id == row.id);
            assert!(is_called || is_settled, "a retry that is due was passed over");
        }
    }

    fn take_row(&mut self, campaign: CampaignId, id: ContactId) -> (Contact, Retry) {
        let rows = self.rows.get_mut(&campaign).unwrap();
        let at = rows.iter().position(|row| row.id == id).unwrap();
        (rows.remove(at), self.campaigns[&campaign].plan.retry.clone())
    }

    /// It stays in the rows if it waits afterwards.
    fn moves(&mut self, (contact, retry): (Contact, Retry), command: Command, at: Moment) -> Contact {
        let (contact, _) = machine::transition(contact, command, &retry, at).unwrap();
        if matches!(contact.status, Status::Pending | Status::Waiting) {
            self.rows.get_mut(&contact.campaign_id).unwrap().push(contact.clone());
        }
        contact
    }

    fn perform(&mut self, plan: &Plan) {
        for call in &plan.calls {
            let row = self.take_row(call.campaign, call.turn.contact.id);
            let id = SessionId(Uuid::from_u128(self.calls.len() as u128));
            let row_id = DeliveryRowId(id.0);
            let contact = self.moves(row, Command::Dispatch { row: row_id }, self.now);
            let slot = Slot::outbound(contact.env, Some(call.campaign), call.trunk_id);
            self.snapshot.live.insert(id, slot);
            self.calls.push((call.at, call.campaign, contact.id));
            self.over.push((call.at, call.trunk_id));
            self.live.push(Live {
                id,
                ends_at: call.at.plus_seconds(self.seconds),
                contact,
            });
        }
        for message in &plan.messages {
            let (contact, _) = self.take_row(message.campaign, message.turn.contact.id);
            *self.doors.get_mut(contact.env) -= 1;
            self.written.push((message.campaign, contact.id));
        }
        for settled in &plan.settled {
            let row = self.take_row(settled.campaign, settled.contact.id);
            let command = match settled.settlement {
                Settlement::Skip(reason) => Command::Skip(reason, settled.law_rule.clone()),
                Settlement::Defer(until, reason) => Command::Defer { until, reason },
            };
            self.moves(row, command, self.now);
            self.settled.push((settled.campaign, settled.settlement));
        }
    }

    /// Goes to that moment; the calls that are over by then end.
    pub fn go_to(&mut self, at: Moment) {
        self.now = at;
        let (over, live): (Vec<Live>, Vec<Live>) = std::mem::take(&mut self.live)
            .into_iter()
            .partition(|call| call.ends_at <= at);
        self.live = live;
        for call in over {
            let attempt = Attempt {
                row: DeliveryRowId(call.id.0),
                dialed_at: Some(call.ends_at),
                answered: false,
                ending: Ending::Call(SessionStatus::NoAnswer, EndReason::NoAnswer),
                reached: false,
                disposition_code: None,
                duration_seconds: 0,
                actual_cost_cents: Cents(0),
            };
            let retry = self.campaigns[&call.contact.campaign_id].plan.retry.clone();
            self.moves((call.contact, retry), Command::Finish(attempt), call.ends_at);
            self.snapshot.hinted(DispatchHint::SlotFreed(call.id), at);
        }
    }

    /// The first moment at which anything happens by itself, after a plan that was empty.
    pub fn next_moment(&self, plan: &Plan) -> Option<Moment> {
        let ends = self.live.iter().map(|call| call.ends_at);
        ends.chain(plan.wake_at.0).min()
    }

    /// Rounds until nothing is left to do or to wait for, each checked.
    pub fn live_on(&mut self, mut check: impl FnMut(&Tenant, &Plan)) {
        for n in 1..=40_000_usize {
            if n.is_multiple_of(self.reopens) {
                (0..self.campaigns.len()).for_each(|campaign| self.reopen(campaign));
            }
            let before = self.now;
            let plan = self.round();
            check(self, &plan);
            if !plan.is_empty() {
                // Some milliseconds for its commit.
                self.go_to(before.plus_millis(3));
                continue;
            }
            assert!(plan.wake_at.0.is_none_or(|at| at > before), "it would spin");
            match self.next_moment(&plan) {
                Some(at) => self.go_to(at.max(before.plus_millis(1))),
                None => return,
            }
        }
        panic!("it never comes to rest");
    }

    /// Rounds as they come, for so long.
    pub fn live_for(&mut self, millis: i64) -> Plan {
        let until = self.now.plus_millis(millis);
        loop {
            let plan = self.round();
            let next = match plan.is_empty() {
                false => Some(self.now.plus_millis(3)),
                true => self.next_moment(&plan),
            };
            let Some(next) = next.filter(|at| *at <= until) else {
                self.go_to(until);
                return plan;
            };
            self.go_to(next.max(self.now.plus_millis(1)));
        }
    }

    pub fn called(&self, n: usize) -> usize {
        self.calls.iter().filter(|(_, id, _)| *id == campaign_id(n)).count()
    }

    /// Whom that campaign called, by their places in its list, in order.
    pub fn whom(&self, n: usize) -> Vec<usize> {
        let of_campaign = self.calls.iter().filter(|(_, id, _)| *id == campaign_id(n));
        let place = |contact: &ContactId| usize::try_from(contact.0.as_u128() & 0xFFFF_FFFF).unwrap();
        of_campaign.map(|(.., contact)| place(contact)).collect()
    }

    /// What calls of that env go over.
    pub fn route(&self, env: Env) -> Route {
        Route::of(env, Some(TRUNK))
    }

    pub fn most_in_a_second(&self, of: impl Fn(CampaignId) -> bool) -> usize {
        let calls = self.calls.iter().filter(|(_, id, _)| of(*id));
        most_at_once(calls.map(|(at, ..)| *at).collect())
    }

    pub fn most_in_a_second_over(&self, trunk: TrunkId) -> usize {
        let calls = self.over.iter().filter(|(_, over)| *over == Some(trunk));
        most_at_once(calls.map(|(at, _)| *at).collect())
    }
}

fn most_at_once(mut moments: Vec<Moment>) -> usize {
    moments.sort();
    let within = |(n, first): (usize, &Moment)| {
        let second = first.plus_millis(1000);
        moments[n..].iter().take_while(|at| **at < second).count()
    };
    moments.iter().enumerate().map(within).max().unwrap_or(0)
}
