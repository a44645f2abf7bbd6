//! What a campaign's settings refer to: is it there, and can it be used?
use crate::{
    call::voice,
    deps::Deps,
    email, legal,
    session::{caller_id, intake},
    sms,
};
use entities::{
    Error, Result, agent, api_key, boxed,
    campaign::{AgentSnapshot, Channel, Model, Plan},
    checks::Checks,
    contact,
    ids::{CampaignId, TenantId},
    tally,
    values::Env,
};
use rules::{
    campaign::{message_template::MessageTemplate, plan},
    session::machine::cost,
};

/// All that holds before it starts, too. Errors: every field that is wrong.
#[boxed]
pub async fn check(deps: &Deps, owner: (TenantId, Env), plan: &Plan) -> Result<()> {
    let mut checks = Checks::default();
    checks.add(plan::check(plan, deps.limits.max_calls_per_second));
    // Each number is looked for: no more of them than there may be.
    if plan.from_numbers.len() <= plan::MOST_FROM_NUMBERS {
        checks.add(check_from_numbers(deps, owner, plan).await);
    }
    checks.add(check_voice(deps, owner.0, plan).await);
    checks.add(check_agent(deps, owner, plan).await);
    checks.end()
}

/// What is changed must be as in a new one; what refers to something that was deleted since keeps nothing else from being
/// changed.
#[boxed]
pub async fn check_change(deps: &Deps, before: &Model, plan: &Plan) -> Result<()> {
    let owner = (before.tenant_id, before.env);
    if plan.channel != before.plan.channel && tally::load(&deps.db.read, before.id).await?.total > 0 {
        let why = "is fixed once the campaign has contacts: create a new campaign";
        return Err(Error::invalid("channel", why));
    }
    let mut checks = Checks::default();
    checks.add(plan::check(plan, deps.limits.max_calls_per_second));
    if plan.agent_id != before.plan.agent_id {
        checks.add(check_agent(deps, owner, plan).await);
    }
    if plan.voice_id != before.plan.voice_id {
        checks.add(check_voice(deps, owner.0, plan).await);
    }
    if plan.from_numbers != before.plan.from_numbers && plan.from_numbers.len() <= plan::MOST_FROM_NUMBERS {
        checks.add(check_from_numbers(deps, owner, plan).await);
    }
    checks.end()
}

/// Can it start, but for its contacts? Answers who calls; `None` for a campaign that writes.
#[boxed]
pub async fn check_start(deps: &Deps, campaign: &Model) -> Result<Option<AgentSnapshot>> {
    let (owner, plan) = ((campaign.tenant_id, campaign.env), &campaign.plan);
    check_sender(deps, owner.1, plan)?;
    check_from_numbers(deps, owner, plan).await?;
    check_caller(deps, owner, plan).await?;
    check_voice(deps, owner.0, plan).await?;
    let agent = agent_of(deps, owner.0, plan).await?;
    let groups = contact::fresh_zones(&deps.db.read, campaign.id).await?;
    check_law(deps, owner, (plan, agent.as_ref()), &groups).await?;
    Ok(agent)
}

/// Does the law let anybody of these groups be reached, as far as who calls and what is said has a part in it?
#[boxed]
pub async fn check_law(
    deps: &Deps,
    owner: (TenantId, Env),
    (plan, agent): (&Plan, Option<&AgentSnapshot>),
    groups: &[String],
) -> Result<()> {
    let agent = agent.map(|agent| &agent.definition);
    let terms = legal::of_plan(deps, &deps.db.read, owner, (plan, agent, None)).await?;
    legal::can_start(&terms, groups, deps.clock.now())
}

/// Is there somebody to call, or to write, by?
pub fn check_sender(deps: &Deps, env: Env, plan: &Plan) -> Result<()> {
    match plan.channel {
        Channel::Phone => deps.carriers.check(env),
        Channel::Sms => sms::check_configured(deps, env),
        Channel::Email => email::check_configured(deps, env),
    }
}

/// Texts are written from the workspace's own numbers, and live calls show one of them that has a trunk.
async fn check_from_numbers(deps: &Deps, owner: (TenantId, Env), plan: &Plan) -> Result<()> {
    for number in &plan.from_numbers {
        let usable = match plan.channel {
            // Whether anybody hands texts over is asked at the start.
            Channel::Sms => sms::from_number(deps, owner, Some(number.clone())).await.map(drop),
            Channel::Phone => caller_id::check(&deps.db.read, owner, number).await,
            Channel::Email => Ok(()),
        };
        if let Err(Error::Invalid { reason, .. }) = usable {
            let why = format!("has {number}, which {reason}");
            return Err(Error::invalid("from_numbers", why));
        }
    }
    Ok(())
}

/// Is there a number that its calls can show?
#[boxed]
pub async fn check_caller(deps: &Deps, owner: (TenantId, Env), plan: &Plan) -> Result<()> {
    let is_named = plan.channel != Channel::Phone || !plan.from_numbers.is_empty();
    if is_named || caller_id::default_of(&deps.db.read, owner).await?.is_some() {
        return Ok(());
    }
    let why = "is needed: the workspace has no verified number with a trunk; add one with POST /v1/numbers";
    Err(Error::invalid("from_numbers", why))
}

#[boxed]
pub async fn check_voice(deps: &Deps, tenant: TenantId, plan: &Plan) -> Result<()> {
    voice::check(deps, tenant, "voice_id", plan.voice_id.as_deref()).await
}

async fn check_agent(deps: &Deps, (tenant, env): (TenantId, Env), plan: &Plan) -> Result<()> {
    let Some(id) = plan.agent_id else { return Ok(()) };
    match agent::load(&deps.db.read, tenant, id).await {
        Err(Error::NotFound(_)) => Err(Error::invalid("agent_id", "is not an agent of this workspace")),
        found => deps.providers.check(&found?.definition, env),
    }
}

/// Who calls, at the start; `None` for a campaign that writes.
#[boxed]
pub async fn agent_of(deps: &Deps, tenant: TenantId, plan: &Plan) -> Result<Option<AgentSnapshot>> {
    if plan.channel != Channel::Phone {
        return Ok(None);
    }
    let without = |hint| Error::InvalidState {
        kind: "campaign",
        state: "draft",
        command: "start",
        hint,
    };
    let id = plan
        .agent_id
        .ok_or_else(|| without("it has no agent: set `agent_id`"))?;
    let agent = match agent::load(&deps.db.read, tenant, id).await {
        Err(Error::NotFound(_)) => return Err(without("its agent was deleted")),
        found => found?,
    };
    Ok(Some(AgentSnapshot {
        id: agent.id,
        version: agent.version,
        definition: agent.definition,
    }))
}

/// Would none of its calls ever leave with the key that starts it, because one alone may cost more than all of a day?
pub fn check_key(deps: &Deps, agent: Option<&AgentSnapshot>, key: Option<&api_key::Model>) -> Result<()> {
    let (Some(agent), Some(key)) = (agent, key) else {
        return Ok(());
    };
    let seconds = agent.definition.max_duration_seconds.get();
    let most = cost(deps.limits.call_price_cents_per_minute, seconds);
    intake::fits_a_day(key, most, "of its agent ")
}

/// Has every contact what the template needs? Its settings may have changed since the contacts came in. Reads the whole list,
/// where there is something to look for.
#[boxed]
pub async fn check_variables(deps: &Deps, id: CampaignId, plan: &Plan) -> Result<()> {
    let Some(template) = MessageTemplate::check(plan)? else {
        return Ok(());
    };
    let needs = template.needs(plan);
    if needs.is_empty() {
        return Ok(());
    }
    match contact::first_without(&deps.db.reports, id, &needs).await? {
        None => Ok(()),
        Some((contact, name)) => Err(Error::invalid(
            "template",
            format!(
                "needs {{{{{name}}}}}, and contact {contact} has none: give it one, or write {{{{{name}|…}}}} with what \
                 stands there instead"
            ),
        )),
    }
}
