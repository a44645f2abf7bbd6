//! Gives the rows of one transaction their places behind those that are there: the chains' ends are read once for all of them.
use entities::{
    Result,
    attempt::{New, chain},
    changes::Changes,
    connection::Connection,
    ids::TenantId,
    values::{Env, Moment},
};
use rules::law::record::chain::placed;
use std::collections::BTreeMap;

/// The chained rows, in the order in which they were handed in, and where their chains end then. Whoever else has added to one of
/// these chains since makes the transaction fail.
pub async fn chained(db: &Connection, records: &[&New], now: Moment) -> Result<Changes> {
    let mut owners: Vec<(TenantId, Env)> = records.iter().map(|new| new.owner()).collect();
    owners.sort();
    owners.dedup();
    let known = chain::of(db, &owners).await?;
    let mut ends: BTreeMap<(TenantId, Env), chain::Model> =
        known.into_iter().map(|end| ((end.tenant_id, end.env), end)).collect();
    let mut changes = Changes::default();
    changes.chained_records.reserve(records.len());
    for new in records {
        let owner = new.owner();
        let end = ends.entry(owner).or_insert_with(|| chain::Model::empty(owner, now));
        // The times of a chain grow, also where the clock steps back.
        end.updated_at = end.updated_at.max(now);
        let row = placed((*new).clone(), (end.n, &end.hash), end.updated_at);
        end.n = row.n;
        end.hash.clone_from(&row.hash);
        changes.chained_records.push(row);
    }
    for owner in owners {
        if let Some(mut end) = ends.remove(&owner) {
            end.version += 1;
            changes.attempt_chains.push(end);
        }
    }
    Ok(changes)
}
