//! `callboard serve`.
use crate::{
    app::{self, App},
    error::CannotStart,
    logging,
    settings::{LogFormat, Settings},
};
use actix_web::dev::{Server, ServerHandle};
use adapters::mail::post::Post;
use clap::Args;
use runtime::clock::Clock;
use serde_json::json;
use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Args)]
pub struct Serve {
    /// Development: http:// and loopback targets are open, a secret key is made if there is none
    #[arg(long)]
    dev: bool,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    bind: Option<String>,
    /// sqlite://FILE or postgres://…
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Let no call and no message leave until `callboard dispatch resume` (after `restore --as-of` with
    /// `--opt-outs-entered`): for a restored backup
    #[arg(long)]
    paused: bool,
}

impl Serve {
    /// As settings.
    fn flags(self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        if self.dev {
            flags.push(("dev", "true".to_owned()));
        }
        if self.paused {
            flags.push(("start_paused", "true".to_owned()));
        }
        flags.extend(self.bind.map(|bind| ("bind", bind)));
        flags.extend(self.database_url.map(|url| ("database_url", url)));
        flags
    }

    pub async fn run(self, config: Option<PathBuf>) -> Result<(), CannotStart> {
        let settings = Settings::load(config, &self.flags())?;
        logging::start(&settings).map_err(CannotStart)?;

        for name in Settings::unknown_names() {
            tracing::warn!(name, "this is not a setting; see `callboard config --defaults`");
        }
        // Each connection, to clients and to receivers, is an open file; the usual limit of 1,024 is soon reached.
        if let Err(error) = rlimit::increase_nofile_limit(65_536) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
        // The port first: nothing is touched if somebody else has it.
        let listener = listen("bind", settings.socket_address()?)?;
        let node = settings.node()?;
        let between = node.as_ref().map(|node| listen("node_bind", node.bind)).transpose()?;
        let metrics = settings.metrics_address()?;
        let metrics = metrics.map(|address| listen("metrics_bind", address)).transpose()?;
        tell_of(&settings)?;
        let log_format = settings.log_format;
        let drain = Duration::from_secs(settings.drain_seconds);
        let database = settings.location()?.shown();
        let url = settings.public_url();
        let app = App::build(settings, Clock::wall()).await?;
        let set_up = app::set_up_link(&app)
            .await
            .map_err(|error| CannotStart(format!("database_url: {error}")))?;
        let server = app
            .serve(listener)
            .map_err(|error| CannotStart(format!("bind: {error}")))?;
        let handle = server.handle();
        let between = between.map(|listener| app.serve_nodes(listener)).transpose();
        let between = between.map_err(|error| CannotStart(format!("node_bind: {error}")))?;
        let between_handle = between.as_ref().map(Server::handle);
        if let Some(between) = between {
            actix_web::rt::spawn(between);
        }
        let metrics = metrics.map(|listener| app.serve_metrics(listener)).transpose();
        if let Some(metrics) = metrics.map_err(|error| CannotStart(format!("metrics_bind: {error}")))? {
            // To the end of the process: whoever watches it sees it drain.
            actix_web::rt::spawn(metrics);
        }
        // Before anybody is told: whoever waits for it may end this process at once, and in order.
        let mut stop = StopSignals::listen()?;
        tracing::info!(url, database, "Callboard is ready");
        if let Some(link) = set_up {
            show_set_up_link(&link, log_format);
        }

        let mut server = std::pin::pin!(server);
        let mut lost = app.deps().fence.lost();
        tokio::select! {
            _ = lost.wait_for(|lost| *lost) => {
                tracing::error!("another Callboard process has taken over what this one served; exiting");
                // At once: in order it could only end with commits, and it has none any more.
                std::process::exit(1);
            }
            ended = &mut server => return ended.map_err(|error| CannotStart(error.to_string())),
            signal = stop.next() => tracing::info!(signal, "stopping: no new requests are taken; live calls may end by themselves"),
        }
        end(app, (handle, server), between_handle, drain).await?;
        tracing::info!("stopped");
        Ok(())
    }
}

fn show_set_up_link(link: &str, format: LogFormat) {
    match format {
        LogFormat::Text => {
            eprintln!("\n  There is no user yet. Open this link once to create the first one:\n\n    {link}\n");
        }
        // Whoever reads the log line by line finds it there, whatever it is filtered by.
        LogFormat::Json => {
            let message = "there is no user yet: open the link once to create the first one";
            let fields = json!({ "message": message, "set_up_link": link });
            eprintln!("{}", logging::event("INFO", &fields));
        }
    }
}

/// Ends it in order.
async fn end(
    app: App,
    (handle, server): (ServerHandle, impl Future<Output = std::io::Result<()>>),
    between_nodes: Option<ServerHandle>,
    mut drain: Duration,
) -> Result<(), CannotStart> {
    app.deps().drain();
    // While calls end and the others take its workspaces over, requests are answered here.
    if let Some(keeper) = &app.state.keeper {
        let begun = Instant::now();
        keeper.hand_over(drain).await;
        drain = drain.saturating_sub(begun.elapsed());
    }
    app.state.streams.ending.send_replace(true);
    let (_, ended) = tokio::join!(handle.stop(true), server);
    ended.map_err(|error| CannotStart(error.to_string()))?;
    // The others ask for what is left until it is given up.
    app.stop(drain).await;
    if let Some(between_nodes) = between_nodes {
        between_nodes.stop(false).await;
    }
    Ok(())
}

/// What an operator may not have meant so.
fn tell_of(settings: &Settings) -> Result<(), CannotStart> {
    if !settings.webhook_allow_targets.is_empty() {
        tracing::warn!(
            targets = settings.webhook_allow_targets,
            "webhooks may reach these targets although they are not public"
        );
    }
    let is_open = !settings.socket_address()?.ip().is_loopback();
    if is_open && settings.secure_cookies() && !settings.public_url().starts_with("https://") {
        tracing::warn!(
            "people can sign in to the dashboard only over TLS or on this machine: put a TLS proxy in front and set CALLBOARD_BASE_URL"
        );
    }
    match settings.post()? {
        Post::Smtp { .. } => {}
        Post::Folder { folder, .. } => {
            tracing::info!(folder = %folder.display(), "no SMTP server is set: e-mails are written as .eml files")
        }
        Post::Unconfigured => {
            tracing::warn!("no SMTP server is set (CALLBOARD_SMTP_URL): e-mails to users wait three days for one")
        }
    }
    Ok(())
}

fn listen(setting: &str, address: SocketAddr) -> Result<TcpListener, CannotStart> {
    TcpListener::bind(address).map_err(|error| {
        let what = if error.kind() == std::io::ErrorKind::AddrInUse {
            format!(
                "another program uses this port; stop it, or choose another with CALLBOARD_{}",
                setting.to_uppercase()
            )
        } else {
            error.to_string()
        };
        CannotStart(format!("{setting}: {address}: {what}"))
    })
}

/// What asks a service to end. Until they are listened to, they end the process at once.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> Result<Self, CannotStart> {
        let listen = |kind| signal(kind).map_err(|error| CannotStart(error.to_string()));
        Ok(StopSignals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
