//! Registers that are asked about each number over an API: nobody is reached before theirs has answered, and what it has answered has the
//! age that rules allow. Live, by text: with a test key nobody outside is asked.
use super::{
    attempts, barred, called, campaign, consent, contacts, eligibility, fates, file, introduce, law, mid_morning,
    person, proof, reached, run, seller, text, texted, untouched,
};
use crate::{
    on_both,
    scenarios::messages::{self, with_provider},
    world::{
        Api, Tenant, World, minutes,
        register_server::{self, Fault, RegisterServer},
        seconds,
        twilio::Twilio,
    },
};
use entities::{ids::RegisterId, register::answer, values::Moment};
use rules::law::record::{AttemptBody, prove};
use serde_json::{Value, json};

const CLEAR: &str = "+12025550121";
const LISTED: &str = "+12025550122";
const OTHER: &str = "+12025550123";
/// Two, of whom the register of India knows one to have agreed.
const AGREED: &str = "+919876543210";
const UNKNOWN: &str = "+919876543211";
/// An hour before the clocks begin.
const THIS_MORNING: &str = "2027-03-02T12:00:00Z";

/// Of the operator's own. `ours` is as fresh as two days.
const HOUSE: &str = r#"
[[rule]]
id = "house.list"
title = "Whom our list has is not written to"
places = ["US"]
purposes = ["marketing"]
channels = ["sms"]
says = { kind = "register", name = "ours", max_age_days = 2, listed = "barred" }
source = "house"
confidence = "high"
mend = "The operator must see to it that the list answers."
"#;

fn about(name: &str, numbers: &[&str]) -> Vec<(String, String)> {
    numbers
        .iter()
        .map(|number| (name.to_owned(), (*number).to_owned()))
        .collect()
}

/// The service with that register behind an API, under a file of rules; empty: the rules as they come with it.
async fn asks(world: &mut World, name: &str, server: &RegisterServer, law_file: &str) {
    let settings = [
        ("register_urls", json!(format!("{name}={}", server.url))),
        ("register_api_keys", json!(format!("{name}={}", register_server::KEY))),
        ("law_file", json!(law_file)),
    ];
    world.change_settings(&settings).await;
}

/// The same with a workspace that texts with a live key, and consents of these people.
async fn texting(world: &mut World, provider: &Twilio, numbers: &[&str]) -> Tenant {
    let tenant = world.tenant().await;
    let api: Api = with_provider(world, &tenant, provider).await;
    introduce(world, &tenant).await;
    let tenant = Tenant { api, ..tenant };
    for number in numbers {
        consent(&tenant.api, number, json!({})).await;
    }
    tenant
}

/// The law's record of the campaign's attempt at that number.
async fn recorded(tenant: &Tenant, path: &str, number: &str) -> Value {
    let on_record = attempts(tenant, path).await;
    let attempt = on_record
        .iter()
        .find(|attempt| attempt["phone_number"] == number)
        .unwrap();
    proof(&tenant.api, attempt).await["records"][0]["record"].clone()
}

on_both! {
    async fn nobody_is_reached_before_the_register_has_answered(world: &mut World) {
        let (provider, server) = (Twilio::start().await, RegisterServer::start(THIS_MORNING));
        let (_folder, law_file) = file(HOUSE);
        asks(world, "ours", &server, &law_file).await;
        let tenant = texting(world, &provider, &[CLEAR, LISTED]).await;
        mid_morning(world).await;
        server.lists(LISTED);
        // It is out of order at first, for some minutes.
        server.fails([Fault::Down, Fault::Garbage, Fault::Swapped, Fault::Endless]);
        let path = text(&tenant, &[CLEAR, LISTED]).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched(), untouched()]);
        let row = campaign(&tenant, &path).await;
        assert_eq!((&row["status"], &row["blocked_by"]), (&json!("running"), &json!(["register"])), "{row}");
        let waits = contacts(&tenant, &path).await[0].clone();
        assert_eq!(law(&eligibility(&tenant, &path, &waits).await, "house.list"), Some("wait"));
        assert_eq!((reached(&provider), server.take_asked()), (vec![], vec![]));

        // Then it answers, and both are settled by themselves.
        world.advance(minutes(20)).await;
        assert_eq!(fates(&tenant, &path).await, [texted(), barred()]);
        assert_eq!(campaign(&tenant, &path).await["blocked_by"], json!([]));
        assert_eq!(contacts(&tenant, &path).await[1]["skip_rule"], "house.list");
        assert_eq!((reached(&provider), server.take_asked()), (vec![CLEAR.to_owned()], about("ours", &[CLEAR, LISTED])));

        // The record names the answer, and the same comes out of it again; of another answer it would not.
        let record = recorded(&tenant, &path, CLEAR).await;
        let found = &record["facts"]["registers"][0];
        assert_eq!((&found["name"], &found["is_listed"], &found["fetched_at"]), (&json!("ours"), &json!(false), &json!("2027-03-02T12:00:00.000Z")), "{record:#}");
        assert!(found["asked_at"].is_string(), "{record:#}");
        assert_eq!(record["facts"]["asked_registers"], json!(["ours"]));
        assert_eq!(tenant.api.get("/v1/registers").await.ok(), json!({ "data": [], "has_more": false, "next_cursor": null, "asked_over_api": ["ours"] }));
        let body: AttemptBody = serde_json::from_value(record.clone()).unwrap();
        prove(&body, &world.deps().law).unwrap();
        for (field, value) in [("is_listed", json!(true)), ("asked_at", Value::Null), ("fetched_at", json!("2027-02-27T12:00:00.000Z"))] {
            let mut other = record.clone();
            other["facts"]["registers"][0][field] = value;
            let other: AttemptBody = serde_json::from_value(other).unwrap();
            assert!(prove(&other, &world.deps().law).is_err(), "{field}");
        }

        // What is known outlives the process, but not the person.
        world.restart().await;
        let again = text(&tenant, &[CLEAR]).await;
        world.advance(minutes(1)).await;
        assert_eq!((fates(&tenant, &again).await, server.take_asked()), (vec![texted()], vec![]));
        assert_eq!(world.rows("register_answers").await, 2);
        tenant.api.delete("/v1/people?phone_number=%2B12025550122").await.ok();
        world.advance(minutes(1)).await;
        assert_eq!(world.rows("register_answers").await, 1);
    }

    /// What it says holds as of some time, and is too old two days later.
    async fn an_answer_that_is_too_old_is_asked_for_again(world: &mut World) {
        let (provider, server) = (Twilio::start().await, RegisterServer::start(THIS_MORNING));
        let (_folder, law_file) = file(HOUSE);
        asks(world, "ours", &server, &law_file).await;
        let tenant = texting(world, &provider, &[CLEAR, OTHER]).await;
        mid_morning(world).await;
        let first = text(&tenant, &[CLEAR, OTHER]).await;
        world.advance(minutes(1)).await;
        assert_eq!((fates(&tenant, &first).await, server.take_asked()), (vec![texted(), texted()], about("ours", &[CLEAR, OTHER])));
        let id: RegisterId = recorded(&tenant, &first, CLEAR).await["facts"]["registers"][0]["id"].as_str().unwrap().parse().unwrap();
        let is_newest = async |world: &World| answer::are_newest(&world.deps().db.read, &[id, id]).await.unwrap();
        assert!(is_newest(world).await);

        let leap = async |world: &World, to: &str| world.leap_to(Moment::parse(to).unwrap()).await;
        leap(world, "2027-03-03T15:00:00Z").await;
        let second = text(&tenant, &[CLEAR, OTHER]).await;
        world.advance(minutes(1)).await;
        assert_eq!((fates(&tenant, &second).await, server.take_asked()), (vec![texted(), texted()], vec![]), "fresh");

        // It has no newer edition of itself: that is asked for once, and in an hour again.
        leap(world, "2027-03-04T15:00:00Z").await;
        let third = text(&tenant, &[CLEAR, OTHER]).await;
        world.advance(minutes(30)).await;
        assert_eq!((fates(&tenant, &third).await, server.take_asked()), (vec![untouched(), untouched()], about("ours", &[CLEAR, OTHER])));
        assert_eq!(campaign(&tenant, &third).await["blocked_by"], json!(["register"]));
        assert!(!is_newest(world).await, "no dial rests on what was answered before");
        server.is_as_of("2027-03-04T15:30:00Z");
        server.lists(OTHER);
        world.advance(minutes(40)).await;
        assert_eq!((fates(&tenant, &third).await, server.take_asked()), (vec![texted(), barred()], about("ours", &[CLEAR, OTHER])));
    }

    /// Each look-up may be paid for: what the database did not take is written down later, and not asked for again.
    async fn an_answer_that_could_not_be_written_down_is_asked_for_once(world: &mut World) {
        let (provider, server) = (Twilio::start().await, RegisterServer::start(THIS_MORNING));
        let (_folder, law_file) = file(HOUSE);
        asks(world, "ours", &server, &law_file).await;
        let tenant = texting(world, &provider, &[CLEAR]).await;
        mid_morning(world).await;
        server.hold();
        let waits = messages::text(&tenant.api, CLEAR, json!({})).await;
        server.arrived(1).await;
        // One for the answer, and one for the text that notes what it waits for, if it has not by now.
        world.fail_next_commits(2);
        server.release();
        world.settle().await;
        assert_eq!((world.rows("register_answers").await, reached(&provider)), (0, vec![]));
        world.advance(minutes(10)).await;
        assert_eq!((messages::status(&tenant.api, &waits).await.as_str(), reached(&provider)), ("sent", vec![CLEAR.to_owned()]));
        assert_eq!(server.take_asked(), about("ours", &[CLEAR]));
        assert_eq!(world.rows("register_answers").await, 1);
    }

    /// A file beside the API makes it stricter, and takes its place for nobody.
    async fn a_file_clears_nobody_of_whom_the_register_itself_has_said_nothing(world: &mut World) {
        let (provider, server) = (Twilio::start().await, RegisterServer::start(THIS_MORNING));
        let (_folder, law_file) = file(HOUSE);
        asks(world, "ours", &server, &law_file).await;
        let tenant = texting(world, &provider, &[CLEAR, OTHER]).await;
        mid_morning(world).await;
        tenant.api.upload("/v1/registers/ours/files?fetched_at=2027-03-02", format!("{OTHER}\n")).await.ok();
        server.fails([Fault::Down; 3]);
        let path = text(&tenant, &[CLEAR, OTHER]).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched(), untouched()]);
        world.advance(minutes(15)).await;
        assert_eq!(fates(&tenant, &path).await, [texted(), barred()]);
        for (number, expected) in [("%2B12025550121", "yes"), ("%2B12025550123", "never")] {
            let said = tenant.api.get(&format!("/v1/compliance/check?to={number}&channel=sms")).await.ok();
            let asked = said["rules"].as_array().unwrap().iter().find(|asked| asked["rule"] == "house.list").unwrap();
            assert_eq!(asked["verdict"], expected, "{said:#}");
        }
    }

    /// Of India only those are reached whom its register knows.
    async fn a_register_of_those_who_have_agreed(world: &mut World) {
        let (provider, server) = (Twilio::start().await, RegisterServer::start(THIS_MORNING));
        asks(world, "in_dlt", &server, "").await;
        let tenant = texting(world, &provider, &[AGREED, UNKNOWN]).await;
        server.lists(AGREED);
        let path = text(&tenant, &[AGREED, UNKNOWN]).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [texted(), barred()]);
        assert_eq!((reached(&provider), server.take_asked()), (vec![AGREED.to_owned()], about("in_dlt", &[AGREED, UNKNOWN])));
    }

    /// The sandbox has files as everywhere, and costs nothing.
    async fn with_test_keys_no_register_is_asked(world: &mut World) {
        let server = RegisterServer::start(THIS_MORNING);
        asks(world, "uk_tps", &server, "").await;
        let tenant = seller(world).await;
        mid_morning(world).await;
        let given = json!({ "tier": "existing_contract", "contract_ref": "C-1", "purposes": ["service"] });
        consent(&tenant.api, "+15002340001", given).await;
        let path = run(&tenant, &[person("+15002340001", "GB")], json!({ "purpose": "service" })).await;
        world.advance(seconds(40)).await;
        assert_eq!((fates(&tenant, &path).await, server.take_asked()), (vec![untouched()], vec![]));
        assert_eq!(tenant.api.get("/v1/registers").await.ok()["asked_over_api"], json!([]));
        tenant.api.upload("/v1/registers/uk_tps/files?fetched_at=2027-03-02", "+15002340011\n").await.ok();
        world.advance(minutes(2)).await;
        assert_eq!((fates(&tenant, &path).await, server.take_asked()), (vec![called()], vec![]));
    }
}
