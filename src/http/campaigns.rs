//! Campaigns.
use super::{
    bodies::MIB,
    caller::Caller,
    error::ApiResult,
    extract::{self, Id, Json, Nothing, OptionalJson, Params},
    traced::Traced,
    views::{Blocked, CampaignRunView, CampaignStatsView, CampaignView, List},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    campaign::{self, outlook, plan},
    contact::intake::Given,
};
use entities::{
    Error, api_key,
    campaign::{self as store, Plan},
    campaign_hour,
    checks::both,
    dispatch_block, dispatch_pause,
    error::Fault,
    ids::CampaignId,
    session, tally,
    values::Text,
};
use rules::{
    campaign::{machine::Command, patch::Patch},
    dispatch::concurrency::Concurrency,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// POST /v1/campaigns
pub async fn create(state: Data<State>, caller: Caller, Json(plan): Json<Plan>) -> ApiResult<HttpResponse> {
    let key = campaign::create(&state.deps, caller.owner(), claimed(&caller), plan).await?;
    Ok(HttpResponse::Created().json(view(&state, &caller, key.id).await?))
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
    traced: Traced,
    Json(body): Json<serde_json::Value, { 10 * MIB }>,
) -> ApiResult<HttpResponse> {
    let (plan, contacts) = split(body)?;
    let asked = campaign::Run {
        id: claimed(&caller),
        plan,
        contacts,
        api_key: caller.key().cloned(),
        trace: traced.trace(),
    };
    let (key, added) = campaign::run(&state.deps, caller.owner(), asked).await?;
    traced.made(key.id);
    Ok(HttpResponse::Created().json(CampaignRunView {
        campaign: view(&state, &caller, key.id).await?,
        contacts: added,
    }))
}

/// The id that a repeat of the request has, too.
fn claimed(caller: &Caller) -> Option<CampaignId> {
    caller.object_id.map(CampaignId::from)
}

/// The plan's fields and the contacts; each with its own errors.
fn split(mut body: serde_json::Value) -> ApiResult<(Plan, Vec<serde_json::Value>)> {
    let contacts = body.as_object_mut().and_then(|fields| fields.shift_remove("contacts"));
    let plan = extract::parse_rest(body, &serde_json::json!({ "name": "A campaign" }), "contacts");
    let contacts = match contacts {
        Some(serde_json::Value::Array(contacts)) => Ok(contacts),
        Some(_) => Err(Error::invalid("contacts", "must be a list")),
        None => Err(Error::Faults(vec![Fault::missing("contacts")])),
    };
    Ok(both(plan, contacts)?)
}

/// GET /v1/campaigns
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<CampaignView>>> {
    let page = params.page()?;
    let status = params.text("status")?;
    params.finish()?;
    let db = &state.deps.db.read;
    let campaigns = store::list(&state.deps.db, caller.owner(), status, page).await?;
    let tallies = tally::of(db, campaigns.rows.iter().map(|row| row.id)).await?;
    let blocked = Blocked::of(&state, &caller).await?;
    Ok(web::Json(List::of(
        campaigns,
        |row| row.id.0,
        |row| {
            let tally = tallies
                .get(&row.id)
                .cloned()
                .unwrap_or_else(|| tally::Model::new(row.id));
            CampaignView::of(row, &tally, &blocked)
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
    traced: Traced,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<web::Json<CampaignView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let agent = plan::check_start(&state.deps, &row).await?;
    plan::check_key(&state.deps, agent.as_ref(), caller.key())?;
    check_list(&state, &caller, id, &row.plan).await?;
    let contacts = tally::load(&state.deps.db.read, id).await?.total;
    traced.makes(&state.deps, id);
    command(
        &state,
        &caller,
        id,
        Command::Start {
            agent: agent.map(Box::new),
            contacts,
            api_key_id: caller.key().and_then(api_key::Model::counted),
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

/// PATCH /v1/campaigns/{id}: a JSON merge patch. Rules hold from the next dial on.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<CampaignView>> {
    let before = store::load(&state.deps.db.read, caller.own(id)).await?;
    let patch = Patch::new(patch);
    let plan = patch.check(&before.plan).map_err(extract::refused)?;
    plan::check_change(&state.deps, &before, &plan).await?;
    // Who is left must still be written whole; a draft is checked at its start.
    if plan.variables != before.plan.variables && before.status != store::Status::Draft {
        check_list(&state, &caller, id, &plan).await?;
    }
    command(&state, &caller, id, Command::Change(Box::new(patch))).await
}

/// DELETE /v1/campaigns/{id}: a draft or a completed one. Its sessions and events stay.
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<CampaignId>) -> ApiResult<HttpResponse> {
    state
        .deps
        .router
        .campaigns()
        .request(caller.own(id), Command::Delete)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Duplicate {
    /// Default: the same with `(copy)`.
    #[serde(default)]
    pub name: Option<Text<1, 200>>,
}

/// POST /v1/campaigns/{id}/duplicate: a new draft with the same settings and no contacts.
pub async fn duplicate(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    OptionalJson(asked): OptionalJson<Duplicate>,
) -> ApiResult<HttpResponse> {
    let key = campaign::duplicate(&state.deps, caller.own(id), claimed(&caller), asked.name).await?;
    Ok(HttpResponse::Created().json(view(&state, &caller, key.id).await?))
}

async fn command(
    state: &State,
    caller: &Caller,
    id: CampaignId,
    command: Command,
) -> ApiResult<web::Json<CampaignView>> {
    let campaign = state.deps.router.campaigns().request(caller.own(id), command).await?;
    let tally = tally::load(&state.deps.db.read, id).await?;
    let blocked = Blocked::of(state, caller).await?;
    Ok(web::Json(CampaignView::of(campaign.row(), &tally, &blocked)))
}

/// Hours of which the statistics tell.
const STATS_HOURS: u64 = 7 * 24;

/// GET /v1/campaigns/{id}/stats
pub async fn stats(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
) -> ApiResult<web::Json<CampaignStatsView>> {
    let (deps, db) = (&state.deps, &state.deps.db.read);
    let row = store::load(db, caller.own(id)).await?;
    let tally = tally::load(db, id).await?;
    let live = session::live(db, caller.tenant_id()).await?;
    let hours = campaign_hour::last(db, id, STATS_HOURS).await?;
    let abandonment = campaign_hour::abandonment(db, id, deps.clock.times()).await?;
    let tenant = entities::tenant::load(db, caller.tenant_id()).await?;
    let running = row.status == store::Status::Running;
    let finishes_at = if running && tally.pending + tally.waiting > 0 {
        outlook::finishes_at(deps, &row, tally.pending + tally.waiting).await?
    } else {
        None
    };
    Ok(web::Json(CampaignStatsView::of(super::views::Stats {
        tally,
        live: live.iter().filter(|live| live.campaign_id == Some(id)).count(),
        slots: row
            .plan
            .pacing
            .max_concurrency
            .map_or(i32::MAX, |max| max.get())
            .min(Concurrency::of(&tenant, &deps.limits).outbound()),
        hours,
        abandonment,
        dials_per_second: deps.pacing_report.dials_per_second(id, deps.clock.now()),
        limiting_factor: deps.pacing_report.limiting(id).filter(|_| running),
        finishes_at,
        now: deps.clock.now(),
        row,
    })))
}

async fn view(state: &State, caller: &Caller, id: CampaignId) -> ApiResult<CampaignView> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    let tally = tally::load(&state.deps.db.read, id).await?;
    let blocked = Blocked::of(state, caller).await?;
    Ok(CampaignView::of(row, &tally, &blocked))
}

impl Blocked {
    /// What keeps the caller's campaigns from dialling.
    async fn of(state: &State, caller: &Caller) -> ApiResult<Self> {
        let blocks = dispatch_block::of(&state.deps.db.read, caller.tenant_id()).await?;
        let blocks = blocks.into_iter().filter(|block| block.env == caller.env());
        Ok(Blocked {
            workspace: blocks.map(|block| block.reason).collect(),
            is_paused: dispatch_pause::lasts(&state.deps.db.read).await?,
            deps: state.deps.clone(),
        })
    }
}

/// Looks through the whole list, where there is something to look for.
async fn check_list(state: &State, caller: &Caller, id: CampaignId, plan: &Plan) -> ApiResult<()> {
    // The one that lacks a template is told by its own error.
    let _permit = match plan.template {
        Some(_) => Some(state.bulkheads.report(caller.tenant_id())?),
        None => None,
    };
    Ok(plan::check_variables(&state.deps, id, plan).await?)
}
