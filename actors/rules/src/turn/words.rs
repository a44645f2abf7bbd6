//! What some words say about the turn that they stand in: is the sentence whole, and is it more than a sign that one listens?
use super::vocabulary::Vocabulary;

/// Words of the longest sign that one listens, such as `uh-huh, okay, I see`.
const LONGEST_SIGN: usize = 6;

/// In lower case and without marks; `it's` is one word, `uh-huh` two.
fn plain(text: &str) -> Vec<String> {
    let is_inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '’');
    let words = text.split(|letter: char| !is_inside(letter));
    let bare = words.map(|word| word.trim_matches(['\'', '’']).replace('’', "'").to_lowercase());
    bare.filter(|word| !word.is_empty()).collect()
}

/// How many there are.
pub fn count(text: &str) -> usize {
    plain(text).len()
}

/// The same words, whatever their marks and capitals.
pub fn same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

/// A mark says that the sentence is over.
pub fn ends_sentence(text: &str) -> bool {
    let text = text.trim_end_matches(|mark: char| mark.is_whitespace() || matches!(mark, '"' | '”' | '»' | ')'));
    text.ends_with(['.', '!', '?', '。', '！', '？']) && !is_open_ended(text)
}

/// It trails off.
fn is_open_ended(text: &str) -> bool {
    text.ends_with("..") || text.ends_with([',', ';', ':', '-', '–', '—', '…'])
}

/// Nothing more needs to come: the last word is none that another one must follow.
pub fn is_finished(text: &str, vocabulary: &Vocabulary) -> bool {
    let text = text.trim();
    let words = plain(text);
    let Some(last) = words.last() else { return true };
    if is_open_ended(text) {
        return false;
    }
    if text.ends_with(['?', '？']) {
        return true;
    }
    if vocabulary.open.contains(&last.as_str()) {
        return false;
    }
    let before = words.len().checked_sub(2).map(|at| words[at].as_str());
    let hangs = vocabulary.hanging.contains(&last.as_str())
        && vocabulary.hanging_after.is_none_or(|needed| before == Some(needed));
    !hangs && (ends_sentence(text) || !vocabulary.weak.contains(&last.as_str()))
}

/// Nothing but signs that one listens: `uh-huh`, `okay, I see`.
pub fn is_backchannel(text: &str, vocabulary: &Vocabulary) -> bool {
    let words = plain(text);
    if words.is_empty() || words.len() > LONGEST_SIGN {
        return false;
    }
    let mut rest = &words[..];
    while let [first, after @ ..] = rest {
        let pair = after.first().map(|second| format!("{first} {second}"));
        if pair.is_some_and(|pair| vocabulary.signs.contains(&pair.as_str())) {
            rest = &after[1..];
        } else if vocabulary.signs.contains(&first.as_str()) {
            rest = after;
        } else {
            return false;
        }
    }
    true
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
