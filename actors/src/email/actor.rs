//! The shell's bindings for e-mails.
use crate::{deps::Deps, shell::Stored};
use entities::{
    Result,
    email_message::{self, Model},
    ids::{EmailId, Owned},
};
use rules::commit::Commit;

impl Stored for Model {
    async fn load(deps: &Deps, id: Owned<EmailId>) -> Result<Self> {
        email_message::load(&deps.db.read, id).await
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.email_messages.push(self.clone());
    }
}
