//! How rows of the record go that are older than they must be kept: from the beginning of each chain, in slices, and the last that
//! is gone is kept as the chain's anchor. Exports go sooner: they can be asked for again.
use crate::{deps::Deps, slices::Slices};
use entities::{
    Error, Result,
    attempt::{self, RecordKind, anchor, chain},
    boxed, compliance_export,
    ids::TenantId,
    values::{Env, Moment},
};
use rules::{
    commit::Commit,
    law::{Law, record::AttemptBody},
};
use std::time::Duration;

/// Rows of one transaction, at most.
const MOST: usize = 500;
/// Chains that are looked at by one statement.
const PAGE: u64 = 200;
/// Slices of one chain in one run: a backlog is worked off over some runs, and keeps no other chain waiting.
const SLICES: usize = 2_000;
/// An export is there for so long.
pub const KEEP_EXPORTS: Duration = Duration::from_secs(30 * 24 * 3600);
const LONGEST_YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
/// Exports that go in one run, and failures after which the store counts as away.
const EXPORTS: u64 = 100;
const FAILURES: usize = 5;

#[boxed]
pub async fn prune(deps: &Deps) -> Result<()> {
    let db = &deps.db.read;
    let expired = compliance_export::expired(db, deps.share(), EXPORTS).await?;
    let mut failure = discard(deps, expired).await.err();
    let times = deps.clock.times();
    // What is deleted does not come back: by the clock that shows less.
    if times.in_doubt {
        return failure.map_or(Ok(()), Err);
    }
    let old = times.earlier().minus(KEEP_EXPORTS);
    let old = compliance_export::ended_before(db, deps.share(), old, EXPORTS).await?;
    failure = failure.or(discard(deps, old).await.err());
    let before = times.earlier().minus(deps.limits.retention.compliance);
    let mut after = None;
    loop {
        let page = chain::all_after(db, deps.share(), after, PAGE).await?;
        let Some(last) = page.last().map(|end| end.tenant_id) else {
            return failure.map_or(Ok(()), Err);
        };
        for end in &page {
            let mut slices = Slices::new(MOST);
            let owner = (end.tenant_id, end.env);
            for _ in 0..SLICES {
                match slice(deps, &mut slices, owner, (before, times.earlier())).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    // The database does not answer: nor would it for the others.
                    Err(error @ Error::Unavailable(_)) => return Err(error),
                    Err(error) => {
                        failure.get_or_insert(error);
                        break;
                    }
                }
            }
        }
        after = Some(last);
    }
}

/// Removes some; were there any?
async fn slice(
    deps: &Deps,
    slices: &mut Slices,
    owner: (TenantId, Env),
    (before, earlier): (Moment, Moment),
) -> Result<bool> {
    let limit = slices.rows() as u64;
    if !attempt::has_older(&deps.db.read, owner, before).await? {
        return Ok(false);
    }
    let rows = attempt::range(&deps.db.read, owner, 0, limit).await?.into_iter();
    let may_go = |row: &attempt::Model| row.at < before && !is_kept_longer(&deps.law, row, earlier);
    // A chain goes from its beginning: what stands behind a row that is kept stays with it.
    let Some(last) = rows.take_while(may_go).last() else {
        return Ok(false);
    };
    let row = anchor::Model {
        tenant_id: owner.0,
        env: owner.1,
        n: last.n,
        hash: last.hash,
        recorded_at: last.at,
        pruned_at: deps.clock.now(),
    };
    slices
        .write(deps, owner.0, move |db| {
            let row = row.clone();
            Box::pin(async move {
                attempt::remove(db, owner, row.n).await?;
                anchor::save(db, row).await?;
                Ok(((), Commit::default()))
            })
        })
        .await?;
    Ok(true)
}

/// Does a law want it kept for longer than the operator does? Such as texts to Virginia, for ten years. By the clock that shows less, as all
/// that is deleted.
fn is_kept_longer(law: &Law, row: &attempt::Model, now: Moment) -> bool {
    if row.kind != RecordKind::Attempt {
        return false;
    }
    // What cannot be read says of nothing that it must be kept.
    let Ok(body) = serde_json::from_str::<AttemptBody>(&row.body) else {
        return false;
    };
    let years = law.spoken(&body.facts).keep_years;
    row.at.plus(LONGEST_YEAR * years) > now
}

/// Removes these exports with their files. One that the store does not let go keeps neither the others nor the record's own rows.
async fn discard(deps: &Deps, exports: Vec<compliance_export::Model>) -> Result<()> {
    let mut failures = Vec::new();
    for export in exports {
        failures.extend(super::exports::discard(deps, &export).await.err());
        if failures.len() >= FAILURES {
            break;
        }
    }
    failures.into_iter().next().map_or(Ok(()), Err)
}
