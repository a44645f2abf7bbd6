//! Two processes that would both be the telephones of one database.
use super::stage::{OURS, PASSWORD, Stage, local};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, response},
        until,
    },
};
use serde_json::json;
use std::net::SocketAddr;

/// A carrier with which we register; everybody behind it is busy.
fn carrier(at: SocketAddr) -> BytePeer {
    BytePeer::start(at, |heard, _| match heard.what() {
        "REGISTER" => {
            let contact = heard.header("Contact").unwrap_or_default();
            let contact = contact.split(';').next().unwrap_or_default();
            vec![response(
                &heard.text,
                "200 OK",
                &format!("Contact: {contact};expires=3600\r\nExpires: 3600\r\n"),
                "",
            )]
        }
        "INVITE" => vec![response(&heard.text, "486 Busy Here", "", "")],
        _ => Vec::new(),
    })
}

on_the_phone! {
    /// 64. A second process on the same database does not come up: it neither registers nor dials. Once the first one is gone it does.
    async fn the_second_one_stays_quiet(stage: &mut Stage) needs [] {
        let at = stage.address();
        let peer = carrier(at);
        let register = json!({ "enabled": true, "expires_seconds": 3_600 });
        let trunk = stage.trunk(at.port(), json!({ "username": "acme", "password": PASSWORD, "register": register })).await;
        stage.number(OURS, &trunk, json!({})).await;
        let path = format!("/v1/sip_trunks/{}", trunk["id"].as_str().unwrap());
        stage.api.until(&path, |trunk| trunk["state"]["registered_until"].is_string()).await;
        let agent = stage.agent(json!({})).await;
        let numbers: Vec<_> = (0..6).map(|n| format!("+1202555012{n}")).collect();
        let campaign = stage.campaign(&agent, &numbers, json!({ "pacing": { "calls_per_second": 4 } })).await;
        let second = local(stage.ports.take());
        stage.place.refuses_a_second(&[("CALLBOARD_SIP_BIND", &second.to_string())]);
        stage.api.until(&campaign, |campaign| campaign["status"] == "completed").await;
        let heard = peer.all();
        assert!(heard.iter().all(|heard| heard.from == stage.sip), "{heard:#?}");
        assert_eq!((peer.different("REGISTER").len(), peer.different("INVITE").len()), (1, numbers.len()));
        // The same settings, when nobody is in the way.
        stage.restart_with(&[("CALLBOARD_SIP_BIND", &second.to_string())]);
        until("the second one registers", || peer.heard("REGISTER").iter().any(|register| register.from == second)).await;
    }
}
