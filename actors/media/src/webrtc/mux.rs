//! One socket for all connections: whose datagram is it?
//!
//! A STUN request names its connection (the ufrag before the colon of USERNAME, which we gave out in the answer). The
//! connection checks it, and only a good one makes the sender's address known; everything else is given by address.
use crate::threads::until;
use bytes::Bytes;
use std::{
    collections::HashMap,
    io::ErrorKind,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{net::UdpSocket, sync::mpsc};

/// Datagrams that a connection may lag behind, over a second of sound; what comes beyond is lost.
const INBOX: usize = 100;
/// Addresses that a connection may be reached from; a new one takes the place of the oldest.
const ADDRESSES: usize = 8;
/// Between two looks at the socket while packets come: each costs a thread's waking, which with many rooms is once for each packet. A
/// tenth of what a packet of sound lasts.
const REST: Duration = Duration::from_millis(2);
/// Datagrams that are given out before another task of the thread has its turn.
const BURST: usize = 64;
/// Bytes of the longest datagram; str0m takes no more, and browsers send 1500 at most.
const LONGEST: usize = 2_000;

/// What came in.
pub struct Datagram {
    pub at: Instant,
    pub source: SocketAddr,
    pub bytes: Bytes,
}

pub struct Mux {
    socket: UdpSocket,
    pub bound: SocketAddr,
    /// What browsers are told to send to.
    pub announced: Vec<SocketAddr>,
    tables: Mutex<Tables>,
    seats: AtomicU64,
}

#[derive(Default)]
struct Tables {
    by_ufrag: HashMap<String, Inbox>,
    by_address: HashMap<SocketAddr, Inbox>,
}

#[derive(Clone)]
struct Inbox {
    seat: u64,
    sender: mpsc::Sender<Datagram>,
}

/// A datagram that nobody gets is counted.
pub fn dropped(reason: &'static str) {
    metrics::counter!("callboard_media_dropped_packets_total", "reason" => reason).increment(1);
}

impl Mux {
    pub fn new(socket: UdpSocket, bound: SocketAddr, announced: Vec<SocketAddr>) -> Self {
        Mux {
            socket,
            bound,
            announced,
            tables: Mutex::default(),
            seats: AtomicU64::new(0),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> usize {
        self.tables().by_ufrag.len()
    }

    /// Until the runtime ends.
    pub async fn receive(self: Arc<Self>) {
        let mut buffer = [0; LONGEST];
        loop {
            // An error that is lasting must not keep this thread busy: it rests behind that too.
            let is_more = self.socket.readable().await.is_ok() && self.take(&mut buffer);
            if is_more {
                tokio::task::yield_now().await;
            } else {
                until(Instant::now() + REST).await;
            }
        }
    }

    /// Gives what there is to whom it is for; `true`: there may be more.
    fn take(&self, buffer: &mut [u8]) -> bool {
        for _ in 0..BURST {
            match self.socket.try_recv_from(buffer) {
                Ok((size, source)) => self.give(&buffer[..size], canonical(source)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // Of a packet that we sent to somebody who is gone.
                Err(_) => dropped("socket"),
            }
        }
        true
    }

    fn give(&self, bytes: &[u8], source: SocketAddr) {
        let inbox = {
            let tables = self.tables();
            match stun_request(bytes) {
                Some(ufrag) => tables.by_ufrag.get(ufrag).cloned(),
                None => tables.by_address.get(&source).cloned(),
            }
        };
        let Some(inbox) = inbox else {
            return dropped("unknown");
        };
        let datagram = Datagram {
            at: Instant::now(),
            source,
            bytes: Bytes::copy_from_slice(bytes),
        };
        if inbox.sender.try_send(datagram).is_err() {
            dropped("full");
        }
    }

    /// Now or not at all: sound that waits is worth nothing.
    pub fn send(&self, bytes: &[u8], to: SocketAddr) {
        let to = match to.ip() {
            IpAddr::V4(ip) if self.bound.is_ipv6() => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
            _ => to,
        };
        if self.socket.try_send_to(bytes, to).is_err() {
            dropped("send");
        }
    }

    /// The announced address that a packet of that sender counts as sent to; one socket does not say which it was.
    pub fn destination(&self, source: SocketAddr) -> Option<SocketAddr> {
        self.announced
            .iter()
            .find(|own| own.is_ipv4() == source.is_ipv4())
            .copied()
    }

    /// From now on datagrams for that ufrag come in.
    pub fn seat(self: &Arc<Self>, ufrag: String) -> (Seat, mpsc::Receiver<Datagram>) {
        let (sender, receiver) = mpsc::channel(INBOX);
        let seat = self.seats.fetch_add(1, Ordering::Relaxed);
        let inbox = Inbox { seat, sender };
        self.tables().by_ufrag.insert(ufrag.clone(), inbox.clone());
        let seat = Seat {
            mux: self.clone(),
            ufrag,
            inbox,
            addresses: Vec::new(),
        };
        (seat, receiver)
    }
}

/// A connection's place in the tables; dropping it gives it up.
pub struct Seat {
    pub mux: Arc<Mux>,
    ufrag: String,
    inbox: Inbox,
    /// Oldest first.
    addresses: Vec<SocketAddr>,
}

impl Seat {
    /// Datagrams from there are this connection's, whosever they were: it has shown that it knows the secret.
    pub fn remember(&mut self, address: SocketAddr) {
        let mut tables = self.mux.tables();
        let own = tables
            .by_address
            .get(&address)
            .is_some_and(|inbox| inbox.seat == self.inbox.seat);
        if own {
            return;
        }
        tables.by_address.insert(address, self.inbox.clone());
        self.addresses.retain(|known| *known != address);
        self.addresses.push(address);
        if self.addresses.len() > ADDRESSES {
            let oldest = self.addresses.remove(0);
            tables.forget(oldest, self.inbox.seat);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut tables = self.mux.tables();
        tables.by_ufrag.remove(&self.ufrag);
        for address in &self.addresses {
            tables.forget(*address, self.inbox.seat);
        }
    }
}

impl Tables {
    /// Unless it is another's by now.
    fn forget(&mut self, address: SocketAddr, seat: u64) {
        if self.by_address.get(&address).is_some_and(|inbox| inbox.seat == seat) {
            self.by_address.remove(&address);
        }
    }
}

/// A socket for both families sees IPv4 senders as IPv6 ones.
fn canonical(source: SocketAddr) -> SocketAddr {
    SocketAddr::new(source.ip().to_canonical(), source.port())
}

/// Our ufrag in a STUN binding request; `None`: it is none, or names nobody. Source: RFC 8489, sections 5 and 14; RFC 8445,
/// section 7.1.1 (USERNAME is theirs to send: ours, a colon, their own).
fn stun_request(bytes: &[u8]) -> Option<&str> {
    const BINDING_REQUEST: [u8; 2] = [0, 1];
    const MAGIC: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
    const USERNAME: [u8; 2] = [0, 6];
    if bytes.get(..2)? != BINDING_REQUEST || bytes.get(4..8)? != MAGIC {
        return None;
    }
    let mut rest = bytes.get(20..)?;
    while let [kind_high, kind_low, size_high, size_low, after @ ..] = rest {
        let size = usize::from(u16::from_be_bytes([*size_high, *size_low]));
        if [*kind_high, *kind_low] == USERNAME {
            let name = std::str::from_utf8(after.get(..size)?).ok()?;
            return Some(name.split_once(':')?.0);
        }
        rest = after.get(size.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        bytes.extend([7; 12]);
        for (kind, value) in attributes {
            bytes.extend(kind.to_be_bytes());
            bytes.extend((value.len() as u16).to_be_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn a_stun_request_names_its_connection() {
        let good = request(&[
            (0x24, &[0, 0, 0, 1]),
            (0x8022, b"abc"),
            (6, b"ours:theirs"),
            (8, &[0; 20]),
        ]);
        assert_eq!(stun_request(&good), Some("ours"));
        // Cut anywhere, it never is read beyond its end.
        for end in 0..good.len() {
            assert!(stun_request(&good[..end]).is_none_or(|ufrag| ufrag == "ours"));
        }
        assert_eq!(stun_request(&request(&[(6, b"nocolon")])), None);
        assert_eq!(stun_request(&request(&[(6, &[0xff, b':'])])), None);
        assert_eq!(stun_request(&request(&[])), None);
        let mut response = good.clone();
        response[0] = 1;
        assert_eq!(stun_request(&response), None);
        let mut lies = request(&[(0x24, &[0; 4])]);
        lies[22..24].copy_from_slice(&u16::MAX.to_be_bytes());
        assert_eq!(stun_request(&lies), None);
    }
}
