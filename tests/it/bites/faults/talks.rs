//! Wrongs in what is told of a talk, and in what its other side wished: I2, I7, I9.
use super::{Fault, alter::*};
use crate::bites::story::row;
use serde_json::json;

pub const FAULTS: &[Fault] = &[
    ("a call is dialled after its answer", "I2", "was dialled after", |e| {
        let began = event(e, "session.started", "test.1")["seq"].clone();
        session(e, "test.1")["intent_seq"] = began;
    }),
    ("a call is dialled after it failed", "I2", "was dialled after", |e| {
        session(e, "other.1")["intent_seq"] = json!(900_000)
    }),
    ("an opt-out without a word", "I2", "0 session.opt_out_detected", |e| {
        without(e, "session.opt_out_detected", "a2.2")
    }),
    ("an opt-out told twice", "I2", "2 session.opt_out_detected", |e| {
        twice(e, "session.opt_out_detected", "a2.2")
    }),
    (
        "an opt-out that nobody wished",
        "I2",
        "1 session.opt_out_detected",
        |e| session(e, "a2.2")["opted_out_at"] = json!(null),
    ),
    (
        "an opt-out of a caller without a word",
        "I2",
        "0 session.opt_out_detected",
        |e| without(e, "session.opt_out_detected", "caller.1"),
    ),
    (
        "an opt-out of nobody knows whom is told",
        "I2",
        "1 session.opt_out_detected",
        |e| session(e, "caller.1")["from"] = json!(null),
    ),
    (
        "a refusal to be recorded without a word",
        "I2",
        "0 session.consent_refused",
        |e| without(e, "session.consent_refused", "b3.1"),
    ),
    (
        "a refusal to be recorded is told twice",
        "I2",
        "2 session.consent_refused",
        |e| twice(e, "session.consent_refused", "b3.1"),
    ),
    ("a refusal of one who agreed", "I2", "1 session.consent_refused", |e| {
        session(e, "b3.1")["consent"] = json!("granted")
    }),
    ("a transfer after the end", "I2", "told outside of the talk", |e| {
        event(e, "session.transfer_initiated", "b1.1")["seq"] = json!(900_000)
    }),
    (
        "a transfer of a call not answered",
        "I2",
        "told outside of the talk",
        |e| {
            let busy = session(e, "b2.1")["id"].clone();
            event(e, "session.transfer_initiated", "b1.1")["subject"] = busy;
        },
    ),
    ("a timeout before the answer", "I2", "told outside of the talk", |e| {
        event(e, "function.timeout", "test.1")["seq"] = json!(0)
    }),
    ("a timeout in no session", "I2", "does not exist", |e| {
        about_nothing(e, "function.timeout", "test.1")
    }),
    ("a timeout of another tenant", "I2", "another tenant", |e| {
        event(e, "function.timeout", "test.1")["tenant"] = json!("t2")
    }),
    ("an opt-out before the answer", "I2", "told outside of the talk", |e| {
        event(e, "session.opt_out_detected", "a2.2")["seq"] = json!(0)
    }),
    (
        "a refusal after the end that it made",
        "I2",
        "told outside of the talk",
        |e| {
            session(e, "b3.1")["end_reason"] = json!("consent_refused");
            event(e, "session.consent_refused", "b3.1")["seq"] = json!(900_000)
        },
    ),
    ("a disposition before the end", "I2", "is told before the end", |e| {
        event(e, "session.disposition_set", "a6.1")["seq"] = json!(0)
    }),
    ("a disposition of a live call", "I2", "is told before the end", |e| {
        without(e, "session.ended", "a6.1")
    }),
    ("a look at a talk that failed", "I2", "is evaluated", |e| {
        let failed = session(e, "a7.1")["id"].clone();
        row(e, "evaluation", "a6.1")["session"] = failed;
    }),
    ("a look at nothing", "I2", "is evaluated", |e| {
        row(e, "evaluation", "a6.1")["session"] = json!("nobody")
    }),
    ("a look by another tenant", "I2", "is evaluated", |e| {
        row(e, "evaluation", "a6.1")["tenant"] = json!("t2")
    }),
    (
        "an entry by a wish of which nothing is told",
        "I2",
        "tells nothing of it right then",
        |e| {
            let other = session(e, "a1.1")["id"].clone();
            row(e, "dnc", "a2.2")["session"] = other;
        },
    ),
    (
        "an entry in a transaction of its own",
        "I2",
        "tells nothing of it right then",
        |e| {
            let entry = row(e, "dnc", "a2.2");
            entry["added_seq"] = json!(entry["added_seq"].as_i64().unwrap() - 1);
        },
    ),
    (
        "a call that came in has an intent",
        "I7",
        "has an intent to dial",
        |e| session(e, "caller.1")["intent_seq"] = json!(400),
    ),
    (
        "a call that came in is a campaign's",
        "I7",
        "belongs to a campaign",
        |e| {
            let campaign = campaign(e, "b")["id"].clone();
            session(e, "caller.1")["campaign"] = campaign;
        },
    ),
    ("a call that came in was placed", "I7", "came in, and was placed", |e| {
        let id = session(e, "caller.1")["id"].clone();
        let mut call = placed(e, "b1.1").clone();
        call["session"] = id;
        e.carrier.push(call);
    }),
    (
        "an opt-out that bars nobody",
        "I9",
        "was not on the do-not-call list",
        |e| lose(e, "dnc", "a2.2"),
    ),
    (
        "an opt-out that bars messages only",
        "I9",
        "was not on the do-not-call list",
        |e| row(e, "dnc", "a2.2")["channels"] = json!(["sms"]),
    ),
    (
        "an opt-out that bars too late",
        "I9",
        "was not on the do-not-call list",
        |e| row(e, "dnc", "a2.2")["added_seq"] = json!(900_000),
    ),
    (
        "an opt-out in the other env",
        "I9",
        "was not on the do-not-call list",
        |e| row(e, "dnc", "a2.2")["env"] = json!("test"),
    ),
    (
        "an opt-out of a caller that bars our own number",
        "I9",
        "was not on the do-not-call list",
        |e| row(e, "dnc", "caller.1")["number"] = json!("+15002990000"),
    ),
    ("a call after an opt-out", "I9", "had opted out", |e| {
        session(e, "a9.2")["number"] = json!("+15002000002")
    }),
    ("a call to a caller after an opt-out", "I9", "had opted out", |e| {
        session(e, "a9.2")["number"] = json!("+15002990001")
    }),
    (
        "a call after an opt-out, and before it is lifted",
        "I9",
        "had opted out",
        |e| {
            let intent = session(e, "a9.2")["intent_seq"].clone();
            session(e, "a9.2")["number"] = json!("+15002000002");
            row(e, "dnc", "a2.2")["removed_seq"] = intent;
        },
    ),
];
