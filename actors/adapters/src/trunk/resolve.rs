//! Where a trunk's peer is: its host's servers by SRV, else its addresses. Source: RFC 3263, section 4; the transport is the
//! trunk's own, so that NAPTR records of others are passed over.
//!
//! Hosts are named by users, and so are servers that a user's zone names: each address passes the policy of `outbound` at each look.
use super::names::{LEAST_TTL, MOST_TTL, Service, Services};
use crate::outbound::Outbound;
use entities::{boxed, sip_trunk::Transport, values::SipHost};
use rules::delivery::failure::Failure;
use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// How long addresses hold of which the system does not say so.
const USUAL_TTL: Duration = Duration::from_secs(60);
/// Addresses of one trunk.
const MAX_ADDRESSES: usize = 16;

/// What was found, in the order in which it is to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub addresses: Vec<SocketAddr>,
    /// For so long nobody needs to look again.
    pub holds_for: Duration,
}

/// The addresses of a host that takes this transport.
///
/// # Errors
/// If there are none, or none that may be spoken with: why, of the last one that was looked at.
#[boxed]
pub async fn resolve(outbound: &Outbound, host: &SipHost, transport: Transport) -> Result<Resolved, Failure> {
    let name = host.host();
    let port = host.port().unwrap_or_else(|| transport.usual_port());
    if name.parse::<IpAddr>().is_ok() {
        let addresses = outbound.addresses(&name, port).await?;
        return Ok(Resolved {
            addresses,
            holds_for: MOST_TTL,
        });
    }
    let services = match host.port() {
        // Who names a port means the host itself.
        Some(_) => Ok(Services::Unknown),
        None => outbound.names().services(&name, transport, drawn).await,
    };
    match services {
        Ok(Services::Found { services, until }) => all(outbound, &services, until).await,
        Ok(Services::Declined) => Err(Failure::Dns(format!(
            "{name} says that it has no SIP service for this transport (its SRV record is \".\")"
        ))),
        Ok(Services::Unknown) => itself(outbound, &name, port, USUAL_TTL).await,
        // A name server that answers nobody's SRV question is no reason to be without a phone.
        Err(why) => {
            tracing::debug!(
                host = name,
                why,
                "SRV records cannot be looked up; the host's own addresses are used"
            );
            itself(outbound, &name, port, LEAST_TTL).await
        }
    }
}

/// From 0 to `most`, each as likely as the next.
fn drawn(most: u32) -> u32 {
    rand::random_range(0..=most)
}

async fn itself(outbound: &Outbound, name: &str, port: u16, holds_for: Duration) -> Result<Resolved, Failure> {
    let mut addresses = outbound.addresses(name, port).await?;
    addresses.truncate(MAX_ADDRESSES);
    Ok(Resolved { addresses, holds_for })
}

/// Of all servers that can be found: one that cannot does not keep the others from being used.
async fn all(outbound: &Outbound, services: &[Service], until: Instant) -> Result<Resolved, Failure> {
    let looks = services.iter().map(|service| one(outbound, service));
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let mut failure = None;
    for looked in futures_util::future::join_all(looks).await {
        match looked {
            Ok(found) => addresses.extend(found),
            Err(why) => failure = Some(why),
        }
    }
    addresses.truncate(MAX_ADDRESSES);
    match failure {
        Some(failure) if addresses.is_empty() => Err(failure),
        Some(_) | None => Ok(Resolved {
            addresses,
            holds_for: until
                .saturating_duration_since(Instant::now())
                .clamp(LEAST_TTL, MOST_TTL),
        }),
    }
}

async fn one(outbound: &Outbound, service: &Service) -> Result<Vec<SocketAddr>, Failure> {
    // As for a port that the user names himself: what else listens below shall not hear from us.
    if service.port < 1024 && service.port != 443 {
        let Service { host, port } = service;
        let why = format!("an SRV record names port {port} of {host}; a SIP port is 443, or 1024 or more");
        return Err(Failure::BlockedTarget(why));
    }
    outbound.addresses(&service.host, service.port).await
}
