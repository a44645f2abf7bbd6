//! The shell's bindings for recordings.
use super::machine::{self, Command};
use crate::{deps::Deps, effect::Effect, shell::Stored, writer::Commit};
use entities::{
    Result,
    ids::{Owned, RecordingId},
    recording::{self, Model},
    values::Moment,
};

impl Stored for Model {
    type Key = RecordingId;
    type Command = Command;
    const KIND: &'static str = "recording";
    const TICK: Command = Command::Tick;

    async fn load(deps: &Deps, id: Owned<RecordingId>) -> Result<Self> {
        recording::load(&deps.db.read, id).await
    }
    fn owner(&self) -> Owned<RecordingId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        Ok(machine::transition(self, command, now))
    }
    fn next_deadline(&self) -> Option<Moment> {
        machine::next_deadline(self)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.recordings.push(self.clone());
    }
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
    fn version(&self) -> i32 {
        self.version
    }
}
