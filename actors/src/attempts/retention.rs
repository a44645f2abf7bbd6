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
/// Slices of one chain in its turn, and its turns in one run: a backlog is worked off over some runs, and keeps no other chain waiting.
const TURN: usize = 20;
const TURNS: usize = 100;
/// Slices of all chains in one run.
const MOST_SLICES: usize = 20_000;
/// An export is there for so long.
pub const KEEP_EXPORTS: Duration = Duration::from_secs(30 * 24 * 3600);
const LONGEST_YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
/// Exports that go in one run: of those whose time has come, and as many of those that nobody may find any more.
const EXPORTS: u64 = 100;

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
    let mut run = Run {
        deps,
        before: times.earlier().minus(deps.limits.retention.compliance),
        earlier: times.earlier(),
        left: MOST_SLICES,
        failure,
    };
    let (mut after, mut busy) = (None, Vec::new());
    loop {
        let page = chain::all_after(db, deps.share(), after, PAGE).await?;
        let Some(last) = page.last().map(|end| end.tenant_id) else {
            break;
        };
        for end in &page {
            let mut chain = Chain {
                owner: (end.tenant_id, end.env),
                slices: Slices::new(MOST),
            };
            if run.turn(&mut chain).await? {
                busy.push(chain);
            }
        }
        after = Some(last);
    }
    for _ in 1..TURNS {
        let mut still = Vec::new();
        for mut chain in busy {
            if run.turn(&mut chain).await? {
                still.push(chain);
            }
        }
        busy = still;
    }
    run.failure.map_or(Ok(()), Err)
}

/// One look at all chains.
struct Run<'a> {
    deps: &'a Deps,
    before: Moment,
    earlier: Moment,
    /// Slices that may still go.
    left: usize,
    /// The first: it keeps no other chain from its turn.
    failure: Option<Error>,
}

struct Chain {
    owner: (TenantId, Env),
    slices: Slices,
}

impl Run<'_> {
    /// Removes what a chain has to lose, as much as it may at once; may there be more?
    async fn turn(&mut self, chain: &mut Chain) -> Result<bool> {
        for _ in 0..TURN {
            if self.left == 0 {
                return Ok(false);
            }
            match slice(self.deps, &mut chain.slices, chain.owner, (self.before, self.earlier)).await {
                Ok(true) => self.left -= 1,
                Ok(false) => return Ok(false),
                // The database does not answer: nor would it for the others.
                Err(error @ Error::Unavailable(_)) => return Err(error),
                Err(error) => {
                    self.failure.get_or_insert(error);
                    return Ok(false);
                }
            }
        }
        Ok(true)
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
    let mut failure = None;
    for export in exports {
        let done = super::exports::discard(deps, &export).await;
        failure = failure.or(done.err());
    }
    failure.map_or(Ok(()), Err)
}
