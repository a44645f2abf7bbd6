//! Which addresses may be reached: HTTPS and public ones, and what the operator opened.
use hyper::Uri;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};
use url::Url;

/// A target that the operator opened: a network, or one host and port.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedTarget {
    Network(IpNet),
    HostPort(String, u16),
}
impl AllowedTarget {
    /// The port on which it opens this host.
    fn port_of(&self, host: &str) -> Option<u16> {
        match self {
            AllowedTarget::HostPort(named, port) if named == host => Some(*port),
            AllowedTarget::HostPort(..) | AllowedTarget::Network(_) => None,
        }
    }
}
impl std::str::FromStr for AllowedTarget {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(network) = text.parse() {
            return Ok(AllowedTarget::Network(network));
        }
        let parts = text
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match parts {
            Some((host, port)) if !host.is_empty() && port > 0 => Ok(AllowedTarget::HostPort(
                host.trim_matches(['[', ']']).to_lowercase(),
                port,
            )),
            _ => Err(format!(
                "`{text}` is neither host:port nor a network such as 10.0.0.0/8"
            )),
        }
    }
}

/// Which targets may be reached.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Development: `http://` and loopback are open.
    pub dev: bool,
    pub allowed: Vec<AllowedTarget>,
    /// Ports beside 443 and those from 1024 on.
    pub ports: Vec<u16>,
}

/// Why a target was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked(pub String);

impl Policy {
    /// May this URL be called? Names are checked again at the connect.
    pub fn check(&self, url: &Url) -> Result<(), Blocked> {
        let host = url
            .host_str()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .to_lowercase();
        let port = url.port_or_known_default().unwrap_or(0);
        let named = self.opens(&host, port)?;
        match url.scheme() {
            "https" => {}
            "http" if self.dev || named => {}
            scheme => return Err(Blocked(format!("scheme `{scheme}` is not allowed; use https"))),
        }
        if !self.dev && !named {
            self.check_port(port)?;
            self.check_name(&host)?;
        }
        if Uri::try_from(url.as_str()).is_err() {
            return Err(Blocked(
                "the URL has characters that HTTP cannot carry; percent-encode them".into(),
            ));
        }
        // The url crate has turned 0x7f.1, 2130706433, 127.1 and full-width digits into an IPv4 host by now.
        match host.parse::<IpAddr>() {
            Ok(ip) if !self.permits(ip, named) => Err(Blocked(format!("address {ip} is not public"))),
            _ => Ok(()),
        }
    }

    /// What else listens below 1024 is no receiver, and shall not hear from us.
    fn check_port(&self, port: u16) -> Result<(), Blocked> {
        if port == 443 || port >= 1024 || self.ports.contains(&port) {
            return Ok(());
        }
        Err(Blocked(format!(
            "port {port} is not allowed; use 443, or 1024 and above"
        )))
    }

    /// A name that cannot lead anywhere we may go. Where the operator has opened a network, names of inner networks can.
    fn check_name(&self, host: &str) -> Result<(), Blocked> {
        if host.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let opened = self
            .allowed
            .iter()
            .any(|target| matches!(target, AllowedTarget::Network(_)));
        if leads_nowhere(host) || (!opened && is_inner(host)) {
            return Err(Blocked(format!("`{host}` is not a public host name")));
        }
        Ok(())
    }

    /// May this host, in lower case and without brackets, be reached on this port? Answers whether it was opened by its name.
    pub(super) fn check_host(&self, host: &str, port: u16) -> Result<bool, Blocked> {
        let named = self.opens(host, port)?;
        match host.parse::<IpAddr>() {
            Ok(ip) if !self.permits(ip, named) => Err(Blocked(format!("address {ip} is not public"))),
            _ => Ok(named),
        }
    }

    /// Did the operator open this host by its name? One that was opened on one port is closed on the others: the resolver
    /// sees no port.
    fn opens(&self, host: &str, port: u16) -> Result<bool, Blocked> {
        let opened_ports: Vec<u16> = self.allowed.iter().filter_map(|target| target.port_of(host)).collect();
        let named = opened_ports.contains(&port);
        if !named && !opened_ports.is_empty() {
            return Err(Blocked(format!("port {port} of {host} is not opened")));
        }
        Ok(named)
    }

    /// Is this host opened on this port, by its name?
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        self.allowed.iter().any(|target| target.port_of(host) == Some(port))
    }

    /// May this address be connected to? `named`: for a host that the operator opened by its name.
    pub(super) fn permits(&self, ip: IpAddr, named: bool) -> bool {
        let ip = embedded_v4(ip);
        // Cloud metadata and other link-local services: closed always, whatever is allowed.
        if is_link_local(ip) {
            return false;
        }
        let opened = self
            .allowed
            .iter()
            .any(|target| matches!(target, AllowedTarget::Network(network) if network.contains(&ip)));
        named || opened || (self.dev && ip.is_loopback()) || is_global(ip)
    }
}

fn is_below(host: &str, domains: &[&str]) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let below = |domain: &&str| {
        host.strip_suffix(*domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    domains.iter().any(below)
}

/// Names that no name system answers. Source: RFC 6761, RFC 7686.
fn leads_nowhere(host: &str) -> bool {
    is_below(host, &["example", "invalid", "onion"])
}

/// Names that mean something in one network only. Source: RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`.
fn is_inner(host: &str) -> bool {
    let is_single = !host.strip_suffix('.').unwrap_or(host).contains('.');
    is_single || is_below(host, &["localhost", "local", "internal", "test", "home.arpa"])
}

/// The IPv4 address that an IPv6 address carries, if it carries one.
fn embedded_v4(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    let octets = v6.octets();
    let tail = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            octets[at],
            octets[at + 1],
            octets[at + 2],
            octets[at + 3],
        ))
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => tail(12), // mapped, NAT64
        [0x2002, ..] => tail(2),                                                      // 6to4
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => tail(12),                         // compatible
        _ => ip,
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        // The named ones are clouds' own service addresses outside the link-local range.
        IpAddr::V4(ip) => {
            let services = [[168, 63, 129, 16], [100, 100, 100, 200], [192, 0, 0, 192]];
            ip.is_link_local() || services.contains(&ip.octets())
        }
        IpAddr::V6(ip) => {
            let services = [
                [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
                [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
            ];
            ip.segments()[0] & 0xffc0 == 0xfe80 || services.contains(&ip.segments())
        }
    }
}

/// Can it be reached from everywhere, as far as its number says? Whatever the operator has opened.
pub fn is_public(ip: IpAddr) -> bool {
    let ip = embedded_v4(ip);
    !is_link_local(ip) && is_global(ip)
}

fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            let special =
                ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation() || ip.is_multicast();
            let shared = a == 100 && (64..128).contains(&b);
            let assigned =
                (a, b, c) == (192, 0, 0) || (a == 198 && (18..20).contains(&b)) || (a, b, c) == (192, 88, 99);
            !(special || shared || assigned || a == 0 || a >= 240)
        }
        IpAddr::V6(ip) => {
            let segments = ip.segments();
            // Only global unicast (2000::/3), less documentation, Teredo, ORCHID and benchmarking.
            let global = segments[0] & 0xe000 == 0x2000;
            let special =
                (segments[0] == 0x2001 && (segments[1] < 0x200 || segments[1] == 0xdb8)) || segments[0] == 0x3fff;
            global && !special
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
