//! Hears when somebody speaks: sound of the microphone comes in, voices come out, piece by piece.
//!
//! A small net (`earshot`) says of every 16 ms how much it sounds like speech. Two thresholds keep it from wavering, a count
//! of speech in a row keeps out coughs and clicks. What came shortly before the beginning was noticed belongs to it. Whose turn
//! it is, and when it is over, is decided elsewhere ([`rules::turn`]), which tells; an utterance that nobody ends is over after
//! a pause. The net is not all-knowing: a steady deep tone (440 Hz) is a voice to it, a beep of 1 kHz, noise and silence are none.
use crate::mic::{MicEvent, Piece};
use adapters::sound::{HEARING, Pcm};
use earshot::Detector;
use rules::turn::loudness::{self, Mean};
use std::{cmp::Ordering, collections::VecDeque};

/// Samples that are judged at once: 16 ms at 16 kHz. Source: earshot.
const STEP: usize = 256;
const STEP_MS: usize = 16;

/// Scores from here on are speech, while nobody speaks.
const SPEECH: f32 = 0.5;
/// Scores from here on are still speech, while somebody speaks.
const STILL_SPEECH: f32 = 0.35;
/// What is so much softer than what was said so far is silence, or somebody far behind: the net takes a while to notice an end.
const SOFTER_DB: f32 = 30.0;
/// Steps of speech that make a beginning, about 160 ms; a step that is none takes one away. A shorter blip is no speech.
const BEGINS_AFTER: usize = 10;
/// Steps of a pause, about 64 ms, after which one loud step is no voice yet,
const PAUSE: usize = 4;
/// but so many in a row are.
const AGAIN_AFTER: usize = 3;
/// Milliseconds without speech that end an utterance, where nobody says otherwise.
const PATIENCE_MS: usize = 600;
/// What is so soft is no voice, whoever hears it,
const HUSH_DB: f32 = -75.0;
/// and after so many steps of it, about half a second, the net need not look: most microphones of browsers send plain silence.
const ASLEEP_AFTER: usize = 32;
/// Steps that are kept from before somebody speaks: what made the beginning, and 200 ms before it.
const BEFORE: usize = BEGINS_AFTER + 200 / STEP_MS;
/// Steps of the longest utterance, 30 s; who speaks on begins another.
const LONGEST: usize = 30_000 / STEP_MS;

type Step = [i16; STEP];

/// The participant's. It keeps the last third of a second.
pub struct SpeechDetector {
    detector: Box<Detector>,
    /// Less than a step that was not judged yet.
    rest: Vec<i16>,
    /// The last steps, and which of them were speech.
    before: VecDeque<(Step, bool)>,
    /// Steps without speech that end an utterance.
    ends_after: usize,
    /// Steps in a row in which there was nothing to hear.
    hushed: usize,
    /// Utterances so far.
    begun: u64,
    state: State,
}

enum State {
    /// How many steps of late were speech.
    Silence {
        speech: usize,
    },
    Speech(Utterance),
}

/// That is under way.
struct Utterance {
    loudness: Mean,
    steps: usize,
    /// Steps without a voice at its end.
    pause: usize,
    /// Steps of speech behind that pause, that are no voice yet.
    again: usize,
}

impl Default for SpeechDetector {
    fn default() -> Self {
        SpeechDetector {
            detector: Box::default(),
            rest: Vec::with_capacity(STEP),
            before: VecDeque::with_capacity(BEFORE),
            ends_after: PATIENCE_MS / STEP_MS,
            hushed: 0,
            begun: 0,
            state: State::Silence { speech: 0 },
        }
    }
}

impl SpeechDetector {
    /// Samples of 16 bits, 16 kHz, mono, of any number.
    pub fn hear(&mut self, mut samples: &[i16]) -> Vec<MicEvent> {
        let mut heard = Vec::new();
        while !samples.is_empty() {
            let (now, later) = samples.split_at(samples.len().min(STEP - self.rest.len()));
            self.rest.extend_from_slice(now);
            samples = later;
            if self.rest.len() == STEP {
                self.judge(&mut heard);
                self.rest.clear();
            }
        }
        heard
    }

    /// An utterance that nobody ends is over after so long a pause.
    pub fn wait(&mut self, ms: u32) {
        self.ends_after = (ms as usize / STEP_MS).max(1);
    }

    /// The utterance of that number is over: whoever speaks now begins anew. Nothing, if it is another one that is under way.
    pub fn end_turn(&mut self, number: u64) -> Option<MicEvent> {
        if number != self.begun {
            return None;
        }
        self.end_speech()
    }

    fn end_speech(&mut self) -> Option<MicEvent> {
        match std::mem::replace(&mut self.state, State::Silence { speech: 0 }) {
            State::Silence { .. } => None,
            State::Speech(_) => Some(ended()),
        }
    }

    /// The microphone is gone: what was being said ends here.
    pub fn end(&mut self) -> Option<MicEvent> {
        self.rest.clear();
        self.before.clear();
        self.detector.reset();
        self.end_speech()
    }

    /// One whole step, in `rest`.
    fn judge(&mut self, heard: &mut Vec<MicEvent>) {
        let score = self.score();
        let mut step = [0; STEP];
        step.copy_from_slice(&self.rest);
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before.push_back((step, score >= SPEECH));
        match &mut self.state {
            State::Silence { speech } => {
                *speech = match score >= SPEECH {
                    true => *speech + 1,
                    false => speech.saturating_sub(1),
                };
                if *speech >= BEGINS_AFTER {
                    self.begin(heard);
                }
            }
            State::Speech(utterance) => {
                heard.push(MicEvent::Sound(utterance.judge(&step, score)));
                if utterance.pause >= self.ends_after || utterance.steps >= LONGEST {
                    heard.push(ended());
                    // The next one has none of this.
                    self.before.clear();
                    self.state = State::Silence { speech: 0 };
                }
            }
        }
    }

    /// How much the step sounds like speech.
    fn score(&mut self) -> f32 {
        self.hushed = match loudness::of(&self.rest) < HUSH_DB {
            true => self.hushed.saturating_add(1),
            false => 0,
        };
        match self.hushed.cmp(&ASLEEP_AFTER) {
            Ordering::Less => self.detector.predict_i16(&self.rest),
            Ordering::Equal => {
                // It wakes as it began.
                self.detector.reset();
                0.0
            }
            Ordering::Greater => 0.0,
        }
    }

    /// With what came before: the voice began with the first step of those that made the beginning.
    fn begin(&mut self, heard: &mut Vec<MicEvent>) {
        let first = self.before.len() - self.run();
        let ago_ms = ((self.before.len() - first) * STEP_MS) as u64;
        self.begun += 1;
        let number = self.begun;
        heard.push(MicEvent::SpeechStarted { number, ago_ms });
        let mut utterance = Utterance::new();
        for (at, (step, is_speech)) in self.before.iter().enumerate() {
            let is_voice = at >= first && *is_speech;
            let piece = utterance.add(step, loudness::of(step), is_voice);
            heard.push(MicEvent::Sound(piece));
        }
        self.state = State::Speech(utterance);
    }

    /// Steps since the first of those that made the beginning: counted back until nothing of the count is left.
    fn run(&self) -> usize {
        let (mut left, mut steps) = (BEGINS_AFTER, 0);
        for (_, is_speech) in self.before.iter().rev() {
            steps += 1;
            left = match is_speech {
                true => left - 1,
                false => left + 1,
            };
            if left == 0 {
                break;
            }
        }
        steps
    }
}

/// All of it was told.
fn ended() -> MicEvent {
    MicEvent::SpeechEnded(Pcm::new(HEARING, Vec::new()))
}

impl Utterance {
    fn new() -> Self {
        Utterance {
            loudness: Mean::default(),
            steps: 0,
            pause: 0,
            again: 0,
        }
    }

    fn judge(&mut self, step: &Step, score: f32) -> Piece {
        let db = loudness::of(step);
        let is_loud = db >= self.loudness.db() - SOFTER_DB;
        let is_speech = score >= STILL_SPEECH && is_loud;
        self.again = if is_speech { self.again + 1 } else { 0 };
        let is_voice = is_speech && (self.pause < PAUSE || self.again >= AGAIN_AFTER);
        self.add(step, db, is_voice)
    }

    fn add(&mut self, step: &Step, db: f32, is_voice: bool) -> Piece {
        self.steps += 1;
        if is_voice {
            self.loudness.add(db, STEP_MS as u32);
            (self.pause, self.again) = (0, 0);
        } else {
            self.pause += 1;
        }
        Piece {
            sound: Pcm::new(HEARING, &step[..]),
            voice_db: is_voice.then_some(db),
        }
    }
}

#[cfg(test)]
#[path = "vad_tests.rs"]
mod tests;
