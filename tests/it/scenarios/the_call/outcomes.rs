//! The last digit fixes the outcome: each with its end, and with all its events in their order.
use super::{agent, call, said, session, told};
use crate::{
    on_both,
    world::{World, minutes},
};
use serde_json::{Value, json};

/// Digit, status, reason, by whom, who answered, and the events of the call.
type Outcome = (
    u8,
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static [&'static str],
);

const OUTCOMES: [Outcome; 10] = [
    (
        0,
        "completed",
        "completed",
        "agent",
        Some("human"),
        &["session.created", "session.started", "session.ended"],
    ),
    (
        1,
        "busy",
        "busy",
        "system",
        None,
        &["session.created", "session.failed"],
    ),
    (
        2,
        "no_answer",
        "no_answer",
        "system",
        None,
        &["session.created", "session.failed"],
    ),
    (
        3,
        "voicemail",
        "voicemail",
        "system",
        Some("voicemail"),
        &["session.created", "session.failed"],
    ),
    (
        4,
        "failed",
        "carrier_rejected",
        "system",
        None,
        &["session.created", "session.failed"],
    ),
    (
        5,
        "completed",
        "opt_out",
        "agent",
        Some("human"),
        &[
            "session.created",
            "session.started",
            "session.opt_out_detected",
            "session.ended",
        ],
    ),
    (
        6,
        "completed",
        "consent_refused",
        "agent",
        Some("human"),
        &[
            "session.created",
            "session.started",
            "session.consent_refused",
            "session.ended",
        ],
    ),
    (
        7,
        "completed",
        "transferred",
        "agent",
        Some("human"),
        &[
            "session.created",
            "session.started",
            "session.transfer_initiated",
            "session.ended",
        ],
    ),
    (
        8,
        "completed",
        "completed",
        "agent",
        Some("human"),
        &[
            "session.created",
            "session.started",
            "function.timeout",
            "session.ended",
        ],
    ),
    (
        9,
        "busy",
        "busy",
        "system",
        None,
        &["session.created", "session.failed"],
    ),
];

const LAST_EVENT: [&str; 19] = [
    "session_id",
    "client_reference_id",
    "campaign_id",
    "contact_id",
    "from_number",
    "to_number",
    "phone_number",
    "email",
    "first_name",
    "last_name",
    "status",
    "end_reason",
    "started_at",
    "ended_at",
    "duration_seconds",
    "actual_cost_cents",
    "transcript",
    "transcript_url",
    "function_invocations",
];

fn fields(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

on_both! {
    async fn the_last_digit_fixes_the_outcome(world: &mut World) {
        for (digit, status, reason, by, answered_by, expected) in OUTCOMES {
            let tenant = world.tenant().await;
            let agent = agent(&tenant, json!({})).await;
            let number = format!("+1500234567{digit}");
            let id = call(&tenant, &agent, &number, json!({ "client_reference_id": "r-1", "from_number": "+12025550100", "contact": { "first_name": "Zoë" } })).await;
            world.advance(minutes(3)).await;
            let row = session(&tenant, &id).await;
            let end = ["status", "end_reason", "ended_by", "answered_by"].map(|name| row[name].as_str());
            assert_eq!(end, [Some(status), Some(reason), Some(by), answered_by], "{digit}");
            let events = tenant.events().await;
            let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            assert_eq!(types, expected, "{digit}");

            let created = &events[0]["data"];
            assert_eq!(created, &json!({ "session_id": id, "to_number": number, "from_number": "+12025550100", "voice_id": "builtin:tones", "status": "queued" }));
            let last = &events.last().unwrap()["data"];
            let wanted = LAST_EVENT.iter().filter(|name| answered_by == Some("human") || **name != "started_at");
            assert_eq!(fields(last), wanted.copied().collect::<Vec<_>>(), "{digit}");
            for (name, value) in [("session_id", json!(id)), ("client_reference_id", json!("r-1")), ("campaign_id", Value::Null), ("phone_number", json!(number)), ("first_name", json!("Zoë")), ("email", Value::Null), ("status", json!(status)), ("end_reason", json!(reason))] {
                assert_eq!(last[name], value, "{digit} {name}");
            }
            let talked = answered_by == Some("human");
            assert_eq!(last["transcript"].as_array().unwrap().is_empty(), !talked, "{digit}");
            assert_eq!(last["transcript_url"].is_string(), talked, "{digit}");
            assert_eq!(last["duration_seconds"].as_i64().unwrap() > 0, talked, "{digit}");
        }
    }

    async fn busy_on_the_first_attempt_then_a_talk(world: &mut World) {
        let tenant = world.tenant().await;
        let id = tenant.run_campaign(&["+15002345679"], json!({ "retry": { "max_attempts": 2, "min_gap_minutes": 1 } })).await;
        world.advance(minutes(5)).await;
        let statuses: Vec<Value> = tenant.events().await.iter().filter(|event| ["session.failed", "session.ended"].contains(&event["type"].as_str().unwrap())).map(|event| event["data"]["status"].clone()).collect();
        assert_eq!(statuses, ["busy", "completed"]);
        assert_eq!(tenant.campaign(&id).await["status"], "completed");
    }

    /// The wish counts from its detection: the number is on the list in the same transaction, and nobody calls it again.
    async fn an_opt_out_bars_the_number(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({})).await;
        let id = call(&tenant, &agent, "+15002345675", json!({})).await;
        world.advance(minutes(2)).await;
        let detected = &told(&tenant, "session.opt_out_detected").await[0];
        assert_eq!(fields(detected), ["session_id", "phone_number", "detected_at"]);
        assert_eq!(detected["phone_number"], "+15002345675");
        let list = tenant.api.get("/v1/dnc").await.ok();
        let entry = &list["data"][0];
        assert_eq!((entry["phone_number"].as_str(), entry["source"].as_str(), entry["session_id"].as_str()), (Some("+15002345675"), Some("opt_out_voice"), Some(&*id)));
        assert_eq!(entry["channels"], json!(["phone", "sms"]));
        let again = tenant.api.post("/v1/sessions", json!({ "to_number": "+15002345675", "agent_id": agent })).await;
        assert_eq!(again.error(), (409, "recipient_on_dnc", Some("to_number")));
        let campaign = tenant.run_campaign(&["+15002345675"], json!({})).await;
        world.advance(minutes(2)).await;
        let skipped = told(&tenant, "campaign.contact_skipped").await;
        assert_eq!(skipped[0]["skip_reason"], "dnc_blocked");
        assert_eq!(tenant.campaign(&campaign).await["counts"]["skipped"], 1);
    }

    async fn a_key_opts_out_where_the_agent_has_one(world: &mut World) {
        let tenant = world.tenant().await;
        let replies = json!({ "mode": "scripted", "replies": [{ "say": "Aha." }, { "say": "Good." }] });
        let offers = agent(&tenant, json!({ "brain": replies, "opt_out": { "key": "9" }, "recording": { "enabled": true, "consent": "verbal" } })).await;
        let off = agent(&tenant, json!({ "brain": replies, "opt_out": { "key": "9", "enabled": false } })).await;
        let none = agent(&tenant, json!({ "brain": replies })).await;
        let cases = [
            (&offers, json!([{ "press": "9" }]), "opt_out"),
            (&offers, json!([{ "press": "1" }, { "say": "Hm." }, { "press": "9" }]), "opt_out"),
            (&offers, json!([{ "press": "1" }, { "press": "990" }, { "press": "0" }]), "completed"),
            (&off, json!([{ "press": "9" }]), "completed"),
            (&none, json!([{ "press": "9" }]), "completed"),
        ];
        let mut calls = Vec::new();
        for (n, (agent, script, _)) in cases.iter().enumerate() {
            calls.push(call(&tenant, agent, &format!("+150023461{n}0"), json!({ "sandbox": { "script": script } })).await);
        }
        world.advance(minutes(2)).await;
        for (n, (id, (_, script, reason))) in calls.iter().zip(&cases).enumerate() {
            assert_eq!(session(&tenant, id).await["end_reason"], *reason, "{script}");
            let listed = tenant.api.get(&format!("/v1/dnc/check?phone_number=%2B150023461{n}0")).await.ok();
            assert_eq!(listed["listed"], *reason == "opt_out", "{script}");
        }
        assert_eq!(told(&tenant, "session.opt_out_detected").await.len(), 2);
        for key in ["1", "2", "99", "", "a"] {
            let refused = tenant.api.post("/v1/agents", json!({ "name": "x", "prompt": "x", "opt_out": { "key": key } })).await;
            let (status, code, field) = refused.error();
            assert_eq!((status, code), (422, "validation_failed"), "{key}");
            assert!(field.is_some_and(|field| field.starts_with("opt_out")), "{key}: {field:?}");
        }
    }

    async fn an_agents_own_phrases_and_languages_are_heard_and_it_can_be_switched_off(world: &mut World) {
        let tenant = world.tenant().await;
        let replies = json!({ "mode": "scripted", "replies": [{ "say": "Aha." }, { "say": "Gut." }] });
        let german = agent(&tenant, json!({ "language": "de-DE", "brain": replies })).await;
        let own = agent(&tenant, json!({ "brain": replies, "opt_out": { "phrases": ["purple elephant"] } })).await;
        let off = agent(&tenant, json!({ "brain": replies, "opt_out": { "enabled": false } })).await;
        let script = |words: &str| json!({ "sandbox": { "script": [{ "say": words }] } });
        let heard = [
            call(&tenant, &german, "+15002345610", script("Bitte rufen Sie mich nie wieder an.")).await,
            call(&tenant, &own, "+15002345620", script("Well, a purple elephant!")).await,
        ];
        let unheard = [
            call(&tenant, &off, "+15002345630", script("Please stop calling me.")).await,
            call(&tenant, &own, "+15002345640", script("Please do not stop calling me.")).await,
        ];
        world.advance(minutes(2)).await;
        for id in heard {
            assert_eq!(session(&tenant, &id).await["end_reason"], "opt_out");
        }
        for id in unheard {
            assert_eq!(session(&tenant, &id).await["end_reason"], "completed");
        }
        let farewell = said(&told(&tenant, "session.ended").await.into_iter().find(|data| data["end_reason"] == "opt_out" && data["to_number"] == "+15002345610").unwrap()["transcript"]);
        assert!(farewell.last().unwrap().contains("Auf Wiederhören"), "{farewell:?}");
    }

    async fn a_transfer_goes_to_the_agents_number_and_comes_back_when_nobody_takes_it(world: &mut World) {
        let tenant = world.tenant().await;
        let reached = agent(&tenant, json!({ "transfer": { "number": "+15002000010" } })).await;
        let busy = agent(&tenant, json!({ "transfer": { "number": "+15002000011" } })).await;
        let done = call(&tenant, &reached, "+15002345677", json!({ "from_number": "+12025550100" })).await;
        let back = call(&tenant, &busy, "+15002345687", json!({})).await;
        world.advance(minutes(2)).await;
        let initiated = told(&tenant, "session.transfer_initiated").await;
        let first = initiated.iter().find(|data| data["session_id"] == *done).unwrap();
        assert_eq!(fields(first), ["session_id", "to_number", "from_number", "transfer_number", "transferred_at"]);
        assert_eq!((first["to_number"].as_str(), first["from_number"].as_str(), first["transfer_number"].as_str()), (Some("+15002345677"), Some("+12025550100"), Some("+15002000010")));
        assert_eq!(session(&tenant, &done).await["end_reason"], "transferred");
        assert_eq!(session(&tenant, &back).await["end_reason"], "completed");
        let transcript = tenant.api.get(&format!("/v1/sessions/{back}/transcript.json")).await.ok();
        assert!(said(&transcript["turns"]).iter().any(|line| line.contains("nobody is available")), "{transcript}");
    }

    async fn a_machine_is_hung_up_on_left_a_message_or_talked_to(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "silence": { "hangup_after_seconds": 10 } })).await;
        let with = |voicemail: Value| json!({ "voicemail": voicemail, "variables": { "first_name": "Zoë" } });
        let left = call(&tenant, &agent, "+15002345613", with(json!({ "action": "leave_message", "message": "Hi {{first_name}}, call us." }))).await;
        let talked = call(&tenant, &agent, "+15002345623", with(json!({ "action": "continue" }))).await;
        let unnoticed = call(&tenant, &agent, "+15002345633", with(json!({ "detection": "off" }))).await;
        world.advance(minutes(3)).await;
        let row = session(&tenant, &left).await;
        assert_eq!((row["status"].as_str(), row["end_reason"].as_str(), row["answered_by"].as_str()), (Some("voicemail"), Some("voicemail_left"), Some("voicemail")));
        let failed = told(&tenant, "session.failed").await;
        let data = failed.iter().find(|data| data["session_id"] == *left).unwrap();
        assert_eq!(said(&data["transcript"]), ["agent: Hi Zoë, call us."]);
        let row = session(&tenant, &talked).await;
        assert_eq!((row["status"].as_str(), row["end_reason"].as_str()), (Some("voicemail"), Some("voicemail")));
        let row = session(&tenant, &unnoticed).await;
        assert_eq!((row["status"].as_str(), row["answered_by"].as_str()), (Some("completed"), Some("human")));
        let bad = tenant.api.post("/v1/sessions", json!({ "to_number": "+15002345643", "agent_id": agent, "voicemail": { "action": "leave_message" } })).await;
        assert_eq!(bad.error(), (422, "validation_failed", Some("voicemail.message")));
    }

    async fn a_left_message_may_count_as_reached(world: &mut World) {
        let tenant = world.tenant().await;
        for (counts, status) in [(true, "completed"), (false, "failed")] {
            let voicemail = json!({ "action": "leave_message", "message": "Call us.", "counts_as_reached": counts });
            let id = tenant.run_campaign(&["+15002345693"], json!({ "voicemail": voicemail, "caps": { "per_number_24h": null } })).await;
            world.advance(minutes(2)).await;
            let contacts = tenant.api.get(&format!("/v1/campaigns/{id}/contacts")).await.ok();
            assert_eq!(contacts["data"][0]["status"], status, "{counts}");
        }
    }

    async fn silence_ends_a_call_and_speech_does_not(world: &mut World) {
        let tenant = world.tenant().await;
        let words = "word ".repeat(150);
        let agent = agent(&tenant, json!({ "silence": { "hangup_after_seconds": 10 }, "brain": { "mode": "scripted", "replies": [{ "say": words }] } })).await;
        let script = json!({ "sandbox": { "script": [{ "say": "Hello." }, { "silence_seconds": 60 }, { "say": "Too late." }] } });
        let id = call(&tenant, &agent, "+15002345600", script).await;
        world.advance(minutes(3)).await;
        let row = session(&tenant, &id).await;
        assert_eq!((row["status"].as_str(), row["end_reason"].as_str(), row["ended_by"].as_str()), (Some("completed"), Some("silence_timeout"), Some("system")));
        let transcript = tenant.api.get(&format!("/v1/sessions/{id}/transcript.json")).await.ok();
        let turns = transcript["turns"].as_array().unwrap();
        let last = turns.last().unwrap();
        assert_eq!(last["role"], "agent", "{turns:?}");
        let silent_from = last["end_t"].as_f64().unwrap();
        let ended = row["duration_seconds"].as_f64().unwrap();
        assert!((ended - silent_from - 10.0).abs() < 1.1, "silence begins after the last word: {silent_from} {ended}");
    }
}
