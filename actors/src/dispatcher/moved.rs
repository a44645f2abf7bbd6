//! Calls that wait, and whose number has gone to another trunk since they were made: they go there, too.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed,
    ids::{TenantId, TrunkId},
    number,
    session::{self, Model},
    values::E164,
};
use rules::commit::Commit;
use std::collections::HashMap;

/// Calls that are moved at once.
const MOST: u64 = 500;

/// Answers whether more of them may be left.
#[boxed]
pub async fn follow(deps: &Deps, tenant: TenantId) -> Result<bool> {
    let db = &deps.db.read;
    let ways = session::ways_of_waiting(db, tenant).await?;
    if ways.is_empty() {
        return Ok(false);
    }
    let numbers: Vec<E164> = ways.iter().map(|(number, _)| number.clone()).collect();
    let trunks = number::trunks_of(db, tenant, &numbers).await?;
    let trunks: HashMap<E164, TrunkId> = trunks.into_iter().collect();
    for (number, trunk_id) in ways {
        let now = trunks.get(&number).copied();
        if now == trunk_id {
            continue;
        }
        let mut commit = Commit::default();
        let rows = session::waiting_on_way(db, tenant, (&number, trunk_id), MOST).await?;
        commit.changes.sessions.extend(rows.into_iter().map(|row| Model {
            trunk_id: now,
            version: row.version + 1,
            ..row
        }));
        let is_full = commit.changes.sessions.len() as u64 == MOST;
        match deps.writer.commit(tenant.into(), commit).await {
            Ok(()) if !is_full => {}
            // One of them has changed at this moment: all are looked at again.
            Ok(()) | Err(Error::Stale) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
