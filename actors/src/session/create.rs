//! A direct call is made: whoever asked for it, it is checked, and waits for its slot.
use super::{
    caller_id,
    intake::{self, IfClosed},
};
use crate::{
    birth::{self, Birth},
    call::voice,
    deps::Deps,
    traces::RequestTrace,
};
use entities::{
    Error, Result, agent, api_key, boxed,
    ids::{AgentId, SessionId, TenantId, TenantScoped},
    law::{Legal, LegalPerson, SandboxLaw},
    session::{self as store, CallLegal, Model, Options, Sandbox, Voicemail},
    values::{E164, Env, Metadata, Moment, Variables, Zone},
};
use rules::session::{
    machine::Session,
    settings::{self, CallOverrides, RecordingOverride},
};

/// A call that is asked for.
#[derive(Clone, Debug)]
pub struct New {
    /// The one that a repeat of the same request asks for again; `None`: nobody repeats it.
    pub id: Option<SessionId>,
    pub to_number: E164,
    pub agent_id: AgentId,
    /// Else the workspace's default.
    pub from_number: Option<E164>,
    /// Else the agent's, else the language's.
    pub voice_id: Option<String>,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub timezone: Option<Zone>,
    pub variables: Variables,
    pub client_reference_id: Option<String>,
    pub metadata: Metadata,
    pub scheduled_at: Option<Moment>,
    pub if_closed: IfClosed,
    pub queue_ttl_seconds: i32,
    pub ring_timeout_seconds: i32,
    /// At most the agent's.
    pub max_duration_seconds: Option<i32>,
    pub voicemail: Voicemail,
    pub legal: Legal,
    pub person: LegalPerson,
    /// With a test key: does the law bind it?
    pub sandbox_law: SandboxLaw,
    pub recording: RecordingOverride,
    pub sandbox: Option<Sandbox>,
    /// Who asks, if its limits count.
    pub api_key: Option<api_key::Model>,
    /// The span of the request, if requests are traced.
    pub trace: Option<RequestTrace>,
}

/// A call can be scheduled so far ahead.
const FURTHEST_SECONDS: i64 = 90 * 24 * 3600;

/// Makes it; its actor and the dispatcher see to the rest. Errors: the first thing that keeps it from being placed.
#[boxed]
pub async fn create(deps: &Deps, (tenant, env): (TenantId, Env), new: New) -> Result<Model> {
    // A repeat of a request whose answer was lost: its own call must not count against it.
    if let Some(id) = new.id
        && let Ok(row) = store::load(&deps.db.read, TenantScoped::new(tenant, env, id)).await
    {
        return Ok(row);
    }
    let agent = match agent::load(&deps.db.read, tenant, new.agent_id).await {
        Err(Error::NotFound(_)) => return Err(Error::invalid("agent_id", "is not an agent of this workspace")),
        found => found?,
    };
    deps.carriers.check(env)?;
    let now = deps.clock.now();
    if new
        .scheduled_at
        .is_some_and(|at| at > now.plus_seconds(FURTHEST_SECONDS))
    {
        return Err(Error::invalid("scheduled_at", "is more than 90 days ahead"));
    }
    voice::check(deps, tenant, "voice_id", new.voice_id.as_deref()).await?;
    settings::check_voicemail(&new.voicemail)?;
    settings::check_sandbox(env, new.sandbox.as_ref())?;
    deps.providers.check(&agent.definition, env)?;
    let if_closed = new.if_closed;
    let api_key = new.api_key.clone();
    let row = row(deps, (tenant, env), &agent, new, now).await?;
    let row = intake::check(deps, row, &agent.definition.language, if_closed).await?;
    intake::check_capacity(deps, &row).await?;
    if let Some(key) = api_key {
        intake::check_key(deps, &key, &row).await?;
    }
    let (session, effects) = Session::queued(row, deps.base_url.clone(), now);
    let session = birth::create_or_find(deps, Birth::of(session, effects)).await?;
    Ok(session.row())
}

async fn row(deps: &Deps, owner: (TenantId, Env), agent: &agent::Model, new: New, now: Moment) -> Result<Model> {
    let definition = &agent.definition;
    let id = new.id.unwrap_or_else(|| deps.ids.next());
    let trace = new.trace.map(|trace| deps.traces.begin(trace, id.into()));
    let from_number = caller_id::of_call(&deps.db.read, owner, new.from_number).await?;
    let trunk_id = caller_id::trunk_of(&deps.db.read, owner, &from_number).await?;
    let chosen = [new.voice_id.as_deref(), definition.voice_id.as_deref()];
    let most = definition.max_duration_seconds.get();
    let asked = CallOverrides {
        recording: new.recording,
        voicemail: new.voicemail,
        dispositions: &[],
        sandbox: new.sandbox,
    };
    Ok(Model {
        voice_id: Some(voice::of_call(deps, chosen, &definition.language)),
        from_number: Some(from_number),
        trunk_id,
        api_key_id: new.api_key.as_ref().and_then(api_key::Model::counted),
        email: new.email,
        first_name: new.first_name,
        last_name: new.last_name,
        client_reference_id: new.client_reference_id,
        variables: new.variables,
        metadata: new.metadata,
        ring_timeout_seconds: new.ring_timeout_seconds,
        max_duration_seconds: new.max_duration_seconds.map_or(most, |asked| asked.min(most)),
        scheduled_at: new.scheduled_at,
        queue_ttl_seconds: new.queue_ttl_seconds,
        timezone: new.timezone,
        price_cents_per_minute: deps.limits.call_price_cents_per_minute,
        options: Options {
            trace,
            legal: Some(CallLegal {
                legal: new.legal,
                person: new.person,
                sandbox_law: new.sandbox_law,
                ..CallLegal::default()
            }),
            ..settings::options(definition, asked)
        },
        ..Model::new(owner, id, (agent.id, agent.version), new.to_number, now)
    })
}
