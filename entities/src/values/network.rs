use super::BadValue;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, net::IpAddr, str::FromStr};

/// A network of a peer: `192.0.2.0/24`, `2001:db8::/48`, or one address. Host bits are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

/// The shortest prefixes. A wider network is not a carrier's, and would take the guard off a listener that all workspaces share.
const WIDEST_V4: u8 = 16;
const WIDEST_V6: u8 = 32;

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    pub fn net(&self) -> IpNet {
        self.0
    }
}

impl From<Network> for IpNet {
    fn from(network: Network) -> Self {
        network.0
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Network(address.to_canonical().into())
    }
}

impl FromStr for Network {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let text = text.trim();
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        let network: IpNet = text
            .parse()
            .map_err(|_| BadValue("is not a network; write 192.0.2.0/24, or one address".into()))?;
        let (widest, version) = match network {
            IpNet::V4(_) => (WIDEST_V4, "IPv4"),
            IpNet::V6(_) => (WIDEST_V6, "IPv6"),
        };
        if network.prefix_len() < widest {
            return Err(BadValue(format!(
                "is too wide: an {version} network has a prefix of /{widest} or longer"
            )));
        }
        Ok(Network(network.trunc()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(f)
        } else {
            self.0.fmt(f)
        }
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
impl JsonSchema for Network {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Network".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "maxLength": 49,
            "description": "A network, or one address: `192.0.2.0/24`, `2001:db8::/48`, `198.51.100.7`."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_networks_and_addresses() {
        for (text, shown) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            (" 192.0.2.77/24 ", "192.0.2.0/24"),
            ("198.51.100.7", "198.51.100.7"),
            ("198.51.100.7/32", "198.51.100.7"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("2001:DB8::/48", "2001:db8::/48"),
            ("2001:db8::1", "2001:db8::1"),
            ("10.0.0.0/16", "10.0.0.0/16"),
        ] {
            let network: Network = text.parse().unwrap();
            assert_eq!(network.to_string(), shown, "{text}");
            assert_eq!(
                shown.parse::<Network>().unwrap(),
                network,
                "what is stored is read again"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_network_and_what_is_too_wide() {
        for text in [
            "",
            "sip.example.com",
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2/24",
            "0.0.0.0/0",
            "10.0.0.0/15",
            "::/0",
            "2001::/31",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_lies_in_its_network_however_it_is_written() {
        let network: Network = "192.0.2.0/24".parse().unwrap();
        for (address, expected) in [
            ("192.0.2.255", true),
            ("::ffff:192.0.2.1", true),
            ("192.0.3.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{address}");
        }
    }
}
