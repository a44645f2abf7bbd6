//! Who is asked, and the way there: one websocket per call.
use super::{
    MESSAGE_LIMIT,
    protocol::{self, Problem},
};
pub use crate::provider_socket::Socket;
use crate::{
    provider_http::with_cause,
    provider_socket::{self, tls},
};
use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::Value;
use std::{fmt, sync::Arc};
use tokio_tungstenite::tungstenite::{
    Error,
    http::{
        Response, StatusCode,
        header::{AUTHORIZATION, HeaderValue},
    },
};
use url::Url;
use zeroize::Zeroizing;

/// A service that speaks the protocol. Cloning is cheap; one for all calls.
#[derive(Clone)]
pub struct Provider {
    url: Url,
    /// Empty: it asks for none.
    api_key: Zeroizing<String>,
    model: String,
    /// The model that writes down what is said, beside; `None`: nobody does.
    transcription: Option<Arc<str>>,
    /// Its own names of those who speak there.
    voices: Arc<[String]>,
    /// `None` where the URL asks for no TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Provider { url, model, .. } = self;
        f.debug_struct("Provider")
            .field("url", &url.as_str())
            .field("model", model)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// `url` as `wss://host/v1/realtime`, without the model; `ws://` for a service of one's own, without encryption.
    /// The error reads after the name of the setting: "starts with ..".
    pub fn new(url: &str, api_key: &str, model: &str) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|_| "is not a URL; write wss://api.example.com/v1/realtime".to_owned())?;
        if !matches!(url.scheme(), "wss" | "ws") {
            return Err(format!("starts with `{}`; write wss:// or ws://", url.scheme()));
        }
        if url.host_str().is_none() {
            return Err("has no host".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user or password; the key has a setting of its own".into());
        }
        if url.fragment().is_some() {
            return Err("has a part after `#`, which nobody would see".into());
        }
        if model.trim().is_empty() {
            return Err("needs a model".into());
        }
        if HeaderValue::try_from(api_key).is_err() {
            return Err("has a key with characters that cannot be sent".into());
        }
        let tls = (url.scheme() == "wss").then(tls).transpose()?;
        Ok(Provider {
            url,
            api_key: api_key.to_owned().into(),
            model: model.to_owned(),
            transcription: None,
            voices: Arc::default(),
            tls,
        })
    }

    pub fn with_voices(self, voices: Vec<String>) -> Self {
        Provider {
            voices: voices.into(),
            ..self
        }
    }

    /// Whoever speaks there writes down what is said to it, with that model; empty: nobody does.
    pub fn with_transcription(self, model: &str) -> Self {
        let model = model.trim();
        Provider {
            transcription: (!model.is_empty()).then(|| model.into()),
            ..self
        }
    }

    /// How that is asked for. `language`: BCP 47.
    pub(super) fn transcription(&self, language: &str) -> Option<Value> {
        let model = self.transcription.as_deref()?;
        Some(protocol::transcription(model, language))
    }

    pub fn voices(&self) -> &[String] {
        &self.voices
    }

    /// Whichever agents do not name another.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Opens the socket; `model` instead of the usual one. Errors are words for people.
    pub(super) async fn connect(&self, model: Option<&str>) -> Result<Socket, String> {
        let mut url = self.url.clone();
        let others = url
            .query_pairs()
            .filter(|(name, _)| name != "model")
            .map(|(name, value)| (name.into(), value.into()));
        let others: Vec<(String, String)> = others.collect();
        let model = model.unwrap_or(&self.model);
        url.query_pairs_mut()
            .clear()
            .extend_pairs(others)
            .append_pair("model", model);

        let bearer = (!self.api_key.is_empty()).then(|| {
            let bearer = Zeroizing::new(format!("Bearer {}", *self.api_key));
            HeaderValue::try_from(bearer.as_str()).map(|mut bearer| {
                bearer.set_sensitive(true);
                (AUTHORIZATION, bearer)
            })
        });
        let bearer = bearer.transpose().map_err(|error| error.to_string())?;
        match provider_socket::connect(&url, bearer, self.tls.clone(), MESSAGE_LIMIT).await {
            Ok(socket) => Ok(socket),
            Err(Error::Http(refusal)) => Err(refused(&refusal, model)),
            Err(error) => Err(format!(
                "no connection to {}: {}",
                self.url.host_str().unwrap_or_default(),
                with_cause(&error)
            )),
        }
    }

    /// Words of the provider or about it, fit for a log: on one line, not long, and never with the key.
    pub(super) fn clean(&self, words: &str) -> String {
        let mut words = words.to_owned();
        if !self.api_key.is_empty() {
            words = words.replace(self.api_key.as_str(), "[key]");
        }
        let visible = words.chars().map(|c| if c.is_control() { ' ' } else { c });
        visible.take(500).collect()
    }
}

/// What an HTTP answer in place of a websocket means.
fn refused(refusal: &Response<Option<Vec<u8>>>, model: &str) -> String {
    #[derive(Deserialize)]
    struct Body {
        error: Problem,
    }
    let status = refusal.status();
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ", is the key right?".into(),
        StatusCode::NOT_FOUND => format!(", are the address and the model `{model}` right?"),
        StatusCode::TOO_MANY_REQUESTS => ", its limit is reached".into(),
        _ => String::new(),
    };
    let body = refusal.body().as_deref().unwrap_or_default();
    let words = serde_json::from_slice::<Body>(body)
        .ok()
        .and_then(|body| body.error.message);
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    format!("it refused the connection with {status}{hint}{words}")
}
