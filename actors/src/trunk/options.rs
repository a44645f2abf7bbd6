//! How the service speaks SIP, as the operator has set it: where it listens, how peers reach it, and the ports for sound.
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
};

/// How the service speaks SIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SipOptions {
    /// UDP and TCP.
    pub bind: SocketAddr,
    pub tls: Option<SipTls>,
    /// Where peers reach us, if not at `bind`.
    pub address: Option<SipAddress>,
    /// In pairs, the first one even: sound, and what is said about it. Source: RFC 3550, section 11.
    pub rtp_ports: RangeInclusive<u16>,
}

/// PEM files, read anew when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SipTls {
    pub bind: SocketAddr,
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// An address of ours as peers see it. A name is looked up where an address is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SipAddress {
    Ip(IpAddr),
    Name(String),
}

impl fmt::Display for SipAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SipAddress::Ip(address) => address.fmt(f),
            SipAddress::Name(name) => f.write_str(name),
        }
    }
}
