//! What is stored: nothing acknowledged is missing, nothing is stuck, ids and times have their form and order.
use super::{
    check::Evidence,
    facts::{Facts, Line, by},
    read::millis,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// I1: "no acknowledged write lost: for all a in A with 2xx: its object is in the dump with the same content".
pub fn acknowledged_is_kept(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let stored = facts.lines.iter().filter(|line| line.kind != "event");
    let by_id: HashMap<&str, &Line<'_>> = stored.filter_map(|line| Some((line.id?, line))).collect();
    // Entries of the do-not-call list have no id in the dump: they are known by their number.
    let entries = facts
        .lines
        .iter()
        .filter(|line| line.kind == "dnc" && line.id.is_none());
    let mut by_number: HashMap<&str, Vec<&Value>> = HashMap::new();
    for line in entries {
        by_number
            .entry(line.value["number"].as_str().unwrap_or_default())
            .or_default()
            .push(line.value);
    }
    let verdict = |wanted: &Value| {
        let same = |line: &Value| {
            let mut fields = wanted.as_object().into_iter().flatten();
            // Somebody wanted that nobody knows the number any more.
            let is_erased = line["erased"] == true;
            fields.all(|(name, value)| name == "id" || is_erased && name == "number" || line.get(name) == Some(value))
        };
        if let Some(line) = wanted["id"].as_str().and_then(|id| by_id.get(id)) {
            return (!same(line.value)).then(|| format!("{wanted} was acknowledged, and is stored as {}", line.value));
        }
        let entries = wanted["number"].as_str().and_then(|number| by_number.get(number));
        let is_there = entries.is_some_and(|entries| entries.iter().any(|line| same(line)));
        (!is_there).then(|| format!("{wanted} was acknowledged, and is not stored"))
    };
    evidence.acknowledged.iter().filter_map(verdict).collect()
}

/// How long after its time a recording may still wait for its purge, in milliseconds.
const PURGE_SLACK: i64 = 60_000;

/// I19: "nothing stuck: no session non-terminal without a live call; no contact dispatched without session", nor one
/// left over in a completed campaign. After quiet no call is live, so none is open at the carrier either; no recording is
/// being stored for ever, or outlives its time; nothing is left to be found out about a talk.
pub fn nothing_is_stuck(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    if !evidence.settled {
        return Vec::new();
    }
    let mut found = Vec::new();
    for session in facts.sessions.iter().filter(|session| !session.is_over()) {
        found.push(format!("session {} is still {}", session.id, session.status));
    }
    for call in facts.calls.iter().filter(|call| call.ended == i64::MAX) {
        found.push(format!(
            "the call of session {} is still open at the carrier",
            call.session
        ));
    }
    for recording in &facts.recordings {
        let (id, state) = (recording.id, recording.state);
        if state == "processing" {
            found.push(format!("recording {id} is still {state}"));
        }
        let late = recording.purge_after.zip(evidence.taken_at);
        if state != "purged" && late.is_some_and(|(due, now)| due + PURGE_SLACK < now) {
            found.push(format!("recording {id} is {state}, and should have been purged"));
        }
    }
    for evaluation in facts.evaluations.iter().filter(|look| look.state == "pending") {
        found.push(format!(
            "the evaluation of session {} is still pending",
            evaluation.session
        ));
    }
    let live: HashSet<&str> = facts
        .sessions
        .iter()
        .filter(|session| !session.is_over())
        .filter_map(|session| session.contact)
        .chain(
            facts
                .messages
                .iter()
                .filter(|message| !message.is_over())
                .filter_map(|message| message.contact),
        )
        .collect();
    for contact in &facts.contacts {
        if contact.state == "dispatched" && !live.contains(contact.id) {
            found.push(format!("contact {} is dispatched, and has no live session", contact.id));
        }
        let is_over = matches!(contact.state, "completed" | "failed" | "skipped" | "canceled");
        let campaign = facts.campaign(contact.campaign);
        if !is_over && campaign.is_some_and(|campaign| campaign.status == "completed") {
            found.push(format!(
                "contact {} is {} in a completed campaign",
                contact.id, contact.state
            ));
        }
    }
    found
}

/// I20: "ids unique, UUIDv7 bits right, per tenant ordered as `seq` even when the clock steps back; times in ms `Z`;
/// created <= started <= ended".
pub fn ids_and_times(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = HashSet::with_capacity(facts.lines.len());
    for Line { kind, id, value } in &facts.lines {
        if let Some(id) = id {
            if !is_uuid_v7(id) {
                found.push(format!("the id of {kind} {id} is no UUIDv7"));
            }
            if !seen.insert(id) {
                found.push(format!("the id of {kind} {id} is not unique"));
            }
        }
        for time in times(kind, value).filter(|time| millis(time).is_none()) {
            found.push(format!("{time} of {kind} {} is no time in ms and `Z`", value["id"]));
        }
    }
    for (tenant, mut events) in by(&facts.events, |event| Some(event.tenant)) {
        events.sort_by_key(|event| event.seq);
        for pair in events.windows(2).filter(|pair| pair[0].id >= pair[1].id) {
            found.push(format!(
                "tenant {tenant}: event {} has seq {}, and its id does not come after {} of seq {}",
                pair[1].id, pair[1].seq, pair[0].id, pair[0].seq
            ));
        }
    }
    for session in &facts.sessions {
        let times = [
            session.created_at,
            session.started_at,
            session.bridged_at,
            session.ended_at,
        ];
        if !times.iter().flatten().is_sorted() {
            found.push(format!(
                "session {}: created, started, ended are out of order",
                session.id
            ));
        }
        let talk = [session.started_at, session.opted_out_at, session.ended_at];
        if session.opted_out_at.is_some() && !talk.iter().flatten().is_sorted() {
            found.push(format!(
                "session {}: the opt-out is out of order with the talk",
                session.id
            ));
        }
    }
    // Every commit has its own place in the one order of all; the intent to dial is no event.
    let told: HashSet<i64> = facts.events.iter().map(|event| event.seq).collect();
    for session in &facts.sessions {
        if let Some(seq) = session.intent_seq.filter(|seq| told.contains(seq)) {
            found.push(format!(
                "session {}: its intent and an event are both at {seq}",
                session.id
            ));
        }
    }
    for recording in &facts.recordings {
        let times = [recording.created_at, recording.completed_at, recording.purged_at];
        if !times.iter().flatten().is_sorted() {
            found.push(format!(
                "recording {}: created, completed, purged are out of order",
                recording.id
            ));
        }
    }
    found
}

/// The times in a line, as they are written.
fn times<'a>(kind: &str, line: &'a Value) -> impl Iterator<Item = &'a str> {
    let own: &[&str] = match kind {
        "event" => &["created_at"],
        "sms" | "email" => &["wake_at", "created_at", "sent_at", "ended_at"],
        "topup" => &["created_at", "settled_at"],
        "session" => &[
            "created_at",
            "dialed_at",
            "picked_up_at",
            "started_at",
            "bridged_at",
            "ended_at",
            "opted_out_at",
        ],
        "recording" => &["created_at", "completed_at", "purge_after", "purged_at"],
        _ => &[],
    };
    let moves = line
        .get("moves")
        .filter(|_| kind == "campaign")
        .and_then(Value::as_array);
    let moves = moves.into_iter().flatten().map(|step| &step["at"]);
    own.iter()
        .filter_map(|name| line.get(name))
        .chain(moves)
        .filter_map(Value::as_str)
}

/// Version 7 and the variant of RFC 9562, in lower case, so that the order of the texts is the order of the ids.
fn is_uuid_v7(id: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'7',
        19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    id.len() == 36 && id.bytes().enumerate().all(fits)
}
