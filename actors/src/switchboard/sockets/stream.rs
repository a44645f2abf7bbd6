//! Connections of TCP and TLS: ours to trunks' peers, kept for all that goes there, and theirs to us. Source: RFC 3261, section 18,
//! RFC 5626, section 4.4.1.
use super::{Incoming, Served, What, dropped};
use crate::switchboard::{
    line::{NotSent, Target},
    moments::until,
    table::{Arrival, Source},
};
use bytes::Bytes;
use entities::ids::{TenantId, TrunkId};
use rustls::{ClientConfig, pki_types::ServerName};
use sip::message::{Frame, StreamReader, Transport};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split},
    net::TcpStream,
    runtime::Handle,
    sync::mpsc,
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// Messages that one connection has not sent yet.
const QUEUE: usize = 256;
/// Connections at once. Those that peers open leave some for ours.
const MOST: usize = 2_000;
const MOST_OF_THEIRS: usize = 1_500;
/// Of these with one address of a peer's, or all addresses of one trunk: it may open no more then. An address of several trunks may,
/// as long as one of them may: a neighbour who shares a carrier takes nothing from the others.
pub const MOST_OF_ONE: usize = 250;
/// The same of all trunks of one workspace, however many it has.
pub const MOST_OF_WORKSPACE: usize = MOST_OF_THEIRS / 4;
/// In which a connection stands, and in which a message is written.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);
const WRITES_WITHIN: Duration = Duration::from_secs(10);
/// Between two pings of ours, and what the pong may take.
const PING: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// A connection of theirs on which nothing comes is closed.
const IDLE: Duration = Duration::from_secs(300);
/// Bytes that are read at once.
const PIECE: usize = 8_192;

struct Outgoing {
    bytes: Bytes,
    /// Who is told if it is not sent; empty: nobody.
    call_id: Arc<str>,
}

struct Connection {
    number: u64,
    out: mpsc::Sender<Outgoing>,
    /// Whose it is, if he has opened it.
    opened_by: Option<Owners>,
}

struct Owners {
    trunks: Vec<TrunkId>,
    workspaces: Vec<TenantId>,
}

/// What connections are opened with, once the service runs.
struct Started {
    runtime: Handle,
    tls: Arc<ClientConfig>,
}

struct Shared {
    connections: Mutex<HashMap<(SocketAddr, Transport), Connection>>,
    last_number: AtomicU64,
    started: OnceLock<Started>,
    served: Served,
}

/// A connection that a known peer has opened has its place, until this is dropped.
pub struct Admitted {
    streams: Streams,
    source: Source,
    number: u64,
    queue: mpsc::Receiver<Outgoing>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.streams.end(self.source, self.number, &mut self.queue);
    }
}

/// Cloning is cheap.
#[derive(Clone)]
pub struct Streams(Arc<Shared>);

impl Streams {
    pub fn new(served: Served) -> Self {
        Streams(Arc::new(Shared {
            connections: Mutex::default(),
            last_number: AtomicU64::new(0),
            started: OnceLock::new(),
            served,
        }))
    }

    /// `tls`: how peers' certificates are checked.
    pub fn start(&self, runtime: Handle, tls: Arc<ClientConfig>) {
        let _ = self.0.started.set(Started { runtime, tls });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(SocketAddr, Transport), Connection>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Over the connection there, which is opened if there is none.
    pub fn send(&self, bytes: Bytes, target: &Target, call_id: &Arc<str>) -> Result<(), NotSent> {
        let mut outgoing = Outgoing {
            bytes,
            call_id: call_id.clone(),
        };
        let key = (target.address, target.transport);
        let mut connections = self.lock();
        if let Some(connection) = connections.get(&key) {
            match connection.out.try_send(outgoing) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Full(_)) => return Err(NotSent::NoRoom),
                // It ends at this moment.
                Err(mpsc::error::TrySendError::Closed(unsent)) => outgoing = unsent,
            }
        }
        let started = self.0.started.get().ok_or(NotSent::NoSocket(target.transport))?;
        if connections.len() >= MOST {
            return Err(NotSent::NoRoom);
        }
        let (out, queue) = mpsc::channel(QUEUE);
        // There is room for one.
        let _ = out.try_send(outgoing);
        let number = self.0.last_number.fetch_add(1, Ordering::Relaxed);
        connections.insert(
            key,
            Connection {
                number,
                out,
                opened_by: None,
            },
        );
        let (its, target, tls) = (self.clone(), target.clone(), started.tls.clone());
        started
            .runtime
            .spawn(async move { its.connect(target, tls, number, queue).await });
        Ok(())
    }

    /// Is there a connection over TCP, or can one be made within that time?
    pub async fn reach(&self, address: SocketAddr, within: Duration) -> bool {
        let source = Source {
            address,
            transport: Transport::Tcp,
        };
        let key = (address, Transport::Tcp);
        if self.lock().contains_key(&key) {
            return true;
        }
        let (Some(started), Ok(Ok(stream))) =
            (self.0.started.get(), timeout(within, TcpStream::connect(address)).await)
        else {
            return false;
        };
        let (out, mut queue) = mpsc::channel(QUEUE);
        let number = self.0.last_number.fetch_add(1, Ordering::Relaxed);
        {
            let mut connections = self.lock();
            if connections.len() >= MOST {
                return false;
            }
            if connections.contains_key(&key) {
                return true;
            }
            let opened_by = None;
            connections.insert(key, Connection { number, out, opened_by });
        }
        let its = self.clone();
        started.runtime.spawn(async move {
            its.carry(stream, source, &mut queue, true).await;
            its.end(source, number, &mut queue);
        });
        true
    }

    async fn connect(self, target: Target, tls: Arc<ClientConfig>, number: u64, mut queue: mpsc::Receiver<Outgoing>) {
        let source = Source {
            address: target.address,
            transport: target.transport,
        };
        match timeout(CONNECTS_WITHIN, TcpStream::connect(target.address)).await {
            Ok(Ok(stream)) if target.transport == Transport::Tls => {
                let name = ServerName::try_from(target.name.to_string());
                let secured = match name {
                    Ok(name) => timeout(CONNECTS_WITHIN, TlsConnector::from(tls).connect(name, stream))
                        .await
                        .ok(),
                    Err(_) => None,
                };
                match secured {
                    Some(Ok(stream)) => self.carry(stream, source, &mut queue, true).await,
                    Some(Err(error)) => {
                        tracing::info!(%error, peer = %target.address, "a peer's certificate, or its TLS, was refused")
                    }
                    None => tracing::info!(peer = %target.address, "a peer did not answer in TLS"),
                }
            }
            Ok(Ok(stream)) => self.carry(stream, source, &mut queue, true).await,
            Ok(Err(error)) => tracing::info!(%error, peer = %target.address, "a peer cannot be connected to"),
            Err(_) => tracing::info!(peer = %target.address, "a peer did not take the connection in time"),
        }
        self.end(source, number, &mut queue);
    }

    /// A place for a connection that a known peer has opened, before it has said a word. `None`: there is none left for him.
    pub fn admit(&self, source: Source) -> Option<Admitted> {
        let (sources, ip) = (&self.0.served.sources, source.address.ip());
        let trunks = sources.trunks_of(ip);
        let workspaces = sources.workspaces_of(&trunks);
        let (out, queue) = mpsc::channel(QUEUE);
        let number = self.0.last_number.fetch_add(1, Ordering::Relaxed);
        let mut connections = self.lock();
        let his = connections.keys().filter(|(address, _)| address.ip() == ip).count();
        let theirs = || {
            connections
                .values()
                .filter_map(|connection| connection.opened_by.as_ref())
        };
        let has_room = his < MOST_OF_ONE
            && leaves_room(&trunks, MOST_OF_ONE, theirs().map(|owners| &owners.trunks[..]))
            && leaves_room(
                &workspaces,
                MOST_OF_WORKSPACE,
                theirs().map(|owners| &owners.workspaces[..]),
            );
        if !has_room || theirs().count() >= MOST_OF_THEIRS || connections.len() >= MOST {
            dropped("connections");
            return None;
        }
        let opened_by = Some(Owners { trunks, workspaces });
        connections.insert(
            (source.address, source.transport),
            Connection { number, out, opened_by },
        );
        drop(connections);
        Some(Admitted {
            streams: self.clone(),
            source,
            number,
            queue,
        })
    }

    /// What was not sent cannot have arrived: its owners are told.
    fn end(&self, source: Source, number: u64, queue: &mut mpsc::Receiver<Outgoing>) {
        let mut connections = self.lock();
        let key = (source.address, source.transport);
        if connections
            .get(&key)
            .is_some_and(|connection| connection.number == number)
        {
            connections.remove(&key);
        }
        drop(connections);
        queue.close();
        while let Ok(Outgoing { call_id, .. }) = queue.try_recv() {
            self.0.served.calls.deliver(&call_id, Arrival::Undelivered);
        }
    }

    /// Both ways, until it ends. `is_ours`: we see to it that it stays.
    async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        source: Source,
        queue: &mut mpsc::Receiver<Outgoing>,
        is_ours: bool,
    ) {
        let (mut read, mut write) = split(stream);
        let mut reader = StreamReader::new();
        let mut piece = vec![0; PIECE];
        let mut life = Life::new(is_ours, self.0.served.whole_within);
        loop {
            let ends = life.deadline();
            tokio::select! {
                biased;
                outgoing = queue.recv() => {
                    let Some(outgoing) = outgoing else { return };
                    if !write_all(&mut write, &outgoing.bytes).await {
                        self.0.served.calls.deliver(&outgoing.call_id, Arrival::Undelivered);
                        return;
                    }
                }
                length = read_some(&mut read, &mut piece) => {
                    let Some(length) = length else { return };
                    life.heard();
                    reader.push(&piece[..length]);
                    if !self.take(&mut reader, source, &mut write, &mut life).await {
                        return;
                    }
                    life.awaits_rest(reader.has_begun());
                }
                () = until(Some(ends)) => match life.look() {
                    Look::Nothing => {}
                    Look::Over => return,
                    Look::TooSlow => return dropped("slow"),
                    Look::Ping => {
                        if !write_all(&mut write, b"\r\n\r\n").await {
                            return;
                        }
                    }
                },
            }
        }
    }

    /// `false`: it is not a stream of SIP any more, or no peer's.
    async fn take<S: AsyncWrite + AsyncRead>(
        &self,
        reader: &mut StreamReader,
        source: Source,
        write: &mut WriteHalf<S>,
        life: &mut Life,
    ) -> bool {
        if !self.0.served.sources.is_known(source.address.ip()) {
            dropped("stranger");
            return false;
        }
        loop {
            match reader.next() {
                Ok(None) => return true,
                Ok(Some(Frame::Pong)) => life.answered(),
                Ok(Some(Frame::Ping)) => {
                    if !write_all(write, b"\r\n").await {
                        return false;
                    }
                }
                Ok(Some(Frame::Message(message))) => {
                    life.has_come();
                    let what = What::Message(message);
                    if self.0.served.inbox.try_send(Incoming { what, source }).is_err() {
                        dropped("full");
                    }
                }
                Err(why) => {
                    dropped("unreadable");
                    tracing::debug!(%why, source = %source.address, "a peer's stream has what is not a SIP message");
                    if why.ends_stream() {
                        return false;
                    }
                }
            }
        }
    }
}

impl Admitted {
    /// Carries it, once it is secured, until it ends.
    pub async fn carry<S: AsyncRead + AsyncWrite + Unpin>(mut self, stream: S) {
        let streams = self.streams.clone();
        streams.carry(stream, self.source, &mut self.queue, false).await;
    }
}

/// One of the owners has fewer than `most` of what is open; or there is no owner.
fn leaves_room<'a, T: PartialEq + 'a>(owners: &[T], most: usize, open: impl Iterator<Item = &'a [T]> + Clone) -> bool {
    let has_less = |owner| open.clone().filter(|their| their.contains(owner)).count() < most;
    owners.is_empty() || owners.iter().any(has_less)
}

enum Look {
    Nothing,
    Ping,
    Over,
    /// A message has begun and does not end.
    TooSlow,
}

/// Whether a connection still stands.
struct Life {
    is_ours: bool,
    /// When it is looked at next.
    at: Instant,
    awaits_pong: bool,
    whole_within: Duration,
    /// When all of the message has come that has begun.
    whole_by: Option<Instant>,
}

impl Life {
    fn new(is_ours: bool, whole_within: Duration) -> Self {
        let pause = if is_ours { PING } else { IDLE };
        Life {
            is_ours,
            at: Instant::now() + pause,
            awaits_pong: false,
            whole_within,
            whole_by: None,
        }
    }

    fn deadline(&self) -> Instant {
        self.whole_by.map_or(self.at, |by| by.min(self.at))
    }

    /// All of a message.
    fn has_come(&mut self) {
        self.whole_by = None;
    }

    fn awaits_rest(&mut self, has_begun: bool) {
        self.whole_by = match has_begun {
            true => self.whole_by.or_else(|| Some(Instant::now() + self.whole_within)),
            false => None,
        };
    }

    /// Anything came.
    fn heard(&mut self) {
        if !self.is_ours {
            self.at = Instant::now() + IDLE;
        }
    }

    fn answered(&mut self) {
        if self.awaits_pong {
            self.awaits_pong = false;
            self.at = Instant::now() + PING;
        }
    }

    fn look(&mut self) -> Look {
        if self.whole_by.is_some_and(|by| Instant::now() >= by) {
            return Look::TooSlow;
        }
        match (Instant::now() >= self.at, self.is_ours, self.awaits_pong) {
            (false, ..) => Look::Nothing,
            (true, false, _) | (true, true, true) => Look::Over,
            (true, true, false) => {
                self.awaits_pong = true;
                self.at = Instant::now() + PONG_WITHIN;
                Look::Ping
            }
        }
    }
}

async fn write_all<W: AsyncWrite + Unpin>(write: &mut W, bytes: &[u8]) -> bool {
    let written = async {
        write.write_all(bytes).await?;
        write.flush().await
    };
    matches!(timeout(WRITES_WITHIN, written).await, Ok(Ok(())))
}

/// `None`: it has ended.
async fn read_some<S: AsyncRead + AsyncWrite>(read: &mut ReadHalf<S>, piece: &mut [u8]) -> Option<usize> {
    read.read(piece).await.ok().filter(|length| *length > 0)
}
