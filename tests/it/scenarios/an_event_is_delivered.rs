//! An event's way to its receiver.
use crate::{
    on_both,
    world::{Receiver, Tenant, World, minutes, seconds},
};
use entities::values::Moment;
use serde_json::{Value, json};
use std::time::Duration;

/// One event, with as little around it as possible: a draft is created.
pub async fn one_event(tenant: &Tenant) -> Value {
    tenant
        .api
        .post("/v1/campaigns", json!({ "name": "One event" }))
        .await
        .ok();
    tenant.events().await.pop().unwrap()
}

pub async fn attempts(tenant: &Tenant, event: &Value) -> Value {
    let deliveries = tenant
        .api
        .get(&format!("/v1/events/{}/deliveries", event["id"].as_str().unwrap()))
        .await
        .ok();
    deliveries["data"][0].clone()
}

on_both! {
    async fn a_failing_receiver_gets_the_same_bytes_again_by_the_schedule(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        receiver.answer_next([500, 503, 500]);
        let event = one_event(&tenant).await;
        world.settle().await;
        assert_eq!(receiver.requests().len(), 1);
        // 5 s, 30 s, 2 min, each up to a tenth longer.
        for (early, late, arrived) in [(4_999, 501, 2), (29_499, 3_501, 3), (116_499, 15_501, 4)] {
            world.advance(Duration::from_millis(early)).await;
            assert_eq!(receiver.requests().len(), arrived - 1, "not before its time");
            world.advance(Duration::from_millis(late)).await;
            assert_eq!(receiver.requests().len(), arrived);
        }
        let requests = receiver.requests();
        assert!(requests.iter().all(|request| request.raw == requests[0].raw && request.verified == Some(true)));
        assert_ne!(requests[0].headers["x-webhook-timestamp"], requests[3].headers["x-webhook-timestamp"], "signed anew");
        let delivery = attempts(&tenant, &event).await;
        assert_eq!(delivery["status"], "succeeded");
        let statuses: Vec<_> = delivery["attempts"].as_array().unwrap().iter().map(|attempt| attempt["status"].as_u64().unwrap()).collect();
        assert_eq!(statuses, [500, 503, 500, 200]);
        assert_eq!(delivery["attempts"][0]["response_body"], "the receiver's own words");
    }

    async fn ten_attempts_within_a_day_then_it_has_failed(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        receiver.answer_next(std::iter::repeat_n(500, 20));
        let event = one_event(&tenant).await;
        let began = world.clock.now();
        world.settle().await;
        for done in 1..10 {
            let delivery = attempts(&tenant, &event).await;
            assert_eq!((delivery["status"].as_str(), receiver.requests().len()), (Some("retrying"), done));
            world.leap_to(Moment::parse(delivery["next_attempt_at"].as_str().unwrap()).unwrap()).await;
        }
        assert_eq!(receiver.requests().len(), 10);
        assert_eq!(attempts(&tenant, &event).await["status"], "failed");
        assert!(world.clock.now() < began.plus_seconds(24 * 3600));
        world.leap(minutes(24 * 60)).await;
        assert_eq!(receiver.requests().len(), 10, "and no further one");
    }

    async fn a_refusal_is_final_at_once(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        receiver.answer_next([301, 400, 404]);
        for _ in 0..3 {
            let event = one_event(&tenant).await;
            world.settle().await;
            assert_eq!(attempts(&tenant, &event).await["status"], "failed");
        }
        world.leap(minutes(60)).await;
        assert_eq!(receiver.requests().len(), 3);
    }

    async fn what_a_dead_receiver_missed_arrives_when_it_is_back(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let url = receiver.url.clone();
        receiver.stop().await;
        let event = one_event(&tenant).await;
        world.advance(seconds(60)).await;
        let delivery = attempts(&tenant, &event).await;
        assert_eq!((delivery["status"].as_str(), delivery["attempts"][0]["error_code"].as_str()), (Some("retrying"), Some("connect_failed")));
        let words = delivery["attempts"][0]["error_message"].as_str().unwrap();
        assert!(words.starts_with("nothing listens on ") && words.ends_with(" (connection refused)"), "{words}");
        let back = Receiver::start();
        tenant.api.patch(&format!("/v1/webhook_endpoints/{}", delivery["endpoint_id"].as_str().unwrap()), json!({ "url": back.url })).await.ok();
        assert_ne!(back.url, url);
        world.advance(minutes(5)).await;
        assert_eq!(back.requests().len(), 1);
        assert_eq!(back.requests()[0].id(), event["id"].as_str().unwrap());
    }

    async fn only_what_was_subscribed_arrives_and_nothing_when_disabled(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let endpoint = tenant.api.post("/v1/webhook_endpoints", json!({ "url": receiver.url, "event_types": ["campaign.*"], "headers": { "X-Own": "yes" } })).await.ok();
        let path = format!("/v1/webhook_endpoints/{}", endpoint["id"].as_str().unwrap());
        tenant.api.post("/v1/sessions", json!({ "to_number": "+15002340001", "agent_id": tenant.agent().await })).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(receiver.requests().len(), 0);
        one_event(&tenant).await;
        world.settle().await;
        assert_eq!(receiver.requests()[0].headers["x-own"], "yes");
        tenant.api.patch(&path, json!({ "status": "disabled" })).await.ok();
        one_event(&tenant).await;
        world.settle().await;
        assert_eq!(receiver.requests().len(), 1);
        tenant.api.patch(&path, json!({ "status": "active" })).await.ok();
        one_event(&tenant).await;
        world.settle().await;
        assert_eq!(receiver.requests().len(), 2);
        tenant.api.delete(&path).await.ok();
        one_event(&tenant).await;
        world.settle().await;
        assert_eq!(receiver.requests().len(), 2);
        assert_eq!(tenant.api.get(&path).await.error().0, 404);
    }

    async fn a_test_is_one_attempt_with_its_result_in_the_answer(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next([200, 500]);
        let path = format!("/v1/webhook_endpoints/{id}/test");
        let good = tenant.api.post(&path, json!({})).await.ok();
        assert_eq!((good["delivered"].as_bool(), good["status"].as_u64()), (Some(true), Some(200)));
        assert_eq!(receiver.requests()[0].event_type(), "webhook.test");
        assert_eq!(receiver.requests()[0].verified, Some(true));
        let bad = tenant.api.post(&path, json!({})).await.ok();
        assert_eq!((bad["delivered"].as_bool(), bad["error_code"].as_str()), (Some(false), Some("http_status")));
        world.leap(minutes(60)).await;
        assert_eq!(receiver.requests().len(), 2, "a test is not retried");
    }

    /// Each tenant's events stay with it, and each env's.
    async fn nobody_receives_what_is_not_theirs(world: &mut World) {
        let (mine, other) = (world.tenant().await, world.tenant().await);
        let receiver = Receiver::start();
        mine.webhook(&receiver).await;
        one_event(&other).await;
        let live = world.api(mine.id, entities::values::Env::Live, entities::values::Scopes::all()).await;
        live.post("/v1/campaigns", json!({ "name": "Live" })).await.ok();
        world.settle().await;
        assert_eq!(receiver.requests().len(), 0);
        assert_eq!(live.get("/v1/events").await.ok()["data"].as_array().unwrap().len(), 1);
        assert_eq!(mine.events().await.len(), 0);
    }

    async fn a_backlog_larger_than_the_lanes_window_arrives_whole(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        // 400 contacts that are no numbers: 400 events and three more, in a few commits.
        let contacts: Vec<_> = (0..1500).map(|n| json!({ "phone_number": format!("no number {n}") })).collect();
        let campaign = json!({ "name": "Backlog", "agent_id": tenant.agent().await, "contacts": contacts });
        tenant.api.post("/v1/campaigns/run", campaign).await.ok();
        world.advance(seconds(60)).await;
        assert_eq!(receiver.counts_by_id().len(), 1503);
        assert_eq!(receiver.requests().len(), 1503);
    }
}
