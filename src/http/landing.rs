//! What stands behind a room's link: the page, and what its script asks for. The link is the proof; whatever is wrong with one
//! is not told.
use super::{
    error::{ApiError, ApiResult},
    extract::{self, Params, header_text},
    peer::peer,
    rooms,
};
use crate::{
    dashboard::room::{self as pages, View},
    state::State,
};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, LOCATION},
    web::{Data, Path, Payload},
};
use actors::room::{
    join::{self, Joining},
    link,
};
use entities::{
    Error, agent_version,
    ids::{ParticipantId, RoomId},
    room::{self, ErrorCode, Model, Status},
    session::{self, EndedBy},
};
use rules::{room::machine::Command, session::command::Command as SessionCommand};

/// A session description of a browser has 2 to 8 KiB.
const MAX_SDP: usize = 64 * 1024;
const SDP: &str = "application/sdp";

/// GET /r/{id}
pub async fn page(
    state: Data<State>,
    request: HttpRequest,
    id: Path<String>,
    params: ApiResult<Params>,
) -> ApiResult<HttpResponse> {
    let row = match behind(&state, &request, &id, params).await {
        Ok((row, _)) => row,
        Err(ApiError::Service(Error::NotFound(_))) => return Ok(pages::gone()),
        Err(error) => return Err(error),
    };
    let db = &state.deps.db.read;
    let call = session::load(db, row.session()).await?;
    let version = agent_version::load(db, row.tenant_id, call.agent_id, call.agent_version).await?;
    let now = state.deps.clock.unix_seconds();
    let view = View {
        recorded: call.options.recording.is_some(),
        ice_servers: &state.settings.ice_servers(now),
    };
    Ok(pages::page(&version.definition.name, &view))
}

/// POST /r/{id}/viewed: by the page's own script. A second time changes nothing.
pub async fn viewed(
    state: Data<State>,
    request: HttpRequest,
    id: Path<String>,
    params: ApiResult<Params>,
) -> ApiResult<HttpResponse> {
    let (row, _) = behind(&state, &request, &id, params).await?;
    state.deps.router.rooms().request(row.key(), Command::View).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST /r/{id}/whip: joins with a session description; with `participant`, comes back after a reload.
pub async fn join(
    state: Data<State>,
    request: HttpRequest,
    id: Path<String>,
    params: ApiResult<Params>,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let (row, again_as) = behind(&state, &request, &id, params).await?;
    let kind = header_text(&request, "content-type").unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some(SDP) {
        return Err(ApiError::unsupported_media_type(SDP));
    }
    state.limits.join(row.id)?;
    let body = extract::read(&request, &mut payload.into_inner(), MAX_SDP).await?;
    let sdp = std::str::from_utf8(&body).map_err(|_| ApiError::validation("sdp", "is not UTF-8 text"))?;
    let Joining { participant, answer } = join::join(&state.deps, &row, again_as, sdp).await?;
    Ok(HttpResponse::Created()
        .insert_header((LOCATION, format!("/r/{}/whip/{participant}", row.id)))
        .insert_header((CACHE_CONTROL, "no-store"))
        .content_type(SDP)
        .body(answer))
}

/// DELETE /r/{id}/whip/{participant_id}: the participant hangs up. A second time changes nothing.
pub async fn leave(
    state: Data<State>,
    request: HttpRequest,
    path: Path<(String, String)>,
    params: ApiResult<Params>,
) -> ApiResult<HttpResponse> {
    let (id, participant) = path.into_inner();
    let (row, _) = behind(&state, &request, &id, params).await?;
    let is_in_it = row.participant_id.is_some_and(|known| known.to_string() == participant);
    if !is_in_it {
        return Err(Error::NotFound("room").into());
    }
    // Who has joined is the session's: only one that was not connected yet fails.
    let command = Command::Fail {
        code: ErrorCode::IceFailed,
        message: "the participant left before the browser and the agent were connected".into(),
    };
    let room = state.deps.router.rooms().request(row.key(), command).await?;
    if room.status() == Status::Joined {
        rooms::hang_up(&state, &row, SessionCommand::HangUp(EndedBy::Caller)).await?;
    }
    Ok(HttpResponse::NoContent().finish())
}

/// The open room behind a good link, and who comes back. One answer for everything else: forged, expired, over.
async fn behind(
    state: &State,
    request: &HttpRequest,
    id: &str,
    params: ApiResult<Params>,
) -> ApiResult<(Model, Option<ParticipantId>)> {
    // What cannot be read proves nothing.
    let (signature, again_as) = match params {
        Ok(mut params) => (params.take("sig").unwrap_or_default(), params.take("participant")),
        Err(_) => Default::default(),
    };
    let id: Option<RoomId> = id.parse().ok();
    let proved = id.and_then(|id| Some((id, link::open(&state.deps.links, id, &signature)?)));
    let Some((id, proved)) = proved else {
        // Guessing links is guessing keys.
        state.limits.bad_link(peer(state, request))?;
        return Err(Error::NotFound("room").into());
    };
    let found = room::behind_link(&state.deps.db.read, id).await?;
    let now = state.deps.clock.times().later();
    let is_good = |row: &Model| {
        row.nonce == proved.nonce
            && row.ended_at.is_none()
            // Who has joined may come back.
            && (row.status == Status::Joined || now < proved.expires_at)
    };
    let row = found.filter(is_good).ok_or(Error::NotFound("room"))?;
    Ok((row, again_as.and_then(|id| id.parse().ok())))
}
