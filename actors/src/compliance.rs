//! What the law would say of an attempt that nobody makes: for any place and any moment, before a campaign is made and long before it runs.
//! Looked up and judged as a real one is; nothing is stored, and nobody outside is asked.
use crate::{
    caller_facts::caller_fact,
    deps::Deps,
    legal::{self, Matter},
    people::{People, people},
    session::caller_id,
};
use entities::{
    Result, boxed,
    campaign::Channel,
    consent,
    dnc::DncChannel,
    ids::{ConsentId, TenantId},
    law::{ConsentTier, Legal},
    legal_identity, reassigned, rest,
    values::{E164, Env, Moment, Place, Zone},
};
use rules::{
    barred::Whom,
    eligibility::{ContactRecord, RING_TIMEOUT_SECONDS},
    law::{
        self, Facts, Judgement, Law, LawRule, LegalTerms,
        facts::{ConsentFact, ReassignedFact, RestFact},
        judge,
    },
};
use uuid::Uuid;

/// An attempt that is thought of.
#[derive(Clone, Debug)]
pub struct Question {
    pub owner: (TenantId, Env),
    pub at: Moment,
    /// None: anybody in that place.
    pub to: Option<Whom>,
    pub region: Option<Place>,
    /// Where the person is; none: what the number or the place says.
    pub zone: Option<Zone>,
    pub channel: DncChannel,
    pub legal: Legal,
    /// BCP 47.
    pub language: String,
    /// None: the workspace's default.
    pub from: Option<E164>,
    /// As if a consent of that tier were there.
    pub supposed: Option<ConsentTier>,
    pub is_cloned_voice: bool,
}

/// What the rules say, and on which facts.
pub struct Answer {
    pub facts: Facts,
    pub judgement: Judgement,
    /// Ids of rules by which somebody has to be registered, and the workspace does not say that it is.
    pub unregistered: Vec<String>,
}

/// The law that is in force here.
pub fn law(deps: &Deps) -> &Law {
    &deps.law
}

#[boxed]
pub async fn ask(deps: &Deps, asked: Question) -> Result<Answer> {
    let mut facts = before(deps, &asked).await?;
    let law = law(deps);
    if let Some(Whom::Number(number)) = &asked.to {
        let names = law.registers(&facts);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let numbers = std::slice::from_ref(number);
        let looked = deps.registers.look(&deps.db.read, asked.owner, &names, numbers).await?;
        facts.registers = looked.facts.into_values().flatten().collect();
        facts.asked_registers = looked.asked;
        // Who sells answers is not asked: only what was said already.
        if law.reassigned_max_age(&facts).is_some() {
            let known = reassigned::of_numbers(&deps.db.read, asked.owner, numbers).await?;
            facts.reassigned = known.into_values().next().map(|row| ReassignedFact {
                checked_at: row.checked_at,
                answer: row.answer,
                since: row.since,
            });
        }
    }
    let identity = legal_identity::of(&deps.db.read, asked.owner.0).await?;
    let named = identity.map(|row| row.registrations).unwrap_or_default();
    let unregistered = law
        .unregistered(&facts, |name| named.0.contains_key(&name.replace('_', "-")))
        .into_iter();
    Ok(Answer {
        unregistered: unregistered.map(|rule| rule.id.clone()).collect(),
        judgement: judge(law, &facts),
        facts,
    })
}

/// All that is known before the rules say what else has to be looked up.
async fn before(deps: &Deps, asked: &Question) -> Result<Facts> {
    let shown = shown(deps, asked).await?;
    let legal = legal::terms(deps, &deps.db.read, matter(asked)).await?;
    let record = match &asked.to {
        Some(whom) => record(deps, asked, whom).await?,
        None => ContactRecord::default(),
    };
    let whom = law::Whom {
        number: match &asked.to {
            Some(Whom::Number(number)) => Some(number),
            // An address lies nowhere: without a word of where the person is, the strictest of all rules hold.
            Some(Whom::Email(_)) | None => None,
        },
        region: asked.region.as_ref(),
        timezone: asked.zone,
        ..law::Whom::default()
    };
    let mut facts = legal.facts(whom, &record, None, asked.at);
    facts.is_cloned_voice = asked.is_cloned_voice;
    facts.caller = match shown {
        Some(number) => Some(caller_fact(&deps.db.read, asked.owner.0, &number).await?),
        None => None,
    };
    if let Some(tier) = asked.supposed {
        facts.consent = Some(supposed(asked, tier, &legal));
    }
    Ok(facts)
}

fn matter(asked: &Question) -> Matter {
    Matter {
        owner: asked.owner,
        channel: asked.channel,
        legal: asked.legal.clone(),
        language: asked.language.clone(),
        voice_id: None,
        ring_seconds: match asked.channel {
            DncChannel::Phone => RING_TIMEOUT_SECONDS,
            DncChannel::Sms | DncChannel::Email => 0,
        },
        from_numbers: Vec::new(),
        campaign: None,
        wants_law: true,
    }
}

/// The number that it would show.
async fn shown(deps: &Deps, asked: &Question) -> Result<Option<E164>> {
    match (asked.channel, &asked.from) {
        (DncChannel::Email, _) => Ok(None),
        (DncChannel::Phone | DncChannel::Sms, Some(number)) => Ok(Some(number.clone())),
        (DncChannel::Phone | DncChannel::Sms, None) => caller_id::default_of(&deps.db.read, asked.owner).await,
    }
}

/// What has been with this person: on the do-not-call list, when it was tried lately, what gives it a rest, and to what it has agreed.
async fn record(deps: &Deps, asked: &Question, whom: &Whom) -> Result<ContactRecord> {
    let db = &deps.db.read;
    let whose = People {
        owner: asked.owner,
        channel: match asked.channel {
            DncChannel::Phone => Channel::Phone,
            DncChannel::Sms => Channel::Sms,
            DncChannel::Email => Channel::Email,
        },
        itself: None,
    };
    let addresses = vec![whom.address()];
    let consents = consent::of_people(db, asked.owner, &addresses).await?;
    let known = people(deps, db, whose, addresses, asked.at).await?;
    let mut record = known.into_values().next().unwrap_or_default();
    // What lies behind the moment that is asked about has not happened by then.
    record.recent.retain(|at| *at <= asked.at);
    record.legal.consents = consents.into_values().flatten().collect();
    if let Whom::Number(number) = whom {
        let rests = rest::of_numbers(db, asked.owner, std::slice::from_ref(number)).await?;
        record.legal.rests = rests.into_values().flatten().map(RestFact::from).collect();
    }
    Ok(record)
}

/// Is a rule about that place?
pub fn holds_in(law: &Law, rule: &LawRule, place: &Place) -> bool {
    if rule.excepted_places.iter().any(|excepted| place.lies_in(excepted)) {
        return false;
    }
    let names = |rule: &LawRule| rule.places.places.iter().any(|named| place.lies_in(named));
    rule.places.is_everywhere || names(rule) || (rule.places.is_unnamed && !law.pack.rules.iter().any(names))
}

/// A consent as somebody may have given it.
fn supposed(asked: &Question, tier: ConsentTier, legal: &LegalTerms) -> ConsentFact {
    let contract = asked.legal.contract_ref.as_deref();
    ConsentFact {
        id: ConsentId(Uuid::nil()),
        tier,
        seller: legal.seller().unwrap_or_default().to_owned(),
        purposes: vec![asked.legal.purpose],
        channels: vec![asked.channel],
        covers_automated_voice: true,
        given_at: asked.at,
        expires_at: None,
        contract_ref: (tier == ConsentTier::ExistingContract).then(|| contract.unwrap_or("supposed").to_owned()),
    }
}
