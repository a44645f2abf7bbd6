//! The record of attempts: what is on it of each call and message, how it is exported and checked, how it outlives what it is about.
use crate::{
    on_both,
    world::{Tenant, World, contract::DOCUMENT, minutes, seconds},
};
use entities::{
    attempt::{self, Model, RecordKind},
    values::Env,
};
use reqwest::Method;
use rules::law::record::{
    chain::{digest, first_broken},
    line::{Line, Manifest, Signed, head_text},
};
use runtime::signing::is_signed;
use serde_json::{Value, json};
use std::time::Duration;

/// A talk. Source: docs/sandbox.md, by the last digit.
const TALKS: &str = "+15002340000";

async fn attempts(tenant: &Tenant, query: &str) -> Vec<Value> {
    let listed = tenant.api.get(&format!("/v1/compliance/attempts{query}")).await.ok();
    listed["data"].as_array().unwrap().clone()
}

/// Kinds of rows, in order.
fn kinds(proof: &Value) -> Vec<&str> {
    let rows = proof["records"].as_array().unwrap().iter();
    rows.map(|row| row["kind"].as_str().unwrap()).collect()
}

async fn text(tenant: &Tenant, path: &str) -> String {
    let answer = tenant.api.request(Method::GET, path).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

async fn chain(world: &World, tenant: &Tenant) -> Vec<Model> {
    let owner = (tenant.id, Env::Test);
    attempt::range(&world.deps().db.read, owner, 0, 10_000).await.unwrap()
}

async fn exported(world: &World, tenant: &Tenant, asked: Value) -> Value {
    let export = tenant.api.post("/v1/compliance/exports", asked).await.ok();
    world.advance(seconds(1)).await;
    let path = format!("/v1/compliance/exports/{}", export["id"].as_str().unwrap());
    let export = tenant.api.get(&path).await.ok();
    assert_eq!(export["status"], "completed", "{export:#}");
    export
}

on_both! {
    async fn each_call_is_on_record_with_the_law_and_what_came_of_it(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = tenant.run_campaign(&[TALKS, "+15002340010", "+15002340020"], json!({})).await;
        world.advance(minutes(10)).await;
        let listed = attempts(&tenant, "").await;
        assert_eq!(listed.len(), 3);
        let of_one = attempts(&tenant, "?phone_number=%2B15002340000").await;
        assert_eq!(of_one.len(), 1);
        let one = &of_one[0];
        assert_eq!((&one["phone_number"], &one["channel"], &one["campaign_id"]), (&json!(TALKS), &json!("phone"), &json!(campaign)));
        assert_eq!((&one["purpose"], &one["is_observed"], &one["is_erased"]), (&json!("marketing"), &json!(true), &json!(false)));
        let came = &one["outcome"];
        assert_eq!((&came["status"], &came["blocked"], &came["attestation"]), (&json!("completed"), &json!(false), &Value::Null));
        let session = one["id"].as_str().unwrap();
        for (query, count) in [
            (format!("?session_id={session}"), 1),
            (format!("?campaign_id={campaign}"), 3),
            (format!("?campaign_id={campaign}&phone_number=%2B15002340010"), 1),
            (format!("?campaign_id={session}"), 0),
            ("?email=ada@example.com".to_owned(), 0),
            ("?created_before=2020-01-01T00:00:00Z".to_owned(), 0),
            ("?created_after=2020-01-01T00:00:00Z&limit=2".to_owned(), 2),
        ] {
            assert_eq!(attempts(&tenant, &query).await.len(), count, "{query}");
        }
        let first = tenant.api.get("/v1/compliance/attempts?limit=2&order=asc").await.ok();
        let next = format!("?limit=2&order=asc&cursor={}", first["next_cursor"].as_str().unwrap());
        let rest = attempts(&tenant, &next).await;
        let places: Vec<_> = first["data"].as_array().unwrap().iter().chain(&rest).map(|row| row["n"].as_i64().unwrap()).collect();
        assert!(places.len() == 3 && places.is_sorted(), "{places:?}");

        let proof = tenant.api.get(&format!("/v1/compliance/attempts/{session}")).await.ok();
        assert_eq!(&proof["attempt"], one);
        assert_eq!(kinds(&proof)[..2], ["attempt", "outcome"]);
        let outcome = &proof["records"][1]["record"];
        assert_eq!((&outcome["status"], &outcome["answered_by"]), (&json!("completed"), &json!("human")));
        let rules = proof["rules"].as_array().unwrap();
        assert!(!rules.is_empty());
        for rule in rules {
            assert!(rule["title"].is_string() && rule["source"].is_string(), "{rule}");
        }
        let stranger = world.tenant().await;
        assert_eq!(stranger.api.get(&format!("/v1/compliance/attempts/{session}")).await.error().0, 404);
        assert_eq!(first_broken((0, ""), &chain(world, &tenant).await), None);
    }

    /// Source: COMPLIANCE, L9.
    async fn it_outlives_the_call_and_what_named_somebody_can_go(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        let session = attempts(&tenant, "").await[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(tenant.api.delete(&format!("/v1/sessions/{session}")).await.status, 204);
        world.restart().await;
        assert_eq!(attempts(&tenant, "?phone_number=%2B15002340000").await.len(), 1);

        let before = chain(world, &tenant).await;
        let places: Vec<i64> = before.iter().map(|row| row.n).collect();
        let owner = (tenant.id, Env::Test);
        let blank = world.deps().writer.run(tenant.id, move |db| {
            let places = places.clone();
            Box::pin(async move { Ok((attempt::blank(db, owner, &places).await?, rules::commit::Commit::default())) })
        });
        assert!(blank.await.unwrap() > 0);
        let after = chain(world, &tenant).await;
        assert_eq!(first_broken((0, ""), &after), None, "the chain still fits");
        let found = attempts(&tenant, "?phone_number=%2B15002340000").await;
        assert_eq!((&found[0]["is_erased"], &found[0]["phone_number"]), (&json!(true), &Value::Null));
        assert!(after.iter().all(|row| !format!("{row:?}").contains("15002340000")));
    }

    async fn an_export_is_signed_and_proves_itself(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = tenant.run_campaign(&[TALKS, "+15002340010"], json!({})).await;
        world.advance(minutes(5)).await;
        let export = exported(world, &tenant, json!({})).await;
        let at = format!("/v1/compliance/exports/{}", export["id"].as_str().unwrap());
        let signed: Signed = serde_json::from_str(&text(&tenant, &format!("{at}/manifest")).await).unwrap();
        let heads = tenant.api.get("/v1/compliance/heads").await.ok();
        assert_eq!(heads["public_key"], signed.public_key);
        assert!(is_signed(&signed.public_key, signed.manifest.get().as_bytes(), &signed.signature));
        let manifest: Manifest = serde_json::from_str(signed.manifest.get()).unwrap();
        let rows = chain(world, &tenant).await;
        assert_eq!((manifest.rows, manifest.is_whole), (i64::try_from(rows.len()).unwrap(), true));
        assert_eq!((manifest.head.n, &manifest.head.hash), (rows.len() as i64, &rows.last().unwrap().hash));
        let file = text(&tenant, &format!("{at}/files/1")).await;
        assert_eq!((digest(&file), file.len() as i64), (manifest.files[0].sha256.clone(), manifest.files[0].bytes));
        let lines = file.lines().map(|line| serde_json::from_str::<Line>(line).unwrap().row());
        assert_eq!(lines.collect::<Vec<_>>(), rows);
        assert_eq!(tenant.api.get(&format!("{at}/files/2")).await.error().0, 404);

        // Of one person: the openings, and what came of them.
        let of_one = exported(world, &tenant, json!({ "phone_number": "+1 500 234 0000" })).await;
        let file = text(&tenant, &format!("/v1/compliance/exports/{}/files/1", of_one["id"].as_str().unwrap())).await;
        let mine: Vec<Model> = file.lines().map(|line| serde_json::from_str::<Line>(line).unwrap().row()).collect();
        assert!(mine.len() >= 2 && mine.len() < rows.len(), "{mine:?}");
        assert!(mine.iter().all(|row| row.attempt_id == mine[0].attempt_id));
        let of_campaign = exported(world, &tenant, json!({ "campaign_id": campaign, "format": "csv" })).await;
        let table = text(&tenant, &format!("/v1/compliance/exports/{}/files/1", of_campaign["id"].as_str().unwrap())).await;
        assert_eq!(table.lines().count() as i64, 1 + of_campaign["rows"].as_i64().unwrap());
        // What the API's document shows of such files.
        let shown = &DOCUMENT["paths"]["/v1/compliance/exports/{id}/files/{part}"]["get"]["responses"]["200"]["content"];
        let shown = |kind: &str| shown[kind]["example"].as_str().unwrap();
        assert_eq!(shown("text/csv").lines().next(), table.lines().next());
        let line = |text: &str| serde_json::from_str::<Line>(text).unwrap();
        assert_eq!(line(shown("application/x-ndjson")).kind, RecordKind::Outcome);

        for (asked, field) in [
            (json!({ "phone_number": "1", "email": "ada@example.com" }), "email"),
            (json!({ "phone_number": "nobody" }), "phone_number"),
            (json!({ "since": "2027-01-02T00:00:00Z", "until": "2027-01-01T00:00:00Z" }), "until"),
        ] {
            assert_eq!(tenant.api.post("/v1/compliance/exports", asked).await.error(), (422, "validation_failed", Some(field)));
        }
        // It goes again, and its files with it.
        world.leap(Duration::from_secs(32 * 24 * 3600)).await;
        world.advance(minutes(61)).await;
        assert_eq!(tenant.api.get(&at).await.error().0, 404);
    }

    /// Source: COMPLIANCE, L10.
    async fn the_head_of_each_day_is_signed_once(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(62)).await;
        let heads = async || tenant.api.get("/v1/compliance/heads").await.ok();
        let first = heads().await;
        let told = first["heads"].as_array().unwrap().clone();
        assert_eq!(told.len(), 1, "{first:#}");
        let head = &told[0];
        let said = |name: &str| head[name].as_str().unwrap().to_owned();
        let n = head["n"].as_i64().unwrap();
        let signed = head_text((tenant.id, Env::Test), &said("day"), n, &said("row_hash"));
        assert!(is_signed(&said("public_key"), signed.as_bytes(), &said("signature")));
        let rows = chain(world, &tenant).await;
        assert!(rows.iter().any(|row| row.n == n && row.hash == said("row_hash")));
        // A day in which nothing is written down has no head.
        world.leap(Duration::from_secs(24 * 3600)).await;
        assert_eq!(heads().await["heads"], first["heads"]);
        let before = tenant.api.get(&format!("/v1/compliance/heads?before={}", said("day"))).await.ok();
        assert_eq!(before["heads"], json!([]));
        assert_eq!(tenant.api.get("/v1/compliance/heads?before=yesterday").await.error(), (422, "validation_failed", Some("before")));
    }

    async fn who_is_barred_and_who_is_no_more_is_on_record(world: &mut World) {
        let tenant = world.tenant().await;
        let list = "phone_number,email\n+15002340001,\n,ada@example.com\n+15002340001,\n";
        tenant.api.upload("/v1/dnc/import", list).await.ok();
        world.settle().await;
        let told = async || {
            let rows = chain(world, &tenant).await.into_iter();
            rows.map(|row| (row.kind, serde_json::from_str::<Value>(&row.body).unwrap()["how"].clone())).collect::<Vec<_>>()
        };
        let imported = (RecordKind::OptOut, json!("import"));
        assert_eq!(told().await, [imported.clone(), imported.clone()]);
        let entry = tenant.api.get("/v1/dnc?phone_number=%2B15002340001").await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(tenant.api.delete(&format!("/v1/dnc/{entry}?reason=a+mistake")).await.status, 204);
        // What is known is not told again.
        tenant.api.upload("/v1/dnc/import", list).await.ok();
        world.settle().await;
        assert_eq!(told().await[2..], [(RecordKind::Lifted, json!("staff")), imported]);
        for text in ["STOP", "START"] {
            let text = json!({ "to_number": "+15002220000", "from_number": "+15002340009", "body": text });
            tenant.api.post("/v1/_sandbox/inbound_sms", text).await.ok();
        }
        assert_eq!(told().await[4..], [(RecordKind::OptOut, json!("sms_stop")), (RecordKind::Lifted, json!("sms_start"))]);
        let found = chain(world, &tenant).await;
        assert!(found[5].content.as_ref().unwrap().contains("+15002340009") && !found[5].body.contains("+1500"), "{:?}", found[5]);
    }

    async fn what_a_message_says_is_on_record_as_a_digest(world: &mut World) {
        let tenant = world.tenant().await;
        let sms = json!({ "to_number": TALKS, "body": "Rex is well." });
        let mail = json!({ "to": "ada@example.com", "subject": "Rex", "text": "Rex is well." });
        for (kind, message, words) in [("sms_messages", sms, "Rex is well."), ("email_messages", mail, "Rex\nRex is well.\n")] {
            let sent = tenant.api.post(&format!("/v1/{kind}"), message).await.ok()["id"].as_str().unwrap().to_owned();
            world.advance(minutes(1)).await;
            let proof = tenant.api.get(&format!("/v1/compliance/attempts/{sent}")).await.ok();
            let (opening, outcome) = (&proof["records"][0], &proof["records"][1]);
            let salt = opening["personal"]["salt"].as_str().unwrap();
            assert_eq!(opening["record"]["text_sha256"], digest(&format!("{salt}\n{}", digest(words))), "{proof:#}");
            let message = tenant.api.get(&format!("/v1/{kind}/{sent}")).await.ok();
            assert_eq!(outcome["record"]["provider_message_id"], message["provider_message_id"]);
        }
    }

    /// Nobody was there to sign while it was new.
    async fn what_grew_days_ago_is_signed_all_the_same(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        world.leap(Duration::from_secs(5 * 24 * 3600)).await;
        world.advance(minutes(62)).await;
        let heads = tenant.api.get("/v1/compliance/heads").await.ok();
        let end = chain(world, &tenant).await.last().unwrap().n;
        assert_eq!(heads["heads"][0]["n"].as_i64(), Some(end), "{heads:#}");
    }

    async fn the_oldest_rows_go_after_their_years_and_the_rest_still_fits(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        let old = chain(world, &tenant).await;
        world.leap(Duration::from_secs(5 * 366 * 24 * 3600)).await;
        tenant.run_campaign(&["+15002340010"], json!({})).await;
        world.advance(minutes(65)).await;
        let left = chain(world, &tenant).await;
        let last = old.last().unwrap();
        assert_eq!(left.first().map(|row| row.n), Some(last.n + 1), "what was older is gone");
        assert_eq!(first_broken((last.n, &last.hash), &left), None);
        let heads = tenant.api.get("/v1/compliance/heads").await.ok();
        assert_eq!((heads["anchor_n"].as_i64(), heads["last_n"].as_i64()), (Some(last.n), left.last().map(|row| row.n)));
        assert_eq!(attempts(&tenant, "").await.len(), 1);
    }
}
