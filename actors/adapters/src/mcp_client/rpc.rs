//! JSON-RPC 2.0, as much of it as a client of MCP needs: one request at a time, and whatever a server says meanwhile.
use bytes::Bytes;
use serde_json::{Value, json};

/// Revisions that are spoken here, the one that is asked for first.
pub const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Something a server said.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The answer to our request.
    Answer(Result<Value, Refusal>),
    /// A request of the server's own. We offer nothing that it could ask for.
    Asked { id: Value, is_ping: bool },
    /// A notification, such as progress, or an answer to nothing that was asked.
    Other,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: i64,
    pub message: String,
}

pub fn request(id: u64, method: &str, params: &Value) -> Bytes {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        .to_string()
        .into()
}

pub fn notification(method: &str) -> Bytes {
    json!({ "jsonrpc": "2.0", "method": method }).to_string().into()
}

/// Nobody waits for the answer to that request any more.
pub fn cancelled(id: u64, reason: &str) -> Bytes {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": reason } })
        .to_string()
        .into()
}

/// What a server's own request is answered: a ping is, for a server may wait for that; everything else is not offered.
pub fn reply(id: &Value, is_ping: bool) -> Bytes {
    let reply = if is_ping {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    } else {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "method not found" } })
    };
    reply.to_string().into()
}

/// What a text holds, from the view of who waits for the answer to request `id`: one message or, as 2025-03-26 has it, a batch.
pub fn read(text: &[u8], id: u64) -> Result<Vec<Message>, &'static str> {
    match serde_json::from_slice::<Value>(text).map_err(|_| "is not JSON")? {
        Value::Array(batch) => batch.into_iter().map(|message| of(message, id)).collect(),
        message => Ok(vec![of(message, id)?]),
    }
}

fn of(mut message: Value, id: u64) -> Result<Message, &'static str> {
    const NOT_RPC: &str = "is not a JSON-RPC 2.0 message";
    if message["jsonrpc"] != "2.0" {
        return Err(NOT_RPC);
    }
    let its_id = message.get("id").cloned();
    if let Some(method) = message.get("method") {
        return Ok(match its_id {
            Some(id @ (Value::String(_) | Value::Number(_))) => Message::Asked {
                id,
                is_ping: method == "ping",
            },
            _ => Message::Other,
        });
    }
    let is_ours = its_id.as_ref().and_then(Value::as_u64) == Some(id);
    if let Some(error) = message.get("error") {
        // Whoever could not read a request does not know its id; there is no other request than ours.
        return Ok(if is_ours || its_id.is_none_or(|id| id.is_null()) {
            Message::Answer(Err(Refusal {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }))
        } else {
            Message::Other
        });
    }
    match message.get_mut("result") {
        Some(result) if is_ours => Ok(Message::Answer(Ok(result.take()))),
        Some(_) => Ok(Message::Other),
        None => Err(NOT_RPC),
    }
}
