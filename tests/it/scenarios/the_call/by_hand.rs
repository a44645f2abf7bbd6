//! A live call, handled by hand: listened to, told what to say, handed over, labelled, deleted.
use super::{agent, call, said, session, told};
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};

/// A person who says one thing and then waits.
fn patient() -> Value {
    json!({ "sandbox": { "script": [{ "say": "Hello." }, { "silence_seconds": 100 }, { "say": "Bye." }] } })
}

async fn patient_agent(tenant: &crate::world::Tenant) -> String {
    let replies = json!([{ "say": "One." }, { "say": "Two." }, { "say": "Three." }]);
    agent(
        tenant,
        json!({ "silence": { "hangup_after_seconds": 120 }, "brain": { "mode": "scripted", "replies": replies } }),
    )
    .await
}

on_both! {
    async fn a_script_says_what_the_other_side_does(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = patient_agent(&tenant).await;
        let script = json!({ "sandbox": { "script": [{ "interrupt": "Wait, who is this?" }, { "press": "42#" }, { "hang_up": true }] } });
        let id = call(&tenant, &agent, "+15002345601", script).await;
        world.advance(minutes(2)).await;
        let row = session(&tenant, &id).await;
        assert_eq!((row["status"].as_str(), row["ended_by"].as_str()), (Some("completed"), Some("caller")), "the script counts, not the digit");
        let transcript = tenant.api.get(&format!("/v1/sessions/{id}/transcript.json")).await.ok();
        let lines = said(&transcript["turns"]);
        assert_eq!(lines[0], "agent: Hello! How", "cut in after two fifths: {lines:?}");
        assert_eq!(lines[1], "user: Wait, who is this?");
        let timeline = tenant.api.get(&format!("/v1/sessions/{id}/timeline")).await.ok();
        let kinds: Vec<&str> = timeline["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["created", "dialed", "answered", "keys_pressed", "ended"]);
        let too_long = json!({ "to_number": "+15002345600", "agent_id": agent, "sandbox": { "script": vec![json!({ "say": "x" }); 101] } });
        assert_eq!(tenant.api.post("/v1/sessions", too_long).await.error(), (422, "validation_failed", Some("sandbox.script")));
    }

    async fn a_live_call_is_told_what_to_say_and_handed_over(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = patient_agent(&tenant).await;
        let id = call(&tenant, &agent, "+15002345600", patient()).await;
        let path = format!("/v1/sessions/{id}");
        let api = &tenant.api;
        assert_eq!(api.post(&format!("{path}/say"), json!({ "text": "Hi." })).await.error(), (409, "invalid_state", None));
        world.advance(seconds(10)).await;
        let told_so = api.post(&format!("{path}/say"), json!({ "text": "By the way, we have a new office." })).await;
        assert_eq!(told_so.status, 202);
        world.advance(seconds(5)).await;
        assert_eq!(api.post(&format!("{path}/dtmf"), json!({ "digits": "12x" })).await.error(), (422, "validation_failed", Some("digits")));
        assert_eq!(api.post(&format!("{path}/dtmf"), json!({ "digits": "12#" })).await.status, 202);
        world.advance(seconds(5)).await;
        let transcript = api.get(&format!("{path}/transcript.json")).await.ok();
        assert!(said(&transcript["turns"]).contains(&"agent: By the way, we have a new office.".to_owned()), "{transcript}");
        assert_eq!(api.post(&format!("{path}/transfer"), json!({})).await.error(), (422, "validation_failed", Some("transfer_number")));
        assert_eq!(api.post(&format!("{path}/transfer"), json!({ "transfer_number": "+19005550100" })).await.error(), (422, "validation_failed", Some("transfer_number")));
        assert_eq!(api.post(&format!("{path}/transfer"), json!({ "transfer_number": "+12025550100" })).await.error(), (403, "number_not_verified", Some("to_number")));
        let busy = api.post(&format!("{path}/transfer"), json!({ "transfer_number": "+15002000011" })).await;
        assert_eq!((busy.status.as_u16(), busy.body["phase"].as_str()), (202, Some("transferring")));
        assert_eq!(api.post(&format!("{path}/transfer"), json!({ "transfer_number": "+15002000010" })).await.error(), (409, "invalid_state", None));
        world.advance(seconds(10)).await;
        assert_eq!(session(&tenant, &id).await["phase"], "conversing", "nobody took it");
        assert_eq!(api.post(&format!("{path}/transfer"), json!({ "transfer_number": "+15002000010" })).await.status, 202);
        world.advance(seconds(10)).await;
        assert_eq!(session(&tenant, &id).await["end_reason"], "transferred");
        assert_eq!(told(&tenant, "session.transfer_initiated").await.len(), 2);
        assert_eq!(api.post(&format!("{path}/say"), json!({ "text": "Hi." })).await.error(), (409, "invalid_state", None));
    }

    /// A long speech is not waited for: who is to take over would have been given up meanwhile.
    async fn somebody_takes_over_while_the_agent_speaks(world: &mut World) {
        let tenant = world.tenant().await;
        let speech = "Let me tell you everything about our new office. ".repeat(40);
        let agent = agent(&tenant, json!({ "first_message": speech })).await;
        let id = call(&tenant, &agent, "+15002345600", patient()).await;
        world.advance(seconds(20)).await;
        let path = format!("/v1/sessions/{id}/transfer");
        assert_eq!(tenant.api.post(&path, json!({ "transfer_number": "+15002000010" })).await.status, 202);
        world.advance(seconds(5)).await;
        let row = session(&tenant, &id).await;
        assert_eq!((&row["phase"], &row["end_reason"]), (&json!("ended"), &json!("transferred")));
        let ended = &told(&tenant, "session.ended").await[0];
        let said = said(&ended["transcript"]);
        assert!(said[0].len() < speech.len() / 2, "it ends where it was cut: {said:?}");
    }

    async fn turns_are_streamed_as_they_are_said(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = patient_agent(&tenant).await;
        let id = call(&tenant, &agent, "+15002345600", patient()).await;
        world.advance(seconds(3)).await;
        let response = tenant.api.request(Method::GET, &format!("/v1/sessions/{id}/stream")).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut chunks = response.bytes_stream();
        let mut text = String::new();
        while !text.contains("Hello! How can I help you?") {
            text.push_str(std::str::from_utf8(&chunks.next().await.unwrap().unwrap()).unwrap());
        }
        world.advance(minutes(4)).await;
        while let Some(chunk) = chunks.next().await {
            text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        let transcript = tenant.api.get(&format!("/v1/sessions/{id}/transcript.json")).await.ok();
        assert_eq!(text.matches("event: turn").count(), transcript["turns"].as_array().unwrap().len(), "each once: {text}");
        assert!(text.ends_with("event: end\ndata: {}\n\n"), "{text}");
        let over = tenant.api.request(Method::GET, &format!("/v1/sessions/{id}/stream")).send().await.unwrap().text().await.unwrap();
        assert_eq!(over.matches("event: turn").count(), text.matches("event: turn").count(), "also afterwards");
        let after = async |last: &str| {
            let request = tenant.api.request(Method::GET, &format!("/v1/sessions/{id}/stream"));
            request.header("Last-Event-ID", last).send().await.unwrap()
        };
        let rest = after("0").await.text().await.unwrap();
        let told = over.replacen(over.split_inclusive("\n\n").nth(1).unwrap(), "", 1);
        assert_eq!(rest, told, "all but the first turn");
        assert!(!after("9999").await.text().await.unwrap().contains("event: turn"), "there is no such turn yet");
        assert_eq!(after("x").await.status().as_u16(), 422);
    }

    async fn a_session_is_labelled_judged_and_deleted(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "recording": { "enabled": true }, "dispositions": [{ "code": "interested" }, { "code": "not_now" }], "questions": [{ "key": "colour", "text": "Which colour do you like?" }] })).await;
        let id = call(&tenant, &agent, "+15002345600", json!({ "contact": { "email": "zoe@example.com" } })).await;
        let path = format!("/v1/sessions/{id}");
        let api = &tenant.api;
        world.advance(seconds(3)).await;
        assert_eq!(api.patch(&path, json!({ "disposition_code": "interested" })).await.error(), (409, "invalid_state", None), "it is live");
        assert_eq!(api.delete(&path).await.error(), (409, "invalid_state", None));
        assert_eq!(api.patch(&path, json!({ "metadata": { "crm": "7" } })).await.ok()["metadata"]["crm"], "7", "labels at any time");
        world.advance(minutes(2)).await;
        assert_eq!(api.patch(&path, json!({ "disposition_code": "nonsense" })).await.error(), (422, "validation_failed", Some("disposition_code")));
        let judged = api.patch(&path, json!({ "disposition_code": "interested", "disposition_note": "Asked for a brochure." })).await.ok();
        assert_eq!((judged["disposition_code"].as_str(), judged["disposition_by"].as_str()), (Some("interested"), Some("human")));
        assert_eq!(told(&tenant, "session.disposition_set").await.len(), 0, "no campaign call");
        let recording = session(&tenant, &id).await["recording_id"].as_str().unwrap().to_owned();
        assert_eq!(world.recorded_files().len(), 1);

        assert_eq!(api.delete(&path).await.status, 204);
        world.settle().await;
        for gone in [path.clone(), format!("{path}/transcript.json"), format!("{path}/timeline"), format!("{path}/answers")] {
            assert_eq!(api.get(&gone).await.error(), (404, "not_found", None), "{gone}");
        }
        assert!(world.recorded_files().is_empty());
        assert_eq!(api.get(&format!("/v1/recordings/{recording}")).await.ok()["status"], "purged");
        assert_eq!(api.get("/v1/sessions").await.ok()["data"], json!([]));
        assert_eq!(told(&tenant, "session.ended").await.len(), 1, "its events stay");
    }

    async fn an_agent_has_versions_and_can_be_copied_and_tried_out(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        let replies = json!([{ "hear": ["book"], "say": "I will.", "call": { "name": "end_call" } }]);
        let id = agent(&tenant, json!({ "brain": { "mode": "scripted", "replies": replies } })).await;
        let path = format!("/v1/agents/{id}");
        let waiting = call(&tenant, &id, "+15002345600", json!({ "scheduled_at": "2027-03-02T13:10:00Z" })).await;
        api.patch(&path, json!({ "first_message": "Good day!" })).await.ok();
        let versions = api.get(&format!("{path}/versions")).await.ok();
        let shown: Vec<_> = versions["data"].as_array().unwrap().iter().map(|row| (row["version"].as_i64().unwrap(), row["first_message"].as_str().unwrap())).collect();
        assert_eq!(shown, [(2, "Good day!"), (1, "Hello! How can I help you?")]);
        let draft = api.post("/v1/campaigns", json!({ "name": "Spring", "agent_id": id })).await.ok()["id"].as_str().unwrap().to_owned();
        let refused = api.delete(&path).await;
        assert_eq!(refused.error(), (409, "in_use", None));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("`Spring`"));
        api.delete(&format!("/v1/campaigns/{draft}")).await.ok();
        world.advance(minutes(15)).await;
        let transcript = api.get(&format!("/v1/sessions/{waiting}/transcript.json")).await.ok();
        assert_eq!(transcript["turns"][0]["content"], "Hello! How can I help you?", "a call keeps the agent it was made for");
        let copy = api.post(&format!("{path}/duplicate"), json!({})).await.ok();
        assert_eq!((copy["name"].as_str(), copy["version"].as_i64(), copy["first_message"].as_str()), (Some("Ann (copy)"), Some(1), Some("Good day!")));

        let before = tenant.events().await.len();
        let tried = api.post(&format!("{path}/simulate"), json!({ "turns": ["Please book it.", "Never said."] })).await.ok();
        assert_eq!(said(&tried["turns"]), ["agent: Good day!", "user: Please book it.", "agent: I will."]);
        assert_eq!(tried["end_reason"], "completed");
        let opted_out = api.post(&format!("{path}/simulate"), json!({ "turns": ["Stop calling me."] })).await.ok();
        assert_eq!(opted_out["end_reason"], "opt_out");
        assert_eq!(tenant.events().await.len(), before, "nothing happened");
        assert_eq!(api.get("/v1/dnc").await.ok()["data"], json!([]));
        assert_eq!(api.post(&format!("{path}/simulate"), json!({ "turns": [] })).await.error(), (422, "validation_failed", Some("turns")));
        assert_eq!(api.delete(&path).await.status, 204);
    }
}
