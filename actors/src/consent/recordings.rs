//! Recordings that prove consents: while the law wants a consent kept, what proves it is kept with it.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed, consent,
    ids::{RecordingId, TenantScoped},
    values::{Env, Moment},
};
use rules::consent::kept;

/// Until when it must be kept; none: it proves no consent, or none that must.
#[boxed]
pub async fn proves_until(deps: &Deps, key: TenantScoped<RecordingId>) -> Result<Option<Moment>> {
    if key.env == Env::Test {
        return Ok(None);
    }
    let (db, times) = (&deps.db.read, deps.clock.times());
    let mut until = None;
    for row in consent::proved_by(db, key).await? {
        let kept = kept::kept_until(row.given_at, consent::last_used(db, row.key()).await?);
        if !kept::may_go(key.env, kept, times) {
            until = until.max(Some(kept));
        }
    }
    Ok(until)
}

/// Errors: somebody wants it gone, and it must be kept.
#[boxed]
pub async fn check_proves_none(deps: &Deps, key: TenantScoped<RecordingId>) -> Result<()> {
    match proves_until(deps, key).await? {
        None => Ok(()),
        Some(until) => Err(Error::InUse(format!(
            "its recording proves a consent (recording_id) that the law wants kept until {until}, and is kept with it"
        ))),
    }
}
