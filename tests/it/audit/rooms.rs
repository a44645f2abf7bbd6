//! What becomes of rooms: each is told from its first to its last, and goes with its session.
use super::{
    check::Evidence,
    facts::{Event, Facts, by},
    read::{millis, need, time_or_null},
};
use serde_json::Value;

/// Times in Unix milliseconds.
pub struct Room<'a> {
    pub id: &'a str,
    pub tenant: &'a str,
    pub env: &'a str,
    pub session: &'a str,
    pub status: &'a str,
    /// When something must happen at the latest, while it is open and nobody talks in it.
    pub due: Option<i64>,
    pub viewed: bool,
    pub joined: bool,
    pub ended: bool,
}

/// A browser is connected within 15 seconds, and may be gone for 30.
const GRACE: i64 = 30_000;
/// What is due by a clock is done a moment later.
const SLACK: i64 = 60_000;

pub fn room(line: &Value) -> Result<Room<'_>, String> {
    let time = |name| time_or_null(line, name);
    let (connect_by, lost_at, joined_at) = (time("connect_by")?, time("lost_at")?, time("joined_at")?);
    let expires_at = millis(need(line, "expires_at", Value::as_str)?);
    let due = match joined_at {
        Some(_) => lost_at.map(|at| at + GRACE),
        None => connect_by.or(expires_at),
    };
    Ok(Room {
        id: need(line, "id", Value::as_str)?,
        tenant: need(line, "tenant", Value::as_str)?,
        env: need(line, "env", Value::as_str)?,
        session: need(line, "session", Value::as_str)?,
        status: need(line, "status", Value::as_str)?,
        due,
        viewed: time("viewed_at")?.is_some(),
        joined: joined_at.is_some(),
        ended: time("ended_at")?.is_some(),
    })
}

/// I2, of rooms: one `room.created`; `landing_viewed` and `joined` if and only if it was viewed and joined; exactly one of
/// `completed`, `expired` and `failed` if and only if it ended so, and after all the others; a session of the same workspace.
pub fn rooms_are_told(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let events = by(&facts.events, |event| {
        event.kind.starts_with("room.").then_some(event.subject?)
    });
    for room in &facts.rooms {
        let told = events.get(room.id).map_or(&[][..], Vec::as_slice);
        tell(room, told, &mut found);
        let owner = facts.session(room.session).map(|session| (session.tenant, session.env));
        if owner != Some((room.tenant, room.env)) {
            found.push(format!("room {} has no session of its own workspace", room.id));
        }
    }
    for (subject, told) in &events {
        let owner = facts
            .rooms
            .iter()
            .find(|room| room.id == *subject)
            .map(|room| (room.tenant, room.env));
        if told.iter().any(|event| owner != Some((event.tenant, event.env))) {
            found.push(format!(
                "an event is about room {subject}, which its workspace does not have"
            ));
        }
    }
    found
}

fn tell(room: &Room<'_>, told: &[&Event<'_>], found: &mut Vec<String>) {
    let id = room.id;
    for (kind, so) in [
        ("room.created", true),
        ("room.landing_viewed", room.viewed),
        ("room.joined", room.joined),
        ("room.completed", room.status == "completed"),
        ("room.expired", room.status == "expired"),
        ("room.failed", room.status == "failed"),
    ] {
        let are = told.iter().filter(|event| event.kind == kind).count();
        if are != usize::from(so) {
            found.push(format!("{are} {kind} of room {id}, which is {}", room.status));
        }
    }
    let is_last = |event: &Event<'_>| matches!(event.kind, "room.completed" | "room.expired" | "room.failed");
    let last = told.iter().max_by_key(|event| event.seq);
    if room.ended && !last.is_some_and(|event| is_last(event)) {
        found.push(format!(
            "room {id} has ended, and something is told of it after its end"
        ));
    }
    if room.ended != matches!(room.status, "completed" | "expired" | "failed") {
        found.push(format!("room {id} is {}, and its end says otherwise", room.status));
    }
}

/// I19, of rooms: after quiet an ended room's session has ended, and the reverse; only a talk completes a room, and who talks
/// has joined; nothing waits beyond its time.
pub fn rooms_go_with_their_sessions(evidence: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    if !evidence.settled {
        return Vec::new();
    }
    let mut found = Vec::new();
    for room in &facts.rooms {
        let id = room.id;
        let Some(session) = facts.session(room.session) else {
            continue;
        };
        if room.ended != session.is_over() {
            found.push(format!("room {id} is {}, its session {}", room.status, session.status));
        }
        if room.ended && (room.status == "completed") != (session.status == "completed") {
            found.push(format!("room {id} is {}, its session {}", room.status, session.status));
        }
        if session.started_at.is_some() && !room.joined {
            found.push(format!("somebody talked in room {id} who had not joined"));
        }
        let late = room
            .due
            .zip(evidence.taken_at)
            .is_some_and(|(due, now)| due + SLACK < now);
        if !room.ended && late {
            found.push(format!("room {id} is still {}", room.status));
        }
    }
    found
}
