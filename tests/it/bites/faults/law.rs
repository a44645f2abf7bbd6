//! Wrongs in the record of attempts, and in what it tells of: L1 to L10.
use super::{Fault, alter::*};
use crate::{
    audit::{Evidence, law},
    bites::story::row,
};
use serde_json::{Value, json};

fn record<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    row(evidence, "record", nick)
}

/// Whoever edits a row hashes it anew; those behind it do not know.
fn edit(evidence: &mut Evidence, nick: &str, change: fn(&mut Value)) {
    let line = record(evidence, nick);
    change(line);
    let hash = law::hash(&law::record(line).unwrap());
    line["hash"] = json!(hash);
}

/// Takes a row out, and closes the ranks behind it.
fn take_out(evidence: &mut Evidence, nick: &str) {
    let gone = record(evidence, nick).clone();
    evidence
        .dump
        .retain(|line| line["kind"] != "record" || line["nick"] != nick);
    rechain(
        evidence,
        gone["tenant"].as_str().unwrap(),
        gone["env"].as_str().unwrap(),
    );
}

/// Hashes a whole chain anew: what somebody does who may write to the database.
fn rechain(evidence: &mut Evidence, tenant: &str, env: &str) {
    let is_of = |line: &Value, kind: &str| line["kind"] == kind && line["tenant"] == tenant && line["env"] == env;
    let mut rows: Vec<&mut Value> = evidence.dump.iter_mut().filter(|line| is_of(line, "record")).collect();
    rows.sort_by_key(|line| line["n"].as_i64().unwrap());
    let (mut n, mut before) = (0, String::new());
    for line in rows {
        n += 1;
        (line["n"], line["prev_hash"]) = (json!(n), json!(before));
        before = law::hash(&law::record(line).unwrap());
        line["hash"] = json!(before);
    }
    let end = evidence.dump.iter_mut().find(|line| is_of(line, "record_end")).unwrap();
    (end["n"], end["hash"]) = (json!(n), json!(before));
}

/// So many days between the commit of a row and its end.
fn anchored(evidence: &mut Evidence, recorded_at: &str, pruned_at: &str) {
    let gone = record(evidence, "other.1").clone();
    evidence
        .dump
        .retain(|line| line["kind"] != "record" || line["nick"] != "other.1");
    evidence.dump.push(
        json!({ "kind": "record_anchor", "tenant": gone["tenant"], "env": gone["env"], "n": gone["n"],
        "hash": gone["hash"], "recorded_at": recorded_at, "pruned_at": pruned_at }),
    );
}

/// The row says something else, and all rows behind it are hashed anew.
pub fn says(evidence: &mut Evidence, nick: &str, change: impl FnOnce(&mut Value)) {
    let line = record(evidence, nick);
    let mut body: Value = serde_json::from_str(line["body"].as_str().unwrap()).unwrap();
    change(&mut body);
    line["body"] = json!(body.to_string());
    let owner = [&line["tenant"], &line["env"]].map(|one| one.as_str().unwrap().to_owned());
    rechain(evidence, &owner[0], &owner[1]);
}

fn consent<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    row(evidence, "consent", nick)
}

fn abandoned(evidence: &mut Evidence, nick: &str) {
    says(evidence, &format!("{nick}.1 outcome"), |body| {
        body["abandoned"] = json!("silence")
    });
}

pub const FAULTS: &[Fault] = &[
    ("nobody has agreed", "L1", "that is not named", |e| {
        says(e, "ann.1", |body| body["facts"]["consent"] = json!(null))
    }),
    ("an agreement that nobody knows", "L1", "that nobody has given", |e| {
        lose(e, "consent", "ann")
    }),
    ("somebody else's agreement", "L1", "of somebody else", |e| {
        consent(e, "ann")["tenant"] = json!("t1")
    }),
    ("an agreement with another seller", "L1", "for another seller", |e| {
        consent(e, "ann")["seller"] = json!("other inc.")
    }),
    ("an agreement to texts", "L1", "for another channel", |e| {
        consent(e, "ann")["channels"] = json!(["sms"])
    }),
    ("an agreement about an order", "L1", "for another purpose", |e| {
        consent(e, "bob")["purposes"] = json!(["service"])
    }),
    ("an agreement that came later", "L1", "that came later", |e| {
        one_more_by(&mut consent(e, "ann")["given_seq"], 1_000)
    }),
    ("an agreement that was over", "L1", "that had expired", |e| {
        let call = session(e, "ann.1")["created_at"].clone();
        consent(e, "ann")["expires_at"] = call;
    }),
    ("an agreement that was taken back", "L1", "that was taken back", |e| {
        let given = consent(e, "ann")["given_seq"].clone();
        consent(e, "ann")["withdrawals"] = json!([{ "channel": "phone", "seq": given }]);
    }),
    (
        "an agreement that was said only",
        "L1",
        "of a tier that is too low",
        |e| consent(e, "ann")["tier"] = json!("express"),
    ),
    (
        "a contract, where it is not enough",
        "L1",
        "of a tier that is too low",
        |e| consent(e, "ann")["tier"] = json!("existing_contract"),
    ),
    (
        "an agreement to calls by people",
        "L1",
        "not cover an automated voice",
        |e| consent(e, "ann")["covers_automated_voice"] = json!(false),
    ),
    ("a call after an opt-out", "L3", "after the opt-out of row", |e| {
        take_out(e, "dan agrees again")
    }),
    ("nobody was told to the end", "L4", "told to the end", |e| {
        says(e, "ann.1 outcome", |body| {
            body["disclosures"][1]["is_cut_off"] = json!(true)
        })
    }),
    ("it was not said again", "L4", "told to the end", |e| {
        says(e, "ann.1 outcome", |body| {
            drop(body["disclosures"].as_array_mut().unwrap().pop())
        })
    }),
    ("a name is not told", "L4", "told to the end", |e| {
        says(e, "bob.1 outcome", |body| {
            body["disclosures"][1]["kinds"] = json!(["ai"])
        })
    }),
    ("the brain begins too soon", "L4", "spoke before it was told", |e| {
        says(e, "ann.1 outcome", |body| body["first_words_ms"] = json!(8_999))
    }),
    ("the name follows later", "L4", "spoke before it was told", |e| {
        says(e, "bob.1 outcome", |body| {
            body["disclosures"][1]["kinds"] = json!(["ai"]);
            let name = json!({ "kinds": ["name"], "started_ms": 10_000, "completed_ms": 12_000 });
            body["disclosures"].as_array_mut().unwrap().push(name);
        })
    }),
    (
        "whoever hangs up soon has heard the brain alone",
        "L4",
        "spoke before it was told",
        |e| {
            says(e, "ann.1 outcome", |body| {
                body["disclosures"] = json!([]);
                body["ended_at"] = body["picked_up_at"].clone();
            })
        },
    ),
    (
        "a person waits, and it does not count",
        "L5",
        "does not count as abandoned",
        |e| says(e, "cyd.1 outcome", |body| body["first_sound_ms"] = json!(2_001)),
    ),
    (
        "who is left alone does not hear the message",
        "L5",
        "stored message was not played",
        |e| says(e, "ann.1 outcome", |body| body["abandoned"] = json!("no_brain")),
    ),
    (
        "a campaign goes on that abandons people",
        "L6",
        "2 of 4 answered calls",
        |e| {
            abandoned(e, "ann");
            abandoned(e, "dan");
        },
    ),
    ("a copy that is too old", "L7", "fresh copy of au_dncr", |e| {
        says(e, "cyd.1", |body| {
            body["facts"]["registers"][0]["fetched_at"] = json!("2027-01-30T00:00:00.000Z")
        })
    }),
    ("a copy of tomorrow", "L7", "fresh copy of au_dncr", |e| {
        says(e, "cyd.1", |body| {
            body["facts"]["registers"][0]["fetched_at"] = json!("2027-03-03T00:00:00.000Z")
        })
    }),
    ("a copy in the place of an answer", "L7", "fresh copy of au_dncr", |e| {
        says(e, "cyd.1", |body| body["facts"]["asked_registers"] = json!(["au_dncr"]))
    }),
    ("a number that is listed", "L7", "fresh copy of au_dncr", |e| {
        says(e, "cyd.1", |body| {
            body["facts"]["registers"][0]["is_listed"] = json!(true)
        })
    }),
    (
        "nobody has asked whose the number is",
        "L7",
        "still the same person's",
        |e| says(e, "eve.1", |body| body["facts"]["reassigned"] = json!(null)),
    ),
    ("an answer that is too old", "L7", "still the same person's", |e| {
        says(e, "eve.1", |body| {
            body["facts"]["reassigned"]["checked_at"] = json!("2027-01-30T00:00:00.000Z")
        })
    }),
    (
        "a number that is somebody else's now",
        "L7",
        "still the same person's",
        |e| says(e, "eve.1", |body| body["facts"]["reassigned"]["answer"] = json!("yes")),
    ),
    (
        "an answer about too short a time",
        "L7",
        "still the same person's",
        |e| {
            says(e, "eve.1", |body| {
                body["facts"]["reassigned"]["since"] = json!("2027-02-01T00:00:00.000Z")
            })
        },
    ),
    (
        "a rule that has ended is asked",
        "L8",
        "fr.machines was asked from its end on",
        |e| {
            says(e, "bob.1", |body| {
                body["asked"].as_array_mut().unwrap().push(json!("consent:fr.machines"))
            })
        },
    ),
    (
        "a rule of the whole Union was not asked",
        "L8",
        "eu.disclosure was asked before its day, or not",
        |e| says(e, "bob.1", |body| body["facts"]["places"] = json!(["DE"])),
    ),
    (
        "a rule that is in force was not asked",
        "L8",
        "fr.optin was asked before its day, or not",
        |e| says(e, "bob.1", |body| body["asked"] = json!([])),
    ),
    (
        "a rule was asked before its day",
        "L8",
        "fr.optin was asked before its day",
        |e| {
            says(e, "bob.1", |body| {
                body["facts"]["at"] = json!("2026-08-10T21:59:59.000Z")
            })
        },
    ),
    ("the law says otherwise by now", "L2", "otherwise of attempt", |e| {
        record(e, "a1.1")["difference"] = json!("us.hours: comes out as `hours:us.hours:wait`")
    }),
    (
        "a call that is not on record",
        "L9",
        "has 1 intents, and 0 on record",
        |e| take_out(e, "a1.1"),
    ),
    (
        "a message that is not on record",
        "L9",
        "has 2 intents, and 1 on record",
        |e| take_out(e, "mail.2"),
    ),
    ("an intent that is on record twice", "L9", "is on record twice", |e| {
        let mail = record(e, "mail.2");
        mail["dial_n"] = json!(1);
    }),
    (
        "an intent more than is on record",
        "L9",
        "has 2 intents, and 1 on record",
        |e| session(e, "a1.1")["intents"] = json!(2),
    ),
    (
        "a call of which nobody knows what came",
        "L9",
        "0 outcomes of it",
        |e| take_out(e, "a1.1 outcome"),
    ),
    ("a call with two outcomes", "L9", "2 outcomes of it", |e| {
        let other = record(e, "a1.1 outcome")["attempt"].clone();
        record(e, "a2.1 outcome")["attempt"] = other;
    }),
    (
        "a message of which nobody knows what came",
        "L9",
        "no outcome of it",
        |e| take_out(e, "stop outcome"),
    ),
    ("a row that goes too early", "L9", "before its five years", |e| {
        anchored(e, "2022-03-04T00:00:00.000Z", "2027-03-02T00:00:00.000Z")
    }),
    ("a row that was edited", "L10", "does not follow", |e| {
        record(e, "a1.1")["body"] = json!("{}")
    }),
    ("a row that was edited and hashed anew", "L10", "does not follow", |e| {
        edit(e, "a1.1", |line| line["body"] = json!("{}"))
    }),
    ("the last row was edited and hashed anew", "L10", "does not end", |e| {
        edit(e, "other.1 outcome", |line| line["body"] = json!("{}"))
    }),
    (
        "a chain that was hashed anew",
        "L10",
        "published with another hash",
        |e| {
            record(e, "a1.1")["body"] = json!("{}");
            rechain(e, "t1", "live");
        },
    ),
    (
        "a row that says it was somebody else",
        "L10",
        "what was not recorded",
        |e| record(e, "a1.1")["content"] = json!("e".repeat(64)),
    ),
    ("a row is missing", "L10", "must be", |e| {
        record(e, "a2.1")["kind"] = json!("lost")
    }),
    ("a row that was put in", "L10", "must be", |e| {
        let again = record(e, "a2.1").clone();
        e.dump.push(again);
    }),
    ("two rows were swapped", "L10", "does not follow", |e| {
        let (one, other) = (record(e, "a1.1")["n"].clone(), record(e, "a2.1")["n"].clone());
        record(e, "a1.1")["n"] = other;
        record(e, "a2.1")["n"] = one;
    }),
    ("the end of a chain is lost", "L10", "does not end", |e| {
        let is_end = |line: &Value| line["kind"] == "record_end" && line["tenant"] == "t2";
        e.dump.retain(|line| !is_end(line));
    }),
    ("all rows of a chain are lost", "L10", "does not end", |e| {
        e.dump.retain(|line| line["kind"] != "record" || line["tenant"] != "t2")
    }),
    (
        "an attempt that is on record before its time",
        "L10",
        "stands before the intent",
        |e| {
            let later = session(e, "a3.1")["intent_seq"].clone();
            let earlier = session(e, "a1.1")["intent_seq"].clone();
            session(e, "a1.1")["intent_seq"] = later;
            session(e, "a3.1")["intent_seq"] = earlier;
        },
    ),
];
