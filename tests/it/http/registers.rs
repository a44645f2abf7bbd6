//! Registers of numbers that must not be called: uploaded, looked into, replaced, refused; and reassigned numbers.
use crate::{
    on_both,
    world::{
        Answer, Api, World, awaited, minutes,
        reassigned_server::{self, ReassignedServer},
        seconds,
    },
};
use actors::registers::{
    self,
    asking::{InDoubt, Unanswered},
};
use entities::{
    ids::TenantId,
    reassigned::ReassignedAnswer,
    register::{self, chunk},
    values::{E164, Env, Moment, Scopes},
};
use futures_util::FutureExt;
use rules::law::facts::RegisterFact;
use serde_json::{Value, json};
use std::time::Duration;

const FIRST: &str = "2125550123\n2125550124\n212,5550125\n";

async fn upload(api: &Api, name: &str, day: &str, file: impl Into<String>) -> Answer {
    let path = format!("/v1/registers/{name}/files?fetched_at={day}");
    api.upload(&path, file).await
}

fn number(text: &str) -> E164 {
    text.parse().unwrap()
}

/// What is known of one number.
async fn look(world: &World, owner: (TenantId, Env), names: &[&str], text: &str) -> Vec<RegisterFact> {
    let deps = world.deps();
    let number = number(text);
    let look = deps
        .registers
        .look(&deps.db.read, owner, names, std::slice::from_ref(&number));
    look.await.unwrap().facts.remove(&number).unwrap()
}

/// Version, and is it listed?
async fn listed(world: &World, owner: (TenantId, Env), text: &str) -> Vec<(i32, bool)> {
    let facts = look(world, owner, &["us_dnc"], text).await;
    facts.into_iter().map(|fact| (fact.version, fact.is_listed)).collect()
}

/// As the operator does, beside the running service.
fn command(world: &World, args: &[&str]) -> std::process::Output {
    command_with(world, args, "")
}

/// The same where those are asked over an API.
fn command_with(world: &World, args: &[&str], register_urls: &str) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_callboard"))
        .args(args)
        .env_clear()
        .env("CALLBOARD_DEV", "true")
        .env("CALLBOARD_VOICE", "tones")
        .env("CALLBOARD_DATABASE_URL", world.database_url())
        .env("CALLBOARD_SECRET_KEY", world.secret_key())
        .env("CALLBOARD_REGISTER_URLS", register_urls)
        .output()
        .unwrap()
}

on_both! {
    async fn a_file_is_uploaded_looked_into_and_replaced(world: &mut World) {
        let tenant = world.tenant().await;
        let (api, owner) = (&tenant.api, (tenant.id, Env::Test));
        assert_eq!(listed(world, owner, "+12125550123").await, [], "nobody has uploaded it");
        let first = upload(api, "us_dnc", "2027-03-01", FIRST).await;
        assert_eq!(first.status.as_u16(), 201, "{}", first.body);
        let first = first.ok();
        let told = |row: &Value| (row["version"].clone(), row["numbers"].clone(), row["fetched_at"].clone(), row["owner"].clone(), row["country"].clone());
        let day = |text: &str| json!(format!("{text}T00:00:00.000Z"));
        assert_eq!(told(&first), (json!(1), json!(3), day("2027-03-01"), json!("workspace"), json!("US")));
        assert_eq!(first["stale_at"], day("2027-04-01"));
        for (text, expected) in [("+12125550123", true), ("+12125550125", true), ("+12125550126", false)] {
            assert_eq!(listed(world, owner, text).await, [(1, expected)], "{text}");
        }
        // The same again changes nothing; given out anew it is younger.
        for (at, status, fetched) in [("2027-03-01", 200, "2027-03-01"), ("2027-02-01", 200, "2027-03-01"), ("2027-03-02", 200, "2027-03-02")] {
            let again = upload(api, "us_dnc", at, FIRST).await;
            assert_eq!(again.status.as_u16(), status, "{at}");
            assert_eq!(told(&again.ok()), (json!(1), json!(3), day(fetched), json!("workspace"), json!("US")), "{at}");
        }
        // Under a key that is repeated, too.
        let path = "/v1/registers/us_dnc/files?fetched_at=2027-03-02";
        let keyed = || api.request(reqwest::Method::POST, path).header("content-type", "text/csv").header("idempotency-key", "one").body("2125550126\n2125550123\n");
        assert_eq!(api.send(keyed()).await.status.as_u16(), 201);
        assert_eq!(api.send(keyed()).await.status.as_u16(), 200);
        assert_eq!((listed(world, owner, "+12125550124").await, listed(world, owner, "+12125550126").await), (vec![(2, false)], vec![(2, true)]));
        // An older file, and one that may have been cut off.
        assert_eq!(upload(api, "us_dnc", "2027-03-01", FIRST).await.error(), (422, "validation_failed", Some("fetched_at")));
        let many: String = (0..1_000).map(|n| format!("212555{n:04}\n")).collect();
        upload(api, "us_dnc", "2027-03-02", many).await.ok();
        assert_eq!(upload(api, "us_dnc", "2027-03-02", FIRST).await.error(), (422, "validation_failed", None));
        let forced = api.upload("/v1/registers/us_dnc/files?fetched_at=2027-03-02&allow_shrink=true", FIRST).await;
        assert_eq!((forced.status.as_u16(), &forced.body["version"]), (201, &json!(4)));

        // Nobody else's, in neither environment.
        let (stranger, live) = (world.tenant().await, world.api(tenant.id, Env::Live, Scopes::all()).await);
        for other in [&stranger.api, &live] {
            assert_eq!(other.get("/v1/registers").await.ok()["data"], json!([]));
            assert_eq!(other.get("/v1/registers/us_dnc").await.error(), (404, "not_found", None));
            assert_eq!(other.delete("/v1/registers/us_dnc").await.error(), (404, "not_found", None));
        }
        assert_eq!(listed(world, (tenant.id, Env::Live), "+12125550123").await, []);
        assert_eq!(listed(world, (stranger.id, Env::Test), "+12125550123").await, []);

        // The guard of a dial: what was looked into is all that there is, in its newest version.
        let id = first["id"].as_str().unwrap().parse().unwrap();
        let db = world.deps().db.read.clone();
        let seen = |owner: (TenantId, Env), versions: &[i32]| register::Seen {
            owner,
            names: ["us_dnc".to_owned()].into(),
            copies: versions.iter().map(|version| (id, *version)).collect(),
        };
        let others = [(stranger.id, Env::Test), (tenant.id, Env::Live)];
        for (owner, versions, expected) in [
            (owner, vec![3], false),
            (owner, vec![4], true),
            // When it was looked for there was none.
            (owner, vec![], false),
            (others[0], vec![], true),
            (others[1], vec![], true),
            (others[0], vec![4], false),
        ] {
            let found = register::are_as_seen(&db, &[&seen(owner, &versions)]).await.unwrap();
            assert_eq!(found, expected, "{owner:?} {versions:?}");
        }
        // One of several that is not so is enough.
        let looks = [seen(others[0], &[]), seen(owner, &[3])];
        assert!(!register::are_as_seen(&db, &looks.each_ref()).await.unwrap());

        // It outlives the process, and the secret key.
        world.restart().await;
        assert_eq!(listed(world, owner, "+12125550124").await, [(4, true)]);
        world.replace_secret_key().await;
        assert_eq!(listed(world, owner, "+12125550124").await, [(4, true)]);
        assert!(world.deps().registers.bytes() >= 24);

        // What was replaced, or refused at the very end, is gone at once; what is there stays.
        assert_eq!(world.rows("register_chunks").await, 1);
        world.leap(minutes(25 * 60)).await;
        world.advance(minutes(16)).await;
        assert_eq!(world.rows("register_chunks").await, 1);
        assert_eq!(listed(world, owner, "+12125550124").await, [(4, true)]);

        let list = tenant.api.get("/v1/registers").await.ok();
        assert_eq!((list["data"].as_array().unwrap().len(), &list["data"][0]["name"]), (1, &json!("us_dnc")));
        assert_eq!(tenant.api.delete("/v1/registers/us_dnc").await.status.as_u16(), 204);
        assert_eq!(tenant.api.delete("/v1/registers/us_dnc").await.error(), (404, "not_found", None));
        assert_eq!(listed(world, owner, "+12125550124").await, []);
        for (versions, expected) in [(vec![4], false), (vec![], true)] {
            let found = register::are_as_seen(&world.deps().db.read, &[&seen(owner, &versions)]).await.unwrap();
            assert_eq!(found, expected, "{versions:?}");
        }
        world.settle().await;
        assert_eq!(world.rows("register_chunks").await, 0, "what was deleted goes at once");

        // What a process has left that ended in the middle of an upload goes when it can be none any more.
        let left = [chunk::Model { file_id: world.deps().ids.next(), n: 0, hashes: vec![0; 8], days: None }];
        let leaving = world.deps().writer.run(tenant.id, move |db| {
            let left = left.clone();
            Box::pin(async move { Ok((chunk::add(db, &left).await?, rules::commit::Commit::default())) })
        });
        leaving.await.unwrap();
        world.advance(minutes(16)).await;
        assert_eq!(world.rows("register_chunks").await, 1);
        world.leap(minutes(25 * 60)).await;
        world.advance(minutes(16)).await;
        assert_eq!(world.rows("register_chunks").await, 0);
    }

    /// All of it has come: that nobody waits for the answer any more leaves nothing half done.
    async fn a_file_is_stored_also_if_its_sender_leaves(world: &mut World) {
        let tenant = world.tenant().await;
        let owner = (tenant.id, Env::Test);
        let many: String = (0..200_000).map(|n| format!("+1646{}\n", 2_000_000 + n)).collect();
        let path = "/v1/registers/us_dnc/files?fetched_at=2027-03-01";
        let request = tenant.api.request(reqwest::Method::POST, path).header("content-type", "text/csv").body(many);
        let sending = actix_rt::spawn(request.send());
        let is_begun = async || (world.rows("register_chunks").await > 0).then_some(());
        awaited("some of the file is stored", is_begun).await;
        sending.abort();
        let of_name = async || register::of_name(&world.deps().db.read, owner, "us_dnc").await.unwrap();
        let row = awaited("its register has it", of_name).await;
        assert_eq!((row.version, row.numbers), (1, 200_000));
        world.settle().await;
        assert_eq!(world.rows("register_chunks").await, 49, "4,096 numbers a row");
        assert_eq!(listed(world, owner, "+16462000000").await, [(1, true)]);
        assert_eq!(upload(&tenant.api, "us_dnc", "2027-03-02", FIRST).await.error(), (422, "validation_failed", None), "its place is free again");
    }

    /// The database is slow, and whoever has asked is there no more when the register is gone.
    async fn what_is_deleted_goes_also_if_nobody_waits_for_it(world: &mut World) {
        let tenant = world.tenant().await;
        upload(&tenant.api, "us_dnc", "2027-03-01", FIRST).await.ok();
        let count = async || (world.rows("registers").await, world.rows("register_chunks").await);
        assert_eq!(count().await, (1, 1));
        let deleting = registers::upload::delete(world.deps(), (tenant.id, Env::Test), "us_dnc".to_owned());
        assert!(deleting.now_or_never().is_none());
        world.settle().await;
        assert_eq!(count().await, (0, 0));
    }

    async fn a_copy_of_some_area_codes_says_nothing_of_numbers_with_others(world: &mut World) {
        let tenant = world.tenant().await;
        let (api, owner) = (&tenant.api, (tenant.id, Env::Test));
        let row = upload(api, "us_dnc", "2027-03-01", "212,5550123\n646,5550123\n").await.ok();
        assert_eq!(row["area_codes"], json!(["212", "646"]));
        for (text, expected) in [
            ("+12125550123", vec![(1, true)]),
            ("+16465550124", vec![(1, false)]),
            ("+13055550123", vec![]),
            // Of no area code: it can be on no list of them.
            ("+442079460018", vec![(1, false)]),
        ] {
            assert_eq!(listed(world, owner, text).await, expected, "{text}");
        }
        // That an area code is covered of which nobody is listed is said.
        let path = "/v1/registers/us_dnc/files?fetched_at=2027-03-01&area_codes=305";
        let named = api.upload(path, "212,5550123\n646,5550123\n").await;
        assert_eq!((named.status.as_u16(), &named.body["area_codes"]), (201, &json!(["212", "305", "646"])));
        assert_eq!(listed(world, owner, "+13055550123").await, [(2, false)]);
        // Others are not given out by area codes.
        let row = upload(api, "ours", "2027-03-01", FIRST).await.ok();
        assert_eq!(row["area_codes"], Value::Null);
        assert_eq!(look(world, owner, &["ours"], "+13055550123").await.len(), 1);
    }

    async fn days_of_listing_come_with_the_facts(world: &mut World) {
        let tenant = world.tenant().await;
        let owner = (tenant.id, Env::Test);
        let file = "phone_number,listed_at\n3471234567,2026-05-04\n+39 06 6982 0001,\n";
        let made = upload(&tenant.api, "it_rpo", "2027-03-01", file).await.ok();
        assert_eq!((&made["has_dates"], &made["country"], &made["stale_at"]), (&json!(true), &json!("IT"), &json!("2027-03-16T00:00:00.000Z")));
        for (text, expected) in [("+393471234567", Some("2026-05-04")), ("+390669820001", None)] {
            let facts = look(world, owner, &["it_rpo"], text).await;
            let day = facts[0].listed_on.map(|day| day.to_string());
            assert_eq!((facts.len(), facts[0].is_listed, day.as_deref()), (1, true, expected), "{text}");
        }
        assert_eq!(look(world, owner, &["us_dnc"], "+393471234567").await, []);
    }

    async fn what_is_wrong_with_a_file_is_told_and_nothing_changes(world: &mut World) {
        let tenant = world.tenant().await;
        let (api, owner) = (&tenant.api, (tenant.id, Env::Test));
        upload(api, "us_dnc", "2027-03-01", FIRST).await.ok();
        let invalid = |param| (422, "validation_failed", param);
        for (name, query, file, expected) in [
            ("us_dnc", "fetched_at=2027-03-02", "2125550123\nhello\n", invalid(Some("line 2"))),
            ("us_dnc", "fetched_at=2027-03-02", "phone_number,name\n2125550123,Ann\n", invalid(Some("line 1"))),
            ("us_dnc", "fetched_at=2027-03-02", "<html>\n", invalid(Some("line 1"))),
            ("us_dnc", "fetched_at=2027-03-02", "", invalid(None)),
            ("us_dnc", "fetched_at=2027-03-02", "phone_number\n", invalid(None)),
            ("us_dnc", "", FIRST, invalid(Some("fetched_at"))),
            ("us_dnc", "fetched_at=yesterday", FIRST, invalid(Some("fetched_at"))),
            ("us_dnc", "fetched_at=2027-03-04", FIRST, invalid(Some("fetched_at"))),
            ("us_dnc", "fetched_at=2027-03-02&fetched_at=2027-03-01", FIRST, invalid(Some("fetched_at"))),
            ("us_dnc", "fetched_at=2027-03-02&country=CA", FIRST, invalid(Some("country"))),
            ("ours", "fetched_at=2027-03-02&country=Germany", FIRST, invalid(Some("country"))),
            ("us_dnc", "fetched_at=2027-03-02&area_codes=21", FIRST, invalid(Some("area_codes"))),
            ("uk_tps", "fetched_at=2027-03-02&area_codes=212", FIRST, invalid(Some("area_codes"))),
            ("us_dnc", "fetched_at=2027-03-02&allow_shrink=yes", FIRST, invalid(Some("allow_shrink"))),
            ("us_dnc", "fetched_at=2027-03-02&mode=delta", FIRST, invalid(Some("mode"))),
            ("US-DNC", "fetched_at=2027-03-02", FIRST, invalid(Some("name"))),
            ("x", "fetched_at=2027-03-02", FIRST, invalid(Some("name"))),
        ] {
            let answer = api.upload(&format!("/v1/registers/{name}/files?{query}"), file).await;
            assert_eq!(answer.error(), expected, "{name} {query} {file:?}: {}", answer.body);
            world.advance(seconds(1)).await;
        }
        // All that is told of a bad file.
        let answer = upload(api, "us_dnc", "2027-03-02", "x\n".repeat(500)).await;
        let details = answer.body["error"]["details"].as_array().unwrap();
        assert_eq!((details.len(), &details[19]["param"]), (20, &json!("line 20")));
        let json = api.post("/v1/registers/us_dnc/files?fetched_at=2027-03-02", json!({})).await;
        assert_eq!(json.status.as_u16(), 415);
        assert_eq!(api.get("/v1/registers/ours").await.error(), (404, "not_found", None));
        assert_eq!(listed(world, owner, "+12125550124").await, [(1, true)]);
        assert_eq!(world.rows("register_chunks").await, 1, "nothing of what was refused was stored");

        // A commit that fails leaves the file before, and a repeat does what the first was to do.
        let many: String = (0..70_000).map(|n| format!("+1646{}\n", 2_000_000 + n)).collect();
        world.fail_next_commits(1);
        let failed = upload(api, "us_dnc", "2027-03-02", many.clone()).await;
        assert_eq!(failed.status.as_u16(), 503, "{}", failed.body);
        assert_eq!(listed(world, owner, "+12125550124").await, [(1, true)]);
        assert_eq!(upload(api, "us_dnc", "2027-03-02", many).await.status.as_u16(), 201);
        assert_eq!(listed(world, owner, "+16462000000").await, [(2, true)]);
        assert_eq!(world.rows("register_chunks").await, 18, "nothing of the two before: 70,000 numbers, 4,096 a row");
    }

    async fn whoever_uploads_slowly_keeps_no_other_workspace_from_it(world: &mut World) {
        let (tenant, one, two) = (world.tenant().await, world.tenant().await, world.tenant().await);
        let uploads = &world.deps().registers.uploads;
        // As long as their files come in.
        let held = [&one, &two].map(|slow| uploads.enter(slow.id).unwrap());
        assert_eq!(upload(&tenant.api, "us_dnc", "2027-03-01", FIRST).await.status.as_u16(), 201);
        assert_eq!(upload(&one.api, "us_dnc", "2027-03-01", FIRST).await.error(), (429, "rate_limited", None));
        drop(held);
        assert_eq!(upload(&one.api, "us_dnc", "2027-03-01", FIRST).await.status.as_u16(), 201);
    }

    async fn the_operators_register_serves_everybody_and_no_workspace_hides_it(world: &mut World) {
        let (one, other) = (world.tenant().await, world.tenant().await);
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, file: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, file).unwrap();
            path.display().to_string()
        };
        // Two lists of area codes, of which the first does not end its last line.
        let (first, second) = (path("212.txt", "212,5550123\n212,5550124"), path("646.txt", "646,5550123\n"));
        let bad = path("bad.txt", "212,5550123\nhello\n");
        let refused = command(world, &["registers", "upload", "us_dnc", &bad, "--fetched-at", "2026-01-05"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("line 2: `hello` is not a phone number"), "{said}");
        let ahead = command(world, &["registers", "upload", "us_dnc", &first, "--fetched-at", "2999-01-05"]);
        assert!(!ahead.status.success() && String::from_utf8_lossy(&ahead.stderr).contains("in the future"));
        let done = command(world, &["--json", "registers", "upload", "us_dnc", &first, &second, "--fetched-at", "2026-01-05"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let told: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!((&told["version"], &told["numbers"]), (&json!(1), &json!(3)));

        for tenant in [&one, &other] {
            for env in [Env::Test, Env::Live] {
                assert_eq!(listed(world, (tenant.id, env), "+16465550123").await, [(1, true)]);
                assert_eq!(listed(world, (tenant.id, env), "+16465550124").await, [(1, false)]);
            }
            let row = tenant.api.get("/v1/registers/us_dnc").await.ok();
            assert_eq!((&row["owner"], &row["uploaded_by"]), (&json!("operator"), &Value::Null));
            assert_eq!(tenant.api.delete("/v1/registers/us_dnc").await.error(), (404, "not_found", None), "it is not theirs");
        }
        // One of its own is looked into beside it: what either lists is listed, and told first.
        upload(&one.api, "us_dnc", "2027-03-01", "9175550123\n6465550125\n").await.ok();
        let facts = look(world, (one.id, Env::Test), &["us_dnc"], "+16465550123").await;
        let told: Vec<_> = facts.iter().map(|fact| (fact.is_listed, fact.fetched_at.to_string())).collect();
        assert_eq!(told, [(true, "2026-01-05T00:00:00.000Z".to_owned()), (false, "2027-03-01T00:00:00.000Z".to_owned())]);
        let facts = look(world, (one.id, Env::Test), &["us_dnc"], "+16465550124").await;
        assert_eq!(facts[0].fetched_at, Moment::parse("2027-03-01T00:00:00Z").unwrap(), "the younger one, where neither lists it");
        assert_eq!(listed(world, (one.id, Env::Test), "+19175550123").await, [(1, true)]);
        assert_eq!(listed(world, (other.id, Env::Test), "+19175550123").await, [], "the operator's does not cover it");
        assert_eq!(one.api.get("/v1/registers/us_dnc").await.ok()["owner"], "workspace");
        assert_eq!(one.api.get("/v1/registers").await.ok()["data"].as_array().unwrap().len(), 2);

        let list = command(world, &["--json", "registers", "list"]);
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        assert_eq!((list.as_array().unwrap().len(), &list[0]["name"]), (1, &json!("us_dnc")));
        let list = command_with(world, &["--json", "registers", "list"], "uk_tps=https://register.example.com/v1/query");
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        assert_eq!((list.as_array().unwrap().len(), &list[0]["name"]), (2, &json!("us_dnc")));
        assert_eq!(list[1], json!({ "name": "uk_tps", "url": "https://register.example.com/v1/query" }));
        assert!(command(world, &["registers", "remove", "us_dnc"]).status.success());
        assert_eq!(listed(world, (other.id, Env::Test), "+16465550123").await, []);
        assert!(!command(world, &["registers", "remove", "us_dnc"]).status.success());
    }

    async fn owners_are_told_before_a_register_is_too_old_and_when_it_is(world: &mut World) {
        let tenant = world.tenant().await;
        let live = world.api(tenant.id, Env::Live, Scopes::all()).await;
        upload(&live, "uk_tps", "2027-03-01", "02079460018\n").await.ok();
        // In the sandbox nobody is bothered.
        upload(&tenant.api, "us_dnc", "2027-03-01", FIRST).await.ok();
        let day = Duration::from_secs(24 * 3600);
        let mails = |world: &World| {
            let files = world.mail_files();
            let subjects = files.iter().flat_map(|file| file.lines()).filter_map(|line| line.strip_prefix("Subject: "));
            subjects.filter(|subject| subject.contains("register")).map(str::to_owned).collect::<Vec<_>>()
        };
        world.leap(day * 23).await;
        world.advance(minutes(16)).await;
        assert_eq!(mails(world), [""; 0]);
        world.leap(day).await;
        world.advance(minutes(16)).await;
        assert_eq!(mails(world), ["The register uk_tps must be renewed within 3 days"]);
        world.leap(day * 3).await;
        world.advance(minutes(16)).await;
        let both = mails(world);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both.iter().any(|subject| subject.starts_with("The register uk_tps is too old")), "{both:?}");
        world.restart().await;
        world.leap(day * 5).await;
        world.advance(minutes(16)).await;
        assert_eq!(mails(world).len(), 2, "of each once");
        let metrics = tenant.api.get("/metrics").await;
        assert!(metrics.body.as_str().unwrap().contains("callboard_register_age_seconds{name=\"uk_tps\"}"));
    }

    async fn reassigned_numbers_are_asked_for_once_and_in_the_background(world: &mut World) {
        let server = ReassignedServer::start();
        let (reassigned, unknown) = ("+12125550123", "+12125550124");
        server.knows(reassigned, "yes");
        server.knows(unknown, "no_data");
        let settings = [("reassigned_url", json!(server.url)), ("reassigned_api_key", json!(reassigned_server::KEY))];
        let since = Moment::parse("2026-12-24T18:00:00Z").unwrap();
        let tenant = world.tenant().await;
        let ask_within = async |world: &World, env: Env, text: &str, since: Moment, max_age_days: u32| {
            let deps = world.deps();
            let asked = [InDoubt { number: number(text), since, max_age_days }];
            let facts = deps.registers.reassigned(deps, (tenant.id, env), &asked, Unanswered::Ask).await.unwrap().facts;
            world.settle().await;
            facts.get(&asked[0].number).map(|fact| (fact.answer, fact.since))
        };
        let ask = async |world: &World, env: Env, text: &str, since: Moment| ask_within(world, env, text, since, 365).await;
        // Nobody knows anything where there is nobody to ask.
        assert_eq!(ask(world, Env::Live, reassigned, since).await, None);
        assert_eq!(ask(world, Env::Live, reassigned, since).await, None);
        world.change_settings(&settings).await;
        use ReassignedAnswer::{No, NoData, Yes};
        for (text, expected) in [(reassigned, Yes), (unknown, NoData), ("+12125550125", No)] {
            assert_eq!(ask(world, Env::Live, text, since).await, None, "it is asked for");
            assert_eq!(ask(world, Env::Live, text, since).await, Some((expected, since)));
        }
        let asked = server.take_asked();
        assert_eq!((asked.len(), &asked[0]), (3, &(reassigned.to_owned(), "2026-12-24".to_owned())));
        // With a test key nobody outside is asked.
        assert_eq!(ask(world, Env::Test, reassigned, since).await, Some((No, since)));
        // A no holds for a later consent, a yes for its own day alone.
        let later = since.plus_seconds(30 * 24 * 3600);
        assert_eq!(ask(world, Env::Live, "+12125550125", later).await, Some((No, since)));
        assert_eq!(server.take_asked(), []);
        assert_eq!(ask(world, Env::Live, reassigned, later).await, None);
        assert_eq!(server.take_asked().len(), 1);
        // What is known outlives the process; an answer that is too old is asked for again, and told until then.
        world.restart().await;
        assert_eq!(ask(world, Env::Live, unknown, since).await, Some((NoData, since)));
        assert_eq!(server.take_asked(), []);
        world.leap(Duration::from_secs(31 * 24 * 3600)).await;
        server.knows(unknown, "no");
        assert_eq!(ask(world, Env::Live, unknown, since).await, Some((NoData, since)));
        assert_eq!(ask(world, Env::Live, unknown, since).await, Some((No, since)));
        // A rule that wants a younger answer than the setting is not left waiting until that asks.
        world.leap(Duration::from_secs(8 * 24 * 3600)).await;
        server.take_asked();
        for (days, expected) in [(9, 0), (7, 1), (7, 0)] {
            assert_eq!(ask_within(world, Env::Live, unknown, since, days).await, Some((No, since)));
            assert_eq!(server.take_asked().len(), expected, "{days} days");
        }
        // A failure is no answer, and is not repeated at once.
        server.fail_next(1);
        let other = "+12125550126";
        for _ in 0..3 {
            assert_eq!(ask(world, Env::Live, other, since).await, None);
        }
        assert_eq!(server.take_asked(), []);
        world.advance(seconds(31)).await;
        assert_eq!(ask(world, Env::Live, other, since).await, None);
        assert_eq!(ask(world, Env::Live, other, since).await, Some((No, since)));
        assert_eq!(server.take_asked().len(), 1);
    }
}
