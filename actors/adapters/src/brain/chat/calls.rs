//! Puts the calls of an answer together from their fragments.
use super::protocol::{CallDelta, Function, ToolCall};
use rules::conversation::guard;

/// Calls of one answer; more are dropped. One more than a talk makes in a turn, so that it sees that there were too many.
const MAX_CALLS: usize = guard::MAX_CALLS_A_TURN + 1;
/// Characters of a call's arguments, and of its name. What is cut is no JSON any more, and the talk will say so.
const MAX_ARGUMENTS: usize = 4_000;
const MAX_NAME: usize = 128;
const MAX_ID: usize = 256;

#[derive(Debug, Default)]
pub struct Calls {
    calls: Vec<Call>,
    /// There were too many: a fragment without an index belongs to one that was dropped.
    full: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    pub fn push(&mut self, fragment: CallDelta) {
        let id = fragment.id.unwrap_or_default();
        let function = fragment.function.unwrap_or_default();
        let name = function.name.as_deref().unwrap_or_default();
        // Some give every call the index 0, or none at all: then a new name under a new id is a new call.
        let renewed = |call: &Call| !id.is_empty() && !call.id.is_empty() && id != call.id && !name.is_empty();
        let found = match fragment.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == fragment.index),
            None if self.full => return,
            None => self.calls.len().checked_sub(1),
        };
        let at = match found.filter(|at| !renewed(&self.calls[*at])) {
            Some(at) => at,
            None if self.calls.len() == MAX_CALLS => {
                self.full = true;
                return;
            }
            None => {
                self.calls.push(Call {
                    index: fragment.index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id;
        }
        append(&mut call.name, name, MAX_NAME);
        append(&mut call.arguments, &function.arguments(), MAX_ARGUMENTS);
    }

    /// All of them, each with an id of its own; `invented` counts those that had none.
    pub fn finish(self, invented: &mut u64) -> Vec<ToolCall> {
        let mut whole: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for call in self.calls {
            let mut id = call.id;
            while id.is_empty() || id.len() > MAX_ID || whole.iter().any(|other| other.id == id) {
                *invented += 1;
                id = format!("call_{invented}");
            }
            let arguments = if call.arguments.trim().is_empty() {
                "{}".into()
            } else {
                call.arguments
            };
            whole.push(ToolCall {
                id,
                r#type: "function",
                function: Function {
                    name: call.name,
                    arguments,
                },
            });
        }
        whole
    }
}

fn append(text: &mut String, more: &str, limit: usize) {
    if !more.is_empty() {
        text.extend(more.chars().take(limit.saturating_sub(text.chars().count())));
    }
}
