//! A number as registers write it, to the form in which it is dialled.
use entities::values::{Country, E164};

/// How the numbers of one country's register are read.
pub struct Plan {
    country: Country,
    /// With which its numbers begin in E.164.
    code: String,
    is_north_american: bool,
    /// A zero before its national numbers belongs to them, as in Italy; elsewhere it is only dialled.
    keeps_zero: bool,
}

impl Plan {
    pub fn of(country: Country) -> Self {
        let code = country.calling_code().unwrap_or_default();
        Plan {
            is_north_american: code == "1",
            keeps_zero: code == "39",
            code,
            country,
        }
    }

    /// E.164 of a number in international or in national form. Of numbers that no numbering plan here knows the form alone counts:
    /// plans grow, and a register of millions is not refused for one of their latest.
    pub fn read(&self, text: &str) -> Result<String, String> {
        let (plus, digits) = match text.strip_prefix('+') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        // Most of the largest lists: the numbering plans, which are slow, have nothing to add.
        let national = match digits.len() {
            11 if plus || self.is_north_american => digits.strip_prefix('1'),
            10 if !plus && self.is_north_american => Some(digits),
            _ => None,
        };
        if let Some(national) = national.filter(|national| is_north_american(national)) {
            return Ok(format!("+1{national}"));
        }
        let (all, is_plain) = digits_of(text);
        if !is_plain || !(7..=15).contains(&all.len()) {
            return Err("is not a phone number".into());
        }
        match E164::parse(text, self.country) {
            Ok(number) => Ok(number.as_str().to_owned()),
            Err(_) => self.by_form(plus, &all),
        }
    }

    /// An area code and the number behind it, each in a cell of its own, as the FTC gives them out.
    pub fn read_pair(&self, area: &str, local: &str) -> Result<String, String> {
        if !self.is_north_american {
            return Err("has two cells: name them in the first line, as `phone_number,listed_at`".into());
        }
        let national: String = [area, local]
            .iter()
            .flat_map(|part| part.chars())
            .filter(|letter| *letter != '-')
            .collect();
        match area.len() == 3 && is_north_american(&national) {
            true => Ok(format!("+1{national}")),
            false => Err("is not an area code and a number of seven digits".into()),
        }
    }

    fn by_form(&self, plus: bool, digits: &str) -> Result<String, String> {
        let national = match digits.strip_prefix('0') {
            Some(rest) if !self.keeps_zero => rest,
            Some(_) | None => digits,
        };
        let number = match plus {
            true => format!("+{digits}"),
            false => format!("+{}{national}", self.code),
        };
        match number.len() <= 16 && !number.starts_with("+0") {
            true => Ok(number),
            false => Err("is not a phone number".into()),
        }
    }
}

/// Its digits; and does it hold nothing else but what stands between them?
fn digits_of(text: &str) -> (String, bool) {
    let all = text.chars().filter(char::is_ascii_digit).collect();
    let behind = text.strip_prefix('+').unwrap_or(text);
    let is_plain = behind
        .chars()
        .all(|letter| letter.is_ascii_digit() || " -./()".contains(letter));
    (all, is_plain)
}

/// Ten digits; neither the area nor the exchange begins with 0 or 1. Source: North American Numbering Plan.
fn is_north_american(national: &str) -> bool {
    let bytes = national.as_bytes();
    bytes.iter().all(u8::is_ascii_digit) && matches!(bytes, [b'2'..=b'9', _, _, b'2'..=b'9', _, _, _, _, _, _])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(country: &str) -> Plan {
        Plan::of(country.parse().unwrap())
    }

    #[test]
    fn numbers_are_read_as_their_country_writes_them() {
        for (country, text, expected) in [
            ("US", "2125550123", Some("+12125550123")),
            ("US", "12125550123", Some("+12125550123")),
            ("US", "+12125550123", Some("+12125550123")),
            ("US", "(212) 555-0123", Some("+12125550123")),
            ("US", "212.555.0123", Some("+12125550123")),
            ("GB", "+12125550123", Some("+12125550123")),
            ("GB", "020 7946 0018", Some("+442079460018")),
            ("GB", "02079460018", Some("+442079460018")),
            ("GB", "+442079460018", Some("+442079460018")),
            ("IT", "06 6982 0001", Some("+390669820001")),
            ("IT", "3471234567", Some("+393471234567")),
            ("AU", "0412345678", Some("+61412345678")),
            // Of no plan that is known, and of the form of a number.
            ("GB", "0999 999 9999", Some("+449999999999")),
            ("US", "hello", None),
            ("US", "212555", None),
            ("US", "tel:2125550123", None),
            ("US", "2125550123 ext. 5", None),
            ("US", "2125550123;2125550124", None),
            ("US", "+1+2125550123", None),
            ("US", "", None),
            ("US", "12345678901234567", None),
            ("GB", "+44 20 7946 0018 x", None),
        ] {
            assert_eq!(plan(country).read(text).ok().as_deref(), expected, "{country} {text}");
        }
    }

    #[test]
    fn area_codes_have_cells_of_their_own_in_north_america_alone() {
        for (country, area, local, expected) in [
            ("US", "212", "5550123", Some("+12125550123")),
            ("US", "212", "555-0123", Some("+12125550123")),
            ("CA", "416", "5550123", Some("+14165550123")),
            ("US", "12", "15550123", None),
            ("US", "212", "555012", None),
            ("US", "112", "5550123", None),
            ("US", "area", "number", None),
            ("GB", "212", "5550123", None),
        ] {
            assert_eq!(
                plan(country).read_pair(area, local).ok().as_deref(),
                expected,
                "{country} {area},{local}"
            );
        }
    }

    proptest! {
        /// What is read without the numbering plans is read as they would have it: else it would never be found.
        #[test]
        fn whatever_can_be_dialled_is_found_by_the_form_in_which_it_is_dialled(area in 200_u32..1000, exchange in 200_u32..1000, line in 0_u32..10_000) {
            let national = format!("{area:03}{exchange:03}{line:04}");
            let read = plan("US").read(&national).unwrap();
            if let Ok(number) = E164::parse(&national, Country::US) {
                prop_assert_eq!(number.as_str(), read.as_str());
            }
            prop_assert_eq!(plan("DE").read(&format!("+1{national}")).unwrap(), read);
        }

        #[test]
        fn nothing_makes_it_fall_over(text in ".{0,40}", country in prop::sample::select(vec!["US", "GB", "IT", "AU", "DE"])) {
            if let Ok(number) = plan(country).read(&text) {
                prop_assert!(number.parse::<E164>().is_ok(), "{} from {}", number, text);
            }
        }
    }
}
