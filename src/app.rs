//! The whole service, built from its settings: used by `serve`, by `demo` and by the tests alike.
pub(crate) mod measures;
mod opening;
mod planting;
mod threads;
mod upkeep;

use crate::{
    access,
    error::CannotStart,
    http::{
        bulkheads::Bulkheads, docs, documents::DOCUMENTS, middleware, nodes::BetweenNodes, open_streams::Streams,
        own_api::OwnApi, peers::Peers, preflights::Preflights, rate_limits::RateLimits, routes, streams, system,
    },
    settings::Settings,
    state::State,
};
use actix_web::{App as WebApp, HttpServer, dev::Server, middleware::from_fn, web};
use actors::{
    deps::Deps,
    housekeeping::{self, KeysUsed},
    nodes::Keeper,
    reconcile::{reconcile, take_over},
    tree::{self, AfterCommits},
};
use entities::{Error, lock::Lock};
use planting::Planted;
pub(crate) use planting::outbound;
use rules::law::Law;
use runtime::{clock::Clock, supervise::join_text};
use std::{net::TcpListener, sync::Arc, time::Duration};
use threads::Threads;
use upkeep::{keep_up, watch_lock};

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
        let law = settings.law()?;
        App::under(law, settings, clock).await
    }

    /// Under a law of its own: what that costs is measured beside one that says nothing.
    pub async fn under(law: Arc<Law>, settings: Settings, clock: Clock) -> Result<App, CannotStart> {
        let location = settings.location()?;
        let keyring = Arc::new(settings.keyring()?);
        let threads = Threads::start(settings.threads().io)?;
        let opened = opening::open(
            location,
            settings.node()?,
            settings.sip_reached_at()?,
            &keyring,
            settings.start_paused,
            &clock,
            &threads.handle()?,
        )
        .await?;
        let lock = opened.lock.clone();
        let Planted {
            deps,
            tree,
            after_commits,
            arbiters,
            writer,
        } = planting::plant(&settings, law, opened, keyring, &clock, &threads).await?;
        let keeper = Keeper::new(&deps, &tree);
        take_up(&deps, &after_commits, keeper.as_ref()).await;
        // Before anything is measured: what has no recorder is lost.
        let recorder = measures::recorder();
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
            keeper,
            peers: Peers::default(),
        });
        keep_up(state.clone().into_inner());
        streams::watch_passes(state.clone().into_inner());
        Ok(App {
            state,
            threads,
            arbiters,
            writer: Some(writer),
            lock,
        })
    }

    /// The HTTP server on an open socket; runs when awaited.
    pub fn serve(&self, listener: TcpListener) -> std::io::Result<Server> {
        self.serve_to(listener, false)
    }

    /// The same for the other nodes.
    pub fn serve_nodes(&self, listener: TcpListener) -> std::io::Result<Server> {
        self.serve_to(listener, true)
    }

    /// Metrics and health alone, for those who watch.
    pub fn serve_metrics(&self, listener: TcpListener) -> std::io::Result<Server> {
        let state = self.state.clone();
        let server = HttpServer::new(move || {
            WebApp::new()
                .app_data(state.clone())
                .configure(system::watched)
                .wrap(from_fn(middleware::frame))
        });
        let server = server
            .workers(1)
            .max_connections(MOST_WATCHERS)
            .client_request_timeout(Duration::from_secs(10))
            .shutdown_timeout(1)
            .disable_signals();
        Ok(server.listen(listener)?.run())
    }

    fn serve_to(&self, listener: TcpListener, between_nodes: bool) -> std::io::Result<Server> {
        let state = self.state.clone();
        let threads = state.settings.threads().http;
        let server = HttpServer::new(move || {
            let app = WebApp::new();
            let app = match between_nodes {
                true => app.app_data(BetweenNodes),
                false => app,
            };
            app.app_data(state.clone())
                .app_data::<docs::Lazy>(&DOCUMENTS)
                .app_data(own_api(&state))
                .configure(|config| routes::configure(config, &state))
                .wrap(from_fn(middleware::frame))
        });
        let server = server
            .workers(threads)
            .keep_alive(if between_nodes { BETWEEN_NODES } else { KEEP_ALIVE })
            .max_connections(MAX_CONNECTIONS / threads)
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
            let why = join_text(error);
            tracing::error!(why, "the writer did not shut down cleanly");
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
        let parting = tokio::time::timeout(PARTING, parting);
        // What has just ended is told of too; a collector that hangs does not keep us for long.
        let (parted, ()) = tokio::join!(parting, deps.traces.tracer.flush(LAST_SPANS));
        if parted.is_err() {
            tracing::warn!("the database does not answer: its connections are left open");
        }
        // Whoever has the database next needs the folder at once.
        deps.studio.spools.release();
        self.lock.release().await;
    }
}

impl App {
    /// Ends it as a crash would, but waits until nothing of it runs: for tests that start it again.
    pub async fn abandon(mut self) {
        stop_lines(&self.state.deps);
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
        self.state.deps.studio.spools.release();
        self.lock.release().await;
    }
}

impl Drop for App {
    /// A service that is dropped instead of stopped ends as by a crash; what it left is repaired at the next start.
    fn drop(&mut self) {
        for arbiter in self.arbiters.drain(..) {
            arbiter.stop();
        }
        // Whoever still holds the service's parts holds neither its threads nor its port's connections, nor its folder.
        stop_lines(&self.state.deps);
        self.state.deps.studio.spools.release();
    }
}

/// Nothing comes or goes over rooms and telephones any more, and nobody is told.
fn stop_lines(deps: &Deps) {
    deps.carriers.rooms.media.stop();
    if let Some(phones) = &deps.carriers.phones {
        phones.close();
    }
}

/// For what the service asks of itself: what assistants may look up, and nothing else.
fn own_api(state: &web::Data<State>) -> OwnApi {
    let state = state.clone();
    OwnApi::new(move || {
        WebApp::new()
            .app_data(state.clone())
            .configure(routes::configure_for_tools)
            .wrap(from_fn(middleware::frame))
    })
}

/// What was interrupted when the service ended goes on.
async fn take_up(deps: &Deps, after_commits: &AfterCommits, keeper: Option<&Arc<Keeper>>) {
    // A node takes over with each workspace that it takes.
    if keeper.is_none()
        && let Err(error) = take_over(deps, None).await
    {
        // Then its leases end by themselves.
        tracing::error!(%error, "work that was in progress when the service ended resumes only in a few minutes");
    }
    // Before anything is dialled or registered anew.
    if let Some(phones) = &deps.carriers.phones
        && let Err(error) = phones.start(deps).await
    {
        tracing::error!(%error, "calls that were on the wire when the service ended could not be looked up: their peers hang up by themselves");
    }
    // Set once: the caller made it.
    let _ = after_commits.deps.set(deps.clone());
    if let Some(keeper) = keeper {
        return keeper.start().await;
    }
    if let Err(error) = reconcile(deps).await {
        // What could be read goes on; the rest is tried again every 30 seconds.
        tracing::error!(%error, "interrupted work could not be resumed");
    }
}

/// An idle connection of a client is kept for so long; one of another node for longer than that node keeps it.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const BETWEEN_NODES: Duration = Duration::from_secs(75);
/// The longest farewell to the database.
const PARTING: Duration = Duration::from_secs(10);
/// The longest wait for the collector of traces.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// Connections to this service; who comes later waits to be let in. The start raises the limit of open files above that.
const MAX_CONNECTIONS: usize = 10_000;
/// The same of those who watch.
const MOST_WATCHERS: usize = 64;
/// Bytes of a connection that the kernel takes in before they are read. By itself it takes megabytes: whoever is refused would have
/// sent all of a large body before reading so.
const RECEIVE_BUFFER: usize = 128 * 1024;

/// The set-up link for the first user, if there is none yet.
pub async fn set_up_link(app: &App) -> Result<Option<String>, Error> {
    let token = access::set_up_token(&app.deps().db).await?;
    Ok(token.map(|token| format!("{}/setup#token={token}", app.state.settings.public_url())))
}
