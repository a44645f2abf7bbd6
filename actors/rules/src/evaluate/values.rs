//! Numbers and labels, as people say them.
use super::{denials::denies, stems};
use crate::conversation::phrases::words;
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

/// Before a number these say that it counts nothing: it is something's name.
const NAMED: [&str; 16] = [
    "number",
    "order",
    "reference",
    "ref",
    "invoice",
    "code",
    "id",
    "ticket",
    "account",
    "phone",
    "nr",
    "nummer",
    "numero",
    "room",
    "zip",
    "pin",
];
/// Words from such a name to its number.
const NEAR: usize = 3;
/// Words that make another number of the one beside them.
const PARTS: [&str; 6] = ["half", "quarter", "third", "thousand", "million", "couple"];
/// Beyond it JSON's numbers are not exact everywhere.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// The number of a text, if there is one alone: in digits, or in English words up to 999. What only names something ("order
/// 4711") counts where the question asks for that.
pub fn number(text: &str, question: &str) -> Option<Value> {
    let said = words(text);
    let is_part = |word: &String| PARTS.contains(&word.as_str());
    if said.iter().any(is_part) || names_something(&said, question) {
        return None;
    }
    let digits = groups(text);
    match (digits.as_slice(), in_words(&said)) {
        ([only], None) => value(only),
        ([], Some(number)) => Some(Value::Number(number.into())),
        _ => None,
    }
}

/// Whether a number in it stands behind the name of a thing that the question does not ask for.
fn names_something(said: &[String], question: &str) -> bool {
    let asked = words(question);
    let is_digit = |word: &String| word.starts_with(|char: char| char.is_ascii_digit());
    said.iter().enumerate().any(|(at, word)| {
        NAMED.contains(&word.as_str()) && !asked.contains(word) && said[at + 1..].iter().take(NEAR).any(is_digit)
    })
}

/// The numbers that stand in digits.
fn groups(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..]
        .find(|char: char| char.is_ascii_digit())
        .map(|at| from + at)
    {
        let length = text[start..]
            .find(|char: char| !char.is_ascii_digit() && !matches!(char, '.' | ','))
            .unwrap_or(text.len() - start);
        // With the sign before it, and what that stands behind.
        let before = text[..start].char_indices().rev().nth(1).map_or(0, |(at, _)| at);
        found.push(text[before..start + length].trim_end_matches(['.', ',']));
        from = start + length;
    }
    found
}

/// `12`, `-3`, `2.5`, `2,5`, `1,200`, `1.200,50`: a mark before exactly three digits parts thousands.
fn value(group: &str) -> Option<Value> {
    let start = group.find(|char: char| char.is_ascii_digit())?;
    let found = &group[start..];
    let before: Vec<char> = group[..start].chars().rev().take(2).collect();
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
    let number: f64 = plain.parse().ok().filter(|number: &f64| number.abs() <= LARGEST)?;
    if let Ok(whole) = plain.parse::<i64>() {
        return Some(Value::Number(whole.into()));
    }
    Number::from_f64(number).map(Value::Number)
}

/// The number that is said in words, if it is only one.
fn in_words(words: &[String]) -> Option<i64> {
    let position = |list: &[&str], word: &str| list.iter().position(|known| *known == word).map(|at| at as i64);
    let mut found: Vec<i64> = Vec::new();
    // "One" alone is as often a pronoun: a number only if nothing else is.
    let mut is_one = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = |ahead: usize| words.get(at + ahead).map(String::as_str).unwrap_or_default();
        let hundreds = position(&ONES, word)
            .filter(|_| next(1) == "hundred")
            .map(|hundreds| (hundreds, 2))
            .or((word == "hundred").then_some((1, 1)));
        let (number, taken) = if let Some((hundreds, taken)) = hundreds {
            let taken = taken + usize::from(next(taken) == "and");
            let (rest, more) = words.get(at + taken..).and_then(below_hundred).unwrap_or((0, 0));
            (hundreds * 100 + rest, taken + more)
        } else if let Some((number, taken)) = words.get(at..).and_then(below_hundred) {
            (number, taken)
        } else if word == "dozen" {
            (12, 1)
        } else {
            at += 1;
            continue;
        };
        // "Two dozen".
        let dozens = if word != "dozen" && next(taken) == "dozen" {
            12
        } else {
            1
        };
        at += taken + usize::from(dozens > 1);
        match number * dozens {
            1 => is_one = true,
            number => found.push(number),
        }
    }
    match found.as_slice() {
        [] => is_one.then_some(1),
        [only] => Some(*only),
        _ => None,
    }
}

/// The number with which these words begin, and how many of them it takes.
fn below_hundred(words: &[String]) -> Option<(i64, usize)> {
    let word = words.first()?;
    let of = |list: &[&str], word: &String| list.iter().position(|known| known == word).map(|at| at as i64);
    match of(&TENS, word) {
        Some(tens) => {
            let ones = words
                .get(1)
                .and_then(|word| of(&ONES, word))
                .filter(|ones| (1..10).contains(ones));
            Some(((tens + 2) * 10 + ones.unwrap_or(0), 1 + usize::from(ones.is_some())))
        }
        None => of(&ONES, word).map(|ones| (ones, 1)),
    }
}

/// The label that is said whole, if no other is but as a part of it; else the one that shares most words, if it is only one.
pub fn choice(text: &str, language: &str, labels: &[String]) -> Option<String> {
    let labels = labels.get(..MAX_LABELS).unwrap_or(labels);
    let heard = format!(" {} ", words(text).join(" "));
    let plain = |label: &String| format!(" {} ", words(&label.replace('_', " ")).join(" "));
    let mut whole: Vec<&String> = labels
        .iter()
        .filter(|label| !plain(label).trim().is_empty() && heard.contains(&plain(label)))
        .collect();
    whole.sort_by_key(|label| std::cmp::Reverse(plain(label).len()));
    if let Some((longest, others)) = whole.split_first() {
        // "Dark red" is not red as well; "red or blue" is neither.
        let elsewhere = heard.replace(&plain(longest), " | ");
        let is_only = others.iter().all(|other| !elsewhere.contains(&plain(other)));
        return (is_only && !denies(&elsewhere, language)).then(|| (*longest).clone());
    }
    if denies(text, language) {
        return None;
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
