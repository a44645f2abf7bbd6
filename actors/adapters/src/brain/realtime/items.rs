//! Items of the provider's conversation: what became of the sound that was put in, to remove it again.
use std::collections::VecDeque;

/// Commits that are remembered: those of the last turns.
const REMEMBERED: usize = 64;

/// Which item.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemRef {
    /// That of the commit of this number.
    Commit(u64),
    Id(String),
}

/// The items that became of commits. The provider tells in their order.
#[derive(Debug, Default)]
pub struct Commits {
    /// How many it has answered.
    answered: u64,
    /// The last of them; `None`: it was refused.
    ids: VecDeque<Option<String>>,
}

impl Commits {
    /// The next was taken, or refused.
    pub fn answer(&mut self, id: Option<String>) {
        self.answered += 1;
        self.ids.push_back(id);
        if self.ids.len() > REMEMBERED {
            self.ids.pop_front();
        }
    }

    /// The number of the last that was answered.
    pub fn last(&self) -> Option<u64> {
        self.answered.checked_sub(1)
    }

    pub fn is_answered(&self, number: u64) -> bool {
        number < self.answered
    }

    pub fn id(&self, number: u64) -> Option<&str> {
        let back = usize::try_from(self.answered.checked_sub(number)?).ok()?;
        let place = self.ids.len().checked_sub(back)?;
        self.ids.get(place)?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_remembered_in_their_order() {
        let mut commits = Commits::default();
        assert!(!commits.is_answered(0) && commits.last().is_none());
        commits.answer(Some("a".into()));
        commits.answer(None);
        commits.answer(Some("c".into()));
        assert_eq!([0, 1, 2, 3].map(|n| commits.is_answered(n)), [true, true, true, false]);
        assert_eq!([0, 1, 2, 3].map(|n| commits.id(n)), [Some("a"), None, Some("c"), None]);
        assert_eq!(commits.last(), Some(2));
        for n in 0..62 {
            commits.answer(Some(n.to_string()));
        }
        assert_eq!(
            (commits.id(0), commits.id(2), commits.id(64)),
            (None, Some("c"), Some("61"))
        );
    }
}
