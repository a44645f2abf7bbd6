//! What a SIP trunk's peer says when it is asked.
use super::{
    caller::Caller,
    error::ApiResult,
    extract::{Id, Nothing},
};
use crate::state::State;
use actix_web::web::{self, Data};
use adapters::trunk::{
    advice,
    peering::Peering,
    ping::{self, Pong},
    registrar,
};
use entities::{
    ids::TrunkId,
    sip_trunk::{self as store, Status},
};
use rules::{commit::Commit, delivery::failure::Failure};
use schemars::JsonSchema;
use serde::Serialize;

/// How a test went.
#[derive(Serialize, JsonSchema)]
pub struct TrunkTestView {
    /// Did the peer answer in SIP? Any answer counts: 401, 404, 405 and 503 come from a peer that is there.
    pub reachable: bool,
    /// Its SIP status, 100 to 699; null: no answer.
    pub status_code: Option<u16>,
    /// In the peer's words, at most 100 characters.
    pub reason: Option<String>,
    /// Milliseconds from the request to the answer.
    pub rtt_ms: Option<u64>,
    /// Why there was no answer.
    pub error: Option<TrunkTestError>,
    /// What to do about it, if there is something to do.
    pub advice: Option<&'static str>,
    /// What was said to a REGISTER that asks which bindings there are and changes none; null: the trunk does not register.
    pub register: Option<TrunkRegisterTestView>,
}

#[derive(Serialize, JsonSchema)]
pub struct TrunkRegisterTestView {
    /// Does the registrar take us for who we say we are?
    pub accepted: bool,
    /// Its last word, 100 to 699; null: no answer.
    pub status_code: Option<u16>,
    /// In the peer's words, at most 100 characters.
    pub reason: Option<String>,
    /// Why there was no answer.
    pub error: Option<TrunkTestError>,
    /// What to do about it.
    pub advice: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub struct TrunkTestError {
    /// `blocked_target`, `dns_failed`, `connect_failed`, `tls_failed`, `timeout` or `bad_answer`.
    pub code: &'static str,
    pub message: String,
}

/// POST /v1/sip_trunks/{id}/test: one OPTIONS request, and if the trunk registers a REGISTER that changes nothing, over the trunk's own
/// transport.
pub async fn test(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<TrunkId>,
    _: Nothing,
) -> ApiResult<web::Json<TrunkTestView>> {
    let deps = &state.deps;
    let trunk = store::load(&deps.db.read, caller.tenant_id(), id).await?;
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    state.limits.trunk_test(&caller)?;
    let peering = Peering::of(&trunk);
    let credentials = peering.credentials(&deps.keyring)?;
    let has_password = credentials.is_some();
    deps.pass(trunk.tenant_id).await?;
    let registering = async {
        match peering.register.enabled {
            true => Some(registrar::ask(&deps.outbound, &peering, credentials).await.outcome),
            false => None,
        }
    };
    let pinging = ping::ping(&deps.outbound, &peering);
    let (pinged, registered) = futures_util::future::join(pinging, registering).await;
    let outcome = pinged.outcome;
    let (status, at) = match outcome {
        Ok(_) => (Status::Reachable, deps.clock.now()),
        Err(_) => (Status::Unreachable, deps.clock.now()),
    };
    let noting = deps.writer.run(trunk.tenant_id, move |db| {
        let trunk = trunk.clone();
        Box::pin(async move {
            store::tested(db, &trunk, status, at).await?;
            Ok(((), Commit::default()))
        })
    });
    noting.await?;
    Ok(web::Json(TrunkTestView::of(outcome, registered, has_password)))
}

impl TrunkTestView {
    fn of(
        outcome: Result<Pong, Failure>,
        registered: Option<Result<Pong, Failure>>,
        has_password: bool,
    ) -> TrunkTestView {
        let register = registered.map(|outcome| TrunkRegisterTestView::of(outcome, has_password));
        match outcome {
            Ok(pong) => TrunkTestView {
                reachable: true,
                status_code: Some(pong.status),
                advice: advice::of_options(pong.status),
                reason: Some(pong.reason),
                rtt_ms: Some(u64::try_from(pong.took.as_millis()).unwrap_or(u64::MAX)),
                error: None,
                register,
            },
            Err(failure) => TrunkTestView {
                reachable: false,
                status_code: None,
                reason: None,
                rtt_ms: None,
                error: Some(TrunkTestError::of(&failure)),
                advice: Some(advice::of_failure(&failure)),
                register,
            },
        }
    }
}

impl TrunkRegisterTestView {
    fn of(outcome: Result<Pong, Failure>, has_password: bool) -> Self {
        match outcome {
            Ok(pong) => TrunkRegisterTestView {
                accepted: (200..300).contains(&pong.status),
                status_code: Some(pong.status),
                advice: advice::of_registrar(pong.status, has_password),
                reason: Some(pong.reason),
                error: None,
            },
            Err(failure) => TrunkRegisterTestView {
                accepted: false,
                status_code: None,
                reason: None,
                error: Some(TrunkTestError::of(&failure)),
                advice: Some(advice::of_failure(&failure)),
            },
        }
    }
}

impl TrunkTestError {
    fn of(failure: &Failure) -> Self {
        TrunkTestError {
            code: failure.code(),
            message: ping::words(failure),
        }
    }
}
