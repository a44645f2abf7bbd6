//! A database that stalls in the middle of calls: what is on the line does not wait for it.
use super::stage::{CALLEE, OURS, Stage, end, media_of};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, picks_up, request, rings},
        ear::Packet,
        until,
    },
};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use serde_json::json;

/// Somebody else holds the database: every commit waits until it is given back.
struct Held(DatabaseConnection);

impl Held {
    async fn hold(stage: &Stage) -> Self {
        let url = &stage.place.database.url;
        let mut options = ConnectOptions::new(url);
        // One, so that statements one after another are one transaction.
        options.max_connections(1);
        let outside = Database::connect(options).await.unwrap();
        let statements: &[&str] = match url.starts_with("sqlite") {
            true => &["BEGIN IMMEDIATE"],
            false => &["BEGIN", "LOCK TABLE sessions, sip_legs IN EXCLUSIVE MODE"],
        };
        for statement in statements {
            outside.execute_unprepared(statement).await.unwrap();
        }
        Held(outside)
    }

    async fn give_back(self) {
        self.0.execute_unprepared("ROLLBACK").await.unwrap();
    }
}

on_the_phone! {
    /// Who picks up is acknowledged, sound goes on, and who hangs up is answered, all while nothing can be stored. Nothing is said
    /// before it stands that somebody is there.
    async fn a_talk_does_not_wait_for_the_database(stage: &mut Stage) needs [] {
        let (at, ear) = (stage.address(), stage.ear());
        let agent = stage.line(at.port()).await;
        let peer = BytePeer::start(at, move |heard, _| match heard.what() {
            "INVITE" => vec![rings(&heard.text, at)],
            _ => Vec::new(),
        });
        let id = stage.call(&agent, CALLEE, json!({})).await;
        let invite = peer.hears("INVITE", 1).await;
        stage.is(&id, "ringing").await;
        let held = Held::hold(stage).await;
        ear.breathes(media_of(invite.body()));
        peer.send(&picks_up(&invite.text, at, ear.port()), invite.from);
        peer.hears("ACK", 1).await;
        until("sound flows", || ear.packets().len() > 10).await;
        assert!(!ear.packets().iter().any(Packet::is_loud), "it speaks, and nothing stands of it");
        assert_eq!(stage.session(&id).await["phase"], "ringing");
        held.give_back().await;
        until("the agent is heard", || ear.packets().iter().any(Packet::is_loud)).await;
        stage.is(&id, "in_progress").await;
        let held = Held::hold(stage).await;
        let before = ear.packets().len();
        until("sound goes on", || ear.packets().len() > before + 25).await;
        let named = |name: &str| invite.header(name).unwrap().to_owned();
        let bye = format!(
            "BYE sip:callboard@{} SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bK-gone;rport\r\nMax-Forwards: 70\r\n\
             From: {};tag=bytes\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: 7 BYE\r\nContent-Length: 0\r\n\r\n",
            stage.sip, named("To"), named("From"), named("Call-ID"),
        );
        peer.send(bye.as_bytes(), stage.sip);
        peer.hears("200", 1).await;
        assert_eq!(stage.session(&id).await["status"], "in_progress", "its end waits for the database");
        held.give_back().await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("completed", "completed"), Some("caller")), "{ended}");
    }

    /// A caller who gives up before his call could be stored is answered at once, and counts as one who gave up.
    async fn a_caller_who_gives_up_does_not_wait_for_the_database(stage: &mut Stage) needs [] {
        let peer = stage.silent_peer();
        let at = peer.address();
        let trunk = stage.trunk(at.port(), json!({})).await;
        let agent = stage.agent(json!({})).await;
        let number = stage.number(OURS, &trunk, json!({ "agent_id": agent["id"] })).await;
        let invite = String::from_utf8(request("INVITE", &stage.uri(OURS), at, "", "")).unwrap();
        let held = Held::hold(stage).await;
        peer.send(invite.as_bytes(), stage.sip);
        // The second is that of its transaction, which there is before its row.
        peer.hears("100", 2).await;
        peer.send(invite.replace("INVITE", "CANCEL").as_bytes(), stage.sip);
        peer.hears("200", 1).await;
        peer.hears("487", 1).await;
        held.give_back().await;
        let id = stage.has_come_in().await;
        let ended = stage.ended(&id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("failed", "canceled"), Some("caller")), "{ended}");
        let stats = stage.api.get(&format!("/v1/numbers/{}/stats", number["id"].as_str().unwrap())).await;
        assert_eq!(stats["abandoned"].as_i64(), Some(1), "{stats}");
    }
}
