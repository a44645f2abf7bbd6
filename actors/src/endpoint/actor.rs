//! The shell's bindings for webhook endpoints.
use super::machine::{self, Command};
use crate::{deps::Deps, effect::Effect, shell::Stored, writer::Commit};
use entities::{
    Result,
    ids::{EndpointId, Owned},
    values::Moment,
    webhook_endpoint::Model as Endpoint,
};

impl Stored for Endpoint {
    type Key = EndpointId;
    type Command = Command;
    const KIND: &'static str = "endpoint";
    const TICK: Command = Command::Tick;

    async fn load(deps: &Deps, id: Owned<EndpointId>) -> Result<Self> {
        entities::webhook_endpoint::load(&deps.db.read, id).await
    }
    fn owner(&self) -> Owned<EndpointId> {
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
        commit.changes.endpoints.push(self.clone());
    }
    fn version(&self) -> i32 {
        self.version
    }
    /// Settings change rarely: read them when they do. A secret that signs along must be forgotten in time.
    fn is_at_rest(&self) -> bool {
        self.next_deadline().is_none()
    }
}
