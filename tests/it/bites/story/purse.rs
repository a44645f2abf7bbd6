//! The story's money and messages: a grant and a payment come in, calls and messages cost, until nothing is left; a payment
//! refills it, and some of that is paid back. Somebody who wanted no texts for a while gets one before and one after.
use super::{Story, iso, uuid};
use crate::audit::{books, money};
use serde_json::{Value, json};

pub fn spend(story: &mut Story) {
    story.at(1_000.0).opens(50);
    story.books(
        "adjustment",
        ["operator", "available"],
        100,
        Value::Null,
        json!("a gift"),
    );
    story.tops_up("paid", 200, "pi_1");
    story.at(1_010.0).buys_call("talk", 100);
    story.at(1_012.0).answer("talk.1");
    story.at(1_020.0).pays_call("talk", 40);
    // 260 are left.
    story.at(1_030.0).campaign("s", 1, 0);
    story.contact("s1", "s", "+15002000501", json!([]));
    story.contact("s2", "s", "+15002000502", json!([]));
    story.at(1_031.0).moves("s", "running", None);
    story.at(1_032.0).writes("sms", "s1", Some("s1"), "+15002000501", 10);
    story.at(1_033.0).writes("sms", "s2", Some("s2"), "+15002000502", 10);
    story.at(1_034.0).taken("sms", "s1");
    story.at(1_035.0).becomes("sms", "s1", "delivered", 10);
    story.contact_ends("s1", "completed", 10);
    story.at(1_036.0).refused("s2");
    story.becomes("sms", "s2", "failed", 0);
    story.contact_ends("s2", "failed", 0);
    story.at(1_040.0).writes("email", "mail", None, "ann@example.com", 5);
    story.at(1_041.0).not_taken("email", "mail");
    story.at(1_101.0).hands_over("email", "mail");
    story.at(1_102.0).taken("email", "mail");
    story.becomes("email", "mail", "sent", 5);
    // A cent a second: two are set aside for it, and then two more, twice.
    story.at(1_103.0).buys_call("longer", 2);
    story.row("session", "longer.1")["price"] = json!(60);
    story.at(1_104.0).answer("longer.1");
    story.at(1_106.0).holds_more("longer", 2);
    story.at(1_108.0).holds_more("longer", 2);
    story.at(1_109.0).pays_call("longer", 5);
    // 240 are left.
    story.at(1_110.0).books(
        "adjustment",
        ["available", "operator"],
        180,
        Value::Null,
        json!("a correction"),
    );
    story.at(1_120.0).writes("sms", "stop", None, "+15002000503", 10);
    story.at(1_121.0).taken("sms", "stop");
    story.becomes("sms", "stop", "sent", 10);
    story.at(1_122.0).dnc("stopped", "+15002000503");
    // 50 are left, and they are set aside.
    story.at(1_130.0).buys_call("last", 50);
    story.at(1_131.0).answer("last.1");
    story.at(1_190.0).pays_call("last", 70);
    story.at(1_250.0).tops_up("again", 500, "pi_2");
    story.at(1_260.0).lift_dnc("stopped");
    story.at(1_261.0).writes("sms", "start", None, "+15002000503", 10);
    story.at(1_262.0).taken("sms", "start");
    story.becomes("sms", "start", "delivered", 10);
    let topup = story.row("topup", "again").clone();
    story.at(1_270.0).books(
        "refund",
        ["available", "processor"],
        30,
        topup["id"].clone(),
        Value::Null,
    );
    story.row("topup", "again")["refunded"] = json!(30);
    // 440 are left, and a call waits that would set 600 aside.
    story.at(1_280.0).falls(440);
    story.at(1_290.0).tops_up("more", 200, "pi_3");
}

impl Story {
    fn opens(&mut self, threshold: i64) {
        self.evidence.dump.push(
            json!({ "kind": "account", "nick": "purse", "tenant": "t1", "env": "live", "balance": 0,
            "held": 0, "threshold": threshold, "depleted_at": null, "entries": 0, "last_hash": "" }),
        );
    }

    /// An entry, and what follows from it.
    fn books(&mut self, kind: &str, books: [&str; 2], cents: i64, subject: Value, note: Value) {
        let seq = self.seq();
        let (id, now) = (uuid(self.now, seq), iso(self.now));
        let account = self.row("account", "purse");
        let is_tenants = |book: &str| i64::from(matches!(book, "available" | "held"));
        let is_held = |book: &str| i64::from(book == "held");
        let [from, to] = books;
        let number = |name: &str| account[name].as_i64().unwrap();
        let (before, held, n) = (number("balance"), number("held"), number("entries") + 1);
        let (balance, threshold) = (
            before + cents * (is_tenants(to) - is_tenants(from)),
            number("threshold"),
        );
        let held = held + cents * (is_held(to) - is_held(from));
        let last = account["last_hash"].as_str().unwrap().to_owned();
        let mut line = json!({ "kind": "posting", "nick": format!("{n}+"), "seq": seq, "txn": id, "tenant": "t1", "env": "live",
            "n": n, "account": to, "cents": cents, "entry": kind, "ref": subject, "note": note, "balance_after": balance,
            "held_after": held, "hash": "", "created_at": now });
        let posting = books::posting(&line).unwrap();
        let entry = money::Entry {
            n,
            from,
            to,
            cents,
            whole: &posting.whole,
        };
        let hash = money::hash(&last, ("t1", "live"), &entry);
        line["hash"] = json!(hash);
        (account["balance"], account["held"]) = (json!(balance), json!(held));
        (account["entries"], account["last_hash"]) = (json!(n), json!(hash));
        let mut other = line.clone();
        (other["account"], other["cents"], other["nick"]) = (json!(from), json!(-cents), json!(format!("{n}-")));
        self.evidence.dump.extend([other, line]);
        if before >= threshold && balance < threshold {
            self.event(
                "credits.low_balance",
                "account",
                "purse",
                json!({ "threshold": threshold }),
            );
        }
        if before > 0 && balance <= 0 {
            self.falls(balance);
        }
    }

    fn falls(&mut self, balance: i64) {
        self.event("credits.depleted", "account", "purse", json!({ "balance": balance }));
    }

    fn tops_up(&mut self, nick: &str, cents: i64, payment: &str) {
        self.add(
            json!({ "kind": "topup", "nick": nick, "cents": cents, "status": "succeeded", "processor": "stripe",
            "payment_intent": payment, "refunded": 0, "created_at": iso(self.now), "settled_at": iso(self.now) }),
        );
        let id = self.row("topup", nick)["id"].clone();
        self.books("topup", ["processor", "available"], cents, id, json!(payment));
        self.event(
            "credits.topup_succeeded",
            "account",
            "purse",
            json!({ "payment_intent": payment }),
        );
    }

    fn sets_aside(&mut self, kind: &str, nick: &str, cents: i64) {
        let id = self.row(kind, nick)["id"].clone();
        self.books("hold", ["available", "held"], cents, id, Value::Null);
    }

    fn settles(&mut self, kind: &str, nick: &str, held: i64, cost: i64) {
        let id = self.row(kind, nick)["id"].clone();
        for (kind, from, to, cents) in [
            ("charge", "held", "revenue", cost.min(held)),
            ("charge", "available", "revenue", cost - held),
            ("release", "held", "available", held - cost),
        ] {
            if cents > 0 {
                self.books(kind, [from, to], cents, id.clone(), Value::Null);
            }
        }
    }

    fn buys_call(&mut self, nick: &str, hold: i64) {
        self.call(nick, "t1", "live", &format!("+1500200060{}", nick.len()));
        let nick = format!("{nick}.1");
        self.row("session", &nick)["hold"] = json!(hold);
        self.sets_aside("session", &nick, hold);
    }

    fn holds_more(&mut self, nick: &str, by: i64) {
        let nick = format!("{nick}.1");
        let hold = &mut self.row("session", &nick)["hold"];
        *hold = json!(hold.as_i64().unwrap() + by);
        self.sets_aside("session", &nick, by);
    }

    fn pays_call(&mut self, nick: &str, cost: i64) {
        let nick = format!("{nick}.1");
        let session = self.row("session", &nick);
        session["cost"] = json!(cost);
        let hold = session["hold"].as_i64().unwrap();
        self.end(&nick, "completed", "completed");
        self.settles("session", &nick, hold, cost);
    }

    /// A message, of a contact or of its own, and the intent to hand it over.
    fn writes(&mut self, kind: &str, nick: &str, contact: Option<&str>, address: &str, price: i64) {
        let (campaign, contact_id) = match contact {
            Some(contact) => {
                let row = self.row("contact", contact);
                (row["state"], row["attempts"]) = (json!("dispatched"), json!(1));
                (row["campaign"].clone(), row["id"].clone())
            }
            None => (Value::Null, Value::Null),
        };
        self.add(json!({ "kind": kind, "nick": nick, "campaign": campaign, "contact": contact_id, "address": address,
            "phase": "sending", "price": price, "held": price, "cost": 0, "settled": false, "attempts": 0, "is_judged": true, "error": null,
            "wake_at": iso(self.now + 600_000), "created_at": iso(self.now), "sent_at": null, "ended_at": null }));
        if let Some(contact) = contact {
            let id = self.row(kind, nick)["id"].clone();
            self.event(
                "campaign.contact_dispatched",
                "contact",
                contact,
                json!({ "session": id }),
            );
        }
        self.hands_over(kind, nick);
        self.sets_aside(kind, nick, price);
    }

    fn hands_over(&mut self, kind: &str, nick: &str) {
        let seq = self.seq();
        let row = self.row(kind, nick);
        row["attempts"] = json!(row["attempts"].as_i64().unwrap() + 1);
        let row = row.clone();
        let n = &row["attempts"];
        self.evidence.dump.push(
            json!({ "kind": "send", "nick": format!("{nick}.{n}"), "message": row["id"], "n": n,
            "tenant": row["tenant"], "env": row["env"], "channel": kind, "address": row["address"],
            "campaign": row["campaign"], "seq": seq, "sent_at": iso(self.now) }),
        );
        self.notes("attempt", &row, n.as_i64().unwrap(), &format!("{nick}.{n}"));
    }

    fn told_by_provider(&mut self, kind: &str, nick: &str, outcome: &str) {
        let id = self.row(kind, nick)["id"].clone();
        self.evidence
            .provider
            .push(json!({ "nick": nick, "message": id, "outcome": outcome }));
    }

    fn taken(&mut self, kind: &str, nick: &str) {
        self.told_by_provider(kind, nick, "taken");
    }

    fn not_taken(&mut self, kind: &str, nick: &str) {
        self.told_by_provider(kind, nick, "not_taken");
    }

    fn refused(&mut self, nick: &str) {
        self.told_by_provider("sms", nick, "not_taken");
    }

    fn becomes(&mut self, kind: &str, nick: &str, phase: &str, cost: i64) {
        let now = iso(self.now);
        let row = self.row(kind, nick);
        let held = row["held"].as_i64().unwrap();
        (row["phase"], row["wake_at"], row["ended_at"]) = (json!(phase), Value::Null, json!(now));
        (row["held"], row["cost"], row["settled"]) = (json!(0), json!(cost), json!(true));
        let row = row.clone();
        self.notes("outcome", &row, 0, &format!("{nick} outcome"));
        self.settles(kind, nick, held, cost);
    }

    fn contact_ends(&mut self, nick: &str, state: &str, cost: i64) {
        self.row("contact", nick)["state"] = json!(state);
        let kind = format!("campaign.contact_{state}");
        self.event(&kind, "contact", nick, json!({ "session": null, "cost": cost }));
    }
}
