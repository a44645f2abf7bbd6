//! Whether this process is one of several nodes, and where the others reach it.
use super::{
    Settings,
    check::{BadSetting, unused},
};
use entities::db::Location;
use std::net::SocketAddr;

/// A node's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    /// Where it listens to the others.
    pub bind: SocketAddr,
    /// Where they reach it, `host:port`.
    pub address: String,
    pub name: String,
}

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    settings.node().map(drop)
}

/// Of a name that people read in lists.
const LONGEST_NAME: usize = 64;

impl Settings {
    /// `None`: one process serves the database alone.
    pub fn node(&self) -> Result<Option<NodeOptions>, BadSetting> {
        let text = self.node_bind.trim();
        if text.is_empty() {
            let others = [("node_address", &*self.node_address), ("node_name", &*self.node_name)];
            unused(&["node_bind"], others)?;
            return Ok(None);
        }
        if !matches!(self.location()?, Location::Postgres(_)) {
            return Err(BadSetting(
                "node_bind: several nodes need PostgreSQL; set database_url to postgres://…, or leave node_bind out"
                    .into(),
            ));
        }
        let bind: SocketAddr = text.parse().map_err(|_| {
            BadSetting(format!(
                "node_bind: `{text}` is not an address with a port; write 10.0.0.5:7070"
            ))
        })?;
        let address = match self.node_address.trim() {
            "" if bind.ip().is_unspecified() => {
                return Err(BadSetting(format!(
                    "node_address: is not set, and {} is not an address that other nodes can send to; write 10.0.0.5:{}",
                    bind.ip(),
                    bind.port()
                )));
            }
            "" => bind.to_string(),
            address => checked(address)?,
        };
        let name = match self.node_name.trim() {
            "" => host_name().unwrap_or_else(|| address.clone()),
            name => name.to_owned(),
        };
        if name.len() > LONGEST_NAME || name.contains(char::is_control) {
            return Err(BadSetting(format!(
                "node_name: must be at most {LONGEST_NAME} printable characters"
            )));
        }
        Ok(Some(NodeOptions { bind, address, name }))
    }
}

/// As the system calls this machine.
pub(super) fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
}

fn checked(address: &str) -> Result<String, BadSetting> {
    let bad = || {
        BadSetting(format!(
            "node_address: `{address}` is not a host with a port; write 10.0.0.5:7070"
        ))
    };
    let url = url::Url::parse(&format!("http://{address}")).map_err(|_| bad())?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if is_plain
        && url.host_str().is_some()
        && address
            .rsplit(':')
            .next()
            .is_some_and(|port| port.parse::<u16>().is_ok())
    {
        Ok(address.to_owned())
    } else {
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(settings: &[(&str, &str)]) -> Result<Option<NodeOptions>, BadSetting> {
        let mut flags = vec![("database_url", "postgres://localhost/callboard".to_owned())];
        flags.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Settings::load(None, &flags)?.node()
    }

    #[test]
    fn a_node_is_reached_where_it_listens_or_where_it_says() {
        assert_eq!(node(&[]).unwrap(), None);
        let of = |settings: &[(&str, &str)]| node(settings).unwrap().unwrap();
        let plain = of(&[("node_bind", "10.0.0.5:7070")]);
        assert_eq!(plain.address, "10.0.0.5:7070");
        assert!(!plain.name.is_empty());
        let named = of(&[
            ("node_bind", "0.0.0.0:7070"),
            ("node_address", "node-a.internal:7070"),
            ("node_name", "a"),
        ]);
        assert_eq!((&*named.address, &*named.name), ("node-a.internal:7070", "a"));
        assert_eq!(of(&[("node_bind", "[::1]:7070")]).address, "[::1]:7070");
    }

    #[test]
    fn a_node_that_nobody_could_reach_is_refused() {
        for (settings, says) in [
            (&[("node_bind", "7070")][..], "node_bind: `7070` is not an address"),
            (&[("node_bind", "0.0.0.0:7070")], "node_address: is not set"),
            (
                &[("node_bind", "10.0.0.5:7070"), ("node_address", "http://x/")],
                "node_address: `http://x/`",
            ),
            (
                &[("node_bind", "10.0.0.5:7070"), ("node_address", "node-a")],
                "node_address: `node-a`",
            ),
            (&[("node_name", "a")], "node_name: also set `node_bind`"),
            (
                &[("node_bind", "10.0.0.5:7070"), ("database_url", "sqlite://x.db")],
                "node_bind: several nodes need PostgreSQL",
            ),
        ] {
            let said = node(settings).unwrap_err().to_string();
            assert!(said.starts_with(says), "{said}");
        }
    }
}
