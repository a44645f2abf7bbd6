//! The registers that rules know by name, and what may be said of any.
use entities::{
    Error, Result,
    register::AreaCodes,
    values::{Country, Moment},
};

/// A national register.
#[derive(Debug)]
pub struct Known {
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Whose national numbers it holds.
    pub country: &'static str,
    /// A copy may be that old.
    pub max_age_days: u32,
    /// Its maker gives it out by area codes, so that a copy may be of some of them.
    pub by_area_code: bool,
    pub source: &'static str,
}

pub const KNOWN: [Known; 9] = [
    Known {
        name: "us_dnc",
        title: "the National Do Not Call Registry of the United States",
        country: "US",
        max_age_days: 31,
        by_area_code: true,
        source: "16 CFR 310.4(b)(3)(iv), 47 CFR 64.1200(c)(2)",
    },
    Known {
        name: "uk_tps",
        title: "the Telephone Preference Service of the United Kingdom",
        country: "GB",
        max_age_days: 28,
        by_area_code: false,
        source: "PECR 21, 28 days",
    },
    Known {
        name: "uk_ctps",
        title: "the Corporate Telephone Preference Service of the United Kingdom",
        country: "GB",
        max_age_days: 28,
        by_area_code: false,
        source: "PECR 21, 28 days",
    },
    Known {
        name: "it_rpo",
        title: "the Registro pubblico delle opposizioni of Italy",
        country: "IT",
        max_age_days: 15,
        by_area_code: false,
        source: "D.P.R. 26/2022: an entry takes effect within 15 days",
    },
    Known {
        name: "ca_dncl",
        title: "the National Do Not Call List of Canada",
        country: "CA",
        max_age_days: 31,
        by_area_code: true,
        source: "CRTC Unsolicited Telecommunications Rules, part II",
    },
    Known {
        name: "au_dncr",
        title: "the Do Not Call Register of Australia",
        country: "AU",
        max_age_days: 30,
        by_area_code: false,
        source: "Do Not Call Register Act 2006: 30 days",
    },
    Known {
        name: "fr_bloctel",
        title: "the Bloctel list of France, which was asked until 10 August 2026",
        country: "FR",
        max_age_days: 30,
        by_area_code: false,
        source: "Code de la consommation, L223-1: 30 days",
    },
    Known {
        name: "es_robinson",
        title: "the Lista Robinson of Spain",
        country: "ES",
        max_age_days: 30,
        by_area_code: false,
        source: "LOPDGDD, art. 23; 30 days are ours",
    },
    Known {
        name: "in_dlt",
        title: "the consents on the DLT platforms of India",
        country: "IN",
        max_age_days: 30,
        by_area_code: false,
        source: "TCCCPR 2018; 30 days are ours",
    },
];

/// The age of which owners are told where a register has a name of their own. Ours.
const MAX_AGE_DAYS: u32 = 31;
const LONGEST: usize = 32;
/// So far from our midnight a day may begin: where it is tomorrow already.
const AHEAD_HOURS: i64 = 14;

pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Days after which a copy is too old, as its owners are told.
pub fn max_age_days(name: &str) -> u32 {
    known(name).map_or(MAX_AGE_DAYS, |known| known.max_age_days)
}

pub fn check_name(name: &str) -> Result<()> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (2..=LONGEST).contains(&name.len()) && name.bytes().all(is_part) {
        return Ok(());
    }
    let all: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
    let why = format!(
        "must be one of {}, or a name of your own: 2 to {LONGEST} small letters, digits and _",
        all.join(", ")
    );
    Err(Error::invalid("name", why))
}

/// Whose national numbers a register of that name holds; `otherwise`: where nobody has said it.
pub fn country(name: &str, given: Option<&str>, otherwise: Country) -> Result<Country> {
    let given = given
        .map(|text| text.trim().to_uppercase().parse::<Country>())
        .transpose()
        .map_err(|why| Error::invalid("country", why))?;
    let Some(known) = known(name) else {
        return Ok(given.unwrap_or(otherwise));
    };
    let own = known.country.parse().unwrap_or(otherwise);
    match given {
        Some(given) if given != own => Err(Error::invalid(
            "country",
            format!("must be left out, or be {}: `{name}` is {}", known.country, known.title),
        )),
        _ => Ok(own),
    }
}

/// The area codes that somebody names as covered, such as `212,646`, of a register of that country's numbers.
pub fn area_codes(given: Option<&str>, country: Country) -> Result<Option<AreaCodes>> {
    let Some(given) = given else { return Ok(None) };
    if country.calling_code().as_deref() != Some("1") {
        let why = "must be left out: only numbers of North America have them";
        return Err(Error::invalid("area_codes", why));
    }
    let read = AreaCodes::parse(given).map_err(|why| Error::invalid("area_codes", why))?;
    Ok(Some(read))
}

/// What a file covers: the area codes that were named, and those of its own numbers. `None`: it covers all numbers, as a register does
/// that is not given out by area codes and of which nobody has named any. `named`, `found`: by whoever uploads it, and in the file.
pub fn covered(name: &str, named: Option<&AreaCodes>, found: &AreaCodes) -> Option<AreaCodes> {
    if named.is_none() && !known(name).is_some_and(|known| known.by_area_code) {
        return None;
    }
    let named = named.into_iter().flat_map(|codes| codes.0.iter());
    Some(AreaCodes(named.chain(&found.0).copied().collect()))
}

/// The day, or the moment, at which its maker gave a file out. A day begins at midnight UTC: the file counts as no younger than that.
/// `now`: by the clock that shows more.
pub fn fetched_at(text: &str, now: Moment) -> Result<Moment> {
    let future = || {
        Error::invalid(
            "fetched_at",
            format!(
                "`{text}` lies in the future; it is {now} now: give the day on which you got the file from its maker"
            ),
        )
    };
    if let Some(begins) = super::day::begins(text) {
        return match begins.plus_seconds(-AHEAD_HOURS * 3600) <= now {
            true => Ok(begins.min(now)),
            false => Err(future()),
        };
    }
    let Ok(at) = Moment::parse(text) else {
        let why = format!("`{text}` is neither a day, such as 2026-11-30, nor a time in ISO 8601 with an offset");
        return Err(Error::invalid("fetched_at", why));
    };
    if at <= now { Ok(at) } else { Err(future()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        Moment::parse(text).unwrap()
    }

    #[test]
    fn names_are_short_and_plain() {
        for (name, fits) in [
            ("us_dnc", true),
            ("ours2", true),
            ("xx", true),
            ("a2345678901234567890123456789012", true),
            ("x", false),
            ("", false),
            ("US_DNC", false),
            ("us-dnc", false),
            ("müller", false),
            ("a23456789012345678901234567890123", false),
        ] {
            assert_eq!(check_name(name).is_ok(), fits, "{name}");
        }
        assert!(KNOWN.iter().all(|known| check_name(known.name).is_ok()));
    }

    /// Owners are told when a copy is too old for the rules, not later.
    #[test]
    fn every_register_of_the_pack_is_known_with_its_age() {
        for rule in &crate::law::pack().rules {
            let crate::law::Says::Register { name, max_age_days, .. } = &rule.says else {
                continue;
            };
            let age = known(name).map(|known| known.max_age_days);
            assert_eq!(age, Some(*max_age_days), "{name}, of {}", rule.id);
        }
    }

    #[test]
    fn a_national_register_is_of_its_country() {
        let of = |name, given| {
            country(name, given, Country::US)
                .map(|country| country.to_string())
                .ok()
        };
        for (name, given, expected) in [
            ("uk_tps", None, Some("GB")),
            ("uk_tps", Some("gb"), Some("GB")),
            ("uk_tps", Some("US"), None),
            ("ours", None, Some("US")),
            ("ours", Some("DE"), Some("DE")),
            ("ours", Some("Germany"), None),
        ] {
            assert_eq!(of(name, given).as_deref(), expected, "{name} {given:?}");
        }
        let countries = KNOWN.iter().map(|known| known.country.parse::<Country>());
        assert!(countries.into_iter().all(|country| country.is_ok()));
    }

    #[test]
    fn a_copy_of_some_area_codes_covers_no_others() {
        let codes = |text: &str| AreaCodes::parse(text).unwrap();
        let found = codes("212");
        for (name, named, expected) in [
            ("us_dnc", None, Some("212")),
            ("us_dnc", Some("646"), Some("212,646")),
            ("ca_dncl", None, Some("212")),
            ("uk_tps", None, None),
            ("ours", None, None),
            ("ours", Some("646"), Some("212,646")),
        ] {
            let named = named.map(codes);
            let expected = expected.map(codes);
            assert_eq!(covered(name, named.as_ref(), &found), expected, "{name} {named:?}");
        }
        for (given, country, good) in [
            (None, "GB", true),
            (Some("212"), "US", true),
            (Some("416"), "CA", true),
            (Some("212"), "GB", false),
            (Some("12"), "US", false),
        ] {
            let read = area_codes(given, country.parse().unwrap());
            assert_eq!(read.is_ok(), good, "{given:?} {country}");
        }
    }

    #[test]
    fn a_day_counts_from_its_beginning_and_none_lies_ahead() {
        let now = at("2026-11-30T15:00:00Z");
        for (text, expected) in [
            ("2026-11-30", Some("2026-11-30T00:00:00Z")),
            ("2026-11-01", Some("2026-11-01T00:00:00Z")),
            // It is tomorrow already where the sun rises first.
            ("2026-12-01", Some("2026-11-30T15:00:00Z")),
            ("2026-12-02", None),
            ("2026-11-30T14:59:00+00:00", Some("2026-11-30T14:59:00Z")),
            ("2026-11-30T15:00:01Z", None),
            ("30.11.2026", None),
            ("", None),
        ] {
            assert_eq!(fetched_at(text, now).ok(), expected.map(at), "{text}");
        }
        let early = at("2026-11-30T09:59:00Z");
        assert!(fetched_at("2026-12-01", early).is_err(), "nowhere yet");
    }
}
