//! Calls that a person has answered and nobody of ours took: counted, told and held; who has said no; and numbers that networks block.
use crate::{
    on_both,
    world::{
        Tenant, World, minutes,
        realtime_server::{self, RealtimeServer, Turn},
        seconds,
    },
};
use actors::leases::Of;
use entities::{
    Error,
    abandonment::AbandonmentLimit,
    changes::Guard,
    ids::{CampaignId, TenantId},
    number_hour,
    rest::{self, RestCause},
    values::{E164, Env, Scopes},
};
use rules::commit::Commit;
use serde_json::{Value, json};

/// Source: 47 CFR 64.1200(a)(7), with our brake.
const US: AbandonmentLimit = AbandonmentLimit {
    limit_permille: 30,
    brake_permille: 20,
    hours: 720,
};
/// Source: ours, for Ofcom's policy.
const UK: AbandonmentLimit = AbandonmentLimit {
    limit_permille: 30,
    brake_permille: 5,
    hours: 24,
};

async fn agent(tenant: &Tenant, more: Value) -> String {
    let mut agent = json!({ "name": "Ann", "prompt": "Be kind." });
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = tenant.api.post("/v1/agents", agent).await.ok();
    made["id"].as_str().unwrap().to_owned()
}

async fn stats(tenant: &Tenant, campaign: &str) -> Value {
    tenant.api.get(&format!("/v1/campaigns/{campaign}/stats")).await.ok()
}

/// Why the person of that number is left alone, if so.
async fn rests(world: &World, tenant: TenantId, number: &str) -> Vec<RestCause> {
    let number: E164 = number.parse().unwrap();
    let db = &world.deps().db.read;
    let mut found = rest::of_numbers(db, (tenant, Env::Test), std::slice::from_ref(&number))
        .await
        .unwrap();
    let mut causes: Vec<_> = found
        .remove(&number)
        .unwrap_or_default()
        .iter()
        .map(|row| row.cause)
        .collect();
    causes.sort();
    causes
}

/// Would a dial of the campaign stand?
async fn may_dial(world: &World, campaign_id: CampaignId, limits: &[AbandonmentLimit]) -> bool {
    let mut commit = Commit::default();
    commit.changes.guards.push(Guard::NotBraked {
        campaign_id,
        limits: limits.to_vec(),
    });
    match world.deps().writer.commit(Of::Anybody, commit).await {
        Ok(()) => true,
        Err(Error::Stale) => false,
        Err(error) => panic!("{error}"),
    }
}

on_both! {
    /// The agent's model fails before its first word. What was counted outlives the process, and holds the dials of the next.
    async fn what_a_campaign_abandons_is_counted_and_holds_it(world: &mut World) {
        let server = RealtimeServer::start_with(|_: &Turn, _| realtime_server::Answer::Fail("out of order".into()));
        world.change_setting("realtime_url", json!(server.url)).await;
        let tenant = world.tenant().await;
        let broken = agent(&tenant, json!({ "brain": { "mode": "realtime" } })).await;
        let numbers = ["+15002348000", "+15002348010", "+15002348001"];
        let id = tenant.run_campaign(&numbers, json!({ "agent_id": broken })).await;
        world.advance(minutes(5)).await;
        let list = tenant.api.get(&format!("/v1/sessions?campaign_id={id}")).await.ok();
        let of = |number: &str| {
            let calls = list["data"].as_array().unwrap();
            calls.iter().find(|call| call["to_number"] == number).unwrap_or_else(|| panic!("{number}: {list}")).clone()
        };
        for number in &numbers[..2] {
            let call = of(number);
            assert_eq!((&call["end_reason"], &call["abandoned"]), (&json!("provider_error"), &json!("no_brain")), "{call}");
            assert_eq!(rests(world, tenant.id, number).await, [RestCause::Abandoned]);
        }
        assert_eq!(of(numbers[2])["abandoned"], Value::Null, "it was busy");
        assert_eq!(rests(world, tenant.id, numbers[2]).await, []);
        let counted = json!({ "answered_live": 2, "abandoned": 2, "rate": 1.0 });
        let campaign_id: CampaignId = id.parse().unwrap();
        for _ in 0..2 {
            let stats = stats(&tenant, &id).await;
            assert_eq!((&stats["abandonment"]["last_24_hours"], &stats["abandonment"]["last_30_days"]), (&counted, &counted));
            assert!(!may_dial(world, campaign_id, &[US]).await && !may_dial(world, campaign_id, &[UK]).await);
            assert!(may_dial(world, campaign_id, &[]).await, "where no law has a limit");
            world.restart().await;
        }
        // A day later the day's count is over, and the month's is not.
        world.leap(minutes(26 * 60)).await;
        assert!(!may_dial(world, campaign_id, &[US]).await && may_dial(world, campaign_id, &[UK]).await);
        world.leap(minutes(30 * 24 * 60)).await;
        assert!(may_dial(world, campaign_id, &[US, UK]).await);
    }

    async fn who_is_served_is_counted_and_not_left_alone(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers = ["+15002348100", "+15002348103"];
        let id = tenant.run_campaign(&numbers, json!({})).await;
        world.advance(minutes(5)).await;
        let stats = stats(&tenant, &id).await;
        // A machine is nobody.
        assert_eq!(stats["abandonment"]["last_30_days"], json!({ "answered_live": 1, "abandoned": 0, "rate": 0.0 }));
        let hour = &stats["hours"][0];
        assert_eq!((&hour["answered"], &hour["answered_live"], &hour["abandoned"]), (&json!(2), &json!(1), &json!(0)), "{hour}");
        for number in numbers {
            assert_eq!(rests(world, tenant.id, number).await, []);
        }
    }

    async fn a_no_is_remembered(world: &mut World) {
        let tenant = world.tenant().await;
        let dispositions = json!([{ "code": "no", "declined": true }, { "code": "later" }]);
        let agent = agent(&tenant, json!({ "dispositions": dispositions })).await;
        let shown = tenant.api.get(&format!("/v1/agents/{agent}")).await.ok();
        assert_eq!(shown["dispositions"][0]["declined"], true);
        let call = async |number: &str, outcome: &str| {
            let call = json!({ "to_number": number, "agent_id": agent, "sandbox": { "outcome": outcome } });
            let made = tenant.api.post("/v1/sessions", call).await.ok();
            made["id"].as_str().unwrap().to_owned()
        };
        let talked = call("+15002348200", "talk").await;
        call("+15002348210", "declined").await;
        call("+15002348220", "busy").await;
        world.advance(minutes(3)).await;
        assert_eq!(rests(world, tenant.id, "+15002348210").await, [RestCause::Declined], "turned down by hand");
        assert_eq!(rests(world, tenant.id, "+15002348220").await, []);
        let path = format!("/v1/sessions/{talked}");
        tenant.api.patch(&path, json!({ "disposition_code": "later" })).await.ok();
        assert_eq!(rests(world, tenant.id, "+15002348200").await, []);
        tenant.api.patch(&path, json!({ "disposition_code": "no" })).await.ok();
        assert_eq!(rests(world, tenant.id, "+15002348200").await, [RestCause::Declined]);
    }

    /// As networks do with numbers that they know for nuisance.
    async fn a_number_that_is_blocked_rests_for_a_day(world: &mut World) {
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let made = live.post("/v1/numbers", json!({ "phone_number": "+12025550177", "sms": { "registration_id": "C123" } })).await.ok();
        assert_eq!(made["sms"]["registration_id"], "C123");
        let path = format!("/v1/numbers/{}", made["id"].as_str().unwrap());
        let health = async || live.get(&path).await.ok()["outbound_health"].clone();
        assert_eq!((&health().await["dialed"], &health().await["block_rate"]), (&json!(0), &Value::Null));
        let number: E164 = "+12025550177".parse().unwrap();
        // Rows as calls over a trunk leave them.
        let count = async |dialed, blocked| {
            let mut commit = Commit::default();
            commit.changes.number_hours.push(number_hour::Model {
                dialed,
                answered: dialed / 2,
                blocked,
                ..number_hour::Model::empty((tenant.id, Env::Live), number.clone(), world.clock.now())
            });
            world.deps().writer.commit(tenant.id.into(), commit).await.unwrap();
            world.advance(seconds(31)).await;
        };
        count(49, 9).await;
        assert_eq!(health().await["rests_until"], Value::Null, "too few calls to judge by");
        count(1, 0).await;
        let rests = health().await;
        assert_eq!((&rests["rest_cause"], &rests["dialed"]), (&json!("blocked"), &json!(50)), "{rests}");
        let until = rests["rests_until"].clone();
        world.advance(minutes(2)).await;
        let mails = world.mail_files();
        assert_eq!(mails.iter().filter(|mail| mail.contains("rests for a day")).count(), 1, "{mails:?}");
        // It counts no more for what it has rested for.
        world.leap(minutes(25 * 60)).await;
        world.advance(seconds(31)).await;
        let after = health().await;
        assert_eq!((&after["rests_until"], &after["dialed"]), (&Value::Null, &json!(0)), "it rested until {until}");
    }
}
