//! Writer and actors, started with everything that they are given.
use super::{
    opening::{Opened, unreadable},
    threads::{Threads, spawn_on},
};
use crate::{error::CannotStart, settings::Settings};
use actors::{
    call::in_hand::Calls,
    carrier::{Sandbox, SandboxOptions, carriers::Carriers},
    credits::processor::Payments,
    deps::{Deps, Shared},
    recording::sounds::Studio,
    registers::lookup::Registers,
    room::live_rooms::LiveRooms,
    switchboard::phones::Switchboard,
    traces::Traces,
    tree::{self, AfterCommits, Tree},
    voice::standbys::Standbys,
    voice_clone::cloning::Cloning,
    writer::{self, Writer},
};
use adapters::{
    brain::Providers,
    mail::post::Post,
    otlp,
    outbound::{Options, Outbound},
    sms::doors::Sms,
};
use media::webrtc::Media;
use rules::{law::Law, limits::Limits};
use runtime::{
    clock::Clock,
    job::Jobs,
    keyring::{Keyring, purpose},
    link_keys::LinkKeys,
    tracer::Tracer,
};
use std::sync::{Arc, atomic::AtomicBool};

/// What lives from now on.
pub(super) struct Planted {
    pub(super) deps: Deps,
    pub(super) tree: Arc<Tree>,
    /// Tells nobody before it knows of `deps`.
    pub(super) after_commits: Arc<AfterCommits>,
    pub(super) arbiters: Vec<actix_rt::Arbiter>,
    pub(super) writer: tokio::task::JoinHandle<()>,
}

pub(super) async fn plant(
    settings: &Settings,
    law: Arc<Law>,
    opened: Opened,
    keyring: Arc<Keyring>,
    clock: &Clock,
    threads: &Threads,
) -> Result<Planted, CannotStart> {
    let after_commits: Arc<AfterCommits> = Arc::default();
    let setup = writer_setup(settings, &opened, &keyring, clock, &after_commits)?;
    let (commits, writer) = start_writer(setup, &threads.writer()?).await?;
    let handle = threads.handle()?;
    let doors = Doors::of(settings, &keyring, &opened.links, &handle)?;
    let (arbiters, handles) = arbiters(settings.threads().actors);
    let (deps, tree) = tree::plant(&handles, clock, &opened.fence.leases().clone(), |router| Shared {
        db: opened.db,
        clock: clock.clone(),
        ids: opened.ids,
        writer: commits,
        fence: opened.fence,
        calls: Calls::default(),
        heartbeat: opened.heartbeat,
        carriers: doors.carriers,
        keyring,
        links: opened.links,
        outbound: doors.outbound,
        post: doors.post,
        sms: doors.sms,
        email: settings.emails(),
        jobs: Jobs {
            clock: clock.clone(),
            runtime: handle.clone(),
        },
        recoveries: Default::default(),
        imports: Default::default(),
        exports: Default::default(),
        closings: Default::default(),
        reviews: Default::default(),
        erasures: Default::default(),
        restores: Default::default(),
        evaluations: Default::default(),
        providers: doors.providers,
        payments: doors.payments,
        studio: doors.studio,
        standbys: Standbys::beside(settings.recordings_spool.as_ref()),
        cloning: doors.cloning,
        listeners: Default::default(),
        latencies: Default::default(),
        judgements: Default::default(),
        pacing_report: Default::default(),
        traces: Traces::new(doors.tracer),
        trunks: Default::default(),
        registers: doors.registers,
        holds: Default::default(),
        quiet: Default::default(),
        limits: doors.limits,
        law,
        base_url: settings.public_url().into(),
        runtime: handle,
        router,
        draining: AtomicBool::new(false),
    });
    Ok(Planted {
        deps,
        tree,
        after_commits,
        arbiters,
        writer,
    })
}

fn arbiters(threads: usize) -> (Vec<actix_rt::Arbiter>, Vec<actix_rt::ArbiterHandle>) {
    let arbiters: Vec<_> = (0..threads).map(|_| actix_rt::Arbiter::new()).collect();
    let handles = arbiters.iter().map(actix_rt::Arbiter::handle).collect();
    (arbiters, handles)
}

async fn start_writer(
    setup: writer::Setup,
    on: &tokio::runtime::Handle,
) -> Result<(Writer, tokio::task::JoinHandle<()>), CannotStart> {
    spawn_on(on, Writer::start(setup)).await.map_err(unreadable)
}

fn writer_setup(
    settings: &Settings,
    opened: &Opened,
    keyring: &Arc<Keyring>,
    clock: &Clock,
    after: &Arc<AfterCommits>,
) -> Result<writer::Setup, CannotStart> {
    Ok(writer::Setup {
        db: opened.db.clone(),
        clock: clock.clone(),
        ids: opened.ids.clone(),
        terms: settings.credits()?,
        keyring: keyring.clone(),
        after: after.clone(),
        fence: opened.fence.clone(),
        limit: settings.commit_timeout()?,
    })
}

/// The doors to the outside, as they are configured, and how much may pass them.
struct Doors {
    carriers: Carriers,
    outbound: Outbound,
    post: Post,
    sms: Sms,
    payments: Payments,
    providers: Providers,
    studio: Studio,
    cloning: Cloning,
    registers: Registers,
    limits: Limits,
    tracer: Tracer,
}

impl Doors {
    fn of(
        settings: &Settings,
        keyring: &Keyring,
        links: &LinkKeys,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Self, CannotStart> {
        let rooms = rooms(settings)?;
        let vault = settings.vault(keyring)?;
        let spools = settings.spools(&vault)?;
        Ok(Doors {
            studio: Studio::new(settings.voice()?, vault, spools),
            carriers: Carriers {
                sandbox: sandbox(settings)?,
                phones: phones(settings, links, &rooms)?,
                rooms,
            },
            outbound: outbound(settings, runtime)?,
            post: settings.post()?,
            sms: settings.sms()?,
            payments: settings.payments()?,
            providers: settings.providers()?,
            cloning: settings.cloning()?,
            registers: settings.registers(links)?,
            limits: settings.limits()?,
            tracer: tracer(settings)?,
        })
    }
}

fn sandbox(settings: &Settings) -> Result<Sandbox, CannotStart> {
    let options = SandboxOptions {
        speed: settings.sandbox_speed,
        calls_per_second: settings.sandbox_calls_per_second,
        log: settings.sandbox_log.clone().into(),
    };
    Sandbox::new(options)
        .map_err(|error| CannotStart(format!("sandbox_log: cannot open {} ({error})", settings.sandbox_log)))
}

/// `None`: no live calls. What their identifiers are derived from is the database's own: the next process has it, too.
fn phones(settings: &Settings, links: &LinkKeys, rooms: &LiveRooms) -> Result<Option<Switchboard>, CannotStart> {
    let Some(options) = settings.sip()? else {
        return Ok(None);
    };
    let secret = links.signing(purpose::SIP);
    let opened = Switchboard::open(&options, secret, rooms.media.threads().clone());
    opened.map(Some).map_err(CannotStart)
}

fn rooms(settings: &Settings) -> Result<LiveRooms, CannotStart> {
    let media = Media::start(settings.media()?);
    media
        .map(LiveRooms::new)
        .map_err(|why| CannotStart(format!("media_bind: {why}")))
}

/// Off, unless there is a collector.
fn tracer(settings: &Settings) -> Result<Tracer, CannotStart> {
    let Some(collector) = settings.collector()? else {
        return Ok(Tracer::default());
    };
    let (tracer, intake) = Tracer::on(settings.otlp_sample_ratio);
    otlp::start(collector, settings.traced_as()?, intake)
        .map_err(|why| CannotStart(format!("otlp_endpoint: {why}")))?;
    Ok(tracer)
}

/// The one client for addresses that users name.
pub(crate) fn outbound(settings: &Settings, runtime: &tokio::runtime::Handle) -> Result<Outbound, CannotStart> {
    let options = Options {
        extra_roots: settings.extra_roots()?,
        names: settings.names()?,
        ..Options::on(runtime.clone())
    };
    Outbound::new(settings.outbound()?, options).map_err(|why| CannotStart(format!("webhook_ca_file: {why}")))
}
