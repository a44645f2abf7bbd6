//! JSON-RPC 2.0 as the protocol uses it: what a client has sent, and what goes back.
use super::version::Version;
use rules::shape;
use serde_json::{Map, Value, json};

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;

/// Messages of one batch.
pub const MAX_BATCH: usize = 10;
/// Letters of a request's id: it goes back as it came.
const MAX_ID: usize = 200;

pub type Params = Map<String, Value>;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl Fault {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Fault {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn params(message: impl Into<String>) -> Self {
        Fault::new(INVALID_PARAMS, message)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request {
        id: Value,
        method: String,
        params: Params,
    },
    /// Nothing goes back.
    Notification {
        method: String,
        params: Params,
    },
    /// To a request of ours, of which there are none: nothing goes back.
    Response,
    /// The id is null where none could be read.
    Invalid {
        id: Value,
        fault: Fault,
    },
}

/// What one line, or one body, holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    One(Message),
    Batch(Vec<Message>),
}

impl Incoming {
    fn refused(code: i64, message: impl Into<String>) -> Self {
        Incoming::One(Message::Invalid {
            id: Value::Null,
            fault: Fault::new(code, message),
        })
    }

    /// Of a message that is longer than `most` bytes, and was not kept.
    pub fn too_long(most: usize) -> Self {
        Incoming::refused(INVALID_REQUEST, format!("a message has at most {most} bytes"))
    }
}

pub fn read(text: &[u8], version: Version) -> Incoming {
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => return Incoming::refused(PARSE_ERROR, format!("this is not JSON: {}", shape::not_json(&error))),
    };
    match value {
        Value::Array(_) if !version.has_batches() => Incoming::refused(
            INVALID_REQUEST,
            format!(
                "protocol version {} has no batches: send one message at a time",
                version.as_str()
            ),
        ),
        Value::Array(all) if all.is_empty() => Incoming::refused(INVALID_REQUEST, "the batch is empty"),
        Value::Array(all) if all.len() > MAX_BATCH => {
            Incoming::refused(INVALID_REQUEST, format!("a batch has at most {MAX_BATCH} messages"))
        }
        Value::Array(all) => Incoming::Batch(all.into_iter().map(|value| alone(message(value))).collect()),
        value => Incoming::One(message(value)),
    }
}

/// Source: specification 2025-03-26, "Initialization": it must not be part of a batch.
fn alone(message: Message) -> Message {
    match message {
        Message::Request { id, method, .. } if method == "initialize" => Message::Invalid {
            id,
            fault: Fault::new(INVALID_REQUEST, "`initialize` must be sent alone, not in a batch"),
        },
        other => other,
    }
}

fn message(value: Value) -> Message {
    let Value::Object(mut fields) = value else {
        return invalid(Value::Null, "a message is a JSON object");
    };
    let given = fields.remove("id");
    let id = given.clone().filter(is_id);
    let shown = id.clone().unwrap_or_default();
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(shown, "`jsonrpc` must be \"2.0\"");
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        None if given.is_some() && (fields.contains_key("result") || fields.contains_key("error")) => {
            return Message::Response;
        }
        Some(_) | None => return invalid(shown, "`method` must be a text"),
    };
    let params = match fields.remove("params") {
        None | Some(Value::Null) => Ok(Params::new()),
        Some(Value::Object(params)) => Ok(params),
        Some(_) => Err(Fault::params("`params` must be an object")),
    };
    match (given, id) {
        // Whoever wants no answer hears of no mistake either.
        (None, _) => Message::Notification {
            method,
            params: params.unwrap_or_default(),
        },
        (Some(_), None) => invalid(
            Value::Null,
            format!("`id` must be a whole number, or a text of at most {MAX_ID} letters"),
        ),
        (Some(_), Some(id)) => match params {
            Ok(params) => Message::Request { id, method, params },
            Err(fault) => Message::Invalid { id, fault },
        },
    }
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.chars().count() <= MAX_ID,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn invalid(id: Value, message: impl Into<String>) -> Message {
    Message::Invalid {
        id,
        fault: Fault::new(INVALID_REQUEST, message),
    }
}

/// What goes back to a request.
pub fn response(id: Value, outcome: Result<Value, Fault>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(fault) => {
            let mut error = json!({ "code": fault.code, "message": fault.message });
            if let Some(data) = fault.data {
                error["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str, version: Version) -> (Value, i64) {
        match read(text.as_bytes(), version) {
            Incoming::One(Message::Invalid { id, fault }) => (id, fault.code),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_its_code() {
        let latest = Version::LATEST;
        for (text, id, expected) in [
            ("", Value::Null, PARSE_ERROR),
            ("{", Value::Null, PARSE_ERROR),
            ("{} {}", Value::Null, PARSE_ERROR),
            ("\u{feff}{}", Value::Null, PARSE_ERROR),
            ("1", Value::Null, INVALID_REQUEST),
            ("{}", Value::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, json!(1), INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                Value::Null,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                Value::Null,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#,
                json!("a"),
                INVALID_PARAMS,
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                Value::Null,
                INVALID_REQUEST,
            ),
        ] {
            assert_eq!(code(text, latest), (id, expected), "{text}");
        }
        assert_eq!(code("[]", Version::V20250326).1, INVALID_REQUEST);
        let many = ["{}"; MAX_BATCH + 1].join(",");
        assert_eq!(code(&format!("[{many}]"), Version::V20250326).1, INVALID_REQUEST);
        let deep = "[".repeat(100_000);
        assert_eq!(code(&deep, latest).1, PARSE_ERROR);
        let id = "x".repeat(MAX_ID + 1);
        let long = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#);
        assert_eq!(code(&long, latest), (Value::Null, INVALID_REQUEST));
    }

    #[test]
    fn a_message_is_known_by_its_fields() {
        let one = |text: &str| read(text.as_bytes(), Version::LATEST);
        assert_eq!(
            one(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1}}"#),
            Incoming::One(Message::Request {
                id: json!(7),
                method: "ping".into(),
                params: Params::from_iter([("a".to_owned(), json!(1))]),
            })
        );
        for text in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}"#,
        ] {
            let expected = Message::Notification {
                method: "notifications/initialized".into(),
                params: Params::new(),
            };
            assert_eq!(one(text), Incoming::One(expected), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}"#,
        ] {
            assert_eq!(one(text), Incoming::One(Message::Response), "{text}");
        }
    }

    #[test]
    fn a_batch_holds_everything_but_the_beginning() {
        let text = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"initialize"},3]"#;
        for version in [Version::V20241105, Version::V20250326] {
            let Incoming::Batch(all) = read(text.as_bytes(), version) else {
                panic!("{version:?} has batches");
            };
            assert!(matches!(&all[0], Message::Request { id, .. } if *id == 1));
            assert!(matches!(&all[1], Message::Invalid { id, .. } if *id == 2));
            assert!(matches!(&all[2], Message::Invalid { id, .. } if id.is_null()));
        }
    }
}
