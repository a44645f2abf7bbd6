//! How soon the other side is answered: a stopwatch for each talk.
//!
//! Whoever has a part in an answer says so when it has done it: who listens, that somebody has spoken and what it was; the talk,
//! that there is something to say; the line, that it sounds and is sent. With the first packet the turn is measured, and the
//! session and the metrics are told ([`TurnMarks`] says what is believed). Who asks for a moment has answered nothing. A turn that
//! is not answered, or whose answer is cut off before anything of it was sent, is not measured. Time is that of a clock which
//! nobody can set.
use rules::session::{
    command::Command,
    latency::{Stage, TurnMarks},
};
use runtime::clock::Clock;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Turns that were heard and are not answered yet; older ones are forgotten.
const HEARD: usize = 8;

/// Who listens and thinks in a talk, by names of ours: they label metrics, and must be few.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// `None`: nobody.
    pub transcription: Option<&'static str>,
    pub brain: &'static str,
}

/// Cloning is cheap: all clones measure the same talk. The default measures nothing.
#[derive(Clone, Default)]
pub struct Stopwatch(Option<Arc<Talk>>);

struct Talk {
    clock: Clock,
    names: Names,
    tell: Box<dyn Fn(Command) + Send + Sync>,
    turns: Mutex<Turns>,
}

#[derive(Default)]
struct Turns {
    /// Oldest first.
    heard: VecDeque<Turn>,
    /// What is being answered.
    current: Option<Turn>,
    /// A moment is asked for: what sounds and is sent answers nothing.
    fills: bool,
}

/// Moments by the monotonic clock.
#[derive(Debug)]
struct Turn {
    number: u64,
    /// When the other side was last heard to speak.
    ended: Duration,
    marks: [Option<Duration>; Stage::ALL.len()],
    /// Who says the first of its answer, if that is not the brain.
    voice: Option<&'static str>,
}

impl Turn {
    /// The first time counts.
    fn mark(&mut self, stage: Stage, now: Duration) {
        self.marks[stage as usize].get_or_insert(now);
    }

    fn measured(&self) -> Option<TurnMarks> {
        let ms = |at: Duration| match at.checked_sub(self.ended) {
            Some(after) => i64::try_from(after.as_millis()).ok(),
            None => Some(-1),
        };
        TurnMarks::of(self.marks.map(|mark| mark.and_then(ms)))
    }
}

impl Turns {
    fn of(&mut self, number: u64) -> Option<&mut Turn> {
        let mut all = self.current.iter_mut().chain(&mut self.heard);
        all.find(|turn| turn.number == number)
    }
}

impl Talk {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stopwatch {
    pub fn new(clock: Clock, names: Names, tell: impl Fn(Command) + Send + Sync + 'static) -> Self {
        Stopwatch(Some(Arc::new(Talk {
            clock,
            names,
            tell: Box::new(tell),
            turns: Mutex::default(),
        })))
    }

    /// The turn of that number is over: it was last heard so long ago. A second time it was not over the first time.
    pub fn ended(&self, number: u64, quiet: Duration) {
        let Some(talk) = &self.0 else { return };
        let now = talk.clock.monotonic();
        let ended = now.saturating_sub(quiet);
        let mut turns = talk.turns();
        if turns.of(number).is_none() {
            if turns.heard.len() == HEARD {
                turns.heard.pop_front();
            }
            turns.heard.push_back(Turn {
                number,
                ended,
                marks: Default::default(),
                voice: None,
            });
        }
        if let Some(turn) = turns.of(number) {
            turn.ended = ended;
            turn.marks[Stage::Endpoint as usize] = Some(now);
        }
    }

    /// Its words are known.
    pub fn understood(&self, number: u64) {
        let Some(talk) = &self.0 else { return };
        let now = talk.clock.monotonic();
        if let Some(turn) = talk.turns().of(number) {
            turn.mark(Stage::Text, now);
        }
    }

    /// From now on what is thought, said and sent answers the turn of that number, and no older one.
    pub fn answering(&self, number: u64) {
        let Some(talk) = &self.0 else { return };
        let mut turns = talk.turns();
        let place = turns.heard.iter().position(|turn| turn.number == number);
        turns.current = place.and_then(|place| turns.heard.remove(place));
        turns.heard.retain(|turn| turn.number > number);
    }

    /// What comes now answers nothing any more: the other side is listened to again.
    pub fn listening(&self) {
        if let Some(talk) = &self.0 {
            talk.turns().current = None;
        }
    }

    /// A moment is asked for from now on, or not any more.
    pub fn fill(&self, fills: bool) {
        if let Some(talk) = &self.0 {
            talk.turns().fills = fills;
        }
    }

    fn mark(&self, stages: &[Stage]) {
        let Some(talk) = &self.0 else { return };
        let now = talk.clock.monotonic();
        if let Some(turn) = &mut talk.turns().current {
            stages.iter().for_each(|stage| turn.mark(*stage, now));
        }
    }

    /// The first of the answer has come from the model.
    pub fn token(&self) {
        self.mark(&[Stage::Token]);
    }

    /// There is something to say. Of whoever does not tell of its first token this is the first.
    pub fn clause(&self) {
        self.mark(&[Stage::Token, Stage::Clause]);
    }

    /// Somebody of that name is asked to say it.
    pub fn voice(&self, name: &'static str) {
        let Some(talk) = &self.0 else { return };
        let mut turns = talk.turns();
        if turns.fills {
            return;
        }
        if let Some(turn) = &mut turns.current {
            turn.voice.get_or_insert(name);
        }
    }

    /// The first of its sound is there.
    pub fn sound(&self) {
        if !self.0.as_ref().is_some_and(|talk| talk.turns().fills) {
            self.mark(&[Stage::Sound]);
        }
    }

    /// The first of it is sent. Waits for nobody, so that the line may call it.
    pub fn packet(&self) {
        let Some(talk) = &self.0 else { return };
        if talk.turns().fills {
            return;
        }
        self.mark(&[Stage::Packet]);
        let turn = talk.turns().current.take();
        let Some((turn, marks)) = turn.and_then(|turn| turn.measured().map(|marks| (turn, marks))) else {
            return;
        };
        observe(&marks, talk.names, turn.voice);
        (talk.tell)(Command::Measure(marks));
    }
}

fn observe(marks: &TurnMarks, names: Names, voice: Option<&'static str>) {
    let seconds = |ms: u32| f64::from(ms) / 1000.0;
    for stage in Stage::ALL {
        if let Some(ms) = marks.at(stage) {
            metrics::histogram!("callboard_turn_seconds", "stage" => stage.name()).record(seconds(ms));
        }
    }
    let shares = marks.shares();
    if let Some((name, ms)) = names.transcription.zip(shares.transcription) {
        metrics::histogram!("callboard_transcription_seconds", "provider" => name).record(seconds(ms));
    }
    if let Some(ms) = shares.brain {
        metrics::histogram!("callboard_brain_seconds", "provider" => names.brain).record(seconds(ms));
    }
    if let Some((name, ms)) = voice.zip(shares.voice) {
        metrics::histogram!("callboard_voice_seconds", "provider" => name).record(seconds(ms));
    }
}

#[cfg(test)]
#[path = "latency_tests.rs"]
pub(crate) mod tests;
