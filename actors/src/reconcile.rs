//! What the rows say should be at work, is: run at boot and every 30 seconds, and both are the same. So nothing depends on a hint, and
//! whatever a crash interrupts goes on.
//!
//! A service at rest is not asked everything each time: see [`reconcile_unless_quiet`].
use crate::{
    attempts::exports,
    caller_health,
    campaign::{actor::check_drained, review},
    consent::files,
    credits::{grants, payments},
    delivery,
    deps::Deps,
    erasure, evaluate, holds, import,
    leases::Of,
    quiet::LOOK_AT_LEAST_EVERY,
    recording::spooling,
    restored,
    router::LaneHint,
    trunk::actor::look_at_all,
    voice_clone::samples,
};
use entities::{
    Result, boxed,
    email_message::{self, Model as Email},
    ids::TenantId,
    message,
    recording::Model as Recording,
    sms_message::{self, Model as Sms},
    values::Moment,
    webhook_endpoint::Model as Endpoint,
};
use rules::{
    campaign::machine::Campaign,
    commit::Commit,
    effect::DispatchHint,
    machine::Machine,
    room::machine::{Command as RoomCommand, Room},
    session::command::Command as SessionCommand,
    voice_clone::machine::Voice,
};

/// What another process was at when it ended, nobody is at any more: what it had claimed of these workspaces is let go. Once,
/// before the first [`reconcile`]. `of`: `None` is all of them.
#[boxed]
pub async fn take_over(deps: &Deps, of: Option<&[TenantId]>) -> Result<()> {
    let (now, of) = (deps.clock.now(), of.map(<[TenantId]>::to_vec));
    deps.writer
        .run(Of::Anybody, move |db| {
            let of = of.clone();
            Box::pin(async move {
                entities::recording::let_go(db, of.as_deref(), now).await?;
                entities::voice::let_go(db, of.as_deref(), now).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

/// The look that recurs every 30 seconds. It is a full one unless the last has found nothing at work, nothing comes due, nothing was
/// committed since and no actor is parked: then only what other processes may have left is asked for, which no count of ours tells.
#[boxed]
pub async fn reconcile_unless_quiet(deps: &Deps) -> Result<()> {
    if deps.quiet.holds(deps.writer.commits(), deps.clock.now()) && !deps.router.any_parked() {
        left_by_others(deps).await
    } else {
        reconcile(deps).await
    }
}

/// Starts the actors that the rows say should be at work, and repairs what a crash or a lost hint has left.
#[boxed]
pub async fn reconcile(deps: &Deps) -> Result<()> {
    // Counted before anything is read: what is committed during the look is looked at by the next.
    let (commits, began) = (deps.writer.commits(), deps.clock.now());
    deps.quiet.look_begins();
    // Before anything that it puts away is begun again.
    let to_settle = restored::settle(deps).await;
    // One that fails does not keep the others from their work.
    let kept = [
        lanes(deps).await,
        endpoints(deps).await,
        // What speaks with a peer keeps its own time, and is restarted if it panics.
        look_at_all(deps).await,
        caller_health::look(deps).await,
        left_by_others(deps).await,
    ];
    let at_work = [
        to_settle,
        recoveries(deps).await,
        imports(deps).await,
        erasures(deps).await,
        exports_at_work(deps).await,
        recordings(deps).await,
        messages(deps).await,
        voices(deps).await,
        samples::sweep(deps).await,
        files::sweep(deps).await,
        evaluations(deps).await,
        payments::reconcile(deps).await,
        sessions(deps).await,
        rooms(deps).await,
        campaigns(deps).await,
        reviews(deps).await,
        dispatchers(deps).await,
    ];
    kept.into_iter().collect::<Result<()>>()?;
    let at_work = at_work.into_iter().collect::<Result<Vec<bool>>>()?;
    // What is at work may need another push, without a commit; so may what a parked actor has not heard.
    let is_quiet = !at_work.contains(&true) && !deps.router.any_parked();
    if is_quiet && !comes_due(deps, began.plus(LOOK_AT_LEAST_EVERY)).await? {
        deps.quiet.begin(commits, began);
    }
    Ok(())
}

/// What the command line leaves as rows, in a process of its own.
async fn left_by_others(deps: &Deps) -> Result<()> {
    mails(deps).await.and(grants::book(deps).await)
}

/// Does anything come due by then for which nobody keeps an alarm?
async fn comes_due(deps: &Deps, by: Moment) -> Result<bool> {
    let (db, share, soon) = (&deps.db.read, deps.share(), by.plus_seconds(AHEAD_SECONDS));
    Ok(!entities::recording::due(db, share, by, 1).await?.is_empty()
        || !message::due::<sms_message::Entity>(db, share, by, 1).await?.is_empty()
        || !message::due::<email_message::Entity>(db, share, by, 1)
            .await?
            .is_empty()
        || !entities::voice::due(db, share, by, 1).await?.is_empty()
        || !entities::room::due(db, share, soon, 1).await?.is_empty()
        || !entities::campaign::unattended(db, share, soon).await?.is_empty()
        || samples::comes_due(deps, by).await?
        || files::comes_due(deps, by).await?
        || payments::comes_due(deps, by).await?)
}

/// Actors that keep precise alarms are woken so long before their moment: longer than until the next look.
const AHEAD_SECONDS: i64 = 60;

/// A lane that waits for a retry keeps its alarm, also over a panic: what is found here is no reason to look again soon.
async fn lanes(deps: &Deps) -> Result<()> {
    for endpoint in entities::delivery::endpoints_at_work(&deps.db.read, deps.share()).await? {
        deps.router.lane(endpoint, LaneHint::Wake);
    }
    Ok(())
}

/// These keep their alarms too.
async fn endpoints(deps: &Deps) -> Result<()> {
    for endpoint in entities::webhook_endpoint::in_overlap(&deps.db.read, deps.share()).await? {
        deps.router.endpoints().tell(endpoint, Endpoint::TICK);
    }
    Ok(())
}

/// Answers whether any is at work, as all that follow do.
async fn recoveries(deps: &Deps) -> Result<bool> {
    let running = entities::recovery::running(&deps.db.read, deps.share()).await?;
    for job in &running {
        delivery::recovery::run(deps, job.id, job.endpoint());
    }
    Ok(!running.is_empty())
}

async fn imports(deps: &Deps) -> Result<bool> {
    let running = entities::import::running(&deps.db.read, deps.share()).await?;
    for job in &running {
        import::run(deps, *job);
    }
    Ok(!running.is_empty())
}

/// What was in use when it was to be erased may not be any more.
async fn erasures(deps: &Deps) -> Result<bool> {
    let tenants = entities::erasure::tenants_at_work(&deps.db.read, deps.share()).await?;
    for tenant in &tenants {
        erasure::run(deps, *tenant);
    }
    Ok(!tenants.is_empty())
}

async fn exports_at_work(deps: &Deps) -> Result<bool> {
    let running = entities::compliance_export::running(&deps.db.read, deps.share()).await?;
    for job in &running {
        exports::run(deps, *job);
    }
    Ok(!running.is_empty())
}

/// Recordings that wait to be stored, or whose time has come: by both clocks, for what is erased does not come back.
async fn recordings(deps: &Deps) -> Result<bool> {
    let due = entities::recording::due(&deps.db.read, deps.share(), deps.clock.times().earlier(), 1000).await?;
    for recording in &due {
        deps.router.recordings().tell(*recording, Recording::TICK);
    }
    spooling::sweep(deps);
    Ok(!due.is_empty())
}

/// Messages whose time has come. Far more than are handed over in 30 seconds; the rest follows then. While nothing may leave they
/// wait as rows.
async fn messages(deps: &Deps) -> Result<bool> {
    const AT_ONCE: u64 = 5_000;
    if holds::look(deps).await?.is_some() {
        // Nobody knows how long they wait.
        return Ok(true);
    }
    let now = deps.clock.now();
    let texts = message::due::<sms_message::Entity>(&deps.db.read, deps.share(), now, AT_ONCE).await?;
    for text in &texts {
        deps.router.sms().tell(*text, Sms::TICK);
    }
    let emails = message::due::<email_message::Entity>(&deps.db.read, deps.share(), now, AT_ONCE).await?;
    for email in &emails {
        deps.router.emails().tell(*email, Email::TICK);
    }
    Ok(!texts.is_empty() || !emails.is_empty())
}

/// Voices that wait for their training, whose training was interrupted, or that are to be erased.
async fn voices(deps: &Deps) -> Result<bool> {
    let due = entities::voice::due(&deps.db.read, deps.share(), deps.clock.now(), 1000).await?;
    for voice in &due {
        deps.router.voices().tell(*voice, Voice::TICK);
    }
    Ok(!due.is_empty())
}

async fn evaluations(deps: &Deps) -> Result<bool> {
    let pending = entities::evaluation::pending(&deps.db.read, deps.share(), 1000).await?;
    let any = !pending.is_empty();
    for job in pending {
        evaluate::run(deps, job);
    }
    Ok(any)
}

async fn mails(deps: &Deps) -> Result<()> {
    if !deps.fence.leases().serves(Of::Installation) {
        return Ok(());
    }
    if entities::mail::next_due_at(&deps.db.read).await?.is_some() {
        deps.router.mailer();
    }
    Ok(())
}

async fn sessions(deps: &Deps) -> Result<bool> {
    let mut after = None;
    loop {
        let open = entities::session::open(&deps.db.read, deps.share(), after, 1000).await?;
        let Some(last) = open.last() else {
            return Ok(after.is_some());
        };
        after = Some(*last);
        for session in open {
            deps.router.sessions().tell(session, SessionCommand::Tick);
        }
    }
}

/// Rooms whose time has come, or comes before the next look; and those that are out of step with their session.
async fn rooms(deps: &Deps) -> Result<bool> {
    const AT_ONCE: u64 = 1_000;
    let (db, soon) = (&deps.db.read, deps.clock.now().plus_seconds(AHEAD_SECONDS));
    let due = entities::room::due(db, deps.share(), soon, AT_ONCE).await?;
    for room in &due {
        deps.router.rooms().tell(*room, RoomCommand::Tick);
    }
    let (behind, ahead) = (
        entities::room::behind(db, deps.share(), AT_ONCE).await?,
        entities::room::ahead(db, deps.share(), AT_ONCE).await?,
    );
    let any = !due.is_empty() || !behind.is_empty() || !ahead.is_empty();
    for (room, session) in behind {
        let follow = RoomCommand::Follow(Box::new(session));
        deps.router.rooms().tell(room, follow);
    }
    for room in ahead {
        let session = room.session();
        match Room::from_row(room).map(|room| room.parting()) {
            Ok(Some(command)) => deps.router.sessions().tell(session, command),
            Ok(None) => {}
            // One that cannot be read does not keep the others out of step.
            Err(error) => tracing::error!(%error, "an ended room cannot be read"),
        }
    }
    Ok(any)
}

async fn campaigns(deps: &Deps) -> Result<bool> {
    let soon = deps.clock.now().plus_seconds(AHEAD_SECONDS);
    let unattended = entities::campaign::unattended(&deps.db.read, deps.share(), soon).await?;
    for campaign in &unattended {
        deps.router.campaigns().tell(*campaign, Campaign::TICK);
        check_drained(deps.clone(), *campaign);
    }
    Ok(!unattended.is_empty())
}

async fn reviews(deps: &Deps) -> Result<bool> {
    let tenants = entities::campaign::tenants_to_review(&deps.db.read, deps.share()).await?;
    for tenant in &tenants {
        review::begin(deps, *tenant);
    }
    Ok(!tenants.is_empty())
}

/// The operator may lift a suspension in another process: dispatchers that have something to dispatch look each time.
async fn dispatchers(deps: &Deps) -> Result<bool> {
    let mut tenants = entities::campaign::tenants_at_work(&deps.db.read, deps.share()).await?;
    tenants.extend(entities::session::tenants_in_queue(&deps.db.read, deps.share()).await?);
    tenants.sort();
    tenants.dedup();
    for tenant in &tenants {
        deps.router.dispatcher(*tenant, DispatchHint::CampaignsChanged);
    }
    Ok(!tenants.is_empty())
}
