//! How soon the talks of this process have answered so far, for whoever looks at one: its session is told the same, and keeps it
//! in memory until its end.
use entities::{ids::SessionId, session::Latency};
use rules::session::latency::{TurnMarks, summary};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Of each talk in a room, the first packet of each answer in milliseconds.
#[derive(Default)]
pub struct Latencies(Mutex<HashMap<SessionId, Vec<u32>>>);

/// Answers of one talk; a session keeps no more either.
const MOST: usize = 2_000;

impl Latencies {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<u32>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A talk begins.
    pub fn begin(&self, session: SessionId) {
        self.lock().insert(session, Vec::new());
    }

    /// Nothing, if its talk is over.
    pub fn measured(&self, session: SessionId, marks: &TurnMarks) {
        if let Some(packets) = self.lock().get_mut(&session).filter(|packets| packets.len() < MOST) {
            packets.push(marks.packet_ms());
        }
    }

    /// `None`: nobody was answered yet, or nothing is known of it here.
    pub fn of(&self, session: SessionId) -> Option<Latency> {
        let packets = self.lock().get(&session)?.clone();
        summary(&packets)
    }

    pub fn end(&self, session: SessionId) {
        self.lock().remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_talk_is_measured_until_its_end() {
        let latencies = Latencies::default();
        let (session, other) = (SessionId(uuid::Uuid::from_u128(1)), SessionId(uuid::Uuid::from_u128(2)));
        let answered = |ms| TurnMarks::of([None, None, None, None, None, Some(ms)]).unwrap();
        latencies.measured(session, &answered(700));
        latencies.begin(session);
        assert_eq!(latencies.of(session), None);
        latencies.measured(session, &answered(700));
        latencies.measured(session, &answered(900));
        let (turns, p50_ms, p95_ms) = (2, 700, 900);
        assert_eq!(latencies.of(session), Some(Latency { turns, p50_ms, p95_ms }));
        assert_eq!(latencies.of(other), None);
        latencies.end(session);
        latencies.measured(session, &answered(700));
        assert_eq!(latencies.of(session), None);
    }
}
