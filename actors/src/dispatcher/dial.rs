//! The intent to call somebody, ready for its commit: everything that stands or falls with it.
use crate::{
    attempts::{self, Opening},
    call::{
        in_hand::{Call, Kept},
        leg::Leg,
        voice,
    },
    deps::Deps,
    facts, legal,
    shell::Stored,
};
use entities::{
    Error, Result,
    abandonment::AbandonmentLimit,
    boxed,
    campaign::{AgentSnapshot, Caps},
    campaign_hour,
    changes::{Callable, CapSpan, Guard, KeyCall},
    contact::{Address, Model as Contact},
    ids::{DeliveryRowId, SessionId, TenantId, TrunkId},
    session::{self as sessions, CallLegal},
    values::{Cents, E164, Moment, Variables},
};
use rules::{
    commit::Commit,
    contact,
    dispatch::{
        candidate::{Settlement, Turn, Within},
        plan::{PlannedCall, Settled},
        queue::Queue,
    },
    effect::Effect,
    eligibility::RING_TIMEOUT_SECONDS,
    hours,
    law::{Duties, Judged, LegalTerms},
    session::{
        command::Command,
        machine::{self, Session},
    },
};
use std::{collections::BTreeSet, sync::Arc};

/// A call that is ready to be committed.
pub struct Dial {
    pub call: Call,
    pub session: Session,
    /// When it is placed.
    pub at: Moment,
    pub commit: Commit,
    /// Performed after the commit.
    pub effects: Vec<Effect>,
}

impl Dial {
    /// `kept`: the contact whom it is for, if a campaign calls.
    fn of(
        session: Session,
        (agent, kept): (Arc<AgentSnapshot>, Option<Kept>),
        at: Moment,
        commit: Commit,
        effects: Vec<Effect>,
    ) -> Self {
        let leg = Leg {
            call: session.call.clone(),
            agent,
        };
        let call = Call {
            leg: Arc::new(leg),
            contact: kept,
        };
        Dial {
            call,
            session,
            at,
            commit,
            effects,
        }
    }
}

/// The tenant as the dispatcher knows it: a dial stands only if it is still so.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub tenant: TenantId,
    pub version: i32,
}

/// When a call leaves, and on which conditions.
#[derive(Clone, Debug)]
pub struct Intent {
    pub known: Known,
    /// What a live call goes over, and its version.
    pub trunk: Option<(TrunkId, i32)>,
    pub at: Moment,
    /// What it sets aside.
    pub hold: Cents,
    pub hours: Within,
    /// How many calls its number may get.
    pub caps: Vec<CapSpan>,
    /// What the law says of it, if it was asked.
    pub judged: Option<Judged>,
    /// The law binds it.
    pub is_lawful: bool,
}

/// How many calls a number may get, for [`Intent::caps`].
pub fn calls_to_one(caps: &Caps) -> Vec<CapSpan> {
    let day = caps.per_number_24h.map(|cap| (cap.get(), 24));
    let week = caps.per_number_7d.map(|cap| (cap.get(), 7 * 24));
    let all = day.into_iter().chain(week);
    all.map(|(most, hours)| CapSpan { most, hours }).collect()
}

/// The campaign's caps, and the law's.
pub fn caps_of(own: &Caps, law: Option<(&LegalTerms, &Judged)>) -> Vec<CapSpan> {
    let mut caps = calls_to_one(own);
    if let Some((legal, judged)) = law {
        caps.extend(legal.law.caps(&judged.facts));
    }
    caps
}

/// That a contact is not called at all, or not now, ready for its commit.
pub fn settle(deps: &Deps, settled: &Settled, queue: &Queue) -> Result<Commit> {
    let contact = &settled.contact;
    let command = match settled.settlement {
        Settlement::Skip(reason) => contact::machine::Command::Skip(reason, settled.law_rule.clone()),
        Settlement::Defer(until, reason) => contact::machine::Command::Defer { until, reason },
    };
    let (after, events) = contact::machine::transition(contact.clone(), command, &queue.plan.retry, deps.clock.now())?;
    let mut commit = Commit::default();
    commit.changes.guards.push(Guard::Dispatchable(queue.id, queue.version));
    facts::contact_moved(&mut commit, contact, after, &events);
    Ok(commit)
}

/// The intent to call a contact, as it was planned.
#[boxed]
pub async fn dial(
    deps: &Deps,
    (known, trunk): (Known, Option<(TrunkId, i32)>),
    queue: &Queue,
    planned: PlannedCall,
) -> Result<Option<Dial>> {
    let now = deps.clock.now();
    let PlannedCall {
        turn,
        at,
        hold,
        from_number,
        trunk_id,
        ..
    } = planned;
    let Turn {
        contact,
        address,
        hours,
        judged,
    } = turn;
    let (Address::Number(number), Some(agent)) = (address, queue.agent.clone()) else {
        return Err(Error::Internal(
            "a campaign of calls has no agent, or nobody to call".into(),
        ));
    };
    let behind_ms = deps.clock.times().behind_ms();
    let Ok(judged) = judged_at(queue, judged, from_number.as_ref(), (at, behind_ms)) else {
        return Ok(None);
    };
    let is_lawful = queue.is_lawful();
    let caps = caps_of(&queue.plan.caps, law_of(queue, judged.as_ref()));
    let duties = law_of(queue, judged.as_ref()).and_then(|(legal, judged)| legal.duties(&judged.facts));
    let brake = not_braked(queue, duties.as_ref());
    let id: SessionId = deps.ids.next();
    let mut row = sessions::Model {
        hold_cents: hold,
        from_number,
        trunk_id,
        ..session_row(deps, (queue, &agent), &contact, id, number, now)
    };
    if let (Some(legal), Some(judged)) = (&queue.legal, &judged) {
        row.options.legal = Some(CallLegal {
            person: contact.legal_person(),
            ..CallLegal::default()
        });
        legal::bind(&mut row, legal, (&judged.facts, duties.as_ref()), &agent.definition);
    }
    let (session, effects) = Session::dialed(row, deps.base_url.clone(), at);
    let command = contact::machine::Command::Dispatch {
        row: DeliveryRowId(id.0),
    };
    let (after, events) = contact::machine::transition(contact.clone(), command, &queue.plan.retry, now)?;
    let intent = Intent {
        known,
        trunk,
        at,
        hold,
        hours,
        caps,
        judged,
        is_lawful,
    };
    let mut commit = Commit::default();
    commit.changes.sessions.push(session.row());
    intent.add(deps, &session, &mut commit)?;
    commit.changes.guards.push(Guard::Dispatchable(queue.id, queue.version));
    commit.changes.guards.extend(brake);
    commit.changes.campaign_hours.push(one_dialed(queue, at));
    facts::add(deps, session.key(), &effects, &mut commit).await?;
    facts::contact_moved(&mut commit, &contact, after.clone(), &events);
    let kept = Kept {
        contact: after,
        retry: queue.plan.retry.clone(),
        rules_version: queue.rules_version,
        zone: queue.rules.zone,
    };
    Ok(Some(Dial::of(session, (agent, Some(kept)), at, commit, effects)))
}

/// What the law says of an attempt as it is committed: it was judged a moment before, by another number or moment. `behind_ms`: how
/// far the wall clock is behind our time. `Err`: it may not be made after all. None: nobody asks.
pub fn judged_at(
    queue: &Queue,
    judged: Option<Box<Judged>>,
    shown: Option<&E164>,
    (at, behind_ms): (Moment, i64),
) -> Result<Option<Judged>, ()> {
    let (Some(legal), Some(judged)) = (&queue.legal, judged) else {
        return Ok(None);
    };
    let judged = legal.committed(*judged, shown, at);
    if legal.is_enforced && !legal.by_both_clocks(&judged, behind_ms).is_yes() {
        return Err(());
    }
    Ok(Some(judged))
}

/// A call or message more, in the campaign's counts of that hour.
pub fn one_dialed(queue: &Queue, at: Moment) -> campaign_hour::Model {
    campaign_hour::Model {
        dialed: 1,
        ..campaign_hour::Model::empty(queue.id, hours::hour_of(queue.rules.zone, at))
    }
}

/// What binds a campaign's call.
pub fn law_of<'a>(queue: &'a Queue, judged: Option<&'a Judged>) -> Option<(&'a LegalTerms, &'a Judged)> {
    let legal = queue.legal.as_ref().filter(|legal| legal.is_enforced)?;
    Some((legal, judged?))
}

/// That its campaign has not abandoned too much, where the law has a limit: where its contacts' groups are, and where this person is.
pub fn not_braked(queue: &Queue, duties: Option<&Duties>) -> Option<Guard> {
    let mut limits: BTreeSet<AbandonmentLimit> = queue.abandonment.iter().copied().collect();
    limits.extend(duties.into_iter().flat_map(Duties::abandonment_limits));
    (!limits.is_empty()).then(|| Guard::NotBraked {
        campaign_id: queue.id,
        limits: limits.into_iter().collect(),
    })
}

/// The intent to place a call that has waited for its slot. `campaign`: what its campaign asks for.
#[boxed]
pub async fn dial_waiting(
    deps: &Deps,
    intent: Intent,
    session: Session,
    agent: Arc<AgentSnapshot>,
    campaign: Vec<Guard>,
    now: Moment,
) -> Result<Dial> {
    let (at, hold) = (intent.at, intent.hold);
    let (mut session, effects) = machine::transition(session, Command::Dispatch { at, hold }, now)?;
    let mut commit = Commit::default();
    session.save(&mut commit);
    intent.add(deps, &session, &mut commit)?;
    facts::add(deps, session.key(), &effects, &mut commit).await?;
    commit.changes.guards.extend(campaign);
    Ok(Dial::of(session, (agent, None), at, commit, effects))
}

impl Intent {
    /// What every dial writes, and on which conditions.
    fn add(self, deps: &Deps, session: &Session, commit: &mut Commit) -> Result<()> {
        let call = &session.call;
        let to_number = call.callee()?;
        commit.changes.guards.extend([
            Guard::Free(self.known.tenant, call.env, self.known.version),
            Guard::Callable(Callable {
                tenant_id: call.tenant_id,
                env: call.env,
                session_id: call.id,
                phone_number: to_number.clone(),
                dialed_at: self.at,
                hours: self.hours.ours,
                wall_hours: self.hours.wall,
                caps: self.caps,
            }),
        ]);
        if let Some(judged) = self.judged {
            if self.is_lawful {
                commit.changes.guards.push(judged.guard((call.tenant_id, call.env)));
            }
            let body = legal::body(&deps.law, judged, self.is_lawful);
            attempts::opened(deps, commit, Opening::of_call(call, session.version, body))?;
        }
        let trunk = self.trunk.map(|(trunk, version)| Guard::Trunk(trunk, version));
        let of_key = call.api_key_id.map(|api_key_id| {
            Guard::KeyHasRoom(KeyCall {
                api_key_id,
                session_id: call.id,
                most: machine::cost(call.price_cents_per_minute, call.max_duration_seconds),
                dialed_at: self.at,
            })
        });
        commit.changes.guards.extend(trunk.into_iter().chain(of_key));
        commit.changes.dials.push(entities::dial::Model {
            tenant_id: call.tenant_id,
            env: call.env,
            phone_number: to_number.clone(),
            session_id: call.id,
            n: session.version,
            campaign_id: call.campaign_id,
            dialed_at: self.at,
            seq: 0,
        });
        Ok(())
    }
}

fn session_row(
    deps: &Deps,
    (queue, snapshot): (&Queue, &AgentSnapshot),
    contact: &Contact,
    id: SessionId,
    to_number: E164,
    now: Moment,
) -> sessions::Model {
    let agent = &snapshot.definition;
    let chosen = [queue.plan.voice_id.as_deref(), agent.voice_id.as_deref()];
    let voice_id = voice::of_call(deps, chosen, &agent.language);
    let max_duration_seconds = agent.max_duration_seconds.get();
    let (agent_id, agent_version) = (snapshot.id, snapshot.version);
    let owner = (contact.tenant_id, contact.env);
    sessions::Model {
        phase: sessions::Phase::Dialing,
        voice_id: Some(voice_id),
        email: contact.email.clone(),
        first_name: contact.first_name.clone(),
        last_name: contact.last_name.clone(),
        campaign_id: Some(queue.id),
        contact_id: Some(contact.id),
        api_key_id: queue.api_key_id,
        attempt: contact.attempts + 1,
        variables: variables(&queue.plan.variables, contact),
        metadata: queue.plan.metadata.clone(),
        ring_timeout_seconds: RING_TIMEOUT_SECONDS,
        max_duration_seconds,
        queue_ttl_seconds: SENT_BACK_TTL_SECONDS,
        timezone: contact.timezone,
        price_cents_per_minute: deps.limits.call_price_cents_per_minute,
        options: queue.options.clone(),
        ..sessions::Model::new(owner, id, (agent_id, agent_version), to_number, now)
    }
}

/// A campaign's call that the trunk sent back waits this long for its turn.
const SENT_BACK_TTL_SECONDS: i32 = 3600;

/// What the agent may mention: the campaign's variables, under the contact's own, and the contact's names.
fn variables(of_campaign: &Variables, contact: &Contact) -> Variables {
    let names = [
        ("first_name", &contact.first_name),
        ("last_name", &contact.last_name),
        ("email", &contact.email),
    ];
    let mut all = of_campaign.clone();
    all.0.extend(contact.variables.clone().naming(names).0);
    all
}
