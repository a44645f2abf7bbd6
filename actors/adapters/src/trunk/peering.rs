//! What of a trunk's settings its peer has to do with, and how we introduce ourselves to it outside of calls.
use super::{on_the_wire, uri_parameter};
use entities::{
    Result,
    sip_trunk::{Model, Register, Transport},
    values::{Domain, Network, SipHost, Text},
};
use ipnet::IpNet;
use runtime::keyring::{Keyring, purpose};
use sip::{
    digest::Credentials,
    keepalive,
    message::{SipUri, address::read_uri},
    out_of_dialog::Sender,
    registration::Account,
};
use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use uuid::Uuid;

/// Of two that are equal, whoever speaks with the peer goes on as if nothing had changed.
#[derive(Clone, PartialEq)]
pub struct Peering {
    pub host: SipHost,
    pub transport: Transport,
    pub username: Option<Text<1, 255>>,
    /// The name in answers to challenges, if it is another.
    pub auth_username: Option<Text<1, 255>>,
    pub sealed_password: Option<String>,
    pub from_domain: Option<Domain>,
    pub outbound_proxy: Option<SipHost>,
    pub register: Register,
    pub inbound_addresses: Vec<Network>,
    /// `None`: nobody looks.
    pub options_interval: Option<Duration>,
}

/// The user of our address where nobody has named one.
const NAMELESS: &str = "callboard";
pub const USER_AGENT: &str = concat!("Callboard/", env!("CARGO_PKG_VERSION"));

/// It cannot be spoken with: why, for the log.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mute {
    #[error("this service has no socket for {}", .0.name())]
    NoSocket(sip::message::Transport),
    #[error("its settings make no SIP address: {0}")]
    NoAddress(String),
}

impl Peering {
    pub fn of(row: &Model) -> Self {
        let definition = &row.definition;
        let interval = u64::try_from(definition.options_interval_seconds.get()).unwrap_or(0);
        Peering {
            host: definition.host.clone(),
            transport: definition.transport,
            username: definition.username.clone(),
            auth_username: definition.auth_username.clone(),
            sealed_password: row.sealed_password.clone(),
            from_domain: definition.from_domain.clone(),
            outbound_proxy: definition.outbound_proxy.clone(),
            register: definition.register.clone(),
            inbound_addresses: definition.inbound_addresses.clone(),
            options_interval: (interval > 0).then(|| Duration::from_secs(interval)),
        }
    }

    /// What we prove ourselves with; `None`: there is no password.
    pub fn credentials(&self, keyring: &Keyring) -> Result<Option<Credentials>> {
        let username = self.auth_username.as_ref().or(self.username.as_ref());
        let (Some(username), Some(sealed)) = (username, &self.sealed_password) else {
            return Ok(None);
        };
        let password = keyring.open(purpose::TRUNK_PASSWORD, sealed)?;
        Ok(Some(Credentials {
            username: username.to_string(),
            password: password.to_string(),
        }))
    }

    /// Where requests are sent.
    pub fn next_hop(&self) -> &SipHost {
        self.outbound_proxy.as_ref().unwrap_or(&self.host)
    }

    fn domain(&self) -> String {
        let own = self.from_domain.clone();
        own.unwrap_or_else(|| self.host.domain()).to_string()
    }

    /// In brackets: who we are to the peer.
    fn address_of_record(&self) -> String {
        let user = self.username.as_deref().unwrap_or(NAMELESS);
        format!("<sip:{}@{}>", escaped(user), self.domain())
    }

    fn route(&self) -> Vec<String> {
        let proxy = self.outbound_proxy.iter();
        proxy
            .map(|proxy| format!("<sip:{proxy}{};lr>", uri_parameter(self.transport)))
            .collect()
    }

    /// Our address, as reached there.
    pub fn contact(&self, host: &str) -> std::result::Result<SipUri, Mute> {
        let named = self.register.contact_user.as_deref().or(self.username.as_deref());
        let user = escaped(named.unwrap_or(NAMELESS));
        uri(format!("sip:{user}@{host}{}", uri_parameter(self.transport)))
    }

    /// `sent_by`: host and port of ours. `id`: of this Call-ID, which no other has.
    pub fn sender(&self, sent_by: &str, secret: &[u8], id: Uuid) -> std::result::Result<Sender, Mute> {
        let id = id.simple();
        Ok(Sender {
            transport: on_the_wire(self.transport),
            sent_by: sent_by.to_owned(),
            contact: self.contact(sent_by)?,
            call_id: format!("{id}@{sent_by}"),
            tag: id.to_string().split_off(16),
            // The Call-ID is new, so that its numbers may begin anew.
            cseq: 0,
            key: Sender::key(secret),
            user_agent: USER_AGENT.into(),
        })
    }

    pub fn account(&self) -> std::result::Result<Account, Mute> {
        // The domain that the address is one of; it is asked where the trunk leads to. Source: RFC 3261, section 10.2.
        let registrar = match &self.from_domain {
            Some(domain) => domain.to_string(),
            None => self.host.to_string(),
        };
        Ok(Account {
            registrar: uri(format!("sip:{registrar}{}", uri_parameter(self.transport)))?,
            address_of_record: self.address_of_record(),
            route: self.route(),
            expires: u32::try_from(self.register.expires_seconds.get()).unwrap_or(300),
        })
    }

    /// Who is asked whether he is there, so often.
    pub fn asked(&self, interval: Duration) -> std::result::Result<keepalive::Peer, Mute> {
        Ok(keepalive::Peer {
            uri: uri(format!("sip:{}{}", self.host, uri_parameter(self.transport)))?,
            from: self.address_of_record(),
            route: self.route(),
            interval,
        })
    }

    /// From where its peer speaks: the addresses that we speak with, and those that calls come in from.
    pub fn sources(&self, spoken_with: &[SocketAddr], of_host: &[SocketAddr]) -> Vec<IpNet> {
        let calls: Vec<IpNet> = match self.inbound_addresses.as_slice() {
            [] => of_host.iter().map(|address| single(address.ip())).collect(),
            named => named.iter().map(|network| IpNet::from(*network)).collect(),
        };
        let mut sources: Vec<IpNet> = spoken_with.iter().map(|address| single(address.ip())).collect();
        sources.extend(calls);
        sources.sort();
        sources.dedup();
        sources
    }
}

fn single(address: IpAddr) -> IpNet {
    IpNet::from(address.to_canonical())
}

fn uri(text: String) -> std::result::Result<SipUri, Mute> {
    read_uri(&text).ok_or(Mute::NoAddress(text))
}

/// As the user of a URI is written. Source: RFC 3261, section 25.1; of what it allows, only what means nothing elsewhere stays.
fn escaped(user: &str) -> String {
    let mut text = String::with_capacity(user.len());
    for byte in user.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()+".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
#[path = "peering_tests.rs"]
mod tests;
