//! The one client for every address that a user gives us.
//!
//! HTTPS and public addresses only. Names are checked on the resolved address, at every connect, so that a name which
//! changes its answer between two look-ups gains nothing; address literals, which never reach a resolver, are checked
//! before. Redirects are not followed and proxies of the environment are ignored: either would connect past the check.
use bytes::Bytes;
use ipnet::IpNet;
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::HeaderMap,
};
use std::{
    error::Error as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

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
            _ => Err(format!("`{text}` is neither host:port nor a network as 10.0.0.0/8")),
        }
    }
}

/// Which targets may be reached.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Development: `http://` and loopback are open.
    pub dev: bool,
    pub allowed: Vec<AllowedTarget>,
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
        let opened_ports: Vec<u16> = self.allowed.iter().filter_map(|target| target.port_of(&host)).collect();
        let named = opened_ports.contains(&port);
        // The resolver sees no port: a host that was opened on one is closed on the others here.
        if !named && !opened_ports.is_empty() {
            return Err(Blocked(format!("port {port} of {host} is not opened")));
        }
        match url.scheme() {
            "https" => {}
            "http" if self.dev || named => {}
            scheme => return Err(Blocked(format!("scheme `{scheme}` is not allowed; use https"))),
        }
        // The url crate has turned 0x7f.1, 2130706433, 127.1 and full-width digits into an IPv4 host by now.
        match host.parse::<IpAddr>() {
            Ok(ip) if !self.permits(ip, named) => Err(Blocked(format!("address {ip} is not public"))),
            _ => Ok(()),
        }
    }

    fn permits(&self, ip: IpAddr, named: bool) -> bool {
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
        // The second is a cloud's own service address outside the link-local range.
        IpAddr::V4(ip) => ip.is_link_local() || ip == Ipv4Addr::new(168, 63, 129, 16),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80 || ip.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
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

struct Resolver(Arc<Policy>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_lowercase();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let named = policy
                .allowed
                .iter()
                .any(|target| matches!(target, AllowedTarget::HostPort(h, _) if *h == host));
            // One bad address among good ones is an attack or a mistake: refused as a whole.
            match found.iter().find(|address| !policy.permits(address.ip(), named)) {
                Some(bad) => Err(BlockedName(format!("{host} resolves to {}, which is not public", bad.ip())).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[derive(Debug)]
struct BlockedName(String);
impl std::fmt::Display for BlockedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BlockedName {}

/// Posts to users' addresses. Cloning is cheap; there is one for the whole service.
#[derive(Clone)]
pub struct Outbound {
    client: Client,
    policy: Arc<Policy>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The first 16 KiB.
    pub body: Vec<u8>,
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    BlockedTarget(String),
    Timeout,
    Dns(String),
    Connect(String),
    Tls(String),
    /// Reset, cut off, or not HTTP.
    BadAnswer(String),
}

impl Failure {
    /// A word for the log and the API.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::BlockedTarget(_) => "blocked_target",
            Failure::Timeout => "timeout",
            Failure::Dns(_) => "dns_failed",
            Failure::Connect(_) => "connect_failed",
            Failure::Tls(_) => "tls_failed",
            Failure::BadAnswer(_) => "bad_answer",
        }
    }
}

/// Bytes of an answer that are kept.
pub const BODY_LIMIT: usize = 16 * 1024;

impl Outbound {
    /// Fails when the system has no certificate authorities to check receivers against.
    pub fn new(policy: Policy) -> Result<Self, String> {
        let policy = Arc::new(policy);
        #[expect(clippy::disallowed_methods, reason = "the one client for users' addresses")]
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // The retry queue retries; a hidden second try would break its count.
            .retry(reqwest::retry::never())
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(50))
            .pool_max_idle_per_host(64)
            .tcp_nodelay(true)
            .referer(false)
            .user_agent(concat!("Callboard/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Resolver(policy.clone())))
            .build()
            .map_err(|error| format!("the HTTP client cannot start ({error}); are CA certificates installed (package ca-certificates)?"))?;
        Ok(Outbound { client, policy })
    }

    pub fn check(&self, url: &Url) -> Result<(), Blocked> {
        self.policy.check(url)
    }

    /// One POST. `timeout` covers all of it, from look-up to the body's end.
    pub async fn post(&self, url: Url, headers: HeaderMap, body: Bytes, timeout: Duration) -> Result<Answer, Failure> {
        self.check(&url).map_err(|blocked| Failure::BlockedTarget(blocked.0))?;
        let request = self.client.post(url).headers(headers).body(body).timeout(timeout);
        let mut response = request.send().await.map_err(failure)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failure)? {
            let room = BODY_LIMIT - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == BODY_LIMIT {
                // The rest stays unread: dropping the response closes the connection.
                break;
            }
        }
        Ok(Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body,
        })
    }
}

fn failure(error: reqwest::Error) -> Failure {
    if error.is_timeout() {
        return Failure::Timeout;
    }
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(blocked) = next.downcast_ref::<BlockedName>() {
            return Failure::BlockedTarget(blocked.0.clone());
        }
        causes.push(next.to_string());
        cause = next.source();
    }
    let text = causes.join(": ");
    let lower = text.to_lowercase();
    if !error.is_connect() {
        return Failure::BadAnswer(text);
    }
    if lower.contains("dns error") || lower.contains("failed to lookup") {
        Failure::Dns(text)
    } else if lower.contains("certificate") || lower.contains("tls") || lower.contains("handshake") {
        Failure::Tls(text)
    } else {
        Failure::Connect(text)
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
    fn dev_opens_loopback_and_the_operator_opens_targets_but_never_metadata() {
        let dev = Policy {
            dev: true,
            ..Policy::default()
        };
        assert!(allows(&dev, "http://127.0.0.1:9000/hook"));
        assert!(!allows(&dev, "http://10.0.0.1/"));
        let opened = Policy {
            dev: false,
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
