//! Where the messages of a leg go: to where its INVITE went, back to who asked, or to the next hop of its dialog.
//!
//! An address in a message is the peer's word: one that is neither the trunk's nor open to us is not sent to.
use super::{
    line::Target,
    phones::Switchboard,
    sources::{SourceTable, SpokenWith},
};
use adapters::outbound::Outbound;
use entities::ids::TrunkId;
use sip::{
    leg::Hop,
    message::{SipUri, uri_text},
};
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::time::timeout;

/// An ACK waits for the look-up of a name that the peer has given: not for longer than one that was lost.
const FOUND_WITHIN: Duration = Duration::from_secs(2);

pub struct Hops {
    sources: SourceTable,
    trunk: TrunkId,
    /// Where a name has no port.
    usual_port: u16,
    first: Target,
    /// The last one that was looked up. What it answers is heard.
    known: Option<(String, Target, SpokenWith)>,
}

impl Hops {
    pub fn new(switchboard: &Switchboard, trunk: TrunkId, usual_port: u16, first: Target) -> Self {
        Hops {
            sources: switchboard.line.sources().clone(),
            trunk,
            usual_port,
            first,
            known: None,
        }
    }

    /// Where its INVITE went, or came from.
    pub fn first(&self) -> &Target {
        &self.first
    }

    /// Is it an address of the trunk's peer?
    pub fn is_the_trunks(&self, ip: IpAddr) -> bool {
        ip == self.first.address.ip() || self.sources.trunks_of(ip).contains(&self.trunk)
    }

    /// May it speak in this leg?
    pub fn is_heard(&self, ip: IpAddr) -> bool {
        let is_known = self
            .known
            .as_ref()
            .is_some_and(|(_, target, _)| target.address.ip() == ip);
        is_known || self.is_the_trunks(ip)
    }

    /// May it speak in a leg that a killed process left? Right after the start nobody has looked up yet where the trunk speaks from, and
    /// whoever is known at all may.
    pub fn is_heard_of_a_left_leg(&self, ip: IpAddr) -> bool {
        !self.sources.knows(self.trunk) || self.is_heard(ip)
    }

    fn at(&self, address: SocketAddr) -> Target {
        Target {
            address,
            ..self.first.clone()
        }
    }

    pub async fn target_of(&mut self, outbound: &Outbound, hop: Hop) -> Target {
        match hop {
            Hop::Target | Hop::Back(None) => self.first.clone(),
            Hop::Back(Some(to)) => match address(&to.host.to_string()) {
                Some(ip) => self.at(SocketAddr::new(ip, to.port.unwrap_or(5060))),
                None => self.first.clone(),
            },
            Hop::Uri(uri) => self.target_of_uri(outbound, &uri).await,
        }
    }

    /// The next hop of a dialog: an address of the trunk's, or one that anybody may be sent to. Where it is neither, such as a private
    /// address behind a NAT, or nobody says in time, the peer is where its INVITE went.
    async fn target_of_uri(&mut self, outbound: &Outbound, uri: &SipUri) -> Target {
        let text = uri_text(uri);
        if let Some((known, target, _)) = &self.known
            && *known == text
        {
            return target.clone();
        }
        let (host, port) = (uri.host_port.host.to_string(), uri.host_port.port);
        let target = match address(&host) {
            Some(ip) if self.is_the_trunks(ip) => self.at(SocketAddr::new(ip, port.unwrap_or(5060))),
            _ => {
                let name = host.trim_matches(['[', ']']);
                let looking = outbound.addresses(name, port.unwrap_or(self.usual_port));
                let found = timeout(FOUND_WITHIN, looking).await.ok().and_then(Result::ok);
                match found.and_then(|found| found.first().copied()) {
                    Some(address) => self.at(address),
                    None => self.first.clone(),
                }
            }
        };
        let spoken_with = self.sources.speak_with(target.address.ip());
        self.known = Some((text, target.clone(), spoken_with));
        target
    }
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}
