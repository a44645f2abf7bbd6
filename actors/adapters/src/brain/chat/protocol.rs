//! What goes over the wire. Lenient where we read: servers that call themselves compatible differ in every field.
use rules::conversation::tools::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize)]
pub struct Request<'a> {
    pub model: &'a str,
    pub messages: &'a [Message],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tools: &'a [Value],
    pub stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Value>,
}

/// A tool as a request names it.
pub fn tool(tool: &Tool) -> Value {
    json!({ "type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": tool.parameters,
    } })
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        /// `None` only beside calls.
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolCall {
    pub id: String,
    pub r#type: &'static str,
    pub function: Function,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    pub name: String,
    /// JSON, in a string.
    pub arguments: String,
}

/// One event of a stream, or a whole completion.
#[derive(Debug, Deserialize)]
pub struct Completion {
    pub model: Option<String>,
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    /// An object, or just words.
    pub error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub struct Choice {
    #[serde(default)]
    pub index: Option<u64>,
    /// In a stream.
    delta: Option<Delta>,
    /// In a whole completion.
    message: Option<Delta>,
    pub finish_reason: Option<String>,
}

impl Choice {
    pub fn take(self) -> (Delta, Option<String>) {
        let delta = self.delta.or(self.message).unwrap_or_default();
        // Some send an empty one until there is one.
        (delta, self.finish_reason.filter(|reason| !reason.is_empty()))
    }
}

#[derive(Debug, Default, Deserialize)]
pub struct Delta {
    /// A string, or parts that have a text each.
    content: Option<Value>,
    /// What a model says that will not answer.
    pub refusal: Option<String>,
    pub tool_calls: Option<Vec<CallDelta>>,
}

impl Delta {
    pub fn text(&self) -> String {
        match &self.content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// A piece of a call. Only the first has a name, as a rule; the index says which call it is of.
#[derive(Debug, Deserialize)]
pub struct CallDelta {
    pub index: Option<u64>,
    pub id: Option<String>,
    pub function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
pub struct FunctionDelta {
    pub name: Option<String>,
    /// A string; an object from some.
    arguments: Option<Value>,
}

impl FunctionDelta {
    pub fn arguments(&self) -> String {
        match &self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// What an error says for people, in whichever of the usual places.
pub fn error_message(error: &Value) -> Option<String> {
    let places = [
        &error["error"]["message"],
        &error["error"],
        &error["message"],
        &error["detail"],
        error,
    ];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}
