//! Wrongs to the sound of calls: I2, I18, I19, I20.
use super::{Fault, alter::*};
use crate::{
    audit::Evidence,
    bites::story::{iso, row, uuid},
};
use serde_json::{Value, json};

const COMPLETED: &str = "session.recording_completed";
const PENDING: &str = "session.opt_out_recording_pending_purge";
const PURGED: &str = "session.opt_out_recording_purged";

fn recording<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    row(evidence, "recording", nick)
}

/// The name of its file, whether it is there or not.
fn file(evidence: &mut Evidence, nick: &str) -> String {
    let recording = recording(evidence, nick);
    let word = |name: &str| recording[name].as_str().unwrap();
    format!("{}/{}.wav", word("tenant"), word("id"))
}

fn files(evidence: &mut Evidence) -> &mut Vec<String> {
    evidence.files.as_mut().unwrap()
}

pub const FAULTS: &[Fault] = &[
    (
        "a recording without a word",
        "I2",
        "0 session.recording_completed",
        |e| without(e, COMPLETED, "a6.1"),
    ),
    (
        "a recording told of twice",
        "I2",
        "2 session.recording_completed",
        |e| twice(e, COMPLETED, "a6.1"),
    ),
    (
        "a recording told of while it is stored",
        "I2",
        "1 session.recording_completed",
        |e| {
            recording(e, "a6.1")["completed_at"] = json!(null);
            recording(e, "a6.1")["state"] = json!("processing");
        },
    ),
    (
        "a failed recording is told of",
        "I2",
        "1 session.recording_completed",
        |e| {
            recording(e, "a6.1")["completed_at"] = json!(null);
            recording(e, "a6.1")["state"] = json!("failed");
        },
    ),
    (
        "a recording told of before its call's end",
        "I2",
        "before its call's end",
        |e| event(e, COMPLETED, "a6.1")["seq"] = json!(0),
    ),
    (
        "a purge without a word",
        "I2",
        "0 session.opt_out_recording_purged",
        |e| without(e, PURGED, "a2.2"),
    ),
    ("a purge told twice", "I2", "2 session.opt_out_recording_purged", |e| {
        twice(e, PURGED, "a2.2")
    }),
    (
        "a purge of a failed one told twice",
        "I2",
        "2 session.opt_out_recording_purged",
        |e| twice(e, PURGED, "a7.1"),
    ),
    (
        "a purge that did not come to pass",
        "I2",
        "1 session.opt_out_recording_purged",
        |e| {
            recording(e, "a2.2")["state"] = json!("pending_purge");
            recording(e, "a2.2")["purged_at"] = json!(null);
        },
    ),
    (
        "a purge that nobody wished is told",
        "I2",
        "1 session.opt_out_recording_purged",
        |e| recording(e, "a2.2")["purge_reason"] = json!("retention"),
    ),
    (
        "a purge to come without a word",
        "I2",
        "0 session.opt_out_recording_pending_purge",
        |e| without(e, PENDING, "a2.2"),
    ),
    (
        "a purge to come told twice",
        "I2",
        "2 session.opt_out_recording_pending_purge",
        |e| twice(e, PENDING, "a2.2"),
    ),
    (
        "a purge before its announcement",
        "I2",
        "before that is announced",
        |e| {
            let seq = event(e, PENDING, "a2.2")["seq"].as_i64().unwrap();
            event(e, PURGED, "a2.2")["seq"] = json!(seq - 1);
        },
    ),
    (
        "a purge to come after the call",
        "I2",
        "told outside of the talk",
        |e| event(e, PENDING, "a2.2")["seq"] = json!(900_000),
    ),
    ("a purge before its time", "I2", "before its time", |e| {
        earlier(recording(e, "a2.2"), "purged_at", 10_001)
    }),
    ("a purge without a time", "I2", "before its time", |e| {
        recording(e, "a2.2")["purge_after"] = json!(null)
    }),
    ("a purge without a reason", "I2", "does not fit", |e| {
        recording(e, "a2.2")["purge_reason"] = json!(null)
    }),
    ("purged, and nobody knows when", "I2", "does not fit", |e| {
        recording(e, "a2.2")["purged_at"] = json!(null)
    }),
    ("kept, and purged at a time", "I2", "does not fit", |e| {
        recording(e, "a6.1")["purged_at"] = json!("2027-03-02T15:20:00.000Z")
    }),
    ("kept after an opt-out as if for ever", "I2", "does not fit", |e| {
        recording(e, "a2.2")["state"] = json!("completed");
        recording(e, "a2.2")["purged_at"] = json!(null);
    }),
    ("to be purged without an opt-out", "I2", "does not fit", |e| {
        recording(e, "a6.1")["state"] = json!("pending_purge")
    }),
    ("completed, and never stored", "I2", "does not fit", |e| {
        recording(e, "a6.1")["completed_at"] = json!(null)
    }),
    ("a state that nobody knows", "I2", "does not fit", |e| {
        recording(e, "a6.1")["state"] = json!("lost")
    }),
    ("a recording that is lost", "I2", "which does not exist", |e| {
        lose(e, "recording", "a6.1")
    }),
    ("a recording of no session", "I2", "is not the one of session", |e| {
        recording(e, "a6.1")["session"] = json!("nobody")
    }),
    ("a second recording of a call", "I2", "is not the one of session", |e| {
        let mut second = recording(e, "a6.1").clone();
        second["id"] = json!(uuid(1_900_000_000_000, 3));
        e.dump.push(second);
    }),
    (
        "a recording of another tenant",
        "I2",
        "is not the one of session",
        |e| recording(e, "a6.1")["tenant"] = json!("t2"),
    ),
    ("a session denies its recording", "I2", "is not its session's", |e| {
        session(e, "a6.1")["recording"] = json!(null)
    }),
    (
        "an event names another's recording",
        "I2",
        "is not its session's",
        |e| {
            let other = recording(e, "a2.2")["id"].clone();
            event(e, COMPLETED, "a6.1")["recording"] = other;
        },
    ),
    ("an event names no recording", "DUMP", "`recording`", |e| {
        drop(event(e, COMPLETED, "a6.1").as_object_mut().unwrap().remove("recording"))
    }),
    ("recorded against a refusal", "I2", "without consent", |e| {
        session(e, "a6.1")["consent"] = json!("refused")
    }),
    ("recorded before a yes", "I2", "without consent", |e| {
        session(e, "a6.1")["consent"] = json!("pending")
    }),
    ("a file outlives its purge", "I18", "its recording is purged", |e| {
        let file = file(e, "a2.2");
        files(e).push(file);
    }),
    (
        "a half-written file outlives a purge",
        "I18",
        "its recording is purged",
        |e| {
            e.settled = false;
            let file = file(e, "a2.2");
            files(e).push(format!("{file}#1"));
        },
    ),
    ("a half-written file", "I18", "was never finished", |e| {
        let file = file(e, "a6.1");
        files(e).push(format!("{file}#2"));
    }),
    ("a file of nobody", "I18", "belongs to no recording", |e| {
        files(e).push(format!("t1/{}.wav", uuid(0, 0)))
    }),
    (
        "a file in another tenant's folder",
        "I18",
        "belongs to no recording",
        |e| {
            let file = file(e, "a6.1").replacen("t1/", "t2/", 1);
            files(e).push(file);
        },
    ),
    ("a sound that is said to be kept is gone", "I18", "has no file", |e| {
        files(e).clear()
    }),
    ("a recording is stored for ever", "I19", "still processing", |e| {
        recording(e, "a6.1")["state"] = json!("processing")
    }),
    ("a recording outlives its time", "I19", "should have been purged", |e| {
        recording(e, "a6.1")["purge_after"] = json!("2027-03-02T15:50:00.000Z")
    }),
    ("a look at a talk is never done", "I19", "still pending", |e| {
        row(e, "evaluation", "a6.1")["state"] = json!("pending")
    }),
    ("a recording's id of version 4", "I20", "no UUIDv7", |e| {
        other_digit(&mut recording(e, "a6.1")["id"], 14, "4")
    }),
    ("a recording's id twice", "I20", "not unique", |e| {
        let id = recording(e, "a6.1")["id"].clone();
        recording(e, "a2.2")["id"] = id;
    }),
    ("a recording's time without milliseconds", "I20", "no time", |e| {
        recording(e, "a6.1")["completed_at"] = json!("2027-03-02T15:05:10Z")
    }),
    ("an opt-out's time with a blank", "I20", "no time", |e| {
        session(e, "a2.2")["opted_out_at"] = json!("2027-03-02 15:11:50.000Z")
    }),
    ("an opt-out before the talk", "I20", "out of order with the talk", |e| {
        earlier(session(e, "a2.2"), "opted_out_at", 7_001)
    }),
    ("an opt-out after the talk", "I20", "out of order with the talk", |e| {
        earlier(session(e, "a2.2"), "opted_out_at", -5_001)
    }),
    (
        "stored before the call's end",
        "I20",
        "created, completed, purged",
        |e| earlier(recording(e, "a6.1"), "completed_at", 1_001),
    ),
    (
        "purged before it was stored",
        "I20",
        "created, completed, purged",
        |e| {
            let now = iso(crate::audit::read::millis(recording(e, "a2.2")["purged_at"].as_str().unwrap()).unwrap() + 1);
            recording(e, "a2.2")["completed_at"] = json!(now);
        },
    ),
];
