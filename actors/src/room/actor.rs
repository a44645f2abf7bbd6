//! The shell's bindings for rooms.
use crate::{deps::Deps, shell::Stored};
use entities::{
    Result,
    ids::{RoomId, TenantScoped},
    room,
};
use rules::{commit::Commit, room::machine::Room};

impl Stored for Room {
    async fn load(deps: &Deps, id: TenantScoped<RoomId>) -> Result<Self> {
        Self::from_row(room::load(&deps.db.read, id).await?)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.rooms.push(self.row());
    }
}
