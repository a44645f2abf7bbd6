//! Networks that turn calls down for the number that they show, and what is on record of it for years.
use super::{
    scenarios,
    stage::{Stage, end},
};
use crate::{
    on_the_phone,
    world::{law, phone::sipp::Scenario},
};
use serde_json::{Value, json};
use std::{fs, net::SocketAddr};

const REDRESS: &str = "v=analytics1;url=https://block.example/redress;tel=+18005550199;id=4711";

/// A call that is turned down with that status and these headers: the session, and its attempt with all rows about it.
async fn turned_down(
    stage: &Stage,
    at: SocketAddr,
    agent: &Value,
    (to, status, says): (&str, &str, &str),
) -> [Value; 2] {
    let scenario = Scenario::new(scenarios::BLOCKS, at.port());
    let mut sipp = scenario.with("status", status).with("says", says).start().await;
    let id = stage.call(agent, to, json!({})).await;
    let session = stage.ended(&id).await;
    sipp.succeeds().await;
    assert_eq!(end(&session), ("no_answer", "declined"), "{session}");
    [session, stage.api.get(&format!("/v1/compliance/attempts/{id}")).await]
}

/// What the row of the outcome says.
fn outcome(proof: &Value) -> &Value {
    let rows = proof["records"].as_array().unwrap_or_else(|| panic!("{proof:#}"));
    let found = rows.iter().find(|row| row["kind"] == "outcome");
    &found.unwrap_or_else(|| panic!("no outcome: {proof:#}"))["record"]
}

/// How the number does that was shown: calls placed, and blocked.
async fn health(stage: &Stage) -> (Value, Value) {
    let numbers = stage.api.get("/v1/numbers").await;
    let id = numbers["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{numbers}"));
    let number = stage.api.get(&format!("/v1/numbers/{id}")).await;
    let health = &number["outbound_health"];
    (health["dialed"].clone(), health["blocked"].clone())
}

on_the_phone! {
    /// 4. 603+ (ATIS-1000099) as carriers pass it on, and 608 (RFC 8688).
    async fn a_block_is_on_record_in_the_networks_words(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;

        let says = format!("Reason: SIP;cause=603;text=\"{REDRESS}\";location=LN\nP-Attestation-Indicator: A");
        let [session, proof] = turned_down(stage, at, &agent, ("+12025550101", "603 Network Blocked", says.as_str())).await;
        assert!(session["error"]["message"].as_str().is_some_and(|message| message.contains(REDRESS)), "{session}");
        let said = outcome(&proof);
        assert_eq!((&said["sip_code"], &said["sip_phrase"]), (&json!(603), &json!("Network Blocked")));
        let reason = json!({ "protocol": "SIP", "cause": 603, "location": "LN", "text": REDRESS });
        assert_eq!((&said["sip_reasons"], &said["blocked"], &said["attestation"]), (&json!([reason]), &json!(true), &json!("A")));
        assert_eq!(health(stage).await, (json!(1), json!(1)));
        // The list tells it, too.
        let listed = stage.api.get("/v1/compliance/attempts?phone_number=%2B12025550101").await;
        let listed = &listed["data"][0]["outcome"];
        assert_eq!((&listed["sip_reasons"], &listed["blocked"], &listed["attestation"]), (&json!([reason]), &json!(true), &json!("A")));

        // A gateway that writes phrases of its own passes the reason on.
        let says = "Reason: Q.850;cause=21;text=\"Network Blocked\"";
        let [_, proof] = turned_down(stage, at, &agent, ("+12025550102", "603 Decline", says)).await;
        let said = outcome(&proof);
        // How it is signed was told while it rang.
        assert_eq!((&said["blocked"], &said["q850"], &said["attestation"]), (&json!(true), &json!(21), &json!("B")));

        let says = "Call-Info: <https://block.example/complaint>;purpose=jwscard";
        let [session, proof] = turned_down(stage, at, &agent, ("+12025550103", "608 Rejected", says)).await;
        assert!(session["error"]["message"].as_str().is_some_and(|message| message.contains("https://block.example/complaint")), "{session}");
        let said = outcome(&proof);
        assert_eq!((&said["sip_code"], &said["blocked"]), (&json!(608), &json!(true)));
        assert_eq!(said["jcard_url"], "https://block.example/complaint");

        // A person's no is no block.
        let [_, proof] = turned_down(stage, at, &agent, ("+12025550104", "603 Decline", "X-Cause: none")).await;
        let said = outcome(&proof);
        assert_eq!((&said["sip_code"], &said["blocked"], &said["sip_reasons"]), (&json!(603), &Value::Null, &Value::Null));
        assert_eq!(health(stage).await, (json!(4), json!(3)));
    }

    /// One that says whom it was to call, and as much as a header holds: the record keeps the beginning, without the number, and still
    /// proves itself.
    async fn a_carrier_that_says_too_much_fills_no_row(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let long = "x".repeat(7_000);
        let says = format!(
            "Reason: SIP;cause=603;text=\"Network Blocked +12025550105 {long}\"\nReason: Q.850;cause=21;text=\"{long}\"\n\
             Reason: A{long};cause=1\nReason: B;cause=1\nReason: C;cause=1\nCall-Info: <https://block.example/{long}>;purpose=jwscard"
        );
        let [_, proof] = turned_down(stage, at, &agent, ("+12025550105", "603 Decline", says.as_str())).await;
        let said = outcome(&proof);
        let row = said.to_string();
        assert!(row.len() < 2_000 && !row.contains("2025550105"), "{row}");
        assert_eq!((&said["blocked"], said["sip_reasons"].as_array().map(Vec::len)), (&json!(true), Some(3)));
        let text = said["sip_reasons"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("Network Blocked +*********** xxx"), "{text}");
        assert_eq!(said["jcard_url"], Value::Null, "half of it leads nowhere");

        let export = stage.api.post("/v1/compliance/exports", json!({})).await;
        let path = format!("/v1/compliance/exports/{}", export["id"].as_str().unwrap());
        stage.api.until(&path, |export| export["status"] == "completed").await;
        let lines = stage.api.client.get(format!("{}{path}/files/1", stage.api.url));
        let lines = lines.bearer_auth(&stage.api.key).send().await.unwrap().text().await.unwrap();
        assert!(lines.contains("Network Blocked +***"), "{lines}");
        let file = stage.file("1.jsonl");
        fs::write(&file, lines).unwrap();
        let file = file.to_str().unwrap();
        // These rows were judged under the file that sets the law aside.
        for check in [&["verify", file][..], &["prove", file, "--law", law::set_aside()]] {
            let checked = stage.place.run(&[&["compliance"][..], check].concat());
            assert!(checked.status.success(), "{check:?}: {checked:?}");
        }
    }
}
