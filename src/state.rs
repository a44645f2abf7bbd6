//! What every request handler can reach.
use crate::{
    http::{
        bodies::Bodies, bulkheads::Bulkheads, in_flight::Running, open_streams::Streams, peers::Peers,
        preflights::Preflights, rate_limits::RateLimits,
    },
    settings::Settings,
};
use actors::{deps::Deps, housekeeping::KeysUsed, nodes::Keeper, tree::Tree};
use metrics_exporter_prometheus::PrometheusHandle;
use std::sync::Arc;

/// What every request handler can reach.
pub struct State {
    pub deps: Deps,
    /// The actors.
    pub tree: Arc<Tree>,
    pub settings: Settings,
    pub limits: RateLimits,
    /// Bytes of requests that are being read.
    pub bodies: Arc<Bodies>,
    pub bulkheads: Bulkheads,
    pub preflights: Preflights,
    pub running: Running,
    pub keys_used: KeysUsed,
    pub metrics: PrometheusHandle,
    pub streams: Streams,
    /// `None`: this process serves alone.
    pub keeper: Option<Arc<Keeper>>,
    /// The other nodes, as requests are handed on to them.
    pub peers: Peers,
}

impl State {
    /// `__Host-` binds the cookie to this host and to TLS; a plain name only where there is no TLS, in `--dev`.
    pub fn cookie_name(&self) -> &'static str {
        if self.settings.secure_cookies() {
            "__Host-callboard"
        } else {
            "callboard"
        }
    }
}
