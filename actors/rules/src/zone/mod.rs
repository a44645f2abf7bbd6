//! Which time zones a phone number may be in, by its prefix.
//!
//! The table is libphonenumber's, by way of its Python port: `generate.py` writes it to `prefixes.txt`. The number's
//! longest prefix that stands there wins: +1928871 (Window Rock) says more than +1928 (Arizona), which says more than
//! +1. Often several zones are left, and the phone may ring in any of them, so all of them count: an hour that suits
//! only some may wake somebody up.
//!
//! For some countries the table names one zone for all mobile numbers (+79 is Moscow, though it rings in Vladivostok as
//! well): [`of_number`] takes all zones of the country for them.
//!
//! A North American area code has the zones of all its exchanges, and of the code that it is laid over: which side of a border
//! an exchange lies on that the table does not know, nobody can tell. `nanp.txt`, drawn up from another source, is the test.
use chrono_tz::Tz;
use entities::values::E164;
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// Prefix (digits without `+`) to zones, sorted by name, never empty; equal sets are one.
type Table = HashMap<&'static str, Arc<[Tz]>>;

/// Lines `<digits> <zone>[,<zone>...]`; those that start with `#` are comments.
const TEXT: &str = include_str!("prefixes.txt");
static TABLE: LazyLock<Table> = LazyLock::new(|| read(TEXT));

/// All zones that the number's longest known prefix may lie in; empty: unknown.
/// The sandbox's own block ([`E164::is_sandbox`]) lies nowhere.
pub fn candidates(number: &E164) -> &'static [Tz] {
    if number.is_sandbox() {
        return &[];
    }
    of_prefix(number.as_str().trim_start_matches('+'))
}

/// The same of a phone that may move about: a mobile rings wherever its country reaches, whatever its prefix says.
pub fn of_number(number: &E164) -> &'static [Tz] {
    match number.land_if_mobile() {
        Some(digits) => of_prefix(digits),
        None => candidates(number),
    }
}

/// The same for the first digits of a number.
pub fn of_prefix(digits: &str) -> &'static [Tz] {
    let mut prefixes = (1..=digits.len()).rev().filter_map(|length| digits.get(..length));
    prefixes
        .find_map(|prefix| TABLE.get(prefix))
        .map(|zones| &**zones)
        .unwrap_or_default()
}

/// The candidates' names, sorted, each once, joined with `+`: contacts with one name keep the same hours.
/// Empty: unknown.
pub fn name(zones: &[Tz]) -> String {
    let mut names: Vec<&str> = zones.iter().map(|zone| zone.name()).collect();
    names.sort_unstable();
    names.dedup();
    names.join("+")
}

/// The zones of such a name; none for the empty one. `None`: a zone in it is unknown.
pub fn parse(name: &str) -> Option<Vec<Tz>> {
    let mut zones: Vec<Tz> = Vec::new();
    if name.is_empty() {
        return Some(zones);
    }
    for part in name.split('+') {
        // `Etc/GMT+5` has a `+` of its own. No zone's name starts with a digit: the part belongs to the one before it.
        let zone = if part.starts_with(|first: char| first.is_ascii_digit()) {
            format!("{}+{part}", zones.pop()?.name()).parse()
        } else {
            part.parse()
        };
        zones.push(zone.ok()?);
    }
    Some(zones)
}

/// A bad line is skipped: its numbers then have the zones of the next shorter prefix, which are more rather than fewer.
fn read(text: &'static str) -> Table {
    let mut sets: HashMap<&str, Arc<[Tz]>> = HashMap::new();
    let mut table = Table::new();
    for (prefix, names) in lines(text).filter_map(|line| line.split_once(' ')) {
        let set = match sets.get(names) {
            Some(set) => Some(set.clone()),
            None => zones(names),
        };
        if let (true, Some(set)) = (is_digits(prefix), set) {
            sets.insert(names, set.clone());
            table.insert(prefix, set);
        }
    }
    table
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

fn is_digits(prefix: &str) -> bool {
    !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit())
}

/// `<zone>[,<zone>...]`; `None` if one is unknown.
fn zones(names: &str) -> Option<Arc<[Tz]>> {
    names.split(',').map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
