//! RTCP of one leg: what we tell of what we hear, and what the other side tells of what it hears. Pure: it knows no clock.
//!
//! The time in reports is that since the leg began, which RFC 3550 allows: a wall clock that is set would spoil the round trips.
//! Source: RFC 3550, sections 6.4 and 6.5, appendices A.3 and A.8.
use super::packet::Header;
use std::time::{Duration, Instant};

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const GOODBYE: u8 = 203;
/// Between two reports, more or less by half of it.
const EVERY: Duration = Duration::from_secs(5);
/// A round trip that is longer is no measurement: the other side has mixed something up.
const LONGEST_TRIP: u32 = 10 << 16;
/// Packets that one datagram may hold; the rest is not read.
const MOST_PACKETS: usize = 16;

/// How well a leg hears and is heard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Packets of the other side.
    pub received: u64,
    /// That should have come and did not.
    pub lost: u64,
    /// Interarrival jitter of what we hear.
    pub jitter_ms: f32,
    /// Of what we send, as the other side tells: how much of it was lost lately, 0 to 1.
    pub remote_loss: Option<f32>,
    pub remote_jitter_ms: Option<f32>,
    pub round_trip_ms: Option<f32>,
}

/// What is heard of one source.
#[derive(Debug, Default)]
pub struct Reception {
    source: Option<Counts>,
    /// Of sources before this one.
    before: (u64, u64),
}

#[derive(Debug)]
struct Counts {
    ssrc: u32,
    base: u64,
    /// With the times that the 16 bits went round.
    highest: u64,
    received: u64,
    /// Expected and received at the last report.
    told: (u64, u64),
    transit: Option<u32>,
    /// In units of the RTP clock.
    jitter: f64,
}

impl Counts {
    fn expected(&self) -> u64 {
        self.highest - self.base + 1
    }

    fn lost(&self) -> u64 {
        self.expected().saturating_sub(self.received)
    }
}

impl Reception {
    /// A packet came, at that moment of the RTP clock; `None`: its timestamp says nothing of when it was sent.
    pub fn packet(&mut self, header: &Header, arrival: Option<u32>, is_first: bool) {
        let sequence = u64::from(header.sequence);
        if is_first || self.source.is_none() {
            let (received, lost) = self.totals();
            self.before = (received, lost);
            self.source = Some(Counts {
                ssrc: header.ssrc,
                // As if it had gone round once: a packet from before the first one does not fall below zero.
                base: sequence | 1 << 16,
                highest: sequence | 1 << 16,
                received: 0,
                told: (0, 0),
                transit: None,
                jitter: 0.0,
            });
        }
        let Some(counts) = &mut self.source else { return };
        counts.received += 1;
        let ahead = header.sequence.wrapping_sub(counts.highest as u16);
        if ahead < 1 << 15 {
            counts.highest += u64::from(ahead);
        }
        if let Some(arrival) = arrival {
            let transit = arrival.wrapping_sub(header.timestamp);
            if let Some(before) = counts.transit {
                let off = f64::from((transit.wrapping_sub(before) as i32).unsigned_abs());
                counts.jitter += (off - counts.jitter) / 16.0;
            }
            counts.transit = Some(transit);
        }
    }

    /// Received and lost, over all sources.
    fn totals(&self) -> (u64, u64) {
        let (received, lost) = self.before;
        let now = self.source.as_ref();
        (
            received + now.map_or(0, |counts| counts.received),
            lost + now.map_or(0, Counts::lost),
        )
    }

    fn jitter(&self) -> f64 {
        self.source.as_ref().map_or(0.0, |counts| counts.jitter)
    }

    /// One block of a report, since the last one.
    fn block(&mut self, last: Option<(u32, Duration)>, out: &mut Vec<u8>) {
        let Some(counts) = &mut self.source else { return };
        let (expected, received) = (counts.expected(), counts.received);
        let new = expected.saturating_sub(counts.told.0);
        let lost = new.saturating_sub(received.saturating_sub(counts.told.1));
        counts.told = (expected, received);
        let fraction = (lost * 256).checked_div(new).unwrap_or(0).min(255) as u8;
        let total = counts.lost().min(0x7f_ffff) as u32;
        out.extend_from_slice(&counts.ssrc.to_be_bytes());
        out.extend_from_slice(&(u32::from(fraction) << 24 | total).to_be_bytes());
        out.extend_from_slice(&((counts.highest - (1 << 16)) as u32).to_be_bytes());
        out.extend_from_slice(&(counts.jitter as u32).to_be_bytes());
        let (report, ago) = last.unwrap_or_default();
        out.extend_from_slice(&report.to_be_bytes());
        out.extend_from_slice(&middle(ago).to_be_bytes());
    }
}

/// What was sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub packets: u32,
    pub octets: u32,
    /// Of now, by the RTP clock.
    pub timestamp: u32,
}

/// The reports of one leg.
#[derive(Debug)]
pub struct Control {
    ssrc: u32,
    /// Random, and the same for the whole leg (RFC 7022): it names nobody.
    cname: String,
    started: Instant,
    due: Instant,
    /// Chance for the moments of reports.
    chance: u32,
    /// The middle of the last report's time, and when it came.
    last: Option<(u32, Instant)>,
    remote_loss: Option<f32>,
    /// In units of the RTP clock.
    remote_jitter: Option<u32>,
    round_trip: Option<u32>,
}

impl Control {
    pub fn new(ssrc: u32, cname: String, chance: u32, now: Instant) -> Self {
        let mut control = Control {
            ssrc,
            cname,
            started: now,
            due: now,
            chance: chance | 1,
            last: None,
            remote_loss: None,
            remote_jitter: None,
            round_trip: None,
        };
        control.due = now + control.pause();
        control
    }

    /// 2.5 to 7.5 s. Legs that began together do not report together.
    fn pause(&mut self) -> Duration {
        // xorshift32 (Marsaglia).
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 17;
        self.chance ^= self.chance << 5;
        EVERY / 2 + EVERY * (self.chance % 1_000) / 1_000
    }

    /// Is a report due? The next one is then due later.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + self.pause();
        }
        is_due
    }

    /// A report with who we are; `bye`: it is the last one.
    pub fn report(&mut self, sent: Sent, reception: &mut Reception, now: Instant, bye: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        let mut body = Vec::with_capacity(64);
        body.extend_from_slice(&self.ssrc.to_be_bytes());
        let kind = if sent.packets > 0 {
            SENDER_REPORT
        } else {
            RECEIVER_REPORT
        };
        if kind == SENDER_REPORT {
            let time = ntp(now.saturating_duration_since(self.started));
            body.extend_from_slice(&time.to_be_bytes());
            for value in [sent.timestamp, sent.packets, sent.octets] {
                body.extend_from_slice(&value.to_be_bytes());
            }
        }
        let blocks = u8::from(reception.source.is_some());
        let last = self
            .last
            .map(|(report, at)| (report, now.saturating_duration_since(at)));
        reception.block(last, &mut body);
        packet(blocks, kind, &body, &mut out);
        body.clear();
        body.extend_from_slice(&self.ssrc.to_be_bytes());
        // CNAME, its length, and a zero that ends the list.
        body.extend_from_slice(&[1, self.cname.len() as u8]);
        body.extend_from_slice(self.cname.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(4), 0);
        packet(1, DESCRIPTION, &body, &mut out);
        if bye {
            packet(1, GOODBYE, &self.ssrc.to_be_bytes(), &mut out);
        }
        out
    }

    /// What the other side tells; `false`: it is not RTCP.
    pub fn read(&mut self, bytes: &[u8], now: Instant) -> bool {
        let (mut rest, mut read) = (bytes, false);
        for _ in 0..MOST_PACKETS {
            let Some((head, after)) = rest.split_first_chunk::<4>() else {
                break;
            };
            let length = 4 * usize::from(u16::from_be_bytes([head[2], head[3]]));
            let (true, Some(body)) = (head[0] >> 6 == 2, after.get(..length)) else {
                break;
            };
            rest = &after[length..];
            read = true;
            let blocks = usize::from(head[0] & 0x1f);
            match head[1] {
                SENDER_REPORT => {
                    if let Some(time) = word(body, 1).zip(word(body, 2)) {
                        self.last = Some((time.0 << 16 | time.1 >> 16, now));
                    }
                    self.blocks(body.get(24..).unwrap_or_default(), blocks, now);
                }
                RECEIVER_REPORT => self.blocks(body.get(4..).unwrap_or_default(), blocks, now),
                _ => {}
            }
        }
        read
    }

    fn blocks(&mut self, bytes: &[u8], count: usize, now: Instant) {
        let ours = bytes.chunks_exact(24).take(count);
        for block in ours.filter(|block| word(block, 0) == Some(self.ssrc)) {
            self.remote_loss = Some(f32::from(block[4]) / 256.0);
            self.remote_jitter = word(block, 3);
            let (Some(report), Some(ago)) = (word(block, 4), word(block, 5)) else {
                continue;
            };
            let here = middle(now.saturating_duration_since(self.started));
            let trip = here.wrapping_sub(report).wrapping_sub(ago);
            if report != 0 && trip <= LONGEST_TRIP {
                self.round_trip = Some(trip);
            }
        }
    }

    /// `clock`: of RTP, both ways.
    pub fn quality(&self, reception: &Reception, clock: u32) -> Quality {
        let (received, lost) = reception.totals();
        let ms = |units: f64| (units * 1_000.0 / f64::from(clock.max(1))) as f32;
        Quality {
            received,
            lost,
            jitter_ms: ms(reception.jitter()),
            remote_loss: self.remote_loss,
            remote_jitter_ms: self.remote_jitter.map(|units| ms(f64::from(units))),
            round_trip_ms: self
                .round_trip
                .map(|trip| (f64::from(trip) * 1_000.0 / 65_536.0) as f32),
        }
    }
}

fn packet(count: u8, kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x80 | count, kind]);
    out.extend_from_slice(&((body.len() / 4) as u16).to_be_bytes());
    out.extend_from_slice(body);
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(4 * at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

/// Seconds, and what is left of one in 2^-32. Source: RFC 3550, section 4.
fn ntp(time: Duration) -> u64 {
    let fraction = (u64::from(time.subsec_nanos()) << 32) / 1_000_000_000;
    (time.as_secs() << 32) | fraction
}

/// The middle 32 bits of it: units of 2^-16 s.
fn middle(time: Duration) -> u32 {
    (ntp(time) >> 16) as u32
}

#[cfg(test)]
#[path = "rtcp_tests.rs"]
mod tests;
