//! What people mean who say, or write, that they agree or want no more: told by words alone, and heeded whatever a brain makes
//! of them.
//!
//! Every language has a file of phrases (`phrases/*.txt`, written for `pattern`) that its speakers can read and mend. All three
//! questions are answered by the same means: phrases that mean it, phrases that spoil those, and words that may stand beside.
//! Where the law is in question doubt goes against us. An outright "don't call me" is an opt-out; a limit of time or place
//! ("not before nine", "not at work") is not. Consent is a yes with nothing beside it: whatever else is said is doubt.
//! Sentences for each language and question, by their meaning, are in `corpus/`; half of them nobody has tuned the files on.
pub(super) mod pattern;
pub(super) mod words;

use pattern::{Phrases, Span};
use std::{collections::HashMap, ops::Range, sync::LazyLock};
use words::Speech;

pub use words::{fold, words};

/// Phrases of its own that an agent may have.
const MAX_OWN: usize = 100;
/// Words in which an answer in English still counts for an agent of another language: longer, "no" may be a Portuguese "in the".
const MAX_FOREIGN_ANSWER: usize = 3;
/// Words in which a yes in English counts for an agent of another language.
const LEAST_FOREIGN_YES: usize = 3;
/// Words from the end of what was said in which a goodbye is one.
const GOODBYE_WITHIN: usize = 8;

/// One language's lists.
struct Lists(HashMap<&'static str, Phrases>);

impl Lists {
    fn read(text: &'static str) -> Self {
        Lists(pattern::read(text))
    }

    /// Where phrases of that meaning stand, in anybody's words.
    fn stand(&self, section: &str, speech: &Speech) -> Vec<Span> {
        self.0
            .get(section)
            .map_or_else(Vec::new, |phrases| phrases.find(speech))
    }
    /// In the speaker's own.
    fn find(&self, section: &str, speech: &Speech) -> Vec<Span> {
        let mut found = self.stand(section, speech);
        found.retain(|span| !speech.quotes(span.start, span.end));
        found
    }
    fn has(&self, section: &str, speech: &Speech) -> bool {
        !self.find(section, speech).is_empty()
    }

    /// Whether those words are nothing but phrases of `section`, one at least, and of `beside`. Who sets such a word in quotation
    /// marks means it (please "STOP").
    fn is_all(&self, section: &str, beside: &[&str], speech: &Speech, words: Range<usize>) -> bool {
        let within = |span: &Span| words.start <= span.start && span.end <= words.end;
        let meant: Vec<Span> = self.stand(section, speech).into_iter().filter(within).collect();
        if meant.is_empty() {
            return false;
        }
        let others = beside.iter().flat_map(|beside| self.stand(beside, speech));
        let spans: Vec<Span> = others.chain(meant).collect();
        words
            .into_iter()
            .all(|at| spans.iter().any(|span| (span.start..span.end).contains(&at)))
    }

    /// Whether it is a yes and nothing else.
    fn grants(&self, speech: &Speech) -> bool {
        // "Why not?" asks nothing.
        let is_sure = || self.find("yes", speech).iter().any(|span| span.is_sure);
        let asks = (1..=speech.len()).any(|end| speech.asks(end));
        (!asks || is_sure()) && self.is_all("yes", &["plain"], speech, 0..speech.len())
    }

    /// Whether somebody who writes this wants no more texts.
    fn is_stop(&self, speech: &Speech, told: &[Span]) -> bool {
        speech.sentences().any(|words| {
            let inside = |span: &Span| words.contains(&span.start);
            if told.iter().any(inside) {
                return false;
            }
            let wishes = ["opt_out", "stop"]
                .into_iter()
                .flat_map(|section| self.find(section, speech));
            wishes.into_iter().any(|span| inside(&span))
                || self.is_all("keyword", &["filler", "polite"], speech, words.clone())
                || self.is_all("keyword_alone", &["polite"], speech, words)
        })
    }
}

/// Each is read when it is first asked for: most workspaces speak one language or two.
static LISTS: [(&str, LazyLock<Lists>); 9] = [
    ("en", LazyLock::new(|| Lists::read(include_str!("phrases/en.txt")))),
    ("de", LazyLock::new(|| Lists::read(include_str!("phrases/de.txt")))),
    ("fr", LazyLock::new(|| Lists::read(include_str!("phrases/fr.txt")))),
    ("es", LazyLock::new(|| Lists::read(include_str!("phrases/es.txt")))),
    ("it", LazyLock::new(|| Lists::read(include_str!("phrases/it.txt")))),
    ("pt", LazyLock::new(|| Lists::read(include_str!("phrases/pt.txt")))),
    ("nl", LazyLock::new(|| Lists::read(include_str!("phrases/nl.txt")))),
    ("pl", LazyLock::new(|| Lists::read(include_str!("phrases/pl.txt")))),
    ("tr", LazyLock::new(|| Lists::read(include_str!("phrases/tr.txt")))),
];

/// The lists that count for a BCP 47 language: its own, then English.
fn lists(language: &str) -> impl Iterator<Item = &'static Lists> {
    let primary = primary(language);
    let own = LISTS
        .iter()
        .find(|(language, _)| *language == primary && primary != "en");
    let english = LISTS.iter().find(|(language, _)| *language == "en");
    own.into_iter().chain(english).map(|(_, lists)| &**lists)
}

pub(super) fn primary(language: &str) -> String {
    let subtag = language.split(['-', '_']).next().unwrap_or_default();
    subtag.trim().to_ascii_lowercase()
}

/// Every language: nobody knows in which one a text comes.
fn all_lists() -> impl Iterator<Item = &'static Lists> {
    LISTS.iter().map(|(_, lists)| &**lists)
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

/// Whether somebody who writes this text wants no more of them, in whatever language.
pub fn is_stop(text: &str) -> bool {
    let speech = Speech::of(text);
    // How one stops, or that one has, is not the wish to, whoever reads it.
    let told: Vec<Span> = all_lists().flat_map(|lists| lists.stand("told", &speech)).collect();
    all_lists().any(|lists| lists.is_stop(&speech, &told))
}

/// The answer to "may this call be recorded?"; `None`: it is not clear, and must be asked again or taken as a no.
///
/// A no is heard wherever it stands. A yes counts only if nothing else is said: no doubt, no condition, no question; and in the
/// agent's language, or in English if it is more than a word or two, which may mean something else there.
pub fn consent(text: &str, language: &str) -> Option<bool> {
    if objects_to_recording(text, language) || answer(text, language) == Some(false) {
        return Some(false);
    }
    let speech = Speech::of(text);
    let is_plain = |(at, lists): (usize, &Lists)| {
        let counts = at == 0 || speech.len() >= LEAST_FOREIGN_YES;
        counts && lists.grants(&speech)
    };
    lists(language).enumerate().any(is_plain).then_some(true)
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

/// What a machine says that has picked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// A spoken menu: keys lead on, and somebody may be behind it.
    Menu,
    /// Something is recorded, or nobody is there.
    Mailbox,
}

/// Who has picked up, by the first words; `None`: they do not tell. Only of a greeting: in a talk people say such things too.
pub fn greeting(text: &str, language: &str) -> Option<Greeting> {
    // A mailbox may end with its own menu.
    match (any_has("mailbox", text, language), any_has("menu", text, language)) {
        (true, _) => Some(Greeting::Mailbox),
        (false, true) => Some(Greeting::Menu),
        (false, false) => None,
    }
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

#[cfg(test)]
#[path = "phrases/corpus_tests.rs"]
mod corpus_tests;
