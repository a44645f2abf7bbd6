//! Tones of telephones: keys in the voice, busy and the like, and the announcement that a number is not in service.
//!
//! Sound comes with 16 kHz, as everything that is heard. Sources: ITU-T Q.23 and Q.24 (keys), E.180 (cadences, and how they
//! differ by country), E.182 and Q.35 (special information).
use crate::goertzel::{Tuned, power, purity_of};
use adapters::sound::{HEARING, TELEPHONE};
use std::f64::consts::TAU;

const RATE: f64 = HEARING as f64;
const ROWS: [f64; 4] = [697.0, 770.0, 852.0, 941.0];
const COLUMNS: [f64; 4] = [1_209.0, 1_336.0, 1_477.0, 1_633.0];
/// By row and column; the fourth column's letters are on no telephone.
const KEYS: [[char; 3]; 4] = [['1', '2', '3'], ['4', '5', '6'], ['7', '8', '9'], ['*', '0', '#']];
/// 12.75 ms are judged at once: two of them fit into the shortest key, of 40 ms.
const BLOCK: usize = 204;
/// About −33 dBm0 for each tone.
const SOFTEST: f64 = 125_000.0;
/// A column may be louder than its row by 4 dB, a row louder than its column by 8.
const TWIST: f64 = 2.5;
const REVERSE_TWIST: f64 = 6.3;
/// The strongest of four is so much stronger than the others (8 dB),
const STANDS_OUT: f64 = 6.3;
/// and both tones together are so much of the sound: a voice has more in it.
const OF_ALL: f64 = 0.82;

/// Keys in the voice itself, for the other side that agreed on no events: each once, when it has lasted for 25 ms.
#[derive(Debug)]
pub struct KeyTones {
    rows: [Tuned; 4],
    columns: [Tuned; 4],
    block: Vec<i16>,
    /// Of the block before.
    last: Option<char>,
    pressed: Option<char>,
}

impl Default for KeyTones {
    fn default() -> Self {
        let tuned = |hertz| Tuned::to(hertz, RATE);
        KeyTones {
            rows: ROWS.map(tuned),
            columns: COLUMNS.map(tuned),
            block: Vec::with_capacity(BLOCK),
            last: None,
            pressed: None,
        }
    }
}

impl KeyTones {
    /// Samples of 16 kHz, of any number.
    pub fn hear(&mut self, samples: &[i16], mut press: impl FnMut(char)) {
        for sample in samples {
            self.block.push(*sample);
            if self.block.len() == BLOCK {
                if let Some(key) = self.judge() {
                    press(key);
                }
                self.block.clear();
            }
        }
    }

    fn judge(&mut self) -> Option<char> {
        let key = self.key();
        // What two blocks say: one alone may be a bit of a voice, or of a pause.
        let is_sure = key == self.last;
        self.last = key;
        if !is_sure || key == self.pressed {
            return None;
        }
        self.pressed = key;
        key
    }

    fn key(&self) -> Option<char> {
        let of_all = power(&self.block);
        // Most blocks are silence.
        if of_all < SOFTEST {
            return None;
        }
        let (row, of_row) = self.one_of(&self.rows)?;
        let (column, of_column) = self.one_of(&self.columns)?;
        let is_twisted = of_column > of_row * TWIST || of_row > of_column * REVERSE_TWIST;
        if is_twisted || of_row + of_column < of_all * OF_ALL {
            return None;
        }
        KEYS.get(row)?.get(column).copied()
    }

    fn one_of(&self, four: &[Tuned; 4]) -> Option<(usize, f64)> {
        let powers = four.map(|tuned| tuned.power(&self.block));
        let (at, best) = powers
            .iter()
            .enumerate()
            .max_by(|one, other| one.1.total_cmp(other.1))?;
        let mut others = powers.iter().enumerate().filter(|(other, _)| *other != at);
        (*best >= SOFTEST && others.all(|(_, other)| other * STANDS_OUT <= *best)).then_some((at, *best))
    }
}

/// A key as it sounds, 8 kHz: 100 ms at −10 dBm0 for each tone, and a pause of 60 ms. `None`: it is not one of `0-9*#`.
pub fn key(key: char) -> Option<Vec<i16>> {
    /// A sine of full scale is 3.14 dBm0 (ITU-T G.711).
    const AMPLITUDE: f64 = 7_218.0;
    let place = |row: &[char; 3]| row.iter().position(|known| *known == key);
    let (row, column) = KEYS.iter().enumerate().find_map(|(at, row)| Some((at, place(row)?)))?;
    let mut sound = chord([ROWS[row], COLUMNS[column]], AMPLITUDE, 100);
    sound.resize(sound.len() + 60 * TELEPHONE as usize / 1_000, 0);
    Some(sound)
}

/// What a caller hears while it rings elsewhere, 8 kHz: two seconds of it and four of silence, −19 dBm0 for each tone.
pub fn ringback() -> Vec<i16> {
    const AMPLITUDE: f64 = 2_561.0;
    let mut sound = chord([440.0, 480.0], AMPLITUDE, 2_000);
    sound.resize(6 * TELEPHONE as usize, 0);
    sound
}

fn chord(hertz: [f64; 2], amplitude: f64, ms: usize) -> Vec<i16> {
    let count = ms * TELEPHONE as usize / 1_000;
    let wave = |at: usize| {
        let turns = at as f64 / f64::from(TELEPHONE);
        let sum: f64 = hertz.iter().map(|hertz| (TAU * hertz * turns).sin()).sum();
        (amplitude * sum) as i16
    };
    (0..count).map(wave).collect()
}

/// What the network says in tones. It never ends a call; it only tells more of a call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Busy,
    /// The network has no line ("reorder", "fast busy").
    Congestion,
    Ringback,
    /// Three tones that rise: the number is not in service, or has changed.
    SpecialInformation,
}

/// 40 ms are judged at once, which keeps tones apart that differ by 40 Hz.
const STEP: usize = 640;
const STEP_MS: u32 = 40;
/// About −40 dBm0: what is softer is silence.
const AUDIBLE: f64 = 25_000.0;
const PURE: f64 = 0.75;
/// Steps that may be neither one nor the other where a tone begins or ends.
const EDGE: u32 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Silence,
    /// A tone with a cadence: 400 to 450 Hz nearly everywhere, 480 and 620 for busy, 440 and 480 for ringing in North America.
    Cadenced,
    /// Of the three of special information.
    Rising(u8),
    Other,
}

/// Listens to what comes before somebody picks up.
#[derive(Debug, Default)]
pub struct ProgressTones {
    step: Vec<i16>,
    kind: Kind,
    steps: u32,
    /// Steps since then that were neither one nor the other.
    other: u32,
    /// How long the last tone with a cadence was.
    on_ms: Option<u32>,
    /// What the cycle before was.
    before: Option<Tone>,
    risen: u8,
    told: Option<Tone>,
}

impl ProgressTones {
    /// Samples of 16 kHz, of any number. The tone that they make known, if it is another than the one before.
    pub fn hear(&mut self, samples: &[i16]) -> Option<Tone> {
        let mut found = None;
        for sample in samples {
            self.step.push(*sample);
            if self.step.len() == STEP {
                let kind = kind_of(&self.step);
                self.step.clear();
                found = self.judge(kind).filter(|tone| self.told != Some(*tone)).or(found);
                self.told = found.or(self.told);
            }
        }
        found
    }

    fn judge(&mut self, kind: Kind) -> Option<Tone> {
        if kind == Kind::Other && self.other < EDGE {
            self.other += 1;
            return None;
        }
        let other = std::mem::take(&mut self.other);
        if kind == self.kind {
            self.steps += 1 + other;
            return self.lasts();
        }
        let ended = (self.kind, self.steps);
        (self.kind, self.steps) = (kind, 1);
        self.ends(ended.0, ended.1)
    }

    /// A ring is known by the pause behind it.
    fn lasts(&mut self) -> Option<Tone> {
        let pause = self.steps * STEP_MS;
        let rang = self.on_ms.is_some_and(|ms| (800..=2_400).contains(&ms));
        (self.kind == Kind::Silence && rang && pause >= 1_500).then_some(Tone::Ringback)
    }

    fn ends(&mut self, kind: Kind, steps: u32) -> Option<Tone> {
        let ms = steps * STEP_MS;
        match kind {
            Kind::Cadenced => {
                self.on_ms = Some(ms);
                None
            }
            Kind::Silence => {
                if ms > 160 {
                    self.risen = 0;
                }
                let cycle = self.on_ms.take().and_then(|on_ms| cadence(on_ms, ms));
                let is_sure = cycle == self.before;
                self.before = cycle;
                cycle.filter(|_| is_sure)
            }
            Kind::Rising(tone) => {
                let is_next = tone == self.risen + 1 && (160..=480).contains(&ms);
                self.risen = if is_next { tone } else { 0 };
                (self.risen == 3).then_some(Tone::SpecialInformation)
            }
            Kind::Other => {
                (self.on_ms, self.before, self.risen) = (None, None, 0);
                None
            }
        }
    }
}

/// Busy is half a second on and off, more or less by country; congestion half of that.
fn cadence(on_ms: u32, off_ms: u32) -> Option<Tone> {
    let both = |range: std::ops::Range<u32>| range.contains(&on_ms) && range.contains(&off_ms);
    if both(320..640) {
        Some(Tone::Busy)
    } else if both(140..320) {
        Some(Tone::Congestion)
    } else {
        None
    }
}

fn kind_of(step: &[i16]) -> Kind {
    if power(step) < AUDIBLE {
        return Kind::Silence;
    }
    let purity = |hertz: f64| purity_of(step, hertz, RATE);
    let has = |tones: &[f64]| tones.iter().map(|hertz| purity(*hertz)).sum::<f64>() >= PURE;
    let cadenced: [&[f64]; 5] = [&[425.0], &[400.0], &[450.0], &[480.0, 620.0], &[440.0, 480.0]];
    if cadenced.iter().any(|tones| has(tones)) {
        return Kind::Cadenced;
    }
    let rising: [&[f64]; 3] = [&[913.8, 985.2], &[1_370.6, 1_428.5], &[1_776.7]];
    // Either of the two, not both of them.
    let risen = rising
        .iter()
        .position(|tones| tones.iter().any(|hertz| purity(*hertz) >= PURE));
    risen.map_or(Kind::Other, |at| Kind::Rising(at as u8 + 1))
}

#[cfg(test)]
#[path = "tones_tests.rs"]
mod tests;
