//! What was said, in its order, until the talk takes it: some of it waits for its words.
use super::{
    last_words::UNKNOWN,
    user_input::{Said, Understood, Unsettled, UserInput},
};
use runtime::clock::Busy;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Utterances and keys that wait; more are not taken in meanwhile.
pub const WAITING: usize = 32;
/// Of these, keys only up to so many: they leave room for words.
const KEYS_WAITING: usize = 16;

/// What waits for words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The utterance of that number.
    Speech(u64),
    Aside,
}

enum Slot {
    Ready(UserInput, Option<Busy>),
    /// Its own words are those that were told of it so far, if any.
    Awaited {
        turn: u64,
        of: Of,
        said: Said,
        busy: Busy,
    },
}

#[derive(Default)]
pub struct Outbox {
    slots: VecDeque<Slot>,
    /// Turns that were given before their words.
    late: Vec<Late>,
}

struct Late {
    turn: u64,
    /// Its words so far.
    so_far: String,
    tell: oneshot::Sender<Understood>,
    busy: Busy,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.late.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.slots.len() + self.late.len() >= WAITING
    }

    pub fn push(&mut self, input: UserInput, busy: Option<Busy>) {
        self.slots.push_back(Slot::Ready(input, busy));
    }

    pub fn press(&mut self, keys: String) {
        if self.slots.len() < KEYS_WAITING {
            self.push(UserInput::Dtmf(keys), None);
        }
    }

    /// It follows when its words are known.
    pub fn wait(&mut self, turn: u64, of: Of, said: Said, busy: Busy) {
        self.slots.push_back(Slot::Awaited { turn, of, said, busy });
    }

    /// Somebody has it, and gets its words when they are known.
    pub fn promise(&mut self, turn: u64, so_far: String, tell: oneshot::Sender<Understood>, busy: Busy) {
        self.late.push(Late {
            turn,
            so_far,
            tell,
            busy,
        });
    }

    /// The words of a turn that waits for them; none: no more of it was understood than was told so far. Answers the utterance's
    /// number, where words were all that it waited for.
    pub fn resolve(&mut self, turn: u64, words: Option<String>) -> Option<u64> {
        if let Some(at) = self.late.iter().position(|late| late.turn == turn) {
            let Late { so_far, tell, busy, .. } = self.late.remove(at);
            let words = known(words, so_far).unwrap_or_else(|| UNKNOWN.to_owned());
            // The talk may be over.
            let _ = tell.send(Understood { words, busy });
            return None;
        }
        let is_it = |slot: &Slot| matches!(slot, Slot::Awaited { turn: awaited, .. } if *awaited == turn);
        let at = self.slots.iter().position(is_it)?;
        let Some(Slot::Awaited { of, said, busy, .. }) = self.slots.remove(at) else {
            return None;
        };
        let number = match of {
            Of::Speech(number) => words.as_ref().map(|_| number),
            Of::Aside => None,
        };
        if let Some(input) = understood(of, said, words) {
            self.slots.insert(at, Slot::Ready(input, Some(busy)));
        }
        number
    }

    /// The next can be taken.
    pub fn is_ready(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::Ready(..)))
    }

    /// Those that nobody has taken, as far as they are known.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.slots.iter().filter_map(|slot| match slot {
            // What went on is a part of what follows.
            Slot::Ready(UserInput::Speech { unsettled, .. }, _)
                if unsettled.as_ref().is_some_and(Unsettled::is_void) =>
            {
                None
            }
            Slot::Ready(UserInput::Dtmf(_), _) => None,
            Slot::Ready(UserInput::Speech { said, .. } | UserInput::Aside(said), _) | Slot::Awaited { said, .. } => {
                Some(said.speech.text.as_str())
            }
        });
        words.chain(self.late.iter().map(|late| late.so_far.as_str()))
    }

    /// Keys that nobody has taken.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Ready(UserInput::Dtmf(keys), _) => Some(keys.as_str()),
            Slot::Ready(UserInput::Speech { .. } | UserInput::Aside(_), _) | Slot::Awaited { .. } => None,
        })
    }

    /// Keys that nobody listens to are forgotten: they leave room for words.
    pub fn drop_keys(&mut self) {
        while self
            .slots
            .pop_front_if(|slot| matches!(slot, Slot::Ready(UserInput::Dtmf(_), _)))
            .is_some()
        {}
    }

    /// What is ready; what goes with it is under way until it was handed on.
    pub fn take(&mut self) -> Option<(UserInput, Option<Busy>)> {
        match self.slots.pop_front()? {
            Slot::Ready(input, busy) => Some((input, busy)),
            awaited @ Slot::Awaited { .. } => {
                self.slots.push_front(awaited);
                None
            }
        }
    }
}

/// What is known of a turn: what was told of it so far is better than nothing.
fn known(words: Option<String>, so_far: String) -> Option<String> {
    words.or((!so_far.is_empty()).then_some(so_far))
}

/// What becomes of it with these words, or else with its own; of an aside without any nothing does.
pub fn understood(of: Of, mut said: Said, words: Option<String>) -> Option<UserInput> {
    let words = known(words, std::mem::take(&mut said.speech.text));
    let is_empty = words.as_ref().is_none_or(String::is_empty);
    said.speech.text = words.unwrap_or_else(|| UNKNOWN.to_owned());
    match of {
        Of::Speech(number) => Some(UserInput::Speech {
            number,
            said,
            later: None,
            unsettled: None,
        }),
        Of::Aside => (!is_empty).then_some(UserInput::Aside(said)),
    }
}
