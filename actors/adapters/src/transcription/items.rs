//! What OpenAI's Realtime API makes of commits: items, which are confirmed in their order, and whose words come in any.
use super::{dialect::Heard, turn::Piece};
use crate::speech::SpeechError;
use rules::conversation::guard;
use std::{collections::VecDeque, mem};

/// Items without an answer, of which nobody wants one; and in all.
const MOST_DROPPED: usize = 16;
const MOST_ITEMS: usize = 64;
/// Names of items that are over.
const MOST_OVER: usize = 32;

/// Sound between two commits, and what is known of it.
#[derive(Debug, Default)]
struct Item {
    from: u64,
    to: u64,
    /// What the provider calls it; by a guess until it is confirmed.
    id: Option<String>,
    is_confirmed: bool,
    is_committed: bool,
    words: String,
    outcome: Option<Result<(), SpeechError>>,
    is_dropped: bool,
}

impl Item {
    fn at(from: u64) -> Self {
        Item {
            from,
            ..Item::default()
        }
    }
}

#[derive(Debug, Default)]
pub struct Items {
    /// In the order of the sound.
    committed: VecDeque<Item>,
    /// Not committed.
    open: Item,
    /// Names of items that are over: what still comes of them is nobody's.
    over: VecDeque<String>,
}

impl Items {
    /// What is not committed becomes an item.
    pub fn commit(&mut self, at: u64) {
        let item = mem::replace(&mut self.open, Item::at(at));
        self.committed.push_back(Item {
            to: at,
            is_committed: true,
            ..item
        });
    }

    /// The provider has made an item of a commit; of ours, or, `true`, by itself.
    pub fn confirm(&mut self, id: String, at: u64) -> Result<bool, SpeechError> {
        let by_itself = self.committed.iter().all(|item| item.is_confirmed);
        if by_itself {
            if self.is_full() {
                return Err(SpeechError::TooLong);
            }
            self.commit(at);
        }
        if let Some(item) = self.committed.iter_mut().find(|item| !item.is_confirmed) {
            if item.id.as_ref() != Some(&id) {
                item.words.clear();
            }
            item.id = Some(id);
            item.is_confirmed = true;
        }
        Ok(by_itself)
    }

    /// The item of that name. Words may come before it is confirmed: then it is the first that has no name.
    fn named(&mut self, id: &str) -> Option<&mut Item> {
        let has_it = |item: &Item| item.id.as_deref() == Some(id);
        let by_name = self.committed.iter().position(has_it);
        if by_name.is_none() && self.over.iter().any(|over| over == id) {
            return None;
        }
        let is_open = by_name.is_none() && has_it(&self.open);
        let place = match by_name {
            None if !is_open => self.committed.iter().position(|item| item.id.is_none()),
            known => known,
        };
        let item = match place {
            Some(at) => &mut self.committed[at],
            None if is_open || self.open.id.is_none() => &mut self.open,
            None => return None,
        };
        item.id.get_or_insert_with(|| id.to_owned());
        Some(item)
    }

    pub fn delta(&mut self, id: &str, delta: &str, at: u64) -> Option<Heard> {
        let item = self
            .named(id)
            .filter(|item| !item.is_dropped && item.outcome.is_none())?;
        item.words.push_str(delta);
        item.words = item.words.chars().take(guard::MAX_WORDS).collect();
        let to = if item.is_committed { item.to } else { at };
        Some(Heard::Words(Piece {
            from: item.from,
            to,
            text: item.words.clone(),
            is_done: false,
        }))
    }

    /// In the order of the sound, whichever comes first.
    pub fn outcomes(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        while let Some(at) = self
            .committed
            .iter()
            .position(|item| !item.is_dropped || item.outcome.is_some())
        {
            if self.committed[at].outcome.is_none() {
                break;
            }
            let Some(item) = self.committed.remove(at) else { break };
            let Item {
                from,
                to,
                words,
                outcome,
                is_dropped,
                id,
                ..
            } = item;
            self.end(id);
            match outcome {
                _ if is_dropped => {}
                Some(Err(error)) => heard.push(Heard::Lost { from, to, error }),
                _ => heard.push(Heard::Words(Piece {
                    from,
                    to,
                    text: words,
                    is_done: true,
                })),
            }
        }
        heard
    }

    fn end(&mut self, id: Option<String>) {
        if self.over.len() >= MOST_OVER {
            self.over.pop_front();
        }
        self.over.extend(id);
    }

    /// What became of an item; without a name, of the commit that was refused.
    pub fn conclude(&mut self, id: Option<&str>, outcome: Result<Option<String>, SpeechError>) -> Vec<Heard> {
        let place = match id {
            Some(id) => self.named(id),
            None => self.committed.iter_mut().find(|item| !item.is_confirmed),
        };
        if let Some(item) = place.filter(|item| item.is_committed) {
            item.is_confirmed = true;
            let words = outcome.map(|words| words.unwrap_or_default());
            item.outcome = Some(words.map(|words| item.words = words));
        }
        self.outcomes()
    }

    /// Nobody wants what is after `from`, up to `at`. Those that are not confirmed stay, for the next confirmation is the first one's:
    /// fails where there are too many.
    pub fn discard(&mut self, from: u64, at: u64) -> Result<(), SpeechError> {
        for item in self.committed.iter_mut().filter(|item| item.from >= from) {
            item.is_dropped = true;
        }
        let open = mem::replace(&mut self.open, Item::at(at));
        self.end(open.id);
        while self.committed.iter().filter(|item| item.is_dropped).count() > MOST_DROPPED {
            let mut items = self.committed.iter();
            let oldest = items.position(|item| item.is_dropped && item.is_confirmed);
            let oldest = oldest.and_then(|at| self.committed.remove(at));
            self.end(oldest.ok_or(SpeechError::TooLong)?.id);
        }
        Ok(())
    }

    pub fn is_full(&self) -> bool {
        self.committed.len() >= MOST_ITEMS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(from: u64, to: u64, text: &str) -> Heard {
        Heard::Words(Piece {
            from,
            to,
            text: text.into(),
            is_done: true,
        })
    }

    /// A provider that is behind with its confirmations.
    #[test]
    fn what_is_forgotten_is_confirmed_all_the_same() {
        let mut items = Items::default();
        let most = MOST_DROPPED as u64;
        for at in 0..most {
            items.commit(at + 1);
            items.discard(at, at + 1).unwrap();
        }
        items.commit(most + 1);
        for at in 0..=most {
            assert_eq!(items.confirm(format!("item-{at}"), 0), Ok(false), "{at}");
        }
        let told = items.conclude(Some(&format!("item-{most}")), Ok(Some("Yes.".into())));
        assert_eq!(told, [words(most, most + 1, "Yes.")]);
    }

    #[test]
    fn of_what_is_forgotten_only_so_much_is_kept() {
        let mut items = Items::default();
        for at in 0..100 {
            items.commit(at + 1);
            items.confirm(format!("item-{at}"), 0).unwrap();
            items.discard(at, at + 1).unwrap();
        }
        assert_eq!(items.committed.len(), MOST_DROPPED);
        for at in 100..100 + MOST_DROPPED as u64 {
            items.commit(at + 1);
            items.discard(at, at + 1).unwrap();
        }
        items.commit(1_000);
        let last = 100 + MOST_DROPPED as u64;
        assert_eq!(items.discard(last, 1_000), Err(SpeechError::TooLong));
    }
}
