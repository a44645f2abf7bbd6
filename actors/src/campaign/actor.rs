//! The shell's bindings for campaigns.
use crate::{deps::Deps, facts::contact_moved, legal, shell::Stored, slices::Slices};
use entities::{
    Result,
    campaign::{CompletedReason, Retry},
    connection::Transaction,
    contact::{SkipReason, Status, WaitReason},
    dispatch_block::Reason,
    ids::{CampaignId, ContactId, TenantScoped},
    values::Moment,
};
use rules::{
    campaign::machine::{Campaign, Command},
    commit::Commit,
    contact::machine as contact,
    eligibility::RING_MS,
    hours::{CallingHours, Rules},
    session::command::{Command as SessionCommand, RejectReason},
};
use std::sync::Arc;
use uuid::Uuid;

impl Stored for Campaign {
    async fn load(deps: &Deps, id: TenantScoped<CampaignId>) -> Result<Self> {
        Campaign::from_row(entities::campaign::load(&deps.db.read, id).await?)
    }
    fn save(&mut self, commit: &mut Commit) {
        self.version += 1;
        commit.changes.campaigns.push(self.row());
    }
}

/// Tells a campaign if it has nothing left to do.
pub fn check_drained(deps: Deps, campaign: TenantScoped<CampaignId>) {
    let busy = deps.clock.busy();
    deps.runtime.clone().spawn(async move {
        match entities::tally::load(&deps.db.read, campaign.id).await {
            Ok(tally) if tally.unfinished() == 0 => {
                deps.router.campaigns().tell(campaign, Command::Drained(tally));
            }
            Ok(_) => {}
            // The reconcile finds it again.
            Err(error) => tracing::warn!(%error, "a campaign's counts could not be read"),
        }
        drop(busy);
    });
}

/// Somebody who was being reached when their campaign went to rest may be due again before it wakes up.
pub fn wake_for(deps: Deps, contact: TenantScoped<ContactId>) {
    let busy = deps.clock.busy();
    deps.runtime.clone().spawn(async move {
        match awake(&deps, contact).await {
            Ok(Some((campaign, from))) => {
                let command = Command::Awake { from };
                deps.router.campaigns().tell(campaign, command);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "whether a campaign has somebody to reach again could not be read"),
        }
        drop(busy);
    });
}

/// The contact's campaign, if it rests, and when the contact may be reached again.
async fn awake(deps: &Deps, key: TenantScoped<ContactId>) -> Result<Option<(TenantScoped<CampaignId>, Moment)>> {
    let db = &deps.db.read;
    let contact = entities::contact::load(db, key).await?;
    let Some(due) = contact.next_attempt_at.filter(|_| contact.status == Status::Waiting) else {
        return Ok(None);
    };
    let campaign = TenantScoped::new(key.tenant_id, key.env, contact.campaign_id);
    let row = entities::campaign::load_even_deleted(db, campaign).await?;
    if row.next_open_at.is_none() {
        return Ok(None);
    }
    let tenant = entities::tenant::load(db, key.tenant_id).await?;
    let legal = legal::of_campaign(deps, db, &row).await?;
    let rules = Rules::new(&row.plan.schedule, row.env, tenant.timezone).under(legal::hours(&legal));
    let CallingHours::Hours(hours) = rules.of(&contact.zone) else {
        return Ok(None);
    };
    let from = hours.next_opening(due.max(deps.clock.now()), RING_MS);
    Ok(from.map(|from| (campaign, from)))
}

/// Contacts put away in one transaction, at most.
const MOST: usize = 250;

/// Puts away what the campaign has not called, slice by slice, then looks whether it is over. One does it, however often it is
/// asked for.
pub fn put_away(deps: &Deps, campaign: TenantScoped<CampaignId>, reason: CompletedReason) {
    let work = {
        let deps = deps.clone();
        async move {
            let done = put_all_away(&deps, campaign, reason).await;
            end_sent_back(&deps, campaign).await;
            check_drained(deps, campaign);
            done
        }
    };
    deps.jobs.run(&deps.closings, campaign.id, "campaign's end", work);
}

async fn put_all_away(deps: &Deps, campaign: TenantScoped<CampaignId>, reason: CompletedReason) -> Result<()> {
    // A campaign that is over keeps its plan: what a slice need not read, nobody waits for.
    let row = entities::campaign::load_even_deleted(&deps.db.read, campaign).await?;
    let (retry, mut slices) = (Arc::new(row.plan.retry), Slices::new(MOST));
    loop {
        let (job_deps, retry, rows) = (deps.clone(), retry.clone(), slices.rows());
        let slice = slices.write(deps, campaign.tenant_id, move |db| {
            let (deps, retry) = (job_deps.clone(), retry.clone());
            Box::pin(async move { slice(&deps, db, (campaign, &retry), reason, rows).await })
        });
        match slice.await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.retryable() => deps.clock.back_off(10).await,
            Err(error) => return Err(error),
        }
    }
}

/// Calls that a trunk sent back are not placed any more.
async fn end_sent_back(deps: &Deps, campaign: TenantScoped<CampaignId>) {
    match entities::session::sent_back(&deps.db.read, campaign).await {
        Ok(sessions) => {
            for session in sessions {
                let command = SessionCommand::Reject(RejectReason::CampaignOver);
                deps.router.sessions().tell(session, command);
            }
        }
        // The reconcile comes here again.
        Err(error) => tracing::warn!(%error, "a campaign's waiting calls could not be read"),
    }
}

/// Why a contact was not called before its campaign's time was over.
async fn too_late(db: &Transaction, campaign: TenantScoped<CampaignId>) -> Result<SkipReason> {
    let blocks = entities::dispatch_block::of(db, campaign.tenant_id).await?;
    let is_suspension =
        |block: &entities::dispatch_block::Model| block.env == campaign.env && block.reason == Reason::Suspension;
    Ok(match blocks.iter().any(is_suspension) {
        true => SkipReason::TenantSuspended,
        false => SkipReason::QuietHoursExpired,
    })
}

/// Cancels whoever waits and was made before that id, so many at most, and answers how many that were.
pub async fn cancel_waiting(
    db: &Transaction,
    campaign: TenantScoped<CampaignId>,
    made_before: ContactId,
    rows: usize,
) -> Result<(usize, Commit)> {
    let mut commit = Commit::default();
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let canceled = entities::contact::cancel(db, campaign.id, made_before, rows).await?;
    let tally = commit.changes.tally(campaign);
    tally.pending -= canceled.pending;
    tally.waiting -= canceled.waiting;
    tally.canceled += canceled.total();
    Ok((usize::try_from(canceled.total()).unwrap_or(0), commit))
}

/// Canceled ones say nothing; when the campaign's time is over, each contact is told by its real cause.
async fn slice(
    deps: &Deps,
    db: &Transaction,
    (campaign, retry): (TenantScoped<CampaignId>, &Retry),
    reason: CompletedReason,
    rows: usize,
) -> Result<(usize, Commit)> {
    if reason == CompletedReason::Canceled {
        return cancel_waiting(db, campaign, ContactId(Uuid::max()), rows).await;
    }
    let mut commit = Commit::default();
    let rows = entities::contact::unfinished(db, campaign.id, rows as u64).await?;
    let too_late = too_late(db, campaign).await?;
    for contact in &rows {
        let why = match contact.wait_reason {
            Some(WaitReason::Cap) => SkipReason::DailyCapReached,
            _ => too_late,
        };
        let command = contact::Command::Skip(why, None);
        let (after, events) = contact::transition(contact.clone(), command, retry, deps.clock.now())?;
        contact_moved(&mut commit, contact, after, &events);
    }
    Ok((rows.len(), commit))
}
