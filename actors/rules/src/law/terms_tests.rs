use super::*;
use crate::{
    consent::{ConsentGiven, Reading, accept},
    law::{Verdict, by_the_later, pack, tests::facts},
};
use entities::{
    agent::ConsentMode,
    values::{Text, Times},
};
use serde_json::json;

/// A live sales call of Acme Inc., which has a number to call back.
fn terms() -> LegalTerms {
    LegalTerms {
        law: Arc::new(Law::new(pack(), None)),
        tenant_id: Uuid::nil().into(),
        legal: Legal::default(),
        channel: DncChannel::Phone,
        identity_version: 0,
        identity: IdentityFact {
            registered_name: Some("Acme Inc.".to_owned()),
            callback_number: Some("+12025550123".parse().unwrap()),
            ..IdentityFact::default()
        },
        zone: "America/New_York".parse().unwrap(),
        own: None,
        language: "en-US".to_owned(),
        is_cloned_voice: false,
        ring_seconds: 30,
        callers: Vec::new(),
        abandonment: None,
        is_enforced: true,
    }
}

fn call(terms: &LegalTerms, facts: &Facts, is_ours: bool) -> CallLegal {
    let duties = terms.duties(facts);
    terms.call(facts, duties.as_ref(), LegalPerson::default(), is_ours)
}

/// Source: AI Act, art. 50(4). Of any other voice it would not be true.
#[test]
fn a_voice_is_told_to_be_a_copy_only_if_it_is_one() {
    for place in ["US-NY", "DE", "BR"] {
        for (is_cloned, is_ours) in [(false, true), (true, true), (false, false), (true, false)] {
            let facts = Facts {
                is_cloned_voice: is_cloned,
                ..facts(&format!("{place} 2026-12-01T12:00"))
            };
            let call = call(&terms(), &facts, is_ours);
            assert!(call.asks_for(DisclosureKind::Ai), "{place}");
            assert_eq!(call.asks_for(DisclosureKind::OptOut), is_ours, "{place}");
            let tells = call.asks_for(DisclosureKind::ClonedVoice);
            assert_eq!(tells, is_cloned, "{place} {is_ours}");
        }
    }
}

/// Source: Cal. Penal Code 632 and the like: a transcript counts as a recording, whoever has called. Whether the call is recorded as
/// well, and says so by itself, is known to what speaks.
#[test]
fn who_is_transcribed_where_all_parties_must_agree_is_told_so() {
    for (places, is_told) in [
        ("US-CA", true),
        ("US-WA", true),
        ("US-NY,US-PA", true),
        ("US-NY", false),
        ("CA", false),
        ("GB", false),
        ("DE", false),
        ("BR", false),
    ] {
        for purpose in ["marketing", "service", "emergency"] {
            let facts = facts(&format!("{places} 2026-12-01T12:00 purpose={purpose}"));
            for is_ours in [true, false] {
                let call = call(&terms(), &facts, is_ours);
                let tells = call.asks_for(DisclosureKind::Recording);
                assert_eq!(tells, is_told, "{places} {purpose} {is_ours}");
            }
            let observed = LegalTerms {
                is_enforced: false,
                ..terms()
            };
            let call = call(&observed, &facts, true);
            assert!(!call.asks_for(DisclosureKind::Recording), "{places} {purpose}");
        }
    }
}

/// Source: Cal. AB 3030: at the end of an audio communication, too. A toll-free number may be nobody's but a machine's.
#[test]
fn who_is_called_about_health_is_told_where_people_answer() {
    let known = LegalTerms {
        identity: IdentityFact {
            toll_free_number: Some("+18005550199".parse().unwrap()),
            ..terms().identity
        },
        ..terms()
    };
    for (row, is_told) in [
        ("US-CA 2026-12-01T12:00 vertical=health", true),
        ("US-NY,US-CA 2026-12-01T12:00 vertical=health purpose=service", true),
        ("US-NY 2026-12-01T12:00 vertical=health", false),
        ("US-CA 2026-12-01T12:00", false),
    ] {
        for is_ours in [true, false] {
            let call = call(&known, &facts(row), is_ours);
            assert_eq!(call.asks_for(DisclosureKind::Human), is_told, "{row} {is_ours}");
            let staffed = is_told.then(|| "+12025550123".parse::<E164>().unwrap());
            assert_eq!(call.staffed, staffed, "{row} {is_ours}");
        }
    }
}

/// The key that is named is the one that counts.
#[test]
fn the_message_for_the_abandoned_names_the_agents_own_key() {
    let facts = facts("US-NY 2026-12-01T12:00");
    for (own, named) in [
        (None, "Press 9 to"),
        (Some("5"), "Press 5 to"),
        (Some("*"), "Press star to"),
    ] {
        let duties = terms().duties(&facts);
        let message = terms().safe_harbour(duties.as_ref(), None, own).unwrap();
        assert!(message.text.contains(named), "{}", message.text);
    }
    let observed = LegalTerms {
        is_enforced: false,
        ..terms()
    };
    assert!(observed.duties(&facts).is_none() && observed.safe_harbour(None, None, None).is_none());
}

/// What is known of the person comes before the workspace's own clock. Source of the last: CONTRACT §3, a contact's zone.
#[test]
fn all_clocks_of_the_person_count() {
    for (number, region, timezone, expected) in [
        ("+881612345678", None, None, "America/New_York"),
        ("+4930901820", None, None, "Europe/Berlin"),
        (
            "+12125550100",
            Some("US-CA"),
            None,
            "America/Los_Angeles America/New_York",
        ),
        ("+12125550100", None, Some("Asia/Tokyo"), "Asia/Tokyo"),
    ] {
        let number: E164 = number.parse().unwrap();
        let region: Option<Place> = region.map(|region| region.parse().unwrap());
        let whom = Whom {
            number: Some(&number),
            region: region.as_ref(),
            timezone: timezone.map(|zone| zone.parse().unwrap()),
            ..Whom::default()
        };
        let facts = terms().facts(whom, &ContactRecord::default(), None, Moment::from_millis(0));
        let names: Vec<&str> = facts.zones.iter().map(|zone| zone.name()).collect();
        assert_eq!(names.join(" "), expected, "{number} {region:?} {timezone:?}");
    }
}

/// A row of the record does not grow with all that was sent to an address before.
#[test]
fn facts_hold_no_more_attempts_than_a_cap_counts() {
    let now = Moment::parse("2026-12-01T17:00:00Z").unwrap();
    let hours_ago = |hours: i64| now.plus_seconds(-hours * 3600);
    let record = ContactRecord {
        recent: (1..=100).rev().map(hours_ago).collect(),
        ..ContactRecord::default()
    };
    for (number, channel, most) in [
        ("+12125550100", DncChannel::Phone, 7),
        ("+33123456789", DncChannel::Phone, 4),
        ("+12125550100", DncChannel::Email, 0),
    ] {
        let number: E164 = number.parse().unwrap();
        let whom = Whom {
            number: Some(&number),
            ..Whom::default()
        };
        let terms = LegalTerms { channel, ..terms() };
        let newest: Vec<Moment> = (1..=most).rev().map(hours_ago).collect();
        assert_eq!(
            terms.facts(whom, &record, None, now).recent,
            newest,
            "{number} {channel:?}"
        );
    }
}

/// Somebody in France has that contract with Acme Inc.
fn by_contract(id: u128, contract_ref: &str) -> consent::Model {
    let given: ConsentGiven = serde_json::from_value(json!({
        "phone_number": "+33123456789", "seller": "Acme Inc.", "channels": ["phone"], "purposes": ["marketing"],
        "tier": "existing_contract", "method": "contract", "contract_ref": contract_ref, "given_at": "2026-11-01T00:00:00Z",
    }))
    .unwrap();
    let reading = Reading {
        owner: (Uuid::nil().into(), Env::Live),
        country: "FR".parse().unwrap(),
        now: Times::at(Moment::parse("2026-11-30T12:00:00Z").unwrap()),
        by: None,
    };
    accept(given, &reading, ConsentId(Uuid::from_u128(id))).unwrap().row
}

/// Whoever has two contracts is called for the one that is named, and for no third; what is on record says for which.
#[test]
fn a_contract_that_is_named_is_the_one_that_counts() {
    let record = ContactRecord {
        legal: LegalRecord {
            consents: vec![by_contract(1, "C-1"), by_contract(2, "C-2")],
            ..LegalRecord::default()
        },
        ..ContactRecord::default()
    };
    let number: E164 = "+33123456789".parse().unwrap();
    let whom = Whom {
        number: Some(&number),
        ..Whom::default()
    };
    let at = Moment::parse("2026-12-01T12:00:00Z").unwrap();
    for (named, rests_on, verdict) in [
        (Some("C-1"), Some(1), Verdict::Yes),
        (Some("C-2"), Some(2), Verdict::Yes),
        (Some("C-3"), None, Verdict::Never),
        (None, Some(2), Verdict::Yes),
    ] {
        let terms = LegalTerms {
            legal: Legal {
                contract_ref: named.map(|named| Text::parse(named).unwrap()),
                ..Legal::default()
            },
            ..terms()
        };
        let judged = terms.judged(whom, &record, None, (at, 0));
        let consent = judged.consent.map(|(id, _)| id.0.as_u128());
        assert_eq!(consent, rests_on, "{named:?}");
        let optin = judged.judgement.asked.iter().find(|asked| &*asked.rule == "fr.optin");
        assert_eq!(optin.unwrap().verdict, verdict, "{named:?}");
        // What is on record comes out the same, and not if another contract had been named.
        let written = serde_json::to_value(&judged.facts).unwrap();
        assert_eq!(written.get("contract_ref").and_then(|named| named.as_str()), named);
        let mut facts: Facts = serde_json::from_value(written).unwrap();
        assert_eq!(terms.judge(&facts), judged.judgement, "{named:?}");
        facts.contract_ref = Some("C-3".to_owned());
        let optin = terms
            .judge(&facts)
            .asked
            .into_iter()
            .find(|asked| &*asked.rule == "fr.optin");
        assert_eq!(optin.unwrap().verdict, Verdict::Never, "{named:?}");
    }
}

/// The workspace's end of a call is recorded, too.
#[test]
fn a_recording_keeps_the_law_of_the_workspaces_country() {
    let facts = facts("US-NY 2026-12-01T12:00");
    for (own, expected) in [(None, ConsentMode::Notice), (Some("DE"), ConsentMode::Verbal)] {
        let terms = LegalTerms {
            own: own.map(|own| own.parse().unwrap()),
            ..terms()
        };
        let call = call(&terms, &facts, true);
        assert_eq!(call.recording, Some(expected), "{own:?}");
    }
}

/// Rules that want something of a call say yes before it: no verdict shows what an override has taken away.
#[test]
fn an_override_of_what_a_call_owes_is_stamped_wherever_the_rule_is_asked() {
    let noon = Moment::parse("2026-12-01T17:00:00Z").unwrap();
    let stamped = |place: &str, own: Option<&str>, overridden: &[&str]| {
        let made = |rule: &&str| {
            format!("[[override]]\nrule = \"{rule}\"\nreason = \"Counsel has agreed\"\napproved_by = \"J. Doe\"\n")
        };
        let file: String = overridden.iter().map(made).collect();
        let terms = LegalTerms {
            law: Arc::new(Law::read(pack(), Some(("law.toml", file.as_str()))).unwrap()),
            own: own.map(|own| own.parse().unwrap()),
            ..terms()
        };
        let region: Place = place.parse().unwrap();
        let whom = Whom {
            region: Some(&region),
            ..Whom::default()
        };
        let judged = terms.judged(whom, &ContactRecord::default(), None, (noon, 0));
        let duties = judged.judgement.of("everywhere.disclosure.ai");
        assert_eq!(duties, Some(Verdict::Yes), "as rows say that were written before");
        let stamps = terms.law.stamped(&judged).into_iter();
        stamps.map(|made| made.rule).collect::<Vec<String>>()
    };
    let said_and_recorded = ["everywhere.disclosure.ai", "us.recording.all_parties", "us.email"];
    assert_eq!(stamped("US-FL", None, &said_and_recorded), &said_and_recorded[..2]);
    assert_eq!(stamped("US-NY", None, &said_and_recorded), &said_and_recorded[..1]);
    // What else is left out of the duties.
    let others = ["us.abandonment", "us.ring", "us.attestation"];
    assert_eq!(stamped("US-NY", None, &others), others);
    // The workspace's own end of the call, of which no other rule is asked.
    assert_eq!(stamped("US-NY", Some("DE"), &["eu.recording"]), ["eu.recording"]);
    assert!(stamped("US-NY", None, &["eu.recording"]).is_empty());
    // Those that have said yes, and those that said no.
    assert!(stamped("US-NY", None, &["us.hours.default", "us.cap.day"]).is_empty());
    assert_eq!(stamped("US-NY", None, &["us.consent.voice"]), ["us.consent.voice"]);
}

/// Of somebody in Austin, who has agreed in writing at the one moment until the other.
fn in_writing(id: u128, given_at: &str, until: &str) -> consent::Model {
    let given: ConsentGiven = serde_json::from_value(json!({
        "phone_number": AUSTIN, "seller": "Acme Inc.", "channels": ["sms"], "purposes": ["marketing"], "tier": "express_written",
        "method": "web form", "request_copy": "Acme Inc. may text me.", "given_at": given_at, "expires_at": until,
    }))
    .unwrap();
    let reading = Reading {
        owner: (Uuid::nil().into(), Env::Live),
        country: "US".parse().unwrap(),
        now: Times::at(Moment::parse("2026-11-30T12:00:00Z").unwrap()),
        by: None,
    };
    accept(given, &reading, ConsentId(Uuid::from_u128(id))).unwrap().row
}

/// Somebody in Austin, who has agreed in writing until that moment, is to get a text that sells.
fn texting(until: &str) -> (LegalTerms, ContactRecord) {
    let record = ContactRecord {
        legal: LegalRecord {
            consents: vec![in_writing(1, "2026-11-30T12:00:00Z", until)],
            ..LegalRecord::default()
        },
        ..ContactRecord::default()
    };
    let shown = CallerFact {
        number: "+12025550124".parse().unwrap(),
        right_to_use: Some("operator".to_owned()),
        is_answered: true,
        registration: Some("C123".to_owned()),
    };
    let terms = LegalTerms {
        channel: DncChannel::Sms,
        ring_seconds: 0,
        callers: vec![shown],
        ..terms()
    };
    (terms, record)
}

const AUSTIN: &str = "+15125550100";

/// On that Tuesday, six hours ahead of Austin, where texts that sell leave from 15:00 to 3:00. Source: Tex. SB 140.
fn tuesday(text: &str) -> Moment {
    Moment::parse(&format!("2026-12-01T{text}:00Z")).unwrap()
}

#[test]
fn hours_are_open_when_they_are_by_both_clocks() {
    const MINUTE: i64 = 60_000;
    let (terms, record) = texting("2027-12-01T12:00:00Z");
    let number: E164 = AUSTIN.parse().unwrap();
    let whom = Whom {
        number: Some(&number),
        ..Whom::default()
    };
    let before_three = Moment::parse("2026-12-02T02:59:00Z").unwrap();
    let next_day = Moment::parse("2026-12-02T15:00:00Z").unwrap();
    // Our time, and how far the wall clock is behind it: until when it waits, by our time.
    for (now, behind_ms, expected) in [
        (tuesday("14:59"), 0, Some(tuesday("15:00"))),
        (tuesday("16:00"), 0, None),
        (tuesday("16:00"), 60 * MINUTE, None),
        (tuesday("16:00"), 61 * MINUTE, Some(tuesday("16:01"))),
        (tuesday("14:30"), 60 * MINUTE, Some(tuesday("16:00"))),
        // Ahead of it: by the wall clock they are over.
        (before_three, 0, None),
        (before_three, -2 * MINUTE, Some(next_day.plus_millis(-2 * MINUTE))),
    ] {
        let judged = terms.judged(whom, &record, None, (now, behind_ms));
        let verdict = terms.by_both_clocks(&judged, behind_ms).verdict_of(GateKind::Hours);
        let expected = expected.map_or(Verdict::Yes, |until| Verdict::Wait(Some(until)));
        assert_eq!(verdict, Some(expected), "{now}, {behind_ms} ms behind");
    }
}

/// What was allowed when its commit began may be allowed no more when that has ended.
#[test]
fn what_was_judged_a_while_ago_is_judged_again_before_it_leaves() {
    let (terms, record) = texting("2026-12-01T20:00:00Z");
    let number: E164 = AUSTIN.parse().unwrap();
    let whom = Whom {
        number: Some(&number),
        ..Whom::default()
    };
    let judged = terms.judged(whom, &record, None, (tuesday("19:00"), 0));
    assert!(judged.judgement.is_yes(), "{:?}", judged.judgement);
    let now = |ours: &str, wall: &str| Times {
        ours: tuesday(ours),
        wall: tuesday(wall),
        in_doubt: false,
    };
    for (ours, wall, expected) in [
        ("19:00", "19:00", true),
        ("19:59", "19:59", true),
        ("20:00", "20:00", false),
        // A consent that has ended by our time does not come back with the wall clock.
        ("20:00", "19:00", false),
        ("19:30", "14:59", false),
        ("19:30", "15:00", true),
        // By a wall clock that is ahead it ends sooner.
        ("19:57", "19:59", true),
        ("19:58", "20:00", false),
    ] {
        assert_eq!(terms.still_allow(&judged, now(ours, wall)), expected, "{ours}, {wall}");
    }
    let shut = Times::at(Moment::parse("2026-12-02T03:00:00Z").unwrap());
    assert!(!terms.still_allow(&judged, shut));
}

/// Each look-up may be paid for.
#[test]
fn a_register_is_asked_only_where_the_verdict_depends_on_it() {
    let law = Law::untouched();
    for (row, expected) in [
        (
            "GB 2026-12-01T12:00 purpose=service consent=none asked=uk_tps",
            vec!["uk_tps"],
        ),
        (
            "GB 2026-12-01T12:00 purpose=service consent=none asked=uk_tps register=uk_tps:1d",
            vec!["uk_tps"],
        ),
        (
            "GB 2026-12-01T12:00 purpose=service consent=none asked=uk_tps answer=uk_tps:29d",
            vec!["uk_tps"],
        ),
        (
            "GB 2026-12-01T12:00 purpose=service consent=none asked=uk_tps answer=uk_tps:1d",
            vec![],
        ),
        (
            "GB 2026-12-01T12:00 purpose=service consent=none asked=uk_tps answer=uk_tps:1d:listed",
            vec![],
        ),
        (
            "GB 2026-12-01T12:00 purpose=service consent=express:1d asked=uk_tps",
            vec![],
        ),
        ("GB 2026-12-01T12:00 purpose=service consent=none", vec![]),
        ("US-NY 2026-12-01T12:00 consent=none asked=uk_tps", vec![]),
        ("AU 2026-12-01T12:00 consent=none asked=au_dncr", vec!["au_dncr"]),
        ("AU 2026-12-01T12:00 consent=express:1d asked=au_dncr", vec![]),
        ("IT 2026-12-01T12:00 asked=it_rpo", vec!["it_rpo"]),
    ] {
        let facts = facts(row);
        let found: Vec<String> = law.questions(&facts).into_iter().collect();
        assert_eq!(found, expected, "{row}");
        let awaits = ["gb.tps", "au.dncr", "it.consent"]
            .iter()
            .any(|rule| law.awaits_answer(rule, &facts));
        assert!(awaits || expected.is_empty(), "{row}");
    }
    assert!(!law.awaits_answer("gb.tps", &facts("GB 2026-12-01T12:00 consent=none")));
    assert_eq!(law.register_max_age("uk_tps"), Some(28));
    assert_eq!(law.register_max_age("none"), None);
}

/// An answer that is too old by either clock is asked for again.
#[test]
fn answers_age_by_the_clock_that_shows_more() {
    let law = Law::untouched();
    let facts = facts("GB 2026-12-01T12:00 purpose=service consent=none asked=uk_tps answer=uk_tps:28d");
    for (behind_ms, expected) in [(0, false), (1, false), (3_600_000, false), (-1, true)] {
        let later = by_the_later(&facts, behind_ms);
        assert_eq!(law.awaits_answer("gb.tps", &later), expected, "{behind_ms}");
        assert_eq!(law.questions(&later).contains("uk_tps"), expected, "{behind_ms}");
    }
}

/// An attempt of these facts, whose rules hold as they are.
fn judged_of(terms: &LegalTerms, facts: Facts) -> Judged {
    Judged {
        judgement: terms.judge(&facts),
        consent: None,
        seen: None,
        rest: None,
        holds: terms.law.holds(&facts),
        identity_version: 0,
        own: None,
        facts,
    }
}

#[test]
fn what_ages_or_ends_does_so_by_the_clock_that_shows_more() {
    const MINUTE: i64 = 60_000;
    const TO_A_CONTRACT: &str = "purpose=service consent=existing_contract:10d contract=C-1";
    let terms = terms();
    // How far ahead the wall clock may be, and what the rules of that kind say one millisecond later.
    for (row, kind, most_ahead_ms, expected) in [
        (
            format!("GB 2026-12-01T12:00 {TO_A_CONTRACT} register=uk_tps:27d23h59m"),
            GateKind::Register,
            MINUTE,
            Verdict::Wait(None),
        ),
        (
            "ES 2026-12-01T12:00 consent=express_written:729d23h59m".to_owned(),
            GateKind::Consent,
            MINUTE,
            Verdict::Never,
        ),
        (
            "GB 2026-12-01T12:00 consent=express:10d expires=1m".to_owned(),
            GateKind::Consent,
            MINUTE - 1,
            Verdict::Never,
        ),
        (
            "US-NY 2026-12-01T12:00 consent=express_written:90d rnd=no:29d23h59m".to_owned(),
            GateKind::Reassigned,
            MINUTE,
            Verdict::Wait(None),
        ),
        // It is asked about from then on.
        (
            "US-NY 2026-12-01T12:00 consent=express_written:29d23h59m".to_owned(),
            GateKind::Reassigned,
            MINUTE,
            Verdict::Wait(None),
        ),
    ] {
        let judged = judged_of(&terms, facts(&row));
        for (behind_ms, verdict) in [
            (0, Verdict::Yes),
            (-most_ahead_ms, Verdict::Yes),
            (-most_ahead_ms - 1, expected),
            (5 * MINUTE, Verdict::Yes),
        ] {
            let found = terms.by_both_clocks(&judged, behind_ms).verdict_of(kind);
            assert_eq!(found, Some(verdict), "{row}, {behind_ms} ms behind");
        }
    }
}

/// Until 11 August 2026 something spoken was enough in France. Source: law 2025-594.
#[test]
fn what_lies_between_two_laws_waits_until_both_clocks_show_the_same() {
    const MINUTE: i64 = 60_000;
    let (terms, midnight) = (terms(), Moment::parse("2026-08-10T22:00:00Z").unwrap());
    // The time in Paris, and how far the wall clock is behind ours: until when it waits.
    for (time, behind_ms, expected) in [
        ("2026-08-10T23:58", 0, None),
        ("2026-08-10T23:58", -2 * MINUTE + 1, None),
        ("2026-08-10T23:58", -2 * MINUTE, Some(midnight)),
        ("2026-08-11T00:02", 2 * MINUTE, None),
        (
            "2026-08-11T00:02",
            2 * MINUTE + 1,
            Some(midnight.plus_millis(2 * MINUTE + 1)),
        ),
    ] {
        let judged = judged_of(&terms, facts(&format!("FR {time}")));
        let verdict = terms.by_both_clocks(&judged, behind_ms).verdict_of(GateKind::Purpose);
        let waits = verdict.filter(|verdict| verdict.is_no());
        let expected = expected.map(|until| Verdict::Wait(Some(until)));
        assert_eq!(waits, expected, "{time}, {behind_ms} ms behind");
    }
}

/// The newer one ends between the two clocks.
#[test]
fn of_two_consents_the_one_that_stands_by_both_clocks_is_taken() {
    let (terms, mut record) = texting("2026-12-01T20:00:00Z");
    let older = in_writing(2, "2026-11-29T12:00:00Z", "2027-11-01T12:00:00Z");
    record.legal.consents.push(older);
    let number: E164 = AUSTIN.parse().unwrap();
    let whom = Whom {
        number: Some(&number),
        ..Whom::default()
    };
    for (behind_ms, rests_on) in [(0, 1), (60_000, 1), (-59_999, 1), (-60_000, 2)] {
        let judged = terms.judged(whom, &record, None, (tuesday("19:59"), behind_ms));
        let consent = judged.consent.map(|(id, _)| id.0.as_u128());
        assert_eq!(consent, Some(rests_on), "{behind_ms} ms behind");
        let both = terms.by_both_clocks(&judged, behind_ms);
        assert!(both.is_yes(), "{behind_ms} ms behind: {both:?}");
    }
}

/// Of who writes it, too, where that is put under it.
#[test]
fn a_text_is_counted_as_it_leaves() {
    use entities::sms_message::Encoding::{Gsm7, Ucs2};
    let (terms, _) = texting("2027-12-01T12:00:00Z");
    let observed = LegalTerms {
        is_enforced: false,
        ..terms.clone()
    };
    let body = "x".repeat(160);
    // A line feed, and 37 characters of name and address, or the 9 of the name.
    for (terms, place, expected) in [
        (&terms, "CA", (2, Gsm7, 38)),
        (&terms, "AU", (2, Gsm7, 10)),
        (&terms, "US-NY", (1, Gsm7, 0)),
        (&observed, "CA", (1, Gsm7, 0)),
    ] {
        let facts = facts(&format!("{place} 2026-12-01T12:00 channel=sms"));
        let text = terms.text(&facts, body.clone()).unwrap();
        assert_eq!((text.segments, text.encoding, text.added), expected, "{place}");
        assert_eq!(text.body.chars().count(), 160 + text.added, "{place}");
    }
    // A name in other letters makes others of the whole text.
    let mut named = facts("AU 2026-12-01T12:00 channel=sms");
    named.identity.registered_name = Some("Żółw".to_owned());
    let text = terms.text(&named, "x".repeat(70)).unwrap();
    assert_eq!((text.segments, text.encoding, text.added), (2, Ucs2, 5));
}
