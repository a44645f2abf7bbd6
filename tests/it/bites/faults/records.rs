//! Wrongs in what is stored: DUMP, I1, I19, I20.
use super::{Fault, alter::*};
use serde_json::json;

pub const FAULTS: &[Fault] = &[
    ("a line without a field", "DUMP", "ended_at", |e| {
        drop(session(e, "a1.1").as_object_mut().unwrap().remove("ended_at"))
    }),
    ("a line of the carrier without a time", "DUMP", "`at`", |e| {
        placed(e, "a1.1")["at"] = json!("soon")
    }),
    ("a word of the carrier that nobody knows", "DUMP", "`what`", |e| {
        placed(e, "a1.1")["what"] = json!("rang")
    }),
    ("a day that does not exist", "DUMP", "windows", |e| {
        window(e)["days"] = json!(["caturday"])
    }),
    ("an hour that does not exist", "DUMP", "windows", |e| {
        window(e)["end"] = json!("25:00")
    }),
    ("an acknowledged campaign is lost", "I1", "not stored", |e| {
        lose(e, "campaign", "b")
    }),
    ("an acknowledged contact is lost", "I1", "not stored", |e| {
        lose(e, "contact", "b8")
    }),
    ("an acknowledged session is lost", "I1", "not stored", |e| {
        lose(e, "session", "test.1")
    }),
    ("an acknowledged entry is lost", "I1", "not stored", |e| {
        lose(e, "dnc", "kept")
    }),
    ("a contact is stored with another number", "I1", "is stored as", |e| {
        contact(e, "b8")["number"] = json!("+15002999999")
    }),
    ("a session has not ended", "I19", "still in_progress", |e| {
        session(e, "b3.1")["status"] = json!("in_progress")
    }),
    ("a call was never hung up", "I19", "open at the carrier", |e| {
        never_ends(e, "b3.1")
    }),
    (
        "a dispatched contact without a session",
        "I19",
        "no live session",
        |e| contact(e, "b8")["state"] = json!("dispatched"),
    ),
    ("a contact is forgotten", "I19", "in a completed campaign", |e| {
        contact(e, "a12")["state"] = json!("pending")
    }),
    ("a contact still waits", "I19", "in a completed campaign", |e| {
        contact(e, "a12")["state"] = json!("waiting")
    }),
    ("two events of one id", "I20", "not unique", |e| {
        let id = event(e, "session.created", "a1.1")["id"].clone();
        event(e, "session.created", "a2.1")["id"] = id;
    }),
    ("an id of version 4", "I20", "no UUIDv7", |e| {
        other_digit(&mut session(e, "a1.1")["id"], 14, "4")
    }),
    ("an id of another variant", "I20", "no UUIDv7", |e| {
        other_digit(&mut contact(e, "a1")["id"], 19, "c")
    }),
    ("an id in capitals", "I20", "no UUIDv7", |e| {
        other_digit(&mut contact(e, "a1")["id"], 0, "A")
    }),
    ("ids against the order of commits", "I20", "does not come after", |e| {
        let seq = event(e, "session.started", "a1.1")["seq"].take();
        event(e, "session.started", "a1.1")["seq"] = event(e, "session.ended", "a1.1")["seq"].take();
        event(e, "session.ended", "a1.1")["seq"] = seq;
    }),
    ("an intent at an event's place", "I20", "are both at", |e| {
        let seq = event(e, "session.created", "a1.1")["seq"].clone();
        session(e, "a1.1")["intent_seq"] = seq;
    }),
    ("a time without milliseconds", "I20", "no time", |e| {
        event(e, "session.started", "a1.1")["created_at"] = json!("2027-03-02T15:00:08Z")
    }),
    ("a time with a blank", "I20", "no time", |e| {
        session(e, "a1.1")["ended_at"] = json!("2027-03-02 15:00:40.000Z")
    }),
    ("a time with an offset", "I20", "no time", |e| {
        session(e, "a1.1")["created_at"] = json!("2027-03-02T15:00:02.000+00:00")
    }),
    ("a move on a day that does not exist", "I20", "no time", |e| {
        campaign(e, "a")["moves"][0]["at"] = json!("2027-02-29T15:00:00.000Z")
    }),
    ("started before it was created", "I20", "out of order", |e| {
        earlier(session(e, "a1.1"), "started_at", 7_000)
    }),
    ("ended before it was started", "I20", "out of order", |e| {
        earlier(session(e, "a1.1"), "ended_at", 33_000)
    }),
];
