//! What was said in a talk: every wish of the other side, and every event about the talk itself.
use super::{
    check::Evidence,
    facts::{Dnc, Event, Facts, Session, by},
};
use std::collections::HashMap;

/// What happens only while somebody talks, or was said then.
const WITHIN: [&str; 5] = [
    "session.opt_out_detected",
    "session.opt_out_recording_pending_purge",
    "session.consent_refused",
    "session.transfer_initiated",
    "function.timeout",
];

/// A wish that is understood only after the end has not ended the call.
fn may_be_late(session: &Session<'_>, kind: &str) -> bool {
    match kind {
        "session.opt_out_detected" | "session.opt_out_recording_pending_purge" => session.end_reason != Some("opt_out"),
        "session.consent_refused" => session.end_reason != Some("consent_refused"),
        _ => false,
    }
}

/// I2, of talks: an opt-out has exactly one `session.opt_out_detected`, in the transaction of its entry on the
/// do-not-call list; `session.consent_refused` iff consent was refused; what happens in a talk is told between
/// `session.started` and its end, but for wishes that were understood late; a disposition after the end; only talks that were completed are looked at again.
pub fn talks_are_told(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let told = Told::of(facts);
    let mut found = Vec::new();
    for session in &facts.sessions {
        told.wishes(session, &mut found);
        told.order(session, &mut found);
    }
    told.entries(facts, &mut found);
    for look in &facts.evaluations {
        let session = facts.session(look.session);
        let fits = |session: &Session<'_>| {
            (session.tenant, session.env, session.status) == (look.tenant, look.env, "completed")
        };
        if !session.is_some_and(fits) {
            found.push(format!(
                "session {} is evaluated, and is no completed one of its tenant and env",
                look.session
            ));
        }
    }
    found
}

struct Told<'r, 'a> {
    /// By subject and type, in their order.
    events: HashMap<(&'a str, &'a str), Vec<&'r Event<'a>>>,
}

impl<'r, 'a> Told<'r, 'a> {
    fn of(facts: &'r Facts<'a>) -> Self {
        let mut events = by(&facts.events, |event| Some((event.subject?, event.kind)));
        events
            .values_mut()
            .for_each(|events| events.sort_by_key(|event| event.seq));
        Told { events }
    }

    fn events(&self, session: &'a str, kind: &'static str) -> &[&'r Event<'a>] {
        self.events.get(&(session, kind)).map_or(&[], Vec::as_slice)
    }

    fn wishes(&self, session: &Session<'a>, found: &mut Vec<String>) {
        let id = session.id;
        // One who hides the number cannot be barred, and nobody is told of a number.
        let opted_out = session.opted_out_at.is_some() && session.person().is_some();
        let refused = session.consent == "refused";
        for (kind, count) in [
            ("session.opt_out_detected", opted_out),
            ("session.consent_refused", refused),
        ] {
            let are = self.events(id, kind).len();
            if are != usize::from(count) {
                found.push(format!("{are} {kind} of {id}, where {} must be", i32::from(count)));
            }
        }
    }

    fn order(&self, session: &Session<'a>, found: &mut Vec<String>) {
        let id = session.id;
        let seq = |kind| self.events(id, kind).first().map(|event| event.seq);
        let (began, ended) = (
            seq("session.started"),
            seq("session.ended").or_else(|| seq("session.failed")),
        );
        for event in WITHIN.iter().flat_map(|kind| self.events(id, kind)) {
            let is_late = ended.is_some_and(|ended| ended < event.seq) && !may_be_late(session, event.kind);
            if began.is_none_or(|began| event.seq < began) || is_late {
                found.push(format!(
                    "{} {} is told outside of the talk of {id}",
                    event.kind, event.id
                ));
            }
        }
        // Whatever a call becomes is told after the intent to place it.
        let later = began.into_iter().chain(ended).min();
        if session
            .intent_seq
            .zip(later)
            .is_some_and(|(intent, later)| later <= intent)
        {
            found.push(format!("session {id} was dialled after it began or ended"));
        }
        for event in self.events(id, "session.disposition_set") {
            if ended.is_none_or(|ended| event.seq < ended) {
                found.push(format!("{} {} is told before the end of {id}", event.kind, event.id));
            }
        }
    }

    /// An entry and the event that tells of it are one transaction, in which the entry's place comes right before.
    fn entries(&self, facts: &Facts<'a>, found: &mut Vec<String>) {
        for Dnc { said_in, added_seq, .. } in &facts.dnc {
            let Some(session) = said_in else { continue };
            let told = self.events(session, "session.opt_out_detected");
            if !told.iter().any(|event| event.seq == added_seq + 1) {
                found.push(format!(
                    "an entry of seq {added_seq} was said in {session}, which tells nothing of it right then"
                ));
            }
        }
    }
}

/// I9: "opt-out in a call counts from `opt_out_detected`'s seq". At that seq the number is on the list, and from then on
/// it is called only after it was taken off.
pub fn wishes_are_heeded(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let entries = by(&facts.dnc, |entry| {
        Some((entry.tenant, entry.env, entry.number.filter(|_| entry.phone)?))
    });
    let intents = by(&facts.sessions, |session| {
        session.intent_seq?;
        Some((session.tenant, session.env, session.number?))
    });
    let mut found = Vec::new();
    for event in facts
        .events
        .iter()
        .filter(|event| event.kind == "session.opt_out_detected")
    {
        let session = event.subject.and_then(|subject| facts.session(subject));
        let Some((session, number)) = session.and_then(|session| Some((session, session.person()?))) else {
            continue;
        };
        let key = (session.tenant, session.env, number);
        let known = entries.get(&key).map_or(&[][..], Vec::as_slice);
        let stands = |entry: &&&Dnc<'_>| {
            entry.added_seq <= event.seq && entry.removed_seq.is_none_or(|removed| event.seq < removed)
        };
        let Some(entry) = known.iter().find(stands) else {
            found.push(format!(
                "session {}: {number} opted out at {}, and was not on the do-not-call list",
                session.id, event.seq
            ));
            continue;
        };
        let until = entry.removed_seq.unwrap_or(i64::MAX);
        let barred = |call: &&&Session<'_>| {
            call.intent_seq
                .is_some_and(|intent| event.seq < intent && intent <= until)
        };
        for call in intents.get(&key).into_iter().flatten().filter(barred) {
            found.push(format!(
                "session {}: {number} was called, and had opted out at {}",
                call.id, event.seq
            ));
        }
    }
    found
}
