//! What the faults are made with: find a line of the story, and change it.
use crate::{
    audit::{Evidence, read::millis},
    bites::story::{iso, row, uuid},
};
use serde_json::{Value, json};

pub fn campaign<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    row(evidence, "campaign", nick)
}
pub fn contact<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    row(evidence, "contact", nick)
}
pub fn session<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    row(evidence, "session", nick)
}

/// The first event of that type about it.
pub fn event<'e>(evidence: &'e mut Evidence, kind: &str, nick: &str) -> &'e mut Value {
    let is_it = |line: &&mut Value| line["kind"] == "event" && line["type"] == kind && line["nick"] == nick;
    evidence.dump.iter_mut().find(is_it).unwrap()
}

pub fn carrier<'e>(evidence: &'e mut Evidence, what: &str, nick: &str) -> &'e mut Value {
    let is_it = |line: &&mut Value| line["what"] == what && line["nick"] == nick;
    evidence.carrier.iter_mut().find(is_it).unwrap()
}
pub fn placed<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    carrier(evidence, "placed", nick)
}
pub fn ended<'e>(evidence: &'e mut Evidence, nick: &str) -> &'e mut Value {
    carrier(evidence, "ended", nick)
}

pub fn window(evidence: &mut Evidence) -> &mut Value {
    &mut campaign(evidence, "a")["schedule"]["windows"][0]
}

/// The totals as the event says them.
pub fn completed(evidence: &mut Evidence) -> &mut Value {
    &mut event(evidence, "campaign.completed", "a")["totals"]
}

pub fn two_windows(evidence: &mut Evidence, first: [&str; 2], second: [&str; 2]) {
    let windows = [first, second].map(|[start, end]| json!({ "days": ["tue"], "start": start, "end": end }));
    campaign(evidence, "a")["schedule"]["windows"] = json!(windows);
}

pub fn lose(evidence: &mut Evidence, kind: &str, nick: &str) {
    row(evidence, kind, nick)["kind"] = json!("lost");
}

pub fn without(evidence: &mut Evidence, kind: &str, nick: &str) {
    event(evidence, kind, nick)["kind"] = json!("lost");
}

/// The event once more, as a new one at the end of the dump.
pub fn twice(evidence: &mut Evidence, kind: &str, nick: &str) {
    let mut copy = event(evidence, kind, nick).clone();
    copy["id"] = json!(uuid(1_900_000_000_000, 1));
    copy["seq"] = json!(1_000_000);
    evidence.dump.push(copy);
}

pub fn about_nothing(evidence: &mut Evidence, kind: &str, nick: &str) {
    event(evidence, kind, nick)["subject"] = json!(uuid(0, 0));
}

pub fn never_ends(evidence: &mut Evidence, nick: &str) {
    ended(evidence, nick)["session"] = json!("nobody's");
}

/// The intent comes right after a move of the campaign.
pub fn intent_after(evidence: &mut Evidence, session: &str, of: &str, step: usize) {
    let seq = campaign(evidence, of)["moves"][step]["seq"].as_i64().unwrap();
    row(evidence, "session", session)["intent_seq"] = json!(seq + 1);
}

pub fn one_more(number: &mut Value) {
    one_more_by(number, 1);
}
pub fn one_more_by(number: &mut Value, by: i64) {
    *number = json!(number.as_i64().unwrap() + by);
}

pub fn earlier(row: &mut Value, name: &str, by: i64) {
    let at = millis(row[name].as_str().unwrap()).unwrap();
    row[name] = json!(iso(at - by));
}

pub fn other_digit(id: &mut Value, at: usize, digit: &str) {
    let mut text = id.as_str().unwrap().to_owned();
    text.replace_range(at..=at, digit);
    *id = json!(text);
}

/// The last call to a8 takes place at that time instead, and the campaign has that window on Sundays too.
pub fn on_a_sunday(evidence: &mut Evidence, time: &str, [start, end]: [&str; 2]) {
    let at = millis(time).unwrap() * 1_000;
    placed(evidence, "a8.2")["at"] = json!(at);
    ended(evidence, "a8.2")["at"] = json!(at + 10_000_000);
    let windows = campaign(evidence, "a")["schedule"]["windows"].as_array_mut().unwrap();
    windows.push(json!({ "days": ["sun"], "start": start, "end": end }));
}
