//! The operator pauses everything that leaves for people: for a backup that is started, and does not know who was called since it
//! was made.
use super::messages::{status, text};
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::dispatch_pause;
use rules::commit::Commit;
use serde_json::{Value, json};

async fn calls(tenant: &Tenant) -> usize {
    let listed = tenant.api.get("/v1/sessions?direction=outbound&limit=100").await.ok();
    listed["data"].as_array().unwrap().len()
}

async fn resume(world: &World) -> bool {
    let lifting = world.deps().writer.run(Of::Anybody, |db| {
        Box::pin(async move { Ok((dispatch_pause::lift(db).await?, Commit::default())) })
    });
    lifting.await.unwrap()
}

async fn pause(world: &World) {
    let now = world.clock.now();
    let pausing = world.deps().writer.run(Of::Anybody, move |db| {
        Box::pin(async move { Ok((dispatch_pause::begin(db, now).await?, Commit::default())) })
    });
    pausing.await.unwrap();
}

on_both! {
    /// In the middle of a campaign, as a backup is that was made then: nothing leaves until it is resumed, also after a restart
    /// without the switch; nothing is lost.
    async fn a_backup_that_is_started_paused_calls_nobody(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        tenant.api.post("/v1/numbers", json!({ "phone_number": "+12025550123", "agent_id": agent })).await.ok();
        let numbers: Vec<String> = (0..20).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 0.5 } })).await;
        let later = text(&tenant.api, "+15003340000", json!({ "scheduled_at": world.clock.now().plus_seconds(60) })).await;
        world.advance(seconds(11)).await;
        let before = calls(&tenant).await;
        assert!(before > 0 && before < 20, "in the middle: {before}");

        world.change_setting("start_paused", true.into()).await;
        world.advance(minutes(5)).await;
        assert_eq!(calls(&tenant).await, before);
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["blocked_by"]), (&json!("running"), &json!(["operator_pause"])));
        let stats = tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!(stats["limiting_factor"], "operator_pause");
        assert_eq!(tenant.api.get("/readyz").await.ok()["dispatch"], "paused");
        assert_eq!(status(&tenant.api, &later).await, "scheduled");
        // What is asked for now is refused; what has time waits; what comes in is answered.
        let call = |more: Value| {
            let mut call = json!({ "to_number": "+15002340000", "agent_id": agent });
            call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call
        };
        let refused = tenant.api.post("/v1/sessions", call(json!({}))).await;
        assert_eq!(refused.error(), (503, "unavailable", None));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("operator has paused"), "{}", refused.body);
        let in_time = call(json!({ "scheduled_at": world.clock.now().plus_seconds(30 * 60) }));
        tenant.api.post("/v1/sessions", in_time).await.ok();
        let now = text(&tenant.api, "+15003340010", json!({})).await;
        let taken = tenant.api.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550123" })).await.ok();
        assert_eq!(taken["outcome"], "answered");
        world.advance(minutes(2)).await;
        assert_eq!((calls(&tenant).await, status(&tenant.api, &now).await.as_str()), (before + 1, "queued"));

        world.change_setting("start_paused", false.into()).await;
        world.advance(minutes(2)).await;
        assert_eq!(calls(&tenant).await, before + 1, "a restart ends no pause");
        assert!(resume(world).await && !resume(world).await);
        world.advance(minutes(3)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        assert_eq!(tenant.campaign(&id).await["blocked_by"], json!([]));
        assert_eq!([status(&tenant.api, &later).await, status(&tenant.api, &now).await], ["delivered", "delivered"]);
        assert_eq!(tenant.api.get("/readyz").await.ok()["dispatch"], "running");
        world.advance(minutes(30)).await;
        let types = tenant.event_types().await;
        let of = |name: &str| types.iter().filter(|known| *known == name).count();
        assert_eq!((of("campaign.contact_dispatched"), of("session.created")), (20, 22), "each once; one for later, one that came in");
    }

    /// Another process writes the row: from the next dial on it holds, before anybody here was told.
    async fn a_pause_holds_from_the_next_dial_on(world: &mut World) {
        let tenant = world.tenant().await;
        let numbers: Vec<String> = (0..20).map(|n| format!("+15002{n:05}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 1 } })).await;
        world.advance(seconds(5)).await;
        pause(world).await;
        let before = calls(&tenant).await;
        let live = tenant.api.get("/v1/concurrency").await.ok()["in_use"].as_u64().unwrap();
        assert!(before < 20 && live > 0);
        world.advance(minutes(3)).await;
        assert_eq!(calls(&tenant).await, before);
        let counts = &tenant.campaign(&id).await["counts"];
        assert_eq!((counts["completed"].as_u64(), counts["pending"].as_u64()), (Some(before as u64), Some(20 - before as u64)), "what was live has run to its end");
        assert!(resume(world).await);
        world.advance(minutes(3)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        assert_eq!(calls(&tenant).await, 20);
    }
}
