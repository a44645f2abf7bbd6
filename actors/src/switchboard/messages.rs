//! Messages that are spoken to callers whom no agent takes: they have no slot, but they have ports.
use entities::ids::TenantId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Callers at once who hear one; more are told that it is busy. Of one workspace a quarter of them.
const MOST_AT_ONCE: usize = 50;
const MOST_OF_WORKSPACE: usize = MOST_AT_ONCE / 4;

/// Those that are being spoken, by whose they are.
#[derive(Default)]
pub struct Messages(Mutex<Vec<TenantId>>);

impl Messages {
    fn lock(&self) -> MutexGuard<'_, Vec<TenantId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, until that is dropped. `None`: there is no room.
    pub fn begin(self: &Arc<Self>, workspace: TenantId) -> Option<BeingSpoken> {
        let mut all = self.lock();
        let its = all.iter().filter(|other| **other == workspace).count();
        if its >= MOST_OF_WORKSPACE || all.len() >= MOST_AT_ONCE {
            return None;
        }
        all.push(workspace);
        Some(BeingSpoken {
            messages: self.clone(),
            workspace,
        })
    }
}

pub struct BeingSpoken {
    messages: Arc<Messages>,
    workspace: TenantId,
}

impl Drop for BeingSpoken {
    fn drop(&mut self) {
        let mut all = self.messages.lock();
        if let Some(at) = all.iter().position(|other| *other == self.workspace) {
            all.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn one_workspace_does_not_take_the_messages_of_all() {
        let messages = Arc::new(Messages::default());
        let workspace = |n| TenantId(Uuid::from_u128(n));
        let begin = |n: u128| messages.begin(workspace(n));
        let mut spoken: Vec<_> = (0..MOST_OF_WORKSPACE).map(|_| begin(1)).collect();
        assert!(spoken.iter().all(Option::is_some) && begin(1).is_none());
        spoken.extend((2..=4).flat_map(|n| (0..MOST_OF_WORKSPACE).map(move |_| n)).map(begin));
        assert!(spoken.iter().all(Option::is_some));
        // For all of them together there are two more.
        spoken.extend([begin(5), begin(6)]);
        assert!(spoken.iter().all(Option::is_some) && begin(7).is_none());
        // One that is over gives its room back, to anybody who has not all of his own.
        spoken.remove(0);
        assert!(begin(2).is_none(), "it has all of its own");
        for n in [7, 1] {
            assert!(begin(n).is_some(), "{n}");
        }
    }
}
