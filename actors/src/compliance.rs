//! What the law would say of an attempt that nobody makes: for any place and any moment, before a campaign is made and long before it runs.
//! Looked up and judged as a real one is; nothing is stored, and nobody outside is asked.
use crate::{deps::Deps, session::caller_id};
use entities::{
    Result, boxed,
    connection::Connection,
    consent::{self, Address},
    dial,
    dnc::{self, DncChannel},
    ids::{ConsentId, TenantId},
    law::{Audience, ConsentTier, Purpose, Vertical},
    legal_identity, message_send, number, number_claim, reassigned, rest, tenant,
    values::{E164, Env, Moment, Place, Zone},
};
use rules::{
    barred::Whom,
    consent::standing::{self, Wanted},
    hours,
    law::{
        Facts, Judgement, Law, LawRule,
        facts::{CallerFact, ConsentFact, IdentityFact, PlaceSource, ReassignedFact, RestFact},
        judge,
        places::{of_region, places_of, zones_of},
    },
    zone,
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
    pub zones: Vec<Zone>,
    pub channel: DncChannel,
    pub purpose: Purpose,
    pub audience: Audience,
    pub vertical: Option<Vertical>,
    /// None: the workspace's registered name.
    pub seller: Option<String>,
    pub subject: Option<String>,
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
        let looked = deps
            .registers
            .look(&deps.db.read, asked.owner, &names, numbers)
            .await?;
        facts.registers = looked.into_values().flatten().collect();
        if law.asks_reassigned(&facts) {
            let known = reassigned::of_numbers(&deps.db.read, asked.owner, numbers).await?;
            facts.reassigned = known.into_values().next().map(|row| ReassignedFact {
                checked_at: row.checked_at,
                answer: row.answer,
                since: row.since,
            });
        }
    }
    let judgement = judge(law, &facts);
    Ok(Answer { facts, judgement })
}

/// All that is known before the rules say what else has to be looked up.
async fn before(deps: &Deps, asked: &Question) -> Result<Facts> {
    let (db, owner) = (&deps.db.read, asked.owner);
    let identity = legal_identity::of(db, owner.0).await?;
    let name = identity.as_ref().and_then(|row| row.registered_name.clone());
    let seller = asked.seller.clone().or(name);
    let (places, place_sources) = places(asked);
    let zones = zones(deps, asked).await?;
    let address = asked.to.as_ref().map(address_of);
    let consent = match (asked.supposed, &address) {
        (Some(tier), _) => Some(supposed(asked, tier, seller.as_deref())),
        (None, Some(address)) => best(db, asked, address, seller.as_deref()).await?,
        (None, None) => None,
    };
    let (is_barred, recent, rests) = match &asked.to {
        Some(whom) => history(db, asked, whom).await?,
        None => (false, Vec::new(), Vec::new()),
    };
    Ok(Facts {
        at: asked.at,
        channel: asked.channel,
        purpose: asked.purpose,
        audience: asked.audience,
        vertical: asked.vertical,
        places,
        place_sources,
        zones,
        seller,
        subject: asked.subject.clone(),
        consent,
        is_barred,
        recent,
        rests,
        registers: Vec::new(),
        reassigned: None,
        caller: caller(db, asked).await?,
        identity: IdentityFact::from(identity.as_ref()),
        language: asked.language.clone(),
        is_cloned_voice: asked.is_cloned_voice,
        ring_seconds: match asked.channel {
            DncChannel::Phone => rules::eligibility::RING_TIMEOUT_SECONDS,
            DncChannel::Sms | DncChannel::Email => 0,
        },
        abandonment: None,
        overrides: law(deps).overridden(),
    })
}

fn places(asked: &Question) -> (Vec<Place>, Vec<PlaceSource>) {
    match &asked.to {
        Some(Whom::Number(number)) => places_of(number, asked.region.as_ref()),
        // An address lies nowhere: without a word of where the person is, the strictest of all rules hold.
        Some(Whom::Email(_)) | None => of_region(asked.region.as_ref()),
    }
}

/// Is a rule about that place?
pub fn holds_in(law: &Law, rule: &LawRule, place: &Place) -> bool {
    if rule.excepted_places.iter().any(|excepted| place.lies_in(excepted)) {
        return false;
    }
    let names = |rule: &LawRule| rule.places.places.iter().any(|named| place.lies_in(named));
    rule.places.is_everywhere || names(rule) || (rule.places.is_unnamed && !law.pack.rules.iter().any(names))
}

/// The clocks that count: as campaigns take them, and the workspace's own where nothing else is known.
async fn zones(deps: &Deps, asked: &Question) -> Result<Vec<Zone>> {
    if !asked.zones.is_empty() {
        return Ok(asked.zones.clone());
    }
    let by_number = match &asked.to {
        Some(Whom::Number(number)) => zone::parse(hours::zones_part(&hours::group(number, None, None))).unwrap_or_default(),
        Some(Whom::Email(_)) | None => Vec::new(),
    };
    let mut known: Vec<Zone> = by_number.into_iter().map(Zone::from).collect();
    if known.is_empty() {
        known = zones_of(asked.region.as_slice());
    }
    if known.is_empty() {
        known.push(tenant::load(&deps.db.read, asked.owner.0).await?.timezone);
    }
    Ok(known)
}

fn address_of(whom: &Whom) -> Address {
    match whom {
        Whom::Number(number) => Address::Number(number.clone()),
        Whom::Email(email) => Address::Email(email.clone()),
    }
}

/// A consent as somebody may have given it.
fn supposed(asked: &Question, tier: ConsentTier, seller: Option<&str>) -> ConsentFact {
    ConsentFact {
        id: ConsentId(Uuid::nil()),
        tier,
        seller: seller.unwrap_or_default().to_owned(),
        purposes: vec![asked.purpose],
        channels: vec![asked.channel],
        covers_automated_voice: true,
        given_at: asked.at,
        expires_at: None,
        contract_ref: (tier == ConsentTier::ExistingContract).then(|| "supposed".to_owned()),
    }
}

/// The best of the consents that cover it.
async fn best(
    db: &Connection,
    asked: &Question,
    address: &Address,
    seller: Option<&str>,
) -> Result<Option<ConsentFact>> {
    let known = consent::of_people(db, asked.owner, std::slice::from_ref(address)).await?;
    let known: Vec<consent::Model> = known.into_values().flatten().collect();
    let wanted = Wanted {
        seller,
        purpose: asked.purpose,
        channel: asked.channel,
        named: None,
        at: asked.at,
    };
    Ok(standing::best(&known, &wanted).map(standing::fact))
}

/// The longest span that a cap of the law counts over. Source: decree 2022-1313 (France), 30 days.
const CAPS_LOOK_BACK_SECONDS: i64 = 30 * 24 * 3600;

/// What has been with this person: on the do-not-call list, when it was tried lately, and what gives it a rest.
async fn history(db: &Connection, asked: &Question, whom: &Whom) -> Result<(bool, Vec<Moment>, Vec<RestFact>)> {
    let since = asked.at.plus_seconds(-CAPS_LOOK_BACK_SECONDS);
    let texts = [match whom {
        Whom::Number(number) => number.as_str().to_owned(),
        Whom::Email(email) => email.clone(),
    }];
    let is_barred = !dnc::barred(db, asked.owner, asked.channel, &texts).await?.is_empty();
    let channel = match asked.channel {
        DncChannel::Phone => None,
        DncChannel::Sms => Some(message_send::Channel::Sms),
        DncChannel::Email => Some(message_send::Channel::Email),
    };
    let recent: Vec<Moment> = match (channel, whom) {
        (Some(channel), _) => message_send::recent(db, asked.owner, channel, &texts, since)
            .await?
            .into_values()
            .flatten()
            .map(|sent| sent.at)
            .collect(),
        (None, Whom::Number(number)) => dial::recent(db, asked.owner, std::slice::from_ref(number), since)
            .await?
            .into_values()
            .flatten()
            .map(|call| call.at)
            .collect(),
        (None, Whom::Email(_)) => Vec::new(),
    };
    // What lies behind the moment that is asked about has not happened by then.
    let recent = recent.into_iter().filter(|at| *at <= asked.at).collect();
    let rests = match whom {
        Whom::Number(number) => rest::of_numbers(db, asked.owner, std::slice::from_ref(number)).await?,
        Whom::Email(_) => Default::default(),
    };
    let rests = rests.into_values().flatten().map(RestFact::from).collect();
    Ok((is_barred, recent, rests))
}

/// The number that would be shown, and what is known of it.
async fn caller(db: &Connection, asked: &Question) -> Result<Option<CallerFact>> {
    if asked.channel == DncChannel::Email {
        return Ok(None);
    }
    let number = match &asked.from {
        Some(number) => Some(number.clone()),
        None => caller_id::default_of(db, asked.owner).await?,
    };
    let Some(number) = number else { return Ok(None) };
    let own = number::of_number(db, asked.owner.0, &number).await?;
    let is_claimed = number_claim::holds(db, asked.owner.0, &number).await?;
    Ok(Some(CallerFact {
        number,
        right_to_use: is_claimed.then(|| "verified".to_owned()),
        is_answered: own.is_some_and(|own| own.agent_id.is_some()),
        registration: None,
    }))
}
