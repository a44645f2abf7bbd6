//! Sound evidence: an hour of two campaigns, told in the order of time. There are retries, a pause by hand and one for
//! quiet hours, an entry on the do-not-call list that comes and goes, a kill that cuts two calls off, and a cancel
//! with a call in flight. Some talks are recorded, and in some the other side has a wish (`talks`). After it
//! somebody pays, writes and calls until nothing is left (`purse`), and some are called whom the law protects (`law`). Each line carries a `nick` ("a1", its first session "a1.1"), which the checker does not read.
mod law;
mod purse;
mod rooms;
mod talks;

use super::Evidence;
use chrono::DateTime;
use serde_json::{Value, json};

/// 2027-03-02, a Tuesday, 15:00 UTC: 10:00 in New York, 09:00 in Chicago, 07:00 in Los Angeles.
const START: i64 = 1_803_999_600_000;

pub fn evidence() -> Evidence {
    let mut story = Story::begin();
    story.campaign("a", 2, 600);
    for n in 1..=12 {
        let zones = if n % 2 == 1 {
            json!(["America/New_York", "America/Chicago"])
        } else {
            json!([])
        };
        story.contact(&format!("a{n}"), "a", &format!("+15002000{n:03}"), zones);
    }
    story.at(1.0).moves("a", "running", None);
    story.at(2.0).dial("a1");
    story.at(3.0).dial("a2");
    story.at(4.0).dial("a3");
    story.at(5.0).skip("a4");
    story.at(6.0).end("a2.1", "busy", "busy");
    story.at(8.0).answer("a1.1");
    story.at(10.0).dnc("kept", "+15002000005");
    story.at(12.0).dnc("lifted", "+15002000006");
    story.at(20.0).moves("a", "paused", Some("manual"));
    story.at(34.0).end("a3.1", "no_answer", "no_answer");
    story.at(40.0).end("a1.1", "completed", "completed");
    story.at(250.0).lift_dnc("lifted");
    story.at(300.0).moves("a", "running", None);
    story.at(301.0).skip("a5");
    story.at(302.0).dial("a6");
    story.at(302.5).dial("a9");
    story.at(303.0).dial("a7");
    story.at(306.0).answer("a6.1");
    story.record("a6.1");
    story.at(307.0).end("a9.1", "voicemail", "voicemail");
    story.at(309.0).end("a6.1", "completed", "completed");
    story.at(310.0).stored("a6.1");
    story.at(311.0).evaluated("a6.1");
    story.at(314.0).answer("a7.1");
    story.record("a7.1");
    story.at(317.0).opt_out("a7.1");
    story.at(318.0).dial("a8");
    story.at(319.0).refuse("a8.1");
    story.at(320.0).kill();
    story.at(325.0).lose("a7.1");
    story.at(325.0).lose("a8.1");
    story.at(330.0).dial("a10");
    story.at(333.0).answer("a10.1");
    story.at(350.0).end("a10.1", "completed", "completed");
    the_other_campaign(&mut story);
    story.at(700.0).dial("a2");
    story.at(702.0).dial("a3");
    story.at(703.0).answer("a2.2");
    story.record("a2.2");
    story.at(710.0).opt_out("a2.2");
    story.at(715.0).end("a2.2", "completed", "opt_out");
    story.at(716.0).stored("a2.2");
    story.at(732.0).end("a3.2", "no_answer", "no_answer");
    // Sixty seconds after each opt-out.
    story.at(777.0).purged("a7.1");
    story.at(777.0).purged("hidden.1");
    story.at(780.0).purged("a2.2");
    story.at(920.0).dial("a9");
    story.at(926.0).end("a9.2", "voicemail", "voicemail");
    story.at(930.0).dial("a8");
    story.at(936.0).answer("a8.2");
    story.at(940.0).moves("a", "closing", Some("canceled"));
    story.at(941.0).cancel("a11");
    story.at(941.0).cancel("a12");
    story.at(960.0).end("a8.2", "completed", "completed");
    story.at(961.0).moves("a", "completed", Some("canceled"));
    purse::spend(&mut story);
    rooms::open(&mut story);
    law::sell(&mut story);
    story.publishes();
    story.told()
}

/// Campaign b calls two of a's numbers again, by one zone for all, and waits for the next morning at the end. Beside it
/// two calls by the API: one in the other env, one of another tenant.
fn the_other_campaign(story: &mut Story) {
    story.at(400.0).campaign("b", 3, 60);
    story.row("campaign", "b")["schedule"]["mode"] = json!("fixed");
    for n in 1..=8 {
        // The first three have the numbers of a1, a10 and a8.
        let number = ["+15002000001", "+15002000010", "+15002000008"]
            .get(n - 1)
            .map_or(format!("+15002001{n:03}"), |number| number.to_string());
        story.contact(&format!("b{n}"), "b", &number, json!(["Asia/Tokyo"]));
    }
    story.at(401.0).moves("b", "armed", None);
    story.at(402.0).moves("b", "running", None);
    story.at(403.0).dial("b1");
    story.at(404.0).dial("b2");
    story.at(405.0).call("test", "t1", "test", "+15002900001");
    story.at(406.0).call("other", "t2", "live", "+15002900002");
    story.at(407.0).answer("b1.1");
    story.tells("session.transfer_initiated", "b1.1");
    story.at(410.0).moves("b", "paused", Some("quiet_hours"));
    story.at(420.0).end("b1.1", "completed", "completed");
    story.at(421.0).end("b2.1", "busy", "busy");
    story.at(422.0).answer("test.1");
    story.tells("function.timeout", "test.1");
    story.at(424.0).end("test.1", "completed", "completed");
    story.at(425.0).end("other.1", "failed", "invalid_number");
    the_callers(story);
    story.at(450.0).moves("b", "running", None);
    story.at(481.0).dial("b2");
    story.at(486.0).end("b2.2", "busy", "busy");
    story.at(490.0).dial("b3");
    story.at(495.0).answer("b3.1");
    story.refuses_consent("b3.1");
    story.at(500.0).moves("b", "paused", Some("quiet_hours"));
    story.at(520.0).end("b3.1", "completed", "completed");
    // b2 is waiting, b4 to b8 are pending: b is not over. c was never started.
    story.campaign("c", 1, 0);
}

/// Two people call: one says who calls, and wants no calls; one hides the number, and wants the same.
fn the_callers(story: &mut Story) {
    story.at(426.0).comes_in("caller", Some("+15002990001"));
    story.at(428.0).answer("caller.1");
    story.at(430.0).opt_out("caller.1");
    story.at(432.0).close("caller.1", "completed", "opt_out", true);
    story.at(433.0).comes_in("hidden", None);
    story.at(434.0).answer("hidden.1");
    story.record("hidden.1");
    story.at(436.0).opt_out("hidden.1");
    story.at(438.0).close("hidden.1", "completed", "opt_out", true);
    story.at(439.0).stored("hidden.1");
}

struct Story {
    now: i64,
    seq: i64,
    evidence: Evidence,
    /// What the next row of the record says.
    next: Option<Value>,
}

impl Story {
    fn begin() -> Self {
        let evidence = Evidence {
            dump: Vec::new(),
            carrier: Vec::new(),
            provider: Vec::new(),
            acknowledged: Vec::new(),
            files: Some(Vec::new()),
            taken_at: Some(START + 3_600_000),
            kills: Vec::new(),
            limit: 3,
            rate: 1.0,
            burst: 1.0,
            settled: true,
        };
        Story {
            now: START,
            seq: 0,
            evidence,
            next: None,
        }
    }

    fn told(mut self) -> Evidence {
        for campaign in ["a", "b", "c", "s"] {
            let [total, completed, failed] = self.totals(campaign);
            self.row("campaign", campaign)["totals"] =
                json!({ "total": total, "completed_sessions": completed, "failed_sessions": failed });
        }
        self.evidence
    }

    fn at(&mut self, seconds: f64) -> &mut Self {
        let now = START + (seconds * 1_000.0) as i64;
        assert!(now >= self.now, "the story goes back in time at {seconds}");
        self.now = now;
        self
    }

    fn seq(&mut self) -> i64 {
        self.seq += 1;
        self.seq
    }

    fn row(&mut self, kind: &str, nick: &str) -> &mut Value {
        row(&mut self.evidence, kind, nick)
    }

    /// A new row, and what the API says of it.
    fn add(&mut self, mut line: Value) {
        self.seq += 1;
        line["id"] = json!(uuid(self.now, self.seq));
        line["env"] = line.get("env").cloned().unwrap_or(json!("live"));
        line["tenant"] = line.get("tenant").cloned().unwrap_or(json!("t1"));
        let mut told = json!({ "kind": line["kind"], "id": line["id"], "tenant": line["tenant"] });
        if let Some(number) = line.get("number") {
            told["number"] = number.clone();
        }
        self.evidence.acknowledged.push(told);
        if line["kind"] == "dnc" {
            line.as_object_mut().unwrap().remove("id");
        }
        self.evidence.dump.push(line);
    }

    fn event(&mut self, kind: &str, about: &str, nick: &str, more: Value) {
        let seq = self.seq();
        let subject = self.row(about, nick).clone();
        let mut line = json!({ "kind": "event", "nick": nick, "id": uuid(self.now, seq), "tenant": subject["tenant"],
            "env": subject["env"], "type": kind, "subject": subject["id"], "seq": seq,
            "created_at": iso(self.now), "sha256": "" });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.evidence.dump.push(line);
    }

    fn campaign(&mut self, nick: &str, max_attempts: u32, gap: u32) {
        self.add(
            json!({ "kind": "campaign", "nick": nick, "status": "draft", "moves": [], "totals": null,
            "schedule": {
                "windows": [{ "days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "20:00" }],
                "blackout_dates": ["2027-03-05"], "mode": "contact", "fallback": "America/New_York" },
            "caps": { "per_number_24h": 3, "per_number_7d": 7 }, "ring_timeout_seconds": 30,
            "max_attempts": max_attempts, "gap": gap }),
        );
        self.event("campaign.created", "campaign", nick, json!({}));
        self.moves(nick, "draft", None);
    }

    fn contact(&mut self, nick: &str, campaign: &str, number: &str, zones: Value) {
        let campaign = self.row("campaign", campaign).clone();
        self.add(
            json!({ "kind": "contact", "nick": nick, "campaign": campaign["id"], "number": number, "erased": false, "zones": zones,
            "state": "pending", "attempts": 0, "max_attempts": campaign["max_attempts"], "gap": campaign["gap"] }),
        );
    }

    fn moves(&mut self, nick: &str, to: &str, reason: Option<&str>) {
        let step = json!({ "seq": self.seq(), "at": iso(self.now), "to": to, "reason": reason });
        let campaign = self.row("campaign", nick);
        campaign["status"] = json!(match to {
            "armed" => "draft",
            "closing" => "running",
            other => other,
        });
        let moves = campaign["moves"].as_array_mut().unwrap();
        let is_start = to == "running" && moves.iter().all(|step| step["to"] != "running");
        moves.push(step);
        if is_start {
            self.event("campaign.started", "campaign", nick, json!({}));
        }
        if to == "completed" {
            let [total, completed, failed] = self.totals(nick);
            let totals = json!({ "total_contacts": total, "completed_sessions": completed, "failed_sessions": failed });
            self.event("campaign.completed", "campaign", nick, json!({ "totals": totals }));
        }
    }

    /// Contacts, completed sessions, failed sessions.
    fn totals(&mut self, campaign: &str) -> [usize; 3] {
        let id = self.row("campaign", campaign)["id"].clone();
        let rows = self.evidence.dump.iter().filter(|line| line["campaign"] == id);
        let rows = rows.filter(|line| line["kind"] != "send");
        let (contacts, sessions): (Vec<&Value>, Vec<&Value>) = rows.partition(|line| line["kind"] == "contact");
        let completed = sessions
            .iter()
            .filter(|session| session["status"] == "completed" || session["phase"] == "delivered")
            .count();
        [contacts.len(), completed, sessions.len() - completed]
    }

    fn dial(&mut self, nick: &str) {
        let contact = self.row("contact", nick);
        contact["state"] = json!("dispatched");
        let attempt = contact["attempts"].as_u64().unwrap() + 1;
        contact["attempts"] = json!(attempt);
        let contact = contact.clone();
        let session = format!("{nick}.{attempt}");
        self.place(&session, &contact, attempt);
        let id = self.row("session", &session)["id"].clone();
        self.event("campaign.contact_dispatched", "contact", nick, json!({ "session": id }));
    }

    /// A call by the API, without a contact.
    fn call(&mut self, nick: &str, tenant: &str, env: &str, number: &str) {
        self.place(
            &format!("{nick}.1"),
            &json!({ "tenant": tenant, "env": env, "number": number }),
            1,
        );
    }

    fn place(&mut self, nick: &str, to: &Value, attempt: u64) {
        let intent = self.seq();
        let [tenant, env, number, contact, campaign] =
            ["tenant", "env", "number", "id", "campaign"].map(|name| &to[name]);
        self.add(
            json!({ "kind": "session", "nick": nick, "tenant": tenant, "env": env, "contact": contact,
            "campaign": campaign,
            "number": number, "from": null, "direction": "outbound", "status": "queued", "end_reason": null,
            "created_at": iso(self.now), "intent_seq": intent, "intents": 1, "dialed_at": iso(self.now), "started_at": null,
            "ended_at": null, "attempt": attempt, "hold": 0, "cost": 0, "price": 0, "consent": "not_required", "opted_out_at": null,
            "recording": null }),
        );
        self.event("session.created", "session", nick, json!({}));
        let session = self.row("session", nick).clone();
        self.notes("attempt", &session, 1, nick);
        let id = session["id"].clone();
        self.evidence.carrier.push(
            json!({ "at": self.now * 1_000 + 700, "what": "placed", "nick": nick, "session": id,
            "to": number, "tenant": tenant, "env": env }),
        );
    }

    fn answer(&mut self, nick: &str) {
        let now = iso(self.now);
        let session = self.row("session", nick);
        session["started_at"] = json!(now);
        session["status"] = json!("in_progress");
        self.event("session.started", "session", nick, json!({}));
    }

    fn end(&mut self, nick: &str, status: &str, reason: &str) {
        self.carrier_ends(nick, status);
        self.close(nick, status, reason, true);
    }

    fn carrier_ends(&mut self, nick: &str, outcome: &str) {
        let session = self.row("session", nick).clone();
        self.evidence.carrier.push(
            json!({ "at": self.now * 1_000 - 300, "what": "ended", "nick": nick, "session": session["id"],
            "to": session["number"], "tenant": session["tenant"], "env": session["env"], "outcome": outcome }),
        );
    }

    /// The carrier says no, and the service is killed before it hears it.
    fn refuse(&mut self, nick: &str) {
        self.carrier_ends(nick, "never_accepted");
    }

    fn kill(&mut self) {
        self.evidence.kills.push(self.now);
    }

    /// After a kill: nobody knows what became of the call, unless the carrier never accepted it.
    fn lose(&mut self, nick: &str) {
        let again = self
            .evidence
            .carrier
            .iter()
            .any(|line| line["nick"] == nick && line["outcome"] == "never_accepted");
        self.close(nick, "failed", "node_lost", again);
    }

    fn close(&mut self, nick: &str, status: &str, reason: &str, again: bool) {
        let now = iso(self.now);
        let session = self.row("session", nick);
        session["status"] = json!(status);
        session["end_reason"] = json!(reason);
        session["ended_at"] = json!(now);
        let session = session.clone();
        let kind = if status == "completed" {
            "session.ended"
        } else {
            "session.failed"
        };
        self.event(kind, "session", nick, json!({ "cost": session["cost"] }));
        if session["intents"] != 0 {
            self.notes("outcome", &session, 0, &format!("{nick} outcome"));
        }
        self.recorded(nick, reason);
        if session["contact"].is_null() {
            return;
        }
        let (contact, _) = nick.split_once('.').unwrap();
        let row = self.row("contact", contact);
        let again = again && row["attempts"].as_u64() < row["max_attempts"].as_u64();
        let state = match status {
            "completed" => "completed",
            _ if again => "waiting",
            _ => "failed",
        };
        row["state"] = json!(state);
        if state != "waiting" {
            self.event(
                &format!("campaign.contact_{state}"),
                "contact",
                contact,
                json!({ "session": session["id"], "cost": session["cost"] }),
            );
        }
    }

    fn skip(&mut self, nick: &str) {
        self.row("contact", nick)["state"] = json!("skipped");
        self.event("campaign.contact_skipped", "contact", nick, json!({}));
    }

    fn cancel(&mut self, nick: &str) {
        self.row("contact", nick)["state"] = json!("canceled");
    }

    fn dnc(&mut self, nick: &str, number: &str) {
        let seq = self.seq();
        self.add(
            json!({ "kind": "dnc", "nick": nick, "number": number, "email": null, "added_seq": seq, "removed_seq": null,
            "channels": ["phone", "sms"], "source": "manual", "session": null }),
        );
    }

    fn lift_dnc(&mut self, nick: &str) {
        let seq = self.seq();
        self.row("dnc", nick)["removed_seq"] = json!(seq);
    }
}

/// The line of that kind and nick; the fault or the story is wrong if there is none.
pub fn row<'e>(evidence: &'e mut Evidence, kind: &str, nick: &str) -> &'e mut Value {
    let is_it = |line: &&mut Value| line["kind"] == kind && line["nick"] == nick;
    evidence
        .dump
        .iter_mut()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {kind} {nick}"))
}

/// Grows with `count`, also within a millisecond.
pub fn uuid(millis: i64, count: i64) -> String {
    format!("{:08x}-{:04x}-7000-8000-{count:012x}", millis >> 16, millis & 0xffff)
}

pub fn iso(millis: i64) -> String {
    DateTime::from_timestamp_millis(millis)
        .unwrap()
        .format("%FT%T%.3fZ")
        .to_string()
}
