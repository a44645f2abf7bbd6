//! The shell's bindings for cloned voices.
use super::machine::{self, Command, Voice};
use crate::{deps::Deps, effect::Effect, shell::Stored, writer::Commit};
use entities::{
    Result,
    ids::{Owned, VoiceId},
    values::Moment,
    voice,
};

impl Stored for Voice {
    type Key = VoiceId;
    type Command = Command;
    const KIND: &'static str = "voice";
    const TICK: Command = Command::Tick;

    async fn load(deps: &Deps, id: Owned<VoiceId>) -> Result<Self> {
        Ok(Voice {
            row: voice::load_even_deleted(&deps.db.read, id).await?,
            training_seconds: deps.cloning.training_seconds,
        })
    }
    fn owner(&self) -> Owned<VoiceId> {
        self.row.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        machine::transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        machine::next_deadline(self)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.row.version += 1;
        commit.changes.voices.push(self.row.clone());
    }
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
    fn version(&self) -> i32 {
        self.row.version
    }
}
