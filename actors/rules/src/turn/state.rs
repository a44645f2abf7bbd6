//! What is known of the turn that is under way.
use super::{
    loudness::Mean,
    signals::{Ears, Output},
    words,
};

/// Does it end the agent's words?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    No,
    /// It has, for now.
    Unsure,
    Sure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Nothing,
    /// Of a part of it.
    Partly,
    /// Of all that was spoken so far.
    All,
    Failed,
}

#[derive(Debug)]
pub struct Turn {
    /// In all.
    pub voice_ms: u32,
    /// Since the agent last went on all the same.
    pub since_ms: u32,
    /// That no words were told of yet.
    pub untold_ms: u32,
    /// Since it seemed to be over.
    pub again_ms: u32,
    pub loudness: Mean,
    /// Since the voice was last heard.
    pub silence_ms: u32,
    pub is_cut: bool,
    pub text: String,
    pub told: Told,
    pub is_asked: bool,
    /// How often that was.
    pub asks: u32,
    pub claim: Claim,
    /// The words that were given when it seemed to be over, while it does.
    pub given: Option<String>,
    /// How often that was.
    pub provisionals: u32,
    /// A provider that detects turns says that it seems to be over,
    pub seems_over: bool,
    /// or that it is.
    pub is_over: bool,
}

impl Turn {
    pub fn new() -> Self {
        Turn {
            voice_ms: 0,
            since_ms: 0,
            untold_ms: 0,
            again_ms: 0,
            loudness: Mean::default(),
            silence_ms: 0,
            is_cut: false,
            text: String::new(),
            told: Told::Nothing,
            is_asked: false,
            asks: 0,
            claim: Claim::No,
            given: None,
            provisionals: 0,
            seems_over: false,
            is_over: false,
        }
    }

    pub fn tell(&mut self, text: String, told: Told) {
        self.text = text;
        self.told = told;
        self.untold_ms = 0;
    }

    /// Words of a part that was asked for before the voice went on. Of what came since nothing is known, so it stays untold; and a
    /// provider that told more meanwhile knows better.
    pub fn tell_part(&mut self, text: String) {
        if words::count(&text) >= words::count(&self.text) {
            self.text = text;
        }
        self.told = Told::Partly;
    }

    pub fn is_known(&self) -> bool {
        matches!(self.told, Told::All | Told::Failed)
    }

    /// What it ends with was asked for and is not there yet.
    pub fn awaits(&self, ears: Ears) -> bool {
        self.is_asked && !self.is_known() && ears != Ears::None
    }

    /// It does not seem to be over any more.
    pub fn take_back(&mut self, out: &mut Vec<Output>) {
        if self.given.take().is_some() {
            out.push(Output::Void);
        }
    }

    /// The same, if these are other words than those that were given.
    pub fn compare(&mut self, text: &str, out: &mut Vec<Output>) {
        if self.given.as_ref().is_some_and(|given| !words::same(given, text)) {
            self.take_back(out);
        }
    }
}
