//! The shell's bindings for SMS and e-mails.
use super::Sendable;
use crate::{deps::Deps, shell::Stored};
use entities::{Result, ids::Owned};
use rules::commit::Commit;

impl<M: Sendable> Stored for M {
    async fn load(deps: &Deps, key: Owned<M::Id>) -> Result<Self> {
        <M as Sendable>::load(&deps.db, key).await
    }
    fn save(&mut self, commit: &mut Commit) {
        *self.moved().version += 1;
        M::rows(commit).push(self.clone());
    }
}
