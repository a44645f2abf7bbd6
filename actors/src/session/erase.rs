//! What was said in a call is removed. What it cost and its events stay.
use crate::{consent::recordings::proves_until, deps::Deps};
use entities::{Error, Result, boxed, ids::TenantScoped, session::Model};
use rules::{recording::machine::Command as RecordingCommand, session::command::Command};

/// Of a call that has ended, with its sound, unless that proves a consent. A second time is no change.
#[boxed]
pub async fn erase(deps: &Deps, row: &Model) -> Result<()> {
    // The sound first: a crash in between leaves a session that can be erased again.
    let sound = row.recording_id.map(|id| TenantScoped::new(row.tenant_id, row.env, id));
    if let Some(key) = sound
        && proves_until(deps, key).await?.is_none()
    {
        match deps.router.recordings().request(key, RecordingCommand::Delete).await {
            Ok(_) | Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    deps.router.sessions().request(row.key(), Command::Delete).await?;
    Ok(())
}
