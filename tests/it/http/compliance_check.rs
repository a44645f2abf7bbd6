//! What the law would say, and who a workspace is by law.
use super::{console::member, dashboard::Browser};
use crate::{
    on_both,
    world::{Answer, Api, Tenant, World, seconds},
};
use entities::values::{Env, Role, Scope, Scopes};
use reqwest::Method;
use serde_json::{Value, json};

async fn ask(api: &Api, query: &str) -> Answer {
    api.get(&format!("/v1/compliance/check?{query}")).await
}

/// What the rule of that id says; `None`: it is not asked.
fn verdict<'a>(checked: &'a Value, rule: &str) -> Option<&'a str> {
    let rules = checked["rules"].as_array().unwrap();
    let asked = rules.iter().find(|asked| asked["rule"] == rule)?;
    asked["verdict"].as_str()
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|one| one["rule"].as_str().unwrap())
        .collect()
}

async fn keep(browser: &mut Browser, tenant: &Tenant, patch: Value) -> Answer {
    let path = format!("/v1/_internal/t/{}/identity", tenant.slug);
    let request = browser.request(Method::PATCH, &path).json(&patch);
    browser.send(request).await
}

on_both! {
    /// Source: law 2025-594 (France), art. 13, C. consom. L223-1: from 11 August 2026 on nobody is called without consent.
    async fn france_changes_on_11_august_2026(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        let on = async |day: &str, more: &str| ask(&tenant.api, &format!("region=FR&at={day}{more}")).await.ok();
        let before = on("2026-08-10", "").await;
        let after = on("2026-08-11", "").await;
        assert_eq!(before["next_change"]["date"], "2026-08-11", "{before:#}");
        let begins = ids(&before["next_change"]["begins"]);
        assert!(!begins.is_empty(), "{before:#}");
        for rule in &begins {
            assert_eq!(verdict(&before, rule), None, "{rule}");
            assert!(verdict(&after, rule).is_some(), "{rule}");
        }
        assert!(after["next_change"].is_null() || after["next_change"]["date"].as_str() > Some("2026-08-11"));
        // Nobody has agreed: it says who must do what.
        assert_eq!(after["allowed"], false);
        let noes: Vec<&Value> = after["rules"].as_array().unwrap().iter().filter(|asked| asked["verdict"] != "yes").collect();
        assert!(!noes.is_empty());
        for no in noes {
            assert!(no["mend"].as_str().is_some_and(|mend| !mend.is_empty()), "{no}");
        }
        for asked in after["rules"].as_array().unwrap() {
            assert!(asked["title"].as_str().is_some_and(|title| !title.is_empty()), "{asked}");
        }
        // 10 to 13 and 14 to 20, Monday to Friday; 15 August is a holiday, and a Saturday in 2026. Source: decree 2022-1313.
        assert_eq!(after["hours"], json!([{ "timezone": "Europe/Paris", "date": "2026-08-11", "open": [
            { "start": "10:00", "end": "13:00" }, { "start": "14:00", "end": "20:00" }] }]));
        assert_eq!(on("2026-08-16", "").await["hours"][0]["open"], json!([]), "a Sunday");
        assert_eq!((&after["at"], &after["binding"]), (&json!("2026-08-11T10:00:00.000Z"), &json!(false)), "noon there, with a test key");
    }

    /// Source: CASL s. 6(2), Spam Act 2003 s. 17.
    async fn the_last_line_of_a_text_is_told_beforehand(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        let identity = json!({ "registered_name": "Acme Ltd.", "postal_address": "1 Main Street\nSpringfield" });
        tenant.api.patch("/v1/compliance/identity", identity).await.ok();
        for (query, line) in [
            ("region=CA-ON&channel=sms", json!("Acme Ltd., 1 Main Street, Springfield")),
            ("region=AU&channel=sms", json!("Acme Ltd.")),
            ("region=CA-ON&channel=sms&purpose=service", Value::Null),
            ("region=FR&channel=sms", Value::Null),
            ("region=CA-ON", Value::Null),
        ] {
            assert_eq!(ask(&tenant.api, query).await.ok()["sms_line"], line, "{query}");
        }
    }

    async fn a_number_an_address_and_a_place_are_asked_about(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let paris = ask(api, "to=%2B33142685300&at=2026-08-11T12:00:00Z").await.ok();
        assert_eq!(paris["places"], json!([{ "place": "FR", "source": "number" }]));
        assert_eq!((&paris["channel"], &paris["purpose"], &paris["audience"]), (&json!("phone"), &json!("marketing"), &json!("consumer")));
        // As it was typed into an address bar.
        assert_eq!(ask(api, "to=+33142685300&at=2026-08-11T12:00:00Z").await.ok(), paris);
        world.advance(seconds(2)).await;

        // The rules of both: where the number is from, and where the person is said to be.
        let both = ask(api, "to=%2B12025550123&region=US-FL&purpose=service").await.ok();
        let places: Vec<&str> = both["places"].as_array().unwrap().iter().map(|one| one["place"].as_str().unwrap()).collect();
        assert!(places.contains(&"US-FL") && places.len() > 1, "{both:#}");
        let mail = ask(api, "to=Ada@Example.com&region=DE").await.ok();
        assert_eq!((&mail["channel"], &mail["places"][0]["place"]), (&json!("email"), &json!("DE")));
        // Of an address alone nobody knows where it is: the strictest rules of all.
        let nowhere = ask(api, "to=ada@example.com").await.ok();
        assert_eq!((&nowhere["places"], &nowhere["allowed"]), (&json!([]), &json!(false)));
        // Marketing to a country that the pack does not know is closed.
        let unknown = ask(api, "region=BR&consent=express_written").await.ok();
        assert_eq!(unknown["allowed"], false, "{unknown:#}");
        world.advance(seconds(2)).await;

        // Whether somebody is registered nobody knows but they: it is a warning until they say so.
        let warned = async || {
            let texas = ask(api, "region=US-TX&consent=express_written").await.ok();
            let mut rules: Vec<String> =
                texas["warnings"].as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap().to_owned()).collect();
            rules.sort();
            rules
        };
        assert_eq!(warned().await, ["us-tx.registration", "us.attestation"]);
        let registered = json!({ "registrations": { "texas-telephone-solicitation": "TX-2026-118" } });
        api.patch("/v1/compliance/identity", registered).await.ok();
        assert_eq!(warned().await, ["us.attestation"]);

        // It depends on what is thought of, and nothing of that is kept.
        api.patch("/v1/compliance/identity", json!({ "registered_name": "Acme Ltd." })).await.ok();
        let with = ask(api, "region=DE&consent=express_written&at=2026-11-30T10:00:00Z").await.ok();
        let without = ask(api, "region=DE&at=2026-11-30T10:00:00Z").await.ok();
        let noes = |checked: &Value| checked["rules"].as_array().unwrap().iter().filter(|asked| asked["kind"] == "consent" && asked["verdict"] != "yes").count();
        assert_eq!(noes(&with), 0, "{with:#}");
        assert!(noes(&without) > 0, "{without:#}");
        // Supposed is a contract of the name that is asked about.
        let by_contract = ask(api, "region=FR&consent=existing_contract&contract_ref=C-7&at=2026-11-30T10:00:00Z").await.ok();
        assert_eq!(noes(&by_contract), 0, "{by_contract:#}");
        assert_eq!(world.rows("consents").await, 0);
    }

    async fn who_is_on_the_list_and_who_calls_counts(world: &mut World) {
        world.under_the_law().await;
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        let strangers = world.api(other.id, Env::Live, Scopes::all()).await;
        let query = "to=%2B4930901820&purpose=service&at=2027-03-02T13:00:00Z&consent=express";
        let (fresh, tested) = (ask(&live, query).await.ok(), ask(&tenant.api, query).await.ok());
        assert_eq!((&fresh["binding"], &tested["binding"]), (&json!(true), &json!(false)));
        live.post("/v1/dnc", json!({ "phone_number": "+4930901820" })).await.ok();
        let barred = ask(&live, query).await.ok();
        assert_ne!(fresh["rules"], barred["rules"], "the workspace's own list is one of the rules");
        assert_eq!(barred["allowed"], false);
        // Nobody else's list, and not that of the other environment.
        assert_eq!(ask(&strangers, query).await.ok()["rules"], fresh["rules"]);
        assert_eq!(ask(&tenant.api, query).await.ok(), tested);
    }

    async fn wrong_questions_are_told_at_their_field(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        for (query, param) in [
            ("", "to"),
            ("purpose=marketing", "to"),
            ("to=12", "to"),
            ("to=%2B1", "to"),
            ("to=a@b", "to"),
            ("to=%2B33142685300&channel=email", "channel"),
            ("to=ada@example.com&channel=sms", "channel"),
            ("region=France", "region"),
            ("region=ZZ", "region"),
            ("region=FR&at=tomorrow", "at"),
            ("region=FR&at=2026-02-30", "at"),
            ("region=FR&at=1999-12-31", "at"),
            ("region=FR&at=2100-01-01T00:00:00Z", "at"),
            ("region=FR&purpose=sales", "purpose"),
            ("region=FR&audience=children", "audience"),
            ("region=FR&channel=fax", "channel"),
            ("region=FR&vertical=law", "vertical"),
            ("region=FR&consent=perhaps", "consent"),
            ("region=FR&cloned_voice=1", "cloned_voice"),
            ("region=FR&timezone=Mars", "timezone"),
            ("region=FR&from=12", "from"),
            ("region=FR&colour=red", "colour"),
            ("region=FR&seller=Acme&seller=Other", "seller"),
        ] {
            let answer = ask(&tenant.api, query).await;
            assert_eq!(answer.error(), (422, "validation_failed", Some(param)), "{query}: {:#}", answer.body);
            world.advance(seconds(1)).await;
        }
        let long = format!("region=FR&seller={}", "x".repeat(201));
        assert_eq!(ask(&tenant.api, &long).await.error(), (422, "validation_failed", Some("seller")));
        let reader = world.api(tenant.id, Env::Test, Scopes::new(vec![Scope::SessionsRead]).unwrap()).await;
        assert_eq!(ask(&reader, "region=FR").await.error(), (403, "forbidden", None));
        for (query, param) in [("place=X", "place"), ("purpose=x", "purpose"), ("at=soon", "at"), ("limit=5", "limit")] {
            let answer = tenant.api.get(&format!("/v1/compliance/rules?{query}")).await;
            assert_eq!(answer.error(), (422, "validation_failed", Some(param)), "{query}");
        }
    }

    /// Whoever mistypes a place must not be judged by the rules of another.
    async fn a_region_that_is_not_a_place_is_refused(world: &mut World) {
        let tenant = world.tenant().await;
        let call = json!({ "to_number": "+15002340001", "agent_id": tenant.agent().await, "contact": { "region": "US-CAL" } });
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (422, "validation_failed", Some("contact.region")));
        let text = json!({ "to_number": "+15002340001", "body": "Hello", "region": "XX" });
        assert_eq!(tenant.api.post("/v1/sms_messages", text).await.error(), (422, "validation_failed", Some("region")));
        let plan = json!({ "name": "Spring", "agent_id": tenant.agent().await });
        let campaign = tenant.api.post("/v1/campaigns", plan).await.ok()["id"].as_str().unwrap().to_owned();
        let contacts = json!({ "contacts": [
            { "phone_number": "+15002340001", "region": "US-CAL" },
            { "phone_number": "+15002340002", "region": "US-CA" },
        ] });
        let added = tenant.api.post(&format!("/v1/campaigns/{campaign}/contacts"), contacts).await.ok();
        assert_eq!((&added["accepted"], &added["rejected"][0]["index"], &added["rejected"][0]["param"]), (&json!(1), &json!(0), &json!("region")));
    }

    async fn the_pack_can_be_read(world: &mut World) {
        world.under_the_law().await;
        let tenant = world.tenant().await;
        let rules = async |query: &str| tenant.api.get(&format!("/v1/compliance/rules{query}")).await.ok()["data"].as_array().unwrap().clone();
        let all = rules("").await;
        assert!(all.len() > 30, "{}", all.len());
        for rule in &all {
            assert!(!rule["source"].as_str().unwrap().is_empty() && !rule["mend"].as_str().unwrap().is_empty(), "{rule:#}");
            assert!(rule["says"]["kind"].is_string(), "{rule:#}");
        }
        let french = rules("?place=FR").await;
        assert!(!french.is_empty() && french.len() < all.len());
        let (before, after) = (rules("?place=FR&at=2026-08-10").await, rules("?place=FR&at=2026-08-11").await);
        assert_ne!(before, after);
        assert!(rules("?place=US").await.len() < rules("?place=US-FL").await.len(), "a state has its country's rules, and its own");
        assert!(rules("?place=FR&channel=email&purpose=emergency").await.len() < french.len());
    }

    async fn who_a_workspace_is_by_law_is_its_owners_to_say(world: &mut World) {
        world.under_the_law().await;
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let path = "/v1/compliance/identity";
        let empty = tenant.api.get(path).await.ok();
        assert_eq!((&empty["registered_name"], &empty["registrations"], &empty["updated_at"]), (&Value::Null, &json!({}), &Value::Null));
        let asked = json!({ "registered_name": "Acme Health, Inc.", "callback_number": "+12025550123", "registrations": { "us-tx": "TX-1", "it-roc": "7" } });
        let kept = tenant.api.patch(path, asked).await.ok();
        assert_eq!((&kept["registered_name"], &kept["callback_number"]), (&json!("Acme Health, Inc."), &json!("+12025550123")));
        // A merge patch: what is left out stays, what is null goes.
        let kept = tenant.api.patch(path, json!({ "callback_number": null, "registrations": { "it-roc": null } })).await.ok();
        assert_eq!((&kept["callback_number"], &kept["registrations"]), (&Value::Null, &json!({ "us-tx": "TX-1" })));
        world.restart().await;
        // Both environments share it, and nobody else has it.
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        assert_eq!(live.get(path).await.ok(), kept);
        assert_eq!(other.api.get(path).await.ok()["registered_name"], Value::Null);

        for (patch, param) in [
            (json!({ "registered_name": "" }), "registered_name"),
            (json!({ "registered_name": "Acme\nHealth" }), "registered_name"),
            (json!({ "registered_name": "x".repeat(201) }), "registered_name"),
            (json!({ "callback_number": "5550123" }), "callback_number"),
            (json!({ "callback_number": "+15002340000" }), "callback_number"),
            (json!({ "postal_address": "x".repeat(501) }), "postal_address"),
            (json!({ "registrations": { "US TX": "1" } }), "registrations"),
            (json!({ "registrations": { "us-fl": "" } }), "registrations.us-fl"),
            (json!({ "name": "Acme" }), "name"),
        ] {
            let answer = tenant.api.patch(path, patch.clone()).await;
            assert_eq!(answer.error(), (422, "validation_failed", Some(param)), "{patch}");
            world.advance(seconds(1)).await;
        }
        assert_eq!(tenant.api.get(path).await.ok(), kept, "nothing of it was taken");
        let reader = world.api(tenant.id, Env::Test, Scopes::new(vec![Scope::CampaignsRead]).unwrap()).await;
        assert_eq!(reader.patch(path, json!({ "trade_name": "X" })).await.error(), (403, "forbidden", None));

        // In the dashboard it is the owners', and noted.
        let (mut owner, mut admin) = (member(world, &tenant, Role::Owner).await, member(world, &tenant, Role::Admin).await);
        assert_eq!(keep(&mut admin, &tenant, json!({ "trade_name": "Acme" })).await.error().0, 403);
        assert_eq!(keep(&mut owner, &tenant, json!({ "trade_name": "Acme" })).await.ok()["trade_name"], "Acme");
        assert_eq!(keep(&mut owner, &other, json!({ "trade_name": "Acme" })).await.error().0, 404);
        let log = owner.request(Method::GET, &format!("/v1/_internal/t/{}/audit-log?action=workspace_changed", tenant.slug));
        let log = owner.send(log).await.ok();
        assert_eq!(log["data"][0]["details"], json!({ "trade_name": "Acme" }), "{log:#}");
        // Said anew it changes nothing, and is not noted.
        keep(&mut owner, &tenant, json!({ "trade_name": "Acme" })).await.ok();
        let log = owner.request(Method::GET, &format!("/v1/_internal/t/{}/audit-log?action=workspace_changed", tenant.slug));
        assert_eq!(owner.send(log).await.ok()["data"].as_array().unwrap().len(), 1);
    }
}
