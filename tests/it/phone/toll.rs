//! Calls that would cost more than anybody wants to pay: they are refused when they are asked for, and nothing of them is on the wire.
use super::stage::{CALLEE, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::byte_peer::{BytePeer, picks_up, response},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SETTINGS: &[(&str, &str)] = &[("CALLBOARD_BLOCKED_PREFIXES", "+1202555019")];

/// Another country, a prefix that the operator has blocked, a premium-rate number, a telephone by satellite.
const COSTLY: [(&str, (u16, &str)); 4] = [
    ("+4930901820", (403, "forbidden")),
    ("+12025550190", (403, "forbidden")),
    ("+19005550123", (422, "validation_failed")),
    ("+881612345678", (422, "validation_failed")),
];

/// The status, and the error's code and field.
async fn refused(stage: &Stage, path: &str, body: Value) -> (u16, String, String) {
    let asked = stage
        .api
        .client
        .post(format!("{}{path}", stage.api.url))
        .bearer_auth(&stage.api.key);
    let answer = asked.json(&body).send().await.unwrap();
    let status = answer.status().as_u16();
    let error = answer.json::<Value>().await.unwrap()["error"].take();
    let word = |name: &str| error[name].as_str().unwrap_or("none").to_owned();
    (status, word("code"), word("param"))
}

/// Whom the carrier was asked to call.
fn called(peer: &BytePeer) -> BTreeSet<String> {
    let invites = peer.heard("INVITE");
    invites
        .iter()
        .map(|invite| invite.header("To").unwrap_or_default().to_owned())
        .collect()
}

on_the_phone! {
    /// 63. By a single call and in a campaign: nobody is called but who may be.
    async fn nobody_is_called_there(stage: &mut Stage) needs [] {
        stage.restart_with(SETTINGS);
        let at = stage.address();
        let peer = BytePeer::start(at, |heard, _| match heard.what() {
            "INVITE" => vec![response(&heard.text, "486 Busy Here", "", "")],
            _ => Vec::new(),
        });
        let agent = stage.line(at.port()).await;
        for (number, (status, code)) in COSTLY {
            let call = json!({ "to_number": number, "agent_id": agent["id"] });
            let found = refused(stage, "/v1/sessions", call).await;
            assert_eq!(found, (status, code.to_owned(), "to_number".to_owned()), "{number}");
        }
        let numbers: Vec<String> = COSTLY.iter().map(|(number, _)| *number).chain([CALLEE]).map(str::to_owned).collect();
        let campaign = stage.campaign(&agent, &numbers, json!({})).await;
        let done = stage.api.until(&campaign, |campaign| campaign["status"] == "completed").await;
        assert_eq!((&done["counts"]["skipped"], &done["counts"]["total"]), (&json!(COSTLY.len()), &json!(numbers.len())), "{done}");
        let contacts = stage.api.all(&format!("{campaign}/contacts")).await;
        let skipped: Vec<_> = contacts.iter().filter(|contact| contact["skip_reason"] == "invalid").collect();
        assert_eq!(skipped.len(), COSTLY.len(), "{contacts:#?}");
        let sessions = stage.api.all("/v1/sessions").await;
        assert_eq!(sessions.iter().map(end).collect::<Vec<_>>(), [("busy", "busy")], "{sessions:#?}");
        let called = called(&peer);
        assert!(called.len() == 1 && called.iter().all(|to| to.contains(CALLEE)), "{called:?}");
    }

    /// 63. By a detour: a call that stands is not handed over there, and goes on.
    async fn nobody_is_connected_there(stage: &mut Stage) needs [] {
        stage.restart_with(SETTINGS);
        let (at, ear) = (stage.address(), stage.ear());
        let rtp = ear.port();
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            "INVITE" => vec![picks_up(&heard.text, at, rtp)],
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        stage.line(at.port()).await;
        // Whoever makes an agent need not know where it will call.
        let agent = stage.agent(json!({ "transfer": { "number": COSTLY[0].0 } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        ear.breathes(media_of(peer.hears("INVITE", 1).await.body()));
        stage.is(&id, "in_progress").await;
        let path = format!("/v1/sessions/{id}/transfer");
        for (number, (status, code)) in COSTLY {
            let found = refused(stage, &path, json!({ "transfer_number": number })).await;
            assert_eq!(found, (status, code.to_owned(), "transfer_number".to_owned()), "{number}");
        }
        assert_eq!(refused(stage, &path, json!({})).await.0, 403, "nor to the agent's own");
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        let called = called(&peer);
        assert!(called.len() == 1 && called.iter().all(|to| to.contains(CALLEE)), "{called:?}");
    }
}
