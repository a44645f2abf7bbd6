//! kill -9 at random moments, and what the receiver of the webhooks sees of it.
use super::{Calls, kills, on_disk, terminate};
use crate::world::Backend;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The endpoint's `max_concurrency`.
const MAX_IN_FLIGHT: usize = 8;

/// kill -9 in the middle of a campaign of 500 contacts, again and again.
fn killed_in_the_middle(backend: Backend) {
    on_disk(backend, async |place| {
        let receiver = crate::world::Receiver::start();
        let environment = [
            ("CALLBOARD_SANDBOX_SPEED", "20"),
            ("CALLBOARD_WEBHOOK_RETRY_SCHEDULE", "1,1,1,1,1,1,1,1,1"),
        ];
        let mut serving = place.serve(&environment);
        let api = Calls::to(&place, place.workspace());
        api.limit_concurrency(200).await;
        let endpoint = api
            .post(
                "/v1/webhook_endpoints",
                json!({ "url": receiver.url, "event_types": ["*"], "max_concurrency": MAX_IN_FLIGHT }),
            )
            .await;
        receiver.expect_signatures_of(endpoint["secret"].as_str().unwrap());
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let contacts: Vec<_> = (0..500)
            .map(|n| json!({ "phone_number": format!("+15002{n:05}{}", [0, 1, 0, 3, 0, 9][n % 6]) }))
            .collect();
        let kills = kills();
        // So slow that there is a middle for every kill.
        let rate = (500.0 / (kills as f64 * 0.7)).clamp(5.0, 100.0);
        let campaign = json!({
            "name": "Killed", "agent_id": agent["id"], "contacts": contacts,
            "pacing": { "calls_per_second": rate }, "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
        });
        let campaign = api.post("/v1/campaigns/run", campaign).await["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/v1/campaigns/{campaign}");
        for kill in 0..kills {
            // Some moment that differs each time: after so many further calls.
            let calls = |value: &Value| {
                value["completed_sessions"].as_i64().unwrap_or(0) + value["failed_sessions"].as_i64().unwrap_or(0)
            };
            let goal = calls(&api.get(&format!("{path}/stats")).await) + 1 + i64::try_from(kill % 7).unwrap();
            api.until(&format!("{path}/stats"), |stats| {
                calls(stats) >= goal || stats["status"] == "completed"
            })
            .await;
            serving.kill().unwrap();
            serving.wait().unwrap();
            serving = place.serve(&environment);
        }
        let done = api.until(&path, |campaign| campaign["status"] == "completed").await;
        assert_eq!(done["counts"]["total"], 500);
        check_every_contact(&api, &path).await;
        check_every_event(&api, &receiver).await;
        check_every_delivery(&api, &receiver, endpoint["id"].as_str().unwrap()).await;
        // Only what was under way at a kill may come twice: attempts, and outcomes of which the commit was under way or next.
        let twice: usize = receiver.counts_by_id().values().map(|count| count - 1).sum();
        assert!(
            twice <= kills * MAX_IN_FLIGHT * 9,
            "{twice} repeats after {kills} kills"
        );
        eprintln!(
            "{kills} kills: {} events, {twice} repeats",
            receiver.counts_by_id().len()
        );
        terminate(&mut serving);
    });
}

/// Every contact has one terminal state, and no attempt two sessions.
async fn check_every_contact(api: &Calls, path: &str) {
    let contacts = api.all(&format!("{path}/contacts")).await;
    assert_eq!(contacts.len(), 500);
    let mut attempts: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    let sessions = api.all("/v1/sessions").await;
    for session in &sessions {
        assert_eq!(session["phase"], "ended");
        let fresh = attempts
            .entry(session["contact_id"].as_str().unwrap())
            .or_default()
            .insert(session["attempt"].as_i64().unwrap());
        assert!(fresh, "two sessions for one attempt: {session}");
    }
    for contact in &contacts {
        let calls = attempts.get(contact["id"].as_str().unwrap()).map_or(0, BTreeSet::len);
        assert_eq!(calls as u64, contact["attempts"].as_u64().unwrap(), "{contact}");
        assert!(
            calls <= 2 && matches!(contact["status"].as_str(), Some("completed" | "failed")),
            "{contact}"
        );
        let lost = sessions
            .iter()
            .any(|session| session["contact_id"] == contact["id"] && session["end_reason"] == "node_lost");
        assert!(
            !lost || contact["status"] == "failed",
            "a lost call is not placed again"
        );
    }
}

/// Every event has arrived, under its one id, with its bytes unchanged.
async fn check_every_event(api: &Calls, receiver: &crate::world::Receiver) {
    let events = api.all("/v1/events").await;
    let clock = runtime::clock::Clock::wall();
    for _ in 0..4500 {
        if receiver.counts_by_id().len() >= events.len() {
            break;
        }
        let _busy = clock.sleep(Duration::from_millis(40)).await;
    }
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for request in receiver.requests() {
        assert_eq!(request.verified, Some(true));
        let known = bodies
            .entry(request.id().to_owned())
            .or_insert_with(|| request.raw.to_vec());
        assert_eq!(*known, request.raw, "the same bytes under the same id");
    }
    let ids: BTreeSet<_> = events
        .iter()
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        bodies.keys().cloned().collect::<BTreeSet<_>>(),
        ids,
        "every event, and nothing that is none"
    );
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        count("campaign.contact_completed") + count("campaign.contact_failed"),
        500
    );
    assert_eq!(count("campaign.contact_dispatched"), count("session.created"));
    assert_eq!(
        count("session.ended") + count("session.failed"),
        count("session.created")
    );
    assert_eq!(count("campaign.completed"), 1);
}

/// Each event has exactly one delivery, which succeeded and says so because of an answer.
async fn check_every_delivery(api: &Calls, receiver: &crate::world::Receiver, endpoint: &str) {
    let path = format!("/v1/webhook_endpoints/{endpoint}");
    let open = |stats: &Value| stats["open"]["pending"].as_i64().unwrap() + stats["open"]["retrying"].as_i64().unwrap();
    api.until(&format!("{path}/stats"), |stats| open(stats) == 0).await;
    let mut events = BTreeSet::new();
    for delivery in api.all(&format!("{path}/deliveries")).await {
        assert_eq!(
            (delivery["origin"].as_str(), delivery["status"].as_str()),
            (Some("live"), Some("succeeded"))
        );
        let attempts = delivery["attempts"].as_array().unwrap();
        assert_eq!(attempts.last().unwrap()["status"], 200, "{delivery}");
        assert!(
            attempts.iter().enumerate().all(|(at, attempt)| attempt["n"] == at + 1),
            "{delivery}"
        );
        assert!(
            events.insert(delivery["event_id"].as_str().unwrap().to_owned()),
            "two deliveries of one event"
        );
    }
    assert_eq!(events, receiver.counts_by_id().into_keys().collect());
}

#[test]
fn killed_in_the_middle_on_sqlite() {
    killed_in_the_middle(Backend::Sqlite);
}
#[test]
fn killed_in_the_middle_on_postgres() {
    killed_in_the_middle(Backend::Postgres);
}
