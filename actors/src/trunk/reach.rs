//! Where a trunk's peer is, and sending there: the looks, its addresses on the board, and whom we listen to because of it.
use super::elsewhere;
use crate::{
    deps::Deps,
    switchboard::{line::Target, phones::Switchboard, table::Mailbox},
};
use adapters::trunk::{
    on_the_wire,
    peering::Peering,
    ping,
    resolve::{Resolved, resolve},
};
use bytes::Bytes;
use entities::ids::{TenantId, TrunkId};
use futures_util::future::BoxFuture;
use rules::delivery::failure::Failure;
use sip::message::{SipUri, Transport};
use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// Until a look-up that failed is made again.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

pub struct Reach {
    pub deps: Deps,
    pub phones: Switchboard,
    pub tenant: TenantId,
    pub trunk: TrunkId,
    pub peering: Peering,
    /// By the last look-up.
    addresses: Vec<SocketAddr>,
    looking: Option<BoxFuture<'static, Looked>>,
    look_at: Instant,
    /// What was logged last: a failure is logged once.
    trouble: Option<String>,
}

/// What a look-up found: of the next hop, and of the host if that is another and calls come in from its addresses.
pub struct Looked {
    next_hop: Result<Resolved, Failure>,
    host: Option<Result<Resolved, Failure>>,
}

impl Reach {
    pub fn new(
        deps: Deps,
        phones: Switchboard,
        (tenant, trunk): (TenantId, TrunkId),
        peering: Peering,
        now: Instant,
    ) -> Self {
        Reach {
            deps,
            phones,
            tenant,
            trunk,
            peering,
            addresses: Vec::new(),
            looking: None,
            look_at: now,
            trouble: None,
        }
    }

    pub fn is_found(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Begins a look-up if it is time.
    pub fn look(&mut self, now: Instant) {
        if self.looking.is_some() || now < self.look_at {
            return;
        }
        let (outbound, transport) = (self.deps.outbound.clone(), self.peering.transport);
        let (next_hop, host) = (self.peering.next_hop().clone(), self.peering.host.clone());
        let is_wanted = next_hop != host && self.peering.inbound_addresses.is_empty();
        self.looking = Some(Box::pin(async move {
            let found = resolve(&outbound, &next_hop, transport).await;
            let host = match is_wanted {
                true => Some(resolve(&outbound, &host, transport).await),
                false => None,
            };
            Looked { next_hop: found, host }
        }));
    }

    /// The look-up that is under way; waits for ever if there is none.
    pub async fn looked(&mut self) -> Looked {
        match &mut self.looking {
            Some(looking) => looking.await,
            None => std::future::pending().await,
        }
    }

    /// When to look again.
    pub fn deadline(&self) -> Option<Instant> {
        self.looking.is_none().then_some(self.look_at)
    }

    pub fn take_in(&mut self, looked: Looked, now: Instant) {
        self.looking = None;
        let of_host = looked.host.and_then(Result::ok).map(|found| found.addresses);
        match looked.next_hop {
            Ok(found) => {
                self.look_at = now + found.holds_for;
                let addresses = self.of_our_family(found.addresses);
                self.lead_to(addresses, of_host);
            }
            Err(failure) => {
                self.look_at = now + LOOK_AGAIN;
                self.in_trouble(format!("it is not known where it is: {}", ping::words(&failure)));
                // What may not be spoken with is left at once; a name system that does not answer is waited for.
                if let Failure::BlockedTarget(_) = failure {
                    self.lead_to(Vec::new(), of_host);
                }
            }
        }
    }

    fn lead_to(&mut self, addresses: Vec<SocketAddr>, of_host: Option<Vec<SocketAddr>>) {
        let callers = of_host.as_deref().unwrap_or(&addresses);
        let sources = self.peering.sources(&addresses, callers);
        elsewhere::publish(&self.deps, (self.tenant, self.trunk), &sources);
        self.phones.line().sources().set((self.tenant, self.trunk), sources);
        let name = self.peering.next_hop().host();
        let peer = (!addresses.is_empty()).then(|| (self.peering.transport, name.into(), addresses.clone()));
        self.deps.trunks.leads_to(self.trunk, peer);
        self.addresses = addresses;
    }

    /// A socket that is bound to one family reaches no address of the other: those come last.
    fn of_our_family(&self, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        if let Some(ours) = self.sent_by().and_then(ip_of) {
            addresses.sort_by_key(|address| address.is_ipv4() != ours.is_ipv4());
        }
        addresses
    }

    fn sent_by(&self) -> Option<&str> {
        self.phones.line().sent_by(on_the_wire(self.peering.transport))
    }

    /// To where it was sent last, or to the next address that can be sent to at all. `false`: to none.
    pub fn send(&self, bytes: &Bytes, target: &mut Option<Target>, mailbox: &Mailbox, now: Instant) -> bool {
        let (board, trunk) = (&self.deps.trunks, self.trunk);
        let mut tried: Vec<SocketAddr> = Vec::new();
        // One that the last look-up has not found any more is left.
        let kept = target.take().filter(|kept| self.addresses.contains(&kept.address));
        let mut next = kept.or_else(|| board.next_target(trunk, &[], now));
        while let Some(to) = next {
            match self.phones.line().send(bytes.clone(), &to, mailbox) {
                Ok(()) => {
                    *target = Some(to);
                    return true;
                }
                Err(why) => {
                    tracing::debug!(%trunk, %why, "nothing can be sent to an address of a trunk's peer");
                    board.target_failed(trunk, to.address, now);
                    tried.push(to.address);
                    next = board.next_target(trunk, &tried, now);
                }
            }
        }
        false
    }

    pub fn failed(&self, target: &mut Option<Target>, now: Instant) {
        if let Some(target) = target.take() {
            self.deps.trunks.target_failed(self.trunk, target.address, now);
        }
    }

    pub fn answered(&self, target: Option<&Target>) {
        if let Some(target) = target {
            self.deps.trunks.target_answered(self.trunk, target.address);
        }
    }

    /// Behind a NAT, calls have to come to the address that the registrar sees: our contact there, and what our Via says all the
    /// same. Of a stream what it sees is the port of one connection, so that the listener's stays. `None`: we are reached where we
    /// say.
    pub fn seen_as(&self, seen: SocketAddr) -> Option<(SipUri, String)> {
        let sent_by = self.sent_by()?;
        let ours: SocketAddr = sent_by.parse().ok()?;
        // Whoever has a public address has said which.
        if !is_inner(ours.ip()) {
            return None;
        }
        let port = match on_the_wire(self.peering.transport) {
            Transport::Udp => seen.port(),
            Transport::Tcp | Transport::Tls => ours.port(),
        };
        let seen = SocketAddr::new(seen.ip(), port);
        let contact = self.peering.contact(&seen.to_string()).ok()?;
        (seen != ours).then(|| (contact, sent_by.to_owned()))
    }

    pub fn in_trouble(&mut self, why: String) {
        if self.trouble.as_ref() != Some(&why) {
            tracing::warn!(trunk = %self.trunk, workspace = %self.tenant, why, "a SIP trunk is in trouble");
            self.trouble = Some(why);
        }
    }

    pub fn out_of_trouble(&mut self) {
        if self.trouble.take().is_some() {
            tracing::info!(trunk = %self.trunk, workspace = %self.tenant, "a SIP trunk is well again");
        }
    }
}

/// Of a host, with or without a port; `None` for a name.
fn ip_of(sent_by: &str) -> Option<IpAddr> {
    match sent_by.parse::<SocketAddr>() {
        Ok(address) => Some(address.ip()),
        Err(_) => sent_by.trim_matches(['[', ']']).parse().ok(),
    }
}

/// Does an address mean something in its own network only?
fn is_inner(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || is_shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
