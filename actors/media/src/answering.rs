//! Who picked up: a person, a machine with its greeting and its beep, or a fax. Pure; the rules are those of Asterisk's `app_amd`
//! in kind, and the numbers were chosen on voices of flite and espeak-ng.
//!
//! A person says a word or two and waits; a machine talks on. To hang up on a person is the worse error, so whoever has not
//! talked for long enough is one, and so is whoever cannot be told.
use crate::goertzel::{Comb, Strongest, power, purity_of};
use adapters::sound::{HEARING, TELEPHONE};
use earshot::Detector;

/// What is judged at once: 20 ms of 16 kHz.
const FRAME: usize = 320;
const FRAME_MS: u32 = 20;
/// Samples that the net judges at once: 16 ms. Source: earshot.
const STEP: usize = 256;
const STEP_MS: u32 = 16;
/// Scores from here on are speech. It stays there while somebody speaks: with less, persons are taken for machines.
const SPEECH: f32 = 0.5;
/// So much speech in all is a machine's.
const MACHINE_MS: u32 = 2_200;
/// So much silence after so much speech is a person's, who waits.
const WAITS_MS: u32 = 600;
const SPOKE_MS: u32 = 100;
/// No speech by then, or no verdict: nobody knows.
const SILENT_MS: u32 = 2_500;
const GIVES_UP_MS: u32 = 4_500;
/// A tone: so pure, this loud (rms 200), and no further from the one before.
const PURE: f64 = 0.85;
const AUDIBLE: f64 = 40_000.0;
const SAME_HZ: f64 = 50.0;
/// Frames of a tone that are no speech any more, though the net may take them for it.
const TONAL: u32 = 4;
/// The network's ringing, which may go on for a moment behind the pick-up, where it is two tones (North America, United Kingdom):
/// as pure together, in two frames, of which one alone does not tell them apart.
const RINGING: [[f64; 2]; 2] = [[440.0, 480.0], [400.0, 450.0]];
const RINGING_PURE: f64 = 0.8;
/// A beep: frames of one tone (120 ms to 3 s) behind so much speech.
const BEEP: std::ops::RangeInclusive<u32> = 6..=150;
const GREETED_MS: u32 = 300;
/// A fax calls with 1100 Hz or answers with 2100 Hz (ITU-T T.30), before any speech; frames (400 ms).
const FAX: [f64; 2] = [1_100.0, 2_100.0];
const FAX_HZ: f64 = 25.0;
const FAX_FRAMES: u32 = 20;
/// A message begins so long after the beep, or after so much silence behind a greeting of that length; at the latest then.
const AFTER_BEEP_MS: u32 = 300;
const SILENCE_MS: u32 = 2_000;
const GREETING_MS: u32 = 2_000;
const LATEST_MS: u32 = 45_000;
/// So much speech behind the beginning of a message: the greeting was not over. So often the message begins anew.
const GOES_ON_MS: u32 = 400;
const MOST_RETURNS: u8 = 2;
/// Steps of speech in a row that make a beginning, and the pause in between that ends the row.
const BEGINS: u32 = 6;
const BREAKS_MS: u32 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Human,
    Machine,
    Fax,
    /// To be treated like a person.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Once.
    Verdict(Verdict),
    /// A machine's beep has ended.
    Beep,
    /// To a machine: a message that is to be left begins now.
    Speak,
    /// The greeting goes on: what was begun to be said is said again at the next [`Speak`](Signal::Speak).
    Wait,
}

/// 20 ms of what is heard.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Of the net, for each of its steps that ended in this frame.
    pub scores: &'a [f32],
    pub tone: Strongest,
    pub power: f64,
    /// The network rings still.
    pub is_ringing: bool,
}

/// The machine. Its clock is the sound: silence must be fed too.
#[derive(Debug, Default)]
pub struct Answering {
    ms: u32,
    voiced_ms: u32,
    /// Steps of speech in a row, and silence since the last one.
    run: u32,
    quiet_ms: u32,
    /// Frames of one tone so far, how many of them a fax's, and the tone.
    tonal: u32,
    fax: u32,
    hertz: f64,
    /// When the first speech began.
    greeted_at: Option<u32>,
    verdict: Option<Verdict>,
    message: Message,
}

#[derive(Clone, Copy, Debug, Default)]
struct Message {
    /// After a beep.
    begins_at: Option<u32>,
    has_begun: bool,
    /// Speech since then.
    voiced_ms: u32,
    returns: u8,
}

impl Answering {
    pub fn hear(&mut self, frame: Frame<'_>) -> Vec<Signal> {
        self.ms += FRAME_MS;
        let mut signals = Vec::new();
        let has_beeped = self.listen_for_tones(frame);
        for score in frame.scores {
            self.listen_for_speech(*score, frame.is_ringing);
        }
        if self.verdict.is_none() {
            self.verdict = self.judge();
            signals.extend(self.verdict.map(Signal::Verdict));
        }
        if has_beeped {
            signals.push(Signal::Beep);
        }
        if self.verdict == Some(Verdict::Machine) {
            signals.extend(self.message(has_beeped));
        }
        signals
    }

    /// Has a beep ended?
    fn listen_for_tones(&mut self, Frame { tone, power, .. }: Frame<'_>) -> bool {
        let is_same = self.tonal == 0 || (tone.hertz - self.hertz).abs() <= SAME_HZ;
        if tone.purity > PURE && power > AUDIBLE && is_same {
            self.tonal += 1;
            self.hertz = tone.hertz;
            self.fax += u32::from(FAX.iter().any(|fax| (tone.hertz - fax).abs() <= FAX_HZ));
            return false;
        }
        let is_beep = BEEP.contains(&self.tonal) && self.voiced_ms > GREETED_MS;
        (self.tonal, self.fax) = (0, 0);
        is_beep
    }

    fn listen_for_speech(&mut self, score: f32, is_ringing: bool) {
        if score >= SPEECH && self.tonal < TONAL && !is_ringing {
            self.voiced_ms += STEP_MS;
            self.message.voiced_ms += STEP_MS;
            self.run += 1;
            self.quiet_ms = 0;
            if self.run >= BEGINS {
                self.greeted_at.get_or_insert(self.ms.saturating_sub(BEGINS * STEP_MS));
            }
        } else {
            self.quiet_ms += STEP_MS;
            if self.quiet_ms > BREAKS_MS {
                self.run = 0;
            }
        }
    }

    fn judge(&self) -> Option<Verdict> {
        let has_spoken = self.voiced_ms >= SPOKE_MS;
        if self.fax >= FAX_FRAMES && self.voiced_ms < GREETED_MS {
            Some(Verdict::Fax)
        } else if self.voiced_ms >= MACHINE_MS {
            Some(Verdict::Machine)
        } else if has_spoken && self.quiet_ms >= WAITS_MS {
            Some(Verdict::Human)
        } else if self.ms >= GIVES_UP_MS || self.ms >= SILENT_MS && !has_spoken {
            Some(Verdict::Unknown)
        } else {
            None
        }
    }

    fn message(&mut self, has_beeped: bool) -> Option<Signal> {
        if has_beeped {
            self.message.begins_at = Some(self.ms + AFTER_BEEP_MS);
            // What of the tone was taken for speech.
            self.message.voiced_ms = 0;
        }
        let goes_on = self.message.voiced_ms >= GOES_ON_MS;
        if self.message.has_begun {
            let waits = goes_on && self.message.returns < MOST_RETURNS && self.ms < LATEST_MS;
            if waits {
                let returns = self.message.returns + 1;
                self.message = Message {
                    returns,
                    ..Message::default()
                };
            }
            return waits.then_some(Signal::Wait);
        }
        let is_after_beep = self.message.begins_at.is_some_and(|at| self.ms >= at);
        let is_silent = self.quiet_ms >= SILENCE_MS && self.voiced_ms >= GREETING_MS;
        let begins = is_after_beep || is_silent || self.ms >= LATEST_MS;
        if begins {
            self.message.has_begun = true;
            self.message.voiced_ms = 0;
        }
        begins.then_some(Signal::Speak)
    }

    /// Milliseconds from the pick-up to the first word, if one was heard, and to the end of the last one so far.
    pub fn greeting(&self) -> Option<(u32, u32)> {
        let began = self.greeted_at?;
        Some((began, self.ms.saturating_sub(self.quiet_ms).max(began)))
    }

    /// Nothing more can come of it.
    pub fn is_over(&self) -> bool {
        match self.verdict {
            None => false,
            Some(Verdict::Machine) => self.ms >= 2 * LATEST_MS,
            Some(Verdict::Human | Verdict::Fax | Verdict::Unknown) => true,
        }
    }
}

/// The machine with its ears, for sound of 16 kHz.
pub struct Listener {
    ear: Box<Detector>,
    comb: Comb,
    /// Less than a step, and less than a frame, that were not judged yet.
    step: Vec<i16>,
    frame: Vec<i16>,
    /// The last two frames, 8 kHz.
    narrow: Vec<i16>,
    scores: Vec<f32>,
    answering: Answering,
}

impl Default for Listener {
    fn default() -> Self {
        Listener {
            ear: Box::default(),
            comb: Comb::new(f64::from(TELEPHONE)),
            step: Vec::with_capacity(STEP),
            frame: Vec::with_capacity(FRAME),
            narrow: vec![0; FRAME],
            scores: Vec::with_capacity(2),
            answering: Answering::default(),
        }
    }
}

impl Listener {
    /// Samples of 16 kHz, of any number.
    pub fn hear(&mut self, samples: &[i16], mut tell: impl FnMut(Signal)) {
        for sample in samples {
            self.step.push(*sample);
            self.frame.push(*sample);
            if self.step.len() == STEP {
                self.scores.push(self.ear.predict_i16(&self.step));
                self.step.clear();
            }
            if self.frame.len() == FRAME {
                self.judge().into_iter().for_each(&mut tell);
                self.frame.clear();
                self.scores.clear();
            }
        }
    }

    fn judge(&mut self) -> Vec<Signal> {
        // Every other sample: a telephone has nothing above 4 kHz, and of what has more no tone gets purer by it.
        self.narrow.drain(..FRAME / 2);
        self.narrow
            .extend(self.frame.iter().step_by((HEARING / TELEPHONE) as usize));
        let rate = f64::from(TELEPHONE);
        let power = power(&self.frame);
        let (tone, is_ringing) = match power > AUDIBLE {
            true => {
                let purity = |hertz: &f64| purity_of(&self.narrow, *hertz, rate);
                let rings = |pair: &[f64; 2]| pair.iter().map(purity).sum::<f64>() >= RINGING_PURE;
                let tone = self.comb.strongest(&self.narrow[FRAME / 2..]);
                (tone, RINGING.iter().any(rings))
            }
            false => (Strongest::default(), false),
        };
        self.answering.hear(Frame {
            scores: &self.scores,
            tone,
            power,
            is_ringing,
        })
    }

    /// See [`Answering::greeting`].
    pub fn greeting(&self) -> Option<(u32, u32)> {
        self.answering.greeting()
    }

    /// See [`Answering::is_over`].
    pub fn is_over(&self) -> bool {
        self.answering.is_over()
    }
}

#[cfg(test)]
#[path = "answering_tests.rs"]
mod tests;
