//! Any node takes any request: one that is another's is handed on to it as it came, once.
//!
//! Which node a request belongs to follows from its workspace (`home`). The other node is asked over its own address, and shown who
//! asks (`proof`); it answers as if it had been asked itself, streams and all (`forward`).
mod forward;
mod home;
mod proof;

pub use home::Home;
pub use proof::Hop;

use super::{
    caller::Access,
    error::{ApiError, ApiResult},
};
use crate::state::State;
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, ResponseError,
    dev::{Payload, ServiceRequest},
    http::header::{HeaderName, HeaderValue},
    web::Bytes,
};
use actors::{
    leases::{Of, Stay},
    nodes::Keeper,
};
use entities::{
    Error,
    ids::TenantId,
    workspace_lease::{self, INSTALLATION},
};
use forward::{Outcome, Outgoing};
use std::time::{Duration, Instant};

/// Said by a node that has not touched a request, for its workspace is not there (any more).
const MOVED: &str = "callboard-moved";
/// The workspace that is meant, in the query of a request that was handed on.
const NAMED: &str = "workspace";
/// A workspace is on its way for some seconds at most: when its node dies, until another has taken it over.
const PATIENCE: Duration = Duration::from_secs(12);
/// Between two looks at where it is.
const FIRST_REST: Duration = Duration::from_millis(25);
const LONGEST_REST: Duration = Duration::from_millis(400);

/// A request as it came, before it was routed.
#[derive(Clone)]
pub struct AsAsked(pub String);

/// Behind the address that only other nodes know.
#[derive(Clone, Copy)]
pub struct BetweenNodes;

/// Notes what a request was before it is routed. Between nodes nobody else is answered.
pub fn enter(state: &State, request: &mut ServiceRequest) -> ApiResult<Option<Hop>> {
    if state.keeper.is_none() {
        return Ok(None);
    }
    let target = request
        .uri()
        .path_and_query()
        .map_or_else(String::new, ToString::to_string);
    let hop = match request.app_data::<BetweenNodes>() {
        None => None,
        Some(BetweenNodes) => {
            let proved = proof::proved(state, request.method().as_str(), &target, request.headers());
            Some(proved.ok_or_else(|| ApiError::not_found("this port only accepts requests from other nodes"))?)
        }
    };
    request.extensions_mut().insert(AsAsked(target));
    if let Some(hop) = &hop {
        request.extensions_mut().insert(hop.clone());
    }
    Ok(hop)
}

/// The body of a request that may be handed on.
pub enum Body<'a> {
    /// Not read yet.
    Coming(&'a mut Payload),
    Read(Bytes),
}

/// Where a request is answered.
pub enum Place {
    /// Here, and its workspace stays meanwhile.
    Here(Option<Stay>),
    /// It was, by another node.
    There(HttpResponse),
}

/// Waits until it is known who has the request's workspace, and has it answered there, if that is another node.
pub async fn settle(state: &State, request: &mut ServiceRequest, access: Access) -> ApiResult<Place> {
    let Some(keeper) = &state.keeper else {
        return Ok(Place::Here(None));
    };
    let home = home::of(state, request.request(), access).await?;
    let mut payload = request.take_payload();
    let place = settled(state, keeper, request.request(), home, &mut Body::Coming(&mut payload)).await;
    request.set_payload(payload);
    place
}

/// The same for a request whose workspace, or one of them, its body names; that was read already. The other node is told which
/// one is meant.
pub async fn settle_read(state: &State, request: &HttpRequest, tenant: TenantId, body: Bytes) -> ApiResult<Place> {
    let Some(keeper) = &state.keeper else {
        return Ok(Place::Here(None));
    };
    if request.extensions().get::<Hop>().is_none() {
        let target = format!("{}?{NAMED}={tenant}", request.path());
        request.extensions_mut().insert(AsAsked(target));
    }
    settled(state, keeper, request, Home::Of(tenant), &mut Body::Read(body)).await
}

/// Which of its workspaces a request was handed on for.
pub fn named(request: &HttpRequest) -> Option<TenantId> {
    request.extensions().get::<Hop>()?;
    request
        .query_string()
        .strip_prefix(NAMED)?
        .strip_prefix('=')?
        .parse()
        .ok()
}

async fn settled(
    state: &State,
    keeper: &Keeper,
    request: &HttpRequest,
    home: Home,
    body: &mut Body<'_>,
) -> ApiResult<Place> {
    let tenant = match home {
        Home::Anywhere => return Ok(Place::Here(None)),
        Home::Of(tenant) | Home::OfKey(tenant) => tenant,
    };
    let (leases, db) = (state.deps.fence.leases(), &state.deps.db.read);
    let of = match tenant {
        INSTALLATION => Of::Installation,
        tenant => Of::Workspace(tenant),
    };
    let is_handed_on = request.extensions().get::<Hop>().is_some();
    let (begun, mut rest) = (Instant::now(), FIRST_REST);
    let mut outgoing = None;
    loop {
        if let Ok(stay) = leases.enter(of) {
            if let (Body::Coming(payload), Some(Outgoing::Kept(bytes))) = (body, outgoing) {
                **payload = Payload::from(bytes);
            }
            return Ok(Place::Here(Some(stay)));
        }
        // One hop: whoever handed it on finds out where it is now.
        if is_handed_on {
            return Ok(Place::There(moved()));
        }
        match workspace_lease::owner(db, tenant).await? {
            Some(owner) if owner.id != keeper.id() => {
                let whole = match outgoing.take() {
                    Some(whole) => whole,
                    None => forward::outgoing(state, request, home, body).await?,
                };
                match forward::hand_on(state, (tenant, &owner), request, whole).await {
                    Outcome::Answered(response) => return Ok(Place::There(response)),
                    // Of a long body nothing is kept.
                    Outcome::Untouched(None) => return Err(Error::Moved.into()),
                    Outcome::Untouched(again) => outgoing = again,
                }
            }
            Some(_) => {}
            None => keeper.want(tenant),
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Error::Moved.into());
        }
        real_time(rest).await;
        rest = (rest * 2).min(LONGEST_REST);
    }
}

fn moved() -> HttpResponse {
    let mut response = ApiError::from(Error::Moved).error_response();
    response
        .headers_mut()
        .insert(HeaderName::from_static(MOVED), HeaderValue::from_static("1"));
    response
}

#[expect(clippy::disallowed_methods, reason = "the other nodes keep their own time")]
async fn real_time(time: Duration) {
    tokio::time::sleep(time).await;
}
