//! Calls that programs place one by one.
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use entities::values::{Env, Scopes};
use reqwest::Method;
use serde_json::{Value, json};

on_both! {
    /// The intent to call is no event, and yet nothing that is committed after a crash comes before it.
    async fn the_order_of_commits_outlives_a_crash(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        for n in 0..3 {
            let call = json!({ "to_number": format!("+150023400{n}0"), "agent_id": agent });
            tenant.api.post("/v1/sessions", call).await.ok();
        }
        world.settle().await;
        world.restart().await;
        let entry = tenant.api.post("/v1/dnc", json!({ "phone_number": "+15002340020" })).await.ok();
        world.advance(seconds(5)).await;
        let mut dump = Vec::new();
        callboard::cli::audit::write(&world.deps().db.read, None, &mut dump).await.unwrap();
        let dump = String::from_utf8(dump).unwrap();
        let lines: Vec<Value> = dump.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |name: &str, value: &Value| lines.iter().find(|line| line[name] == *value).unwrap_or_else(|| panic!("{name} {value}: {dump}"));
        let added = of("id", &entry["id"])["added_seq"].as_i64().unwrap();
        let sessions: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "session").collect();
        assert_eq!(sessions.len(), 3);
        for session in sessions {
            assert_eq!(session["end_reason"], "node_lost", "{session}");
            let failed = lines.iter().find(|line| line["type"] == "session.failed" && line["subject"] == session["id"]).unwrap();
            let intent = session["intent_seq"].as_i64().unwrap();
            assert!(intent < failed["seq"].as_i64().unwrap() && intent < added, "{session} {failed} {added}");
            assert!(lines.iter().all(|line| line["seq"] != intent), "an event has the place of {session}");
        }
    }

    async fn nobody_pays_for_the_time_in_which_the_service_was_down(world: &mut World) {
        world.change_setting("call_price_cents_per_minute", 60.into()).await;
        let tenant = world.tenant().await;
        let replies = json!([{ "say": "One." }, { "say": "Two." }]);
        let agent = json!({ "name": "Ann", "prompt": "x", "silence": { "hangup_after_seconds": 120 }, "brain": { "mode": "scripted", "replies": replies } });
        let agent = tenant.api.post("/v1/agents", agent).await.ok()["id"].clone();
        let patient = json!({ "script": [{ "say": "Hello." }, { "silence_seconds": 20 }, { "say": "Bye." }] });
        let call = json!({ "to_number": "+15002340000", "agent_id": agent, "sandbox": patient });
        let id = tenant.api.post("/v1/sessions", call).await.ok()["id"].as_str().unwrap().to_owned();
        let session = async |world: &World| {
            world.settle().await;
            tenant.api.get(&format!("/v1/sessions/{id}")).await.ok()
        };
        while session(world).await["status"] == "queued" {
            world.advance(seconds(1)).await;
        }
        world.advance(seconds(7)).await;
        let answered = session(world).await;
        assert_eq!(answered["status"], "in_progress", "{answered}");
        world.restart_later(minutes(60)).await;
        let lost = session(world).await;
        assert_eq!(lost["end_reason"], "node_lost", "{lost}");
        let seconds = lost["duration_seconds"].as_i64().unwrap();
        assert!((3..=8).contains(&seconds), "to its last sign of life: {lost}");
        assert_eq!(lost["actual_cost_cents"], seconds, "a cent a second: {lost}");
    }

    async fn a_call_waits_for_a_slot_and_is_given_up_when_none_comes(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 1 })).await.ok();
        let call = async |more: serde_json::Value| {
            let mut body = json!({ "to_number": "+15002340000", "agent_id": agent });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            tenant.api.post("/v1/sessions", body).await
        };
        let status = async |id: &serde_json::Value| tenant.api.get(&format!("/v1/sessions/{}", id.as_str().unwrap())).await.ok();
        let first = call(json!({})).await.ok();
        world.advance(seconds(1)).await;
        let refused = call(json!({ "queue_ttl_seconds": 0 })).await;
        assert_eq!(refused.error(), (429, "concurrency_full", None));
        assert!(refused.headers.contains_key("retry-after"));
        let waits = call(json!({})).await.ok();
        let gives_up = call(json!({ "queue_ttl_seconds": 6 })).await.ok();
        world.advance(seconds(7)).await;
        let given_up = status(&gives_up["id"]).await;
        assert_eq!((given_up["status"].as_str(), given_up["end_reason"].as_str()), (Some("failed"), Some("canceled")));
        assert!(given_up["error"]["message"].as_str().unwrap().contains("slot"));
        world.advance(minutes(2)).await;
        assert_eq!(status(&first["id"]).await["status"], "completed");
        assert_eq!(status(&waits["id"]).await["status"], "completed");
    }

    async fn a_number_outside_the_sandbox_and_a_live_call_are_refused(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let refused = tenant.api.post("/v1/sessions", json!({ "to_number": "+12025550140", "agent_id": agent })).await;
        assert_eq!(refused.error(), (403, "number_not_verified", Some("to_number")));
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let refused = live.post("/v1/sessions", json!({ "to_number": "+12025550140", "agent_id": agent })).await;
        assert_eq!(refused.error(), (501, "not_configured", None));
        let refused = live.post("/v1/campaigns/run", json!({ "name": "x", "agent_id": agent, "contacts": [{ "phone_number": "+12025550140" }] })).await;
        assert_eq!(refused.error(), (501, "not_configured", None));
        assert_eq!(tenant.events().await.len(), 0);
    }

    async fn the_same_request_twice_has_one_effect(world: &mut World) {
        let tenant = world.tenant().await;
        let body = json!({ "to_number": "+15002340001", "agent_id": tenant.agent().await });
        let post = async |tenant: &crate::world::Tenant, key: &str, body: &serde_json::Value| {
            tenant.api.send(tenant.api.request(Method::POST, "/v1/sessions").header("Idempotency-Key", key).json(body)).await
        };
        let first = post(&tenant, "k1", &body).await;
        assert!(!first.headers.contains_key("idempotent-replayed"));
        let id = first.ok()["id"].clone();
        let again = post(&tenant, "k1", &body).await;
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!((again.status.as_u16(), &again.body["id"]), (201, &id));
        let mut other = body.clone();
        other["to_number"] = json!("+15002340002");
        assert_eq!(post(&tenant, "k1", &other).await.error(), (422, "idempotency_key_reused", Some("Idempotency-Key")));
        // At the same moment: one runs, the others are told so or get its answer.
        let answers = futures_util::future::join_all((0..10).map(|_| post(&tenant, "k2", &body))).await;
        for answer in answers {
            assert!(matches!(answer.error(), (201, ..) | (409, "idempotency_in_progress", _)), "{:?}", answer.error());
        }
        // An error of the caller's is an answer too.
        assert_eq!(post(&tenant, "k3", &json!({})).await.error().0, 422);
        assert_eq!(post(&tenant, "k3", &json!({})).await.headers["idempotent-replayed"], "true");
        assert_eq!(post(&tenant, &"k".repeat(256), &body).await.error(), (422, "validation_failed", Some("Idempotency-Key")));
        world.advance(minutes(1)).await;
        world.restart().await;
        assert_eq!(post(&tenant, "k1", &body).await.ok()["id"], id, "it survives a restart");
        // Another tenant's key of the same name is another key.
        let other = world.tenant().await;
        let theirs = json!({ "to_number": "+15002340001", "agent_id": other.agent().await });
        assert_ne!(post(&other, "k1", &theirs).await.ok()["id"], id);
        // A leap ends eleven minutes later.
        world.leap(minutes(24 * 60 - 9)).await;
        assert_ne!(post(&tenant, "k1", &body).await.ok()["id"], id, "kept for 24 hours");
        world.advance(minutes(1)).await;
        let sessions = tenant.api.get("/v1/sessions").await.ok();
        assert_eq!(sessions["data"].as_array().unwrap().len(), 3);
    }
}
