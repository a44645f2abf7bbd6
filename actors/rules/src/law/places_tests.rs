use super::*;

fn number(text: &str) -> E164 {
    text.parse().unwrap()
}
fn place(text: &str) -> Place {
    text.parse().unwrap()
}
fn names(number: &str, region: Option<&str>) -> String {
    let (places, sources) = places_of(&self::number(number), region.map(place).as_ref());
    assert_eq!(places.len(), sources.len());
    let both = places.iter().zip(sources);
    let told: Vec<String> = both.map(|(place, source)| format!("{place} {source:?}")).collect();
    told.join(", ")
}

#[test]
fn a_number_lies_in_its_country_and_its_state() {
    for (number, region, expected) in [
        ("+4930901820", None, "DE Number"),
        ("+33123456789", None, "FR Number"),
        ("+442079460000", None, "GB Number"),
        ("+13055550100", None, "US-FL AreaCode"),
        ("+14165550100", None, "CA-ON AreaCode"),
        ("+19025550100", None, "CA-NS AreaCode, CA-PE AreaCode"),
        ("+17875550100", None, "US-PR AreaCode"),
        ("+18762101234", None, "JM Number"),
        // Who has moved is in both.
        ("+13055550100", Some("US-TX"), "US-FL AreaCode, US-TX Given"),
        ("+13055550100", Some("US-FL"), "US-FL AreaCode"),
        ("+33123456789", Some("DE"), "DE Given, FR Number"),
        // Nobody knows.
        ("+18005550100", None, ""),
        ("+881612345678", None, ""),
        ("+18005550100", Some("US-FL"), "US-FL Given"),
        ("+18005550100", Some("FR"), "FR Given"),
        // The country says nothing new of who is in a state of it.
        ("+13055550100", Some("US"), "US-FL AreaCode"),
        ("+14165550100", Some("CA"), "CA-ON AreaCode"),
        ("+13055550100", Some("CA"), "CA Given, US-FL AreaCode"),
        // The sandbox's own block.
        ("+15002345678", None, ""),
        ("+15002345678", Some("FR"), "FR Given"),
        ("+15002345678", Some("US"), "US Given"),
    ] {
        assert_eq!(names(number, region), expected, "{number} {region:?}");
    }
}

/// A toll-free number of which nothing is said but the country.
#[test]
fn who_is_in_some_state_is_in_any() {
    for (region, count, part) in [("US", 56, "US-FL"), ("CA", 13, "CA-QC")] {
        let (places, sources) = places_of(&number("+18005550100"), Some(&place(region)));
        assert!(places.len() == count && places.contains(&place(part)), "{places:?}");
        assert!(sources.iter().all(|source| *source == PlaceSource::Given) && places.is_sorted());
    }
}

#[test]
fn a_region_is_a_place_or_refused() {
    for (region, is_one) in [
        (None, true),
        (Some("US"), true),
        (Some("US-FL"), true),
        (Some("DE-BY"), true),
        (Some("US-CAL"), false),
        (Some("US-XX"), false),
        (Some("XX"), false),
        (Some("XX-A"), false),
    ] {
        assert_eq!(check(region.map(place).as_ref()).is_ok(), is_one, "{region:?}");
    }
}

#[test]
fn the_clocks_of_all_places_count() {
    const ALL: &str = "42";
    for (number, timezone, region, expected) in [
        (Some("+12125550100"), None, None, "America/New_York"),
        // Whose area code lies elsewhere: both.
        (
            Some("+12125550100"),
            None,
            Some("US-CA"),
            "America/Los_Angeles America/New_York",
        ),
        (
            Some("+12125550100"),
            Some("America/Los_Angeles"),
            Some("US-CA"),
            "America/Los_Angeles",
        ),
        (Some("+12125550100"), None, Some("US"), "America/New_York"),
        (Some("+12125550100"), None, Some("FR"), "America/New_York Europe/Paris"),
        // Whoever gives a zone knows better than the number.
        (Some("+12125550100"), Some("Asia/Tokyo"), None, "Asia/Tokyo"),
        (Some("+4930901820"), Some("America/New_York"), None, "America/New_York"),
        (Some("+13055550100"), Some("America/Chicago"), None, "America/Chicago"),
        (Some("+18005550100"), Some("America/Chicago"), None, "America/Chicago"),
        (Some("+18005550100"), None, Some("US-FL"), ALL),
        (Some("+79161234567"), Some("Asia/Vladivostok"), None, "Asia/Vladivostok"),
        // Mobiles, of which the table of prefixes knows too few.
        (Some("+61412345678"), None, None, "8"),
        // Nowhere that is known.
        (Some("+881612345678"), None, None, ""),
        (Some("+881612345678"), Some("Asia/Tokyo"), None, "Asia/Tokyo"),
        (Some("+15002345678"), None, None, ""),
        (Some("+15002345678"), None, Some("FR"), "Europe/Paris"),
        (
            Some("+15002345678"),
            Some("Asia/Tokyo"),
            Some("FR"),
            "Asia/Tokyo Europe/Paris",
        ),
        (None, None, Some("FR"), "Europe/Paris"),
        (None, Some("Asia/Tokyo"), None, "Asia/Tokyo"),
        (None, None, None, ""),
    ] {
        let number = number.map(self::number);
        let timezone = timezone.map(|zone| zone.parse().unwrap());
        let found = clocks(number.as_ref(), timezone, region.map(place).as_ref());
        let names: Vec<&str> = found.iter().map(|zone| zone.name()).collect();
        let told = match expected.parse::<usize>() {
            Ok(_) => names.len().to_string(),
            Err(_) => names.join(" "),
        };
        assert_eq!(told, expected, "{number:?} {timezone:?} {region:?}: {names:?}");
    }
}

#[test]
fn whoever_has_no_number_is_where_it_was_said() {
    assert_eq!(
        of_region(Some(&place("FR"))),
        (vec![place("FR")], vec![PlaceSource::Given])
    );
    assert_eq!(of_region(None), (Vec::new(), Vec::new()));
}

/// Every area code of the other table, which was drawn up from another source, lies in a state, a province, or another country.
#[test]
fn every_area_code_lies_somewhere() {
    let lines = include_str!("../zone/nanp.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let codes = lines.flat_map(|line| line.split_once(": ").unwrap().1.split_whitespace());
    let mut count = 0;
    for code in codes {
        let places = AREA_CODES.get(code);
        let elsewhere = "264 268 246 345 767 649 473 658 876 721 664 242 868 809 829 849 869 758 784 284 441";
        let is_elsewhere = elsewhere.split(' ').any(|other| other == code);
        assert_eq!(places.is_none(), is_elsewhere, "{code}");
        count += 1;
    }
    assert!(count > 400);
    // All states, the district, five territories, and ten provinces with three territories.
    let all: BTreeSet<&Place> = AREA_CODES.values().flatten().collect();
    let of = |country: &str| all.iter().filter(|place| place.country() == country).count();
    assert_eq!((of("US"), of("CA")), (56, 13));
}

/// An area code that only the shared prefix +1 is known of would give its state the clocks of all of North America: `generate.py` must
/// name what it is laid over.
#[test]
fn every_area_code_has_clocks_of_its_own() {
    let all = zone::of_prefix("1");
    for (code, places) in AREA_CODES.iter() {
        let zones = zone::of_prefix(&format!("1{code}"));
        assert!(zones.len() < all.len(), "{code} of {places:?}");
    }
}

#[test]
fn places_are_known_that_have_numbers() {
    for known in [
        "FR", "US", "US-FL", "US-DC", "US-PR", "CA-QC", "ES-CT", "DE-BY", "RE", "AX",
    ] {
        assert!(is_known(&place(known)), "{known}");
    }
    for unknown in ["XX", "EU", "US-XX", "CA-FL", "XX-A"] {
        assert!(!is_known(&place(unknown)), "{unknown}");
    }
}

#[test]
fn a_place_has_the_clocks_of_its_numbers() {
    let zones = |name: &str| {
        let zones = zones_of(&[place(name)]);
        zones.iter().map(|zone| zone.name()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(zones("FR"), "Europe/Paris");
    assert_eq!(zones("US-FL"), "America/Chicago America/New_York");
    assert_eq!(zones("US-CA"), "America/Los_Angeles");
    let all = zones("US");
    assert!(
        all.contains("Pacific/Honolulu") && !all.contains("America/Vancouver"),
        "{all}"
    );
    assert_eq!(zones("US-TN"), "America/Chicago America/New_York");
    assert_eq!(zones("DE-BY"), zones("DE"));
    assert_eq!(zones("XX"), "");
}
