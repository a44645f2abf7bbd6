//! What a leg hears: packets become sound of 16 kHz, in order and without holes, and keys. Pure: it knows no clock.
use super::{
    codec::{BYTES_PER_MS, Codec, Decoder},
    dtmf::KeyReceiver,
    packet::{Header, Packet},
    rtcp::Reception,
    window::{Piece, Taken, Window},
};
use crate::tones::KeyTones;
use adapters::sound::HEARING;
use std::time::{Duration, Instant};

/// Comfort noise says that there is silence. Source: RFC 3389.
const COMFORT_NOISE: u8 = 13;
/// Without sound for so long there is silence: what listens counts time by what it hears.
const QUIET_AFTER: Duration = Duration::from_millis(100);
/// It comes in pieces of that length,
const QUIET: Duration = Duration::from_millis(20);
const QUIET_SAMPLES: usize = HEARING as usize / 50;
/// and no more than a second at once.
const MOST_QUIET: u32 = 50;
/// Sound that may come at once, 5 s: what was held up on the way. A second of it takes the detector about a millisecond, and so
/// whoever sends more than there can be would hold up the other legs of the thread.
const MOST_AT_ONCE: u64 = 5 * HEARING as u64;
/// Samples that may come in a second from then on: clocks differ.
const PACE: u128 = HEARING as u128 * 5 / 4;

/// What is heard.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// 16 kHz.
    Sound(&'a [i16]),
    /// A payload as it came, where another leg takes it as it is.
    Payload {
        header: Header,
        payload: &'a [u8],
    },
    Key(char),
}

/// What a leg has agreed to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub codec: Codec,
    pub payload_type: u8,
    pub telephone_event: Option<u8>,
}

/// Samples that may still come.
struct Allowance {
    samples: u64,
    /// As of then.
    at: Instant,
}

impl Allowance {
    /// `false`: it is used up.
    fn has_some(&mut self, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.at).as_nanos() * PACE / 1_000_000_000;
        // What is less than a sample must not be lost by asking often.
        if more > 0 {
            let more = u64::try_from(more).unwrap_or(MOST_AT_ONCE);
            (self.samples, self.at) = (self.samples.saturating_add(more).min(MOST_AT_ONCE), now);
        }
        self.samples > 0
    }

    fn take(&mut self, samples: usize) {
        self.samples = self.samples.saturating_sub(samples as u64);
    }
}

pub struct Hearing {
    window: Window,
    inner: Inner,
}

/// What is in order goes through here.
struct Inner {
    expected: Expected,
    decoder: Decoder,
    keys: KeyReceiver,
    /// Where events were not agreed.
    tones: Option<KeyTones>,
    reception: Reception,
    is_relayed: bool,
    /// Payloads are handed on undecoded.
    is_raw: bool,
    allowance: Allowance,
    started: Instant,
    /// There was sound, or silence, until then; `None` until the clock is to count.
    until: Option<Instant>,
    /// It is silence that goes on.
    is_quiet: bool,
    samples: Vec<i16>,
}

impl Hearing {
    /// Fails if the codec cannot be set up.
    pub fn new(expected: Expected, now: Instant) -> Result<Self, String> {
        let inner = Inner {
            expected,
            decoder: Decoder::new(expected.codec)?,
            keys: KeyReceiver::default(),
            tones: tones(&expected),
            reception: Reception::default(),
            is_relayed: false,
            is_raw: false,
            allowance: Allowance {
                samples: MOST_AT_ONCE,
                at: now,
            },
            started: now,
            until: None,
            is_quiet: false,
            samples: Vec::new(),
        };
        Ok(Hearing {
            window: Window::default(),
            inner,
        })
    }

    /// From now on. What was received so far still counts.
    pub fn expect(&mut self, expected: Expected) -> Result<(), String> {
        if expected.codec != self.inner.expected.codec {
            self.inner.decoder = Decoder::new(expected.codec)?;
        }
        if expected != self.inner.expected {
            self.inner.tones = tones(&expected);
        }
        self.inner.expected = expected;
        Ok(())
    }

    /// From now on what does not come is silence.
    pub fn begin(&mut self, now: Instant) {
        self.inner.until.get_or_insert(now);
    }

    /// It goes to another leg, as payloads or decoded. Keys in the voice are then heard there.
    pub fn relay(&mut self, is_relayed: bool, is_raw: bool) {
        (self.inner.is_relayed, self.inner.is_raw) = (is_relayed, is_raw);
    }

    pub fn reception(&mut self) -> &mut Reception {
        &mut self.inner.reception
    }

    /// Why it is not heard, for those who count; whatever it is, it is a part of the stream.
    pub fn packet(
        &mut self,
        packet: Packet<'_>,
        now: Instant,
        give: &mut dyn FnMut(Heard<'_>),
    ) -> Option<&'static str> {
        let inner = &mut self.inner;
        let kind = packet.header.payload_type;
        let is_known = kind == inner.expected.payload_type
            || Some(kind) == inner.expected.telephone_event
            || kind == COMFORT_NOISE;
        let is_sound = kind == inner.expected.payload_type;
        let has_room = !is_sound || inner.allowance.has_some(now);
        let taken = self.window.push(packet, now, &mut |piece| inner.piece(&piece, give));
        match taken {
            Taken::Late => Some("late"),
            Taken::Duplicate => Some("duplicate"),
            Taken::Given | Taken::Waits if !has_room => Some("flood"),
            Taken::Given | Taken::Waits => (!is_known).then_some("payload"),
        }
    }

    /// The other side sends nothing that is listened to; there is silence instead.
    pub fn pass_over(&mut self) {
        self.window.reset();
    }

    /// Nothing is listened to: what comes later begins anew.
    pub fn rest(&mut self, now: Instant) {
        self.window.reset();
        self.inner.until = self.inner.until.map(|_| now);
    }

    /// Waits no longer for what is missing, and hears silence where nothing comes.
    pub fn tick(&mut self, now: Instant, give: &mut dyn FnMut(Heard<'_>)) {
        let inner = &mut self.inner;
        self.window.give_up(now, &mut |piece| inner.piece(&piece, give));
        let Some(mut until) = inner.until.filter(|_| !inner.is_raw) else {
            return;
        };
        let patience = if inner.is_quiet { QUIET } else { QUIET_AFTER };
        if now.saturating_duration_since(until) < patience {
            return;
        }
        inner.is_quiet = true;
        for _ in 0..MOST_QUIET {
            if until + QUIET > now {
                break;
            }
            inner.decoder.fill(QUIET_SAMPLES);
            give(Heard::Sound(&[0; QUIET_SAMPLES]));
            until += QUIET;
        }
        let is_behind = now.saturating_duration_since(until) >= QUIET;
        inner.until = Some(if is_behind { now } else { until });
    }
}

fn tones(expected: &Expected) -> Option<KeyTones> {
    // Never both ways at once, or each key would come twice.
    expected.telephone_event.is_none().then(KeyTones::default)
}

impl Inner {
    fn piece(&mut self, piece: &Piece<'_>, give: &mut dyn FnMut(Heard<'_>)) {
        let Piece { header, payload, .. } = *piece;
        if piece.is_first {
            self.decoder.reset();
            self.keys.reset();
        }
        let is_sound = header.payload_type == self.expected.payload_type;
        let clock = u64::from(self.expected.codec.clock());
        let arrival = piece.came_at.saturating_duration_since(self.started).as_micros() as u64 * clock / 1_000_000;
        // An event's timestamp is that of its beginning.
        let arrival = is_sound.then_some(arrival as u32);
        self.reception.packet(&header, arrival, piece.is_first);
        if Some(header.payload_type) == self.expected.telephone_event {
            if let Some(key) = self.keys.packet(&header, payload) {
                give(Heard::Key(key));
            }
        } else if is_sound {
            self.sound(piece, give);
        }
    }

    fn sound(&mut self, piece: &Piece<'_>, give: &mut dyn FnMut(Heard<'_>)) {
        let Piece { header, payload, .. } = *piece;
        self.keys.sound();
        if self.allowance.samples == 0 {
            return;
        }
        if self.is_raw {
            self.lasts_until(piece.came_at);
            // The decoder would know better; a packet of Opus has 20 ms, and none has less than 10.
            let samples = match self.expected.codec {
                Codec::Opus => QUIET_SAMPLES,
                Codec::Pcmu | Codec::Pcma | Codec::G722 => payload.len() * HEARING as usize / 1_000 / BYTES_PER_MS,
            };
            self.allowance.take(samples.max(QUIET_SAMPLES / 2));
            return give(Heard::Payload { header, payload });
        }
        self.samples.clear();
        self.decoder
            .hear(payload, header.timestamp, piece.missing > 0, &mut self.samples);
        // Of what cannot be read there is silence, as of what does not come.
        if self.samples.is_empty() {
            return;
        }
        self.lasts_until(piece.came_at);
        self.allowance.take(self.samples.len());
        if let Some(tones) = self.tones.as_mut().filter(|_| !self.is_relayed) {
            tones.hear(&self.samples, |key| give(Heard::Key(key)));
        }
        give(Heard::Sound(&self.samples));
    }

    fn lasts_until(&mut self, came_at: Instant) {
        self.until = self.until.map(|until| until.max(came_at));
        self.is_quiet = false;
    }
}

#[cfg(test)]
#[path = "hearing_tests.rs"]
mod tests;
