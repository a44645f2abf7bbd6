//! The story's record of attempts: an opening with each intent, an outcome with each end, one chain per tenant and env. At the end some
//! people are called whom the law protects.
use super::{Story, iso, uuid};
use crate::audit::law;
use serde_json::{Value, json};

/// What a row says where nobody looks at it.
fn watched() -> Value {
    json!({ "observed": true, "facts": { "channel": "phone" } })
}

/// Somebody in New York has agreed, one in Paris has a contract, one in Sydney is in no register. Then one in New York is called who
/// has taken an opt-out back, and two more in the campaign of the first.
pub fn sell(story: &mut Story) {
    let new_york = || json!({ "places": ["US-NY"], "zones": ["America/New_York"] });
    story.at(2_700.0).agrees("ann", "express_written");
    story.agrees("bob", "existing_contract");
    story.sells("ann", "+12125550101", new_york(), "consent:us.consent.voice");
    let paris = json!({ "places": ["FR"], "zones": ["Europe/Paris"] });
    story
        .at(2_800.0)
        .sells("bob", "+33112345678", paris, "consent:fr.optin");
    let copy = json!([{ "name": "au_dncr", "fetched_at": iso(story.now - 20 * 86_400_000), "is_listed": false }]);
    let sydney = json!({ "places": ["AU"], "zones": ["Australia/Sydney"], "registers": copy });
    story
        .at(2_900.0)
        .sells("cyd", "+61212345678", sydney, "register:au.dncr");
    story.at(3_000.0).agrees("dan", "express_written");
    let entry = json!({ "entry_id": uuid(0, 1), "channels": ["phone", "sms"] });
    let dan = json!({ "tenant": "t3", "env": "live", "id": uuid(0, 1), "number": "+12125550104" });
    story.tells_of("opt_out", &dan, "dan opts out", entry.clone());
    story.tells_of("lifted", &dan, "dan agrees again", entry);
    story.sells("dan", "+12125550104", new_york(), "consent:us.consent.voice");
    story.at(3_100.0).agrees("eve", "express_written");
    // Long ago; the number is known to be eve's still.
    let given_at = iso(story.now - 60 * 86_400_000);
    story.row("consent", "eve")["given_at"] = json!(given_at);
    let mut still_hers = new_york();
    still_hers["reassigned"] =
        json!({ "checked_at": iso(story.now - 20 * 86_400_000), "answer": "no", "since": given_at });
    story.sells("eve", "+12125550105", still_hers, "consent:us.consent.voice");
}

impl Story {
    /// Somebody agrees to be called.
    fn agrees(&mut self, nick: &str, tier: &str) {
        let seq = self.seq();
        self.add(
            json!({ "kind": "consent", "nick": nick, "tenant": "t3", "seller": "acme ltd.", "channels": ["phone"],
            "purposes": ["marketing"], "tier": tier, "covers_automated_voice": true, "given_at": iso(self.now - 1_000), "expires_at": iso(self.now + 86_400_000),
            "given_seq": seq, "withdrawals": [] }),
        );
    }

    /// A call to somebody whom a person in a place takes, with a consent if one of that nick was given.
    fn sells(&mut self, nick: &str, number: &str, place: Value, asked: &str) {
        let begins = self.now;
        let is_it = |line: &&Value| line["kind"] == "consent" && line["nick"] == nick;
        let consent = self
            .evidence
            .dump
            .iter()
            .find(is_it)
            .map(|line| json!({ "id": line["id"], "tier": line["tier"] }));
        let mut facts = json!({ "channel": "phone", "purpose": "marketing", "audience": "consumer", "seller": "Acme  Ltd.",
            "at": iso(begins), "consent": consent });
        facts
            .as_object_mut()
            .unwrap()
            .extend(place.as_object().unwrap().clone());
        self.next = Some(json!({ "facts": facts, "asked": [asked, "abandonment:everywhere"] }));
        self.call(nick, "t3", "live", number);
        let call = format!("{nick}.1");
        self.at((begins - super::START) as f64 / 1_000.0 + 5.0).answer(&call);
        let sentence = |from: i64, cut: bool| json!({ "kinds": ["ai", "name", "opt_out"], "started_ms": from, "completed_ms": from + 4_000, "is_cut_off": cut });
        self.next = Some(
            json!({ "answered_by": "human", "picked_up_at": iso(self.now), "ended_at": iso(self.now + 60_000),
            "first_sound_ms": 400, "first_words_ms": 9_000, "disclosures": [sentence(400, true), sentence(5_000, false)] }),
        );
        self.at((begins - super::START) as f64 / 1_000.0 + 65.0)
            .end(&call, "completed", "completed");
    }

    fn tells_of(&mut self, what: &str, about: &Value, nick: &str, body: Value) {
        self.next = Some(body);
        self.notes(what, about, 0, nick);
    }

    /// A row behind the last of its chain; it says what stands in `next`.
    pub fn notes(&mut self, what: &str, about: &Value, dial_n: i64, nick: &str) {
        let (tenant, env) = (about["tenant"].clone(), about["env"].clone());
        let is_end = |line: &Value| line["kind"] == "record_end" && line["tenant"] == tenant && line["env"] == env;
        let end = self.evidence.dump.iter().position(is_end);
        let (n, before) = end.map_or((0, json!("")), |at| {
            let end = self.evidence.dump.remove(at);
            (end["n"].as_i64().unwrap(), end["hash"].clone())
        });
        let names_somebody = what != "outcome";
        let content = names_somebody.then(|| "c".repeat(64));
        let person = about.get("number").or(about.get("address")).filter(|_| names_somebody);
        let person = person.and_then(Value::as_str).map(|who| format!("{who:0>32}"));
        let campaign = (tenant == "t3").then_some("sold");
        let body = self.next.take().unwrap_or_else(watched).to_string();
        let mut line = json!({ "kind": "record", "nick": nick, "tenant": tenant, "env": env, "n": n + 1, "what": what,
            "attempt": about["id"], "dial_n": dial_n, "campaign": campaign, "number_hash": person, "email_hash": null, "at": iso(self.now),
            "body": body, "content": content, "content_sha256": content, "prev_hash": before,
            "hash": "", "difference": null });
        let hash = law::hash(&law::record(&line).unwrap());
        line["hash"] = json!(hash);
        let end = json!({ "kind": "record_end", "nick": tenant, "tenant": tenant, "env": env,
            "n": n + 1, "hash": hash });
        self.evidence.dump.extend([line, end]);
    }

    /// Where the first tenant's chain stands is signed.
    pub fn publishes(&mut self) {
        let is_end = |line: &&Value| line["kind"] == "record_end" && line["tenant"] == "t1" && line["env"] == "live";
        let mut head = self.evidence.dump.iter().find(is_end).unwrap().clone();
        (head["kind"], head["nick"], head["day"]) = (json!("record_head"), json!("head"), json!("2027-03-02"));
        self.evidence.dump.push(head);
    }
}
