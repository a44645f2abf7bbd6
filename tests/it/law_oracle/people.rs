//! Whom the simulated campaigns call: people in the twelve places, with and without what the law asks for, and what is known of them and
//! of the caller when they are called.
use chrono::{Days, NaiveDate, NaiveTime, TimeZone, Utc};
use chrono_tz::{Africa, America, Atlantic, Australia, Europe, Tz};
use entities::{
    dnc::DncChannel,
    ids::{ConsentId, RegisterId},
    law::{Audience, ConsentTier, Purpose, Vertical},
    values::{E164, Moment},
};
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use rules::law::{
    facts::{
        AbandonmentFact, CallerFact, ConsentFact, Facts, IdentityFact, ReassignedAnswer, ReassignedFact, RegisterFact,
        RestCause, RestFact,
    },
    places_of,
};
use uuid::Uuid;

const DAY: i64 = 86_400_000;
pub const SELLER: &str = "Acme Energy Ltd";

/// Where people are: a number there without its last two digits, the clocks that count, a number that may be shown, and one that may not.
pub struct Home {
    pub place: &'static str,
    number: &'static str,
    zones: &'static [Tz],
    caller: &'static str,
    other_caller: &'static str,
    register: &'static str,
    language: &'static str,
}

const fn home(
    place: &'static str,
    number: &'static str,
    zones: &'static [Tz],
    callers: (&'static str, &'static str),
    register: &'static str,
    language: &'static str,
) -> Home {
    let (caller, other_caller) = callers;
    Home {
        place,
        number,
        zones,
        caller,
        other_caller,
        register,
        language,
    }
}

const US: (&str, &str) = ("+12015550123", "+12015550124");

#[rustfmt::skip]
pub static HOMES: [Home; 12] = [
    home("US-NY", "+121255501", &[America::New_York], US, "us_dnc", "en-US"),
    home("US-FL", "+185055501", &[America::New_York, America::Chicago], US, "us_dnc", "es-US"),
    home("US-TX", "+191555501", &[America::Chicago, America::Denver], US, "us_dnc", "en-US"),
    home("US-ME", "+120755501", &[America::New_York], US, "us_dnc", "en-US"),
    home("CA-ON", "+141655501", &[America::Toronto, America::Winnipeg], ("+15062345678", "+15062345679"), "ca_dncl", "fr-CA"),
    home("GB", "+4474001234", &[Europe::London], ("+441212345678", "+441212345679"), "uk_tps", "en-GB"),
    home("DE", "+49151234567", &[Europe::Berlin], ("+4930123456", "+4930123457"), "none", "de"),
    home("FR", "+336123456", &[Europe::Paris], ("+33123456789", "+33612345678"), "none", "fr"),
    home("ES", "+346123456", &[Europe::Madrid, Atlantic::Canary, Africa::Ceuta], ("+34810123456", "+34612345678"), "none", "es"),
    home("IT", "+3931234567", &[Europe::Rome], ("+390212345678", "+390212345679"), "it_rpo", "it"),
    home("NL", "+316123456", &[Europe::Amsterdam], ("+31101234567", "+31101234568"), "none", "nl-NL"),
    home("AU", "+614123456", &[Australia::Sydney, Australia::Adelaide, Australia::Perth], ("+61212345678", "+61212345679"), "au_dncr", "en-AU"),
];

/// One person, what was agreed to, and what has happened so far.
pub struct Person<'a> {
    home: &'a Home,
    number: E164,
    consent: Option<ConsentFact>,
    is_listed: bool,
    is_barred: bool,
    /// How good the caller's own house is: each of its duties is neglected once in so many times.
    neglect: u32,
    pub tried: Vec<Moment>,
    pub rests: Vec<RestFact>,
}

impl<'a> Person<'a> {
    pub fn new(chance: &mut StdRng, home: &'a Home) -> Self {
        let number = format!("{}{:02}", home.number, chance.random_range(10..100));
        Person {
            home,
            number: number.parse().unwrap_or_else(|error| panic!("{number}: {error}")),
            consent: chance.random_ratio(5, 6).then(|| consent(chance)),
            is_listed: chance.random_ratio(1, 5),
            is_barred: chance.random_ratio(1, 20),
            neglect: *[4, 20, 200].choose(chance).unwrap(),
            tried: Vec::new(),
            rests: Vec::new(),
        }
    }

    /// All that is known when the person is called at that moment.
    pub fn facts(&self, chance: &mut StdRng, at: Moment) -> Facts {
        let home = self.home;
        let (places, place_sources) = places_of(&self.number, Some(&home.place.parse().unwrap()));
        let (channel, purpose) = occasion(chance);
        let mut neglected = || chance.random_ratio(1, self.neglect);
        let (anonymous, wrong_caller, unanswered, foreign) = (neglected(), neglected(), neglected(), neglected());
        let (nameless, homeless, speechless, hasty, unregistered) =
            (neglected(), neglected(), neglected(), neglected(), neglected());
        let caller = CallerFact {
            number: if wrong_caller { home.other_caller } else { home.caller }
                .parse()
                .unwrap(),
            right_to_use: (!foreign).then(|| "claimed".to_owned()),
            is_answered: !unanswered,
            registration: (!unregistered).then(|| "campaign-7".to_owned()),
        };
        Facts {
            at,
            channel,
            purpose,
            audience: Audience::Consumer,
            vertical: [
                None,
                None,
                Some(Vertical::Energy),
                Some(Vertical::EnergyRenovation),
                Some(Vertical::Health),
            ]
            .choose(chance)
            .copied()
            .flatten(),
            places,
            place_sources,
            zones: home.zones.iter().map(|zone| (*zone).into()).collect(),
            seller: Some(SELLER.to_owned()),
            subject: Some("Tariff 7".to_owned()),
            contract_ref: [None, None, Some("C-1042"), Some("C-2077")]
                .choose(chance)
                .copied()
                .flatten()
                .map(str::to_owned),
            consent: self.consent.clone(),
            is_barred: self.is_barred,
            recent: self.recent(at),
            rests: self.rests.clone(),
            registers: self.registers(chance, at),
            asked_registers: Vec::new(),
            reassigned: self.reassigned(chance, at),
            caller: (!anonymous).then_some(caller),
            identity: identity(chance, nameless, homeless),
            language: if speechless { "ja" } else { home.language }.to_owned(),
            is_cloned_voice: false,
            ring_seconds: if hasty { 12 } else { 30 },
            abandonment: Some(abandonment(chance)),
            overrides: Vec::new(),
        }
    }

    fn recent(&self, at: Moment) -> Vec<Moment> {
        let since = at.millis() - 30 * DAY;
        self.tried
            .iter()
            .copied()
            .filter(|tried| tried.millis() > since)
            .collect()
    }

    fn registers(&self, chance: &mut StdRng, at: Moment) -> Vec<RegisterFact> {
        if chance.random_ratio(1, 10) {
            return Vec::new();
        }
        let age = if chance.random_ratio(3, 4) { 14 * DAY } else { 45 * DAY };
        let listed_on = at
            .plus_millis(-DAY * chance.random_range(50..400_i64))
            .datetime()
            .date_naive();
        let listed_on = Some(listed_on).filter(|_| self.is_listed && chance.random_bool(0.5));
        vec![RegisterFact {
            id: RegisterId(Uuid::from_u128(1)),
            name: self.home.register.to_owned(),
            version: 1,
            fetched_at: at.plus_millis(-chance.random_range(0..age)),
            is_listed: self.is_listed,
            listed_on,
            asked_at: None,
        }]
    }

    fn reassigned(&self, chance: &mut StdRng, at: Moment) -> Option<ReassignedFact> {
        use ReassignedAnswer::{No, NoData, Yes};
        let since = self.consent.as_ref()?.given_at;
        (!chance.random_ratio(1, 8)).then(|| ReassignedFact {
            checked_at: at.plus_millis(-chance.random_range(0..20 * DAY)),
            answer: *[No, No, No, No, No, No, Yes, NoData].choose(chance).unwrap(),
            since: since.plus_millis(if chance.random_ratio(1, 10) { 40 * DAY } else { 0 }),
        })
    }

    /// What a call led to, if it is of consequence for the next ones.
    pub fn was_called(&mut self, chance: &mut StdRng, at: Moment) {
        self.tried.push(at);
        let cause = match chance.random_range(0..10) {
            0 => RestCause::Declined,
            1 => RestCause::Abandoned,
            _ => return,
        };
        self.rests.push(RestFact {
            cause,
            since: at.plus_seconds(30),
        });
    }
}

/// A call to somebody who has agreed to all of it, by somebody who has done all that there is to do, on a Wednesday in September.
pub fn blameless(home: &Home) -> Facts {
    let zone = home.zones[0];
    let noon: NaiveDate = "2026-09-16".parse().unwrap();
    let local = zone.from_local_datetime(&noon.and_hms_opt(14, 30, 0).unwrap()).unwrap();
    let at = Moment::from(local.with_timezone(&Utc));
    let number: E164 = format!("{}42", home.number).parse().unwrap();
    let (places, place_sources) = places_of(&number, Some(&home.place.parse().unwrap()));
    let fetched_at = at.plus_millis(-DAY);
    Facts {
        at,
        channel: DncChannel::Phone,
        purpose: Purpose::Marketing,
        audience: Audience::Consumer,
        vertical: None,
        places,
        place_sources,
        zones: home.zones.iter().map(|zone| (*zone).into()).collect(),
        seller: Some(SELLER.to_owned()),
        subject: Some("Tariff 7".to_owned()),
        contract_ref: None,
        consent: Some(ConsentFact {
            id: ConsentId(Uuid::from_u128(7)),
            tier: ConsentTier::ExpressWritten,
            seller: SELLER.to_owned(),
            purposes: vec![Purpose::Marketing, Purpose::Service],
            channels: vec![DncChannel::Phone, DncChannel::Sms, DncChannel::Email],
            covers_automated_voice: true,
            given_at: at.plus_millis(-90 * DAY),
            expires_at: None,
            contract_ref: None,
        }),
        is_barred: false,
        recent: Vec::new(),
        rests: Vec::new(),
        registers: vec![RegisterFact {
            id: RegisterId(Uuid::from_u128(1)),
            name: home.register.to_owned(),
            version: 1,
            fetched_at,
            is_listed: false,
            listed_on: None,
            asked_at: None,
        }],
        asked_registers: Vec::new(),
        reassigned: Some(ReassignedFact {
            checked_at: fetched_at,
            answer: ReassignedAnswer::No,
            since: at.plus_millis(-90 * DAY),
        }),
        caller: Some(CallerFact {
            number: home.caller.parse().unwrap(),
            right_to_use: Some("claimed".to_owned()),
            is_answered: true,
            registration: Some("campaign-7".to_owned()),
        }),
        identity: IdentityFact {
            registered_name: Some(SELLER.to_owned()),
            callback_number: Some("+12015550123".parse().unwrap()),
            toll_free_number: Some("+18002345678".parse().unwrap()),
            postal_address: Some("1 Main Street, Springfield".to_owned()),
        },
        language: home.language.to_owned(),
        is_cloned_voice: false,
        ring_seconds: 30,
        abandonment: Some(AbandonmentFact {
            day: (2_000, 2),
            month: (40_000, 40),
        }),
        overrides: Vec::new(),
    }
}

/// Most calls are those that the law is about.
fn occasion(chance: &mut StdRng) -> (DncChannel, Purpose) {
    let purpose = match chance.random_range(0..20) {
        0 => Purpose::Debt,
        1 => Purpose::Research,
        2..5 => Purpose::Service,
        _ => Purpose::Marketing,
    };
    let channel = match chance.random_range(0..10) {
        0 => DncChannel::Sms,
        1 => DncChannel::Email,
        _ => DncChannel::Phone,
    };
    (channel, purpose)
}

/// One that is good for everything, or lacks something.
fn consent(chance: &mut StdRng) -> ConsentFact {
    use ConsentTier::{ExistingContract, Express, ExpressWritten, OptInDouble};
    let begin = moment("2026-03-01T00:00:00Z");
    // Some are given only in the course of the year, some are older than two years.
    let given_at = begin.plus_millis(DAY * chance.random_range(-900..200_i64) + 1);
    let mut consent = ConsentFact {
        id: ConsentId(Uuid::from_u128(chance.random())),
        tier: *[ExpressWritten, ExpressWritten, OptInDouble, Express, ExistingContract]
            .choose(chance)
            .unwrap(),
        seller: SELLER.to_owned(),
        purposes: vec![Purpose::Marketing, Purpose::Service],
        channels: vec![DncChannel::Phone, DncChannel::Sms, DncChannel::Email],
        covers_automated_voice: true,
        given_at,
        expires_at: None,
        contract_ref: chance.random_bool(0.5).then(|| "C-1042".to_owned()),
    };
    match chance.random_range(0..12) {
        0 => consent.seller = "Somebody Else Ltd".to_owned(),
        1 => consent.purposes = vec![Purpose::Service],
        2 => consent.channels = vec![DncChannel::Email],
        3 => consent.covers_automated_voice = false,
        4 => consent.expires_at = Some(given_at.plus_millis(DAY * chance.random_range(1..900_i64))),
        _ => {}
    }
    consent
}

fn identity(chance: &mut StdRng, nameless: bool, homeless: bool) -> IdentityFact {
    let number = |text: &str| Some(text.parse::<E164>().unwrap());
    let has_address = !homeless || chance.random_bool(0.5);
    IdentityFact {
        registered_name: (!nameless).then(|| SELLER.to_owned()),
        callback_number: number("+12015550123").filter(|_| !homeless),
        toll_free_number: number("+18002345678").filter(|_| !homeless || !has_address),
        postal_address: has_address.then(|| "1 Main Street, Springfield".to_owned()),
    }
}

/// Of thousands of calls, up to a little above each limit.
fn abandonment(chance: &mut StdRng) -> AbandonmentFact {
    let permille = *[0, 0, 2, 4, 4, 7, 15, 25, 40].choose(chance).unwrap();
    AbandonmentFact {
        day: (2_000, 2 * permille),
        month: (40_000, 40 * permille),
    }
}

pub fn moment(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

/// A moment of the year, more often than not near one at which something changes.
pub fn moments(chance: &mut StdRng, home: &Home, special: &[NaiveDate], count: usize) -> Vec<Moment> {
    let begin: NaiveDate = "2026-03-01".parse().unwrap();
    let mut moments: Vec<Moment> = (0..count)
        .filter_map(|_| {
            let day = match chance.random_ratio(1, 3) {
                true => *special.choose(chance)?,
                false => begin.checked_add_days(Days::new(chance.random_range(0..396)))?,
            };
            let zone = home.zones.choose(chance)?;
            let time = time_of_day(chance)?;
            let local = zone.from_local_datetime(&day.and_time(time)).earliest()?;
            Some(Moment::from(local.with_timezone(&Utc)))
        })
        .collect();
    // Campaigns try again soon, too.
    let again: Vec<Moment> = moments
        .iter()
        .filter(|_| chance.random_ratio(1, 4))
        .map(|at| at.plus_millis(3_600_000 * 5 / 2))
        .collect();
    moments.extend(again);
    moments.sort();
    moments
}

fn time_of_day(chance: &mut StdRng) -> Option<NaiveTime> {
    // In minutes: where a window begins or ends somewhere, and midnight.
    const EDGES: [i64; 14] = [
        0, 480, 540, 600, 720, 780, 840, 1020, 1080, 1140, 1200, 1260, 1290, 1439,
    ];
    let second = match chance.random_bool(0.4) {
        true => EDGES.choose(chance)? * 60 + chance.random_range(-90..90),
        false => chance.random_range(7 * 3600..22 * 3600),
    };
    NaiveTime::from_num_seconds_from_midnight_opt(u32::try_from(second).ok()?, 0)
}
