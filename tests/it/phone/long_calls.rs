//! What takes a minute of a call: refreshes that are due, one that never comes, and a transfer of which nobody tells. All calls of it
//! are carried at once, and nearly all of the minute is waited.
use super::{
    exchange::{PERSON, has},
    offers::hears_on,
    stage::{Stage, end, media_of},
};
use crate::{
    on_the_phone,
    world::phone::{
        byte_peer::{BytePeer, Heard, response, sdp},
        ear::Ear,
        until,
    },
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::net::SocketAddr;

const WE_UPDATE: &str = "Allow: INVITE, ACK, BYE, UPDATE\r\nRequire: timer\r\nSession-Expires: 90;refresher=uac\r\n";
const WE_REINVITE: &str = "Allow: INVITE, ACK, BYE\r\nRequire: timer\r\nSession-Expires: 90;refresher=uac\r\n";
const THEY_REFRESH: &str = "Allow: INVITE, ACK, BYE, UPDATE\r\nSession-Expires: 90;refresher=uas\r\n";
const NO_TIMER: &str = "Allow: INVITE, ACK, BYE, REFER\r\n";

/// Picks up on these terms, and agrees to all that it is asked, but for the first offer inside the call. It asks for nothing itself.
fn phone(at: SocketAddr, rtp: u16, terms: &str) -> BytePeer {
    let accepted = format!("Contact: <sip:phone@{at}>\r\n{terms}");
    let described = format!("{accepted}Content-Type: application/sdp\r\n");
    BytePeer::start(at, move |heard, _| {
        let answer = |status: &str, more: &str, body: &str| vec![response(&heard.text, status, more, body)];
        match (heard.what(), heard.header("CSeq")) {
            ("INVITE", Some("2 INVITE")) => answer("491 Request Pending", "", ""),
            ("INVITE", _) => answer("200 OK", &described, &sdp(rtp)),
            ("UPDATE", _) => answer("200 OK", &accepted, ""),
            ("REFER", _) => answer("202 Accepted", "", ""),
            ("BYE", _) => answer("200 OK", "", ""),
            _ => Vec::new(),
        }
    })
}

/// A call, and its other end.
struct Carried {
    peer: BytePeer,
    ear: Ear,
    invite: Heard,
    id: String,
}

impl Carried {
    /// Over a trunk and a number of its own, once they talk.
    async fn talk(stage: &mut Stage, agent: &Value, n: usize, terms: &str) -> Self {
        let (at, ear) = (stage.address(), stage.ear());
        let peer = phone(at, ear.port(), terms);
        let wanted = json!({ "session_expires_seconds": 90, "transfer": "refer" });
        let trunk = stage.trunk(at.port(), wanted).await;
        let ours = format!("+1202555100{n}");
        stage.number(&ours, &trunk, json!({})).await;
        let to = format!("+1202555010{n}");
        let id = stage.call(agent, &to, json!({ "from_number": ours })).await;
        let invite = peer.hears("INVITE", 1).await;
        ear.breathes(media_of(invite.body()));
        stage.is(&id, "in_progress").await;
        Carried { peer, ear, invite, id }
    }

    /// The first with that number and method, once it has come.
    async fn hears(&self, cseq: &str) -> Heard {
        let found = || {
            let mut all = self.peer.all().into_iter();
            all.find(|heard| heard.header("CSeq") == Some(cseq))
        };
        until(&format!("a peer hears {cseq}"), || found().is_some()).await;
        found().unwrap()
    }

    /// Seconds from the call's INVITE to that.
    fn after(&self, heard: &Heard) -> f64 {
        (heard.at - self.invite.at).as_secs_f64()
    }

    /// By a request for the same session, on the same terms.
    fn is_refreshed_by(&self, heard: &Heard) {
        assert_eq!(heard.header("Call-ID"), self.invite.header("Call-ID"));
        let terms = (heard.header("Session-Expires"), heard.header("Min-SE"));
        assert_eq!(terms, (Some("90;refresher=uac"), Some("90")), "{}", heard.text);
    }

    /// Nobody has hung up, and the call is heard, until it is hung up by the API.
    async fn lives_until_we_hang_up(&self, stage: &Stage) {
        assert_eq!(stage.session(&self.id).await["status"], "in_progress");
        hears_on(&self.ear).await;
        assert!(self.peer.heard("BYE").is_empty(), "it lives on");
        stage.hang_up(&self.id).await;
        self.peer.hears("BYE", 1).await;
        assert_eq!(end(&stage.ended(&self.id).await), ("completed", "completed"));
    }
}

/// When that happened to a session, by its timeline.
fn time_of(entries: &[Value], kind: &str) -> DateTime<Utc> {
    let entry = entries.iter().find(|entry| entry["kind"] == kind);
    entry.unwrap()["at"].as_str().unwrap().parse().unwrap()
}

on_the_phone! {
    /// 18, 19, 54. We refresh by UPDATE, and by re-INVITE where there is none, again after 491; a call that the peer should refresh and
    /// does not is ended before its interval is over; a REFER that is taken on and never heard of again has failed, and the talk goes on.
    async fn a_minute_passes(stage: &mut Stage) needs [] {
        // Nobody says a word.
        let quiet = json!({ "silence": { "hangup_after_seconds": 600 }, "recording": { "enabled": false } });
        let agent = stage.agent(quiet).await;
        let updated = Carried::talk(stage, &agent, 1, WE_UPDATE).await;
        let invited = Carried::talk(stage, &agent, 2, WE_REINVITE).await;
        let referred = Carried::talk(stage, &agent, 3, NO_TIMER).await;
        let transfer = format!("/v1/sessions/{}/transfer", referred.id);
        stage.api.post(&transfer, json!({ "transfer_number": PERSON })).await;
        let refer = referred.hears("2 REFER").await;
        assert!(refer.header("Refer-To").is_some_and(|to| to.contains(PERSON)), "{}", refer.text);
        // The last: when its minute is over, that of the others is, too.
        let forgotten = Carried::talk(stage, &agent, 4, THEY_REFRESH).await;

        let update = updated.hears("2 UPDATE").await;
        updated.is_refreshed_by(&update);
        assert_eq!(update.body(), "", "nothing changes");
        let waited = updated.after(&update);
        assert!((45.0..60.0).contains(&waited), "at half of the interval, not after {waited} s");

        let (first, second) = (invited.hears("2 INVITE").await, invited.hears("3 INVITE").await);
        for offer in [&first, &second] {
            invited.is_refreshed_by(offer);
            assert_eq!(offer.body(), invited.invite.body(), "the same version of the same description");
        }
        let waited = invited.after(&first);
        assert!((45.0..60.0).contains(&waited), "at half of the interval, not after {waited} s");
        // 2.1 to 4 s of whoever has made the Call-ID (RFC 3261, section 14.1), and what a busy machine adds.
        let pause = (second.at - first.at).as_secs_f64();
        assert!((2.1..8.0).contains(&pause), "not after {pause} s");
        invited.hears("2 ACK").await;
        invited.hears("3 ACK").await;

        let bye = forgotten.hears("2 BYE").await;
        let waited = forgotten.after(&bye);
        assert!((60.0..90.0).contains(&waited), "a third of the interval before its end, not after {waited} s");
        assert!(bye.header("Reason").is_some_and(|reason| reason.contains("cause=102")), "{}", bye.text);
        let ended = stage.ended(&forgotten.id).await;
        assert_eq!((end(&ended), ended["ended_by"].as_str()), (("failed", "media_timeout"), Some("system")), "{ended}");

        stage.api.until(&format!("/v1/sessions/{}/timeline", referred.id), has("transfer_failed")).await;
        stage.is(&referred.id, "conversing").await;
        let entries = stage.timeline(&referred.id).await;
        let tried = time_of(&entries, "transfer_failed") - time_of(&entries, "transfer_initiated");
        // The leg's clock and the session's are two.
        assert!(tried.num_seconds() >= 44, "it was given {tried}");
        for carried in [&updated, &invited, &referred] {
            carried.lives_until_we_hang_up(stage).await;
        }
    }
}
