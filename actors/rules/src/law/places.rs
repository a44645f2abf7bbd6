//! Where the person behind a number may be, as the law counts: its country, in the United States and Canada the state or province of
//! its area code, and wherever it was said that the person is. The rules of all of them hold.
//!
//! `area_codes.txt` is written by `area_codes.py`.
use super::facts::PlaceSource;
use crate::zone;
use entities::values::{Country, E164, Place, Zone};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

/// Lines `<place>[,<place>...]: <codes>`; those that start with `#` are comments.
const TEXT: &str = include_str!("area_codes.txt");
static AREA_CODES: LazyLock<BTreeMap<&'static str, Vec<Place>>> = LazyLock::new(read);
/// All countries that have numbers, and all states and provinces that have area codes.
static KNOWN: LazyLock<BTreeSet<Place>> = LazyLock::new(|| {
    let countries = Country::all().into_iter().map(Place::from);
    countries.chain(AREA_CODES.values().flatten().cloned()).collect()
});
/// The clocks of each of them, by their names.
static CLOCKS: LazyLock<BTreeMap<&'static Place, Vec<Zone>>> = LazyLock::new(|| {
    let known = KNOWN.iter();
    known.map(|place| (place, kept_in(place))).collect()
});

/// The places whose rules hold for a number, sorted, and how each is known. None: nobody knows where it rings (toll-free, satellite,
/// personal numbers), so the rules of all places hold, unless it was said. If all that was said of such a number is that it is in the
/// United States or in Canada, it may be in any state or province. A number of the sandbox lies where it was said only.
pub fn places_of(number: &E164, region: Option<&Place>) -> (Vec<Place>, Vec<PlaceSource>) {
    let mut found: BTreeMap<Place, PlaceSource> = BTreeMap::new();
    if !number.is_sandbox() {
        match area_code(number) {
            Some(places) => found.extend(places.iter().map(|place| (place.clone(), PlaceSource::AreaCode))),
            None => found.extend(country(number).map(|country| (country, PlaceSource::Number))),
        }
    }
    if let Some(region) = region.filter(|region| is_news(region, found.keys())) {
        let parts = match found.is_empty() && !number.is_sandbox() {
            true => parts_of(region),
            false => BTreeSet::new(),
        };
        match parts.is_empty() {
            true => found.extend([(region.clone(), PlaceSource::Given)]),
            false => found.extend(parts.into_iter().map(|part| (part.clone(), PlaceSource::Given))),
        }
    }
    found.into_iter().unzip()
}

/// The same for somebody who has no number.
pub fn of_region(region: Option<&Place>) -> (Vec<Place>, Vec<PlaceSource>) {
    region
        .map(|region| (region.clone(), PlaceSource::Given))
        .into_iter()
        .unzip()
}

/// Is it a place that somebody may be in? Whoever mistypes one must not be judged by the rules of another. Errors: what to write.
pub fn check(region: Option<&Place>) -> Result<(), &'static str> {
    match region.is_none_or(is_known) {
        true => Ok(()),
        false => Err("is not a country that has phone numbers, or a part of one: write FR or US-FL"),
    }
}

/// Is it a country, or a state or province of which the pack may have rules?
pub fn is_known(place: &Place) -> bool {
    // Parts of other countries have no rules of their own, and are wherever their country is.
    KNOWN.contains(place)
        || (!place.is_country()
            && !matches!(place.country(), "US" | "CA")
            && place
                .country()
                .parse::<Place>()
                .is_ok_and(|country| KNOWN.contains(&country)))
}

/// The clocks that count for somebody, by their names: those of the number, and those of where it was said that the person is. A zone
/// that was said stands for those of the number, and beside those of the region unless it is kept there. Empty: nobody knows any.
/// Source: CONTRACT §3, a contact's zone.
pub fn clocks(number: Option<&E164>, timezone: Option<Zone>, region: Option<&Place>) -> Vec<Zone> {
    let of_number = number.map(|number| places_of(number, None).0).unwrap_or_default();
    let region = region.filter(|region| is_news(region, of_number.iter()));
    let of_region: BTreeMap<_, _> = region
        .map(|region| named(zones_in(region)).collect())
        .unwrap_or_default();
    let mut known = match timezone {
        Some(zone) if of_region.contains_key(zone.name()) => return vec![zone],
        Some(zone) => BTreeMap::from([(zone.name(), zone)]),
        None => number.map(of_a_number).unwrap_or_default(),
    };
    known.extend(of_region);
    known.into_values().collect()
}

/// The clocks that are kept there, by the numbers that lie there: what counts for somebody of whom only the place is known.
pub fn zones_of(places: &[Place]) -> Vec<Zone> {
    let zones: BTreeMap<&str, Zone> = places.iter().flat_map(|place| named(zones_in(place))).collect();
    zones.into_values().collect()
}

/// Does it say more of somebody than these places do? A country says nothing new of who is in a state of it.
fn is_news<'p>(region: &Place, known: impl IntoIterator<Item = &'p Place>) -> bool {
    !known.into_iter().any(|place| place.lies_in(region))
}

/// The states or provinces of the United States or Canada; of other places none.
fn parts_of(country: &Place) -> BTreeSet<&'static Place> {
    let all = AREA_CODES.values().flatten();
    all.filter(|part| part.country() == country.as_str()).collect()
}

fn of_a_number(number: &E164) -> BTreeMap<&'static str, Zone> {
    let zones = zone::of_number(number);
    zones.iter().map(|zone| (zone.name(), Zone::from(*zone))).collect()
}

fn named(zones: &[Zone]) -> impl Iterator<Item = (&'static str, Zone)> {
    zones.iter().map(|zone| (zone.name(), *zone))
}

/// Of a part of a country of which nothing is known: those of the country.
fn zones_in(place: &Place) -> &'static [Zone] {
    let of_country = || CLOCKS.get(&place.country().parse::<Place>().ok()?);
    let found = CLOCKS.get(place).or_else(of_country);
    found.map(Vec::as_slice).unwrap_or_default()
}

fn kept_in(place: &Place) -> Vec<Zone> {
    let prefixes = prefixes_of(place);
    let zones = prefixes.iter().flat_map(|prefix| zone::of_prefix(prefix));
    let zones: BTreeMap<&str, Zone> = zones.map(|zone| (zone.name(), Zone::from(*zone))).collect();
    zones.into_values().collect()
}

/// The first digits of the numbers of a place.
fn prefixes_of(place: &Place) -> Vec<String> {
    let of_part = |(code, places): (&&str, &Vec<Place>)| places.contains(place).then(|| format!("1{code}"));
    let parts: Vec<String> = AREA_CODES.iter().filter_map(of_part).collect();
    if !parts.is_empty() {
        return parts;
    }
    match place.country() {
        country @ ("US" | "CA") => {
            let lies_there = |places: &Vec<Place>| places.iter().any(|place| place.country() == country);
            let codes = AREA_CODES.iter().filter(|(_, places)| lies_there(places));
            codes.map(|(code, _)| format!("1{code}")).collect()
        }
        country => country
            .parse::<Country>()
            .ok()
            .and_then(Country::calling_code)
            .into_iter()
            .collect(),
    }
}

/// In the United States and Canada what has no area code of a state rings anywhere, or nobody knows where.
fn country(number: &E164) -> Option<Place> {
    let country = Place::from(number.country()?);
    let is_shared = number.as_str().starts_with("+1") && matches!(country.as_str(), "US" | "CA");
    (!is_shared).then_some(country)
}

/// The states or provinces of a North American number; none: it lies in another country, or nobody knows where.
fn area_code(number: &E164) -> Option<&'static [Place]> {
    let code = number.as_str().strip_prefix("+1")?.get(..3)?;
    AREA_CODES.get(code).map(Vec::as_slice)
}

/// A bad line is skipped: `every_area_code_lies_somewhere` finds what is missing.
fn read() -> BTreeMap<&'static str, Vec<Place>> {
    let mut table = BTreeMap::new();
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    for (names, codes) in lines.filter_map(|line| line.split_once(": ")) {
        let places: Result<Vec<Place>, _> = names.split(',').map(str::parse).collect();
        if let Ok(places) = places {
            table.extend(codes.split_whitespace().map(|code| (code, places.clone())));
        }
    }
    table
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
