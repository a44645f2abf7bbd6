//! Where the service listens, how browsers reach it, and whom it may reach.
use super::{
    Settings,
    check::{BadSetting, list, within},
};
use crate::dashboard::room::IceServer;
use adapters::outbound::{AllowedTarget, Policy};
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use std::net::{IpAddr, SocketAddr};

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    settings.socket_address()?;
    settings.metrics_address()?;
    settings.outbound()?;
    settings.extra_roots()?;
    within("webhook_timeout_ms", settings.webhook_timeout_ms, 1000..=30_000)?;
    if url::Url::parse(&settings.public_url()).is_err() {
        return Err(BadSetting(format!(
            "base_url: `{}` is not a URL; write https://callboard.example.com",
            settings.base_url
        )));
    }
    Ok(())
}

impl Settings {
    pub fn socket_address(&self) -> Result<SocketAddr, BadSetting> {
        self.bind.parse().map_err(|_| {
            BadSetting(format!(
                "bind: `{}` is not an address with a port; write 127.0.0.1:8080",
                self.bind
            ))
        })
    }

    /// Where the metrics are answered; `None`: at `bind`.
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>, BadSetting> {
        let text = self.metrics_bind.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let bad = |_| {
            BadSetting(format!(
                "metrics_bind: `{text}` is not an address with a port; write 127.0.0.1:9464"
            ))
        };
        text.parse().map(Some).map_err(bad)
    }

    /// Where browsers send their sound.
    pub fn media(&self) -> Result<media::webrtc::MediaSettings, BadSetting> {
        let bind = if self.media_bind.is_empty() {
            SocketAddr::new(self.socket_address()?.ip(), 0)
        } else {
            let bad = || {
                format!(
                    "media_bind: `{}` is not an address with a port; write 0.0.0.0:7882",
                    self.media_bind
                )
            };
            self.media_bind.parse().map_err(|_| BadSetting(bad()))?
        };
        let addresses = list(&self.media_addresses).map(|text| {
            let bad = || format!("media_addresses: `{text}` is not an IP address; write 203.0.113.7");
            text.parse::<IpAddr>().map_err(|_| BadSetting(bad()))
        });
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        if let Some(any) = addresses.iter().find(|address| address.is_unspecified()) {
            return Err(BadSetting(format!(
                "media_addresses: {any} is not an address that a browser can send to; name those of this machine"
            )));
        }
        for url in list(&self.turn_urls) {
            let known = ["stun:", "turn:", "turns:"]
                .iter()
                .any(|scheme| url.starts_with(scheme));
            if !known {
                return Err(BadSetting(format!(
                    "turn_urls: `{url}` must begin with stun:, turn: or turns:, such as turn:turn.example.com:3478"
                )));
            }
        }
        let relays = list(&self.turn_urls).any(|url| url.starts_with("turn"));
        if relays && self.turn_secret.is_empty() {
            return Err(BadSetting(
                "turn_secret: is not set; give the relay's `static-auth-secret`, from which each page gets a login of its own".into(),
            ));
        }
        Ok(media::webrtc::MediaSettings { bind, addresses })
    }

    /// What pages are given to reach this service through a relay: each a login that is good for a while. Source: coturn's
    /// `use-auth-secret`, draft-uberti-behave-turn-rest.
    pub fn ice_servers(&self, now: i64) -> Vec<IceServer> {
        let (relays, others): (Vec<&str>, Vec<&str>) = list(&self.turn_urls).partition(|url| url.starts_with("turn"));
        let urls = |urls: Vec<&str>| urls.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let mut servers = Vec::new();
        if !others.is_empty() {
            servers.push(IceServer {
                urls: urls(others),
                username: None,
                credential: None,
            });
        }
        if !relays.is_empty() {
            let username = (now + TURN_SECONDS).to_string();
            let mut mac = Hmac::<Sha1>::new_from_slice(self.turn_secret.expose().as_bytes())
                .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
            mac.update(username.as_bytes());
            servers.push(IceServer {
                urls: urls(relays),
                credential: Some(STANDARD.encode(mac.finalize().into_bytes())),
                username: Some(username),
            });
        }
        servers
    }

    /// Where this service's own links start, without a slash at the end.
    pub fn public_url(&self) -> String {
        if self.base_url.is_empty() {
            format!("http://{}", self.bind)
        } else {
            self.base_url.trim_end_matches('/').to_owned()
        }
    }

    /// The dashboard's cookie travels over TLS only, but for `--dev` over plain http.
    pub fn secure_cookies(&self) -> bool {
        !(self.dev && self.public_url().starts_with("http://"))
    }

    pub fn outbound(&self) -> Result<Policy, BadSetting> {
        let allowed = list(&self.webhook_allow_targets)
            .map(str::parse::<AllowedTarget>)
            .collect::<Result<_, _>>();
        let ports = list(&self.webhook_allow_ports).map(|text| {
            let port = text.parse().ok().filter(|port: &u16| *port > 0);
            port.ok_or_else(|| {
                BadSetting(format!(
                    "webhook_allow_ports: `{text}` is not a port; write numbers separated by commas, such as 80,444"
                ))
            })
        });
        Ok(Policy {
            dev: self.dev,
            ports: ports.collect::<Result<_, _>>()?,
            allowed: allowed.map_err(|why| BadSetting(format!("webhook_allow_targets: {why}")))?,
        })
    }

    /// Certificate authorities beside the system's, PEM.
    pub fn extra_roots(&self) -> Result<Option<Vec<u8>>, BadSetting> {
        if self.webhook_ca_file.is_empty() {
            return Ok(None);
        }
        let read = std::fs::read(&self.webhook_ca_file);
        read.map(Some).map_err(|error| {
            BadSetting(format!(
                "webhook_ca_file: cannot read {} ({error})",
                self.webhook_ca_file
            ))
        })
    }
}

/// A relay's login is good for so long: longer than the longest talk.
const TURN_SECONDS: i64 = 4 * 3600;
