//! Wrongs done to those who are written to: I2, I7, I9, I19, I21.
use super::{Fault, alter::*};
use crate::{audit::Evidence, bites::story::row};
use serde_json::{Value, json};

/// What the provider was asked for the message, once more.
fn asked_again(evidence: &mut Evidence, nick: &str) {
    let line = evidence
        .provider
        .iter()
        .find(|line| line["nick"] == nick)
        .unwrap()
        .clone();
    evidence.provider.push(line);
}

fn first_asked<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    evidence.provider.iter_mut().find(|line| line["nick"] == nick).unwrap()
}

pub const FAULTS: &[Fault] = &[
    (
        "a message is handed over twice by one intent",
        "I7",
        "by 1 intents",
        |e| asked_again(e, "s2"),
    ),
    (
        "a message that was taken is handed over again",
        "I7",
        "may have been taken",
        |e| first_asked(e, "mail")["outcome"] = json!("taken"),
    ),
    (
        "a message that may have been taken is handed over again",
        "I7",
        "may have been taken",
        |e| first_asked(e, "mail")["outcome"] = json!("lost"),
    ),
    (
        "a message is handed over without an intent",
        "I7",
        "by 0 intents",
        |e| lose(e, "send", "s1.1"),
    ),
    ("an attempt without an intent", "I7", "attempts, and the intents", |e| {
        one_more(&mut row(e, "sms", "s1")["attempts"])
    }),
    ("an intent twice", "I7", "attempts, and the intents", |e| {
        let line = row(e, "send", "s1.1").clone();
        e.dump.push(line);
    }),
    ("an intent to write to somebody else", "I7", "to somebody else", |e| {
        row(e, "send", "s1.1")["address"] = json!("+15002000509")
    }),
    (
        "an intent of a message that is not there",
        "I7",
        "which does not exist",
        |e| lose(e, "sms", "s1"),
    ),
    (
        "a contact is written to too often",
        "I7",
        "was written to 2 times",
        |e| {
            let contact = row(e, "contact", "s1")["id"].clone();
            row(e, "sms", "s2")["contact"] = contact;
        },
    ),
    (
        "two messages to one contact are on their way",
        "I7",
        "on their way",
        |e| {
            let contact = row(e, "contact", "s1")["id"].clone();
            row(e, "sms", "s2")["contact"] = contact;
            row(e, "sms", "s1")["phase"] = json!("sending");
            row(e, "sms", "s2")["phase"] = json!("sending");
        },
    ),
    ("a text after a stop", "I9", "on the do-not-call list", |e| {
        row(e, "dnc", "stopped")["removed_seq"] = json!(null)
    }),
    (
        "an e-mail after an unsubscription",
        "I9",
        "on the do-not-call list",
        |e| {
            let entry = row(e, "dnc", "stopped");
            (entry["number"], entry["email"]) = (json!(null), json!("ann@example.com"));
            (entry["channels"], entry["added_seq"]) = (json!(["email"]), json!(1));
        },
    ),
    ("a text while its campaign pauses", "I21", "did not run", |e| {
        let moves = campaign(e, "s")["moves"].as_array_mut().unwrap();
        moves.last_mut().unwrap()["to"] = json!("paused");
    }),
    (
        "a message that is dispatched without a word",
        "I2",
        "0 campaign.contact_dispatched",
        |e| without(e, "campaign.contact_dispatched", "s1"),
    ),
    ("a contact's message is another's", "I2", "is not one of contact", |e| {
        let other = row(e, "contact", "s2")["id"].clone();
        row(e, "sms", "s1")["contact"] = other;
    }),
    ("a campaign counts a message wrong", "I2", "the rows say", |e| {
        row(e, "sms", "s1")["phase"] = json!("failed")
    }),
    (
        "a message that nobody looks at again",
        "I19",
        "nothing is to be done",
        |e| row(e, "sms", "start")["phase"] = json!("queued"),
    ),
    ("a message that is long overdue", "I19", "long overdue", |e| {
        let message = row(e, "sms", "start");
        (message["phase"], message["wake_at"]) = (json!("queued"), json!("2027-03-02T15:30:00.000Z"));
    }),
];
