//! What was said on a leg, for its timeline and for `callboard sip check`: who sent what when. Never a header, a body, a number or
//! a credential.
use crate::message::{Fields, Message, read_datagram};
use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

/// Steps of the beginning and of the end that are kept.
const HALF: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Sent,
    Received,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub at: Instant,
    pub direction: Direction,
    pub what: What,
}

/// Words of the protocol; a method that is not known is `other`, since a peer chose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Request(&'static str),
    Response(u16, &'static str),
}

/// The first steps and the last ones.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    first: Vec<Step>,
    last: VecDeque<Step>,
    omitted: u64,
}

impl Ladder {
    pub fn record(&mut self, direction: Direction, message: &Message, at: Instant) {
        let what = match message {
            Message::Request(request) => What::Request(request.method.known()),
            Message::Response(response) => What::Response(response.code, response.cseq().1.known()),
        };
        let step = Step { at, direction, what };
        if self.first.len() < HALF {
            self.first.push(step);
            return;
        }
        if self.last.len() == HALF {
            self.last.pop_front();
            self.omitted = self.omitted.saturating_add(1);
        }
        self.last.push_back(step);
    }

    /// The same of what is sent, which is bytes by then.
    pub fn record_sent(&mut self, bytes: &[u8], at: Instant) {
        if let Ok(message) = read_datagram(bytes) {
            self.record(Direction::Sent, &message, at);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Each step with the milliseconds since the first one.
    pub fn timed(&self) -> impl Iterator<Item = (u64, &Step)> {
        let first = self.first.first().map(|step| step.at);
        self.steps().map(move |step| {
            let after = first.map_or(Duration::ZERO, |first| step.at.saturating_duration_since(first));
            (u64::try_from(after.as_millis()).unwrap_or(u64::MAX), step)
        })
    }

    /// In order of time; between the first 32 and the rest `omitted` may be missing.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.last)
    }

    pub fn omitted(&self) -> u64 {
        self.omitted
    }
}

/// On one line: `0 ms -> INVITE, 12 ms <- 180 INVITE`.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (ms, Step { direction, what, .. })) in self.timed().enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            if place == HALF && self.omitted > 0 {
                write!(f, "{} left out, ", self.omitted)?;
            }
            write!(f, "{ms} ms {direction} {what}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Sent => "->",
            Direction::Received => "<-",
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Request(method) => f.write_str(method),
            What::Response(code, method) => write!(f, "{code} {method}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn message(first: &str, method: &str) -> Message {
        let text = format!(
            "{first}\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\nCall-ID: c\r\n\
             CSeq: 1 {method}\r\n\r\n"
        );
        read_datagram(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let now = Instant::now();
        let mut ladder = Ladder::default();
        ladder.record(
            Direction::Sent,
            &message("INVITE sip:+14155550100@h SIP/2.0", "INVITE"),
            now,
        );
        for second in 0..100 {
            let ringing = message("SIP/2.0 180 Ringing", "INVITE");
            ladder.record(Direction::Received, &ringing, now + Duration::from_secs(second));
        }
        ladder.record(Direction::Sent, &message("SECRET sip:h SIP/2.0", "SECRET"), now);
        let said: Vec<String> = ladder.steps().map(|step| step.what.to_string()).collect();
        assert_eq!((said.len(), ladder.omitted()), (2 * HALF, 102 - 2 * HALF as u64));
        assert_eq!((said[0].as_str(), said[1].as_str()), ("INVITE", "180 INVITE"));
        assert_eq!(said.last().unwrap(), "other");
        let line = ladder.to_string();
        assert!(
            line.starts_with("0 ms -> INVITE, 0 ms <- 180 INVITE, 1000 ms <- 180 INVITE, "),
            "{line}"
        );
        assert!(line.contains(", 38 left out, "), "{line}");
        assert!(!line.contains("4155550100"), "{line}");
    }

    #[test]
    fn a_call_is_told_on_one_line() {
        let now = Instant::now();
        let mut ladder = Ladder::default();
        assert!(ladder.is_empty() && ladder.to_string().is_empty());
        ladder.record_sent(b"no message", now);
        assert!(ladder.is_empty());
        let invite = message("INVITE sip:+14155550100@h SIP/2.0", "INVITE");
        ladder.record_sent(&invite.to_bytes(), now);
        let busy = message("SIP/2.0 486 Busy Here", "INVITE");
        ladder.record(Direction::Received, &busy, now + Duration::from_millis(31));
        assert_eq!(ladder.to_string(), "0 ms -> INVITE, 31 ms <- 486 INVITE");
    }
}
