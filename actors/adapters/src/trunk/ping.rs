//! Asks a SIP peer whether it is there: one OPTIONS request, over the trunk's own transport. Any answer in SIP means yes.
//!
//! The peer is named by a user, so that it is looked up and checked as a webhook's receiver is, and what it sends is bounded
//! in bytes, reads and time.
use super::protocol::{self, Answer, Message, Request};
use crate::outbound::Outbound;
use entities::{
    boxed,
    sip_trunk::{Definition, Transport},
};
use rules::delivery::failure::Failure;
use rustls::pki_types::ServerName;
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsConnector;

/// All of it, from the look-up to the answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Bytes, and pieces in which they come, that are read of a peer.
const MAX_BYTES: usize = 64 * 1024;
const MAX_READS: usize = 1000;
/// A datagram counts as so many bytes at least.
const DATAGRAM_BYTES: usize = 512;
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 4;
/// A request over UDP is sent again after T1, then after twice as long each time, up to T2. Source: RFC 3261, section 17.1.2.
const T1: Duration = Duration::from_millis(500);
const T2: Duration = Duration::from_secs(4);

/// What a peer answered, and how long it took after the request had left.
#[derive(Clone, Debug, PartialEq)]
pub struct Pong {
    pub status: u16,
    /// In the peer's words, at most 100 characters.
    pub reason: String,
    pub took: Duration,
}

/// Sends an OPTIONS request to a trunk's peer and waits for its answer, 5 seconds at most.
#[boxed]
pub async fn ping(outbound: &Outbound, trunk: &Definition) -> Result<Pong, Failure> {
    // A peer that says `100 Trying` and nothing more is there, too.
    let mut heard = None;
    let outcome = timeout(LIMIT, Asking::new(trunk, &mut heard).run(outbound)).await;
    match (outcome, heard) {
        (Ok(Ok(pong)), _) | (Ok(Err(_)) | Err(_), Some(pong)) => Ok(pong),
        (Ok(Err(failure)), None) => Err(failure),
        (Err(_), None) => Err(Failure::Timeout),
    }
}

/// Why a peer did not answer, for people.
pub fn words(failure: &Failure) -> String {
    match failure {
        Failure::Timeout => format!("no answer in SIP within {} seconds", LIMIT.as_secs()),
        Failure::BlockedTarget(why)
        | Failure::Dns(why)
        | Failure::Connect(why)
        | Failure::Tls(why)
        | Failure::BadAnswer(why) => why.clone(),
    }
}

struct Asking<'a> {
    trunk: &'a Definition,
    request: Request,
    /// A provisional answer.
    heard: &'a mut Option<Pong>,
}

impl<'a> Asking<'a> {
    fn new(trunk: &'a Definition, heard: &'a mut Option<Pong>) -> Self {
        Asking {
            trunk,
            request: Request::new(),
            heard,
        }
    }

    async fn run(mut self, outbound: &Outbound) -> Result<Pong, Failure> {
        let host = self.trunk.host.host();
        let mut addresses = outbound.addresses(&host, self.trunk.port()).await?;
        addresses.truncate(MAX_ADDRESSES);
        match self.trunk.transport {
            Transport::Udp => {
                let mut last = nowhere();
                for address in addresses {
                    match self.over_udp(address).await {
                        // Nobody listens there: the network said so.
                        Err(Failure::Connect(why)) => last = Failure::Connect(why),
                        outcome => return outcome,
                    }
                }
                Err(last)
            }
            Transport::Tcp => {
                let (stream, local) = tcp(&addresses).await?;
                self.over_stream(stream, local).await
            }
            Transport::Tls => {
                let name = ServerName::try_from(host).map_err(|error| Failure::Tls(error.to_string()))?;
                let (stream, local) = tcp(&addresses).await?;
                let stream = TlsConnector::from(outbound.tls()).connect(name, stream).await;
                let stream = stream.map_err(|error| Failure::Tls(error.to_string()))?;
                self.over_stream(stream, local).await
            }
        }
    }

    fn text(&self, local: SocketAddr) -> String {
        let domain = self
            .trunk
            .from_domain
            .clone()
            .unwrap_or_else(|| self.trunk.host.domain());
        let (target, domain) = (self.trunk.host.to_string(), domain.to_string());
        self.request.text(self.trunk.transport, &target, &domain, local)
    }

    async fn over_udp(&mut self, address: SocketAddr) -> Result<Pong, Failure> {
        let (socket, local) = udp(address).await.map_err(unreachable)?;
        let text = self.text(local);
        let mut buffer = vec![0; MAX_BYTES];
        let mut read = 0;
        let started = Instant::now();
        let (mut send_at, mut pause) = (started, T1);
        // What is no answer is passed over: datagrams get lost and mixed up.
        let mut strange = None;
        while read < MAX_BYTES {
            if Instant::now() >= send_at {
                socket.send(text.as_bytes()).await.map_err(unreachable)?;
                send_at += pause;
                pause = (pause * 2).min(T2);
            }
            let Ok(received) = timeout_at(send_at, socket.recv(&mut buffer)).await else {
                continue;
            };
            let length = received.map_err(unreachable)?;
            read += length.max(DATAGRAM_BYTES);
            match protocol::read_datagram(&buffer[..length]) {
                Ok(message) => match self.weigh(message, started) {
                    Some(pong) => return Ok(pong),
                    None if self.heard.is_some() => pause = T2,
                    None => {}
                },
                Err(why) => strange = Some(why),
            }
        }
        Err(Failure::BadAnswer(strange.unwrap_or_else(too_much)))
    }

    async fn over_stream(
        &mut self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        local: SocketAddr,
    ) -> Result<Pong, Failure> {
        let text = self.text(local);
        let lost = |error: io::Error| Failure::BadAnswer(format!("the connection broke: {error}"));
        let started = Instant::now();
        stream.write_all(text.as_bytes()).await.map_err(lost)?;
        stream.flush().await.map_err(lost)?;
        let (mut bytes, mut read) = (Vec::new(), 0);
        let mut piece = vec![0; 4096];
        for _ in 0..MAX_READS {
            let length = stream.read(&mut piece).await.map_err(lost)?;
            if length == 0 {
                let why = "the peer closed the connection without an answer";
                return Err(Failure::BadAnswer(why.into()));
            }
            read += length;
            bytes.extend_from_slice(&piece[..length]);
            while let Some((message, length)) = protocol::read(&bytes).map_err(Failure::BadAnswer)? {
                bytes.drain(..length);
                if let Some(pong) = self.weigh(message, started) {
                    return Ok(pong);
                }
            }
            if read > MAX_BYTES {
                break;
            }
        }
        Err(Failure::BadAnswer(too_much()))
    }

    /// The final answer to our request, if that is what it is.
    fn weigh(&mut self, message: Message, started: Instant) -> Option<Pong> {
        let answer = match message {
            Message::Answer(answer) if self.request.is_answered_by(&answer) => answer,
            Message::Answer(_) | Message::Other => return None,
        };
        let Answer { status, reason, .. } = answer;
        let pong = Pong {
            status,
            reason,
            took: started.elapsed(),
        };
        if status >= 200 {
            return Some(pong);
        }
        *self.heard = Some(pong);
        None
    }
}

fn too_much() -> String {
    "the peer sends much and no answer".into()
}

fn unreachable(error: io::Error) -> Failure {
    Failure::Connect(error.to_string())
}

/// A socket that hears this peer alone, and its own address.
async fn udp(peer: SocketAddr) -> io::Result<(UdpSocket, SocketAddr)> {
    let any = match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(peer).await?;
    let local = socket.local_addr()?;
    Ok((socket, local))
}

async fn tcp(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), Failure> {
    if addresses.is_empty() {
        return Err(nowhere());
    }
    // One after the other.
    let stream = TcpStream::connect(addresses).await.map_err(unreachable)?;
    let local = stream.local_addr().map_err(unreachable)?;
    Ok((stream, local))
}

fn nowhere() -> Failure {
    Failure::Dns("the host has no address".into())
}
