//! Registers of numbers that must not be called: without a fresh copy nobody is called, and with one the campaign goes on by itself.
use super::{
    attempts, barred, called, campaign, cancel, consent, contacts, eligibility, fates, introduce, law, mid_morning,
    person, proof, run, seller, under, untouched,
};
use crate::{
    on_both,
    world::{Tenant, World, minutes, seconds},
};
use entities::values::Moment;
use serde_json::{Value, json};

const LISTED: &str = "+15002340011";

/// Of the operator's own: who is on a list of ours has taken the consent back.
const OURS: &str = r#"
[[rule]]
id = "house.ours"
title = "A consent is newer than the entry in our list"
places = ["FR"]
purposes = ["marketing"]
channels = ["phone"]
says = { kind = "consent", any_of = ["express_written"], newer_than_register = "ours" }
source = "house"
confidence = "high"
mend = "Get another consent."
"#;

/// As its maker has given it out on that day.
async fn upload(tenant: &Tenant, day: &str) {
    let path = format!("/v1/registers/uk_tps/files?fetched_at={day}");
    tenant.api.upload(&path, format!("{LISTED}\n")).await.ok();
}

/// A campaign about contracts, for which Britain wants its preference services looked into.
async fn about_a_contract(tenant: &Tenant, numbers: &[&str]) -> String {
    let people: Vec<Value> = numbers.iter().map(|number| person(number, "GB")).collect();
    run(tenant, &people, json!({ "purpose": "service" })).await
}

async fn contract(tenant: &Tenant, number: &str) {
    let given = json!({ "tier": "existing_contract", "contract_ref": "C-1", "purposes": ["service"] });
    consent(&tenant.api, number, given).await;
}

async fn limiting(tenant: &Tenant, path: &str) -> Value {
    tenant.api.get(&format!("{path}/stats")).await.ok()["limiting_factor"].clone()
}

on_both! {
    async fn a_campaign_waits_for_a_fresh_copy(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        for number in ["+15002340001", LISTED] {
            contract(&tenant, number).await;
        }
        let path = about_a_contract(&tenant, &["+15002340001", LISTED]).await;
        world.advance(seconds(5)).await;
        let row = campaign(&tenant, &path).await;
        assert_eq!((&row["status"], &row["blocked_by"]), (&json!("running"), &json!(["register"])), "nobody has uploaded it");
        assert_eq!(limiting(&tenant, &path).await, "register");
        let contact = contacts(&tenant, &path).await[0].clone();
        let said = eligibility(&tenant, &path, &contact).await;
        let rule = said["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "register").unwrap();
        assert_eq!((&rule["verdict"], law(&said, "gb.tps")), (&json!("wait"), Some("wait")));
        let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
        assert!(look["law"].as_array().unwrap().iter().any(|count| count["rule"] == "gb.tps" && count["held"] == 2), "{look:#}");
        // 28 days old at most.
        upload(&tenant, "2027-02-01").await;
        world.advance(minutes(2)).await;
        assert_eq!((fates(&tenant, &path).await, campaign(&tenant, &path).await["blocked_by"].clone()), (vec![untouched(); 2], json!(["register"])), "stale");
        upload(&tenant, "2027-03-02").await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [called(), barred()]);
        assert_eq!(campaign(&tenant, &path).await["blocked_by"], json!([]));
        let on_record = attempts(&tenant, &path).await;
        assert_eq!(on_record.len(), 1);
        let proof = proof(&tenant.api, &on_record[0]).await;
        let register = &proof["records"][0]["record"]["facts"]["registers"][0];
        assert_eq!((&register["name"], &register["is_listed"], &register["fetched_at"]), (&json!("uk_tps"), &json!(false), &json!("2027-03-02T00:00:00.000Z")), "{proof}");
    }

    /// Nobody restarts anything: the copy that was good this morning is not any more.
    async fn a_copy_ages_while_the_service_runs(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        contract(&tenant, "+15002340001").await;
        upload(&tenant, "2027-03-02").await;
        let leap = async |to: &str| world.leap_to(Moment::parse(to).unwrap()).await;
        leap("2027-03-29T15:00:00Z").await;
        let fresh = about_a_contract(&tenant, &["+15002340001"]).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &fresh).await, [called()]);
        leap("2027-03-30T15:00:00Z").await;
        let stale = about_a_contract(&tenant, &["+15002340001"]).await;
        world.advance(minutes(5)).await;
        assert_eq!((fates(&tenant, &stale).await, campaign(&tenant, &stale).await["blocked_by"].clone()), (vec![untouched()], json!(["register"])));
        upload(&tenant, "2027-03-30").await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &stale).await, [called()]);
    }

    /// The wall clock is two minutes ahead, and trusted: by it the copy is too old, and by our time it has a minute left.
    async fn a_copy_is_too_old_when_it_is_by_one_of_the_clocks(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        contract(&tenant, "+15002340001").await;
        // 28 days.
        upload(&tenant, "2027-02-02T15:01:00Z").await;
        world.clock.step_wall(2 * 60_000);
        assert!(!world.clock.is_in_doubt());
        let path = about_a_contract(&tenant, &["+15002340001"]).await;
        world.advance(seconds(20)).await;
        assert!(world.clock.now() < Moment::parse("2027-03-02T15:01:00Z").unwrap());
        assert_eq!((fates(&tenant, &path).await, campaign(&tenant, &path).await["blocked_by"].clone()), (vec![untouched()], json!(["register"])));
        upload(&tenant, "2027-03-02").await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [called()]);
    }

    /// Whose consent makes the register needless is not kept waiting by those who need it.
    async fn who_needs_no_register_does_not_wait_for_it(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        contract(&tenant, "+15002340001").await;
        consent(&tenant.api, "+15002340021", json!({ "tier": "express", "purposes": ["service"] })).await;
        let path = about_a_contract(&tenant, &["+15002340001", "+15002340021"]).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched(), called()]);
        assert_eq!(campaign(&tenant, &path).await["blocked_by"], json!(["register"]));
        cancel(world, &tenant, &path).await;
    }

    /// A register that was deleted holds up like one that never was.
    async fn a_register_that_is_deleted_holds_up(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        contract(&tenant, "+15002340001").await;
        upload(&tenant, "2027-03-02").await;
        tenant.api.delete("/v1/registers/uk_tps").await;
        let path = about_a_contract(&tenant, &["+15002340001"]).await;
        world.advance(seconds(40)).await;
        assert_eq!((fates(&tenant, &path).await, limiting(&tenant, &path).await), (vec![untouched()], json!("register")));
        cancel(world, &tenant, &path).await;
    }

    /// Until there is one, nobody is on it. Those who are at hand by then are called no more.
    async fn the_first_file_of_a_register_counts_from_the_next_dial_on(world: &mut World) {
        let _file = under(world, OURS).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        mid_morning(world).await;
        let numbers = ["+15002340001", LISTED, "+15002340021"];
        for number in numbers {
            consent(&tenant.api, number, json!({})).await;
        }
        // One in ten seconds: the first of them is called at once, all are at hand.
        let slow = json!({ "pacing": { "calls_per_second": 0.1 } });
        let path = run(&tenant, &numbers.map(|number| person(number, "FR")), slow).await;
        world.advance(seconds(5)).await;
        assert_eq!(fates(&tenant, &path).await[1..], [untouched(), untouched()]);
        tenant.api.upload("/v1/registers/ours/files?fetched_at=2027-03-02", format!("{LISTED}\n")).await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [called(), barred(), called()]);
    }
}
