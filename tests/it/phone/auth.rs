//! Carriers that ask who we are, and peers whom we ask.
use super::stage::{CALLEE, OURS, PASSWORD, Stage, end};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, picks_up, response},
        kamailio::{Kamailio, Settings},
        pause,
    },
};
use serde_json::{Value, json};

fn known() -> Value {
    json!({ "username": "acme", "password": PASSWORD })
}

/// A header that asks for MD5 with `auth`.
fn challenge(header: &str, realm: &str, nonce: &str, more: &str) -> String {
    format!("{header}: Digest realm=\"{realm}\", nonce=\"{nonce}\", algorithm=MD5, qop=\"auth\"{more}\r\n")
}

on_the_phone! {
    /// 11. A real proxy asks (407), with MD5 and with SHA-256; both are answered so that it believes us.
    async fn a_proxy_asks_who_we_are(stage: &mut Stage) needs [Kamailio, Pjsip] {
        for (n, algorithm) in ["MD5", "SHA-256"].into_iter().enumerate() {
            let port = stage.address().port();
            let mut telephone = stage.telephone(json!({ "hang_up_ms": 4_000 }), json!({})).await;
            let behind = Some(telephone.port);
            let settings = Settings { password: PASSWORD, algorithm, challenges_calls: true, behind, ..Settings::at(port) };
            let _proxy = Kamailio::start(settings).await;
            let trunk = stage.trunk(port, known()).await;
            let ours = format!("+1202555100{n}");
            stage.number(&ours, &trunk, json!({})).await;
            let agent = stage.agent(json!({})).await;
            let id = stage.call(&agent, CALLEE, json!({ "from_number": ours })).await;
            telephone.is("CONFIRMED").await;
            telephone.is("DISCONNECTED").await;
            let ended = stage.ended(&id).await;
            assert_eq!(end(&ended), ("completed", "completed"), "{algorithm}: {ended}");
        }
    }

    /// 11. 407 of a proxy and 401 of who is behind it; then a nonce that has grown old.
    async fn both_ask_and_a_nonce_grows_old(stage: &mut Stage) needs [] {
        let at = stage.address();
        let trunk = stage.trunk(at.port(), known()).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let peer = BytePeer::start(at, move |heard, _| {
            let (proxy, user) = (heard.header("Proxy-Authorization"), heard.header("Authorization"));
            vec![match (heard.what(), proxy, user) {
                ("INVITE", None, _) => response(&heard.text, "407 Proxy Authentication Required", &challenge("Proxy-Authenticate", "proxy", "p1", ""), ""),
                ("INVITE", Some(_), None) => response(&heard.text, "401 Unauthorized", &challenge("WWW-Authenticate", "user", "u1", ""), ""),
                ("INVITE", Some(_), Some(user)) if user.contains("\"u1\"") => {
                    response(&heard.text, "401 Unauthorized", &challenge("WWW-Authenticate", "user", "u2", ", stale=true"), "")
                }
                ("INVITE", ..) => picks_up(&heard.text, at, 9),
                ("BYE", ..) => response(&heard.text, "200 OK", "", ""),
                _ => return Vec::new(),
            }]
        });
        let id = stage.call(&agent, CALLEE, json!({})).await;
        stage.is(&id, "in_progress").await;
        let invites = peer.different("INVITE");
        assert_eq!(invites.len(), 4, "{invites:#?}");
        let last = invites.last().unwrap();
        let (proxy, user) = (last.header("Proxy-Authorization").unwrap(), last.header("Authorization").unwrap());
        assert!(proxy.contains("realm=\"proxy\"") && proxy.contains("nonce=\"p1\""), "{proxy}");
        assert!(user.contains("realm=\"user\"") && user.contains("nonce=\"u2\"") && user.contains("nc=00000001"), "{user}");
        assert!(user.contains("username=\"acme\"") && !last.text.contains(PASSWORD));
        let numbers: Vec<_> = invites.iter().filter_map(|invite| invite.header("CSeq")).collect();
        assert_eq!(numbers, ["1 INVITE", "2 INVITE", "3 INVITE", "4 INVITE"]);
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 12. Of several ways to prove it the first one that we know, whatever stands before it. (RFC 8760, section 2.4.)
    async fn the_first_way_that_we_know(stage: &mut Stage) needs [] {
        let agent = stage.agent(json!({})).await;
        let table = [
            (["SHA-256", "MD5", "SHA-1"], "SHA-256", 64),
            (["MD5", "SHA-256", "SHA-512-256"], "MD5", 32),
            (["AKAv1-MD5", "SHA-512-256", "MD5"], "SHA-512-256", 64),
        ];
        for (n, (ways, taken, digits)) in table.into_iter().enumerate() {
            let at = stage.address();
            let challenges = ways.map(|way| challenge("WWW-Authenticate", "user", way, "").replace("=MD5", &format!("={way}"))).concat();
            let peer = BytePeer::start(at, move |heard, _| match (heard.what(), heard.header("Authorization")) {
                ("INVITE", None) => vec![response(&heard.text, "401 Unauthorized", &challenges, "")],
                ("INVITE", Some(_)) => vec![response(&heard.text, "486 Busy Here", "", "")],
                _ => Vec::new(),
            });
            let trunk = stage.trunk(at.port(), known()).await;
            let ours = format!("+1202555100{n}");
            stage.number(&ours, &trunk, json!({})).await;
            let id = stage.call(&agent, CALLEE, json!({ "from_number": ours })).await;
            assert_eq!(end(&stage.ended(&id).await), ("busy", "busy"), "{ways:?}");
            let invite = peer.heard("INVITE").pop().unwrap();
            let answers = invite.text.lines().filter(|line| line.starts_with("Authorization:")).count();
            assert_eq!(answers, 1, "{}", invite.text);
            let answer = invite.header("Authorization").unwrap();
            // Each nonce is called like its way.
            assert!(answer.contains(&format!("algorithm={taken},")) && answer.contains(&format!("nonce=\"{taken}\"")), "{ways:?}: {answer}");
            let proof = answer.split(" response=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            assert_eq!(proof.len(), digits, "{answer}");
        }
    }

    /// 29. A peer that has to prove itself when it calls: with the password it is heard, with another one it is refused.
    async fn a_caller_proves_who_it_is(stage: &mut Stage) needs [Pjsip] {
        let with = |password: &str| json!({ "user": "+12025550111", "credentials": { "username": "pbx", "password": password } });
        let mut impostor = stage.telephone(json!({}), with("not-this")).await;
        let mut telephone = stage.telephone(json!({}), with(PASSWORD)).await;
        let trunk = stage.trunk(telephone.port, json!({ "inbound_auth": { "username": "pbx", "password": PASSWORD } })).await;
        let agent = stage.agent(json!({})).await;
        stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        impostor.tell(json!({ "do": "call", "to": stage.uri(OURS) }));
        let refused = impostor.is("DISCONNECTED").await;
        assert_eq!(refused["code"], 403, "{refused}");
        assert!(stage.api.all("/v1/sessions").await.is_empty());
        telephone.tell(json!({ "do": "call", "to": stage.uri(OURS) }));
        telephone.is("CONFIRMED").await;
        let id = stage.has_come_in().await;
        stage.is(&id, "in_progress").await;
        telephone.tell(json!({ "do": "hang_up" }));
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 11. A wrong password: after five calls the trunk is blocked, so that it does not burn a list of people.
    async fn a_wrong_password_blocks_the_trunk(stage: &mut Stage) needs [] {
        let at = stage.address();
        let trunk = stage.trunk(at.port(), known()).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let mut asked = 0;
        let peer = BytePeer::start(at, move |heard, _| {
            if heard.what() != "INVITE" {
                return Vec::new();
            }
            asked += 1;
            let challenge = challenge("WWW-Authenticate", "user", &format!("n{asked}"), "");
            vec![response(&heard.text, "401 Unauthorized", &challenge, "")]
        });
        for n in 0..5 {
            let id = stage.call(&agent, &format!("+1202555010{n}"), json!({})).await;
            let ended = stage.ended(&id).await;
            assert_eq!((end(&ended), ended["error"]["sip_code"].as_u64()), (("failed", "carrier_rejected"), Some(401)), "{ended}");
        }
        let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
        let shown = stage.api.until(&path, |trunk| !trunk["state"]["refused"].is_null()).await;
        assert_eq!(shown["state"]["refused"]["sip_code"], 401, "{shown}");
        let invites = peer.different("INVITE").len();
        assert_eq!(invites, 10, "each call asks once without and once with");
        let campaign = stage.campaign(&agent, &["+12025550120".to_owned()], json!({})).await;
        let blocked = |campaign: &Value| campaign["blocked_by"].as_array().is_some_and(|by| by.contains(&json!("trunk")));
        stage.api.until(&campaign, blocked).await;
        pause(1_000).await;
        assert_eq!(peer.different("INVITE").len(), invites, "nobody is called over it");
        stage.api.post(&format!("{campaign}/cancel"), json!({})).await;
        stage.api.until(&campaign, |campaign| campaign["status"] == "completed").await;
    }
}
