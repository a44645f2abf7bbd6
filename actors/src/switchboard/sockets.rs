//! The sockets of live calls, and by what address peers know them.
//!
//! What comes from no trunk's peer is dropped before a byte is read: to a scanner the UDP port is filtered, and its connections
//! are closed.
mod listener;
mod stream;
mod udp;

use super::{
    line::{NotSent, Sockets, Target},
    sources::SourceTable,
    table::{CallTable, Source},
};
use crate::trunk::options::{SipAddress, SipOptions};
use bytes::Bytes;
use listener::Listener;
use rustls::ClientConfig;
use sip::message::{Message, Transport};
use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket},
    sync::Arc,
    time::Duration,
};
use stream::Streams;
use tokio::{runtime::Handle, sync::mpsc};
use udp::Udp;

/// What came and is not looked at yet; what comes beyond is dropped and counted. UDP loses messages, too.
pub const INBOX: usize = 4_096;

/// Something of a peer's.
#[derive(Debug)]
pub struct Incoming {
    pub what: What,
    pub source: Source,
}

#[derive(Debug)]
pub enum What {
    /// Not read yet.
    Datagram(Bytes),
    Message(Message),
}

pub type Inbox = mpsc::Sender<Incoming>;

/// A message that is not looked at is counted.
pub fn dropped(reason: &'static str) {
    metrics::counter!("callboard_sip_dropped_total", "reason" => reason).increment(1);
}

/// A peer's address; `None`: a stranger's, which is counted.
fn known(sources: &SourceTable, from: SocketAddr) -> Option<SocketAddr> {
    let address = SocketAddr::new(from.ip().to_canonical(), from.port());
    let is_known = sources.is_known(address.ip());
    if !is_known {
        dropped("stranger");
    }
    is_known.then_some(address)
}

/// Whom sockets serve.
#[derive(Clone)]
pub struct Served {
    pub calls: CallTable,
    pub sources: SourceTable,
    pub inbox: Inbox,
    /// In which all of a message has come over a connection, once it has begun.
    pub whole_within: Duration,
}

pub struct OpenSockets {
    udp: Udp,
    tcp: Listener,
    tls: Option<Listener>,
    streams: Streams,
    served: Served,
    /// Where peers reach us; `None`: at whatever address leads to them.
    announced: Option<IpAddr>,
    /// Over UDP and TCP, and over TLS.
    sent_by: [String; 2],
}

/// Requests beyond this are broken up by the network, and some networks lose the pieces: they go over TCP, where the peer takes that.
/// Source: RFC 3261, section 18.1.1.
pub const WHOLE: usize = 1_300;

/// Until the system gives a port that is free for TCP, too.
const PORTS_TRIED: u32 = 16;

impl OpenSockets {
    /// Fails with the setting and what to do about it.
    pub fn open(options: &SipOptions, served: Served) -> Result<Self, String> {
        let in_words = |error| format!("sip_bind: cannot listen on {} ({error})", options.bind);
        let (udp, tcp) = both(options.bind).map_err(in_words)?;
        let tls = options.tls.as_ref().map(Listener::tls).transpose()?;
        let announced = announced(options)?;
        let host = match (&options.address, announced) {
            (Some(SipAddress::Name(name)), _) => name.clone(),
            (Some(SipAddress::Ip(_)) | None, announced) => in_uri(announced.unwrap_or_else(|| way_to(SOMEWHERE))),
        };
        let secured = tls.as_ref().map_or(5061, |tls| tls.bound().port());
        let sent_by = [udp.bound().port(), secured].map(|port| format!("{host}:{port}"));
        let streams = Streams::new(served.clone());
        Ok(OpenSockets {
            udp,
            tcp,
            tls,
            streams,
            served,
            announced,
            sent_by,
        })
    }

    /// Listens from now on; inside a runtime. `tls`: how peers' certificates are checked.
    pub fn start(&self, runtime: &Handle, tls: Arc<ClientConfig>) -> std::io::Result<()> {
        self.streams.start(runtime.clone(), tls);
        let Served { sources, inbox, .. } = &self.served;
        runtime.spawn(udp::receive(self.udp.receiving()?, sources.clone(), inbox.clone()));
        for listener in [Some(&self.tcp), self.tls.as_ref()].into_iter().flatten() {
            listener.listen(sources.clone(), self.streams.clone())?;
        }
        Ok(())
    }

    /// Does the peer there take connections over TCP? One that is made for the answer stays for what is sent next.
    pub async fn takes_streams(&self, address: SocketAddr, within: Duration) -> bool {
        self.streams.reach(address, within).await
    }

    /// The address of ours that a peer there sends sound to.
    pub fn media_ip(&self, toward: IpAddr) -> IpAddr {
        self.announced.unwrap_or_else(|| way_to(toward))
    }

    /// Listeners end with their runtime.
    pub fn close(&self) {
        self.udp.close();
        self.tcp.close();
        if let Some(tls) = &self.tls {
            tls.close();
        }
    }
}

impl Sockets for OpenSockets {
    fn send(&self, bytes: Bytes, target: &Target, call_id: &Arc<str>) -> Result<(), NotSent> {
        match target.transport {
            Transport::Udp => {
                if bytes.len() > WHOLE {
                    metrics::counter!("callboard_sip_long_datagrams_total").increment(1);
                }
                self.udp.send(&bytes, target.address)
            }
            Transport::Tcp | Transport::Tls => self.streams.send(bytes, target, call_id),
        }
    }

    /// Over TLS peers may be spoken with though nobody can connect to us so.
    fn sent_by(&self, transport: Transport) -> Option<&str> {
        let [plain, secured] = &self.sent_by;
        Some(match transport {
            Transport::Udp | Transport::Tcp => plain,
            Transport::Tls => secured,
        })
    }
}

/// As a URI has it.
pub fn in_uri(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// UDP and TCP on one port. One that is left to the system is free for UDP alone: another one, then.
fn both(bind: SocketAddr) -> std::io::Result<(Udp, Listener)> {
    let mut tries = if bind.port() == 0 { PORTS_TRIED } else { 1 };
    loop {
        let udp = Udp::open(bind)?;
        tries -= 1;
        match Listener::tcp(udp.bound()) {
            Err(error) if tries > 0 && error.kind() == ErrorKind::AddrInUse => {}
            listener => return Ok((udp, listener?)),
        }
    }
}

fn announced(options: &SipOptions) -> Result<Option<IpAddr>, String> {
    match &options.address {
        Some(SipAddress::Ip(ip)) => Ok(Some(*ip)),
        Some(SipAddress::Name(name)) => {
            let found = (name.as_str(), 0).to_socket_addrs();
            let found = found.map_err(|error| format!("sip_address: `{name}` is not found ({error})"))?;
            let mut found = found.map(|address| address.ip());
            let fitting = found.find(|ip| ip.is_ipv4() == options.bind.is_ipv4());
            let none = || format!("sip_address: `{name}` has no address of the kind of sip_bind");
            fitting.map(Some).ok_or_else(none)
        }
        None => Ok(Some(options.bind.ip()).filter(|ip| !ip.is_unspecified())),
    }
}

/// An address that leads nowhere, by the way that leads to most. Source: RFC 5737.
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Our address on the way there. Nothing is sent.
fn way_to(there: IpAddr) -> IpAddr {
    let any = if there.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let local = UdpSocket::bind(any)
        .and_then(|socket| socket.connect(SocketAddr::new(there, 9)).map(|()| socket))
        .and_then(|socket| socket.local_addr());
    local.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

#[cfg(test)]
#[path = "sockets_tests.rs"]
mod tests;
