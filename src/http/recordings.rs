//! Recordings: what calls sounded like.
use super::{
    caller::Caller,
    console,
    error::{ApiError, ApiResult},
    extract::{Id, Params, header_text},
    peer::peer,
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    http::header,
    web::{self, Data},
};
use actors::{consent::recordings::check_proves_none, recording::studio};
use adapters::recording::vault::{self, RangeAsked};
use entities::{
    Error,
    agent::Channels,
    ids::{ApiKeyId, RecordingId, SessionId, TenantScoped},
    recording::{self as store, Filter, Model, PurgeReason, Status, Synthetic, read},
    values::Moment,
};
use futures_util::{StreamExt, stream};
use rules::{commit::Commit, recording::machine::Command};
use runtime::keyring::purpose;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub struct RecordingView {
    pub id: RecordingId,
    pub session_id: SessionId,
    pub status: Status,
    pub channels: Channels,
    /// Seconds of the talk that came before it: consent was asked first, or a machine was looked for.
    pub offset_seconds: f64,
    pub duration_seconds: Option<f64>,
    pub bytes: Option<i64>,
    /// Of the WAV file, hex.
    pub sha256: Option<String>,
    /// Whose voice the machine has in it; the file says the same, signed. Null: not stored yet, or before recordings said it.
    pub synthetic: Option<Synthetic>,
    /// Where to fetch it, with a key; null when there is nothing to hear.
    pub recording_url: Option<String>,
    /// The same, valid for five minutes without a key. Only in the answer to GET /v1/recordings/{id}.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_url: Option<String>,
    pub purge_after: Option<Moment>,
    pub purge_reason: Option<PurgeReason>,
    pub purged_at: Option<Moment>,
    /// Why there is no sound.
    pub error: Option<String>,
    /// How often it was fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    pub created_at: Moment,
}

impl RecordingView {
    fn of(row: Model, base_url: &str, now: Moment) -> Self {
        RecordingView {
            recording_url: can_be_heard(&row, now).then(|| studio::url(base_url, row.id)),
            id: row.id,
            session_id: row.session_id,
            status: row.status,
            channels: row.channels,
            offset_seconds: row.from_ms as f64 / 1000.0,
            duration_seconds: row.duration_ms.map(|ms| ms as f64 / 1000.0),
            bytes: row.bytes,
            sha256: row.sha256,
            synthetic: row.synthetic,
            download_url: None,
            purge_after: row.purge_after,
            purge_reason: row.purge_reason,
            purged_at: row.purged_at,
            error: row.error,
            reads: None,
            created_at: row.created_at,
        }
    }
}

/// One that is to be erased by now is not heard any more, even if it still lies in the vault.
fn can_be_heard(row: &Model, now: Moment) -> bool {
    matches!(row.status, Status::Completed | Status::PendingPurge) && row.purge_after.is_none_or(|at| at > now)
}

/// GET /v1/recordings
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<RecordingView>>> {
    let page = params.page()?;
    let filter = Filter {
        session_id: params.text("session_id")?,
        status: params.text("status")?,
    };
    params.finish()?;
    let listed = store::list(&state.deps.db, caller.owner(), filter, page).await?;
    Ok(web::Json(List::of(
        listed,
        |row| row.id.0,
        |row| RecordingView::of(row, &state.deps.base_url, state.deps.clock.now()),
    )))
}

/// GET /v1/sessions/{id}/recordings
pub async fn of_session(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    mut params: Params,
) -> ApiResult<web::Json<List<RecordingView>>> {
    let page = params.page()?;
    params.finish()?;
    let db = &state.deps.db;
    entities::session::load(&db.read, caller.own(id)).await?;
    let filter = Filter {
        session_id: Some(id),
        status: None,
    };
    let listed = store::list(db, caller.owner(), filter, page).await?;
    Ok(web::Json(List::of(
        listed,
        |row| row.id.0,
        |row| RecordingView::of(row, &state.deps.base_url, state.deps.clock.now()),
    )))
}

/// GET /v1/recordings/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<RecordingId>) -> ApiResult<web::Json<RecordingView>> {
    let db = &state.deps.db.read;
    let row = store::load(db, caller.own(id)).await?;
    // A link tells nobody who follows it: members hear in the console, where it is noted.
    let is_linked = caller.key().is_some() && can_be_heard(&row, state.deps.clock.now());
    let link = is_linked.then(|| signed_link(&state, row.key()));
    Ok(web::Json(RecordingView {
        download_url: link,
        reads: Some(read::count(db, id).await?),
        ..RecordingView::of(row, &state.deps.base_url, state.deps.clock.now())
    }))
}

/// DELETE /v1/recordings/{id}: what proves a consent is kept with it.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<RecordingId>) -> ApiResult<HttpResponse> {
    check_proves_none(&state.deps, caller.own(id)).await?;
    state
        .deps
        .router
        .recordings()
        .request(caller.own(id), Command::Delete)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A link without a key is good for so long.
const LINK_SECONDS: i64 = 300;

/// By the clock that shows more, so that no link is good again when the other one is set back.
fn later_seconds(state: &State) -> i64 {
    state.deps.clock.times().later().millis().div_euclid(1000)
}

fn signed_link(state: &State, key: TenantScoped<RecordingId>) -> String {
    let expires = later_seconds(state) + LINK_SECONDS;
    let url = studio::url(&state.deps.base_url, key.id);
    let secret = state.deps.links.signing(purpose::RECORDING_LINK);
    format!("{url}?expires={expires}&sig={}", proof(&secret, key, expires))
}

/// Bound to the recording, its owner and its time.
fn proof(secret: &[u8; 32], key: TenantScoped<RecordingId>, expires: i64) -> String {
    let text = format!("{}.{}.{}", key.tenant_id, key.env, key.id);
    let signature = adapters::signature::sign(&runtime::keyring::hex(secret), expires, text.as_bytes());
    signature.trim_start_matches("sha256=").to_owned()
}

/// GET /v1/recordings/{id}/audio: with a key, or by a signed link. What is wrong with a link is not told.
pub async fn audio(
    state: Data<State>,
    request: HttpRequest,
    Id(id): Id<RecordingId>,
    mut params: Params,
) -> ApiResult<HttpResponse> {
    let no_such = || ApiError::from(Error::NotFound("recording"));
    let caller = request.extensions().get::<Caller>().cloned();
    let (expires, signature) = (params.take("expires"), params.take("sig"));
    let (row, key) = match caller {
        Some(caller) => (
            store::load(&state.deps.db.read, caller.own(id)).await?,
            caller.key().map(|key| key.id),
        ),
        None => {
            let owner = store::owner_of(&state.deps.db.read, id).await?.ok_or_else(no_such)?;
            if check_link(&state, owner, expires, signature).is_none() {
                // Guessing links is guessing keys.
                state.limits.bad_link(peer(&state, &request))?;
                return Err(no_such());
            }
            (store::load(&state.deps.db.read, owner).await?, None)
        }
    };
    params.finish()?;
    if !can_be_heard(&row, state.deps.clock.now()) {
        return Err(no_such());
    }
    console::hears(&state, &request).await?;
    send(state, request, row, key).await
}

fn check_link(
    state: &State,
    owner: TenantScoped<RecordingId>,
    expires: Option<String>,
    signature: Option<String>,
) -> Option<()> {
    let expires: i64 = expires?.parse().ok()?;
    let now = later_seconds(state);
    let fresh = (now..=now + LINK_SECONDS).contains(&expires);
    let signature = signature?;
    let is_ours = state.deps.links.proving(purpose::RECORDING_LINK).any(|secret| {
        let expected = proof(&secret, owner, expires);
        subtle::ConstantTimeEq::ct_eq(expected.as_bytes(), signature.as_bytes()).into()
    });
    (fresh && is_ours).then_some(())
}

/// The sound, or the part of it that was asked for, read from the vault while it is sent.
async fn send(state: Data<State>, request: HttpRequest, row: Model, key: Option<ApiKeyId>) -> ApiResult<HttpResponse> {
    let size = row.bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    let asked = header_text(&request, "range").map_or(RangeAsked::Whole, |text| vault::range(&text, size));
    let (mut response, range) = match asked {
        RangeAsked::Unsatisfiable => {
            return Ok(HttpResponse::RangeNotSatisfiable()
                .insert_header((header::CONTENT_RANGE, format!("bytes */{size}")))
                .finish());
        }
        RangeAsked::Whole => (HttpResponse::Ok(), 0..size),
        RangeAsked::Part(range) => {
            let mut response = HttpResponse::PartialContent();
            let shown = format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
            response.insert_header((header::CONTENT_RANGE, shown));
            (response, range)
        }
    };
    response
        .content_type("audio/wav")
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((
            header::CONTENT_DISPOSITION,
            format!("inline; filename=\"{}.wav\"", row.id),
        ));
    if request.method() == actix_web::http::Method::HEAD {
        let nothing = futures_util::stream::empty::<std::io::Result<bytes::Bytes>>();
        return Ok(response.body(actix_web::body::SizedStream::new(range.end - range.start, nothing)));
    }
    let permit = state.bulkheads.download(row.tenant_id)?;
    note(&state, &row, key).await?;
    let name = studio::name(row.key());
    let length = range.end - range.start;
    let pieces: Vec<_> = vault::pieces(range).collect();
    let body = stream::iter(pieces).then(move |piece| {
        // Held until the last piece is read, or nobody wants it any more.
        let _held = &permit;
        let (state, name) = (state.clone(), name.clone());
        async move {
            state
                .deps
                .studio
                .vault
                .read(&name, piece)
                .await
                .map_err(std::io::Error::other)
        }
    });
    let sized = actix_web::body::SizedStream::new(length, Box::pin(body));
    Ok(response.body(sized))
}

/// Who has heard what, before it is heard.
async fn note(state: &State, row: &Model, api_key_id: Option<ApiKeyId>) -> ApiResult<()> {
    let mut commit = Commit::default();
    commit.changes.recording_reads.push(read::Model {
        id: state.deps.ids.next(),
        tenant_id: row.tenant_id,
        recording_id: row.id,
        api_key_id,
        at: state.deps.clock.now(),
    });
    Ok(state.deps.writer.commit(row.tenant_id.into(), commit).await?)
}
