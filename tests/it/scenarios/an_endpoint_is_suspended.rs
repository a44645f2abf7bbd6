//! A receiver that fails for good is suspended, its events are held, and it gets them when it is back.
use super::an_event_is_delivered::{attempts, one_event};
use crate::{
    on_both,
    world::{Receiver, Tenant, World, minutes, seconds},
};
use serde_json::{Value, json};

async fn endpoint(tenant: &Tenant, id: &str) -> Value {
    tenant.api.get(&format!("/v1/webhook_endpoints/{id}")).await.ok()
}

async fn act(tenant: &Tenant, id: &str, action: &str, body: Value) -> Value {
    tenant
        .api
        .post(&format!("/v1/webhook_endpoints/{id}/{action}"), body)
        .await
        .ok()
}

async fn stats(tenant: &Tenant, id: &str) -> Value {
    tenant.api.get(&format!("/v1/webhook_endpoints/{id}/stats")).await.ok()
}

/// Events that the receiver refuses for good, one after the other.
async fn refused(world: &World, tenant: &Tenant, receiver: &Receiver, count: usize) {
    receiver.answer_next(std::iter::repeat_n(400, count));
    for _ in 0..count {
        one_event(tenant).await;
        world.settle().await;
    }
}

/// A receiver that is gone, and its endpoint, which is suspended for that.
async fn suspended(world: &World) -> (Tenant, Receiver, String) {
    let tenant = world.tenant().await;
    let receiver = Receiver::start();
    let id = tenant.webhook(&receiver).await;
    receiver.answer_next([410]);
    one_event(&tenant).await;
    world.settle().await;
    (tenant, receiver, id)
}

fn notices(receiver: &Receiver) -> Vec<Value> {
    let requests = receiver.requests();
    let notices = requests
        .iter()
        .filter(|request| request.event_type() == "webhook.endpoint_disabled_notice");
    notices.map(|request| request.event["data"].clone()).collect()
}

on_both! {
    async fn the_tenth_failure_in_a_row_suspends_it_and_says_so(world: &mut World) {
        let tenant = world.tenant().await;
        let (bad, good) = (Receiver::start(), Receiver::start());
        let id = tenant.webhook(&bad).await;
        tenant.webhook(&good).await;
        refused(world, &tenant, &bad, 9).await;
        let before = endpoint(&tenant, &id).await;
        assert_eq!((before["status"].as_str(), before["failure_streak"].as_u64(), before["last_status"].as_u64()), (Some("active"), Some(9), Some(400)));
        refused(world, &tenant, &bad, 1).await;
        let after = endpoint(&tenant, &id).await;
        assert_eq!((after["status"].as_str(), after["failure_streak"].as_u64()), (Some("suspended"), Some(10)));
        assert!(after["suspended_at"].is_string());

        // The others are told, once; the suspended one is not, and no delivery of the notice waits for it either.
        let notice = &notices(&good)[..];
        assert_eq!(notice.len(), 1);
        assert_eq!((notice[0]["endpoint_id"].as_str(), notice[0]["url"].as_str()), (Some(id.as_str()), Some(bad.url.as_str())));
        assert_eq!((notice[0]["failure_streak"].as_u64(), notice[0]["last_status"].as_u64()), (Some(10), Some(400)));
        assert_eq!(notices(&bad).len(), 0);
        let held = tenant.api.get(&format!("/v1/webhook_endpoints/{id}/deliveries?event_type=webhook.endpoint_disabled_notice")).await.ok();
        assert_eq!(held["data"], json!([]));

        // From now on events are held: visible, and not sent.
        let event = one_event(&tenant).await;
        world.advance(minutes(60)).await;
        assert_eq!(bad.requests().len(), 10);
        let deliveries = tenant.api.get(&format!("/v1/events/{}/deliveries", event["id"].as_str().unwrap())).await.ok();
        let mut statuses: Vec<_> = deliveries["data"].as_array().unwrap().iter().map(|delivery| delivery["status"].as_str().unwrap()).collect();
        statuses.sort();
        assert_eq!(statuses, ["held", "succeeded"]);
    }

    async fn a_success_between_starts_the_count_anew(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        refused(world, &tenant, &receiver, 9).await;
        one_event(&tenant).await;
        world.settle().await;
        let now = endpoint(&tenant, &id).await;
        assert_eq!((now["failure_streak"].as_u64(), now["last_status"].as_u64()), (Some(0), Some(200)));
        assert!(now["last_success_at"].is_string());
        refused(world, &tenant, &receiver, 9).await;
        assert_eq!(endpoint(&tenant, &id).await["status"], "active");
    }

    async fn a_gone_receiver_is_suspended_at_once(world: &mut World) {
        let (tenant, _receiver, id) = suspended(world).await;
        let now = endpoint(&tenant, &id).await;
        assert_eq!((now["status"].as_str(), now["failure_streak"].as_u64(), now["last_status"].as_u64()), (Some("suspended"), Some(1), Some(410)));
    }

    /// Neither a test nor a replay is the workspace's traffic.
    async fn tests_and_replays_never_count(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        let event = one_event(&tenant).await;
        world.settle().await;
        refused(world, &tenant, &receiver, 2).await;
        receiver.answer_next([410, 410, 200, 200]);
        act(&tenant, &id, "test", json!({})).await;
        let replay = format!("/v1/events/{}/replay", event["id"].as_str().unwrap());
        tenant.api.post(&replay, json!({})).await.ok();
        world.settle().await;
        act(&tenant, &id, "test", json!({})).await;
        tenant.api.post(&replay, json!({})).await.ok();
        world.settle().await;
        let now = endpoint(&tenant, &id).await;
        assert_eq!((now["status"].as_str(), now["failure_streak"].as_u64()), (Some("active"), Some(2)));
        assert_eq!(receiver.requests().len(), 7);
    }

    async fn what_was_held_and_what_failed_is_recovered_oldest_first(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        let since = tenant.api.get(&format!("/v1/webhook_endpoints/{id}")).await.ok()["created_at"].clone();
        refused(world, &tenant, &receiver, 10).await;
        // More than one slice of them.
        let contacts: Vec<_> = (0..1200).map(|n| json!({ "phone_number": format!("no number {n}") })).collect();
        tenant.api.post("/v1/campaigns/run", json!({ "name": "Held", "agent_id": tenant.agent().await, "contacts": contacts })).await.ok();
        world.advance(seconds(30)).await;
        assert_eq!(receiver.requests().len(), 10);
        assert_eq!(stats(&tenant, &id).await["open"]["held"], 1203);

        let early = tenant.api.post(&format!("/v1/webhook_endpoints/{id}/recover"), json!({ "since": since })).await;
        assert_eq!(early.error(), (409, "invalid_state", None), "it must be enabled first");
        let enabled = act(&tenant, &id, "enable", json!({})).await;
        assert_eq!((enabled["status"].as_str(), enabled["failure_streak"].as_u64(), &enabled["suspended_at"]), (Some("active"), Some(0), &Value::Null));
        world.advance(minutes(5)).await;
        assert_eq!(receiver.requests().len(), 10, "enabling sends nothing by itself");

        let job = act(&tenant, &id, "recover", json!({ "since": since })).await;
        assert_eq!(job["status"], "running");
        world.advance(seconds(30)).await;
        let recovery = &stats(&tenant, &id).await["recovery"];
        assert_eq!((recovery["status"].as_str(), recovery["released"].as_u64(), recovery["replayed"].as_u64()), (Some("completed"), Some(1203), Some(10)));
        let requests = receiver.requests();
        assert_eq!(receiver.counts_by_id().len(), 1213);
        assert_eq!(requests.len(), 10 + 1213, "each once, and the ten that had failed once more");
        let replays = requests.iter().filter(|request| request.headers.contains_key("x-webhook-replay")).count();
        assert_eq!(replays, 10);
        assert!(requests.iter().all(|request| request.verified == Some(true)));

        // What has arrived is not sent again by another one.
        act(&tenant, &id, "recover", json!({ "since": since })).await;
        world.advance(seconds(30)).await;
        assert_eq!(receiver.requests().len(), 10 + 1213);
    }

    async fn a_recovery_goes_on_after_a_crash(world: &mut World) {
        let (tenant, receiver, id) = suspended(world).await;
        let contacts: Vec<_> = (0..1100).map(|n| json!({ "phone_number": format!("no number {n}") })).collect();
        tenant.api.post("/v1/campaigns/run", json!({ "name": "Held", "agent_id": tenant.agent().await, "contacts": contacts })).await.ok();
        world.advance(seconds(30)).await;
        act(&tenant, &id, "enable", json!({})).await;
        // Its first slices cannot be committed: it waits for the reconcile, and the crash comes before that.
        let job = tenant.api.post(&format!("/v1/webhook_endpoints/{id}/recover"), json!({ "since": "2020-01-01T00:00:00Z" })).await.ok();
        assert_eq!(job["status"], "running");
        world.restart().await;
        world.advance(minutes(2)).await;
        let recovery = &stats(&tenant, &id).await["recovery"];
        assert_eq!((recovery["status"].as_str(), recovery["released"].as_u64()), (Some("completed"), Some(1103)));
        assert_eq!(receiver.counts_by_id().len(), 1 + 1103);
    }

    /// Retries that were waiting are held too, and a retry whose day is over comes as a replay.
    async fn retries_are_held_with_the_rest(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next([500, 410]);
        let waiting = one_event(&tenant).await;
        world.settle().await;
        assert_eq!(attempts(&tenant, &waiting).await["status"], "retrying");
        one_event(&tenant).await;
        world.settle().await;
        let held = attempts(&tenant, &waiting).await;
        assert_eq!((held["status"].as_str(), &held["next_attempt_at"]), (Some("held"), &Value::Null));
        world.leap(minutes(25 * 60)).await;
        assert_eq!(receiver.requests().len(), 2, "no attempt while suspended");
        act(&tenant, &id, "enable", json!({})).await;
        act(&tenant, &id, "recover", json!({ "since": "2020-01-01T00:00:00Z", "until": waiting["created_at"] })).await;
        world.settle().await;
        assert_eq!(receiver.requests().len(), 2, "`until` ends before it");
        act(&tenant, &id, "recover", json!({ "since": waiting["created_at"] })).await;
        world.settle().await;
        assert_eq!(receiver.counts_by_id()[waiting["id"].as_str().unwrap()], 2);
        let deliveries = tenant.api.get(&format!("/v1/events/{}/deliveries", waiting["id"].as_str().unwrap())).await.ok();
        let (first, second) = (&deliveries["data"][0], &deliveries["data"][1]);
        assert_eq!((first["status"].as_str(), second["status"].as_str()), (Some("cancelled"), Some("succeeded")));
        assert_eq!((second["origin"].as_str(), &second["replay_of"]), (Some("replay"), &first["id"]));
    }

    async fn a_suspended_endpoint_can_be_disabled_and_set_active_by_its_user(world: &mut World) {
        let (tenant, receiver, id) = suspended(world).await;
        let path = format!("/v1/webhook_endpoints/{id}");
        assert_eq!(tenant.api.patch(&path, json!({ "status": "suspended" })).await.error(), (422, "validation_failed", Some("status")));
        // A change of something else does not end the suspension.
        assert_eq!(tenant.api.patch(&path, json!({ "description": "x" })).await.ok()["status"], "suspended");
        assert_eq!(tenant.api.patch(&path, json!({ "status": "disabled" })).await.ok()["status"], "disabled");
        let active = tenant.api.patch(&path, json!({ "status": "active" })).await.ok();
        assert_eq!((active["status"].as_str(), active["failure_streak"].as_u64()), (Some("active"), Some(0)));
        one_event(&tenant).await;
        world.settle().await;
        assert_eq!(receiver.requests().len(), 2);
    }

    /// Once ten have failed nothing more is sent, however many are waiting: only what was under way then still goes out.
    async fn a_burst_stops_at_the_tenth_failure(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next(std::iter::repeat_n(400, 1000));
        let contacts: Vec<_> = (0..300).map(|n| json!({ "phone_number": format!("no number {n}") })).collect();
        tenant.api.post("/v1/campaigns/run", json!({ "name": "Burst", "agent_id": tenant.agent().await, "contacts": contacts })).await.ok();
        world.advance(seconds(30)).await;
        let sent = receiver.requests().len();
        assert!((10..10 + 8).contains(&sent), "{sent}");
        let now = endpoint(&tenant, &id).await;
        assert_eq!((now["status"].as_str(), now["failure_streak"].as_u64()), (Some("suspended"), Some(sent as u64)), "what was under way counts too");
        assert_eq!(stats(&tenant, &id).await["open"]["held"], 303 - sent);
    }

    /// More than one transaction puts away.
    async fn a_long_queue_is_held_and_cancelled_whole(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next_with(429, "retry-after", "600");
        one_event(&tenant).await;
        world.settle().await;
        let contacts: Vec<_> = (0..4500).map(|n| json!({ "phone_number": format!("no number {n}") })).collect();
        tenant.api.post("/v1/campaigns/run", json!({ "name": "Long", "agent_id": tenant.agent().await, "contacts": contacts })).await.ok();
        world.advance(seconds(60)).await;
        assert_eq!((receiver.requests().len(), stats(&tenant, &id).await["open"]["pending"].as_u64()), (1, Some(4503)));
        receiver.answer_next([410]);
        receiver.answer_next(std::iter::repeat_n(200, 10));
        world.advance(seconds(600)).await;
        let (sent, held) = (receiver.requests().len(), stats(&tenant, &id).await["open"].clone());
        assert!(sent < 10, "{sent}");
        assert_eq!((held["pending"].as_u64(), held["retrying"].as_u64()), (Some(0), Some(0)));
        assert!(held["held"].as_u64().unwrap() > 4490, "{held}");
        tenant.api.delete(&format!("/v1/webhook_endpoints/{id}")).await.ok();
        world.settle().await;
        assert_eq!(world.rows("deliveries WHERE status IN ('pending', 'retrying', 'held')").await, 0);
    }

    /// The count, the suspension and what is held stand or fall together.
    async fn a_commit_that_fails_suspends_nothing_by_halves(world: &mut World) {
        let tenant = world.tenant().await;
        let (bad, good) = (Receiver::start(), Receiver::start());
        let id = tenant.webhook(&bad).await;
        tenant.webhook(&good).await;
        refused(world, &tenant, &bad, 9).await;
        bad.answer_next([400]);
        one_event(&tenant).await;
        world.fail_next_commits(2);
        world.settle().await;
        assert_eq!(endpoint(&tenant, &id).await["status"], "suspended");
        assert_eq!(bad.requests().len(), 10, "what was answered is not sent again");
        assert_eq!(notices(&good).len(), 1);
        world.restart().await;
        world.advance(minutes(5)).await;
        assert_eq!((bad.requests().len(), notices(&good).len()), (10, 1));
    }
}
