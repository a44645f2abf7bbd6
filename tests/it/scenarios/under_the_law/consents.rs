//! Nobody is sold anything by machine without a consent of theirs: for this seller, this channel and this purpose, as strong as the
//! place asks for, and neither over nor taken back.
use super::{
    attempts, barred, called, consent, contacts, draft, eligibility, fates, law, mid_morning, person, person_by, proof,
    revoke, run, seller, start,
};
use crate::{
    on_both,
    world::{World, minutes},
};
use serde_json::{Value, json};

const NEW_YORK: &str = "America/New_York";

/// Somebody, to what they have agreed, and the rule that bars a call to them.
struct Case {
    name: &'static str,
    region: &'static str,
    timezone: &'static str,
    /// What is other than in the strongest; null: nothing was given.
    consent: Value,
    barred_by: Option<&'static str>,
}

fn cases() -> Vec<Case> {
    let case = |name, (region, timezone), consent, barred_by| Case {
        name,
        region,
        timezone,
        consent,
        barred_by,
    };
    let (florida, france) = (("US-FL", NEW_YORK), ("FR", "Europe/Paris"));
    let (germany, brazil) = (("DE", "Europe/Berlin"), ("BR", "America/Sao_Paulo"));
    let voice = Some("us.consent.voice");
    vec![
        case("no consent", florida, Value::Null, voice),
        case("as it must be", florida, json!({}), None),
        case("stronger", florida, json!({ "tier": "opt_in_double" }), None),
        case(
            "the seller in other letters",
            florida,
            json!({ "seller": " ACME  ltd. " }),
            None,
        ),
        case("another seller", florida, json!({ "seller": "Other Inc." }), voice),
        case("texts only", florida, json!({ "channels": ["sms"] }), voice),
        case("not in writing", florida, json!({ "tier": "express" }), voice),
        case(
            "not by machine",
            florida,
            json!({ "covers_automated_voice": false }),
            voice,
        ),
        case("for something else", florida, json!({ "purposes": ["service"] }), voice),
        case(
            "until a minute ago",
            florida,
            json!({ "expires_at": "2027-03-02T14:59:00Z" }),
            voice,
        ),
        case(
            "a minute left",
            florida,
            json!({ "expires_at": "2027-03-02T15:03:00Z" }),
            None,
        ),
        case(
            "a contract is no consent there",
            florida,
            json!({ "tier": "existing_contract", "contract_ref": "C-1" }),
            voice,
        ),
        case("nothing in France", france, Value::Null, Some("fr.optin")),
        case("said in France", france, json!({ "tier": "express" }), Some("fr.optin")),
        case(
            "a contract in France",
            france,
            json!({ "tier": "existing_contract", "contract_ref": "C-1" }),
            None,
        ),
        case(
            "said in Germany",
            germany,
            json!({ "tier": "express" }),
            Some("de.consent"),
        ),
        case("written in Germany", germany, json!({}), None),
        case(
            "nobody has looked up Brazil",
            brazil,
            json!({}),
            Some("unknown.marketing"),
        ),
    ]
}

fn number_of(case: usize) -> String {
    format!("+15002340{case:02}1")
}

on_both! {
    /// Each is told before it happens, happens, and is on record; who is left out is told by which rule.
    async fn whoever_is_called_has_agreed_to_that(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let cases = cases();
        let mut people = Vec::new();
        for (n, case) in cases.iter().enumerate() {
            people.push(person_by(&number_of(n), case.region, case.timezone));
            if !case.consent.is_null() {
                consent(&tenant.api, &number_of(n), case.consent.clone()).await;
            }
        }
        let path = draft(&tenant, &people, json!({})).await;
        let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
        let counted = |rule: &str| {
            let counts = look["law"].as_array().unwrap();
            counts.iter().find(|count| count["rule"] == rule).map_or(0, |count| count["barred"].as_i64().unwrap())
        };
        let left_out = cases.iter().filter(|case| case.barred_by.is_some()).count();
        assert_eq!((&look["eligible"], &look["skips"]["dnc_blocked"]), (&json!(cases.len() - left_out), &json!(left_out)), "{look:#}");
        for (rule, expected) in [("us.consent.voice", 8), ("us-fl.consent", 8), ("fr.optin", 2), ("de.consent", 1), ("unknown.marketing", 1)] {
            assert_eq!(counted(rule), expected, "{rule}: {look:#}");
        }
        let mut foreseen = Vec::new();
        for (contact, case) in contacts(&tenant, &path).await.iter().zip(&cases) {
            let said = eligibility(&tenant, &path, contact).await;
            assert_eq!(said["law_binding"], true);
            let never: Vec<&str> = said["law"].as_array().unwrap().iter().filter(|asked| asked["verdict"] != "yes").map(|asked| asked["rule"].as_str().unwrap()).collect();
            match case.barred_by {
                Some(rule) => assert_eq!(law(&said, rule), Some("never"), "{}: {never:?}", case.name),
                None => assert_eq!(never, Vec::<&str>::new(), "{}", case.name),
            }
            let first = said["law"].as_array().unwrap().iter().find(|asked| asked["verdict"] == "never");
            foreseen.push(first.map_or(Value::Null, |asked| asked["rule"].clone()));
        }
        start(&tenant, &path).await;
        world.advance(minutes(2)).await;
        let fates = fates(&tenant, &path).await;
        for (fate, case) in fates.iter().zip(&cases) {
            let expected = if case.barred_by.is_some() { barred() } else { called() };
            assert_eq!(*fate, expected, "{}", case.name);
        }
        assert_eq!(foreseen[0], "us.consent.voice", "of the two that bar it, the first");
        let skipped_by: Vec<Value> = contacts(&tenant, &path).await.iter().map(|contact| contact["skip_rule"].clone()).collect();
        assert_eq!(skipped_by, foreseen);
        let report = tenant.api.get(&format!("{path}/report.csv")).await.ok();
        let mut lines = csv::Reader::from_reader(report.as_str().unwrap().as_bytes());
        let column = lines.headers().unwrap().iter().position(|name| name == "skip_rule").unwrap();
        let reported: Vec<String> = lines.records().map(|line| line.unwrap()[column].to_owned()).collect();
        let expected: Vec<&str> = foreseen.iter().map(|rule| rule.as_str().unwrap_or_default()).collect();
        assert_eq!(reported, expected);
        let on_record = attempts(&tenant, &path).await;
        assert_eq!(on_record.len(), cases.len() - left_out);
        for attempt in &on_record {
            assert_eq!((&attempt["is_observed"], &attempt["objections"], &attempt["seller"]), (&json!(false), &json!([]), &json!("Acme Ltd.")), "{attempt}");
            let proof = proof(&tenant.api, attempt).await;
            assert!(proof["records"][0]["record"]["facts"]["consent"]["id"].is_string(), "it names the consent: {proof}");
        }
    }

    /// As the sandbox did before there was a law: told, kept, and nobody barred.
    async fn who_only_observes_calls_all_the_same(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let path = draft(&tenant, &[person("+15002340001", "FR")], json!({ "sandbox_law": "observe" })).await;
        let contact = contacts(&tenant, &path).await[0].clone();
        let said = eligibility(&tenant, &path, &contact).await;
        assert_eq!((&said["law_binding"], law(&said, "fr.optin")), (&json!(false), Some("never")));
        assert!(said["rules"].as_array().unwrap().iter().all(|rule| rule["verdict"] == "yes"), "{said:#}");
        let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
        assert_eq!((&look["eligible"], &look["skips"]["dnc_blocked"]), (&json!(1), &json!(0)));
        assert!(look["law"].as_array().unwrap().iter().any(|count| count["rule"] == "fr.optin" && count["barred"] == 1), "{look:#}");
        start(&tenant, &path).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [called()]);
        let attempt = attempts(&tenant, &path).await[0].clone();
        assert_eq!((&attempt["is_observed"], &attempt["places"]), (&json!(true), &json!(["FR"])));
        assert!(attempt["objections"].as_array().unwrap().contains(&json!("consent:fr.optin:never")), "{attempt}");
    }

    /// Without a word of where somebody is, the strictest of all places hold.
    async fn who_is_nowhere_is_not_sold_anything(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        consent(&tenant.api, "+15002340001", json!({})).await;
        let path = run(&tenant, &[json!({ "phone_number": "+15002340001" })], json!({})).await;
        world.advance(minutes(1)).await;
        assert_eq!(fates(&tenant, &path).await, [barred()]);
        let contact = contacts(&tenant, &path).await[0].clone();
        assert_eq!(law(&eligibility(&tenant, &path, &contact).await, "unknown.marketing"), Some("never"));
    }

    /// What was taken back before the start, and what is named for the call.
    async fn only_what_stands_and_is_meant_counts(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let api = &tenant.api;
        let taken_back = consent(api, "+15002340001", json!({})).await;
        revoke(api, &taken_back).await;
        consent(api, "+15002340011", json!({})).await;
        let weak = consent(api, "+15002340011", json!({ "tier": "express" })).await;
        let mut named = person("+15002340011", "FR");
        named["consent_id"] = weak.into();
        // The stronger one is none for France, and the contract is.
        consent(api, "+15002340021", json!({ "tier": "express" })).await;
        consent(api, "+15002340021", json!({ "tier": "existing_contract", "contract_ref": "C-1" })).await;
        let people = [person("+15002340001", "FR"), named, person("+15002340021", "FR"), person("+15002340011", "FR")];
        let path = run(&tenant, &people[..3], json!({})).await;
        let unnamed = run(&tenant, &people[3..], json!({})).await;
        world.advance(minutes(2)).await;
        assert_eq!(fates(&tenant, &path).await, [barred(), barred(), called()]);
        assert_eq!(fates(&tenant, &unnamed).await, [called()], "the strongest, where none is named");
    }

    /// What names a contract rests on no other.
    async fn a_contract_is_good_for_what_fulfils_it(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        for n in 0..2 {
            consent(&tenant.api, &number_of(n), json!({ "tier": "existing_contract", "contract_ref": "C-1" })).await;
        }
        let its_own = run(&tenant, &[person(&number_of(0), "FR")], json!({ "contract_ref": "C-1" })).await;
        let another = run(&tenant, &[person(&number_of(1), "FR")], json!({ "contract_ref": "C-2" })).await;
        world.advance(minutes(2)).await;
        assert_eq!((fates(&tenant, &its_own).await, fates(&tenant, &another).await), (vec![called()], vec![barred()]));
        let attempt = proof(&tenant.api, &attempts(&tenant, &its_own).await[0]).await;
        let facts = &attempt["records"][0]["record"]["facts"];
        assert_eq!((&facts["contract_ref"], &facts["consent"]["contract_ref"]), (&json!("C-1"), &json!("C-1")), "{facts:#}");
        let call = json!({
            "to_number": number_of(1), "agent_id": tenant.agent().await, "sandbox_law": "enforce", "contract_ref": "C-2",
            "contact": { "region": "FR" },
        });
        let refused = tenant.api.post("/v1/sessions", call).await;
        assert_eq!(refused.error(), (409, "compliance_blocked", Some("fr.optin")), "{}", refused.body);
    }

    /// One call by the API, with a test key that asks for the law.
    async fn a_single_call_is_refused_with_the_rule(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let call = json!({
            "to_number": "+15002340001", "agent_id": tenant.agent().await, "sandbox_law": "enforce",
            "contact": { "region": "US-FL", "timezone": NEW_YORK },
        });
        let refused = tenant.api.post("/v1/sessions", call.clone()).await;
        assert_eq!(refused.error(), (409, "compliance_blocked", Some("us.consent.voice")), "{}", refused.body);
        let id = consent(&tenant.api, "+15002340001", json!({})).await;
        let made = tenant.api.post("/v1/sessions", call.clone()).await.ok();
        world.advance(minutes(1)).await;
        let row = tenant.api.get(&format!("/v1/sessions/{}", made["id"].as_str().unwrap())).await.ok();
        assert_eq!(row["status"], "busy", "{row}");
        let attempt = proof(&tenant.api, &made).await;
        assert_eq!(attempt["records"][0]["record"]["facts"]["consent"]["id"], json!(id));
        // And it is kept from then on: its last use is on record.
        let used = tenant.api.get(&format!("/v1/consents/{id}")).await.ok();
        assert_eq!(used["last_used_at"], attempt["attempt"]["recorded_at"], "{used:#}");
        // What is on the list is told first, as ever.
        tenant.api.post("/v1/dnc", json!({ "phone_number": "+15002340001" })).await.ok();
        assert_eq!(tenant.api.post("/v1/sessions", call).await.error(), (409, "recipient_on_dnc", Some("to_number")));
    }

    /// A trunk without room sends calls back: they are judged once more as what they are, where the person is.
    async fn a_call_that_was_sent_back_is_judged_as_before(world: &mut World) {
        world.change_setting("sandbox_calls_per_second", 2.into()).await;
        let tenant = seller(world).await;
        mid_morning(world).await;
        let mut people = Vec::new();
        for n in 0..12 {
            consent(&tenant.api, &number_of(n), json!({})).await;
            people.push(person(&number_of(n), "FR"));
        }
        let path = run(&tenant, &people, json!({ "pacing": { "calls_per_second": 20 } })).await;
        world.advance(minutes(3)).await;
        assert_eq!(fates(&tenant, &path).await, vec![called(); 12]);
        let on_record = attempts(&tenant, &path).await;
        assert!(on_record.iter().any(|attempt| attempt["dial_n"] != 1), "some were asked twice");
        for attempt in on_record {
            assert_eq!((&attempt["places"], &attempt["objections"]), (&json!(["FR"]), &json!([])), "{attempt}");
        }
    }
}
