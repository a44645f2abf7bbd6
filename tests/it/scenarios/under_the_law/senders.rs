//! Who writes, in the text of an SMS: where the law of a place wants that, whoever has written the text.
use super::{SELLER, consent, contacts, draft, fates, introduce, mid_morning, person, proof, run, seller, start, with};
use crate::{
    on_both,
    scenarios::messages::{PERSON, live, sms, text, with_provider},
    world::{Tenant, World, seconds, twilio::Twilio},
};
use rules::law::record::chain::digest;
use serde_json::{Value, json};

const BODY: &str = "Spring sale today.";
const WHOLE: &str = "Spring sale today.\nAcme Ltd., 1 Main Street, Springfield";

/// One SMS of the sandbox in which the law binds, to somebody there.
fn order(number: &str, region: &str, more: Value) -> Value {
    let asked = json!({ "to_number": number, "body": BODY, "region": region, "sandbox_law": "enforce" });
    with(asked, more)
}

/// The texts of a campaign.
async fn sent(tenant: &Tenant, path: &str) -> Vec<Value> {
    let all = tenant.api.get("/v1/sms_messages?limit=100").await.ok();
    let is_its_own = |row: &&Value| row["campaign_id"].as_str().is_some_and(|id| path.ends_with(id));
    all["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_its_own)
        .cloned()
        .collect()
}

on_both! {
    /// Source: CASL s. 6(2), Spam Act 2003 s. 17. What is added is charged.
    async fn a_text_that_sells_says_who_writes(world: &mut World) {
        world.change_setting("sms_price_cents_per_segment", json!(3)).await;
        let tenant = seller(world).await;
        let number = "+15002340010";
        consent(&tenant.api, number, json!({ "purposes": ["marketing", "service"] })).await;
        let long = "x".repeat(150);
        for (region, more, expected, segments) in [
            ("CA-ON", json!({}), WHOLE.to_owned(), 1),
            ("AU", json!({}), format!("{BODY}\n{SELLER}"), 1),
            ("CA-ON", json!({ "body": format!("{SELLER} {BODY}") }), format!("{SELLER} {BODY}\n1 Main Street, Springfield"), 1),
            ("CA-ON", json!({ "body": WHOLE }), WHOLE.to_owned(), 1),
            ("CA-ON", json!({ "body": long }), format!("{long}\n{SELLER}, 1 Main Street, Springfield"), 2),
            ("CA-ON", json!({ "purpose": "service" }), BODY.to_owned(), 1),
            // It is only observed.
            ("CA-ON", json!({ "sandbox_law": "observe" }), BODY.to_owned(), 1),
            ("FR", json!({}), BODY.to_owned(), 1),
        ] {
            let made = tenant.api.post("/v1/sms_messages", order(number, region, more.clone())).await;
            assert_eq!(made.status.as_u16(), 202, "{region} {more}: {}", made.body);
            let row = &made.body;
            assert_eq!(row["body"], expected, "{region} {more}");
            assert_eq!((&row["segments"], &row["price_cents"]), (&json!(segments), &json!(3 * segments)), "{region} {more}");
        }
        world.advance(seconds(30)).await;
        let cost = tenant.api.get("/v1/sms_messages?limit=100").await.ok();
        let cents: i64 = cost["data"].as_array().unwrap().iter().map(|row| row["actual_cost_cents"].as_i64().unwrap()).sum();
        assert_eq!(cents, 3 * 9);
    }

    async fn a_text_that_has_no_room_for_it_is_refused(world: &mut World) {
        let tenant = seller(world).await;
        let number = "+15002340010";
        consent(&tenant.api, number, json!({})).await;
        // A line feed, and 37 characters of name and address.
        let longest = "x".repeat(1_600 - 38);
        let refused = tenant.api.post("/v1/sms_messages", order(number, "CA-ON", json!({ "body": format!("{longest}x") }))).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("body")), "{}", refused.body);
        let words = refused.body.to_string();
        assert!(words.contains("1601 characters") && words.contains("ca.identity.messages"), "{words}");
        let taken = tenant.api.post("/v1/sms_messages", order(number, "CA-ON", json!({ "body": longest }))).await;
        assert_eq!(taken.status.as_u16(), 202, "{}", taken.body);
        world.advance(seconds(30)).await;
    }

    async fn the_provider_gets_it_and_so_does_the_record(world: &mut World) {
        let (tenant, provider) = (world.tenant().await, Twilio::start().await);
        with_provider(world, &tenant, &provider).await;
        world.under_the_law().await;
        introduce(world, &tenant).await;
        let api = live(world, &tenant).await;
        consent(&api, PERSON, json!({})).await;
        let id = text(&api, PERSON, json!({ "body": BODY, "region": "CA-ON" })).await;
        world.settle().await;
        assert_eq!((provider.asked().len(), provider.asked()[0].fields["Body"].as_str()), (1, WHOLE));
        assert_eq!(sms(&api, &id).await["body"], WHOLE);
        let on_record = proof(&api, &json!({ "id": id })).await;
        let opening = &on_record["records"][0];
        let salt = opening["personal"]["salt"].as_str().unwrap();
        assert_eq!(opening["record"]["text_sha256"], digest(&format!("{salt}\n{}", digest(WHOLE))), "{on_record:#}");
    }

    /// Of one campaign each hears what the law of the own place wants; who cannot be written to with it is skipped, by its rule.
    async fn a_campaign_signs_where_it_has_to(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let people = [person("+15002340010", "CA-ON"), person("+15002340020", "FR"), person("+15002340030", "AU")];
        for number in ["+15002340010", "+15002340020", "+15002340030"] {
            consent(&tenant.api, number, json!({})).await;
        }
        let path = run(&tenant, &people, json!({ "channel": "sms", "template": { "body": BODY } })).await;
        world.advance(seconds(30)).await;
        let arrived = ("completed".to_owned(), "-".to_owned(), 1);
        assert_eq!(fates(&tenant, &path).await, vec![arrived.clone(); 3]);
        let sent = tenant.api.get("/v1/sms_messages?limit=100").await.ok();
        let sent = sent["data"].as_array().unwrap();
        for (number, body) in [("+15002340010", WHOLE.to_owned()), ("+15002340020", BODY.to_owned()), ("+15002340030", format!("{BODY}\n{SELLER}"))] {
            let row = sent.iter().find(|row| row["to_number"] == number).unwrap();
            assert_eq!(row["body"], body, "{number}");
        }

        let long = "x".repeat(1_590);
        let path = run(&tenant, &people, json!({ "channel": "sms", "template": { "body": long } })).await;
        world.advance(seconds(30)).await;
        let skipped = ("skipped".to_owned(), "invalid".to_owned(), 0);
        assert_eq!(fates(&tenant, &path).await, [skipped, arrived.clone(), arrived]);
        assert_eq!(contacts(&tenant, &path).await[0]["skip_rule"], "ca.identity.messages");
    }

    /// Segments and cost of a list, each text with the line of its own place; and who cannot be written to with it.
    async fn what_a_campaign_writes_was_foreseen(world: &mut World) {
        world.change_setting("sms_price_cents_per_segment", json!(3)).await;
        let tenant = seller(world).await;
        mid_morning(world).await;
        let people = [
            person("+15002340010", "CA-ON"),
            person("+15002340020", "FR"),
            person("+15002340030", "AU"),
            // Not in the GSM alphabet.
            with(person("+15002340040", "CA-ON"), json!({ "first_name": "Żółw" })),
        ];
        for number in ["+15002340010", "+15002340020", "+15002340030", "+15002340040"] {
            consent(&tenant.api, number, json!({})).await;
        }
        let (short, long) = (format!("{} {{{{first_name|you}}}}", "x".repeat(130)), "x".repeat(1_590));
        // 134 characters, with 38 of name and address in Canada and 10 of the name in Australia; 173 with the longer name.
        let of_short = json!({
            "messages": 4, "segments": 2 + 1 + 1 + 3, "cost_cents": 21, "most_segments": 3, "ucs2": 1, "signed": 3, "signed_characters": 38,
        });
        // In Canada there is no room.
        let of_long = json!({
            "messages": 2, "segments": 22, "cost_cents": 66, "most_segments": 11, "ucs2": 0, "signed": 1, "signed_characters": 10,
        });
        for (body, expected, eligible) in [(short, of_short, 4), (long, of_long, 2)] {
            let path = draft(&tenant, &people, json!({ "channel": "sms", "template": { "body": body } })).await;
            let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
            assert_eq!(look["texts"], expected, "{look:#}");
            assert_eq!((&look["eligible"], &look["skips"]["invalid"]), (&json!(eligible), &json!(4 - eligible)), "{look:#}");
            let rules = look["law"].as_array().unwrap().iter();
            let barred: i64 = rules.filter(|rule| rule["rule"] == "ca.identity.messages").map(|rule| rule["barred"].as_i64().unwrap()).sum();
            assert_eq!(barred, 4 - eligible, "{look:#}");

            start(&tenant, &path).await;
            world.advance(seconds(30)).await;
            let sent = sent(&tenant, &path).await;
            let all = |field: &str| sent.iter().map(|row| row[field].as_i64().unwrap()).sum::<i64>();
            assert_eq!((json!(sent.len()), json!(all("segments")), json!(all("actual_cost_cents"))),
                (expected["messages"].clone(), expected["segments"].clone(), expected["cost_cents"].clone()));
        }
    }

    /// Whoever's own variables make no SMS of it is skipped, whatever the law says.
    async fn who_cannot_be_written_to_was_foreseen(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let of_variables = |number: &str, variables: Value| with(person(number, "FR"), json!({ "variables": variables }));
        let people = [
            of_variables("+15002340010", json!({ "note": "Spring sale." })),
            of_variables("+15002340020", json!({ "note": "x".repeat(1_601) })),
            of_variables("+15002340030", json!({})),
        ];
        for number in ["+15002340010", "+15002340020", "+15002340030"] {
            consent(&tenant.api, number, json!({})).await;
        }
        let path = draft(&tenant, &people, json!({ "channel": "sms", "template": { "body": "{{note|}}" } })).await;
        let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
        assert_eq!((&look["eligible"], &look["skips"]["invalid"], &look["texts"]["messages"]), (&json!(1), &json!(2), &json!(1)), "{look:#}");

        start(&tenant, &path).await;
        world.advance(seconds(30)).await;
        let skipped = ("skipped".to_owned(), "invalid".to_owned(), 0);
        let arrived = ("completed".to_owned(), "-".to_owned(), 1);
        assert_eq!(fates(&tenant, &path).await, [arrived, skipped.clone(), skipped]);
    }
}
