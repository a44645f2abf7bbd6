//! The one client for every address that a user gives us.
//!
//! HTTPS and public addresses only (`policy`), checked on the resolved address at every connect (`connect`). Redirects
//! are not followed and proxies of the environment are ignored: either would connect past the check. Built on hyper's own
//! client, because only there the stages of a connection can be timed and its address be known.
mod connect;
mod policy;
pub mod trouble;

pub use connect::{Lookup, SystemLookup};
use entities::{boxed, ids::TenantId};
pub use policy::{AllowedTarget, Blocked, Policy, is_public};
use rules::delivery::failure::{Failure, Timings};
use runtime::bulkhead::Bulkhead;

use crate::trunk::names::Names;
use bytes::Bytes;
use connect::{ConnectFailure, Connector, Guarded, Opened, Secured};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Uri,
    body::{Body, Incoming},
    header::{HeaderMap, HeaderValue, USER_AGENT},
    rt::Executor,
};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{
        Client,
        connect::{CaptureConnection, HttpInfo, capture_connection},
    },
    rt::TokioTimer,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use std::{
    error::Error as StdError,
    net::SocketAddr,
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use tokio::runtime::Handle;
use url::Url;

/// Posts to users' addresses. Cloning is cheap; there is one for the whole service.
#[derive(Clone)]
pub struct Outbound {
    client: Client<Connector, Full<Bytes>>,
    policy: Arc<Policy>,
    guarded: Guarded,
    names: Names,
    tls: Arc<ClientConfig>,
    runtime: Handle,
    detached: Arc<Bulkhead>,
}

/// What it is made of, beside the policy.
pub struct Options {
    pub lookup: Arc<dyn Lookup>,
    /// Who tells where the servers of SIP domains are.
    pub names: Names,
    /// Certificate authorities beside the system's, PEM.
    pub extra_roots: Option<Vec<u8>>,
    /// Where its connections live, whoever posts.
    pub runtime: Handle,
}

impl Options {
    pub fn on(runtime: Handle) -> Self {
        Options {
            lookup: Arc::new(SystemLookup),
            names: Names::none(),
            extra_roots: None,
            runtime,
        }
    }
}

/// One request.
pub struct Ask<'a> {
    pub method: Method,
    pub url: &'a Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Covers all of it, from the look-up to the body's end.
    pub timeout: Duration,
    /// Bytes of the answer that are kept.
    pub keep: usize,
}

/// A request that is only a courtesy.
#[derive(Debug)]
pub struct Note {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

impl Note {
    pub fn new(method: Method, headers: HeaderMap, body: Bytes) -> Self {
        Note { method, headers, body }
    }
}

/// Takes the body of an answer piece by piece, beside its status and headers. After `Break` nothing more of it is read.
pub type Take<'a> = &'a mut (dyn FnMut(u16, &HeaderMap, &[u8]) -> ControlFlow<()> + Send);

/// One request and what came of it.
#[derive(Debug)]
pub struct Exchange {
    /// The answer's status, or why there is no whole answer.
    pub outcome: Result<u16, Failure>,
    /// Of an answer that was cut off too.
    pub headers: HeaderMap,
    /// The first bytes, as they came: never inflated.
    pub body: Vec<u8>,
    pub timings: Timings,
    pub remote: Option<SocketAddr>,
}

impl From<ConnectFailure> for Failure {
    fn from(failure: ConnectFailure) -> Self {
        match failure {
            ConnectFailure::Blocked(why) => Failure::BlockedTarget(why),
            ConnectFailure::Dns(why) => Failure::Dns(why),
            ConnectFailure::Tcp(why) => Failure::Connect(why),
        }
    }
}

/// Bytes of an answer that are kept.
pub const BODY_LIMIT: usize = 16 * 1024;
/// Bytes of an answer that are read, so that its connection can be used again; a longer answer ends the connection.
const READ_LIMIT: usize = 64 * 1024;
/// Bytes of an answer's head.
const HEAD_LIMIT: usize = 64 * 1024;
/// Errands on which requests go for whose answers nobody waits: of a workspace, and in all.
const DETACHED_OF_TENANT: usize = 8;
const DETACHED: usize = 64;

impl Outbound {
    /// Fails when there are no certificate authorities to check receivers against.
    pub fn new(policy: Policy, options: Options) -> Result<Self, String> {
        let policy = Arc::new(policy);
        let guarded = Guarded {
            policy: policy.clone(),
            lookup: options.lookup,
        };
        let tls = tls(options.extra_roots.as_deref())?;
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(guarded.clone());
        let client = Client::builder(OnRuntime(options.runtime.clone()))
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(50))
            // Many endpoints may share a host: fewer would open and close connections all the time.
            .pool_max_idle_per_host(1024)
            .http1_max_buf_size(HEAD_LIMIT)
            // Only when nothing of a request was written: the receiver closed the kept connection a moment before.
            .retry_canceled_requests(true)
            .build(Connector(https));
        let tls = Arc::new(tls);
        Ok(Outbound {
            client,
            policy,
            guarded,
            names: options.names,
            tls,
            runtime: options.runtime,
            detached: Arc::new(Bulkhead::new(DETACHED_OF_TENANT, DETACHED)),
        })
    }

    /// May this URL be called at all? Its address is checked at each connect.
    pub fn check(&self, url: &Url) -> Result<(), Blocked> {
        self.policy.check(url)
    }

    /// May this host be reached on this port, by whatever it speaks? Where its name leads is checked by
    /// [`addresses`](Outbound::addresses).
    pub fn check_host(&self, host: &str, port: u16) -> Result<(), Blocked> {
        self.policy.check_host(host, port).map(drop)
    }

    /// Where a host that a user named may be connected to: looked up and checked as for a POST. Connect to these and to
    /// nothing else.
    #[boxed]
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        let named = self
            .policy
            .check_host(host, port)
            .map_err(|blocked| Failure::BlockedTarget(blocked.0))?;
        let (found, _) = self.guarded.resolve(host, named).await.map_err(Failure::from)?;
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// Whom to ask for the servers of a SIP domain. What they name is a user's word: see [`addresses`](Outbound::addresses).
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// How the other side of a TLS connection is checked.
    pub fn tls(&self) -> Arc<ClientConfig> {
        self.tls.clone()
    }

    /// One POST of which the answer's first bytes are kept.
    #[boxed]
    pub async fn post(&self, url: &Url, headers: HeaderMap, body: Bytes, timeout: Duration) -> Exchange {
        self.send(Ask {
            method: Method::POST,
            url,
            headers,
            body,
            timeout,
            keep: BODY_LIMIT,
        })
        .await
    }

    pub fn send<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Exchange> {
        Box::pin(self.exchange(ask, None))
    }

    /// The same for an answer that is read while it comes, such as a stream of events. None of its body is kept.
    pub fn read<'a>(&'a self, ask: Ask<'a>, take: Take<'a>) -> BoxFuture<'a, Exchange> {
        Box::pin(self.exchange(ask, Some(take)))
    }

    /// Sends what is only a courtesy, one after the other: nobody waits for it, and nobody learns what came of it. While 8 of the
    /// workspace's errands, or 64 of all, are under way, nothing is sent. `timeout`: for each.
    pub fn send_detached(&self, tenant: TenantId, url: Url, notes: Vec<Note>, timeout: Duration) {
        let Ok(permit) = self.detached.enter(tenant) else {
            return;
        };
        let outbound = self.clone();
        self.runtime.spawn(async move {
            for Note { method, headers, body } in notes {
                let ask = Ask {
                    method,
                    url: &url,
                    headers,
                    body,
                    timeout,
                    keep: 0,
                };
                outbound.send(ask).await;
            }
            drop(permit);
        });
    }

    async fn exchange(&self, ask: Ask<'_>, take: Option<Take<'_>>) -> Exchange {
        let timeout = ask.timeout;
        let started = Instant::now();
        let mut exchange = Exchange {
            outcome: Err(Failure::Timeout),
            headers: HeaderMap::new(),
            body: Vec::new(),
            timings: Timings::default(),
            remote: None,
        };
        // What was seen before a timeout stays in the exchange.
        let mut opened = None;
        let running = self.run(ask, take, started, &mut exchange, &mut opened);
        if let Ok(outcome) = tokio::time::timeout(timeout, running).await {
            exchange.outcome = outcome;
        }
        if let Some(opened) = &opened
            && let Some(connected) = &*opened.connection_metadata()
        {
            let mut extras = http::Extensions::new();
            connected.get_extras(&mut extras);
            exchange.took(&extras, started);
        }
        exchange.timings.total_us = micros(started.elapsed());
        exchange
    }

    async fn run(
        &self,
        ask: Ask<'_>,
        take: Option<Take<'_>>,
        started: Instant,
        seen: &mut Exchange,
        opened: &mut Option<CaptureConnection>,
    ) -> Result<u16, Failure> {
        let Ask { url, keep, .. } = ask;
        self.check(url).map_err(|blocked| Failure::BlockedTarget(blocked.0))?;
        let uri = Uri::try_from(url.as_str()).map_err(|error| Failure::BlockedTarget(error.to_string()))?;
        let mut request = Request::new(Full::new(ask.body));
        *request.method_mut() = ask.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = ask.headers;
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "Callboard/",
                env!("CARGO_PKG_VERSION")
            )));
        *opened = Some(capture_connection(&mut request));
        let response = self.client.request(request).await;
        let response = response.map_err(|error| failure(&error, error.is_connect()))?;
        seen.timings.first_byte_us = Some(micros(started.elapsed()));
        let status = response.status().as_u16();
        let (head, body) = response.into_parts();
        seen.headers = head.headers;
        match take {
            Some(take) => hand_on(body, |piece| take(status, &seen.headers, piece)).await?,
            None => read(body, &mut seen.body, keep).await?,
        }
        Ok(status)
    }
}

impl Exchange {
    /// Notes where the connection went, and what its opening took if it was opened for this request.
    fn took(&mut self, connection: &http::Extensions, started: Instant) {
        self.remote = connection.get::<HttpInfo>().map(HttpInfo::remote_addr);
        if let (Some(opened), Some(secured)) = (connection.get::<Opened>(), connection.get::<Secured>())
            && opened.started >= started
        {
            self.timings.dns_us = opened.looked_up.map(|at| micros(at - opened.started));
            self.timings.connect_us = Some(micros(opened.connected - opened.looked_up.unwrap_or(opened.started)));
            self.timings.tls_us = secured.0.map(|at| micros(at - opened.connected));
        }
    }
}

/// Keeps the first bytes and reads a little further. Dropping an unread rest closes the connection.
async fn read(mut body: Incoming, kept: &mut Vec<u8>, keep: usize) -> Result<(), Failure> {
    let read_limit = READ_LIMIT.max(keep);
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failure(&error, false))?;
        let Some(data) = frame.data_ref() else { continue };
        read += data.len();
        kept.extend_from_slice(&data[..data.len().min(keep - kept.len())]);
        let rest = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if kept.len() == keep && read.saturating_add(rest) > read_limit || read > read_limit {
            break;
        }
    }
    Ok(())
}

/// Hands the pieces on until no more is wanted. Dropping an unread rest closes the connection.
async fn hand_on(mut body: Incoming, mut take: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failure(&error, false))?;
        if frame.data_ref().is_some_and(|piece| take(piece).is_break()) {
            break;
        }
    }
    Ok(())
}

fn failure(error: &(dyn StdError + 'static), connecting: bool) -> Failure {
    let mut cause = Some(error);
    while let Some(next) = cause {
        match next.downcast_ref::<ConnectFailure>() {
            Some(known) => return known.clone().into(),
            None => cause = next.source(),
        }
    }
    // Look-up and TCP name themselves: what is left of a connect is TLS.
    let words = match trouble::of_system(error) {
        Some(error) => trouble::lost(error),
        None => error.source().map_or_else(|| error.to_string(), trouble::words),
    };
    if connecting {
        Failure::Tls(words)
    } else {
        Failure::BadAnswer(words)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The certificate authorities that the system trusts, read once.
pub fn system_roots() -> RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    };
    ROOTS.get_or_init(read).clone()
}

fn tls(extra_roots: Option<&[u8]>) -> Result<ClientConfig, String> {
    let mut roots = system_roots();
    if let Some(pem) = extra_roots {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("bad certificate in PEM: {error}"))?;
            roots
                .add(certificate)
                .map_err(|error| format!("bad certificate authority: {error}"))?;
        }
    }
    if roots.is_empty() {
        return Err(
            "the system has no certificate authorities (package ca-certificates): no receiver could be trusted".into(),
        );
    }
    Ok(ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Connections live on the service's own threads, also those that a request handler opened.
#[derive(Clone)]
struct OnRuntime(Handle);

impl<F> Executor<F> for OnRuntime
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}
