//! Faults that were found once, so that they do not come back.
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use reqwest::Method;
use serde_json::json;

on_both! {
    async fn a_merge_that_brings_an_id_along_loses_no_contact(world: &mut World) {
        let tenant = world.tenant().await;
        let contacts = json!([
            { "phone_number": "+15002340000" },
            { "phone_number": "+15002340000", "external_id": "x" },
            { "phone_number": "+15002340010", "external_id": "x" },
        ]);
        let campaign = json!({ "name": "Merge", "agent_id": tenant.agent().await, "contacts": contacts });
        let answer = tenant.api.post("/v1/campaigns/run", campaign).await.ok();
        assert_eq!(answer["contacts"]["accepted"], 1);
        assert_eq!(answer["contacts"]["duplicates"], 1);
        assert_eq!(answer["contacts"]["rejected"][0]["code"], "already_exists");
        world.advance(minutes(2)).await;
        assert_eq!(tenant.campaign(answer["id"].as_str().unwrap()).await["status"], "completed");
    }

    async fn a_pause_among_contacts_that_cannot_be_called_ends_the_round(world: &mut World) {
        let tenant = world.tenant().await;
        let contacts: Vec<_> = (0..3000).map(|n| json!({ "phone_number": format!("none {n}") })).collect();
        let campaign = json!({ "name": "Pause", "agent_id": tenant.agent().await, "contacts": contacts });
        let id = tenant.api.post("/v1/campaigns/run", campaign).await.ok()["id"].as_str().unwrap().to_owned();
        tenant.api.post(&format!("/v1/campaigns/{id}/pause"), json!({})).await;
        world.settle().await;
        let other = tenant.run_campaign(&["+15002340000"], json!({})).await;
        world.advance(minutes(2)).await;
        assert_eq!(tenant.campaign(&other).await["status"], "completed", "the tenant's other campaigns are not held up");
        tenant.api.post(&format!("/v1/campaigns/{id}/resume"), json!({})).await;
        world.advance(minutes(1)).await;
        assert_eq!(tenant.campaign(&id).await["counts"]["skipped"], 3000);
    }

    async fn contacts_fed_one_by_one_to_a_running_campaign_are_all_called(world: &mut World) {
        let tenant = world.tenant().await;
        let mut id = tenant.run_campaign(&["+15002990001"], json!({})).await;
        let mut fed = 1;
        for n in 0..60 {
            let contact = json!({ "contacts": [{ "phone_number": format!("+15002{n:05}1") }] });
            let added = tenant.api.post(&format!("/v1/campaigns/{id}/contacts"), contact).await;
            if added.status.as_u16() == 409 {
                // It has just completed: feed the next one.
                assert_eq!(tenant.campaign(&id).await["counts"]["failed"], fed);
                id = tenant.run_campaign(&["+15002990001"], json!({})).await;
                fed = 1;
            } else {
                added.ok();
                fed += 1;
            }
            world.advance(std::time::Duration::from_millis(200)).await;
        }
        world.advance(minutes(2)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((campaign["status"].as_str(), campaign["counts"]["failed"].as_i64()), (Some("completed"), Some(fed)));
    }

    async fn ids_that_nobody_has_leave_no_actor_behind(world: &mut World) {
        let tenant = world.tenant().await;
        for _ in 0..20 {
            let id: uuid::Uuid = world.deps().ids.next();
            assert_eq!(tenant.api.post(&format!("/v1/sessions/{id}/end"), json!({})).await.error().0, 404);
            assert_eq!(tenant.api.post(&format!("/v1/campaigns/{id}/pause"), json!({})).await.error().0, 404);
            assert_eq!(tenant.api.delete(&format!("/v1/webhook_endpoints/{id}")).await.error().0, 404);
        }
        // One more message each, answered by actors that start after the others' end.
        world.advance(seconds(60)).await;
        let counts = world.tree().counts();
        assert!(counts["session"] + counts["campaign"] + counts["endpoint"] <= 3, "{counts:?}");
    }

    async fn a_commit_that_fails_at_the_calls_end_keeps_the_transcript(world: &mut World) {
        let tenant = world.tenant().await;
        let session = tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340000", "agent_id": tenant.agent().await })).await.ok();
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        loop {
            world.advance(std::time::Duration::from_millis(250)).await;
            if tenant.api.get(&format!("{path}/transcript.json")).await.ok()["turns"].as_array().unwrap().len() >= 3 {
                break;
            }
        }
        world.fail_next_commits(3);
        world.advance(minutes(1)).await;
        let ended = tenant.events().await.pop().unwrap();
        assert_eq!(ended["type"], "session.ended");
        assert!(ended["data"]["transcript"].as_array().unwrap().len() >= 3, "{ended}");
    }

    async fn what_can_be_stored_can_be_read_again(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let many = |start: &str| (0..50).map(|n| (format!("{start}{n}"), json!(n))).collect::<serde_json::Map<_, _>>();
        let contacts = json!([{ "phone_number": "+15002340001", "first_name": "A", "last_name": "B", "email": "c@d.ef", "variables": many("contact") }]);
        let campaign = json!({ "name": "Many", "agent_id": agent, "variables": many("campaign"), "contacts": contacts });
        tenant.api.post("/v1/campaigns/run", campaign).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(tenant.api.get("/v1/sessions").await.ok()["data"][0]["variables"].as_object().unwrap().len(), 103);
        let url = format!("https://a.example/{}", "€".repeat(600));
        let refused = tenant.api.post("/v1/webhook_endpoints", json!({ "url": url, "event_types": ["*"] })).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("url")));
        let refused = tenant.api.post("/v1/sessions", json!({ "to_number": "+49301234567890123", "agent_id": agent })).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("to_number")));
        world.restart().await;
        tenant.api.get("/v1/webhook_endpoints").await.ok();
    }

    async fn an_idempotency_key_that_cannot_be_read_is_refused(world: &mut World) {
        let tenant = world.tenant().await;
        let key = reqwest::header::HeaderValue::from_bytes("kéy".as_bytes()).unwrap();
        let request = tenant.api.request(Method::POST, "/v1/campaigns").header("Idempotency-Key", key).json(&json!({ "name": "x" }));
        assert_eq!(tenant.api.send(request).await.error(), (422, "validation_failed", Some("Idempotency-Key")));
        // After a 5xx nobody knows what stands: the same key finds the same object.
        let post = || tenant.api.send(tenant.api.request(Method::POST, "/v1/campaigns").header("Idempotency-Key", "k").json(&json!({ "name": "x" })));
        world.fail_next_commits(1);
        assert_eq!(post().await.error().0, 503);
        let id = post().await.ok()["id"].clone();
        assert_eq!(post().await.ok()["id"], id);
        assert_eq!(tenant.api.get("/v1/campaigns").await.ok()["data"].as_array().unwrap().len(), 1);
    }

    /// The link is for the first user: with one there, it opens nothing, least of all that user's account.
    async fn an_old_set_up_link_opens_nobodys_account(world: &mut World) {
        let token = callboard::access::set_up_token(&world.deps().db).await.unwrap().unwrap();
        let tenant = world.tenant().await;
        let body = json!({ "token": token, "slug": "mine", "name": "Mine", "email": format!("{}@example.com", tenant.slug), "password": "correct horse battery" });
        let request = tenant.api.client.post(format!("{}/v1/_internal/signup", world.url)).json(&body);
        let refused = tenant.api.send(request).await;
        assert_eq!(refused.error(), (409, "already_exists", Some("token")));
        assert!(!refused.headers.contains_key("set-cookie"));
    }
}
