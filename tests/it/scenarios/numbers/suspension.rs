//! A workspace that its operator stops, and lets go on.
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use actors::leases::Of;
use entities::{suspension, values::Env};
use serde_json::json;

/// As the operator's command does it.
async fn suspend(world: &World, tenant: &Tenant) -> suspension::Model {
    let deps = world.deps();
    let row = suspension::Model {
        tenant_id: tenant.id,
        reason: Some("unpaid".into()),
        since: deps.clock.now(),
    };
    deps.writer
        .run(Of::Anybody, move |db| {
            let row = row.clone();
            Box::pin(async move { Ok((suspension::begin(db, row).await?, rules::commit::Commit::default())) })
        })
        .await
        .unwrap()
}

async fn resume(world: &World, tenant: &Tenant) -> bool {
    let id = tenant.id;
    let lifting = world.deps().writer.run(Of::Anybody, move |db| {
        Box::pin(async move { Ok((suspension::lift(db, id).await?, rules::commit::Commit::default())) })
    });
    lifting.await.unwrap()
}

/// Of the campaign's contacts, in their order.
async fn contacts(tenant: &Tenant, campaign: &str) -> Vec<(String, String)> {
    let page = tenant
        .api
        .get(&format!("/v1/campaigns/{campaign}/contacts?order=asc"))
        .await
        .ok();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row["status"]), text(&row["skip_reason"])))
        .collect()
}

on_both! {
    /// Nothing is dialled and nothing taken, in either env, until it is lifted; what is live runs on, and nothing is lost.
    async fn a_suspended_workspace_goes_on_where_it_stopped(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        tenant.api.post("/v1/numbers", json!({ "phone_number": "+12025550123", "agent_id": agent })).await.ok();
        let numbers = ["+15002340000", "+15002340010", "+15002340020"];
        let id = tenant.run_campaign(&numbers, json!({ "pacing": { "calls_per_second": 0.1 } })).await;
        world.advance(seconds(1)).await;
        assert_eq!(tenant.api.get("/v1/concurrency").await.ok()["in_use"], 1);
        suspend(world, &tenant).await;
        world.advance(minutes(10)).await;
        let statuses: Vec<_> = contacts(&tenant, &id).await.into_iter().map(|contact| contact.0).collect();
        assert_eq!(statuses, ["completed", "pending", "pending"], "the call that was live has run to its end");
        let campaign = tenant.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["blocked_by"]), (&json!("running"), &json!(["suspension"])));
        let call = json!({ "to_number": "+15002340000", "agent_id": agent });
        let refused = tenant.api.post("/v1/sessions", call.clone()).await;
        assert_eq!(refused.error(), (403, "plan_limit", None));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("ask the operator"), "{}", refused.body);
        assert!(!refused.body.to_string().contains("unpaid"), "the reason is the operator's own");
        let blocks = entities::dispatch_block::of(&world.deps().db.read, tenant.id).await.unwrap();
        assert!([Env::Live, Env::Test].iter().all(|env| blocks.iter().any(|block| block.env == *env)), "both envs");
        let taken = tenant.api.post("/v1/_sandbox/inbound_calls", json!({ "to_number": "+12025550123" })).await.ok();
        assert_eq!(taken["outcome"], "blocked");
        assert!(resume(world, &tenant).await);
        world.advance(seconds(31)).await;
        assert!(tenant.api.get("/v1/concurrency").await.ok()["in_use"].as_i64().unwrap() > 0, "it dials again within half a minute");
        world.advance(minutes(5)).await;
        assert_eq!((&tenant.campaign(&id).await["status"], &tenant.campaign(&id).await["counts"]["completed"]), (&json!("completed"), &json!(3)));
        tenant.api.post("/v1/sessions", call).await.ok();
        world.advance(minutes(2)).await;
        assert!(!resume(world, &tenant).await, "there was nothing to lift");
    }

    /// 24 hours from its beginning, however often it is said; over a restart.
    async fn contacts_wait_a_day_and_no_longer(world: &mut World) {
        let tenant = world.tenant().await;
        let since = suspend(world, &tenant).await.since;
        let id = tenant.run_campaign(&["+15002340000", "+15002340010"], json!({})).await;
        world.advance(minutes(60)).await;
        assert_eq!(suspend(world, &tenant).await.since, since, "a second time changes nothing");
        world.leap(minutes(22 * 60)).await;
        world.restart().await;
        let waiting = ("pending".to_owned(), String::new());
        assert_eq!(contacts(&tenant, &id).await, [waiting.clone(), waiting]);
        world.leap(minutes(60)).await;
        let skipped = ("skipped".to_owned(), "tenant_suspended".to_owned());
        assert_eq!(contacts(&tenant, &id).await, [skipped.clone(), skipped]);
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        let told = tenant.events().await.into_iter().filter(|event| event["type"] == "campaign.contact_skipped").count();
        assert_eq!(told, 2);
        // Another workspace is nobody's business.
        let other = world.tenant().await;
        let id = other.run_campaign(&["+15002340000"], json!({})).await;
        world.advance(minutes(2)).await;
        assert_eq!(other.campaign(&id).await["status"], "completed");
    }
}
