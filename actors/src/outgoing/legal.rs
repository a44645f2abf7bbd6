//! The law's word on a message that is not a campaign's first try: asked when it is ordered, and once more before it is handed over.
use super::{Obstacle, Sendable};
use crate::{
    deps::Deps,
    legal::{self, Asked, Matter},
    people::{People, people},
    registers::asking::Unanswered,
};
use entities::{
    Error, Result,
    campaign::Channel,
    contact::Address,
    law::{MessageLegal, SandboxLaw},
    message_send,
    values::{Moment, Times},
};
use rules::{
    eligibility::ContactRecord,
    law::{Bound, Facts, GateKind, Judged, LegalTerms, Verdict, record::chain::digest},
    message::{Block, MessageRejectReason, outgoing::Seen},
};

/// All that is known of one that is ordered, but for what is kept of its recipient. `None`: the service says it by itself.
pub async fn facts<M: Sendable>(deps: &Deps, row: &M) -> Result<Option<(LegalTerms, Facts)>> {
    let starts = starts(row, deps.clock.now());
    let Some((terms, asked)) = terms_of(deps, row).await? else {
        return Ok(None);
    };
    let facts = terms.facts(asked.whom(), &ContactRecord::default(), row.shows().as_ref(), starts);
    Ok(Some((terms, facts)))
}

/// When it is to go.
fn starts<M: Sendable>(row: &M, now: Moment) -> Moment {
    row.seen().scheduled_at.map_or(now, |at| at.max(now))
}

/// How far the wall clock is behind our time, for what starts then. What is for later is asked once more when its time has come.
fn behind_ms(times: Times, starts: Moment) -> i64 {
    match starts > times.ours {
        true => 0,
        false => times.behind_ms(),
    }
}

/// Errors: the first rule that does not allow it, and what to do.
pub async fn check<M: Sendable>(deps: &Deps, row: &M) -> Result<()> {
    let times = deps.clock.times();
    let starts = starts(row, times.ours);
    let behind_ms = behind_ms(times, starts);
    let Some((terms, judged)) = judged(deps, row, (starts, behind_ms)).await? else {
        return Ok(());
    };
    if !terms.is_enforced {
        return Ok(());
    }
    let judgement = terms.by_both_clocks(&judged, behind_ms);
    legal::permits(&terms, (&judged, &judgement), (starts > times.ours, behind_ms))?;
    for kind in [GateKind::Rest, GateKind::Caps, GateKind::Hours] {
        match (judgement.verdict_of(kind), kind) {
            (Some(Verdict::Wait(Some(until))), GateKind::Rest | GateKind::Caps) => {
                return Err(Error::DailyCapReached { until });
            }
            (Some(Verdict::Wait(next_open_at)), _) => return Err(Error::OutsideCallingHours { next_open_at }),
            (Some(Verdict::Never), _) => return Err(Error::OutsideCallingHours { next_open_at: None }),
            (Some(Verdict::Yes | Verdict::Overridden) | None, _) => {}
        }
    }
    Ok(())
}

/// What the law has said of a message that may be handed over.
pub struct Permission {
    terms: LegalTerms,
    judged: Judged,
    words_sha256: String,
}

impl Permission {
    /// `words_sha256`: of all that it says.
    pub fn new(terms: LegalTerms, judged: Judged, words_sha256: String) -> Self {
        Permission {
            terms,
            judged,
            words_sha256,
        }
    }

    /// What of it its intent rests on.
    pub fn bound(&self) -> Bound {
        Bound {
            judged: self.judged.clone(),
            is_lawful: self.terms.is_enforced,
            words_sha256: self.words_sha256.clone(),
        }
    }

    /// Is it one still, now that the intent stands? A database that stalls keeps a commit for longer than hours last.
    pub fn lasts(&self, now: Times) -> bool {
        !self.terms.is_enforced || self.terms.still_allow(&self.judged, now)
    }
}

/// What allows it; or what keeps it from being handed over.
pub async fn of_message<M: Sendable>(deps: &Deps, row: &M) -> Result<Result<Option<Permission>, Obstacle>> {
    let times = deps.clock.times();
    let behind_ms = times.behind_ms();
    let Some((terms, judged)) = judged(deps, row, (times.ours, behind_ms)).await? else {
        return Ok(Ok(None));
    };
    let judgement = terms.by_both_clocks(&judged, behind_ms);
    let no = judgement.first_no().filter(|_| terms.is_enforced);
    Ok(match no.map(|(asked, _)| asked.verdict) {
        Some(Verdict::Wait(_)) => Err(Obstacle::Wait(Block::Law)),
        Some(_) => Err(Obstacle::Reject(MessageRejectReason::Law)),
        None => {
            let words_sha256 = digest(&row.words(deps).await?);
            Ok(Some(Permission::new(terms, judged, words_sha256)))
        }
    })
}

/// `None`: the service says it by itself.
async fn judged<M: Sendable>(
    deps: &Deps,
    row: &M,
    (at, behind_ms): (Moment, i64),
) -> Result<Option<(LegalTerms, Judged)>> {
    let Some((terms, asked)) = terms_of(deps, row).await? else {
        return Ok(None);
    };
    let key = row.seen().key;
    let (owner, db) = ((key.tenant_id, key.env), &deps.db.read);
    let whose = People {
        owner,
        channel: channel_of::<M>(),
        itself: None,
    };
    let now = deps.clock.now();
    let mut known = people(deps, db, whose, vec![asked.address.clone()], now).await?;
    let only = (std::slice::from_ref(&asked), Unanswered::Ask);
    legal::learn(deps, owner, &terms, only, (&mut known, now)).await?;
    let record = known.remove(&asked.address).unwrap_or_default();
    let judged = terms.judged(asked.whom(), &record, row.shows().as_ref(), (at, behind_ms));
    Ok(Some((terms, judged)))
}

fn channel_of<M: Sendable>() -> Channel {
    match M::CHANNEL {
        message_send::Channel::Sms => Channel::Sms,
        message_send::Channel::Email => Channel::Email,
    }
}

/// What it is in the words of the law, and whom it goes to.
async fn terms_of<M: Sendable>(deps: &Deps, row: &M) -> Result<Option<(LegalTerms, Asked)>> {
    let Seen {
        key,
        legal: Some(bound),
        campaign_id,
        ..
    } = row.seen()
    else {
        return Ok(None);
    };
    let MessageLegal {
        legal: what,
        person,
        sandbox_law,
    } = bound;
    let address = match M::CHANNEL {
        message_send::Channel::Sms => Address::Number(
            row.address()
                .parse()
                .map_err(|_| Error::Internal("an SMS goes to what is not a number".into()))?,
        ),
        message_send::Channel::Email => Address::Email(row.address().to_owned()),
    };
    let terms = legal::terms(
        deps,
        &deps.db.read,
        Matter {
            owner: (key.tenant_id, key.env),
            channel: channel_of::<M>().dnc(),
            legal: what,
            language: String::new(),
            voice_id: None,
            ring_seconds: 0,
            from_numbers: row.shows().into_iter().collect(),
            campaign: campaign_id,
            wants_law: sandbox_law == SandboxLaw::Enforce,
        },
    )
    .await?;
    Ok(Some((terms, Asked::called(address, &person, None))))
}
