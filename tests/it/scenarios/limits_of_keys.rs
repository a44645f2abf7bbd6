//! What an API key's own limits leave to the calls that are asked for with it.
use crate::{
    on_both,
    world::{Api, Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use callboard::access::{self, CallLimits, NewKey};
use entities::{
    Error,
    changes::{Guard, KeyCall},
    ids::{ApiKeyId, SessionId},
    values::{Bounded, Cents, Env, Scopes, Text},
};
use rules::commit::Commit;
use serde_json::{Value, json};
use uuid::Uuid;

/// Another key of the same workspace.
async fn limited(world: &World, tenant: &Tenant, spend: Option<i64>, calls: Option<i64>) -> Api {
    let limits = CallLimits {
        max_spend_cents_per_day: spend.map(|most| Bounded::new(most).unwrap()),
        max_calls_per_minute: calls.map(|most| Bounded::new(most).unwrap()),
    };
    let asked = NewKey {
        name: Text::parse("limited").unwrap(),
        env: Env::Test,
        scopes: Scopes::all(),
        limits,
        expires_at: None,
    };
    let deps = world.deps();
    let (key, plaintext) = access::new_key(deps.ids.next(), tenant.id, asked, deps.clock.now());
    let mut commit = Commit::default();
    commit.changes.api_keys.push(key);
    deps.writer.commit(Of::Anybody, commit).await.unwrap();
    Api {
        key: plaintext.to_string(),
        ..tenant.api.clone()
    }
}

/// One call can cost 60 cents: it may last a minute.
async fn agent(world: &mut World) -> (Tenant, Value) {
    world.change_setting("call_price_cents_per_minute", 60.into()).await;
    let tenant = world.tenant().await;
    let agent =
        json!({ "name": "Ann", "prompt": "x", "max_duration_seconds": 60, "silence": { "hangup_after_seconds": 120 } });
    let agent = tenant.api.post("/v1/agents", agent).await.ok()["id"].clone();
    (tenant, agent)
}

fn call(agent: &Value, n: usize, script: Value) -> Value {
    json!({ "to_number": format!("+150023471{n}0"), "agent_id": agent, "sandbox": { "script": script } })
}

async fn cost(tenant: &Tenant, session: &Value) -> i64 {
    let id = session["id"].as_str().unwrap();
    let session = tenant.api.get(&format!("/v1/sessions/{id}")).await.ok();
    assert_eq!(session["status"], "completed", "{session}");
    session["actual_cost_cents"].as_i64().unwrap()
}

on_both! {
    async fn what_a_key_may_spend_in_a_day_holds_over_a_restart_until_the_next(world: &mut World) {
        let (tenant, agent) = agent(world).await;
        let key = limited(world, &tenant, Some(100), None).await;
        let me = key.get("/v1/me").await.ok();
        assert_eq!((&me["key"]["max_spend_cents_per_day"], &me["key"]["max_calls_per_minute"]), (&json!(100), &Value::Null));
        let first = key.post("/v1/sessions", call(&agent, 0, json!([{ "hang_up": true }]))).await.ok();
        // In flight it counts with all that it can cost.
        let refused = key.post("/v1/sessions", call(&agent, 1, json!([]))).await;
        assert_eq!(refused.error(), (429, "rate_limited", Some("max_spend_cents_per_day")));
        world.advance(minutes(2)).await;
        let cheap = cost(&tenant, &first).await;
        assert!(cheap < 40, "{cheap}");
        let long = json!([{ "silence_seconds": 45 }, { "hang_up": true }]);
        let second = key.post("/v1/sessions", call(&agent, 1, long)).await.ok();
        world.advance(minutes(2)).await;
        let spent = cheap + cost(&tenant, &second).await;
        assert!((41..=100).contains(&spent), "{spent}");
        // What is deleted was spent all the same.
        let path = format!("/v1/sessions/{}", second["id"].as_str().unwrap());
        assert_eq!(tenant.api.delete(&path).await.status, 204);
        world.restart().await;
        let refused = key.post("/v1/sessions", call(&agent, 2, json!([]))).await;
        assert_eq!(refused.error(), (429, "rate_limited", Some("max_spend_cents_per_day")));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("100 cents a day: {spent} are spent")), "{message}");
        // Others are not concerned.
        tenant.api.post("/v1/sessions", call(&agent, 3, json!([{ "hang_up": true }]))).await.ok();
        world.leap(minutes(24 * 60)).await;
        key.post("/v1/sessions", call(&agent, 4, json!([{ "hang_up": true }]))).await.ok();
        world.advance(minutes(2)).await;
    }

    async fn a_key_places_so_many_calls_a_minute_and_no_more(world: &mut World) {
        let (tenant, agent) = agent(world).await;
        let key = limited(world, &tenant, None, Some(2)).await;
        for n in 0..2 {
            key.post("/v1/sessions", call(&agent, n, json!([{ "hang_up": true }]))).await.ok();
        }
        let refused = key.post("/v1/sessions", call(&agent, 2, json!([]))).await;
        assert_eq!(refused.error(), (429, "rate_limited", Some("max_calls_per_minute")));
        let wait: i64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=61).contains(&wait), "{wait}");
        world.advance(seconds(30)).await;
        let refused = key.post("/v1/sessions", call(&agent, 2, json!([]))).await;
        assert_eq!(refused.error().0, 429);
        tenant.api.post("/v1/sessions", call(&agent, 3, json!([{ "hang_up": true }]))).await.ok();
        world.advance(seconds(60)).await;
        key.post("/v1/sessions", call(&agent, 2, json!([{ "hang_up": true }]))).await.ok();
        // One for later is asked about when its time has come.
        let later = world.clock.now().plus_seconds(3_600);
        for n in 5..8 {
            let mut call = call(&agent, n, json!([{ "hang_up": true }]));
            call["scheduled_at"] = json!(later);
            key.post("/v1/sessions", call).await.ok();
        }
        world.advance(seconds(3_630)).await;
        let list = tenant.api.get("/v1/sessions?limit=100").await.ok();
        let waits = |list: &Value| list["data"].as_array().unwrap().iter().filter(|session| session["phase"] == "queued").count();
        assert_eq!(waits(&list), 1, "two of three were dialled: {list}");
        world.advance(seconds(90)).await;
        let list = tenant.api.get("/v1/sessions?limit=100").await.ok();
        assert!(list["data"].as_array().unwrap().iter().all(|session| session["status"] == "completed"), "{list}");
    }

    async fn a_call_that_no_day_has_room_for_is_refused_at_once(world: &mut World) {
        let (tenant, agent) = agent(world).await;
        let key = limited(world, &tenant, Some(59), None).await;
        let mut asked = call(&agent, 0, json!([{ "hang_up": true }]));
        let later = world.clock.now().plus_seconds(3_600);
        for scheduled_at in [Value::Null, json!(later)] {
            asked["scheduled_at"] = scheduled_at;
            let refused = key.post("/v1/sessions", asked.clone()).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some("max_duration_seconds")));
        }
        asked["scheduled_at"] = Value::Null;
        asked["max_duration_seconds"] = json!(59);
        key.post("/v1/sessions", asked).await.ok();
        world.advance(minutes(2)).await;
    }

    /// Its agent's longest call costs more than all calls of a day may: it would wait for ever.
    async fn a_campaign_that_no_day_has_room_for_does_not_start(world: &mut World) {
        let (tenant, agent) = agent(world).await;
        let less = limited(world, &tenant, Some(59), None).await;
        let enough = limited(world, &tenant, Some(60), None).await;
        let contacts = json!([{ "phone_number": "+15002347200" }]);
        let campaign = json!({ "name": "x", "agent_id": agent });
        let mut at_once = campaign.clone();
        at_once["contacts"] = contacts.clone();
        let refused = less.post("/v1/campaigns/run", at_once).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("max_duration_seconds")));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("`max_spend_cents_per_day`") && message.contains("its agent"), "{message}");
        assert_eq!(tenant.api.get("/v1/campaigns").await.ok()["data"], json!([]));
        let draft = less.post("/v1/campaigns", campaign).await.ok();
        let path = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        less.post(&format!("{path}/contacts"), json!({ "contacts": contacts })).await.ok();
        let refused = less.post(&format!("{path}/start"), json!({})).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("max_duration_seconds")));
        assert_eq!(tenant.api.get(&path).await.ok()["status"], "draft");
        enough.post(&format!("{path}/start"), json!({})).await.ok();
        world.advance(minutes(5)).await;
        assert_eq!(tenant.api.get(&path).await.ok()["status"], "completed");
    }

    /// Whatever was planned: several that together are too many do not stand, and nothing of them is written.
    async fn a_keys_limits_hold_inside_the_transaction_of_a_dial(world: &mut World) {
        let (tenant, agent) = agent(world).await;
        let key = limited(world, &tenant, Some(130), Some(3)).await;
        let me = key.get("/v1/me").await.ok();
        let api_key_id: ApiKeyId = me["key"]["id"].as_str().unwrap().parse().unwrap();
        let long = json!([{ "silence_seconds": 45 }, { "hang_up": true }]);
        let live = key.post("/v1/sessions", call(&agent, 0, long)).await.ok();
        let live: SessionId = live["id"].as_str().unwrap().parse().unwrap();
        world.advance(seconds(5)).await;
        let (deps, dialed_at) = (world.deps(), world.clock.now());
        let dial = |session_id, most| Guard::KeyHasRoom(KeyCall { api_key_id, session_id, most: Cents(most), dialed_at });
        let [one, other, third] = [1, 2, 3].map(|n| SessionId(Uuid::from_u128(n)));
        // The one that is live counts with 60 cents, and as one of three in this minute.
        for (dials, stands) in [
            (vec![dial(one, 70)], true),
            (vec![dial(one, 71)], false),
            (vec![dial(one, 35), dial(other, 35)], true),
            (vec![dial(one, 35), dial(other, 36)], false),
            (vec![dial(one, 0), dial(other, 0)], true),
            (vec![dial(one, 0), dial(other, 0), dial(third, 0)], false),
            // Not against itself.
            (vec![dial(live, 60), dial(one, 70)], true),
        ] {
            let mut commit = Commit::default();
            commit.changes.guards.clone_from(&dials);
            match deps.writer.commit(Of::Anybody, commit).await {
                Ok(()) => assert!(stands, "{dials:?}"),
                Err(Error::Stale) => assert!(!stands, "{dials:?}"),
                Err(error) => panic!("{dials:?}: {error}"),
            }
        }
        world.advance(minutes(2)).await;
    }

    async fn a_campaign_waits_for_the_limits_of_the_key_that_started_it(world: &mut World) {
        let (tenant, agent) = agent(world).await;
        let key = limited(world, &tenant, Some(10_000), Some(2)).await;
        let contacts: Vec<Value> = (0..6).map(|n| json!({ "phone_number": format!("+150023472{n}0") })).collect();
        let campaign = json!({ "name": "x", "agent_id": agent, "contacts": contacts, "pacing": { "calls_per_second": 50 } });
        let campaign = key.post("/v1/campaigns/run", campaign).await.ok();
        let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
        let dialed = async || {
            let list = tenant.api.get(&format!("/v1/sessions?limit=100&campaign_id={}", campaign["id"].as_str().unwrap())).await.ok();
            list["data"].as_array().unwrap().len()
        };
        world.advance(seconds(45)).await;
        assert_eq!(dialed().await, 2);
        let view = tenant.api.get(&path).await.ok();
        assert_eq!((&view["status"], &view["blocked_by"]), (&json!("running"), &json!(["api_key"])));
        let stats = tenant.api.get(&format!("{path}/stats")).await.ok();
        assert_eq!(stats["limiting_factor"], "api_key");
        // Its calls and the API's count together.
        let refused = key.post("/v1/sessions", call(&agent, 0, json!([]))).await;
        assert_eq!(refused.error(), (429, "rate_limited", Some("max_calls_per_minute")));
        world.restart().await;
        world.advance(seconds(45)).await;
        assert_eq!(dialed().await, 4);
        world.advance(seconds(150)).await;
        let view = tenant.api.get(&path).await.ok();
        assert_eq!((&view["status"], &view["counts"]["completed"], &view["counts"]["failed"]), (&json!("completed"), &json!(6), &json!(0)));
    }
}
