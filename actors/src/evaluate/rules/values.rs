//! Numbers, labels and dates, as people say them.
use super::stems;
use crate::talk::phrases::words;
use chrono::NaiveDate;
use serde_json::{Number, Value};
use std::collections::HashSet;

/// Labels that a choice may have.
const MAX_LABELS: usize = 100;
const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = [
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// The first number of a text: in digits, or in English words up to 999.
pub fn number(text: &str) -> Option<Value> {
    digits(text).or_else(|| in_words(&words(text)).map(|number| Value::Number(number.into())))
}

/// `12`, `-3`, `2.5`, `2,5`, `1,200`, `1.200,50`: a mark before exactly three digits parts thousands.
fn digits(text: &str) -> Option<Value> {
    let start = text.find(|char: char| char.is_ascii_digit())?;
    let length = text[start..]
        .find(|char: char| !char.is_ascii_digit() && !matches!(char, '.' | ','))
        .unwrap_or(text.len() - start);
    let found = text[start..start + length].trim_end_matches(['.', ',']);
    let before: Vec<char> = text[..start].chars().rev().take(2).collect();
    let is_negative =
        matches!(before.first(), Some('-' | '−')) && !before.get(1).is_some_and(|char| char.is_alphanumeric());
    let sign = if is_negative { "-" } else { "" };
    let last = found.rfind(['.', ',']);
    let is_grouped = |at: usize| found.len() - at == 4 && !found.starts_with('0') && at <= 3;
    let marks: HashSet<char> = found.chars().filter(|char| !char.is_ascii_digit()).collect();
    let many = found.matches(['.', ',']).count() > 1;
    let plain: String = match last {
        // One kind of mark, several times, or once before three digits: thousands.
        Some(at) if marks.len() == 1 && (many || is_grouped(at)) => found.replace(['.', ','], ""),
        Some(at) => format!("{}.{}", found[..at].replace(['.', ','], ""), &found[at + 1..]),
        None => found.to_owned(),
    };
    let plain = format!("{sign}{plain}");
    if let Ok(whole) = plain.parse::<i64>() {
        return Some(Value::Number(whole.into()));
    }
    let number = plain.parse::<f64>().ok().and_then(Number::from_f64)?;
    Some(Value::Number(number))
}

fn in_words(words: &[String]) -> Option<i64> {
    let position = |list: &[&str], word: &str| list.iter().position(|known| *known == word).map(|at| at as i64);
    // "One" alone is as often a pronoun: a number only if nothing better follows.
    let mut weak = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = |ahead: usize| words.get(at + ahead).map(String::as_str).unwrap_or_default();
        let ones = position(&ONES, word);
        if let Some(hundreds) = ones
            .filter(|_| next(1) == "hundred")
            .or((word == "hundred").then_some(1))
        {
            let rest = if word == "hundred" { at + 1 } else { at + 2 };
            let rest = rest + usize::from(words.get(rest).is_some_and(|word| word == "and"));
            return Some(hundreds * 100 + words.get(rest..).map_or(0, |words| below_hundred(words).unwrap_or(0)));
        }
        if let Some(number) = words.get(at..).and_then(below_hundred) {
            if number != 1 {
                return Some(number);
            }
            weak = weak.or(Some(number));
        } else if word == "dozen" {
            return Some(12);
        }
        at += 1;
    }
    weak
}

/// The number with which these words begin.
fn below_hundred(words: &[String]) -> Option<i64> {
    let word = words.first()?;
    let of = |list: &[&str], word: &String| list.iter().position(|known| known == word).map(|at| at as i64);
    match of(&TENS, word) {
        Some(tens) => {
            let ones = words
                .get(1)
                .and_then(|word| of(&ONES, word))
                .filter(|ones| (1..10).contains(ones));
            Some((tens + 2) * 10 + ones.unwrap_or(0))
        }
        None => of(&ONES, word),
    }
}

/// The label that is said whole, the longest of them; else the one that shares most words, if it is only one.
pub fn choice(text: &str, labels: &[String]) -> Option<String> {
    let labels = labels.get(..MAX_LABELS).unwrap_or(labels);
    let heard = format!(" {} ", words(text).join(" "));
    let whole = labels.iter().filter(|label| {
        let plain = words(&label.replace('_', " ")).join(" ");
        !plain.is_empty() && heard.contains(&format!(" {plain} "))
    });
    if let Some(label) = whole.max_by_key(|label| label.len()) {
        return Some(label.clone());
    }
    let said: HashSet<String> = stems(text).into_iter().collect();
    let shared = |label: &String| {
        stems(&label.replace('_', " "))
            .iter()
            .filter(|stem| said.contains(*stem))
            .count()
    };
    let counts: Vec<usize> = labels.iter().map(shared).collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let mut best = labels.iter().zip(&counts).filter(|(_, count)| **count == most);
    match (best.next(), best.next()) {
        (Some((label, _)), None) => Some(label.clone()),
        _ => None,
    }
}

/// How each month begins, accents folded, in the languages of the phrase lists; the first list that fits.
const MONTHS: [&[&str]; 12] = [
    &["januar", "jan", "janv", "enero", "gennaio", "janei", "styc", "ocak"],
    &["febru", "feb", "fevr", "fever", "febb", "luty", "lutego", "subat"],
    &[
        "march", "marz", "mars", "marzo", "marco", "maart", "marzec", "marca", "mart",
    ],
    &["april", "apr", "avril", "abril", "aprile", "kwie", "nisan"],
    &["may", "mai", "mayo", "maggio", "maio", "mei", "maja", "maj", "mayis"],
    &[
        "june", "jun", "juni", "juin", "junio", "giugno", "junho", "czerw", "haziran",
    ],
    &["july", "jul", "juli", "juillet", "luglio", "lipca", "lipiec", "temmuz"],
    &["august", "aug", "aout", "agost", "augustus", "sierp", "agustos"],
    &["sept", "sep", "settembre", "setembro", "wrze", "eylul"],
    &["octob", "oct", "oktob", "okt", "ottobre", "outubro", "pazdz", "ekim"],
    &["novem", "nov", "listop", "kasim"],
    &["decem", "dec", "dezem", "dez", "dicie", "dicem", "grud", "aralik"],
];

/// A whole date: `2027-03-02`, `2.3.2027`, `3/2/2027` (by day first where English is not the language), "March 2nd, 2027".
pub fn date(text: &str, language: &str) -> Option<NaiveDate> {
    let folded = words(text);
    let numbers: Vec<Option<i64>> = folded.iter().map(|word| day_or_year(word)).collect();
    let american = matches!(language.to_ascii_lowercase().as_str(), "" | "en" | "en-us" | "en_us");
    for at in 0..folded.len() {
        if let Some(month) = month(&folded[at]) {
            let number = |at: Option<usize>| at.and_then(|at| numbers.get(at).copied().flatten());
            let joined = |at: Option<usize>| {
                at.filter(|at| {
                    folded
                        .get(*at)
                        .is_some_and(|word| matches!(word.as_str(), "of" | "de" | "den"))
                })
            };
            let before = at.checked_sub(1);
            let before = joined(before).map_or(before, |at| at.checked_sub(1));
            let after = joined(Some(at + 1)).map_or(at + 1, |at| at + 1);
            let (day, year) = match (number(before), number(Some(after)), number(Some(after + 1))) {
                (Some(day), Some(year), _) if day <= 31 && year > 31 => (day, year),
                (_, Some(day), Some(year)) if day <= 31 && year > 31 => (day, year),
                _ => continue,
            };
            return whole(year, month, day);
        }
    }
    let slashed = text.contains('/');
    let triples = numbers.windows(3).filter_map(|three| match three {
        [Some(one), Some(two), Some(three)] => Some((*one, *two, *three)),
        _ => None,
    });
    triples
        .into_iter()
        .find_map(|(one, two, three)| match (one > 31, slashed && american) {
            (true, _) => whole(one, two, three),
            (false, true) => whole(three, one, two).or_else(|| whole(three, two, one)),
            (false, false) => whole(three, two, one),
        })
}

/// A number, or one with an ending: "2nd", "1er".
fn day_or_year(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let ending = &word[digits.len()..];
    let known = ["", "st", "nd", "rd", "th", "er", "e", "o", "a"].contains(&ending);
    digits.parse().ok().filter(|_| known && digits.len() <= 4)
}

fn month(word: &str) -> Option<i64> {
    let known = MONTHS.iter().position(|names| {
        // Short names are whole words, or "may" would be in "maybe".
        names.iter().any(|name| {
            word == *name
                || (name.len() >= 5 && word.starts_with(name)
                    || name.len() == 4 && word.starts_with(name) && word.len() >= 7)
        })
    });
    known.map(|at| at as i64 + 1)
}

fn whole(year: i64, month: i64, day: i64) -> Option<NaiveDate> {
    let year = if year < 100 { year + 2000 } else { year };
    let year = i32::try_from(year).ok().filter(|year| (1900..2200).contains(year))?;
    NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)
}
