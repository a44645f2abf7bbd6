//! A campaign from its start to its completion.
use crate::{
    on_both,
    world::{Receiver, World, minutes, seconds},
};
use actors::leases::Of;
use serde_json::{Value, json};
use std::collections::BTreeMap;

on_both! {
    /// One contact for each outcome of the sandbox, and one that is no number.
    async fn every_outcome_reaches_the_receiver_once_and_signed(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let numbers = ["+15002340000", "(500) 234-0001", "500.234.0002", "+1 500 234 0003", "+15002340004", "+15002340009", "12"];
        let id = tenant.run_campaign(&numbers, json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 30 } })).await;
        world.advance(minutes(120)).await;

        let campaign = tenant.campaign(&id).await;
        assert_eq!((campaign["status"].as_str(), campaign["completed_reason"].as_str()), (Some("completed"), Some("finished")));
        let counts = json!({ "total": 7, "pending": 0, "waiting": 0, "dispatched": 0, "completed": 2, "failed": 4, "skipped": 1, "canceled": 0 });
        assert_eq!(campaign["counts"], counts);

        let mut by_type = BTreeMap::new();
        for event in tenant.event_types().await {
            *by_type.entry(event).or_insert(0) += 1;
        }
        // 1, 2, 3 and 4 are called twice in vain, 9 is busy first: 6 callable contacts, 5 of them twice.
        let expected = BTreeMap::from([
            ("campaign.created".to_owned(), 1),
            ("campaign.started".to_owned(), 1),
            ("campaign.completed".to_owned(), 1),
            ("campaign.contact_dispatched".to_owned(), 11),
            ("campaign.contact_completed".to_owned(), 2),
            ("campaign.contact_failed".to_owned(), 4),
            ("campaign.contact_skipped".to_owned(), 1),
            ("session.created".to_owned(), 11),
            ("session.started".to_owned(), 2),
            ("session.ended".to_owned(), 2),
            ("session.failed".to_owned(), 9),
        ]);
        assert_eq!(by_type, expected);

        let events = tenant.events().await;
        let requests = receiver.requests();
        assert!(requests.iter().all(|request| request.verified == Some(true)));
        assert_eq!(receiver.counts_by_id().len(), events.len(), "every event arrived");
        assert_eq!(requests.len(), events.len(), "and each once");
        let first = &requests[0];
        assert_eq!(first.headers["x-webhook-id"], first.id());
        assert_eq!(first.headers["webhook-id"], first.id());
        assert_eq!(first.headers["x-webhook-event"], first.event_type());
        assert_eq!(first.headers["content-type"], "application/json");
        assert!(first.headers["webhook-signature"].starts_with("v1,"));

        let completed = events.iter().find(|event| event["type"] == "campaign.completed").unwrap();
        assert_eq!(completed["data"]["total_contacts"], 7);
        assert_eq!(completed["data"]["completed_sessions"], 2);
        assert_eq!(completed["data"]["failed_sessions"], 9);
        let skipped = events.iter().find(|event| event["type"] == "campaign.contact_skipped").unwrap();
        assert_eq!((skipped["data"]["skip_reason"].as_str(), skipped["data"]["phone_number"].as_str()), (Some("invalid"), Some("12")));
        let statuses: BTreeMap<&str, i32> = events.iter().filter(|event| event["type"] == "session.failed").fold(BTreeMap::new(), |mut all, event| {
            *all.entry(event["data"]["status"].as_str().unwrap()).or_default() += 1;
            all
        });
        assert_eq!(statuses, BTreeMap::from([("busy", 3), ("no_answer", 2), ("voicemail", 2), ("failed", 2)]));
    }

    async fn an_unanswered_contact_is_called_again_after_the_pause(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340002"], json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 10 } })).await;
        let calls = async || tenant.event_types().await.iter().filter(|event| *event == "session.created").count();
        // It rings for half a minute; the gap counts from the end.
        world.advance(minutes(10)).await;
        assert_eq!(calls().await, 1);
        let contacts = tenant.api.get(&format!("/v1/campaigns/{id}/contacts?status=waiting")).await.ok();
        assert_eq!(contacts["data"][0]["wait_reason"], "retry");
        world.advance(minutes(1)).await;
        assert_eq!(calls().await, 2);
        world.advance(minutes(1)).await;
        assert_eq!(tenant.campaign(&id).await["counts"]["failed"], 1);
    }

    async fn a_pause_takes_effect_before_the_next_dial_and_calls_in_flight_run_on(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (0..20).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 1 } })).await;
        world.advance(seconds(4)).await;
        let paused = tenant.api.post(&format!("/v1/campaigns/{id}/pause"), json!({})).await.ok();
        assert_eq!((paused["status"].as_str(), paused["pause_reason"].as_str()), (Some("paused"), Some("manual")));
        let dispatched = async || tenant.event_types().await.iter().filter(|event| *event == "campaign.contact_dispatched").count();
        let before = dispatched().await;
        assert_eq!(before, 5, "one at once and one a second");
        world.advance(minutes(5)).await;
        assert_eq!(dispatched().await, before, "nobody was called while paused");
        let campaign = tenant.campaign(&id).await;
        assert_eq!(campaign["counts"]["completed"], 5, "calls in flight ran to their end");
        assert_eq!(campaign["status"], "paused");

        tenant.api.post(&format!("/v1/campaigns/{id}/resume"), json!({})).await.ok();
        world.advance(minutes(5)).await;
        assert_eq!(tenant.campaign(&id).await["counts"]["completed"], 20);
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    async fn a_cancel_ends_what_was_not_called_and_completes_after_the_calls_in_flight(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (0..10).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 1 } })).await;
        world.advance(seconds(2)).await;
        let canceled = tenant.api.post(&format!("/v1/campaigns/{id}/cancel"), json!({})).await.ok();
        assert!(canceled["cancel_requested_at"].is_string());
        world.settle().await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((campaign["status"].as_str(), campaign["counts"]["canceled"].as_i64()), (Some("running"), Some(7)));
        world.advance(minutes(2)).await;
        let campaign = tenant.campaign(&id).await;
        assert_eq!((campaign["status"].as_str(), campaign["completed_reason"].as_str()), (Some("completed"), Some("canceled")));
        assert_eq!(campaign["counts"]["completed"], 3);
        assert_eq!(tenant.event_types().await.iter().filter(|event| *event == "campaign.completed").count(), 1);
    }

    /// Who was never called, who waits for a time and who waits to be called again, in more than one transaction.
    async fn a_cancel_ends_those_who_wait_for_whatever(world: &mut World) {
        let tenant = world.tenant().await;
        let busy: Vec<String> = (0..3).map(|n| format!("+15002{n:05}1")).collect();
        let busy: Vec<&str> = busy.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&busy, json!({ "pacing": { "calls_per_second": 1 }, "retry": { "max_attempts": 3, "min_gap_minutes": 60 } })).await;
        world.advance(minutes(1)).await;
        let path = format!("/v1/campaigns/{id}");
        tenant.api.post(&format!("{path}/pause"), json!({})).await.ok();
        let later: Vec<_> = (0..4).map(|n| json!({ "phone_number": format!("+15003{n:05}0"), "not_before": "2027-03-09T12:00:00Z" })).collect();
        let fresh: Vec<_> = (0..300).map(|n| json!({ "phone_number": format!("+15004{n:05}0") })).collect();
        for contacts in [later, fresh] {
            tenant.api.post(&format!("{path}/contacts"), json!({ "contacts": contacts })).await.ok();
        }
        let counts = tenant.campaign(&id).await["counts"].clone();
        assert_eq!((&counts["pending"], &counts["waiting"], &counts["total"]), (&json!(304), &json!(3), &json!(307)), "{counts}");
        tenant.api.post(&format!("{path}/cancel"), json!({})).await.ok();
        world.settle().await;
        let done = tenant.campaign(&id).await;
        assert_eq!((done["status"].as_str(), done["completed_reason"].as_str()), (Some("completed"), Some("canceled")));
        let counts = &done["counts"];
        assert_eq!((&counts["pending"], &counts["waiting"], &counts["canceled"]), (&json!(0), &json!(0), &json!(307)), "{counts}");
        let contacts = tenant.api.get(&format!("{path}/contacts?order=asc&limit=100")).await.ok();
        let contacts = contacts["data"].as_array().unwrap();
        for contact in contacts {
            assert_eq!((&contact["status"], &contact["next_attempt_at"], &contact["wait_reason"]), (&json!("canceled"), &Value::Null, &Value::Null), "{contact}");
        }
        assert_eq!(contacts.iter().filter(|contact| contact["attempts"] == 1).count(), 3, "what they were called stays");
    }

    async fn a_number_is_in_a_campaign_once_however_it_was_typed(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = tenant.api.post("/v1/campaigns", json!({ "name": "Draft", "agent_id": tenant.agent().await })).await.ok();
        let path = format!("/v1/campaigns/{}/contacts", campaign["id"].as_str().unwrap());
        let add = async |contacts| tenant.api.post(&path, json!({ "contacts": contacts })).await.ok();
        let first = add(json!([
            { "phone_number": "+15002340000", "first_name": "Zoë" },
            { "phone_number": "(500) 234-0000", "email": "zoe@example.com" },
            { "phone_number": "500.234.0010", "external_id": "a" },
            { "phone_number": "500.234.0020", "external_id": "a" },
            { "phone_number": "" },
            { "phone_number": "+15002340030", "nmae": "x" },
        ])).await;
        assert_eq!((first["accepted"].as_u64(), first["duplicates"].as_u64()), (Some(2), Some(1)));
        let rejected: Vec<_> = first["rejected"].as_array().unwrap().iter().map(|row| (row["index"].as_u64().unwrap(), row["code"].as_str().unwrap(), row["param"].as_str().unwrap())).collect();
        assert_eq!(rejected, [(3, "already_exists", "external_id"), (4, "validation_failed", "phone_number"), (5, "validation_failed", "nmae")]);
        let second = add(json!([{ "phone_number": "1-500-234-0000" }, { "phone_number": "5002340040", "external_id": "a" }, { "phone_number": "5002340050" }])).await;
        assert_eq!((second["accepted"].as_u64(), second["duplicates"].as_u64()), (Some(1), Some(1)));
        assert_eq!(second["rejected"][0]["index"], 1);
        let contacts = tenant.api.get(&format!("{path}?order=asc")).await.ok();
        assert_eq!(contacts["data"][0]["first_name"], "Zoë");
        assert_eq!(contacts["data"][0]["email"], "zoe@example.com", "the duplicate filled in what was missing");
        assert_eq!(contacts["data"].as_array().unwrap().len(), 3);
    }

    async fn slots_and_pace_are_never_exceeded(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 3 })).await.ok();
        let numbers: Vec<String> = (0..12).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({})).await;
        let mut most = 0;
        while tenant.campaign(&id).await["status"] != "completed" {
            let used = tenant.api.get("/v1/concurrency").await.ok();
            most = most.max(used["in_use"].as_u64().unwrap());
            assert_eq!(used["by_source"]["campaign"], used["in_use"]);
            world.advance(seconds(1)).await;
        }
        assert_eq!(most, 3, "all slots are used, and no more");
    }

    /// Test keys reach the sandbox block and verified numbers only.
    async fn a_number_that_is_not_verified_is_skipped(world: &mut World) {
        let tenant = world.tenant().await;
        let deps = world.deps();
        let number: entities::values::E164 = "+12025550140".parse().unwrap();
        let row = entities::verified_number::Model::vouched(deps.ids.next(), tenant.id, number, deps.clock.now());
        deps.writer.run(Of::Anybody, move |db| {
            let row = row.clone();
            Box::pin(async move {
                entities::verified_number::add(db, row).await?;
                Ok(((), rules::commit::Commit::default()))
            })
        }).await.unwrap();
        let id = tenant.run_campaign(&["+12025550140", "+12025550150"], json!({})).await;
        world.advance(minutes(2)).await;
        let counts = tenant.campaign(&id).await["counts"].clone();
        assert_eq!((counts["completed"].as_u64(), counts["skipped"].as_u64()), (Some(1), Some(1)));
    }
}
