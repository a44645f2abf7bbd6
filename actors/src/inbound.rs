//! Calls that come in: who takes them, what happens to those that nobody can take, and the alarm when those are too many.
use crate::{
    birth::{self, Birth},
    call::{in_hand::Call, leg::Leg, voice},
    credits,
    deps::Deps,
    legal,
    router::{Admitted, Arrival},
};
use entities::{
    Error, Result,
    agent::{self, Definition},
    boxed,
    campaign::AgentSnapshot,
    ids::{InboundCallId, NumberId, SessionId, TenantId, TenantScoped},
    inbound_call::{self, Counts, InboundOutcome},
    number::{self, Model as Number, Otherwise, alarm},
    number_claim,
    session::{self, Sandbox},
    tenant,
    values::{E164, Env, Moment},
};
use rules::{
    commit::Commit,
    conversation::stock_phrases,
    event::{InboundNumber, NumberAnswerRateDegraded},
    session::{
        machine::Session,
        settings::{self, CallOverrides},
    },
};
use std::sync::Arc;

/// A call to one of the tenant's numbers.
#[derive(Clone, Debug)]
pub struct Arriving {
    pub to_number: E164,
    pub from_number: Option<E164>,
    /// How the sandbox plays the caller; `None`: it is a real one.
    pub sandbox: Option<Sandbox>,
}

/// What is said to a caller whom no agent takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    /// BCP 47.
    pub language: String,
    /// Who says it.
    pub voice_id: String,
}

/// What became of it.
#[derive(Clone, Debug)]
pub enum Taken {
    /// An agent takes it.
    By(Box<session::Model>),
    /// Nobody does; the caller meets this instead.
    Not {
        outcome: InboundOutcome,
        instead: Otherwise,
        message: Option<Message>,
    },
}

/// Seconds it rings here at most.
const RING_TIMEOUT_SECONDS: i32 = 30;

/// Times that a call is decided anew, when the credits that it was to set aside were gone at its commit.
const TRIES: u32 = 3;

/// Takes a call, if the number has an agent, and the tenant a free slot and credits.
#[boxed]
pub async fn receive(deps: &Deps, owner: (TenantId, Env), id: SessionId, call: Arriving) -> Result<Taken> {
    for _ in 1..TRIES {
        match try_receive(deps, owner, id, call.clone()).await {
            Err(Error::Stale) => {}
            decided => return decided,
        }
    }
    try_receive(deps, owner, id, call).await
}

async fn try_receive(deps: &Deps, (tenant, env): (TenantId, Env), id: SessionId, call: Arriving) -> Result<Taken> {
    let db = &deps.db.read;
    // A repeat of a request whose answer was lost: the call is there, and may even be talking.
    match session::load(db, TenantScoped::new(tenant, env, id)).await {
        Ok(row) => return Ok(Taken::By(Box::new(row))),
        Err(Error::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    let number = number::of_number(db, tenant, &call.to_number).await?;
    let number = number.ok_or_else(|| Error::invalid("to_number", "is not one of this workspace's numbers"))?;
    // Live, a number rings with the workspace that has claimed it, and with nobody else that has it among its numbers.
    if env == Env::Live && !number_claim::holds(db, tenant, &call.to_number).await? {
        return Err(Error::invalid("to_number", "is not verified for live use"));
    }
    let agent = match number.agent_id {
        Some(id) => match agent::load(db, tenant, id).await {
            Err(Error::NotFound(_)) => None,
            found => Some(found?),
        },
        None => None,
    };
    let Some(agent) = agent else {
        return turn_away(deps, env, (&number, None), &call, id, InboundOutcome::NoAgent).await;
    };
    deps.providers.check(&agent.definition, env)?;
    let mut row = row(deps, (tenant, env), id, &number, &agent, call.clone());
    let country = entities::tenant::country(db, tenant).await?;
    legal::bind_guest(deps, &mut row, country, &agent.definition.language).await?;
    let terms = &deps.limits.credits;
    let hold = terms.hold(row.price_cents_per_minute, row.max_duration_seconds);
    let Some(hold_cents) = credits::set_aside(deps, (tenant, env), hold).await? else {
        credits::fall_short(deps, (tenant, env), terms.least(hold)).await?;
        let its = (&number, Some(&agent.definition));
        return turn_away(deps, env, its, &call, id, InboundOutcome::Blocked).await;
    };
    let row = session::Model { hold_cents, ..row };
    let (session, effects) = Session::received(row, deps.base_url.clone(), deps.clock.now());
    let birth = Birth::of(session, effects).written(deps).await?;
    let Birth {
        state: session,
        effects,
        commit,
    } = birth;
    let row = session.row();
    let snapshot = Arc::new(AgentSnapshot {
        id: agent.id,
        version: agent.version,
        definition: agent.definition,
    });
    let leg = Leg {
        call: session.call.clone(),
        agent: snapshot.clone(),
    };
    let in_hand = Call {
        leg: Arc::new(leg),
        contact: None,
    };
    let arrival = Arrival {
        session,
        call: in_hand,
        commit,
    };
    let its = (&number, Some(&snapshot.definition));
    match birth::admit(deps, tenant, arrival, effects).await {
        Ok(Admitted::Yes) => Ok(Taken::By(Box::new(row))),
        Ok(Admitted::NoSlot) => turn_away(deps, env, its, &call, id, InboundOutcome::NoSlot).await,
        Ok(Admitted::Blocked) => turn_away(deps, env, its, &call, id, InboundOutcome::Blocked).await,
        Err(error) => Err(error),
    }
}

async fn turn_away(
    deps: &Deps,
    env: Env,
    (number, agent): (&Number, Option<&Definition>),
    call: &Arriving,
    id: SessionId,
    outcome: InboundOutcome,
) -> Result<Taken> {
    let mut commit = Commit::default();
    commit.changes.inbound_calls.push(inbound_call::Model {
        id: InboundCallId(id.0),
        tenant_id: number.tenant_id,
        env,
        number_id: number.id,
        from_number: call.from_number.clone(),
        session_id: None,
        outcome,
        created_at: deps.clock.now(),
    });
    deps.writer.commit(number.tenant_id.into(), commit).await?;
    watch(deps, TenantScoped::new(number.tenant_id, env, number.id));
    let instead = match outcome {
        InboundOutcome::NoSlot | InboundOutcome::Blocked => number.inbound.without_slot,
        InboundOutcome::NoAgent | InboundOutcome::Answered | InboundOutcome::Abandoned => number.inbound.without_agent,
    };
    let message = match instead {
        Otherwise::PlayMessage => message(deps, number, agent).await?,
        Otherwise::Busy | Otherwise::Reject => None,
    };
    Ok(Taken::Not {
        outcome,
        instead,
        message,
    })
}

/// The number's, in its own language, else in its agent's and by that one's voice, else in that of the workspace's country.
async fn message(deps: &Deps, number: &Number, agent: Option<&Definition>) -> Result<Option<Message>> {
    let Some(text) = &number.inbound.message else {
        return Ok(None);
    };
    let (language, chosen) = match (&number.inbound.language, agent) {
        (Some(language), _) => (language.to_string(), None),
        (None, Some(agent)) => (agent.language.to_string(), agent.voice_id.as_deref()),
        (None, None) => {
            let country = tenant::country(&deps.db.read, number.tenant_id).await?;
            (stock_phrases::language_of(country).to_owned(), None)
        }
    };
    Ok(Some(Message {
        text: text.to_string(),
        voice_id: voice::of_call(deps, [chosen], &language),
        language,
    }))
}

fn row(
    deps: &Deps,
    owner: (TenantId, Env),
    id: SessionId,
    number: &Number,
    agent: &agent::Model,
    call: Arriving,
) -> session::Model {
    let definition = &agent.definition;
    let asked = CallOverrides {
        sandbox: call.sandbox,
        ..CallOverrides::default()
    };
    let mut options = settings::options(definition, asked);
    options.number_id = Some(number.id);
    let (from_number, to_number) = (call.from_number, call.to_number);
    let version = (agent.id, agent.version);
    let price = deps.limits.call_price_cents_per_minute;
    session::Model {
        phase: session::Phase::Ringing,
        direction: session::Direction::Inbound,
        from_number,
        trunk_id: number.trunk_id.filter(|_| owner.1 == Env::Live),
        voice_id: Some(voice::of_call(
            deps,
            [definition.voice_id.as_deref()],
            &definition.language,
        )),
        ring_timeout_seconds: RING_TIMEOUT_SECONDS,
        max_duration_seconds: definition.max_duration_seconds.get(),
        queue_ttl_seconds: 0,
        price_cents_per_minute: price,
        options,
        ..session::Model::new(owner, id, version, to_number, deps.clock.now())
    }
}

/// The alarm rings below this, with so many calls at least; it is armed again from there on, and rings once a day at most.
/// Source: specification, "Operational events"; CONTRACT §3.
const ALARM_BELOW: f64 = 0.80;
const ALARM_CALLS: i64 = 20;
const ARMED_FROM: f64 = 0.85;
pub const WINDOW_SECONDS: i64 = 24 * 3600;

/// Whether the alarm rings now, and how it stands then. Pure.
pub fn alarmed(alarm: &alarm::Model, counts: Counts, now: Moment) -> (alarm::Model, bool) {
    let Some(rate) = counts.answer_rate() else {
        return (alarm.clone(), false);
    };
    let mut next = alarm.clone();
    next.armed |= rate >= ARMED_FROM;
    let rested = alarm.alarmed_at.is_none_or(|at| now >= at.plus_seconds(WINDOW_SECONDS));
    let rings = next.armed && rested && rate < ALARM_BELOW && counts.total() >= ALARM_CALLS;
    if rings {
        next.armed = false;
        next.alarmed_at = Some(now);
    }
    (next, rings)
}

/// Looks at a number's answer rate after a call to it. A look that is lost is made up for by the next call's.
pub fn watch(deps: &Deps, key: TenantScoped<NumberId>) {
    let (its, busy) = (deps.clone(), deps.clock.busy());
    deps.runtime.spawn(async move {
        let _busy = busy;
        if let Err(error) = look(&its, key).await {
            tracing::warn!(%error, "an answer rate could not be looked at; the next call does it");
        }
    });
}

async fn look(deps: &Deps, key: TenantScoped<NumberId>) -> Result<()> {
    let now = deps.clock.now();
    let number = match number::load(&deps.db.read, key.tenant_id, key.id).await {
        Err(Error::NotFound(_)) => return Ok(()),
        found => found?,
    };
    // In the writer's own transaction: two calls that end at once ring one alarm.
    deps.writer
        .run(key.tenant_id, move |db| {
            let phone_number = InboundNumber(number.phone_number.clone());
            Box::pin(async move {
                let since = now.plus_seconds(-WINDOW_SECONDS);
                let counts = inbound_call::counts_since(db, key.id, key.env, since).await?;
                let before = alarm::load(db, key.id, key.env).await?;
                let (after, rings) = alarmed(&before, counts, now);
                let mut commit = Commit::default();
                if after != before {
                    commit.changes.number_alarms.push(after);
                }
                if rings {
                    let degraded = NumberAnswerRateDegraded {
                        phone_number,
                        answer_rate: counts.answer_rate().unwrap_or(0.0),
                        window_start: since,
                        window_end: now,
                    };
                    commit.events.push(rules::event::Event::from(degraded).draft(key));
                }
                Ok(((), commit))
            })
        })
        .await
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;
