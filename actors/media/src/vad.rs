//! Hears when somebody speaks: sound of the microphone comes in, utterances come out.
//!
//! A small net (`earshot`) says of every 16 ms how much it sounds like speech. Two thresholds keep it from wavering, a count
//! of speech in a row keeps out coughs and clicks, and an utterance ends after a pause. What came shortly before the
//! beginning was noticed belongs to it; the pause at its end does not. The net is not all-knowing: a steady deep tone (440 Hz)
//! is a voice to it, a beep of 1 kHz, noise and silence are none.
use crate::mic::MicEvent;
use adapters::sound::{HEARING, Pcm};
use earshot::Detector;
use std::collections::VecDeque;

/// Samples that are judged at once: 16 ms at 16 kHz. Source: earshot.
const STEP: usize = 256;
const STEP_MS: usize = 16;

/// Scores from here on are speech, while nobody speaks.
const SPEECH: f32 = 0.5;
/// Scores from here on are still speech, while somebody speaks.
const STILL_SPEECH: f32 = 0.35;
/// Steps of speech that make a beginning, about 160 ms; a step that is none takes one away. A shorter blip is no speech.
const BEGINS_AFTER: usize = 10;
/// Steps without speech that end an utterance: about 600 ms.
const ENDS_AFTER: usize = 600 / STEP_MS;
/// Steps that are kept of the pause at the end, about 100 ms: words end softly.
const ENDING: usize = 6;
/// Steps that are kept from before somebody speaks: what made the beginning, and 200 ms before it.
const BEFORE: usize = BEGINS_AFTER + 200 / STEP_MS;
/// Steps of the longest utterance, 30 s; who speaks on begins another.
const LONGEST: usize = 30_000 / STEP_MS;

/// The participant's. It keeps at most one utterance (960 KB).
pub struct SpeechDetector {
    detector: Box<Detector>,
    /// Less than a step that was not judged yet.
    rest: Vec<i16>,
    state: State,
}

enum State {
    /// The last steps, and how many of late were speech.
    Silence {
        before: VecDeque<[i16; STEP]>,
        speech: usize,
    },
    /// All of it so far, with the pause at its end, and the pause's steps.
    Speech { said: Vec<i16>, pause: usize },
}

impl State {
    fn silence() -> Self {
        State::Silence {
            before: VecDeque::with_capacity(BEFORE),
            speech: 0,
        }
    }
}

impl Default for SpeechDetector {
    fn default() -> Self {
        SpeechDetector {
            detector: Box::default(),
            rest: Vec::with_capacity(STEP),
            state: State::silence(),
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

    /// The microphone is gone: what was being said ends here.
    pub fn end(&mut self) -> Option<MicEvent> {
        self.rest.clear();
        self.detector.reset();
        match std::mem::replace(&mut self.state, State::silence()) {
            State::Silence { .. } => None,
            State::Speech { said, pause } => Some(spoke(said, pause)),
        }
    }

    /// One whole step, in `rest`.
    fn judge(&mut self, heard: &mut Vec<MicEvent>) {
        let score = self.detector.predict_i16(&self.rest);
        let mut step = [0; STEP];
        step.copy_from_slice(&self.rest);
        match &mut self.state {
            State::Silence { before, speech } => {
                if before.len() == BEFORE {
                    before.pop_front();
                }
                before.push_back(step);
                *speech = if score >= SPEECH {
                    *speech + 1
                } else {
                    speech.saturating_sub(1)
                };
                if *speech >= BEGINS_AFTER {
                    let ago_ms = (before.len() * STEP_MS) as u64;
                    let said = before.iter().flatten().copied().collect();
                    self.state = State::Speech { said, pause: 0 };
                    heard.push(MicEvent::SpeechStarted { ago_ms });
                }
            }
            State::Speech { said, pause } => {
                said.extend_from_slice(&step);
                *pause = if score >= STILL_SPEECH { 0 } else { *pause + 1 };
                if *pause >= ENDS_AFTER || said.len() >= LONGEST * STEP {
                    heard.push(spoke(std::mem::take(said), *pause));
                    self.state = State::silence();
                }
            }
        }
    }
}

/// The utterance without the pause at its end.
fn spoke(mut said: Vec<i16>, pause: usize) -> MicEvent {
    said.truncate(said.len().saturating_sub(pause.saturating_sub(ENDING) * STEP));
    MicEvent::SpeechEnded {
        sound: Pcm::new(HEARING, said),
        quiet_ms: (pause >= ENDS_AFTER).then_some((pause * STEP_MS) as u64),
    }
}

#[cfg(test)]
#[path = "vad_tests.rs"]
mod tests;
