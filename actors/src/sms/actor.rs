//! The shell's bindings for SMS.
use super::machine::{self, Command};
use crate::{deps::Deps, effect::Effect, shell::Stored, writer::Commit};
use entities::{
    Result,
    ids::{Owned, SmsId},
    sms_message::{self, Model, Phase},
    values::Moment,
};

impl Stored for Model {
    type Key = SmsId;
    type Command = Command;
    const KIND: &'static str = "sms";
    const TICK: Command = Command::Tick;

    async fn load(deps: &Deps, id: Owned<SmsId>) -> Result<Self> {
        sms_message::load(&deps.db.read, id).await
    }
    fn owner(&self) -> Owned<SmsId> {
        self.key()
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        machine::transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        machine::next_deadline(self)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.sms_messages.push(self.clone());
    }
    /// That its sender has it in hand is forgotten with a crash: it is due again at the next start.
    fn differs(&self, before: &Self) -> bool {
        let only_waits = self.phase == Phase::Queued && before.phase == Phase::Queued;
        let wake_at = if only_waits { before.wake_at } else { self.wake_at };
        Model {
            wake_at,
            ..self.clone()
        } != *before
    }
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
    fn version(&self) -> i32 {
        self.version
    }
}
