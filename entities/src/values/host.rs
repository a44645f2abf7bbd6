use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{borrow::Cow, fmt, net::IpAddr};

/// A host's name, or an IPv4 or IPv6 address, in lower case and without brackets; at most 253 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Host::Address(address));
        }
        // Reads [::1], turns 127.1 and 0x7f000001 into addresses, and names into what the name system knows.
        match url::Host::parse(text) {
            Ok(url::Host::Ipv4(address)) => Ok(Host::Address(address.into())),
            Ok(url::Host::Ipv6(address)) => Ok(Host::Address(address.into())),
            Ok(url::Host::Domain(name)) if is_name(&name) => Ok(Host::Name(name.to_lowercase())),
            Ok(url::Host::Domain(_)) | Err(_) => {
                Err("is neither a host name nor an address; write sip.example.com".into())
            }
        }
    }
}

/// Labels of 1 to 63 letters, digits, `-` and `_`.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(fits);
    name.len() <= 253 && name.strip_suffix('.').unwrap_or(name).split('.').all(is_label)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => address.fmt(f),
        }
    }
}

/// Where a SIP peer listens: a name or an address, and a port if it is not the usual one. `sip.example.com`,
/// `192.0.2.1:5080`, `[2001:db8::1]:5061`. Whether it may be reached is decided by `actors::outbound`, at every look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SipHost {
    host: Host,
    port: Option<u16>,
}

impl SipHost {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address without brackets has no port.
            Some((host, _)) if host.contains(':') && !host.ends_with(']') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        let port = port.map(|port| port.parse::<u16>().map_err(|_| format!("`{port}` is not a port")));
        let port = port.transpose()?;
        // What else listens below is not SIP, and shall not hear from us.
        if port.is_some_and(|port| port < 1024 && port != 443) {
            return Err("must have a port of 1024 or more, or 443".into());
        }
        Ok(SipHost {
            host: Host::parse(host)?,
            port,
        })
    }
    /// Without brackets.
    pub fn host(&self) -> String {
        self.host.to_string()
    }
    pub fn port(&self) -> Option<u16> {
        self.port
    }
    /// The same without the port.
    pub fn domain(&self) -> Domain {
        Domain(self.host.clone())
    }
}

impl fmt::Display for SipHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (Host::Address(IpAddr::V6(address)), Some(port)) => write!(f, "[{address}]:{port}"),
            (Host::Address(IpAddr::V6(address)), None) => write!(f, "[{address}]"),
            (host, Some(port)) => write!(f, "{host}:{port}"),
            (host, None) => host.fmt(f),
        }
    }
}

/// The domain that calls come from, as the peer knows it: a host without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain(Host);

impl Domain {
    pub fn parse(text: &str) -> Result<Self, String> {
        Host::parse(text.trim()).map(Domain)
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            host => host.fmt(f),
        }
    }
}

macro_rules! texts { ($($name:ident $description:literal),*) => {$(
    impl Serialize for $name {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }
    impl<'de> Deserialize<'de> for $name {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Self::parse(&Cow::<'de, str>::deserialize(deserializer)?).map_err(de::Error::custom)
        }
    }
    impl JsonSchema for $name {
        fn inline_schema() -> bool {
            true
        }
        fn schema_name() -> Cow<'static, str> {
            stringify!($name).into()
        }
        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({ "type": "string", "maxLength": 262, "description": $description })
        }
    }
)*} }
texts!(
    SipHost "A name or an address, with a port if it is not the usual one: `sip.example.com`, `192.0.2.1:5080`, `[2001:db8::1]:5061`.",
    Domain "A host name or an address, without a port."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_addresses_with_and_without_a_port() {
        for (text, shown, host, port) in [
            ("sip.example.com", "sip.example.com", "sip.example.com", None),
            (
                " SIP.Example.com:5080 ",
                "sip.example.com:5080",
                "sip.example.com",
                Some(5080),
            ),
            ("192.0.2.1:5060", "192.0.2.1:5060", "192.0.2.1", Some(5060)),
            ("[2001:DB8::1]:5061", "[2001:db8::1]:5061", "2001:db8::1", Some(5061)),
            ("[2001:db8::1]", "[2001:db8::1]", "2001:db8::1", None),
            ("2001:db8::1", "[2001:db8::1]", "2001:db8::1", None),
            ("127.1", "127.0.0.1", "127.0.0.1", None),
            ("2130706433", "127.0.0.1", "127.0.0.1", None),
            (
                "sip.bücher.example:443",
                "sip.xn--bcher-kva.example:443",
                "sip.xn--bcher-kva.example",
                Some(443),
            ),
        ] {
            let parsed = SipHost::parse(text).unwrap();
            assert_eq!(
                (parsed.to_string().as_str(), parsed.host().as_str(), parsed.port()),
                (shown, host, port),
                "{text}"
            );
            assert_eq!(SipHost::parse(shown).unwrap(), parsed, "what is stored is read again");
        }
    }

    #[test]
    fn refuses_what_is_no_host() {
        let long = "x".repeat(64);
        for text in [
            "",
            ":",
            "a b",
            "sip:a.example",
            "user@a.example",
            "a.example/x",
            "a.example:",
            "a.example:0",
            "a.example:25",
            "a.example:70000",
            "a.example:x",
            "a;x=y",
            "a\r\nVia: x",
            "a..b",
            "<a>",
            "\"a\"",
            "[::1",
            &long,
            "a.example:5060:1",
        ] {
            assert!(SipHost::parse(text).is_err(), "{text}");
        }
        assert!(Domain::parse("a.example:5060").is_err());
        assert_eq!(Domain::parse("2001:db8::1").unwrap().to_string(), "[2001:db8::1]");
    }
}
