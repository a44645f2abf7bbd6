//! The shell's bindings for cloned voices.
use crate::{deps::Deps, shell::Stored};
use entities::{
    Result,
    ids::{TenantScoped, VoiceId},
    voice,
};
use rules::{commit::Commit, voice_clone::machine::Voice};

impl Stored for Voice {
    async fn load(deps: &Deps, id: TenantScoped<VoiceId>) -> Result<Self> {
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
