//! Sessions: calls, placed one by one.
use super::{
    error::{ApiError, ApiResult},
    extract::{Id, Json, Nothing, Params},
    gate::Caller,
    views::{List, SessionView, TranscriptView},
};
use crate::app::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::session::{
    intake::{self, IfClosed},
    machine::Command,
};
use entities::{
    Error, agent,
    ids::{AgentId, SessionId},
    session::{self as store, Filter, Model, Phase, Status},
    transcript,
    values::{Bounded, Cents, E164, Env, Metadata, Moment, Text, Variables, Zone},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    pub to_number: E164,
    pub agent_id: AgentId,
    #[serde(default)]
    pub from_number: Option<E164>,
    /// Overrides the agent's voice.
    #[serde(default)]
    pub voice_id: Option<Text<1, 100>>,
    #[serde(default)]
    pub contact: Person,
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    /// Echoed in the session's last event.
    #[serde(default)]
    pub client_reference_id: Option<Text<1, 200>>,
    #[serde(default, deserialize_with = "Metadata::limited")]
    pub metadata: Metadata,
    /// Not dialled before this; at most 90 days ahead.
    #[serde(default)]
    pub scheduled_at: Option<Moment>,
    /// What becomes of it outside the calling hours.
    #[serde(default)]
    pub if_closed: IfClosed,
    /// How long to wait for a free slot; 0 refuses with 429 when none is free.
    #[serde(default = "five_minutes")]
    pub queue_ttl_seconds: Bounded<0, 86_400>,
    #[serde(default = "half_a_minute")]
    pub ring_timeout_seconds: Bounded<15, 60>,
    /// At most the agent's.
    #[serde(default)]
    pub max_duration_seconds: Option<Bounded<30, 7200>>,
}
fn five_minutes() -> Bounded<0, 86_400> {
    Bounded::new(300).unwrap_or_else(|_| unreachable!("a constant"))
}
fn half_a_minute() -> Bounded<15, 60> {
    Bounded::new(30).unwrap_or_else(|_| unreachable!("a constant"))
}

/// Who is called.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    #[serde(default)]
    pub email: Option<Text<1, 254>>,
    #[serde(default)]
    pub first_name: Option<Text<1, 200>>,
    #[serde(default)]
    pub last_name: Option<Text<1, 200>>,
    /// Where the person is, if you know better than the number's prefix.
    #[serde(default)]
    pub timezone: Option<Zone>,
}

/// A call can be scheduled so far ahead.
const FURTHEST_SECONDS: i64 = 90 * 24 * 3600;

/// POST /v1/sessions
pub async fn create(state: Data<State>, caller: Caller, Json(asked): Json<Create>) -> ApiResult<HttpResponse> {
    let deps = &state.deps;
    let agent = match agent::load(&deps.db.read, caller.tenant_id(), asked.agent_id).await {
        Err(Error::NotFound(_)) => return Err(ApiError::validation("agent_id", "is no agent of this workspace")),
        found => found?,
    };
    check_carrier(&state, caller.env())?;
    let now = deps.clock.now();
    if asked
        .scheduled_at
        .is_some_and(|at| at > now.plus_seconds(FURTHEST_SECONDS))
    {
        return Err(ApiError::validation("scheduled_at", "is more than 90 days ahead"));
    }
    let definition = &agent.definition;
    let max_duration_seconds = asked
        .max_duration_seconds
        .map_or(definition.max_duration_seconds.get(), |max| max.get());
    let row = Model {
        id: caller.new_id(&state),
        tenant_id: caller.tenant_id(),
        env: caller.env(),
        status: Status::Queued,
        phase: Phase::Queued,
        end_reason: None,
        ended_by: None,
        answered_by: None,
        agent_id: agent.id,
        agent_version: agent.version,
        voice_id: asked
            .voice_id
            .as_ref()
            .or(definition.voice_id.as_ref())
            .map(|voice| voice.to_string()),
        from_number: asked.from_number,
        to_number: asked.to_number,
        email: asked.contact.email.map(Text::into_string),
        first_name: asked.contact.first_name.map(Text::into_string),
        last_name: asked.contact.last_name.map(Text::into_string),
        client_reference_id: asked.client_reference_id.map(Text::into_string),
        campaign_id: None,
        contact_id: None,
        attempt: 1,
        variables: asked.variables,
        metadata: asked.metadata,
        ring_timeout_seconds: asked.ring_timeout_seconds.get(),
        max_duration_seconds: max_duration_seconds.min(definition.max_duration_seconds.get()),
        scheduled_at: asked.scheduled_at,
        queue_ttl_seconds: asked.queue_ttl_seconds.get(),
        timezone: asked.contact.timezone,
        price_cents_per_minute: deps.limits.call_price_cents_per_minute,
        queued_until: None,
        dialed_at: None,
        started_at: None,
        ended_at: None,
        duration_seconds: 0,
        actual_cost_cents: Cents(0),
        error_code: None,
        error_message: None,
        version: 1,
        created_at: now,
    };
    let row = intake::check(deps, row, asked.if_closed).await?;
    intake::check_room(deps, &row).await?;
    let row = intake::create(deps, row, now).await?;
    Ok(HttpResponse::Created().json(SessionView::of(row, &deps.base_url)))
}

/// Live calls need a carrier that the operator has configured.
pub fn check_carrier(state: &State, env: Env) -> ApiResult<()> {
    match state.deps.carriers.of(env) {
        Some(_) => Ok(()),
        None => Err(Error::NotConfigured(
            "no carrier is configured for live calls; use a test key for sandbox calls".into(),
        )
        .into()),
    }
}

/// GET /v1/sessions
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<SessionView>>> {
    let page = params.page()?;
    let filter = Filter {
        status: params.text("status")?,
        campaign_id: params.text("campaign_id")?,
        contact_id: params.text("contact_id")?,
    };
    params.finish()?;
    let sessions = store::list(&state.deps.db.read, caller.tenant_id(), caller.env(), filter, page).await?;
    Ok(web::Json(List::of(
        sessions,
        |session| session.id.0,
        |session| SessionView::of(session, &state.deps.base_url),
    )))
}

/// GET /v1/sessions/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<SessionId>) -> ApiResult<web::Json<SessionView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    Ok(web::Json(SessionView::of(row, &state.deps.base_url)))
}

/// POST /v1/sessions/{id}/end
pub async fn end(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
    _: Nothing,
) -> ApiResult<web::Json<SessionView>> {
    let tree = state.tree()?;
    let session = tree
        .ask(&tree.sessions, &state.deps, caller.own(id), Command::End)
        .await?;
    Ok(web::Json(SessionView::of(session.row(), &state.deps.base_url)))
}

/// GET /v1/sessions/{id}/transcript.json
pub async fn transcript(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<SessionId>,
) -> ApiResult<web::Json<TranscriptView>> {
    let deps = &state.deps;
    let row = store::load(&deps.db.read, caller.own(id)).await?;
    let agent = agent::load_even_deleted(&deps.db.read, caller.tenant_id(), row.agent_id).await?;
    let tree = state.tree()?;
    let (state_word, turns) = if row.phase == Phase::Ended {
        ("final", transcript::load(&deps.db.read, id).await?.0)
    } else {
        // What is being said is with the actor; a `Tick` changes nothing and answers the state.
        let session = tree.ask(&tree.sessions, deps, caller.own(id), Command::Tick).await?;
        if session.is_live() {
            ("partial", session.turns)
        } else {
            ("final", transcript::load(&deps.db.read, id).await?.0)
        }
    };
    Ok(web::Json(TranscriptView {
        session_id: id,
        state: state_word,
        language: agent.definition.language,
        turns,
    }))
}
