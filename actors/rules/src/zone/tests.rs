//! Where numbers lie: the table against libphonenumber, and prefixes with several zones.
use super::*;
use chrono::{Offset, TimeZone};
use std::collections::BTreeSet;

/// The candidates' name of a number in E.164.
fn name_of(number: &str) -> String {
    name(candidates(&number.parse().unwrap()))
}

fn check(table: &[(&str, &str)]) {
    for (number, expected) in table {
        assert_eq!(name_of(number), *expected, "{number}");
    }
}

#[test]
fn no_line_is_bad() {
    let mut before = "";
    for line in lines(TEXT) {
        let (prefix, names) = line.split_once(' ').unwrap();
        assert!(is_digits(prefix), "{line}");
        assert!(before < prefix, "{line} stands after {before}");
        let zones = zones(names).unwrap_or_else(|| panic!("an unknown zone: {line}"));
        assert_eq!(name(&zones), names.replace(',', "+"), "sorted, each once: {line}");
        before = prefix;
    }
    assert_eq!(TABLE.len(), lines(TEXT).count());
    assert!(TABLE.len() > 3000, "{}", TABLE.len());
}

#[test]
fn no_line_repeats_what_a_shorter_prefix_says() {
    for (prefix, zones) in TABLE.iter() {
        let shorter = (1..prefix.len()).rev().find_map(|length| TABLE.get(&prefix[..length]));
        assert_ne!(shorter, Some(zones), "{prefix}");
    }
}

#[test]
fn equal_sets_are_one() {
    assert!(Arc::ptr_eq(&TABLE["1201"], &TABLE["1202"]));
}

#[test]
fn a_bad_line_is_skipped() {
    let text = "# a comment\n\nrubbish\n1 Nowhere/Land\n2 Europe/Paris,\n3 Europe/Paris Europe/Rome\n \
                    +4 Europe/Paris\n5x Europe/Paris\n49 Europe/Berlin\n43 Europe/Vienna,Nowhere/Land\n";
    let table = read(text);
    assert_eq!(table.keys().collect::<Vec<_>>(), [&"49"]);
    assert_eq!(name(&table["49"]), "Europe/Berlin");
}

/// The numbers are valid and the zones are those of `time_zones_for_number` of the package that the table is from.
#[test]
fn numbers_lie_where_libphonenumber_says() {
    check(&[
        ("+12125550123", "America/New_York"),
        ("+13125550123", "America/Chicago"),
        ("+13035550123", "America/Denver"),
        ("+16025550123", "America/Phoenix"),
        ("+12065550123", "America/Los_Angeles"),
        ("+18085550123", "Pacific/Honolulu"),
        ("+14165550123", "America/Toronto"),
        ("+18095550123", "America/Santo_Domingo"),
        ("+525512345678", "America/Mexico_City"),
        ("+526641234567", "America/Tijuana"),
        ("+551123456789", "America/Sao_Paulo"),
        ("+5511961234567", "America/Sao_Paulo"),
        ("+5592912345678", "America/Manaus"),
        ("+442079460123", "Europe/London"),
        ("+441534123456", "Europe/Jersey"),
        ("+4930901820", "Europe/Berlin"),
        ("+34912345678", "Europe/Madrid"),
        ("+34928123456", "Atlantic/Canary"),
        ("+351292123456", "Atlantic/Azores"),
        ("+74951234567", "Europe/Moscow"),
        ("+73432123456", "Asia/Yekaterinburg"),
        ("+73952123456", "Asia/Irkutsk"),
        ("+74232123456", "Asia/Vladivostok"),
        ("+861012345678", "Asia/Shanghai"),
        ("+8613123456789", "Asia/Shanghai"),
        ("+911123456789", "Asia/Calcutta"),
        ("+919123456789", "Asia/Calcutta"),
        ("+81312345678", "Asia/Tokyo"),
        ("+61290123456", "Australia/Sydney"),
        ("+61731234567", "Australia/Brisbane"),
    ]);
}

#[test]
fn an_area_code_of_two_zones_is_told_apart_by_what_follows_it() {
    check(&[
        ("+18504335550", "America/Chicago"),                  // Florida: Pensacola
        ("+18502225550", "America/Chicago+America/New_York"), // an exchange that is not listed
        ("+18124225550", "America/Chicago"),                  // Indiana: Evansville
        ("+18123335550", "America/Chicago+America/New_York"), // the same
        ("+12707815550", "America/Chicago"),                  // Kentucky: Bowling Green
        ("+12707655550", "America/Chicago+America/New_York"), // the same
        ("+12083345550", "America/Boise+America/Denver+America/Los_Angeles"), // the same
        ("+12086675550", "America/Los_Angeles"),              // Coeur d'Alene
    ]);
}

#[test]
fn where_a_prefix_has_several_zones_all_count() {
    check(&[
        ("+12085550123", "America/Boise+America/Denver+America/Los_Angeles"),
        ("+14235551234", "America/Chicago+America/New_York"),
        ("+14585551234", "America/Denver+America/Los_Angeles"),
        (
            "+16055550123",
            "America/Chicago+America/Denver+America/North_Dakota/Center",
        ),
        ("+18505551234", "America/Chicago+America/New_York"),
        (
            "+19075550123",
            "America/Adak+America/Anchorage+America/Juneau+Pacific/Honolulu",
        ),
        ("+17095550123", "America/Halifax+America/St_Johns"),
        ("+19288715550", "America/Denver+America/Phoenix"),
        ("+61891234567", "Australia/Adelaide+Australia/Perth"),
        ("+61891006123", "Australia/Adelaide+Australia/Perth+Indian/Christmas"),
        ("+351912345678", "Atlantic/Azores+Europe/Lisbon"),
    ]);
}

/// The offsets that a zone keeps in winter and in summer: two zones with the same ones let call at the same times.
fn clock(zone: Tz) -> [i32; 2] {
    [1, 7].map(|month| {
        let noon = zone.with_ymd_and_hms(2026, month, 15, 12, 0, 0).unwrap();
        noon.offset().fix().local_minus_utc()
    })
}

#[test]
fn an_area_code_has_every_clock_that_is_kept_in_its_area() {
    let (mut codes, mut wider) = (0, Vec::new());
    for (names, list) in lines(include_str!("nanp.txt")).map(|line| line.split_once(": ").unwrap()) {
        let kept: BTreeSet<_> = zones(names).unwrap().iter().map(|zone| clock(*zone)).collect();
        for code in list.split(' ') {
            // Whatever follows: an exchange that is known may say less, one that is not may not.
            let ours: BTreeSet<_> = of_prefix(&format!("1{code}")).iter().map(|zone| clock(*zone)).collect();
            assert!(kept.is_subset(&ours), "{code} keeps {names}, and we say {ours:?}");
            let longer = TABLE
                .iter()
                .filter(|(prefix, _)| prefix.starts_with(&format!("1{code}")));
            for zone in longer.flat_map(|(_, zones)| &**zones) {
                assert!(ours.contains(&clock(*zone)), "{code}: {zone}");
            }
            codes += 1;
            if ours != kept {
                wider.push(code);
            }
        }
    }
    assert!(codes > 400, "{codes}");
    // Whoever has more zones than necessary is called at fewer hours.
    assert_eq!(wider, ["689", "474", "907", "879", "867"]);
}

#[test]
fn a_toll_free_number_may_be_anywhere_under_its_country_code() {
    let zones = candidates(&"+18004377950".parse().unwrap());
    assert_eq!(zones, &*TABLE["1"]);
    for zone in [
        Tz::America__New_York,
        Tz::Pacific__Honolulu,
        Tz::America__St_Johns,
        Tz::Pacific__Guam,
    ] {
        assert!(zones.contains(&zone), "{zone}");
    }
}

/// Here `time_zones_for_number` would name the whole country's.
#[test]
fn a_mobile_number_lies_where_its_prefix_says() {
    check(&[
        ("+79123456789", "Europe/Moscow"),
        ("+61412345678", "Australia/Sydney"),
        ("+34612345678", "Europe/Madrid"),
        ("+447400123456", "Europe/Guernsey+Europe/Isle_of_Man+Europe/London"),
    ]);
}

#[test]
fn what_belongs_to_no_country_is_unknown() {
    check(&[
        ("+881612345678", ""), // satellite
        ("+870301234567", ""), // ships
        ("+80012345678", ""),  // toll-free everywhere
        ("+000", ""),
        ("+999999999999999", ""),
    ]);
}

#[test]
fn the_sandbox_lies_nowhere_but_its_neighbours_do() {
    check(&[("+15002345670", ""), ("+15009999999", "")]);
    let zones = candidates(&"+15001345670".parse().unwrap());
    assert_eq!(zones, &*TABLE["1"]);
}

#[test]
fn a_short_number_has_the_zones_of_its_country() {
    check(&[("+491", "Europe/Berlin")]);
    assert_eq!(candidates(&"+100".parse().unwrap()), &*TABLE["1"]);
}

#[test]
fn a_name_is_the_same_in_any_order_and_with_repeats() {
    let (berlin, paris) = (Tz::Europe__Berlin, Tz::Europe__Paris);
    assert_eq!(name(&[paris, berlin, paris]), "Europe/Berlin+Europe/Paris");
    assert_eq!(name(&[]), "");
}

#[test]
fn a_name_reads_back_as_its_zones() {
    for zones in TABLE.values() {
        assert_eq!(parse(&name(zones)).as_deref(), Some(&**zones));
    }
    assert_eq!(parse(""), Some(Vec::new()));
}

#[test]
fn a_zone_with_a_plus_of_its_own_reads_back() {
    for names in [
        "Etc/GMT+5",
        "Etc/GMT+Etc/GMT+12",
        "Etc/GMT+12+Etc/GMT-1+Europe/Berlin+GMT+0",
    ] {
        assert_eq!(name(&parse(names).unwrap()), names);
    }
}

#[test]
fn an_unknown_name_is_none() {
    for names in [
        "+",
        "5",
        "Nowhere/Land",
        "Europe/Berlin+",
        "+Europe/Berlin",
        "Europe/Berlin+5",
        "Europe/Berlin++Europe/Paris",
        "Europe/Berlin+Nowhere/Land",
        "Europe/Berlin,Europe/Paris",
        "Etc/GMT+5+5",
        "Etc/Unknown",
    ] {
        assert_eq!(parse(names), None, "{names}");
    }
}
