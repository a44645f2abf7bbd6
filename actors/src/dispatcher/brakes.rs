//! Campaigns that are held for what they have abandoned: the workspace's owners are told, once each time that it happens. A row says that
//! they were, so that a restart tells nobody again.
use crate::deps::Deps;
use entities::{
    Result, boxed, campaign_brake,
    ids::{CampaignId, TenantId},
    membership,
};
use rules::{commit::Commit, dispatch::queue::Queue, law::notices};
use std::collections::BTreeMap;

/// Notes which of them are held by now, and which are no longer.
#[boxed]
pub async fn tell(deps: &Deps, tenant: TenantId, campaigns: &BTreeMap<CampaignId, Queue>) -> Result<()> {
    if campaigns.values().all(|queue| queue.abandonment.is_empty()) {
        return Ok(());
    }
    let (db, now) = (&deps.db.read, deps.clock.now());
    let known = campaign_brake::of(db, tenant).await?;
    let is_known = |id: CampaignId| known.iter().any(|row| row.campaign_id == id);
    let fallen: Vec<&Queue> = campaigns
        .values()
        .filter(|queue| queue.is_braked() && !is_known(queue.id))
        .collect();
    let is_released = |id: &CampaignId| campaigns.get(id).is_some_and(|queue| !queue.is_braked());
    let released = known.iter().map(|row| row.campaign_id).filter(is_released);
    let released: Vec<CampaignId> = released.collect();
    if fallen.is_empty() && released.is_empty() {
        return Ok(());
    }
    let mut commit = Commit::default();
    if !fallen.is_empty() {
        let owners = membership::owners(db, tenant).await?;
        for queue in fallen {
            tracing::warn!(campaign = %queue.id, "a campaign is held: too many of its calls were answered and abandoned");
            let mail = notices::braked(queue.id, &queue.plan.name, queue.abandoned, &queue.abandonment);
            let to_each = |owner: &String| mail.row(deps.ids.next(), tenant, owner.clone(), now);
            commit.changes.mails.extend(owners.iter().map(to_each));
            commit.changes.campaign_brakes.push(campaign_brake::Model {
                campaign_id: queue.id,
                tenant_id: tenant,
                since: now,
            });
        }
    }
    let has_mails = !commit.changes.mails.is_empty();
    let noting = deps.writer.run(tenant, move |db| {
        let (commit, released) = (commit.clone(), released.clone());
        Box::pin(async move {
            campaign_brake::release(db, &released).await?;
            Ok(((), commit))
        })
    });
    noting.await?;
    if has_mails {
        deps.router.mailer();
    }
    Ok(())
}
