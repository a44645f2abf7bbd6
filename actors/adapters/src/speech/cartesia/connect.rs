//! Where it is, and the way there.
use crate::{
    provider_http::{ApiKey, Limits},
    provider_socket::{self, Socket, tls},
    speech::SpeechError,
};
use rustls::ClientConfig;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::{
    Error,
    http::header::{HeaderName, RETRY_AFTER},
};
use url::Url;

/// The protocol's version that is spoken here.
const VERSION: &str = "2026-03-01";
/// Bytes of one message: a second of sound has 64 KiB.
const MESSAGE_LIMIT: usize = 1024 * 1024;

/// Cheap to clone; one for all talks.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: Url,
    api_key: Option<ApiKey>,
    pub model: Arc<str>,
    pub limits: Limits,
    /// `None` where the URL asks for no TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl Endpoint {
    /// `url` as `wss://api.cartesia.ai`, or the same with `https://`. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, model: &str, limits: Limits) -> Result<Self, String> {
        const EXAMPLE: &str = "wss://api.cartesia.ai";
        let mut url = Url::parse(url).map_err(|_| format!("is not a URL; write {EXAMPLE}"))?;
        let scheme = match url.scheme() {
            "wss" | "https" => "wss",
            "ws" | "http" => "ws",
            other => return Err(format!("starts with `{other}`; write wss:// or ws://")),
        };
        let is_plain = url.username().is_empty() && url.password().is_none();
        let form = || format!("is not of the form {EXAMPLE}; the key has a setting of its own");
        if !is_plain || url.query().is_some() || url.fragment().is_some() {
            return Err(form());
        }
        url.set_scheme(scheme).map_err(|()| form())?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["tts", "websocket"]);
        }
        url.query_pairs_mut().append_pair("cartesia_version", VERSION);
        Ok(Endpoint {
            tls: (scheme == "wss").then(tls).transpose()?,
            url,
            api_key,
            model: model.into(),
            limits,
        })
    }

    pub async fn connect(&self) -> Result<Socket, SpeechError> {
        let key = self.api_key.as_ref();
        let key = key.map(|key| (HeaderName::from_static("x-api-key"), key.header()));
        match provider_socket::connect(&self.url, key, self.tls.clone(), MESSAGE_LIMIT).await {
            Ok(socket) => Ok(socket),
            Err(Error::Http(refusal)) => {
                let wait = refusal.headers().get(RETRY_AFTER);
                let wait = wait.and_then(|value| value.to_str().ok());
                Err(SpeechError::of_status(refusal.status().as_u16(), wait))
            }
            Err(Error::Io(_) | Error::Tls(_) | Error::Url(_)) => Err(SpeechError::Absent),
            Err(_) => Err(SpeechError::Garbage),
        }
    }
}
