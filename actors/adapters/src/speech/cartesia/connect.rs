//! Where it is, and the way there.
use crate::{
    provider_http::{ApiKey, Limits},
    provider_socket::{Address, Socket},
    speech::SpeechError,
};
use std::sync::Arc;
use tokio_tungstenite::tungstenite::http::header::HeaderName;

/// The protocol's version that is spoken here.
const VERSION: &str = "2026-03-01";

/// Cheap to clone; one for all talks.
#[derive(Clone, Debug)]
pub struct Endpoint {
    address: Address,
    api_key: Option<ApiKey>,
    pub model: Arc<str>,
    pub limits: Limits,
}

impl Endpoint {
    /// `url` as `wss://api.cartesia.ai`, or the same with `https://`. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, model: &str, limits: Limits) -> Result<Self, String> {
        let mut address = Address::new(url, "wss://api.cartesia.ai")?;
        if let Ok(mut path) = address.url.path_segments_mut() {
            path.pop_if_empty().extend(["tts", "websocket"]);
        }
        address.url.query_pairs_mut().append_pair("cartesia_version", VERSION);
        Ok(Endpoint {
            address,
            api_key,
            model: model.into(),
            limits,
        })
    }

    pub async fn connect(&self) -> Result<Socket, SpeechError> {
        let key = self.api_key.as_ref();
        let key = key.map(|key| (HeaderName::from_static("x-api-key"), key.header()));
        let socket = self.address.open(key).await;
        socket.map_err(|error| SpeechError::of_handshake(&error))
    }
}
