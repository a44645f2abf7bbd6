//! The law under pressure: a wall clock that was set, a database whose commits fail or whose answers are lost, a provider that hangs, a
//! neighbour that waits. Nobody is reached who was not to be, and whoever has nothing to do with it goes on.
use super::{
    SELLER, asks_whose_numbers, barred, called, consent, fates, given, id_of, introduce, mid_morning, number, person,
    person_by, reached, run, seller, with,
};
use crate::{
    on_both,
    scenarios::{
        messages::{PERSON, live, status, text, with_provider},
        neighbours::all_reports,
        the_database_fails::behind_a_proxy,
    },
    world::{Tenant, World, awaited, minutes, reassigned_server::ReassignedServer, seconds, twilio::Twilio},
};
use actors::leases::Of;
use entities::{
    Error,
    abandonment::AbandonmentLimit,
    campaign_hour,
    changes::{Changes, Guard},
    dnc::{self, Source},
    ids::{CampaignId, TenantId},
    values::{Env, Moment},
};
use rules::{
    barred::{Entry, Whom},
    commit::Commit,
};
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// In Austin, where texts that sell leave from 9:00 to 21:00. Source: Tex. SB 140.
const TEXAN: &str = "+15125550123";
/// Somebody who has agreed so long ago that the number may be another's by now, and somebody who has yesterday.
const KEPT: &str = "+12025550121";
const YESTERDAYS: &str = "+12025550124";
const LONG_AGO: &str = "2026-12-24T18:00:00Z";
/// A talk. Source: docs/sandbox.md, by the last digit.
const TALKS: &str = "+15002340000";

/// Says who the workspace is, and gives it that number to write from.
async fn writes_from(world: &World, tenant: &Tenant, own: &str) {
    let identity = json!({ "registered_name": SELLER, "callback_number": own });
    tenant.api.patch("/v1/compliance/identity", identity).await.ok();
    number(world, tenant, own).await;
}

/// The person says it in a call of that workspace.
async fn opts_out(world: &World, owner: (TenantId, Env)) -> dnc::Model {
    let entry = Entry {
        id: world.deps().ids.next(),
        whom: Whom::Number(PERSON.parse().unwrap()),
        channels: Vec::new(),
        reason: Some("said so".into()),
        source: Source::OptOutVoice,
        session_id: None,
        requested_at: None,
        created_by: None,
    };
    let (entry, _) = actors::dnc::add(world.deps(), owner, entry).await.unwrap();
    entry
}

async fn of(tenant: &Tenant, path: &str, field: &str) -> Value {
    tenant.api.get(path).await.ok()[field].clone()
}

on_both! {
    /// A single text has no campaign whose hours are looked at in its commit: by the wall clock it would leave at 8:20.
    async fn a_text_keeps_its_hours_by_both_clocks(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        world.under_the_law().await;
        introduce(world, &tenant).await;
        // 9:30 in Austin.
        mid_morning(world).await;
        world.advance(minutes(30)).await;
        consent(&api, TEXAN, json!({})).await;
        let later = text(&api, TEXAN, json!({ "scheduled_at": "2027-03-02T15:45:00Z" })).await;
        // Set back to 8:00, and taken for true.
        world.clock.step_wall(-90 * MINUTE_MS);
        world.advance(minutes(11)).await;
        assert!(!world.clock.is_in_doubt());
        let now = api.post("/v1/sms_messages", json!({ "to_number": TEXAN, "body": "Hello." })).await;
        assert_eq!(now.error(), (409, "outside_calling_hours", Some("to_number")), "{}", now.body);
        world.advance(minutes(30)).await;
        assert!(world.clock.now().to_string().as_str() > "2027-03-02T15:45", "its time has come by ours");
        assert_eq!((status(&api, &later).await.as_str(), reached(&provider)), ("queued", vec![]), "8:41 by the wall clock");
        // By both of them they are open at 9:00 of the one that is behind.
        world.advance(minutes(30)).await;
        assert_eq!((status(&api, &later).await.as_str(), reached(&provider)), ("sent", vec![TEXAN.to_owned()]));
        text(&api, TEXAN, json!({})).await;
        world.settle().await;
        assert_eq!(provider.asked().len(), 2);
    }

    async fn a_consent_that_has_ended_does_not_come_back_with_the_clock(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        world.advance(minutes(30)).await;
        let whom = "+15002340001";
        consent(&tenant.api, whom, json!({ "expires_at": "2027-03-02T14:45:00Z" })).await;
        // By the wall clock it has a quarter of an hour left, at the next start as well.
        world.clock.step_wall(-HOUR_MS);
        world.restart().await;
        world.advance(minutes(11)).await;
        assert!(!world.clock.is_in_doubt());
        assert!(world.clock.times().wall.to_string().as_str() < "2027-03-02T14:45");
        let path = run(&tenant, &[person_by(whom, "US-FL", "America/New_York")], json!({})).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [barred()]);
    }

    /// The wall clock is two minutes ahead, and trusted: by it the consent has ended, and by our time it has a minute left. Its dial would be
    /// refused by its guard until then.
    async fn a_consent_has_ended_when_it_has_by_one_of_the_clocks(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let whom = ["+15002340001", "+15002340011"];
        consent(&tenant.api, whom[0], json!({ "expires_at": "2027-03-02T15:01:00Z" })).await;
        consent(&tenant.api, whom[1], json!({})).await;
        world.clock.step_wall(2 * MINUTE_MS);
        assert!(!world.clock.is_in_doubt());
        let call = json!({
            "to_number": whom[0], "agent_id": tenant.agent().await, "sandbox_law": "enforce", "contact": { "region": "FR" },
        });
        let refused = tenant.api.post("/v1/sessions", call).await;
        assert_eq!(refused.error(), (409, "compliance_blocked", Some("fr.optin")), "{}", refused.body);
        let path = run(&tenant, &whom.map(|number| person(number, "FR")), json!({})).await;
        world.advance(seconds(20)).await;
        assert!(world.clock.now().to_string().as_str() < "2027-03-02T15:01");
        assert_eq!(fates(&tenant, &path).await, [barred(), called()]);
    }

    /// The service stood still between the commit of a campaign's text and its moment, longer than the consent lasts.
    async fn a_campaigns_text_does_not_leave_when_its_consent_has_ended_meanwhile(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        let api = with_provider(world, &tenant, &provider).await;
        world.under_the_law().await;
        introduce(world, &tenant).await;
        let tenant = Tenant { api, ..tenant };
        mid_morning(world).await;
        consent(&tenant.api, KEPT, json!({})).await;
        consent(&tenant.api, YESTERDAYS, json!({ "expires_at": "2027-03-02T15:05:00Z" })).await;
        let people = [KEPT, YESTERDAYS].map(|number| json!({ "phone_number": number }));
        let slow = json!({ "channel": "sms", "template": { "body": "Hello." }, "pacing": { "calls_per_second": 0.1 } });
        run(&tenant, &people, slow).await;
        // The intent of the second is committed a tenth of a second before its moment.
        while world.rows("sms_messages").await < 2 {
            world.advance(Duration::from_millis(50)).await;
        }
        assert_eq!(reached(&provider), [KEPT]);
        world.clock.set(Moment::parse("2027-03-02T15:06:00Z").unwrap());
        world.advance(minutes(10)).await;
        assert_eq!(reached(&provider), [KEPT]);
    }

    /// The machine has slept for two hours, and the service's own time does not follow its wall clock yet: whoever opts out now does so at
    /// 15:00, and has taken back what was given at 14:00.
    async fn an_opt_out_is_not_older_than_it_is_while_the_clock_is_in_doubt(world: &mut World) {
        let tenant = world.tenant().await;
        let api = live(world, &tenant).await;
        consent(&api, PERSON, json!({})).await;
        world.clock.step_wall(2 * HOUR_MS);
        assert!(world.clock.is_in_doubt());
        let entry = opts_out(world, (tenant.id, Env::Live)).await;
        let an_hour_before = |more: Value| with(json!({ "given_at": "2027-03-02T14:00:00Z" }), more);
        let again = given(PERSON, an_hour_before(json!({ "method": "list of a partner" })));
        let partners = consent(&api, PERSON, an_hour_before(json!({ "seller": "Partner" }))).await;
        let path = format!("/v1/dnc/{}?reason=agreed+anew", entry.id);
        for when in ["in doubt", "believed"] {
            let refused = api.post("/v1/consents", again.clone()).await;
            assert_eq!(refused.error(), (409, "invalid_state", None), "{when}: {}", refused.body);
            let refused = api.delete(&path).await;
            assert_eq!(refused.error(), (409, "invalid_state", None), "{when}: {}", refused.body);
            world.advance(minutes(11)).await;
        }
        assert!(!world.clock.is_in_doubt());
        consent(&api, PERSON, json!({ "given_at": "2027-03-02T15:05:00Z" })).await;
        assert_eq!(api.delete(&path).await.status, 204);
        let left = api.get(&format!("/v1/consents/{partners}")).await.ok();
        assert_eq!(left["status"], "revoked", "what was given before the no stays taken back");
    }

    /// The wall clock was 40 days ahead for a moment, and is right again: a day later it is put on record that the person has said it once
    /// more, and at once where they had agreed meanwhile.
    async fn who_says_it_again_is_on_record_though_the_first_time_was_dated_ahead(world: &mut World) {
        let tenant = world.tenant().await;
        let says = async || {
            let entry = opts_out(world, (tenant.id, Env::Test)).await;
            (world.rows("attempt_records").await, entry.opted_out_at.unwrap().to_string())
        };
        world.clock.step_wall(40 * 24 * HOUR_MS);
        let dated = "2027-04-11T13:00:00.000Z".to_owned();
        assert_eq!(says().await, (1, dated.clone()));
        world.clock.step_wall(-40 * 24 * HOUR_MS);
        assert!(!world.clock.is_in_doubt());
        assert_eq!(says().await, (1, dated.clone()));
        world.leap(minutes(24 * 60)).await;
        assert_eq!(says().await, (2, dated.clone()));
        assert_eq!(says().await, (2, dated.clone()), "so soon it is the same");
        consent(&tenant.api, PERSON, json!({ "given_at": world.clock.now() })).await;
        assert_eq!(says().await, (3, dated));
    }

    /// Two of two were abandoned: that brake opens when the hour is a day old by our time and by the wall clock, asked in the dial's commit.
    async fn what_was_abandoned_counts_until_it_is_old_by_both_clocks(world: &mut World) {
        let tenant = world.tenant().await;
        let made = tenant.api.post("/v1/campaigns", json!({ "name": "Spring" })).await.ok();
        let campaign_id: CampaignId = id_of(&made).parse().unwrap();
        let limits = vec![AbandonmentLimit { limit_permille: 30, brake_permille: 5, hours: 24 }];
        let writer = &world.deps().writer;
        let dial = async || {
            let guards = vec![Guard::NotBraked { campaign_id, limits: limits.clone() }];
            let commit = Commit { changes: Changes { guards, ..Changes::default() }, events: Vec::new() };
            writer.commit(Of::Anybody, commit).await
        };
        dial().await.unwrap();
        let hour = campaign_hour::Model { answered_live: 2, abandoned: 2, ..campaign_hour::Model::empty(campaign_id, world.clock.now()) };
        let counted = Commit { changes: Changes { campaign_hours: vec![hour], ..Changes::default() }, events: Vec::new() };
        writer.commit(Of::Anybody, counted).await.unwrap();
        assert!(matches!(dial().await, Err(Error::Stale)));
        world.leap(minutes(26 * 60)).await;
        dial().await.unwrap();
        // Set back by two hours: by the wall clock the day is not over.
        world.clock.step_wall(-2 * HOUR_MS);
        assert!(matches!(dial().await, Err(Error::Stale)), "in doubt");
        world.advance(minutes(11)).await;
        assert!(!world.clock.is_in_doubt());
        assert!(matches!(dial().await, Err(Error::Stale)), "believed");
        world.advance(minutes(5 * 60)).await;
        dial().await.unwrap();
    }

    async fn a_consent_is_taken_back_when_that_was_answered_and_not_before(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let path = format!("/v1/consents/{}", consent(&tenant.api, "+15002340001", json!({})).await);
        let revoking = format!("{path}/revoke");
        world.fail_next_commits(1);
        let failed = tenant.api.post(&revoking, json!({})).await;
        assert_eq!(failed.error(), (503, "unavailable", None));
        assert_eq!((of(&tenant, &path, "status").await, world.rows("dnc_entries").await), (json!("valid"), 0));
        tenant.api.post(&revoking, json!({})).await.ok();
        assert_eq!((of(&tenant, &path, "status").await, world.rows("dnc_entries").await), (json!("revoked"), 1));
        let campaign = run(&tenant, &[person("+15002340001", "FR")], json!({})).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &campaign).await, [barred()]);
    }

    async fn a_file_whose_commit_fails_leaves_the_one_before(world: &mut World) {
        let tenant = seller(world).await;
        let upload = async |day: &str, file: &str| tenant.api.upload(&format!("/v1/registers/uk_tps/files?fetched_at={day}"), file).await;
        let is = async || {
            let row = tenant.api.get("/v1/registers/uk_tps").await.ok();
            (row["version"].clone(), row["fetched_at"].clone(), world.rows("register_chunks").await)
        };
        let first = (json!(1), json!("2027-03-01T00:00:00.000Z"), 1);
        upload("2027-03-01", "+15002340021\n").await.ok();
        assert_eq!(is().await, first);
        world.fail_next_commits(1);
        let failed = upload("2027-03-02", "+15002340011\n").await;
        assert_eq!(failed.error(), (503, "unavailable", None));
        assert_eq!(is().await, first);
        upload("2027-03-02", "+15002340011\n").await.ok();
        assert_eq!(is().await, (json!(2), json!("2027-03-02T00:00:00.000Z"), 1), "of the one before nothing is left");
    }

    /// Each answer costs money: what the database did not take is written down later, and not asked for again.
    async fn an_answer_that_could_not_be_written_down_is_paid_for_once(world: &mut World) {
        let (tenant, provider, server) = (world.tenant().await, Twilio::start().await, ReassignedServer::start());
        let api = with_provider(world, &tenant, &provider).await;
        asks_whose_numbers(world, &server).await;
        writes_from(world, &tenant, "+12025550177").await;
        consent(&api, KEPT, json!({ "given_at": LONG_AGO })).await;
        server.hold();
        let waits = text(&api, KEPT, json!({})).await;
        server.arrived(1).await;
        // One for the answer, and one for the text that notes what it waits for, if it has not by now.
        world.fail_next_commits(2);
        server.release();
        world.settle().await;
        assert_eq!((world.rows("reassigned_checks").await, reached(&provider)), (0, vec![]));
        world.advance(minutes(10)).await;
        assert_eq!((status(&api, &waits).await.as_str(), reached(&provider)), ("sent", vec![KEPT.to_owned()]));
        assert_eq!(server.take_asked(), [(KEPT.to_owned(), "2026-12-24".to_owned())]);
    }

    async fn a_provider_that_hangs_holds_up_only_who_needs_it(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        let (provider, server) = (Twilio::start().await, ReassignedServer::start());
        let api = with_provider(world, &tenant, &provider).await;
        asks_whose_numbers(world, &server).await;
        let theirs = live(world, &other).await;
        writes_from(world, &tenant, "+12025550177").await;
        writes_from(world, &other, "+12025550179").await;
        for api in [&api, &theirs] {
            consent(api, KEPT, json!({ "given_at": LONG_AGO })).await;
        }
        consent(&theirs, YESTERDAYS, json!({})).await;
        server.hold();
        let waiting = [text(&api, KEPT, json!({})).await, text(&theirs, KEPT, json!({})).await];
        server.arrived(2).await;
        // Who needs no answer goes on, of a workspace that waits for one, too.
        text(&theirs, YESTERDAYS, json!({})).await;
        provider.arrived(1).await;
        assert_eq!(reached(&provider), [YESTERDAYS]);
        for (api, id) in [&api, &theirs].into_iter().zip(&waiting) {
            assert_eq!(status(api, id).await, "queued");
        }
        server.release();
        world.advance(minutes(5)).await;
        assert_eq!(reached(&provider), [KEPT, KEPT, YESTERDAYS]);
        assert_eq!(server.take_asked().len(), 2, "each workspace has asked once");
    }

    async fn an_export_goes_on_after_a_commit_that_failed_and_holds_nobody_up(world: &mut World) {
        let (tenant, other) = (world.tenant().await, world.tenant().await);
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        let held = all_reports(world).await;
        let export = tenant.api.post("/v1/compliance/exports", json!({})).await.ok();
        let path = format!("/v1/compliance/exports/{}", id_of(&export));
        // It waits for its first page; reads and writes of others do not.
        other.agent().await;
        assert_eq!(of(&other, "/v1/compliance/attempts", "data").await, json!([]));
        world.fail_next_commits(1);
        for connection in held {
            connection.rollback().await.unwrap();
        }
        world.settle().await;
        assert_eq!((of(&tenant, &path, "status").await, of(&tenant, &path, "error").await), (json!("running"), Value::Null));
        world.advance(minutes(6)).await;
        let export = tenant.api.get(&path).await.ok();
        assert_eq!(export["status"], "completed", "{export:#}");
        let file = tenant.api.request(reqwest::Method::GET, &format!("{path}/files/1")).send().await.unwrap();
        let lines = file.text().await.unwrap().lines().count();
        let rows = usize::try_from(world.rows("attempt_records").await).unwrap();
        assert_eq!((lines, &export["rows"]), (rows, &json!(rows)), "each row once");
    }

    async fn an_erasure_goes_on_after_a_commit_that_failed(world: &mut World) {
        let tenant = world.tenant().await;
        tenant.run_campaign(&[TALKS], json!({})).await;
        world.advance(minutes(5)).await;
        let held = all_reports(world).await;
        let begun = tenant.api.delete("/v1/people?phone_number=%2B15002340000").await.ok();
        let path = format!("/v1/people/erasures/{}", id_of(&begun));
        // It has noted that it has begun, and waits for the first contacts.
        let is_running = async || (of(&tenant, &path, "status").await == "running").then_some(());
        awaited("the erasure has begun", is_running).await;
        world.fail_next_commits(1);
        for connection in held {
            connection.rollback().await.unwrap();
        }
        world.settle().await;
        let row = tenant.api.get(&path).await.ok();
        assert_eq!((&row["status"], &row["error"], &row["erased"]["contacts"]), (&json!("running"), &Value::Null, &json!(0)), "{row:#}");
        world.advance(minutes(6)).await;
        let row = tenant.api.get(&path).await.ok();
        assert_eq!((&row["status"], &row["error"]), (&json!("done"), &Value::Null), "{row:#}");
        let went = &row["erased"];
        assert_eq!((&went["contacts"], &went["sessions"]), (&json!(1), &json!(1)), "{row:#}");
        let left = of(&tenant, "/v1/compliance/attempts", "data").await;
        assert_eq!((left.as_array().unwrap().len(), &left[0]["phone_number"]), (1, &Value::Null), "{left:#}");
    }
}

/// Whoever has taken it back was told 503, and it holds all the same.
#[test]
fn a_consent_that_was_taken_back_unseen_is_none() {
    behind_a_proxy(async |world, mut proxy| {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let path = format!("/v1/consents/{}", consent(&tenant.api, "+15002340001", json!({})).await);
        proxy.hold_answer();
        let unseen = tenant.api.post(&format!("{path}/revoke"), json!({})).await;
        assert_eq!(unseen.error(), (503, "unavailable", None));
        proxy.release().await;
        let campaign = run(&tenant, &[person("+15002340001", "FR")], json!({})).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &campaign).await, [barred()]);
        assert_eq!(of(&tenant, &path, "status").await, "revoked");
    });
}
