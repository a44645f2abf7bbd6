//! Live calls: where we speak SIP, where sound comes in, and whom nobody calls.
use super::{Settings, check::BadSetting};
use actors::trunk::options::{SipAddress, SipOptions, SipTls};
use adapters::trunk::names::Names;
use entities::values::{Domain, Prefixes};
use std::{
    fs::File,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
};

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    settings.blocked_prefixes()?;
    settings.name_servers()?;
    settings.sip().map(drop)
}

impl Settings {
    /// `None`: no live calls.
    pub fn sip(&self) -> Result<Option<SipOptions>, BadSetting> {
        let rtp_ports = self.port_range()?;
        if self.sip_bind.is_empty() {
            let name = [
                ("sip_tls_bind", &self.sip_tls_bind),
                ("sip_tls_cert", &self.sip_tls_cert),
                ("sip_tls_key", &self.sip_tls_key),
                ("sip_address", &self.sip_address),
            ]
            .into_iter()
            .find(|(_, value)| !value.is_empty());
            return without("sip_bind", name);
        }
        Ok(Some(SipOptions {
            bind: socket("sip_bind", &self.sip_bind, 5060)?,
            tls: self.sip_tls()?,
            address: self.sip_address()?,
            rtp_ports,
        }))
    }

    fn sip_tls(&self) -> Result<Option<SipTls>, BadSetting> {
        if self.sip_tls_bind.is_empty() {
            let files = [("sip_tls_cert", &self.sip_tls_cert), ("sip_tls_key", &self.sip_tls_key)];
            return without("sip_tls_bind", files.into_iter().find(|(_, value)| !value.is_empty()));
        }
        Ok(Some(SipTls {
            bind: socket("sip_tls_bind", &self.sip_tls_bind, 5061)?,
            cert: readable("sip_tls_cert", &self.sip_tls_cert)?,
            key: readable("sip_tls_key", &self.sip_tls_key)?,
        }))
    }

    /// Where peers reach this process, `host:port`, if it carries calls.
    pub fn sip_reached_at(&self) -> Result<Option<String>, BadSetting> {
        let Some(sip) = self.sip()? else {
            return Ok(None);
        };
        let host = match &sip.address {
            Some(SipAddress::Ip(IpAddr::V6(ip))) => format!("[{ip}]"),
            Some(address) => address.to_string(),
            None if sip.bind.ip().is_unspecified() => return Ok(None),
            None => return Ok(Some(sip.bind.to_string())),
        };
        Ok(Some(format!("{host}:{}", sip.bind.port())))
    }

    fn sip_address(&self) -> Result<Option<SipAddress>, BadSetting> {
        let text = self.sip_address.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let address: SipAddress = match text.parse() {
            Ok(address) => SipAddress::Ip(address),
            Err(_) => match Domain::parse(text) {
                Ok(name) => SipAddress::Name(name.to_string()),
                Err(_) => {
                    return Err(BadSetting(format!(
                        "sip_address: `{text}` is neither an address nor a name, without a port; write 203.0.113.7"
                    )));
                }
            },
        };
        match address {
            SipAddress::Ip(ip) if ip.is_unspecified() => Err(BadSetting(format!(
                "sip_address: {ip} is not an address that a peer can send to; name the one that peers reach"
            ))),
            address => Ok(Some(address)),
        }
    }

    /// Who tells where the servers of SIP domains are; also of trunks that are only tested.
    pub fn names(&self) -> Result<Names, BadSetting> {
        let servers = self.name_servers()?;
        if servers.is_empty() {
            return Ok(Names::of_system());
        }
        Names::at(&servers).map_err(|why| BadSetting(format!("sip_dns: {why}")))
    }

    fn name_servers(&self) -> Result<Vec<SocketAddr>, BadSetting> {
        let texts = self.sip_dns.split(',').map(str::trim).filter(|text| !text.is_empty());
        texts
            .map(|text| {
                let without_port = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53));
                text.parse().or_else(|_| without_port()).map_err(|_| {
                    BadSetting(format!(
                        "sip_dns: `{text}` is not the address of a name server; write 192.0.2.53, or 127.0.0.1:5353"
                    ))
                })
            })
            .collect()
    }

    /// Pairs of ports for sound, one for each live leg.
    fn port_range(&self) -> Result<RangeInclusive<u16>, BadSetting> {
        let bad = |why: &str| BadSetting(format!("rtp_ports: `{}` {why}; write 20000-23999", self.rtp_ports));
        let (first, last) = self
            .rtp_ports
            .split_once('-')
            .and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)))
            .ok_or_else(|| bad("is not a range of ports"))?;
        let range: RangeInclusive<u16> = first..=last;
        if first < 1024 {
            return Err(bad("begins below 1024"));
        }
        if !first.is_multiple_of(2) {
            return Err(bad("must begin with an even port"));
        }
        if range.len() < 2 {
            return Err(bad("has no pair of ports"));
        }
        Ok(range)
    }

    pub(super) fn blocked_prefixes(&self) -> Result<Prefixes, BadSetting> {
        Prefixes::parse(&self.blocked_prefixes).map_err(|why| BadSetting(format!("blocked_prefixes: {why}")))
    }
}

/// What is set for something that is not: a slip that would go unseen.
fn without<T>(missing: &str, set: Option<(&str, &String)>) -> Result<Option<T>, BadSetting> {
    match set {
        Some((name, _)) => Err(BadSetting(format!(
            "{name}: also set `{missing}`, without which it is not used"
        ))),
        None => Ok(None),
    }
}

fn socket(name: &str, text: &str, usual: u16) -> Result<SocketAddr, BadSetting> {
    text.trim().parse().map_err(|_| {
        BadSetting(format!(
            "{name}: `{text}` is not an address with a port; write 0.0.0.0:{usual}"
        ))
    })
}

/// A file that can be opened now; what is in it is looked at where it is used.
fn readable(name: &str, path: &str) -> Result<PathBuf, BadSetting> {
    if path.is_empty() {
        return Err(BadSetting(format!("{name}: also name a PEM file, for `sip_tls_bind`")));
    }
    match File::open(path) {
        Ok(_) => Ok(path.into()),
        Err(error) => Err(BadSetting(format!("{name}: cannot read {path} ({error})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(settings: &[(&str, &str)]) -> Result<Settings, BadSetting> {
        let flags: Vec<_> = settings
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        Settings::load(None, &flags)
    }

    #[test]
    fn without_an_address_there_are_no_live_calls() {
        assert_eq!(load(&[]).unwrap().sip().unwrap(), None);
    }

    #[test]
    fn what_is_set_is_what_is_used() {
        let pem = tempfile::NamedTempFile::new().unwrap();
        let path = pem.path().to_str().unwrap();
        let settings = load(&[
            ("sip_bind", "0.0.0.0:5060"),
            ("sip_tls_bind", "[::]:5061"),
            ("sip_tls_cert", path),
            ("sip_tls_key", path),
            ("sip_address", "203.0.113.7"),
            ("rtp_ports", "30000 - 30099"),
            ("blocked_prefixes", "+4490, +1900"),
        ])
        .unwrap();
        let tls = SipTls {
            bind: "[::]:5061".parse().unwrap(),
            cert: path.into(),
            key: path.into(),
        };
        let expected = SipOptions {
            bind: "0.0.0.0:5060".parse().unwrap(),
            tls: Some(tls),
            address: Some(SipAddress::Ip("203.0.113.7".parse().unwrap())),
            rtp_ports: 30000..=30099,
        };
        assert_eq!(settings.sip().unwrap(), Some(expected));
        let prefixes = settings.limits().unwrap().blocked_prefixes;
        assert_eq!(prefixes.of(&"+449012345678".parse().unwrap()), Some("+4490"));
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        for (settings, name) in [
            (&[("sip_tls_bind", "0.0.0.0:5061")][..], "sip_tls_bind"),
            (
                &[("sip_tls_cert", "x.pem"), ("sip_bind", "0.0.0.0:5060")],
                "sip_tls_cert",
            ),
            (
                &[("sip_tls_bind", "0.0.0.0:5061"), ("sip_bind", "0.0.0.0:5060")],
                "sip_tls_cert",
            ),
            (
                &[("sip_address", "0.0.0.0"), ("sip_bind", "0.0.0.0:5060")],
                "sip_address",
            ),
            (
                &[("sip_address", "sip.example.com:5060"), ("sip_bind", "0.0.0.0:5060")],
                "sip_address",
            ),
        ] {
            let said = load(settings).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{name}:")), "{settings:?}: {said}");
        }
        let named = load(&[("sip_bind", "0.0.0.0:5060"), ("sip_address", "SIP.example.com")]).unwrap();
        let address = named.sip().unwrap().unwrap().address;
        assert_eq!(address, Some(SipAddress::Name("sip.example.com".into())));
    }
}
