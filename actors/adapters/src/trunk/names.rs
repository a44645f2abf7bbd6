//! What the name system says of a SIP domain: which of its servers take which transport. Source: RFC 3263, section 4, RFC 2782,
//! and RFC 3403.
use entities::sip_trunk::Transport;
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig},
    lookup::Lookup,
    net::runtime::TokioRuntimeProvider,
    proto::rr::{
        Name, RData, RecordType,
        rdata::{NAPTR, SRV},
    },
};
use std::{
    fs,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// A question is asked twice, so that both take three seconds: whoever waits for a trunk's test waits no longer than five.
const PATIENCE: Duration = Duration::from_millis(1_500);
const AGAIN: usize = 1;
/// Bounds of what is believed of how long an answer holds.
pub const LEAST_TTL: Duration = Duration::from_secs(30);
pub const MOST_TTL: Duration = Duration::from_secs(3600);
/// Answers that are kept.
const CACHE: u64 = 1_024;
/// Name servers that are asked.
const MAX_SERVERS: usize = 3;
/// Servers of one domain that are looked at.
const MAX_SERVICES: usize = 8;
/// Service names of one domain that are followed.
const MAX_NAMES: usize = 4;

/// Asks for services of domains. Cloning is cheap.
#[derive(Clone)]
pub struct Names(Option<TokioResolver>);

/// A server of a domain. Whether we may speak with it has not been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub host: String,
    pub port: u16,
}

/// What is known of a domain's servers for one transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Services {
    /// In the order in which they are to be tried.
    Found { services: Vec<Service>, until: Instant },
    /// It says nothing: its servers are where its name's addresses are.
    Unknown,
    /// It says that it has none. Source: RFC 2782, a target of ".".
    Declined,
}

impl Names {
    /// Asks nobody: hosts are where their addresses are.
    pub fn none() -> Self {
        Names(None)
    }

    /// Asks those whom the system asks.
    pub fn of_system() -> Self {
        let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Names::at(&name_servers(&text)).unwrap_or_else(|why| {
            tracing::warn!(why, "SIP services are not looked up, only addresses");
            Names::none()
        })
    }

    /// Asks these servers.
    ///
    /// # Errors
    /// If there is no way to ask; never because of what they answer.
    pub fn at(servers: &[SocketAddr]) -> Result<Self, String> {
        if servers.is_empty() {
            return Ok(Names::none());
        }
        let servers = servers.iter().take(MAX_SERVERS).map(|server| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                connection.port = server.port();
                connection
            });
            NameServerConfig::new(server.ip(), true, connections.into())
        });
        let config = ResolverConfig::from_name_servers(servers.collect());
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let options = builder.options_mut();
        options.timeout = PATIENCE;
        options.attempts = AGAIN;
        options.cache_size = CACHE;
        options.positive_min_ttl = Some(LEAST_TTL);
        options.positive_max_ttl = Some(MOST_TTL);
        // Somebody may be mending just that.
        options.negative_max_ttl = Some(Duration::from_secs(5));
        builder
            .build()
            .map(|resolver| Names(Some(resolver)))
            .map_err(|error| error.to_string())
    }

    /// The servers of a domain that take this transport. Servers whose weights are equal come in an order that is drawn: `draw`
    /// answers a number from 0 to its argument.
    ///
    /// # Errors
    /// In words, if the name system does not answer.
    pub async fn services(
        &self,
        domain: &str,
        transport: Transport,
        draw: impl FnMut(u32) -> u32 + Send,
    ) -> Result<Services, String> {
        // A name without a dot is one of the machine or of its network, and has no zone to ask.
        if !domain.trim_end_matches('.').contains('.') {
            return Ok(Services::Unknown);
        }
        let usual = format!("{}.{domain}", prefix(transport));
        // Asked for at once: most domains have no NAPTR.
        let (rules, records) = futures_util::future::join(
            self.records(domain, RecordType::NAPTR),
            self.records(&usual, RecordType::SRV),
        )
        .await;
        // A server that knows no NAPTR may say so with an error.
        let named = rules.ok().flatten().map(|found| service_names(&found, transport));
        match named.filter(|named| !named.is_empty()) {
            None => Ok(ordered(&records?.into_iter().collect::<Vec<_>>(), draw)),
            Some(named) => {
                let mut found = Vec::new();
                for name in named {
                    found.extend(self.records(&name, RecordType::SRV).await?);
                }
                Ok(ordered(&found, draw))
            }
        }
    }

    /// `None`: there are none of that kind.
    async fn records(&self, name: &str, kind: RecordType) -> Result<Option<Lookup>, String> {
        let Some(resolver) = &self.0 else {
            return Ok(None);
        };
        // A name that the name system cannot hold has no records there.
        let Ok(mut name) = Name::from_ascii(name) else {
            return Ok(None);
        };
        name.set_fqdn(true);
        match resolver.lookup(name, kind).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_no_records_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// `nameserver` lines of a resolv.conf, without the interface that a link-local address may name.
fn name_servers(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let words = lines.filter_map(|rest| rest.split_whitespace().next());
    let addresses = words.filter_map(|word| word.split('%').next()?.parse::<IpAddr>().ok());
    addresses
        .map(|address| SocketAddr::new(address, 53))
        .take(MAX_SERVERS)
        .collect()
}

/// Source: RFC 3263, section 4.1, and RFC 3261, section 19.1.
fn prefix(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "_sip._udp",
        Transport::Tcp => "_sip._tcp",
        Transport::Tls => "_sips._tcp",
    }
}

/// The names under which a domain's rules say that its servers of that transport are, the best first.
fn service_names(found: &Lookup, transport: Transport) -> Vec<String> {
    let service = match transport {
        Transport::Udp => "SIP+D2U",
        Transport::Tcp => "SIP+D2T",
        Transport::Tls => "SIPS+D2T",
    };
    let rules = found.answers().iter().filter_map(|record| match &record.data {
        RData::NAPTR(rule) => Some(rule),
        _ => None,
    });
    let fits = |rule: &&NAPTR| {
        rule.services.eq_ignore_ascii_case(service.as_bytes())
            && rule.flags.eq_ignore_ascii_case(b"s")
            && rule.regexp.is_empty()
            && !rule.replacement.is_root()
    };
    let mut rules: Vec<&NAPTR> = rules.filter(fits).collect();
    rules.sort_by_key(|rule| (rule.order, rule.preference));
    let names = rules.into_iter().map(|rule| rule.replacement.to_ascii());
    names.take(MAX_NAMES).collect()
}

/// The servers of these records, those of the first before those of the second.
fn ordered(found: &[Lookup], mut draw: impl FnMut(u32) -> u32) -> Services {
    let Some(until) = found.iter().map(Lookup::valid_until).min() else {
        return Services::Unknown;
    };
    let mut services = Vec::new();
    for lookup in found {
        let records = lookup.answers().iter().filter_map(|record| match &record.data {
            RData::SRV(record) => Some(record.clone()),
            _ => None,
        });
        services.extend(by_weight(records.collect(), &mut draw));
    }
    if services.is_empty() {
        return Services::Unknown;
    }
    let wanted = services.into_iter().filter(|record| !record.target.is_root());
    let services: Vec<Service> = wanted
        .take(MAX_SERVICES)
        .map(|record| Service {
            host: record.target.to_ascii().trim_end_matches('.').to_lowercase(),
            port: record.port,
        })
        .collect();
    if services.is_empty() {
        Services::Declined
    } else {
        Services::Found { services, until }
    }
}

/// By priority, and among equals drawn by weight. Source: RFC 2782, "Weight".
fn by_weight(mut left: Vec<SRV>, draw: &mut impl FnMut(u32) -> u32) -> Vec<SRV> {
    // Those without a weight are first in line, so that they are drawn now and then.
    left.sort_by_key(|record| (record.priority, record.weight != 0));
    let mut ordered = Vec::with_capacity(left.len());
    while let Some(first) = left.first() {
        let priority = first.priority;
        let equals = left.iter().take_while(|record| record.priority == priority);
        let total = equals.clone().map(|record| u32::from(record.weight)).sum();
        let drawn = draw(total);
        let mut sum = 0;
        let at = equals
            .map(|record| {
                sum += u32::from(record.weight);
                sum
            })
            .position(|sum| sum >= drawn)
            .unwrap_or(0);
        ordered.push(left.remove(at));
    }
    ordered
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
