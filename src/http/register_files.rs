//! Uploading a register's file: read as it comes in, so that it may be large. What is refused changes nothing.
//!
//! An `Idempotency-Key` is taken and not needed: the same file a second time changes nothing.
use super::{
    bodies::MIB,
    caller::Caller,
    error::{ApiError, ApiResult, Code},
    extract::{Params, announced, patience, room_for},
    registers::{Name, RegisterView},
};
use crate::state::State;
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    web::{self, BytesMut, Data},
};
use actors::registers::{
    reading::{MAX_FILE, Read, Reading},
    spool::Spool,
    upload::store,
};
use entities::{Error, tenant};
use futures_util::StreamExt;
use rules::registers::{
    known,
    version::{Change, Upload},
};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Bytes that are handed over at once to be read.
const PIECE: usize = MIB;
/// Bytes of a refused file that are still taken, so that its sender hears why; and for so long.
const MAX_DRAINED: usize = 64 * MIB;
const DRAINED_WITHIN: Duration = Duration::from_secs(30);

/// Is it the request below, whose body is too large to be held?
pub fn is_one(request: &HttpRequest) -> bool {
    request.match_pattern().as_deref() == Some("/v1/registers/{name}/files")
}

/// POST /v1/registers/{name}/files?fetched_at=&country=&allow_shrink=: 201 for a file that is new, 200 for one that is there already.
pub async fn upload(
    state: Data<State>,
    request: HttpRequest,
    caller: Caller,
    Name(name): Name,
    params: Params,
    mut payload: web::Payload,
) -> ApiResult<HttpResponse> {
    let done = receive(&state, &request, &caller, (name, params), &mut payload).await;
    match done {
        Ok((view, is_new)) => {
            let mut response = if is_new {
                HttpResponse::Created()
            } else {
                HttpResponse::Ok()
            };
            Ok(response.json(view))
        }
        Err(error) => {
            drain(payload).await;
            Err(error)
        }
    }
}

async fn receive(
    state: &State,
    request: &HttpRequest,
    caller: &Caller,
    (name, params): (String, Params),
    payload: &mut web::Payload,
) -> ApiResult<(RegisterView, bool)> {
    let (deps, registers) = (&state.deps, &state.deps.registers);
    let upload = asked(state, caller, name, params).await?;
    if !request.content_type().eq_ignore_ascii_case("text/csv") {
        return Err(ApiError::unsupported_media_type("text/csv"));
    }
    if announced(request) > MAX_FILE {
        return Err(ApiError::too_large(MAX_FILE));
    }
    let Ok(place) = registers.uploads.enter(caller.tenant_id()) else {
        let why = "another register is being uploaded; try again when it is done".into();
        return Err(ApiError::TooMany(Code::RateLimited, why, 10));
    };
    let reading = registers.begin(deps, &upload).await?;
    let read = read(request, payload, reading).await?;
    let (row, change) = store(deps, place, upload, read).await?;
    Ok((row.into(), change == Change::Replaced))
}

async fn asked(state: &State, caller: &Caller, name: String, mut params: Params) -> ApiResult<Upload> {
    let fetched_at = params.take("fetched_at").unwrap_or_default();
    let country = params.take("country");
    let area_codes = params.take("area_codes");
    let may_shrink = params.flag("allow_shrink")?;
    params.finish()?;
    if fetched_at.is_empty() {
        let why = "is required: the day on which you got the file from its maker, such as 2026-11-30";
        return Err(ApiError::validation("fetched_at", why));
    }
    let own = tenant::country(&state.deps.db.read, caller.tenant_id()).await?;
    let country = known::country(&name, country.as_deref(), own)?;
    Ok(Upload {
        id: caller.new_id(&state.deps.ids),
        owner: caller.owner(),
        area_codes: known::area_codes(area_codes.as_deref(), country)?,
        country,
        fetched_at: known::fetched_at(&fetched_at, state.deps.clock.times().later())?,
        name,
        by: Some(caller.name()),
        may_shrink,
    })
}

async fn read(
    request: &HttpRequest,
    payload: &mut web::Payload,
    mut reading: Reading<Spool>,
) -> ApiResult<Read<Spool>> {
    let mut room = room_for(request)?;
    let (begun, mut total, mut piece) = (Instant::now(), 0, BytesMut::new());
    loop {
        // One that comes too slowly holds a place that others could use.
        let chunk = timeout(patience(begun.elapsed(), total), payload.next()).await;
        let chunk = chunk.map_err(|_| ApiError::body_too_slow())?.transpose();
        let chunk = chunk.map_err(|_| ApiError::invalid_json("the body broke off before its end; send it again"))?;
        let is_last = chunk.is_none();
        if let Some(chunk) = chunk {
            total += chunk.len();
            if total > MAX_FILE {
                return Err(ApiError::too_large(MAX_FILE));
            }
            room.take(chunk.len())?;
            piece.extend_from_slice(&chunk);
        }
        if is_last || piece.len() >= PIECE {
            let bytes = piece.split().freeze();
            reading = aside(move || reading.feed(&bytes).map(|()| reading)).await?;
            room.free();
        }
        if is_last {
            return aside(move || reading.end()).await;
        }
    }
}

/// On a thread for which nobody waits.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> ApiResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| Error::Internal("a file of a register could not be read".into()))?;
    done.map_err(ApiError::from)
}

/// Reads on after a refusal, within limits: who is still sending hears no answer.
async fn drain(mut payload: web::Payload) {
    let (begun, mut drained) = (Instant::now(), 0);
    while drained < MAX_DRAINED
        && let Ok(Some(Ok(chunk))) = timeout(DRAINED_WITHIN.saturating_sub(begun.elapsed()), payload.next()).await
    {
        drained += chunk.len();
    }
}
