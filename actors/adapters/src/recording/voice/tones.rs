//! The voice of last resort: a tone per word. Not speech: it only shows who talks when, and for how long.
use super::Speaker;
use std::f64::consts::TAU;

/// Milliseconds of one character, the spaces among them: a usual pace of speech.
const CHARACTER_MS: usize = 55;
/// Of the shortest utterance.
const SHORTEST_MS: usize = 600;
/// Of a word's fade in, and of its fade out.
const FADE_MS: usize = 10;
/// A quarter of full scale, so that two speakers at once do not distort.
const LOUDNESS: f64 = 8_000.0;

/// Each word sounds for its characters at a pitch of its own; a space is a pause. The same text gives the same sound. `rate`:
/// samples per second.
pub fn tones(text: &str, who: Speaker, rate: u32) -> Vec<i16> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let spaces = words.len().saturating_sub(1);
    let characters = words.iter().map(|word| word.chars().count()).sum::<usize>() + spaces;
    if characters == 0 {
        return Vec::new();
    }
    let length = (characters * CHARACTER_MS).max(SHORTEST_MS) * rate as usize / 1_000;
    let mut sound = vec![0; length];
    let mut before = 0;
    for word in words {
        let after = before + word.chars().count();
        let span = before * length / characters..after * length / characters;
        burst(&mut sound[span], pitch(word, who), rate);
        before = after + 1;
    }
    sound
}

/// In Hz: a step of sixteen chosen by the word's letters. The agent's are 300 to 450, the other party's 540 to 810.
pub fn pitch(word: &str, who: Speaker) -> f64 {
    let letters = word
        .chars()
        .flat_map(char::to_lowercase)
        .filter(|c| c.is_alphanumeric());
    // FNV-1a.
    let hash = letters.fold(0x811c_9dc5_u32, |hash, c| {
        (hash ^ u32::from(c)).wrapping_mul(0x0100_0193)
    });
    let step = f64::from((hash ^ (hash >> 16)) % 16) / 15.0;
    let lowest = match who {
        Speaker::Agent => 300.0,
        Speaker::User => 540.0,
    };
    lowest * (1.0 + step / 2.0)
}

/// A tone with one overtone that swells five times a second, as syllables do.
fn burst(place: &mut [i16], pitch: f64, rate: u32) {
    let fade = (FADE_MS * rate as usize / 1_000).min(place.len() / 2).max(1);
    let length = place.len();
    let (mut tone, mut syllable) = (Wave::of(pitch, rate), Wave::of(5.0, rate));
    for (at, sample) in place.iter_mut().enumerate() {
        // The overtone by the formula of the double angle.
        let voice = tone.sine + 0.6 * tone.sine * tone.cosine;
        let swell = 0.75 - 0.25 * syllable.cosine;
        let edge = at.min(length - 1 - at).min(fade) as f64 / fade as f64;
        *sample = (LOUDNESS / 1.3 * voice * swell * edge) as i16;
        tone.turn();
        syllable.turn();
    }
}

/// Sine and cosine of an angle that grows evenly, from 0: turned step by step, since to compute each costs more than a room's other
/// sound does. Over a word the error stays below a billionth.
struct Wave {
    sine: f64,
    cosine: f64,
    step: (f64, f64),
}

impl Wave {
    fn of(hz: f64, rate: u32) -> Self {
        Wave {
            sine: 0.0,
            cosine: 1.0,
            step: (TAU * hz / f64::from(rate)).sin_cos(),
        }
    }

    fn turn(&mut self) {
        let (sine, cosine) = self.step;
        (self.sine, self.cosine) = (
            self.sine * cosine + self.cosine * sine,
            self.cosine * cosine - self.sine * sine,
        );
    }
}
