//! Calls about health: in California the last words are the service's, and tell where people answer.
use super::{attempts, consent, contacts, draft, person_by, proof, run, seller, start};
use crate::{
    on_both,
    scenarios::the_call,
    world::{Tenant, World, minutes},
};
use rules::digest::sha256;
use serde_json::{Value, json};

const CLOSING: &str = "This was an AI assistant. To speak with a person, call +1 2 0 2 5 5 5 0 1 7 8.";

/// What makes a campaign one about health, by an agent that hangs up when it has said one thing, or leaves that to the other side.
async fn about_health(tenant: &Tenant, hangs_up: bool) -> Value {
    let reply = json!({ "say": "Your appointment is on Monday.", "hang_up": hangs_up });
    let brain = json!({ "mode": "scripted", "replies": vec![reply; 3] });
    let agent = the_call::agent(tenant, json!({ "brain": brain })).await;
    json!({ "purpose": "service", "vertical": "health", "agent_id": agent })
}

/// Somebody who has agreed, and talks.
async fn patient(tenant: &Tenant, number: &str) -> Value {
    consent(&tenant.api, number, json!({ "purposes": ["service"] })).await;
    person_by(number, "US-CA", "America/Los_Angeles")
}

/// Who has hung up, what was said, and what is on record of what the service said for the law.
async fn outcome(tenant: &Tenant, path: &str) -> (Value, Vec<String>, Vec<Value>) {
    let contact = contacts(tenant, path).await[0].clone();
    let session = format!("/v1/sessions/{}", contact["last_session_id"].as_str().unwrap());
    let transcript = tenant.api.get(&format!("{session}/transcript.json")).await.ok();
    let ended_by = tenant.api.get(&session).await.ok()["ended_by"].clone();
    let attempt = attempts(tenant, path).await[0].clone();
    assert_eq!(attempt["objections"], json!([]), "{attempt}");
    let proof = proof(&tenant.api, &attempt).await;
    let rows = proof["records"].as_array().unwrap();
    let outcome = rows.iter().find(|row| row["kind"] == "outcome").unwrap();
    let told = outcome["record"]["disclosures"].as_array().unwrap().clone();
    (ended_by, the_call::said(&transcript["turns"]), told)
}

on_both! {
    /// Source: Cal. AB 3030: told at the start and at the end, and how a person is reached.
    async fn california_is_told_at_the_end_where_people_answer(world: &mut World) {
        let tenant = seller(world).await;
        // 10:00 in Los Angeles.
        world.leap_exactly(minutes(300)).await;
        tenant.api.patch("/v1/compliance/identity", json!({ "callback_number": null })).await.ok();
        let people = [patient(&tenant, "+15002340000").await];
        let path = draft(&tenant, &people, about_health(&tenant, true).await).await;
        let refused = tenant.api.post(&format!("{path}/start"), json!({})).await;
        assert_eq!(refused.error(), (409, "compliance_blocked", Some("us-ca.identity.health")), "{}", refused.body);
        tenant.api.patch("/v1/compliance/identity", json!({ "callback_number": "+12025550178" })).await.ok();
        start(&tenant, &path).await;
        world.advance(minutes(3)).await;

        let (ended_by, said, told) = outcome(&tenant, &path).await;
        assert_eq!(ended_by, "agent");
        let last: Vec<&str> = said.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(last, [format!("agent: {CLOSING}").as_str(), "agent: Your appointment is on Monday."], "{said:?}");
        let (opening, closing) = (&told[0], &told[told.len() - 1]);
        assert_eq!((&opening["kinds"], told.len()), (&json!(["ai", "name", "opt_out", "recording"]), 2), "{told:?}");
        assert_eq!((&closing["kinds"], &closing["text_sha256"]), (&json!(["ai", "human"]), &json!(sha256(CLOSING.as_bytes()))));
        assert_eq!(closing["is_cut_off"], Value::Null);

        // Who hangs up can be told nothing more.
        let people = [patient(&tenant, "+15002340010").await];
        let path = run(&tenant, &people, about_health(&tenant, false).await).await;
        world.advance(minutes(3)).await;
        let (ended_by, said, told) = outcome(&tenant, &path).await;
        assert_eq!((&ended_by, told.len()), (&json!("caller"), 1), "{told:?}");
        assert!(!said.iter().any(|turn| turn.contains("To speak with a person")), "{said:?}");
    }
}
