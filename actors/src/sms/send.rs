//! Handing a message over: look, commit the intent, then ask the provider once, and tell what came of it.
use super::{check_blocks, reachable, tell};
use crate::{
    deps::Deps,
    holds,
    outgoing::{self, Obstacle},
};
use adapters::sms::{
    provider::{Door, Outcome, Outgoing, Sent},
    twilio::status_url,
};
use entities::{
    Error, Result,
    changes::Guard,
    dnc::{self, DncChannel},
    ids::{Owned, SmsId, TenantId},
    message_send::{self, Channel},
    number_claim,
    sms_message::{self, Model, Phase},
    values::{Cents, E164, Env},
};
use rules::{
    commit::Commit,
    message::{Bar, Block, Fault, TOO_LATE, UNDECIDED},
    sms::machine::Command,
};
use runtime::permits::Permit;
use std::time::Duration;

/// Hands a message over, unless somebody is at it. What fails before the intent stands is tried again when its lease is over.
pub fn send(deps: &Deps, key: Owned<SmsId>) {
    let its = deps.clone();
    deps.jobs.run(&deps.sms.running, key.id, "message", async move {
        hand_over(&its, key).await
    });
}

/// Hands over a message whose intent a campaign has just committed: at once, for its permit was taken before.
pub fn send_begun(deps: &Deps, row: Model, permit: Permit) {
    let (its, key) = (deps.clone(), row.key());
    deps.router.sms().adopt(row.clone());
    deps.jobs.run(&deps.sms.running, key.id, "message", async move {
        let Some(door) = its.sms.of(key.env) else {
            // It was there a moment ago; the intent stands, so nobody knows.
            return Ok(());
        };
        let outcome = ask_once(&its, door, &row).await;
        drop(permit);
        outgoing::freed(&its, key.tenant_id, row.campaign_id);
        log(&row, &outcome);
        tell(&its, key, outcome.into());
        Ok(())
    });
}

async fn hand_over(deps: &Deps, key: Owned<SmsId>) -> Result<()> {
    let Some(door) = deps.sms.of(key.env) else {
        tell(deps, key, Command::Bar(Bar::NotConfigured));
        return Ok(());
    };
    // It waits in the queue: its lease ends, and it is looked at again.
    if holds::look(deps).await?.is_some() {
        return Ok(());
    }
    let _permit = door.permits.take(key.tenant_id).await?;
    if deps.is_draining() {
        return Ok(());
    }
    let row = sms_message::load(&deps.db.read, key).await?;
    if row.phase != Phase::Queued {
        return Ok(());
    }
    if let Some(command) = obstacle(deps, &row).await? {
        tell(deps, key, command);
        return Ok(());
    }
    // From its commit on it may have left: whatever happens below, nobody hands it over again unless the provider says so.
    let row = match deps.router.sms().ask(key, Command::Begin).await? {
        Ok(row) => row,
        // Canceled, or sent, at this very moment.
        Err(Error::InvalidState { .. }) => return Ok(()),
        Err(error) => {
            undecided(deps, key);
            return Err(error);
        }
    };
    let outcome = ask_once(deps, door, &row).await;
    log(&row, &outcome);
    tell(deps, key, outcome.into());
    Ok(())
}

/// The provider's answer. One whose hours have passed since its intent was committed is not handed over: it waits, as if there
/// had been no room, and is then told that it is too late.
async fn ask_once(deps: &Deps, door: &Door, row: &Model) -> Outcome {
    deps.fence.pass(&deps.db).await;
    if row.send_by.is_some_and(|at| deps.clock.times().later() > at) {
        let why = Fault::new(TOO_LATE, "its hours were over before it could be handed over");
        return Outcome::Busy { retry_after: None, why };
    }
    let (handed_over, key) = (deps.clock.now(), row.key());
    let Sent { outcome, reports } = door
        .provider
        .send(Outgoing::of(row, Some(status_url(&deps.base_url, row.id))))
        .await;
    for (after, report) in reports {
        let (its, busy) = (deps.clone(), deps.clock.busy());
        deps.runtime.spawn(async move {
            let _busy = its.clock.busy_until(handed_over.plus(after), busy).await;
            tell(&its, key, Command::Report(report));
        });
    }
    outcome
}

/// The intent to send it may stand all the same, though its commit was given up. Nothing was handed over, so it is as if there had
/// been no room; where the intent does not stand, that changes nothing.
pub fn undecided(deps: &Deps, key: Owned<SmsId>) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        let _busy = busy;
        its.decided().await;
        let why = Fault::new(UNDECIDED, "the database did not answer in time");
        let busy = Command::Busy { retry_after: None, why };
        tell(&its, key, busy);
    });
}

/// What keeps it from being sent, as far as can be read; the intent's own commit looks once more.
async fn obstacle(deps: &Deps, row: &Model) -> Result<Option<Command>> {
    let owner = (row.tenant_id, row.env);
    match outgoing::of_campaign(deps, owner, row.campaign_id, row.send_by).await? {
        Some(Obstacle::Bar(bar)) => return Ok(Some(Command::Bar(bar))),
        Some(Obstacle::Wait(block)) => return Ok(Some(Command::Wait(block))),
        None => {}
    }
    match check_blocks(deps, owner).await {
        Ok(()) => {}
        Err(Error::InsufficientCredits) => return Ok(Some(Command::Wait(Block::Credits))),
        Err(Error::PlanLimit(_)) => return Ok(Some(Command::Wait(Block::Suspension))),
        Err(error) => return Err(error),
    }
    // A message may have been scheduled weeks ago, and its sender be another workspace's by now.
    if let (Env::Live, Some(from)) = (row.env, &row.from_number)
        && !deps.sms.is_shared(from)
        && !number_claim::holds(&deps.db.read, row.tenant_id, from).await?
    {
        return Ok(Some(Command::Bar(Bar::Sender)));
    }
    let number = std::slice::from_ref(&row.to_number);
    if !dnc::barred(&deps.db.read, owner, DncChannel::Sms, number)
        .await?
        .is_empty()
    {
        return Ok(Some(Command::Bar(Bar::Dnc)));
    }
    if row.held_cents == Cents(0) && !crate::credits::cover(deps, owner, row.price_cents).await? {
        crate::credits::fall_short(deps, owner, row.price_cents).await?;
        return Ok(Some(Command::Wait(Block::Credits)));
    }
    Ok(None)
}

fn log(row: &Model, outcome: &Outcome) {
    let (result, code) = match outcome {
        Outcome::Taken(_) => ("taken", ""),
        Outcome::Busy { why, .. } => ("busy", why.code),
        Outcome::Refused(why) => ("refused", why.code),
        Outcome::Lost(_) => ("lost", ""),
    };
    metrics::counter!("callboard_sms_total", "env" => row.env.as_str(), "result" => result).increment(1);
    if !matches!(outcome, Outcome::Taken(_)) {
        tracing::warn!(message = %row.id, attempt = row.attempts, result, code, "an SMS was not taken");
    }
}

/// A text that is sent at once waits so long for the provider to have room.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one text at once and stores none of it, as a code that only its reader may see. The intent is a row all the same, on
/// the conditions that hold for every message; it is not charged and not tried again. `Unavailable`: it may or may not arrive.
pub async fn send_now(deps: &Deps, owner: (TenantId, Env), to: E164, body: String) -> Result<()> {
    let (tenant_id, env) = owner;
    let from = super::from_number(deps, owner, None).await?;
    check_blocks(deps, owner).await?;
    holds::check(deps).await?;
    let number = std::slice::from_ref(&to);
    if !dnc::barred(&deps.db.read, owner, DncChannel::Sms, number)
        .await?
        .is_empty()
    {
        return Err(Error::RecipientOnDnc);
    }
    let Some(door) = deps.sms.of(env) else {
        return Err(Error::NotConfigured("no SMS provider is configured".into()));
    };
    // Somebody waits for the answer.
    let permit = tokio::time::timeout(PATIENCE, door.permits.take(tenant_id)).await;
    let _permit = permit.map_err(|_| Error::Unavailable("the SMS provider is busy".into()))??;
    let id: SmsId = deps.ids.next();
    let mut commit = Commit::default();
    commit.changes.guards.push(Guard::Reachable(reachable(owner, &to)));
    commit.changes.message_sends.push(message_send::Model {
        tenant_id,
        env,
        channel: Channel::Sms,
        address: to.as_str().to_owned(),
        message_id: id.0,
        n: 1,
        campaign_id: None,
        sent_at: deps.clock.now(),
        seq: 0,
    });
    match deps.writer.commit(commit).await {
        // Something has changed since it was read.
        Err(Error::Stale) => {
            holds::check(deps).await?;
            check_blocks(deps, owner).await?;
            return Err(Error::RecipientOnDnc);
        }
        done => done?,
    }
    let message = Outgoing {
        key: Owned::new(tenant_id, env, id),
        to,
        from,
        body,
        attempt: 1,
        report_to: None,
    };
    deps.fence.pass(&deps.db).await;
    match door.provider.send(message).await.outcome {
        Outcome::Taken(_) => Ok(()),
        Outcome::Refused(fault) => Err(Error::invalid(
            "phone_number",
            format!("takes no text: {}", fault.message),
        )),
        Outcome::Busy { why, .. } => Err(Error::Unavailable(why.message)),
        Outcome::Lost(why) => Err(Error::Unavailable(why)),
    }
}
