//! Trunks that live: registered, looked at, away and back.
use super::stage::{CALLEE, OURS, PASSWORD, Stage, end, merged};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, response},
        kamailio::{Kamailio, Settings},
        pause, until,
    },
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

fn registering(more: Value) -> Value {
    let register = json!({ "enabled": true, "expires_seconds": 60 });
    merged(
        json!({ "username": "acme", "password": PASSWORD, "register": register }),
        more,
    )
}

fn path(trunk: &Value) -> String {
    format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap())
}

on_the_phone! {
    /// 32. Registered, refreshed with a nonce that has changed meanwhile, reached through the registrar, and gone at the stop.
    async fn we_register_and_go(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let port = stage.address().port();
        let settings = Settings { password: PASSWORD, nonce_seconds: 10, ..Settings::at(port) };
        let _registrar = Kamailio::start(settings).await;
        let trunk = stage.trunk(port, registering(json!({}))).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let first = stage.api.until(&path(&trunk), |trunk| trunk["state"]["registered_until"].is_string()).await;
        assert_eq!((&first["state"]["up"], &first["state"]["refused"]), (&json!(true), &Value::Null), "{first}");
        let until = |trunk: &Value| trunk["state"]["registered_until"].as_str().map(str::to_owned);
        let refreshed = stage.api.until(&path(&trunk), |trunk| until(trunk) > until(&first)).await;
        assert_eq!(refreshed["state"]["up"], true, "{refreshed}");
        // Whoever calls our user at the registrar reaches us; which number was called stands in To alone.
        let user = json!({ "user": "+12025550111", "domain": format!("127.0.0.1:{port}") });
        let mut telephone = stage.telephone(json!({}), user).await;
        stage.stop();
        let acme = format!("sip:acme@127.0.0.1:{port}");
        telephone.tell(json!({ "do": "call", "to": acme }));
        let gone = telephone.is("DISCONNECTED").await;
        assert_eq!(gone["code"], 404, "the registrar does not know us any more: {gone}");
        stage.serve_again();
        stage.api.until(&path(&trunk), |trunk| trunk["state"]["registered_until"].is_string()).await;
        telephone.tell(json!({ "do": "call", "to": acme }));
        let answered = telephone.hears("state", |event| event["call"] == 2 && event["state"] == "DISCONNECTED").await;
        assert_ne!(answered["code"], 480, "somebody is there: {answered}");
    }

    /// 32. A registrar that wants longer registrations (423).
    async fn a_registration_that_is_too_brief(stage: &mut Stage) needs [] {
        let at = stage.address();
        let mut brief = String::new();
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            // One that is sent again is answered as before.
            "REGISTER" if brief.is_empty() || brief == heard.branch() => {
                brief = heard.branch().to_owned();
                vec![response(&heard.text, "423 Interval Too Brief", "Min-Expires: 120\r\n", "")]
            }
            "REGISTER" => {
                let contact = heard.header("Contact").unwrap_or_default().split(';').next().unwrap_or_default().to_owned();
                vec![response(&heard.text, "200 OK", &format!("Contact: {contact};expires=120\r\nExpires: 120\r\n"), "")]
            }
            _ => vec![response(&heard.text, "200 OK", "", "")],
        });
        let trunk = stage.trunk(at.port(), registering(json!({}))).await;
        stage.number(OURS, &trunk, json!({})).await;
        let shown = stage.api.until(&path(&trunk), |trunk| trunk["state"]["registered_until"].is_string()).await;
        assert_eq!(shown["state"]["up"], true, "{shown}");
        let asked = peer.different("REGISTER");
        let seconds = |n: usize| {
            let heard: &crate::world::phone::byte_peer::Heard = &asked[n];
            let contact = heard.header("Contact").unwrap_or_default().rsplit_once("expires=").map(|(_, seconds)| seconds.to_owned());
            heard.header("Expires").map(str::to_owned).or(contact).and_then(|seconds| seconds.parse::<u32>().ok())
        };
        assert_eq!((asked.len(), seconds(0), seconds(1)), (2, Some(60), Some(120)), "{asked:#?}");
        assert_eq!(asked[0].header("Call-ID"), asked[1].header("Call-ID"));
        stage.stop();
        until("it registers once more", || peer.different("REGISTER").len() > 2).await;
        let last = &peer.different("REGISTER")[2];
        assert!(last.text.contains("xpires: 0") || last.text.contains("expires=0"), "it takes itself off: {}", last.text);
        stage.serve_again();
    }

    /// 33. The registrar goes away, and comes back.
    async fn a_registrar_goes_away_and_comes_back(stage: &mut Stage) needs [Kamailio] {
        let port = stage.address().port();
        let mut registrar = Kamailio::start(Settings { password: PASSWORD, ..Settings::at(port) }).await;
        let trunk = stage.trunk(port, registering(json!({ "options_interval_seconds": 10 }))).await;
        stage.number(OURS, &trunk, json!({})).await;
        stage.api.until(&path(&trunk), |trunk| trunk["state"]["registered_until"].is_string()).await;
        registrar.goes_away();
        let down = stage.api.until(&path(&trunk), |trunk| trunk["state"]["up"] == false).await;
        assert!(down["state"]["refused"].is_null(), "it has not refused us: {down}");
        registrar.comes_back().await;
        let up = stage.api.until(&path(&trunk), |trunk| trunk["state"]["up"] == true).await;
        assert!(up["state"]["registered_until"].is_string(), "{up}");
    }

    /// 34. A peer that says nothing any more blocks a campaign, and frees it when it speaks again.
    async fn a_silent_peer_blocks_a_campaign(stage: &mut Stage) needs [] {
        let at = stage.address();
        let speaks = Arc::new(AtomicBool::new(false));
        let told = speaks.clone();
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            _ if !told.load(Relaxed) => Vec::new(),
            "OPTIONS" => vec![response(&heard.text, "200 OK", "", "")],
            "INVITE" => vec![response(&heard.text, "486 Busy Here", "", "")],
            _ => Vec::new(),
        });
        let trunk = stage.trunk(at.port(), json!({ "options_interval_seconds": 10 })).await;
        stage.number(OURS, &trunk, json!({})).await;
        stage.api.until(&path(&trunk), |trunk| trunk["state"]["up"] == false).await;
        let agent = stage.agent(json!({})).await;
        let campaign = stage.campaign(&agent, &["+12025550120".to_owned(), "+12025550121".to_owned()], json!({})).await;
        let blocked = |campaign: &Value| campaign["blocked_by"].as_array().is_some_and(|by| by.contains(&json!("trunk")));
        stage.api.until(&campaign, blocked).await;
        pause(1_000).await;
        assert!(peer.heard("INVITE").is_empty());
        speaks.store(true, Relaxed);
        stage.api.until(&path(&trunk), |trunk| trunk["state"]["up"] == true).await;
        stage.api.until(&campaign, |campaign| campaign["status"] == "completed").await;
        assert_eq!(peer.different("INVITE").len(), 2);
        for session in stage.api.all("/v1/sessions").await {
            assert_eq!(end(&session), ("busy", "busy"));
        }
    }

    /// A call that waits goes where its number goes; one whose number has no trunk any more ends at once, with the reason.
    async fn a_call_that_waits_follows_its_number(stage: &mut Stage) needs [] {
        let (closed, open) = (stage.silent_peer(), stage.address());
        let busy = BytePeer::start(open, |heard, _| match heard.what() {
            "INVITE" => vec![response(&heard.text, "486 Busy Here", "", "")],
            _ => Vec::new(),
        });
        let first = stage.trunk(closed.address().port(), json!({ "paused": true })).await;
        let number = stage.number(OURS, &first, json!({})).await;
        let second = stage.trunk(open.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        let moved = async |trunk: &Value| {
            let url = format!("{}/v1/numbers/{}", stage.api.url, number["id"].as_str().unwrap());
            let patch = stage.api.client.patch(url).bearer_auth(&stage.api.key).json(&json!({ "trunk_id": trunk }));
            assert_eq!(patch.send().await.unwrap().status().as_u16(), 200);
        };
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.is(&id, "queued").await;
        moved(&second["id"]).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), &ended["trunk_id"]), (("busy", "busy"), &second["id"]), "{ended}");
        busy.hears("INVITE", 1).await;
        assert!(closed.heard("INVITE").is_empty());
        moved(&first["id"]).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.is(&id, "queued").await;
        moved(&Value::Null).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "canceled"), "{ended}");
        assert!(ended["error"]["message"].as_str().unwrap().contains("has no trunk any more"), "{ended}");
    }
}
