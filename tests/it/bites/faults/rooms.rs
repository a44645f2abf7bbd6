//! Wrongs in what becomes of rooms: I2, I19.
use super::{Fault, alter::*};
use crate::bites::story::row;
use serde_json::json;

pub const FAULTS: &[Fault] = &[
    ("a room without a word", "I2", "0 room.created", |e| {
        without(e, "room.created", "talked")
    }),
    ("a view is told twice", "I2", "2 room.landing_viewed", |e| {
        twice(e, "room.landing_viewed", "talked")
    }),
    ("somebody joined, and it is not told", "I2", "0 room.joined", |e| {
        without(e, "room.joined", "talked")
    }),
    ("somebody joined who was never there", "I2", "1 room.joined", |e| {
        row(e, "room", "talked")["joined_at"] = json!(null)
    }),
    ("a room ends twice", "I2", "2 room.expired", |e| {
        twice(e, "room.expired", "missed")
    }),
    ("a room ends otherwise than told", "I2", "0 room.failed", |e| {
        row(e, "room", "missed")["status"] = json!("failed")
    }),
    ("something is told after the end", "I2", "after its end", |e| {
        event(e, "room.joined", "talked")["seq"] = json!(900_000)
    }),
    ("an end without its state", "I2", "its end says otherwise", |e| {
        row(e, "room", "broken")["ended_at"] = json!(null)
    }),
    ("a room of nobody's session", "I2", "no session of its own", |e| {
        row(e, "room", "missed")["session"] = json!("nobody's")
    }),
    (
        "an event of another workspace's room",
        "I2",
        "which its workspace",
        |e| event(e, "room.failed", "broken")["tenant"] = json!("t2"),
    ),
    ("a room ends without its session", "I19", "its session queued", |e| {
        row(e, "session", "missed")["status"] = json!("queued")
    }),
    (
        "a session ends without its room",
        "I19",
        "is created, its session",
        |e| {
            let room = row(e, "room", "broken");
            (room["status"], room["ended_at"]) = (json!("created"), json!(null));
            without(e, "room.failed", "broken");
        },
    ),
    (
        "a room is completed without a talk",
        "I19",
        "is completed, its session",
        |e| {
            row(e, "room", "broken")["status"] = json!("completed");
            event(e, "room.failed", "broken")["type"] = json!("room.completed");
        },
    ),
    ("somebody talks who has not joined", "I19", "had not joined", |e| {
        row(e, "room", "talked")["joined_at"] = json!(null);
        without(e, "room.joined", "talked");
    }),
    ("a room waits beyond its time", "I19", "is still created", |e| {
        let room = row(e, "room", "missed");
        (room["status"], room["ended_at"]) = (json!("created"), json!(null));
        without(e, "room.expired", "missed");
        row(e, "session", "missed")["status"] = json!("queued");
        without(e, "session.failed", "missed");
    }),
];
