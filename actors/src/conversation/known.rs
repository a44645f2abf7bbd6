//! What is known of the words of an utterance while it is heard, and after: they may come later than their sound.
use super::parts::Parts;
use crate::voice::speech_input::UNKNOWN;
use futures_util::future::pending;
use rules::conversation::guard;
use tokio::sync::watch;

/// Characters more than were told last that are told before a sentence is complete: a page keeps so many captions and no more.
const NEWS: usize = 40;

/// Of one utterance.
pub struct Known {
    pub parts: Parts,
    /// Its turn's.
    pub place: usize,
    /// So far.
    pub text: String,
    /// What the session was told of it.
    told: String,
    words: Option<watch::Receiver<String>>,
    is_live: bool,
}

impl Known {
    pub fn of(parts: &Parts, words: Option<watch::Receiver<String>>, is_live: bool, place: usize) -> Self {
        let mut known = Known {
            parts: parts.clone(),
            place,
            text: parts.text(),
            told: String::new(),
            words,
            is_live,
        };
        known.look();
        known.told.clone_from(&known.text);
        known
    }

    fn look(&mut self) {
        let Some(words) = &mut self.words else { return };
        self.text = clean(&words.borrow_and_update());
        if self.is_live {
            self.parts.reword(&self.text);
        }
    }

    /// Resolves when more is known, and never if nothing more comes. May be dropped and called again.
    pub async fn changed(&mut self) {
        let more = match &mut self.words {
            Some(words) => words.changed().await.is_ok(),
            None => false,
        };
        if !more {
            return pending().await;
        }
        self.look();
    }

    /// What is to be told while more comes: whole sentences, and parts of long ones.
    pub fn enough_news(&mut self) -> Option<String> {
        let ends = self.text.ends_with(|last: char| ".!?…。？！".contains(last));
        let grown = self.text.chars().count() >= self.told.chars().count() + NEWS;
        if !ends && !grown { None } else { self.news() }
    }

    /// What was not told yet: all words so far.
    pub fn news(&mut self) -> Option<String> {
        self.look();
        if self.text == self.told {
            return None;
        }
        self.told.clone_from(&self.text);
        Some(self.text.clone())
    }

    /// Whose words may come after its sound.
    pub fn later(self) -> Option<Later> {
        let Known {
            place,
            told,
            words,
            is_live,
            ..
        } = self;
        let words = words.filter(|_| is_live)?;
        Some(Later { place, told, words })
    }
}

/// Words of something that was heard.
#[derive(Debug)]
pub struct Later {
    pub place: usize,
    told: String,
    words: watch::Receiver<String>,
}

impl Later {
    /// Those that are known by now.
    pub fn text(&self) -> String {
        clean(&self.words.borrow())
    }

    /// What was not told, when all of them are there; the same as of the other side if nobody knows any.
    pub fn news(&self) -> Option<String> {
        let mut text = self.text();
        if text.is_empty() {
            UNKNOWN.clone_into(&mut text);
        }
        (text != self.told).then_some(text)
    }
}

fn clean(words: &str) -> String {
    guard::clean(words.trim(), guard::MAX_WORDS)
}
