//! Wrongs in the record of attempts: L2, L9, L10.
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

pub const FAULTS: &[Fault] = &[
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
        record(e, "a1.1")["body_sha256"] = json!("e".repeat(64))
    }),
    ("a row that was edited and hashed anew", "L10", "does not follow", |e| {
        edit(e, "a1.1", |line| line["body_sha256"] = json!("e".repeat(64)))
    }),
    ("the last row was edited and hashed anew", "L10", "does not end", |e| {
        edit(e, "other.1 outcome", |line| line["body_sha256"] = json!("e".repeat(64)))
    }),
    (
        "a chain that was hashed anew",
        "L10",
        "published with another hash",
        |e| {
            record(e, "a1.1")["body_sha256"] = json!("e".repeat(64));
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
