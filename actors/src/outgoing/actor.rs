//! The shell's bindings for SMS and e-mails.
use super::Sendable;
use crate::{birth::Born, deps::Deps, router::Mailbox, shell::Stored};
use entities::{Result, ids::TenantScoped};
use rules::commit::Commit;

impl<M: Sendable> Stored for M {
    async fn load(deps: &Deps, key: TenantScoped<M::Id>) -> Result<Self> {
        <M as Sendable>::load(&deps.db, key).await
    }
    fn save(&mut self, commit: &mut Commit) {
        *self.moved().version += 1;
        M::rows(commit).push(self.clone());
    }
}

impl<M: Sendable> Born for M {
    fn insert(&self, commit: &mut Commit) {
        M::rows(commit).push(self.clone());
    }
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self> {
        <M as Sendable>::mailbox(deps)
    }
}
