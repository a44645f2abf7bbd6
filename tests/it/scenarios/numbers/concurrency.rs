//! Slots: how many calls there are at once, and how many are kept for those that come in.
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use serde_json::{Value, json};

const NUMBER: &str = "+12025550123";

/// A number with an agent that answers it.
async fn reception(tenant: &Tenant) -> String {
    let agent = tenant.agent().await;
    tenant
        .api
        .post("/v1/numbers", json!({ "phone_number": NUMBER, "agent_id": agent }))
        .await
        .ok();
    agent
}

async fn ring(tenant: &Tenant) -> String {
    let call = json!({ "to_number": NUMBER, "from_number": "+15005550001" });
    tenant.api.post("/v1/_sandbox/inbound_calls", call).await.ok()["outcome"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// In use by campaign, API, inbound.
async fn in_use(tenant: &Tenant) -> (i64, i64, i64) {
    let view = tenant.api.get("/v1/concurrency").await.ok();
    let by = |name: &str| view["by_source"][name].as_i64().unwrap();
    assert_eq!(
        by("campaign") + by("api") + by("inbound") + by("room"),
        view["in_use"].as_i64().unwrap()
    );
    assert_eq!(
        view["limit"].as_i64().unwrap() - view["in_use"].as_i64().unwrap(),
        view["available"].as_i64().unwrap()
    );
    (by("campaign"), by("api"), by("inbound"))
}

on_both! {
    /// A campaign takes all slots but those that are kept; calls that come in may take every one.
    async fn a_saturating_campaign_leaves_a_slot_for_who_calls_in(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = reception(&tenant).await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 3, "inbound_reserve": 1 })).await.ok();
        let numbers: Vec<String> = (10..20).map(|n| format!("+15002340{n}0")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let id = tenant.run_campaign(&numbers, json!({})).await;
        world.advance(seconds(3)).await;
        assert_eq!(in_use(&tenant).await, (2, 0, 0));
        let stats = tenant.api.get(&format!("/v1/campaigns/{id}/stats")).await.ok();
        assert_eq!(stats["limiting_factor"], "concurrency", "{stats}");
        // Nor does the API take it.
        let call = json!({ "to_number": "+15002345600", "agent_id": agent, "queue_ttl_seconds": 0 });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (429, "concurrency_full", None));
        assert_eq!((ring(&tenant).await.as_str(), in_use(&tenant).await), ("answered", (2, 0, 1)));
        assert_eq!(ring(&tenant).await, "no_slot", "never above the limit");
        for _ in 0..60 {
            world.advance(seconds(5)).await;
            let (campaign, api, inbound) = in_use(&tenant).await;
            assert!(campaign + api <= 2 && campaign + api + inbound <= 3);
        }
        world.advance(minutes(10)).await;
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// Counted from the rows as well: a change makes the dispatcher read them again, with a call that came in among them.
    async fn a_reserve_holds_from_its_commit_on(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = reception(&tenant).await;
        tenant.api.patch("/v1/concurrency", json!({ "limit": 4 })).await.ok();
        assert_eq!((ring(&tenant).await.as_str(), ring(&tenant).await.as_str()), ("answered", "answered"));
        tenant.api.patch("/v1/concurrency", json!({ "inbound_reserve": 3 })).await.ok();
        for number in ["+15002345600", "+15002345610"] {
            tenant.api.post("/v1/sessions", json!({ "to_number": number, "agent_id": agent })).await.ok();
        }
        world.advance(seconds(3)).await;
        assert_eq!(in_use(&tenant).await, (0, 1, 2), "one of the two waits");
        assert_eq!(ring(&tenant).await, "answered");
        assert_eq!(ring(&tenant).await, "no_slot");
        tenant.api.patch("/v1/concurrency", json!({ "limit": 5, "inbound_reserve": 0 })).await.ok();
        world.advance(seconds(3)).await;
        assert_eq!(in_use(&tenant).await, (0, 2, 3), "who waits is let through");
        world.advance(minutes(5)).await;
        assert_eq!(in_use(&tenant).await, (0, 0, 0));
    }

    async fn limit_and_reserve_are_checked_together(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let view = api.get("/v1/concurrency").await.ok();
        assert_eq!((view["limit"].as_i64(), view["inbound_reserve"].as_i64()), (Some(20), Some(0)));
        let set = api.patch("/v1/concurrency", json!({ "inbound_reserve": 19 })).await.ok();
        assert_eq!((set["limit"].as_i64(), set["inbound_reserve"].as_i64()), (Some(20), Some(19)));
        for (body, param) in [
            (json!({}), "limit"),
            (json!({ "limit": null }), "limit"),
            (json!({ "limit": 19 }), "limit"),
            (json!({ "limit": 0 }), "limit"),
            (json!({ "limit": 1_000_000 }), "limit"),
            (json!({ "inbound_reserve": 20 }), "inbound_reserve"),
            (json!({ "inbound_reserve": -1 }), "inbound_reserve"),
            (json!({ "inbound_reserve": 1.5 }), "inbound_reserve"),
            (json!({ "limit": 5, "inbound_reserve": 5 }), "inbound_reserve"),
            (json!({ "reserve": 1 }), "reserve"),
        ] {
            assert_eq!(api.patch("/v1/concurrency", body.clone()).await.error(), (422, "validation_failed", Some(param)), "{body}");
        }
        assert_eq!(api.get("/v1/concurrency").await.ok(), set, "nothing was changed");
        let lower = api.patch("/v1/concurrency", json!({ "limit": 5, "inbound_reserve": 4 })).await.ok();
        assert_eq!((lower["limit"].as_i64(), lower["inbound_reserve"].as_i64()), (Some(5), Some(4)));
        assert_eq!(api.patch("/v1/concurrency", json!({ "inbound_reserve": null })).await.ok()["inbound_reserve"], Value::from(0));
        // The operator's maximum sinks below what is kept: one slot is left for dialling.
        api.patch("/v1/concurrency", json!({ "inbound_reserve": 4 })).await.ok();
        world.change_setting("max_concurrency", 2.into()).await;
        let view = api.get("/v1/concurrency").await.ok();
        assert_eq!((view["limit"].as_i64(), view["max_limit"].as_i64(), view["inbound_reserve"].as_i64()), (Some(2), Some(2), Some(1)));
    }
}
