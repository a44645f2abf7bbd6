//! Signalling over TCP and TLS, and sound that is encrypted.
use super::stage::{CALLEE, OURS, Stage, end, local, merged};
use crate::{
    on_the_phone,
    world::{
        phone::{
            byte_peer::{BytePeer, picks_up, response},
            pause,
            sound::Sound,
        },
        zoo::{Authority, authority},
    },
};
use serde_json::{Value, json};
use std::{fs, net::SocketAddr};

/// PEM files of a certificate for that name or address, and of its key.
fn certificate(stage: &Stage, file: &str, by: &Authority, name: &str) -> [String; 2] {
    let (certificate, key) = by.certify(name);
    [("cert", certificate), ("key", key)].map(|(kind, pem)| {
        let path = stage.file(&format!("{file}.{kind}.pem"));
        fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

/// Trusts the authority of these tests, and is reached over TLS there.
fn secure(stage: &mut Stage) -> SocketAddr {
    let at = local(stage.ports.take());
    let [certificate, key] = certificate(stage, "ours", authority(), "127.0.0.1");
    let roots = stage.file("roots.pem");
    fs::write(&roots, &authority().pem).unwrap();
    stage.restart_with(&[
        ("CALLBOARD_WEBHOOK_CA_FILE", roots.to_str().unwrap()),
        ("CALLBOARD_SIP_TLS_BIND", &at.to_string()),
        ("CALLBOARD_SIP_TLS_CERT", &certificate),
        ("CALLBOARD_SIP_TLS_KEY", &key),
    ]);
    at
}

/// How a telephone is configured that speaks TLS with a certificate for that name.
fn over_tls(stage: &Stage, by: &Authority, name: &str, more: Value) -> Value {
    let [cert, key] = certificate(stage, &format!("theirs-{name}"), by, name);
    let config = json!({ "transport": "tls", "cert": cert, "key": key, "user": "+12025550111" });
    merged(config, more)
}

/// Waits for so many calls that came in; answers the newest.
async fn have_come_in(stage: &Stage, calls: usize) -> String {
    let so = |list: &Value| list["data"].as_array().is_some_and(|all| all.len() == calls);
    let list = stage.api.until("/v1/sessions?direction=inbound", so).await;
    list["data"][0]["id"].as_str().unwrap().to_owned()
}

on_the_phone! {
    /// 15. Over TCP and over TLS: we call and hang up, they hang up, they call.
    async fn streams_carry_calls(stage: &mut Stage) needs [Pjsip] {
        let secured = secure(stage);
        let agent = stage.agent(json!({})).await;
        for (n, (transport, ours_at)) in [("tcp", stage.sip), ("tls", secured)].into_iter().enumerate() {
            let config = over_tls(stage, authority(), "127.0.0.1", json!({ "transport": transport }));
            let mut telephone = stage.telephone(json!({}), config).await;
            let trunk = stage.trunk(telephone.port, json!({ "transport": transport })).await;
            let ours = format!("+1202555100{n}");
            stage.number(&ours, &trunk, json!({ "agent_id": agent["id"] })).await;
            let from = json!({ "from_number": ours });
            let id = stage.call(&agent, CALLEE, from.clone()).await;
            telephone.is("CONFIRMED").await;
            stage.is(&id, "in_progress").await;
            stage.hang_up(&id).await;
            telephone.is("DISCONNECTED").await;
            assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"), "{transport}");

            telephone.tell(json!({ "do": "behaviour", "behaviour": { "hang_up_ms": 4_000 } }));
            let id = stage.call(&agent, CALLEE, from).await;
            telephone.is("DISCONNECTED").await;
            let ended = stage.ended(&id).await;
            assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{transport}: {ended}");

            telephone.tell(json!({ "do": "call", "to": format!("sip:{ours}@{ours_at};transport={transport}") }));
            telephone.is("CONFIRMED").await;
            let id = have_come_in(stage, n + 1).await;
            stage.is(&id, "in_progress").await;
            telephone.tell(json!({ "do": "hang_up" }));
            telephone.is("DISCONNECTED").await;
            assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"), "{transport}");
            let seen: Vec<_> = telephone.all("incoming").iter().map(|event| event["message"].to_string()).collect();
            assert!(seen.len() == 2 && seen.iter().all(|invite| invite.contains(&format!("SIP/2.0/{}", transport.to_uppercase()))), "{seen:#?}");
        }
    }

    /// 15. A certificate of somebody else, or from an authority that nobody knows: not one byte of a call goes there, and the trunk
    /// says why.
    async fn a_wrong_certificate(stage: &mut Stage) needs [Pjsip] {
        secure(stage);
        let agent = stage.agent(json!({})).await;
        let unknown = Authority::generate();
        for (n, (by, name)) in [(authority(), "sip.elsewhere.example"), (&unknown, "127.0.0.1")].into_iter().enumerate() {
            let config = over_tls(stage, by, name, json!({}));
            let mut telephone = stage.telephone(json!({}), config).await;
            let trunk = stage.trunk(telephone.port, json!({ "transport": "tls" })).await;
            let ours = format!("+1202555100{n}");
            stage.number(&ours, &trunk, json!({})).await;
            let id = stage.call(&agent, CALLEE, json!({ "from_number": ours })).await;
            let ended = stage.ended(&id).await;
            assert_eq!(end(&ended), ("failed", "unreachable"), "{name}: {ended}");
            let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
            let failed = stage.api.get(&path).await;
            assert_eq!(failed["state"]["targets"][0]["up"], false, "{name}: {failed}");
            let test = stage.api.post(&format!("{path}/test"), json!({})).await;
            assert_eq!((&test["reachable"], &test["error"]["code"]), (&json!(false), &json!("tls_failed")), "{name}: {test}");
            assert_eq!(stage.api.get(&path).await["status"], "unreachable");
            assert!(telephone.all("incoming").is_empty());
        }
    }

    /// 16. SRTP over TLS: a tone is heard at our end as it was sent, and the agent at theirs; so is one who calls and wants it.
    async fn sound_is_encrypted(stage: &mut Stage) needs [Pjsip] {
        let secured = secure(stage);
        let heard = stage.file("heard.wav");
        let config = over_tls(stage, authority(), "127.0.0.1", json!({ "srtp": "required" }));
        let mut telephone = stage.telephone(json!({ "tone_hz": 1_000, "record": heard }), config).await;
        let trunk = stage.trunk(telephone.port, json!({ "transport": "tls", "srtp": "required" })).await;
        let agent = stage.agent(json!({ "recording": { "enabled": true, "channels": "dual" } })).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        stage.is(&id, "in_progress").await;
        pause(4_000).await;
        telephone.tell(json!({ "do": "stats" }));
        let stats = telephone.hears("stats", |_| true).await;
        // What cannot be decrypted is not counted.
        assert!(stats["received"].as_u64() > Some(75), "{stats}");
        stage.hang_up(&id).await;
        telephone.hears("gone", |_| true).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
        let offer = telephone.all("incoming")[0]["message"].to_string();
        assert!(offer.contains("RTP/SAVP ") && offer.contains("a=crypto:1 "), "{offer}");
        let loud = Sound::read(&heard).loud_ms();
        // Such a tone is taken for nobody's voice, and does not interrupt it.
        assert!(loud.len() > 10, "the agent is heard, not {loud:?}");
        let [_, tone] = stage.recording(&ended).await;
        assert!(tone.ms() > 2_000, "{} ms of {ended}", tone.ms());
        let middle = tone.ms() / 2 - 1_000;
        let shares: Vec<_> = (0..20).map(|n| tone.share_of(1_000.0, middle + n * 100, 100)).collect();
        assert!(shares.iter().filter(|share| **share > 0.9).count() >= 14, "{shares:?}");

        let behaviour = json!({ "record": stage.file("again.wav") });
        telephone.tell(json!({ "do": "call", "to": format!("sip:{OURS}@{secured};transport=tls"), "behaviour": behaviour }));
        let id = have_come_in(stage, 1).await;
        stage.is(&id, "in_progress").await;
        pause(3_000).await;
        telephone.tell(json!({ "do": "hang_up" }));
        telephone.hears("gone", |_| true).await;
        stage.ended(&id).await;
        assert!(Sound::read(&stage.file("again.wav")).loud_ms().len() > 25, "half a second of the agent is heard");
    }

    /// 16. Where SRTP is required nothing is said in the clear: not to who refuses it, not to who answers without, not to who calls
    /// without.
    async fn plain_sound_is_refused(stage: &mut Stage) needs [Pjsip] {
        let secured = secure(stage);
        let config = over_tls(stage, authority(), "127.0.0.1", json!({ "srtp": "off" }));
        let mut telephone = stage.telephone(json!({}), config).await;
        let trunk = stage.trunk(telephone.port, json!({ "transport": "tls", "srtp": "required" })).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), &ended["error"]["sip_code"]), (("failed", "carrier_rejected"), &json!(488)), "{ended}");
        telephone.tell(json!({ "do": "call", "to": format!("sip:{OURS}@{secured};transport=tls") }));
        let gone = telephone.hears("state", |event| event["state"] == "DISCONNECTED" && event["code"] == 488).await;
        assert_eq!(gone["reason"], "Not Acceptable Here", "{gone}");

        let (at, ear) = (stage.address(), stage.ear());
        let rtp = ear.port();
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            "INVITE" => vec![picks_up(&heard.text, at, rtp)],
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        // Over UDP in development alone, where the keys are nobody's secret.
        let trunk = stage.trunk(at.port(), json!({ "srtp": "required" })).await;
        stage.number("+12025551001", &trunk, json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({ "from_number": "+12025551001" })).await;
        let bye = peer.hears("BYE", 1).await;
        assert!(bye.header("Reason").is_some_and(|reason| reason.contains("cause=88")), "{}", bye.text);
        assert_eq!(end(&stage.ended(&id).await), ("failed", "carrier_rejected"));
        peer.hears("ACK", 1).await;
        assert!(ear.packets().is_empty(), "{} packets in the clear", ear.packets().len());
    }
}
