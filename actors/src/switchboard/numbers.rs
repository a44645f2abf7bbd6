//! How numbers and addresses are written to a peer, and read from it.
//!
//! Written as the trunk's `number_format` says; read however they may be meant, because peers do not keep to one form.
use adapters::trunk::uri_parameter;
use entities::{
    sip_trunk::{Definition, NumberFormat},
    values::{Country, E164},
};

/// As its trunk wants it. `home`: the workspace's country.
pub fn written(number: &E164, format: NumberFormat, home: Country) -> String {
    let digits = number.as_str().trim_start_matches('+').to_owned();
    match format {
        NumberFormat::E164Plus => number.as_str().to_owned(),
        NumberFormat::E164 => digits,
        NumberFormat::National if number.country() == Some(home) => number.national_digits().unwrap_or(digits),
        NumberFormat::National => digits,
    }
}

/// A peer's, as its trunk writes them, or else however it may be meant: with `+` or without, or as it is dialled at home.
pub fn read(user: &str, format: NumberFormat, home: Country) -> Option<E164> {
    let digits: String = user
        .chars()
        .filter(|c| !matches!(c, '-' | '.' | '(' | ')' | ' '))
        .collect();
    let bare = digits.strip_prefix('+').unwrap_or(&digits);
    let is_number = bare.bytes().all(|byte| byte.is_ascii_digit()) && (3..=24).contains(&bare.len());
    if !is_number {
        return None;
    }
    let at_home = || E164::parse(&digits, home).ok();
    if bare.len() < digits.len() {
        return at_home();
    }
    let abroad = || E164::parse(&format!("+{}", bare.strip_prefix("00").unwrap_or(bare)), home).ok();
    match (format, bare.starts_with('0')) {
        (NumberFormat::E164Plus | NumberFormat::E164, false) => abroad().or_else(at_home),
        (NumberFormat::E164Plus | NumberFormat::E164, true) if bare.starts_with("00") => abroad().or_else(at_home),
        (NumberFormat::E164Plus | NumberFormat::E164, true) | (NumberFormat::National, _) => at_home().or_else(abroad),
    }
}

/// The Request-URI of a call, and To.
pub fn callee(number: &E164, trunk: &Definition, home: Country) -> String {
    let user = written(number, trunk.number_format, home);
    format!("sip:{user}@{}{}", trunk.host, uri_parameter(trunk.transport))
}

/// Who calls: From, and where the trunk wants it P-Asserted-Identity.
pub fn caller(number: &E164, trunk: &Definition, home: Country) -> String {
    let user = written(number, trunk.number_format, home);
    match &trunk.from_domain {
        Some(domain) => format!("<sip:{user}@{domain}>"),
        None => format!("<sip:{user}@{}>", trunk.host.domain()),
    }
}

/// The routes that a request begins with.
pub fn first_routes(trunk: &Definition) -> Vec<String> {
    let proxy = trunk.outbound_proxy.iter();
    proxy
        .map(|proxy| format!("<sip:{proxy}{};lr>", uri_parameter(trunk.transport)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> E164 {
        E164::parse(text, Country::US).unwrap()
    }

    #[test]
    fn each_trunk_gets_numbers_as_it_wants_them() {
        let germany: Country = "DE".parse().unwrap();
        for (text, format, home, expected) in [
            ("+4930901820", NumberFormat::E164Plus, germany, "+4930901820"),
            ("+4930901820", NumberFormat::E164, germany, "4930901820"),
            ("+4930901820", NumberFormat::National, germany, "030901820"),
            ("+4930901820", NumberFormat::National, Country::US, "4930901820"),
            ("+14155550100", NumberFormat::National, Country::US, "4155550100"),
        ] {
            assert_eq!(written(&number(text), format, home), expected, "{text} {format:?}");
        }
    }

    #[test]
    fn a_peers_numbers_are_read_however_it_writes_them() {
        let germany: Country = "DE".parse().unwrap();
        let (plus, national) = (NumberFormat::E164Plus, NumberFormat::National);
        for (user, format, home, expected) in [
            ("+4930901820", plus, Country::US, Some("+4930901820")),
            ("4930901820", plus, Country::US, Some("+4930901820")),
            ("004930901820", plus, germany, Some("+4930901820")),
            ("030901820", plus, germany, Some("+4930901820")),
            ("4155550100", national, Country::US, Some("+14155550100")),
            ("14155550100", plus, Country::US, Some("+14155550100")),
            ("anonymous", plus, Country::US, None),
            ("+", plus, Country::US, None),
            ("", plus, Country::US, None),
        ] {
            assert_eq!(read(user, format, home).as_ref().map(E164::as_str), expected, "{user}");
        }
    }
}
