//! The body that an answer comes in: JSON, or a stream of events that is read until the answer is in it.
use super::rpc::{self, Message, Refusal};
use crate::sse::Parser;
use serde_json::Value;
use std::ops::ControlFlow;

/// Requests of a server's own that are answered while ours is waited for; those beyond are not.
const MAX_ASKED: usize = 8;

/// Reads one answer. What came by the end of it is in `finish`.
#[derive(Debug)]
pub struct AnswerReader {
    id: u64,
    limit: usize,
    taken: usize,
    body: Body,
    found: Option<Result<Value, Wrong>>,
    asked: Vec<(Value, bool)>,
    asked_in_all: usize,
}

#[derive(Debug)]
enum Body {
    /// Nothing has come.
    Unknown,
    Json(Vec<u8>),
    Stream(Parser),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    TooLarge(usize),
    /// In words that follow "its answer".
    Protocol(&'static str),
    Refused(Refusal),
}

impl AnswerReader {
    /// For the answer to request `id`, of at most so many bytes with all that comes before it.
    pub fn new(id: u64, limit: usize) -> Self {
        AnswerReader {
            id,
            limit,
            taken: 0,
            body: Body::Unknown,
            found: None,
            asked: Vec::new(),
            asked_in_all: 0,
        }
    }

    /// The next bytes. `Break`: it is known what the answer is.
    pub fn take(&mut self, content_type: &str, piece: &[u8]) -> ControlFlow<()> {
        if self.found.is_some() {
            return ControlFlow::Break(());
        }
        if piece.is_empty() {
            return ControlFlow::Continue(());
        }
        if matches!(self.body, Body::Unknown) {
            match self.body_of(content_type) {
                Some(body) => self.body = body,
                None => {
                    let why = "is neither `application/json` nor `text/event-stream`";
                    return self.end(Err(Wrong::Protocol(why)));
                }
            }
        }
        // However the network has cut it: what lies within the limit is read first.
        let within = &piece[..piece.len().min(self.limit - self.taken)];
        self.taken += within.len();
        match &mut self.body {
            Body::Stream(parser) => match parser.push(within) {
                Ok(()) => self.events()?,
                Err(_) => return self.end(Err(Wrong::TooLarge(self.limit))),
            },
            Body::Json(whole) => whole.extend_from_slice(within),
            Body::Unknown => {}
        }
        if within.len() < piece.len() {
            return self.end(Err(Wrong::TooLarge(self.limit)));
        }
        ControlFlow::Continue(())
    }

    /// What the server has asked for meanwhile, by its id; and whether that was a ping.
    pub fn asked(&mut self) -> Vec<(Value, bool)> {
        std::mem::take(&mut self.asked)
    }

    /// The body is over, or was not wanted any more.
    pub fn finish(mut self) -> Result<Value, Wrong> {
        if self.found.is_none() {
            match &mut self.body {
                Body::Stream(parser) => {
                    parser.finish();
                    let _ = self.events();
                }
                Body::Json(whole) => {
                    let whole = std::mem::take(whole);
                    let _ = self.messages(&whole);
                }
                Body::Unknown => {}
            }
        }
        self.found
            .unwrap_or(Err(Wrong::Protocol("holds no answer to what was asked")))
    }

    /// How many bytes came.
    pub fn taken(&self) -> usize {
        self.taken
    }

    fn body_of(&self, content_type: &str) -> Option<Body> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("text/event-stream") {
            return Some(Body::Stream(Parser::with_longest(self.limit)));
        }
        essence
            .eq_ignore_ascii_case("application/json")
            .then(|| Body::Json(Vec::new()))
    }

    fn events(&mut self) -> ControlFlow<()> {
        while let Body::Stream(parser) = &mut self.body
            && let Some(event) = parser.next()
        {
            // An event without words is there to be resumed from; those of other names are no messages.
            if event.data.is_empty() || !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            self.messages(event.data.as_bytes())?;
        }
        ControlFlow::Continue(())
    }

    fn messages(&mut self, text: &[u8]) -> ControlFlow<()> {
        let messages = match rpc::read(text, self.id) {
            Ok(messages) => messages,
            Err(why) => return self.end(Err(Wrong::Protocol(why))),
        };
        for message in messages {
            match message {
                Message::Answer(answer) => return self.end(answer.map_err(Wrong::Refused)),
                Message::Asked { id, is_ping } if self.asked_in_all < MAX_ASKED => {
                    self.asked_in_all += 1;
                    self.asked.push((id, is_ping));
                }
                Message::Asked { .. } | Message::Other => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self, found: Result<Value, Wrong>) -> ControlFlow<()> {
        self.found = Some(found);
        ControlFlow::Break(())
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
