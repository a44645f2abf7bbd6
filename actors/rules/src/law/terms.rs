//! What a campaign, a call or a message is in the words of the law, and what is known of one person: the facts of an attempt are made
//! of both.
use super::{
    Asked, CallerRules, Duties, GateKind, Judgement, Law, Scope,
    both_clocks::by_the_wall,
    facts::{AbandonmentFact, CallerFact, Facts, IdentityFact, PlaceSource, ReassignedFact, RegisterFact, RestFact},
    judge::{is_older, judge},
    places::{clocks, of_region, zones_of},
    places_of,
};
use crate::{
    consent::standing::{self, Wanted},
    conversation::disclosure::{self, OPT_OUT_KEY},
    eligibility::ContactRecord,
};
use entities::{
    abandonment::AbandonmentLimit,
    changes::{Guard, Lawful},
    consent,
    dnc::DncChannel,
    ids::{CampaignId, ConsentId, TenantId},
    law::{DisclosureKind, Legal, LegalPerson, SandboxLaw},
    register::Seen,
    session::{CallLegal, Disclose, SafeHarbour},
    values::{E164, Env, Moment, Place, Zone},
};
use std::sync::Arc;
use uuid::Uuid;

/// The same for all people of a campaign.
#[derive(Clone, Debug)]
pub struct LegalTerms {
    pub law: Arc<Law>,
    pub tenant_id: TenantId,
    pub legal: Legal,
    pub channel: DncChannel,
    pub identity: IdentityFact,
    /// Of the row that it comes from; 0: there is none.
    pub identity_version: i32,
    /// The workspace's, for whoever is nowhere that is known.
    pub zone: Zone,
    /// Where the workspace is: a recording is made there, too.
    pub own: Option<Place>,
    /// BCP 47, in which it is spoken or written.
    pub language: String,
    pub is_cloned_voice: bool,
    /// 0 for messages.
    pub ring_seconds: i32,
    /// Its caller ids; empty: none is known, or it shows none.
    pub callers: Vec<CallerFact>,
    /// The campaign's; none: it has none, or is none.
    pub abandonment: Option<AbandonmentFact>,
    /// The verdicts bind; else they are computed, and kept with the attempt.
    pub is_enforced: bool,
}

/// What is known of one number or address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LegalRecord {
    /// Those that stand.
    pub consents: Vec<consent::Model>,
    pub registers: Vec<RegisterFact>,
    /// Those that are asked about each number over an API.
    pub asked_registers: Vec<String>,
    /// What was there when they were looked into; none: no rule names any.
    pub seen: Option<Arc<Seen>>,
    pub reassigned: Option<ReassignedFact>,
    /// Whose the number is now, or whether a register holds it, is being asked: the answer comes within seconds.
    pub is_being_asked: bool,
    /// The newest of each cause.
    pub rests: Vec<RestFact>,
}

/// An attempt that was judged, and what of it may change until it is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub facts: Facts,
    pub judgement: Judgement,
    /// The consent that it rests on, and its version.
    pub consent: Option<(ConsentId, i32)>,
    /// What was there of the registers that it rests on.
    pub seen: Option<Arc<Seen>>,
    /// Whom the law may give a rest, and since when the newest that is known has begun.
    pub rest: Option<(E164, Option<Moment>)>,
    /// Between which moments no rule begins or ends that concerns it.
    pub holds: (Moment, Moment),
    /// Of what is known of whoever calls.
    pub identity_version: i32,
    /// Where whoever calls is: its rules of recordings hold, too.
    pub own: Option<Place>,
}

/// A message that is about to be handed over, for the record that proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenedMessage {
    pub message: Uuid,
    pub campaign_id: Option<CampaignId>,
    /// The `n` of its intent.
    pub dial_n: i32,
    /// A number in E.164, or an e-mail address in lower case.
    pub address: String,
    pub bound: Bound,
}

/// What the law has said of a message, and whether that binds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub judged: Judged,
    pub is_lawful: bool,
    /// SHA-256, in hex, of its words.
    pub words_sha256: String,
}

impl Judged {
    /// What registers that were asked over an API have said of the number.
    fn answers(&self) -> impl Iterator<Item = &RegisterFact> {
        self.facts.registers.iter().filter(|found| found.is_answer())
    }

    /// What must still be so when it is committed.
    pub fn guard(&self, (tenant_id, env): (TenantId, Env)) -> Guard {
        Guard::Lawful(Lawful {
            tenant_id,
            env,
            consent: self.consent,
            registers: self.seen.clone(),
            answers: self.answers().map(|answer| answer.id).collect(),
            rest: self.rest.clone(),
            identity_version: self.identity_version,
            caller: self
                .facts
                .caller
                .as_ref()
                .map(|caller| (caller.number.clone(), caller.right_to_use.is_some(), caller.is_answered)),
            holds: self.holds,
        })
    }
}

/// Somebody who may be reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whom<'a> {
    /// None: an e-mail goes to somebody who has no number, or a page was opened.
    pub number: Option<&'a E164>,
    pub region: Option<&'a Place>,
    pub consent_id: Option<ConsentId>,
    /// Where the person is, if it was said.
    pub timezone: Option<Zone>,
}

impl Whom<'_> {
    /// The places whose rules hold, and how each is known.
    pub fn places(&self) -> (Vec<Place>, Vec<PlaceSource>) {
        match self.number {
            Some(number) => places_of(number, self.region),
            None => of_region(self.region),
        }
    }
}

impl LegalTerms {
    /// For whom it is made.
    pub fn seller(&self) -> Option<&str> {
        let named = self.legal.seller.as_deref();
        named.or(self.identity.registered_name.as_deref())
    }

    /// All that an attempt at `at` is judged by. `caller`: the number that it shows.
    pub fn facts(&self, whom: Whom<'_>, record: &ContactRecord, caller: Option<&E164>, at: Moment) -> Facts {
        let (places, place_sources) = whom.places();
        let zones = self.zones(clocks(whom.number, whom.timezone, whom.region));
        let recent = self.law.counted(&self.scope(&places, at), &record.recent);
        Facts {
            at,
            channel: self.channel,
            purpose: self.legal.purpose,
            audience: self.legal.audience,
            vertical: self.legal.vertical,
            places,
            place_sources,
            zones,
            seller: self.seller().map(str::to_owned),
            subject: self.legal.subject.as_deref().map(str::to_owned),
            contract_ref: self.legal.contract_ref.as_deref().map(str::to_owned),
            consent: self
                .covering(whom, &record.legal, at)
                .first()
                .copied()
                .map(standing::fact),
            is_barred: record.is_barred,
            recent,
            rests: record.legal.rests.clone(),
            registers: record.legal.registers.clone(),
            asked_registers: record.legal.asked_registers.clone(),
            reassigned: record.legal.reassigned.clone(),
            caller: self.caller(caller).cloned(),
            identity: self.identity.clone(),
            language: self.language.clone(),
            is_cloned_voice: self.is_cloned_voice,
            ring_seconds: self.ring_seconds,
            abandonment: self.abandonment.clone(),
            overrides: self.law.overridden(self.tenant_id),
        }
    }

    /// Where nobody knows any, the workspace's.
    fn zones(&self, known: Vec<Zone>) -> Vec<Zone> {
        match known {
            zones if zones.is_empty() => vec![self.zone],
            zones => zones,
        }
    }

    /// What the law says of an attempt at `at`, with what that rests on: by the first of the consents that cover it with which it may be
    /// made, and the first number that may be shown there. `behind_ms`: how far the wall clock is behind our time; a consent
    /// must do by both.
    pub fn judged(
        &self,
        whom: Whom<'_>,
        record: &ContactRecord,
        caller: Option<&E164>,
        (at, behind_ms): (Moment, i64),
    ) -> Judged {
        let mut facts = self.facts(whom, record, caller, at);
        // Whichever can be shown will be.
        if caller.is_none() && self.callers.len() > 1 {
            let may = self.shown_in(&facts);
            let known = self.callers.iter().find(|known| may(&known.number)).cloned();
            if known.is_some() {
                facts.caller = known;
            }
        }
        let mut judgement = judge(&self.law, &facts);
        let lacks = |facts: &Facts, said: &Judgement| {
            lacks_consent(said) || behind_ms < 0 && lacks_consent(&judge(&self.law, &by_the_wall(facts, behind_ms)))
        };
        // The best may lack what a rule asks for and another has: a contract, or a later day.
        let others = self.covering(whom, &record.legal, at).into_iter().skip(1);
        for other in others.take(OTHER_CONSENTS) {
            if !lacks(&facts, &judgement) {
                break;
            }
            let tried = Facts {
                consent: Some(standing::fact(other)),
                ..facts.clone()
            };
            let said = judge(&self.law, &tried);
            if !lacks(&tried, &said) {
                (facts, judgement) = (tried, said);
            }
        }
        let consent = facts.consent.as_ref().and_then(|fact| {
            let known = record.legal.consents.iter().find(|known| known.id == fact.id)?;
            Some((fact.id, known.version))
        });
        let newest = facts.rests.iter().map(|rest| rest.since).max();
        Judged {
            judgement,
            rest: whom.number.map(|number| (number.clone(), newest)),
            holds: self.law.holds(&facts),
            identity_version: self.identity_version,
            own: self.own.clone(),
            seen: record.legal.seen.clone(),
            consent,
            facts,
        }
    }

    /// May a rule want to know whether the number was given to somebody else? Mostly no consent is old enough, and nobody needs to be
    /// judged to know that.
    pub fn may_ask_reassigned(&self, whom: Whom<'_>, known: &LegalRecord, at: Moment) -> bool {
        let (places, _) = whom.places();
        let asked_after = self.law.reassigned_asked_after(&self.scope(&places, at));
        let is_old = |days| {
            known
                .consents
                .iter()
                .any(|consent| is_older(consent.given_at, days, at))
        };
        asked_after.is_some_and(is_old)
    }

    pub fn judge(&self, facts: &Facts) -> Judgement {
        judge(&self.law, facts)
    }

    /// Of somebody of whom only the places are known.
    pub fn facts_of_places(&self, places: Vec<Place>, at: Moment) -> Facts {
        let facts = Facts {
            zones: self.zones(zones_of(&places)),
            places,
            ..self.facts(Whom::default(), &ContactRecord::default(), None, at)
        };
        let may = self.shown_in(&facts);
        let shown = self.callers.iter().find(|known| may(&known.number)).cloned();
        match shown {
            Some(shown) => Facts {
                caller: Some(shown),
                ..facts
            },
            None => facts,
        }
    }

    /// May a number of ours be shown in an attempt that is this one otherwise? The rules are looked up once for all numbers.
    pub fn shown_in<'a>(&'a self, facts: &Facts) -> impl Fn(&E164) -> bool + use<'a> {
        let rules = CallerRules::of(&self.law, facts);
        move |number| rules.allow(self.caller(Some(number)))
    }

    /// What the law allows of abandoned calls in these places.
    pub fn abandonment_limits(&self, places: &[Place], at: Moment) -> Vec<AbandonmentLimit> {
        if !self.is_enforced {
            return Vec::new();
        }
        self.law.spoken(self.scope(places, at)).abandonment_limits().collect()
    }

    /// In these places, by whichever clock.
    fn scope<'a>(&self, places: &'a [Place], at: Moment) -> Scope<'a> {
        Scope {
            at,
            channel: self.channel,
            purpose: self.legal.purpose,
            audience: self.legal.audience,
            vertical: self.legal.vertical,
            places,
            zones: &[],
            own: None,
        }
    }

    /// What the law wants of a call; none: it does not bind it.
    pub fn duties(&self, facts: &Facts) -> Option<Duties> {
        let scope = Scope {
            own: self.own.as_ref(),
            ..Scope::from(facts)
        };
        self.is_enforced.then(|| self.law.spoken(scope))
    }

    /// What is spoken in a talk, and how it may be recorded. `is_ours`: we have called.
    pub fn call(&self, facts: &Facts, duties: Option<&Duties>, person: LegalPerson, is_ours: bool) -> CallLegal {
        let mut bound = CallLegal {
            legal: self.legal.clone(),
            person,
            sandbox_law: if self.is_enforced {
                SandboxLaw::Enforce
            } else {
                SandboxLaw::Observe
            },
            name: self.seller().map(str::to_owned),
            callback: self
                .identity
                .toll_free_number
                .clone()
                .or(self.identity.callback_number.clone()),
            address: self.identity.postal_address.clone(),
            ..CallLegal::default()
        };
        if let Some(duties) = duties {
            bound.recording = Some(duties.recording);
            bound.hang_up_ms = duties.hang_up_ms;
            let mut kinds: Vec<DisclosureKind> = duties.disclosures.iter().copied().collect();
            kinds.retain(|kind| is_ours || is_told_to_guests(*kind));
            // Said of another voice it would not be true.
            kinds.retain(|kind| facts.is_cloned_voice || *kind != DisclosureKind::ClonedVoice);
            if kinds.contains(&DisclosureKind::Human) {
                // On the toll-free one a machine may take opt-outs.
                let identity = &self.identity;
                bound.staffed = identity.callback_number.clone().or(identity.toll_free_number.clone());
            }
            bound.disclose = (!kinds.is_empty()).then_some(Disclose {
                kinds,
                repeat_minutes: duties.repeat_minutes,
            });
        }
        bound
    }

    /// What somebody hears who has answered and whom no agent takes in time, where the law limits how often that may happen. `key`: the
    /// agent's own by which one opts out.
    pub fn safe_harbour(
        &self,
        duties: Option<&Duties>,
        caller: Option<&E164>,
        key: Option<&str>,
    ) -> Option<SafeHarbour> {
        // Only where it must be said within some time.
        duties?.first_sound_ms?;
        let number = self
            .identity
            .toll_free_number
            .as_ref()
            .or(self.identity.callback_number.as_ref());
        let text = disclosure::safe_harbour(
            &self.language,
            self.seller()?,
            number.or(caller)?,
            Some(key.unwrap_or(OPT_OUT_KEY)),
        )?;
        Some(SafeHarbour { text })
    }

    /// The same, of the attempt as it is committed: at its moment, and with the number that it shows.
    pub fn committed(&self, judged: Judged, caller: Option<&E164>, at: Moment) -> Judged {
        let facts = Facts {
            at,
            caller: self.caller(caller).cloned(),
            ..judged.facts
        };
        Judged {
            judgement: judge(&self.law, &facts),
            holds: self.law.holds(&facts),
            facts,
            ..judged
        }
    }

    /// Those that cover it, the best first; of them the one that was named.
    fn covering<'r>(&self, whom: Whom<'_>, known: &'r LegalRecord, at: Moment) -> Vec<&'r consent::Model> {
        let wanted = Wanted {
            seller: self.seller(),
            purpose: self.legal.purpose,
            channel: self.channel,
            named: whom.consent_id,
            contract_ref: self.legal.contract_ref.as_deref(),
            at,
        };
        standing::covering(&known.consents, &wanted)
    }

    /// The number that is shown, or the first that could be.
    fn caller(&self, shown: Option<&E164>) -> Option<&CallerFact> {
        match shown {
            Some(number) => self.callers.iter().find(|caller| caller.number == *number),
            None => self.callers.first(),
        }
    }
}

/// Whoever calls us, or opens a page of ours, is on no list that could call again, and knows whom they call.
fn is_told_to_guests(kind: DisclosureKind) -> bool {
    match kind {
        DisclosureKind::Ai
        | DisclosureKind::Name
        | DisclosureKind::ClonedVoice
        | DisclosureKind::Recording
        | DisclosureKind::Human => true,
        DisclosureKind::Purpose | DisclosureKind::OptOut | DisclosureKind::Callback | DisclosureKind::Address => false,
    }
}

/// Beside the best one so many consents of a person are tried.
const OTHER_CONSENTS: usize = 7;

/// Does a rule say no that another consent may make say yes?
fn lacks_consent(judgement: &Judgement) -> bool {
    let of_consent = |asked: &Asked| {
        matches!(
            asked.kind,
            GateKind::Purpose | GateKind::Consent | GateKind::Register | GateKind::Reassigned
        )
    };
    judgement.noes().any(of_consent)
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
