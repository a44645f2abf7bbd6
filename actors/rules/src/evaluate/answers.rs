//! Finds the questions that an agent asked, and what the callee answered.
use super::{MAX_TURNS, Role, Turn, bounded, cut, dates, denials, stems, values};
use serde_json::Value;
use std::collections::HashSet;

/// Questions that are looked for.
const MAX_QUESTIONS: usize = 100;
/// Characters of an answer in words.
const MAX_TEXT: usize = 500;
/// Of a question's words, this part must be in the agent's turn: in hundredths.
const LEAST_SHARED: usize = 50;

#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub key: &'a str,
    pub text: &'a str,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Text,
    Number,
    Boolean,
    /// One of these labels.
    Choice(Vec<String>),
    /// ISO 8601 comes out.
    Date,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundAnswer {
    pub key: String,
    pub value: Value,
    /// The callee's turn, counted from 0.
    pub evidence_turn: usize,
}

/// What is known of the questions after a talk; one that was not asked, or not answered, is left out.
pub fn answers(turns: &[Turn<'_>], language: &str, questions: &[Question<'_>]) -> Vec<FoundAnswer> {
    let turns: Vec<Turn<'_>> = turns.iter().take(MAX_TURNS).map(|turn| bounded(*turn)).collect();
    let asked: Vec<HashSet<String>> = turns.iter().map(words_of_agent).collect();
    let find = |question: &Question<'_>| answer(&turns, &asked, language, question);
    questions.iter().take(MAX_QUESTIONS).filter_map(find).collect()
}

fn words_of_agent(turn: &Turn<'_>) -> HashSet<String> {
    match turn.role {
        Role::Agent => stems(turn.content).into_iter().collect(),
        Role::User | Role::Tool => HashSet::new(),
    }
}

fn answer(
    turns: &[Turn<'_>],
    asked: &[HashSet<String>],
    language: &str,
    question: &Question<'_>,
) -> Option<FoundAnswer> {
    let wanted = stems(question.text);
    let shared = |turn: &HashSet<String>| wanted.iter().filter(|stem| turn.contains(*stem)).count();
    // The turn that shares the most is where it was asked; asked again, the later answer stands.
    let mut places: Vec<(usize, usize)> = asked
        .iter()
        .map(shared)
        .enumerate()
        .filter(|(_, count)| *count > 0)
        .collect();
    places.retain(|(_, count)| count * 100 >= wanted.len() * LEAST_SHARED);
    places.sort_by_key(|(at, count)| (std::cmp::Reverse(*count), std::cmp::Reverse(*at)));
    places.into_iter().find_map(|(at, _)| {
        let (turn, said) = next_of_user(turns, at)?;
        Some(FoundAnswer {
            key: question.key.to_owned(),
            value: parse(said, language, question)?,
            evidence_turn: turn,
        })
    })
}

/// What the callee said before the agent spoke again.
fn next_of_user<'a>(turns: &[Turn<'a>], asked: usize) -> Option<(usize, &'a str)> {
    let after = turns.iter().enumerate().skip(asked + 1);
    let mut before_agent = after.take_while(|(_, turn)| turn.role != Role::Agent);
    before_agent
        .find(|(_, turn)| turn.role == Role::User && !turn.content.trim().is_empty())
        .map(|(at, turn)| (at, turn.content))
}

/// What cannot be told for sure is no answer: a number or a label that is denied, or one of several.
fn parse(said: &str, language: &str, question: &Question<'_>) -> Option<Value> {
    match &question.kind {
        Kind::Text => Some(Value::String(cut(said.trim(), MAX_TEXT))),
        Kind::Number if denials::denies(said, language) => None,
        Kind::Number => values::number(said, question.text),
        Kind::Boolean => crate::conversation::phrases::answer(said, language).map(Value::Bool),
        Kind::Choice(labels) => values::choice(said, language, labels).map(Value::String),
        Kind::Date => dates::date(said, language).map(|date| Value::String(date.to_string())),
    }
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
