//! Where a workspace's live calls may ring: in the countries that the operator lets it call, and behind no prefix that the operator
//! has blocked. Pure; the API, the dispatcher and a transfer ask the same.
use crate::limits::Limits;
use entities::{
    Error, Result, tenant,
    values::{Countries, Country, E164, Prefixes},
};
use std::fmt;

#[derive(Clone, Debug)]
pub struct Reach {
    countries: Countries,
    blocked: Prefixes,
}

/// Why a number is not called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It rings there; `None`: in no country.
    Country {
        country: Option<Country>,
        allowed: String,
    },
    Prefix(String),
}

impl Reach {
    pub fn of(tenant: &tenant::Model, limits: &Limits) -> Result<Self> {
        Ok(Reach {
            countries: tenant.callable_countries()?,
            blocked: limits.blocked_prefixes.clone(),
        })
    }

    pub fn check(&self, number: &E164) -> Result<(), Beyond> {
        if let Some(prefix) = self.blocked.of(number) {
            return Err(Beyond::Prefix(prefix.to_owned()));
        }
        let country = number.country();
        if country.is_some_and(|country| self.countries.contains(country)) {
            return Ok(());
        }
        Err(Beyond::Country {
            country,
            allowed: self.countries.to_string(),
        })
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Beyond::Country { country, allowed } => {
                match country {
                    Some(country) => write!(f, "is in {country}")?,
                    None => write!(f, "is in no country")?,
                }
                write!(f, ", and this workspace may call {allowed} only: ask the operator")
            }
            Beyond::Prefix(prefix) => write!(f, "begins with {prefix}, which the operator does not allow"),
        }
    }
}

impl Beyond {
    /// As it is answered to whoever asked for a call to the number in that field.
    pub fn of_field(self, field: &'static str) -> Error {
        Error::Forbidden {
            field,
            reason: self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(countries: &str, blocked: &str) -> Reach {
        Reach {
            countries: Countries::parse(countries).unwrap(),
            blocked: Prefixes::parse(blocked).unwrap(),
        }
    }

    #[test]
    fn a_number_is_called_in_its_countries_and_behind_no_blocked_prefix() {
        let only = |country: Option<&str>| Beyond::Country {
            country: country.map(|country| country.parse().unwrap()),
            allowed: "AT,DE".into(),
        };
        for (number, expected) in [
            ("+4930901820", None),
            ("+43720123456", None),
            ("+12125550123", Some(only(Some("US")))),
            ("+881612345678", Some(only(None))),
            // The longest prefix is named, and says no in a country that is allowed, too.
            ("+49900123456", Some(Beyond::Prefix("+49900".into()))),
            ("+19005551234", Some(Beyond::Prefix("+1900".into()))),
        ] {
            let found = reach("DE,AT", "+49900,+4990,+1900")
                .check(&number.parse().unwrap())
                .err();
            assert_eq!(found, expected, "{number}");
        }
    }

    #[test]
    fn the_country_is_named_to_whoever_asked() {
        let beyond = reach("US", "").check(&"+4930901820".parse().unwrap()).unwrap_err();
        assert_eq!(
            beyond.to_string(),
            "is in DE, and this workspace may call US only: ask the operator"
        );
        let Error::Forbidden { field, .. } = beyond.of_field("to_number") else {
            panic!("it is forbidden");
        };
        assert_eq!(field, "to_number");
    }
}
