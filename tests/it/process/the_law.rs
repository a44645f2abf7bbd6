//! kill -9 in the middle of campaigns, with numbers that come onto the do-not-call list meanwhile, consents that are taken back, pauses,
//! and a list that is being read in: what was written down by service, carrier and client is put side by side, and nothing may contradict.
use super::{Calls, Place, agreed::Agreed, kills, number, on_disk, terminate, written::millis};
use crate::{
    audit::{Evidence, check, report},
    world::Backend,
};
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: usize = 30;

/// By hand with more: `CALLBOARD_TEST_KILLS=100`, and `CALLBOARD_TEST_CONTACTS=2000` in the largest campaign.
fn killed_while_it_calls(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let (kills, contacts) = (kills(), number("CALLBOARD_TEST_CONTACTS", 300));
        let rate = (contacts as f64 / (kills as f64 * 0.6)).clamp(10.0, 100.0).round();
        let log = place.carrier_log();
        let environment = [
            ("CALLBOARD_SANDBOX_SPEED", "40"),
            ("CALLBOARD_SANDBOX_LOG", log.to_str().unwrap()),
            // As it comes with the service.
            ("CALLBOARD_LAW_FILE", ""),
        ];
        let key = place.workspace();
        let mut serving = place.serve(&environment);
        let api = Calls::to(&place, key);
        api.limit_concurrency(LIMIT).await;
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let mut acknowledged = Vec::new();

        // The same people wait in three campaigns; one of them is read in from a file while it runs.
        let digits = [0, 1, 0, 2, 0, 9, 0, 3];
        let numbers: Vec<String> = (0..contacts)
            .map(|n| format!("+15002{n:05}{}", digits[n % digits.len()]))
            .collect();
        let mut campaigns = Vec::new();
        for (name, count) in [("Large", contacts), ("Small", contacts / 5), ("Read in", 1)] {
            let given: Vec<_> = numbers[..count]
                .iter()
                .map(|number| json!({ "phone_number": number }))
                .collect();
            let mut plan = json!({
                "name": name, "agent_id": agent["id"], "contacts": given,
                "pacing": { "calls_per_second": rate }, "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
                "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] },
                "caps": { "per_number_24h": 3, "on_cap": "skip" },
            });
            let campaign = if name == "Read in" {
                let contacts = plan.as_object_mut().unwrap().remove("contacts").unwrap();
                let draft = api.post("/v1/campaigns", plan).await;
                let path = format!("/v1/campaigns/{}/contacts", draft["id"].as_str().unwrap());
                api.post(&path, json!({ "contacts": contacts })).await;
                draft
            } else {
                api.post("/v1/campaigns/run", plan).await
            };
            acknowledged.push(json!({ "kind": "campaign", "id": campaign["id"] }));
            campaigns.push(format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap()));
        }
        let file = std::iter::once("phone_number\n".to_owned())
            .chain(numbers[contacts / 2..].iter().map(|number| format!("{number}\n")));
        let job = api
            .upload(&format!("{}/contacts/import", campaigns[2]), file.collect())
            .await;
        let job = format!("/v1/imports/{}", job["id"].as_str().unwrap());
        let job = api.until(&job, |job| job["status"] != "running").await;
        assert_eq!(job["status"], "completed", "{job}");
        api.post(&format!("{}/start", campaigns[2]), json!({})).await;
        let people = (contacts / 4).min(1_000);
        let agreed = Agreed::record(&place, &api, &agent["id"], people).await;
        let bound = agreed.run(&api, 0..people, rate).await;

        let mut killed = Vec::new();
        for kill in 0..kills {
            // Somebody asks not to be called; a campaign pauses and goes on: at other moments each time.
            let number = &numbers[(kill * 37 + contacts / 3) % contacts];
            let entry = api.post("/v1/dnc", json!({ "phone_number": number })).await;
            acknowledged.push(json!({ "kind": "dnc", "id": entry["id"], "number": number }));
            acknowledged.push(agreed.take_back(&api, kill * 7).await);
            let turn = &campaigns[kill % 2];
            let paused = api.try_post(&format!("{turn}/pause")).await;
            let pause = Duration::from_millis(40 + 90 * (kill as u64 % 5));
            let _busy = runtime::clock::Clock::wall().sleep(pause).await;
            if paused && kill % 3 > 0 {
                api.try_post(&format!("{turn}/resume")).await;
            }
            let _busy = runtime::clock::Clock::wall().sleep(pause * 2).await;
            serving.kill().unwrap();
            serving.wait().unwrap();
            killed.push(millis());
            serving = place.serve(&environment);
            // A pause outlives a kill.
            api.try_post(&format!("{turn}/resume")).await;
        }
        campaigns.push(bound);
        for campaign in &campaigns {
            let done = api.until(campaign, |campaign| campaign["status"] == "completed").await;
            for contact in api.all(&format!("{campaign}/contacts")).await {
                let (id, number) = (&contact["id"], &contact["phone_number"]);
                acknowledged.push(json!({ "kind": "contact", "id": id, "number": number, "campaign": done["id"] }));
            }
        }
        let evidence = Evidence {
            dump: place.dump(),
            carrier: place.carried(),
            provider: Vec::new(),
            acknowledged,
            files: None,
            taken_at: Some(millis()),
            kills: killed,
            limit: LIMIT,
            // Four campaigns, each at its rate.
            rate: rate * 4.0,
            burst: 4.0 * f64::from(rules::dispatch::pace::burst(rate).get()),
            settled: true,
        };
        terminate(&mut serving);
        let breaches = check(&evidence);
        assert!(breaches.is_empty(), "{}", report(&breaches));
        let of = |kind: &str| evidence.dump.iter().filter(|line| line["kind"] == kind).count();
        let lost = evidence
            .dump
            .iter()
            .filter(|line| line["end_reason"] == "node_lost")
            .count();
        let placed = evidence.carrier.iter().filter(|line| line["what"] == "placed").count();
        eprintln!(
            "{kills} kills: {} contacts, {} sessions, {placed} calls placed, {lost} cut off, {} events: nothing contradicts",
            of("contact"),
            of("session"),
            of("event"),
        );
        let is_bound = |line: &&Value| {
            let body = line["body"].as_str().unwrap_or_default();
            line["what"] == "attempt" && !body.contains("\"observed\":true")
        };
        let bound = evidence.dump.iter().filter(is_bound).count();
        assert!(bound >= contacts / 8, "{bound} attempts were bound by the law");
        assert!(
            of("session") > contacts && placed > contacts && of("consent") > kills,
            "there was something to look at"
        );
    });
}

#[test]
fn killed_while_it_calls_on_sqlite() {
    killed_while_it_calls(Backend::Sqlite);
}
#[test]
fn killed_while_it_calls_on_postgres() {
    killed_while_it_calls(Backend::Postgres);
}
