//! Dates, as people say them.
use crate::conversation::phrases::words;
use chrono::NaiveDate;

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
