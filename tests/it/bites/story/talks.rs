//! What happens in the story's talks, and to their sound.
use super::{Story, iso, uuid};
use serde_json::{Value, json};

/// From an opt-out to the purge, in milliseconds.
const GRACE: i64 = 60_000;

impl Story {
    /// Somebody calls one of our numbers: nobody is dialled.
    pub fn comes_in(&mut self, nick: &str, from: Option<&str>) {
        let nick = format!("{nick}.1");
        self.add(
            json!({ "kind": "session", "nick": nick, "contact": null, "campaign": null, "number": "+15002990000",
            "from": from, "direction": "inbound", "status": "queued", "end_reason": null, "created_at": iso(self.now),
            "intent_seq": null, "intents": 0, "dialed_at": iso(self.now), "started_at": null, "ended_at": null, "attempt": 1,
            "hold": 0, "cost": 0, "price": 0, "consent": "not_required", "opted_out_at": null, "recording": null }),
        );
        self.event("session.created", "session", &nick, json!({}));
    }

    /// From here on the talk is recorded.
    pub fn record(&mut self, nick: &str) {
        let id = uuid(self.now, self.seq() + 0x7000);
        let session = self.row("session", nick);
        session["recording"] = json!(id);
        session["consent"] = json!("granted");
    }

    pub fn refuses_consent(&mut self, nick: &str) {
        self.row("session", nick)["consent"] = json!("refused");
        self.tells("session.consent_refused", nick);
    }

    pub fn tells(&mut self, kind: &str, nick: &str) {
        self.event(kind, "session", nick, json!({}));
    }

    pub fn opt_out(&mut self, nick: &str) {
        let now = iso(self.now);
        let session = self.row("session", nick);
        session["opted_out_at"] = json!(now);
        let session = session.clone();
        let number = match session["direction"].as_str() {
            Some("inbound") => &session["from"],
            _ => &session["number"],
        };
        if !number.is_null() {
            self.add(
                json!({ "kind": "dnc", "nick": nick, "tenant": session["tenant"], "env": session["env"],
                "number": number, "email": null, "added_seq": null, "removed_seq": null, "channels": ["phone", "sms"],
                "source": "opt_out_voice", "session": session["id"] }),
            );
            let seq = self.seq();
            self.row("dnc", nick)["added_seq"] = json!(seq);
            self.tells("session.opt_out_detected", nick);
        }
        if !session["recording"].is_null() {
            let kind = "session.opt_out_recording_pending_purge";
            self.event(kind, "session", nick, json!({ "recording": session["recording"] }));
        }
    }

    /// The call has ended: if it was recorded, there is a row. Of a lost one there is nothing to hear.
    pub fn recorded(&mut self, nick: &str, reason: &str) {
        let (now, session) = (self.now, self.row("session", nick).clone());
        if session["recording"].is_null() {
            return;
        }
        let state = if reason == "node_lost" { "failed" } else { "processing" };
        let opted_out = session["opted_out_at"].as_str().and_then(crate::audit::read::millis);
        self.evidence.dump.push(
            json!({ "kind": "recording", "nick": nick, "id": session["recording"], "tenant": session["tenant"],
            "env": session["env"], "session": session["id"], "state": state, "created_at": iso(now),
            "completed_at": null, "purge_after": opted_out.map(|at| iso(at + GRACE)),
            "purge_reason": opted_out.map(|_| "opt_out"), "purged_at": null }),
        );
    }

    fn file(&mut self, nick: &str) -> String {
        let recording = self.row("recording", nick);
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        format!("{}/{}.wav", word(&recording["tenant"]), word(&recording["id"]))
    }

    pub fn stored(&mut self, nick: &str) {
        let (now, file) = (iso(self.now), self.file(nick));
        let recording = self.row("recording", nick);
        recording["completed_at"] = json!(now);
        recording["state"] = match recording["purge_reason"].as_str() {
            Some("opt_out") => json!("pending_purge"),
            _ => json!("completed"),
        };
        let id = recording["id"].clone();
        self.evidence.files.get_or_insert_default().push(file);
        self.event(
            "session.recording_completed",
            "session",
            nick,
            json!({ "recording": id }),
        );
    }

    pub fn purged(&mut self, nick: &str) {
        let (now, file) = (iso(self.now), self.file(nick));
        let recording = self.row("recording", nick);
        recording["purged_at"] = json!(now);
        recording["state"] = json!("purged");
        let id = recording["id"].clone();
        self.evidence.files.get_or_insert_default().retain(|kept| *kept != file);
        let kind = "session.opt_out_recording_purged";
        self.event(kind, "session", nick, json!({ "recording": id }));
    }

    /// Somebody has looked at the talk, and said how it went.
    pub fn evaluated(&mut self, nick: &str) {
        let session = self.row("session", nick).clone();
        self.evidence.dump.push(
            json!({ "kind": "evaluation", "nick": nick, "session": session["id"], "tenant": session["tenant"],
            "env": session["env"], "state": "done", "give_up_at": iso(self.now + GRACE) }),
        );
        self.tells("session.disposition_set", nick);
    }
}
