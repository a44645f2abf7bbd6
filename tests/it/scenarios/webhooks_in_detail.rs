//! What else a webhook endpoint promises: rotation, replay, pauses, order, the log, statistics, retention, e-mail.
use super::an_event_is_delivered::{attempts, one_event};
use crate::{
    on_both,
    world::{
        Receiver, Tenant, World, minutes,
        smtp::Smtp,
        zoo::{Animal, Zoo},
    },
};
use serde_json::{Value, json};
use std::time::Duration;

async fn webhook(tenant: &Tenant, url: &str, more: Value) -> String {
    let mut settings = json!({ "url": url, "event_types": ["*"] });
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    let endpoint = tenant.api.post("/v1/webhook_endpoints", settings).await.ok();
    endpoint["id"].as_str().unwrap().to_owned()
}

fn days(days: u64) -> Duration {
    minutes(days * 24 * 60)
}

on_both! {
    async fn during_a_rotation_both_secrets_sign(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let first = tenant.api.post("/v1/webhook_endpoints", json!({ "url": receiver.url, "event_types": ["*"] })).await.ok();
        let (id, old) = (first["id"].as_str().unwrap(), first["secret"].as_str().unwrap());
        let path = format!("/v1/webhook_endpoints/{id}");
        let rotated = tenant.api.post(&format!("{path}/rotate_secret"), json!({ "overlap_seconds": 3600 })).await.ok();
        let new = rotated["secret"].as_str().unwrap();
        assert!(new.starts_with("whsec_") && new != old);
        assert_eq!(rotated["secret_hint"], new[new.len() - 4..]);
        assert_eq!(rotated["previous_secret_expires_at"], "2027-03-02T14:00:00.000Z");
        assert_eq!(tenant.api.get(&path).await.ok().get("secret"), None, "shown once");

        one_event(&tenant).await;
        world.settle().await;
        let request = receiver.requests().pop().unwrap();
        assert!(request.signed_by(new, "x-webhook-signature") && request.signed_by(old, "x-webhook-signature-previous"));
        assert_eq!(request.headers["webhook-signature"].split(' ').count(), 2);

        world.advance(minutes(61)).await;
        assert_eq!(tenant.api.get(&path).await.ok()["previous_secret_expires_at"], Value::Null);
        one_event(&tenant).await;
        world.settle().await;
        let request = receiver.requests().pop().unwrap();
        assert!(request.signed_by(new, "x-webhook-signature") && !request.headers.contains_key("x-webhook-signature-previous"));

        // The default is a day; the overlap can be ended, and be none at all.
        let again = tenant.api.request(reqwest::Method::POST, &format!("{path}/rotate_secret"));
        assert_eq!(tenant.api.send(again).await.ok()["previous_secret_expires_at"], "2027-03-03T14:01:00.000Z");
        world.restart().await;
        tenant.api.post(&format!("{path}/revoke_previous_secret"), json!({})).await.ok();
        one_event(&tenant).await;
        world.settle().await;
        assert!(!receiver.requests().pop().unwrap().headers.contains_key("x-webhook-signature-previous"));
        let none = tenant.api.post(&format!("{path}/rotate_secret"), json!({ "overlap_seconds": 0 })).await.ok();
        assert_eq!(none["previous_secret_expires_at"], Value::Null);
        let bad = tenant.api.post(&format!("{path}/rotate_secret"), json!({ "overlap_seconds": 604_801 })).await;
        assert_eq!(bad.error(), (422, "validation_failed", Some("overlap_seconds")));
    }

    async fn a_replay_keeps_id_and_bytes_and_says_what_it_is(world: &mut World) {
        let tenant = world.tenant().await;
        let (first, late) = (Receiver::start(), Receiver::start());
        let id = tenant.webhook(&first).await;
        let event = one_event(&tenant).await;
        world.settle().await;
        let other = webhook(&tenant, &late.url, json!({ "event_types": ["session.*"] })).await;
        let path = format!("/v1/events/{}/replay", event["id"].as_str().unwrap());

        let all = tenant.api.post(&path, json!({})).await.ok();
        assert_eq!(all["data"].as_array().unwrap().len(), 1, "the other one does not subscribe to it");
        assert_eq!((all["data"][0]["origin"].as_str(), all["data"][0]["endpoint_id"].as_str()), (Some("replay"), Some(id.as_str())));
        tenant.api.post(&path, json!({ "endpoint_id": other })).await.ok();
        world.settle().await;
        let (sent, again) = (&first.requests()[0], &first.requests()[1]);
        assert_eq!((sent.id(), &sent.raw), (again.id(), &again.raw));
        assert_eq!((sent.headers.get("x-webhook-replay"), again.headers["x-webhook-replay"].as_str()), (None, "true"));
        assert_eq!(late.requests()[0].raw, sent.raw, "named, it gets what it never subscribed to");

        tenant.api.patch(&format!("/v1/webhook_endpoints/{other}"), json!({ "status": "disabled" })).await.ok();
        assert_eq!(tenant.api.post(&path, json!({ "endpoint_id": other })).await.error(), (409, "invalid_state", None));
        let foreign = world.tenant().await;
        assert_eq!(foreign.api.post(&path, json!({})).await.error().0, 404);
        tenant.api.delete(&format!("/v1/webhook_endpoints/{id}")).await.ok();
        assert_eq!(tenant.api.post(&path, json!({})).await.error(), (409, "invalid_state", None), "nobody to send it to");
    }

    async fn a_receiver_that_asks_for_time_gets_it_for_all_its_events(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next_with(503, "retry-after", "600");
        let first = one_event(&tenant).await;
        world.settle().await;
        let second = one_event(&tenant).await;
        world.advance(Duration::from_millis(599_999)).await;
        assert_eq!(receiver.requests().len(), 1, "the whole endpoint pauses");
        assert_eq!(attempts(&tenant, &second).await["attempts"], json!([]), "and no attempt of another event is spent");
        assert_eq!(tenant.api.get(&format!("/v1/webhook_endpoints/{id}")).await.ok()["paused_until"], "2027-03-02T13:10:00.000Z");
        // It is remembered over a crash.
        world.restart().await;
        assert_eq!(receiver.requests().len(), 1);
        world.advance(Duration::from_millis(1)).await;
        assert_eq!(receiver.requests().len(), 3);
        assert_eq!(attempts(&tenant, &first).await["status"], "succeeded");
        assert_eq!(tenant.api.get(&format!("/v1/webhook_endpoints/{id}")).await.ok()["paused_until"], Value::Null);

        // A date works too; the endpoint pauses for 15 minutes at most, the delivery itself waits longer.
        receiver.answer_next_with(429, "retry-after", "Tue, 02 Mar 2027 15:10:00 GMT");
        let third = one_event(&tenant).await;
        world.settle().await;
        assert_eq!(attempts(&tenant, &third).await["next_attempt_at"], "2027-03-02T15:10:00.000Z");
        one_event(&tenant).await;
        world.advance(minutes(15)).await;
        assert_eq!(receiver.requests().len(), 5);
        world.advance(minutes(120)).await;
        assert_eq!(attempts(&tenant, &third).await["status"], "succeeded");
    }

    /// Down for longer than a day, the service does not try what has become too old.
    async fn a_retry_that_is_picked_up_too_late_has_expired(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next([500]);
        let event = one_event(&tenant).await;
        world.settle().await;
        let later = entities::values::Moment::parse(event["created_at"].as_str().unwrap()).unwrap().plus_seconds(25 * 3600);
        world.clock.set(later);
        world.restart().await;
        world.settle().await;
        let delivery = attempts(&tenant, &event).await;
        assert_eq!((delivery["status"].as_str(), delivery["failed_reason"].as_str()), (Some("failed"), Some("expired")));
        assert_eq!((receiver.requests().len(), delivery["attempts"].as_array().unwrap().len()), (1, 1));
        assert_eq!(tenant.api.get(&format!("/v1/webhook_endpoints/{id}")).await.ok()["failure_streak"], 1);
    }

    async fn the_first_attempts_of_one_session_arrive_in_order(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        // Refused, retried or accepted: each event's first attempt comes before its follower's.
        receiver.answer_next((0..200).map(|n| [200, 400, 503, 200][n % 4]).filter(|status| *status != 400));
        let numbers: Vec<String> = (0..40).map(|n| format!("+1500234{n:03}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        tenant.run_campaign(&numbers, json!({})).await;
        world.advance(minutes(30)).await;
        let mut seen: std::collections::BTreeMap<String, Vec<String>> = Default::default();
        for request in receiver.requests() {
            if let Some(session) = request.event["data"]["session_id"].as_str()
                && request.event_type().starts_with("session.")
            {
                let order = seen.entry(session.to_owned()).or_default();
                if !order.contains(&request.event_type().to_owned()) {
                    order.push(request.event_type().to_owned());
                }
            }
        }
        assert_eq!(seen.len(), 40);
        for order in seen.values() {
            assert_eq!(order, &["session.created", "session.started", "session.ended"]);
        }
    }

    async fn the_log_shows_every_attempt_and_can_be_narrowed(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        receiver.answer_next([500, 404]);
        let first = one_event(&tenant).await;
        world.settle().await;
        one_event(&tenant).await;
        world.advance(minutes(1)).await;
        tenant.api.post(&format!("/v1/webhook_endpoints/{id}/test"), json!({})).await.ok();
        let path = format!("/v1/webhook_endpoints/{id}/deliveries");
        let log = tenant.api.get(&path).await.ok();
        let statuses: Vec<_> = log["data"].as_array().unwrap().iter().map(|delivery| (delivery["origin"].as_str().unwrap(), delivery["status"].as_str().unwrap())).collect();
        assert_eq!(statuses, [("test", "succeeded"), ("live", "failed"), ("live", "succeeded")]);
        let delivery = &log["data"][2];
        assert_eq!((delivery["event_type"].as_str(), &delivery["event_id"]), (Some("campaign.created"), &first["id"]));
        let attempt = &delivery["attempts"][0];
        assert_eq!((attempt["status"].as_u64(), attempt["error_code"].as_str()), (Some(500), Some("http_status")));
        assert_eq!(attempt["remote_address"], receiver.url.trim_start_matches("http://").trim_end_matches("/hook"));
        assert!(attempt["timings"]["connect_ms"].is_u64() && attempt["timings"]["first_byte_ms"].is_u64(), "{attempt}");
        assert!(attempt["response_headers"].as_array().unwrap().iter().any(|header| header[0] == "content-length"));
        // What was signed can be put together again from the log and the event.
        let request = &receiver.requests()[0];
        assert_eq!(request.headers["x-webhook-timestamp"], attempt["signed_at"].to_string());

        for (query, count) in [("status=failed", 1), ("origin=test", 1), ("event_type=campaign.created", 2), ("event_type=session.ended", 0), ("origin=live&status=succeeded", 1), ("limit=1", 1), ("created_after=2027-03-02T13:00:30Z", 1)] {
            let narrowed = tenant.api.get(&format!("{path}?{query}")).await.ok();
            assert_eq!(narrowed["data"].as_array().unwrap().len(), count, "{query}");
        }
        for (query, param) in [("status=sent", "status"), ("event_type=x", "event_type"), ("origin=x", "origin"), ("colour=red", "colour")] {
            assert_eq!(tenant.api.get(&format!("{path}?{query}")).await.error(), (422, "validation_failed", Some(param)), "{query}");
        }
        let stats = tenant.api.get(&format!("/v1/webhook_endpoints/{id}/stats")).await.ok();
        let day = &stats["last_24_hours"];
        assert_eq!((day["attempts"].as_u64(), day["succeeded"].as_u64(), day["failed_deliveries"].as_u64()), (Some(3), Some(1), Some(1)));
        assert_eq!(stats["open"], json!({ "pending": 0, "retrying": 0, "held": 0, "oldest_due_at": null }));
    }

    async fn an_endpoint_that_hangs_holds_nobody_up(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let (mine, theirs, hanging) = (Receiver::start(), Receiver::start(), Zoo::of(Animal::HangBeforeHeaders));
        tenant.webhook(&mine).await;
        other.webhook(&theirs).await;
        let id = webhook(&tenant, &hanging.url, json!({ "timeout_ms": 30_000 })).await;
        for _ in 0..5 {
            one_event(&tenant).await;
            one_event(&other).await;
        }
        // Not `settle`: the hanging attempts are under way, and still so when the others have arrived.
        mine.arrived(5).await;
        theirs.arrived(5).await;
        let event = tenant.events().await[0].clone();
        let waiting = attempts_to(&tenant, &event, &id).await;
        assert_eq!((waiting["status"].as_str(), &waiting["attempts"]), (Some("pending"), &json!([])));
        drop(hanging);
        tenant.api.delete(&format!("/v1/webhook_endpoints/{id}")).await.ok();
        world.settle().await;
        assert_eq!(attempts_to(&tenant, &event, &id).await["status"], "cancelled");
    }

    async fn what_is_old_is_pruned_and_what_is_open_is_not(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        let id = tenant.webhook(&receiver).await;
        let old = one_event(&tenant).await;
        world.settle().await;
        receiver.answer_next([400]);
        let refused = one_event(&tenant).await;
        world.settle().await;
        world.leap(days(7)).await;
        let forgotten = attempts(&tenant, &old).await;
        assert_eq!((&forgotten["attempts"][0]["response_body"], forgotten["attempts"][0]["status"].as_u64()), (&Value::Null, Some(200)));
        assert_eq!(attempts(&tenant, &refused).await["attempts"][0]["response_body"], "the receiver's own words", "of failures they are kept");
        receiver.answer_next([410]);
        let held = one_event(&tenant).await;
        world.settle().await;
        let after = one_event(&tenant).await;
        assert_eq!(attempts(&tenant, &after).await["status"], "held");
        world.leap(days(23)).await;
        let left: Vec<_> = tenant.events().await.iter().map(|event| event["id"].clone()).collect();
        assert!(!left.contains(&old["id"]) && !left.contains(&refused["id"]), "30 days are over");
        assert!(left.contains(&held["id"]) && left.contains(&after["id"]));
        // One that is still to be delivered stays, however old.
        tenant.api.post(&format!("/v1/webhook_endpoints/{id}/enable"), json!({})).await.ok();
        receiver.answer_next_with(503, "retry-after", "20000");
        let open = one_event(&tenant).await;
        world.settle().await;
        world.clock.set(world.clock.now().plus(days(31)));
        actors::retention::installation::prune(world.deps()).await.unwrap();
        let left: Vec<_> = tenant.events().await.iter().map(|event| event["id"].clone()).collect();
        assert_eq!(left, [open["id"].clone()]);
        world.advance(minutes(1)).await;
        world.leap(days(1)).await;
        assert_eq!(tenant.events().await.len(), 0);
        let path = format!("/v1/events/{}/deliveries", held["id"].as_str().unwrap());
        assert_eq!(tenant.api.get(&path).await.error().0, 404);
        assert_eq!((world.rows("delivery_attempts").await, world.rows("deliveries").await), (0, 0));
    }

    async fn owners_are_told_by_mail_once_and_after_a_crash_too(world: &mut World) {
        let smtp = Smtp::start();
        world.change_setting("smtp_url", smtp.url.clone().into()).await;
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        // The server is not ready at first.
        smtp.answer_next(vec!["451 try later"]);
        receiver.answer_next([410]);
        one_event(&tenant).await;
        world.settle().await;
        assert_eq!(smtp.mails().len(), 0);
        world.restart().await;
        world.advance(minutes(2)).await;
        let mails = smtp.mails();
        assert_eq!(mails.len(), 1);
        assert_eq!(mails[0].to, [format!("{}@example.com", tenant.slug)]);
        assert!(mails[0].data.contains("Subject: Webhook endpoint suspended: 127.0.0.1"), "{}", mails[0].data);
        assert!(mails[0].data.contains("/enable") && mails[0].data.contains("Message-ID: <"), "{}", mails[0].data);
        for line in ["X-Callboard-Event: webhook.endpoint_disabled_notice", "Notice       webhook.endpoint_disabled_notice"] {
            assert!(mails[0].data.lines().any(|own| own.trim_end() == line), "{line}: {}", mails[0].data);
        }
        world.leap(days(1)).await;
        assert_eq!(smtp.mails().len(), 1);
    }
}

async fn attempts_to(tenant: &Tenant, event: &Value, endpoint: &str) -> Value {
    let deliveries = tenant
        .api
        .get(&format!("/v1/events/{}/deliveries", event["id"].as_str().unwrap()))
        .await
        .ok();
    let all = deliveries["data"].as_array().unwrap();
    all.iter()
        .find(|delivery| delivery["endpoint_id"] == endpoint)
        .unwrap()
        .clone()
}
