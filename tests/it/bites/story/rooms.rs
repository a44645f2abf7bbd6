//! What happens in the story's rooms: somebody talks, nobody comes, and a browser is not reached.
use super::{Story, iso};
use serde_json::json;

pub fn open(story: &mut Story) {
    story.at(2_000.0);
    for nick in ["talked", "missed", "broken"] {
        story.room_opens(nick);
    }
    story.at(2_002.0).room("talked")["viewed_at"] = json!(iso(story.now));
    story.event("room.landing_viewed", "room", "talked", json!({}));
    story.at(2_003.0).joins("talked");
    story.at(2_010.0).room_ends("talked", ("completed", "completed"));
    story.at(2_020.0).room_ends("broken", ("failed", "failed"));
    story.at(2_600.0).room_ends("missed", ("expired", "no_answer"));
}

impl Story {
    fn room(&mut self, nick: &str) -> &mut serde_json::Value {
        self.row("room", nick)
    }

    fn room_opens(&mut self, nick: &str) {
        self.add(
            json!({ "kind": "session", "nick": nick, "contact": null, "campaign": null, "number": null,
            "from": null, "direction": "inbound", "status": "queued", "end_reason": null, "created_at": iso(self.now),
            "intent_seq": null, "intents": 0, "dialed_at": null, "started_at": null, "ended_at": null, "attempt": 1,
            "hold": 0, "cost": 0, "price": 0, "consent": "not_required", "opted_out_at": null, "recording": null }),
        );
        let session = self.row("session", nick)["id"].clone();
        self.add(
            json!({ "kind": "room", "nick": nick, "session": session, "status": "created", "created_at": iso(self.now),
            "expires_at": iso(self.now + 600_000), "viewed_at": null, "connect_by": null, "joined_at": null, "lost_at": null,
            "ended_at": null }),
        );
        self.event("session.created", "session", nick, json!({}));
        self.event("room.created", "room", nick, json!({}));
    }

    fn joins(&mut self, nick: &str) {
        let now = iso(self.now);
        let room = self.room(nick);
        (room["status"], room["joined_at"]) = (json!("joined"), json!(now));
        self.event("room.joined", "room", nick, json!({}));
        let session = self.row("session", nick);
        (session["status"], session["started_at"]) = (json!("in_progress"), json!(now));
        session["dialed_at"] = json!(now);
        self.event("session.started", "session", nick, json!({}));
    }

    fn room_ends(&mut self, nick: &str, (status, of_session): (&str, &str)) {
        let now = iso(self.now);
        let room = self.room(nick);
        (room["status"], room["ended_at"]) = (json!(status), json!(now));
        self.event(&format!("room.{status}"), "room", nick, json!({}));
        let session = self.row("session", nick);
        (session["status"], session["ended_at"]) = (json!(of_session), json!(now));
        let kind = if of_session == "completed" {
            "session.ended"
        } else {
            "session.failed"
        };
        self.event(kind, "session", nick, json!({ "cost": 0 }));
    }
}
