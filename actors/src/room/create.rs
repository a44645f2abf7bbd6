//! A room is made, and with it the session of what will be said in it.
use super::link;
use crate::{
    birth::{self, Birth, Born},
    call::voice,
    deps::Deps,
    legal,
    traces::RequestTrace,
};
use entities::{
    Error, Result, agent, boxed,
    ids::{AgentId, RoomId, SessionId, TenantId, TenantScoped},
    room::{self as store, Model},
    session::{self, Direction},
    values::{Env, Metadata, Moment, Variables},
};
use rules::{
    barred,
    room::machine::Room,
    session::{
        machine::Session,
        settings::{self, CallOverrides, RecordingOverride},
    },
};

/// A room that is asked for.
#[derive(Clone, Debug)]
pub struct New {
    /// The one that a repeat of the same request asks for again; `None`: nobody repeats it.
    pub id: Option<RoomId>,
    pub agent_id: AgentId,
    /// Else the agent's, else the language's.
    pub voice_id: Option<String>,
    pub client_reference_id: Option<String>,
    /// Who is expected.
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub variables: Variables,
    pub metadata: Metadata,
    /// Nobody can join later.
    pub expires_in_seconds: i32,
    /// At most the agent's.
    pub max_duration_seconds: Option<i32>,
    pub recording: RecordingOverride,
    /// The span of the request, if requests are traced.
    pub trace: Option<RequestTrace>,
}

/// Open rooms, per tenant and env.
const MAX_OPEN: u64 = 10_000;

/// Makes both, in one commit; the room's actor sees to its end.
#[boxed]
pub async fn create(deps: &Deps, (tenant, env): (TenantId, Env), new: New) -> Result<(Model, session::Model)> {
    let db = &deps.db.read;
    let id = new.id.unwrap_or_else(|| deps.ids.next());
    // A repeat of a request whose answer was lost.
    if new.id.is_some()
        && let Ok(row) = store::load(db, TenantScoped::new(tenant, env, id)).await
    {
        let call = session::load_even_deleted(db, row.session()).await?;
        return Ok((row, call));
    }
    let agent = match agent::load(db, tenant, new.agent_id).await {
        Err(Error::NotFound(_)) => return Err(Error::invalid("agent_id", "is not an agent of this workspace")),
        found => found?,
    };
    voice::check(deps, tenant, "voice_id", new.voice_id.as_deref()).await?;
    if let Some(email) = &new.email {
        barred::email(email).map_err(|_| Error::invalid("participant.email", "is not an e-mail address"))?;
    }
    if new.recording.transfers == Some(true) {
        let why = "is for telephone calls: a room has no line that could be handed over; leave it out";
        return Err(Error::invalid("recording.transfers", why));
    }
    deps.providers.check(&agent.definition, env)?;
    if store::count_open(db, tenant, env).await? >= MAX_OPEN {
        let why = format!("at most {MAX_OPEN} rooms can be open at once: end some, or let them expire sooner");
        return Err(Error::PlanLimit(why));
    }
    let now = deps.clock.now();
    let (row, mut call) = rows(deps, (tenant, env), id, &agent, new, now);
    let country = entities::tenant::country(db, tenant).await?;
    legal::bind_guest(deps, &mut call, country, &agent.definition.language).await?;
    let url = link::url(&deps.links, &deps.base_url, &row);
    let (session, mut effects) = Session::awaiting(call, deps.base_url.clone());
    let (room, more) = Room::created(row, url);
    effects.extend(more);
    let mut birth = Birth::of(room, effects);
    session.insert(&mut birth.commit);
    let room = birth::create(deps, birth).await?;
    Ok((room.row(), session.row()))
}

fn rows(
    deps: &Deps,
    owner: (TenantId, Env),
    id: RoomId,
    agent: &agent::Model,
    new: New,
    now: Moment,
) -> (Model, session::Model) {
    let definition = &agent.definition;
    let most = definition.max_duration_seconds.get();
    let chosen = [new.voice_id.as_deref(), definition.voice_id.as_deref()];
    let call_id: SessionId = deps.ids.next();
    let trace = new.trace.map(|trace| deps.traces.begin(trace, call_id.into()));
    let asked = CallOverrides {
        recording: new.recording,
        ..CallOverrides::default()
    };
    let call = session::Model {
        phase: session::Phase::Scheduled,
        direction: Direction::Inbound,
        room_id: Some(id),
        voice_id: Some(voice::of_call(deps, chosen, &definition.language)),
        email: new.email,
        first_name: new.first_name,
        last_name: new.last_name,
        client_reference_id: new.client_reference_id,
        variables: new.variables,
        metadata: new.metadata,
        max_duration_seconds: new.max_duration_seconds.map_or(most, |asked| asked.min(most)),
        queue_ttl_seconds: 0,
        price_cents_per_minute: deps.limits.call_price_cents_per_minute,
        options: session::Options {
            trace,
            ..settings::options(definition, asked)
        },
        ..session::Model::of_room(owner, call_id, (agent.id, agent.version), now)
    };
    let row = Model {
        session_id: call.id,
        agent_id: agent.id,
        expires_at: now.plus_seconds(new.expires_in_seconds.into()),
        ..Model::new(owner, id, link::nonce(), now)
    };
    (row, call)
}
