//! What a leg sends: a packet every so many milliseconds, words, silence or keys. Pure: it knows no clock.
//!
//! Silence is sent too: carriers and NATs drop a leg that sends nothing.
use super::{
    codec::{BYTES_PER_MS, Codec, Encoder},
    dtmf::{KeySender, Turn},
    packet::Header,
    relay::Restamp,
    rtcp::Sent,
};
use crate::{playout::SoundFrame, tones};
use adapters::sound::TELEPHONE;
use std::time::{Duration, Instant};

/// Lengths of a packet.
const PTIME: std::ops::RangeInclusive<u32> = 10..=60;
/// What is said comes in frames of that length.
const FRAME_MS: u32 = 20;
/// What is caught up at once when the machine was late; beyond it the words wait, and the time that passed is a pause.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Frames of silence that are encoded like words, so that they end softly; then silence is sent that is known by heart.
const SOFT_END: u32 = 3;
/// Of silence before the first word.
const FIRST_RATE: u32 = TELEPHONE;

/// Where sequence numbers, timestamps and the name of the source begin: chance, all of it (RFC 3550, section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
}

/// What a leg has agreed to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub codec: Codec,
    pub payload_type: u8,
    /// Keys go in the voice if there is none.
    pub telephone_event: Option<u8>,
    /// Milliseconds, in tens.
    pub ptime_ms: u32,
}

/// What goes out. Of each packet the header is answered, and its payload is in [`Speaking::payload`].
pub struct Speaking {
    format: Format,
    encoder: Encoder,
    origin: Origin,
    /// Of the next packet.
    sequence: u16,
    timestamp: u32,
    due: Option<Instant>,
    /// When the next packet would have been due, while nothing is sent.
    stopped: Option<Instant>,
    /// Encoded and not sent yet.
    encoded: Vec<u8>,
    payload: Vec<u8>,
    keys: KeySender,
    /// A key that sounds in the voice, 8 kHz.
    pressed: Vec<i16>,
    /// The rate of the last words: silence behind them has the same.
    rate: u32,
    /// Frames since the last words.
    silent: u32,
    /// The next packet follows a pause.
    marker: bool,
    restamp: Restamp,
    sent: Sent,
}

impl Format {
    /// With a length that is sent: Opus always 20 ms, which is what the encoder takes.
    fn playable(self) -> Self {
        let tens = self.ptime_ms.next_multiple_of(10).clamp(*PTIME.start(), *PTIME.end());
        let ptime_ms = if self.codec == Codec::Opus { FRAME_MS } else { tens };
        Format { ptime_ms, ..self }
    }

    fn ptime(self) -> Duration {
        Duration::from_millis(u64::from(self.ptime_ms))
    }

    /// Of one packet.
    fn units(self) -> u32 {
        self.ptime_ms * self.codec.per_ms()
    }
}

impl Speaking {
    /// Fails if the codec cannot be set up.
    pub fn new(format: Format, origin: Origin) -> Result<Self, String> {
        Ok(Speaking {
            format: format.playable(),
            encoder: Encoder::new(format.codec)?,
            origin,
            sequence: origin.sequence,
            timestamp: origin.timestamp,
            due: None,
            stopped: None,
            encoded: Vec::with_capacity(512),
            payload: Vec::with_capacity(512),
            keys: KeySender::default(),
            pressed: Vec::new(),
            rate: FIRST_RATE,
            silent: SOFT_END,
            marker: true,
            restamp: Restamp::default(),
            sent: Sent::default(),
        })
    }

    /// From the next packet on; numbers go on.
    pub fn change(&mut self, format: Format) -> Result<(), String> {
        let format = format.playable();
        if format.telephone_event.is_none() {
            self.keys.break_off();
        }
        if format.codec != self.format.codec {
            self.encoder = Encoder::new(format.codec)?;
            self.encoded.clear();
            self.restamp = Restamp::default();
        }
        self.format = format;
        Ok(())
    }

    pub fn codec(&self) -> Codec {
        self.format.codec
    }

    /// Packets go out from now on, or no more. The clock of the stream goes on while none do (RFC 3550, section 5.1).
    pub fn send(&mut self, is_sending: bool, now: Instant) {
        if !is_sending {
            self.stopped = self.due.take().or(self.stopped);
            self.marker = true;
        } else if self.due.is_none() {
            let since = self.stopped.take().unwrap_or(now);
            let ms = now.saturating_duration_since(since).as_millis() as u32;
            let units = ms.wrapping_mul(self.format.codec.per_ms());
            self.timestamp = self.timestamp.wrapping_add(units);
            self.due = Some(now);
        }
    }

    /// `false`: it holds another key than `0-9*#`, or too many wait already; none of it is pressed then.
    pub fn press(&mut self, keys: &str) -> bool {
        self.keys.press(keys)
    }

    /// Keys wait, or one is being pressed.
    pub fn is_pressing(&self) -> bool {
        self.keys.is_pressing() || !self.pressed.is_empty()
    }

    pub fn sent(&self) -> Sent {
        Sent {
            timestamp: self.timestamp,
            ..self.sent
        }
    }

    /// Of the packet that was made last.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The next packet that is due; `None`: none is yet. `words`: the 20 ms that sound from that moment on, or nothing is said.
    pub fn next(&mut self, now: Instant, words: &mut dyn FnMut(Instant) -> Option<SoundFrame>) -> Option<Header> {
        let due = self.due.filter(|due| *due <= now)?;
        let due = self.skip(due, now);
        self.due = Some(due + self.format.ptime());
        let timestamp = self.timestamp;
        self.timestamp = timestamp.wrapping_add(self.format.units());
        if let Some(event) = self.format.telephone_event {
            match self
                .keys
                .step(self.format.ptime_ms, timestamp, self.format.codec.per_ms())
            {
                Turn::Key(key) => {
                    self.payload.clear();
                    self.payload.extend_from_slice(&key.payload);
                    return Some(self.header(event, key.timestamp, key.marker));
                }
                // The words wait for the keys.
                Turn::Pause => return Some(self.speak(timestamp, due, &mut |_| None)),
                Turn::Words => {}
            }
        }
        Some(self.speak(timestamp, due, words))
    }

    fn speak(&mut self, timestamp: u32, due: Instant, words: &mut dyn FnMut(Instant) -> Option<SoundFrame>) -> Header {
        let ptime_ms = self.format.ptime_ms as usize;
        self.payload.clear();
        if self.format.codec == Codec::Opus {
            self.frame(due, words);
            std::mem::swap(&mut self.payload, &mut self.encoded);
        } else {
            let wanted = ptime_ms * BYTES_PER_MS;
            while self.encoded.len() < wanted {
                let ahead = Duration::from_millis((self.encoded.len() / BYTES_PER_MS) as u64);
                self.frame(due + ahead, words);
            }
            self.payload.extend_from_slice(&self.encoded[..wanted]);
            self.encoded.drain(..wanted);
        }
        self.header(self.format.payload_type, timestamp, self.marker)
    }

    /// Encodes 20 ms.
    fn frame(&mut self, due: Instant, words: &mut dyn FnMut(Instant) -> Option<SoundFrame>) {
        let before = self.encoded.len();
        let words = match self.key() {
            Some(key) => Some(key),
            None => words(due),
        };
        self.silent = match words {
            Some(_) => 0,
            None => self.silent.saturating_add(1),
        };
        let is_known = self.silent > SOFT_END && self.encoder.say_nothing(FRAME_MS as usize, &mut self.encoded);
        if !is_known {
            let frame = words.unwrap_or_else(|| SoundFrame::silence(self.rate));
            self.rate = frame.rate;
            if !self.encoder.say(&frame, &mut self.encoded) {
                self.encoded.truncate(before);
            }
        }
        // Whatever could not be said is a pause, for the packet has to be filled.
        if self.format.codec != Codec::Opus {
            let whole = before + FRAME_MS as usize * BYTES_PER_MS;
            let last = self.encoded.last().copied().unwrap_or(adapters::sound::mu_law::SILENCE);
            self.encoded.resize(whole, last);
        }
    }

    /// 20 ms of a key in the voice, if one is pressed.
    fn key(&mut self) -> Option<SoundFrame> {
        if self.pressed.is_empty() && self.format.telephone_event.is_none() {
            self.pressed = self.keys.take().and_then(tones::key).unwrap_or_default();
        }
        let size = (TELEPHONE / 50) as usize;
        let samples: Vec<i16> = self.pressed.drain(..size.min(self.pressed.len())).collect();
        (!samples.is_empty()).then_some(SoundFrame {
            rate: TELEPHONE,
            samples,
        })
    }

    /// Another leg's payload, as it is, or `None` if it is not to be sent now.
    pub fn pass(&mut self, timestamp: u32, payload: &[u8]) -> Option<Header> {
        self.due?;
        let timestamp = self.restamp.next(timestamp, self.timestamp, self.format.codec.clock());
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        Some(self.header(self.format.payload_type, timestamp, self.marker))
    }

    /// The time goes on, and nothing is made for it: another leg's packets go out instead.
    pub fn pause(&mut self, now: Instant) {
        while let Some(due) = self.due.filter(|due| *due <= now) {
            let due = self.skip(due, now);
            self.due = Some(due + self.format.ptime());
            self.timestamp = self.timestamp.wrapping_add(self.format.units());
        }
    }

    fn header(&mut self, payload_type: u8, timestamp: u32, marker: bool) -> Header {
        let header = Header {
            marker,
            payload_type,
            sequence: self.sequence,
            timestamp,
            ssrc: self.origin.ssrc,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.marker = false;
        self.sent.packets = self.sent.packets.wrapping_add(1);
        self.sent.octets = self.sent.octets.wrapping_add(self.payload.len() as u32);
        header
    }

    /// Too late for more than may be caught up: passes over the rest.
    fn skip(&mut self, due: Instant, now: Instant) -> Instant {
        let late = (now - due).saturating_sub(CATCH_UP);
        let skipped = late.as_millis() / self.format.ptime().as_millis();
        let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
        if skipped > 0 {
            self.marker = true;
            self.timestamp = self.timestamp.wrapping_add(self.format.units().wrapping_mul(skipped));
        }
        due + self.format.ptime() * skipped
    }
}

#[cfg(test)]
#[path = "speaking_tests.rs"]
mod tests;
