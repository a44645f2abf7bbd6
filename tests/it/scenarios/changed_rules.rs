//! A campaign's rules change while its contacts wait: what the old ones decided is decided anew. The clock stands at Tuesday
//! 2027-03-02, 08:00 in New York; numbers that end in 1 are busy.
use super::campaign_messages::{all, borrowed, contacts, mails, run, texts};
use crate::{
    on_both,
    world::{Api, Tenant, World, minutes, seconds},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// More than any one transaction moves.
const MANY: usize = 600;

async fn change(api: &Api, campaign: &str, patch: Value) {
    api.patch(&format!("/v1/campaigns/{campaign}"), patch).await.ok();
}

/// How many contacts are in each status with that many attempts.
async fn counts(api: &Api, campaign: &str) -> BTreeMap<(String, i64), usize> {
    let mut counts = BTreeMap::new();
    for contact in all(api, &format!("/v1/campaigns/{campaign}/contacts")).await {
        let status = contact["status"].as_str().unwrap().to_owned();
        *counts
            .entry((status, contact["attempts"].as_i64().unwrap()))
            .or_default() += 1;
    }
    counts
}

fn only(status: &str, attempts: i64, count: usize) -> BTreeMap<(String, i64), usize> {
    BTreeMap::from([((status.to_owned(), attempts), count)])
}

fn thrice(more: Value) -> Value {
    let mut rules = json!({ "retry": { "max_attempts": 3, "min_gap_minutes": 30 } });
    rules.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rules
}

/// All of them are busy, and wait for the same moment within a few seconds.
async fn many_who_wait(world: &World, tenant: &Tenant) -> String {
    tenant.api.patch("/v1/concurrency", json!({ "limit": 50 })).await.ok();
    let numbers: Vec<String> = (0..MANY).map(|n| format!("+1500234{n:03}1")).collect();
    let id = tenant.run_campaign(&borrowed(&numbers), thrice(json!({}))).await;
    world.advance(minutes(5)).await;
    assert_eq!(counts(&tenant.api, &id).await, only("waiting", 1, MANY));
    id
}

on_both! {
    async fn lowered_retries_end_who_has_had_them(world: &mut World) {
        let tenant = world.tenant().await;
        let id = many_who_wait(world, &tenant).await;
        change(&tenant.api, &id, json!({ "retry": { "max_attempts": 1 } })).await;
        world.settle().await;
        assert_eq!(counts(&tenant.api, &id).await, only("failed", 1, MANY));
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
        let types = tenant.event_types().await;
        let failed = types.iter().filter(|known| *known == "campaign.contact_failed").count();
        assert_eq!(failed, MANY);
    }

    /// Their time has come, and they would be called at once: nobody is before the new rules were asked.
    async fn nobody_is_called_by_the_old_rules_meanwhile(world: &mut World) {
        let tenant = world.tenant().await;
        let id = many_who_wait(world, &tenant).await;
        let path = format!("/v1/campaigns/{id}");
        tenant.api.post(&format!("{path}/pause"), json!({})).await.ok();
        world.advance(minutes(40)).await;
        change(&tenant.api, &id, json!({ "retry": { "max_attempts": 1 } })).await;
        tenant.api.post(&format!("{path}/resume"), json!({})).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("failed", 1, MANY));
    }

    /// The first change is not over when the second comes, and the service is killed in both.
    async fn a_change_is_judged_by_the_last_rules_and_outlives_a_crash(world: &mut World) {
        let tenant = world.tenant().await;
        let id = many_who_wait(world, &tenant).await;
        change(&tenant.api, &id, json!({ "retry": { "min_gap_minutes": 600 } })).await;
        world.restart().await;
        change(&tenant.api, &id, json!({ "retry": { "min_gap_minutes": 60 } })).await;
        world.restart().await;
        world.advance(minutes(45)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("waiting", 1, MANY), "50 minutes after the first calls");
        world.advance(minutes(20)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("waiting", 2, MANY));
    }

    async fn sooner_and_only_after_that_outcome(world: &mut World) {
        let tenant = world.tenant().await;
        // The first is busy, the second does not answer.
        let id = tenant.run_campaign(&["+15002340001", "+15002340002"], thrice(json!({}))).await;
        world.advance(minutes(5)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("waiting", 1, 2));
        change(&tenant.api, &id, json!({ "retry": { "min_gap_minutes": 6, "rules": { "busy": { "never": true } } } })).await;
        world.advance(minutes(3)).await;
        let expected = BTreeMap::from([(("failed".to_owned(), 1), 1), (("waiting".to_owned(), 2), 1)]);
        assert_eq!(counts(&tenant.api, &id).await, expected);
    }

    async fn a_loosened_cap_lets_go_whom_it_put_off(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001"], thrice(json!({ "caps": { "per_number_24h": 1 } }))).await;
        world.advance(minutes(40)).await;
        let contact = contacts(&tenant.api, &id).await.remove(0);
        assert_eq!((&contact["attempts"], &contact["wait_reason"]), (&json!(1), &json!("cap")));
        // A cap that still holds puts off again.
        change(&tenant.api, &id, json!({ "caps": { "per_number_7d": 1 } })).await;
        world.advance(minutes(1)).await;
        let contact = contacts(&tenant.api, &id).await.remove(0);
        assert_eq!((&contact["attempts"], &contact["wait_reason"]), (&json!(1), &json!("cap")));
        change(&tenant.api, &id, json!({ "caps": { "per_number_24h": null, "per_number_7d": null } })).await;
        world.advance(seconds(30)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("waiting", 2, 1));
    }

    async fn who_was_never_called_is_let_go_too(world: &mut World) {
        let tenant = world.tenant().await;
        let first = tenant.run_campaign(&["+15002340001"], json!({})).await;
        world.advance(minutes(1)).await;
        let id = tenant.run_campaign(&["+15002340001"], json!({ "caps": { "per_number_24h": 1 } })).await;
        world.advance(minutes(1)).await;
        assert_eq!((tenant.campaign(&first).await["status"].clone(), counts(&tenant.api, &id).await), (json!("completed"), only("pending", 0, 1)));
        change(&tenant.api, &id, json!({ "caps": { "per_number_24h": 2 } })).await;
        world.advance(seconds(30)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("failed", 1, 1));
    }

    async fn loosened_windows_let_go_whom_they_put_off(world: &mut World) {
        let tenant = world.tenant().await;
        let short = json!({ "schedule": { "windows": [{ "start": "08:00", "end": "08:20" }] } });
        let id = tenant.run_campaign(&["+15002340001"], thrice(short)).await;
        world.advance(minutes(45)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("waiting", 1, 1));
        assert_eq!(tenant.campaign(&id).await["next_open_at"], "2027-03-03T13:00:00.000Z");
        change(&tenant.api, &id, json!({ "schedule": { "windows": [{ "start": "08:00", "end": "20:00" }] } })).await;
        world.advance(seconds(30)).await;
        assert_eq!(counts(&tenant.api, &id).await, only("waiting", 2, 1));
    }

    /// What somebody asked for by hand is not taken back by rules.
    async fn a_retry_by_hand_stands(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002340001"], json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 10 } })).await;
        // One more is to come, so that the campaign stays open.
        let late = json!({ "contacts": [{ "phone_number": "+15002340021", "not_before": "2027-03-02T17:00:00Z" }] });
        tenant.api.post(&format!("/v1/campaigns/{id}/contacts"), late).await.ok();
        world.advance(minutes(15)).await;
        let first = contacts(&tenant.api, &id).await.remove(0);
        assert_eq!((&first["status"], &first["attempts"]), (&json!("failed"), &json!(2)));
        let path = format!("/v1/campaigns/{id}/contacts/{}", first["id"].as_str().unwrap());
        tenant.api.post(&format!("{path}/retry"), json!({})).await.ok();
        change(&tenant.api, &id, json!({ "retry": { "max_attempts": 1 } })).await;
        change(&tenant.api, &id, json!({ "schedule": { "ends_at": "2027-03-02T20:00:00Z" } })).await;
        world.advance(minutes(15)).await;
        let first = tenant.api.get(&path).await.ok();
        assert_eq!((&first["status"], &first["attempts"]), (&json!("failed"), &json!(3)));
    }

    async fn messages_wait_by_the_new_rules_too(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let sms = run(api, texts(&["+15002350001"], thrice(json!({})))).await;
        let email = run(api, mails(&["failed@example.com"], thrice(json!({})))).await;
        world.advance(minutes(5)).await;
        for id in [&sms, &email] {
            assert_eq!(counts(api, id).await, only("waiting", 1, 1));
            change(api, id, json!({ "retry": { "min_gap_minutes": 10 } })).await;
        }
        world.advance(minutes(8)).await;
        for id in [&sms, &email] {
            assert_eq!(counts(api, id).await, only("waiting", 2, 1));
            change(api, id, json!({ "retry": { "max_attempts": 2 } })).await;
        }
        world.settle().await;
        for id in [&sms, &email] {
            assert_eq!(counts(api, id).await, only("failed", 2, 1));
        }
    }
}
