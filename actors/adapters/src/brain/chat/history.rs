//! What was said so far, always in a form that the interface takes: each call is followed by its result.
use super::protocol::{Function, Message, ToolCall};
use crate::brain::ToolResult;

/// Messages of a request, the system message among them.
const MAX_MESSAGES: usize = 200;
/// Characters of a request without the system message.
const MAX_CHARACTERS: usize = 200_000;
/// Characters of one result, or of what was said to us at once. Eight results always fit.
const MAX_CONTENT: usize = 16_000;
/// What a model is told of a call that was cut off.
const CANCELED: &str = r#"{"error":"canceled"}"#;

#[derive(Debug)]
pub struct History {
    messages: Vec<Message>,
    /// The last message is the assistant's, and it is not done with it.
    speaking: bool,
}

impl History {
    pub fn new(instructions: String) -> Self {
        History {
            messages: vec![Message::System { content: instructions }],
            speaking: false,
        }
    }

    /// The system message and what followed, for the next request.
    pub fn for_request(&mut self) -> &[Message] {
        self.cancel_pending();
        self.forget();
        self.speaking = false;
        &self.messages
    }

    pub fn heard(&mut self, words: &str) {
        self.cancel_pending();
        self.messages.push(Message::User { content: cut(words) });
        self.speaking = false;
    }

    /// The assistant said this too, spaces and all.
    pub fn said(&mut self, words: &str) {
        match self.messages.last_mut() {
            Some(Message::Assistant { content, .. }) if self.speaking => {
                content.get_or_insert_default().push_str(words);
            }
            _ => self.messages.push(Message::Assistant {
                content: Some(words.trim_start().to_owned()),
                tool_calls: Vec::new(),
            }),
        }
        self.speaking = true;
    }

    /// The assistant ends its message with these calls.
    pub fn called(&mut self, calls: Vec<ToolCall>) {
        let calls = calls.into_iter().map(acceptable).collect();
        match self.messages.last_mut() {
            Some(Message::Assistant { tool_calls, .. }) if self.speaking => *tool_calls = calls,
            _ => self.messages.push(Message::Assistant {
                content: None,
                tool_calls: calls,
            }),
        }
        self.speaking = false;
    }

    /// Notes what became of calls. What nobody waits for is left out.
    pub fn results(&mut self, results: &[ToolResult]) {
        for result in results {
            if self.pending().contains(&result.call_id) {
                self.messages.push(Message::Tool {
                    tool_call_id: result.call_id.clone(),
                    content: cut(&result.output),
                });
            }
        }
    }

    /// Of the last words since the other side spoke or tools answered, only these were heard; where none were, none were said.
    pub fn interrupted(&mut self, said: &str) {
        let said = said.trim();
        self.replace(if said.is_empty() {
            String::new()
        } else {
            format!("{said}—")
        });
    }

    /// Instead of the last words these were said.
    pub fn corrected(&mut self, said: &str) {
        self.replace(said.trim().to_owned());
    }

    /// Somebody else has said this in the assistant's place.
    pub fn spoken_for(&mut self, words: &str) {
        self.cancel_pending();
        self.speaking = false;
        match self.messages.last_mut() {
            Some(Message::Assistant {
                content: Some(said),
                tool_calls,
            }) if tool_calls.is_empty() => {
                said.push(' ');
                said.push_str(words);
            }
            _ => self.messages.push(Message::Assistant {
                content: Some(words.to_owned()),
                tool_calls: Vec::new(),
            }),
        }
    }

    /// Of the last words these stay; where there are none, none were said.
    fn replace(&mut self, said: String) {
        self.speaking = false;
        let turn = self.messages.iter().rev();
        // What was said before tools answered was heard: it is another answer.
        let mut turn = turn.take_while(|message| !matches!(message, Message::User { .. } | Message::Tool { .. }));
        let spoke = |message: &Message| matches!(message, Message::Assistant { content: Some(_), .. });
        let Some(back) = turn.position(spoke) else {
            return;
        };
        let place = self.messages.len() - 1 - back;
        let Message::Assistant { content, tool_calls } = &mut self.messages[place] else {
            return;
        };
        if !said.is_empty() {
            *content = Some(said);
        } else if !tool_calls.is_empty() {
            *content = None;
        } else {
            self.messages.remove(place);
        }
    }

    /// What was heard last, and all that followed, was not said to its end: it is gone.
    pub fn retract(&mut self) {
        self.speaking = false;
        let is_heard = |message: &Message| matches!(message, Message::User { .. });
        if let Some(place) = self.messages.iter().rposition(is_heard) {
            self.messages.truncate(place);
        }
    }

    /// Calls of the last message that has any, without a result yet.
    fn pending(&self) -> Vec<String> {
        let tools = self.messages.iter().rev();
        let answered: Vec<&String> = tools
            .map_while(|message| match message {
                Message::Tool { tool_call_id, .. } => Some(tool_call_id),
                _ => None,
            })
            .collect();
        match self.messages.iter().rev().nth(answered.len()) {
            Some(Message::Assistant { tool_calls, .. }) => {
                let open = tool_calls.iter().filter(|call| !answered.contains(&&call.id));
                open.map(|call| call.id.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn cancel_pending(&mut self) {
        let canceled = self.pending().into_iter().map(|tool_call_id| Message::Tool {
            tool_call_id,
            content: CANCELED.into(),
        });
        self.messages.extend(canceled);
    }

    /// Drops the oldest exchanges until the rest fits. A turn that is too long in itself loses its beginning.
    fn forget(&mut self) {
        let (mut messages, mut characters) = (1, 0);
        let kept = self.messages[1..].iter().rev().take_while(|message| {
            messages += 1;
            characters += size(message);
            messages <= MAX_MESSAGES && characters <= MAX_CHARACTERS
        });
        let first = self.messages.len() - kept.count();
        if first == 1 {
            return;
        }
        let begins = |fits: fn(&Message) -> bool| self.messages[first..].iter().position(fits).map(|at| first + at);
        let from = begins(|message| matches!(message, Message::User { .. }))
            .or_else(|| begins(|message| !matches!(message, Message::Tool { .. })));
        self.messages.drain(1..from.unwrap_or(self.messages.len()));
    }
}

/// Servers refuse a history with a name or with arguments that the model got wrong. The talk has seen them as they were.
fn acceptable(mut call: ToolCall) -> ToolCall {
    let Function { name, arguments } = &mut call.function;
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    *name = name
        .chars()
        .take(64)
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect();
    if name.is_empty() {
        "unknown".clone_into(name);
    }
    if !serde_json::from_str::<serde_json::Value>(arguments).is_ok_and(|arguments| arguments.is_object()) {
        "{}".clone_into(arguments);
    }
    call
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_CONTENT).collect()
}

fn size(message: &Message) -> usize {
    match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
            content.chars().count()
        }
        Message::Assistant { content, tool_calls } => {
            let calls = tool_calls
                .iter()
                .map(|call| call.function.name.len() + call.function.arguments.chars().count());
            content.as_ref().map_or(0, |text| text.chars().count()) + calls.sum::<usize>()
        }
    }
}
