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

#[test]
fn a_group_is_the_zones_that_count() {
    let number = |text: &str| text.parse::<E164>().unwrap();
    assert_eq!(group(&number("+4930901820"), None, None), "Europe/Berlin@DE");
    assert_eq!(
        group(&number("+18002345678"), None, None).split('+').count(),
        42,
        "it may ring anywhere in its country"
    );
    assert_eq!(group(&number("+4930901820"), Some(Zone::NEW_YORK), None), "America/New_York@DE");
    assert_eq!(
        group(&number("+79161234567"), None, None).split('+').count(),
        group(&number("+61412345678"), None, None).split('+').count() * 2,
        "16 and 8: mobiles"
    );
    assert_eq!(group(&number("+15002345670"), None, None), "?1");
    // Where the person is decides what the number does not tell, and adds nothing to what it does.
    let region = |text: &str| text.parse::<Place>().unwrap();
    assert_eq!(group(&number("+15002345670"), None, Some(&region("FR"))), "Europe/Paris@FR");
    assert_eq!(
        group(&number("+15002345670"), Some(Zone::NEW_YORK), Some(&region("FR"))),
        "America/New_York@FR"
    );
    assert_eq!(
        group(&number("+4930901820"), None, Some(&region("FR"))),
        "Europe/Berlin@DE+FR"
    );
    assert_eq!(group_of_region(Some(&region("FR"))), "Europe/Paris@FR");
    assert_eq!(group_of_region(None), "");
    assert_eq!(group(&number("+881612345678"), None, None), "?881");
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
        let number: E164 = number.parse().unwrap();
        assert!(number.land_if_mobile().is_some(), "{number}");
        assert_eq!(group(&number, None, None), expected, "{number}");
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
