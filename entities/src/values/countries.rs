use super::{Country, E164};
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt};

/// Countries that a workspace may call live, by their letters and each once. At least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Countries(Vec<Country>);

impl Countries {
    /// Reads `DE,AT`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let mut countries: Vec<Country> = names.map(str::parse).collect::<Result<_, _>>()?;
        if countries.is_empty() {
            return Err("names no country: give their letters, such as DE,AT".into());
        }
        countries.sort_by_key(Country::to_string);
        countries.dedup();
        Ok(Countries(countries))
    }

    pub fn contains(&self, country: Country) -> bool {
        self.0.contains(&country)
    }
}

impl From<Country> for Countries {
    fn from(country: Country) -> Self {
        Countries(vec![country])
    }
}

impl fmt::Display for Countries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(Country::to_string).collect();
        f.write_str(&names.join(","))
    }
}

impl Serialize for Country {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Country {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Beginnings of numbers that nobody calls live: `+`, then 1 to 15 digits. The operator's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes(Vec<String>);

impl Prefixes {
    /// Reads `+1900,+4490`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut prefixes = Vec::new();
        for prefix in text.split(',').map(str::trim).filter(|prefix| !prefix.is_empty()) {
            let digits = prefix.strip_prefix('+').unwrap_or_default();
            if !(1..=15).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!(
                    "`{prefix}` is not the beginning of a number; write +4490, with + and 1 to 15 digits"
                ));
            }
            prefixes.push(prefix.to_owned());
        }
        Ok(Prefixes(prefixes))
    }

    /// The longest with which the number begins.
    pub fn of(&self, number: &E164) -> Option<&str> {
        let its = self
            .0
            .iter()
            .filter(|prefix| number.as_str().starts_with(prefix.as_str()));
        its.max_by_key(|prefix| prefix.len()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_are_read_in_any_order_and_kept_once() {
        let countries = Countries::parse("DE, AT,DE ,").unwrap();
        assert_eq!(countries.to_string(), "AT,DE");
        let stored = serde_json::to_string(&countries).unwrap();
        assert_eq!(stored, r#"["AT","DE"]"#);
        assert_eq!(serde_json::from_str::<Countries>(&stored).unwrap(), countries);
        for text in ["", " , ", "Germany", "DE,XX"] {
            assert!(Countries::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_rings_in_its_country() {
        for (number, expected) in [
            ("+4930901820", Some("DE")),
            ("+41443456789", Some("CH")),
            ("+12125550123", Some("US")),
            ("+14165550123", Some("CA")),
            // The Caribbean behind the same code as the United States: what toll fraud calls.
            ("+18095551234", Some("DO")),
            ("+18765551234", Some("JM")),
            ("+77172123456", Some("KZ")),
            ("+74951234567", Some("RU")),
            ("+390236618300", Some("IT")),
            ("+447400123456", Some("GB")),
            ("+358401234567", Some("FI")),
            ("+212520123456", Some("MA")),
            // Satellites are nobody's country.
            ("+881612345678", None),
        ] {
            let number: E164 = number.parse().unwrap();
            let found = number.country().map(|country| country.to_string());
            assert_eq!(found.as_deref(), expected, "{}", number.as_str());
        }
    }

    #[test]
    fn the_longest_prefix_is_named() {
        let prefixes = Prefixes::parse("+44, +4490,+1900").unwrap();
        for (number, expected) in [
            ("+449012345678", Some("+4490")),
            ("+442012345678", Some("+44")),
            ("+19005551234", Some("+1900")),
            ("+4930901820", None),
        ] {
            assert_eq!(prefixes.of(&number.parse().unwrap()), expected, "{number}");
        }
        assert_eq!(Prefixes::parse("").unwrap(), Prefixes::default());
        for text in ["4490", "+", "+44x", "+1234567890123456", "+44 90"] {
            assert!(Prefixes::parse(text).is_err(), "{text}");
        }
    }
}
