//! What SMS and e-mails have in common while they wait: where they belong to a campaign, whether they may still be sent.
use crate::deps::Deps;
use entities::{
    Error, Result,
    campaign::{self, Status},
    ids::{CampaignId, Owned, TenantId},
    values::{Env, Moment},
};
use rules::{
    effect::DispatchHint,
    message::{Bar, Block},
};

/// What keeps a campaign's message from being handed over once more.
pub enum Obstacle {
    Bar(Bar),
    Wait(Block),
}

/// A message that was not taken at first goes by its campaign's state, and only while its contact's hours are open.
pub async fn of_campaign(
    deps: &Deps,
    (tenant, env): (TenantId, Env),
    campaign: Option<CampaignId>,
    send_by: Option<Moment>,
) -> Result<Option<Obstacle>> {
    let Some(id) = campaign else { return Ok(None) };
    if send_by.is_some_and(|at| deps.clock.times().later() > at) {
        return Ok(Some(Obstacle::Bar(Bar::TooLate)));
    }
    let row = match campaign::load_even_deleted(&deps.db.read, Owned::new(tenant, env, id)).await {
        Err(Error::NotFound(_)) => return Ok(Some(Obstacle::Bar(Bar::CampaignOver))),
        found => found?,
    };
    Ok(match (row.status, row.cancel_requested_at) {
        (Status::Completed, _) | (_, Some(_)) => Some(Obstacle::Bar(Bar::CampaignOver)),
        (Status::Paused, None) => Some(Obstacle::Wait(Block::Pause)),
        (Status::Running | Status::Draft, None) => None,
    })
}

/// There is room for one more of the campaign's messages. A hint.
pub fn freed(deps: &Deps, tenant: TenantId, campaign: Option<CampaignId>) {
    if let Some(campaign) = campaign {
        deps.router.dispatcher(tenant, DispatchHint::MessageEnded(campaign));
    }
}
