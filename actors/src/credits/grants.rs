//! What the operator gives or takes on the command line waits in a table of its own; the running service books it, so that
//! only one process ever writes a ledger.
use crate::deps::Deps;
use entities::{
    Result, boxed,
    ids::GrantId,
    ledger::{Movement, grant},
};
use rules::commit::Commit;

/// Grants booked at once.
const SLICE: u64 = 100;

/// Books all that waits.
#[boxed]
pub async fn book(deps: &Deps) -> Result<()> {
    loop {
        let waiting = grant::waiting(&deps.db.read, deps.share(), SLICE).await?;
        let Some(first) = waiting.first() else {
            return Ok(());
        };
        // Those of one workspace are one job; the others come next.
        let tenant = first.tenant_id;
        let its = waiting.iter().filter(|row| row.tenant_id == tenant);
        let ids: Vec<GrantId> = its.map(|row| row.id).collect();
        deps.writer
            .run(tenant, move |db| {
                let ids = ids.clone();
                Box::pin(async move {
                    let mut commit = Commit::default();
                    for row in grant::take(db, &ids).await? {
                        let movement = Movement::adjust((row.tenant_id, row.env), row.cents, row.note);
                        commit.changes.movements.push(movement);
                    }
                    Ok(((), commit))
                })
            })
            .await?;
    }
}
