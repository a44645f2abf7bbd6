use super::sample::Row;
use crate::law::{Facts, Judgement, Law, Scope, Verdict, judge, pack};
use entities::values::{Moment, Place};
use proptest::{prelude::*, sample::select};

const PLACES: &[&str] = &[
    "US-NY", "US-FL", "US-TX", "US-CA", "US-PA", "CA", "FR", "DE", "ES", "IT", "NL", "PL", "GB", "AU", "IN", "BR",
];

/// From June 2026 to May 2027, over all the days on which rules change, in steps of a few minutes.
fn moments() -> impl Strategy<Value = Moment> {
    (0..100_000i64).prop_map(|step| Moment::parse("2026-06-01T00:00:00Z").unwrap().plus_seconds(step * 311))
}

fn keys() -> impl Strategy<Value = Vec<&'static str>> {
    let one = |of: &'static [&'static str]| prop::option::of(select(of));
    (
        one(&[
            "purpose=service",
            "purpose=debt",
            "purpose=emergency",
            "purpose=charity_political",
        ]),
        one(&["channel=sms", "channel=email"]),
        one(&[
            "consent=none",
            "consent=express:1d",
            "consent=existing_contract:1d",
            "consent=express_written:800d",
        ]),
        one(&["recent=1h", "recent=1h,2h,3h", "recent=1h,2h,3h,100h,101h,102h,103h"]),
        one(&[
            "register=us_dnc:1d",
            "register=it_rpo:1d",
            "register=au_dncr:1d:listed",
            "register=uk_tps:40d",
        ]),
        one(&[
            "caller=none",
            "caller=+33612345678",
            "caller=+442079460000",
            "caller=+911401234567",
        ]),
        one(&["vertical=energy", "vertical=energy_renovation", "vertical=health"]),
        one(&[
            "lang=ja",
            "ring=14",
            "barred=yes",
            "month=30/100",
            "day=1/100",
            "without=registered_name",
        ]),
        one(&[
            "rest=declined:10d",
            "rest=abandoned:10h",
            "contract=C-1",
            "voice=no",
            "audience=business",
        ]),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i)| [a, b, c, d, e, f, g, h, i].into_iter().flatten().collect())
}

fn attempts() -> impl Strategy<Value = Facts> {
    let places = prop::collection::btree_set(select(PLACES), 1..3);
    (places, moments(), keys()).prop_map(|(places, at, keys)| {
        let places: Vec<&str> = places.into_iter().collect();
        let wall = at
            .datetime()
            .with_timezone(&Row::read(&format!("{} 2026-06-01T00:00", places.join(","))).zone());
        let row = format!(
            "{} {} {}",
            places.join(","),
            wall.format("%Y-%m-%dT12:00:00"),
            keys.join(" ")
        );
        let mut facts = Row::read(row.trim_end()).facts("");
        // Whatever was written of ages counts from noon: the moment itself is moved by less than a day.
        facts.at = at;
        facts
    })
}

/// Each rule of the one says the same in the other, or says no.
fn opens_nothing(before: &Judgement, after: &Judgement) -> Result<(), TestCaseError> {
    for asked in &before.asked {
        let verdict = after.of(&asked.rule);
        prop_assert!(verdict >= Some(asked.verdict), "{asked} became {verdict:?}");
    }
    prop_assert!(before.is_yes() || !after.is_yes());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // L2
    #[test]
    fn the_same_facts_have_the_same_judgement(facts in attempts()) {
        let judgement = judge(Law::untouched(), &facts);
        prop_assert_eq!(&judgement, &judge(Law::untouched(), &facts));
        let stored = serde_json::to_string(&(&facts, &judgement)).unwrap();
        let (read, kept): (Facts, Judgement) = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&kept, &judgement);
        prop_assert_eq!(&read, &facts);
        prop_assert_eq!(judge(&Law::new(pack(), None), &read), judgement);
    }

    #[test]
    fn another_place_opens_nothing(facts in attempts(), place in select(PLACES)) {
        let before = judge(Law::untouched(), &facts);
        let mut facts = facts;
        facts.places.push(place.parse::<Place>().unwrap());
        opens_nothing(&before, &judge(Law::untouched(), &facts))?;
    }

    #[test]
    fn what_waits_waits_for_later(facts in attempts()) {
        for asked in judge(Law::untouched(), &facts).asked {
            if let Verdict::Wait(Some(until)) = asked.verdict {
                prop_assert!(until > facts.at, "{asked}");
            }
        }
    }

    // L1
    #[test]
    fn no_consent_no_sale(facts in attempts()) {
        let mut facts = facts;
        facts.consent = None;
        facts.purpose = entities::law::Purpose::Marketing;
        let by_register = facts.places.iter().all(|place| place.as_str() == "AU");
        let by_mail = facts.channel == entities::dnc::DncChannel::Email
            && facts.places.iter().all(|place| place.country() == "US");
        prop_assert!(by_register || by_mail || !judge(Law::untouched(), &facts).is_yes());
    }

    // L3
    #[test]
    fn whoever_has_opted_out_is_not_reached_whatever_is_overridden(facts in attempts()) {
        let mut facts = facts;
        facts.is_barred = true;
        facts.overrides = pack().rules.iter().map(|rule| rule.id.clone()).collect();
        prop_assert!(!judge(Law::untouched(), &facts).is_yes());
    }

    // L7
    #[test]
    fn an_older_copy_of_a_register_opens_nothing(facts in attempts(), days in 0..60i64) {
        let before = judge(Law::untouched(), &facts);
        let mut facts = facts;
        for register in &mut facts.registers {
            register.fetched_at = register.fetched_at.plus_seconds(-days * 86_400);
        }
        let after = judge(Law::untouched(), &facts);
        for asked in before.noes() {
            prop_assert!(after.of(&asked.rule).is_some_and(Verdict::is_no), "{asked} with copies {days} days older");
        }
    }

    // L8
    #[test]
    fn between_two_switches_the_same_rules_are_in_force(facts in attempts(), later in 0..40i64) {
        let law = Law::untouched();
        let rules = |facts: &Facts| -> Vec<String> {
            law.rules_for(facts).into_iter().map(|rule| rule.id.clone()).collect()
        };
        let (from, until) = law.holds(&facts);
        prop_assert!(from <= facts.at && facts.at < until);
        let mut other = facts.clone();
        other.at = facts.at.plus_seconds(later * 86_400);
        prop_assert!(other.at >= until || rules(&other) == rules(&facts));
        // On both sides of the next one.
        if let Some(switch) = law.next_switch(&facts.places, &facts.zones, facts.at) {
            other.at = switch.plus_millis(-1);
            prop_assert_eq!(rules(&other), rules(&facts));
        }
    }

    /// The newest attempts, which the record keeps, say as much as all of them, also where the same facts are judged for another moment.
    #[test]
    fn no_cap_asks_for_attempts_that_are_not_kept(
        facts in attempts(),
        ages in prop::collection::vec(-120..31 * 24 * 60i64, 0..40),
        (most, hours) in (0..12u32, 1..720u32),
        later in -72..72i64,
    ) {
        let all = r#"["marketing", "service", "debt", "research", "charity_political", "emergency"]"#;
        let file = format!(
            "[[rule]]\nid = \"us.cap.week\"\nsays = {{ most = 5 }}\n\
             [[rule]]\nid = \"own.cap\"\ntitle = \"t\"\nplaces = {PLACES:?}\npurposes = {all}\nchannels = [\"phone\", \"sms\"]\n\
             says = {{ kind = \"cap\", most = {most}, hours = {hours} }}\nfrom = \"2026-12-01\"\n\
             source = \"house\"\nconfidence = \"high\"\nmend = \"m\"\n"
        );
        let own = Law::read(pack(), Some(("operator.toml", &file))).unwrap();
        let mut whole = facts;
        whole.recent = ages.iter().map(|minutes| whole.at.plus_seconds(-minutes * 60)).collect();
        whole.recent.sort();
        for law in [Law::untouched(), &own] {
            let kept = Facts {
                recent: law.counted(&Scope::from(&whole), &whole.recent),
                ..whole.clone()
            };
            prop_assert!(kept.recent.len() <= 11, "{:?}", kept.recent);
            for at in [whole.at, whole.at.plus_seconds(later * 3600)] {
                let judged = |facts: &Facts| judge(law, &Facts { at, ..facts.clone() });
                prop_assert_eq!(judged(&kept), judged(&whole));
            }
        }
    }

    // L9
    #[test]
    fn whatever_is_attempted_is_kept_for_five_years(facts in attempts()) {
        prop_assert!(Law::untouched().spoken(&facts).keep_years >= 5);
    }

    #[test]
    fn an_operators_file_opens_nothing(
        facts in attempts(),
        numbers in (0..5u32, 1..200u32, 0..24u32, 1..24u32, 0..40u32),
        place in select(PLACES),
    ) {
        let (most, hours, start, end, age) = numbers;
        let files = [
            format!("[[rule]]\nid = \"us.cap.day\"\nsays = {{ most = {most}, hours = {hours} }}\n"),
            format!("[[rule]]\nid = \"us.hours\"\nsays = {{ open = [\"daily {start:02}:00-{end:02}:00\"] }}\n"),
            format!("[[rule]]\nid = \"us.dnc\"\nsays = {{ max_age_days = {age} }}\n"),
            format!("[[rule]]\nid = \"us.abandonment\"\nsays = {{ brake_permille = {age} }}\n"),
            format!("[[rule]]\nid = \"us.ring\"\nsays = {{ least_seconds = {age} }}\n"),
            "[[rule]]\nid = \"us.consent.voice\"\nsays = { any_of = [\"opt_in_double\"] }\n".to_owned(),
            "[[rule]]\nid = \"us.email\"\nsays = { kind = \"forbidden\" }\n".to_owned(),
            "[[rule]]\nid = \"unknown.marketing\"\nplaces = [\"*\"]\n".to_owned(),
            format!(
                "[[rule]]\nid = \"own.rule\"\ntitle = \"t\"\nplaces = [\"{place}\"]\npurposes = [\"marketing\"]\nchannels = [\"phone\"]\n\
                 says = {{ kind = \"consent\", any_of = [\"express\"] }}\nsource = \"house\"\nconfidence = \"high\"\nmend = \"m\"\n"
            ),
        ];
        let before = judge(Law::untouched(), &facts);
        for file in files {
            // What is looser is refused; what is taken must not be.
            if let Ok(law) = Law::read(pack(), Some(("operator.toml", &file))) {
                opens_nothing(&before, &judge(&law, &facts))?;
            }
        }
    }
}
