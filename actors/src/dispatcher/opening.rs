//! A campaign's queue as a dispatcher finds it in the rows.
use crate::{
    deps::Deps,
    legal::{self, Workspace},
    session::caller_id,
};
use entities::{
    Result,
    abandonment::{Abandonment, AbandonmentLimit},
    boxed, caller_rest,
    campaign::{Channel, Model as Campaign},
    campaign_hour, contact, number, tally,
    values::{E164, Env, Moment},
};
use rules::{
    dispatch::{
        queue::{Queue, Rows},
        usage::Usage,
    },
    hours::{self, Rules},
    law::LegalTerms,
};
use std::collections::{BTreeSet, HashMap};

/// A campaign's queue, with nobody in it yet. `old` is the same campaign's queue before: its pace runs on.
#[boxed]
pub async fn open(deps: &Deps, mut campaign: Campaign, old: Option<Queue>, workspace: &Workspace) -> Result<Queue> {
    let db = &deps.db.read;
    let plan = &mut campaign.plan;
    if plan.from_numbers.is_empty() && plan.channel == Channel::Phone {
        let default = caller_id::default_of(db, (campaign.tenant_id, campaign.env)).await?;
        plan.from_numbers.extend(default);
    }
    let legal = legal::of_campaign_in(deps, db, workspace, &campaign).await?;
    let rules = Rules::new(&campaign.plan.schedule, campaign.env, workspace.zone).under(legal::hours(&legal));
    let times = deps.clock.times();
    // By the clock whose day began earlier, and ends later.
    let (begins, ends) = hours::day_of(rules.zone, times.earlier());
    let dialed_today = match campaign.plan.caps.campaign_per_day {
        Some(_) => campaign_hour::dialed_since(db, campaign.id, begins).await?,
        None => 0,
    };
    let spent_cents = match campaign.plan.caps.budget_cents {
        Some(_) => tally::load(db, campaign.id).await?.cost_cents,
        None => 0,
    };
    let plan = &campaign.plan;
    let trunks = match (plan.channel, campaign.env) {
        (Channel::Phone, Env::Live) => number::trunks_of(db, campaign.tenant_id, &plan.from_numbers).await?,
        _ => Vec::new(),
    };
    let zones = contact::fresh_zones(db, campaign.id).await?;
    let abandonment = abandonment_limits(deps, &campaign, &legal, &zones).await?;
    let abandoned = match abandonment.is_empty() {
        true => Abandonment::default(),
        false => campaign_hour::abandonment(db, campaign.id, times).await?,
    };
    let rows = Rows {
        trunks: trunks.into_iter().collect(),
        resting: resting(deps, &campaign, times.earlier()).await?,
        abandonment,
        abandoned,
        zones,
        usage: Usage {
            dialed_today,
            day_ends: ends.plus_millis(times.behind_ms().max(0)),
            spent_cents,
            reserved_cents: 0,
        },
        campaign,
        legal: Some(legal),
    };
    Queue::new(rows, rules, old, &deps.limits, times.behind_ms())
}

/// What the law allows of abandoned calls where the campaign calls; the strictest of each span.
async fn abandonment_limits(
    deps: &Deps,
    campaign: &Campaign,
    legal: &LegalTerms,
    fresh: &[String],
) -> Result<Vec<AbandonmentLimit>> {
    if campaign.plan.channel != Channel::Phone || !legal.is_enforced {
        return Ok(Vec::new());
    }
    let due = contact::due_zones(&deps.db.read, campaign.id).await?;
    let groups: BTreeSet<&String> = fresh.iter().chain(&due).collect();
    let now = deps.clock.now();
    let limits = groups
        .into_iter()
        .flat_map(|group| legal.abandonment_limits(&hours::places_part(group), now));
    let limits: BTreeSet<AbandonmentLimit> = limits.collect();
    Ok(limits.into_iter().collect())
}

/// Until when some of its numbers rest. With one there is no choice.
async fn resting(deps: &Deps, campaign: &Campaign, now: Moment) -> Result<HashMap<E164, Moment>> {
    if campaign.plan.channel != Channel::Phone || campaign.plan.from_numbers.len() < 2 {
        return Ok(HashMap::new());
    }
    let rows = caller_rest::lasting(&deps.db.read, (campaign.tenant_id, campaign.env), now).await?;
    Ok(rows.into_iter().map(|row| (row.phone_number, row.ends_at)).collect())
}
