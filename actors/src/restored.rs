//! After a restore: whatever a backup says is still to be done may have been done since, so it is put away, and whoever knows better begins
//! it anew. A look that recurs, like all of [`reconcile`](crate::reconcile): a crash in the middle loses nothing of it, and dispatch stays
//! paused until a workspace's mark is gone.
//!
//! | What the backup says | What becomes of it |
//! |---|---|
//! | a call is being talked or dialled | it is lost, as after a crash |
//! | a call waits for its turn or its time | it fails, unless it was for a moment after the loss |
//! | a message is not handed over | it is canceled, unless it was for a moment after the loss |
//! | a campaign runs, or rests until its hours open | it is paused |
//! | a contact waits, of a campaign that is not over | it is canceled |
//! | a list is being read in | it is read to its end, and whom it has added is canceled |
use crate::{campaign::actor::cancel_waiting, deps::Deps, router::Mailbox, slices::Slices};
use entities::{
    Error, Result, boxed, campaign, email_message,
    ids::{CampaignId, TenantId, TenantScoped},
    import,
    message::{self, Messages},
    restored, session, sms_message,
    values::Moment,
};
use rules::{
    campaign::machine::Command as CampaignCommand,
    commit::Commit,
    message::{machine::Command as MessageCommand, outgoing::Outgoing},
    session::command::{Command as SessionCommand, RejectReason},
};

/// The second one usually finds nothing.
const LOOKS: u32 = 3;
/// What is read at once, and the most contacts of one transaction.
const PAGE: u64 = 1_000;
const MOST: usize = 250;

/// Answers whether a mark is left.
#[boxed]
pub async fn settle(deps: &Deps) -> Result<bool> {
    let mut left = false;
    for (tenant, as_of) in restored::marks(&deps.db.read).await? {
        if deps.fence.leases().check(tenant).is_err() {
            continue;
        }
        let mut is_settled = false;
        for _ in 0..LOOKS {
            is_settled = is_settled || settle_one(deps, tenant, as_of).await?;
        }
        left |= !is_settled;
        if is_settled {
            remove_mark(deps, tenant).await?;
            tracing::info!(%tenant, "what may have run since the backup is put away");
        }
    }
    Ok(left)
}

/// Answers whether nothing is left. Each step makes less of what the steps after it look for, and whatever one has brought to light is found
/// by the next look.
async fn settle_one(deps: &Deps, tenant: TenantId, as_of: Moment) -> Result<bool> {
    let calls = calls(deps, tenant, as_of).await?;
    let texts = messages::<sms_message::Entity, _>(deps, deps.router.sms(), tenant, as_of).await?;
    let emails = messages::<email_message::Entity, _>(deps, deps.router.emails(), tenant, as_of).await?;
    let imports = import::running(&deps.db.read, deps.share()).await?;
    let imports = imports.iter().filter(|import| import.tenant_id == tenant).count();
    let contacts = campaigns(deps, tenant).await?;
    Ok(calls + texts + emails + imports + contacts == 0)
}

async fn calls(deps: &Deps, tenant: TenantId, as_of: Moment) -> Result<usize> {
    let open = session::may_have_run(&deps.db.read, tenant, as_of, PAGE).await?;
    for call in &open {
        // Whoever is found without a carrier is lost; whoever waited fails.
        deps.router.sessions().insist(*call, SessionCommand::Tick).await?;
        let rejected = SessionCommand::Reject(RejectReason::MayHaveRun);
        too_late_is_fine(deps.router.sessions().ask(*call, rejected).await?)?;
    }
    Ok(open.len())
}

async fn messages<E, M>(deps: &Deps, mailbox: &dyn Mailbox<M>, tenant: TenantId, as_of: Moment) -> Result<usize>
where
    E: Messages,
    M: Outgoing<Id = E::Id>,
{
    let open = message::may_have_run::<E>(&deps.db.read, tenant, as_of, PAGE).await?;
    for one in &open {
        too_late_is_fine(mailbox.ask(*one, MessageCommand::Cancel).await?)?;
    }
    Ok(open.len())
}

async fn campaigns(deps: &Deps, tenant: TenantId) -> Result<usize> {
    let (mut after, mut canceled) = (None, 0);
    loop {
        let page = campaign::not_over(&deps.db.read, tenant, after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(canceled);
        };
        after = Some(last.id);
        for (key, is_at_work) in page {
            // So that it is not over when nobody is left: contacts may be opened again.
            if is_at_work {
                too_late_is_fine(deps.router.campaigns().ask(key, CampaignCommand::Pause).await?)?;
            }
            canceled += contacts(deps, key).await?;
        }
    }
}

async fn contacts(deps: &Deps, campaign: TenantScoped<CampaignId>) -> Result<usize> {
    let (mut slices, mut canceled) = (Slices::new(MOST), 0);
    loop {
        let rows = slices.rows();
        let job = slices.write(deps, campaign.tenant_id, move |db| {
            Box::pin(async move { cancel_waiting(db, campaign, rows).await })
        });
        match job.await {
            Ok(0) => return Ok(canceled),
            Ok(some) => canceled += some,
            Err(error) if error.retryable() => deps.clock.back_off(10).await,
            Err(error) => return Err(error),
        }
    }
}

async fn remove_mark(deps: &Deps, tenant: TenantId) -> Result<()> {
    let job = deps.writer.run(tenant, move |db| {
        Box::pin(async move {
            restored::settle(db, tenant).await?;
            Ok(((), Commit::default()))
        })
    });
    job.await
}

/// What has ended meanwhile, or is about to, needs nothing.
fn too_late_is_fine<T>(done: Result<T>) -> Result<()> {
    match done {
        Ok(_) | Err(Error::InvalidState { .. } | Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
