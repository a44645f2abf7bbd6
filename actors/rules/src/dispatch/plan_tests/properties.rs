//! What holds for every tenant, whatever its campaigns want. `Tenant::check` asks more of each plan, the order of turns too.
use super::*;
use crate::dispatch::pace::burst;
use entities::ids::ContactId;
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::Value;

/// The same ones each time.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(20_260_302),
        ..ProptestConfig::with_cases(cases)
    }
}

/// What a random campaign wants.
#[derive(Clone, Debug)]
struct Wish {
    rate: f64,
    weight: i32,
    at_once: Option<i32>,
    a_day: Option<i32>,
    budget: Option<i32>,
    /// Within office hours only.
    office: bool,
    contacts: usize,
    zone: &'static str,
    /// Calls to one contact, and the minutes between them.
    attempts: (usize, i32),
    env: Env,
}

fn wish() -> impl Strategy<Value = Wish> {
    let pacing = (5i32..600, 1i32..=100, proptest::option::of(1i32..6));
    let caps = (proptest::option::of(1i32..20), proptest::option::of(50i32..600));
    let whom = (
        0usize..40,
        prop::sample::select(vec!["UTC", "Asia/Tokyo", "America/New_York"]),
    );
    let attempts = (1usize..4, prop::sample::select(vec![0i32, 1, 45]));
    let env = prop::sample::select(vec![Env::Live, Env::Test]);
    (pacing, caps, any::<bool>(), whom, attempts, env).prop_map(|(pacing, caps, office, whom, attempts, env)| {
        let ((tenths, weight, at_once), (a_day, budget), (contacts, zone)) = (pacing, caps, whom);
        Wish {
            rate: f64::from(tenths) / 10.0,
            weight,
            at_once,
            a_day,
            budget,
            office,
            contacts,
            zone,
            attempts,
            env,
        }
    })
}

impl Wish {
    fn fields(&self) -> Value {
        let windows = self.office.then(|| json!([{ "start": "09:00", "end": "17:00" }]));
        let (max_attempts, min_gap_minutes) = self.attempts;
        json!({
            "pacing": { "calls_per_second": self.rate, "weight": self.weight, "max_concurrency": self.at_once },
            "caps": {
                "campaign_per_day": self.a_day, "budget_cents": self.budget,
                "per_number_24h": null, "per_number_7d": null, "on_cap": "defer",
            },
            "schedule": { "windows": windows },
            "retry": { "max_attempts": max_attempts, "min_gap_minutes": min_gap_minutes },
        })
    }

    /// What one call may cost at most is 60 cents: a smaller budget calls nobody.
    fn calls(&self) -> usize {
        match self.budget {
            Some(..60) => 0,
            Some(_) | None => self.contacts * self.attempts.0,
        }
    }

    fn add(&self, tenant: Tenant, n: usize) -> Tenant {
        tenant.with_in(self.env, n, self.fields(), self.contacts, self.zone)
    }
}

/// No limit is passed, of slots, of the day, of the budget.
fn within_limits(tenant: &Tenant, wishes: &[Wish]) {
    let outbound = usize::try_from(tenant.snapshot.concurrency.outbound()).unwrap();
    let live = |of: &dyn Fn(&Slot) -> bool| tenant.snapshot.live.values().filter(|slot| of(slot)).count();
    for env in [Env::Live, Env::Test] {
        assert!(live(&|slot| slot.env == env) <= outbound, "slots of {env}");
    }
    for (n, wish) in wishes.iter().enumerate() {
        let queue = tenant.queue(n);
        let live = live(&|slot| slot.campaign_id == Some(queue.id));
        assert!(wish.at_once.is_none_or(|most| live <= most as usize), "calls at once");
        let usage = &queue.usage;
        assert!(
            wish.a_day.is_none_or(|most| usage.dialed_today <= i64::from(most)),
            "calls a day"
        );
        assert!(
            wish.budget.is_none_or(|most| usage.reserved_cents <= i64::from(most)),
            "budget"
        );
    }
}

proptest! {
    #![proptest_config(cases(64))]
    /// In both envs, whether their queues last or are made anew all the time.
    #[test]
    fn no_limit_is_ever_passed_and_nobody_is_left_behind(
        wishes in proptest::collection::vec(wish(), 1..5), rate in 0.5f64..100.0, limit in 1i32..12, reserve in 0i32..3,
        seconds in 1i64..90, reopens in 0usize..5,
    ) {
        let mut tenant = Tenant::new(room(limit, reserve.min(limit - 1)), rate, seconds);
        tenant.reopens = reopens;
        for (n, wish) in wishes.iter().enumerate() {
            tenant = wish.add(tenant, n);
        }
        tenant.live_on(|tenant, _| within_limits(tenant, &wishes));
        let most = |rate: f64| (rate + f64::from(burst(rate).get())).ceil() as usize;
        prop_assert!(tenant.most_in_a_second(|_| true) <= most(rate), "the tenant's rate");
        for (n, wish) in wishes.iter().enumerate() {
            let of_campaign = tenant.most_in_a_second(|id| id == campaign_id(n));
            prop_assert!(of_campaign <= most(wish.rate), "the campaign's rate");
            prop_assert_eq!(tenant.called(n), wish.calls(), "of campaign {}", n);
        }
        let mut whom: Vec<(CampaignId, ContactId)> = tenant.calls.iter().map(|(_, id, contact)| (*id, *contact)).collect();
        whom.sort();
        for (n, wish) in wishes.iter().enumerate() {
            let calls: Vec<_> = whom.iter().filter(|(id, _)| *id == campaign_id(n)).collect();
            let mut each = calls.chunk_by(|one, other| one == other);
            prop_assert!(each.all(|calls| calls.len() == wish.attempts.0), "not as often as wanted");
        }
    }

    /// Looking again sooner than it asked to, without a cause, finds nothing: the moment it names is the first that matters.
    #[test]
    fn nothing_can_leave_before_the_moment_it_asked_for(wish in wish(), rate in 0.5f64..100.0, limit in 1i32..12) {
        let mut tenant = wish.add(Tenant::new(room(limit, 0), rate, 20), 0);
        for _ in 0..200 {
            let plan = tenant.round();
            if !plan.is_empty() {
                tenant.go_to(tenant.now.plus_millis(3));
                continue;
            }
            let Some(at) = tenant.next_moment(&plan) else { break };
            let halfway = Moment::from_millis((tenant.now.millis() + at.millis()) / 2);
            if halfway > tenant.now {
                tenant.go_to(halfway);
                // Somebody whose time has come may be put off.
                prop_assert!(tenant.round().calls.is_empty(), "at {halfway:?}, before {at:?}");
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
