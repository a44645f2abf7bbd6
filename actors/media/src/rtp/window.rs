//! Puts packets that overtook each other back in order: at most three wait for one that is missing. Pure: it knows no clock.
//!
//! It is not a playout buffer. Our listener is a detector, a transcriber and a file, not a loudspeaker: what is in order is
//! given at once, and what stays away is told as a number.
use super::packet::{Header, Packet};
use std::time::{Duration, Instant};

/// Packets that wait for one that is missing.
const WAITING: usize = 3;
/// Waiting is over after so long, also where nothing more comes.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// A sequence number that is so far off begins a new stream.
const JUMP: i16 = 1_000;
/// So many packets in a row that seem late, each one behind the last: the sender began anew. Source: RFC 3550, appendix A.1.
const BEGAN_ANEW: u8 = 5;

/// A packet in its order.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    pub header: Header,
    pub payload: &'a [u8],
    pub came_at: Instant,
    /// So many packets before it never came.
    pub missing: u16,
    /// What came before it was another stream: nothing between the two is lost.
    pub is_first: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Given,
    Waits,
    /// Its turn is over.
    Late,
    Duplicate,
}

#[derive(Debug, Default)]
pub struct Window {
    stream: Option<Stream>,
    /// Their buffers are used again.
    slots: [Slot; WAITING],
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    ssrc: u32,
    /// The sequence number whose turn it is.
    next: u16,
    is_first: bool,
    /// What would be next if the sender began anew, and how many came so.
    anew: (u16, u8),
}

#[derive(Debug, Default)]
struct Slot {
    held: Option<(Header, Instant)>,
    payload: Vec<u8>,
}

impl Window {
    /// Gives what is in order by now.
    pub fn push(&mut self, packet: Packet<'_>, came_at: Instant, give: &mut dyn FnMut(Piece<'_>)) -> Taken {
        let header = packet.header;
        let Some(stream) = self.stream.filter(|stream| stream.ssrc == header.ssrc) else {
            return self.begin(packet, came_at, give);
        };
        // The number of packets between: negative if its turn is over.
        match header.sequence.wrapping_sub(stream.next) as i16 {
            0 => self.give(packet, came_at, 0, give),
            ahead @ 1..=JUMP => self.hold(packet, came_at, ahead as u16, give),
            behind if (-JUMP..0).contains(&behind) => self.late(stream, packet, came_at, give),
            _ => self.begin(packet, came_at, give),
        }
    }

    /// What comes next begins anew.
    pub fn reset(&mut self) {
        self.stream = None;
        self.slots.iter_mut().for_each(|slot| slot.held = None);
    }

    /// Waits no longer for what is missing when what came after it has waited for long.
    pub fn give_up(&mut self, now: Instant, give: &mut dyn FnMut(Piece<'_>)) {
        let waited = |at: Instant| now.saturating_duration_since(at) >= LONGEST_WAIT;
        while self.held().any(|(_, at)| waited(*at)) {
            self.skip(give);
        }
    }

    fn held(&self) -> impl Iterator<Item = &(Header, Instant)> {
        self.slots.iter().filter_map(|slot| slot.held.as_ref())
    }

    fn begin(&mut self, packet: Packet<'_>, came_at: Instant, give: &mut dyn FnMut(Piece<'_>)) -> Taken {
        // What waited came, though something before it did not.
        while self.held().next().is_some() {
            self.skip(give);
        }
        let Header { ssrc, sequence, .. } = packet.header;
        self.stream = Some(Stream {
            ssrc,
            next: sequence,
            is_first: true,
            anew: (0, 0),
        });
        self.give(packet, came_at, 0, give)
    }

    fn give(&mut self, packet: Packet<'_>, came_at: Instant, missing: u16, give: &mut dyn FnMut(Piece<'_>)) -> Taken {
        self.hand(packet, came_at, missing, give);
        while let Some((slot, 0)) = self.lowest() {
            self.release(slot, 0, give);
        }
        Taken::Given
    }

    fn hand(&mut self, packet: Packet<'_>, came_at: Instant, missing: u16, give: &mut dyn FnMut(Piece<'_>)) {
        let Packet { header, payload } = packet;
        let is_first = self.stream.is_some_and(|stream| stream.is_first);
        if let Some(stream) = &mut self.stream {
            stream.next = header.sequence.wrapping_add(1);
            stream.is_first = false;
            stream.anew = (0, 0);
        }
        give(Piece {
            header,
            payload,
            came_at,
            missing,
            is_first,
        });
    }

    fn hold(&mut self, packet: Packet<'_>, came_at: Instant, ahead: u16, give: &mut dyn FnMut(Piece<'_>)) -> Taken {
        if self.held().any(|(header, _)| header.sequence == packet.header.sequence) {
            return Taken::Duplicate;
        }
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.held.is_none()) {
            slot.payload.clear();
            slot.payload.extend_from_slice(packet.payload);
            slot.held = Some((packet.header, came_at));
            return Taken::Waits;
        }
        match self.lowest() {
            // Whoever is missing is missing for all of them.
            Some((_, first)) if first < ahead => {
                self.skip(give);
                self.push(packet, came_at, give)
            }
            _ => self.give(packet, came_at, ahead, give),
        }
    }

    fn late(
        &mut self,
        mut stream: Stream,
        packet: Packet<'_>,
        came_at: Instant,
        give: &mut dyn FnMut(Piece<'_>),
    ) -> Taken {
        let sequence = packet.header.sequence;
        let run = match stream.anew {
            (next, run) if next == sequence && run > 0 => run + 1,
            _ => 1,
        };
        stream.anew = (sequence.wrapping_add(1), run);
        self.stream = Some(stream);
        if run >= BEGAN_ANEW {
            return self.begin(packet, came_at, give);
        }
        Taken::Late
    }

    /// Of those that wait the first, and how many are missing before it.
    fn lowest(&self) -> Option<(usize, u16)> {
        let next = self.stream?.next;
        let held = self.slots.iter().enumerate();
        held.filter_map(|(at, slot)| Some((at, slot.held?.0.sequence.wrapping_sub(next))))
            .min_by_key(|(_, ahead)| *ahead)
    }

    /// Goes on with the first of those that wait.
    fn skip(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        if let Some((slot, missing)) = self.lowest() {
            self.release(slot, missing, give);
            while let Some((slot, 0)) = self.lowest() {
                self.release(slot, 0, give);
            }
        }
    }

    fn release(&mut self, slot: usize, missing: u16, give: &mut dyn FnMut(Piece<'_>)) {
        let payload = std::mem::take(&mut self.slots[slot].payload);
        if let Some((header, came_at)) = self.slots[slot].held.take() {
            let payload = &payload[..];
            self.hand(Packet { header, payload }, came_at, missing, give);
        }
        self.slots[slot].payload = payload;
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
