//! Health and metrics, for machines that watch the service.
use super::error::{ApiError, ApiResult, Code};
use crate::{app::measures::measure_process, state::State};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HOST, HeaderMap},
    web::{self, Data, ServiceConfig},
};
use actors::{
    holds::{self, ClockStatus, state::Hold},
    writer::Health,
};
use runtime::keyring::{hex, purpose};
use serde_json::json;

/// GET /healthz: the process answers. `instance` is the same for all nodes of a database, and tells whoever comes by a proxy whether it
/// leads here; the key that it is made from is for nothing else.
pub async fn healthz(state: Data<State>) -> HttpResponse {
    let instance = hex(&state.deps.links.signing(purpose::INSTANCE)[..8]);
    HttpResponse::Ok().json(json!({ "status": "ok", "instance": instance }))
}

/// GET /readyz: it can do its work. Parked actors are named and do not make it unready: the others are unharmed.
pub async fn readyz(state: Data<State>) -> HttpResponse {
    let database = state.deps.db.ping().await;
    let (parked, actors) = (state.tree.parked(), state.tree.counts());
    let draining = state.deps.is_draining();
    let commits = match state.deps.writer.health() {
        Health::Well => "ok",
        Health::Stalled => "stalled",
        // Why stands in the log: the answer is for everybody.
        Health::Failing(_) => "failing",
    };
    let clock = ClockStatus::of(&state.deps.clock);
    // Neither makes it unready: requests are answered, and calls that come in, all the same.
    let dispatch = match holds::known(&state.deps) {
        None => "running",
        Some(Hold::Operator) => "paused",
        Some(Hold::Clock) => "held_by_clock",
    };
    // `null`: it serves alone. Ready from the start on, with or without workspaces: it takes any request.
    let node = state
        .settings
        .node()
        .ok()
        .flatten()
        .map(|node| json!({ "name": node.name }));
    let ready = database.is_ok() && commits == "ok" && !draining;
    let body = json!({
        "status": if ready { "ready" } else { "unavailable" },
        "database": if database.is_ok() { "ok" } else { "unavailable" },
        "commits": commits,
        "draining": draining,
        "dispatch": dispatch,
        "clock": { "trusted": clock.doubt.is_none(), "gap_ms": clock.gap_ms, "doubt": clock.doubt },
        "actors": actors,
        "parked": parked,
        "node": node,
    });
    if ready {
        HttpResponse::Ok().json(body)
    } else {
        HttpResponse::ServiceUnavailable()
            .insert_header(("Retry-After", "1"))
            .json(body)
    }
}

/// What is answered at `metrics_bind`.
pub fn watched(config: &mut ServiceConfig) {
    config
        .route("/metrics", web::get().to(all_metrics))
        .route("/healthz", web::get().to(healthz))
        .route("/readyz", web::get().to(readyz))
        .default_service(web::to(unknown_route));
}

/// GET /metrics of the API: for programs of this machine, where no address of its own is set for it.
pub async fn metrics(state: Data<State>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let is_ours = request
        .peer_addr()
        .is_some_and(|peer| peer.ip().to_canonical().is_loopback())
        && names_this_machine(request.headers())
        && !PROXIED.iter().any(|header| request.headers().contains_key(*header));
    match state.settings.metrics_bind.is_empty() && is_ours {
        true => all_metrics(state).await,
        false => unknown_route(request).await,
    }
}

/// A proxy says so. One that says nothing of the kind is why there is `metrics_bind`.
const PROXIED: [&str; 5] = ["x-forwarded-for", "x-forwarded-proto", "forwarded", "x-real-ip", "via"];

/// Whoever comes from elsewhere has asked for another name.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let ip = name.parse::<std::net::IpAddr>();
    name == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// In Prometheus' text format.
async fn all_metrics(state: Data<State>) -> ApiResult<HttpResponse> {
    let deps = &state.deps;
    measure_process(if deps.db.is_shared() { "postgres" } else { "sqlite" });
    for (kind, count) in state.tree.counts() {
        metrics::gauge!("callboard_actors", "kind" => kind).set(count as f64);
    }
    metrics::gauge!("callboard_actors_parked").set(state.tree.parked().len() as f64);
    holds::measure(deps);
    metrics::gauge!("callboard_calls_live").set(deps.calls.count() as f64);
    metrics::gauge!("callboard_recording_spool_bytes").set(deps.studio.spools.bytes() as f64);
    metrics::gauge!("callboard_recording_spool_writes").set(f64::from(u8::from(deps.studio.spools.writes())));
    metrics::gauge!("callboard_media_connections").set(deps.carriers.rooms.media.connections() as f64);
    if let Some(phones) = &deps.carriers.phones {
        metrics::gauge!("callboard_sip_legs").set(phones.legs() as f64);
        metrics::gauge!("callboard_rtp_ports_in_use").set(phones.ports_in_use() as f64);
    }
    state.metrics.run_upkeep();
    Ok(HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4")
        .body(state.metrics.render()))
}

/// A path that nothing answers.
pub async fn unknown_route(request: HttpRequest) -> ApiResult<HttpResponse> {
    Err(ApiError::not_found(format!(
        "there is nothing at {}; see /docs",
        request.path()
    )))
}

/// A path that answers to other methods.
pub fn wrong_method(request: &HttpRequest, allowed: &str) -> ApiError {
    let message = format!(
        "{} does not take {}, only {allowed}; see /docs",
        request.path(),
        request.method()
    );
    ApiError::Frame(Code::MethodNotAllowed, message, None)
}
