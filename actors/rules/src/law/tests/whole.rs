//! The pack as a whole: the linter, and what has no single rule.
use super::sample::Row;
use crate::law::{
    Duties, GateKind, Law, LawError, Pack, Scope, Texts, UNDECIDED, Verdict, check, judge, lint, of_version, pack,
    places,
};
use entities::{
    dnc::DncChannel,
    law::{Audience, Purpose},
    values::{Country, Moment, Place},
};
use std::collections::BTreeSet;

const PURPOSES: [Purpose; 6] = [
    Purpose::Marketing,
    Purpose::Service,
    Purpose::Debt,
    Purpose::Research,
    Purpose::CharityPolitical,
    Purpose::Emergency,
];

#[test]
fn the_pack_parses_and_has_no_flaw() {
    assert_eq!(check(), Ok(()));
    let pack = pack();
    assert!(pack.rules.len() > 150);
    assert_eq!(of_version(&pack.version).map(|pack| &pack.version), Some(&pack.version));
    assert_eq!(of_version("1999-01-01"), None);
    let ids: BTreeSet<&str> = pack.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids.len(), pack.rules.len());
    for rule in &pack.rules {
        assert_eq!(lint::of_rule(rule, pack), None, "{}", rule.id);
    }
    let groups = pack.groups.values().flatten();
    for place in groups {
        assert!(places::is_known(place), "{place}");
    }
}

/// No country, state or province is left in which nothing says whether something is allowed.
#[test]
fn every_place_is_opened_or_closed_for_every_purpose() {
    let law = Law::untouched();
    let countries = Country::all().into_iter().map(Place::from);
    let parts = pack().rules.iter().flat_map(|rule| rule.places.places.clone());
    let all: BTreeSet<Place> = countries.chain(parts).collect();
    let mut facts = Row::read("FR 2026-12-01T12:00").facts("");
    for place in all {
        facts.places = vec![place.clone()];
        for channel in [DncChannel::Phone, DncChannel::Sms, DncChannel::Email] {
            for audience in [Audience::Consumer, Audience::Business] {
                for purpose in PURPOSES {
                    (facts.channel, facts.audience, facts.purpose) = (channel, audience, purpose);
                    let found = judge(law, &facts).of(UNDECIDED);
                    assert_eq!(found, None, "{place}: {channel:?}, {audience:?}, {purpose:?}");
                }
            }
        }
    }
}

/// Where all decisions are missing it is closed, as with a pack that does not parse.
#[test]
fn what_nothing_opens_is_closed() {
    let nothing: &'static Pack = Box::leak(Box::new(Pack::default()));
    let judgement = judge(&Law::new(nothing, None), &Row::read("FR 2026-12-01T12:00").facts(""));
    let (asked, kind) = judgement.first_no().unwrap();
    assert_eq!(
        (&*asked.rule, asked.verdict, kind),
        (UNDECIDED, Verdict::Never, GateKind::Purpose)
    );
    // A day before any rule of it for calls that sell was known.
    let early = judge(Law::untouched(), &Row::read("US-NY 2024-02-07T12:00").facts(""));
    assert_eq!(early.of(UNDECIDED), Some(Verdict::Never));
}

#[test]
fn a_lawful_call_passes_everywhere_it_can() {
    for row in [
        "US-NY 2026-12-01T12:00",
        "US-TX 2026-12-01T12:00",
        "CA 2026-12-01T12:00",
        "DE 2026-12-01T12:00",
        "FR 2026-12-01T12:00",
        "ES 2026-12-01T12:00 caller=+34912345678",
        "IT 2026-12-01T12:00 register=it_rpo:1d",
        "NL 2026-12-01T12:00",
        "GB 2026-12-01T12:00 caller=+442079460000",
        "AU 2026-12-01T12:00",
        "IN 2026-12-01T12:00 caller=+911401234567 register=in_dlt:1d:listed",
        "BR 2026-12-01T12:00 purpose=service",
        "US-NY 2026-12-01T23:00 channel=email consent=none",
    ] {
        let judgement = judge(Law::untouched(), &Row::read(row).facts(""));
        let noes: Vec<String> = judgement.noes().map(ToString::to_string).collect();
        assert!(noes.is_empty(), "{row}: {noes:?}");
    }
}

/// An address lies nowhere. What one country leaves closed must not close all of them; the strictest consent of any is still needed.
#[test]
fn an_email_to_nowhere_needs_what_the_strictest_place_needs() {
    for (row, expected) in [
        ("- 2026-12-01T12:00 channel=email", None),
        (
            "- 2026-12-01T12:00 channel=email consent=express:1d",
            Some("eu.consent.messages"),
        ),
        (
            "- 2026-12-01T12:00 channel=email consent=none",
            Some("ca.consent.messages"),
        ),
        (
            "- 2026-12-01T12:00 channel=email barred=yes",
            Some("everywhere.own_list"),
        ),
        (
            "- 2026-12-01T12:00 channel=email without=postal_address",
            Some("us.email.address"),
        ),
        ("- 2026-12-01T12:00 channel=email purpose=service consent=none", None),
        // Where it was said to be in that country, it is closed.
        ("IN 2026-12-01T12:00 channel=email", Some("in.email")),
        ("- 2026-12-01T12:00 channel=sms", Some("unknown.marketing")),
    ] {
        let judgement = judge(Law::untouched(), &Row::read(row).facts(""));
        let first = judgement.first_no().map(|(asked, _)| &*asked.rule);
        assert_eq!(first, expected, "{row}");
    }
}

/// The opt-in of France begins without a restart, and somebody who asks ahead is told when.
#[test]
fn rules_switch_at_midnight_of_the_person() {
    let law = Law::untouched();
    let facts = |at: &str| Row::read(&format!("FR {at} consent=express:1d")).facts("");
    let midnight = Moment::parse("2026-08-10T22:00:00Z").unwrap();
    let before = facts("2026-08-10T15:00");
    assert!(judge(law, &before).is_yes());
    assert_eq!(
        law.next_switch(&before.places, &before.zones, before.at),
        Some(midnight)
    );
    let (from, until) = law.holds(&before);
    assert!(from < before.at && until == midnight);
    let after = facts("2026-08-11T15:00");
    let judgement = judge(law, &after);
    let (asked, kind) = judgement.first_no().unwrap();
    assert_eq!((&*asked.rule, kind), ("fr.optin", GateKind::Consent));
    assert_eq!(law.holds(&after).0, midnight);
}

/// Of a phone that may be in any of several zones a rule holds as soon as one of them has the day, and until all have it no more.
#[test]
fn days_are_those_of_all_zones() {
    let zones = "zone=America/New_York,America/Los_Angeles";
    let asked = |at: &str, rule: &str| {
        let facts = Row::read(&format!("US-CO {at} {zones}")).facts("");
        judge(Law::untouched(), &facts).of(rule)
    };
    assert_eq!(asked("2026-12-31T23:59:59", "us-co.disclosure"), None);
    // 21:00 in Los Angeles, still the old year.
    assert!(asked("2027-01-01T00:00", "us-co.disclosure").is_some());
    let dutch = |at: &str| {
        let facts = Row::read(&format!("NL {at} zone=Europe/Amsterdam,America/Curacao")).facts("");
        judge(Law::untouched(), &facts).of("nl.consent.customers")
    };
    // 18:00 in Curaçao, still June.
    assert!(dutch("2026-07-01T00:00").is_some());
    assert!(dutch("2026-07-01T05:59:59").is_some());
    assert_eq!(dutch("2026-07-01T06:00"), None);
}

#[test]
fn windows_are_those_of_all_places_and_open_outside_their_days() {
    let law = Law::untouched();
    let place = |name: &str| name.parse::<Place>().unwrap();
    let kept = |places: &[&str], purpose, channel| {
        let places: Vec<Place> = places.iter().copied().map(place).collect();
        law.windows(&places, purpose, Audience::Consumer, channel)
    };
    let daily = |from: u16, until: u16| {
        let days = entities::values::Day::all().into_iter();
        crate::hours::Calendar::new(days.map(|day| (day.into(), from * 60, until * 60)), [])
    };
    // All rules of the same days are one calendar.
    let (sales, calls) = (Purpose::Marketing, DncChannel::Phone);
    assert_eq!(*kept(&["US-FL"], Purpose::Emergency, calls)[0], daily(8, 21));
    assert_eq!(kept(&["US-FL"], sales, calls).len(), 1);
    assert_eq!(
        kept(&["US-KY", "US-FL"], sales, calls),
        kept(&["US-FL", "US-KY"], sales, calls)
    );
    assert_ne!(kept(&["US-KY", "US-FL"], sales, calls), kept(&["US-FL"], sales, calls));
    assert_eq!(kept(&["US-PA"], sales, calls).len(), 2, "one of them from a day on");
    assert!(kept(&["US-FL", "US-TX"], sales, DncChannel::Email).is_empty());
    let opens = |at: &str| {
        let calendars = law.windows(
            &[place("US-PA")],
            Purpose::Marketing,
            Audience::Consumer,
            DncChannel::Phone,
        );
        let parts = calendars
            .into_iter()
            .map(|calendar| (calendar, chrono_tz::Tz::America__New_York));
        crate::hours::Hours::new(parts.collect())
            .next_opening(Moment::parse(at).unwrap(), 0)
            .unwrap()
    };
    // Sundays are closed from 18 October 2026, which is one.
    assert_eq!(opens("2026-10-11T17:00:00Z").to_string(), "2026-10-11T17:00:00.000Z");
    assert_eq!(opens("2026-10-18T17:00:00Z").to_string(), "2026-10-19T13:00:00.000Z");
}

#[test]
fn what_must_be_looked_up_is_named() {
    let law = Law::untouched();
    let names = |row: &str| law.registers(&Row::read(row).facts(""));
    assert_eq!(names("US-NY 2026-12-01T12:00"), BTreeSet::from(["us_dnc".to_owned()]));
    assert_eq!(names("AU 2026-12-01T12:00"), BTreeSet::from(["au_dncr".to_owned()]));
    assert_eq!(names("IT 2026-12-01T12:00"), BTreeSet::from(["it_rpo".to_owned()]));
    assert_eq!(names("BR 2026-12-01T12:00 purpose=service"), BTreeSet::new());
    let age = |law: &Law, row: &str| law.reassigned_max_age(&Row::read(row).facts(""));
    let of_long_ago = "US-NY 2026-12-01T12:00 consent=express_written:31d";
    assert_eq!(age(law, of_long_ago), Some(30));
    assert_eq!(age(law, "US-NY 2026-12-01T12:00"), None);
    assert_eq!(age(law, "DE 2026-12-01T12:00 consent=express_written:31d"), None);
    // The operator's own rule stands beside that of the pack: the stricter one counts.
    let file = "[[rule]]\nid = \"us.reassigned\"\nsays = { max_age_days = 7 }\n";
    let own = Law::read(pack(), Some(("operator.toml", file))).unwrap();
    assert_eq!(age(&own, of_long_ago), Some(7));
}

#[test]
fn duties_are_the_strictest_of_all_rules() {
    let law = Law::untouched();
    let duties = law.spoken(&Row::read("US-FL,US-TX 2026-12-01T12:00").facts(""));
    assert_eq!(duties.recording, entities::agent::ConsentMode::Verbal);
    assert_eq!(duties.disclosed_within_ms, Some(2000));
    assert_eq!(
        (duties.first_sound_ms, duties.ring_least_seconds, duties.keep_years),
        (Some(2000), 15, 5)
    );
    assert!(duties.opt_out_ends_everything && duties.hang_up_ms == Some(10_000));
    let british = law.spoken(&Row::read("GB 2026-12-01T12:00").facts(""));
    assert_eq!(british.abandoned_rest_hours, Some(72));
    assert_eq!(british.abandonment.len(), 1);
    let french = law.spoken(&Row::read("FR 2026-12-01T12:00").facts(""));
    assert_eq!(french.declined_rest_hours, Some(1440));
}

/// Both ends of a call are recorded: where whoever calls is counts, for recordings alone.
#[test]
fn a_recording_is_made_at_both_ends() {
    use entities::agent::ConsentMode;
    let law = Law::untouched();
    let place = |name: &str| name.parse::<Place>().unwrap();
    for (person, own, expected) in [
        ("US-NY", None, ConsentMode::Notice),
        ("US-NY", Some("US"), ConsentMode::Notice),
        ("US-NY", Some("US-CA"), ConsentMode::Verbal),
        ("US-NY", Some("DE"), ConsentMode::Verbal),
        ("US-CA", Some("US-NY"), ConsentMode::Verbal),
    ] {
        let facts = Row::read(&format!("{person} 2026-12-01T12:00")).facts("");
        let own = own.map(place);
        let found = law.spoken(Scope {
            own: own.as_ref(),
            ..Scope::from(&facts)
        });
        assert_eq!(found.recording, expected, "{person} {own:?}");
        let alone = law.spoken(&facts);
        assert_eq!(
            Duties {
                recording: alone.recording,
                ..found
            },
            alone
        );
    }
}

#[test]
fn a_bad_file_is_told_with_its_rule_and_field() {
    let read = |rules: &'static str| {
        let texts = Texts {
            pack: "version = \"1\"\nlanguages = [\"en\"]\n[groups]\nEU = [\"FR\"]\n",
            holidays: "calendar = []\n",
            rules: &[("x.toml", "")],
        };
        let files: &'static [(&str, &str)] = Box::leak(Box::new([("x.toml", rules)]));
        Pack::read(Texts { rules: files, ..texts })
    };
    let told = |rules: &'static str| {
        let LawError { rule, field, why, .. } = read(rules).unwrap_err();
        (rule.unwrap_or_default(), field.unwrap_or_default(), why)
    };
    const GOOD: &str = "[[rule]]\nid = \"a.b\"\ntitle = \"t\"\nplaces = [\"EU\"]\npurposes = [\"marketing\"]\nchannels = [\"phone\"]\nsays = { kind = \"cap\", most = 1, hours = 24 }\nsource = \"s\"\nconfidence = \"high\"\nmend = \"m\"\n";
    assert!(read(GOOD).is_ok());
    for (from, to, field, part) in [
        ("\"EU\"", "\"XX\"", "places", "XX"),
        ("\"EU\"", "\"Europe\"", "places", "Europe"),
        ("most = 1", "most = -1", "says", ""),
        ("most = 1", "most = 1, least = 2", "says", "least"),
        ("\"cap\"", "\"cup\"", "says.kind", "cup"),
        ("hours = 24", "hours = 0", "says", "hours"),
        ("source = \"s\"", "source = \" \"", "source", ""),
        ("mend = \"m\"\n", "", "", "mend"),
        ("\"marketing\"", "\"selling\"", "purposes[0]", "selling"),
        ("title", "name", "name", "name"),
        ("id = \"a.b\"", "id = \"A b\"", "id", "lower-case"),
        (
            "confidence",
            "until = \"2026-01-01\"\nfrom = \"2026-01-01\"\nconfidence",
            "until",
            "later",
        ),
        ("confidence", "until = \"2026-13-01\"\nconfidence", "until", ""),
    ] {
        let rules: &'static str = Box::leak(GOOD.replacen(from, to, 1).into_boxed_str());
        let (rule, found, why) = told(rules);
        assert!(found == field && why.contains(part), "{to}: {rule}, {found}: {why}");
        assert!(rule == "a.b" || to.contains("A b"), "{to}: {rule}");
    }
    let twice: &'static str = Box::leak(format!("{GOOD}{GOOD}").into_boxed_str());
    assert_eq!(told(twice).1, "id");
    assert!(read("[[rules]]\n").is_err() && read("rule = 1\n").is_err() && read("[[rule]\n").is_err());
}
