//! A campaign's rules have changed: what was decided by the old ones for those who wait is decided anew, slice by slice. Lowered
//! retries end who has had them, loosened caps and windows let go whom they put off.
//!
//! A crash in the middle loses the rest of it: then nobody is called more often than the new rules allow, for the dispatcher counts
//! the attempts once more; who was put off waits as long as the old ones said.
use super::actor::check_drained;
use crate::{
    contact::machine::{self as contact, Command, Ending, Last},
    deps::Deps,
    effect::contact_moved,
    job,
    session::machine::Command as SessionCommand,
    shell::Do,
    slices::Slices,
    writer::Commit,
};
use entities::{
    Result,
    campaign::{self, Channel, Plan},
    contact::Model as Contact,
    ids::{CampaignId, ContactId, EmailId, Owned, SessionId, SmsId},
    session,
    values::Moment,
};
use sea_orm::ConnectionTrait;
use std::{collections::HashMap, sync::Arc};
use uuid::Uuid;

/// Contacts that one transaction looks at, at most.
const MOST: usize = 250;

/// One looks through a campaign at a time; if the rules change again meanwhile, once more.
pub fn begin(deps: &Deps, campaign: Owned<CampaignId>) {
    let work = {
        let deps = deps.clone();
        async move {
            let mut judged = None;
            loop {
                let row = campaign::load(&deps.db.read, campaign).await?;
                if judged.as_ref() == Some(&row.plan) {
                    check_drained(deps.clone(), campaign);
                    return Ok(());
                }
                let plan = Arc::new(row.plan.clone());
                contacts(&deps, campaign, &plan).await?;
                sent_back(&deps, campaign).await?;
                judged = Some(row.plan);
            }
        }
    };
    job::run(
        deps,
        &deps.reviews,
        campaign.id,
        "review of a campaign's contacts",
        work,
    );
}

async fn contacts(deps: &Deps, campaign: Owned<CampaignId>, plan: &Arc<Plan>) -> Result<()> {
    let (mut slices, mut after) = (Slices::new(MOST), None);
    loop {
        let (plan, rows, now) = (plan.clone(), slices.rows(), deps.clock.now());
        let slice = slices.write(deps, move |db| {
            let plan = plan.clone();
            Box::pin(async move { slice(db, campaign.id, &plan, after, rows, now).await })
        });
        match slice.await {
            Ok(Some(last)) => after = Some(last),
            Ok(None) => return Ok(()),
            Err(error) if error.retryable() => deps.clock.back_off(10).await,
            Err(error) => return Err(error),
        }
    }
}

/// Answers the last one that was looked at, if there may be more.
async fn slice(
    db: &impl ConnectionTrait,
    campaign: CampaignId,
    plan: &Plan,
    after: Option<(Moment, ContactId)>,
    rows: usize,
    now: Moment,
) -> Result<(Option<(Moment, ContactId)>, Commit)> {
    let waiting = entities::contact::waiting_after(db, campaign, after, rows as u64).await?;
    let lasts = lasts(db, plan.channel, &waiting).await?;
    let mut commit = Commit::default();
    for before in &waiting {
        let last = before.last_row_id.and_then(|row| lasts.get(&row.0).copied());
        let (after, events) = contact::transition(before.clone(), Command::Review { last }, &plan.retry, now)?;
        if after != *before {
            contact_moved(&mut commit, before, after, &events);
        }
    }
    let last = waiting
        .last()
        .and_then(|contact| Some((contact.next_attempt_at?, contact.id)));
    Ok((last, commit))
}

/// How the last calls to these contacts ended, or the last messages, by their rows.
async fn lasts(db: &impl ConnectionTrait, channel: Channel, contacts: &[Contact]) -> Result<HashMap<Uuid, Last>> {
    let ids: Vec<Uuid> = contacts
        .iter()
        .filter_map(|contact| Some(contact.last_row_id?.0))
        .collect();
    // Only what did not arrive is waited with.
    let unsent = |(id, ended_at)| {
        let ending = Ending::NotArrived;
        (id, Last { ending, ended_at })
    };
    Ok(match channel {
        Channel::Phone => {
            let ids: Vec<SessionId> = ids.into_iter().map(SessionId).collect();
            let calls = session::of_ids(db, &ids).await?;
            calls
                .into_iter()
                .filter_map(|call| Some((call.id.0, last(&call)?)))
                .collect()
        }
        Channel::Sms => {
            let ids: Vec<SmsId> = ids.into_iter().map(SmsId).collect();
            let ended = entities::sms_message::ends_of(db, &ids).await?;
            ended.into_iter().map(|(id, at)| unsent((id.0, at))).collect()
        }
        Channel::Email => {
            let ids: Vec<EmailId> = ids.into_iter().map(EmailId).collect();
            let ended = entities::email_message::ends_of(db, &ids).await?;
            ended.into_iter().map(|(id, at)| unsent((id.0, at))).collect()
        }
    })
}

fn last(call: &session::Model) -> Option<Last> {
    let ending = Ending::Call(call.status, call.end_reason?);
    let ended_at = call.ended_at?;
    Some(Last { ending, ended_at })
}

/// Calls that a trunk sent back, and that wait for an opening of the old windows.
async fn sent_back(deps: &Deps, campaign: Owned<CampaignId>) -> Result<()> {
    let Some(tree) = deps.tree() else { return Ok(()) };
    for session in session::sent_back(&deps.db.read, campaign).await? {
        tree.sessions
            .tell(session, Do::tell(SessionCommand::Release, &deps.clock));
    }
    Ok(())
}
