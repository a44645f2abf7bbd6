//! The peer hands a call over by itself (REFER): a PBX of PJSIP's, which calls whoever is to take over, and tells how that goes.
use super::{
    exchange::{PERSON, has},
    stage::{CALLEE, OURS, Stage, end},
};
use crate::{on_the_phone, world::phone::pjsip::Pjsip};
use serde_json::{Value, json};

/// A call over a PBX that hands calls over itself.
struct Handed {
    pbx: Pjsip,
    id: String,
}

impl Handed {
    /// `refer_code`: what the PBX answers to that.
    async fn talk(stage: &mut Stage, refer_code: u16) -> Self {
        let mut pbx = stage.telephone(json!({ "refer_code": refer_code }), json!({})).await;
        let trunk = stage.trunk(pbx.port, json!({ "transfer": "refer" })).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        pbx.is("CONFIRMED").await;
        stage.is(&id, "in_progress").await;
        Handed { pbx, id }
    }

    /// `takes_over`: what the PBX gets from whoever is called.
    async fn hand_over(&mut self, stage: &Stage, takes_over: Value) {
        self.pbx.tell(json!({ "do": "behaviour", "behaviour": takes_over }));
        // Its answer comes when it has heard that, too.
        assert_eq!(self.pbx.open_calls().await, [1]);
        let path = format!("/v1/sessions/{}/transfer", self.id);
        stage.api.post(&path, json!({ "transfer_number": PERSON })).await;
        let asked = self.pbx.hears("refer", |_| true).await;
        assert!(asked["to"].as_str().unwrap().contains(PERSON), "{asked}");
    }

    /// It does not come to it, and the agent talks on until the caller hangs up.
    async fn fails(mut self, stage: &Stage, code: &str) {
        let timeline = format!("/v1/sessions/{}/timeline", self.id);
        stage.api.until(&timeline, has("transfer_failed")).await;
        let entries = stage.timeline(&self.id).await;
        let failed = entries.iter().find(|entry| entry["kind"] == "transfer_failed").unwrap();
        assert!(failed.to_string().contains(code), "{failed}");
        assert_eq!(
            stage.session(&self.id).await["status"],
            "in_progress",
            "the agent talks on"
        );
        assert_eq!(self.pbx.open_calls().await, [1], "our leg, and no bridge instead");
        self.pbx.tell(json!({ "do": "hang_up", "call": 1 }));
        assert_eq!(end(&stage.ended(&self.id).await), ("completed", "completed"));
    }
}

on_the_phone! {
    /// 54. Somebody takes over: the PBX says so (NOTIFY with 200), and we leave.
    async fn a_pbx_hands_a_call_over(stage: &mut Stage) needs [Pjsip] {
        let mut handed = Handed::talk(stage, 202).await;
        handed.hand_over(stage, json!({})).await;
        let ended = stage.ended(&handed.id).await;
        assert_eq!(end(&ended), ("completed", "transferred"), "{ended}");
        handed.pbx.hears("state", |event| event["call"] == 1 && event["state"] == "DISCONNECTED").await;
        // The PBX called, not we.
        let called = handed.pbx.all("incoming");
        assert_eq!(called.len(), 2, "{called:?}");
        assert!(called[1]["local"].as_str().unwrap().contains(PERSON), "{}", called[1]);
        assert!(called[1]["remote"].as_str().unwrap().contains("sip:peer@"), "{}", called[1]);
        assert_eq!(handed.pbx.open_calls().await, [2, 3], "they talk on without us");
        assert_eq!(stage.api.all("/v1/sessions").await.len(), 1);
    }

    /// 54. Whoever is called is busy: the PBX had taken it on (202), and says so in a NOTIFY.
    async fn who_should_take_over_is_busy(stage: &mut Stage) needs [Pjsip] {
        let mut handed = Handed::talk(stage, 202).await;
        handed.hand_over(stage, json!({ "code": 486 })).await;
        handed.fails(stage, "486").await;
    }

    /// 54. A PBX that hands no calls over.
    async fn a_pbx_refuses_to_hand_over(stage: &mut Stage) needs [Pjsip] {
        let mut handed = Handed::talk(stage, 403).await;
        handed.hand_over(stage, json!({})).await;
        handed.fails(stage, "403").await;
    }
}
