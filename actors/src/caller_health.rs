//! How well the numbers do that live calls show: one that networks block, or that nobody answers any more, is given a rest of a day,
//! and the workspace's owners are told.
use crate::deps::Deps;
use entities::{
    Result, boxed, caller_rest,
    connection::Connection,
    ids::TenantId,
    membership,
    number_hour::{self, Counts},
    values::{E164, Env, Moment},
};
use rules::{
    commit::Commit,
    effect::Hint,
    law::{
        caller::{JUDGED_FROM, SPAN_SECONDS, judged_since, rests},
        notices,
    },
};

/// What a number's page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerHealth {
    /// Of the last 24 hours, in whole hours.
    pub counts: Counts,
    /// The rest that it has.
    pub rest: Option<caller_rest::Model>,
}

#[boxed]
pub async fn of_number(db: &Connection, owner: (TenantId, Env), number: &E164, now: Moment) -> Result<CallerHealth> {
    let rest = caller_rest::of_number(db, owner, number).await?;
    let since = now.plus_seconds(-SPAN_SECONDS);
    Ok(CallerHealth {
        counts: number_hour::counts_since(db, owner, number, since).await?,
        rest: rest.filter(|rest| now < rest.ends_at),
    })
}

/// Looks at all that were shown in enough calls, as part of each reconcile.
#[boxed]
pub async fn look(deps: &Deps) -> Result<()> {
    let now = deps.clock.now();
    let since = now.plus_seconds(-SPAN_SECONDS);
    for shown in number_hour::shown_since(&deps.db.read, deps.share(), since, JUDGED_FROM).await? {
        // Whoever is not due by all of a day's calls is not by those since its last rest either, or will be found when it is.
        if rests(shown.counts()).is_some() {
            judge(deps, shown.tenant_id, shown.phone_number, now).await?;
        }
    }
    Ok(())
}

async fn judge(deps: &Deps, tenant_id: TenantId, phone_number: E164, now: Moment) -> Result<()> {
    let (db, owner) = (&deps.db.read, (tenant_id, Env::Live));
    let last = caller_rest::of_number(db, owner, &phone_number).await?;
    if last.as_ref().is_some_and(|rest| now < rest.ends_at) {
        return Ok(());
    }
    let since = judged_since(now, last.map(|rest| rest.ends_at));
    let counts = number_hour::counts_since(db, owner, &phone_number, since).await?;
    let Some(cause) = rests(counts) else { return Ok(()) };
    let ends_at = now.plus_seconds(SPAN_SECONDS);
    let mail = notices::caller_rests(&phone_number, cause, counts, ends_at);
    let mut commit = Commit::default();
    for recipient in membership::owners(db, tenant_id).await? {
        commit
            .changes
            .mails
            .push(mail.row(deps.ids.next(), tenant_id, recipient, now));
    }
    commit.changes.caller_rests.push(caller_rest::Model {
        tenant_id,
        env: Env::Live,
        phone_number,
        cause,
        since: now,
        ends_at,
    });
    deps.writer.commit(tenant_id.into(), commit).await?;
    metrics::counter!("callboard_caller_rests_total").increment(1);
    // Who calls next shows another one.
    let told = vec![Hint::MailQueued.into(), Hint::CampaignsChanged(tenant_id).into()];
    deps.router.perform(told);
    Ok(())
}
