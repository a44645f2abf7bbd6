//! Credits that run out: what can be dialled is dialled, nobody is cut off, `credits.depleted` is told once per fall, and whoever
//! pays because of it goes on.
use super::ledger::{credits, entries, moves, numbers};
use crate::{
    on_both,
    scenarios::the_call::told,
    world::{Tenant, World, minutes, seconds},
};
use entities::{
    ledger::{Kind, Movement},
    values::{Cents, Env},
};
use rules::credits::chain;
use serde_json::{Value, json};

const DEPLETED: &str = "credits.depleted";

async fn falls(tenant: &Tenant) -> Vec<Value> {
    told(tenant, DEPLETED).await
}

async fn pays(tenant: &Tenant, cents: i64) {
    let paid = tenant
        .api
        .post("/v1/credits/topups", json!({ "amount_cents": cents }))
        .await
        .ok();
    assert_eq!(paid["status"], "succeeded");
}

/// The setting of the issue: a minute costs 60 cents, a call lasts ten at most, and 599 cents are there.
async fn six_hundred_wanted(world: &mut World, hold_seconds: i64) -> Tenant {
    let changes = [
        ("call_price_cents_per_minute", json!(60)),
        ("test_credits_cents", json!(599)),
        ("credit_hold_seconds", json!(hold_seconds)),
    ];
    world.change_settings(&changes).await;
    world.tenant().await
}

async fn calls(tenant: &Tenant, count: usize) -> String {
    let numbers = numbers(count);
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    tenant.run_campaign(&numbers, json!({})).await
}

async fn sessions(tenant: &Tenant) -> Vec<Value> {
    let listed = tenant.api.get("/v1/sessions?limit=100").await.ok();
    listed["data"].as_array().unwrap().clone()
}

/// No hold was more than there was, and everybody who was dialled talked to the end.
async fn nothing_was_overdrawn_and_nobody_cut_off(world: &World, tenant: &Tenant) {
    for entry in entries(world, tenant)
        .await
        .iter()
        .filter(|entry| entry.kind == Kind::Hold)
    {
        assert!(
            entry.balance_after_cents >= entry.held_after_cents && entry.cents > Cents(0),
            "{entry:?}"
        );
    }
    for session in sessions(tenant).await {
        let how = (&session["status"], &session["end_reason"]);
        assert_eq!(how, (&json!("completed"), &json!("completed")), "{session}");
    }
    assert_eq!(credits(tenant).await.1, 0, "nothing is held of calls that have ended");
}

on_both! {
    /// By default a dial takes what there is, down to the last cent; the event comes with the commit that spends it.
    async fn what_is_there_is_dialled_with_and_the_end_is_told_once(world: &mut World) {
        let changes = [("call_price_cents_per_minute", json!(1_200)), ("test_credits_cents", json!(599))];
        world.change_settings(&changes).await;
        let tenant = world.tenant().await;
        let id = calls(&tenant, 12).await;
        world.advance(seconds(1)).await;
        // A minute would cost 1,200: all there is is set aside for one call, and nobody is told anything yet.
        assert_eq!((credits(&tenant).await, falls(&tenant).await.len()), ((599, 599, 0), 0));
        assert_eq!(tenant.campaign(&id).await["blocked_by"], json!(["credits"]));
        world.advance(minutes(10)).await;
        let (balance, ..) = credits(&tenant).await;
        let depleted = falls(&tenant).await;
        assert_eq!((depleted.len(), depleted[0]["balance_cents"].as_i64()), (1, Some(balance)), "once, with the last charge");
        let called = sessions(&tenant).await.len();
        assert!(balance <= 0 && (2..12).contains(&called), "{balance} after {called} calls");
        nothing_was_overdrawn_and_nobody_cut_off(world, &tenant).await;
        let refused = tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await })).await;
        assert_eq!(refused.error().1, "insufficient_credits");
        pays(&tenant, 10_000).await;
        world.advance(minutes(10)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["counts"]["completed"], &campaign["blocked_by"]), (&json!("completed"), &json!(12), &json!([])));
        assert_eq!(falls(&tenant).await.len(), 1);
        nothing_was_overdrawn_and_nobody_cut_off(world, &tenant).await;
    }

    /// With whole holds a call that is not covered is not dialled: that is told at once, and again when what was paid is too little.
    async fn a_whole_hold_that_is_not_there_is_told_of(world: &mut World) {
        let tenant = six_hundred_wanted(world, 0).await;
        let id = calls(&tenant, 2).await;
        world.advance(minutes(5)).await;
        let depleted = falls(&tenant).await;
        assert_eq!((depleted.len(), depleted[0]["balance_cents"].as_i64()), (1, Some(599)));
        let shown = tenant.api.get("/v1/credits").await.ok();
        assert_eq!((&shown["depleted_at"], sessions(&tenant).await.len()), (&depleted[0]["depleted_at"], 0));
        assert_eq!(tenant.campaign(&id).await["blocked_by"], json!(["credits"]));
        // No payment is as small as a cent.
        let owner = (tenant.id, Env::Test);
        moves(world, Movement::adjust(owner, Cents(-100), "a mistake".into())).await;
        pays(&tenant, 100).await;
        world.advance(minutes(1)).await;
        assert_eq!((falls(&tenant).await.len(), sessions(&tenant).await.len()), (2, 0), "599 are too little still");
        world.restart().await;
        world.advance(minutes(1)).await;
        assert_eq!(falls(&tenant).await.len(), 2);
        pays(&tenant, 100).await;
        world.advance(seconds(1)).await;
        assert_eq!(credits(&tenant).await, (699, 600, 99));
        // The second one waits for what the first one gives back, and nobody is told: there is enough.
        world.advance(minutes(5)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        assert_eq!((falls(&tenant).await.len(), credits(&tenant).await.0 >= 600), (2, true));
        nothing_was_overdrawn_and_nobody_cut_off(world, &tenant).await;
    }

    /// The same workspace with the default: it just calls.
    async fn by_default_the_same_credits_are_enough(world: &mut World) {
        let tenant = six_hundred_wanted(world, 60).await;
        let id = calls(&tenant, 2).await;
        world.advance(minutes(5)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        assert!(falls(&tenant).await.is_empty());
        nothing_was_overdrawn_and_nobody_cut_off(world, &tenant).await;
    }

    /// What is set aside for a call grows while it lasts; it is settled once.
    async fn a_call_longer_than_its_hold_has_more_set_aside(world: &mut World) {
        let changes = [("call_price_cents_per_minute", json!(300)), ("credit_hold_seconds", json!(1))];
        world.change_settings(&changes).await;
        let tenant = world.tenant().await;
        calls(&tenant, 1).await;
        world.advance(minutes(2)).await;
        let [call] = &sessions(&tenant).await[..] else { panic!("one call") };
        let cost = call["actual_cost_cents"].as_i64().unwrap();
        assert!(cost > 10, "{cost}: five cents a second");
        let entries = entries(world, &tenant).await;
        let of = |kind: Kind| entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.cents.0).collect::<Vec<_>>();
        let holds = of(Kind::Hold);
        assert!(holds.len() >= 3 && holds.iter().all(|cents| *cents == 5), "{holds:?}");
        let held: i64 = holds.iter().sum();
        assert_eq!((of(Kind::Charge), held - of(Kind::Release).iter().sum::<i64>()), (vec![cost], cost));
        assert_eq!(chain::first_broken(&entries), None);
        nothing_was_overdrawn_and_nobody_cut_off(world, &tenant).await;
    }

    /// A message's price is known: what all that is left does not cover waits, and that is told.
    async fn what_a_message_costs_more_than_there_is_is_told_of(world: &mut World) {
        let changes = [("sms_price_cents_per_segment", json!(5)), ("email_price_cents", json!(4)), ("test_credits_cents", json!(7))];
        world.change_settings(&changes).await;
        let tenant = world.tenant().await;
        let later = |body: Value| {
            let mut body = body;
            body["scheduled_at"] = json!("2027-03-02T13:01:00Z");
            body
        };
        let mut ids = Vec::new();
        // Each is covered when it is written, and at its time one of them is not.
        for _ in 0..2 {
            let text = later(json!({ "to_number": "+15002340000", "body": "Hello." }));
            let row = tenant.api.post("/v1/sms_messages", text).await.ok();
            ids.push(row["id"].as_str().unwrap().to_owned());
        }
        world.advance(minutes(5)).await;
        let depleted = falls(&tenant).await;
        assert_eq!((depleted.len(), depleted[0]["balance_cents"].as_i64()), (1, Some(2)));
        let mail = json!({ "to": "ann@example.com", "subject": "x", "text": "x" });
        for _ in 0..3 {
            assert_eq!(tenant.api.post("/v1/email_messages", mail.clone()).await.error().1, "insufficient_credits");
        }
        world.advance(minutes(5)).await;
        assert_eq!(falls(&tenant).await.len(), 1);
        pays(&tenant, 100).await;
        world.advance(minutes(2)).await;
        for id in &ids {
            let row = tenant.api.get(&format!("/v1/sms_messages/{id}")).await.ok();
            assert_eq!((&row["status"], &row["actual_cost_cents"]), (&json!("delivered"), &json!(5)), "{row}");
        }
        assert_eq!((falls(&tenant).await.len(), credits(&tenant).await.0), (1, 97));
    }

    /// Whoever only asks is refused, and hears by the event too that nothing more of that kind can be sent; a text that is long
    /// stops nobody.
    async fn a_request_that_is_refused_for_the_last_cents_is_told_of(world: &mut World) {
        world.change_settings(&[("email_price_cents", json!(4)), ("sms_price_cents_per_segment", json!(5)), ("test_credits_cents", json!(11))]).await;
        let tenant = world.tenant().await;
        let mail = json!({ "to": "ann@example.com", "subject": "x", "text": "x" });
        tenant.api.post("/v1/email_messages", mail.clone()).await.ok();
        world.settle().await;
        let long = json!({ "to_number": "+15002340000", "body": "a".repeat(400) });
        assert_eq!(tenant.api.post("/v1/sms_messages", long).await.error().1, "insufficient_credits");
        assert!(falls(&tenant).await.is_empty(), "7 cents pay for a short one");
        tenant.api.post("/v1/email_messages", mail.clone()).await.ok();
        world.settle().await;
        for _ in 0..2 {
            assert_eq!(tenant.api.post("/v1/email_messages", mail.clone()).await.error().1, "insufficient_credits");
        }
        let depleted = falls(&tenant).await;
        assert_eq!((depleted.len(), depleted[0]["balance_cents"].as_i64()), (1, Some(3)));
        pays(&tenant, 100).await;
        tenant.api.post("/v1/email_messages", mail).await.ok();
        world.settle().await;
        assert_eq!(falls(&tenant).await.len(), 1);
    }

    /// An account that never had anything is taken below zero: it has fallen, and money lifts it.
    async fn a_new_account_that_is_taken_below_zero_is_told_of(world: &mut World) {
        world.change_setting("test_credits_cents", json!(0)).await;
        let tenant = world.tenant().await;
        let owner = (tenant.id, Env::Test);
        assert!(falls(&tenant).await.is_empty());
        for (cents, told, is_depleted) in [(-50, 1, true), (50, 1, true), (1, 1, false), (-1, 2, true)] {
            moves(world, Movement::adjust(owner, Cents(cents), "a correction".into())).await;
            let shown = tenant.api.get("/v1/credits").await.ok();
            assert_eq!((falls(&tenant).await.len(), !shown["depleted_at"].is_null()), (told, is_depleted), "{cents}");
        }
    }

    /// Many want the last cents at once: no cent is set aside twice, and nobody is called with nothing.
    async fn all_want_the_last_cents(world: &mut World) {
        let changes = [("call_price_cents_per_minute", json!(60)), ("test_credits_cents", json!(150)), ("max_calls_per_second", json!(10_000))];
        world.change_settings(&changes).await;
        let tenant = world.tenant().await;
        let numbers = numbers(60);
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let agent = tenant.agent().await;
        let plan = json!({ "agent_id": agent, "pacing": { "calls_per_second": 1_000 } });
        let id = tenant.run_campaign(&numbers[..50], plan).await;
        let asked = numbers[50..].iter().map(|number| {
            tenant.api.post("/v1/sessions", json!({ "to_number": number, "agent_id": agent, "queue_ttl_seconds": 3_600 }))
        });
        for answer in futures_util::future::join_all(asked).await {
            assert!(answer.status == 201 || answer.error().1 == "insufficient_credits");
        }
        world.advance(seconds(1)).await;
        assert_eq!(credits(&tenant).await, (150, 150, 0));
        let holds: Vec<_> = entries(world, &tenant).await.into_iter().filter(|entry| entry.kind == Kind::Hold).collect();
        assert_eq!(holds.iter().map(|entry| entry.cents.0).collect::<Vec<_>>(), [60, 60, 30], "and 30 is what was left");
        world.advance(minutes(10)).await;
        assert_eq!(falls(&tenant).await.len(), 1);
        pays(&tenant, 10_000).await;
        world.advance(minutes(10)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        nothing_was_overdrawn_and_nobody_cut_off(world, &tenant).await;
    }
}
