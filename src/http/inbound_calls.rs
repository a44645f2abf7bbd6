//! The sandbox's calls that come in, for test keys.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::Json,
    views::SessionView,
};
use crate::state::State;
use actix_web::{HttpResponse, web::Data};
use actors::inbound::{self, Arriving, Taken};
use entities::{
    ids::{InboundCallId, SessionId},
    inbound_call::InboundOutcome,
    number::Otherwise,
    session::{Sandbox, SandboxOutcome, Step},
    values::{E164, Env},
};
use rules::session::settings::check_script;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An incoming call, played by the sandbox.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundCall {
    /// One of the workspace's numbers.
    pub to_number: E164,
    /// Null: withheld.
    #[serde(default)]
    pub from_number: Option<E164>,
    /// `talk`, `opt_out`, `consent_refused`, `transfer`, `function_timeout` or `abandoned`.
    #[serde(default)]
    pub outcome: Option<SandboxOutcome>,
    /// What the caller does in the talk, step by step; at most 100.
    #[serde(default)]
    pub script: Vec<Step>,
}

#[derive(Serialize, JsonSchema)]
pub struct InboundCallView {
    pub id: InboundCallId,
    /// `answered` when an agent takes it: its `session` rings.
    pub outcome: InboundOutcome,
    /// The call, if an agent takes it.
    pub session: Option<SessionView>,
    /// What the caller gets instead.
    pub instead: Option<Otherwise>,
    /// For `play_message`.
    pub message: Option<String>,
    /// In which language that is spoken, BCP 47.
    pub language: Option<String>,
}

/// POST /v1/_sandbox/inbound_calls
pub async fn call(state: Data<State>, caller: Caller, Json(asked): Json<InboundCall>) -> ApiResult<HttpResponse> {
    if caller.env() != Env::Test {
        return Err(ApiError::forbidden(
            "the sandbox is for test keys: use a key that begins with vk_test_",
        ));
    }
    use SandboxOutcome::{Abandoned, ConsentRefused, FunctionTimeout, OptOut, Talk, Transfer};
    let plays = [Talk, OptOut, ConsentRefused, Transfer, FunctionTimeout, Abandoned];
    if asked.outcome.is_some_and(|outcome| !plays.contains(&outcome)) {
        let why = "an incoming call can be talk, opt_out, consent_refused, transfer, function_timeout or abandoned";
        return Err(ApiError::validation("outcome", why));
    }
    check_script("script", &asked.script)?;
    let id: SessionId = caller.new_id(&state.deps.ids);
    let arriving = Arriving {
        to_number: asked.to_number,
        from_number: asked.from_number,
        sandbox: Some(Sandbox {
            outcome: asked.outcome,
            script: asked.script,
        }),
    };
    let taken = inbound::receive(&state.deps, (caller.tenant_id(), caller.env()), id, arriving).await?;
    let id = InboundCallId(id.0);
    Ok(HttpResponse::Created().json(match taken {
        Taken::By(row) => InboundCallView {
            id,
            outcome: InboundOutcome::Answered,
            session: Some(SessionView::of(*row, &state.deps.base_url)),
            instead: None,
            message: None,
            language: None,
        },
        Taken::Not {
            outcome,
            instead,
            message,
        } => InboundCallView {
            id,
            outcome,
            session: None,
            instead: Some(instead),
            language: message.as_ref().map(|message| message.language.clone()),
            message: message.map(|message| message.text),
        },
    }))
}
