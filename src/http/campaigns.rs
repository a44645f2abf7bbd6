//! Campaigns.
use super::{
    bodies::MIB,
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Nothing, OptionalJson, Params},
    sessions::check_carrier,
    views::{Blocked, CampaignRunView, CampaignStatsView, CampaignView, List},
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    campaign::outlook,
    contact::intake::{self, Added, Given},
    facts,
    session::caller_id,
};
use entities::{
    Error, agent,
    campaign::{self as store, AgentSnapshot, Channel, Plan},
    campaign_hour, contact, dispatch_block, dispatch_pause,
    ids::CampaignId,
    session, tally,
    values::Text,
};
use rules::{
    campaign::{
        letter::Letter,
        machine::{self, Campaign, Command},
        patch::Patch,
    },
    commit::Commit,
    dispatch::room::Room,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// POST /v1/campaigns
pub async fn create(state: Data<State>, caller: Caller, Json(plan): Json<Plan>) -> ApiResult<HttpResponse> {
    check(&state, &caller, &plan).await?;
    create_draft(&state, &caller, plan).await
}

async fn create_draft(state: &State, caller: &Caller, plan: Plan) -> ApiResult<HttpResponse> {
    let (campaign, effects) = Campaign::draft(caller.own(caller.new_id(&state.deps.ids)), plan, state.deps.clock.now());
    let mut commit = Commit::default();
    facts::add(&state.deps, campaign.key, &effects, &mut commit).await?;
    commit.changes.campaigns.push(campaign.row());
    match state.deps.writer.commit(commit).await {
        // Stale: a repeat of a request that a crash cut off after its commit.
        Ok(()) | Err(Error::Stale) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(HttpResponse::Created().json(view(state, caller, campaign.key.id).await?))
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
    check_sender(&state, &caller, &plan)?;
    check_caller(&state, &caller, &plan).await?;
    // It starts at once: it must have what it writes.
    Letter::check(&plan)?;
    let agent = agent_of(&state, &caller, &plan).await?;
    let deps = state.deps.clone();
    let key = caller.own(caller.new_id::<CampaignId>(&state.deps.ids));
    let reading = intake::Reading::of(&plan, country(&state, &caller).await?)?;
    let sorted = intake::sort(&deps, key, &reading, given);
    if sorted.rows.is_empty() {
        let why = sorted
            .rejected
            .first()
            .map(|first| first.message.clone())
            .unwrap_or_default();
        return Err(ApiError::validation(
            "contacts",
            format!("none of them can be accepted; the first one: {why}"),
        ));
    }
    let mut answer = Added {
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
                    agent: agent.map(Box::new),
                    contacts,
                },
                now,
            )?;
            effects.extend(more);
            let mut commit = Commit::default();
            facts::add(&deps, key, &effects, &mut commit).await?;
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
            deps.router.perform(effects);
            // Its actor sets its alarms: for its start, or for its end.
            let tick = Command::Tick;
            deps.router.campaigns().tell(key, tick);
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
        None => Err(ApiError::validation("contacts", "is required")),
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
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<web::Json<CampaignView>> {
    let row = store::load(&state.deps.db.read, caller.own(id)).await?;
    check_sender(&state, &caller, &row.plan)?;
    check_from_numbers(&state, &caller, &row.plan).await?;
    check_caller(&state, &caller, &row.plan).await?;
    check_voice(&state, &caller, &row.plan).await?;
    let agent = agent_of(&state, &caller, &row.plan).await?;
    check_list(&state, &caller, id, &row.plan).await?;
    let contacts = tally::load(&state.deps.db.read, id).await?.total;
    command(
        &state,
        &caller,
        id,
        Command::Start {
            agent: agent.map(Box::new),
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

/// PATCH /v1/campaigns/{id}: a JSON merge patch. Rules hold from the next dial on.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<CampaignView>> {
    let before = store::load(&state.deps.db.read, caller.own(id)).await?;
    let patch = Patch::new(patch);
    let plan = patch.apply(&before.plan).map_err(extract::misshapen)?;
    if plan.channel != before.plan.channel && tally::load(&state.deps.db.read, id).await?.total > 0 {
        return Err(ApiError::validation(
            "channel",
            "is fixed once the campaign has contacts: create a new campaign",
        ));
    }
    // An agent that was deleted since the start keeps no rule from being changed.
    check_rules(&state, &plan)?;
    if plan.agent_id != before.plan.agent_id {
        check_agent(&state, &caller, &plan).await?;
    }
    if plan.voice_id != before.plan.voice_id {
        check_voice(&state, &caller, &plan).await?;
    }
    if plan.from_numbers != before.plan.from_numbers {
        check_from_numbers(&state, &caller, &plan).await?;
    }
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
    let mut plan = store::load(&state.deps.db.read, caller.own(id)).await?.plan;
    let copy = || Text::parse(&format!("{} (copy)", &plan.name.chars().take(190).collect::<String>()));
    plan.name = match asked.name {
        Some(name) => name,
        None => copy().map_err(|why| ApiError::validation("name", why))?,
    };
    check_voice(&state, &caller, &plan).await?;
    // A time that has passed says nothing of the new one.
    let now = state.deps.clock.now();
    plan.schedule.starts_at = plan.schedule.starts_at.filter(|at| *at > now);
    plan.schedule.ends_at = plan.schedule.ends_at.filter(|at| *at > now);
    create_draft(&state, &caller, plan).await
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
            .min(Room::of(&tenant, &deps.limits).outbound()),
        hours,
        dials_per_second: deps.board.dials_per_second(id, deps.clock.now()),
        limiting_factor: deps.board.limiting(id).filter(|_| running),
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
            board: state.deps.clone(),
        })
    }
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

/// Who calls; `None` for a campaign that writes.
pub(super) async fn agent_of(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<Option<AgentSnapshot>> {
    if plan.channel != Channel::Phone {
        return Ok(None);
    }
    let hint = "it has no agent: set `agent_id`";
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
    Ok(Some(AgentSnapshot {
        id: agent.id,
        version: agent.version,
        definition: agent.definition,
    }))
}

/// Is there somebody to call, or to write, by?
pub(super) fn check_sender(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    match plan.channel {
        Channel::Phone => check_carrier(state, caller.env()),
        Channel::Sms => Ok(actors::sms::check_configured(&state.deps, caller.env())?),
        Channel::Email => Ok(actors::email::check_configured(&state.deps, caller.env())?),
    }
}

/// Texts are written from the workspace's own numbers, and live calls show one of them that has a trunk.
async fn check_from_numbers(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    let (db, owner) = (&state.deps.db.read, (caller.tenant_id(), caller.env()));
    for number in &plan.from_numbers {
        let usable = match plan.channel {
            // Whether anybody hands texts over is asked at the start.
            Channel::Sms => actors::sms::from_number(&state.deps, owner, Some(number.clone()))
                .await
                .map(drop),
            Channel::Phone => caller_id::check(db, owner, number).await,
            Channel::Email => Ok(()),
        };
        if let Err(Error::Invalid { reason, .. }) = usable {
            return Err(ApiError::validation(
                "from_numbers",
                format!("has {number}, which {reason}"),
            ));
        }
    }
    Ok(())
}

/// Is there a number that its calls can show?
async fn check_caller(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    let owner = (caller.tenant_id(), caller.env());
    let is_named = plan.channel != Channel::Phone || !plan.from_numbers.is_empty();
    if is_named || caller_id::default_of(&state.deps.db.read, owner).await?.is_some() {
        return Ok(());
    }
    let why = "is needed: the workspace has no verified number with a trunk; add one with POST /v1/numbers";
    Err(ApiError::validation("from_numbers", why))
}

/// Looks through the whole list, where there is something to look for.
async fn check_list(state: &State, caller: &Caller, id: CampaignId, plan: &Plan) -> ApiResult<()> {
    if plan.template.is_none() {
        // The one that lacks it is told by its own error.
        return check_variables(state, caller, id, plan).await;
    }
    let _permit = state.bulkheads.report(caller.tenant_id())?;
    check_variables(state, caller, id, plan).await
}

/// Has every contact what the template needs? Its settings may have changed since the contacts came in.
pub(super) async fn check_variables(state: &State, caller: &Caller, id: CampaignId, plan: &Plan) -> ApiResult<()> {
    let Some(letter) = Letter::check(plan)? else {
        return Ok(());
    };
    let needs = letter.needs(plan);
    if needs.is_empty() {
        return Ok(());
    }
    match contact::first_without(&state.deps.db.reports, caller.own(id).id, &needs).await? {
        None => Ok(()),
        Some((contact, name)) => Err(ApiError::validation(
            "template",
            format!(
                "needs {{{{{name}}}}}, and contact {contact} has none: give it one, or write {{{{{name}|…}}}} with what \
                 stands there instead"
            ),
        )),
    }
}

async fn check(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    check_rules(state, plan)?;
    check_from_numbers(state, caller, plan).await?;
    check_voice(state, caller, plan).await?;
    check_agent(state, caller, plan).await
}

async fn check_voice(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    super::voices::check(state, caller, "voice_id", plan.voice_id.as_deref()).await
}

fn check_rules(state: &State, plan: &Plan) -> ApiResult<()> {
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
    let schedule = &plan.schedule;
    if schedule.windows.as_ref().is_some_and(|windows| windows.len() > 50) {
        return Err(ApiError::validation("schedule.windows", "has more than 50 entries"));
    }
    if schedule.windows.as_ref().is_some_and(Vec::is_empty) {
        return Err(ApiError::validation(
            "schedule.windows",
            "is empty: nobody could ever be called; leave it out for the default",
        ));
    }
    if plan
        .session_type
        .is_some_and(|kind| kind != plan.channel.session_type())
    {
        return Err(ApiError::validation(
            "session_type",
            "does not match the channel: `phone` for phone, `none` for sms and email; leave it out",
        ));
    }
    // A draft may still lack its template; its start needs it.
    if plan.template.is_some() {
        Letter::check(plan)?;
    }
    super::agents::check_dispositions("dispositions", &plan.dispositions)?;
    super::sessions::check_voicemail(&plan.voicemail)?;
    if schedule.blackout_dates.len() > 366 {
        return Err(ApiError::validation(
            "schedule.blackout_dates",
            "has more than 366 entries",
        ));
    }
    if let (Some(starts_at), Some(ends_at)) = (schedule.starts_at, schedule.ends_at)
        && starts_at >= ends_at
    {
        return Err(ApiError::validation(
            "schedule.ends_at",
            "must be later than `starts_at`",
        ));
    }
    Ok(())
}

async fn check_agent(state: &State, caller: &Caller, plan: &Plan) -> ApiResult<()> {
    let Some(id) = plan.agent_id else { return Ok(()) };
    match agent::load(&state.deps.db.read, caller.tenant_id(), id).await {
        Err(Error::NotFound(_)) => Err(ApiError::validation("agent_id", "is not an agent of this workspace")),
        found => Ok(state.deps.providers.check(&found?.definition, caller.env())?),
    }
}
