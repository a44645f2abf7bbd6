//! What SMS and e-mails have in common: their order, what may keep them from being sent, where they belong to a campaign. How one
//! is handed over stands in `send.rs`; what differs is each one's [`Sendable`].
mod actor;
mod legal;
mod send;

pub use legal::{Permission, facts};
pub use send::{send, send_begun, undecided};

use crate::{credits, deps::Deps, router::Mailbox};
use entities::{
    Error, Result, boxed,
    campaign::{self, Status},
    db::Db,
    dispatch_block::{self, Reason},
    dnc,
    ids::{CampaignId, TenantId, TenantScoped},
    values::{Cents, Env, Moment},
};
use rules::{
    commit::Commit,
    effect::DispatchHint,
    message::{
        Block, MessageRejectReason,
        machine::Command,
        outgoing::{Outgoing, Seen},
    },
};
use runtime::{job::Running, permits::Permits};

/// Messages that are not sent yet, of one tenant in one env.
pub const MAX_OPEN: u64 = 10_000;
/// A message can be scheduled so far ahead.
pub const FURTHEST_SECONDS: i64 = 35 * 24 * 3600;

/// All that tells the sending of SMS and of e-mails apart.
pub trait Sendable: Outgoing + Sync {
    /// What is handed over, where that must be made first.
    type Made: Send + 'static;

    fn load(db: &Db, key: TenantScoped<Self::Id>) -> impl Future<Output = Result<Self>> + Send;
    fn rows(commit: &mut Commit) -> &mut Vec<Self>;
    fn mailbox(deps: &Deps) -> &dyn Mailbox<Self>;
    /// Messages that are being handed over.
    fn running(deps: &Deps) -> &Running<Self::Id>;
    /// `None`: nobody hands over messages of that env.
    fn permits(deps: &Deps, env: Env) -> Option<&Permits>;
    /// Can messages of that env be sent at all?
    fn check_configured(deps: &Deps, env: Env) -> Result<()>;
    /// What else keeps it from being sent at all.
    fn barred(&self, deps: &Deps) -> impl Future<Output = Result<Option<MessageRejectReason>>> + Send;
    /// All that it says: what is on record of that is a digest.
    fn words(&self, deps: &Deps) -> impl Future<Output = Result<String>> + Send;
    /// Makes what is handed over; or what there is to say of it where that cannot be.
    fn made(&self, deps: &Deps) -> impl Future<Output = Result<Result<Self::Made, Command<Self::Own>>>> + Send;
    /// Hands it over, once, and tells what came of it.
    fn hand_over(&self, deps: &Deps, made: Self::Made) -> impl Future<Output = Command<Self::Own>> + Send;
    /// What came of it, for the operator.
    fn log(&self, outcome: &Command<Self::Own>);
}

/// What keeps a campaign's message from being handed over once more.
enum Obstacle {
    Reject(MessageRejectReason),
    Wait(Block),
}

impl<Own> From<Obstacle> for Command<Own> {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Reject(bar) => Command::Bar(bar),
            Obstacle::Wait(block) => Command::Wait(block),
        }
    }
}

/// A message that was not taken at first goes by its campaign's state, and only while its contact's hours are open.
async fn of_campaign(
    deps: &Deps,
    (tenant, env): (TenantId, Env),
    campaign: Option<CampaignId>,
    send_by: Option<Moment>,
) -> Result<Option<Obstacle>> {
    let Some(id) = campaign else { return Ok(None) };
    if send_by.is_some_and(|at| deps.clock.times().later() > at) {
        return Ok(Some(Obstacle::Reject(MessageRejectReason::TooLate)));
    }
    let row = match campaign::load_even_deleted(&deps.db.read, TenantScoped::new(tenant, env, id)).await {
        Err(Error::NotFound(_)) => return Ok(Some(Obstacle::Reject(MessageRejectReason::CampaignOver))),
        found => found?,
    };
    Ok(match (row.status, row.cancel_requested_at) {
        (Status::Completed, _) | (_, Some(_)) => Some(Obstacle::Reject(MessageRejectReason::CampaignOver)),
        (Status::Paused, None) => Some(Obstacle::Wait(Block::Pause)),
        (Status::Running | Status::Draft, None) => None,
    })
}

/// There is room for one more of the campaign's messages. A hint.
fn freed(deps: &Deps, tenant: TenantId, campaign: Option<CampaignId>) {
    if let Some(campaign) = campaign {
        deps.router.dispatcher(tenant, DispatchHint::MessageEnded(campaign));
    }
}

/// May it be written, as far as is known now? The list and the blocks are looked at once more when it is sent. `least`: what the
/// cheapest message costs.
pub async fn check<M: Sendable>(deps: &Deps, row: &M, least: Cents) -> Result<()> {
    let Seen { key, price_cents, .. } = row.seen();
    let owner = (key.tenant_id, key.env);
    check_blocks(deps, owner).await?;
    if is_on_dnc(deps, row).await? {
        return Err(Error::RecipientOnDnc);
    }
    legal::check(deps, row).await?;
    if credits::cover(deps, owner, price_cents).await? {
        Ok(())
    } else {
        credits::refuse(deps, owner, least).await
    }
}

/// Does nothing keep the workspace from writing?
#[boxed]
pub async fn check_blocks(deps: &Deps, (tenant, env): (TenantId, Env)) -> Result<()> {
    let blocks = dispatch_block::of(&deps.db.read, tenant).await?;
    match blocks.iter().find(|block| block.env == env).map(|block| block.reason) {
        Some(Reason::Credits) => Err(Error::InsufficientCredits),
        Some(Reason::Suspension) => Err(Error::PlanLimit("the workspace is suspended: ask the operator".into())),
        None => Ok(()),
    }
}

/// Is the recipient on the do-not-call list?
async fn is_on_dnc<M: Sendable>(deps: &Deps, row: &M) -> Result<bool> {
    let Seen { key, .. } = row.seen();
    let address = [row.address().to_owned()];
    let barred = dnc::barred(&deps.db.read, (key.tenant_id, key.env), M::CHANNEL.dnc(), &address).await?;
    Ok(!barred.is_empty())
}
