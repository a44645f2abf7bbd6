//! The shell's bindings for SMS.
use crate::{deps::Deps, shell::Stored};
use entities::{
    Result,
    ids::{Owned, SmsId},
    sms_message::{self, Model},
};
use rules::commit::Commit;

impl Stored for Model {
    async fn load(deps: &Deps, id: Owned<SmsId>) -> Result<Self> {
        sms_message::load(&deps.db.read, id).await
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.sms_messages.push(self.clone());
    }
}
