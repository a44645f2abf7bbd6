//! Where each chain stood today, signed: one row a day for each that has grown since the last.
use crate::{deps::Deps, leases::Of};
use entities::{
    Error, Result,
    attempt::{chain, head},
    boxed,
    values::Moment,
};
use rules::law::record::line::head_text;
use runtime::signing::SigningKey;

/// Chains that are looked at by one statement.
const PAGE: u64 = 200;

/// Signs what has grown, of the workspaces that this process has. Whatever is wrong with one chain keeps no other from being signed.
#[boxed]
pub async fn sign(deps: &Deps) -> Result<()> {
    let times = deps.clock.times();
    // A wrong clock would sign for another day.
    if times.in_doubt {
        return Ok(());
    }
    let (now, key) = (deps.clock.now(), SigningKey::of(&deps.links)?);
    let (mut after, mut failure) = (None, None);
    loop {
        let page = chain::all_after(&deps.db.read, deps.share(), after, PAGE).await?;
        let Some(last) = page.last().map(|end| end.tenant_id) else {
            return failure.map_or(Ok(()), Err);
        };
        for end in &page {
            match sign_one(deps, &key, end, now).await {
                Ok(()) => {}
                // The database does not answer: nor would it for the others.
                Err(error @ Error::Unavailable(_)) => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        after = Some(last);
    }
}

async fn sign_one(deps: &Deps, key: &SigningKey, end: &chain::Model, now: Moment) -> Result<()> {
    let (owner, day) = ((end.tenant_id, end.env), day_of(now));
    // However long ago it has grown: while the clock was in doubt, or the service was stopped, nothing was signed.
    let known = head::list(&deps.db.read, owner, None, 1).await?;
    if known.first().is_some_and(|known| known.day >= day || known.n == end.n) {
        return Ok(());
    }
    let row = head::Model {
        tenant_id: end.tenant_id,
        env: end.env,
        n: end.n,
        hash: end.hash.clone(),
        signed_at: now,
        public_key: key.public_key(),
        signature: key.sign(head_text(owner, &day, end.n, &end.hash).as_bytes())?,
        day,
    };
    deps.writer
        .upkeep(Of::from(end.tenant_id), move |db| {
            let row = row.clone();
            Box::pin(async move { head::add(db, &[row]).await })
        })
        .await
}

/// In UTC, as `2026-11-30`.
fn day_of(at: Moment) -> String {
    at.datetime().date_naive().to_string()
}
