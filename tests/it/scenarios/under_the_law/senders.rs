//! Who writes, in the text of an SMS: where the law of a place wants that, whoever has written the text.
use super::{SELLER, consent, contacts, fates, introduce, mid_morning, person, proof, run, seller, with};
use crate::{
    on_both,
    scenarios::messages::{PERSON, live, sms, text, with_provider},
    world::{World, seconds, twilio::Twilio},
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
}
