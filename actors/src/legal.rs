//! The law around an attempt: what it is, what is known of the people, and what is written of it.
mod outside;

use crate::{caller_facts::caller_facts, deps::Deps, registers::asking::Unanswered, session::caller_id};
use entities::{
    Error, Result,
    agent::{self, Definition},
    boxed,
    campaign::{Channel, Model as Campaign, Plan},
    campaign_hour,
    connection::Connection,
    consent,
    contact::{Address, Model as Contact},
    dnc::DncChannel,
    ids::{CampaignId, ConsentId, TenantId, VoiceId},
    law::{Legal, LegalPerson, Purpose, SandboxLaw},
    legal_identity, number, rest, session, tenant,
    values::{Country, E164, Env, Moment, Place, Zone},
};
use rules::{
    eligibility::{ContactRecord, RING_TIMEOUT_SECONDS},
    hours::{self, LawHours},
    law::{
        Asked as AskedRule, Duties, Facts, GateKind, Judged, Judgement, Law, LegalRecord, LegalTerms, Verdict, Whom,
        by_the_later,
        facts::{AbandonmentFact, IdentityFact, RestFact},
        record::AttemptBody,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// What a campaign, a call or a message is.
pub struct Matter {
    pub owner: (TenantId, Env),
    pub channel: DncChannel,
    pub legal: Legal,
    /// In which it is spoken or written.
    pub language: String,
    pub voice_id: Option<String>,
    /// 0 for messages.
    pub ring_seconds: i32,
    /// What it can show.
    pub from_numbers: Vec<E164>,
    pub campaign: Option<CampaignId>,
    /// With a test key: the law binds it.
    pub wants_law: bool,
}

/// Who calls or writes: the same for all that a workspace does.
pub struct Workspace {
    pub zone: Zone,
    own: Option<Place>,
    identity: Option<legal_identity::Model>,
}

impl Workspace {
    /// Of a row that is at hand.
    #[boxed]
    pub async fn of(db: &Connection, tenant: &tenant::Model) -> Result<Workspace> {
        Ok(Workspace {
            zone: tenant.timezone,
            own: tenant.own_country().ok().map(Place::from),
            identity: legal_identity::of(db, tenant.id).await?,
        })
    }
}

/// A matter in the words of the law.
#[boxed]
pub async fn terms(deps: &Deps, db: &Connection, matter: Matter) -> Result<LegalTerms> {
    let tenant = tenant::load(db, matter.owner.0).await?;
    let workspace = Workspace::of(db, &tenant).await?;
    terms_in(deps, db, &workspace, matter).await
}

#[boxed]
async fn terms_in(deps: &Deps, db: &Connection, workspace: &Workspace, matter: Matter) -> Result<LegalTerms> {
    let (tenant_id, env) = matter.owner;
    let callers = match matter.from_numbers.is_empty() {
        true => Vec::new(),
        false => {
            let mut known = caller_facts(db, tenant_id, &matter.from_numbers).await?;
            let facts = matter.from_numbers.iter().filter_map(|number| known.remove(number));
            facts.collect()
        }
    };
    let abandonment = match matter.campaign {
        Some(campaign) => Some(AbandonmentFact::from(
            campaign_hour::abandonment(db, campaign, deps.clock.times()).await?,
        )),
        None => None,
    };
    let identity = workspace.identity.as_ref();
    Ok(LegalTerms {
        zone: workspace.zone,
        own: workspace.own.clone(),
        law: deps.law.clone(),
        tenant_id,
        legal: matter.legal,
        channel: matter.channel,
        identity: IdentityFact::from(identity),
        identity_version: identity.map_or(0, |row| row.version),
        language: matter.language,
        is_cloned_voice: matter.voice_id.is_some_and(|voice| voice.parse::<VoiceId>().is_ok()),
        ring_seconds: matter.ring_seconds,
        callers,
        abandonment,
        is_enforced: env == Env::Live || matter.wants_law,
    })
}

/// Of a campaign, with the caller ids that its plan names, else the workspace's default.
pub async fn of_campaign(deps: &Deps, db: &Connection, campaign: &Campaign) -> Result<LegalTerms> {
    terms(deps, db, matter_of(db, campaign).await?).await
}

/// The same of one of several campaigns of a workspace.
pub async fn of_campaign_in(
    deps: &Deps,
    db: &Connection,
    workspace: &Workspace,
    campaign: &Campaign,
) -> Result<LegalTerms> {
    terms_in(deps, db, workspace, matter_of(db, campaign).await?).await
}

async fn matter_of(db: &Connection, campaign: &Campaign) -> Result<Matter> {
    let owner = (campaign.tenant_id, campaign.env);
    let agent = campaign.agent.as_ref().map(|agent| &agent.definition);
    matter_of_plan(db, owner, (&campaign.plan, agent, Some(campaign.id))).await
}

/// The same of its plan. `agent`: who calls, where that is settled.
#[boxed]
pub async fn of_plan(
    deps: &Deps,
    db: &Connection,
    owner: (TenantId, Env),
    of: (&Plan, Option<&Definition>, Option<CampaignId>),
) -> Result<LegalTerms> {
    terms(deps, db, matter_of_plan(db, owner, of).await?).await
}

#[boxed]
async fn matter_of_plan(
    db: &Connection,
    owner: (TenantId, Env),
    (plan, agent, campaign): (&Plan, Option<&Definition>, Option<CampaignId>),
) -> Result<Matter> {
    let drafted = match (agent, plan.agent_id) {
        (None, Some(agent)) => agent::load_even_deleted(db, owner.0, agent).await.ok(),
        (_, _) => None,
    };
    let agent = agent.or(drafted.as_ref().map(|agent| &agent.definition));
    let mut from_numbers = plan.from_numbers.clone();
    if from_numbers.is_empty() {
        from_numbers.extend(match plan.channel {
            Channel::Phone => caller_id::default_of(db, owner).await?,
            // Of the provider's own number, which it writes from where there is none, nothing is known.
            Channel::Sms => number::default_of(db, owner.0, owner.1).await?,
            Channel::Email => None,
        });
    }
    Ok(Matter {
        owner,
        channel: plan.channel.dnc(),
        legal: plan.legal(),
        language: agent.map(|agent| agent.language.to_string()).unwrap_or_default(),
        voice_id: plan
            .voice_id
            .as_deref()
            .or(agent.and_then(|agent| agent.voice_id.as_deref()))
            .map(str::to_owned),
        ring_seconds: match plan.channel {
            Channel::Phone => RING_TIMEOUT_SECONDS,
            Channel::Sms | Channel::Email => 0,
        },
        from_numbers,
        campaign,
        wants_law: plan.sandbox_law == SandboxLaw::Enforce,
    })
}

/// Of a call that no campaign makes.
pub async fn of_call(deps: &Deps, db: &Connection, row: &session::Model, language: &str) -> Result<LegalTerms> {
    let bound = row.options.legal.clone().unwrap_or_default();
    let matter = Matter {
        owner: (row.tenant_id, row.env),
        channel: DncChannel::Phone,
        legal: bound.legal,
        language: language.to_owned(),
        voice_id: row.voice_id.clone(),
        ring_seconds: row.ring_timeout_seconds,
        from_numbers: row.from_number.iter().cloned().collect(),
        campaign: None,
        wants_law: bound.sandbox_law == SandboxLaw::Enforce,
    };
    terms(deps, db, matter).await
}

/// What the record keeps of an attempt, beside who it went to and what made it.
pub fn body(law: &Law, judged: Judged, is_lawful: bool) -> AttemptBody {
    AttemptBody {
        law: law.pack.version.clone(),
        operator: law.operator.as_ref().map(|operator| operator.sha256.clone()),
        observed: !is_lawful,
        overrides: law.stamped(&judged),
        facts: judged.facts,
        asked: judged.judgement.asked,
        attempt_no: 1,
        contact_id: None,
        agent_id: None,
        agent_version: None,
        voice_id: None,
        text_sha256: None,
    }
}

/// What the law wants of a call that is placed: what is spoken in it, and how it may be recorded. `agent`: who talks in it.
pub fn bind(
    row: &mut session::Model,
    legal: &LegalTerms,
    (facts, duties): (&Facts, Option<&Duties>),
    agent: &Definition,
) {
    let person = row.options.legal.take().map(|bound| bound.person).unwrap_or_default();
    row.options.legal = Some(legal.call(facts, duties, person, true));
    row.options.safe_harbour = legal.safe_harbour(duties, row.from_number.as_ref(), agent.opt_out.key.as_deref());
}

/// The same of a talk that nobody was dialled for: a room's, or a call that has come in. `country`: the workspace's, where a room is.
#[boxed]
pub async fn bind_guest(deps: &Deps, row: &mut session::Model, country: Country, language: &str) -> Result<()> {
    let matter = Matter {
        owner: (row.tenant_id, row.env),
        channel: DncChannel::Phone,
        legal: Legal {
            purpose: Purpose::Service,
            ..Legal::default()
        },
        language: language.to_owned(),
        voice_id: row.voice_id.clone(),
        ring_seconds: row.ring_timeout_seconds,
        from_numbers: Vec::new(),
        campaign: None,
        wants_law: false,
    };
    let legal = terms(deps, &deps.db.read, matter).await?;
    let region = Place::from(country);
    let whom = Whom {
        number: row.from_number.as_ref(),
        region: row.from_number.is_none().then_some(&region),
        ..Whom::default()
    };
    let facts = legal.facts(whom, &ContactRecord::default(), None, deps.clock.now());
    let duties = legal.duties(&facts);
    row.options.legal = Some(legal.call(&facts, duties.as_ref(), LegalPerson::default(), false));
    Ok(())
}

/// Errors: the first rule that never allows it, or that lets nobody through until somebody mends what it wants of whoever calls; and what
/// to do. What only time or an answer that is awaited keeps back is asked for later. Hours and caps have answers of their own.
pub fn permits(
    legal: &LegalTerms,
    (judged, judgement): (&Judged, &Judgement),
    (is_for_later, behind_ms): (bool, i64),
) -> Result<()> {
    // An answer that is too old by either clock is awaited anew.
    let facts = by_the_later(&judged.facts, behind_ms);
    let bars = |asked: &&AskedRule| match (asked.verdict, asked.kind) {
        (Verdict::Never, GateKind::Rest | GateKind::Caps | GateKind::Hours) => false,
        (Verdict::Never, _) => true,
        (Verdict::Wait(None), GateKind::CallerId | GateKind::Disclosure | GateKind::Ring) => true,
        // A copy that is fresh now may be stale then, and the other way round.
        (Verdict::Wait(None), GateKind::Register) => !is_for_later && !legal.law.awaits_answer(&asked.rule, &facts),
        _ => false,
    };
    let Some(asked) = judgement.asked.iter().find(bars) else {
        return Ok(());
    };
    Err(blocked(&legal.law, asked.rule.to_string()))
}

/// What the API answers where that rule says no.
fn blocked(law: &Law, rule: String) -> Error {
    let (title, mend) = law.told(&rule);
    Error::ComplianceBlocked {
        reason: format!("{title}: {mend}"),
        rule,
    }
}

/// Errors: what keeps all contacts of these groups from being reached, that somebody can mend before the campaign starts.
pub fn can_start(legal: &LegalTerms, groups: &[String], now: Moment) -> Result<()> {
    let mut first = None;
    for group in groups {
        // Of a group of an earlier version nobody knows where its people are, until they are read.
        if !hours::has_places(group) {
            return Ok(());
        }
        let facts = legal.facts_of_places(hours::places_part(group), now);
        let kinds = [GateKind::CallerId, GateKind::Disclosure];
        let judgement = legal.judge(&facts);
        let bar = kinds
            .into_iter()
            .find_map(|kind| judgement.worst_of(kind).filter(|asked| asked.verdict.is_no()));
        match bar {
            None => return Ok(()),
            Some(asked) => first = first.or(Some(asked.rule.to_string())),
        }
    }
    let Some(rule) = first.filter(|_| legal.is_enforced) else {
        return Ok(());
    };
    Err(blocked(&legal.law, rule))
}

/// For the hours of what is enforced.
pub fn hours(legal: &LegalTerms) -> Option<LawHours> {
    legal.is_enforced.then(|| LawHours {
        law: legal.law.clone(),
        purpose: legal.legal.purpose,
        audience: legal.legal.audience,
        channel: legal.channel,
    })
}

/// Somebody of whom the law's facts are wanted.
pub struct Asked {
    pub address: Address,
    number: Option<E164>,
    region: Option<Place>,
    consent_id: Option<ConsentId>,
    timezone: Option<Zone>,
}

impl Asked {
    pub fn of(contact: &Contact, address: Address) -> Self {
        Asked {
            address,
            number: contact.e164(),
            region: contact.region.clone(),
            consent_id: contact.consent_id,
            timezone: contact.timezone,
        }
    }

    pub fn called(address: Address, person: &LegalPerson, timezone: Option<Zone>) -> Self {
        Asked {
            address,
            number: None,
            region: person.region.clone(),
            consent_id: person.consent_id,
            timezone,
        }
    }

    pub fn whom(&self) -> Whom<'_> {
        Whom {
            number: self.e164(),
            region: self.region.as_ref(),
            consent_id: self.consent_id,
            timezone: self.timezone,
        }
    }

    fn e164(&self) -> Option<&E164> {
        match &self.address {
            Address::Number(number) => Some(number),
            Address::Email(_) => self.number.as_ref(),
        }
    }
}

/// Adds to what is known of these people what the law's rules are asked with: consents, rests, registers, and whose the number is
/// now. One look-up of each for all of them. `unanswered`: whoever only looks has nobody outside asked.
#[boxed]
pub async fn learn(
    deps: &Deps,
    owner: (TenantId, Env),
    legal: &LegalTerms,
    (asked, unanswered): (&[Asked], Unanswered),
    (people, now): (&mut BTreeMap<Address, ContactRecord>, Moment),
) -> Result<()> {
    let db = &deps.db.read;
    let addresses: Vec<Address> = asked.iter().map(|asked| asked.address.clone()).collect();
    let numbers: BTreeSet<E164> = asked.iter().filter_map(|asked| asked.e164().cloned()).collect();
    let numbers: Vec<E164> = numbers.into_iter().collect();
    let mut consents = consent::of_people(db, owner, &addresses).await?;
    let rests = rest::of_numbers(db, owner, &numbers).await?;
    for asked in asked {
        let Some(record) = people.get_mut(&asked.address) else {
            continue;
        };
        // Several contacts may have one address, and then one record.
        if let Some(found) = consents.remove(asked.address.as_str()) {
            record.legal.consents = found;
        }
        // Several of them may have one number.
        let own = asked.e164().and_then(|number| rests.get(number)).into_iter().flatten();
        record.legal.rests = own.cloned().map(RestFact::from).collect();
    }
    let names = names(legal, asked, people, now);
    if !names.is_empty() {
        let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = deps.registers.look(db, owner, &wanted, &numbers).await?;
        note_of_numbers(asked, people, |record, number| {
            if let Some(facts) = found.facts.get(number) {
                record.registers.clone_from(facts);
                record.asked_registers.clone_from(&found.asked);
                record.seen.clone_from(&found.seen);
            }
        });
        if !found.asked.is_empty() && unanswered == Unanswered::Ask {
            outside::inquire(deps, owner.0, legal, asked, (&mut *people, now));
        }
    }
    outside::reassigned(deps, owner, legal, (asked, unanswered), (people, now)).await
}

/// Notes of all of them who are known and have a number what is known of that number.
fn note_of_numbers(
    asked: &[Asked],
    people: &mut BTreeMap<Address, ContactRecord>,
    mut note: impl FnMut(&mut LegalRecord, &E164),
) {
    for asked in asked {
        if let (Some(record), Some(number)) = (people.get_mut(&asked.address), asked.e164()) {
            note(&mut record.legal, number);
        }
    }
}

/// The registers that any rule names for any of them.
fn names(
    legal: &LegalTerms,
    asked: &[Asked],
    people: &BTreeMap<Address, ContactRecord>,
    now: Moment,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for asked in asked {
        let Some(record) = people.get(&asked.address) else {
            continue;
        };
        let (places, _) = asked.whom().places();
        // Those of one place are asked the same.
        if seen.insert(places) {
            let facts = legal.facts(asked.whom(), record, None, now);
            names.extend(legal.law.registers(&facts));
        }
    }
    names
}
