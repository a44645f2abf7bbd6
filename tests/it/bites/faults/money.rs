//! Wrongs in the ledgers and in what is told of them: I2, I12, I13, I14, I21.
use super::{Fault, alter::*};
use crate::{audit::Evidence, bites::story::row};
use serde_json::{Value, json};

/// The two postings of an entry of the story, and what they say together.
fn entry(evidence: &mut Evidence, n: i64, name: &str, value: Value) {
    for side in ["+", "-"] {
        row(evidence, "posting", &format!("{n}{side}"))[name] = value.clone();
    }
}

fn number_of(evidence: &mut Evidence, kind: &str, of: &str) -> i64 {
    let subject = evidence
        .dump
        .iter()
        .find(|line| line["nick"] == of && line["id"].is_string())
        .unwrap()["id"]
        .clone();
    let is_it = |line: &&Value| line["kind"] == "posting" && line["entry"] == kind && line["ref"] == subject;
    evidence.dump.iter().find(is_it).unwrap()["n"].as_i64().unwrap()
}

pub const FAULTS: &[Fault] = &[
    ("a posting is missing", "I12", "not two postings", |e| {
        lose(e, "posting", "3-")
    }),
    ("an entry makes money", "I12", "not two postings", |e| {
        one_more(&mut row(e, "posting", "3+")["cents"])
    }),
    ("an entry goes nowhere", "I12", "not two postings", |e| {
        row(e, "posting", "1+")["account"] = json!("operator")
    }),
    ("an entry was changed", "I12", "does not follow", |e| {
        entry(e, 1, "note", json!("a present"))
    }),
    ("an entry was taken out", "I12", "does not follow", |e| {
        lose(e, "posting", "4+");
        lose(e, "posting", "4-");
    }),
    (
        "an entry was taken out and the rest renumbered",
        "I12",
        "entries say",
        |e| {
            let last = row(e, "account", "purse")["entries"].as_i64().unwrap();
            lose(e, "posting", &format!("{last}+"));
            lose(e, "posting", &format!("{last}-"));
        },
    ),
    ("a balance that is not the sum", "I12", "entries say", |e| {
        one_more(&mut row(e, "account", "purse")["balance"])
    }),
    ("something is held of nothing", "I12", "entries say", |e| {
        one_more(&mut row(e, "account", "purse")["held"])
    }),
    ("an entry says another balance", "I12", "it says", |e| {
        entry(e, 2, "balance_after", json!(7))
    }),
    ("entries without an account", "I12", "no account", |e| {
        lose(e, "account", "purse")
    }),
    ("two entries of one id", "I12", "is not unique", |e| {
        let id = row(e, "posting", "1+")["txn"].clone();
        entry(e, 2, "txn", id);
    }),
    ("a call that is set aside for twice", "I12", "more than once", |e| {
        let subject = row(e, "session", "last.1")["id"].clone();
        let n = number_of(e, "hold", "talk.1");
        entry(e, n, "ref", subject);
    }),
    (
        "a call has more set aside for it before it has used up what is",
        "I12",
        "more than once",
        |e| row(e, "session", "longer.1")["price"] = json!(6),
    ),
    ("a message that is set aside for twice", "I12", "more than once", |e| {
        let subject = row(e, "sms", "start")["id"].clone();
        let n = number_of(e, "hold", "stop");
        entry(e, n, "ref", subject);
    }),
    (
        "more is set aside for a call that is settled",
        "I12",
        "more than once",
        |e| {
            let subject = row(e, "session", "longer.1")["id"].clone();
            let n = number_of(e, "hold", "last.1");
            entry(e, n, "ref", subject);
        },
    ),
    ("a hold that is never closed", "I12", "are left", |e| {
        let n = number_of(e, "release", "talk.1");
        entry(e, n, "entry", json!("adjustment"));
    }),
    (
        "a hold that is closed while the call is live",
        "I12",
        "its hold is closed",
        |e| {
            e.settled = false;
            row(e, "session", "talk.1")["status"] = json!("in_progress");
        },
    ),
    ("a call is charged what it does not cost", "I12", "were charged", |e| {
        one_more(&mut row(e, "session", "talk.1")["cost"])
    }),
    (
        "a message is charged what it does not cost",
        "I12",
        "were charged",
        |e| one_more(&mut row(e, "email", "mail")["cost"]),
    ),
    ("a call that set aside less than it says", "I12", "are set aside", |e| {
        one_more(&mut row(e, "session", "talk.1")["hold"])
    }),
    (
        "a message that set aside nothing any more, it says",
        "I12",
        "still set aside",
        |e| one_more(&mut row(e, "sms", "stop")["held"]),
    ),
    ("a call's end tells of another cost", "I12", "tells of", |e| {
        one_more(&mut event(e, "session.ended", "talk.1")["cost"])
    }),
    ("a contact's end tells of another cost", "I12", "tells of", |e| {
        one_more(&mut event(e, "campaign.contact_completed", "s1")["cost"])
    }),
    ("a charge for nothing", "I12", "about nothing of theirs", |e| {
        let n = number_of(e, "charge", "talk.1");
        entry(e, n, "ref", json!("nobody"));
    }),
    ("a charge for another's call", "I12", "about nothing of theirs", |e| {
        row(e, "session", "talk.1")["tenant"] = json!("t2")
    }),
    (
        "a charge for a call of the test env",
        "I12",
        "about nothing of theirs",
        |e| row(e, "session", "talk.1")["env"] = json!("test"),
    ),
    ("a payment that is booked twice", "I12", "booked twice", |e| {
        let n = number_of(e, "topup", "again");
        entry(e, n, "note", json!("pi_1"));
    }),
    ("a payment that is not booked", "I12", "booked 0 times", |e| {
        let n = number_of(e, "topup", "paid");
        entry(e, n, "ref", json!("nobody"));
    }),
    ("a payment that failed is booked", "I12", "booked 1 times", |e| {
        row(e, "topup", "paid")["status"] = json!("failed")
    }),
    ("another amount is booked than was paid", "I12", "booked 1 times", |e| {
        one_more(&mut row(e, "topup", "paid")["cents"])
    }),
    ("the sandbox pays real credits", "I12", "is paid by sandbox", |e| {
        row(e, "topup", "paid")["processor"] = json!("sandbox")
    }),
    ("a test payment on the live account", "I12", "another account", |e| {
        row(e, "topup", "paid")["env"] = json!("test")
    }),
    ("what was paid back is still there", "I12", "were paid back", |e| {
        one_more(&mut row(e, "topup", "again")["refunded"])
    }),
    ("a hold that nothing covered", "I13", "was not covered", |e| {
        let n = number_of(e, "hold", "last.1");
        entry(e, n, "balance_after", json!(49));
    }),
    (
        "a call that costs something was dialled for nothing",
        "I13",
        "nothing set aside",
        |e| session(e, "a1.1")["price"] = json!(10),
    ),
    (
        "a call took more than it was known to cost",
        "I13",
        "the floor is",
        |e| row(e, "session", "last.1")["cost"] = json!(60),
    ),
    ("nobody was told that it is gone", "I14", "nobody was told", |e| {
        without(e, "credits.depleted", "purse")
    }),
    ("it is told again when money has come in", "I14", "tells of", |e| {
        twice(e, "credits.depleted", "purse")
    }),
    ("it is told twice that it is gone", "I14", "told already", |e| {
        let gone = event(e, "credits.depleted", "purse")["seq"].as_i64().unwrap();
        let is_it = |line: &&mut Value| line["type"] == "credits.depleted" && line["seq"] != gone;
        let other = e.dump.iter_mut().find(is_it).unwrap();
        (other["seq"], other["balance"]) = (json!(gone + 2), json!(-20));
    }),
    ("it is told before that it is gone", "I14", "nobody was told", |e| {
        event(e, "credits.depleted", "purse")["seq"] = json!(1)
    }),
    ("it is told of a balance that never was", "I14", "tells of", |e| {
        let is_it = |line: &&mut Value| line["type"] == "credits.depleted" && line["balance"] == 440;
        e.dump.iter_mut().find(is_it).unwrap()["balance"] = json!(441);
    }),
    ("nobody was warned", "I14", "0 credits.low_balance", |e| {
        without(e, "credits.low_balance", "purse")
    }),
    ("two warnings of one fall", "I14", "2 credits.low_balance", |e| {
        twice(e, "credits.low_balance", "purse")
    }),
    ("a warning of another threshold", "I14", "nothing fell below", |e| {
        event(e, "credits.low_balance", "purse")["threshold"] = json!(400)
    }),
    ("a payment without a word", "I2", "are told", |e| {
        without(e, "credits.topup_succeeded", "purse")
    }),
    ("a payment told twice", "I2", "are told", |e| {
        twice(e, "credits.topup_succeeded", "purse")
    }),
    ("a call without credits", "I21", "had nothing left", |e| {
        let gone = event(e, "credits.depleted", "purse")["seq"].as_i64().unwrap();
        session(e, "a1.1")["intent_seq"] = json!(gone + 1);
    }),
    ("a call while it waits for a top-up", "I21", "had nothing left", |e| {
        let is_it = |line: &&Value| line["type"] == "credits.depleted" && line["balance"] == 440;
        let told = e.dump.iter().find(is_it).unwrap()["seq"].as_i64().unwrap();
        session(e, "a1.1")["intent_seq"] = json!(told + 1);
    }),
    ("a message without credits", "I21", "had nothing left", |e| {
        let gone = event(e, "credits.depleted", "purse")["seq"].as_i64().unwrap();
        row(e, "send", "start.1")["seq"] = json!(gone + 1);
    }),
];
