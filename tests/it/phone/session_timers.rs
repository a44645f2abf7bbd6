//! Session timers (RFC 4028): what both sides agree on, and refreshes of the peer. Ours, and one that does not come, take a minute:
//! they are in `long_calls.rs`.
use super::stage::{CALLEE, OURS, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, Heard, response, sdp},
        dialog::Dialog,
        ear::Packet,
        until,
    },
};
use serde_json::json;
use std::net::SocketAddr;

/// Of its code, its interval and what it requires.
fn terms(answer: &Heard) -> (&str, Option<&str>, Option<&str>) {
    (
        answer.what(),
        answer.header("Session-Expires"),
        answer.header("Require"),
    )
}

/// Wants 200 s at least, and refreshes by itself.
fn phone(at: SocketAddr, rtp: u16) -> BytePeer {
    let accepted = format!(
        "Contact: <sip:phone@{at}>\r\nAllow: INVITE, ACK, BYE, UPDATE\r\nRequire: timer\r\nSession-Expires: 200;refresher=uas\r\n\
         Content-Type: application/sdp\r\n"
    );
    BytePeer::start(at, move |heard, _| match (heard.what(), heard.header("CSeq")) {
        ("INVITE", Some("1 INVITE")) => {
            vec![response(
                &heard.text,
                "422 Session Interval Too Small",
                "Min-SE: 200\r\n",
                "",
            )]
        }
        ("INVITE", _) => vec![response(&heard.text, "200 OK", &accepted, &sdp(rtp))],
        ("BYE", _) => vec![response(&heard.text, "200 OK", "", "")],
        _ => Vec::new(),
    })
}

on_the_phone! {
    /// 18. A longer interval is granted (422) and stays agreed: refreshed by UPDATE and by re-INVITE, without a word lost. Less than
    /// 90 s is refused, and the call goes on.
    async fn they_refresh(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone(at, ear.port());
        let trunk = stage.trunk(at.port(), json!({ "session_expires_seconds": 90 })).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let asked = peer.hears("INVITE", 1).await;
        assert_eq!((asked.header("Session-Expires"), asked.header("Min-SE")), (Some("90;refresher=uac"), Some("90")));
        let second = || peer.heard("INVITE").into_iter().find(|invite| invite.header("CSeq") == Some("2 INVITE"));
        until("it asks again", || second().is_some()).await;
        let invite = second().unwrap();
        assert_eq!((invite.header("Session-Expires"), invite.header("Min-SE")), (Some("200;refresher=uac"), Some("200")));
        assert_eq!(invite.header("Call-ID"), asked.header("Call-ID"));
        ear.breathes(media_of(invite.body()));
        stage.is(&id, "in_progress").await;
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;

        let dialog = Dialog::of(&peer, invite.clone());
        let refreshed = dialog.asks("UPDATE", 11, "Supported: timer\r\nSession-Expires: 200;refresher=uac\r\n", "").await;
        assert_eq!(terms(&refreshed), ("200", Some("200;refresher=uac"), Some("timer")), "{}", refreshed.text);
        let short = dialog.asks("UPDATE", 12, "Supported: timer\r\nSession-Expires: 60;refresher=uac\r\n", "").await;
        assert_eq!((short.what(), short.header("Min-SE")), ("422", Some("90")), "{}", short.text);
        // The same description again.
        let more = "Supported: timer\r\nMin-SE: 100\r\nSession-Expires: 100\r\n";
        let again = dialog.asks("INVITE", 13, more, &sdp(ear.port())).await;
        dialog.acknowledges(&again, "");
        assert_eq!(terms(&again), ("200", Some("100;refresher=uac"), Some("timer")), "{}", again.text);
        assert_eq!(again.body(), invite.body(), "nothing changes");
        let before = ear.packets().len();
        until("sound still comes", || ear.packets().len() > before + 20).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 18. The same with a telephone that wants 120 s at least, and asks anew inside the call.
    async fn a_telephone_wants_a_longer_interval(stage: &mut Stage) needs [Pjsip] {
        let timer = json!({ "timer": { "mode": "optional", "expires": 1_800, "min": 120 } });
        let mut telephone = stage.telephone(json!({}), timer).await;
        let trunk = stage.trunk(telephone.port, json!({ "session_expires_seconds": 90 })).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        telephone.is("CONFIRMED").await;
        stage.is(&id, "in_progress").await;
        // To PJSIP each try is a call of its own.
        let tries: Vec<_> = telephone.all("incoming").iter().map(|event| event["message"].to_string()).collect();
        assert_eq!(tries.len(), 2, "{tries:#?}");
        assert!(tries[0].contains("Session-Expires: 90") && tries[1].contains("Session-Expires: 120"), "{tries:#?}");
        telephone.tell(json!({ "do": "reinvite" }));
        telephone.hears("media", |media| media["codec"] == "PCMU").await;
        assert_eq!(telephone.open_calls().await.len(), 1);
        stage.hang_up(&id).await;
        telephone.is("DISCONNECTED").await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }
}
