//! What a user decides about a trunk.
use crate::{
    campaign::CallsPerSecond,
    values::{Bounded, Domain, Network, Password, SipHost, Text},
};
use schemars::JsonSchema;
use sea_orm::{DeriveActiveEnum, EnumIter, FromJsonQueryResult, entity::prelude::*};
use serde::{Deserialize, Deserializer, Serialize, de};

/// As it is asked for, kept and shown; the passwords in it are never written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TrunkSettings")]
pub struct Definition {
    pub name: Text<1, 200>,
    /// The peer: a name or an address, and a port if it is not 5060 (5061 with TLS): `sip.example.com`, `[2001:db8::1]:5080`.
    /// A public address; the port is 443, or 1024 or more.
    pub host: SipHost,
    #[serde(default)]
    pub transport: Transport,
    /// Who we are to the peer, where it asks.
    #[serde(default)]
    pub username: Option<Text<1, 255>>,
    /// Needs a `username`; not shown again.
    #[serde(default, skip_serializing)]
    pub password: Option<Password>,
    /// The name in the answer to the peer's challenge, where it is not `username`. Needs a `password`.
    #[serde(default)]
    pub auth_username: Option<Text<1, 255>>,
    /// The domain of our own addresses; null: the peer's host.
    #[serde(default)]
    pub from_domain: Option<Domain>,
    /// Where requests are sent instead of to `host`; a public address.
    #[serde(default)]
    pub outbound_proxy: Option<SipHost>,
    #[serde(default)]
    pub register: Register,
    /// Networks that calls come in from, beside the addresses that requests go to, at most 64; empty: the addresses of `host`.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(length(max = 64))]
    pub inbound_addresses: Vec<Network>,
    /// What the peer proves with a digest when it calls; null: its address is enough.
    #[serde(default)]
    pub inbound_auth: Option<InboundAuth>,
    /// Networks that sound comes from beside the address that a call names, at most 64.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(length(max = 64))]
    pub media_addresses: Vec<Network>,
    /// What is offered, the best first.
    #[serde(default = "g711", deserialize_with = "codecs")]
    #[schemars(length(min = 1, max = 4))]
    pub codecs: Vec<Codec>,
    #[serde(default)]
    pub dtmf: Dtmf,
    #[serde(default)]
    pub srtp: Srtp,
    #[serde(default)]
    pub number_format: NumberFormat,
    #[serde(default)]
    pub caller_id: CallerId,
    #[serde(default)]
    pub transfer: Transfer,
    /// Seconds between two looks at whether the peer is there (OPTIONS), 10 or more; 0: none.
    #[serde(default = "half_a_minute", deserialize_with = "interval")]
    pub options_interval_seconds: Bounded<0, 3600>,
    /// How long a call lasts without a SIP message between the two sides (RFC 4028).
    #[serde(default = "half_an_hour")]
    pub session_expires_seconds: Bounded<90, 7200>,
    /// Calls started per second that the peer takes.
    #[serde(default)]
    pub max_calls_per_second: CallsPerSecond,
    /// Concurrent calls that the peer takes, those that come in and both legs of a transfer among them; null: as many as the
    /// workspace has.
    #[serde(default)]
    pub max_concurrency: Option<Bounded<1, 100_000>>,
    /// Nothing is dialled over it, from the next dial on; live calls continue, and calls still come in.
    #[serde(default)]
    pub paused: bool,
}

impl Definition {
    /// The port that is meant.
    pub fn port(&self) -> u16 {
        self.port_of(&self.host)
    }

    /// The same of another host that is reached over the trunk's transport.
    pub fn port_of(&self, host: &SipHost) -> u16 {
        host.port().unwrap_or(self.transport.usual_port())
    }

    /// Takes the passwords out: the trunk's own, and the one that the peer proves itself with.
    pub fn take_passwords(&mut self) -> (Option<Password>, Option<Password>) {
        let inbound = self.inbound_auth.as_mut().and_then(|auth| auth.password.take());
        (self.password.take(), inbound)
    }
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, DeriveActiveEnum,
)]
#[sea_orm(rs_type = "String", db_type = "String(StringLen::N(8))", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    #[default]
    Udp,
    Tcp,
    Tls,
}

impl Transport {
    /// Where no port is named. Source: RFC 3261, section 19.1.2.
    pub fn usual_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 5060,
            Transport::Tls => 5061,
        }
    }
}

/// Whether the peer is told where we are, as a PBX asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TrunkRegister")]
pub struct Register {
    /// Needs a `username`.
    pub enabled: bool,
    /// What is asked for; the peer may grant less.
    pub expires_seconds: Bounded<60, 3600>,
    /// The user in our own address; null: `username`.
    pub contact_user: Option<Text<1, 64>>,
}
impl Default for Register {
    fn default() -> Self {
        Register {
            enabled: false,
            expires_seconds: Bounded::new(300).unwrap_or_else(|_| unreachable!("a constant")),
            contact_user: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundAuth {
    pub username: Text<1, 255>,
    /// Not shown again.
    #[serde(default, skip_serializing)]
    pub password: Option<Password>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// G.711 mu-law, as in North America and Japan.
    Pcmu,
    /// G.711 A-law.
    Pcma,
    G722,
    Opus,
}

/// How keys are pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrunkDtmf")]
pub enum Dtmf {
    /// As RFC 4733 if the peer knows it, else as tones.
    #[default]
    Auto,
    Rfc4733,
    /// As tones.
    Inband,
    /// As SIP INFO.
    Info,
}

/// Is the sound encrypted?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Srtp {
    #[default]
    Off,
    /// A call without it is not made. Needs `transport: tls`, which carries the keys.
    Required,
}

/// How numbers are written to the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberFormat {
    /// `+4930901820`.
    #[default]
    E164Plus,
    /// `4930901820`.
    E164,
    /// `030901820`, of the workspace's country; others as `e164`.
    National,
}

/// Where our number is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerId {
    #[default]
    From,
    /// In `P-Asserted-Identity` as well (RFC 3325).
    Pai,
}

/// How a call is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrunkTransfer")]
pub enum Transfer {
    /// By a second call of ours, whose sound is passed on.
    #[default]
    Bridge,
    /// By the peer, which is asked to (RFC 3515).
    Refer,
}

fn g711() -> Vec<Codec> {
    vec![Codec::Pcmu, Codec::Pcma]
}
fn half_a_minute() -> Bounded<0, 3600> {
    Bounded::new(30).unwrap_or_else(|_| unreachable!("a constant"))
}
fn half_an_hour() -> Bounded<90, 7200> {
    Bounded::new(1800).unwrap_or_else(|_| unreachable!("a constant"))
}

/// Networks of one list.
const MAX_NETWORKS: usize = 64;

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Network>, D::Error> {
    let networks = Vec::<Network>::deserialize(deserializer)?;
    match networks.len() {
        0..=MAX_NETWORKS => Ok(networks),
        count => Err(de::Error::custom(format!(
            "has {count} networks, at most {MAX_NETWORKS} are allowed"
        ))),
    }
}

fn codecs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Codec>, D::Error> {
    let codecs = Vec::<Codec>::deserialize(deserializer)?;
    if codecs.is_empty() {
        return Err(de::Error::custom("must name at least one codec, such as pcmu"));
    }
    let is_repeated = |(at, codec): (usize, &Codec)| codecs[..at].contains(codec);
    if codecs.iter().enumerate().any(is_repeated) {
        return Err(de::Error::custom("has a codec twice"));
    }
    Ok(codecs)
}

/// More often than that is a burden to the peer.
const LEAST_INTERVAL: i32 = 10;

fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bounded<0, 3600>, D::Error> {
    let seconds = Bounded::<0, 3600>::deserialize(deserializer)?;
    if (1..LEAST_INTERVAL).contains(&seconds.get()) {
        return Err(de::Error::custom(format!(
            "must be 0, or from {LEAST_INTERVAL} to 3600, not {}",
            seconds.get()
        )));
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(more: Value) -> Result<Definition, serde_json::Error> {
        let mut fields = json!({ "name": "Carrier", "host": "sip.example.com" });
        fields
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(fields)
    }

    #[test]
    fn a_trunk_of_before_has_the_defaults() {
        let definition = read(json!({})).unwrap();
        assert_eq!(
            serde_json::to_value(&definition).unwrap(),
            json!({
                "name": "Carrier", "host": "sip.example.com", "transport": "udp", "username": null, "auth_username": null,
                "from_domain": null, "outbound_proxy": null,
                "register": { "enabled": false, "expires_seconds": 300, "contact_user": null },
                "inbound_addresses": [], "inbound_auth": null, "media_addresses": [], "codecs": ["pcmu", "pcma"],
                "dtmf": "auto", "srtp": "off", "number_format": "e164_plus", "caller_id": "from", "transfer": "bridge",
                "options_interval_seconds": 30, "session_expires_seconds": 1800, "max_calls_per_second": 1.0,
                "max_concurrency": null, "paused": false,
            })
        );
        assert_eq!(definition.port(), 5060);
    }

    #[test]
    fn passwords_are_neither_written_nor_shown() {
        let mut definition = read(json!({
            "username": "acme", "password": "canary-1", "inbound_auth": { "username": "peer", "password": "canary-2" },
        }))
        .unwrap();
        let shown = format!("{definition:?}{}", serde_json::to_string(&definition).unwrap());
        assert!(!shown.contains("canary"), "{shown}");
        let (own, inbound) = definition.take_passwords();
        assert_eq!(
            (own.as_deref(), inbound.as_deref()),
            (Some("canary-1"), Some("canary-2"))
        );
        assert_eq!(definition.take_passwords(), (None, None));
        let again: Definition = serde_json::from_value(serde_json::to_value(&definition).unwrap()).unwrap();
        assert_eq!(again, definition);
    }

    #[test]
    fn every_bad_value_is_refused() {
        let networks: Vec<String> = (0..65).map(|n| format!("192.0.2.{n}")).collect();
        for more in [
            json!({ "codecs": [] }),
            json!({ "codecs": ["pcmu", "pcmu"] }),
            json!({ "codecs": ["g729"] }),
            json!({ "inbound_addresses": networks }),
            json!({ "inbound_addresses": ["0.0.0.0/0"] }),
            json!({ "media_addresses": ["sip.example.com"] }),
            json!({ "inbound_auth": { "password": "x" } }),
            json!({ "inbound_auth": { "username": "x", "realm": "y" } }),
            json!({ "register": { "expires_seconds": 59 } }),
            json!({ "register": { "expires_seconds": 3601 } }),
            json!({ "register": { "contact_user": "" } }),
            json!({ "options_interval_seconds": 9 }),
            json!({ "session_expires_seconds": 89 }),
            json!({ "srtp": "optional" }),
            json!({ "sip_domain": "x" }),
        ] {
            assert!(read(more.clone()).is_err(), "{more}");
        }
        for more in [
            json!({ "options_interval_seconds": 0 }),
            json!({ "inbound_addresses": networks[1..] }),
            json!({ "codecs": ["opus", "g722", "pcma", "pcmu"] }),
        ] {
            assert!(read(more.clone()).is_ok(), "{more}");
        }
    }
}
