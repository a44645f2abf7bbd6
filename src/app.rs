//! The whole service, built from its settings: used by `serve`, by `demo` and by the tests alike.
use crate::{
    access,
    error::CannotStart,
    http::{
        bulkheads::Bulkheads, docs, documents::DOCUMENTS, gate, open_streams::Streams, preflights::Preflights,
        rate_limits::RateLimits, routes, streams,
    },
    settings::Settings,
    state::State,
};
use actix_web::{App as WebApp, HttpServer, dev::Server, middleware::from_fn, web};
use actors::{
    call::in_hand::Calls,
    carrier::{Sandbox, SandboxOptions, carriers::Carriers},
    deps::{Deps, Shared},
    fence::Fence,
    heartbeat::Heartbeat,
    holds,
    housekeeping::{self, KeysUsed},
    reconcile::{reconcile, take_over},
    recording::sounds::Studio,
    room::live_rooms::House,
    tree::{self, AfterCommits},
    writer::{self, Writer},
};
use adapters::outbound::{Options, Outbound};
use entities::{
    Error,
    db::{Db, Location},
    lock::Lock,
    meta,
};
use media::webrtc::Media;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use migration::MigratorTrait;
use runtime::{
    clock::Clock,
    ids::Ids,
    job::Jobs,
    keyring::{Keyring, purpose},
    link_keys::{self, LinkKeys},
};
use std::{
    net::TcpListener,
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::{Duration, Instant},
};

pub struct App {
    pub state: web::Data<State>,
    threads: Threads,
    arbiters: Vec<actix_rt::Arbiter>,
    writer: Option<tokio::task::JoinHandle<()>>,
    lock: Arc<Lock>,
}

impl App {
    /// Opens and migrates the database, starts writer and actors. Everything that was interrupted goes on.
    pub async fn build(settings: Settings, clock: Clock) -> Result<App, CannotStart> {
        let location = settings.location()?;
        let keyring = settings.keyring()?;
        let threads = Threads::start()?;
        let handle = threads.handle()?;
        let about = |what: &str, error: &dyn std::fmt::Display| CannotStart(format!("database_url: {what}: {error}"));

        // Opened on the runtime that drives them, not on the caller's.
        let opening = location.clone();
        let (lock, db, fence) = spawn_on(&handle, async move { open(&opening).await })
            .await
            .map_err(|why| CannotStart(format!("database_url: {why}")))?;
        let (lock, fence) = (Arc::new(lock), Arc::new(fence));
        let links = open_secrets(&db, &keyring).await?;
        // Before anything takes its time from it.
        holds::begin(&db, &clock, settings.start_paused)
            .await
            .map_err(|error| about("cannot be read", &error))?;
        let heartbeat = Heartbeat::begin(&db, &clock)
            .await
            .map_err(|error| about("cannot be read", &error))?;

        let ids = Arc::new(Ids::new(clock.clone()));
        if let Some(newest) = entities::event::last_id(&db.read)
            .await
            .map_err(|error| about("cannot be read", &error))?
        {
            ids.start_after(newest.0);
        }
        let after_commits: Arc<AfterCommits> = Arc::default();
        let keyring = Arc::new(keyring);
        let setup = writer::Setup {
            db: db.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            terms: settings.credits()?,
            keyring: keyring.clone(),
            after: after_commits.clone(),
            fence: fence.clone(),
            limit: settings.commit_timeout()?,
        };
        let (writer, writer_task) = spawn_on(&threads.writer()?, Writer::start(setup))
            .await
            .map_err(|error| about("cannot be read", &error))?;

        let studio = Studio::new(settings.voice()?, settings.vault(&keyring)?);
        let carriers = Carriers {
            sandbox: sandbox(&settings)?,
            rooms: rooms(&settings)?,
        };
        let outbound = outbound(&settings, &handle)?;
        let (post, sms, payments) = (settings.post()?, settings.sms()?, settings.payments()?);
        let (providers, cloning, limits) = (settings.providers()?, settings.cloning()?, settings.limits()?);
        let arbiters: Vec<_> = (0..ACTOR_THREADS).map(|_| actix_rt::Arbiter::new()).collect();
        let arbiter_handles: Vec<_> = arbiters.iter().map(actix_rt::Arbiter::handle).collect();
        let (deps, tree) = tree::plant(&arbiter_handles, &clock, |router| Shared {
            db,
            clock: clock.clone(),
            ids,
            writer,
            fence,
            calls: Calls::default(),
            heartbeat,
            carriers,
            keyring,
            links,
            outbound,
            post,
            sms,
            email: settings.emails(),
            jobs: Jobs {
                clock: clock.clone(),
                runtime: handle.clone(),
            },
            recoveries: Default::default(),
            imports: Default::default(),
            closings: Default::default(),
            reviews: Default::default(),
            evaluations: Default::default(),
            providers,
            payments,
            studio,
            cloning,
            listeners: Default::default(),
            board: Default::default(),
            holds: Default::default(),
            limits,
            base_url: settings.public_url().into(),
            runtime: handle,
            router,
            draining: AtomicBool::new(false),
        });
        if let Err(error) = take_over(&deps).await {
            // Then its leases end by themselves.
            tracing::error!(%error, "work that was in progress when the service ended resumes only in a few minutes");
        }
        // Set once: this function made it.
        let _ = after_commits.deps.set(deps.clone());
        if let Err(error) = reconcile(&deps).await {
            // What could be read goes on; the rest is tried again every 30 seconds.
            tracing::error!(%error, "interrupted work could not be resumed");
        }
        // Before anything is measured: what has no recorder is lost.
        let recorder = metrics();
        if let Err(error) = housekeeping::measure(&deps).await {
            tracing::warn!(%error, "the queues could not be measured; trying again in a minute");
        }
        let keys_used = KeysUsed::default();
        housekeeping::start(&deps, keys_used.clone());
        deps.runtime.spawn(deps.db.clone().keep_the_log_short());
        watch_lock(&deps, lock.clone());

        let state = web::Data::new(State {
            limits: RateLimits::new(&clock),
            bodies: Arc::default(),
            bulkheads: Bulkheads::default(),
            preflights: Preflights::default(),
            running: Default::default(),
            keys_used,
            metrics: recorder,
            streams: Streams::default(),
            deps,
            tree,
            settings,
        });
        keep_up(state.clone().into_inner());
        streams::watch_keys(state.clone().into_inner());
        Ok(App {
            state,
            threads,
            arbiters,
            writer: Some(writer_task),
            lock,
        })
    }

    /// The HTTP server on an open socket; runs when awaited.
    pub fn serve(&self, listener: TcpListener) -> std::io::Result<Server> {
        let state = self.state.clone();
        let server = HttpServer::new(move || {
            WebApp::new()
                .app_data(state.clone())
                .app_data::<docs::Lazy>(&DOCUMENTS)
                .configure(|config| routes::configure(config, &state))
                .wrap(from_fn(gate::frame))
        });
        let server = server
            .workers(http_threads())
            .max_connections(MAX_CONNECTIONS / http_threads())
            .client_request_timeout(Duration::from_secs(10))
            // The framework reads as fast as it can meanwhile; what is refused was waited for by [`crate::http::unread`].
            .client_disconnect_timeout(Duration::from_millis(200))
            // Whoever closes a connection has left: what was done for it is dropped, and gives its place back.
            .h1_allow_half_closed(false)
            .shutdown_timeout(10)
            .disable_signals();
        // Its connections inherit it.
        socket2::SockRef::from(&listener).set_recv_buffer_size(RECEIVE_BUFFER)?;
        Ok(server.listen(listener)?.run())
    }

    pub fn deps(&self) -> &Deps {
        &self.state.deps
    }

    /// Ends what is running, in order: calls get `drain` to end by themselves.
    pub async fn stop(mut self, drain: Duration) {
        let deps = self.state.deps.clone();
        if let Err(error) = self.state.keys_used.flush(&deps).await {
            tracing::warn!(%error, "the last use of some keys was not stored");
        }
        tree::shut_down(&deps, &self.state.tree, drain).await;
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.await
        {
            tracing::error!(%error, "the writer did not shut down cleanly");
        }
        for arbiter in self.arbiters.drain(..) {
            arbiter.stop();
            // The thread's own panics were logged where they happened.
            let _ = arbiter.join();
        }
        // A server that hangs must not keep us from ending: the next process ends what is left there.
        let parting = async {
            if let Err(error) = deps.fence.release(&deps.db).await {
                tracing::warn!(%error, "the generation was not released: the next process waits a second longer than necessary");
            }
            deps.db.clone().close().await;
        };
        if tokio::time::timeout(PARTING, parting).await.is_err() {
            tracing::warn!("the database does not answer: its connections are left open");
        }
        self.lock.release().await;
    }
}

impl App {
    /// Ends it as a crash would, but waits until nothing of it runs: for tests that start it again.
    pub async fn abandon(mut self) {
        self.state.deps.carriers.rooms.media.stop();
        for arbiter in self.arbiters.drain(..) {
            arbiter.stop();
            let _ = arbiter.join();
        }
        for runtime in self.threads.take() {
            let ended = web::block(move || runtime.shutdown_timeout(Duration::from_secs(5))).await;
            if let Err(error) = ended {
                tracing::warn!(%error, "a runtime did not stop in time");
            }
        }
        self.lock.release().await;
    }
}

impl Drop for App {
    /// A service that is dropped instead of stopped ends as by a crash; what it left is repaired at the next start.
    fn drop(&mut self) {
        for arbiter in self.arbiters.drain(..) {
            arbiter.stop();
        }
        // Whoever still holds the service's parts holds neither its threads nor its port's connections.
        self.state.deps.carriers.rooms.media.stop();
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

fn rooms(settings: &Settings) -> Result<House, CannotStart> {
    let media = Media::start(settings.media()?);
    media
        .map(House::new)
        .map_err(|why| CannotStart(format!("media_bind: {why}")))
}

fn outbound(settings: &Settings, runtime: &tokio::runtime::Handle) -> Result<Outbound, CannotStart> {
    let options = Options {
        extra_roots: settings.extra_roots()?,
        ..Options::on(runtime.clone())
    };
    Outbound::new(settings.outbound()?, options).map_err(|why| CannotStart(format!("webhook_ca_file: {why}")))
}

/// The longest farewell to the database.
const PARTING: Duration = Duration::from_secs(10);
const ACTOR_THREADS: usize = 2;
/// More than there are cores: whoever keeps one busy with megabytes that nobody wants is one thread of many to the system,
/// which shares the cores out evenly.
fn http_threads() -> usize {
    std::thread::available_parallelism().map_or(8, |cores| (cores.get() * 4).min(32))
}
/// The database, migrated, and what makes it this process's own.
async fn open(location: &Location) -> Result<(Lock, Db, Fence), String> {
    let cannot = |what: &'static str| move |error: Error| format!("cannot {what} {}: {error}", location.shown());
    let lock = Lock::take(location).await?;
    let db = patiently(move || Db::serve(location)).await.map_err(cannot("open"))?;
    let (schema, file) = (&db.write, &db);
    patiently(move || async move { Ok(migration::Migrator::up(schema, None).await?) })
        .await
        .map_err(cannot("migrate"))?;
    // From here on an earlier process that is still alive commits nothing more.
    let fence = patiently(move || Fence::take(file))
        .await
        .map_err(cannot("take over"))?;
    Ok((lock, db, fence))
}

/// A start waits so long for a SQLite file that another program has locked, a backup or a shell.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "a lock is held in real time")]
async fn patiently<T, F: Future<Output = Result<T, Error>>>(step: impl Fn() -> F) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match step().await {
            Err(error) if error.is_locked() && begun.elapsed() < PATIENCE => {
                tracing::warn!("the database is locked by another program; startup waits for it");
                // Each try has waited for some seconds by itself, where SQLite lets it.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            done => return done,
        }
    }
}

/// Connections to this service; who comes later waits to be let in. The start raises the limit of open files above that.
const MAX_CONNECTIONS: usize = 10_000;
/// Bytes of a connection that the kernel takes in before they are read. By itself it takes megabytes: whoever is refused would have
/// sent all of a large body before reading so.
const RECEIVE_BUFFER: usize = 128 * 1024;

/// The threads that drive the outside: database, deliveries and calls; and one for the writer alone, so that its next step
/// never waits behind hundreds of answers. Dropped, they end without waiting: an async context may not wait.
struct Threads {
    io: Option<tokio::runtime::Runtime>,
    writer: Option<tokio::runtime::Runtime>,
}

impl Threads {
    fn start() -> Result<Self, CannotStart> {
        Ok(Threads {
            io: Some(runtime("callboard-io", 2)?),
            writer: Some(runtime("callboard-writer", 1)?),
        })
    }
    fn handle(&self) -> Result<tokio::runtime::Handle, CannotStart> {
        handle(&self.io)
    }
    fn writer(&self) -> Result<tokio::runtime::Handle, CannotStart> {
        handle(&self.writer)
    }
    fn take(&mut self) -> impl Iterator<Item = tokio::runtime::Runtime> + use<> {
        self.writer.take().into_iter().chain(self.io.take())
    }
}

fn runtime(name: &str, threads: usize) -> Result<tokio::runtime::Runtime, CannotStart> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(threads).thread_name(name).enable_all().build();
    built.map_err(|error| CannotStart(format!("threads cannot be started: {error}")))
}

fn handle(runtime: &Option<tokio::runtime::Runtime>) -> Result<tokio::runtime::Handle, CannotStart> {
    let running = runtime.as_ref().map(|runtime| runtime.handle().clone());
    running.ok_or_else(|| CannotStart("the service's threads have stopped".into()))
}

impl Drop for Threads {
    fn drop(&mut self) {
        for runtime in self.take() {
            runtime.shutdown_background();
        }
    }
}

async fn spawn_on<T: Send + 'static>(
    runtime: &tokio::runtime::Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match runtime.spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Is it the key that the stored secrets were sealed with? Answers the keys of links that it opens; the first start makes them.
async fn open_secrets(db: &Db, keyring: &Keyring) -> Result<LinkKeys, CannotStart> {
    let about = |error: Error| CannotStart(format!("database_url: cannot be read: {error}"));
    let check = meta::get(&db.read, meta::SECRET_CHECK).await.map_err(about)?;
    if let Some(sealed) = &check {
        keyring.open(purpose::SECRET_CHECK, sealed).map(drop).map_err(|_| {
            let wanted = sealed.split_once('.').map_or("another key", |(id, _)| id);
            CannotStart(format!(
                "secret_key: this database's secrets were sealed with key {wanted}, and the configured key is {}. \
                 Set CALLBOARD_SECRET_KEY to the key that was used, or list it in CALLBOARD_SECRET_KEYS_PREVIOUS and run `callboard secrets rotate`.",
                keyring.key_id()
            ))
        })?;
    }
    let transaction = db.begin().await.map_err(|error| about(error.into()))?;
    // Before the check is stored: a database without one has never sent a link.
    let links = link_keys::stored(&transaction, keyring).await.map_err(about)?;
    if check.is_none() {
        let sealed = keyring.seal(purpose::SECRET_CHECK, "callboard");
        meta::set(&transaction, meta::SECRET_CHECK, &sealed)
            .await
            .map_err(about)?;
    }
    transaction.commit().await.map_err(|error| about(error.into()))?;
    Ok(links)
}

/// Looks every second whether another process has taken the database over. The lock on a server's database goes with its
/// connection: it is taken again every ten seconds, if it can be.
fn watch_lock(deps: &Deps, lock: Arc<Lock>) {
    const LOCK_EVERY: u32 = 10;
    let deps = deps.clone();
    deps.runtime.clone().spawn(async move {
        for look in 1_u32.. {
            #[expect(clippy::disallowed_methods, reason = "the other process keeps its own time")]
            tokio::time::sleep(Duration::from_secs(1)).await;
            if deps.is_draining() {
                return;
            }
            let held = match look % LOCK_EVERY {
                0 => lock.is_held().await,
                _ => Ok(true),
            };
            let known = match held {
                Ok(true) => deps.fence.ask(&deps.db).await,
                // It is about to take the database over.
                Ok(false) => return deps.fence.give_up(),
                Err(error) => Err(error),
            };
            if let Err(error) = known {
                tracing::warn!(%error, "could not check whether this process still owns the database");
            }
        }
    });
}

/// Forgets keys and addresses that have been quiet, and folds what was measured: both would grow for ever.
fn keep_up(state: Arc<State>) {
    state.deps.runtime.clone().spawn(async move {
        loop {
            let _busy = state.deps.clock.sleep(Duration::from_secs(60)).await;
            state.limits.tidy();
            state.metrics.run_upkeep();
        }
    });
}

/// One recorder for the process; tests build several apps.
fn metrics() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let recorder = PrometheusBuilder::new().build_recorder();
            let handle = recorder.handle();
            // Fails if somebody else has installed one: then theirs gets our numbers.
            let _ = metrics::set_global_recorder(recorder);
            handle
        })
        .clone()
}

/// The set-up link for the first user, if there is none yet.
pub async fn set_up_link(app: &App) -> Result<Option<String>, Error> {
    let token = access::set_up_token(&app.deps().db).await?;
    Ok(token.map(|token| format!("{}/setup#token={token}", app.state.settings.public_url())))
}
