//! Two things at one moment, many times over. Whatever comes first, what was written down must be in order.
//! By hand with more: `CALLBOARD_TEST_RACES=1000`.
use crate::{
    audit::{check, report},
    on_both,
    world::{Tenant, World, minutes, number, seconds},
};
use futures_util::future::{join, join_all, join3};
use serde_json::{Value, json};

fn races() -> usize {
    number("CALLBOARD_TEST_RACES", 25)
}

/// Everything that is stored, checked against the promises. The carrier keeps no log here: times are not real.
async fn assert_promises_kept(world: &World) {
    let breaches = check(&world.evidence().await);
    assert!(breaches.is_empty(), "{}", report(&breaches));
}

async fn draft(tenant: &Tenant, agent: &str, contacts: usize) -> String {
    let plan = json!({ "name": "Race", "agent_id": agent, "pacing": { "calls_per_second": 500 }, "caps": { "per_number_24h": null, "per_number_7d": null }, "retry": { "max_attempts": 2 } });
    let id = tenant.api.post("/v1/campaigns", plan).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let given: Vec<_> = (0..contacts)
        .map(|n| json!({ "phone_number": format!("+15002340{n:02}1") }))
        .collect();
    let path = format!("/v1/campaigns/{id}");
    if contacts > 0 {
        tenant
            .api
            .post(&format!("{path}/contacts"), json!({ "contacts": given }))
            .await
            .ok();
    }
    path
}

on_both! {
    /// After the pause nobody more is dialled, whatever was being prepared.
    async fn a_pause_against_the_dispatch(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        for _ in 0..races() {
            let path = draft(&tenant, &agent, 10).await;
            let (start, pause) = (format!("{path}/start"), format!("{path}/pause"));
            let both = join(tenant.api.post(&start, json!({})), tenant.api.post(&pause, json!({}))).await;
            both.0.ok();
            world.settle().await;
            world.advance(seconds(1)).await;
            tenant.api.post(&format!("{path}/cancel"), json!({})).await.ok();
            world.advance(seconds(2)).await;
        }
        world.advance(minutes(2)).await;
        assert_promises_kept(world).await;
    }

    /// A number that comes onto the list at the moment of its dial was dialled before, or never.
    async fn the_do_not_call_list_against_the_dispatch(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        for _ in 0..races() {
            let path = draft(&tenant, &agent, 4).await;
            let numbers = ["+15002340001", "+15002340021"].map(|number| json!({ "phone_number": number }));
            let start = format!("{path}/start");
            let call = json!({ "to_number": "+15002340031", "agent_id": agent });
            let all = join3(
                tenant.api.post(&start, json!({})),
                join(tenant.api.post("/v1/dnc", numbers[0].clone()), tenant.api.post("/v1/dnc", numbers[1].clone())),
                join(tenant.api.post("/v1/sessions", call), tenant.api.post("/v1/dnc", json!({ "phone_number": "+15002340031" }))),
            ).await;
            let entries = [all.1.0.ok(), all.1.1.ok(), all.2.1.ok()];
            world.advance(seconds(3)).await;
            tenant.api.post(&format!("{path}/cancel"), json!({})).await.ok();
            for entry in entries {
                tenant.api.delete(&format!("/v1/dnc/{}?reason=next", entry["id"].as_str().unwrap())).await;
            }
            world.advance(minutes(1)).await;
        }
        assert_promises_kept(world).await;
    }

    /// Each number is in the campaign once, and the counts say so.
    async fn two_imports_of_one_list(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        for race in 0..races() {
            let path = draft(&tenant, &agent, 0).await;
            let file: String = std::iter::once("phone_number\n".to_owned()).chain((0..40).map(|n| format!("+15003{race:04}{n:02}\n"))).collect();
            let import = format!("{path}/contacts/import");
            let (one, two) = join(tenant.api.upload(&import, file.clone()), tenant.api.upload(&import, file)).await;
            // Under the rate limit of a key.
            world.advance(seconds(1)).await;
            let mut accepted = 0;
            for job in [one.ok(), two.ok()] {
                let job = tenant.api.get(&format!("/v1/imports/{}", job["id"].as_str().unwrap())).await.ok();
                assert_eq!(job["status"], "completed");
                accepted += job["accepted"].as_i64().unwrap();
            }
            assert_eq!(accepted, 40);
            assert_eq!(tenant.api.get(&path).await.ok()["counts"]["total"], 40);
        }
        assert_promises_kept(world).await;
    }

    /// However many calls come in while others are placed, they share the slots.
    async fn calls_that_come_in_against_the_dispatch(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let number = json!({ "phone_number": "+12025550123", "agent_id": agent });
        tenant.api.post("/v1/numbers", number).await.ok();
        tenant.api.patch("/v1/concurrency", json!({ "limit": 6 })).await.ok();
        for _ in 0..races() {
            let path = draft(&tenant, &agent, 6).await;
            let start = format!("{path}/start");
            let call = json!({ "to_number": "+12025550123", "from_number": "+15005550001" });
            let calls = join_all((0..6).map(|_| tenant.api.post("/v1/_sandbox/inbound_calls", call.clone())));
            let (started, calls) = join(tenant.api.post(&start, json!({})), calls).await;
            started.ok();
            calls.into_iter().for_each(|call| drop(call.ok()));
            world.settle().await;
            let used = tenant.api.get("/v1/concurrency").await.ok();
            assert_eq!(used["in_use"], 6, "all slots are used, and no more: {used}");
            tenant.api.post(&format!("{path}/cancel"), json!({})).await.ok();
            world.advance(minutes(2)).await;
        }
        assert_promises_kept(world).await;
    }

    /// A contact that is called once more while its campaign is canceled ends with it, and the campaign ends once.
    async fn a_cancel_against_a_retry(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        for _ in 0..races() {
            let path = draft(&tenant, &agent, 2).await;
            let plan = json!({ "retry": { "max_attempts": 1, "min_gap_minutes": 0 }, "pacing": { "max_concurrency": 1 } });
            tenant.api.patch(&path, plan).await.ok();
            // The first has failed, the second is being called.
            let first = tenant.api.get(&format!("{path}/contacts?order=asc")).await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
            tenant.api.patch(&format!("{path}/contacts/{first}"), json!({ "phone_number": "+15002349991", "priority": 9 })).await.ok();
            let slow = tenant.api.get(&format!("{path}/contacts?order=asc")).await.ok()["data"][1]["id"].as_str().unwrap().to_owned();
            tenant.api.patch(&format!("{path}/contacts/{slow}"), json!({ "phone_number": "+15002349990" })).await.ok();
            tenant.api.post(&format!("{path}/start"), json!({})).await.ok();
            world.advance(seconds(2)).await;
            let retry = format!("{path}/contacts/{first}/retry");
            let cancel = format!("{path}/cancel");
            let (retried, canceled) = join(tenant.api.post(&retry, json!({})), tenant.api.post(&cancel, json!({}))).await;
            canceled.ok();
            assert!(retried.status == 200 || retried.error().1 == "invalid_state", "{}", retried.body);
            world.advance(minutes(1)).await;
            let done = tenant.api.get(&path).await.ok();
            assert_eq!((&done["status"], &done["completed_reason"]), (&json!("completed"), &json!("canceled")), "{done}");
            let counts = &done["counts"];
            let ended = ["completed", "failed", "canceled"].map(|name| counts[name].as_i64().unwrap()).iter().sum::<i64>();
            assert_eq!((ended, &counts["total"]), (2, &json!(2)), "{counts}");
            let _: &Value = counts;
        }
    }
}
