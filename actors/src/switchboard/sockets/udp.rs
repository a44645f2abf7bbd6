//! The one UDP socket of live calls. What is sent leaves from the port that is listened on: peers match requests by it.
use super::{Inbox, Incoming, What, dropped, known};
use crate::switchboard::{line::NotSent, moments::until, sources::SourceTable, table::Source};
use bytes::Bytes;
use sip::message::Transport;
use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

/// The longest datagram.
const LONGEST: usize = 65_535;
/// After an error that may last.
const PAUSE: Duration = Duration::from_millis(50);

pub struct Udp {
    /// There until it is closed: whoever still holds the service's parts does not hold its port.
    socket: RwLock<Option<Arc<UdpSocket>>>,
    bound: SocketAddr,
}

impl Udp {
    pub fn open(bind: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(bind)?;
        socket.set_nonblocking(true)?;
        Ok(Udp {
            bound: socket.local_addr()?,
            socket: RwLock::new(Some(Arc::new(socket))),
        })
    }

    pub fn bound(&self) -> SocketAddr {
        self.bound
    }

    fn socket(&self) -> Option<Arc<UdpSocket>> {
        self.socket.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Never waits.
    pub fn send(&self, bytes: &[u8], to: SocketAddr) -> Result<(), NotSent> {
        let socket = self.socket().ok_or(NotSent::NoSocket(Transport::Udp))?;
        match socket.send_to(bytes, self.written(to)) {
            Ok(_) => Ok(()),
            // Lost, as the network loses datagrams: whoever waits for an answer sends it again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                metrics::counter!("callboard_sip_unsent_datagrams_total").increment(1);
                Ok(())
            }
            // ICMP of something that was sent before: it says nothing of this one.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(_) => Err(NotSent::Refused),
        }
    }

    /// An IPv4 address as a socket of IPv6 writes it.
    fn written(&self, to: SocketAddr) -> SocketAddr {
        match (self.bound.ip(), to.ip()) {
            (IpAddr::V6(_), IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
            _ => to,
        }
    }

    /// For [`receive`]; inside a runtime.
    pub fn receiving(&self) -> io::Result<tokio::net::UdpSocket> {
        let socket = self
            .socket()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        tokio::net::UdpSocket::from_std(socket.try_clone()?)
    }

    pub fn close(&self) {
        *self.socket.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Takes what comes from known addresses, for as long as anybody looks at it. Strangers cost a look-up.
pub async fn receive(socket: tokio::net::UdpSocket, sources: SourceTable, inbox: Inbox) {
    let mut buffer = vec![0; LONGEST];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // ICMP of something that was sent: whoever waits for its answer has a timer.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => {
                dropped("socket");
                tracing::debug!(%error, "a datagram could not be received");
                until(Some(Instant::now() + PAUSE)).await;
                continue;
            }
        };
        let Some(address) = known(&sources, from) else { continue };
        let incoming = Incoming {
            what: What::Datagram(Bytes::copy_from_slice(&buffer[..length])),
            source: Source {
                address,
                transport: Transport::Udp,
            },
        };
        match inbox.try_send(incoming) {
            Ok(()) => {}
            Err(tokio::sync::mpsc::error::TrySendError::Full(_)) => dropped("full"),
            Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => return,
        }
    }
}
