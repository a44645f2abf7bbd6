//! Handing a message over: look, commit the intent, then talk with the server once, and tell what came of it.
use super::tell;
use crate::{deps::Deps, holds, sms::check_blocks};
use adapters::{
    email::{link, message},
    mail::{
        post::{keep, mailbox},
        smtp::Failure,
    },
};
use entities::{
    Error, Result,
    dnc::{self, DncChannel},
    email_message::{self, Model, Phase, content},
    ids::{EmailId, Owned},
    values::{Cents, Env},
};
use lettre::{Message, message::Mailbox};
use rules::{
    email::machine::Command,
    message::{Bar, Block, Fault, TOO_LATE, UNDECIDED},
};
use runtime::permits::Permit;

/// Hands a message over, unless somebody is at it. What fails before the intent stands is tried again when its lease is over.
pub fn send(deps: &Deps, key: Owned<EmailId>) {
    let its = deps.clone();
    deps.jobs.run(&deps.email.running, key.id, "message", async move {
        hand_over(&its, key).await
    });
}

async fn hand_over(deps: &Deps, key: Owned<EmailId>) -> Result<()> {
    // It waits in the queue: its lease ends, and it is looked at again.
    if holds::look(deps).await?.is_some() {
        return Ok(());
    }
    let _permit = deps.email.permits.take(key.tenant_id).await?;
    if deps.is_draining() {
        return Ok(());
    }
    let row = email_message::load(&deps.db.read, key).await?;
    if !matches!(row.phase, Phase::Queued | Phase::Deferred) {
        return Ok(());
    }
    if let Some(command) = obstacle(deps, &row).await? {
        tell(deps, key, command);
        return Ok(());
    }
    let message = match built(deps, &row).await? {
        Ok(message) => message,
        Err(why) => {
            refuse(deps, &row, why);
            return Ok(());
        }
    };
    // From its commit on it may have left: whatever happens below, nobody hands it over again unless it was not taken.
    let row = match deps.router.emails().ask(key, Command::Begin).await? {
        Ok(row) => row,
        // Canceled, or sent, at this very moment.
        Err(Error::InvalidState { .. }) => return Ok(()),
        Err(error) => {
            undecided(deps, key);
            return Err(error);
        }
    };
    deliver(deps, &row, &message).await;
    Ok(())
}

/// Hands over a message whose intent a campaign has just committed: at once, for its permit was taken before.
pub fn send_begun(deps: &Deps, row: Model, permit: Permit) {
    let (its, key) = (deps.clone(), row.key());
    deps.router.emails().adopt(row.clone());
    deps.jobs.run(&deps.email.running, key.id, "message", async move {
        match built(&its, &row).await? {
            Ok(message) => deliver(&its, &row, &message).await,
            Err(why) => refuse(&its, &row, why),
        }
        drop(permit);
        crate::outgoing::freed(&its, key.tenant_id, row.campaign_id);
        Ok(())
    });
}

/// The message as it travels; why it cannot be made.
async fn built(deps: &Deps, row: &Model) -> Result<Result<Message, String>> {
    let content = content::load(&deps.db.read, row.key()).await?;
    Ok(sender(deps, row.env).and_then(|sender| {
        let link = link::url(&deps.links, &deps.base_url, row.id);
        message::build(row, &content, &sender, &link)
    }))
}

/// Of what cannot be made, nothing is handed over.
fn refuse(deps: &Deps, row: &Model, why: String) {
    let command = Command::Unbuilt { why };
    log(row, &command);
    tell(deps, row.key(), command);
}

async fn deliver(deps: &Deps, row: &Model, message: &Message) {
    deps.fence.pass(&deps.db).await;
    let command = if row.send_by.is_some_and(|at| deps.clock.times().later() > at) {
        Command::Busy {
            why: Fault::new(TOO_LATE, "its hours were over before it could be handed over"),
        }
    } else {
        outcome(deps, row, message).await
    };
    log(row, &command);
    tell(deps, row.key(), command);
}

/// The intent to send it may stand all the same, though its commit was given up. Nothing was handed over, so it is as if there had
/// been no room; where the intent does not stand, that changes nothing.
pub fn undecided(deps: &Deps, key: Owned<EmailId>) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        let _busy = busy;
        its.decided().await;
        let why = Fault::new(UNDECIDED, "the database did not answer in time");
        let busy = Command::Busy { why };
        tell(&its, key, busy);
    });
}

/// What keeps it from being sent, as far as can be read; the intent's own commit looks once more.
async fn obstacle(deps: &Deps, row: &Model) -> Result<Option<Command>> {
    let owner = (row.tenant_id, row.env);
    match crate::outgoing::of_campaign(deps, owner, row.campaign_id, row.send_by).await? {
        Some(crate::outgoing::Obstacle::Bar(bar)) => return Ok(Some(Command::Bar(bar))),
        Some(crate::outgoing::Obstacle::Wait(block)) => return Ok(Some(Command::Wait(block))),
        None => {}
    }
    if super::check_configured(deps, row.env).is_err() {
        return Ok(Some(Command::Bar(Bar::NotConfigured)));
    }
    match check_blocks(deps, owner).await {
        Ok(()) => {}
        Err(Error::InsufficientCredits) => return Ok(Some(Command::Wait(Block::Credits))),
        Err(Error::PlanLimit(_)) => return Ok(Some(Command::Wait(Block::Suspension))),
        Err(error) => return Err(error),
    }
    let address = std::slice::from_ref(&row.to_address);
    if !dnc::barred(&deps.db.read, owner, DncChannel::Email, address)
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

/// Who writes.
fn sender(deps: &Deps, env: Env) -> Result<Mailbox, String> {
    match (env, deps.post.from()) {
        (_, Some(from)) => Ok(from.clone()),
        (Env::Test, None) => mailbox("Callboard <callboard@localhost>"),
        (Env::Live, None) => Err("no mail server is configured".into()),
    }
}

async fn outcome(deps: &Deps, row: &Model, message: &Message) -> Command {
    let taken = match row.env {
        Env::Live => deps.post.hand_over(&row.id.to_string(), message).await,
        Env::Test => sandbox(deps, row, message).await,
    };
    match taken {
        Ok(reply) => Command::Taken(Some(reply).filter(|reply| !reply.is_empty())),
        Err(Failure::Passing(why)) => Command::Busy {
            why: Fault::new("deferred", why),
        },
        Err(Failure::Bounced(why)) => Command::Bounced(Fault::new("bounced", why)),
        Err(Failure::Refused(why)) => Command::Refused(Fault::new("provider_rejected", why)),
        Err(Failure::Unknown(why)) => Command::Lost { why },
    }
}

/// Test keys' messages never leave: the address's local part decides what becomes of them. `bounced@` · `deferred@`, sent at the
/// second attempt · `failed@` · anything else is sent.
async fn sandbox(deps: &Deps, row: &Model, message: &Message) -> Result<String, Failure> {
    let local = row.to_address.split('@').next().unwrap_or_default();
    match local {
        "bounced" => {
            return Err(Failure::Bounced(
                "550 the sandbox plays a mailbox that does not exist".into(),
            ));
        }
        "failed" => {
            return Err(Failure::Refused(
                "554 the sandbox plays a server that refuses the message".into(),
            ));
        }
        "deferred" if row.attempts == 1 => {
            return Err(Failure::Passing("451 the sandbox plays a server that is busy".into()));
        }
        _ => {}
    }
    match &deps.email.sandbox_folder {
        Some(folder) => keep(folder, &row.id.to_string(), message)
            .await
            .map_err(Failure::Passing),
        None => Ok("kept by the sandbox".into()),
    }
}

fn log(row: &Model, command: &Command) {
    let result = match command {
        Command::Taken(_) => "taken",
        Command::Busy { .. } => "deferred",
        Command::Bounced(_) => "bounced",
        Command::Lost { .. } => "lost",
        Command::Unbuilt { .. } => "invalid",
        _ => "refused",
    };
    metrics::counter!("callboard_emails_total", "env" => row.env.as_str(), "result" => result).increment(1);
    if !matches!(command, Command::Taken(_)) {
        // What a server says may name its recipient: it stands in the message's `error`, not here.
        tracing::warn!(message = %row.id, attempt = row.attempts, result, "an e-mail was not taken");
    }
}
