//! One turn of the other side's, from its first sound to its end. Pure: time is what the sound lasts.
//!
//! | | |
//! |---|---|
//! | a voice begins while the agent listens | it counts at once (`Begin`, `Sure`) |
//! | a voice begins while the agent thinks or speaks | it counts (`Begin`: the agent falls silent) once it has lasted, is near and is more than a sign that one listens |
//! | it has words, or lasts | the agent was interrupted (`Sure`) |
//! | it was short, or without words | the agent was not (`GoOn`) |
//! | silence | words are wanted (`Ask`) |
//! | words that sound finished | it seems to be over (`Provisional`), three times at most |
//! | a voice again | it is not (`Void`): all of it is one turn |
//! | silence for long enough behind these words, and nothing more of them awaited | it is over (`Over`) |
use super::{
    loudness::Usual,
    settings::Settings,
    signals::{Ears, Floor, Input, Known, Outcome, Output},
    state::{Claim, Told, Turn},
    words,
};

/// Silence behind which the words are wanted: 7 steps of the detector.
const ASKS_AFTER_MS: u32 = 112;
/// The same behind words that end a sentence.
const ASKS_SOON_MS: u32 = 64;
/// So much longer for each time that they were asked for before in the same turn: every question is paid for.
const ASKS_LATER_MS: u32 = 64;
/// So often a turn may seem to be over; after that it is over when it is.
const MOST_PROVISIONAL: u32 = 3;
/// A provider that has said that it seems to be over need not say that it is not, if a voice lasts for longer than that.
const GOES_ON_MS: u32 = 400;
/// Words that are known in part are all of them as long as no more voice than this has come since.
const FRESH_MS: u32 = 320;
/// So short a voice without words is a sign that one listens.
const SIGN_MS: u32 = 400;
/// A voice whose words are still awaited interrupts all the same when it has lasted so long,
const LASTS_MS: u32 = 1_000;
/// and one that has only said that it listens.
const LISTENS_MS: u32 = 2_000;
/// Silence behind a short voice without words, after which the agent goes on: where nobody tells words,
const SILENT_MS: u32 = 304;
/// and where they are late.
const LATE_MS: u32 = 1_000;

/// Of one talk.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    ears: Ears,
    floor: Floor,
    usual: Usual,
    turn: Option<Turn>,
}

impl Machine {
    pub fn new(settings: Settings, ears: Ears) -> Self {
        Machine {
            settings,
            ears,
            floor: Floor::Agent,
            usual: Usual::default(),
            turn: None,
        }
    }

    /// What is known of the turn that is under way; empty if nothing is.
    pub fn so_far(&self) -> &str {
        self.turn.as_ref().map_or("", |turn| turn.text.as_str())
    }

    /// What follows, in its order.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Floor(floor) => self.floor = floor,
            Input::Ears(ears) => self.ears = ears,
            Input::Began => {
                // An end that was not told has come all the same.
                self.break_off(&mut out);
                self.turn = Some(Turn::new());
            }
            Input::Sound { ms, voice_db } => self.hear(ms, voice_db, &mut out),
            Input::Cut => {
                if let Some(turn) = &mut self.turn {
                    (turn.is_cut, turn.silence_ms) = (true, u32::MAX);
                }
            }
            Input::Partial(text) => self.partial(text),
            Input::Earlier(text) => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_known()) {
                    turn.tell_part(text);
                }
            }
            Input::Final(text) => self.words(text, &mut out),
            Input::Failed => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| turn.is_asked) {
                    turn.told = Told::Failed;
                }
            }
            Input::EagerEnd(text) | Input::TurnEnd(text) if !self.settings.by_provider => self.partial(text),
            Input::EagerEnd(text) => {
                self.partial(text);
                self.seem_over(true, &mut out);
            }
            Input::Resumed => self.seem_over(false, &mut out),
            Input::TurnEnd(text) => self.end(text, &mut out),
        }
        self.claim(&mut out);
        self.ask(&mut out);
        self.conclude(&mut out);
        out
    }

    fn hear(&mut self, ms: u32, voice_db: Option<f32>, out: &mut Vec<Output>) {
        let by_provider = self.settings.by_provider;
        let Some(turn) = &mut self.turn else { return };
        let Some(db) = voice_db else {
            // What comes before the voice is no pause.
            if turn.voice_ms > 0 {
                turn.silence_ms = turn.silence_ms.saturating_add(ms);
            }
            return;
        };
        if turn.silence_ms > 0 {
            (turn.silence_ms, turn.is_asked, turn.is_cut) = (0, false, false);
            if turn.told != Told::Nothing {
                turn.told = Told::Partly;
            }
            // A provider that has said that it seems to be over says also that it is not.
            if !by_provider {
                turn.take_back(out);
            }
        }
        for counted in [
            &mut turn.voice_ms,
            &mut turn.since_ms,
            &mut turn.untold_ms,
            &mut turn.again_ms,
        ] {
            *counted = counted.saturating_add(ms);
        }
        turn.loudness.add(db, ms);
        if by_provider && turn.seems_over && turn.again_ms > GOES_ON_MS {
            // If it does not, it is wrong.
            turn.seems_over = false;
            turn.take_back(out);
        }
    }

    fn partial(&mut self, text: String) {
        // All of them are known better.
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_known()) {
            turn.tell(text, Told::Partly);
        }
    }

    fn words(&mut self, text: String, out: &mut Vec<Output>) {
        let Some(turn) = &mut self.turn else { return };
        // Some that were asked for before the voice went on are not all of them.
        match turn.is_asked {
            true => {
                turn.compare(&text, out);
                turn.tell(text, Told::All);
            }
            false => turn.tell_part(text),
        }
    }

    fn seem_over(&mut self, seems_over: bool, out: &mut Vec<Output>) {
        let by_provider = self.settings.by_provider;
        // Before there was a voice it is about something else.
        let turn = self.turn.as_mut().filter(|turn| by_provider && turn.voice_ms > 0);
        let Some(turn) = turn else { return };
        (turn.seems_over, turn.again_ms) = (seems_over, 0);
        if !seems_over {
            turn.take_back(out);
        }
    }

    fn end(&mut self, text: String, out: &mut Vec<Output>) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.voice_ms > 0) else {
            return;
        };
        turn.compare(&text, out);
        turn.tell(text, Told::All);
        turn.is_over = true;
    }

    /// The agent gives way, or has done so for good.
    fn claim(&mut self, out: &mut Vec<Output>) {
        let Some(turn) = &self.turn else { return };
        let (may, is_sure) = (self.interrupts(turn), self.is_sure(turn));
        let (is_free, resumes) = (self.floor == Floor::User, self.settings.resumes);
        let Some(turn) = &mut self.turn else { return };
        if turn.claim == Claim::No && (is_free || may) {
            turn.claim = Claim::Unsure;
            out.push(Output::Begin);
        }
        if turn.claim == Claim::Unsure && (is_free || is_sure || !resumes) {
            turn.claim = Claim::Sure;
            out.push(Output::Sure);
        }
    }

    fn interrupts(&self, turn: &Turn) -> bool {
        let Settings {
            min_voice_ms: least,
            min_words,
            margin_db,
            ..
        } = self.settings;
        let lasts = turn.since_ms >= least.max(1) || turn.voice_ms >= least && self.has_words(turn);
        let has_enough = self.ears == Ears::None || turn.told == Told::Failed || words::count(&turn.text) >= min_words;
        let is_near = self.usual.fits(turn.loudness.db(), margin_db);
        turn.voice_ms > 0 && lasts && has_enough && is_near && !self.is_sign(turn)
    }

    /// More than a sign that one listens.
    fn has_words(&self, turn: &Turn) -> bool {
        words::count(&turn.text) > 0 && !self.is_sign(turn)
    }

    fn is_sign(&self, turn: &Turn) -> bool {
        words::is_backchannel(&turn.text, self.settings.vocabulary)
    }

    fn is_sure(&self, turn: &Turn) -> bool {
        let is_long = turn.since_ms > SIGN_MS;
        let is_late = turn.told == Told::Failed || turn.silence_ms >= LATE_MS && !turn.is_known();
        self.has_words(turn)
            || match self.ears {
                Ears::None => is_long,
                Ears::Words | Ears::Beside if is_late => is_long && turn.text.is_empty(),
                Ears::Words | Ears::Beside if turn.text.is_empty() => turn.since_ms >= LASTS_MS,
                Ears::Words | Ears::Beside => turn.since_ms >= LISTENS_MS,
            }
    }

    /// The agent gave way to something that was nothing.
    fn is_nothing(&self, turn: &Turn) -> bool {
        match (self.ears, turn.told) {
            (Ears::None, _) => turn.silence_ms >= SILENT_MS.min(self.settings.silence_ms),
            (_, Told::All) => !self.has_words(turn),
            (_, Told::Failed) => true,
            (_, Told::Nothing | Told::Partly) => turn.silence_ms >= LATE_MS,
        }
    }

    /// Silence that ends it.
    fn needed(&self, turn: &Turn) -> u32 {
        let settings = &self.settings;
        if settings.by_provider {
            settings.longest_ms()
        } else if words::is_finished(&turn.text, settings.vocabulary) {
            settings.silence_ms
        } else {
            settings.unfinished_ms
        }
    }

    /// Silence behind which its words are wanted.
    fn asks_after(&self, turn: &Turn) -> u32 {
        let Settings { eager, silence_ms, .. } = self.settings;
        let is_sure = turn.claim == Claim::Sure;
        if self.settings.by_provider {
            return self.needed(turn);
        }
        if is_sure && (!eager || self.ears != Ears::Words) {
            return silence_ms;
        }
        let least = match is_sure && words::ends_sentence(&turn.text) {
            true => ASKS_SOON_MS,
            false => ASKS_AFTER_MS,
        };
        let before = turn.asks - u32::from(turn.is_asked);
        least
            .saturating_add(ASKS_LATER_MS.saturating_mul(before))
            .min(silence_ms)
    }

    fn ask(&mut self, out: &mut Vec<Output>) {
        let Some(turn) = &self.turn else { return };
        let is_asked = turn.is_asked || turn.is_known() || self.ears == Ears::None;
        if is_asked || turn.voice_ms == 0 || turn.silence_ms < self.asks_after(turn).max(1) {
            return;
        }
        if let Some(turn) = &mut self.turn {
            (turn.is_asked, turn.asks) = (true, turn.asks.saturating_add(1));
            out.push(Output::Ask);
        }
    }

    fn conclude(&mut self, out: &mut Vec<Output>) {
        let Some(turn) = &self.turn else { return };
        if turn.silence_ms == 0 && !turn.is_over && !turn.seems_over {
            return;
        }
        if turn.voice_ms == 0 {
            // Cut off before there was anything, or a provider's word about something else.
            if turn.is_cut {
                self.finish(Known::Words(String::new()), out);
            }
            return;
        }
        if turn.claim == Claim::Unsure && self.is_nothing(turn) {
            self.go_on(out);
        }
        let Some(turn) = &self.turn else { return };
        let is_over = turn.is_over || turn.silence_ms >= self.needed(turn);
        if is_over && turn.given.is_some() {
            // What was given was known in part: that it was all is not known before its words are there.
            if !turn.awaits(self.ears) {
                self.stand(out);
            }
        } else if is_over {
            if let Some(known) = self.known(turn) {
                self.finish(known, out);
            }
        } else if self.seems_over(turn) {
            let text = turn.text.clone();
            if let Some(turn) = &mut self.turn {
                turn.given = Some(text.clone());
                (turn.provisionals, turn.again_ms) = (turn.provisionals + 1, 0);
            }
            out.push(Output::Provisional(text));
        }
    }

    /// What was given was all, unless more was told meanwhile.
    fn stand(&mut self, out: &mut Vec<Output>) {
        let Some(turn) = &mut self.turn else { return };
        let text = turn.text.clone();
        turn.compare(&text, out);
        self.finish(Known::Words(text), out);
    }

    fn go_on(&mut self, out: &mut Vec<Output>) {
        if let Some(turn) = &mut self.turn {
            (turn.claim, turn.since_ms) = (Claim::No, 0);
            out.push(Output::GoOn);
        }
    }

    /// None: they are waited for.
    fn known(&self, turn: &Turn) -> Option<Known> {
        match (turn.told, self.ears) {
            (Told::All, _) => Some(Known::Words(turn.text.clone())),
            // What was told while it was spoken was said, whatever failed after it.
            (Told::Failed, _) | (_, Ears::None) if !turn.text.is_empty() => Some(Known::Words(turn.text.clone())),
            (Told::Failed, _) | (_, Ears::None) => Some(Known::Never),
            (_, Ears::Beside) => Some(Known::Later(turn.text.clone())),
            (_, Ears::Words) => None,
        }
    }

    /// An answer may be begun.
    fn seems_over(&self, turn: &Turn) -> bool {
        let Settings { eager, by_provider, .. } = self.settings;
        let can = eager && self.ears == Ears::Words && turn.claim == Claim::Sure && turn.given.is_none();
        if !can || turn.text.is_empty() || turn.provisionals >= MOST_PROVISIONAL {
            return false;
        }
        if by_provider {
            return turn.seems_over;
        }
        let are_all = match turn.told {
            Told::All => true,
            Told::Partly => words::ends_sentence(&turn.text) && turn.untold_ms <= FRESH_MS,
            Told::Nothing | Told::Failed => false,
        };
        are_all && turn.silence_ms >= self.asks_after(turn) && words::is_finished(&turn.text, self.settings.vocabulary)
    }

    /// Before another one begins.
    fn break_off(&mut self, out: &mut Vec<Output>) {
        if let Some(turn) = &mut self.turn {
            turn.silence_ms = u32::MAX;
        }
        self.ask(out);
        if let Some(turn) = &self.turn {
            let known = match turn.voice_ms {
                0 => Known::Words(String::new()),
                _ => self.known(turn).unwrap_or_else(|| Known::Later(turn.text.clone())),
            };
            match (turn.given.is_some(), turn.awaits(self.ears)) {
                (true, false) => return self.stand(out),
                // All of its words follow.
                (true, true) => self.take_back(out),
                (false, _) => {}
            }
            self.finish(known, out);
        }
    }

    fn take_back(&mut self, out: &mut Vec<Output>) {
        if let Some(turn) = &mut self.turn {
            turn.take_back(out);
        }
    }

    fn finish(&mut self, known: Known, out: &mut Vec<Output>) {
        let Some(turn) = self.turn.take() else { return };
        let is_turn = turn.given.is_some() || turn.claim != Claim::No && turn.voice_ms > 0;
        let is_noise = matches!(&known, Known::Words(text) if text.is_empty());
        if is_turn && !is_noise {
            self.usual.learn(turn.loudness.db());
        }
        let outcome = match known {
            _ if turn.given.is_some() => Outcome::Stands,
            known if turn.claim != Claim::No => {
                if turn.claim == Claim::Unsure {
                    out.push(Output::Sure);
                }
                Outcome::Turn(known)
            }
            _ if turn.voice_ms == 0 || is_noise => Outcome::Noise,
            Known::Never => Outcome::Noise,
            known => Outcome::Aside(known),
        };
        out.push(Output::Over(outcome));
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
