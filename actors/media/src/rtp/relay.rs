//! Two legs that are connected: what one hears the other sends. A relay, not a mixer.
//!
//! Legs of one codec pass payloads through as they are, with their own numbers; else the sound goes from one to the other at
//! 16 kHz, and so it does where it is recorded. Each leg has an inlet, which the other one fills: they may be on different threads.
use super::codec::Codec;
use crate::playout::SoundFrame;
use adapters::sound::HEARING;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Packets that an inlet holds; of more the oldest are dropped, for late sound is worth nothing.
const MOST_PACKETS: usize = 25;
/// Sound that it holds: half a second. It is played from the beginning, so what is beyond would only be delay.
const MOST_SAMPLES: usize = HEARING as usize / 2;
/// 20 ms.
const FRAME: usize = HEARING as usize / 50;
/// Frames that are gathered before the first is played, for two legs' beats are not one.
const GATHERED: usize = 2 * FRAME;
/// Of sound that waits behind what is played: if it is never less than this for a second, there is too much of it,
const MOST_WAITING: usize = 3 * FRAME;
/// and so much of it is left.
const WAITS: usize = GATHERED - FRAME;
const FRAMES_PER_SECOND: usize = 50;
/// What counts as a sound: 40 dB below full scale.
pub const AUDIBLE: u16 = 328;

/// Their timestamps by our clock.
#[derive(Debug, Default)]
pub struct Restamp {
    /// Theirs and ours of the packet before.
    last: Option<(u32, u32)>,
}

impl Restamp {
    /// `now`: the timestamp that we would give by ourselves. As far from the last one as theirs is, unless that goes backwards or
    /// is more than a fifth of a second from now: then another stream has begun, or ours has gone on meanwhile.
    pub fn next(&mut self, theirs: u32, now: u32, clock: u32) -> u32 {
        let follows = self.last.map(|(before, ours)| {
            let ahead = theirs.wrapping_sub(before) as i32;
            (ahead > 0).then(|| ours.wrapping_add(ahead as u32))
        });
        let follows = follows.flatten();
        let is_near = |at: &u32| (at.wrapping_sub(now) as i32).unsigned_abs() <= clock / 5;
        let ours = follows.filter(is_near).unwrap_or(now);
        self.last = Some((theirs, ours));
        ours
    }
}

/// What comes to a leg from another one.
#[derive(Debug)]
pub enum Relayed {
    Payload { timestamp: u32, payload: Vec<u8> },
    Key(char),
}

/// A leg's, filled by the one that it is connected to.
#[derive(Debug)]
pub struct Inlet(Mutex<Waiting>);

#[derive(Debug)]
struct Waiting {
    codec: Codec,
    packets: VecDeque<Relayed>,
    sound: VecDeque<i16>,
    surplus: Surplus,
    is_playing: bool,
    is_recorded: bool,
}

/// Sound that came late, all at once, and would be delay for the rest of the talk. What was not needed for a second is dropped: within
/// the next one where it is silent, and what is left of it then at once.
#[derive(Debug)]
struct Surplus {
    /// Samples that are to be dropped.
    samples: usize,
    /// The least that waited in this second.
    least: usize,
    /// Frames that were played in it.
    frames: usize,
}

impl Surplus {
    fn none() -> Self {
        Surplus {
            samples: 0,
            least: usize::MAX,
            frames: 0,
        }
    }

    /// Before a frame of it is played, which it has.
    fn drop_from(&mut self, sound: &mut VecDeque<i16>) {
        self.least = self.least.min(sound.len().saturating_sub(FRAME));
        self.frames += 1;
        let is_silent = |sound: &VecDeque<i16>| sound.range(..FRAME).all(|sample| sample.unsigned_abs() <= AUDIBLE);
        while self.samples >= FRAME && sound.len() >= 2 * FRAME && is_silent(sound) {
            self.drop_samples(FRAME, sound);
        }
        if self.frames < FRAMES_PER_SECOND {
            return;
        }
        let rest = self.samples.min(sound.len().saturating_sub(FRAME));
        self.drop_samples(rest, sound);
        let is_too_much = self.least > MOST_WAITING;
        *self = Surplus {
            samples: if is_too_much { self.least - WAITS } else { 0 },
            ..Surplus::none()
        };
    }

    fn drop_samples(&mut self, samples: usize, sound: &mut VecDeque<i16>) {
        sound.drain(..samples);
        self.samples -= samples;
        // As if they had never been there.
        self.least = self.least.saturating_sub(samples);
    }
}

impl Inlet {
    pub fn new(codec: Codec) -> Arc<Self> {
        Arc::new(Inlet(Mutex::new(Waiting {
            codec,
            packets: VecDeque::new(),
            sound: VecDeque::new(),
            surplus: Surplus::none(),
            is_playing: false,
            is_recorded: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That its leg sends.
    pub fn codec(&self) -> Codec {
        self.lock().codec
    }

    pub fn set_codec(&self, codec: Codec) {
        self.lock().codec = codec;
    }

    /// What comes through it is a part of the line's recording, and so it comes as sound, whatever both legs speak.
    pub fn is_recorded(&self) -> bool {
        self.lock().is_recorded
    }

    pub fn set_recorded(&self, is_recorded: bool) {
        self.lock().is_recorded = is_recorded;
    }

    /// What waits is of a talk that is over.
    pub fn clear(&self) {
        let mut waiting = self.lock();
        waiting.packets.clear();
        waiting.sound.clear();
        waiting.surplus = Surplus::none();
        waiting.is_playing = false;
    }

    pub fn packet(&self, relayed: Relayed) {
        let mut waiting = self.lock();
        if waiting.packets.len() >= MOST_PACKETS {
            waiting.packets.pop_front();
        }
        waiting.packets.push_back(relayed);
    }

    /// 16 kHz.
    pub fn sound(&self, samples: &[i16]) {
        let mut waiting = self.lock();
        waiting.sound.extend(samples);
        let beyond = waiting.sound.len().saturating_sub(MOST_SAMPLES);
        waiting.sound.drain(..beyond);
    }

    pub fn next_packet(&self) -> Option<Relayed> {
        self.lock().packets.pop_front()
    }

    /// 20 ms, if so much is there.
    pub fn next_frame(&self) -> Option<SoundFrame> {
        let mut waiting = self.lock();
        let wanted = if waiting.is_playing { FRAME } else { GATHERED };
        waiting.is_playing = waiting.sound.len() >= wanted;
        let Waiting {
            sound,
            surplus,
            is_playing,
            ..
        } = &mut *waiting;
        if !*is_playing {
            *surplus = Surplus::none();
            return None;
        }
        surplus.drop_from(sound);
        let samples = sound.drain(..FRAME).collect();
        Some(SoundFrame { rate: HEARING, samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_time_becomes_ours() {
        let mut restamp = Restamp::default();
        for (what, theirs, now, ours) in [
            ("the first is now", 77, 1_000, 1_000),
            ("the next follows it", 77 + 160, 1_168, 1_160),
            ("at their own pace", 77 + 480, 1_500, 1_480),
            ("another stream is now", 9_000_000, 1_660, 1_660),
            ("a step back too", 8_999_000, 1_820, 1_820),
            ("whoever drifts is set right", 8_999_160, 8_000, 8_000),
            ("and goes on", 8_999_320, 8_160, 8_160),
        ] {
            assert_eq!(restamp.next(theirs, now, 8_000), ours, "{what}");
        }
        let mut restamp = Restamp::default();
        assert_eq!(restamp.next(u32::MAX - 10, u32::MAX - 80, 8_000), u32::MAX - 80);
        assert_eq!(restamp.next(149, 80, 8_000), 79);
    }

    #[test]
    fn an_inlet_holds_what_is_worth_hearing() {
        let inlet = Inlet::new(Codec::Pcmu);
        assert!(inlet.next_frame().is_none() && inlet.next_packet().is_none());
        inlet.sound(&[1; FRAME]);
        assert!(inlet.next_frame().is_none(), "it gathers first");
        inlet.sound(&[2; FRAME]);
        assert_eq!(inlet.next_frame().unwrap().samples, [1; FRAME]);
        assert_eq!(inlet.next_frame().unwrap().samples, [2; FRAME]);
        assert!(inlet.next_frame().is_none());
        inlet.sound(&vec![3; 10 * MOST_SAMPLES]);
        assert_eq!(std::iter::from_fn(|| inlet.next_frame()).count(), MOST_SAMPLES / FRAME);
        for timestamp in 0..100 {
            let payload = Vec::new();
            inlet.packet(Relayed::Payload { timestamp, payload });
        }
        let first = inlet.next_packet();
        assert!(
            matches!(first, Some(Relayed::Payload { timestamp: 75, .. })),
            "{first:?}"
        );
        inlet.clear();
        assert!(inlet.next_packet().is_none());
    }

    /// Frames of a talk, each of its own number; those that are silent are 0. `at_once`: of them wait at the beginning.
    fn played(at_once: usize, frames: usize, is_silent: impl Fn(usize) -> bool) -> (Vec<usize>, usize) {
        let inlet = Inlet::new(Codec::Pcmu);
        let feed = |number: usize| {
            let loud = i16::try_from(1_000 + number).unwrap();
            inlet.sound(&[if is_silent(number) { 0 } else { loud }; FRAME]);
        };
        (0..at_once).for_each(feed);
        let play = |_| {
            inlet
                .next_frame()
                .map(|frame| usize::from(frame.samples[0].unsigned_abs()))
        };
        let played = (0..frames).filter_map(|beat| {
            feed(at_once + beat);
            play(beat)
        });
        let played = played.map(|loud| loud.saturating_sub(1_000)).collect();
        (
            played,
            std::iter::repeat_n((), MOST_SAMPLES).map_while(|()| play(0)).count(),
        )
    }

    #[test]
    fn what_came_late_and_all_at_once_is_no_delay_for_good() {
        let (numbers, waiting) = played(20, 100, |_| false);
        let expected: Vec<usize> = (0..99).chain([118]).collect();
        assert_eq!(
            numbers, expected,
            "after a second to see it and one to wait for a pause"
        );
        assert_eq!(waiting, 1);
        // A pause is there: no word is lost.
        let (numbers, waiting) = played(20, 120, |number| (60..=90).contains(&number));
        let mut words = numbers.clone();
        words.retain(|number| *number > 0);
        assert_eq!(words, (1..60).chain(91..139).collect::<Vec<_>>());
        assert_eq!(numbers.iter().filter(|number| **number == 0).count(), 1 + 31 - 19);
        assert_eq!(waiting, 1);
    }

    /// Packets that come in bursts need what waits.
    #[test]
    fn what_is_needed_now_and_then_stays() {
        let inlet = Inlet::new(Codec::Pcmu);
        inlet.sound(&[1; 3 * FRAME]);
        for beat in 0..500 {
            if beat % 5 == 0 {
                inlet.sound(&[1; 5 * FRAME]);
            }
            assert!(inlet.next_frame().is_some(), "{beat}");
        }
        assert_eq!(std::iter::from_fn(|| inlet.next_frame()).count(), 3);
    }
}
