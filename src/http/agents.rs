//! Agents: who talks. Shared by a tenant's two envs.
use super::{
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Params},
    gate::Caller,
    views::{AgentView, List},
};
use crate::app::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::writer::Commit;
use entities::{
    Error,
    agent::{self, Brain, Definition, Model},
    ids::AgentId,
};

/// POST /v1/agents
pub async fn create(state: Data<State>, caller: Caller, Json(definition): Json<Definition>) -> ApiResult<HttpResponse> {
    check(&definition)?;
    let now = state.deps.clock.now();
    let agent = Model {
        id: caller.new_id(&state),
        tenant_id: caller.tenant_id(),
        definition,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let agent = match save(&state, agent.clone()).await {
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
    params.finish()?;
    let agents = agent::list(&state.deps.db.read, caller.tenant_id(), page).await?;
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
    let mut definition =
        serde_json::to_value(&before.definition).map_err(|error| Error::Internal(error.to_string()))?;
    extract::merge(&mut definition, patch);
    let definition: Definition = extract::parse_value(definition)?;
    check(&definition)?;
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
    let before = agent::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let now = state.deps.clock.now();
    save(
        &state,
        Model {
            version: before.version + 1,
            updated_at: now,
            deleted_at: Some(now),
            ..before
        },
    )
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn save(state: &State, agent: Model) -> Result<(), Error> {
    let mut commit = Commit::default();
    commit.changes.agents.push(agent);
    state.deps.writer.commit(commit).await
}

fn check(definition: &Definition) -> ApiResult<()> {
    let Brain::Scripted { replies } = &definition.brain;
    if replies.len() > 100 {
        return Err(ApiError::validation(
            "brain.replies",
            format!("has {} lines, at most 100 are allowed", replies.len()),
        ));
    }
    match replies.iter().position(|reply| reply.hear.len() > 50) {
        Some(at) => Err(ApiError::validation(
            format!("brain.replies[{at}].hear"),
            "has more than 50 entries",
        )),
        None => Ok(()),
    }
}
