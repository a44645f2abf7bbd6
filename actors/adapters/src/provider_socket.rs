//! What all adapters share that speak with a provider over a websocket.
use crate::outbound::system_roots;
use rustls::{ClientConfig, crypto::aws_lc_rs};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

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
