//! What the participant does, noticed while the agent thinks and speaks: whose turn it is, what was said, and keys.
//!
//! Works beside the talk. What is heard and which words are known of it goes into the machine of turns ([`rules::turn`]); what that
//! decides is told here: that the agent gives way or goes on ([`Speaking`]), and what was said ([`UserInput`]), in the order in
//! which it was said. Words that sound finished are given while it is not sure yet that they are all ([`Unsettled`]). An agent that
//! hears by itself gets the sound while it is spoken ([`LiveWay`]), or as soon as it is over, and its words follow.
mod cut_off;
mod greeting;
mod keys;

pub use greeting::Early;

pub use super::{
    last_words::{Screen, UNKNOWN},
    user_input::{LaterWords, LiveWay, Said, Speaking, Tell, Understood, Unsettled, UserInput, UserInputs},
};

use super::{
    ears::{Ears, Told},
    last_words::LastWords,
    outbox::{Of, Outbox, understood},
    spoken_turn::Turn,
};
use crate::conversation::latency::Stopwatch;
use adapters::{
    brain::{LIVE_KEPT_FREE, LiveSound},
    sound::Pcm,
    transcription::Transcript,
};
use entities::{boxed, values::Moment};
use keys::OptOutWay;
use media::{
    bridge::MediaBridge,
    mic::{MicEvent, Piece},
};
use rules::{
    session::command::Command,
    turn::{
        loudness,
        machine::Machine,
        settings::Settings,
        signals::{Ears as Hearing, Floor, Input, Known, Outcome, Output},
    },
};
use runtime::clock::{Busy, Clock};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, watch};

/// The longest utterance, the silence after it and the time for understanding it: so long a silence does not count.
const LONGEST_SECONDS: i64 = 45;
/// Notices that nobody listens to yet; half of them may be keys.
const INPUTS: usize = 64;
/// A detector waits longer than any turn may: it is told when one is over.
const LONGER_MS: u32 = 1_000;

/// Where what is heard comes from, and who understands it.
pub struct Source {
    pub heard: mpsc::Receiver<MicEvent>,
    pub bridge: Arc<MediaBridge>,
    pub transcript: Option<Transcript>,
}

pub struct SpeechInput {
    clock: Clock,
    tell: Tell,
    heard: mpsc::Receiver<MicEvent>,
    bridge: Arc<MediaBridge>,
    ears: Ears,
    machine: Machine,
    /// What the machine was told last.
    known: (Hearing, Floor),
    speaking: watch::Sender<Speaking>,
    inputs: mpsc::Sender<UserInput>,
    listens: Arc<AtomicBool>,
    cut_in: Arc<AtomicU64>,
    sound_first: Arc<AtomicBool>,
    live: LiveWay,
    outbox: Outbox,
    opt_out: OptOutWay,
    stopwatch: Stopwatch,
    /// How many turns there were.
    turns: u64,
    /// Sound of a greeting of which no words were asked for.
    unasked_ms: u64,
    current: Option<Turn>,
    last_words: LastWords,
}

impl SpeechInput {
    pub fn new(clock: Clock, settings: Settings, source: Source, tell: Tell) -> (Self, UserInputs) {
        let Source {
            heard,
            bridge,
            transcript,
        } = source;
        let (speaking, watched) = watch::channel(Speaking::default());
        let (sender, inputs) = mpsc::channel(INPUTS);
        let (opt_out, opted_out) = OptOutWay::new();
        let user = UserInputs {
            speaking: watched,
            inputs,
            opted_out,
            listens: Arc::default(),
            cut_in: Arc::default(),
            sound_first: Arc::default(),
            live: LiveWay::default(),
            last_words: LastWords::default(),
        };
        bridge.wait(settings.longest_ms() + LONGER_MS);
        let ears = Ears::new(transcript);
        let hearing = if ears.are_there() {
            Hearing::Words
        } else {
            Hearing::None
        };
        let speech_input = SpeechInput {
            clock,
            tell,
            heard,
            bridge,
            ears,
            machine: Machine::new(settings, hearing),
            known: (hearing, Floor::Agent),
            speaking,
            inputs: sender,
            listens: user.listens.clone(),
            cut_in: user.cut_in.clone(),
            sound_first: user.sound_first.clone(),
            live: user.live.clone(),
            outbox: Outbox::default(),
            opt_out,
            stopwatch: Stopwatch::default(),
            turns: 0,
            unasked_ms: 0,
            current: None,
            last_words: user.last_words.clone(),
        };
        (speech_input, user)
    }

    /// How soon what it hears is answered is measured by that.
    pub fn timed_by(mut self, stopwatch: Stopwatch) -> Self {
        self.stopwatch = stopwatch;
        self
    }

    /// Until nothing is heard any more, or nobody listens.
    #[boxed]
    pub async fn run(mut self) {
        let mut is_open = true;
        while is_open || self.current.is_some() || !self.outbox.is_empty() {
            if self.inputs.capacity() <= INPUTS / 2 {
                self.outbox.drop_keys();
            }
            tokio::select! {
                biased;
                is_free = has_room(&self.inputs), if self.outbox.is_ready() => {
                    if let Some((input, _busy)) = self.outbox.take()
                        && (!is_free || self.inputs.try_send(input).is_err())
                    {
                        return;
                    }
                }
                told = self.ears.next() => self.learn(told),
                heard = self.heard.recv(), if is_open && !self.outbox.is_full() => match heard {
                    Some(heard) => self.hear(heard),
                    None => {
                        is_open = false;
                        self.cut();
                    }
                },
            }
        }
    }

    fn hear(&mut self, heard: MicEvent) {
        match heard {
            MicEvent::SpeechStarted { number, ago_ms } => {
                let ago = i64::try_from(ago_ms).unwrap_or(0);
                self.begin(Some(number), self.clock.now().plus_millis(-ago));
            }
            MicEvent::Sound(Piece { sound, voice_db }) => self.sound(&sound, voice_db),
            MicEvent::SpeechEnded(rest) => {
                if self.current.is_none() && !rest.is_empty() {
                    let ms = i64::try_from(rest.ms()).unwrap_or(0);
                    self.begin(None, self.clock.now().plus_millis(-ms));
                }
                if !rest.is_empty() {
                    self.sound(&rest, Some(loudness::of(&rest.samples)));
                }
                self.cut();
            }
            MicEvent::Dtmf(keys) => self.press(keys),
        }
    }

    fn begin(&mut self, heard_as: Option<u64>, began: Moment) {
        self.look();
        if let Some(turn) = &mut self.current {
            // An end that was not told has come all the same.
            turn.is_heard = false;
        }
        self.turns += 1;
        let next = Turn::begun(self.turns, heard_as, began, self.live.listener());
        let mut outputs = self.machine.step(Input::Began);
        let ends = outputs.iter().rposition(|output| matches!(output, Output::Over(_)));
        let begins = outputs.split_off(ends.map_or(0, |end| end + 1));
        self.heed(outputs);
        self.current = Some(next);
        self.ears.begin(self.turns);
        self.heed(begins);
    }

    fn sound(&mut self, sound: &Pcm, voice_db: Option<f32>) {
        let Some(turn) = &mut self.current else { return };
        turn.said.push(sound, voice_db.is_some());
        turn.quiet_ms = match voice_db {
            Some(_) => 0,
            None => turn.quiet_ms + sound.ms(),
        };
        if let Some(live) = &turn.live
            && (live.capacity() <= LIVE_KEPT_FREE || live.try_send(LiveSound::Piece(sound.clone())).is_err())
        {
            metrics::counter!("callboard_live_sound_dropped_pieces_total").increment(1);
        }
        self.ears.hear(sound);
        let ms = u32::try_from(sound.ms()).unwrap_or(u32::MAX);
        self.step(Input::Sound { ms, voice_db });
    }

    /// Nothing more of it comes.
    fn cut(&mut self) {
        let Some(turn) = &mut self.current else { return };
        turn.is_heard = false;
        turn.busy = Some(self.clock.busy());
        if turn.number.is_some() {
            self.speaking.send_modify(|speaking| speaking.over = speaking.begun);
        }
        self.step(Input::Cut);
    }

    fn learn(&mut self, told: Told) {
        match told {
            Told::Partial(words) => self.step(Input::Partial(words)),
            Told::EagerEnd(words) => self.step(Input::EagerEnd(words)),
            Told::Resumed => self.step(Input::Resumed),
            Told::TurnEnd(words) => self.step(Input::TurnEnd(words)),
            Told::Words { turn, is_last, words } => self.words(turn, is_last, words),
            Told::Gone(turns) => {
                self.failed("nobody tells words any more");
                // The machine learns that nobody does, and so the turn that is under way has none.
                self.look();
                for turn in turns {
                    let _ = self.outbox.resolve(turn, None);
                }
            }
        }
    }

    fn words(&mut self, turn: u64, is_last: bool, words: Result<String, String>) {
        if let Err(why) = &words {
            self.failed(why);
        }
        let is_current = self.current.as_ref().is_some_and(|current| current.id == turn);
        match (words, is_current, is_last) {
            (Ok(words), true, true) => self.step(Input::Final(words)),
            (Ok(words), true, false) => self.step(Input::Earlier(words)),
            (Err(_), true, true) => self.step(Input::Failed),
            (words, false, true) => {
                if let Some(number) = self.outbox.resolve(turn, words.ok()) {
                    self.stopwatch.understood(number);
                }
            }
            (_, false, false) | (Err(_), true, false) => {}
        }
    }

    /// It costs the words of an utterance, not the talk.
    fn failed(&self, why: &str) {
        tracing::warn!(why, "an utterance was not understood");
        (self.tell)(Command::Note {
            kind: "transcription_failed",
            detail: why.to_owned(),
        });
    }

    /// What has changed beside the sound.
    fn look(&mut self) {
        let hearing = match (self.ears.are_there(), self.sound_first.load(Ordering::Relaxed)) {
            (false, _) => Hearing::None,
            (true, false) => Hearing::Words,
            (true, true) => Hearing::Beside,
        };
        let floor = match self.listens.load(Ordering::Relaxed) {
            true => Floor::User,
            false => Floor::Agent,
        };
        let (knew, of) = std::mem::replace(&mut self.known, (hearing, floor));
        if hearing != knew {
            let outputs = self.machine.step(Input::Ears(hearing));
            self.heed(outputs);
        }
        if floor != of {
            let outputs = self.machine.step(Input::Floor(floor));
            self.heed(outputs);
        }
    }

    fn step(&mut self, input: Input) {
        self.look();
        let outputs = self.machine.step(input);
        self.heed(outputs);
    }

    fn heed(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Ask => self.ask(),
                Output::Begin => self.count(false),
                Output::Sure => self.speaking.send_modify(|speaking| speaking.sure = speaking.begun),
                Output::GoOn => self.go_on(),
                Output::Provisional(words) => self.seems_over(words),
                Output::Void => {
                    self.settle(false);
                    // It counts anew: what was given of it may have been listened to.
                    self.count(true);
                }
                Output::Over(outcome) => self.over(outcome),
            }
        }
    }

    fn ask(&mut self) {
        let Some(turn) = &self.current else { return };
        if !self.ears.ask(turn.id) {
            self.failed("the provider is too far behind");
            let outputs = self.machine.step(Input::Failed);
            self.heed(outputs);
        }
    }

    /// The next utterance begins to count.
    fn count(&mut self, is_sure: bool) {
        self.speaking.send_modify(|speaking| {
            speaking.over = speaking.begun;
            speaking.begun += 1;
            if is_sure {
                speaking.sure = speaking.begun;
            }
        });
        if let Some(turn) = &mut self.current {
            let number = self.speaking.borrow().begun;
            if let Some(before) = turn.number.replace(number) {
                // It is the same one that has cut in, if it has.
                let order = Ordering::Relaxed;
                let _ = self.cut_in.compare_exchange(before, number, order, order);
            }
        }
        let until = self.clock.now().plus_seconds(LONGEST_SECONDS);
        (self.tell)(Command::UserSpeaking { until });
    }

    fn go_on(&mut self) {
        let number = self.current.as_mut().and_then(|turn| turn.number.take());
        self.speaking.send_modify(|speaking| {
            speaking.over = speaking.begun;
            speaking.nothing = number.unwrap_or(speaking.nothing);
        });
    }

    fn seems_over(&mut self, words: String) {
        let Some(turn) = &mut self.current else { return };
        let Some(number) = turn.number else { return };
        self.stopwatch.ended(number, Duration::from_millis(turn.quiet_ms));
        self.stopwatch.understood(number);
        let (unsettled, settle) = Unsettled::new();
        turn.settle = Some(settle);
        let said = turn.said(words);
        let input = UserInput::Speech {
            number,
            said,
            later: None,
            unsettled: Some(unsettled),
        };
        self.outbox.push(input, Some(self.clock.busy()));
    }

    fn settle(&mut self, is_over: bool) {
        let settle = self.current.as_mut().and_then(|turn| turn.settle.take());
        if let Some(settle) = settle {
            let outcome = if is_over { "stands" } else { "void" };
            metrics::counter!("callboard_turn_speculations_total", "outcome" => outcome).increment(1);
            settle.send_replace(Some(is_over));
        }
    }

    fn over(&mut self, outcome: Outcome) {
        self.time();
        self.settle(true);
        let Some(turn) = self.current.take() else { return };
        if let Some(heard_as) = turn.heard_as.filter(|_| turn.is_heard) {
            self.bridge.end_turn(heard_as);
        }
        if turn.number.is_some() {
            self.speaking.send_modify(|speaking| speaking.over = speaking.begun);
        }
        if let Some(live) = &turn.live {
            // There is room for it, unless nobody takes anything.
            let _ = live.try_send(match self.is_answered(&outcome, turn.number) {
                true => LiveSound::End,
                false => LiveSound::Discard,
            });
        }
        match (outcome, turn.number) {
            (Outcome::Stands, _) => {}
            (Outcome::Turn(known), Some(number)) => self.give(&turn, Of::Speech(number), known),
            (Outcome::Aside(known), _) => self.give(&turn, Of::Aside, known),
            (Outcome::Noise, _) | (Outcome::Turn(_), None) if !self.ears.is_asked(turn.id) => self.ears.discard(),
            (Outcome::Noise, _) | (Outcome::Turn(_), None) => {}
        }
    }

    /// Somebody will answer it: of a noise in which there is no word only if the agent fell silent for it.
    fn is_answered(&self, outcome: &Outcome, number: Option<u64>) -> bool {
        match outcome {
            Outcome::Turn(Known::Words(words)) if words.is_empty() => {
                number.is_some_and(|number| number == self.cut_in.load(Ordering::Relaxed))
            }
            Outcome::Turn(_) | Outcome::Stands => true,
            Outcome::Aside(_) | Outcome::Noise => false,
        }
    }

    /// When it was last heard. Of a turn that the microphone's end or the longest time has cut off nobody knows.
    fn time(&self) {
        if let Some(turn) = &self.current
            && let Some(number) = turn.number
            && turn.is_heard
        {
            self.stopwatch.ended(number, Duration::from_millis(turn.quiet_ms));
        }
    }

    fn give(&mut self, turn: &Turn, of: Of, known: Known) {
        let busy = self.clock.busy();
        if let (Of::Speech(number), Known::Words(_)) = (of, &known) {
            self.stopwatch.understood(number);
        }
        let (words, so_far) = match known {
            Known::Words(words) => (Some(words), String::new()),
            Known::Later(so_far) if self.ears.is_asked(turn.id) => {
                return match of {
                    Of::Speech(number) if self.sound_first.load(Ordering::Relaxed) => {
                        self.promise(turn, (number, so_far), busy);
                    }
                    of => self.outbox.wait(turn.id, of, turn.said(so_far), busy),
                };
            }
            Known::Later(so_far) => (None, so_far),
            Known::Never => (None, String::new()),
        };
        if let Some(input) = understood(of, turn.said(so_far), words) {
            self.outbox.push(input, Some(busy));
        }
    }

    /// Whoever hears by himself has the sound at once.
    fn promise(&mut self, turn: &Turn, (number, so_far): (u64, String), busy: Busy) {
        let (later, tell) = LaterWords::new();
        let input = UserInput::Speech {
            number,
            said: turn.said(UNKNOWN.to_owned()),
            later: Some(later),
            unsettled: None,
        };
        self.outbox.push(input, Some(busy.clone()));
        self.outbox.promise(turn.id, so_far, tell, busy);
    }
}

/// Waits for it; `false`: nobody listens any more.
async fn has_room(inputs: &mpsc::Sender<UserInput>) -> bool {
    inputs.reserve().await.is_ok()
}

#[cfg(test)]
#[path = "speech_input_tests.rs"]
mod tests;
