use super::BadValue;
use schemars::JsonSchema;
use sea_orm::{DbErr, DeriveValueType, TryFromU64};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{borrow::Cow, fmt, str::FromStr};

/// A phone number as the network writes it: `+`, then at most 15 digits (ITU-T E.164). `parse` is the only way in.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, DeriveValueType)]
#[sea_orm(value_type = "String")]
#[serde(transparent)]
#[schemars(description = "E.164: `+`, then at most 15 digits.")]
pub struct E164(String);

/// Where a number is a key, the database never makes it.
impl TryFromU64 for E164 {
    fn try_from_u64(_: u64) -> Result<Self, DbErr> {
        Err(DbErr::ConvertFromU64("E164"))
    }
}

impl E164 {
    /// Reads a number however it was typed; one without `+` is read as `country`'s national form.
    /// Validity is that of libphonenumber's numbering plans; the sandbox block is always valid.
    pub fn parse(text: &str, country: Country) -> Result<Self, String> {
        let text = text.trim();
        if is_sandbox(text) && text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
            return Ok(E164(text.to_owned()));
        }
        if text.is_empty() {
            return Err("is empty".into());
        }
        if text.chars().count() > 40 {
            return Err("is too long for a phone number".into());
        }
        let country = if text.starts_with('+') { None } else { Some(country.0) };
        let number = phonenumber::parse(country, text).map_err(|error| format!("is not a phone number ({error})"))?;
        let digits = format!("+{}{}", number.code().value(), number.national());
        if digits.len() > 16 {
            return Err("has more than 15 digits".into());
        }
        if !is_sandbox(&digits) && !number.is_valid() {
            return Err("is not a number of any numbering plan".into());
        }
        Ok(E164(digits))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Does it lie in the sandbox's own block `+1500[2-9]xxxxxx`? Source: CONTRACT §7.
    pub fn is_sandbox(&self) -> bool {
        is_sandbox(&self.0)
    }
    /// Who calls in the sandbox where a workspace has no number of its own. Nobody's: it cannot be given, or called.
    /// Source: CONTRACT §10.
    pub fn sandbox_caller() -> Self {
        E164("+15001000000".to_owned())
    }
    /// The kinds of numbers that are refused unless the operator allows them: calls to them cost a fortune.
    pub fn costly_kind(&self) -> Option<&'static str> {
        if ["+870", "+881", "+882", "+883"]
            .iter()
            .any(|code| self.0.starts_with(code))
        {
            return Some("a satellite or international-network number");
        }
        let number = phonenumber::parse(None, &self.0).ok()?;
        match number.number_type(&phonenumber::metadata::DATABASE) {
            phonenumber::Type::PremiumRate => Some("a premium-rate number"),
            phonenumber::Type::SharedCost => Some("a shared-cost number"),
            _ => None,
        }
    }
    /// The first digits of the numbers of the land in which it rings, if it is a mobile phone and nothing else: its country's;
    /// in North America, which is many countries, its area code's. (In the United States and Canada the two cannot be told
    /// apart, and a mobile number has the prefix of a place.)
    pub fn land_if_mobile(&self) -> Option<&str> {
        if self.is_sandbox() {
            return None;
        }
        let number = phonenumber::parse(None, &self.0).ok()?;
        if number.number_type(&phonenumber::metadata::DATABASE) != phonenumber::Type::Mobile {
            return None;
        }
        let digits = match (number.code().value(), number.country().id()) {
            (1, _) => 4,
            // Beside Russia.
            (7, Some(phonenumber::country::Id::KZ)) => 2,
            (code, _) => code.to_string().len(),
        };
        self.0.get(1..=digits)
    }
    /// The digit that fixes a sandbox call's outcome.
    pub fn last_digit(&self) -> u8 {
        self.0.bytes().last().map_or(0, |byte| byte.wrapping_sub(b'0'))
    }
}

fn is_sandbox(digits: &str) -> bool {
    digits.len() == 12 && digits.starts_with("+1500") && matches!(digits.as_bytes()[5], b'2'..=b'9')
}

impl fmt::Display for E164 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
/// What logs see: only the last four digits.
impl fmt::Debug for E164 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "…{}", &self.0[self.0.len().saturating_sub(4)..])
    }
}
impl FromStr for E164 {
    type Err = BadValue;
    /// Reads the international form (and what the database holds).
    fn from_str(text: &str) -> Result<Self, BadValue> {
        // The stored form is what `parse` made: no need to ask the numbering plans again for every row read.
        let digits = text.strip_prefix('+').unwrap_or_default();
        if (3..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            Ok(E164(text.to_owned()))
        } else {
            Err(BadValue("is not in the form +<digits>".into()))
        }
    }
}
impl<'de> Deserialize<'de> for E164 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if !text.trim().starts_with('+') {
            return Err(de::Error::custom(
                "must start with + and the country code (E.164), as +15002345670",
            ));
        }
        E164::parse(&text, Country::US).map_err(de::Error::custom)
    }
}

/// The country whose national form a number without `+` has: an ISO 3166-1 alpha-2 code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Country(phonenumber::country::Id);

impl Country {
    pub const US: Country = Country(phonenumber::country::US);

    /// All that have numbers of their own, by their letters.
    pub fn all() -> Vec<Country> {
        let ids = phonenumber::metadata::DATABASE.iter().map(|country| country.id());
        let mut all: Vec<Country> = ids.filter_map(|id| id.parse().ok()).collect();
        all.sort_by_key(Country::to_string);
        all
    }

    /// The digits with which its numbers begin.
    pub fn calling_code(self) -> Option<String> {
        let metadata = phonenumber::metadata::DATABASE.by_id(self.0.as_ref())?;
        Some(metadata.country_code().to_string())
    }
}
impl FromStr for Country {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Country)
            .map_err(|_| format!("`{text}` is not a country: use the two letters of ISO 3166-1, as US or DE"))
    }
}
impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn us(text: &str) -> Result<String, String> {
        E164::parse(text, Country::US).map(|number| number.as_str().to_owned())
    }
    #[test]
    fn reads_a_number_however_it_was_typed() {
        for text in [
            "+15002345670",
            " +1 500-234-5670 ",
            "(500) 234-5670",
            "500.234.5670",
            "1-500-234-5670",
            "5002345670",
        ] {
            assert_eq!(us(text).unwrap(), "+15002345670", "{text}");
        }
        assert_eq!(us("+49 30 901820").unwrap(), "+4930901820");
        let german: Country = "DE".parse().unwrap();
        assert_eq!(E164::parse("030 901820", german).unwrap().as_str(), "+4930901820");
    }
    #[test]
    fn every_country_is_listed_once_and_can_be_read_again() {
        let all: Vec<String> = Country::all().iter().map(Country::to_string).collect();
        assert!(all.len() > 200 && all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
        assert!(
            ["AT", "DE", "GB", "US"]
                .iter()
                .all(|wanted| all.iter().any(|it| it == wanted))
        );
        assert!(all.iter().all(|it| it.parse::<Country>().is_ok()));
    }
    #[test]
    fn refuses_what_is_no_number() {
        for text in [
            "",
            "12",
            "not a number",
            "+",
            "+999999",
            "+1 500",
            "💥",
            "+1555",
            &"1".repeat(50),
        ] {
            assert!(us(text).is_err(), "{text}");
        }
    }
    #[test]
    fn costly_numbers_are_known() {
        let kind = |text: &str| E164::parse(text, Country::US).unwrap().costly_kind();
        assert_eq!(kind("+1 900 234 5678"), Some("a premium-rate number"));
        assert_eq!(kind("+49 900 1234567"), Some("a premium-rate number"));
        assert_eq!(kind("+49 180 5123456"), Some("a shared-cost number"));
        assert_eq!(
            kind("+881 612345678"),
            Some("a satellite or international-network number")
        );
        for text in ["+12125550123", "+4930901820", "+18002345678", "+15002345670"] {
            assert_eq!(kind(text), None, "{text}");
        }
    }
    #[test]
    fn logs_see_four_digits() {
        assert_eq!(
            format!("{:?}", E164::parse("+15002345670", Country::US).unwrap()),
            "…5670"
        );
    }
}
