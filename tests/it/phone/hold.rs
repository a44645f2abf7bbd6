//! Offers in the middle of a call.
use super::{
    scenarios,
    stage::{CALLEE, OURS, Stage, end},
};
use crate::{
    on_the_phone,
    world::phone::{
        ear::Packet,
        pause,
        sipp::Scenario,
        sound::{SENTENCE, Sound},
        until,
    },
};
use serde_json::{Value, json};

fn kinds(timeline: &[Value]) -> Vec<&str> {
    timeline.iter().filter_map(|entry| entry["kind"].as_str()).collect()
}

on_the_phone! {
    /// 19. On hold: silence does not count, and nothing of it is taken for speech. Then the talk goes on.
    async fn a_person_puts_us_on_hold(stage: &mut Stage) needs [Pjsip] {
        let says = stage.recorded("says.wav", &Sound::of_mu_law(SENTENCE).then(Sound::silence(2_000)));
        let mut telephone = stage.telephone(json!({}), json!({})).await;
        let trunk = stage.trunk(telephone.port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({ "silence": { "hangup_after_seconds": 8 } })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        pause(1_000).await;
        telephone.tell(json!({ "do": "hold" }));
        let timeline = format!("/v1/sessions/{id}/timeline");
        let has = |kind: &'static str| move |timeline: &Value| timeline["entries"].as_array().is_some_and(|all| all.iter().any(|entry| entry["kind"] == kind));
        stage.api.until(&timeline, has("held")).await;
        // Longer than a silence may be.
        pause(11_000).await;
        let held = stage.session(&id).await;
        assert_eq!(held["status"], "in_progress", "{held}");
        telephone.tell(json!({ "do": "resume" }));
        stage.api.until(&timeline, has("resumed")).await;
        telephone.tell(json!({ "do": "play", "file": says }));
        let spoken = |turns: &Value| turns["turns"].as_array().is_some_and(|turns| turns.iter().any(|turn| turn["role"] == "user"));
        stage.api.until(&format!("/v1/sessions/{id}/transcript.json"), spoken).await;
        telephone.tell(json!({ "do": "hang_up" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        assert!(kinds(&stage.timeline(&id).await).contains(&"held"));
    }

    /// 19. Codecs that we do not have are refused (488), and the call goes on as it was; who asks for an offer gets one.
    async fn offers_that_we_cannot_take(stage: &mut Stage) needs [Sipp] {
        let (at, ear) = (stage.address(), stage.ear());
        let agent = stage.line(at.port()).await;
        let mut sipp = Scenario::new(scenarios::REFUSES_OFFERS, at.port()).with("rtp", ear.port()).start().await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        until("it has answered our offer", || {
            sipp.messages().iter().any(|message| message.is_sent && message.header("CSeq") == Some("12 ACK"))
        })
        .await;
        let before = ear.packets().len();
        until("sound still comes", || ear.packets().len() > before + 20).await;
        assert!(ear.packets().iter().any(Packet::is_loud));
        stage.hang_up(&id).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        sipp.succeeds().await;
    }
}
