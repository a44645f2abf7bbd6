//! What a model's own transcription understands of what was said to it: which words are those of which utterance.
//!
//! They come whenever they like, in any order, also while nobody thinks: whoever reads the socket notes them (`link`), and a task of
//! its own hands them out, one by one in the order of the utterances.
use super::{
    items::Commits,
    protocol::{Event, is_of_a_commit},
};
use crate::{brain::OwnWords, pause::until};
use rules::conversation::guard;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

/// Items whose words are remembered.
const MOST_TEXTS: usize = 64;
/// Utterances whose words nobody has taken. Who is further behind gets none any more.
const MOST_UTTERANCES: usize = 64;

/// Of one connection. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Ear(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    notes: Mutex<Notes>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    /// Somebody takes them.
    is_wanted: bool,
    /// Nothing more becomes known.
    is_over: bool,
    /// Nothing more is handed out.
    is_closed: bool,
    commits: Commits,
    texts: VecDeque<Text>,
    utterances: VecDeque<Utterance>,
    /// How many there were.
    begun: u64,
}

/// What is understood of an item.
#[derive(Debug)]
struct Text {
    item_id: String,
    words: String,
    is_done: bool,
}

#[derive(Debug)]
struct Utterance {
    /// From 1.
    number: u64,
    /// The numbers of the commits that it is; `None`: it is not all put in.
    commits: Option<Vec<u64>>,
    /// Then what is known counts.
    by: Instant,
}

impl Notes {
    fn text(&mut self, item_id: &str) -> &mut Text {
        let known = self.texts.iter().position(|text| text.item_id == item_id);
        let at = known.unwrap_or_else(|| {
            if self.texts.len() >= MOST_TEXTS {
                self.texts.pop_front();
            }
            self.texts.push_back(Text {
                item_id: item_id.to_owned(),
                words: String::new(),
                is_done: false,
            });
            self.texts.len() - 1
        });
        &mut self.texts[at]
    }

    /// `None`: they may still become known.
    fn words(&self, utterance: &Utterance, now: Instant) -> Option<String> {
        let is_late = self.is_over || now >= utterance.by;
        let Some(commits) = &utterance.commits else {
            return is_late.then(String::new);
        };
        let mut all: Vec<&str> = Vec::new();
        for number in commits {
            if !self.commits.is_answered(*number) && !is_late {
                return None;
            }
            // One that was refused has none.
            let Some(id) = self.commits.id(*number) else { continue };
            match self.texts.iter().find(|text| text.item_id == id) {
                Some(text) if text.is_done || is_late => all.push(text.words.trim()),
                None if is_late => {}
                Some(_) | None => return None,
            }
        }
        Some(guard::clean(&all.join(" "), guard::MAX_WORDS).trim().to_owned())
    }

    /// All that can be handed out.
    fn take(&mut self, now: Instant) -> Vec<String> {
        let mut known = Vec::new();
        while let Some(words) = self.utterances.front().and_then(|next| self.words(next, now)) {
            self.utterances.pop_front();
            known.push(words);
        }
        known
    }
}

impl Ear {
    /// Where the words come out. Asked for once.
    pub fn hand_out(&self) -> Option<mpsc::Receiver<OwnWords>> {
        if std::mem::replace(&mut self.notes().is_wanted, true) {
            return None;
        }
        let (words, handed_out) = mpsc::channel(MOST_UTTERANCES);
        tokio::spawn(hand_out(self.clone(), words));
        Some(handed_out)
    }

    /// Something was said: its words are known by then, or not at all.
    pub fn begin(&self, by: Instant) {
        self.change(|notes| {
            if notes.is_wanted && !notes.is_closed {
                notes.is_closed = notes.utterances.len() >= MOST_UTTERANCES;
                notes.begun += 1;
                notes.utterances.push_back(Utterance {
                    number: notes.begun,
                    commits: None,
                    by,
                });
            }
        });
    }

    /// What was said last is all put in, as the commits of these numbers.
    pub fn put_in(&self, commits: &[u64]) {
        self.change(|notes| {
            if let Some(last) = notes.utterances.back_mut() {
                last.commits.get_or_insert_with(|| commits.to_vec());
            }
        });
    }

    /// What was said last was never said. Too late where its words are handed out.
    pub fn take_back(&self) {
        self.change(|notes| {
            if notes.utterances.back().is_some_and(|last| last.number == notes.begun) {
                notes.utterances.pop_back();
            }
        });
    }

    /// Nothing more becomes known.
    pub fn end(&self) {
        self.change(|notes| notes.is_over = true);
    }

    pub fn note(&self, event: &Event) {
        match event {
            Event::Committed { item_id } => self.change(|notes| notes.commits.answer(item_id.clone())),
            Event::Error { error } if is_of_a_commit(error) => {
                self.change(|notes| notes.commits.answer(None));
            }
            Event::InputDelta {
                item_id: Some(id),
                delta,
            } => self.change(|notes| {
                let text = notes.text(id);
                let delta = delta.as_deref().unwrap_or_default();
                if !text.is_done && text.words.len() + delta.len() <= 4 * guard::MAX_WORDS {
                    text.words.push_str(delta);
                }
            }),
            Event::InputWords {
                item_id: Some(id),
                transcript,
            } => self.know(id, transcript.as_deref().unwrap_or_default()),
            Event::InputFailed { item_id: Some(id) } => {
                tracing::debug!("a model's own transcription failed");
                self.know(id, "");
            }
            _ => {}
        }
    }

    fn know(&self, item_id: &str, words: &str) {
        self.change(|notes| {
            let text = notes.text(item_id);
            text.words = words.chars().take(guard::MAX_WORDS).collect();
            text.is_done = true;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes());
        self.0.changed.notify_one();
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What can be handed out, and when there may be more; `None`: that was all.
    fn known(&self) -> (Vec<String>, Option<Option<Instant>>) {
        let mut notes = self.notes();
        let known = notes.take(Instant::now());
        let next = notes.utterances.front().map(|next| next.by);
        (known, (!notes.is_closed).then_some(next))
    }
}

/// Until nobody takes them.
async fn hand_out(ear: Ear, handed_out: mpsc::Sender<OwnWords>) {
    loop {
        let (known, next) = ear.known();
        for words in known {
            if handed_out.send(OwnWords { words }).await.is_err() {
                return;
            }
        }
        let Some(next) = next else { return };
        tokio::select! {
            () = ear.0.changed.notified() => {}
            () = until(next) => {}
            () = handed_out.closed() => return,
        }
    }
}
