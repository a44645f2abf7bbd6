use super::BadValue;
use phonenumber::{Metadata, Type};
use schemars::JsonSchema;
use sea_orm::{DbErr, DeriveValueType, TryFromU64};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    str::FromStr,
};

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
        let typed = Typed::read(text)?;
        match typed.extension {
            Some(extension) => Err(format!(
                "has an extension (`{extension}`), which cannot be dialled: give a direct number"
            )),
            None => E164::of_digits(&typed.number, country),
        }
    }

    /// The same, of the line itself, whatever extension is behind it. What may be a second number is not an extension.
    pub fn parse_line(text: &str, country: Country) -> Result<Self, String> {
        let typed = Typed::read(text)?;
        let behind = typed.extension.as_deref().unwrap_or_default();
        if behind.chars().filter(char::is_ascii_digit).count() > LONGEST_EXTENSION {
            return Err("holds more than one number: give each its own".into());
        }
        E164::of_digits(&typed.number, country)
    }

    fn of_digits(text: &str, country: Country) -> Result<Self, String> {
        if is_sandbox(text) && text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
            return Ok(E164(text.to_owned()));
        }
        let country = if text.starts_with('+') { None } else { Some(country.0) };
        let number = phonenumber::parse(country, text)
            .map_err(|_| "is not a phone number; write it with + and its country code, as +14155550100".to_owned())?;
        let mut digits = format!("+{}{}", number.code().value(), number.national());
        // Mexico's mobile phones had a 1 behind the country's code until 2019, and still have it in many lists.
        if digits.len() == 14 && digits.starts_with("+521") {
            digits.remove(3);
            return E164::of_digits(&digits, Country::US);
        }
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
        let code = phonenumber::parse(None, &self.0).ok()?.code().value();
        // With its zeros: the library's own look leaves them out, and several countries' premium numbers begin with one.
        let national = self.0.get(1 + code.to_string().len()..)?;
        let plans = phonenumber::metadata::DATABASE.by_code(&code)?;
        let is = |kind: Type| {
            let is_of = |plan: &&Metadata| {
                let numbers = plan
                    .descriptors()
                    .get(kind)
                    .filter(|numbers| numbers.is_match(national));
                // The library's patterns are held to the beginning only.
                let whole = numbers.and_then(|numbers| numbers.national_number().find(national));
                whole.is_some_and(|found| found.end() == national.len())
            };
            plans.iter().any(is_of)
        };
        if is(Type::PremiumRate) {
            Some("a premium-rate number")
        } else {
            is(Type::SharedCost).then_some("a shared-cost number")
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
        if number.number_type(&phonenumber::metadata::DATABASE) != Type::Mobile {
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
    /// Where it rings; `None`: in no country, as satellites and international networks.
    pub fn country(&self) -> Option<Country> {
        let number = phonenumber::parse(None, &self.0).ok()?;
        let code = number.code().value();
        // The library leaves out the zero with which Italian numbers begin, and then finds none of the code's countries. Where
        // a code is shared by many countries that do not begin so, nothing is guessed.
        let first = || {
            let plans = phonenumber::metadata::DATABASE.by_code(&code)?;
            let main = plans.first().filter(|_| !matches!(code, 1 | 7))?;
            main.id().parse().ok()
        };
        number.country().id().or_else(first).map(Country)
    }
    /// Its digits as they are dialled inside its country, with whatever is dialled before them there: `030901820`, `4155550100`.
    pub fn national_digits(&self) -> Option<String> {
        let number = phonenumber::parse(None, &self.0).ok()?;
        let mut written = String::new();
        write!(written, "{}", number.format().mode(phonenumber::Mode::National)).ok()?;
        let digits: String = written.chars().filter(char::is_ascii_digit).collect();
        (!digits.is_empty()).then_some(digits)
    }
    /// The digit that fixes a sandbox call's outcome.
    pub fn last_digit(&self) -> u8 {
        self.0.bytes().last().map_or(0, |byte| byte.wrapping_sub(b'0'))
    }
}

/// Digits of an extension; with more it may be a number.
const LONGEST_EXTENSION: usize = 6;

/// A number as somebody typed it, taken apart.
struct Typed {
    number: String,
    extension: Option<String>,
}

impl Typed {
    /// A label before it, as `tel:`, or behind it, as `(home)`, is passed over.
    fn read(text: &str) -> Result<Self, String> {
        let plain: String = text.chars().filter_map(plain).collect();
        let plain = plain.trim();
        if plain.is_empty() {
            return Err("is empty".into());
        }
        if plain.chars().count() > 40 {
            return Err("is too long for a phone number".into());
        }
        let begins = plain.find(|char: char| char.is_ascii_digit() || "+(".contains(char));
        let plain = &plain[begins.unwrap_or(plain.len())..];
        let is_part = |char: char| char.is_ascii_digit() || " +-./()[]~".contains(char);
        let (number, rest) = plain.split_at(plain.find(|char| !is_part(char)).unwrap_or(plain.len()));
        if !number.contains(|char: char| char.is_ascii_digit()) {
            return Err("has no digits".into());
        }
        let has_digits = rest.contains(|char: char| char.is_ascii_digit());
        let extension = has_digits.then(|| rest.trim_start_matches([';', ',', ' ']).trim_end().to_owned());
        // The bracket of a label.
        let number = number.trim_end_matches([' ', '-', '/', '(', '[']).to_owned();
        Ok(Typed { number, extension })
    }
}

/// As a keyboard would have typed it: digits of other scripts, wide signs and long dashes; marks that nobody sees are left out.
fn plain(char: char) -> Option<char> {
    const ZEROS: [char; 5] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{ff10}'];
    let digit = |zero: char| u32::from(char).checked_sub(u32::from(zero)).filter(|value| *value < 10);
    if let Some(value) = ZEROS.into_iter().find_map(digit) {
        return char::from_digit(value, 10);
    }
    match char {
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}' => None,
        '\u{ff0b}' => Some('+'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ff0d}' | '\u{30fc}' => Some('-'),
        '\u{ff08}' => Some('('),
        '\u{ff09}' => Some(')'),
        '\u{ff0e}' => Some('.'),
        '\u{ff0f}' => Some('/'),
        _ if char.is_whitespace() => Some(' '),
        _ => Some(char),
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
#[path = "e164_tests.rs"]
mod tests;
