use super::{BadValue, Country};
use schemars::JsonSchema;
use sea_orm::DeriveValueType;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    borrow::{Borrow, Cow},
    fmt,
    str::FromStr,
};

/// Where a law holds: a country (`FR`) or a part of one (`US-FL`), as in ISO 3166-2.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveValueType)]
#[sea_orm(value_type = "String")]
pub struct Place(String);

impl Place {
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// The country that it is, or lies in.
    pub fn country(&self) -> &str {
        self.0.get(..2).unwrap_or_default()
    }
    pub fn is_country(&self) -> bool {
        self.0.len() == 2
    }
    /// Does what holds in `other` hold here: is this the same place, or a part of it?
    pub fn lies_in(&self, other: &Place) -> bool {
        self == other || (other.is_country() && self.country() == other.as_str())
    }
}
/// So that it is found by its name.
impl Borrow<str> for Place {
    fn borrow(&self) -> &str {
        &self.0
    }
}
impl From<Country> for Place {
    fn from(country: Country) -> Self {
        Place(country.to_string())
    }
}
impl FromStr for Place {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let written = text.trim().to_ascii_uppercase();
        let (country, part) = match written.split_once('-') {
            Some((country, part)) => (country, Some(part)),
            None => (written.as_str(), None),
        };
        let is_country = country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_part = part.is_none_or(|part| {
            (1..=3).contains(&part.len())
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        });
        if is_country && is_part {
            Ok(Place(written))
        } else {
            Err(BadValue(
                "must be a country of ISO 3166-1 such as FR, or a part of one such as US-FL".into(),
            ))
        }
    }
}
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
impl JsonSchema for Place {
    fn schema_name() -> Cow<'static, str> {
        "Place".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z]{2}(-[A-Za-z0-9]{1,3})?$",
            "description": "A country (ISO 3166-1), or a part of one (ISO 3166-2).",
            "examples": ["US-FL"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_or_a_part_of_one() {
        for (given, kept) in [
            ("fr", "FR"),
            (" US-FL ", "US-FL"),
            ("us-dc", "US-DC"),
            ("ES-CT", "ES-CT"),
            ("FR-2A", "FR-2A"),
        ] {
            assert_eq!(given.parse::<Place>().unwrap().as_str(), kept);
        }
        for given in ["", "F", "FRA", "US-", "US-FLOR", "US-F L", "1A", "US_FL", "-FL"] {
            assert!(given.parse::<Place>().is_err(), "{given}");
        }
    }

    #[test]
    fn what_holds_in_a_country_holds_in_its_parts() {
        let place = |text: &str| text.parse::<Place>().unwrap();
        assert!(place("US-FL").lies_in(&place("US")) && place("US-FL").lies_in(&place("US-FL")));
        assert!(!place("US").lies_in(&place("US-FL")) && !place("US-FL").lies_in(&place("US-TX")));
    }
}
