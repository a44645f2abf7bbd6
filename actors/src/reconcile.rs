//! What the rows say should be at work, is: run at boot and every 30 seconds, and both are the same. So nothing depends on a hint, and
//! whatever a crash interrupts goes on.
use crate::{
    campaign::{actor::check_drained, review},
    credits::{grants, payments},
    delivery,
    deps::Deps,
    evaluate, holds, import,
    router::LaneHint,
    voice_clone::samples,
};
use entities::{
    Result,
    email_message::{self, Model as Email},
    message,
    recording::Model as Recording,
    sms_message::{self, Model as Sms},
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

/// What another process was at when it ended, nobody is at any more: its leases are let go. Once, before the first
/// [`reconcile`].
pub async fn take_over(deps: &Deps) -> Result<()> {
    let now = deps.clock.now();
    deps.writer
        .run(move |db| {
            Box::pin(async move {
                entities::recording::let_go(db, now).await?;
                entities::voice::let_go(db, now).await?;
                Ok(((), Commit::default()))
            })
        })
        .await
}

/// Starts the actors that the rows say should be at work, and repairs what a crash or a lost hint has left. Run at boot and
/// every 30 seconds: both are the same.
pub async fn reconcile(deps: &Deps) -> Result<()> {
    // One that fails does not keep the others from their work.
    let outcomes = [
        lanes(deps).await,
        endpoints(deps).await,
        recoveries(deps).await,
        imports(deps).await,
        recordings(deps).await,
        messages(deps).await,
        voices(deps).await,
        samples::sweep(deps).await,
        evaluations(deps).await,
        payments::reconcile(deps).await,
        mails(deps).await,
        grants::book(deps).await,
        sessions(deps).await,
        rooms(deps).await,
        campaigns(deps).await,
        reviews(deps).await,
        dispatchers(deps).await,
    ];
    outcomes.into_iter().collect()
}

async fn lanes(deps: &Deps) -> Result<()> {
    for endpoint in entities::delivery::endpoints_at_work(&deps.db.read).await? {
        deps.router.lane(endpoint, LaneHint::Wake);
    }
    Ok(())
}

async fn endpoints(deps: &Deps) -> Result<()> {
    for endpoint in entities::webhook_endpoint::in_overlap(&deps.db.read).await? {
        deps.router.endpoints().tell(endpoint, Endpoint::TICK);
    }
    Ok(())
}

async fn recoveries(deps: &Deps) -> Result<()> {
    for job in entities::recovery::running(&deps.db.read).await? {
        delivery::recovery::run(deps, job.id, job.endpoint());
    }
    Ok(())
}

async fn imports(deps: &Deps) -> Result<()> {
    for job in entities::import::running(&deps.db.read).await? {
        import::run(deps, job);
    }
    Ok(())
}

/// Recordings that wait to be stored, or whose time has come: by both clocks, for what is erased does not come back.
async fn recordings(deps: &Deps) -> Result<()> {
    for recording in entities::recording::due(&deps.db.read, deps.clock.times().earlier(), 1000).await? {
        deps.router.recordings().tell(recording, Recording::TICK);
    }
    Ok(())
}

/// Messages whose time has come. Far more than are handed over in 30 seconds; the rest follows then. While nothing may leave they
/// wait as rows.
async fn messages(deps: &Deps) -> Result<()> {
    const AT_ONCE: u64 = 5_000;
    if holds::look(deps).await?.is_some() {
        return Ok(());
    }
    let now = deps.clock.now();
    for message in message::due::<sms_message::Entity>(&deps.db.read, now, AT_ONCE).await? {
        deps.router.sms().tell(message, Sms::TICK);
    }
    for message in message::due::<email_message::Entity>(&deps.db.read, now, AT_ONCE).await? {
        deps.router.emails().tell(message, Email::TICK);
    }
    Ok(())
}

/// Voices that wait for their training, whose training was interrupted, or that are to be erased.
async fn voices(deps: &Deps) -> Result<()> {
    for voice in entities::voice::due(&deps.db.read, deps.clock.now(), 1000).await? {
        deps.router.voices().tell(voice, Voice::TICK);
    }
    Ok(())
}

async fn evaluations(deps: &Deps) -> Result<()> {
    for job in entities::evaluation::pending(&deps.db.read, 1000).await? {
        evaluate::run(deps, job);
    }
    Ok(())
}

async fn mails(deps: &Deps) -> Result<()> {
    if entities::mail::next_due_at(&deps.db.read).await?.is_some() {
        deps.router.mailer();
    }
    Ok(())
}

async fn sessions(deps: &Deps) -> Result<()> {
    let mut after = None;
    loop {
        let open = entities::session::open(&deps.db.read, after, 1000).await?;
        let Some(last) = open.last() else { return Ok(()) };
        after = Some(last.id);
        for session in open {
            deps.router.sessions().tell(session, SessionCommand::Tick);
        }
    }
}

/// Rooms whose time has come, or comes before the next look; and those that are out of step with their session.
async fn rooms(deps: &Deps) -> Result<()> {
    const AT_ONCE: u64 = 1_000;
    let (db, soon) = (&deps.db.read, deps.clock.now().plus_seconds(60));
    for room in entities::room::due(db, soon, AT_ONCE).await? {
        deps.router.rooms().tell(room, RoomCommand::Tick);
    }
    for (room, session) in entities::room::behind(db, AT_ONCE).await? {
        let follow = RoomCommand::Follow(Box::new(session));
        deps.router.rooms().tell(room, follow);
    }
    for room in entities::room::ahead(db, AT_ONCE).await? {
        let session = room.session();
        match Room::from_row(room).map(|room| room.parting()) {
            Ok(Some(command)) => deps.router.sessions().tell(session, command),
            Ok(None) => {}
            // One that cannot be read does not keep the others out of step.
            Err(error) => tracing::error!(%error, "an ended room cannot be read"),
        }
    }
    Ok(())
}

async fn campaigns(deps: &Deps) -> Result<()> {
    // Until the next look their actors keep their alarms.
    let soon = deps.clock.now().plus_seconds(60);
    for campaign in entities::campaign::unattended(&deps.db.read, soon).await? {
        deps.router.campaigns().tell(campaign, Campaign::TICK);
        check_drained(deps.clone(), campaign);
    }
    Ok(())
}

async fn reviews(deps: &Deps) -> Result<()> {
    for tenant in entities::campaign::tenants_to_review(&deps.db.read).await? {
        review::begin(deps, tenant);
    }
    Ok(())
}

async fn dispatchers(deps: &Deps) -> Result<()> {
    let mut tenants = entities::campaign::tenants_at_work(&deps.db.read).await?;
    tenants.extend(entities::session::tenants_in_queue(&deps.db.read).await?);
    tenants.sort();
    tenants.dedup();
    for tenant in tenants {
        deps.router.dispatcher(tenant, DispatchHint::CampaignsChanged);
    }
    Ok(())
}
