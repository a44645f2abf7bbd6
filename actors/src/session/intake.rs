//! Direct calls: may this one be placed, and when? The same rules as a campaign's, asked when it is made and once more, inside
//! the transaction, when it is dialled.
use crate::{
    credits,
    deps::Deps,
    holds,
    legal::{self, Asked},
    people::{People, people},
    registers::asking::Unanswered,
};
use entities::{
    Error, Result, api_key, boxed,
    campaign::Channel,
    contact::Address,
    dispatch_block::{self, Reason},
    session::{self as store, KeyFull, Model},
    tenant,
    values::{Cents, E164, Env, Moment},
};
use rules::{
    dispatch::concurrency::Concurrency,
    eligibility::{self, Rule, Terms, Verdict, direct_caps, ring_ms},
    hours::Rules,
    law::places,
    reach::Reach,
    session::machine::cost,
};

/// What a call that is made outside the calling hours becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfClosed {
    /// It is refused.
    #[default]
    Reject,
    /// It is placed when the hours begin.
    Defer,
}

/// Calls that may wait, per tenant and env.
const MAX_QUEUED: u64 = 10_000;

/// Checks the rules; answers the row, with its time if it has to wait for one.
#[boxed]
pub async fn check(deps: &Deps, row: Model, language: &str, if_closed: IfClosed) -> Result<Model> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let to_number = row.callee()?;
    is_cheap_enough(deps, to_number)?;
    places::check(row.region()).map_err(|why| Error::invalid("contact.region", why))?;
    let tenant = tenant::load(db, row.tenant_id).await?;
    if row.env == Env::Live && !to_number.is_sandbox() {
        let reach = Reach::of(&tenant, &deps.limits)?;
        reach.check(to_number).map_err(|beyond| beyond.of_field("to_number"))?;
    }
    let whom = Address::Number(to_number.clone());
    let owner = (row.tenant_id, row.env);
    let whose = People {
        owner,
        channel: Channel::Phone,
        itself: None,
    };
    let mut people = people(deps, &deps.db.read, whose, vec![whom.clone()], now).await?;
    let mut record = people.get(&whom).cloned().unwrap_or_default();
    if !record.has_number {
        return Err(match row.env {
            Env::Test => Error::NumberNotVerified,
            Env::Live => Error::invalid("to_number", "is a sandbox number: use a test key"),
        });
    }
    is_paid_for(deps, &row).await?;
    let starts = row.scheduled_at.map_or(now, |at| at.max(now));
    let legal = legal::of_call(deps, db, &row, language).await?;
    let asked = Asked::called(whom.clone(), &row.person(), row.timezone);
    let only = (std::slice::from_ref(&asked), Unanswered::Ask);
    legal::learn(deps, owner, &legal, only, (&mut people, now)).await?;
    if let Some(known) = people.remove(&whom) {
        record = known;
    }
    if record.is_barred {
        return Err(Error::RecipientOnDnc);
    }
    let is_for_later = row.scheduled_at.is_some_and(|at| at > now);
    let behind_ms = match is_for_later {
        // Asked once more when its time has come.
        true => 0,
        false => deps.clock.times().behind_ms(),
    };
    let judged = legal.judged(asked.whom(), &record, row.from_number.as_ref(), (starts, behind_ms));
    if legal.is_enforced {
        let judgement = legal.by_both_clocks(&judged, behind_ms);
        legal::permits(&legal, (&judged, &judgement), (is_for_later, behind_ms))?;
        record.judgement = Some(judgement);
    }
    let rules = Rules::direct(row.env, tenant.timezone).under(legal::hours(&legal));
    let calling_hours = rules.of_person(to_number, row.timezone, row.region());
    let caps = direct_caps(&deps.limits);
    let terms = Terms {
        caps: &caps,
        ends_at: None,
        ring_ms: ring_ms(row.ring_timeout_seconds),
        suspended_since: None,
        credits_gone: false,
        behind_ms,
    };
    let keeps = eligibility::first_no(&[Rule::Caps, Rule::Hours], &record, &calling_hours, &terms, starts);
    when(row, keeps, if_closed)
}

fn is_cheap_enough(deps: &Deps, to_number: &E164) -> Result<()> {
    match to_number.costly_kind() {
        Some(kind) if !deps.limits.allow_costly_numbers => Err(Error::invalid(
            "to_number",
            format!("is {kind}: the operator does not allow calls to it"),
        )),
        Some(_) | None => Ok(()),
    }
}

/// The call, with its time if it has to wait for one.
fn when(row: Model, keeps: Option<(Rule, Verdict)>, if_closed: IfClosed) -> Result<Model> {
    match keeps {
        None => Ok(row),
        Some((Rule::Caps, Verdict::Wait(Some(until)))) => Err(Error::DailyCapReached { until }),
        Some((_, Verdict::Wait(next_open_at))) => match (if_closed, next_open_at) {
            (IfClosed::Defer, Some(at)) => Ok(Model {
                scheduled_at: Some(at),
                ..row
            }),
            (IfClosed::Reject, _) | (IfClosed::Defer, None) => Err(Error::OutsideCallingHours { next_open_at }),
        },
        Some(_) => Err(Error::OutsideCallingHours { next_open_at: None }),
    }
}

/// Nothing blocks the workspace, and its credits suffice.
async fn is_paid_for(deps: &Deps, row: &Model) -> Result<()> {
    let blocks = dispatch_block::of(&deps.db.read, row.tenant_id).await?;
    if let Some(block) = blocks.iter().find(|block| block.env == row.env) {
        return Err(match block.reason {
            Reason::Credits => Error::InsufficientCredits,
            Reason::Suspension => Error::PlanLimit("the workspace is suspended: ask the operator".into()),
        });
    }
    let owner = (row.tenant_id, row.env);
    let hold = deps
        .limits
        .credits
        .hold(row.price_cents_per_minute, row.max_duration_seconds);
    if credits::set_aside(deps, owner, hold).await?.is_none() {
        // With whole holds, what cannot be afforded blocks, and whoever pays by the event must hear of it.
        if deps.limits.credits.hold_seconds == 0 {
            credits::refuse(deps, owner, hold).await?;
        }
        return Err(Error::InsufficientCredits);
    }
    Ok(())
}

/// Is there a slot for a call that does not want to wait, and room in the queue for one that does? One that is to leave now is
/// refused while nothing may leave.
#[boxed]
pub async fn check_capacity(deps: &Deps, row: &Model) -> Result<()> {
    if row.scheduled_at.is_none() {
        holds::check(deps).await?;
    }
    let db = &deps.db.read;
    let tenant = tenant::load(db, row.tenant_id).await?;
    let concurrency = Concurrency::of(&tenant, &deps.limits);
    let limit = concurrency.limit;
    if store::count_queued(db, row.tenant_id, row.env).await? >= MAX_QUEUED {
        return Err(Error::ConcurrencyFull { limit });
    }
    if row.queue_ttl_seconds == 0 && row.scheduled_at.is_none() {
        let in_use = store::in_use(db, row.tenant_id, row.env).await?;
        let before = store::count_in_line(db, row.tenant_id, row.env).await?;
        let count = |calls: u64| i64::try_from(calls + before).unwrap_or(i64::MAX);
        if !concurrency.has_for_outbound(count(in_use.total()), count(in_use.outbound())) {
            return Err(Error::ConcurrencyFull { limit });
        }
    }
    Ok(())
}

/// Have the limits of the key that asks room for it, behind those that wait already? One for later is asked about then: what counts is
/// the transaction of its dial.
#[boxed]
pub async fn check_key(deps: &Deps, key: &api_key::Model, row: &Model) -> Result<()> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let most = cost(row.price_cents_per_minute, row.max_duration_seconds);
    fits_a_day(key, most, "")?;
    if !key.has_limits() || row.scheduled_at.is_some_and(|at| at > now) {
        return Ok(());
    }
    // Both as they are at one moment: a call that leaves between two looks would be in neither.
    let moment = db.snapshot().await?;
    let mut used = store::key_use(&moment, key, now, &[]).await?;
    let waiting = store::waiting_of_key(&moment, key.id).await?;
    moment.rollback().await?;
    for most in waiting {
        used.add(most, now);
    }
    match used.is_full(key, most, now) {
        None => Ok(()),
        Some(full) => Err(no_room(key, (full, used.spent), (most, row.max_duration_seconds), now)),
    }
}

/// Could one call that costs so much at most ever leave with it? Else it would wait in vain, on any day. `whose`: longest duration, with
/// a space behind it, where that is not the call's own.
pub fn fits_a_day(key: &api_key::Model, most: Cents, whose: &str) -> Result<()> {
    let Some(max) = key.max_spend_cents_per_day.filter(|max| most.0 > i64::from(*max)) else {
        return Ok(());
    };
    let why = format!(
        "{whose}lets one call cost {} cents, more than the {max} that this key's calls may cost in a day \
         (`max_spend_cents_per_day`): lower it, or use a key with a higher limit",
        most.0
    );
    Err(Error::invalid("max_duration_seconds", why))
}

/// What to do about it, in words.
fn no_room(key: &api_key::Model, (full, spent): (KeyFull, Cents), (most, seconds): (Cents, i32), now: Moment) -> Error {
    let retry_after_seconds = full.until().since(now).as_secs() + 1;
    let (limit, reason) = match full {
        KeyFull::Spend { until } => {
            let max = key.max_spend_cents_per_day.unwrap_or_default();
            let reason = format!(
                "this key's calls may cost {max} cents a day: {} are spent or set aside, and {seconds} seconds can cost {}; \
                 wait until {until}, lower `max_duration_seconds`, or use a key with a higher limit",
                spent.0, most.0
            );
            ("max_spend_cents_per_day", reason)
        }
        KeyFull::Calls { until } => {
            let max = key.max_calls_per_minute.unwrap_or_default();
            let reason = format!(
                "this key may place {max} calls a minute, those that wait included; wait until {until}, or use a key with a \
                 higher limit"
            );
            ("max_calls_per_minute", reason)
        }
    };
    Error::KeyLimit {
        limit,
        reason,
        retry_after_seconds,
    }
}
