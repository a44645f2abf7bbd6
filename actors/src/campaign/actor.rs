//! The shell's bindings for campaigns.
use super::machine::{self, Campaign, Command, Phase};
use crate::{
    deps::Deps,
    effect::Effect,
    shell::{Do, Stored},
    writer::Commit,
};
use entities::{
    Result,
    ids::{CampaignId, Owned},
    values::Moment,
};

impl Stored for Campaign {
    type Key = CampaignId;
    type Command = Command;
    const KIND: &'static str = "campaign";
    const TICK: Command = Command::Tick;

    async fn load(deps: &Deps, id: Owned<CampaignId>) -> Result<Self> {
        Campaign::from_row(entities::campaign::load(&deps.db.read, id).await?)
    }
    fn owner(&self) -> Owned<CampaignId> {
        self.key
    }
    fn transition(self, command: Command, now: Moment) -> Result<(Self, Vec<Effect>)> {
        machine::transition(self, command, now)
    }
    fn next_deadline(&self) -> Option<Moment> {
        machine::next_deadline(self)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.campaigns.push(self.row());
    }
    fn is_at_rest(&self) -> bool {
        !matches!(self.phase, Phase::Running { .. } | Phase::Canceling { .. })
    }
}

/// Tells a campaign if it has nothing left to do.
pub fn check_drained(deps: Deps, campaign: Owned<CampaignId>) {
    let busy = deps.clock.busy();
    deps.runtime.clone().spawn(async move {
        match entities::tally::load(&deps.db.read, campaign.id).await {
            Ok(tally) if tally.unfinished() == 0 => {
                if let Some(tree) = deps.tree() {
                    tree.campaigns
                        .tell(campaign, Do::tell(Command::Drained(tally), &deps.clock));
                }
            }
            Ok(_) => {}
            // The reconcile finds it again.
            Err(error) => tracing::warn!(%error, "a campaign's counts could not be read"),
        }
        drop(busy);
    });
}

/// Contacts canceled in one transaction: small enough that others are not kept waiting.
const SLICE: u64 = 500;

/// Cancels what the campaign has not called, slice by slice, then looks whether it is over.
pub fn cancel_contacts(deps: Deps, campaign: Owned<CampaignId>) {
    let busy = deps.clock.busy();
    deps.runtime.clone().spawn(async move {
        loop {
            let canceled = deps
                .writer
                .run(move |transaction| Box::pin(cancel_slice(transaction, campaign)))
                .await;
            match canceled {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.retryable() => {
                    deps.clock.back_off(10).await;
                }
                Err(error) => {
                    tracing::error!(%error, "canceling a campaign's contacts failed; the reconcile tries again");
                    break;
                }
            }
        }
        check_drained(deps, campaign);
        drop(busy);
    });
}

async fn cancel_slice(db: &sea_orm::DatabaseTransaction, campaign: Owned<CampaignId>) -> Result<(i64, Commit)> {
    let (pending, waiting) = entities::contact::cancel_some(db, campaign.id, SLICE).await?;
    let mut commit = Commit::default();
    let tally = commit.changes.tally(campaign);
    tally.pending -= pending;
    tally.waiting -= waiting;
    tally.canceled += pending + waiting;
    Ok((pending + waiting, commit))
}
