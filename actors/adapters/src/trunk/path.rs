//! A way to a SIP peer from a socket of its own, for requests outside of calls. What comes over it is bounded in bytes and reads:
//! the peer is a user's word.
use super::{on_the_wire, peering::Peering};
use crate::outbound::{Outbound, trouble};
use bytes::Bytes;
use entities::sip_trunk::Transport;
use rules::delivery::failure::Failure;
use rustls::pki_types::ServerName;
use sip::{
    ladder::{Direction, Ladder},
    message::{Fields, Frame, MAX_BYTES, Message, Request, Response, StreamReader, read_datagram},
    transaction::{Client, ClientOutput},
};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout_at,
};
use tokio_rustls::TlsConnector;

/// Pieces in which what a peer sends is read; it is `MAX_BYTES` at most.
const MAX_READS: usize = 1000;
/// A datagram counts as so many bytes at least.
const DATAGRAM_BYTES: usize = 512;

pub struct Path {
    pub local: SocketAddr,
    transport: sip::message::Transport,
    peer: SocketAddr,
    io: Io,
    /// Bytes that the peer may still send.
    left: usize,
    /// Something that it sent is not SIP: why.
    strange: Option<String>,
    pub ladder: Ladder,
}

enum Io {
    Udp {
        socket: UdpSocket,
        buffer: Vec<u8>,
    },
    Stream {
        stream: Box<dyn Stream>,
        reader: StreamReader,
        piece: Vec<u8>,
        reads: usize,
    },
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What a peer answered, and how long it took after the request had left.
#[derive(Clone, Debug, PartialEq)]
pub struct Pong {
    pub status: u16,
    /// In the peer's words, at most 100 characters.
    pub reason: String,
    pub took: Duration,
}

impl Pong {
    pub(super) fn of(response: &Response, started: Instant) -> Self {
        Pong {
            status: response.code,
            reason: response.reason.clone(),
            took: started.elapsed(),
        }
    }
}

impl Path {
    /// To one of the addresses of a trunk's next hop; over TLS the peer proves that it is that host.
    pub async fn open(outbound: &Outbound, peering: &Peering, address: SocketAddr) -> Result<Self, Failure> {
        let (local, io) = match peering.transport {
            Transport::Udp => {
                let (socket, local) = udp(address).await.map_err(|error| unreachable(address, &error))?;
                let buffer = vec![0; MAX_BYTES];
                (local, Io::Udp { socket, buffer })
            }
            Transport::Tcp => {
                let (stream, local) = tcp(address).await?;
                (local, Io::stream(stream))
            }
            Transport::Tls => {
                let name = ServerName::try_from(peering.next_hop().host());
                let name = name.map_err(|error| Failure::Tls(error.to_string()))?;
                let (stream, local) = tcp(address).await?;
                let stream = TlsConnector::from(outbound.tls()).connect(name, stream).await;
                let stream = stream.map_err(|error| insecure(&error))?;
                (local, Io::stream(stream))
            }
        };
        Ok(Path {
            local,
            transport: on_the_wire(peering.transport),
            peer: address,
            io,
            left: MAX_BYTES,
            strange: None,
            ladder: Ladder::default(),
        })
    }

    /// Sends a request again and again as its transport asks for, and waits for its final answer; a provisional one is kept in
    /// `heard`.
    pub async fn ask(&mut self, request: Request, heard: &mut Option<Pong>) -> Result<(Response, Pong), Failure> {
        let started = Instant::now();
        let mut client = Client::new(request, self.transport, started);
        loop {
            client.tick(Instant::now());
            while let Some(output) = client.poll() {
                match output {
                    ClientOutput::Send(bytes) => self.send(&bytes).await?,
                    ClientOutput::Provisional(response) => *heard = Some(Pong::of(&response, started)),
                    ClientOutput::Final(response) => {
                        let pong = Pong::of(&response, started);
                        return Ok((response, pong));
                    }
                    ClientOutput::TimedOut | ClientOutput::Failed | ClientOutput::Over => return Err(Failure::Timeout),
                }
            }
            let received = match client.deadline() {
                Some(at) => timeout_at(at.into(), self.receive()).await,
                None => Ok(self.receive().await),
            };
            if let Ok(received) = received
                && let Some(Message::Response(response)) = received?
            {
                // Somebody else's answer may come by the same path.
                if response.call_id() == client.request().call_id() {
                    client.receive(&response, Instant::now());
                }
            }
        }
    }

    pub async fn send(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        self.ladder.record_sent(bytes, Instant::now());
        match &mut self.io {
            Io::Udp { socket, .. } => {
                let sent = socket.send(bytes).await;
                sent.map(drop).map_err(|error| unreachable(self.peer, &error))
            }
            Io::Stream { stream, .. } => {
                stream.write_all(bytes).await.map_err(|error| lost(&error))?;
                stream.flush().await.map_err(|error| lost(&error))
            }
        }
    }

    /// The next message; `None`: a datagram that is none, for datagrams get lost and mixed up. Safe to be dropped.
    pub async fn receive(&mut self) -> Result<Option<Message>, Failure> {
        let message = match &mut self.io {
            Io::Udp { socket, buffer } => {
                if self.left == 0 {
                    return Err(Failure::BadAnswer(self.strange.take().unwrap_or_else(too_much)));
                }
                let received = socket.recv(buffer).await;
                let length = received.map_err(|error| unreachable(self.peer, &error))?;
                self.left = self.left.saturating_sub(length.max(DATAGRAM_BYTES));
                match read_datagram(&buffer[..length]) {
                    Ok(message) => message,
                    Err(why) => {
                        self.strange = Some(why.to_string());
                        return Ok(None);
                    }
                }
            }
            Io::Stream {
                stream,
                reader,
                piece,
                reads,
            } => loop {
                match reader.next() {
                    Ok(Some(Frame::Message(message))) => break message,
                    Ok(Some(Frame::Ping | Frame::Pong)) => continue,
                    Ok(None) => {}
                    Err(why) if why.ends_stream() => return Err(Failure::BadAnswer(why.to_string())),
                    // Something else that the peer said beside.
                    Err(_) => continue,
                }
                if self.left == 0 || *reads == 0 {
                    return Err(Failure::BadAnswer(too_much()));
                }
                let length = stream.read(piece).await.map_err(|error| lost(&error))?;
                if length == 0 {
                    let why = "the peer closed the connection without an answer";
                    return Err(Failure::BadAnswer(why.into()));
                }
                self.left = self.left.saturating_sub(length);
                *reads -= 1;
                reader.push(&piece[..length]);
            },
        };
        self.ladder.record(Direction::Received, &message, Instant::now());
        Ok(Some(message))
    }
}

impl Io {
    fn stream(stream: impl Stream + 'static) -> Self {
        Io::Stream {
            stream: Box::new(stream),
            reader: StreamReader::new(),
            piece: vec![0; 4096],
            reads: MAX_READS,
        }
    }
}

fn too_much() -> String {
    "the peer sends much and no answer".into()
}

fn unreachable(whom: SocketAddr, error: &io::Error) -> Failure {
    Failure::Connect(trouble::unreachable(whom, error))
}

/// No TLS: the peer left meanwhile, or says what we cannot take.
fn insecure(error: &io::Error) -> Failure {
    Failure::Tls(trouble::of_system(error).map_or_else(|| trouble::words(error), trouble::lost))
}

fn lost(error: &io::Error) -> Failure {
    Failure::BadAnswer(trouble::lost(error))
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

async fn tcp(address: SocketAddr) -> Result<(TcpStream, SocketAddr), Failure> {
    let unreachable = |error: io::Error| unreachable(address, &error);
    let stream = TcpStream::connect(address).await.map_err(unreachable)?;
    let local = stream.local_addr().map_err(unreachable)?;
    Ok((stream, local))
}
