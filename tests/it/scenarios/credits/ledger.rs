//! The ledger under calls: each hold is closed once, every ledger adds up, and nothing is dialled that is not covered.
use crate::{
    on_both,
    scenarios::the_call::told,
    world::{Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::{
    ledger::{self, Kind, Movement},
    values::{Cents, Env},
};
use rules::{commit::Commit, credits::chain};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub async fn credits(tenant: &Tenant) -> (i64, i64, i64) {
    let shown = tenant.api.get("/v1/credits").await.ok();
    let cents = |name: &str| shown[name].as_i64().unwrap();
    (cents("balance_cents"), cents("held_cents"), cents("available_cents"))
}

pub async fn moves(world: &World, movement: Movement) {
    let mut commit = Commit::default();
    commit.changes.movements.push(movement);
    world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
}

pub async fn entries(world: &World, tenant: &Tenant) -> Vec<ledger::Model> {
    let owner = (tenant.id, Env::Test);
    ledger::entries_after(&world.deps().db.read, owner, 0, 100_000)
        .await
        .unwrap()
}

/// What must hold of a ledger when all calls have ended. Answers what was charged.
async fn adds_up(world: &World, tenant: &Tenant) -> i64 {
    let entries = entries(world, tenant).await;
    assert_eq!(chain::first_broken(&entries), None, "the chain of hashes is whole");
    let sum: i64 = entries.iter().map(|entry| entry.amount().0).sum();
    let (balance, held, available) = credits(tenant).await;
    assert_eq!((balance, held, available), (sum, 0, sum));
    assert!(
        entries
            .iter()
            .all(|entry| entry.balance_after_cents >= entry.held_after_cents),
        "nothing was overdrawn"
    );
    let mut by_subject: BTreeMap<_, BTreeMap<&str, (usize, i64)>> = BTreeMap::new();
    for entry in &entries {
        let name = match entry.kind {
            Kind::Hold => "hold",
            Kind::Charge => "charge",
            Kind::Release => "release",
            Kind::Topup | Kind::Refund | Kind::RefundFailed | Kind::Adjustment => continue,
        };
        let of = by_subject
            .entry(entry.subject_id.unwrap())
            .or_default()
            .entry(name)
            .or_default();
        (of.0, of.1) = (of.0 + 1, of.1 + entry.cents.0);
    }
    for (subject, kinds) in &by_subject {
        let of = |name: &str| kinds.get(name).copied().unwrap_or_default();
        assert_eq!(of("hold").0, 1, "{subject} was set aside for once: {kinds:?}");
        assert!(
            of("charge").0 <= 1 && of("release").0 <= 1,
            "{subject} was closed once: {kinds:?}"
        );
        assert_eq!(of("hold").1, of("charge").1 + of("release").1, "{subject}: {kinds:?}");
    }
    let sessions = tenant.api.get("/v1/sessions?limit=100").await.ok();
    for session in sessions["data"].as_array().unwrap() {
        let id: uuid::Uuid = session["id"].as_str().unwrap().parse().unwrap();
        let posted = by_subject
            .get(&id)
            .and_then(|kinds| kinds.get("charge"))
            .map_or(0, |charge| charge.1);
        assert_eq!(session["actual_cost_cents"].as_i64(), Some(posted), "{id}");
    }
    entries
        .iter()
        .filter(|entry| entry.kind == Kind::Charge)
        .map(|entry| entry.cents.0)
        .sum()
}

pub fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("+1500234{n:03}0")).collect()
}

/// An agent whose calls last a minute at most.
async fn agent(tenant: &Tenant) -> String {
    let agent = json!({ "name": "Ann", "prompt": "x", "max_duration_seconds": 60 });
    tenant.api.post("/v1/agents", agent).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

on_both! {
    async fn what_a_call_costs_is_set_aside_charged_and_told(world: &mut World) {
        world.change_setting("call_price_cents_per_minute", 60.into()).await;
        let tenant = world.tenant().await;
        assert_eq!(credits(&tenant).await, (1_000_000, 0, 1_000_000), "the test env begins with something to play with");
        let call = json!({ "to_number": "+15002340000", "agent_id": agent(&tenant).await });
        let id = tenant.api.post("/v1/sessions", call).await.ok()["id"].as_str().unwrap().to_owned();
        world.advance(seconds(1)).await;
        assert_eq!(credits(&tenant).await, (1_000_000, 60, 999_940), "a minute at 60 cents");
        world.advance(minutes(2)).await;
        let session = tenant.api.get(&format!("/v1/sessions/{id}")).await.ok();
        let cost = session["actual_cost_cents"].as_i64().unwrap();
        assert_eq!(session["duration_seconds"].as_i64(), Some(cost), "a cent a second");
        assert_eq!(told(&tenant, "session.ended").await[0]["actual_cost_cents"].as_i64(), Some(cost));
        assert_eq!(credits(&tenant).await, (1_000_000 - cost, 0, 1_000_000 - cost));
        let ledger = tenant.api.get(&format!("/v1/credits/ledger?order=asc&subject_id={id}")).await.ok();
        let kinds: Vec<_> = ledger["data"].as_array().unwrap().iter()
            .map(|entry| (entry["kind"].as_str().unwrap(), entry["amount_cents"].as_i64().unwrap())).collect();
        assert_eq!(kinds, [("hold", 0), ("charge", -cost), ("release", 0)]);
        assert_eq!(adds_up(world, &tenant).await, cost);
        assert_eq!(tenant.api.get("/v1/credits/ledger?kind=charge").await.ok()["data"].as_array().unwrap().len(), 1);
        assert_eq!(tenant.api.get("/v1/credits/ledger?kind=gift").await.error().1, "validation_failed");
    }

    /// A campaign that runs out waits, says so once, and goes on by itself when something is paid in.
    async fn a_campaign_that_runs_out_waits_and_resumes_by_itself(world: &mut World) {
        // Strict: a call holds all that it can cost.
        let changes = [("call_price_cents_per_minute", json!(1200)), ("test_credits_cents", json!(1_500)), ("credit_hold_seconds", json!(0))];
        world.change_settings(&changes).await;
        let tenant = world.tenant().await;
        tenant.api.patch("/v1/credits", json!({ "warning_threshold_cents": 1300 })).await.ok();
        let agent = agent(&tenant).await;
        let numbers = numbers(12);
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "agent_id": agent })).await;
        world.advance(seconds(1)).await;
        let live = tenant.api.get("/v1/concurrency").await.ok()["in_use"].as_i64().unwrap();
        assert_eq!(live, 1, "1,500 cents cover one call of at most 1,200");
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["blocked_by"]), (&json!("running"), &json!(["credits"])));
        world.advance(minutes(10)).await;
        // Whatever is left does not cover one more call.
        let (balance, held, _) = credits(&tenant).await;
        let campaign = tenant.campaign(&id).await;
        assert!(held == 0 && balance < 1_200, "{balance}, {held}, {campaign}");
        assert_eq!(told(&tenant, "credits.low_balance").await.len(), 1);
        assert_eq!(told(&tenant, "credits.depleted").await.len(), 1, "nothing that is live can give back enough");
        assert_eq!(tenant.campaign(&id).await["blocked_by"], json!(["credits"]));
        let call = json!({ "to_number": "+15002340000", "agent_id": agent });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error().1, "insufficient_credits");
        moves(world, Movement::top_up((tenant.id, Env::Test), uuid::Uuid::from_u128(1), Cents(50_000), "pi_1".into())).await;
        let paid = &told(&tenant, "credits.topup_succeeded").await[0];
        assert_eq!((paid["amount_cents"].as_i64(), paid["new_balance_cents"].as_i64()), (Some(50_000), Some(balance + 50_000)));
        world.advance(minutes(10)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["counts"]["completed"]), (&json!("completed"), &json!(12)));
        let cost = tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok()["cost_cents"].as_i64();
        assert_eq!(Some(adds_up(world, &tenant).await), cost);
    }

    /// With holds shorter than the calls the balance may fall to zero and below: nothing more is dialled, what is live runs on.
    async fn at_zero_nothing_is_dialled_until_a_top_up(world: &mut World) {
        world.change_setting("call_price_cents_per_minute", 600.into()).await;
        world.change_setting("credit_hold_seconds", 1.into()).await;
        world.change_setting("test_credits_cents", 30.into()).await;
        let tenant = world.tenant().await;
        let agent = agent(&tenant).await;
        let numbers = numbers(8);
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "agent_id": agent, "pacing": { "calls_per_second": 1 } })).await;
        world.advance(minutes(5)).await;
        let (balance, held, _) = credits(&tenant).await;
        assert!(balance < 0 && held == 0, "{balance}");
        let depleted = told(&tenant, "credits.depleted").await;
        assert_eq!(depleted.len(), 1, "once per drop");
        let shown = tenant.api.get("/v1/credits").await.ok();
        assert_eq!(shown["depleted_at"], depleted[0]["depleted_at"]);
        let counts = tenant.campaign(&id).await["counts"].clone();
        let completed = counts["completed"].as_i64().unwrap();
        assert!((1..8).contains(&completed) && counts["dispatched"] == 0, "live calls ran to their own end: {counts}");
        let call = json!({ "to_number": "+15002340000", "agent_id": agent });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error().1, "insufficient_credits");
        // Some is paid, but not enough.
        let owner = (tenant.id, Env::Test);
        moves(world, Movement::adjust(owner, Cents(-balance), "not enough".into())).await;
        world.advance(minutes(2)).await;
        assert_eq!(tenant.campaign(&id).await["counts"]["completed"], completed);
        moves(world, Movement::adjust(owner, Cents(100_000), "enough".into())).await;
        world.advance(minutes(5)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["blocked_by"]), (&json!("completed"), &json!([])));
        assert_eq!(tenant.api.get("/v1/credits").await.ok()["depleted_at"], Value::Null);
        assert_eq!(told(&tenant, "credits.depleted").await.len(), 1);
    }

    /// 200 calls want to be dialled at once and credits are there for 40: so many are, and never more is set aside than is there.
    async fn two_hundred_parallel_dials_set_aside_no_more_than_there_is(world: &mut World) {
        // Strict: a call holds all that it can cost.
        let changes = [("call_price_cents_per_minute", json!(60)), ("test_credits_cents", json!(2_400)), ("credit_hold_seconds", json!(0))];
        world.change_settings(&changes).await;
        world.change_setting("max_calls_per_second", 10_000.into()).await;
        world.change_setting("number_cap_24h", 0.into()).await;
        world.change_setting("number_cap_7d", 0.into()).await;
        let tenant = world.tenant().await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1000 })).await.ok();
        let agent = agent(&tenant).await;
        let numbers = numbers(100);
        let given: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let plan = json!({ "agent_id": agent, "pacing": { "calls_per_second": 1000 } });
        let id = tenant.run_campaign(&given, plan).await;
        let asked = numbers.iter().map(|number| {
            let call = json!({ "to_number": number, "agent_id": agent, "queue_ttl_seconds": 3600 });
            tenant.api.post("/v1/sessions", call)
        });
        let answers = futures_util::future::join_all(asked).await;
        let placed = answers.iter().filter(|answer| answer.status == 201).count();
        assert!(answers.iter().all(|answer| answer.status == 201 || answer.error().1 == "insufficient_credits" || answer.error().1 == "rate_limited"));
        world.advance(seconds(2)).await;
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 40);
        let (balance, held, available) = credits(&tenant).await;
        assert_eq!((balance, held, available), (2_400, 2_400, 0));
        world.restart().await;
        world.advance(minutes(2)).await;
        moves(world, Movement::adjust((tenant.id, Env::Test), Cents(100_000), "more".into())).await;
        world.advance(minutes(10)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        let entries = entries(world, &tenant).await;
        assert_eq!(entries.iter().filter(|entry| entry.kind == Kind::Hold).count(), 100 + placed);
        adds_up(world, &tenant).await;
    }

    async fn the_operators_grants_are_booked_once(world: &mut World) {
        let tenant = world.tenant().await;
        let deps = world.deps();
        let row = |cents| ledger::grant::Model {
            id: deps.ids.next(),
            tenant_id: tenant.id,
            env: Env::Test,
            cents: Cents(cents),
            note: "welcome".into(),
            created_at: deps.clock.now(),
        };
        for row in [row(500), row(-200)] {
            let added = deps.writer.run(Of::Anybody, move |db| {
                let row = row.clone();
                Box::pin(async move { Ok((ledger::grant::add(db, row).await?, Commit::default())) })
            });
            added.await.unwrap();
        }
        world.advance(seconds(31)).await;
        assert_eq!(credits(&tenant).await.0, 1_000_300);
        world.restart().await;
        world.advance(minutes(2)).await;
        assert_eq!(credits(&tenant).await.0, 1_000_300);
        adds_up(world, &tenant).await;
    }

    /// Each env has a ledger of its own.
    async fn test_credits_never_touch_live_ones(world: &mut World) {
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, Env::Live, entities::values::Scopes::all()).await;
        moves(world, Movement::adjust((tenant.id, Env::Test), Cents(-1_000_000), "all of it".into())).await;
        assert_eq!(told(&tenant, "credits.depleted").await.len(), 1);
        let shown = live.get("/v1/credits").await.ok();
        assert_eq!((shown["env"].as_str(), shown["balance_cents"].as_i64(), &shown["depleted_at"]), (Some("live"), Some(0), &Value::Null));
        assert_eq!(live.get("/v1/credits/ledger").await.ok()["data"], json!([]));
        assert_eq!(live.get("/v1/events").await.ok()["data"], json!([]));
    }
}
