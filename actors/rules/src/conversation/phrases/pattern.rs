//! The small language of the phrase lists.
//!
//! ```text
//! [opt_out]                       the phrases of one meaning follow
//! @me = me | us | this_number     a set of words; `_` joins words
//! don't @ever? call @me           a phrase: one after the other; `?`: or nothing
//! take me ~ off ~3 list*          `~`: up to two words of any kind, `~3`: up to three; `list*`: begins so
//! ^ operator now|$                `^` and `$`: a clause begins, or ends
//! - don't call @me before         with a dash: spoils every phrase that it overlaps, if no comma parts it
//! -, no don't mind                the same, over commas too
//! -- he|she said                  with two: spoils every phrase in its sentence
//! ! don't call @me at all         with an exclamation mark: a phrase that nothing spoils
//! # a remark
//! ```
//! Words are folded as what was said is, so they may be written with their accents.
use super::words::{Speech, fold};
use std::{collections::HashMap, sync::Arc};

/// Where a clause ends; no word, but it stands where one may.
const END: &str = "$";

/// Words `start..end` of what was said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
    /// Nothing spoils it.
    pub is_sure: bool,
}

/// The phrases of one meaning.
#[derive(Debug, Default)]
pub struct Phrases {
    meant: Shelf,
    spoiling: Shelf,
    /// These spoil a whole sentence.
    barring: Shelf,
    sure: Shelf,
}

/// Phrases by the words that they can begin with: of hundreds only some are looked at for each word that was said.
#[derive(Debug, Default)]
struct Shelf {
    phrases: Vec<Phrase>,
    by_word: HashMap<Box<str>, Vec<u32>>,
    /// By the first letter of how their first word begins.
    by_stem: HashMap<char, HashMap<Box<str>, Vec<u32>>>,
    /// These begin with any word.
    others: Vec<u32>,
}

impl Shelf {
    fn push(&mut self, phrase: Phrase) {
        let place = self.phrases.len() as u32;
        match phrase.firsts() {
            // A stem of nothing is any word.
            Some(firsts) if firsts.iter().all(|piece| !piece.text.is_empty()) => {
                for piece in firsts {
                    let places = match piece.text.chars().next().filter(|_| piece.is_stem) {
                        Some(letter) => self.by_stem.entry(letter).or_default(),
                        None => &mut self.by_word,
                    };
                    places.entry(piece.text.clone()).or_default().push(place);
                }
            }
            Some(_) | None => self.others.push(place),
        }
        self.phrases.push(phrase);
    }

    /// The phrases that may begin with that word; one that may in several ways comes as often.
    fn beginning_with<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a Phrase> {
        let whole = self.by_word.get(word).into_iter().flatten();
        let stems = word.chars().next().and_then(|letter| self.by_stem.get(&letter));
        let begun = stems
            .into_iter()
            .flatten()
            .filter(move |(stem, _)| word.starts_with(&***stem));
        let begun = begun.flat_map(|(_, places)| places);
        let places = self.others.iter().chain(whole).chain(begun);
        places.filter_map(|place| self.phrases.get(*place as usize))
    }

    /// Where they stand.
    fn all(&self, speech: &Speech) -> Vec<Span> {
        if self.phrases.is_empty() {
            return Vec::new();
        }
        let at = |start: usize| {
            let phrases = self.beginning_with(speech.word(start));
            phrases.filter_map(move |phrase| phrase.at(speech, start))
        };
        (0..speech.len()).flat_map(at).collect()
    }
}

/// Which of several lists have a phrase that can begin with a word that was said: of nine languages mostly one or two.
#[derive(Debug, Default)]
pub struct Beginnings {
    by_word: HashMap<Box<str>, Bits>,
    /// By the first letter.
    by_stem: HashMap<char, HashMap<Box<str>, Bits>>,
    any: Bits,
}

/// One for each list, the first one's the lowest.
type Bits = u16;

impl Beginnings {
    /// At most 16 lists.
    pub fn of<'a>(lists: impl IntoIterator<Item = &'a Phrases>) -> Self {
        let mut known = Beginnings::default();
        for (nth, phrases) in lists.into_iter().enumerate() {
            let bit = 1 << nth;
            // What spoils a phrase needs one.
            for shelf in [&phrases.meant, &phrases.sure] {
                for word in shelf.by_word.keys() {
                    *known.by_word.entry(word.clone()).or_default() |= bit;
                }
                for (letter, stems) in &shelf.by_stem {
                    let own = known.by_stem.entry(*letter).or_default();
                    for stem in stems.keys() {
                        *own.entry(stem.clone()).or_default() |= bit;
                    }
                }
                if !shelf.others.is_empty() {
                    known.any |= bit;
                }
            }
        }
        known
    }

    /// The places of those lists.
    pub fn within(&self, speech: &Speech) -> impl Iterator<Item = usize> + use<> {
        let mut found = self.any;
        for word in (0..speech.len()).map(|at| speech.word(at)) {
            found |= self.by_word.get(word).copied().unwrap_or_default();
            let stems = word.chars().next().and_then(|letter| self.by_stem.get(&letter));
            for (stem, bits) in stems.into_iter().flatten() {
                if word.starts_with(&**stem) {
                    found |= bits;
                }
            }
        }
        (0..Bits::BITS as usize).filter(move |nth| found & (1 << nth) != 0)
    }
}

#[derive(Debug)]
struct Phrase {
    parts: Vec<Part>,
    /// Whether it may go on over a comma.
    over_commas: bool,
}

#[derive(Debug)]
enum Part {
    Begin,
    /// Up to that many words.
    Any(usize),
    OneOf {
        choices: Choices,
        optional: bool,
    },
}

/// Nine languages have ten thousand phrases of a few thousand words and sets: each is kept once, whoever names it.
type Choices = Arc<[Choice]>;
/// Words in a row.
type Choice = Arc<[Piece]>;

#[derive(Debug)]
struct Piece {
    text: Box<str>,
    /// It is only how the word begins.
    is_stem: bool,
}

impl Phrases {
    /// Where these phrases stand and are not spoilt.
    pub fn find(&self, speech: &Speech) -> Vec<Span> {
        let mut found = self.meant.all(speech);
        if !found.is_empty() {
            let spoilt = self.spoiling.all(speech);
            let barred = self.barring.all(speech);
            found.retain(|span| {
                let overlaps = |by: &Span| by.start < span.end && span.start < by.end;
                let stands_with = |by: &Span| speech.in_sentence(by.start, span.start).is_some();
                !spoilt.iter().any(overlaps) && !barred.iter().any(stands_with)
            });
        }
        found.extend(
            self.sure
                .all(speech)
                .into_iter()
                .map(|span| Span { is_sure: true, ..span }),
        );
        found
    }
}

impl Phrase {
    /// The first pieces of what it can begin with; `None`: of anything.
    fn firsts(&self) -> Option<Vec<&Piece>> {
        let mut firsts = Vec::new();
        for part in &self.parts {
            match part {
                Part::Begin => {}
                Part::Any(_) => return None,
                Part::OneOf { choices, optional } => {
                    firsts.extend(choices.iter().filter_map(|pieces| pieces.first()));
                    if !optional {
                        return Some(firsts);
                    }
                }
            }
        }
        // Nothing must be said.
        None
    }

    fn at(&self, speech: &Speech, start: usize) -> Option<Span> {
        let end = self.rest(speech, start, start, &self.parts)?;
        (end > start).then_some(Span {
            start,
            end,
            is_sure: false,
        })
    }

    /// Where the parts end, if they follow at `at`.
    fn rest(&self, speech: &Speech, start: usize, at: usize, parts: &[Part]) -> Option<usize> {
        let Some((part, others)) = parts.split_first() else {
            return Some(at);
        };
        match part {
            Part::Begin => speech.begins(at).then(|| self.rest(speech, start, at, others))?,
            Part::Any(most) => {
                let fits = |skipped: &usize| *skipped == 0 || self.stands(speech, start, at + skipped - 1);
                (0..=*most)
                    .take_while(fits)
                    .find_map(|skipped| self.rest(speech, start, at + skipped, others))
            }
            Part::OneOf { choices, optional } => {
                let taken = choices.iter().find_map(|pieces| {
                    let length = self.taken(speech, start, at, pieces)?;
                    self.rest(speech, start, at + length, others)
                });
                match taken {
                    None if *optional => self.rest(speech, start, at, others),
                    taken => taken,
                }
            }
        }
    }

    /// How many words of what follows are these, if they are; the end of a clause takes none.
    fn taken(&self, speech: &Speech, start: usize, at: usize, pieces: &[Piece]) -> Option<usize> {
        if let [piece] = pieces
            && &*piece.text == END
        {
            return (at > start && speech.ends(at)).then_some(0);
        }
        let fits = pieces.iter().enumerate().all(|(offset, piece)| {
            let word = speech.in_sentence(start, at + offset);
            word.is_some_and(|word| piece.is(&word.text)) && self.stands(speech, start, at + offset)
        });
        fits.then_some(pieces.len())
    }

    /// Whether the word at `at` may belong to a phrase that began at `start`.
    fn stands(&self, speech: &Speech, start: usize, at: usize) -> bool {
        let parted = !self.over_commas && at > start && speech.begins(at);
        speech.in_sentence(start, at).is_some() && !parted
    }
}

impl Piece {
    fn is(&self, word: &str) -> bool {
        if self.is_stem {
            word.starts_with(&*self.text)
        } else {
            *word == *self.text
        }
    }
}

/// A whole list, by section.
pub fn read(text: &'static str) -> HashMap<&'static str, Phrases> {
    let mut sections: HashMap<&'static str, Phrases> = HashMap::new();
    let mut known = Known::default();
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        } else if let Some((name, choices)) = line.strip_prefix('@').and_then(|line| line.split_once(" = ")) {
            let choices = known.choices(choices);
            let earlier = known.sets.insert(name, choices);
            debug_assert!(earlier.is_none(), "@{name} is defined twice");
        } else {
            let phrases = sections.entry(section).or_default();
            let (shelf, line, over_commas) = if let Some(line) = line.strip_prefix("-, ") {
                (&mut phrases.spoiling, line, true)
            } else if let Some(line) = line.strip_prefix("-- ") {
                (&mut phrases.barring, line, true)
            } else if let Some(line) = line.strip_prefix("- ") {
                (&mut phrases.spoiling, line, false)
            } else if let Some(line) = line.strip_prefix("! ") {
                (&mut phrases.sure, line, true)
            } else {
                (&mut phrases.meant, line, true)
            };
            shelf.push(known.phrase(line, over_commas));
        }
    }
    sections
}

/// What has been read of a list.
#[derive(Default)]
struct Known {
    sets: HashMap<&'static str, Choices>,
    choices: HashMap<&'static str, Choices>,
    choice: HashMap<&'static str, Choice>,
}

impl Known {
    fn phrase(&mut self, line: &'static str, over_commas: bool) -> Phrase {
        let parts = line.split_whitespace().map(|part| match part {
            "^" => Part::Begin,
            part => match part.strip_prefix('~') {
                Some(most) => Part::Any(most.parse().unwrap_or(2)),
                None => Part::OneOf {
                    choices: self.choices(part.trim_end_matches('?')),
                    optional: part.ends_with('?'),
                },
            },
        });
        Phrase {
            parts: parts.collect(),
            over_commas,
        }
    }

    fn choices(&mut self, text: &'static str) -> Choices {
        if let Some(choices) = self.choices.get(text) {
            return choices.clone();
        }
        let mut choices = Vec::new();
        for choice in text.split('|').map(str::trim) {
            match choice.strip_prefix('@') {
                Some(set) => choices.extend(self.sets.get(set).into_iter().flat_map(|set| set.iter().cloned())),
                None => choices.push(self.choice(choice)),
            }
        }
        let choices: Choices = choices.into();
        self.choices.insert(text, choices.clone());
        choices
    }

    fn choice(&mut self, text: &'static str) -> Choice {
        let read = || text.split('_').map(piece).collect();
        self.choice.entry(text).or_insert_with(read).clone()
    }
}

fn piece(text: &str) -> Piece {
    let plain = text.replace('\'', "");
    Piece {
        text: fold(plain.trim_end_matches('*')).into(),
        is_stem: plain.ends_with('*'),
    }
}

/// What is wrong with a list, for its test: a set without words, a phrase that can be empty.
#[cfg(test)]
pub fn faults(lists: &HashMap<&str, Phrases>) -> Vec<String> {
    let phrases = lists.values().flat_map(|one| {
        [&one.meant, &one.spoiling, &one.barring, &one.sure]
            .into_iter()
            .flat_map(|shelf| &shelf.phrases)
    });
    let empty =
        |part: &Part| matches!(part, Part::OneOf { choices, .. } if choices.iter().all(|pieces| pieces.is_empty()));
    phrases
        .filter(|phrase| phrase.parts.iter().any(empty) || phrase.parts.is_empty())
        .map(|phrase| format!("{phrase:?}"))
        .collect()
}
