//! What a microphone picks up.
use adapters::sound::{HEARING, Pcm, ms_of};

/// What the participant does.
#[derive(Clone, Debug, PartialEq)]
pub enum MicEvent {
    /// Begins to speak, the utterance of that number (from 1). That is noticed when the voice has lasted for a while: it began so
    /// long ago.
    SpeechStarted { number: u64, ago_ms: u64 },
    /// The sound from shortly before that beginning on, piece by piece, pauses too.
    Sound(Piece),
    /// Has spoken: nothing more of it comes but this, all of it a voice.
    SpeechEnded(Pcm),
    /// Pressed keys of the page, of `0-9*#`.
    Dtmf(String),
}

/// 16 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub sound: Pcm,
    /// How loud, in decibels of full scale, where it is a voice.
    pub voice_db: Option<f32>,
}

/// The sound of an utterance, gathered while it is spoken. Memory is bounded by the longest one.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    rate: u32,
    samples: Vec<i16>,
    /// Where its voice begins and ends, once there is one.
    voice: Option<(usize, usize)>,
}

/// Milliseconds that are kept of the pause at the end: words end softly.
const ENDING_MS: u64 = 96;
/// Of the longest utterance. A detector ends one before that.
const LONGEST_MS: u64 = 35_000;

impl Default for Gathered {
    fn default() -> Self {
        Gathered {
            rate: HEARING,
            samples: Vec::new(),
            voice: None,
        }
    }
}

impl Gathered {
    /// What comes beyond the longest one is not kept. The first piece says at which rate.
    pub fn push(&mut self, sound: &Pcm, is_voice: bool) {
        if self.samples.is_empty() {
            self.rate = sound.rate;
        }
        let sound = sound.at(self.rate);
        let from = self.samples.len();
        if ms_of(from as u64, self.rate) + sound.ms() > LONGEST_MS {
            return;
        }
        self.samples.extend_from_slice(&sound.samples);
        if is_voice {
            let (begin, _) = self.voice.unwrap_or((from, from));
            self.voice = Some((begin, self.samples.len()));
        }
    }

    /// Where it ends: shortly behind the voice.
    fn end(&self) -> usize {
        let Some((_, voice)) = self.voice else {
            return self.samples.len();
        };
        let ending = usize::try_from(u64::from(self.rate) * ENDING_MS / 1_000).unwrap_or(0);
        self.samples.len().min(voice + ending)
    }

    /// All of it, from shortly before its voice to shortly behind.
    pub fn sound(&self) -> Pcm {
        Pcm::new(self.rate, &self.samples[..self.end()])
    }

    /// How long it took: from where its voice began.
    pub fn ms(&self) -> u64 {
        let begin = self.voice.map_or(0, |(begin, _)| begin);
        ms_of((self.end() - begin) as u64, self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(ms: usize) -> Pcm {
        Pcm::new(HEARING, vec![1; ms * 16])
    }

    #[test]
    fn an_utterance_begins_with_its_voice_and_ends_shortly_behind() {
        let mut said = Gathered::default();
        said.push(&sound(192), false);
        for _ in 0..10 {
            said.push(&sound(16), true);
        }
        said.push(&sound(48), false);
        said.push(&sound(16), true);
        assert_eq!((said.sound().ms(), said.ms()), (192 + 224, 224));
        said.push(&sound(600), false);
        assert_eq!((said.sound().ms(), said.ms()), (192 + 224 + 96, 224 + 96));
    }

    #[test]
    fn its_first_sound_says_at_which_rate_and_it_has_an_end() {
        let mut said = Gathered::default();
        assert_eq!((said.sound().ms(), said.ms()), (0, 0));
        said.push(&Pcm::new(8_000, vec![1; 800]), true);
        said.push(&sound(100), true);
        assert_eq!((said.sound().rate, said.sound().ms()), (8_000, 200));
        for _ in 0..40 {
            said.push(&sound(1_000), true);
        }
        assert_eq!(said.ms(), 34_200);
    }
}
