//! The turns of sessions that wait for a slot.
use super::{
    dial::{self, Dial},
    state::{State, learn_keys},
};
use crate::{
    deps::Deps,
    legal::{self, Asked},
    people::{People, people},
    registers::asking::Unanswered,
};
use entities::{
    Result, boxed,
    campaign::{AgentSnapshot, Channel},
    changes::Guard,
    contact::Address,
    session as sessions,
    values::{Cents, Moment},
};
use rules::{
    dispatch::{
        round::ROUND,
        waiting::{self, Admission, Begun, Guards, Ruling},
    },
    eligibility::{ContactRecord, direct_caps},
    law::{Judged, LegalTerms},
    session::{
        command::{Command, RejectReason},
        machine::Session,
    },
};
use std::sync::Arc;

/// Sessions of which all that the rules ask is read, in one round: each takes some ten queries.
const LOOKS: usize = 64;

impl State {
    /// As many of them as may be called now, ready for their commit.
    #[boxed]
    pub async fn dial_waiting(&mut self, deps: &Deps, begun: &mut Begun, now: Moment) -> Result<Vec<Dial>> {
        let mut dials = Vec::new();
        if !self.queued {
            return Ok(dials);
        }
        let (mut after, mut left, mut waits_for_others) = (self.looked_until.take(), false, false);
        let mut looks = 0;
        'queue: loop {
            let passed = begun.closed.passed();
            let waiting = sessions::queued(&deps.db.read, self.known.tenant, after, &passed, ROUND as u64).await?;
            let Some(last) = waiting.last() else { break };
            after = Some(last.id);
            let keys = waiting.iter().filter_map(|row| row.api_key_id).collect();
            learn_keys(deps, &mut self.snapshot.keys, keys, now).await?;
            for row in waiting {
                let is_in_hand = deps.calls.contains(row.id);
                match waiting::admit(&mut self.snapshot, begun, &row, is_in_hand, now) {
                    Admission::WithItsCampaign => {}
                    Admission::Stays => left = true,
                    // Those behind it that go over the same, or are the same key's, are not read: one look is enough.
                    Admission::NoTrunk | Admission::KeyIsFull => waits_for_others = true,
                    Admission::Nowhere => {
                        let why = Command::Reject(RejectReason::NoTrunk);
                        deps.router.sessions().tell(row.key(), why);
                    }
                    Admission::NoToken => {
                        left = true;
                        break 'queue;
                    }
                    Admission::Turn { at, hold } => {
                        looks += 1;
                        let id = row.id;
                        dials.extend(self.dial(deps, begun, row, (at, hold), now).await?);
                        if looks >= LOOKS {
                            // Those behind it have their turn in the next round, whatever holds these.
                            (self.looked_until, left) = (Some(id), true);
                            begun.wake_at.no_later_than(now.plus_seconds(1));
                            break 'queue;
                        }
                    }
                }
            }
            if left {
                break;
            }
        }
        self.queued = left || waits_for_others;
        Ok(dials)
    }

    /// `None`: it may not be called now, which its session is told.
    async fn dial(
        &mut self,
        deps: &Deps,
        begun: &mut Begun,
        row: sessions::Model,
        (at, hold): (Moment, Cents),
        now: Moment,
    ) -> Result<Option<Dial>> {
        let queue = row.campaign_id.and_then(|id| self.snapshot.campaigns.get(&id));
        let agent = match queue.and_then(|queue| queue.agent.clone()) {
            Some(agent) => agent,
            None => agent_of(deps, &row).await?,
        };
        let legal = match queue.and_then(|queue| queue.legal.clone()) {
            Some(legal) => legal,
            None => legal::of_call(deps, &deps.db.read, &row, &agent.definition.language).await?,
        };
        let behind_ms = deps.clock.times().behind_ms();
        let (record, judged) = known(deps, &row, &legal, (at, now, behind_ms)).await?;
        let guards = Guards {
            queue,
            direct: &direct_caps(&deps.limits),
            zone: self.zone,
            behind_ms,
            law: legal::hours(&legal),
        };
        let hours = match waiting::ruling(&guards, &row, &record, at)? {
            Ruling::Call(hours) => hours,
            Ruling::Tell(command) => {
                deps.router.sessions().tell(row.key(), command);
                return Ok(None);
            }
            Ruling::NotNow => return Ok(None),
        };
        let caps = dial::caps_of(&guards.caps(), legal.is_enforced.then_some((&legal, &judged)));
        let dispatchable = queue.map(|queue| Guard::Dispatchable(queue.id, queue.version));
        let duties = legal.duties(&judged.facts);
        let brake = queue.and_then(|queue| dial::not_braked(queue, duties.as_ref()));
        let campaign = dispatchable.into_iter().chain(brake);
        let campaign: Vec<Guard> = campaign.collect();
        if !waiting::take(&mut self.snapshot, begun, &row, (at, hold)) {
            return Ok(None);
        }
        let trunk = self.snapshot.trunks.as_known(row.trunk_id);
        let mut row = row;
        legal::bind(&mut row, &legal, (&judged.facts, duties.as_ref()), &agent.definition);
        let session = Session::from_row(row, deps.base_url.clone())?;
        let intent = dial::Intent {
            known: self.known,
            trunk,
            at,
            hold,
            hours,
            caps,
            is_lawful: legal.is_enforced,
            judged: Some(judged),
        };
        dial::dial_waiting(deps, intent, session, agent, campaign, now)
            .await
            .map(Some)
    }
}

/// What is known of whom it goes to, and what the law says of it. `at`: when it is placed.
async fn known(
    deps: &Deps,
    row: &sessions::Model,
    legal: &LegalTerms,
    (at, now, behind_ms): (Moment, Moment, i64),
) -> Result<(ContactRecord, Judged)> {
    let whom = Address::Number(row.callee()?.clone());
    let whose = People {
        owner: (row.tenant_id, row.env),
        channel: Channel::Phone,
        itself: Some(row.id),
    };
    let mut people = people(deps, &deps.db.read, whose, vec![whom.clone()], now).await?;
    let asked = Asked::called(whom.clone(), &row.person(), row.timezone);
    let all = (std::slice::from_ref(&asked), Unanswered::Ask);
    legal::learn(deps, whose.owner, legal, all, (&mut people, now)).await?;
    let mut record = people.remove(&whom).unwrap_or_default();
    let judged = legal.judged(asked.whom(), &record, row.from_number.as_ref(), (at, behind_ms));
    record.judgement = legal.is_enforced.then(|| legal.by_both_clocks(&judged, behind_ms));
    Ok((record, judged))
}

/// The agent as it was when the call was made.
async fn agent_of(deps: &Deps, row: &sessions::Model) -> Result<Arc<AgentSnapshot>> {
    let version = entities::agent_version::load(&deps.db.read, row.tenant_id, row.agent_id, row.agent_version).await?;
    Ok(Arc::new(AgentSnapshot {
        id: version.agent_id,
        version: version.version,
        definition: version.definition,
    }))
}
