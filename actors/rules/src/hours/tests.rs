//! When it is open: days, windows, floors and groups of zones.
use super::*;

fn at(text: &str) -> Moment {
    Moment::parse(text).unwrap()
}

#[test]
fn days_and_hours_begin_where_the_wall_clock_says_so() {
    let berlin = Tz::Europe__Berlin;
    assert_eq!(
        day_of(berlin, at("2027-03-28T10:00:00Z")),
        (at("2027-03-27T23:00:00Z"), at("2027-03-28T22:00:00Z"))
    );
    let india = Tz::Asia__Kolkata;
    assert_eq!(
        hour_of(india, at("2027-03-28T10:29:59.999Z")),
        at("2027-03-28T09:30:00Z")
    );
    assert_eq!(hour_of(india, at("2027-03-28T10:30:00Z")), at("2027-03-28T10:30:00Z"));
    // Midnight did not exist.
    let cairo = Tz::Africa__Cairo;
    assert_eq!(day_of(cairo, at("2024-04-26T10:00:00Z")).0, at("2024-04-25T22:00:00Z"));
}

fn group_of(number: &str, timezone: Option<Zone>, region: Option<&str>) -> String {
    let number: Option<E164> = (!number.is_empty()).then(|| number.parse().unwrap());
    let region: Option<Place> = region.map(|region| region.parse().unwrap());
    group(Law::untouched(), number.as_ref(), timezone, region.as_ref())
}

#[test]
fn a_group_is_the_zones_that_count_and_the_places_whose_laws_hold() {
    for (number, timezone, region, expected) in [
        ("+4930901820", None, None, "Europe/Berlin@DE"),
        // Source: CONTRACT §3, a contact's zone.
        ("+4930901820", Some(Zone::NEW_YORK), None, "America/New_York@DE"),
        (
            "+12125550100",
            None,
            Some("US-CA"),
            "America/Los_Angeles+America/New_York@US+US-CA",
        ),
        // Parts that no rule names are their country.
        ("+4930901820", None, Some("DE-BY"), "Europe/Berlin@DE"),
        ("+13075550100", None, None, "America/Denver@US"),
        ("+13055550100", None, None, "America/New_York@US-FL"),
        ("+15002345670", None, None, "?1@"),
        ("+15002345670", None, Some("FR"), "Europe/Paris@FR"),
        ("+881612345678", None, None, "?881@"),
        ("", None, None, "@"),
        ("", None, Some("FR"), "Europe/Paris@FR"),
        ("", Some(Zone::NEW_YORK), None, "America/New_York@"),
    ] {
        assert_eq!(
            group_of(number, timezone, region),
            expected,
            "{number} {timezone:?} {region:?}"
        );
    }
    let zones = |number: &str| zones_part(&group_of(number, None, None)).split('+').count();
    assert_eq!(zones("+18002345678"), 42, "it may ring anywhere in its country");
    assert_eq!((zones("+79161234567"), zones("+61412345678")), (16, 8), "mobiles");
    let everybody = (0..1_000).map(|n| group_of("+4930901820", None, Some(&format!("DE-{n:03}"))));
    assert_eq!(everybody.collect::<std::collections::BTreeSet<_>>().len(), 1);
}

/// A rule of the operator's for a state that has none in the pack.
const GEORGIA: &str = r#"
[[rule]]
id = "house.georgia"
title = "Georgia from 10 to 17"
places = ["US-GA"]
purposes = ["marketing"]
channels = ["phone"]
says = { kind = "windows", open = ["daily 10:00-17:00"] }
source = "house"
confidence = "high"
mend = "Wait."
"#;

/// Rows of an earlier version have zones alone; those of before a rule lack its place; those of a rule that is gone have one too many.
#[test]
fn a_group_that_is_not_the_contacts_own_is_made_anew() {
    let (pack, georgia) = (
        Law::untouched(),
        Law::read(law::pack(), Some(("law.toml", GEORGIA))).unwrap(),
    );
    #[rustfmt::skip]
    let table = [
        (pack, "+4930901820", None, "Europe/Berlin", Some("Europe/Berlin@DE")),
        (pack, "+4930901820", None, "Europe/Berlin@DE", None),
        (pack, "+4930901820", None, UNCALLABLE, None),
        (pack, "+15002345670", None, "?1@", None),
        (pack, "+15002345670", Some("US-GA"), "America/New_York@US", None),
        (pack, "+15002345670", Some("US-GA"), "America/New_York@US-GA", Some("America/New_York@US")),
        (&georgia, "+15002345670", Some("US-GA"), "America/New_York@US", Some("America/New_York@US-GA")),
        (&georgia, "+15002345670", Some("US-GA"), "America/New_York@US-GA", None),
        (&georgia, "+15002345670", Some("US-FL"), "America/New_York@US-FL", None),
    ];
    for (law, number, region, zone, expected) in table {
        let contact = Contact {
            phone_number: number.into(),
            region: region.map(|region| region.parse().unwrap()),
            timezone: region.map(|_| Zone::NEW_YORK),
            ..crate::dispatch::samples::contact(0, 1, zone)
        };
        assert_eq!(
            regrouped(law, &contact).as_deref(),
            expected,
            "{number} {region:?} {zone}"
        );
    }
}

/// France closes from 13 to 14. A group of an earlier version does not: its contacts are asked one by one.
#[test]
fn the_hours_of_a_group_are_those_of_its_places() {
    let law = LawHours {
        law: Arc::new(Law::new(law::pack(), None)),
        purpose: Purpose::Marketing,
        audience: Audience::Consumer,
        channel: DncChannel::Phone,
    };
    let rules = rules(serde_json::json!({}), Env::Live).under(Some(law));
    for (group, moment, expected) in [
        ("Europe/Paris@FR", "2026-12-01T10:30:00Z", true),
        ("Europe/Paris@FR", "2026-12-01T12:30:00Z", false),
        ("Europe/Paris", "2026-12-01T12:30:00Z", true),
        ("Europe/Paris", "2026-12-01T07:30:00Z", false),
        // 9 to 20 in New York, which is 6 in Los Angeles.
        (
            "America/Los_Angeles+America/New_York@US+US-CA",
            "2026-12-01T14:30:00Z",
            false,
        ),
        (
            "America/Los_Angeles+America/New_York@US+US-CA",
            "2026-12-01T17:30:00Z",
            true,
        ),
    ] {
        assert_eq!(is_open(&rules, group, moment), expected, "{group} {moment}");
    }
    let french = "+33123456789".parse().unwrap();
    assert_eq!(rules.of_person(&french, None, None), rules.of("Europe/Paris@FR"));
}

#[test]
fn calendars_of_the_same_days_are_one() {
    let day = |text: &str| text.parse::<NaiveDate>().unwrap();
    let (morning, noon) = (daily(8 * 60, 13 * 60), daily(12 * 60, 20 * 60));
    let barred = Arc::new(Calendar::new([], [day("2027-03-02")]));
    let later = Arc::new(Calendar::always().within(Some(day("2027-03-02")), None));
    assert_eq!(common([morning.clone(), noon.clone()]), [daily(12 * 60, 13 * 60)]);
    assert_eq!(common([morning.clone(), later.clone(), noon.clone()]).len(), 2);
    assert_eq!(
        common([morning.clone(), daily(13 * 60, 20 * 60)]),
        [Arc::new(Calendar::new([], []))]
    );
    assert_eq!(common([barred.clone(), barred.clone()]), [barred]);
    let together = |calendars: Vec<Arc<Calendar>>| {
        let parts = calendars.into_iter().map(|calendar| (calendar, Tz::Europe__Berlin));
        Hours::new(parts.collect())
    };
    let all = vec![morning, noon, later];
    let (one_by_one, as_one) = (together(all.clone()), together(common(all)));
    for hour in 0..24 * 14 {
        let moment = at("2027-03-21T00:00:00Z").plus_seconds(hour * 3600);
        assert_eq!(one_by_one.open_window(moment), as_one.open_window(moment), "{moment}");
    }
}

#[test]
fn a_mobile_phone_rings_in_its_own_country_of_those_that_share_a_code() {
    for (number, expected) in [
        ("+18762101234", "America/Jamaica@JM"),
        ("+18682911234", "America/Port_of_Spain@TT"),
        ("+12462501234", "America/Barbados@BB"),
        ("+14413701234", "Atlantic/Bermuda@BM"),
        ("+12423591234", "America/Nassau@BS"),
        ("+77710009998", "Asia/Almaty+Asia/Aqtobe@KZ"),
    ] {
        assert!(number.parse::<E164>().unwrap().land_if_mobile().is_some(), "{number}");
        assert_eq!(group_of(number, None, None), expected, "{number}");
    }
}

fn rules(schedule: serde_json::Value, env: Env) -> Rules {
    Rules::new(&serde_json::from_value(schedule).unwrap(), env, Zone::NEW_YORK)
}
fn is_open(rules: &Rules, group: &str, moment: &str) -> bool {
    match rules.of(group) {
        CallingHours::Hours(hours) => hours.is_open(at(moment), 30_000),
        CallingHours::Uncallable => false,
    }
}

#[test]
fn live_keeps_the_floor_whatever_a_campaign_says() {
    let open = serde_json::json!({ "windows": [{ "start": "00:00", "end": "24:00" }] });
    let (live, test) = (rules(open.clone(), Env::Live), rules(open, Env::Test));
    for (moment, expected) in [
        ("2027-03-02T12:59:59Z", false),
        ("2027-03-02T13:00:00Z", true),
        ("2027-03-03T01:59:30Z", true),
        ("2027-03-03T01:59:31Z", false),
    ] {
        assert_eq!(is_open(&live, "America/New_York", moment), expected, "{moment}");
        assert!(is_open(&test, "America/New_York", moment));
    }
    let unsaid = rules(serde_json::json!({}), Env::Live);
    assert!(!is_open(&unsaid, "America/New_York", "2027-03-02T13:59:59Z"));
    assert!(is_open(&unsaid, "America/New_York", "2027-03-02T14:00:00Z"));
}

/// The floor is kept where the person is, even when the windows are wall time somewhere else.
#[test]
fn a_fixed_zone_moves_the_windows_and_not_the_floor() {
    let fixed = serde_json::json!({ "timezone_mode": "fixed", "timezone": "Europe/Berlin", "windows": [{ "start": "08:00", "end": "20:00" }] });
    let live = rules(fixed.clone(), Env::Live);
    assert!(
        !is_open(&live, "America/New_York", "2027-03-02T09:00:00Z"),
        "04:00 in New York"
    );
    assert!(is_open(&live, "America/New_York", "2027-03-02T14:00:00Z"));
    assert!(is_open(
        &rules(fixed, Env::Test),
        "America/New_York",
        "2027-03-02T09:00:00Z"
    ));
}

#[test]
fn an_unknown_zone_is_what_the_campaign_says() {
    let windows = |on_unknown: &str| {
        rules(
            serde_json::json!({ "windows": [{ "start": "09:00", "end": "20:00" }], "timezone": "Europe/Berlin", "on_unknown_timezone": on_unknown }),
            Env::Test,
        )
    };
    assert!(is_open(&windows("fallback"), "?1", "2027-03-02T09:00:00Z"));
    assert!(
        !is_open(&windows("strictest"), "?1", "2027-03-02T09:00:00Z"),
        "night in America"
    );
    assert_eq!(windows("strictest").of("?881"), CallingHours::Uncallable);
    assert_eq!(windows("skip").of("?1"), CallingHours::Uncallable);
}
