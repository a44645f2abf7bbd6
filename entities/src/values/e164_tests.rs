//! How numbers are typed, and which of them are refused or costly, country by country.
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
fn reads_what_lists_and_telephones_make_of_a_number() {
    for text in [
        "tel:+1-415-555-2671",
        "p:+14155552671",
        "=\"+14155552671\"",
        "Mobile: (415) 555-2671",
        "\u{260e} 415 555 2671",
        "TEL: +14155552671",
        "+1 415 555 2671 (home)",
        "+1 415 555 2671 mobile",
        "(415) 555-2671 [work]",
        "\u{202a}+1\u{a0}415\u{a0}555\u{2011}2671\u{202c}",
        "＋１ ４１５ ５５５ ２６７１",
        "+١٤١٥٥٥٥٢٦٧١",
        "+۱۴۱۵۵۵۵۲۶۷۱",
    ] {
        assert_eq!(us(text).unwrap(), "+14155552671", "{text}");
    }
    assert_eq!(us("+52 1 55 1234 5678").unwrap(), "+525512345678");
    assert_eq!(us("+52 55 1234 5678").unwrap(), "+525512345678");
    let german: Country = "DE".parse().unwrap();
    assert_eq!(E164::parse("030/901820", german).unwrap().as_str(), "+4930901820");
}
#[test]
fn an_extension_is_refused_by_its_name_and_never_left_out() {
    for (text, extension) in [
        ("+1 415 555 2671 ext. 5", "ext. 5"),
        ("+1 415 555 2671 x5", "x5"),
        ("+14155552671;ext=5", "ext=5"),
        ("+14155552671,,5", "5"),
        ("(415) 555-2671 #12", "#12"),
        ("415 555 2671 Extension 12", "Extension 12"),
        ("415 555 2671 or 415 555 2672", "or 415 555 2672"),
    ] {
        let why = us(text).unwrap_err();
        assert!(why.contains(&format!("`{extension}`")), "{text}: {why}");
        let line = E164::parse_line(text, Country::US);
        match text.contains(" or ") {
            true => assert!(line.unwrap_err().contains("more than one"), "{text}"),
            false => assert_eq!(line.unwrap().as_str(), "+14155552671", "{text}"),
        }
    }
    for words in ["1-800-FLOWERS", "1-800-GOFEDEX", "nobody"] {
        assert!(us(words).is_err(), "{words}");
    }
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
fn costly_numbers_are_known_in_every_country() {
    let mut found = 0;
    for country in phonenumber::metadata::DATABASE.iter() {
        let example = |kind: Type| {
            let national = country.descriptors().get(kind)?.example()?;
            let number = E164(format!("+{}{national}", country.country_code()));
            number.as_str().parse::<E164>().ok()
        };
        for kind in [Type::PremiumRate, Type::SharedCost] {
            if let Some(number) = example(kind) {
                found += 1;
                assert!(
                    number.costly_kind().is_some(),
                    "{kind:?} in {}: {}",
                    country.id(),
                    number.as_str()
                );
            }
        }
        let is_satellite = |number: &E164| number.as_str().starts_with("+88") || number.as_str().starts_with("+870");
        for kind in [Type::Mobile, Type::FixedLine, Type::TollFree] {
            if let Some(number) = example(kind).filter(|number| !is_satellite(number)) {
                assert_eq!(
                    number.costly_kind(),
                    None,
                    "{kind:?} in {}: {}",
                    country.id(),
                    number.as_str()
                );
            }
        }
    }
    assert!(found > 150, "{found}");
    for free in ["+64508834773", "+554370012345", "+863109612345"] {
        let number: E164 = free.parse().unwrap();
        assert_eq!(number.costly_kind(), None, "{free}");
    }
    assert!(
        E164::parse("+22709123456", Country::US)
            .unwrap()
            .costly_kind()
            .is_some()
    );
}
#[test]
fn logs_see_four_digits() {
    assert_eq!(
        format!("{:?}", E164::parse("+15002345670", Country::US).unwrap()),
        "…5670"
    );
}
