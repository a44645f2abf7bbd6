//! A room that has ended goes, and what was said in it. What it cost and its events stay.
use crate::{deps::Deps, session};
use entities::{Error, Result, boxed, room::Model, session as talks};
use rules::room::machine::Command;

/// `InvalidState`: it has not ended.
#[boxed]
pub async fn erase(deps: &Deps, row: &Model) -> Result<()> {
    if row.ended_at.is_none() {
        return Err(Error::InvalidState {
            kind: "room",
            state: "open",
            command: "be deleted",
            hint: "end it first",
        });
    }
    // The talk first: a crash in between leaves a room that can be erased again.
    match talks::load(&deps.db.read, row.session()).await {
        Ok(call) => session::erase(deps, &call).await?,
        Err(Error::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    deps.router.rooms().request(row.key(), Command::Delete).await?;
    Ok(())
}
