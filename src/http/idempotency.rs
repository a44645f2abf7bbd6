//! `Idempotency-Key`: the same POST twice has one effect and one answer. Kept 24 hours per tenant and env; survives a restart.
//!
//! The key is claimed by a row before the request runs. The row also holds the id that the request's object will have, so
//! that a request which a crash cut off between effect and answer finds its object instead of making a second one.
use super::{
    bodies::MIB,
    caller::Caller,
    error::{ApiError, ApiResult, Code, NotKept},
    extract,
    in_flight::Running,
    register_files,
    voices::{Fingerprint, Form},
};
use crate::state::State;
use actix_web::{
    Error as ActixError, HttpMessage, HttpRequest, HttpResponse, ResponseError,
    body::{self, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{StatusCode, header},
    middleware::Next,
};
use actors::deps::Deps;
use entities::idempotency::{self as store, Model as Claim};
use rules::commit::Commit;
use runtime::keyring::{hex, purpose};
use sha2::{Digest, Sha256};

/// Ends the entry however the request ends.
struct Entered {
    running: Running,
    name: String,
    deps: Deps,
    answered: bool,
}

impl Entered {
    /// `None`: a request with that key is running.
    fn enter(state: &State, name: String) -> Option<Self> {
        state.running.lock().insert(name.clone()).then(|| Entered {
            running: state.running.clone(),
            name,
            deps: state.deps.clone(),
            answered: false,
        })
    }

    fn answer<T>(mut self, answer: T) -> T {
        self.answered = true;
        answer
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let (running, name) = (self.running.clone(), std::mem::take(&mut self.name));
        if self.answered {
            running.lock().remove(&name);
            return;
        }
        // Its client has left, or it took too long: what it has handed in may still be written. The writer is first in, first
        // out, so a repeat that begins after this finds what became of it.
        let deps = self.deps.clone();
        self.deps.runtime.spawn(async move {
            let _busy = deps.clock.busy();
            if let Err(error) = deps.writer.commit_nothing().await {
                tracing::warn!(%error, "the outcome of an abandoned request is not known");
            }
            running.lock().remove(&name);
        });
    }
}

/// More than any answer to a POST has.
const LARGEST_ANSWER: usize = 64 * MIB;

/// What a request shows, if it does.
pub fn key_of(request: &HttpRequest) -> ApiResult<Option<String>> {
    let mut given = request.headers().get_all("idempotency-key");
    let (first, second) = (given.next(), given.next());
    let readable = first.map(|value| value.to_str().map(str::to_owned)).transpose();
    match (readable, second) {
        (Ok(key), None) => Ok(key),
        _ => Err(ApiError::validation(
            "Idempotency-Key",
            "must be given once, in visible ASCII characters",
        )),
    }
}

/// The largest body that any POST takes.
pub const LARGEST: usize = 10 * MIB;

pub async fn once(
    state: &State,
    caller: Caller,
    key: String,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    if key.is_empty() || key.len() > 255 {
        let error = ApiError::validation("Idempotency-Key", "must have 1 to 255 characters");
        return Ok(request.into_response(error.error_response()));
    }
    if register_files::is_one(request.request()) {
        // Too large to be held, and the same file a second time changes nothing.
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    if Form::is_one(request.request()) {
        return once_streamed(state, caller, key, request, next).await;
    }
    let mut payload = request.take_payload();
    let body = match extract::read(request.request(), &mut payload, LARGEST).await {
        Ok(body) => body.freeze(),
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    let fingerprint = {
        let mut hash = Sha256::new();
        hash.update(request.method().as_str());
        hash.update(request.path());
        hash.update([0]);
        hash.update(&body);
        hex(&hash.finalize())
    };
    request.set_payload(Payload::from(body));

    let name = format!("{}/{}/{key}", caller.tenant_id(), caller.env());
    let Some(entered) = Entered::enter(state, name) else {
        return Ok(request.into_response(in_progress().error_response()));
    };
    entered.answer(once_entered(state, caller, (key, fingerprint), request, next).await)
}

async fn once_entered(
    state: &State,
    caller: Caller,
    (key, fingerprint): (String, String),
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let claim = match begin(state, &request, caller, (key, fingerprint)).await {
        Ok(claim) => claim,
        Err(answer) => return Ok(request.into_response(answer)),
    };
    let response = next.call(request).await?.map_into_boxed_body();
    remember(state, claim, response, true).await
}

fn replayed(status: StatusCode, body: String) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header(("Idempotent-Replayed", "true"))
        .content_type("application/json")
        .body(body)
}

/// The same for a form, which is too large to be held: what was sent is known only when it was read, so a repeat is read to
/// its end before it is compared. One that was refused before its end changed nothing and gives the key back.
async fn once_streamed(
    state: &State,
    caller: Caller,
    key: String,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let name = format!("{}/{}/{key}", caller.tenant_id(), caller.env());
    let Some(entered) = Entered::enter(state, name) else {
        return Ok(request.into_response(in_progress().error_response()));
    };
    entered.answer(form_entered(state, (caller, key), request, next).await)
}

async fn form_entered(
    state: &State,
    (caller, key): (Caller, String),
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let found = Fingerprint::default();
    request.extensions_mut().insert(found.clone());
    let known = match store::find(&state.deps.db.read, caller.tenant_id(), caller.env(), &key).await {
        Ok(known) => known.filter(|known| known.status.is_some()),
        Err(error) => return Ok(request.into_response(ApiError::from(error).error_response())),
    };
    let mut fingerprint = format!("form:{} {}", request.method(), request.path());
    if known.is_some() {
        let payload = request.take_payload();
        let read = match Form::new(request.request(), payload) {
            Ok(form) => form.skip().await,
            Err(error) => Err(error),
        };
        if let Err(error) = read {
            return Ok(request.into_response(error.error_response()));
        }
        fingerprint = found.get().unwrap_or_default();
    }
    let mut claim = match begin(state, &request, caller, (key, fingerprint)).await {
        Ok(claim) => claim,
        Err(answer) => return Ok(request.into_response(answer)),
    };
    let response = next.call(request).await?.map_into_boxed_body();
    let whole = found.get();
    let keep = whole.is_some();
    claim.fingerprint = whole.unwrap_or(claim.fingerprint);
    remember(state, claim, response, keep).await
}

/// Claims the key, and tells the request which id its object has; else the answer that is given without running it.
async fn begin(
    state: &State,
    request: &ServiceRequest,
    mut caller: Caller,
    (key, fingerprint): (String, String),
) -> Result<Claim, HttpResponse> {
    let claim = match claim(state, &caller, key, fingerprint).await {
        Ok(Claimed::New(claim)) => claim,
        Ok(Claimed::Answered(status, body)) => return Err(replayed(status, body)),
        Err(error) => return Err(error.error_response()),
    };
    caller.object_id = Some(claim.object_id);
    request.extensions_mut().insert(caller);
    Ok(claim)
}

enum Claimed {
    New(Claim),
    Answered(StatusCode, String),
}

async fn claim(state: &State, caller: &Caller, key: String, fingerprint: String) -> Result<Claimed, ApiError> {
    let known = store::find(&state.deps.db.read, caller.tenant_id(), caller.env(), &key).await?;
    let Some(known) = known else {
        let claim = Claim {
            tenant_id: caller.tenant_id(),
            env: caller.env(),
            key,
            fingerprint,
            object_id: state.deps.ids.next(),
            status: None,
            sealed_body: None,
            created_at: state.deps.clock.now(),
        };
        let row = claim.clone();
        let claimed = state.deps.writer.run(row.tenant_id, move |db| {
            let row = row.clone();
            Box::pin(async move { Ok((store::claim(db, &row).await?, Commit::default())) })
        });
        return if claimed.await? {
            Ok(Claimed::New(claim))
        } else {
            Err(in_progress())
        };
    };
    if known.fingerprint != fingerprint {
        let message = "this Idempotency-Key was used with another request; use a new one".into();
        return Err(ApiError::Frame(
            Code::IdempotencyKeyReused,
            message,
            Some("Idempotency-Key".into()),
        ));
    }
    match (known.status, &known.sealed_body) {
        (Some(status), Some(sealed)) => {
            let body = state.deps.keyring.open(purpose::IDEMPOTENT_ANSWER, sealed)?;
            let status = u16::try_from(status)
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok())
                .unwrap_or(StatusCode::OK);
            Ok(Claimed::Answered(status, body.to_string()))
        }
        // A crash cut the first request off: it runs again, with the same object id.
        _ => Ok(Claimed::New(known)),
    }
}

/// Stores the answer. A 429, and what says of itself that it is [`NotKept`], changed nothing and gives the key back. After a 5xx it is not known what stands: the claim stays
/// open, and a repeat runs again with the same object id.
async fn remember(
    state: &State,
    claim: Claim,
    response: ServiceResponse<BoxBody>,
    keep: bool,
) -> Result<ServiceResponse<BoxBody>, ActixError> {
    let status = response.status();
    let (request, response) = response.into_parts();
    let (head, body) = response.into_parts();
    let is_json = head
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|value| value.as_bytes().starts_with(b"application/json"));
    let bytes = match body::to_bytes_limited(body, LARGEST_ANSWER).await {
        Ok(Ok(bytes)) => bytes,
        _ => {
            return Ok(ServiceResponse::new(
                request,
                ApiError::from(entities::Error::Internal("an answer was too large to keep".into())).error_response(),
            ));
        }
    };
    // A sound changed nothing either, and is made anew.
    let is_passing = head.extensions().contains::<NotKept>();
    let release = status == StatusCode::TOO_MANY_REQUESTS || is_passing || !keep || !is_json;
    if status.is_server_error() {
        return Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(bytes))));
    }
    let sealed = state
        .deps
        .keyring
        .seal(purpose::IDEMPOTENT_ANSWER, &String::from_utf8_lossy(&bytes));
    let stored = state.deps.writer.run(claim.tenant_id, move |db| {
        let (claim, sealed) = (claim.clone(), sealed.clone());
        Box::pin(async move {
            if release {
                store::release(db, &claim).await?;
            } else {
                store::answer(db, &claim, status.as_u16(), sealed).await?;
            }
            Ok(((), Commit::default()))
        })
    });
    if let Err(error) = stored.await {
        // The effect stands and the object's id is in the claim: a repeat finds it.
        tracing::warn!(%error, "an idempotent answer could not be stored");
    }
    Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(bytes))))
}

fn in_progress() -> ApiError {
    let message = "a request with this Idempotency-Key is still running; try again shortly".into();
    ApiError::Frame(Code::IdempotencyInProgress, message, None)
}
