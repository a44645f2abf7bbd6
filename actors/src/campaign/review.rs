//! A campaign's rules have changed: what was decided by the old ones for those who wait is decided anew, slice by slice. Lowered
//! retries end who has had them, loosened caps and windows let go whom they put off. Until that is done nobody who waits is
//! dispatched; the campaign's `review_of` says so, and outlives a crash.
use crate::{deps::Deps, facts::contact_moved, slices::Slices};
use entities::{
    Result,
    campaign::{self, Channel, Model as Campaign, Plan},
    connection::Connection,
    contact::Model as Contact,
    email_message,
    ids::{ContactId, EmailId, SessionId, SmsId, TenantId, TenantScoped},
    message, session, sms_message,
    values::Moment,
};
use rules::{
    commit::Commit,
    contact::machine::{self as contact, Command, Ending, Last},
    session::command::Command as SessionCommand,
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;

/// Contacts that are read at once, and that one transaction moves, at most.
const MOST: usize = 250;
/// The longest rest after a page.
const REST: Duration = Duration::from_millis(50);
/// Campaigns that are read at once.
const CAMPAIGNS: u64 = 16;

/// Works off the tenant's campaigns one after the other.
pub fn begin(deps: &Deps, tenant: TenantId) {
    let work = {
        let deps = deps.clone();
        async move {
            loop {
                let campaigns = campaign::to_review(&deps.db.read, tenant, CAMPAIGNS).await?;
                if campaigns.is_empty() {
                    return Ok(());
                }
                for campaign in campaigns {
                    review(&deps, campaign).await?;
                }
            }
        }
    };
    deps.jobs.run(&deps.reviews, tenant, "review of campaigns", work);
}

async fn review(deps: &Deps, campaign: Campaign) -> Result<()> {
    let Some(of) = campaign.review_of else { return Ok(()) };
    let key = TenantScoped::new(campaign.tenant_id, campaign.env, campaign.id);
    let campaign = Arc::new(campaign);
    let mut slices = Slices::new(MOST);
    let mut after = None;
    loop {
        let began = Instant::now();
        // The rules have changed once more: all is judged by those.
        if !campaign::is_review_of(&deps.db.reports, key.id, of).await? {
            return Ok(());
        }
        // Whom it concerns is found where whole lists are read; the writer is kept for those who move.
        let waiting = entities::contact::waiting_after(&deps.db.reports, key.id, after, MOST as u64).await?;
        let Some(last) = waiting.last() else { break };
        after = last.next_attempt_at.map(|at| (at, last.id));
        let lasts = lasts(deps, campaign.plan.channel, &waiting).await?;
        let mut moving = Vec::new();
        for contact in waiting {
            let last = contact.last_row_id.and_then(|row| lasts.get(&row.0).copied());
            if judged(&contact, last, &campaign.plan, deps.clock.now())?.0 != contact {
                moving.push((contact, last));
            }
        }
        // Whoever changes rules again and again has a third of a core at most.
        deps.clock.rest((began.elapsed() * 2).min(REST)).await;
        while !moving.is_empty() {
            let some: Arc<[_]> = moving.split_off(moving.len().saturating_sub(slices.rows())).into();
            loop {
                let (some, campaign, now) = (some.clone(), campaign.clone(), deps.clock.now());
                let slice = slices.write(deps, campaign.tenant_id, move |db| {
                    let (some, campaign) = (some.clone(), campaign.clone());
                    Box::pin(async move { slice(db, &campaign, of, &some, now).await })
                });
                match slice.await {
                    Ok(true) => break,
                    Ok(false) => return Ok(()),
                    Err(error) if error.retryable() => deps.clock.back_off(10).await,
                    Err(error) => return Err(error),
                }
            }
        }
    }
    // Calls that a trunk sent back, and that wait for an opening of the old windows.
    for session in session::sent_back(&deps.db.read, key).await? {
        deps.router.sessions().tell(session, SessionCommand::Release);
    }
    let reviewed = rules::campaign::machine::Command::Reviewed { of };
    deps.router.campaigns().request(key, reviewed).await.map(drop)
}

fn judged(
    contact: &Contact,
    last: Option<Last>,
    plan: &Plan,
    now: Moment,
) -> Result<(Contact, Vec<rules::event::Event>)> {
    contact::transition(contact.clone(), Command::Review { last }, &plan.retry, now)
}

/// `false`: it is not by these rules any more.
async fn slice(
    db: &Connection,
    campaign: &Campaign,
    of: i32,
    moving: &[(Contact, Option<Last>)],
    now: Moment,
) -> Result<(bool, Commit)> {
    let mut commit = Commit::default();
    if !campaign::is_review_of(db, campaign.id, of).await? {
        return Ok((false, commit));
    }
    let ids: Vec<ContactId> = moving.iter().map(|(contact, _)| contact.id).collect();
    let mut rows: HashMap<ContactId, Contact> = entities::contact::of_ids(db, &ids)
        .await?
        .into_iter()
        .map(|row| (row.id, row))
        .collect();
    for (read, last) in moving {
        // Who was called since then was judged by the new rules.
        let row = rows.remove(&read.id).filter(|row| row.last_row_id == read.last_row_id);
        let Some(before) = row else { continue };
        let (after, events) = judged(&before, *last, &campaign.plan, now)?;
        if after != before {
            contact_moved(&mut commit, &before, after, &events);
        }
    }
    Ok((true, commit))
}

/// How the last calls to these contacts ended, or the last messages, by their rows.
async fn lasts(deps: &Deps, channel: Channel, contacts: &[Contact]) -> Result<HashMap<Uuid, Last>> {
    let db = &deps.db.reports;
    let rows = contacts.iter().filter_map(|contact| Some(contact.last_row_id?.0));
    // Only what did not arrive is waited with.
    let unsent = |(id, ended_at)| {
        let ending = Ending::NotArrived;
        (id, Last { ending, ended_at })
    };
    Ok(match channel {
        Channel::Phone => {
            let ids: Vec<SessionId> = rows.map(SessionId).collect();
            let calls = session::of_ids(db, &ids).await?;
            calls
                .into_iter()
                .filter_map(|call| Some((call.id.0, last(&call)?)))
                .collect()
        }
        Channel::Sms => {
            let ids: Vec<SmsId> = rows.map(SmsId).collect();
            let ended = message::ends_of::<sms_message::Entity>(db, &ids).await?;
            ended.into_iter().map(|(id, at)| unsent((id.0, at))).collect()
        }
        Channel::Email => {
            let ids: Vec<EmailId> = rows.map(EmailId).collect();
            let ended = message::ends_of::<email_message::Entity>(db, &ids).await?;
            ended.into_iter().map(|(id, at)| unsent((id.0, at))).collect()
        }
    })
}

fn last(call: &session::Model) -> Option<Last> {
    let ending = Ending::Call(call.status, call.end_reason?);
    let ended_at = call.ended_at?;
    Some(Last { ending, ended_at })
}
