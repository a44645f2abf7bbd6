//! The operator's own file: it makes rules stricter, adds some, and overrides some for a reason that is kept with each attempt.
use super::{
    attempts, called, campaign, cancel, consent, contacts, draft, eligibility, fates, file, introduce, law,
    mid_morning, person_by, proof, run, seller, start, under, untouched, with,
};
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use callboard::settings::Settings;
use entities::values::Moment;
use rules::law::{
    Law, pack,
    record::{AttemptBody, prove},
};
use serde_json::{Value, json};

const NEW_YORK: (&str, &str) = ("US-NY", "America/New_York");

/// For a state that has no rule in the pack: until it comes, whoever is there keeps the hours of the country.
const GEORGIA: &str = r#"
[[rule]]
id = "house.georgia"
title = "Georgia from 10 to 17"
places = ["US-GA"]
purposes = ["marketing"]
channels = ["phone"]
says = { kind = "windows", open = ["daily 10:00-17:00"] }
source = "house"
confidence = "high"
mend = "Wait."
"#;

fn somebody(number: &str) -> Value {
    person_by(number, NEW_YORK.0, NEW_YORK.1)
}

/// What starting with that file ends with, if not with a start.
fn refused(text: &str) -> Option<String> {
    let (_folder, path) = file(text);
    let settings = Settings::load(None, &[("dev", "true".into()), ("law_file", path)]);
    settings.err().map(|bad| bad.0)
}

fn overridden(rules: &[&str]) -> String {
    let one = |rule: &&str| {
        format!(
            "[[override]]\nrule = \"{rule}\"\nreason = \"counsel has looked at it\"\napproved_by = \"Ada Lovelace\"\n\n"
        )
    };
    rules.iter().map(one).collect()
}

#[test]
fn what_loosens_a_rule_stops_the_start_and_names_it() {
    let loosened = |id: &str, says: &str| format!("[[rule]]\nid = \"{id}\"\nsays = {{ {says} }}\n");
    for (text, parts) in [
        (loosened("us.cap.day", "most = 4"), ["us.cap.day", "says"]),
        (
            loosened("fr.hours", "open = [\"mon-fri 10:00-20:00\"]"),
            ["fr.hours", "says"],
        ),
        (
            loosened("gb.consent.voice", "automated_voice = false"),
            ["gb.consent.voice", "says"],
        ),
        (overridden(&["everywhere.floor"]), ["everywhere.floor", "rule"]),
        (overridden(&["eu.disclosure"]), ["eu.disclosure", "rule"]),
        (overridden(&["eu.disclosure.cloned"]), ["eu.disclosure.cloned", "rule"]),
        (overridden(&["everywhere.no_such"]), ["everywhere.no_such", "rule"]),
        (
            "[[override]]\nrule = \"us.cap.day\"\nreason = \"why not\"\napproved_by = \"me\"\n".to_owned(),
            ["us.cap.day", "reason"],
        ),
        (
            "[[rule]]\nid = \"us.cap.day\"\nsays = 7\n".to_owned(),
            ["us.cap.day", "law.toml"],
        ),
        ("[[rules]]\nid = \"us.cap.day\"\n".to_owned(), ["law.toml", "rules"]),
    ] {
        let words = refused(&text).unwrap_or_else(|| panic!("taken: {text}"));
        assert!(parts.iter().all(|part| words.contains(part)), "{words}: {text}");
        assert!(words.starts_with("law_file: "), "{words}");
    }
    assert_eq!(refused(&loosened("us.cap.day", "most = 2")), None);
    let gone = Settings::load(
        None,
        &[("dev", "true".into()), ("law_file", "/nowhere/law.toml".into())],
    );
    assert!(gone.err().unwrap().0.contains("/nowhere/law.toml"));
}

on_both! {
    /// An hour at noon, and once a day.
    async fn what_is_stricter_holds(world: &mut World) {
        let text = "[[rule]]\nid = \"us.hours.default\"\nsays = { open = [\"mon-fri 12:00-13:00\"] }\n\n[[rule]]\nid = \"us.cap.day\"\nsays = { most = 1 }\n";
        let _file = under(world, text).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let more = json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 10 } });
        let path = run(&tenant, &[somebody("+15002340001")], more).await;
        world.advance(seconds(5)).await;
        assert_eq!(campaign(&tenant, &path).await["next_open_at"], "2027-03-02T17:00:00.000Z", "noon in New York");
        world.leap_to(Moment::parse("2027-03-02T17:00:00Z").unwrap()).await;
        world.advance(minutes(20)).await;
        let contact = contacts(&tenant, &path).await[0].clone();
        assert_eq!((&contact["attempts"], &contact["wait_reason"]), (&json!(1), &json!("cap")), "{contact}");
        let said = eligibility(&tenant, &path, &contact).await;
        let caps: Vec<&Value> = said["law"].as_array().unwrap().iter().filter(|asked| asked["rule"] == "us.cap.day").collect();
        assert_eq!((caps.len(), &caps[0]["verdict"]), (1, &json!("wait")), "one verdict: the stricter");
        let attempt = attempts(&tenant, &path).await[0].clone();
        let proof = proof(&tenant.api, &attempt).await;
        assert!(proof["records"][0]["record"]["operator"].as_str().is_some_and(|digest| digest.len() == 64), "{proof}");
        cancel(world, &tenant, &path).await;
    }

    /// Nobody has agreed and no register is there: who has decided so is on record, with why.
    async fn an_override_lets_through_and_is_stamped(world: &mut World) {
        let _file = under(world, &overridden(&["us.consent.voice", "us.dnc", "us.email"])).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        mid_morning(world).await;
        let path = run(&tenant, &[somebody("+15002340001")], json!({})).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [called()]);
        let contact = contacts(&tenant, &path).await[0].clone();
        let said = eligibility(&tenant, &path, &contact).await;
        assert_eq!([law(&said, "us.consent.voice"), law(&said, "us.dnc")], [Some("overridden"); 2]);
        let attempt = attempts(&tenant, &path).await[0].clone();
        assert_eq!((&attempt["is_observed"], &attempt["objections"]), (&json!(false), &json!([])), "{attempt}");
        let proof = proof(&tenant.api, &attempt).await;
        let asked: Vec<&str> = proof["rules"].as_array().unwrap().iter().map(|rule| rule["asked"].as_str().unwrap()).collect();
        for rule in ["consent:us.consent.voice:overridden", "register:us.dnc:overridden"] {
            assert!(asked.contains(&rule), "{rule}: {asked:?}");
        }
        let stamped = |rule: &str| json!({ "rule": rule, "reason": "counsel has looked at it", "approved_by": "Ada Lovelace" });
        assert_eq!(proof["records"][0]["record"]["overrides"], json!([stamped("us.consent.voice"), stamped("us.dnc")]), "those that were needed");
    }

    /// What is said and how it is recorded no rule refuses: who has decided that less is done is on record all the same, and the verdicts
    /// come out again.
    async fn an_override_of_what_is_said_is_stamped(world: &mut World) {
        let file = overridden(&["everywhere.disclosure.ai", "us.recording.all_parties", "us.email"]);
        let _folder = under(world, &file).await;
        let tenant = world.tenant().await;
        introduce(world, &tenant).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let path = run(&tenant, &[person_by("+15002340001", "US-FL", NEW_YORK.1)], json!({})).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [called()]);
        let attempt = attempts(&tenant, &path).await[0].clone();
        let proof = proof(&tenant.api, &attempt).await;
        let body: AttemptBody = serde_json::from_value(proof["records"][0]["record"].clone()).unwrap();
        let stamps: Vec<&str> = body.overrides.iter().map(|made| made.rule.as_str()).collect();
        assert_eq!(stamps, ["everywhere.disclosure.ai", "us.recording.all_parties"], "of an e-mail nothing is asked");
        assert!(body.overrides.iter().all(|made| made.approved_by == "Ada Lovelace"));
        let law = Law::read(pack(), Some(("law.toml", file.as_str()))).unwrap();
        assert_eq!(prove(&body, &law), Ok(()));
    }

    /// They were loaded before it: whoever is fresh sleeps by it, and whoever waits for a time. Their neighbours do not.
    async fn a_rule_for_a_place_that_had_none_binds_who_is_there_already(world: &mut World) {
        let tenant = seller(world).await;
        let mut people = Vec::new();
        for (number, state, more) in [
            ("+15002340001", "US-GA", json!({})),
            ("+15002340011", "US-GA", json!({ "not_before": "2027-03-02T23:20:00Z" })),
            ("+15002340021", "US-FL", json!({})),
        ] {
            consent(&tenant.api, number, json!({})).await;
            people.push(with(person_by(number, state, NEW_YORK.1), more));
        }
        let path = draft(&tenant, &people, json!({})).await;
        let _file = under(world, GEORGIA).await;
        world.leap_to(Moment::parse("2027-03-02T23:30:00Z").unwrap()).await;
        start(&tenant, &path).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [untouched(), untouched(), called()], "18:30");
        assert_eq!(campaign(&tenant, &path).await["next_open_at"], "2027-03-03T15:00:00.000Z");
        world.leap_to(Moment::parse("2027-03-03T15:00:00Z").unwrap()).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, vec![called(); 3]);
        for attempt in attempts(&tenant, &path).await {
            assert_eq!(attempt["objections"], json!([]), "{attempt}");
        }
    }
}
