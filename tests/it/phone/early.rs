//! What comes before somebody has picked up.
use super::stage::{CALLEE, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, picks_up, response, rings, sdp},
        ear::Packet,
        pause,
        sound::Sound,
        until,
    },
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

on_the_phone! {
    /// 7. Called off before anything came back: nothing is cancelled that may not have arrived (RFC 3261, section 9.1); it is as soon
    /// as the other side has spoken.
    async fn called_off_before_anything_came_back(stage: &mut Stage) needs [] {
        let at = stage.address();
        let agent = stage.line(at.port()).await;
        let speaks = Arc::new(AtomicBool::new(false));
        let (told, mut invite) = (speaks.clone(), String::new());
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            "INVITE" => {
                invite.clone_from(&heard.text);
                if told.load(Relaxed) { vec![rings(&invite, at)] } else { Vec::new() }
            }
            "CANCEL" => vec![response(&heard.text, "200 OK", "", ""), response(&invite, "487 Request Terminated", "", "")],
            _ => Vec::new(),
        });
        let id = stage.call(&agent, CALLEE, json!({})).await;
        peer.hears("INVITE", 1).await;
        stage.hang_up(&id).await;
        // Two more INVITEs leave meanwhile.
        let third = peer.hears("INVITE", 3).await;
        assert!(peer.heard("CANCEL").is_empty(), "nothing was heard yet");
        speaks.store(true, Relaxed);
        let cancel = peer.hears("CANCEL", 1).await;
        assert_eq!(cancel.branch(), third.branch());
        peer.hears("ACK", 1).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "canceled"), "{ended}");
    }

    /// 8. Sound before the answer is listened to; the agent says nothing before it is paid for.
    async fn the_agent_is_silent_until_somebody_picks_up(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let agent = stage.line(at.port()).await;
        let rtp = ear.port();
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            "INVITE" => {
                let more = format!("Contact: <sip:phone@{at}>\r\nContent-Type: application/sdp\r\n");
                vec![response(&heard.text, "183 Session Progress", &more, &sdp(rtp))]
            }
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let invite = peer.hears("INVITE", 1).await;
        let to = media_of(invite.body());
        // The tone that callers hear while it rings.
        ear.says(Sound::tone(440.0, 2_000), to, |packets| packets).await;
        let early = ear.packets();
        assert!(!early.iter().any(Packet::is_loud), "the agent speaks to nobody");
        let ringing = stage.session(&id).await;
        assert!(ringing["started_at"].is_null() && ringing["phase"] == "ringing", "{ringing}");
        peer.send(&picks_up(&invite.text, at, rtp), invite.from);
        peer.hears("ACK", 1).await;
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;
        stage.hang_up(&id).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("completed", "completed"), "{ended}");
    }

    /// 8, with a real telephone.
    async fn a_telephone_with_early_sound_is_reached(stage: &mut Stage) needs [Pjsip] {
        let heard = stage.file("heard.wav");
        let mut telephone = stage.telephone(json!({ "early": true, "ring_ms": 2_000, "record": heard, "hang_up_ms": 4_000 }), json!({})).await;
        let agent = stage.line(telephone.port).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        // It picks up no sooner.
        let picks_up = telephone.hears("incoming", |_| true).await["at_ms"].as_u64().unwrap() + 2_000;
        let began = telephone.hears("recording", |_| true).await["at_ms"].as_u64().unwrap();
        telephone.is("CONFIRMED").await;
        telephone.hears("gone", |_| true).await;
        let loud = Sound::read(&heard).loud_ms();
        let first = began + loud.first().copied().unwrap_or_else(|| panic!("the agent was never heard"));
        // A recorder that stands still for a moment does not make up for it.
        assert!(first + 1_000 >= picks_up, "heard at {first}, picked up at {picks_up}");
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 9. A telephone that wants its 180 acknowledged (RFC 3262).
    async fn a_provisional_answer_is_acknowledged(stage: &mut Stage) needs [Pjsip] {
        let mut telephone = stage.telephone(json!({ "ring_ms": 1_500, "hang_up_ms": 4_000 }), json!({ "prack": "required" })).await;
        let agent = stage.line(telephone.port).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let incoming = telephone.hears("incoming", |_| true).await;
        let supported = incoming["message"].as_str().unwrap().lines().find(|line| line.starts_with("Supported:")).unwrap_or_default();
        assert!(supported.contains("100rel"), "{incoming}");
        telephone.is("CONFIRMED").await;
        telephone.is("DISCONNECTED").await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 14. Nothing at all comes back: it may ring there, so nobody else is asked, and there is one INVITE.
    async fn silence_is_not_tried_elsewhere(stage: &mut Stage) needs [] {
        let peer = stage.silent_peer();
        let agent = stage.line(peer.address().port()).await;
        let id = stage.call(&agent, CALLEE, json!({ "ring_timeout_seconds": 60 })).await;
        let ended = stage.ended(&id).await;
        assert_eq!(end(&ended), ("failed", "unreachable"), "{ended}");
        assert!(ended["error"]["sip_code"].is_null(), "{ended}");
        let invites = peer.heard("INVITE");
        let first = &invites[0];
        assert!(invites.iter().all(|invite| invite.text == first.text), "the same request again and again");
        // Timer B is 32 s: after 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s; the last one comes too late on a machine that is busy.
        let last = invites[invites.len() - 1].at.duration_since(first.at);
        let in_time = (Duration::from_secs(13)..Duration::from_secs(33)).contains(&last);
        assert!((6..=7).contains(&invites.len()) && in_time, "{} in {last:?}", invites.len());
        assert!(peer.heard("CANCEL").is_empty());
        // Somebody picks up all the same: nobody is left waiting on the line.
        let late = picks_up(&first.text, peer.address(), 9);
        peer.send(&late, first.from);
        peer.hears("ACK", 1).await;
        let bye = peer.hears("BYE", 1).await;
        peer.send(&response(&bye.text, "200 OK", "", ""), bye.from);
        pause(100).await;
        assert_eq!(end(&stage.session(&id).await), ("failed", "unreachable"));
    }
}
