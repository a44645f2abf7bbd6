//! A session with all that belongs to it, in one transaction.
use crate::{
    answer, boxed,
    connection::Transaction,
    dial,
    error::Result,
    evaluation,
    ids::{SessionId, TenantId},
    recording, room,
    session::{self, Old},
    transcript,
    values::{E164, Env},
};

/// Removes sessions that have ended. What their ledger says of them stays.
#[boxed]
pub async fn remove(db: &Transaction, owner: (TenantId, Env), those: &[Old]) -> Result<()> {
    let ids: Vec<SessionId> = those.iter().map(|one| one.id).collect();
    let calls: Vec<(E164, SessionId)> = those
        .iter()
        .filter_map(|one| Some((one.to_number.clone()?, one.id)))
        .collect();
    transcript::remove(db, &ids).await?;
    evaluation::remove(db, &ids).await?;
    answer::remove(db, &ids).await?;
    recording::remove(db, &ids).await?;
    room::remove(db, &ids).await?;
    dial::remove(db, owner, &calls).await?;
    session::remove(db, owner, &ids).await
}
