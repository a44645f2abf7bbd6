//! A campaign is made: as a draft, or with its contacts and started at once.
use super::plan;
use crate::{
    birth::{self, Birth},
    contact::intake::{self, Added, Reading, Rejected},
    deps::Deps,
    traces::RequestTrace,
};
use entities::{
    Error, Result, api_key, boxed,
    campaign::{self as store, AgentSnapshot, Plan},
    connection::Transaction,
    contact,
    ids::{ApiKeyId, CampaignId, TenantId, TenantScoped},
    tenant,
    values::{Env, Moment, Text},
};
use rules::campaign::{
    machine::{self, Campaign, Command},
    message_template::MessageTemplate,
};
use std::{collections::BTreeSet, sync::Arc};

/// Makes a draft. `id`: the one that a repeat of the same request asks for again; `None`: nobody repeats it.
#[boxed]
pub async fn create(
    deps: &Deps,
    owner: (TenantId, Env),
    id: Option<CampaignId>,
    plan: Plan,
) -> Result<TenantScoped<CampaignId>> {
    plan::check(deps, owner, &plan).await?;
    draft(deps, owner, id, plan).await
}

async fn draft(
    deps: &Deps,
    owner: (TenantId, Env),
    id: Option<CampaignId>,
    plan: Plan,
) -> Result<TenantScoped<CampaignId>> {
    let key = key(deps, owner, id);
    let (campaign, effects) = Campaign::draft(key, plan, deps.clock.now());
    birth::create_or_find(deps, Birth::of(campaign, effects)).await?;
    Ok(key)
}

fn key(deps: &Deps, (tenant, env): (TenantId, Env), id: Option<CampaignId>) -> TenantScoped<CampaignId> {
    TenantScoped::new(tenant, env, id.unwrap_or_else(|| deps.ids.next()))
}

/// Makes a draft with the settings of another one, and no contacts. `name`: else the same with `(copy)`.
#[boxed]
pub async fn duplicate(
    deps: &Deps,
    of: TenantScoped<CampaignId>,
    id: Option<CampaignId>,
    name: Option<Text<1, 200>>,
) -> Result<TenantScoped<CampaignId>> {
    let mut plan = store::load(&deps.db.read, of).await?.plan;
    let copy = || Text::parse(&format!("{} (copy)", &plan.name.chars().take(190).collect::<String>()));
    plan.name = match name {
        Some(name) => name,
        None => copy().map_err(|why| Error::invalid("name", why))?,
    };
    plan::check_voice(deps, of.tenant_id, &plan).await?;
    // A time that has passed says nothing of the new one.
    let now = deps.clock.now();
    plan.schedule.starts_at = plan.schedule.starts_at.filter(|at| *at > now);
    plan.schedule.ends_at = plan.schedule.ends_at.filter(|at| *at > now);
    draft(deps, (of.tenant_id, of.env), id, plan).await
}

/// A campaign that is to start at once.
pub struct Run {
    /// The one that a repeat of the same request asks for again; `None`: nobody repeats it.
    pub id: Option<CampaignId>,
    pub plan: Plan,
    /// 1 to 10,000 of [`intake::Given`], each with its own errors.
    pub contacts: Vec<serde_json::Value>,
    /// The key that asks for it; `None`: a member does, in the console.
    pub api_key: Option<api_key::Model>,
    /// The span of the request, if requests are traced.
    pub trace: Option<RequestTrace>,
}

/// The most contacts of one request.
const MAX_CONTACTS: usize = 10_000;

/// Makes a campaign with its contacts, and starts it, all in one transaction.
#[boxed]
pub async fn run(deps: &Deps, owner: (TenantId, Env), asked: Run) -> Result<(TenantScoped<CampaignId>, Added)> {
    let Run {
        id,
        plan,
        contacts: given,
        api_key,
        trace,
    } = asked;
    if given.is_empty() || given.len() > MAX_CONTACTS {
        let why = format!("has {} entries; 1 to {MAX_CONTACTS} are allowed", given.len());
        return Err(Error::invalid("contacts", why));
    }
    plan::check(deps, owner, &plan).await?;
    plan::check_sender(deps, owner.1, &plan)?;
    plan::check_caller(deps, owner, &plan).await?;
    // It starts at once: it must have what it writes.
    MessageTemplate::check(&plan)?;
    let agent = plan::agent_of(deps, owner.0, &plan).await?;
    plan::check_key(deps, agent.as_ref(), api_key.as_ref())?;
    let api_key_id = api_key.and_then(|key| key.counted());
    let key = key(deps, owner, id);
    let reading = Reading::of(&plan, tenant::country(&deps.db.read, owner.0).await?)?;
    let sorted = intake::sort(deps, key, &reading, given);
    if sorted.rows.is_empty() {
        return Err(none_of(&sorted.rejected));
    }
    let groups: BTreeSet<String> = sorted.rows.iter().map(|row| row.zone.clone()).collect();
    let groups: Vec<String> = groups.into_iter().collect();
    plan::check_law(deps, owner, (&plan, agent.as_ref()), &groups).await?;
    let added = Added {
        accepted: sorted.rows.len() as u64,
        duplicates: sorted.duplicates,
        rejected: sorted.rejected,
    };
    if let Some(trace) = trace {
        deps.traces.begin(trace, key.id.into());
    }
    let (rows, now) = (Arc::new(sorted.rows), deps.clock.now());
    let started = birth::create_within(deps, key.tenant_id, move |db| {
        let (rows, plan, agent) = (rows.clone(), plan.clone(), agent.clone());
        Box::pin(async move { started(db, (key, api_key_id), (plan, agent), &rows, now).await })
    });
    match started.await {
        Ok(_) => {}
        // A repeat of a request that a crash cut off after its commit.
        Err(Error::Stale | Error::AlreadyExists { .. }) if id.is_some() => {}
        Err(error) => return Err(error),
    }
    Ok((key, added))
}

fn none_of(rejected: &[Rejected]) -> Error {
    let why = rejected.first().map(|first| first.message.clone()).unwrap_or_default();
    Error::invalid(
        "contacts",
        format!("none of them can be accepted; the first one: {why}"),
    )
}

/// Inside the transaction: what was added is what counts.
async fn started(
    db: &Transaction,
    (key, api_key_id): (TenantScoped<CampaignId>, Option<ApiKeyId>),
    (plan, agent): (Plan, Option<AgentSnapshot>),
    rows: &[contact::Model],
    now: Moment,
) -> Result<Birth<Campaign>> {
    let (draft, mut effects) = Campaign::draft(key, plan, now);
    let contacts = i64::try_from(contact::add(db, rows).await?).unwrap_or(i64::MAX);
    let start = Command::Start {
        agent: agent.map(Box::new),
        contacts,
        api_key_id,
    };
    let (campaign, more) = machine::transition(draft, start, now)?;
    effects.extend(more);
    let mut birth = Birth::of(campaign, effects);
    let tally = birth.commit.changes.tally(key);
    tally.total += contacts;
    tally.pending += contacts;
    Ok(birth)
}
