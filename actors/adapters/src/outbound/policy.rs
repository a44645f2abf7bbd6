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
        named || opened || (self.dev && ip.is_loopback()) || is_public(ip)
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

fn is_public(ip: IpAddr) -> bool {
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
mod tests {
    use super::*;

    fn allows(policy: &Policy, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| policy.check(&url).is_ok())
    }

    #[test]
    fn only_https_and_public_addresses_are_open() {
        let policy = Policy::default();
        assert!(allows(&policy, "https://hooks.example.com/x"));
        assert!(allows(&policy, "https://8.8.8.8/"));
        assert!(allows(&policy, "https://[2606:4700::1111]/"));
        let closed = "http://hooks.example.com/ https://127.0.0.1/ https://127.1/ https://0x7f000001/ https://2130706433/ https://0177.0.0.1/ \
            https://0/ https://10.0.0.1/ https://172.16.0.1/ https://192.168.1.1/ https://169.254.169.254/ https://100.64.0.1/ https://192.0.0.1/ \
            https://198.18.0.1/ https://224.0.0.1/ https://255.255.255.255/ https://[::1]/ https://[::]/ https://[::ffff:127.0.0.1]/ \
            https://[64:ff9b::7f00:1]/ https://[::127.0.0.1]/ https://[2002:7f00:1::]/ https://[2001::1]/ https://[fc00::1]/ https://[fe80::1]/ \
            https://[ff02::1]/ https://[2001:db8::1]/ https://１２７.0.0.1/";
        for url in closed.split_whitespace() {
            assert!(!allows(&policy, url), "{url}");
        }
    }

    #[test]
    fn what_can_never_be_delivered_is_closed() {
        let policy = Policy::default();
        let names = "https://localhost/ https://LOCALHOST./ https://a.localhost/ https://printer.local/ https://db.internal/ \
            https://a.test/ https://a.example/ https://example/ https://a.invalid/ https://a.onion/ https://home.arpa/ \
            https://nas.home.arpa/ https://intranet/ https://intranet./";
        let ports = "https://hooks.example.com:22/ https://hooks.example.com:25/ https://hooks.example.com:80/ https://8.8.8.8:1023/";
        for url in names.split_whitespace().chain(ports.split_whitespace()) {
            assert!(!allows(&policy, url), "{url}");
        }
        let open = "https://hooks.example.com:1024/ https://hooks.example.com:8443/ https://localhost.example.com/ \
            https://mylocal.com/ https://notinternal.dev/ https://hooks.example.com./ https://home.arpa.example.org/";
        for url in open.split_whitespace() {
            assert!(allows(&policy, url), "{url}");
        }
        let opened = Policy {
            ports: vec![25],
            allowed: vec!["10.0.0.0/8".parse().unwrap(), "hooks.onion:22".parse().unwrap()],
            ..Policy::default()
        };
        assert!(allows(&opened, "https://hooks.example.com:25/") && !allows(&opened, "https://hooks.example.com:26/"));
        assert!(
            allows(&opened, "https://a.svc.cluster.local/"),
            "it may lead into the network that was opened"
        );
        assert!(allows(&opened, "http://hooks.onion:22/"), "opened by its name");
        assert!(!allows(&opened, "https://a.invalid/"));
        let dev = Policy {
            dev: true,
            ..Policy::default()
        };
        assert!(allows(&dev, "http://localhost:80/") && allows(&dev, "http://receiver:25/"));
    }

    #[test]
    fn dev_opens_loopback_and_the_operator_opens_targets_but_never_metadata() {
        let dev = Policy {
            dev: true,
            ..Policy::default()
        };
        assert!(allows(&dev, "http://127.0.0.1:9000/hook"));
        assert!(!allows(&dev, "http://10.0.0.1/"));
        let opened = Policy {
            dev: false,
            ports: Vec::new(),
            allowed: vec![
                "10.1.0.0/16".parse().unwrap(),
                "hooks.internal:8443".parse().unwrap(),
                "0.0.0.0/0".parse().unwrap(),
            ],
        };
        assert!(allows(&opened, "https://10.1.2.3/"));
        assert!(allows(&opened, "http://hooks.internal:8443/"));
        assert!(!allows(&opened, "http://hooks.internal:8444/"));
        assert!(
            !allows(&opened, "https://hooks.internal:8444/"),
            "another port of an opened host"
        );
        assert!(!allows(&opened, "https://168.63.129.16/"));
        assert!(!allows(&opened, "https://169.254.169.254/latest/meta-data"));
        assert!(!allows(&opened, "https://[::ffff:169.254.169.254]/"));
    }
}
