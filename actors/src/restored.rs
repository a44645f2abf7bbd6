//! After a restore: whatever a backup says is still to be done may have been done since, so it is put away, and whoever knows better begins
//! it anew. A look that recurs, like all of [`reconcile`](crate::reconcile): a crash in the middle loses nothing of it, and dispatch stays
//! paused until each workspace's mark is gone. What has been made since the restore is left alone.
//!
//! | What the backup says | What becomes of it |
//! |---|---|
//! | a call is being talked or dialled | it is lost, as after a crash |
//! | a call waits for its turn or its time | it fails, unless it was for a moment after the loss |
//! | a message is not handed over | it is canceled, unless it was for a moment after the loss |
//! | a campaign runs, or rests until its hours open | it is paused |
//! | a campaign was to start by then | it is started and paused |
//! | a contact waits, of any campaign that is not over | it is canceled: a draft may have been started, a start been moved |
use crate::{campaign::actor::cancel_waiting, deps::Deps, router::Mailbox, slices::Slices};
use entities::{
    Error, Result, boxed,
    campaign::{self, Model as Campaign, PauseReason, Status},
    email_message,
    ids::{ContactId, TenantId, TenantScoped},
    message::{self, Messages},
    restored, session, sms_message, tally,
    values::Moment,
};
use rules::{
    campaign::machine::Command as CampaignCommand,
    commit::Commit,
    message::{machine::Command as MessageCommand, outgoing::Outgoing},
    session::command::{Command as SessionCommand, RejectReason},
};
use std::fmt::Display;

/// What is read at once, and the most contacts of one transaction.
const PAGE: u64 = 500;
const MOST: usize = 250;
/// The second look usually finds nothing.
const LOOKS: u32 = 3;

/// Answers whether a mark is left. Of each workspace that has one a job puts away the rest.
#[boxed]
pub async fn settle(deps: &Deps) -> Result<bool> {
    let mut left = false;
    for (tenant, as_of) in restored::marks(&deps.db.read).await? {
        if deps.fence.leases().check(tenant).is_err() {
            continue;
        }
        left = true;
        // Before a call of theirs ends: a campaign that has nobody left would be over, and contacts could not be opened again.
        if let Err(error) = pause_campaigns(deps, tenant, as_of).await {
            tracing::warn!(%error, %tenant, "campaigns could not be paused after the restore; trying again soon");
        }
        let work = {
            let deps = deps.clone();
            async move { put_away(&deps, tenant, as_of).await }
        };
        deps.jobs.run(&deps.restores, tenant, "look after a restore", work);
    }
    Ok(left)
}

async fn put_away(deps: &Deps, tenant: TenantId, as_of: Moment) -> Result<()> {
    let mut left = 0;
    for _ in 0..LOOKS {
        pause_campaigns(deps, tenant, as_of).await?;
        left = calls(deps, tenant, as_of).await?
            + messages::<sms_message::Entity, _>(deps, deps.router.sms(), tenant, as_of).await?
            + messages::<email_message::Entity, _>(deps, deps.router.emails(), tenant, as_of).await?
            + contacts(deps, tenant, as_of).await?;
        if left == 0 {
            let job = deps.writer.run(tenant, move |db| {
                Box::pin(async move {
                    restored::settle(db, tenant).await?;
                    Ok(((), Commit::default()))
                })
            });
            job.await?;
            tracing::info!(%tenant, "what may have run since the backup is put away");
            return Ok(());
        }
    }
    // Until then `dispatch resume` is refused: whoever waits for it is told why.
    tracing::warn!(%tenant, left, "some of what may have run since the backup could not be put away yet; trying again soon");
    Ok(())
}

/// What becomes of a campaign that is not over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Paused,
    StartedAndPaused,
    /// Nobody works at it.
    AsItIs,
}

fn fate(row: &Campaign, as_of: Moment) -> Fate {
    let is_armed = row.armed_at.is_some();
    match row.status {
        Status::Running => Fate::Paused,
        Status::Paused if row.pause_reason != Some(PauseReason::Manual) => Fate::Paused,
        Status::Draft if is_armed && row.plan.schedule.starts_at.is_none_or(|at| at <= as_of) => Fate::StartedAndPaused,
        Status::Draft | Status::Paused | Status::Completed => Fate::AsItIs,
    }
}

async fn pause_campaigns(deps: &Deps, tenant: TenantId, as_of: Moment) -> Result<()> {
    let mut after = None;
    loop {
        let page = campaign::not_over(&deps.db.read, tenant, as_of, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.id);
        for row in page {
            let commands: &[CampaignCommand] = match fate(&row, as_of) {
                Fate::Paused => &[CampaignCommand::Pause],
                Fate::StartedAndPaused => &[CampaignCommand::Tick, CampaignCommand::Pause],
                Fate::AsItIs => &[],
            };
            let key = TenantScoped::new(tenant, row.env, row.id);
            for command in commands {
                let done = deps.router.campaigns().ask(key, command.clone()).await;
                note(row.id, done.and_then(|done| done));
            }
        }
    }
}

/// Each answers how much there was to put away: the last look has to find nothing.
async fn calls(deps: &Deps, tenant: TenantId, as_of: Moment) -> Result<usize> {
    let (mut after, mut found) = (None, 0);
    loop {
        let open = session::may_have_run(&deps.db.read, tenant, as_of, after, PAGE).await?;
        let Some(last) = open.last() else { return Ok(found) };
        after = Some(last.id);
        // What has begun since the restore, as in a room, goes on.
        for call in open.into_iter().filter(|call| !deps.calls.contains(call.id)) {
            found += 1;
            // Whoever is found without a carrier is lost; whoever waited fails.
            let rejected = SessionCommand::Reject(RejectReason::MayHaveRun);
            for command in [SessionCommand::Tick, rejected] {
                let done = deps.router.sessions().ask(call, command).await;
                note(call.id, done.and_then(|done| done));
            }
        }
    }
}

async fn messages<E, M>(deps: &Deps, mailbox: &dyn Mailbox<M>, tenant: TenantId, as_of: Moment) -> Result<usize>
where
    E: Messages,
    E::Id: Display,
    M: Outgoing<Id = E::Id>,
{
    let (mut after, mut found) = (None, 0);
    loop {
        let open = message::may_have_run::<E>(&deps.db.read, tenant, as_of, after, PAGE).await?;
        let Some(last) = open.last() else { return Ok(found) };
        after = Some(last.id);
        found += open.len();
        for one in open {
            let done = mailbox.ask(one, MessageCommand::Cancel).await;
            note(one.id, done.and_then(|done| done));
        }
    }
}

async fn contacts(deps: &Deps, tenant: TenantId, as_of: Moment) -> Result<usize> {
    let made_before = ContactId::floor(as_of.plus_millis(1));
    let (mut after, mut canceled) = (None, 0);
    loop {
        let page = campaign::not_over(&deps.db.read, tenant, as_of, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(canceled);
        };
        after = Some(last.id);
        for row in &page {
            let counts = tally::load(&deps.db.read, row.id).await?;
            if counts.pending + counts.waiting == 0 {
                continue;
            }
            let key = TenantScoped::new(tenant, row.env, row.id);
            let mut slices = Slices::new(MOST);
            loop {
                let rows = slices.rows();
                let job = slices.write(deps, tenant, move |db| {
                    Box::pin(async move { cancel_waiting(db, key, made_before, rows).await })
                });
                match job.await? {
                    0 => break,
                    some => canceled += some,
                }
            }
        }
    }
}

/// What has ended meanwhile, or is about to, needs nothing. What fails is looked at again, and keeps nothing else from being put away.
fn note(what: impl Display, done: Result<impl Sized>) {
    match done {
        Ok(_) | Err(Error::InvalidState { .. } | Error::NotFound(_)) => {}
        Err(error) => tracing::warn!(%error, %what, "could not be put away after the restore; trying again soon"),
    }
}
