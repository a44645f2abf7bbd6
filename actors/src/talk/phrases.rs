//! What a callee means, told by words alone: the wishes that must be heeded whatever a brain makes of them.
//!
//! Every language has a list of phrases (`phrases/*.txt`, written for `pattern`); the agent's comes first, and English
//! always counts. Where the law is in question, doubt goes against us: an outright "don't call me" is an opt-out, and a
//! consent that is not clear is none. A limit of time or place ("not before nine", "not at work") is no opt-out.
mod pattern;
mod words;

use pattern::Phrases;
use std::{collections::HashMap, sync::LazyLock};
use words::Speech;

pub use words::{fold, words};

/// Phrases of its own that an agent may have.
const MAX_OWN: usize = 100;
/// Words in which an answer in English still counts for an agent of another language: longer, "no" may be a Portuguese "in the".
const MAX_FOREIGN_ANSWER: usize = 3;
/// Words from the end of what was said in which a goodbye is one.
const GOODBYE_WITHIN: usize = 8;

/// One language's lists.
struct Lists(HashMap<&'static str, Phrases>);

impl Lists {
    fn find(&self, section: &str, speech: &Speech) -> Vec<pattern::Span> {
        self.0
            .get(section)
            .map_or_else(Vec::new, |phrases| phrases.find(speech))
    }
    fn has(&self, section: &str, speech: &Speech) -> bool {
        !self.find(section, speech).is_empty()
    }
}

static LISTS: LazyLock<HashMap<&'static str, Lists>> = LazyLock::new(|| {
    [
        ("en", include_str!("phrases/en.txt")),
        ("de", include_str!("phrases/de.txt")),
        ("fr", include_str!("phrases/fr.txt")),
        ("es", include_str!("phrases/es.txt")),
        ("it", include_str!("phrases/it.txt")),
        ("pt", include_str!("phrases/pt.txt")),
        ("nl", include_str!("phrases/nl.txt")),
        ("pl", include_str!("phrases/pl.txt")),
        ("tr", include_str!("phrases/tr.txt")),
    ]
    .into_iter()
    .map(|(language, text)| (language, Lists(pattern::read(text))))
    .collect()
});

/// The lists that count for a BCP 47 language: its own, then English.
fn lists(language: &str) -> impl Iterator<Item = &'static Lists> {
    let primary = primary(language);
    let own = LISTS.get(primary.as_str()).filter(|_| primary != "en");
    own.into_iter().chain(LISTS.get("en"))
}

fn primary(language: &str) -> String {
    let subtag = language.split(['-', '_']).next().unwrap_or_default();
    subtag.trim().to_ascii_lowercase()
}

fn any_has(section: &str, text: &str, language: &str) -> bool {
    let speech = Speech::of(text);
    lists(language).any(|lists| lists.has(section, &speech))
}

/// The wish not to be called again. `own`: the agent's own phrases, whole words in a row, in any case.
pub fn is_opt_out(text: &str, language: &str, own: &[String]) -> bool {
    let speech = Speech::of(text);
    let said = |phrase: &String| speech.contains(&words(phrase));
    own.iter().take(MAX_OWN).any(said) || lists(language).any(|lists| lists.has("opt_out", &speech))
}

/// The answer to "may this call be recorded?"; `None`: it is not clear, and must be asked again or taken as a no.
pub fn consent(text: &str, language: &str) -> Option<bool> {
    if objects_to_recording(text, language) {
        return Some(false);
    }
    answer(text, language)
}

/// The answer to any question of yes or no; `None` without one, or with both.
pub fn answer(text: &str, language: &str) -> Option<bool> {
    let speech = Speech::of(text);
    let is_english = primary(language) == "en";
    let answers = lists(language).enumerate().map(|(at, lists)| {
        let foreign = at > 0 && !is_english;
        if foreign && speech.len() > MAX_FOREIGN_ANSWER {
            return None;
        }
        let refused = lists.has("refusal", &speech);
        let yes = lists.find("yes", &speech);
        // "Yes?" asks; and one that asks something else has not answered.
        let yes = yes.iter().any(|span| span.is_sure || !speech.asks(span.end));
        let no = lists.has("no", &speech);
        match (refused, yes, no) {
            (true, _, _) | (false, false, true) => Some(false),
            (false, true, false) => Some(true),
            (false, true, true) | (false, false, false) => None,
        }
    });
    answers.flatten().next()
}

/// An objection to being recorded, whether or not it was asked for.
pub fn objects_to_recording(text: &str, language: &str) -> bool {
    any_has("recording", text, language)
}

/// The wish to talk to a person.
pub fn wants_human(text: &str, language: &str) -> bool {
    any_has("human", text, language)
}

/// A goodbye, near the end of what was said.
pub fn is_goodbye(text: &str, language: &str) -> bool {
    let speech = Speech::of(text);
    let from = speech.len().saturating_sub(GOODBYE_WITHIN);
    lists(language).any(|lists| {
        let spans = lists.find("goodbye", &speech);
        spans.iter().any(|span| span.end > from)
    })
}

#[cfg(test)]
#[path = "phrases_tests.rs"]
mod tests;
