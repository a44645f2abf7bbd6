//! Offers inside a call that change its sound, and those that meet.
use super::stage::{CALLEE, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, picks_up, response},
        dialog::Dialog,
        ear::{Ear, Packet},
        until,
    },
};
use serde_json::json;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const PCMU: (u8, &str) = (0, "PCMU");
const PCMA: (u8, &str) = (8, "PCMA");
const GSM_EFR: (u8, &str) = (97, "GSM-EFR");

/// Sound in one codec.
fn sdp_of(version: u32, rtp: u16, (number, name): (u8, &str)) -> String {
    format!(
        "v=0\r\no=- 1 {version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {rtp} RTP/AVP {number}\r\n\
         a=rtpmap:{number} {name}/8000\r\n"
    )
}

/// Picks up at once, in mu-law.
fn phone(at: SocketAddr, rtp: u16) -> BytePeer {
    BytePeer::start(at, move |heard, _| match heard.what() {
        "INVITE" => vec![picks_up(&heard.text, at, rtp)],
        "BYE" => vec![response(&heard.text, "200 OK", "", "")],
        _ => Vec::new(),
    })
}

/// Waits until what comes there is in that codec.
async fn hears_in(ear: &Ear, (number, name): (u8, &str)) {
    let is_in_it = || ear.packets().last().is_some_and(|packet| packet.payload_type == number);
    until(&format!("sound comes in {name}"), is_in_it).await;
}

/// Waits for some more of it.
pub async fn hears_on(ear: &Ear) {
    let before = ear.packets().len();
    until("sound still comes", || ear.packets().len() > before + 20).await;
}

on_the_phone! {
    /// 19. Another port by re-INVITE, then another codec by UPDATE: our sound follows, though somebody goes on sending from the old port.
    async fn sound_moves(stage: &mut Stage) needs [] {
        let (at, first, second) = (stage.address(), stage.ear(), stage.ear());
        let peer = phone(at, first.port());
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let invite = peer.hears("INVITE", 1).await;
        let to = media_of(invite.body());
        first.breathes(to);
        stage.is(&id, "in_progress").await;
        until("the agent is heard", || first.packets().iter().any(Packet::is_loud)).await;
        let dialog = Dialog::of(&peer, invite);
        let moved = dialog.asks("INVITE", 11, "", &sdp_of(2, second.port(), PCMU)).await;
        assert_eq!(moved.what(), "200", "{}", moved.text);
        assert_eq!(media_of(moved.body()), to, "we stay where we are");
        dialog.acknowledges(&moved, "");
        hears_in(&second, PCMU).await;
        second.breathes(to);
        // What was on its way has come when nothing has for a while.
        let (mut before, mut since) = (0, Instant::now());
        until("nothing comes to the old port", || {
            let now = first.packets().len();
            if now != before {
                (before, since) = (now, Instant::now());
            }
            since.elapsed() >= Duration::from_millis(500)
        })
        .await;
        hears_on(&second).await;
        assert_eq!(first.packets().len(), before, "nothing more goes to the old port");
        let changed = dialog.asks("UPDATE", 12, "", &sdp_of(3, second.port(), PCMA)).await;
        assert_eq!(changed.what(), "200", "{}", changed.text);
        assert!(changed.body().contains("PCMA") && !changed.body().contains("PCMU"), "{}", changed.text);
        hears_in(&second, PCMA).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }

    /// 19. An offer that meets ours is refused (491); who asked for ours answers it in the ACK. One without a codec of ours is
    /// refused (488), and the session stays as it was.
    async fn offers_meet(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone(at, ear.port());
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let invite = peer.hears("INVITE", 1).await;
        ear.breathes(media_of(invite.body()));
        stage.is(&id, "in_progress").await;
        hears_in(&ear, PCMU).await;
        let dialog = Dialog::of(&peer, invite);
        let offer = dialog.asks("INVITE", 11, "", "").await;
        assert!(offer.what() == "200" && offer.body().contains("PCMU") && offer.body().contains("PCMA"), "all that we have: {}", offer.text);
        let met = dialog.asks("UPDATE", 12, "", &sdp_of(2, ear.port(), PCMU)).await;
        assert_eq!(met.what(), "491", "{}", met.text);
        dialog.acknowledges(&offer, &sdp_of(3, ear.port(), PCMA));
        hears_in(&ear, PCMA).await;
        let later = dialog.asks("UPDATE", 13, "", &sdp_of(4, ear.port(), PCMU)).await;
        assert_eq!(later.what(), "200", "{}", later.text);
        hears_in(&ear, PCMU).await;
        let foreign = dialog.asks("INVITE", 14, "", &sdp_of(5, ear.port(), GSM_EFR)).await;
        assert_eq!(foreign.what(), "488", "{}", foreign.text);
        dialog.acknowledges(&foreign, "");
        hears_on(&ear).await;
        hears_in(&ear, PCMU).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        stage.hang_up(&id).await;
        peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }
}
