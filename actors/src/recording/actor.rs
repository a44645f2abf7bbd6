//! The shell's bindings for recordings.
use crate::{deps::Deps, shell::Stored};
use entities::{
    Result,
    ids::{RecordingId, TenantScoped},
    recording::{self, Model},
};
use rules::commit::Commit;

impl Stored for Model {
    async fn load(deps: &Deps, id: TenantScoped<RecordingId>) -> Result<Self> {
        recording::load(&deps.db.read, id).await
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.recordings.push(self.clone());
    }
}
