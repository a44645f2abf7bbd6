//! What all adapters share that speak with a provider over a websocket.
use crate::outbound::system_roots;
use rustls::{ClientConfig, crypto::aws_lc_rs};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
    tungstenite::{
        Error,
        client::IntoClientRequest,
        http::header::{HeaderName, HeaderValue, USER_AGENT},
        protocol::WebSocketConfig,
    },
};
use url::Url;

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Bytes of one message: a second of sound has 64 KiB.
const MESSAGE_LIMIT: usize = 1024 * 1024;

/// Whom a `wss://` is believed. Fails in words for an operator.
pub fn tls() -> Result<Arc<ClientConfig>, String> {
    let roots = system_roots();
    if roots.is_empty() {
        return Err("cannot be trusted: the system has no certificate authorities (package ca-certificates)".into());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot be reached over TLS: {error}"))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Where a provider's websocket is. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Address {
    /// `wss` or `ws`.
    pub url: Url,
    /// `None` where the URL asks for no TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl Address {
    /// `url` of the form of `example`, or the same with `https://` or `http://`. Fails in words for an operator.
    pub fn new(url: &str, example: &str) -> Result<Self, String> {
        let mut url = Url::parse(url).map_err(|_| format!("is not a URL; write {example}"))?;
        let scheme = match url.scheme() {
            "wss" | "https" => "wss",
            "ws" | "http" => "ws",
            other => return Err(format!("starts with `{other}`; write wss:// or ws://")),
        };
        let is_plain = url.username().is_empty() && url.password().is_none();
        let form = || format!("is not of the form {example}; the key has a setting of its own");
        if !is_plain || url.query().is_some() || url.fragment().is_some() {
            return Err(form());
        }
        url.set_scheme(scheme).map_err(|()| form())?;
        Ok(Address {
            tls: (scheme == "wss").then(tls).transpose()?,
            url,
        })
    }

    /// Opens it; `key`: the header that lets us in.
    pub async fn open(&self, key: Option<(HeaderName, HeaderValue)>) -> Result<Socket, Box<Error>> {
        let opened = connect(&self.url, key, self.tls.clone(), MESSAGE_LIMIT).await;
        opened.map_err(Box::new)
    }
}

/// Opens a socket there. `key`: the header that names who asks. A message of more bytes than `limit` ends the socket.
pub async fn connect(
    url: &Url,
    key: Option<(HeaderName, HeaderValue)>,
    tls: Option<Arc<ClientConfig>>,
    limit: usize,
) -> Result<Socket, Error> {
    let mut request = url.as_str().into_client_request()?;
    let headers = request.headers_mut();
    let agent = concat!("Callboard/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers.extend(key);
    let config = WebSocketConfig::default()
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let connector = tls.map_or(Connector::Plain, Connector::Rustls);
    // No delay: a cut and what is said live are small.
    let opened = connect_async_tls_with_config(request, Some(config), true, Some(connector)).await;
    opened.map(|(socket, _)| socket)
}
