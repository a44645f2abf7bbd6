//! Whose node answers a request: that of the workspace of its key, its path or its link. What belongs to no workspace and may change
//! something is answered by the node that has the installation's own lease; what changes nothing, by any.
use crate::{
    access,
    http::{caller::Access, console, error::ApiResult, extract::header_text},
    state::State,
};
use actix_web::HttpRequest;
use actors::room::link as room_link;
use adapters::email::link as email_link;
use entities::{
    Error, Result, api_key, email_message,
    ids::{RecordingId, RoomId, SmsId, TenantId},
    login, recording, room, sms_message, tenant,
    workspace_lease::INSTALLATION,
};
use runtime::keyring::sha256_hex;
use url::form_urlencoded;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// It makes no difference.
    Anywhere,
    /// The node that has this workspace, or the installation.
    Of(TenantId),
    /// The same, for somebody who has shown a key of the workspace.
    OfKey(TenantId),
}

impl From<Option<TenantId>> for Home {
    /// What is not there is told so by whoever is asked.
    fn from(tenant: Option<TenantId>) -> Self {
        tenant.map_or(Home::Anywhere, Home::Of)
    }
}

pub async fn of(state: &State, request: &HttpRequest, access: Access) -> ApiResult<Home> {
    // Who is not signed in, and a key that is no longer valid, is told so here: nothing is handed on for strangers.
    let is_signed_in = match access {
        Access::SignedIn | Access::Member(_) | Access::Fresh(_) => is_signed_in(state, request).await?,
        _ if console::place_of(request).is_some() => is_signed_in(state, request).await?,
        _ => false,
    };
    if let Some(place) = console::place_of(request) {
        return Ok(match is_signed_in {
            true => of_slug(state, place.slug()).await?,
            false => Home::Anywhere,
        });
    }
    Ok(match access {
        Access::NeedsOrLink(_) if request.query_string().contains("sig=") => of_recording(state, request).await?,
        Access::AnyKey | Access::Needs(_) | Access::NeedsFresh(_) | Access::NeedsOrLink(_) => {
            of_key(state, request).await?
        }
        Access::SignedIn | Access::Member(_) | Access::Fresh(_) if !is_signed_in => Home::Anywhere,
        Access::SignedIn => Home::Of(INSTALLATION),
        Access::Member(_) | Access::Fresh(_) => {
            of_slug(state, request.match_info().get("slug").unwrap_or_default()).await?
        }
        Access::Public => of_public(state, request).await?,
        // What it asks finds its own way.
        Access::Relayed => Home::Anywhere,
    })
}

async fn is_signed_in(state: &State, request: &HttpRequest) -> Result<bool> {
    let Some(cookie) = request.cookie(state.cookie_name()) else {
        return Ok(false);
    };
    let hash = sha256_hex(cookie.value().as_bytes());
    Ok(login::find(&state.deps.db.read, &hash).await?.is_some())
}

async fn of_key(state: &State, request: &HttpRequest) -> Result<Home> {
    let header = header_text(request, "authorization").unwrap_or_default();
    let Some((_, key)) = header.split_once(' ') else {
        return Ok(Home::Anywhere);
    };
    let key = key.trim();
    if !access::looks_like_a_key(key) {
        return Ok(Home::Anywhere);
    }
    let found = api_key::by_hash(&state.deps.db.read, &sha256_hex(key.as_bytes())).await?;
    let valid = found.filter(|row| access::is_valid(row, state.deps.clock.times().later()));
    Ok(valid.map_or(Home::Anywhere, |row| Home::OfKey(row.tenant_id)))
}

async fn of_slug(state: &State, slug: &str) -> Result<Home> {
    match tenant::by_slug(&state.deps.db.read, slug).await {
        Ok(tenant) => Ok(Home::Of(tenant.id)),
        Err(Error::NotFound(_)) => Ok(Home::Anywhere),
        Err(error) => Err(error),
    }
}

async fn of_recording(state: &State, request: &HttpRequest) -> Result<Home> {
    let Some(id) = id_in::<RecordingId>(request, "id") else {
        return Ok(Home::Anywhere);
    };
    let found = recording::owner_of(&state.deps.db.read, id).await?;
    Ok(found.map(|key| key.tenant_id).into())
}

/// By the way of the route. What names its workspace in its body finds its node there: the notices of the processor and of the SMS
/// provider.
async fn of_public(state: &State, request: &HttpRequest) -> Result<Home> {
    let db = &state.deps.db.read;
    Ok(match request.match_pattern().as_deref().unwrap_or_default() {
        "/r/{id}" | "/r/{id}/viewed" | "/r/{id}/whip" | "/r/{id}/whip/{participant_id}" => {
            let signature = form_urlencoded::parse(request.query_string().as_bytes()).find(|(name, _)| name == "sig");
            let id = id_in::<RoomId>(request, "id");
            // A link that was not made by us is not looked up.
            let proved = id
                .zip(signature)
                .filter(|(id, (_, signature))| room_link::open(&state.deps.links, *id, signature).is_some());
            match proved {
                Some((id, _)) => room::behind_link(db, id).await?.map(|room| room.tenant_id).into(),
                None => Home::Anywhere,
            }
        }
        "/v1/_internal/twilio/status/{message_id}" if !request.headers().contains_key("x-twilio-signature") => {
            Home::Anywhere
        }
        "/v1/_internal/twilio/status/{message_id}" => match id_in::<SmsId>(request, "message_id") {
            Some(id) => sms_message::owner_of(db, id).await?.map(|key| key.tenant_id).into(),
            None => Home::Anywhere,
        },
        "/u/{token}" => {
            let token = request.match_info().get("token").unwrap_or_default();
            match email_link::open(&state.deps.links, token) {
                Some(id) => email_message::behind_link(db, id)
                    .await?
                    .map(|row| row.tenant_id)
                    .into(),
                None => Home::Anywhere,
            }
        }
        "/v1/_internal/signup"
        | "/v1/_internal/login"
        | "/v1/_internal/password-reset"
        | "/v1/_internal/password-reset/confirm"
        | "/v1/_internal/invitations/accept" => Home::Of(INSTALLATION),
        _ => Home::Anywhere,
    })
}

fn id_in<I: std::str::FromStr>(request: &HttpRequest, name: &str) -> Option<I> {
    request.match_info().get(name)?.parse().ok()
}
