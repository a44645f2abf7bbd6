//! Somebody takes a consent back, or wants no more calls, at the moment of the dial, in every order. Whatever comes first, nobody is
//! called whose consent was gone by then. By hand with more: `CALLBOARD_TEST_RACES=1000`.
use super::{
    CALLER, barred, called, consent, contacts, draft, eligibility, fates, law, mid_morning, person, revoke, run,
    seller, start,
};
use crate::{
    audit::{check, report},
    on_both,
    world::{Tenant, World, minutes, number, seconds},
};
use actors::leases::Of;
use entities::{
    Error,
    changes::{Guard, Lawful},
    ids::{ConsentId, RegisterId},
    legal_identity,
    register::{self, Seen},
    values::{E164, Env, Moment},
};
use futures_util::future::{join, join_all};
use rules::commit::Commit;
use serde_json::{Value, json};
use std::sync::Arc;

fn races() -> usize {
    number("CALLBOARD_TEST_RACES", 20)
}

/// What is stored, put side by side: each intent to call lies behind a consent that was given and before its end, and no opt-out is
/// before it.
async fn assert_nobody_was_called_against_their_will(world: &World) {
    let evidence = world.evidence().await;
    let of = |kind: &str| -> Vec<&Value> { evidence.dump.iter().filter(|line| line["kind"] == kind).collect() };
    let (consents, entries) = (of("consent"), of("dnc"));
    let mut dials = 0;
    for session in of("session") {
        let Some(seq) = session["intent_seq"].as_i64() else {
            continue;
        };
        dials += 1;
        let number = &session["number"];
        let of_person = |row: &&&Value| row["number"] == *number;
        let stood = consents.iter().filter(of_person).any(|row| {
            let ends = row["revoked_seq"].as_i64().unwrap_or(i64::MAX);
            row["given_seq"].as_i64().unwrap() < seq && seq < ends
        });
        assert!(stood, "{number} was called at {seq} without a consent: {consents:?}");
        let opted_out = entries
            .iter()
            .filter(of_person)
            .any(|row| row["added_seq"].as_i64().unwrap() < seq);
        assert!(!opted_out, "{number} was called at {seq} after an opt-out: {entries:?}");
    }
    assert!(dials > 0, "there was something to look at");
    let breaches = check(&evidence);
    assert!(breaches.is_empty(), "{}", report(&breaches));
}

/// By one of the ways in which somebody may say so.
async fn say_no(tenant: &Tenant, way: usize, number: &str, id: &str) {
    match way % 3 {
        0 => revoke(&tenant.api, id).await,
        1 => {
            let entry = json!({ "phone_number": number });
            tenant.api.post("/v1/dnc", entry).await.ok();
        }
        _ => {
            let stop = json!({ "from_number": number, "to_number": CALLER, "body": "STOP" });
            tenant.api.post("/v1/_sandbox/inbound_sms", stop).await.ok();
        }
    }
}

on_both! {
    /// Campaigns that start while three of four of their people say no.
    async fn a_no_against_the_dispatch(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let agent = tenant.agent().await;
        for race in 0..races() {
            let numbers: Vec<String> = (0..4).map(|n| format!("+15002{race:04}{n}1")).collect();
            let ids = join_all(numbers.iter().map(|number| consent(&tenant.api, number, json!({})))).await;
            let people: Vec<Value> = numbers.iter().map(|number| person(number, "FR")).collect();
            let path = draft(&tenant, &people, json!({ "agent_id": agent })).await;
            let noes = numbers[..3].iter().zip(&ids).enumerate().map(|(way, (number, id))| say_no(&tenant, race + way, number, id));
            join(start(&tenant, &path), join_all(noes)).await;
            world.advance(seconds(20)).await;
            let fates = fates(&tenant, &path).await;
            assert!(fates[..3].iter().all(|fate| *fate == called() || *fate == barred()), "called before, or never: {fates:?}");
            assert_eq!(fates[3], called(), "nobody else waits for that");
        }
        world.advance(minutes(2)).await;
        assert_nobody_was_called_against_their_will(world).await;
    }

    /// A consent that is given while the campaign starts is there, or it is not: nobody is called before it.
    async fn a_yes_against_the_dispatch(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let agent = tenant.agent().await;
        for race in 0..races() {
            let numbers: Vec<String> = (0..3).map(|n| format!("+15003{race:04}{n}1")).collect();
            consent(&tenant.api, &numbers[0], json!({})).await;
            let people: Vec<Value> = numbers.iter().map(|number| person(number, "FR")).collect();
            let path = draft(&tenant, &people, json!({ "agent_id": agent })).await;
            let yeses = numbers[1..].iter().map(|number| consent(&tenant.api, number, json!({})));
            join(start(&tenant, &path), join_all(yeses)).await;
            world.advance(seconds(20)).await;
            let fates = fates(&tenant, &path).await;
            assert_eq!(fates[0], called());
            assert!(fates[1..].iter().all(|fate| *fate == called() || *fate == barred()), "{fates:?}");
        }
        world.advance(minutes(2)).await;
        assert_nobody_was_called_against_their_will(world).await;
    }

    /// Who waits for a retry and says no meanwhile is not called again, nor is one of a slow list whose turn comes later.
    async fn a_no_while_somebody_waits(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let numbers: Vec<String> = (0..6).map(|n| format!("+15004000{n}01")).collect();
        let ids = join_all(numbers.iter().map(|number| consent(&tenant.api, number, json!({})))).await;
        let people: Vec<Value> = numbers.iter().map(|number| person(number, "FR")).collect();
        let retry = run(&tenant, &people[..3], json!({ "retry": { "max_attempts": 3, "min_gap_minutes": 10 } })).await;
        // One in ten seconds: the first of them is called at once, all are at hand.
        let slow = run(&tenant, &people[3..], json!({ "pacing": { "calls_per_second": 0.1 } })).await;
        world.advance(seconds(5)).await;
        for (way, (number, id)) in numbers.iter().zip(&ids).enumerate() {
            say_no(&tenant, way, number, id).await;
        }
        world.advance(minutes(30)).await;
        assert_eq!(fates(&tenant, &retry).await, vec![called(); 3], "called once, and not again");
        assert_eq!(fates(&tenant, &slow).await, [called(), barred(), barred()]);
        assert_nobody_was_called_against_their_will(world).await;
    }

    /// A consent that ends while its contact waits.
    async fn a_consent_that_ends_meanwhile(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        for (number, ends) in [("+15002340001", "2027-03-02T15:04:00Z"), ("+15002340011", "2027-03-02T15:06:00Z")] {
            consent(&tenant.api, number, json!({ "expires_at": ends })).await;
        }
        let later = |number: &str| json!({ "phone_number": number, "region": "FR", "not_before": "2027-03-02T15:05:00Z" });
        let path = run(&tenant, &[later("+15002340001"), later("+15002340011")], json!({})).await;
        world.advance(minutes(10)).await;
        assert_eq!(fates(&tenant, &path).await, [barred(), called()]);
        let contact = contacts(&tenant, &path).await[0].clone();
        assert_eq!(law(&eligibility(&tenant, &path, &contact).await, "fr.optin"), Some("never"));
    }

    /// The guard of the intent itself, whatever was planned.
    async fn the_guard_of_a_dial_looks_at_what_its_verdict_rests_on(world: &mut World) {
        let tenant = seller(world).await;
        let id = consent(&tenant.api, "+15002340001", json!({})).await;
        let number: E164 = "+15002340001".parse().unwrap();
        let (known, now): (ConsentId, Moment) = (id.parse().unwrap(), world.clock.now());
        let (before, after) = (now.plus_seconds(-60), now.plus_seconds(60));
        let identity = legal_identity::of(&world.deps().db.read, tenant.id).await.unwrap().unwrap();
        let caller = |right_to_use, is_answered| Some((CALLER.parse::<E164>().unwrap(), right_to_use, is_answered));
        let lawful = || Lawful {
            tenant_id: tenant.id,
            env: Env::Test,
            consent: Some((known, 1)),
            registers: None,
            answers: Vec::new(),
            rest: Some((number.clone(), None)),
            identity_version: identity.version,
            caller: caller(true, true),
            holds: (before, after),
        };
        let dial = async |attempt: Lawful| {
            let mut commit = Commit::default();
            commit.changes.guards.push(Guard::Lawful(attempt));
            world.deps().writer.commit(Of::Anybody, commit).await
        };
        dial(lawful()).await.unwrap();
        tenant.api.upload("/v1/registers/uk_tps/files?fetched_at=2027-03-02", "+15002340011\n").await.ok();
        let register = register::of_name(&world.deps().db.read, (tenant.id, Env::Test), "uk_tps").await.unwrap().unwrap();
        let looked = |names: &[&str], copies: &[(RegisterId, i32)]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Some(Arc::new(Seen { owner: (tenant.id, Env::Test), names, copies: copies.iter().copied().collect() }))
        };
        let unknown = world.deps().ids.next();
        for (what, attempt) in [
            ("another version", Lawful { consent: Some((known, 2)), ..lawful() }),
            ("a consent that is not there", Lawful { consent: Some((world.deps().ids.next(), 1)), ..lawful() }),
            ("a register that is not there", Lawful { registers: looked(&["uk_ctps"], &[(unknown, 1)]), ..lawful() }),
            ("a register that has come since", Lawful { registers: looked(&["uk_ctps", "uk_tps"], &[]), ..lawful() }),
            ("another version of a register", Lawful { registers: looked(&["uk_tps"], &[(register.id, 2)]), ..lawful() }),
            ("an answer that is not there", Lawful { answers: vec![unknown], ..lawful() }),
            ("a rest that is not there", Lawful { rest: Some((number.clone(), Some(before))), ..lawful() }),
            ("another name", Lawful { identity_version: identity.version + 1, ..lawful() }),
            ("a number that is not its own", Lawful { caller: caller(false, true), ..lawful() }),
            ("a number that nobody answers", Lawful { caller: caller(true, false), ..lawful() }),
            ("rules of tomorrow", Lawful { holds: (after, after.plus_seconds(60)), ..lawful() }),
            ("rules of yesterday", Lawful { holds: (before, now), ..lawful() }),
        ] {
            assert!(matches!(dial(attempt).await, Err(Error::Stale)), "{what}");
        }
        let registers = looked(&["uk_ctps", "uk_tps"], &[(register.id, register.version)]);
        dial(Lawful { registers, ..lawful() }).await.unwrap();
        // By the wall clock the rules are others.
        for step in [-90_000, 90_000] {
            world.clock.step_wall(step);
            assert!(matches!(dial(lawful()).await, Err(Error::Stale)), "{step} ms");
            world.clock.step_wall(-step);
        }
        dial(lawful()).await.unwrap();
        revoke(&tenant.api, &id).await;
        for version in [1, 2] {
            let attempt = Lawful { consent: Some((known, version)), ..lawful() };
            assert!(matches!(dial(attempt).await, Err(Error::Stale)), "taken back");
        }
    }
}
