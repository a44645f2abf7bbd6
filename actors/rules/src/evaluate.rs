//! What came of a finished talk, told by its words alone: where no model is asked, or none answers.
//!
//! Deterministic, and never more sure than its evidence: a note names what was said, an answer the turn it stands in.
mod answers;
mod dates;
mod denials;
mod meanings;
mod values;

pub use answers::{FoundAnswer, Kind, Question, answers};

use crate::conversation::phrases::words;
use std::collections::{HashMap, HashSet};

/// Turns, and characters of each, that are read: a talk has an end, a transcript from elsewhere may have none.
const MAX_TURNS: usize = 500;
const MAX_TURN: usize = 4000;
/// Codes that are compared.
const MAX_CODES: usize = 100;
/// Characters of a note.
const MAX_NOTE: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Agent,
    User,
    Tool,
}

#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    pub role: Role,
    pub content: &'a str,
}

/// One outcome that an agent may give to a call.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    pub code: &'a str,
    pub label: &'a str,
    pub description: &'a str,
}

/// What a shared word weighs, said by the callee and by the agent; a built-in meaning outweighs both.
const USER_WORD: u32 = 4;
const AGENT_WORD: u32 = 1;
const DESCRIBED_WORD: u32 = 1;
/// Without a word of the callee, the agent's own must share this much.
const LEAST: u32 = 2;

/// The code that fits best, and a note of at most 200 characters that says why. Without any code: empty.
pub fn disposition(turns: &[Turn<'_>], language: &str, codes: &[Choice<'_>]) -> (String, String) {
    let codes = codes.get(..MAX_CODES).unwrap_or(codes);
    let talk = Dialogue::of(turns, language);
    let mut best: Option<(u32, &Choice<'_>, Option<&str>)> = None;
    for choice in codes {
        let (score, evidence) = talk.score(choice);
        if score >= LEAST && best.as_ref().is_none_or(|(most, ..)| score > *most) {
            best = Some((score, choice, evidence));
        }
    }
    match best {
        Some((_, choice, Some(said))) => (choice.code.to_owned(), cut(&format!("said: {}", said.trim()), MAX_NOTE)),
        Some((_, choice, None)) if talk.is_silent => (choice.code.to_owned(), "the callee said nothing".into()),
        Some((_, choice, None)) => (choice.code.to_owned(), "judged by the agent's words alone".into()),
        None => {
            let neutral = codes.iter().find(|choice| meanings::is_neutral(choice.code));
            let code = neutral
                .or(codes.first())
                .map_or_else(String::new, |choice| choice.code.to_owned());
            (code, "nothing that was said points to an outcome".into())
        }
    }
}

/// A talk, its words counted once.
struct Dialogue<'a> {
    turns: Vec<Turn<'a>>,
    /// By stem, the first turn of the callee in which it was said.
    user: HashMap<String, usize>,
    agent: HashSet<String>,
    /// What the callee's turns mean, by place.
    heard: Vec<(usize, Vec<meanings::Meaning>)>,
    is_silent: bool,
}

impl<'a> Dialogue<'a> {
    fn of(turns: &[Turn<'a>], language: &str) -> Self {
        let turns: Vec<Turn<'a>> = turns.iter().take(MAX_TURNS).map(|turn| bounded(*turn)).collect();
        let (mut user, mut agent) = (HashMap::new(), HashSet::new());
        for (at, turn) in turns.iter().enumerate() {
            match turn.role {
                Role::User => stems(turn.content).into_iter().for_each(|stem| {
                    user.entry(stem).or_insert(at);
                }),
                Role::Agent => agent.extend(stems(turn.content)),
                Role::Tool => {}
            }
        }
        let of_user = turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::User);
        let heard: Vec<_> = of_user
            .filter(|(_, turn)| !turn.content.trim().is_empty())
            .map(|(at, turn)| (at, meanings::heard(turn.content, language)))
            .collect();
        Dialogue {
            is_silent: heard.is_empty(),
            heard,
            turns,
            user,
            agent,
        }
    }

    /// How well a code fits, and the words of the callee that say so.
    fn score(&self, choice: &Choice<'_>) -> (u32, Option<&'a str>) {
        let mut score = 0;
        let mut evidence = None;
        let stems_of = |texts: &[&str]| -> HashSet<String> {
            texts.iter().flat_map(|text| stems(&text.replace('_', " "))).collect()
        };
        let named = stems_of(&[choice.code, choice.label]);
        let described = stems_of(&[choice.description]);
        // "Not interested" shares a word with everybody who is. A common code is told by its meaning; its description adds little.
        let meaning = meanings::of(choice.code).or_else(|| meanings::of(choice.label));
        let (weight, counted): (u32, Vec<&String>) = match meaning {
            Some(_) => (DESCRIBED_WORD, described.difference(&named).collect()),
            None => (USER_WORD, named.union(&described).collect()),
        };
        let shared: Vec<usize> = counted
            .iter()
            .filter_map(|stem| self.user.get(*stem).copied())
            .collect();
        score += weight * u32::try_from(shared.len()).unwrap_or(0);
        let first = shared.iter().min().and_then(|at| self.turns.get(*at));
        evidence = first.map(|turn| turn.content).or(evidence);
        if meaning.is_none() {
            let echoed = counted.iter().filter(|stem| self.agent.contains(**stem)).count();
            score += AGENT_WORD * u32::try_from(echoed).unwrap_or(0);
        }
        if let Some(meaning) = meaning {
            let (weight, said) = meaning.weigh(&self.heard, self.is_silent);
            score += weight;
            evidence = said
                .and_then(|at| self.turns.get(at))
                .map(|turn| turn.content)
                .or(evidence);
        }
        (score, evidence)
    }
}

fn bounded(turn: Turn<'_>) -> Turn<'_> {
    let end = turn
        .content
        .char_indices()
        .nth(MAX_TURN)
        .map_or(turn.content.len(), |(end, _)| end);
    Turn {
        content: turn.content.get(..end).unwrap_or_default(),
        ..turn
    }
}

/// Words that say nothing of what a sentence is about, in the languages of the phrase lists.
const STOP: &str = "a an and are as at be been but by call called calling can caller callee contact customer could did do does \
    for from had has have he her his how i if in into is it its just lead like me my no not of on or our out person please \
    said say says she should so some that the their them then there they this to up us user want wants was we were what \
    when which who will with would you your yes am im ill id dont didnt any about \
    der die das und ist sind ein eine einen einem einer nicht mit ich sie er es wir ihr zu von auf fur den dem des im am wie was hat haben war \
    le la les un une des et est sont ne pas je vous il elle nous de du en que qui pour avec sur ce dans au aux \
    el los las una y es son no yo usted de del en que por con para lo se al su \
    il lo gli e di da che per con non si sono ha o os as um uma e do da em por com nao se \
    het een en van ik je u hij zij we niet met op te dat voor \
    i w z na nie sie to jest do o co jak czy \
    ve bir bu da de mi ne ile icin";

/// The words of a text that carry its meaning, without their endings, each once, in order.
pub(super) fn stems(text: &str) -> Vec<String> {
    static STOPPED: std::sync::LazyLock<HashSet<&'static str>> =
        std::sync::LazyLock::new(|| STOP.split_ascii_whitespace().collect());
    let mut seen = HashSet::new();
    words(text)
        .into_iter()
        .filter(|word| !STOPPED.contains(word.as_str()))
        .map(|word| stem(&word))
        .filter(|stem| seen.insert(stem.clone()))
        .collect()
}

/// "Bookings", "booked" and "book" are one; only what every reader would cut is cut.
fn stem(word: &str) -> String {
    const ENDINGS: [&str; 12] = [
        "ings", "ing", "ments", "ment", "ies", "ed", "es", "en", "er", "s", "e", "y",
    ];
    let cut = ENDINGS
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|rest| rest.chars().count() >= 4));
    cut.unwrap_or(word).to_owned()
}

pub(super) fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some(_) => text.chars().take(length.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
