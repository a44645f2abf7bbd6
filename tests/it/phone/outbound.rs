//! Calls that we place, and how they end.
use super::{
    scenarios,
    stage::{CALLEE, HELLO, Stage, end, merged},
};
use crate::{
    on_the_phone,
    world::phone::{
        ear::Packet,
        sipp::{Message, Scenario},
        sound::{SENTENCE, Sound},
        until,
    },
};
use serde_json::json;
use std::collections::BTreeSet;

/// What was sent twice counts once.
fn different(all: &[Message], header: &str) -> usize {
    let of_each = all.iter().map(|message| message.header(header));
    of_each.collect::<BTreeSet<_>>().len()
}

on_the_phone! {
    /// 1. Answered, talked to, and hung up by us.
    async fn we_call_and_hang_up(stage: &mut Stage) needs [Sipp] {
        let (at, ear) = (stage.address(), stage.ear());
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::ANSWERS, at.port()).with("rtp", ear.port()).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let live = stage.is(&id, "in_progress").await;
        assert!(live["trunk_id"].is_string() && live["from_number"] == "+12025551000", "{live}");
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;
        stage.hang_up(&id).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("api")), "{ended}");
        assert_eq!(ended["answered_by"], "human");
        sipp.succeeds().await;
        let invites = sipp.got("INVITE");
        assert!(invites[0].line().starts_with(&format!("INVITE sip:{CALLEE}@{at}")), "{}", invites[0].line());
        assert!(invites[0].header("From").unwrap().contains("+12025551000"), "{:?}", invites[0]);
        let bye = sipp.got("BYE");
        assert!(bye[0].header("Reason").is_some_and(|reason| reason.contains("cause=16")), "{bye:?}");
        assert_eq!(sipp.got("CANCEL"), []);
    }

    /// 1, with a telephone that speaks: each side hears the other.
    async fn a_telephone_is_talked_to(stage: &mut Stage) needs [Pjsip] {
        let speech = Sound::silence(6_000).then(Sound::of_mu_law(SENTENCE)).then(Sound::silence(3_000));
        let (says, heard) = (stage.recorded("says.wav", &speech), stage.file("heard.wav"));
        let mut telephone = stage.telephone(json!({ "ring_ms": 300, "play": says, "record": heard }), json!({})).await;
        let agent = stage.line(telephone.port).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        let transcript = format!("/v1/sessions/{id}/transcript.json");
        let spoken = |turns: &serde_json::Value, role: &str| {
            turns["turns"].as_array().is_some_and(|turns| turns.iter().filter(|turn| turn["role"] == role).count() > 0)
        };
        stage.api.until(&transcript, |turns| spoken(turns, "user")).await;
        stage.hang_up(&id).await;
        telephone.hears("gone", |_| true).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        let turns = stage.api.get(&transcript).await;
        assert_eq!((turns["turns"][0]["role"].as_str(), turns["turns"][0]["content"].as_str()), (Some("agent"), Some(HELLO)), "{turns}");
        let loud = Sound::read(&heard).loud_ms();
        assert!(loud.len() > 50, "a second of the agent is heard: {loud:?}");
        assert_eq!(telephone.all("incoming").len(), 1);
    }

    /// 2. They hang up.
    async fn they_hang_up(stage: &mut Stage) needs [Sipp, Pjsip] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::HANGS_UP, at.port()).with("talk", 4_000).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{ended}");
        sipp.succeeds().await;
        assert_eq!(sipp.got("BYE"), [], "they had hung up already");

        let mut telephone = stage.telephone(json!({ "hang_up_ms": 4_000 }), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number("+12025551001", &trunk, json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({ "from_number": "+12025551001" })).await;
        telephone.is("DISCONNECTED").await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{ended}");
    }

    /// 3. Busy, here and everywhere.
    async fn busy(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::BY_NUMBER, at.port()).each([486, 600]).times(2).start().await;
        for (number, code) in [("+12026000486", 486), ("+12025000600", 600)] {
            let id = stage.call(&agent, number, json!({})).await;
            let ended = stage.ended(&id).await;
            assert_eq!(end(&ended), ("busy", "busy"), "{ended}");
            assert_eq!(ended["error"]["sip_code"], code, "{ended}");
            assert!(ended["picked_up_at"].is_null() && ended["started_at"].is_null(), "{ended}");
        }
        sipp.succeeds().await;
    }

    /// 5. Nobody picks up: we cancel when the time to ring is over.
    async fn nobody_picks_up(stage: &mut Stage) needs [Sipp, Pjsip] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let mut telephone = stage.telephone(json!({ "code": null }), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number("+12025551001", &trunk, json!({})).await;
        let mut sipp = Scenario::new(scenarios::RINGS, at.port()).start().await;
        let short = json!({ "ring_timeout_seconds": 15 });
        let first = stage.call(&agent, CALLEE, short.clone()).await;
        let other = stage.call(&agent, "+12025550101", merged(short, json!({ "from_number": "+12025551001" }))).await;
        for id in [first, other] {
            let ended = stage.ended(&id).await;
            assert_eq!(end(&ended), ("no_answer", "no_answer"), "{ended}");
            assert!(ended["error"]["sip_code"].is_null(), "nobody has refused: {ended}");
        }
        sipp.succeeds().await;
        let (invite, cancel) = (&sipp.got("INVITE")[0], &sipp.got("CANCEL")[0]);
        assert_eq!(invite.header("Via"), cancel.header("Via"), "RFC 3261, section 9.1: the same branch");
        let rang = cancel.at_ms - invite.at_ms;
        assert!((14_000..18_000).contains(&rang), "{rang} ms");
        let gone = telephone.is("DISCONNECTED").await;
        assert_eq!(gone["code"], 487, "{gone}");
        assert!(telephone.open_calls().await.is_empty());
    }

    /// 6. Somebody picks up while our CANCEL is on its way: it is acknowledged, and hung up.
    async fn a_cancel_crosses_an_answer(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::CANCEL_CROSSES, at.port()).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        sipp.hears("INVITE", 1).await;
        stage.is(&id, "ringing").await;
        stage.hang_up(&id).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "canceled"), "{ended}");
        sipp.succeeds().await;
        assert!(!sipp.got("ACK").is_empty());
        assert_eq!(different(&sipp.got("BYE"), "Via"), 1);
    }

    /// 20. Both hang up at once.
    async fn both_hang_up_at_once(stage: &mut Stage) needs [Sipp] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::CROSSED_BYE, at.port()).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.is(&id, "in_progress").await;
        stage.hang_up(&id).await;
        sipp.succeeds().await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("api")), "{ended}");
        assert_eq!(different(&sipp.got("200"), "CSeq"), 1, "their BYE is answered");
    }
}
