//! Calls that are handed over: two telephones behind one carrier, of which one is the caller's.
use super::stage::{CALLEE, PASSWORD, Stage};
use crate::world::phone::{
    kamailio::{Kamailio, Settings},
    pjsip::Pjsip,
};
use serde_json::{Value, json};

/// Whoever is to take over.
pub const PERSON: &str = "+12025550177";

/// Does a timeline have an entry of that kind?
pub fn has(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |timeline| {
        timeline["entries"]
            .as_array()
            .is_some_and(|all| all.iter().any(|entry| entry["kind"] == kind))
    }
}

/// Two telephones behind one carrier, which both legs of a bridge go over; their numbers say which is meant.
pub struct Exchange {
    port: u16,
    ours: String,
    _proxy: Kamailio,
}

impl Exchange {
    pub async fn open(stage: &mut Stage) -> Self {
        Self::open_with(stage, json!({})).await
    }

    pub async fn open_with(stage: &mut Stage, more: Value) -> Self {
        let port = stage.address().port();
        let proxy = Kamailio::start(Settings {
            password: PASSWORD,
            ..Settings::at(port)
        })
        .await;
        let trunk = stage.trunk(port, more).await;
        let ours = format!("+1202555{:04}", 2_000 + port % 1_000);
        stage.number(&ours, &trunk, json!({})).await;
        Exchange {
            port,
            ours,
            _proxy: proxy,
        }
    }

    pub async fn telephone(&self, stage: &mut Stage, number: &str, behaviour: Value) -> Pjsip {
        let domain = format!("127.0.0.1:{}", self.port);
        let register = json!({ "registrar": domain, "username": number, "password": PASSWORD });
        let config = json!({ "user": number, "domain": domain, "register": register });
        let mut telephone = stage.telephone(behaviour, config).await;
        let registered = telephone.hears("registered", |_| true).await;
        assert_eq!(registered["code"], 200, "{registered}");
        telephone
    }

    /// Calls the caller, and asks for the call to be handed over to the person; answers the session and its timeline's path.
    pub async fn hand_over(&self, stage: &Stage, caller: &mut Pjsip) -> (String, String) {
        let agent = stage.agent(json!({})).await;
        self.hand_over_from(stage, caller, &agent).await
    }

    pub async fn hand_over_from(&self, stage: &Stage, caller: &mut Pjsip, agent: &Value) -> (String, String) {
        let id = self.call(stage, caller, agent).await;
        let timeline = self.transfer(stage, &id).await;
        (id, timeline)
    }

    /// Calls the caller, and waits until the agent talks.
    pub async fn call(&self, stage: &Stage, caller: &mut Pjsip, agent: &Value) -> String {
        let id = stage.call(agent, CALLEE, json!({ "from_number": self.ours })).await;
        caller.is("CONFIRMED").await;
        stage.is(&id, "in_progress").await;
        id
    }

    /// Asks for a call to be handed over to the person; answers its timeline's path.
    pub async fn transfer(&self, stage: &Stage, id: &str) -> String {
        let wanted = json!({ "transfer_number": PERSON });
        stage.api.post(&format!("/v1/sessions/{id}/transfer"), wanted).await;
        format!("/v1/sessions/{id}/timeline")
    }
}
