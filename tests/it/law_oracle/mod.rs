//! A year of campaigns into twelve places, with clocks that change, holidays, and laws that begin: whatever the law pack allows, an oracle
//! allows, too, that was written from COMPLIANCE.md alone.
//!
//! With more people: `CALLBOARD_TEST_LAW_SEEDS=200`.
mod calendar;
pub mod oracle;
mod people;

use calendar::special_days;
use entities::{
    dnc::DncChannel,
    law::{ConsentTier, Purpose, Vertical},
};
use oracle::{LAWS, may};
use people::{HOMES, Person, blameless, moment, moments};
use rand::{SeedableRng, rngs::StdRng};
use rules::law::{
    Facts, Judgement, Law,
    facts::{RestCause, RestFact},
    judge, pack,
};
use std::{collections::BTreeMap, sync::LazyLock};

/// People in each place and year.
const PEOPLE: usize = 40;
/// How often each is thought of in it.
const TRIES: usize = 60;

fn judged(facts: &Facts) -> Judgement {
    static LAW: LazyLock<Law> = LazyLock::new(|| Law::new(pack(), None));
    judge(&LAW, facts)
}

fn seeds() -> u64 {
    let given = std::env::var("CALLBOARD_TEST_LAW_SEEDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// What both said, in one place.
#[derive(Debug, Default)]
struct Tally {
    asked: usize,
    both: usize,
    of_marketing_calls: usize,
    of_service_calls: usize,
    of_messages: usize,
    /// Stricter than the oracle, by the pack's rule.
    stricter: BTreeMap<String, usize>,
}

#[test]
fn what_the_pack_allows_in_a_year_of_campaigns_the_oracle_allows() {
    let (special, mut breaches) = (special_days(), Vec::new());
    for seed in 0..seeds() {
        for (home, law) in HOMES.iter().zip(&LAWS) {
            assert_eq!(home.place, law.place);
            let mut chance = StdRng::seed_from_u64(seed ^ hash(home.place));
            let mut tally = Tally::default();
            for _ in 0..PEOPLE {
                let mut person = Person::new(&mut chance, home);
                for at in moments(&mut chance, home, &special, TRIES) {
                    let facts = person.facts(&mut chance, at);
                    let judgement = judged(&facts);
                    tally.asked += 1;
                    match (judgement.is_yes(), may(law, &facts)) {
                        (true, Ok(())) => tally.count(facts.channel, facts.purpose),
                        (true, Err(rule)) => {
                            breaches.push(format!("seed {seed}, {}: {rule}: {facts:#?}", home.place));
                        }
                        (false, Ok(())) => {
                            let no = judgement.first_no().map(|(asked, _)| asked.rule.to_string());
                            *tally.stricter.entry(no.unwrap_or_default()).or_default() += 1;
                        }
                        (false, Err(_)) => {}
                    }
                    // Whoever is called has been called, whatever the oracle says of it.
                    if judgement.is_yes() && facts.channel == DncChannel::Phone {
                        person.was_called(&mut chance, at);
                    }
                }
            }
            println!("{}, seed {seed}: {tally:?}", home.place);
            // Who closes everything breaks nothing, and helps nobody.
            for (what, count) in [
                ("marketing calls", tally.of_marketing_calls),
                ("service calls", tally.of_service_calls),
                ("messages", tally.of_messages),
            ] {
                assert!(count > 0, "{}, seed {seed}: no {what} of {}", home.place, tally.asked);
            }
        }
    }
    let shown = breaches.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(breaches.is_empty(), "{} breaches, such as\n{shown}", breaches.len());
}

/// Nobody is kept from calling who has done all that there is to do.
#[test]
fn whoever_has_everything_may_call() {
    for (home, law) in HOMES.iter().zip(&LAWS) {
        let facts = blameless(home);
        assert_eq!(may(law, &facts), Ok(()), "{}", home.place);
        let judgement = judged(&facts);
        assert!(
            judgement.is_yes(),
            "{}: {:?}",
            home.place,
            judgement.noes().collect::<Vec<_>>()
        );
    }
}

/// An oracle that finds nothing proves nothing: one thing is wrong each time, and it and the pack both say no.
#[test]
fn whoever_lacks_one_thing_may_not() {
    type Spoil = fn(&mut Facts);
    let hours = "U8, C2, E7, E8, E10, A1: hours";
    let (consent, rests) = ("U1, C1, E4: consent", "E7, E13: rest; caps");
    #[rustfmt::skip]
    let table: &[(&str, &str, Spoil)] = &[
        ("US-NY", "L3: on the own list", |facts| facts.is_barred = true),
        ("US-NY", consent, |facts| facts.consent = None),
        ("US-NY", consent, |facts| facts.consent.as_mut().unwrap().tier = ConsentTier::Express),
        ("US-NY", consent, |facts| facts.consent.as_mut().unwrap().seller = "Somebody Else Ltd".to_owned()),
        ("US-NY", consent, |facts| facts.consent.as_mut().unwrap().expires_at = Some(facts.at)),
        ("US-NY", "U13: reassigned", |facts| facts.reassigned = None),
        ("US-NY", "U7: ring", |facts| facts.ring_seconds = 14),
        ("US-NY", "U6, C2, E13: abandonment", |facts| facts.abandonment.as_mut().unwrap().month = (40_000, 1_201)),
        ("US-NY", "E1, S9: no text in the language", |facts| facts.language = "ja".to_owned()),
        ("US-NY", "U5, C1, E12, U17: identity", |facts| facts.identity.toll_free_number = None),
        ("US-NY", "U11, E5, E7, E9, A1: caller id", |facts| facts.caller.as_mut().unwrap().is_answered = false),
        // On the last Saturday before the clocks change, at 20:30.
        ("US-NY", hours, |facts| facts.at = moment("2026-11-01T00:30:00Z")),
        // At 9:30 in New York it is 8:30 in Pensacola, and S1 and section 6 want 9.
        ("US-FL", hours, |facts| facts.at = moment("2026-09-16T13:30:00Z")),
        ("US-TX", hours, |facts| facts.at = moment("2026-09-20T16:30:00Z")),
        ("US-ME", hours, |facts| facts.at = moment("2026-09-16T21:30:00Z")),
        ("US-ME", rests, |facts| facts.recent = vec![facts.at.plus_millis(-7 * 3_600_000)]),
        ("CA-ON", consent, |facts| facts.consent.as_mut().unwrap().tier = ConsentTier::ExistingContract),
        ("GB", consent, |facts| facts.consent.as_mut().unwrap().covers_automated_voice = false),
        ("GB", rests, |facts| facts.rests = vec![RestFact { cause: RestCause::Abandoned, since: facts.at.plus_millis(-71 * 3_600_000) }]),
        ("DE", hours, |facts| facts.at = moment("2026-09-19T12:30:00Z")),
        ("DE", rests, |facts| facts.recent = vec![facts.at.plus_millis(-7_200_000), facts.at.plus_millis(-3_600_000)]),
        ("FR", hours, |facts| facts.at = moment("2026-09-16T11:30:00Z")),
        ("FR", hours, |facts| facts.at = moment("2026-07-14T12:30:00Z")),
        ("FR", rests, |facts| facts.rests = vec![RestFact { cause: RestCause::Declined, since: facts.at.plus_millis(-59 * 86_400_000) }]),
        ("FR", "E6: energy renovation", |facts| facts.vertical = Some(Vertical::EnergyRenovation)),
        ("FR", "U11, E5, E7, E9, A1: caller id", |facts| facts.caller.as_mut().unwrap().number = "+33612345678".parse().unwrap()),
        ("ES", consent, |facts| facts.consent.as_mut().unwrap().given_at = facts.at.plus_millis(-740 * 86_400_000)),
        ("IT", "E10: the Italian register", |facts| facts.registers[0].fetched_at = facts.at.plus_millis(-16 * 86_400_000)),
        ("IT", "E10: the Italian register", |facts| facts.registers[0].is_listed = true),
        ("NL", consent, |facts| {
            let consent = facts.consent.as_mut().unwrap();
            (consent.tier, consent.contract_ref) = (ConsentTier::ExistingContract, Some("C-1042".to_owned()));
        }),
        ("AU", consent, |facts| {
            facts.consent = None;
            facts.registers[0].fetched_at = facts.at.plus_millis(-31 * 86_400_000);
        }),
        ("AU", hours, |facts| facts.at = moment("2026-12-25T03:30:00Z")),
    ];
    for (place, rule, spoil) in table {
        let (home, law) = HOMES.iter().zip(&LAWS).find(|(home, _)| home.place == *place).unwrap();
        let mut facts = blameless(home);
        spoil(&mut facts);
        assert_eq!(may(law, &facts), Err(*rule), "{place}");
        assert!(!judged(&facts).is_yes(), "{place}: the pack allows it: {rule}");
    }
    // X1: nobody has looked up what is allowed in Brazil.
    let mut facts = blameless(&HOMES[0]);
    facts.places = vec!["BR".parse().unwrap()];
    assert!(
        !judged(&facts).is_yes(),
        "a place that the pack does not know is closed"
    );
    // Customers in the Netherlands, the day before.
    let (home, law) = HOMES.iter().zip(&LAWS).find(|(home, _)| home.place == "NL").unwrap();
    let mut facts = blameless(home);
    facts.at = moment("2026-06-30T12:30:00Z");
    assert_eq!(may(law, &facts), Ok(()));
}

/// In France a contract is enough, for what fulfils it.
#[test]
fn whoever_has_a_contract_is_called_for_that_contract() {
    let (home, law) = HOMES.iter().zip(&LAWS).find(|(home, _)| home.place == "FR").unwrap();
    for (named, expected) in [
        (None, Ok(())),
        (Some("C-1042"), Ok(())),
        (Some("C-2077"), Err("U1, C1, E4: consent")),
    ] {
        let mut facts = blameless(home);
        let consent = facts.consent.as_mut().unwrap();
        (consent.tier, consent.contract_ref) = (ConsentTier::ExistingContract, Some("C-1042".to_owned()));
        facts.contract_ref = named.map(str::to_owned);
        assert_eq!(may(law, &facts), expected, "{named:?}");
        assert_eq!(judged(&facts).is_yes(), expected.is_ok(), "{named:?}");
    }
}

impl Tally {
    fn count(&mut self, channel: DncChannel, purpose: Purpose) {
        self.both += 1;
        match (channel, purpose) {
            (DncChannel::Phone, Purpose::Marketing) => self.of_marketing_calls += 1,
            (DncChannel::Phone, Purpose::Service) => self.of_service_calls += 1,
            (DncChannel::Phone, _) => {}
            (DncChannel::Sms | DncChannel::Email, _) => self.of_messages += 1,
        }
    }
}

/// FNV-1a: one place's year does not depend on the others.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
