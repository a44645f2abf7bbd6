//! The story's record of attempts: an opening with each intent, an outcome with each end, one chain per tenant and env.
use super::{Story, iso};
use crate::audit::law;
use serde_json::{Value, json};

impl Story {
    /// A row behind the last of its chain.
    pub fn notes(&mut self, what: &str, about: &Value, dial_n: i64, nick: &str) {
        let (tenant, env) = (about["tenant"].clone(), about["env"].clone());
        let is_end = |line: &Value| line["kind"] == "record_end" && line["tenant"] == tenant && line["env"] == env;
        let end = self.evidence.dump.iter().position(is_end);
        let (n, before) = end.map_or((0, json!("")), |at| {
            let end = self.evidence.dump.remove(at);
            (end["n"].as_i64().unwrap(), end["hash"].clone())
        });
        let content = (what == "attempt").then(|| "c".repeat(64));
        let person = (what == "attempt").then(|| "d".repeat(32));
        let mut line = json!({ "kind": "record", "nick": nick, "tenant": tenant, "env": env, "n": n + 1, "what": what,
            "attempt": about["id"], "dial_n": dial_n, "campaign": null, "number_hash": person, "email_hash": null, "at": iso(self.now),
            "body_sha256": "b".repeat(64), "content": content, "content_sha256": content, "prev_hash": before,
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
