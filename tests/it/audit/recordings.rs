//! The sound of calls: told of once, kept as long as it may be, and then gone.
use super::{
    check::Evidence,
    facts::{Event, Facts, Recording, Session, by},
};
use std::collections::{HashMap, HashSet};

const COMPLETED: &str = "session.recording_completed";
const PENDING: &str = "session.opt_out_recording_pending_purge";
const PURGED: &str = "session.opt_out_recording_purged";

/// I2, of recordings: "at most 1 `recording_completed` per recording, each `purged` after its `pending_purge`; no event
/// without its row". A recording is its session's and says so; nothing is recorded without consent; `pending_purge` is
/// told iff it is kept for a purge after an opt-out, and `purged` iff it is gone after one.
pub fn recordings_are_told(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let told = by(&facts.events, |event| Some((event.kind, event.recording?)));
    let ends = facts.events.iter();
    let ends = ends.filter(|event| matches!(event.kind, "session.ended" | "session.failed"));
    let books = Books {
        told,
        ends: ends.filter_map(|event| Some((event.subject?, event.seq))).collect(),
    };
    let mut found = Vec::new();
    for recording in &facts.recordings {
        owner(facts, recording, &mut found);
        books.events(recording, &mut found);
        state(recording, &mut found);
    }
    let known: HashSet<&str> = facts.recordings.iter().map(|recording| recording.id).collect();
    for session in facts.sessions.iter().filter(|session| session.is_over()) {
        if let Some(recording) = session.recording.filter(|recording| !known.contains(recording)) {
            found.push(format!(
                "session {} names the recording {recording}, which does not exist",
                session.id
            ));
        }
    }
    for event in facts.events.iter().filter(|event| event.recording.is_some()) {
        let session = event.subject.and_then(|subject| facts.session(subject));
        if session.is_some_and(|session| session.recording != event.recording) {
            found.push(format!(
                "{} {} names a recording that is not its session's",
                event.kind, event.id
            ));
        }
    }
    found
}

fn owner(facts: &Facts<'_>, recording: &Recording<'_>, found: &mut Vec<String>) {
    let id = recording.id;
    let session = facts.session(recording.session);
    let is_its = |session: &Session<'_>| {
        (session.tenant, session.env, session.recording) == (recording.tenant, recording.env, Some(id))
    };
    if !session.is_some_and(is_its) {
        found.push(format!(
            "recording {id} is not the one of session {}",
            recording.session
        ));
    }
    // An objection that was understood only after the call has not ended it, and has the sound erased.
    let was_late = |session: &Session<'_>| {
        session.end_reason != Some("consent_refused") && recording.purge_reason == Some("deleted")
    };
    let is_without = |session: &Session<'_>| match session.consent {
        "pending" => true,
        "refused" => !was_late(session),
        _ => false,
    };
    if session.is_some_and(is_without) {
        found.push(format!("recording {id} was made without consent"));
    }
}

struct Books<'r, 'a> {
    /// Events by type and recording.
    told: HashMap<(&'a str, &'a str), Vec<&'r Event<'a>>>,
    /// Where each session's end is told.
    ends: HashMap<&'a str, i64>,
}

impl<'r, 'a> Books<'r, 'a> {
    fn of(&self, kind: &'static str, recording: &'a str) -> &[&'r Event<'a>] {
        self.told.get(&(kind, recording)).map_or(&[], Vec::as_slice)
    }

    fn events(&self, recording: &Recording<'a>, found: &mut Vec<String>) {
        let id = recording.id;
        let after_opt_out = recording.purge_reason == Some("opt_out");
        for (kind, must) in [
            (COMPLETED, recording.completed_at.is_some()),
            (PENDING, after_opt_out),
            (PURGED, after_opt_out && recording.state == "purged"),
        ] {
            let are = self.of(kind, id).len();
            if are != usize::from(must) {
                found.push(format!(
                    "{are} {kind} of recording {id}, where {} must be",
                    i32::from(must)
                ));
            }
        }
        let first = |kind| self.of(kind, id).first().map(|event| event.seq);
        let end = self.ends.get(recording.session).copied();
        for (earlier, later, what) in [
            (end, first(COMPLETED), "is told of before its call's end"),
            (first(PENDING), first(PURGED), "is purged before that is announced"),
        ] {
            if later.is_some_and(|later| earlier.is_none_or(|earlier| later < earlier)) {
                found.push(format!("recording {id} {what}"));
            }
        }
    }
}

fn state(recording: &Recording<'_>, found: &mut Vec<String>) {
    let Recording { id, state, .. } = recording;
    let reason = recording.purge_reason;
    let is_stored = recording.completed_at.is_some();
    let fits = match *state {
        "processing" | "failed" => !is_stored,
        // One that is deleted while it is stored is never told of.
        "completed" => reason != Some("opt_out") && (is_stored || reason == Some("deleted")),
        "pending_purge" => reason == Some("opt_out") && is_stored,
        "purged" => reason.is_some(),
        _ => false,
    };
    if !fits || (*state == "purged") != recording.purged_at.is_some() {
        found.push(format!(
            "recording {id} is {state}, which does not fit its times and reason"
        ));
    }
    if let Some(purged_at) = recording.purged_at
        && recording.purge_after.is_none_or(|due| purged_at < due)
    {
        found.push(format!("recording {id} was purged before its time"));
    }
}

/// I18: "after `recording_purged`: no file, no copy in temp". After quiet nothing is half written either, and every
/// sound that is said to be there is there. A file that belongs to no recording can never be purged.
pub fn purged_is_gone(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let Some(files) = &evidence.files else {
        return Vec::new();
    };
    let name = |recording: &Recording<'_>| format!("{}/{}.wav", recording.tenant, recording.id);
    let by_name: HashMap<String, &Recording<'_>> = facts.recordings.iter().map(|row| (name(row), row)).collect();
    let mut found = Vec::new();
    // Files of exports are no sound, and go by themselves.
    for file in files.iter().filter(|file| !file.contains(".export")) {
        let (whole, begun) = match file.split_once('#') {
            Some((whole, _)) => (whole, true),
            None => (file.as_str(), false),
        };
        match by_name.get(whole) {
            None => found.push(format!("the file {file} belongs to no recording")),
            Some(recording) if recording.state == "purged" => {
                found.push(format!("the file {file} is there, and its recording is purged"));
            }
            Some(_) if begun && evidence.settled => found.push(format!("the file {file} was never finished")),
            Some(_) => {}
        }
    }
    let there: HashSet<&str> = files.iter().map(String::as_str).collect();
    for (name, recording) in &by_name {
        let kept = matches!(recording.state, "completed" | "pending_purge");
        if evidence.settled && kept && !there.contains(name.as_str()) {
            let (id, state) = (recording.id, recording.state);
            found.push(format!("recording {id} is {state}, and has no file"));
        }
    }
    found
}
