//! Whether a person speaks: what people ask about that, and what a model says of itself.
//!
//! Told by words alone, as the wishes are ([`super::phrases`]): each language has a file of phrases in `claims/phrases/`, and sentences
//! with their near misses in `claims/cases/`. All of them are looked through, whatever the agent speaks: people ask in their own
//! language, and models answer in it. So no phrase may mean anything else in another one: the tests ask each sentence of all. A model's words are looked at before they are said: a sentence that claims to be human is
//! replaced by the truth. Who speaks by itself is looked at while it speaks.
use super::{
    disclosure::Asked,
    phrases::{
        self,
        pattern::{self, Beginnings, Phrases},
        words::Speech,
    },
    pieces::Pieces,
};
use std::{collections::HashMap, sync::LazyLock};

/// The phrases of one meaning in all languages.
#[derive(Default)]
struct Meaning {
    lists: Vec<Phrases>,
    beginnings: Beginnings,
}

/// By language.
const TEXTS: [(&str, &str); 9] = [
    ("en", include_str!("claims/phrases/en.txt")),
    ("de", include_str!("claims/phrases/de.txt")),
    ("fr", include_str!("claims/phrases/fr.txt")),
    ("es", include_str!("claims/phrases/es.txt")),
    ("it", include_str!("claims/phrases/it.txt")),
    ("pt", include_str!("claims/phrases/pt.txt")),
    ("nl", include_str!("claims/phrases/nl.txt")),
    ("pl", include_str!("claims/phrases/pl.txt")),
    ("tr", include_str!("claims/phrases/tr.txt")),
];

/// Read when something is first asked.
static MEANINGS: LazyLock<HashMap<&str, Meaning>> = LazyLock::new(|| {
    let mut meanings: HashMap<&str, Meaning> = HashMap::new();
    for (section, phrases) in TEXTS.iter().flat_map(|(_, text)| pattern::read(text)) {
        meanings.entry(section).or_default().lists.push(phrases);
    }
    for meaning in meanings.values_mut() {
        meaning.beginnings = Beginnings::of(&meaning.lists);
    }
    meanings
});

/// Words of a plain yes or no.
const SHORT_ANSWER: usize = 5;
/// Characters of a sentence that goes on in the next text.
const LONGEST_OPEN: usize = 500;
/// Claims of one answer that are told of.
const MOST_TOLD: usize = 4;

/// In the speaker's own words, in whatever language.
fn has(section: &str, speech: &Speech) -> bool {
    MEANINGS.get(section).is_some_and(|meaning| {
        let mut lists = meaning
            .beginnings
            .within(speech)
            .filter_map(|nth| meaning.lists.get(nth));
        lists.any(|phrases| {
            let found = phrases.find(speech);
            found.iter().any(|span| !speech.quotes(span.start, span.end))
        })
    })
}

/// Does somebody ask whether a machine speaks?
pub fn asked(text: &str) -> Option<Asked> {
    let speech = Speech::of(text);
    match (has("machine", &speech), has("human", &speech)) {
        (true, true) => Some(Asked::Either),
        (true, false) => Some(Asked::IsMachine),
        (false, true) => Some(Asked::IsHuman),
        (false, false) => None,
    }
}

/// Does whoever says this say that it is a person, or no machine?
pub fn claims_to_be_human(text: &str) -> bool {
    has("claim", &Speech::of(text))
}

/// Looks at the texts of one answer of a model, in their order, before they are said.
#[derive(Debug)]
pub struct Watch {
    /// In which a plain yes or no is looked for, beside English.
    language: String,
    /// What is said instead.
    truth: String,
    /// It answers a question that was answered for it: a plain yes or no at its beginning would answer it again.
    is_answered: bool,
    is_begun: bool,
    has_told: bool,
    /// The sentence that goes on.
    open: String,
    replaced: Vec<String>,
}

impl Watch {
    pub fn new(language: &str, truth: String, is_answered: bool) -> Self {
        Watch {
            language: language.to_owned(),
            truth,
            is_answered,
            is_begun: false,
            has_told: false,
            open: String::new(),
            replaced: Vec::new(),
        }
    }

    /// What is said instead of a text; none: it is said as it is.
    pub fn look(&mut self, text: &str) -> Option<String> {
        let (mut said, mut is_changed) = (Vec::new(), false);
        for sentence in sentences(text) {
            let is_first = !std::mem::replace(&mut self.is_begun, true);
            if is_first && self.is_answered && is_plain_answer(&sentence, &self.language) {
                is_changed = true;
            } else if self.is_claim(&sentence) {
                is_changed = true;
                if self.replaced.len() < MOST_TOLD {
                    self.replaced.push(sentence);
                }
                self.open.clear();
                if !std::mem::replace(&mut self.has_told, true) {
                    said.push(self.truth.clone());
                }
            } else {
                self.follow(&sentence);
                said.push(sentence);
            }
        }
        is_changed.then(|| said.join(" "))
    }

    /// By itself, or with what it goes on from.
    fn is_claim(&self, sentence: &str) -> bool {
        claims_to_be_human(sentence)
            || (!self.open.is_empty() && claims_to_be_human(&format!("{} {sentence}", self.open)))
    }

    fn follow(&mut self, sentence: &str) {
        let is_over = sentence.ends_with(['.', '!', '?', '…', '。', '！', '？']);
        if is_over || self.open.chars().count() > LONGEST_OPEN {
            self.open.clear();
            return;
        }
        if !self.open.is_empty() {
            self.open.push(' ');
        }
        self.open.push_str(sentence);
    }

    /// The sentences that were not said, the first few of them.
    pub fn replaced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replaced)
    }
}

fn sentences(text: &str) -> Vec<String> {
    let mut pieces = Pieces::default();
    pieces.push(text);
    let mut sentences = Vec::new();
    while let Some(piece) = pieces.next().or_else(|| pieces.finish()) {
        let piece = piece.trim();
        if !piece.is_empty() {
            sentences.push(piece.to_owned());
        }
    }
    sentences
}

fn is_plain_answer(sentence: &str, language: &str) -> bool {
    phrases::words(sentence).len() <= SHORT_ANSWER && phrases::answer(sentence, language).is_some()
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
