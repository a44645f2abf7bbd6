//! A model is treated as hostile: whatever it asks for is looked at here before anything is done.
//!
//! Only the agent's own tools, with arguments that fit; so many calls in a talk and no more; handed over only to the agent's
//! own targets. Nothing that a tool can reach changes money, the do-not-call list or keys. What is refused is told to the
//! model as a result, and stands in the timeline.
use super::{
    schema::Parameters,
    tools::{self, ToolSet},
};
use entities::{function::Model as Function, values::E164};
use serde_json::{Map, Value};

/// Tool calls in one talk, refused ones too.
pub const MAX_CALLS: usize = 60;
/// Tool calls in one turn.
pub const MAX_CALLS_A_TURN: usize = 8;
/// Turns in a row in which a model only calls tools.
pub const MAX_ROUNDS: usize = 8;
/// Turns with tools in one talk, refused ones too: a model that talks and calls for ever is no agent.
pub const MAX_TURNS: usize = 120;
/// Characters that are said at once.
pub const MAX_WORDS: usize = 2_000;

/// What may be done.
#[derive(Debug)]
pub enum Allowed {
    Function(Box<Function>, Value),
    Transfer(E164),
    End,
    Dispose {
        code: String,
        note: String,
    },
    Answer {
        key: String,
        question: String,
        value: Value,
    },
}

/// Counts what a model has asked for in one talk.
#[derive(Debug, Default)]
pub struct ToolPolicy {
    calls: usize,
    /// The agent was told once that a required question is open.
    reminded: bool,
}

impl ToolPolicy {
    /// `Err`: why not, in words for the model and for the timeline.
    pub fn look(
        &mut self,
        tool_set: &ToolSet,
        answered: &[String],
        name: &str,
        arguments: &str,
    ) -> Result<Allowed, String> {
        self.calls += 1;
        // Whatever it did before: it may always go.
        if self.calls > MAX_CALLS && name != tools::END {
            return Err(format!("more than {MAX_CALLS} tool calls in one talk"));
        }
        if let Some(function) = tool_set.functions.iter().find(|function| function.name == name) {
            let parameters = Parameters::parse(&function.definition.parameters)?;
            let fits = parameters.check(arguments).map_err(|faults| faults.join("; "))?;
            return Ok(Allowed::Function(Box::new(function.clone()), fits));
        }
        if !tool_set.tools().iter().any(|tool| tool.name == name) {
            return Err(format!("`{}` is not one of this agent's tools", shown(name)));
        }
        let fields = object(arguments)?;
        match name {
            tools::TRANSFER => {
                check(&fields, &["target"])?;
                let target = fields.get("target").map(text).transpose()?;
                let number = tool_set
                    .target(target)
                    .ok_or("`target` is not one of this agent's targets")?;
                Ok(Allowed::Transfer(number.clone()))
            }
            tools::END => {
                check(&fields, &[])?;
                self.may_end(tool_set, answered)
            }
            tools::DISPOSE => {
                check(&fields, &["code", "note"])?;
                let code = fields.get("code").map(text).transpose()?.unwrap_or_default();
                let known = tool_set.dispositions.iter().find(|one| &*one.code == code);
                let code = known
                    .ok_or("`code` is not one of this agent's dispositions")?
                    .code
                    .to_string();
                let note = fields.get("note").map(text).transpose()?.unwrap_or_default();
                Ok(Allowed::Dispose {
                    code,
                    note: clean(note, 1_000),
                })
            }
            tools::ANSWER => {
                check(&fields, &["key", "value"])?;
                let key = fields.get("key").map(text).transpose()?.unwrap_or_default();
                let known = tool_set.questions.iter().find(|one| &*one.key == key);
                let question = known.ok_or("`key` is not one of this agent's questions")?;
                let value = fields.get("value").unwrap_or(&Value::Null);
                let value = tools::fits(question, value).ok_or("`value` does not fit the question's type")?;
                Ok(Allowed::Answer {
                    key: question.key.to_string(),
                    question: question.text.to_string(),
                    value,
                })
            }
            _ => Err(format!("`{}` is not one of this agent's tools", shown(name))),
        }
    }

    /// An agent that forgot a required question is reminded once.
    fn may_end(&mut self, tool_set: &ToolSet, answered: &[String]) -> Result<Allowed, String> {
        let open = tool_set
            .questions
            .iter()
            .find(|question| question.required && !answered.iter().any(|key| **key == *question.key));
        match open {
            Some(question) if self.calls <= MAX_CALLS && !std::mem::replace(&mut self.reminded, true) => {
                Err(format!("ask first: {} (`{}`)", &*question.text, &*question.key))
            }
            Some(_) | None => Ok(Allowed::End),
        }
    }
}

/// Bytes of the arguments of a built-in tool.
const MAX_ARGUMENTS: usize = 16 * 1024;

fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.len() > MAX_ARGUMENTS {
        return Err("the arguments are larger than 16 KiB".into());
    }
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("the arguments are not a JSON object".into()),
        Err(_) => Err("the arguments are not JSON".into()),
    }
}

fn check(fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("`{}` is not an argument of this tool", shown(key))),
        None => Ok(()),
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "an argument is not text".into())
}

/// A model's word for a person's eyes: short, without control characters.
fn shown(word: &str) -> String {
    clean(word, 64)
}

/// Without control characters, and not longer than that.
pub fn clean(words: &str, longest: usize) -> String {
    let is_plain = |letter: &char| !letter.is_control() || *letter == '\n';
    words.chars().filter(is_plain).take(longest).collect()
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
