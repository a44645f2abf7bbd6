//! The sound of rooms: WebRTC on one UDP port for all of them, on threads of its own.
//!
//! A page offers, [`Media::offer`] answers, [`Offered::connect`] ties the connection to a [`Wire`](super::bridge::MediaBridge). We are ICE-lite with host
//! candidates: the browser does the checks, and what it sends comes to the one socket. The mux gives each datagram to the
//! connection it belongs to; each connection is a task (see `connection`). Sound and data go over DTLS-SRTP only.
pub(crate) mod codec;
mod connection;
mod data;
mod mux;
mod offer;
#[cfg(any(test, feature = "peer"))]
pub mod peer;
mod speech;

pub use codec::Codec;
pub use offer::{BadOffer, Offered};

use crate::threads::MediaThreads;
use mux::Mux;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
};
use str0m::Candidate;
use tokio::{runtime::Handle, sync::oneshot};

/// Where the browsers' packets come in.
#[derive(Clone, Debug)]
pub struct MediaSettings {
    /// Port 0 is any that is free.
    pub bind: SocketAddr,
    /// What browsers are told instead of the bound address, such as the public one before a NAT; the port is the socket's.
    /// Empty: the bound address, or if that is unspecified the address of the default route and loopback.
    pub addresses: Vec<IpAddr>,
}

/// What becomes of a connection; see [`Offered::connect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Packets go through and are encrypted; once.
    Connected,
    /// Nothing came for three seconds, or the page closed the connection, which then never comes back.
    Lost,
    /// Something comes again.
    Back,
}

/// A browser's; dropping it closes it and frees everything.
#[derive(Debug)]
pub struct Connection {
    /// Its end is noticed by the connection's task, and the task's end here.
    hold: oneshot::Sender<()>,
}

impl Connection {
    /// Lets the page have the last notes of a bridge that was closed; then the connection ends by itself, within seconds.
    pub async fn finish(mut self) {
        self.hold.closed().await;
    }
}

/// All of the process; dropping it ends every connection without a word to the browsers.
pub struct Media {
    mux: Arc<Mux>,
    threads: Arc<MediaThreads>,
}

impl Media {
    /// Binds the port and starts the threads. Fails with what to do about it.
    pub fn start(settings: MediaSettings) -> Result<Self, String> {
        let bind = settings.bind;
        let socket = UdpSocket::bind(bind).map_err(|error| {
            format!("the media port udp {bind} cannot be bound ({error}); choose another address or port")
        })?;
        let bound = socket.local_addr().map_err(|error| error.to_string())?;
        socket.set_nonblocking(true).map_err(|error| error.to_string())?;
        let announced = announced(&settings.addresses, bound)?;
        let threads = MediaThreads::start()?;
        let runtime = threads.handle().ok_or("the threads for media have stopped")?;
        let socket = {
            let _inside = runtime.enter();
            tokio::net::UdpSocket::from_std(socket).map_err(|error| error.to_string())?
        };
        let mux = Arc::new(Mux::new(socket, bound, announced));
        runtime.spawn(mux.clone().receive());
        Ok(Media { mux, threads })
    }

    /// Answers a page's offer; nothing remains of the answer unless it is connected.
    pub fn offer(&self, sdp: &str) -> Result<Offered, BadOffer> {
        let runtime: Handle = self
            .threads
            .handle()
            .ok_or_else(|| BadOffer("media is shutting down; try again".into()))?;
        Offered::read(sdp, self.mux.clone(), runtime)
    }

    /// On which phones' sound lives too.
    pub fn threads(&self) -> &Arc<MediaThreads> {
        &self.threads
    }

    /// Ends every connection without a word to the browsers, and lets the port and the threads go.
    pub fn stop(&self) {
        self.threads.stop();
    }

    /// With the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.mux.bound
    }

    /// Open ones, also those whose browser has not come yet or is lost.
    pub fn connections(&self) -> usize {
        self.mux.count()
    }
}

impl Drop for Media {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What browsers are told to send to. Fails when nothing of it can be sent to.
fn announced(wanted: &[IpAddr], bound: SocketAddr) -> Result<Vec<SocketAddr>, String> {
    let ips = match wanted {
        [] if bound.ip().is_unspecified() => own(bound.is_ipv6()),
        [] => vec![bound.ip()],
        wanted => wanted.to_vec(),
    };
    let nowhere = |ip: &&IpAddr| Candidate::host(SocketAddr::new(**ip, bound.port()), "udp").is_err();
    if let Some(bad) = ips.iter().find(nowhere) {
        return Err(format!(
            "no browser can send to {bad}; name the address that browsers reach this machine by"
        ));
    }
    let fits = |ip: &IpAddr| bound.is_ipv6() || ip.is_ipv4();
    if let Some(bad) = ips.iter().find(|ip| !fits(ip)) {
        return Err(format!(
            "{bad} cannot be reached at {bound}; bind an IPv6 address such as [::]"
        ));
    }
    Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect())
}

/// The address of the default route, if there is one, and loopback.
fn own(with_v6: bool) -> Vec<IpAddr> {
    // Addresses for documentation (RFC 5737, RFC 3849): connecting a UDP socket sends nothing, it only chooses the route.
    let route = |from: SocketAddr, to: SocketAddr| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    let v4 = route(
        (Ipv4Addr::UNSPECIFIED, 0).into(),
        (Ipv4Addr::new(192, 0, 2, 1), 9).into(),
    );
    let far = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let v6 = with_v6.then(|| route((Ipv6Addr::UNSPECIFIED, 0).into(), (far, 9).into()));
    let mut all: Vec<IpAddr> = [v4, v6.flatten()].into_iter().flatten().collect();
    all.push(Ipv4Addr::LOCALHOST.into());
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
