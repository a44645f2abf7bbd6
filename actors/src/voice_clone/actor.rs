//! The shell's bindings for cloned voices.
use super::machine::Voice;
use crate::{commit::Commit, deps::Deps, shell::Stored};
use entities::{
    Result,
    ids::{Owned, VoiceId},
    voice,
};

impl Stored for Voice {
    async fn load(deps: &Deps, id: Owned<VoiceId>) -> Result<Self> {
        Ok(Voice {
            row: voice::load_even_deleted(&deps.db.read, id).await?,
            training_seconds: deps.cloning.training_seconds,
        })
    }
    fn save(&mut self, commit: &mut Commit) {
        self.row.version += 1;
        commit.changes.voices.push(self.row.clone());
    }
}
