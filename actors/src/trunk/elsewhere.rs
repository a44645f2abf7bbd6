//! Peers of trunks that another node speaks with: they are known here too, so that a call which comes in here is sent on (302) to the
//! node that has its workspace.
use crate::deps::Deps;
use entities::{
    Result, boxed,
    ids::{TenantId, TrunkId},
    trunk_source::{self, Model, Networks},
    workspace_lease,
};
use ipnet::IpNet;
use std::collections::HashSet;

const AT_ONCE: u64 = 1_000;

/// Tells the other nodes where a trunk's peer calls from.
pub fn publish(deps: &Deps, (tenant, trunk): (TenantId, TrunkId), networks: &[IpNet]) {
    if deps.fence.leases().node().is_none() {
        return;
    }
    let row = Model {
        trunk_id: trunk,
        tenant_id: tenant,
        networks: Networks(networks.to_vec()),
    };
    let its = deps.clone();
    deps.runtime.spawn(async move {
        let saving = its.writer.upkeep(tenant, move |db| {
            let row = row.clone();
            Box::pin(async move { trunk_source::save(db, row).await })
        });
        if let Err(error) = saving.await {
            tracing::debug!(%error, "the other nodes are not told where a trunk's peer is");
        }
    });
}

/// Takes in what the others have told. `known`: the trunks of others that were known so far.
#[boxed]
pub async fn look(deps: &Deps, known: &mut HashSet<TrunkId>) -> Result<()> {
    let Some(phones) = &deps.carriers.phones else {
        return Ok(());
    };
    let (line, mut after, mut seen) = (phones.line(), None, HashSet::new());
    loop {
        let page = trunk_source::all_after(&deps.db.read, after, AT_ONCE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.trunk_id);
        for row in page {
            if deps.fence.leases().holds(row.tenant_id) {
                continue;
            }
            line.sources().set((row.tenant_id, row.trunk_id), row.networks.0);
            seen.insert(row.trunk_id);
        }
    }
    // What is ours by now has told its own; what nobody speaks with any more is a stranger's again.
    for trunk in known.drain() {
        if !seen.contains(&trunk) && deps.trunks.state(trunk).is_none() {
            line.sources().forget(trunk);
        }
    }
    *known = seen;
    Ok(())
}

/// Where a call of that workspace's is answered, as a Contact names it. `None`: nowhere yet.
#[boxed]
pub async fn contact(deps: &Deps, tenant: TenantId, user: &str, transport: &str) -> Result<Option<String>> {
    let owner = workspace_lease::owner(&deps.db.read, tenant).await?;
    let me = deps.fence.leases().node();
    let address = owner
        .filter(|owner| Some(owner.id) != me)
        .and_then(|owner| owner.sip_address);
    Ok(address.map(|address| format!("<sip:{user}@{address};transport={transport}>")))
}
