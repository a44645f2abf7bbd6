//! Exports of the record of attempts: how many are kept, how they go, what becomes of one that is being made when a person is erased, and that
//! one of a person holds all of many rows, in their order.
use crate::{
    on_both,
    world::{
        Tenant, World, awaited, minutes,
        s3_server::{ACCESS_KEY_ID, BUCKET, S3Server, SECRET_ACCESS_KEY},
        seconds,
    },
};
use actors::attempts::{exports::MOST_KEPT, person};
use entities::{
    attempt::{self, PersonRows, RecordKind},
    compliance_export, erasure,
    ids::{AttemptId, TenantId, TenantScoped},
    values::Env,
};
use reqwest::Method;
use rules::{
    commit::Commit,
    law::record::{
        Hashes, Person, Subject,
        line::{Line, Manifest, Signed},
        record,
    },
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// A talk. Source: docs/sandbox.md, by the last digit.
const TALKS: &str = "+15002340000";

async fn exported(world: &World, tenant: &Tenant, asked: Value) -> (String, Value) {
    let export = tenant.api.post("/v1/compliance/exports", asked).await.ok();
    world.advance(seconds(1)).await;
    let path = format!("/v1/compliance/exports/{}", export["id"].as_str().unwrap());
    let export = tenant.api.get(&path).await.ok();
    assert_eq!(export["status"], "completed", "{export:#}");
    (path, export)
}

async fn text(tenant: &Tenant, path: &str) -> String {
    let answer = tenant.api.request(Method::GET, path).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

/// Files of exports that the store was asked to take since it was last asked for them.
fn stored(store: &S3Server) -> Vec<String> {
    let mut requests = store.take_requests();
    requests.retain(|request| request.starts_with("PUT ") && request.ends_with(".export"));
    requests
}

/// A row of that kind and attempt, and by what the person is found whom it is about.
type Row = (RecordKind, u128, Hashes);

async fn write(world: &World, tenant: TenantId, rows: Vec<Row>) {
    let writing = world.deps().writer.run(tenant, move |_| {
        let rows = rows.clone();
        Box::pin(async move {
            let mut commit = Commit::default();
            for (kind, id, hashes) in rows {
                let subject = Subject {
                    owner: (tenant, Env::Test),
                    kind,
                    attempt_id: AttemptId(Uuid::from_u128(id)),
                    dial_n: 0,
                    campaign_id: None,
                    hashes,
                    consent_id: None,
                };
                let row = record(subject, &json!({ "id": id.to_string() }), None::<&Person>)?;
                commit.changes.attempt_records.push(row);
            }
            Ok(((), commit))
        })
    });
    writing.await.unwrap();
}

fn found_by(number: Option<&str>, email: Option<&str>) -> Hashes {
    Hashes {
        number: number.map(str::to_owned),
        email: email.map(str::to_owned),
    }
}

/// Wishes of somebody, of that many from `first` on, and what followed the `late` ones before them.
async fn wishes(world: &World, tenant: TenantId, hash: &str, (first, count, late): (u128, u128, u128)) {
    let mut rows = Vec::new();
    for id in first..first + count {
        rows.push((RecordKind::OptOut, id, found_by(Some(hash), None)));
        if id >= late {
            rows.push((RecordKind::Disposition, id - late + 1, Hashes::default()));
        }
    }
    write(world, tenant, rows).await;
}

on_both! {
    /// More than are read at once, and what came of them far behind.
    async fn an_export_of_a_person_holds_all_rows_in_their_order(world: &mut World) {
        let tenant = world.tenant().await;
        let hash = |number: &str| person::hash(&person::key(&world.deps().links), tenant.id, number);
        let (theirs, others) = (hash(TALKS), hash("+15002340001"));
        for slice in 0..6 {
            wishes(world, tenant.id, &theirs, (1 + slice * 200, 200, 701)).await;
            wishes(world, tenant.id, &others, (10_000 + slice, 1, u128::MAX)).await;
        }
        let (path, export) = exported(world, &tenant, json!({ "phone_number": TALKS })).await;
        let signed: Signed = serde_json::from_str(&text(&tenant, &format!("{path}/manifest")).await).unwrap();
        let manifest: Manifest = serde_json::from_str(signed.manifest.get()).unwrap();
        let file = text(&tenant, &format!("{path}/files/1")).await;
        let rows: Vec<Line> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // 1,200 wishes, and what followed the first 500 of them.
        assert_eq!((rows.len(), export["rows"].as_i64(), manifest.rows), (1_700, Some(1_700), 1_700));
        assert!(rows.is_sorted_by(|one, next| one.n < next.n));
        assert!(rows.iter().all(|row| row.number_hash.as_ref() != Some(&others)));
        assert_eq!((manifest.of_person, manifest.last_n), (true, 1_706));
    }

    /// Of two people in turn, with what came of it far behind: wherever a walk begins and ends, and however few places it holds.
    async fn the_rows_of_one_person_are_walked_in_their_order(world: &mut World) {
        let tenant = world.tenant().await;
        let mut rows = Vec::new();
        for id in 1..=1_200 {
            let whose = match id % 4 {
                0 => found_by(Some("ann"), Some("ann@")),
                2 => found_by(Some("ann"), None),
                _ => found_by(Some("bob"), None),
            };
            rows.push((RecordKind::OptOut, id, whose));
            if id > 700 {
                rows.push((RecordKind::Disposition, id - 700, Hashes::default()));
            }
        }
        rows.extend((501..=1_200).rev().map(|id| (RecordKind::Disposition, id, Hashes::default())));
        for slice in rows.chunks(400) {
            write(world, tenant.id, slice.to_vec()).await;
        }
        let (db, owner) = (&world.deps().db.reports, (tenant.id, Env::Test));
        let all = attempt::range(db, owner, 0, 10_000).await.unwrap();
        assert_eq!(all.len(), 2_400);
        for hash in ["ann", "ann@", "bob"] {
            let names = |row: &&attempt::Model| [&row.number_hash, &row.email_hash].into_iter().flatten().any(|known| known == hash);
            let theirs: BTreeSet<AttemptId> = all.iter().filter(names).map(|row| row.attempt_id).collect();
            for (after, until, most) in [(0, i64::MAX, 100_000), (0, i64::MAX, 100), (700, 2_000, 100_000), (998, 1_004, 1)] {
                let between = all.iter().filter(|row| after < row.n && row.n <= until);
                let expected: Vec<i64> = between.filter(|row| theirs.contains(&row.attempt_id)).map(|row| row.n).collect();
                let (mut walk, mut found) = (PersonRows::new(owner, hash, (after, until), most), Vec::new());
                loop {
                    let page = walk.next(db).await.unwrap();
                    found.extend(page.iter().map(|row| row.n));
                    if page.is_empty() {
                        break;
                    }
                }
                assert!(!expected.is_empty() && found == expected, "{hash} {after} {until} {most}: {found:?}");
                assert_eq!(walk.read_until(), until);
            }
        }
    }

    async fn so_many_are_kept_and_each_can_be_deleted(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        let (path, _) = exported(world, &tenant, json!({})).await;
        for _ in 1..MOST_KEPT {
            exported(world, &tenant, json!({ "format": "csv" })).await;
        }
        let full = tenant.api.post("/v1/compliance/exports", json!({})).await;
        assert_eq!(full.error(), (403, "plan_limit", None));
        exported(world, &stranger, json!({})).await;

        assert_eq!(stranger.api.delete(&path).await.error(), (404, "not_found", None));
        let file = format!("{path}/files/1");
        assert!(!text(&tenant, &file).await.is_empty());
        assert_eq!(tenant.api.delete(&path).await.status, 204);
        for gone in [&path, &file, &format!("{path}/manifest")] {
            assert_eq!(tenant.api.get(gone).await.error().0, 404, "{gone}");
        }
        assert_eq!(tenant.api.delete(&path).await.error().0, 404);
        assert_eq!(world.rows("compliance_exports").await, MOST_KEPT, "the stranger's is one of them");
        exported(world, &tenant, json!({})).await;
    }

    /// What the store does not let go is looked for again, and keeps nothing else from going.
    async fn an_export_that_cannot_be_erased_keeps_no_record_from_going(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        let (path, _) = exported(world, &tenant, json!({})).await;
        world.block_recordings(true);
        assert_eq!(tenant.api.delete(&path).await.error(), (503, "unavailable", None));
        world.leap(minutes(5 * 366 * 24 * 60)).await;
        world.advance(minutes(65)).await;
        assert_eq!((world.rows("attempt_records").await, world.rows("compliance_exports").await), (0, 1));
        world.block_recordings(false);
        world.advance(minutes(65)).await;
        assert_eq!(world.rows("compliance_exports").await, 0);
    }

    async fn whoever_is_erased_goes_from_exports_too(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS, "+15002340010"], json!({})).await;
        world.advance(minutes(5)).await;
        let (whole, _) = exported(world, &tenant, json!({})).await;
        assert!(text(&tenant, &format!("{whole}/files/1")).await.contains(TALKS));
        let (others, _) = exported(world, &tenant, json!({ "phone_number": "+15002340010" })).await;
        let begun = tenant.api.delete("/v1/people?phone_number=%2B15002340000").await.ok();
        world.settle().await;
        let report = tenant.api.get(&format!("/v1/people/erasures/{}", begun["id"].as_str().unwrap())).await.ok();
        assert_eq!((&report["status"], &report["erased"]["exports"]), (&json!("done"), &json!(1)), "{report:#}");
        assert_eq!(tenant.api.get(&format!("{whole}/files/1")).await.error().0, 404);
        assert_eq!(world.rows("compliance_exports").await, 1, "that of somebody else stays");
        assert_eq!(tenant.api.get(&others).await.ok()["status"], "completed");
        // Another one names everybody else.
        let (anew, _) = exported(world, &tenant, json!({})).await;
        let file = text(&tenant, &format!("{anew}/files/1")).await;
        assert!(!file.contains(TALKS) && file.contains("+15002340010"), "{file}");
        // Who is erased later and was in none costs nobody theirs.
        tenant.api.delete("/v1/people?phone_number=%2B15002340099").await.ok();
        world.settle().await;
        assert_eq!(tenant.api.get(&anew).await.ok()["status"], "completed");
    }

    /// A part that was read before is on its way to the store when the person goes: it is dropped, and made again in its place.
    async fn whoever_is_erased_while_a_part_is_stored_is_not_in_it(world: &mut World) {
        let store = S3Server::start().await;
        world.change_settings(&[
            ("recordings", json!(format!("s3://{BUCKET}"))),
            ("recordings_s3_endpoint", json!(store.endpoint)),
            ("recordings_s3_access_key_id", json!(ACCESS_KEY_ID)),
            ("recordings_s3_secret_access_key", json!(SECRET_ACCESS_KEY)),
        ]).await;
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS, "+15002340010"], json!({})).await;
        world.advance(minutes(5)).await;
        store.hold_puts(true);
        let export = tenant.api.post("/v1/compliance/exports", json!({})).await.ok();
        let id = export["id"].as_str().unwrap();
        let part = awaited("a part is on its way to the store", async || stored(&store).pop()).await;

        let begun = tenant.api.delete("/v1/people?phone_number=%2B15002340000").await.ok();
        let db = &world.deps().db.read;
        let is_erased = async || (erasure::count_open(db, tenant.id).await.unwrap() == 0).then_some(());
        awaited("the person is erased", is_erased).await;
        let report = tenant.api.get(&format!("/v1/people/erasures/{}", begun["id"].as_str().unwrap())).await.ok();
        assert_eq!((&report["status"], &report["erased"]["exports"]), (&json!("done"), &json!(0)), "{report:#}");
        let key = TenantScoped::new(tenant.id, Env::Test, id.parse().unwrap());
        let job = compliance_export::load(db, key).await.unwrap();
        assert_eq!((job.status, job.files.0.len()), (compliance_export::ExportStatus::Running, 0));
        assert!(job.blanked > 0, "it is to read again");

        store.hold_puts(false);
        world.settle().await;
        assert_eq!(stored(&store), [part], "under the same name");
        let path = format!("/v1/compliance/exports/{id}");
        let export = tenant.api.get(&path).await.ok();
        assert_eq!((&export["status"], export["files"].as_array().unwrap().len()), (&json!("completed"), 1), "{export:#}");
        let file = text(&tenant, &format!("{path}/files/1")).await;
        assert!(!file.contains(TALKS) && file.contains("+15002340010"), "{file}");
        let rows = file.lines().map(|line| serde_json::from_str::<Line>(line).unwrap());
        let openings = rows.filter(|row| row.kind == RecordKind::Attempt);
        assert_eq!(openings.count(), 2, "the record of it stays: {file}");
    }
}
