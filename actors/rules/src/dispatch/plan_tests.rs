//! A tenant that lives through its plans, its rows kept in lists; then what holds for every tenant, whatever its campaigns want.
use super::*;
use crate::{
    credits::terms::Terms,
    delivery::machine::Schedule,
    dispatch::{
        concurrency::Concurrency,
        fair::RoundRobin,
        funds::{Funds, Purse},
        pace::{Pace, burst},
        queue::Rows,
        trunk::Trunk,
        usage::Usage,
    },
    eligibility::ContactRecord,
    hours::{self, Rules},
    limits::{Limits, Retention},
};
use entities::{
    agent::Definition,
    campaign::{AgentSnapshot, Model as Campaign, Plan as CampaignPlan, Status as Running},
    contact::Status,
    dispatch_block::Model as Block,
    ids::{AgentId, ContactId, SessionId, TenantId},
    values::{Variables, Zone},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

/// Monday, 2 March 2026, noon in UTC.
fn noon() -> Moment {
    Moment::from_millis(1_772_452_800_000)
}
const TENANT: TenantId = TenantId(Uuid::from_u128(1));

fn limits() -> Limits {
    Limits {
        max_calls_per_second: 1_000.0,
        max_concurrency: 1_000,
        schedule: Schedule::default(),
        suspend_after: 10,
        retention: Retention::default(),
        number_cap_24h: 0,
        number_cap_7d: 0,
        call_price_cents_per_minute: 6,
        credits: Terms::default(),
        sms_price_cents_per_segment: 2,
        email_price_cents: 1,
        allow_costly_numbers: false,
        opt_out_purge_grace: Duration::ZERO,
    }
}

fn campaign_id(n: usize) -> CampaignId {
    CampaignId(Uuid::from_u128(100 + n as u128))
}

#[rustfmt::skip]
fn contact(campaign: usize, n: usize, zone: &str) -> Contact {
    let number = format!("+1500{:03}{n:04}", 200 + campaign);
    Contact {
        id: ContactId(Uuid::from_u128((campaign as u128 + 1) << 64 | n as u128)), tenant_id: TENANT, env: Env::Test,
        campaign_id: campaign_id(campaign), external_id: None, channel: Channel::Phone,
        address: number.clone(), phone_number: number,
        email: None, first_name: None, last_name: None, variables: Variables::default(),
        timezone: None, zone: zone.into(), not_before: None, priority: 0,
        status: Status::Pending, wait_reason: None, attempts: 0, last_row_id: None, attempt_limit: None,
        next_attempt_at: None, skip_reason: None, disposition_code: None, version: 1, created_at: noon(),
    }
}

/// Everything that the rows and the outside would be.
struct Tenant {
    snapshot: Snapshot,
    /// Nobody has called them yet.
    fresh: BTreeMap<CampaignId, Vec<Contact>>,
    now: Moment,
    seconds: i64,
    live: Vec<(SessionId, Moment)>,
    /// When which campaign called whom.
    calls: Vec<(Moment, CampaignId, ContactId)>,
    written: Vec<(CampaignId, ContactId)>,
    doors: usize,
    settled: Vec<(CampaignId, Settlement)>,
    late: usize,
}

impl Tenant {
    /// `seconds`: how long each call takes.
    fn new(concurrency: Concurrency, rate: f64, seconds: i64) -> Self {
        let purse = Purse::new(Cents(1_000_000_000), Cents(1_000_000_000));
        Tenant {
            snapshot: Snapshot {
                concurrency,
                terms: Terms::default(),
                pace: Pace::new(rate),
                trunks: PerEnv::new(|_| Trunk::new(1_000.0)),
                blocks: Vec::new(),
                funds: Funds::new(|_| purse),
                campaigns: BTreeMap::new(),
                ring: RoundRobin::default(),
                live: HashMap::new(),
            },
            fresh: BTreeMap::new(),
            now: noon(),
            seconds,
            live: Vec::new(),
            calls: Vec::new(),
            written: Vec::new(),
            doors: 0,
            settled: Vec::new(),
            late: 0,
        }
    }

    fn with(mut self, n: usize, fields: Value, contacts: usize, zone: &str) -> Self {
        let id = campaign_id(n);
        let mut plan = json!({ "name": "x", "from_numbers": ["+15005550001"] });
        plan.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let is_call = plan.get("channel").is_none();
        let plan: CampaignPlan = serde_json::from_value(plan).unwrap();
        let definition: Definition = serde_json::from_value(json!({ "name": "Ada", "prompt": "Ask." })).unwrap();
        let rules = Rules::new(&plan.schedule, Env::Test, Zone::NEW_YORK);
        let day_ends = hours::day_of(rules.zone, self.now).1;
        let rows = Rows {
            campaign: Campaign {
                id,
                tenant_id: TENANT,
                env: Env::Test,
                plan,
                agent: is_call.then_some(AgentSnapshot {
                    id: AgentId(Uuid::from_u128(3)),
                    version: 1,
                    definition,
                }),
                status: Running::Running,
                pause_reason: None,
                cancel_requested_at: None,
                armed_at: None,
                next_open_at: None,
                wake_at: None,
                started_at: Some(noon()),
                paused_at: None,
                completed_at: None,
                completed_reason: None,
                deleted_at: None,
                rules_version: 0,
                review_of: None,
                version: 1,
                created_at: noon(),
            },
            usage: Usage {
                dialed_today: 0,
                day_ends,
                spent_cents: 0,
                reserved_cents: 0,
            },
            zones: vec![zone.to_owned()],
        };
        let queue = Queue::new(rows, rules, None, &limits(), 0).unwrap();
        self.snapshot.campaigns.insert(id, queue);
        self.snapshot.ring.keep(self.snapshot.campaigns.keys().copied());
        let channel = if is_call { Channel::Phone } else { Channel::Sms };
        let fresh = (0..contacts).map(|contact_n| Contact {
            channel,
            ..contact(n, contact_n, zone)
        });
        self.fresh.insert(id, fresh.collect());
        self
    }

    fn queue(&self, n: usize) -> &Queue {
        &self.snapshot.campaigns[&campaign_id(n)]
    }

    /// What the dispatcher reads before it plans.
    fn fill(&mut self) {
        let (now, slots) = (self.now, self.snapshot.slots());
        let held = self.snapshot.is_held(Env::Test, now);
        let so = self.snapshot.circumstances(Env::Test);
        for queue in self.snapshot.campaigns.values_mut().filter(|_| !held) {
            queue.look(now, 0);
            queue.reserve(slots.used(Env::Test, Some(queue.id)));
            let wants = queue.wants(now);
            let rows = &self.fresh[&queue.id];
            let read = |count: u64| -> Vec<Contact> { rows.iter().take(count as usize).cloned().collect() };
            let judged = |queue: &Queue, contacts: Vec<Contact>| {
                let people = contacts.iter().filter_map(|contact| {
                    let record = ContactRecord {
                        has_number: true,
                        ..ContactRecord::default()
                    };
                    Some((queue.address_of(contact)?, record))
                });
                let people = people.collect();
                queue.judged(contacts, &people, now, so)
            };
            if wants.costs {
                // Every call turns out to be free.
                queue.has_spent(0);
            }
            if wants.due {
                queue.take_due(Vec::new(), None, now);
            }
            for zone in wants.fresh {
                let read = read(wants.window);
                let exhausted = (read.len() as u64) < wants.window;
                let candidates = judged(queue, read);
                queue.take_fresh(&zone, candidates, exhausted);
            }
            queue.tidy();
            if queue.wants_left(now) {
                let candidates = judged(queue, read(128));
                queue.take_left(candidates);
            }
            if queue.wants_waiting_zones() {
                queue.take_waiting_zones(Vec::new());
            }
        }
    }

    /// One round, and what it decides done.
    fn round(&mut self) -> Plan {
        self.fill();
        let doors = Doors {
            sms: PerEnv::new(|_| self.doors),
            email: 0,
        };
        let begun = Begun::new(&self.snapshot, WakeAt::default());
        let plan = plan(&mut self.snapshot, begun, doors, self.late, self.now);
        let size = plan.calls.len() + plan.messages.len() + plan.settled.len();
        assert!(size <= ROUND && plan.messages.len() <= self.doors);
        for call in &plan.calls {
            assert!(
                self.now <= call.at && call.at <= self.now.plus(LEAD),
                "planned too far ahead"
            );
            let (first, last) = call.turn.hours.ours;
            assert!(first <= call.at && call.at <= last, "outside its hours");
            let id = SessionId(Uuid::from_u128(self.calls.len() as u128));
            self.snapshot
                .live
                .insert(id, Slot::outbound(Env::Test, Some(call.campaign)));
            self.live.push((id, call.at.plus_seconds(self.seconds)));
            self.calls.push((call.at, call.campaign, call.turn.contact.id));
        }
        assert!(plan.calls.is_sorted_by_key(|call| call.at));
        let written = plan
            .messages
            .iter()
            .map(|message| (message.campaign, message.turn.contact.id));
        self.written.extend(written.clone());
        self.settled.extend(
            plan.settled
                .iter()
                .map(|settled| (settled.campaign, settled.settlement)),
        );
        let called = plan.calls.iter().map(|call| (call.campaign, call.turn.contact.id));
        let left_out = plan
            .settled
            .iter()
            .map(|settled| (settled.campaign, settled.contact.id));
        for (campaign, id) in called.chain(written).chain(left_out) {
            self.fresh
                .get_mut(&campaign)
                .unwrap()
                .retain(|contact| contact.id != id);
        }
        plan
    }

    /// Goes to that moment; the calls that are over by then end.
    fn go_to(&mut self, at: Moment) {
        self.now = at;
        let (over, live) = self.live.drain(..).partition(|(_, ends_at)| *ends_at <= at);
        self.live = live;
        let over: Vec<(SessionId, Moment)> = over;
        for (id, _) in over {
            self.snapshot.hinted(crate::effect::DispatchHint::SlotFreed(id), at);
        }
    }

    /// Rounds until nothing is left to do or to wait for, each checked.
    fn live_on(&mut self, mut check: impl FnMut(&Tenant, &Plan)) {
        for _ in 0..20_000 {
            let before = self.now;
            let plan = self.round();
            check(self, &plan);
            if !plan.is_empty() {
                // Some milliseconds for its commit.
                self.go_to(before.plus_millis(3));
                continue;
            }
            let woken = plan.wake_at.0;
            assert!(woken.is_none_or(|at| at > before), "it would spin");
            let ends = self.live.iter().map(|(_, ends_at)| *ends_at).min();
            match woken.into_iter().chain(ends).min() {
                Some(at) => self.go_to(at.max(before.plus_millis(1))),
                None => return,
            }
        }
        panic!("it never comes to rest");
    }

    fn called(&self, n: usize) -> usize {
        self.calls.iter().filter(|(_, id, _)| *id == campaign_id(n)).count()
    }

    fn most_in_a_second(&self, of: impl Fn(CampaignId) -> bool) -> usize {
        let mut moments: Vec<Moment> = self
            .calls
            .iter()
            .filter(|(_, id, _)| of(*id))
            .map(|(at, ..)| *at)
            .collect();
        moments.sort();
        let within = |(n, first): (usize, &Moment)| {
            let second = first.plus_millis(1000);
            moments[n..].iter().take_while(|at| **at < second).count()
        };
        moments.iter().enumerate().map(within).max().unwrap_or(0)
    }
}

fn room(limit: i32, reserve: i32) -> Concurrency {
    Concurrency { limit, reserve }
}

#[test]
fn what_holds_a_campaign_up_is_named() {
    let blocked = |reason| Block {
        tenant_id: TENANT,
        env: Env::Test,
        reason,
        since: noon(),
    };
    let day = json!({ "windows": [{ "start": "09:00", "end": "17:00" }] });
    // What the campaign wants, the tenant's slots and rate, contacts: what holds it up after its first rounds.
    #[rustfmt::skip]
    let table = [
        (json!({ "pacing": { "calls_per_second": 1.0 } }), room(100, 0), 100.0, 9, LimitingFactor::Rate),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(100, 0), 1.0, 9, LimitingFactor::WorkspaceRate),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(2, 0), 100.0, 9, LimitingFactor::Concurrency),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(3, 1), 100.0, 9, LimitingFactor::Concurrency),
        (json!({ "pacing": { "calls_per_second": 50.0, "max_concurrency": 1 } }), room(9, 0), 100.0, 9, LimitingFactor::CampaignConcurrency),
        (json!({ "caps": { "campaign_per_day": 1, "on_cap": "defer" } }), room(9, 0), 100.0, 9, LimitingFactor::DailyCap),
        (json!({ "caps": { "budget_cents": 100, "on_cap": "defer" } }), room(9, 0), 100.0, 9, LimitingFactor::Budget),
        (json!({ "schedule": day }), room(9, 0), 100.0, 9, LimitingFactor::QuietHours),
        (json!({ "pacing": { "calls_per_second": 50.0 } }), room(9, 0), 100.0, 2, LimitingFactor::NoneLeft),
    ];
    for (fields, concurrency, rate, contacts, expected) in table {
        // Tokyo sleeps while it is noon in Greenwich.
        let mut tenant = Tenant::new(concurrency, rate, 60).with(0, fields.clone(), contacts, "Asia/Tokyo");
        let mut last = tenant.round();
        for _ in 0..30 {
            if !last.is_empty() {
                tenant.go_to(tenant.now.plus_millis(3));
            } else if let Some(at) = last.wake_at.0.filter(|at| *at < noon().plus_millis(900)) {
                tenant.go_to(at);
            }
            last = tenant.round();
        }
        assert_eq!(last.limits, [(campaign_id(0), expected)], "{fields}");
    }
    for (reason, expected) in [
        (Reason::Credits, LimitingFactor::Credits),
        (Reason::Suspension, LimitingFactor::Suspension),
    ] {
        let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 9, "UTC");
        tenant.snapshot.blocks.push(blocked(reason));
        let plan = tenant.round();
        assert!(plan.is_empty(), "{plan:?}");
        assert_eq!(plan.limits, [(campaign_id(0), expected)]);
    }
}

#[test]
fn a_trunk_that_has_no_room_is_named_until_it_has_grown_back() {
    let fields = json!({ "pacing": { "calls_per_second": 50.0 } });
    let mut tenant = Tenant::new(room(900, 0), 100.0, 60).with(0, fields, 800, "UTC");
    for _ in 0..6 {
        tenant.go_to(tenant.now.plus_seconds(1));
        tenant
            .snapshot
            .hinted(crate::effect::DispatchHint::TrunkCongested(Env::Test), tenant.now);
    }
    let mut wake_at = WakeAt::default();
    tenant.snapshot.grow_trunks(tenant.now, &mut wake_at);
    assert_eq!(wake_at.0, Some(tenant.now.plus_seconds(5)));
    tenant.round();
    let plan = tenant.round();
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Trunk)]);
    for _ in 0..60 {
        tenant.go_to(tenant.now.plus_seconds(5));
        tenant.snapshot.grow_trunks(tenant.now, &mut wake_at);
    }
    tenant.round();
    let plan = tenant.round();
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Rate)]);
}

#[test]
fn a_campaign_rests_until_the_first_of_its_contacts_may_be_called() {
    let fields = json!({ "schedule": { "windows": [{ "start": "09:00", "end": "17:00" }] } });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, fields, 3, "Asia/Tokyo");
    let plan = tenant.round();
    // It is 21:00 in Tokyo.
    assert_eq!(plan.resting, [(campaign_id(0), noon().plus_seconds(12 * 3600))]);
    assert_eq!(plan.wake_at.0, Some(noon().plus_seconds(12 * 3600)));
}

#[test]
fn caller_ids_take_turns_over_rounds_and_over_a_new_queue() {
    let numbers = json!({ "from_numbers": ["+15005550001", "+15005550002"], "pacing": { "calls_per_second": 1.0 } });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, numbers, 9, "UTC");
    let mut froms = Vec::new();
    for _ in 0..4 {
        let plan = tenant.round();
        froms.extend(plan.calls.into_iter().filter_map(|call| call.from_number));
        tenant.go_to(tenant.now.plus_seconds(1));
    }
    let froms: Vec<&str> = froms.iter().map(|number| number.as_str()).collect();
    assert_eq!(froms, ["+15005550001", "+15005550002", "+15005550001", "+15005550002"]);
}

#[test]
fn a_day_that_is_used_up_ends_a_campaign_that_does_not_wait() {
    let caps = json!({ "campaign_per_day": 1, "on_cap": "skip", "per_number_24h": null, "per_number_7d": null });
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({ "caps": caps }), 100, "UTC");
    let mut sizes = Vec::new();
    tenant.live_on(|_, plan| sizes.push(plan.settled.len()));
    assert_eq!((tenant.called(0), tenant.settled.len()), (1, 99));
    assert!(
        tenant
            .settled
            .iter()
            .all(|(_, settlement)| *settlement == Settlement::Skip(SkipReason::DailyCapReached))
    );
    // Others have their turn in between.
    assert_eq!(sizes.iter().max(), Some(&CAPPED));
}

#[test]
fn what_is_not_covered_waits_for_credits() {
    let purse = |available, balance| Funds::new(|_| Purse::new(Cents(available), Cents(balance)));
    // Available, balance: calls of 6 cents each that leave, and of what it is short then.
    for (available, balance, calls, short) in [
        (1_000, 1_000, 9, None),
        (13, 1_000, 3, None),
        (0, 100, 0, None),
        (0, 0, 0, Some(1)),
    ] {
        let fields = json!({ "pacing": { "calls_per_second": 60.0 } });
        let mut tenant = Tenant::new(room(90, 0), 1_000.0, 60).with(0, fields, 9, "UTC");
        tenant.snapshot.funds = purse(available, balance);
        let (mut held, mut last) = (0, Plan::default());
        for _ in 0..40 {
            last = tenant.round();
            held += last.calls.iter().map(|call| call.hold.0).sum::<i64>();
            tenant.go_to(tenant.now.plus_millis(20));
        }
        assert!(held <= available, "{held} of {available}");
        assert_eq!(tenant.called(0), calls, "{available} {balance}");
        assert_eq!(tenant.snapshot.funds.short(Env::Test), short.map(Cents));
        let expected = if calls == 9 {
            LimitingFactor::NoneLeft
        } else {
            LimitingFactor::Credits
        };
        assert_eq!(last.limits, [(campaign_id(0), expected)]);
        if expected == LimitingFactor::Credits {
            assert_eq!(
                last.wake_at.0,
                Some(tenant.now.plus_millis(-20).plus_seconds(funds::LOOK_SECONDS))
            );
        }
    }
}

fn texts(body: &str) -> Value {
    json!({ "channel": "sms", "template": { "body": body }, "pacing": { "calls_per_second": 60.0 } })
}

#[test]
fn messages_leave_while_there_is_a_place_for_them() {
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60).with(0, texts("Hello"), 5, "UTC");
    tenant.doors = 2;
    let rounds = |tenant: &mut Tenant| {
        let mut last = tenant.round();
        for _ in 0..9 {
            tenant.doors -= last.messages.len();
            tenant.go_to(tenant.now.plus_millis(20));
            last = tenant.round();
        }
        last
    };
    let plan = rounds(&mut tenant);
    assert_eq!(tenant.written.len(), 2);
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::Provider)]);
    tenant.doors = 9;
    let plan = rounds(&mut tenant);
    assert_eq!(tenant.written.len(), 5);
    assert_eq!(plan.limits, [(campaign_id(0), LimitingFactor::NoneLeft)]);
}

#[test]
fn a_place_that_nobody_takes_is_there_for_the_next() {
    // Blank once it is filled: it cannot be written to the first.
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60).with(0, texts("{{first_name| }}"), 2, "UTC");
    tenant.fresh.get_mut(&campaign_id(0)).unwrap()[1].first_name = Some("Ada".into());
    tenant.doors = 1;
    for _ in 0..5 {
        let plan = tenant.round();
        tenant.doors -= plan.messages.len();
        tenant.go_to(tenant.now.plus_millis(20));
    }
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::Invalid));
    assert_eq!((tenant.written.len(), &tenant.settled[..]), (1, &[skipped][..]));

    // Two segments of 2 cents are not covered, one is.
    let long = "x".repeat(200);
    let mut tenant = Tenant::new(room(1, 0), 1_000.0, 60)
        .with(0, texts(&long), 1, "UTC")
        .with(1, texts("Hello"), 1, "UTC");
    tenant.snapshot.funds = Funds::new(|_| Purse::new(Cents(3), Cents(1_000)));
    tenant.doors = 1;
    for _ in 0..5 {
        let plan = tenant.round();
        tenant.doors -= plan.messages.len();
        tenant.go_to(tenant.now.plus_millis(20));
    }
    assert_eq!(tenant.written, [(campaign_id(1), contact(1, 0, "UTC").id)]);
}

#[test]
fn a_suspended_tenants_contacts_are_skipped_when_patience_ends() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 3, "UTC");
    tenant.snapshot.blocks.push(Block {
        tenant_id: TENANT,
        env: Env::Test,
        reason: Reason::Suspension,
        since: noon(),
    });
    let plan = tenant.round();
    assert_eq!(plan.wake_at.0, Some(noon().plus_seconds(PATIENCE_SECONDS)));
    tenant.go_to(noon().plus_seconds(PATIENCE_SECONDS));
    tenant.round();
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::TenantSuspended));
    assert_eq!(tenant.settled, [skipped; 3]);
    let after = tenant.round();
    assert!(after.wake_at.0 > Some(tenant.now), "it would spin");
    assert!(tenant.calls.is_empty());
}

#[test]
fn who_finds_no_slot_for_too_long_is_skipped() {
    let fields = json!({ "pacing": { "calls_per_second": 50.0, "max_wait_seconds": 5 } });
    let mut tenant = Tenant::new(room(1, 0), 100.0, 12).with(0, fields, 4, "UTC");
    tenant.live_on(|_, _| {});
    // One is called, two wait 5 seconds each in vain, the last one finds the slot free.
    assert_eq!(tenant.called(0), 2);
    let skipped = (campaign_id(0), Settlement::Skip(SkipReason::ConcurrencyFull));
    assert_eq!(tenant.settled, [skipped; 2]);
}

#[test]
fn nothing_more_is_planned_while_many_calls_are_late() {
    let mut tenant = Tenant::new(room(9, 0), 100.0, 60).with(0, json!({}), 9, "UTC");
    tenant.late = MAX_LATE + 1;
    let plan = tenant.round();
    assert!(plan.is_empty());
    assert_eq!(plan.wake_at.0, Some(noon().plus(LEAD)));
    tenant.late = MAX_LATE;
    assert!(!tenant.round().is_empty());
}

/// What a random campaign wants: rate, weight, calls at once, calls a day, budget, office hours only, contacts, zone.
type Wish = (f64, i32, Option<i32>, Option<i32>, Option<i32>, bool, usize, usize);

fn wish() -> impl Strategy<Value = Wish> {
    (
        0.5f64..60.0,
        1..=100,
        proptest::option::of(1..6),
        proptest::option::of(1..20),
        proptest::option::of(50..600),
        any::<bool>(),
        0usize..40,
        0usize..3,
    )
}

fn fields((rate, weight, at_once, a_day, budget, office, ..): Wish) -> Value {
    let windows = office.then(|| json!([{ "start": "09:00", "end": "17:00" }]));
    json!({
        "pacing": { "calls_per_second": (rate * 10.0).round() / 10.0, "weight": weight, "max_concurrency": at_once },
        "caps": { "campaign_per_day": a_day, "budget_cents": budget, "per_number_24h": null, "per_number_7d": null, "on_cap": "defer" },
        "schedule": { "windows": windows },
    })
}

const ZONES: [&str; 3] = ["UTC", "Asia/Tokyo", "America/New_York"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_limit_is_ever_passed_and_nobody_is_left_behind(
        wishes in proptest::collection::vec(wish(), 1..5), rate in 0.5f64..100.0, limit in 1i32..12, reserve in 0i32..3, seconds in 1i64..90,
    ) {
        let concurrency = room(limit, reserve.min(limit - 1));
        let mut tenant = Tenant::new(concurrency, rate, seconds);
        for (n, wish) in wishes.iter().enumerate() {
            tenant = tenant.with(n, fields(*wish), wish.6, ZONES[wish.7]);
        }
        tenant.live_on(|tenant, _| {
            assert!(tenant.snapshot.live.len() <= usize::try_from(concurrency.outbound()).unwrap(), "slots");
            for (n, wish) in wishes.iter().enumerate() {
                let queue = tenant.queue(n);
                let live = tenant.snapshot.live.values().filter(|slot| slot.campaign_id == Some(queue.id)).count();
                assert!(wish.2.is_none_or(|most| live <= most as usize), "calls at once");
                assert!(wish.3.is_none_or(|most| queue.usage.dialed_today <= i64::from(most)), "calls a day");
                assert!(wish.4.is_none_or(|most| queue.usage.reserved_cents <= i64::from(most)), "budget");
            }
        });
        let most = |rate: f64| (rate + f64::from(burst(rate).get())).ceil() as usize;
        prop_assert!(tenant.most_in_a_second(|_| true) <= most(rate), "the tenant's rate");
        for (n, wish) in wishes.iter().enumerate() {
            let of_campaign = tenant.most_in_a_second(|id| id == campaign_id(n));
            prop_assert!(of_campaign <= most((wish.0 * 10.0).round() / 10.0), "the campaign's rate");
            // What one call may cost at most is 60 cents: a smaller budget calls nobody.
            let expected = if wish.4.is_some_and(|budget| budget < 60) { 0 } else { wish.6 };
            prop_assert_eq!(tenant.called(n), expected, "of campaign {}", n);
        }
        let mut whom: Vec<ContactId> = tenant.calls.iter().map(|(.., contact)| *contact).collect();
        whom.sort();
        let calls = whom.len();
        whom.dedup();
        prop_assert_eq!(whom.len(), calls, "somebody was called twice");
    }

    /// Looking again sooner than it asked to, without a cause, finds nothing: the moment it names is the first that matters.
    #[test]
    fn nothing_can_leave_before_the_moment_it_asked_for(wish in wish(), rate in 0.5f64..100.0, limit in 1i32..12) {
        let (contacts, zone) = (wish.6, ZONES[wish.7]);
        let mut tenant = Tenant::new(room(limit, 0), rate, 20).with(0, fields(wish), contacts, zone);
        for _ in 0..200 {
            let plan = tenant.round();
            if !plan.is_empty() {
                tenant.go_to(tenant.now.plus_millis(3));
                continue;
            }
            let ends = tenant.live.iter().map(|(_, ends_at)| *ends_at).min();
            let Some(at) = plan.wake_at.0.into_iter().chain(ends).min() else { break };
            let halfway = Moment::from_millis((tenant.now.millis() + at.millis()) / 2);
            if halfway > tenant.now {
                tenant.go_to(halfway);
                prop_assert!(tenant.round().is_empty(), "at {halfway:?}, before {at:?}");
            }
            tenant.go_to(at);
        }
    }

    /// Campaigns that all have somebody to call share what the workspace's rate allows by their weights.
    #[test]
    fn shares_follow_the_weights(weights in proptest::collection::vec(1i32..=100, 2..6)) {
        let mut tenant = Tenant::new(room(100_000, 0), 20.0, 1);
        for (n, weight) in weights.iter().enumerate() {
            let fields = json!({ "pacing": { "calls_per_second": 60.0, "weight": weight }, "caps": { "per_number_24h": null } });
            tenant = tenant.with(n, fields, 2_000, "UTC");
        }
        while tenant.calls.len() < 400 {
            let plan = tenant.round();
            let next = if plan.is_empty() { plan.wake_at.0.unwrap() } else { tenant.now.plus_millis(3) };
            tenant.go_to(next);
        }
        let (calls, total) = (tenant.calls.len() as f64, weights.iter().sum::<i32>() as f64);
        for (n, weight) in weights.iter().enumerate() {
            let share = calls * f64::from(*weight) / total;
            prop_assert!((tenant.called(n) as f64 - share).abs() <= weights.len() as f64 + 1.0, "{weights:?}: {} of {share}", tenant.called(n));
        }
    }
}
