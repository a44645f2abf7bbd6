//! Agents: who talks. Shared by a tenant's two envs.
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, OptionalJson, Params},
    language::check_language,
    views::{AgentVersionView, AgentView, List, SimulationView},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{call::voice, conversation::dry_run::DryRun};
use entities::{
    Error,
    agent::{self, Brain, Definition, Model, Question, QuestionType, Transfer},
    agent_version, campaign,
    checks::Checks,
    function,
    ids::AgentId,
    number,
    values::{E164, Text, Variables},
};
use rules::{
    commit::Commit,
    session::settings::{check_dispositions, unique},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// POST /v1/agents
pub async fn create(state: Data<State>, caller: Caller, Json(definition): Json<Definition>) -> ApiResult<HttpResponse> {
    make(&state, &caller, definition).await
}

async fn make(state: &State, caller: &Caller, definition: Definition) -> ApiResult<HttpResponse> {
    let mut checks = Checks::default();
    checks.add(check(state, caller, &definition).await);
    checks.add(check_voice(state, caller, &definition).await);
    checks.end()?;
    let now = state.deps.clock.now();
    let agent = Model {
        id: caller.new_id(&state.deps.ids),
        tenant_id: caller.tenant_id(),
        definition,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let agent = match save(state, agent.clone()).await {
        Ok(()) => agent,
        // A repeat of a request that a crash cut off after its commit.
        Err(Error::Stale) => agent::load(&state.deps.db.read, caller.tenant_id(), agent.id).await?,
        Err(error) => return Err(error.into()),
    };
    Ok(HttpResponse::Created().json(AgentView::from(agent)))
}

/// GET /v1/agents
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<AgentView>>> {
    let page = params.page()?;
    let name: Option<Text<1, 200>> = params.text("name")?;
    params.finish()?;
    let _permit = name
        .as_ref()
        .map(|_| state.bulkheads.search(caller.tenant_id()))
        .transpose()?;
    let agents = agent::list(&state.deps.db, caller.tenant_id(), name.as_deref(), page).await?;
    Ok(web::Json(List::of(agents, |agent| agent.id.0, AgentView::from)))
}

/// GET /v1/agents/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<AgentId>) -> ApiResult<web::Json<AgentView>> {
    Ok(web::Json(
        agent::load(&state.deps.db.read, caller.tenant_id(), id).await?.into(),
    ))
}

/// PATCH /v1/agents/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<AgentId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<AgentView>> {
    let before = agent::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let kept = serde_json::to_value(&before.definition).map_err(|error| Error::Internal(error.to_string()))?;
    let mut definition = kept.clone();
    // Another kind of brain has other settings: nothing of the old one is merged in.
    let mode = patch.get("brain").and_then(|brain| brain.get("mode"));
    if mode.is_some_and(|mode| *mode != definition["brain"]["mode"]) {
        definition["brain"] = serde_json::Value::Null;
    }
    rules::shape::merge(&mut definition, patch);
    let definition: Definition = extract::parse_value(definition, &kept)?;
    let mut checks = Checks::default();
    checks.add(check(&state, &caller, &definition).await);
    // One that the operator has taken away since keeps nothing else from being changed.
    if definition.voice_id != before.definition.voice_id {
        checks.add(check_voice(&state, &caller, &definition).await);
    }
    checks.end()?;
    if definition == before.definition {
        return Ok(web::Json(before.into()));
    }
    let after = Model {
        definition,
        version: before.version + 1,
        updated_at: state.deps.clock.now(),
        ..before
    };
    save(&state, after.clone()).await?;
    Ok(web::Json(after.into()))
}

/// DELETE /v1/agents/{id}: campaigns that run keep the agent as it was at their start.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<AgentId>) -> ApiResult<HttpResponse> {
    let mut row = agent::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    check_unused(&state, &caller, id).await?;
    let now = state.deps.clock.now();
    row.version += 1;
    (row.updated_at, row.deleted_at) = (now, Some(now));
    save(&state, row).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Neither a number nor a campaign that has yet to start is left without its agent.
async fn check_unused(state: &State, caller: &Caller, id: AgentId) -> Result<(), Error> {
    let db = &state.deps.db.read;
    let numbers = number::of_agent(db, caller.tenant_id(), id).await?;
    if let Some(first) = numbers.first() {
        let why = format!(
            "it answers {} of your numbers, {first} among them: give them another agent",
            numbers.len()
        );
        return Err(Error::InUse(why));
    }
    let drafts = campaign::drafts_of_agent(db, caller.tenant_id(), id).await?;
    if let Some(name) = drafts.first() {
        let why = format!(
            "campaign `{name}`, which has not started, uses it: give the campaign another agent, or delete the campaign"
        );
        return Err(Error::InUse(why));
    }
    Ok(())
}

/// GET /v1/agents/{id}/versions: the newest first.
pub async fn versions(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<AgentId>,
    mut params: Params,
) -> ApiResult<web::Json<List<AgentVersionView>>> {
    let page = params.page()?;
    params.finish()?;
    // Cursors of this list hold a version.
    let after = page.after.map(|cursor| i32::try_from(cursor.as_u128()).unwrap_or(0));
    let db = &state.deps.db.read;
    agent::load(db, caller.tenant_id(), id).await?;
    let listed = agent_version::list(db, caller.tenant_id(), id, after, page).await?;
    let place = |row: &agent_version::Model| uuid::Uuid::from_u128(row.version.unsigned_abs().into());
    Ok(web::Json(List::of(listed, place, AgentVersionView::from)))
}

/// POST /v1/agents/{id}/duplicate
pub async fn duplicate(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<AgentId>,
    OptionalJson(asked): OptionalJson<Duplicate>,
) -> ApiResult<HttpResponse> {
    let original = agent::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let mut definition = original.definition;
    let name = asked.name.map_or_else(
        || {
            let name: String = definition.name.chars().take(190).collect();
            Text::parse(&format!("{name} (copy)"))
        },
        Ok,
    );
    definition.name = name.map_err(|why| ApiError::validation("name", why))?;
    make(&state, &caller, definition).await
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Duplicate {
    /// Default: the original's, with `(copy)`.
    #[serde(default)]
    pub name: Option<Text<1, 200>>,
}

/// Both sides of a conversation in text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Simulate {
    /// What the other side says, one after each of the agent's turns; 1 to 50.
    pub turns: Vec<Text<1, 1_000>>,
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    /// What each function answers, by name; others answer null. Nothing is sent to anybody.
    #[serde(default)]
    pub functions: BTreeMap<String, serde_json::Value>,
}

/// POST /v1/agents/{id}/simulate: the very machine of a call, without a call: nothing is stored, sent or said.
pub async fn simulate(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<AgentId>,
    Json(asked): Json<Simulate>,
) -> ApiResult<web::Json<SimulationView>> {
    if !(1..=50).contains(&asked.turns.len()) {
        return Err(ApiError::validation("turns", "needs 1 to 50 entries"));
    }
    let agent = agent::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    state.deps.providers.check(&agent.definition, caller.env())?;
    let dry = DryRun {
        owner: (caller.tenant_id(), caller.env()),
        agent,
        heard: asked.turns.into_iter().map(Text::into_string).collect(),
        variables: asked.variables,
        functions: asked.functions,
    };
    let _permit = state.bulkheads.outside(caller.tenant_id())?;
    let session = actors::conversation::dry_run::simulate(&state.deps, dry).await?;
    Ok(web::Json(SimulationView::of(session)))
}

async fn save(state: &State, agent: Model) -> Result<(), Error> {
    let mut commit = Commit::default();
    let of = agent.tenant_id.into();
    commit.changes.agent_versions.push(agent_version::Model {
        agent_id: agent.id,
        version: agent.version,
        tenant_id: agent.tenant_id,
        definition: agent.definition.clone(),
        created_at: agent.updated_at,
    });
    commit.changes.agents.push(agent);
    state.deps.writer.commit(of, commit).await
}

async fn check(state: &State, caller: &Caller, definition: &Definition) -> Result<(), Error> {
    let mut checks = Checks::default();
    checks.add(check_language(&definition.language));
    checks.add(check_brain(&definition.brain));
    checks.add(check_dispositions("dispositions", &definition.dispositions));
    checks.add(check_questions(&definition.questions));
    if let Some(transfer) = &definition.transfer {
        checks.add(check_transfer(state, transfer));
    }
    if definition.opt_out.phrases.len() > 100 {
        checks.refuse("opt_out.phrases", "has more than 100 entries");
    }
    checks.add(check_functions(state, caller, definition).await);
    // A live agent without its provider could never talk.
    checks.add(state.deps.providers.check(definition, caller.env()));
    checks.end()
}

async fn check_voice(state: &State, caller: &Caller, definition: &Definition) -> Result<(), Error> {
    let voice_id = definition.voice_id.as_deref();
    voice::check(&state.deps, caller.tenant_id(), "voice_id", voice_id).await
}

fn check_brain(brain: &Brain) -> Result<(), Error> {
    let Brain::Scripted { replies } = brain else {
        return Ok(());
    };
    if replies.len() > 100 {
        let message = format!("has {} lines, at most 100 are allowed", replies.len());
        return Err(Error::invalid("brain.replies", message));
    }
    let mut checks = Checks::default();
    for (at, reply) in replies.iter().enumerate() {
        if reply.hear.len() > 50 {
            checks.refuse(format!("brain.replies[{at}].hear"), "has more than 50 entries");
        }
        let size = reply.call.as_ref().map_or(0, |call| {
            serde_json::to_string(&call.arguments).map_or(usize::MAX, |text| text.len())
        });
        if size > 16 * 1024 {
            checks.refuse(format!("brain.replies[{at}].call.arguments"), "are larger than 16 KiB");
        }
    }
    checks.end()
}

fn check_questions(questions: &[Question]) -> Result<(), Error> {
    let mut checks = Checks::default();
    checks.add(unique("questions", "key", questions.iter().map(|one| &*one.key)));
    for (at, question) in questions.iter().enumerate() {
        let is_choice = question.r#type == QuestionType::Choice;
        let count = question.options.len();
        if is_choice && !(2..=50).contains(&count) || !is_choice && count > 0 {
            let why = "a `choice` needs 2 to 50 options; other types take none";
            checks.refuse(format!("questions[{at}].options"), why);
        }
    }
    checks.end()
}

fn check_transfer(state: &State, transfer: &Transfer) -> Result<(), Error> {
    if transfer.targets.len() > 20 {
        return Err(Error::invalid("transfer.targets", "has more than 20 entries"));
    }
    let names = transfer.targets.iter().map(|target| &*target.name);
    let mut checks = Checks::default();
    checks.add(unique("transfer.targets", "name", names));
    for (at, target) in transfer.targets.iter().enumerate() {
        if &*target.name == "default" {
            let param = format!("transfer.targets[{at}].name");
            checks.refuse(param, "`default` is the name of `transfer.number`");
        }
        checks.add(check_target(
            state,
            &format!("transfer.targets[{at}].number"),
            &target.number,
        ));
    }
    checks.add(check_target(state, "transfer.number", &transfer.number));
    checks.end()
}

/// Nobody is connected to where a call costs more than it may.
pub fn check_target(state: &State, param: &str, number: &E164) -> Result<(), Error> {
    match number.costly_kind() {
        Some(kind) if !state.deps.limits.allow_costly_numbers => Err(Error::invalid(
            param,
            format!("is {kind}: the operator does not allow calls to it"),
        )),
        Some(_) | None => Ok(()),
    }
}

async fn check_functions(state: &State, caller: &Caller, definition: &Definition) -> Result<(), Error> {
    let ids = &definition.function_ids;
    if ids.len() > 20 {
        return Err(Error::invalid("function_ids", "has more than 20 entries"));
    }
    let known = function::of_ids(&state.deps.db.read, caller.tenant_id(), ids).await?;
    let mut checks = Checks::default();
    for (at, id) in ids.iter().enumerate() {
        let param = || format!("function_ids[{at}]");
        if !known.iter().any(|function| function.id == *id) {
            checks.refuse(param(), "is not a function of this workspace");
        } else if ids[..at].contains(id) {
            checks.refuse(param(), "is listed twice");
        }
    }
    checks.end()
}
