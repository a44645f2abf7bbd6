//! Wrongs to the person at the other end: I7, I8, I9, I21.
use super::{Fault, alter::*};
use crate::bites::story::row;
use serde_json::json;

pub const FAULTS: &[Fault] = &[
    ("a session is placed twice", "I7", "placed 2 times", |e| {
        let mut again = placed(e, "a1.1").clone();
        again["at"] = json!(again["at"].as_i64().unwrap() + 60_000_000);
        e.carrier.push(again);
    }),
    ("a call of no session", "I7", "does not exist", |e| {
        placed(e, "other.1")["session"] = json!("none")
    }),
    ("a call to another number", "I7", "another number, tenant", |e| {
        placed(e, "a1.1")["to"] = json!("+15002000005")
    }),
    ("a call by another tenant", "I7", "another number, tenant", |e| {
        placed(e, "a1.1")["tenant"] = json!("t2")
    }),
    ("a live call of a test session", "I7", "another number, tenant", |e| {
        placed(e, "test.1")["env"] = json!("live")
    }),
    ("a call without an intent", "I7", "without an intent", |e| {
        session(e, "a1.1")["intent_seq"] = json!(null)
    }),
    ("a call before its intent", "I7", "before its intent", |e| {
        one_more_by(&mut placed(e, "a1.1")["at"], -2_701)
    }),
    ("a session begins before the last one ended", "I7", "overlap", |e| {
        earlier(session(e, "a2.1"), "ended_at", -694_001)
    }),
    (
        "a session begins before the last one's end is known",
        "I7",
        "overlap",
        |e| session(e, "a2.1")["ended_at"] = json!(null),
    ),
    (
        "two calls to one contact at once",
        "I7",
        "overlap at the carrier",
        |e| one_more_by(&mut ended(e, "b2.1")["at"], 61_000_000),
    ),
    ("one attempt too many", "I7", "called 2 times", |e| {
        contact(e, "a2")["max_attempts"] = json!(1)
    }),
    (
        "a call that the API ended was an attempt",
        "I7",
        "called 2 times",
        |e| {
            contact(e, "a2")["max_attempts"] = json!(1);
            let call = session(e, "a2.1");
            for (name, value) in [("status", "failed"), ("end_reason", "canceled"), ("ended_by", "api")] {
                call[name] = json!(value);
            }
        },
    ),
    ("a gap that is too short", "I7", "too short a gap", |e| {
        one_more(&mut contact(e, "b2")["gap"])
    }),
    (
        "a session calls another number than its contact's",
        "I7",
        "than its contact",
        |e| {
            session(e, "a1.1")["number"] = json!("+15002000002");
            placed(e, "a1.1")["to"] = json!("+15002000002");
        },
    ),
    ("one number twice in a campaign", "I7", "holds 2 contacts", |e| {
        contact(e, "a12")["number"] = json!("+15002000011")
    }),
    ("a lost call is placed again", "I8", "which is lost", |e| {
        drop(ended(e, "a8.1").as_object_mut().unwrap().remove("outcome"))
    }),
    (
        "a call cut off by a kill has a verdict",
        "I8",
        "cut off by a kill",
        |e| session(e, "a7.1")["end_reason"] = json!("no_answer"),
    ),
    ("a call to a number on the list", "I9", "since", |e| {
        row(e, "dnc", "lifted")["removed_seq"] = json!(null)
    }),
    ("a call before the entry is lifted", "I9", "since", |e| {
        let intent = session(e, "a6.1")["intent_seq"].clone();
        row(e, "dnc", "lifted")["removed_seq"] = intent;
    }),
    ("a call by the API to a number on the list", "I9", "since", |e| {
        let entry = row(e, "dnc", "kept");
        entry["number"] = json!("+15002900002");
        entry["tenant"] = json!("t2");
    }),
    ("a call while paused", "I21", "was paused", |e| {
        intent_after(e, "a2.2", "a", 2)
    }),
    ("a call while closing", "I21", "was closing", |e| {
        intent_after(e, "a2.2", "a", 4)
    }),
    ("a call after the end", "I21", "was completed", |e| {
        intent_after(e, "a2.2", "a", 5)
    }),
    ("a call while armed", "I21", "was armed", |e| {
        let armed = campaign(e, "b")["moves"][1]["seq"].clone();
        session(e, "b3.1")["intent_seq"] = armed;
    }),
    ("a call in quiet hours", "I21", "was paused", |e| {
        intent_after(e, "b3.1", "b", 3)
    }),
    ("a call before there was a campaign", "I21", "was not started", |e| {
        session(e, "a1.1")["intent_seq"] = json!(0)
    }),
    ("a pause cancels a live call", "I21", "canceled by the pause", |e| {
        let call = session(e, "a1.1");
        call["end_reason"] = json!("canceled");
        earlier(call, "ended_at", 19_900);
    }),
];
