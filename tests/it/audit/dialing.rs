//! Who is called, and how often: what is promised to the person at the other end.
use super::{
    check::Evidence,
    facts::{Call, Campaign, Contact, Facts, KILL_SLACK, Move, Session, by},
};

/// I7: "dial at most once (always): per session at most 1 call in K; K.time >= commit of session.intent; sessions of
/// one contact never overlap, count <= max_attempts, gap >= min gap; a campaign holds one contact per normalised
/// number".
///
/// A call that the carrier never accepted reached nobody: it is no attempt, and needs no gap after it. Nor is one that the
/// service cut off itself, stopping while it rang; but each of its calls is another session, and none overlaps.
pub fn dialed_at_most_once(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let calls = by(&facts.calls, |call| Some(call.session));
    for (session, calls) in &calls {
        if calls.len() > 1 {
            found.push(format!("session {session} was placed {} times", calls.len()));
        }
    }
    for call in &facts.calls {
        let Some(session) = facts.session(call.session) else {
            found.push(format!(
                "a call to {} of session {}, which does not exist",
                call.to, call.session
            ));
            continue;
        };
        if (session.number, session.tenant, session.env) != (Some(call.to), call.tenant, call.env) {
            found.push(format!(
                "session {}: its call went to another number, tenant or env: {}",
                session.id, call.to
            ));
        }
        // Two milliseconds, for the times are cut off to milliseconds on one side and come from two clocks.
        match session.intent_seq.and(session.dialed_at) {
            None => found.push(format!("session {} was placed without an intent", session.id)),
            Some(dialed_at) if call.placed < (dialed_at - 2) * 1_000 => {
                found.push(format!("session {} was placed before its intent", session.id));
            }
            Some(_) => {}
        }
    }
    for (contact, sessions) in sessions_by_contact(facts) {
        attempts(facts, contact, &sessions, &mut found);
        let calls: Vec<&Call<'_>> = sessions
            .iter()
            .filter_map(|session| calls.get(session.id))
            .flatten()
            .copied()
            .collect();
        for pair in calls.windows(2).filter(|pair| pair[1].placed < pair[0].ended) {
            let (earlier, later) = (pair[0].session, pair[1].session);
            found.push(format!(
                "contact {}: the calls of {earlier} and {later} overlap at the carrier",
                contact.id
            ));
        }
    }
    let e164 = |number: &&str| {
        number
            .strip_prefix('+')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for ((campaign, number), contacts) in by(&facts.contacts, |contact| {
        Some((contact.campaign, contact.number.filter(e164)?))
    }) {
        if contacts.len() > 1 {
            found.push(format!(
                "campaign {campaign} holds {} contacts with {number}",
                contacts.len()
            ));
        }
    }
    found
}

/// I7, of calls that come in: nobody is dialled for them, so they have no intent, no contact and no campaign, and the
/// carrier never placed them.
pub fn callers_are_not_called(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for session in facts.sessions.iter().filter(|session| session.inbound) {
        let id = session.id;
        if session.intent_seq.is_some() {
            found.push(format!("session {id} came in, and has an intent to dial"));
        }
        if session.contact.or(session.campaign).is_some() {
            found.push(format!("session {id} came in, and belongs to a campaign"));
        }
    }
    let came_in = |call: &&Call<'_>| facts.session(call.session).is_some_and(|session| session.inbound);
    let placed = facts.calls.iter().filter(came_in);
    found.extend(placed.map(|call| format!("session {} came in, and was placed", call.session)));
    found
}

/// The clauses about the calls to one contact, which come in their order.
fn attempts(facts: &Facts<'_>, contact: &Contact<'_>, sessions: &[&Session<'_>], found: &mut Vec<String>) {
    let Contact { id, max_attempts, .. } = contact;
    let counted = |session: &&&Session<'_>| !facts.never_accepted.contains(session.id) && !session.was_given_back();
    let attempts = sessions.iter().filter(counted).count();
    if attempts > *max_attempts {
        found.push(format!(
            "contact {id} was called {attempts} times, at most {max_attempts} are allowed"
        ));
    }
    let is_other = |session: &&&Session<'_>| !contact.erased && session.number != contact.number;
    for session in sessions.iter().filter(is_other) {
        found.push(format!(
            "session {} calls another number than its contact {id} has",
            session.id
        ));
    }
    for pair in sessions.windows(2) {
        let [earlier, later] = [pair[0], pair[1]];
        if earlier.ended_at.is_none() || later.created_at < earlier.ended_at {
            found.push(format!(
                "contact {id}: sessions {} and {} overlap",
                earlier.id, later.id
            ));
        }
        if let (Some(ended_at), Some(dialed_at)) = (earlier.ended_at, later.dialed_at)
            && dialed_at - ended_at < contact.gap * 1_000
            && counted(&&earlier)
        {
            let after = dialed_at - ended_at;
            found.push(format!(
                "contact {id}: {} was dialled {after} ms after {}, too short a gap",
                later.id, earlier.id
            ));
        }
    }
}

/// The sessions of each contact in the order in which they were made, which is that of their ids.
fn sessions_by_contact<'r, 'a>(facts: &'r Facts<'a>) -> Vec<(&'r Contact<'a>, Vec<&'r Session<'a>>)> {
    let mut sessions = by(&facts.sessions, |session| session.contact);
    let in_order = |sessions: &mut Vec<&Session<'_>>| sessions.sort_unstable_by_key(|session| session.id);
    sessions.values_mut().for_each(in_order);
    let of_contact = |contact: &'r Contact<'a>| Some((contact, sessions.remove(contact.id)?));
    facts.contacts.iter().filter_map(of_contact).collect()
}

/// I8: "a session whose INVITE may have left and has no verdict is closed `node_lost`, and its contact gets no further
/// call unless the carrier said 'never accepted'".
pub fn lost_calls_are_final(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (contact, sessions) in sessions_by_contact(facts) {
        let is_final = |session: &&Session<'_>| {
            session.end_reason == Some("node_lost") && !facts.never_accepted.contains(session.id)
        };
        if let Some(lost) = sessions.iter().position(is_final)
            && let Some(next) = sessions.get(lost + 1)
        {
            found.push(format!(
                "contact {} got session {} after {}, which is lost",
                contact.id, next.id, sessions[lost].id
            ));
        }
    }
    for call in &facts.calls {
        // What was placed or closed around the kill may belong to either side of it.
        if let Some(kill) = call.killed.filter(|kill| call.placed < (kill + 1) * 1_000)
            && !facts.never_accepted.contains(call.session)
            && let Some(session) = facts.session(call.session)
            && session.ended_at.is_some_and(|ended_at| ended_at > kill + KILL_SLACK)
            && session.end_reason != Some("node_lost")
        {
            let reason = session.end_reason.unwrap_or("nothing");
            found.push(format!(
                "session {} was cut off by a kill, and closed as {reason}",
                session.id
            ));
        }
    }
    found
}

/// I9: "DNC (always): no call with intent_seq s to n of tenant t while dnc(t,n).added_seq < s <= removed_seq".
pub fn do_not_call(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let entries = by(&facts.dnc, |entry| {
        Some((entry.tenant, entry.env, entry.number.filter(|_| entry.phone)?))
    });
    let mut found = Vec::new();
    for session in &facts.sessions {
        let (Some(number), Some(intent)) = (session.number, session.intent_seq) else {
            continue;
        };
        let entries = entries
            .get(&(session.tenant, session.env, number))
            .into_iter()
            .flatten();
        let stood = |added, removed: Option<i64>| added < intent && removed.is_none_or(|removed| intent <= removed);
        for entry in entries.filter(|entry| stood(entry.added_seq, entry.removed_seq)) {
            let (id, added) = (session.id, entry.added_seq);
            found.push(format!(
                "session {id}, intent {intent}: {number} was on the do-not-call list since {added}"
            ));
        }
    }
    found
}

/// How soon after a pause the end of a call looks like the pause's doing, in milliseconds. Later a call may have been
/// ended by the API or by a shutdown.
const AT_ONCE: i64 = 2_000;

/// I21: "pause (any kind): no intent of that campaign between pause seq and resume seq; sessions live at that seq end
/// by their own cause, never by the pause". The same before the start, while closing, and after the end: a campaign
/// dials while it runs.
pub fn pauses_are_kept(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let sessions = by(&facts.sessions, |session| session.campaign);
    let mut found = Vec::new();
    for Campaign { id, moves, .. } in &facts.campaigns {
        for session in sessions.get(id).into_iter().flatten() {
            let Some(intent) = session.intent_seq else { continue };
            if !ran_at(moves, intent) {
                let last = moves.iter().rfind(|step| step.seq <= intent);
                let state = last.map_or("not started", |step| step.to);
                found.push(format!(
                    "session {}, intent {intent}: its campaign {id} was {state}",
                    session.id
                ));
            }
            let mut pauses = moves.iter().filter(|step| step.to == "paused" && intent < step.seq);
            let ends_at_once = |pause: &Move<'_>| {
                let after = session.ended_at.zip(pause.at).map(|(ended_at, at)| ended_at - at);
                after.is_some_and(|after| (0..=AT_ONCE).contains(&after))
            };
            if session.end_reason == Some("canceled") && pauses.any(ends_at_once) {
                found.push(format!(
                    "session {} was canceled by the pause of campaign {id}",
                    session.id
                ));
            }
        }
    }
    found
}

/// A move's own seq belongs to both its sides: the two may be one transaction.
pub fn ran_at(moves: &[Move<'_>], intent: i64) -> bool {
    let nexts = moves.iter().skip(1).map(Some).chain([None]);
    moves
        .iter()
        .zip(nexts)
        .any(|(step, next)| step.to == "running" && step.seq <= intent && next.is_none_or(|next| intent <= next.seq))
}
