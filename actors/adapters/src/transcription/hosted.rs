//! A provider that hears while it is spoken: where its websocket is, and what is told there of a talk.
use super::{
    Ask, Patience,
    deepgram::{self, Deepgram, KEY_TERM},
    dialect::Dialect,
    flux::{self, Flux},
    realtime::{self, Realtime},
    way::{NewDialect, Wire},
};
use crate::{provider_http::ApiKey, provider_socket::Address};
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use url::Url;

/// What is spoken over the websocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Realtime,
    Deepgram,
    Flux,
}

impl Protocol {
    /// For metrics and logs.
    fn name(self) -> &'static str {
        match self {
            Protocol::Realtime => "openai_realtime",
            Protocol::Deepgram => "deepgram",
            Protocol::Flux => "deepgram_flux",
        }
    }
}

#[derive(Debug)]
pub struct Hosted {
    protocol: Protocol,
    address: Address,
    api_key: Option<ApiKey>,
    /// Empty: it depends on the language.
    model: String,
    pub patience: Patience,
}

impl Hosted {
    /// `url`: what comes before the protocol's own path, or all of it. Fails in words for an operator.
    pub fn new(
        protocol: Protocol,
        url: &str,
        api_key: Option<ApiKey>,
        model: &str,
        patience: Patience,
    ) -> Result<Self, String> {
        let (example, version, endpoint) = match protocol {
            Protocol::Realtime => ("wss://host/v1/realtime", "v1", "realtime"),
            Protocol::Deepgram => ("wss://host/v1/listen", "v1", "listen"),
            Protocol::Flux => ("wss://host/v2/listen", "v2", "listen"),
        };
        let mut address = Address::new(url, example)?;
        complete(&mut address.url, version, endpoint);
        Ok(Hosted {
            protocol,
            address,
            api_key,
            model: model.to_owned(),
            patience,
        })
    }

    /// For one talk.
    pub fn wire(&self, ask: &Ask) -> Wire {
        let (language, names) = (ask.language_code(), ask.expected());
        let mut address = self.address.clone();
        let dialect: NewDialect;
        let (query, scheme) = match self.protocol {
            Protocol::Realtime => {
                let is_openai = address.url.host_str().is_some_and(|host| host.ends_with(".openai.com"));
                let query = realtime::query(&self.model, language.as_deref(), is_openai);
                let (model, prompt) = (self.model.clone(), realtime::prompt(&self.model, &names));
                dialect = Box::new(move || -> Box<dyn Dialect> {
                    Box::new(Realtime::new(&model, language.as_deref(), prompt.as_deref()))
                });
                (query, "Bearer")
            }
            Protocol::Deepgram => {
                dialect = Box::new(|| -> Box<dyn Dialect> { Box::<Deepgram>::default() });
                (deepgram::query(&self.model, language.as_deref(), names), "Token")
            }
            Protocol::Flux => {
                dialect = Box::new(|| -> Box<dyn Dialect> { Box::<Flux>::default() });
                (flux::query(&self.model, language.as_deref(), names), "Token")
            }
        };
        let has_terms = query.iter().any(|(name, _)| *name == KEY_TERM);
        let plain = has_terms.then(|| {
            let mut plain = address.clone();
            let query = query.iter().filter(|(name, _)| *name != KEY_TERM);
            plain.url.query_pairs_mut().extend_pairs(query);
            plain
        });
        address.url.query_pairs_mut().extend_pairs(&query);
        let key = self.api_key.as_ref();
        Wire {
            name: self.protocol.name(),
            address,
            plain,
            key: key.map(|key| (AUTHORIZATION, key.header_with(scheme))),
            dialect,
        }
    }
}

/// Adds what is missing: the endpoint, and of a bare host the version.
fn complete(url: &mut Url, version: &str, endpoint: &str) {
    let path = url.path().trim_end_matches('/').to_owned();
    if path.rsplit('/').next() == Some(endpoint) {
        return;
    }
    let version = path.is_empty().then_some(version);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(version).push(endpoint);
    }
}
