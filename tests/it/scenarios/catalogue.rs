//! The whole catalogue: each event type is emitted by its real cause, and what it says is the specification's.
//!
//! One world plays everything. Every event of it is held against the [specification's table](specification); a type that nothing
//! has emitted fails the test.
use super::{
    rooms::{self, room},
    the_call::{agent, call},
    voices,
};
use crate::{
    specification,
    world::{self, Backend, Receiver, Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::{
    ledger::Movement,
    values::{Cents, Env},
};
use media::webrtc::{Codec, peer::Peer};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use rules::{commit::Commit, event::CATALOGUE};
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn every_event_type_has_its_cause_and_its_shape() {
    world::run(Backend::Sqlite, async |world| {
        let names: Vec<&str> = CATALOGUE.iter().map(|event_type| event_type.name).collect();
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for tenant in play(world).await {
            for event in tenant.events().await {
                assert_eq!(event["tenant_id"], tenant.id.to_string(), "{event}");
                assert_eq!(specification::faults(&event), Vec::<String>::new());
                *told.entry(event["type"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        let untold: Vec<&&str> = names.iter().filter(|name| !told.contains_key(**name)).collect();
        assert!(untold.is_empty(), "nothing emits {untold:?}");
    });
}

/// Everything that the service can tell, by its cause; answers who was told.
async fn play(world: &mut World) -> Vec<Tenant> {
    world.change_setting("sms_price_cents_per_segment", json!(10)).await;
    vec![
        calls(world).await,
        quiet(world).await,
        money(world).await,
        voices(world).await,
        number(world).await,
        endpoints(world).await,
        written(world).await,
        rooms(world).await,
    ]
}

/// Calls of a campaign: one for each of the sandbox's outcomes, recorded; a week later what was not wanted is gone.
async fn calls(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let more = json!({
        "recording": { "enabled": true }, "dispositions": [{ "code": "not_interested" }, { "code": "interested" }],
        "brain": { "mode": "scripted", "replies": [{ "say": "Wonderful." }, { "say": "Very well." }] },
    });
    let agent = agent(&tenant, more).await;
    let numbers: Vec<String> = (0..10).map(|digit| format!("+1500234560{digit}")).collect();
    let mut numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    numbers.push("12");
    let id = tenant.run_campaign(&numbers, json!({ "agent_id": agent })).await;
    world.settle().await;
    for action in ["pause", "resume"] {
        tenant
            .api
            .post(&format!("/v1/campaigns/{id}/{action}"), json!({}))
            .await
            .ok();
    }
    // A call of its own has no campaign.
    call(
        &tenant,
        &agent,
        "+15002345700",
        json!({ "contact": { "email": "ann@example.com", "first_name": "Ann" } }),
    )
    .await;
    world.advance(minutes(5)).await;
    assert_eq!(tenant.campaign(&id).await["status"], "completed");
    world.leap(minutes(7 * 24 * 60)).await;
    tenant
}

/// Everybody is in their quiet hours: those end in half a day.
async fn quiet(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let hour: u32 = world.clock.now().to_string()[11..13].parse().unwrap();
    let opens = (hour + 12) % 24;
    let window = json!({ "start": format!("{opens:02}:10"), "end": format!("{opens:02}:50") });
    let schedule = json!({ "timezone_mode": "fixed", "timezone": "UTC", "windows": [window] });
    let id = tenant
        .run_campaign(&["+15002345600"], json!({ "schedule": schedule }))
        .await;
    world.settle().await;
    assert_eq!(tenant.campaign(&id).await["pause_reason"], "quiet_hours");
    tenant
        .api
        .post(&format!("/v1/campaigns/{id}/cancel"), json!({}))
        .await
        .ok();
    world.settle().await;
    tenant
}

/// An SMS costs ten cents: the first passes the threshold, the second takes the last ones; then something is paid in.
async fn money(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let balance = tenant.api.get("/v1/credits").await.ok()["balance_cents"]
        .as_i64()
        .unwrap();
    let mut commit = Commit::default();
    commit.changes.movements.push(Movement::adjust(
        (tenant.id, Env::Test),
        Cents(20 - balance),
        "a correction".into(),
    ));
    world.deps().writer.commit(Of::Anybody, commit).await.unwrap();
    tenant
        .api
        .patch("/v1/credits", json!({ "warning_threshold_cents": 15 }))
        .await
        .ok();
    for _ in 0..2 {
        let text = json!({ "to_number": "+15002345600", "body": "Hello." });
        tenant.api.post("/v1/sms_messages", text).await.ok();
        world.advance(seconds(5)).await;
    }
    tenant
        .api
        .post("/v1/credits/topups", json!({ "amount_cents": 2_500 }))
        .await
        .ok();
    world.settle().await;
    tenant
}

/// One voice from a good sample, one from a file that is none.
async fn voices(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let samples = |file: Vec<u8>| {
        let form = Form::new().text("name", "Ann").text("consent_attested", "true");
        (0..3).fold(form, |form, n| {
            form.part("samples", Part::bytes(file.clone()).file_name(format!("{n}.wav")))
        })
    };
    for file in [voices::good(), b"no sound".to_vec()] {
        let request = tenant
            .api
            .request(Method::POST, "/v1/voices/clones")
            .multipart(samples(file));
        tenant.api.send(request).await.ok();
        world.advance(seconds(5)).await;
    }
    tenant
}

/// Nobody takes the calls that come in.
async fn number(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    tenant
        .api
        .post("/v1/numbers", json!({ "phone_number": "+12025550123" }))
        .await
        .ok();
    for _ in 0..20 {
        let call = json!({ "to_number": "+12025550123", "from_number": "+15005550001" });
        tenant.api.post("/v1/_sandbox/inbound_calls", call).await.ok();
        world.settle().await;
    }
    tenant
}

/// One receiver is tried, and one is gone.
async fn endpoints(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let (good, gone) = (Receiver::start(), Receiver::start());
    let id = tenant.webhook(&good).await;
    tenant.webhook(&gone).await;
    tenant
        .api
        .post(&format!("/v1/webhook_endpoints/{id}/test"), json!({}))
        .await
        .ok();
    gone.answer_next([410]);
    let draft = json!({ "name": "Something to tell", "agent_id": tenant.agent().await });
    tenant.api.post("/v1/campaigns", draft).await.ok();
    world.advance(seconds(5)).await;
    tenant
}

/// The same campaign events tell of people who are written, not called.
async fn written(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let campaigns = [
        json!({ "name": "Texts", "channel": "sms", "template": { "body": "Hello." }, "contacts": [{ "phone_number": "+15002345600" }, { "phone_number": "+15002345601" }, { "phone_number": "12" }] }),
        json!({ "name": "Mails", "channel": "email", "template": { "subject": "Hello", "text": "Hello." }, "contacts": [{ "email": "ann@example.com" }, { "email": "bounced@example.com" }, { "email": "nobody" }] }),
    ];
    for campaign in campaigns {
        tenant.api.post("/v1/campaigns/run", campaign).await.ok();
    }
    world.advance(minutes(1)).await;
    tenant
}

/// One room in which somebody talks, one that nobody joins, and one whose browser never comes.
async fn rooms(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let (talked, link) = room(world, &tenant).await;
    link.view().await;
    let (peer, participant) = link.join(None).await;
    peer.until("the agent says hello", |view| {
        view.notes.iter().any(|note| note["type"] == "caption")
    })
    .await;
    link.leave(&participant).await;
    room(world, &tenant).await;
    let (_, silent) = room(world, &tenant).await;
    let (_nobody, sdp) = Peer::offer(Codec::Pcmu);
    silent.offer(sdp, None).await;
    // The browser is waited for some seconds, the room for a day.
    world.advance(minutes(2)).await;
    world.leap(minutes(24 * 60)).await;
    let talked = rooms::get(&tenant, &talked).await;
    assert_eq!(talked["status"], "completed");
    tenant
}
