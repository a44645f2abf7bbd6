//! Campaigns.
use super::{
    contacts::{self, Given},
    error::{ApiError, ApiResult},
    extract::{Id, Json, MIB, Nothing, Params},
    gate::Caller,
    sessions::check_carrier,
    views::{CampaignRunView, CampaignStatsView, CampaignView, ContactsAddedView, List},
};
use crate::app::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    campaign::machine::{self, Campaign, Command},
    effect,
    writer::Commit,
};
use entities::{
    Error, agent,
    campaign::{self as store, AgentSnapshot, Plan},
    contact,
    ids::CampaignId,
    session, tally,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// POST /v1/campaigns
pub async fn create(state: Data<State>, caller: Caller, Json(plan): Json<Plan>) -> ApiResult<HttpResponse> {
    check(&state, &caller, &plan).await?;
    let (campaign, effects) = Campaign::draft(caller.own(caller.new_id(&state)), plan, state.deps.clock.now());
    let mut commit = Commit::default();
    effect::facts(&state.deps, campaign.key, &effects, &mut commit).await?;
    commit.changes.campaigns.push(campaign.row());
    match state.deps.writer.commit(commit).await {
        // Stale: a repeat of a request that a crash cut off after its commit.
        Ok(()) | Err(Error::Stale) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(HttpResponse::Created().json(view(&state, &caller, campaign.key.id).await?))
}

/// A campaign with its contacts, started at once.
#[derive(Deserialize, JsonSchema)]
pub struct Run {
    #[serde(flatten)]
    pub plan: Plan,
    /// 1 to 10,000.
    pub contacts: Vec<Given>,
}

/// POST /v1/campaigns/run
pub async fn run(
    state: Data<State>,
    caller: Caller,
    Json(body): Json<serde_json::Value, { 10 * MIB }>,
) -> ApiResult<HttpResponse> {
    let (plan, given) = split(body)?;
    if given.is_empty() || given.len() > 10_000 {
        return Err(ApiError::validation(
            "contacts",
            format!("has {} entries; 1 to 10000 are allowed", given.len()),
        ));
    }
    check(&state, &caller, &plan).await?;
    check_carrier(&state, caller.env())?;
    let agent = agent_of(&state, &caller, &plan).await?;
    let deps = state.deps.clone();
    let key = caller.own(caller.new_id::<CampaignId>(&state));
    let country = country(&state, &caller).await?;
    let sorted = contacts::sort(&deps, key, country, given);
    if sorted.rows.is_empty() {
        let why = sorted
            .rejected
            .first()
            .map(|first| first.message.clone())
            .unwrap_or_default();
        return Err(ApiError::validation(
            "contacts",
            format!("none can be accepted; the first: {why}"),
        ));
    }
    let mut answer = ContactsAddedView {
        accepted: 0,
        duplicates: sorted.duplicates,
        rejected: sorted.rejected,
    };
    let now = deps.clock.now();
    let rows = std::sync::Arc::new(sorted.rows);
    let (job_deps, job_rows) = (deps.clone(), rows.clone());
    let started = deps.writer.run(move |db| {
        let (deps, rows, plan, agent) = (job_deps.clone(), job_rows.clone(), plan.clone(), agent.clone());
        Box::pin(async move {
            let (draft, mut effects) = Campaign::draft(key, plan, now);
            // What was added is what counts.
            let contacts = i64::try_from(contact::add(db, &rows).await?).unwrap_or(i64::MAX);
            let (campaign, more) = machine::transition(
                draft,
                Command::Start {
                    agent: Box::new(agent),
                    contacts,
                },
                now,
            )?;
            effects.extend(more);
            let mut commit = Commit::default();
            effect::facts(&deps, key, &effects, &mut commit).await?;
            commit.changes.campaigns.push(campaign.row());
            let tally = commit.changes.tally(key);
            tally.total += contacts;
            tally.pending += contacts;
            Ok((effects, commit))
        })
    });
    match started.await {
        Ok(effects) => {
            answer.accepted = rows.len() as u64;
            effect::perform(&deps, effects).await;
        }
        // A repeat of a request that a crash cut off after its commit.
        Err(Error::Stale | Error::AlreadyExists { .. }) if caller.object_id.is_some() => {
            answer.accepted = rows.len() as u64
        }
        Err(error) => return Err(error.into()),
    }
    Ok(HttpResponse::Created().json(CampaignRunView {
        campaign: view(&state, &caller, key.id).await?,
        contacts: answer,
    }))
}

/// The plan's fields and the contacts; each with its own errors.
fn split(mut body: serde_json::Value) -> ApiResult<(Plan, Vec<serde_json::Value>)> {
    let contacts = body.as_object_mut().and_then(|fields| fields.remove("contacts"));
    let plan = super::extract::parse_value(body)?;
    match contacts {
        Some(serde_json::Value::Array(contacts)) => Ok((plan, contacts)),
        Some(_) => Err(ApiError::validation("contacts", "must be a list")),
        None => Err(ApiError::validation("contacts", "missing field `contacts`")),
    }
}

/// GET /v1/campaigns
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<CampaignView>>> {
    let page = params.page()?;
    let status = params.text("status")?;
    params.finish()?;
    let db = &state.deps.db.read;
    let campaigns = store::list(db, caller.tenant_id(), caller.env(), status, page).await?;
    let tallies = tally::of(db, campaigns.rows.iter().map(|row| row.id)).await?;
    let empty = |id| tally::Model::new(id);
    Ok(web::Json(List::of(
        campaigns,
        |row| row.id.0,
        |row| {
            let tally = tallies.get(&row.id).cloned().unwrap_or_else(|| empty(row.id));
            CampaignView::of(row, &tally)
        },
    )))
}

/// GET /v1/campaigns/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<CampaignId>) -> ApiResult<web::Json<CampaignView>> {
    Ok(web::Json(view(&state, &caller, id).await?))
}

/// POST /v1/campaigns/{id}/start
pub async fn start(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<web::Json<CampaignView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    check_carrier(&state, caller.env())?;
    let agent = agent_of(&state, &caller, &row.plan).await?;
    let contacts = tally::load(&state.deps.db.read, id).await?.total;
    command(
        &state,
        &caller,
        id,
        Command::Start {
            agent: Box::new(agent),
            contacts,
        },
    )
    .await
}

/// POST /v1/campaigns/{id}/pause
pub async fn pause(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<web::Json<CampaignView>> {
    command(&state, &caller, id, Command::Pause).await
}

/// POST /v1/campaigns/{id}/resume
pub async fn resume(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<web::Json<CampaignView>> {
    command(&state, &caller, id, Command::Resume).await
}

/// POST /v1/campaigns/{id}/cancel
pub async fn cancel(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<web::Json<CampaignView>> {
    command(&state, &caller, id, Command::Cancel).await
}

async fn command(
    state: &State,
    caller: &Caller,
    id: CampaignId,
    command: Command,
) -> ApiResult<web::Json<CampaignView>> {
    let tree = state.tree()?;
    let campaign = tree.ask(&tree.campaigns, &state.deps, caller.own(id), command).await?;
    let tally = tally::load(&state.deps.db.read, id).await?;
    Ok(web::Json(CampaignView::of(campaign.row(), &tally)))
}

/// GET /v1/campaigns/{id}/stats
pub async fn stats(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
) -> ApiResult<web::Json<CampaignStatsView>> {
    let db = &state.deps.db.read;
    let row = store::load(db, caller.own(id)).await?;
    let tally = tally::load(db, id).await?;
    let live = session::live(db, caller.tenant_id())
        .await?
        .iter()
        .filter(|live| live.campaign_id == Some(id))
        .count();
    let ended = tally.completed_sessions + tally.failed_sessions;
    let seconds = row.started_at.map(|started| {
        row.completed_at
            .unwrap_or_else(|| state.deps.clock.now())
            .since(started)
            .as_secs_f64()
    });
    Ok(web::Json(CampaignStatsView {
        campaign_id: id,
        status: row.status,
        counts: (&tally).into(),
        completed_sessions: tally.completed_sessions,
        failed_sessions: tally.failed_sessions,
        live_sessions: i64::try_from(live).unwrap_or(i64::MAX),
        sessions_per_second: seconds
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| ended as f64 / seconds),
        answer_rate: (ended > 0).then(|| tally.completed_sessions as f64 / ended as f64),
        started_at: row.started_at,
        completed_at: row.completed_at,
    }))
}

async fn view(state: &State, caller: &Caller, id: CampaignId) -> ApiResult<CampaignView> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let tally = tally::load(&state.deps.db.read, id).await?;
    Ok(CampaignView::of(row, &tally))
}

/// How the workspace's numbers without `+` are read.
pub async fn country(state: &State, caller: &Caller) -> ApiResult<entities::values::Country> {
    let tenant = entities::tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    tenant.country.parse().map_err(|_| {
        Error::Corrupt {
            table: "tenants",
            column: "country",
            id: tenant.id.to_string(),
        }
        .into()
    })
}

async fn agent_of(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<AgentSnapshot> {
    let hint = "it has no agent: give it one as `agent_id`";
    let id = plan.agent_id.ok_or(Error::InvalidState {
        kind: "campaign",
        state: "draft",
        command: "start",
        hint,
    })?;
    let agent = match agent::load(&state.deps.db.read, caller.tenant_id(), id).await {
        Err(Error::NotFound(_)) => {
            let hint = "its agent was deleted";
            return Err(Error::InvalidState {
                kind: "campaign",
                state: "draft",
                command: "start",
                hint,
            }
            .into());
        }
        found => found?,
    };
    Ok(AgentSnapshot {
        id: agent.id,
        version: agent.version,
        definition: agent.definition,
    })
}

async fn check(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    let max = state.deps.limits.max_calls_per_second;
    if plan.pacing.calls_per_second.get() > max {
        return Err(ApiError::validation(
            "pacing.calls_per_second",
            format!("is more than the operator's maximum of {max}"),
        ));
    }
    if plan.from_numbers.len() > 100 {
        return Err(ApiError::validation("from_numbers", "has more than 100 entries"));
    }
    if plan.retry.rules.values().any(|rule| rule.delays_minutes.len() > 10) {
        return Err(ApiError::validation("retry.rules", "a rule has more than 10 delays"));
    }
    if let Some(id) = plan.agent_id
        && let Err(Error::NotFound(_)) = agent::load(&state.deps.db.read, caller.tenant_id(), id).await
    {
        return Err(ApiError::validation("agent_id", "is no agent of this workspace"));
    }
    Ok(())
}
