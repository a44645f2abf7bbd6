//! Calls that ring at several telephones at once.
use super::stage::{CALLEE, OURS, PASSWORD, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::{
        PATIENCE,
        byte_peer::{BytePeer, Heard, picks_up, response},
        ear::Packet,
        kamailio::{Kamailio, Settings},
        pause,
        pjsip::Pjsip,
        until,
    },
};
use serde_json::json;
use std::{collections::BTreeSet, net::SocketAddr, time::Instant};

/// The second telephone's 200, behind the same proxy.
fn other_picks_up(request: &str, at: SocketAddr) -> Vec<u8> {
    let first = String::from_utf8(picks_up(request, at, 9)).unwrap();
    let other = first.replace(";tag=bytes", ";tag=other");
    other.replace("sip:phone@", "sip:other@").into_bytes()
}

/// Waits until so many of their calls are left.
async fn are_left(group: &mut [Pjsip], calls: usize) {
    let began = Instant::now();
    loop {
        let mut open = 0;
        for telephone in group.iter_mut() {
            open += telephone.open_calls().await.len();
        }
        if open == calls {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{open} calls are open, not {calls}");
        pause(50).await;
    }
}

on_the_phone! {
    /// 10. Two pick up at once: the first is talked to, the other one is acknowledged and hung up, once. (RFC 3261, section 13.2.2.4.)
    async fn two_pick_up_at_once(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let rtp = ear.port();
        let peer = BytePeer::start(at, move |heard, before| match heard.what() {
            "INVITE" if before == 0 => vec![picks_up(&heard.text, at, rtp), other_picks_up(&heard.text, at)],
            "BYE" => vec![response(&heard.text, "200 OK", "", "")],
            _ => Vec::new(),
        });
        let agent = stage.line(at.port()).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let invite = peer.hears("INVITE", 1).await;
        ear.breathes(media_of(invite.body()));
        stage.is(&id, "in_progress").await;
        let bye = peer.hears("BYE", 1).await;
        assert!(bye.text.starts_with("BYE sip:other@") && bye.header("To").is_some_and(|to| to.ends_with("tag=other")), "{}", bye.text);
        // Its 200 comes again, as if the ACK had been lost.
        peer.hears("ACK", 2).await;
        peer.send(&other_picks_up(&invite.text, at), invite.from);
        peer.hears("ACK", 3).await;
        until("the first one is talked to", || ear.packets().iter().any(Packet::is_loud)).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        stage.hang_up(&id).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
        let ends = |method: &str, tag: &str| {
            let mut all = peer.heard(method);
            all.retain(|heard| heard.header("To").is_some_and(|to| to.ends_with(tag)));
            all
        };
        until("the first one is hung up", || !ends("BYE", "tag=bytes").is_empty()).await;
        assert_eq!((ends("ACK", "tag=bytes").len(), ends("ACK", "tag=other").len()), (1, 2));
        let byes = ends("BYE", "tag=other");
        let once: BTreeSet<_> = byes.iter().map(Heard::branch).collect();
        assert_eq!(once.len(), 1, "{byes:#?}");
    }

    /// 10. A group of telephones that all pick up at the same moment: one of them has the call, and the others are let go of.
    async fn a_group_picks_up(stage: &mut Stage) needs [Kamailio, Pjsip] {
        let port = stage.address().port();
        let _proxy = Kamailio::start(Settings { password: PASSWORD, ..Settings::at(port) }).await;
        let domain = format!("127.0.0.1:{port}");
        let register = json!({ "registrar": domain, "username": CALLEE, "password": PASSWORD });
        let mut group = Vec::new();
        for _ in 0..2 {
            let config = json!({ "user": CALLEE, "domain": domain, "register": register });
            let mut telephone = stage.telephone(json!({ "ring_ms": 400 }), config).await;
            let registered = telephone.hears("registered", |_| true).await;
            assert_eq!(registered["code"], 200, "{registered}");
            group.push(telephone);
        }
        let trunk = stage.trunk(port, json!({})).await;
        stage.number(OURS, &trunk, json!({})).await;
        let agent = stage.agent(json!({})).await;
        let id = stage.call(&agent, CALLEE, json!({})).await;
        for telephone in &mut group {
            telephone.hears("incoming", |_| true).await;
        }
        stage.is(&id, "in_progress").await;
        are_left(&mut group, 1).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress");
        stage.hang_up(&id).await;
        are_left(&mut group, 0).await;
        assert_eq!(end(&stage.ended(&id).await), ("completed", "completed"));
    }
}
