//! Crashes and failing commits in the middle of things: nothing lost, nobody dialled twice.
use super::rooms;
use crate::{
    on_both,
    world::{Receiver, World, minutes, seconds},
};
use actors::leases::Of;
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn of_type<'a>(events: &'a [Value], event_type: &'a str) -> impl Iterator<Item = &'a Value> {
    events
        .iter()
        .filter(move |event| event["type"] == event_type)
        .map(|event| &event["data"])
}

/// Every contact reached one end, and no attempt has two sessions.
fn assert_each_contact_once(events: &[Value], contacts: usize) {
    let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
    for kind in [
        "campaign.contact_completed",
        "campaign.contact_failed",
        "campaign.contact_skipped",
    ] {
        of_type(events, kind).for_each(|data| *ends.entry(data["contact_id"].as_str().unwrap()).or_default() += 1);
    }
    assert_eq!(ends.len(), contacts);
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    let created: BTreeSet<_> = of_type(events, "session.created")
        .map(|data| data["session_id"].as_str().unwrap())
        .collect();
    let ended: Vec<_> = ["session.ended", "session.failed"]
        .iter()
        .flat_map(|kind| of_type(events, kind))
        .map(|data| data["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(ended.len(), created.len(), "each session ends once");
    assert_eq!(ended.iter().copied().collect::<BTreeSet<_>>(), created);
}

on_both! {
    async fn a_crash_in_the_middle_closes_live_calls_and_the_rest_goes_on(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let numbers: Vec<String> = (0..30).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 1 } })).await;
        world.advance(seconds(10)).await;
        let live = tenant.api.get("/v1/concurrency").await.ok()["in_use"].as_u64().unwrap();
        assert!(live > 0);
        world.restart().await;
        let lost = of_type(&tenant.events().await, "session.failed").filter(|data| data["end_reason"] == "node_lost").count() as u64;
        assert_eq!(lost, live, "what was live is closed at the start");
        world.advance(minutes(5)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        let events = tenant.events().await;
        assert_each_contact_once(&events, 30);
        assert_eq!(of_type(&events, "campaign.contact_failed").count() as u64, live, "lost contacts are not called again");
        assert_eq!(of_type(&events, "campaign.contact_dispatched").count(), 30);
        assert_eq!(receiver.counts_by_id().len(), events.len());
    }

    /// Its threads, connections and files: a process that builds one service after another must not run out of them.
    async fn a_service_that_ended_holds_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let agent = tenant.agent().await;
        let room = rooms::create(&tenant, &agent, json!({})).await;
        let (_peer, _) = rooms::Link::of(world, &tenant, &room).join(None).await;
        rooms::until(&tenant, &room, |room| room["status"] == "joined").await;
        tenant.run_campaign(&["+15002345600", "+15002345610"], json!({ "pacing": { "calls_per_second": 1 } })).await;
        world.advance(seconds(1)).await;
        let of_the_first = world.deps().downgrade();
        world.restart().await;
        // Its last threads end after their handles; one that never lets go ends with the scenario's time.
        while of_the_first.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        world.advance(minutes(70)).await;
    }

    async fn commits_that_fail_lose_nothing_and_dial_nobody_twice(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        let numbers: Vec<String> = (0..20).map(|n| format!("+15002{:05}{}", n, [0, 1, 9][n % 3])).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let more = json!({ "pacing": { "calls_per_second": 2 }, "retry": { "max_attempts": 2, "min_gap_minutes": 1 } });
        let id = tenant.run_campaign(&numbers, more).await;
        for failures in [1, 3, 1, 2, 5, 1, 1, 4] {
            world.fail_next_commits(failures);
            world.advance(seconds(3)).await;
        }
        world.advance(minutes(10)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        let events = tenant.events().await;
        assert_each_contact_once(&events, 20);
        assert_eq!(receiver.counts_by_id().len(), events.len());
    }

    async fn a_request_whose_commit_fails_answers_503_and_changes_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        world.fail_next_commits(1);
        let failed = tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await;
        assert_eq!(failed.error(), (503, "unavailable", None));
        assert!(failed.headers.contains_key("retry-after"));
        assert_eq!(tenant.api.get("/v1/campaigns").await.ok()["data"], json!([]));
        assert_eq!(tenant.events().await.len(), 0);
    }

    async fn what_was_not_delivered_before_a_crash_is_delivered_after_it_with_the_same_id(world: &mut World) {
        let tenant = world.tenant().await;
        let receiver = Receiver::start();
        tenant.webhook(&receiver).await;
        receiver.answer_next([500, 500]);
        tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok();
        world.settle().await;
        world.restart().await;
        world.restart().await;
        world.advance(minutes(5)).await;
        let requests = receiver.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.raw == requests[0].raw && request.verified == Some(true)));
    }

    async fn a_paused_campaign_stays_paused_over_a_crash_and_a_cancel_is_finished(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (0..5).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let more = json!({ "pacing": { "calls_per_second": 0.1 } });
        let paused = tenant.run_campaign(&numbers, more.clone()).await;
        tenant.api.post(&format!("/v1/campaigns/{paused}/pause"), json!({})).await.ok();
        let canceled = tenant.run_campaign(&numbers, more).await;
        world.settle().await;
        tenant.api.post(&format!("/v1/campaigns/{canceled}/cancel"), json!({})).await.ok();
        world.restart().await;
        world.advance(minutes(10)).await;
        assert_eq!(tenant.campaign(&paused).await["status"], "paused");
        assert_eq!(tenant.campaign(&canceled).await["status"], "completed");
        assert_eq!(tenant.campaign(&canceled).await["counts"]["canceled"], 4);
    }

    /// A commit that the database refuses may leave its transaction open: what follows would be acknowledged, and never be
    /// written.
    async fn after_a_commit_that_failed_what_is_acknowledged_is_written(world: &mut World) {
        let tenant = world.tenant().await;
        let run = async |text: &'static str| {
            world.deps().writer.run(Of::Anybody, move |db| Box::pin(async move {
                db.execute_unprepared(text).await?;
                Ok(((), rules::commit::Commit::default()))
            })).await
        };
        run("CREATE TABLE parents (id INTEGER PRIMARY KEY)").await.unwrap();
        run("CREATE TABLE children (id INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)").await.unwrap();
        // The statement is taken; the commit finds that there is no such parent.
        assert!(run("INSERT INTO children (id) VALUES (1)").await.is_err());
        let agent = tenant.agent().await;
        assert_eq!(tenant.api.get(&format!("/v1/agents/{agent}")).await.ok()["id"].as_str(), Some(agent.as_str()));
        assert_eq!(world.rows("children").await, 0);
        world.restart().await;
        assert_eq!(tenant.api.get(&format!("/v1/agents/{agent}")).await.status, 200, "it outlives a crash");
    }

    /// After a disk that was full SQLite has ended the transaction by itself, and the driver does not know it.
    async fn after_a_transaction_that_the_database_ended_what_is_acknowledged_is_written(world: &mut World) {
        let tenant = world.tenant().await;
        let ended = world.deps().writer.run(Of::Anybody, |db| Box::pin(async move {
            db.execute_unprepared("ROLLBACK").await?;
            Err::<((), _), _>(entities::Error::Unavailable("database or disk is full".into()))
        }));
        ended.await.unwrap_err();
        let agent = tenant.agent().await;
        assert_eq!(tenant.api.get(&format!("/v1/agents/{agent}")).await.ok()["id"].as_str(), Some(agent.as_str()));
        world.restart().await;
        assert_eq!(tenant.api.get(&format!("/v1/agents/{agent}")).await.status, 200, "it outlives a crash");
    }
}
