//! The area codes of North America that a register's file covers: a copy of some of them says nothing of numbers with another.
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Three digits each, such as 212.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, FromJsonQueryResult)]
#[serde(transparent)]
pub struct AreaCodes(pub BTreeSet<u16>);

impl AreaCodes {
    /// Of `212,646`. Errors say what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let codes = text.split(',').map(str::trim).map(|code| {
            let is_one = matches!(code.as_bytes(), [b'2'..=b'9', b'0'..=b'9', b'0'..=b'9']);
            let read = code.parse::<u16>().ok().filter(|_| is_one);
            read.ok_or_else(|| {
                format!("`{code}` is not an area code: give three digits each, with commas between them")
            })
        });
        codes.collect::<Result<_, _>>().map(AreaCodes)
    }

    /// That of a number in E.164 is among them from now on, if it has one.
    pub fn note(&mut self, number: &str) {
        self.0.extend(area_code(number));
    }

    /// Does a copy of these area codes know of that number, in E.164? A number without one is not of North America, and is listed in no
    /// register of it.
    pub fn cover(&self, number: &str) -> bool {
        area_code(number).is_none_or(|code| self.0.contains(&code))
    }
}

fn area_code(number: &str) -> Option<u16> {
    let national = number.strip_prefix("+1").filter(|national| national.len() == 10)?;
    national.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(all: &[u16]) -> AreaCodes {
        AreaCodes(all.iter().copied().collect())
    }

    #[test]
    fn they_are_read_one_by_one() {
        for (text, expected) in [
            ("212", Some(codes(&[212]))),
            ("646, 212,646", Some(codes(&[212, 646]))),
            ("", None),
            ("212,", None),
            ("112", None),
            ("21", None),
            ("2125", None),
            ("+12", None),
            ("212;646", None),
        ] {
            assert_eq!(AreaCodes::parse(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn they_cover_their_own_numbers_and_those_that_have_none() {
        let mut covered = AreaCodes::default();
        covered.note("+12125550123");
        covered.note("+442079460018");
        assert_eq!(covered, codes(&[212]));
        for (number, expected) in [
            ("+12125550199", true),
            ("+16465550123", false),
            ("+442079460018", true),
            ("+390669820001", true),
        ] {
            assert_eq!(covered.cover(number), expected, "{number}");
        }
    }
}
