//! A workspace's phone numbers: who answers them, and how well. Shared by its two envs; calls and rates are the key's env's.
//!
//! Any number can be added, and no answer says whether another workspace has it: what is added is configuration, good for
//! the sandbox. Live use asks for a claim, which is unique (`entities::number_claim`).
use super::{
    caller::Caller,
    error::{ApiError, ApiResult},
    extract::{self, Id, Json, Params},
    views::List,
};
use crate::state::State;
use actix_web::{
    HttpResponse,
    web::{self, Data},
};
use actors::{
    caller_health::{self, CallerHealth},
    inbound::WINDOW_SECONDS,
};
use entities::{
    Error, agent,
    caller_rest::CallerRestCause,
    checks::{Checks, both},
    error::Fault,
    ids::{AgentId, NumberId, TrunkId},
    inbound_call::{self, Counts},
    number::{self as store, Inbound, Model, Otherwise},
    number_claim, sip_trunk, tenant,
    values::{E164, Env, Moment, Text},
};
use rules::{commit::Commit, effect::Hint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number to be called on and from: at once in the sandbox, live once it is verified.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// However it is typed; without `+` it is read in the workspace's country.
    pub phone_number: Text<1, 40>,
    #[serde(flatten)]
    pub settings: NumberSettings,
}

/// What can be changed about a number.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberSettings {
    #[serde(default)]
    pub label: Option<Text<1, 200>>,
    /// The SIP trunk for its incoming and outgoing calls; null: none.
    #[serde(default)]
    pub trunk_id: Option<TrunkId>,
    /// Who answers it; null: nobody.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// What happens to calls that no agent can take.
    #[serde(default)]
    pub inbound: Inbound,
    /// Texts that it sends.
    #[serde(default)]
    pub sms: NumberSms,
}

/// Texts that a number sends.
#[derive(Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberSms {
    /// Under which they are registered with the carriers, such as the id of a 10DLC campaign; null: they are not. Carriers in the United
    /// States block texts that are not registered.
    #[serde(default)]
    pub registration_id: Option<Text<1, 100>>,
}

/// How the calls went that showed a number, in the last 24 hours.
#[derive(Serialize, JsonSchema)]
pub struct OutboundHealthView {
    pub dialed: i64,
    /// A person or a machine picked up.
    pub answered: i64,
    /// A network, or what somebody has set up, turned the call down for the number (SIP 608; 603 "Network Blocked").
    pub blocked: i64,
    /// `answered` by `dialed`, from 0 to 1; null without calls.
    pub answer_rate: Option<f64>,
    /// `blocked` by `dialed`, from 0 to 1; null without calls.
    pub block_rate: Option<f64>,
    /// Until then campaigns with more numbers do not show it; null: it does not rest.
    pub rests_until: Option<Moment>,
    pub rest_cause: Option<CallerRestCause>,
}

impl From<CallerHealth> for OutboundHealthView {
    fn from(CallerHealth { counts, rest }: CallerHealth) -> Self {
        let rate = |part: i64| (counts.dialed > 0).then(|| part as f64 / counts.dialed as f64);
        OutboundHealthView {
            dialed: counts.dialed,
            answered: counts.answered,
            blocked: counts.blocked,
            answer_rate: rate(counts.answered),
            block_rate: rate(counts.blocked),
            rests_until: rest.as_ref().map(|rest| rest.ends_at),
            rest_cause: rest.map(|rest| rest.cause),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct NumberView {
    pub id: NumberId,
    pub phone_number: E164,
    pub label: Option<String>,
    pub trunk_id: Option<TrunkId>,
    pub agent_id: Option<AgentId>,
    pub inbound: Inbound,
    pub sms: NumberSms,
    /// How the calls went that showed it, in the last 24 hours; left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outbound_health: Option<OutboundHealthView>,
    /// `answered` by all calls of the last 24 hours, from 0 to 1; null without calls.
    pub answer_rate_24h: Option<f64>,
    /// `active`: it may be used live. `unverified`: with test keys only, until a code of a live key is confirmed at
    /// `/v1/verified_numbers`, or the operator claims it for the workspace.
    pub status: NumberStatus,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// May it be used live?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberStatus {
    Unverified,
    Active,
}

/// The last 24 hours of a number.
#[derive(Serialize, JsonSchema)]
pub struct NumberStatsView {
    pub number_id: NumberId,
    pub window_start: Moment,
    pub window_end: Moment,
    pub calls: i64,
    /// Taken by an agent.
    pub answered: i64,
    /// The number had no agent.
    pub no_agent: i64,
    /// All slots were taken.
    pub no_slot: i64,
    /// The caller gave up before anybody answered.
    pub abandoned: i64,
    /// The workspace could take no call; not counted in any rate.
    pub blocked: i64,
    /// `answered` by `calls`, from 0 to 1; null without calls.
    pub answer_rate: Option<f64>,
    /// Will `number.answer_rate_degraded` be sent when the rate falls below 0.80? Armed again at 0.85.
    pub alarm_armed: bool,
    pub last_alarm_at: Option<Moment>,
}

/// Numbers of a workspace.
const MAX_NUMBERS: u64 = 1_000;

/// POST /v1/numbers
pub async fn create(
    state: Data<State>,
    caller: Caller,
    Json(asked): Json<serde_json::Value>,
) -> ApiResult<HttpResponse> {
    let (text, settings) = split(asked)?;
    let country = tenant::country(&state.deps.db.read, caller.tenant_id()).await?;
    let number = E164::parse(&text, country);
    let phone_number = number.map_err(|why| ApiError::validation("phone_number", why))?;
    let db = &state.deps.db.read;
    // A repeat of a request whose answer was lost.
    if let Some(id) = caller.object_id
        && let Ok(row) = store::load(db, caller.tenant_id(), id.into()).await
    {
        return Ok(HttpResponse::Created().json(view(&state, caller.env(), row).await?));
    }
    check(&state, &caller, &settings).await?;
    if store::count(db, caller.tenant_id()).await? >= MAX_NUMBERS {
        return Err(Error::PlanLimit(format!("a workspace has at most {MAX_NUMBERS} numbers; delete some")).into());
    }
    let now = state.deps.clock.now();
    let row = Model {
        id: caller.new_id(&state.deps.ids),
        tenant_id: caller.tenant_id(),
        phone_number,
        label: settings.label.map(Text::into_string),
        trunk_id: settings.trunk_id,
        agent_id: settings.agent_id,
        inbound: settings.inbound,
        sms_registration: settings.sms.registration_id.map(Text::into_string),
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    if state.deps.sms.is_shared(&row.phone_number) {
        return Err(ApiError::validation(
            "phone_number",
            "is this installation's own number, which sends for workspaces without one",
        ));
    }
    match save(&state, row.clone()).await {
        Ok(()) => {}
        Err(Error::AlreadyExists { .. }) => return Err(taken().into()),
        Err(error) => return Err(error.into()),
    }
    Ok(HttpResponse::Created().json(view(&state, caller.env(), row).await?))
}

/// The number and the rest; each with its own errors.
fn split(mut body: serde_json::Value) -> ApiResult<(Text<1, 40>, NumberSettings)> {
    let number = body
        .as_object_mut()
        .and_then(|fields| fields.shift_remove("phone_number"));
    // Of its settings none is required.
    let settings = extract::parse_rest(body, &serde_json::json!({}), "phone_number");
    let number = match number {
        None => Err(Error::Faults(vec![Fault::missing("phone_number")])),
        Some(number) => rules::shape::parse_part(number).map_err(|why| Error::invalid("phone_number", why)),
    };
    Ok(both(settings, number).map(|(settings, number)| (number, settings))?)
}

/// GET /v1/numbers
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<NumberView>>> {
    let page = params.page()?;
    params.finish()?;
    let listed = store::list(&state.deps.db.read, caller.tenant_id(), page).await?;
    let mut views = Vec::with_capacity(listed.rows.len());
    for row in &listed.rows {
        views.push(view(&state, caller.env(), row.clone()).await?);
    }
    Ok(web::Json(List::made(&listed, |row| row.id.0, views)))
}

/// GET /v1/numbers/{id}
pub async fn get(state: Data<State>, caller: Caller, Id(id): Id<NumberId>) -> ApiResult<web::Json<NumberView>> {
    let db = &state.deps.db.read;
    let row = store::load(db, caller.tenant_id(), id).await?;
    let owner = (caller.tenant_id(), caller.env());
    let health = caller_health::of_number(db, owner, &row.phone_number, state.deps.clock.now()).await?;
    let seen = view(&state, caller.env(), row).await?;
    Ok(web::Json(NumberView {
        outbound_health: Some(health.into()),
        ..seen
    }))
}

/// PATCH /v1/numbers/{id}: a JSON merge patch.
pub async fn change(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<NumberId>,
    Json(patch): Json<serde_json::Value>,
) -> ApiResult<web::Json<NumberView>> {
    let before = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let settings = serde_json::json!({
        "label": before.label, "trunk_id": before.trunk_id, "agent_id": before.agent_id, "inbound": before.inbound,
        "sms": { "registration_id": before.sms_registration },
    });
    let asked: NumberSettings = extract::merged(settings, patch)?;
    check(&state, &caller, &asked).await?;
    let left = before.trunk_id.filter(|before| asked.trunk_id != Some(*before));
    let after = Model {
        label: asked.label.map(Text::into_string),
        trunk_id: asked.trunk_id,
        agent_id: asked.agent_id,
        inbound: asked.inbound,
        sms_registration: asked.sms.registration_id.map(Text::into_string),
        version: before.version + 1,
        updated_at: state.deps.clock.now(),
        ..before
    };
    save(&state, after.clone()).await?;
    if let Some(trunk) = left {
        state.deps.router.trunk(after.tenant_id, trunk);
    }
    Ok(web::Json(view(&state, caller.env(), after).await?))
}

/// DELETE /v1/numbers/{id}
pub async fn delete(state: Data<State>, caller: Caller, Id(id): Id<NumberId>) -> ApiResult<HttpResponse> {
    let mut row = store::load(&state.deps.db.read, caller.tenant_id(), id).await?;
    let now = state.deps.clock.now();
    row.version += 1;
    (row.updated_at, row.deleted_at) = (now, Some(now));
    save(&state, row).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// GET /v1/numbers/{id}/stats
pub async fn stats(state: Data<State>, caller: Caller, Id(id): Id<NumberId>) -> ApiResult<web::Json<NumberStatsView>> {
    let db = &state.deps.db.read;
    let row = store::load(db, caller.tenant_id(), id).await?;
    let now = state.deps.clock.now();
    let since = now.plus_seconds(-WINDOW_SECONDS);
    let counts = inbound_call::counts_since(db, row.id, caller.env(), since).await?;
    let alarm = store::alarm::load(db, row.id, caller.env()).await?;
    let Counts {
        answered,
        no_agent,
        no_slot,
        abandoned,
        blocked,
    } = counts;
    Ok(web::Json(NumberStatsView {
        number_id: row.id,
        window_start: since,
        window_end: now,
        calls: counts.total(),
        answered,
        no_agent,
        no_slot,
        abandoned,
        blocked,
        answer_rate: counts.answer_rate(),
        alarm_armed: alarm.armed,
        last_alarm_at: alarm.alarmed_at,
    }))
}

async fn check(state: &State, caller: &Caller, asked: &NumberSettings) -> ApiResult<()> {
    let mut checks = Checks::default();
    if let Some(id) = asked.agent_id {
        checks.add(match agent::load(&state.deps.db.read, caller.tenant_id(), id).await {
            Err(Error::NotFound(_)) => Err(Error::invalid("agent_id", "is not an agent of this workspace")),
            found => found.map(drop),
        });
    }
    let plays = [asked.inbound.without_agent, asked.inbound.without_slot].contains(&Otherwise::PlayMessage);
    if plays && asked.inbound.message.is_none() {
        checks.refuse("inbound.message", "is needed for `play_message`");
    }
    Ok(checks.end()?)
}

fn taken() -> Error {
    Error::AlreadyExists { field: "phone_number" }
}

async fn save(state: &State, row: Model) -> Result<(), Error> {
    let (tenant, trunk) = (row.tenant_id, row.trunk_id);
    // In the writer's own transaction: its trunk is not deleted meanwhile.
    let saving = state.deps.writer.run(tenant, move |db| {
        let row = row.clone();
        Box::pin(async move {
            if let Some(id) = row.trunk_id {
                match sip_trunk::load(db, row.tenant_id, id).await {
                    Err(Error::NotFound(_)) if row.deleted_at.is_none() => {
                        return Err(Error::invalid("trunk_id", "is not a SIP trunk of this workspace"));
                    }
                    Err(Error::NotFound(_)) | Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
            // Its own only: others may have the same number, and nobody is told.
            if row.version == 1 && store::of_number(db, row.tenant_id, &row.phone_number).await?.is_some() {
                return Err(taken());
            }
            // With the number the workspace gives up what it had of it.
            if row.deleted_at.is_some() {
                number_claim::release(db, row.tenant_id, &row.phone_number).await?;
            }
            let mut commit = Commit::default();
            commit.changes.numbers.push(row);
            Ok(((), commit))
        })
    });
    saving.await?;
    // It may be the first number that uses it, or the last that did.
    if let Some(trunk) = trunk {
        state.deps.router.trunk(tenant, trunk);
    }
    // What its live calls go over may be another trunk now, or none.
    state.deps.router.perform(vec![Hint::CampaignsChanged(tenant).into()]);
    Ok(())
}

async fn view(state: &State, env: Env, row: Model) -> ApiResult<NumberView> {
    let since = state.deps.clock.now().plus_seconds(-WINDOW_SECONDS);
    let db = &state.deps.db.read;
    let counts = inbound_call::counts_since(db, row.id, env, since).await?;
    let claimed = number_claim::holds(db, row.tenant_id, &row.phone_number).await?;
    Ok(NumberView {
        id: row.id,
        phone_number: row.phone_number,
        label: row.label,
        trunk_id: row.trunk_id,
        status: if claimed {
            NumberStatus::Active
        } else {
            NumberStatus::Unverified
        },
        agent_id: row.agent_id,
        inbound: row.inbound,
        sms: NumberSms {
            registration_id: row.sms_registration.and_then(|id| Text::parse(&id).ok()),
        },
        outbound_health: None,
        answer_rate_24h: counts.answer_rate(),
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}
