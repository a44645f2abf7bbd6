//! Connections to users' receivers: looked up, checked, opened and timed, each stage by itself.
//!
//! The check sits between look-up and connect, so that a name which changes its answer between two look-ups gains nothing.
//! What the stages took travels with the connection and is read from the answer that came over it.
use super::{policy::Policy, trouble};
use futures_util::future::BoxFuture;
use hyper::{
    Uri,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector, dns::Name},
    rt::TokioIo,
};
use std::{
    future::Ready,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::net::TcpStream;
use tower_service::Service;

/// Finds the addresses of a name.
pub trait Lookup: Send + Sync {
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// As the system does it.
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectFailure {
    #[error("{0}")]
    Blocked(String),
    #[error("{0}")]
    Dns(String),
    #[error("{0}")]
    Tcp(String),
}

/// When the stages of opening a connection were over.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    pub started: Instant,
    /// None for an address, which needs no look-up.
    pub looked_up: Option<Instant>,
    pub connected: Instant,
}

/// When the TLS handshake was over, if there was one.
#[derive(Clone, Copy, Debug)]
pub struct Secured(pub Option<Instant>);

/// A TCP connect that takes longer has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The first stages: look-up, check, TCP.
#[derive(Clone)]
pub struct Guarded {
    pub policy: Arc<Policy>,
    pub lookup: Arc<dyn Lookup>,
}

impl Guarded {
    async fn open(self, uri: Uri) -> Result<Stamped<TokioIo<TcpStream>, Opened>, ConnectFailure> {
        let started = Instant::now();
        let (addresses, looked_up) = self.addresses(&uri).await?;
        let mut tcp = HttpConnector::new_with_resolver(Found(addresses));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let whom = format!("{}:{}", uri.host().unwrap_or_default(), port(&uri));
        let io = tcp.call(uri).await.map_err(|error| {
            let in_words = |error| trouble::unreachable(&whom, error);
            ConnectFailure::Tcp(trouble::of_system(&error).map_or_else(|| trouble::words(&error), in_words))
        })?;
        let stamp = Opened {
            started,
            looked_up,
            connected: Instant::now(),
        };
        Ok(Stamped { io, stamp })
    }

    /// Where this may connect to. One bad address among good ones is an attack or a mistake: refused as a whole.
    async fn addresses(&self, uri: &Uri) -> Result<(Vec<IpAddr>, Option<Instant>), ConnectFailure> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
        let named = self.policy.names(&host, port(uri));
        self.resolve(&host, named).await
    }

    /// The same for a host in lower case and without brackets; `named`: the operator opened it by its name.
    pub async fn resolve(&self, host: &str, named: bool) -> Result<(Vec<IpAddr>, Option<Instant>), ConnectFailure> {
        let (found, looked_up) = match host.parse::<IpAddr>() {
            Ok(ip) => (vec![ip], None),
            Err(_) => {
                let found = self.lookup.lookup(host).await;
                let found = found.map_err(|error| ConnectFailure::Dns(trouble::unknown(host, &error)))?;
                (found, Some(Instant::now()))
            }
        };
        if found.is_empty() {
            return Err(ConnectFailure::Dns(format!("{host} has no address")));
        }
        match found.iter().find(|ip| !self.policy.permits(**ip, named)) {
            Some(bad) if looked_up.is_none() => Err(ConnectFailure::Blocked(format!("{bad} is not public"))),
            Some(bad) => Err(ConnectFailure::Blocked(format!(
                "{host} resolves to {bad}, which is not public"
            ))),
            None => Ok((found, looked_up)),
        }
    }
}

fn port(uri: &Uri) -> u16 {
    let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    uri.port_u16().unwrap_or(usual)
}

impl Service<Uri> for Guarded {
    type Response = Stamped<TokioIo<TcpStream>, Opened>;
    type Error = ConnectFailure;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectFailure>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailure>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().open(uri))
    }
}

/// The addresses that were checked, handed to the connect.
#[derive(Clone)]
struct Found(Vec<IpAddr>);

impl Service<Name> for Found {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::convert::Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, _: Name) -> Self::Future {
        let addresses: Vec<_> = self.0.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
        std::future::ready(Ok(addresses.into_iter()))
    }
}

/// The last stage: TLS, where the URL asks for it.
#[derive(Clone)]
pub struct Connector(pub HttpsConnector<Guarded>);

type Secure = MaybeHttpsStream<Stamped<TokioIo<TcpStream>, Opened>>;

impl Service<Uri> for Connector {
    type Response = Stamped<Secure, Secured>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }
    fn call(&mut self, uri: Uri) -> Self::Future {
        let opening = self.0.call(uri);
        Box::pin(async move {
            let io = opening.await?;
            let stamp = Secured(matches!(io, MaybeHttpsStream::Https(_)).then(Instant::now));
            Ok(Stamped { io, stamp })
        })
    }
}

/// A connection that knows when a stage of it was over.
pub struct Stamped<T, S> {
    io: T,
    stamp: S,
}

impl<T: Connection, S: Clone + Send + Sync + 'static> Connection for Stamped<T, S> {
    fn connected(&self) -> Connected {
        self.io.connected().extra(self.stamp.clone())
    }
}

impl<T: Read + Unpin, S: Unpin> Read for Stamped<T, S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: Write + Unpin, S: Unpin> Write for Stamped<T, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }
}
