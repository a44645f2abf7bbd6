//! Handing a message over: look, commit the intent, then hand it over once, and tell what came of it.
use super::{
    Sendable, check_blocks, freed, is_on_dnc,
    legal::{self, Permission},
    of_campaign,
};
use crate::{credits, deps::Deps, holds};
use entities::{
    Error, Result,
    ids::TenantScoped,
    message_send::Channel,
    values::{Cents, Moment},
};
use rules::message::{
    Block, Fault, MessageRejectReason, TOO_LATE, UNDECIDED,
    machine::Command,
    outgoing::{Seen, Stage},
};
use runtime::{
    permits::Permit,
    tracer::{Place, Span, SpanKind, span_id},
};
use std::time::Duration;
use uuid::Uuid;

/// Hands a message over, unless somebody is at it. What fails before the intent stands is tried again when its lease is over.
pub fn send<M: Sendable>(deps: &Deps, key: TenantScoped<M::Id>) {
    let (its, stay) = (deps.clone(), deps.stay(key.tenant_id));
    deps.jobs.run(M::running(deps), key.id, "message", async move {
        let _stay = stay;
        hand_over::<M>(&its, key).await
    });
}

/// Hands over a message whose intent a campaign has just committed: at once, for its permit was taken before. `permission`: what the
/// law had said of it by then.
pub fn send_begun<M: Sendable>(deps: &Deps, row: M, permit: Permit, permission: Option<Permission>) {
    let (its, seen) = (deps.clone(), row.seen());
    let (key, campaign_id) = (seen.key, seen.campaign_id);
    M::mailbox(deps).adopt(row.clone());
    let stay = deps.stay(key.tenant_id);
    deps.jobs.run(M::running(deps), key.id, "message", async move {
        let _stay = stay;
        let outcome = match row.made(&its).await? {
            Ok(made) => ask_once(&its, &row, made, permission).await,
            Err(why) => why,
        };
        drop(permit);
        freed(&its, key.tenant_id, campaign_id);
        report(&its, &row, outcome);
        Ok(())
    });
}

/// The intent to send it, which a campaign was about to commit, may stand all the same, though that commit was given up.
pub fn undecided<M: Sendable>(deps: &Deps, key: TenantScoped<M::Id>) {
    let (its, stay) = (deps.clone(), deps.stay(key.tenant_id));
    deps.jobs.run(M::running(deps), key.id, "message", async move {
        let _stay = stay;
        take_back::<M>(&its, key).await;
        Ok(())
    });
}

/// Nothing was handed over, so it is as if there had been no room; where the intent does not stand, that changes nothing. Whoever waits
/// here has the message in hand until then: what is taken back is whichever intent stands, and a newer one may have been handed over.
async fn take_back<M: Sendable>(deps: &Deps, key: TenantScoped<M::Id>) {
    deps.decided().await;
    let why = Fault::new(UNDECIDED, "the database did not answer in time");
    M::mailbox(deps).tell(key, Command::Busy { retry_after: None, why });
}

async fn hand_over<M: Sendable>(deps: &Deps, key: TenantScoped<M::Id>) -> Result<()> {
    let Some(permits) = M::permits(deps, key.env) else {
        M::mailbox(deps).tell(key, Command::Bar(MessageRejectReason::NotConfigured));
        return Ok(());
    };
    // It waits in the queue: its lease ends, and it is looked at again.
    if holds::look(deps).await?.is_some() {
        return Ok(());
    }
    let permit = permits.take(key.tenant_id).await?;
    if deps.is_draining() {
        return Ok(());
    }
    let row = M::load(&deps.db, key).await?;
    if row.stage() != Stage::Queued {
        return Ok(());
    }
    if let Some(command) = obstacle(deps, &row).await? {
        M::mailbox(deps).tell(key, command);
        return Ok(());
    }
    let permission = match legal::of_message(deps, &row).await? {
        Ok(permission) => permission,
        Err(keeps) => {
            M::mailbox(deps).tell(key, keeps.into());
            return Ok(());
        }
    };
    let made = match row.made(deps).await? {
        Ok(made) => made,
        Err(why) => {
            report(deps, &row, why);
            return Ok(());
        }
    };
    // From its commit on it may have left: whatever happens below, nobody hands it over again unless it was not taken.
    let bound = permission.as_ref().map(|permission| Box::new(permission.bound()));
    let row = match M::mailbox(deps).ask(key, Command::Begin(bound)).await? {
        Ok(row) => row,
        // Canceled, or sent, at this very moment.
        Err(Error::InvalidState { .. }) => return Ok(()),
        Err(error) => {
            drop(permit);
            take_back::<M>(deps, key).await;
            return Err(error);
        }
    };
    let outcome = ask_once(deps, &row, made, permission).await;
    report(deps, &row, outcome);
    Ok(())
}

/// What came of handing it over. One whose hours have passed while its intent was committed, or that the law does not allow any more, is
/// not handed over: it waits, as if there had been no room, and is then told what keeps it.
async fn ask_once<M: Sendable>(deps: &Deps, row: &M, made: M::Made, permission: Option<Permission>) -> Command<M::Own> {
    if let Err(error) = deps.pass(row.seen().key.tenant_id).await {
        let why = Fault::new("moved", error.to_string());
        return Command::Busy { retry_after: None, why };
    }
    if row.seen().send_by.is_some_and(|at| deps.clock.times().later() > at) {
        let why = Fault::new(TOO_LATE, "its hours were over before it could be handed over");
        return Command::Busy { retry_after: None, why };
    }
    if permission.is_some_and(|permission| !permission.lasts(deps.clock.times())) {
        let why = Fault::new(
            TOO_LATE,
            "the law did not allow it any more when it could be handed over",
        );
        return Command::Busy { retry_after: None, why };
    }
    let traced = deps.traces.of_message(row.seen().key.id.into());
    let (began, since) = (deps.clock.now(), deps.clock.monotonic());
    let outcome = row.hand_over(deps, made).await;
    if let Some(place) = traced {
        let took = deps.clock.monotonic().saturating_sub(since);
        // What is told of the message itself stands below its last try, whose span has its id.
        let id = match outcome {
            Command::Busy { .. } => deps.ids.next(),
            _ => row.seen().key.id.into(),
        };
        deps.traces.record([span(place, row, id, &outcome, (began, took))]);
    }
    outcome
}

/// Neither to whom it goes nor what it says.
fn span<M: Sendable>(place: Place, row: &M, of: Uuid, outcome: &Command<M::Own>, when: (Moment, Duration)) -> Span {
    let Seen { key, attempts, .. } = row.seen();
    let (began, took) = when;
    let id: Uuid = key.id.into();
    let name = match M::CHANNEL {
        Channel::Sms => "sms",
        Channel::Email => "email",
    };
    let mut span = place.span(span_id(of), name, began, took);
    span.kind = SpanKind::Client;
    span.attributes = vec![
        ("callboard.message_id", id.to_string().into()),
        ("callboard.tenant_id", key.tenant_id.to_string().into()),
        ("callboard.env", key.env.as_str().into()),
        ("callboard.attempt", attempts.into()),
    ];
    span.error = (!matches!(outcome, Command::Taken(_))).then(|| "not_taken".into());
    span
}

fn report<M: Sendable>(deps: &Deps, row: &M, outcome: Command<M::Own>) {
    row.log(&outcome);
    M::mailbox(deps).tell(row.seen().key, outcome);
}

/// What keeps it from being sent, as far as can be read; the intent's own commit looks once more.
async fn obstacle<M: Sendable>(deps: &Deps, row: &M) -> Result<Option<Command<M::Own>>> {
    let Seen {
        key,
        campaign_id,
        send_by,
        price_cents,
        held_cents,
        ..
    } = row.seen();
    let owner = (key.tenant_id, key.env);
    if let Some(keeps) = of_campaign(deps, owner, campaign_id, send_by).await? {
        return Ok(Some(keeps.into()));
    }
    if M::check_configured(deps, key.env).is_err() {
        return Ok(Some(Command::Bar(MessageRejectReason::NotConfigured)));
    }
    match check_blocks(deps, owner).await {
        Ok(()) => {}
        Err(Error::InsufficientCredits) => return Ok(Some(Command::Wait(Block::Credits))),
        Err(Error::PlanLimit(_)) => return Ok(Some(Command::Wait(Block::Suspension))),
        Err(error) => return Err(error),
    }
    if let Some(bar) = row.barred(deps).await? {
        return Ok(Some(Command::Bar(bar)));
    }
    if is_on_dnc(deps, row).await? {
        return Ok(Some(Command::Bar(MessageRejectReason::Dnc)));
    }
    if held_cents == Cents(0) && !credits::cover(deps, owner, price_cents).await? {
        credits::fall_short(deps, owner, price_cents).await?;
        return Ok(Some(Command::Wait(Block::Credits)));
    }
    Ok(None)
}
