//! Calls that come in: who takes them, what happens to those that nobody can take, and the alarm.
use super::{agent, call, session, told};
use crate::{
    on_both,
    world::{Tenant, World, minutes},
};
use serde_json::{Value, json};

async fn number(tenant: &Tenant, more: Value) -> String {
    let mut number = json!({ "phone_number": "+1 202 555 0123" });
    number
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/numbers", number).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn ring(tenant: &Tenant, more: Value) -> Value {
    let mut call = json!({ "to_number": "+12025550123", "from_number": "+15005550001" });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/_sandbox/inbound_calls", call).await.ok()
}

on_both! {
    async fn a_call_that_comes_in_is_taken_by_the_numbers_agent(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({})).await;
        let id = number(&tenant, json!({ "agent_id": agent, "label": "Front desk" })).await;
        let taken = ring(&tenant, json!({})).await;
        assert_eq!((taken["outcome"].as_str(), taken["session"]["direction"].as_str(), taken["session"]["phase"].as_str()), (Some("answered"), Some("inbound"), Some("ringing")));
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["by_source"]["inbound"], 1);
        world.advance(minutes(2)).await;
        assert_eq!(tenant.event_types().await, ["session.created", "session.started", "session.ended"]);
        let ended = &told(&tenant, "session.ended").await[0];
        assert_eq!((ended["from_number"].as_str(), ended["to_number"].as_str(), ended["phone_number"].as_str()), (Some("+15005550001"), Some("+12025550123"), Some("+15005550001")));
        let list = tenant.api.get("/v1/sessions?direction=inbound").await.ok();
        assert_eq!(list["data"].as_array().unwrap().len(), 1);
        let stats = tenant.api.get(&format!("/v1/numbers/{id}/stats")).await.ok();
        assert_eq!((stats["calls"].as_i64(), stats["answered"].as_i64(), stats["answer_rate"].as_f64()), (Some(1), Some(1), Some(1.0)));
        let shown = tenant.api.get(&format!("/v1/numbers/{id}")).await.ok();
        assert_eq!((shown["answer_rate_24h"].as_f64(), shown["status"].as_str(), shown["label"].as_str()), (Some(1.0), Some("unverified"), Some("Front desk")));
        assert_eq!(tenant.api.delete(&format!("/v1/agents/{agent}")).await.error(), (409, "in_use", None));
    }

    async fn a_caller_who_opts_out_or_gives_up(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({})).await;
        let id = number(&tenant, json!({ "agent_id": agent })).await;
        let out = ring(&tenant, json!({ "outcome": "opt_out", "from_number": "+15002345671" })).await;
        let gone = ring(&tenant, json!({ "outcome": "abandoned" })).await;
        world.advance(minutes(2)).await;
        assert_eq!(session(&tenant, out["id"].as_str().unwrap()).await["end_reason"], "opt_out");
        assert_eq!(told(&tenant, "session.opt_out_detected").await[0]["phone_number"], "+15002345671");
        let barred = tenant.api.get("/v1/dnc/check?phone_number=%2B15002345671").await.ok();
        assert_eq!(barred["listed"], true);
        let row = session(&tenant, gone["id"].as_str().unwrap()).await;
        assert_eq!((row["status"].as_str(), row["end_reason"].as_str(), row["ended_by"].as_str()), (Some("failed"), Some("canceled"), Some("caller")));
        let stats = tenant.api.get(&format!("/v1/numbers/{id}/stats")).await.ok();
        assert_eq!((stats["answered"].as_i64(), stats["abandoned"].as_i64()), (Some(1), Some(1)));
    }

    async fn without_an_agent_or_a_slot_it_is_answered_as_configured(world: &mut World) {
        let tenant = world.tenant().await;
        let inbound = json!({ "without_agent": "play_message", "without_slot": "reject", "message": "We are closed." });
        let id = number(&tenant, json!({ "inbound": inbound })).await;
        let turned_away = ring(&tenant, json!({})).await;
        assert_eq!((turned_away["outcome"].as_str(), turned_away["instead"].as_str(), turned_away["message"].as_str()), (Some("no_agent"), Some("play_message"), Some("We are closed.")));
        let agent = agent(&tenant, json!({})).await;
        tenant.api.patch(&format!("/v1/numbers/{id}"), json!({ "agent_id": agent })).await.ok();
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1 })).await.ok();
        call(&tenant, &agent, "+15002345600", json!({})).await;
        world.advance(std::time::Duration::from_secs(2)).await;
        let full = ring(&tenant, json!({})).await;
        assert_eq!((full["outcome"].as_str(), full["instead"].as_str(), &full["session"]), (Some("no_slot"), Some("reject"), &Value::Null));
        world.advance(minutes(2)).await;
        assert_eq!(ring(&tenant, json!({})).await["outcome"], "answered", "the slot is free again");
        // A call that came in takes a slot of the others.
        let waits = call(&tenant, &agent, "+15002345610", json!({})).await;
        world.advance(std::time::Duration::from_secs(2)).await;
        assert_eq!(session(&tenant, &waits).await["phase"], "queued");
        world.advance(minutes(3)).await;
        assert_eq!(session(&tenant, &waits).await["status"], "completed");
        let stats = tenant.api.get(&format!("/v1/numbers/{id}/stats")).await.ok();
        assert_eq!((stats["answered"].as_i64(), stats["no_agent"].as_i64(), stats["no_slot"].as_i64()), (Some(1), Some(1), Some(1)));
    }

    async fn a_message_is_spoken_in_the_language_of_its_number(world: &mut World) {
        let tenant = world.tenant().await;
        let german = agent(&tenant, json!({ "language": "de-AT" })).await;
        let inbound = |language: Option<&str>| json!({ "without_agent": "play_message", "without_slot": "play_message", "message": "Hallo.", "language": language });
        let id = number(&tenant, json!({ "inbound": inbound(None) })).await;
        let path = format!("/v1/numbers/{id}");
        let said = async || ring(&tenant, json!({})).await["language"].as_str().unwrap().to_owned();
        assert_eq!(said().await, "en", "of the United States, where the workspace is");
        tenant.api.patch(&path, json!({ "inbound": inbound(Some("tr")) })).await.ok();
        assert_eq!(said().await, "tr");
        tenant.api.patch(&path, json!({ "agent_id": german, "inbound": inbound(None) })).await.ok();
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1 })).await.ok();
        call(&tenant, &german, "+15002345600", json!({})).await;
        world.advance(std::time::Duration::from_secs(2)).await;
        assert_eq!(said().await, "de-AT", "its agent's");
        tenant.api.patch(&path, json!({ "inbound": inbound(Some("fr-FR")) })).await.ok();
        assert_eq!(said().await, "fr-FR");
        let refused = tenant.api.patch(&path, json!({ "inbound": { "language": "d" } })).await;
        assert_eq!(refused.error().0, 422);
        world.advance(minutes(2)).await;
    }

    async fn the_alarm_rings_once_when_too_few_are_answered(world: &mut World) {
        let tenant = world.tenant().await;
        let id = number(&tenant, json!({})).await;
        for _ in 0..19 {
            ring(&tenant, json!({})).await;
            world.settle().await;
        }
        assert_eq!(told(&tenant, "number.answer_rate_degraded").await.len(), 0, "too few calls");
        for _ in 0..3 {
            ring(&tenant, json!({})).await;
            world.settle().await;
        }
        let alarms = told(&tenant, "number.answer_rate_degraded").await;
        assert_eq!(alarms.len(), 1);
        assert_eq!(alarms[0].as_object().unwrap().keys().collect::<Vec<_>>(), ["phone_number", "answer_rate", "window_start", "window_end"]);
        assert_eq!((alarms[0]["phone_number"].as_str(), alarms[0]["answer_rate"].as_f64()), (Some("+12025550123"), Some(0.0)));
        let stats = tenant.api.get(&format!("/v1/numbers/{id}/stats")).await.ok();
        assert_eq!((stats["alarm_armed"].as_bool(), stats["calls"].as_i64()), (Some(false), Some(22)));
    }

    async fn numbers_are_checked(world: &mut World) {
        let tenant = world.tenant().await;
        let id = number(&tenant, json!({})).await;
        let api = &tenant.api;
        assert_eq!(api.post("/v1/numbers", json!({ "phone_number": "+12025550123" })).await.error(), (409, "already_exists", Some("phone_number")));
        for (body, param) in [
            (json!({ "phone_number": "12" }), "phone_number"),
            (json!({}), "phone_number"),
            (json!({ "phone_number": "+12025550124", "agent_id": "00000000-0000-7000-8000-000000000000" }), "agent_id"),
            (json!({ "phone_number": "+12025550124", "inbound": { "without_agent": "play_message" } }), "inbound.message"),
            (json!({ "phone_number": "+12025550124", "typo": 1 }), "typo"),
        ] {
            assert_eq!(api.post("/v1/numbers", body).await.error(), (422, "validation_failed", Some(param)));
        }
        let unknown = api.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550199" })).await;
        assert_eq!(unknown.error(), (422, "validation_failed", Some("to_number")));
        let odd = api.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550123", "outcome": "busy" })).await;
        assert_eq!(odd.error(), (422, "validation_failed", Some("outcome")));
        let live = world.api(tenant.id, entities::values::Env::Live, entities::values::Scopes::all()).await;
        assert_eq!(live.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550123" })).await.error(), (403, "forbidden", None));
        assert_eq!(api.delete(&format!("/v1/numbers/{id}")).await.status, 204);
        assert_eq!(api.get(&format!("/v1/numbers/{id}")).await.error(), (404, "not_found", None));
        assert_eq!(live.get("/v1/numbers").await.ok()["data"], json!([]), "numbers are both envs'");
    }
}
