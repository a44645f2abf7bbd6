//! One connection to the local Realtime provider.
use super::realtime_server::{State, Turn};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

/// Why an ask is refused: code, parameter, words.
pub struct Refusal(&'static str, &'static str, String);
pub type Outcome = Result<(), Refusal>;

pub fn refuse(code: &'static str, param: &'static str, words: impl Into<String>) -> Outcome {
    Err(Refusal(code, param, words.into()))
}

/// One of the conversation.
pub struct Item {
    pub id: String,
    /// As `user: words`, `user: 300 ms`, `agent: words`, `call: name` or `output: value`.
    pub what: String,
    /// Of its sound, if it is the agent's; what is heard of it once it was cut.
    pub sound_ms: Option<u64>,
    pub is_cut: bool,
}

impl Item {
    fn told(&self) -> String {
        match self.sound_ms {
            Some(ms) if self.is_cut => format!("{}, cut after {ms} ms", self.what),
            _ => self.what.clone(),
        }
    }
}

pub struct Session {
    pub socket: WebSocketStream<TcpStream>,
    pub state: Arc<State>,
    /// 24 kHz PCM in place of mu-law.
    pub wide: bool,
    transcribes: bool,
    heard: usize,
    pub buffer: Vec<u8>,
    pub turn: Turn,
    pub answers: usize,
    /// The conversation: what the model knows.
    pub items: Vec<Item>,
    items_made: usize,
    /// Ids of calls that wait for their output, and of their items.
    pub calls: Vec<(String, String)>,
    pub calls_made: usize,
    /// The answer that has not ended, and the item that it speaks.
    pub running: Option<(String, String)>,
    /// The items of that answer, told of again when it ends.
    pub output: Vec<Value>,
    pub open: bool,
}

impl Session {
    pub fn over(socket: WebSocketStream<TcpStream>, state: Arc<State>) -> Self {
        Session {
            socket,
            state,
            wide: false,
            transcribes: false,
            heard: 0,
            buffer: Vec::new(),
            turn: Turn::default(),
            answers: 0,
            items: Vec::new(),
            items_made: 0,
            calls: Vec::new(),
            calls_made: 0,
            running: None,
            output: Vec::new(),
            open: true,
        }
    }

    pub async fn run(mut self) {
        if !self.state.ways.lock().unwrap().says_nothing {
            self.send(json!({"type": "session.created", "session": {"type": "realtime"}}))
                .await;
        }
        while self.open {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => self.take(serde_json::from_str(&text).unwrap()).await,
                Some(Ok(Message::Pong(_))) => self.state.note(json!({"type": "pong"})),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Nobody may be there any more: the next read tells.
    pub async fn send(&mut self, event: Value) {
        let _ = self.socket.send(Message::text(event.to_string())).await;
    }

    async fn take(&mut self, ask: Value) {
        let outcome = self.handle(&ask).await;
        // Last, so that who waits for it finds it done.
        self.state.note(ask.clone());
        if let Err(Refusal(code, param, message)) = outcome {
            let event_id = match self.state.ways.lock().unwrap().names_no_asks {
                true => Value::Null,
                false => ask["event_id"].clone(),
            };
            let error = json!({"type": "invalid_request_error", "code": code, "param": param, "message": message,
                "event_id": event_id});
            let error = json!({"type": "error", "error": error});
            self.state.note(error.clone());
            self.send(error).await;
        }
    }

    async fn handle(&mut self, ask: &Value) -> Outcome {
        match ask["type"].as_str().unwrap_or_default() {
            "session.update" => self.update(&ask["session"]).await,
            "input_audio_buffer.append" => match BASE64.decode(ask["audio"].as_str().unwrap_or("?")) {
                Ok(sound) => {
                    self.buffer.extend(sound);
                    Ok(())
                }
                Err(_) => refuse("invalid_value", "audio", "Invalid base64."),
            },
            "input_audio_buffer.clear" => {
                self.buffer.clear();
                Ok(())
            }
            "input_audio_buffer.commit" => self.commit().await,
            "conversation.item.create" => self.create_item(&ask["item"]).await,
            "conversation.item.truncate" => self.truncate(ask).await,
            "conversation.item.delete" => self.delete(ask["item_id"].as_str().unwrap_or_default()),
            "response.create" => self.answer(ask).await,
            "response.cancel" => self.cancel().await,
            other => refuse("invalid_value", "type", format!("Invalid value: '{other}'.")),
        }
    }

    async fn update(&mut self, session: &Value) -> Outcome {
        const KNOWN: [&str; 5] = ["type", "instructions", "output_modalities", "tools", "audio"];
        let unknown = session
            .as_object()
            .unwrap()
            .keys()
            .find(|key| !KNOWN.contains(&key.as_str()));
        if let Some(unknown) = unknown {
            return refuse(
                "unknown_parameter",
                "session",
                format!("Unknown parameter: 'session.{unknown}'."),
            );
        }
        if session["type"] != "realtime" || session["output_modalities"] != json!(["audio"]) {
            return refuse("invalid_value", "session", "Not a session that speaks.");
        }
        let tools = session["tools"].as_array().unwrap();
        if !tools
            .iter()
            .all(|tool| tool["type"] == "function" && tool["name"].is_string() && tool["parameters"].is_object())
        {
            return refuse("invalid_value", "session.tools", "Not a function.");
        }
        let audio = &session["audio"];
        if audio["input"].get("turn_detection") != Some(&Value::Null) {
            return refuse(
                "invalid_value",
                "session.audio.input.turn_detection",
                "This server cannot hear turns.",
            );
        }
        self.transcribes = match &audio["input"]["transcription"] {
            Value::Null => false,
            wanted if wanted["model"].is_string() && !self.state.ways.lock().unwrap().refuses_transcription => true,
            _ => {
                let words = "Unknown parameter.";
                return refuse("unknown_parameter", "session.audio.input.transcription", words);
            }
        };
        self.wide = match &audio["input"]["format"] {
            format if audio["output"]["format"] != *format => {
                return refuse(
                    "invalid_value",
                    "session.audio.output.format",
                    "This server speaks as it hears.",
                );
            }
            format
                if *format == json!({"type": "audio/pcm", "rate": 24000})
                    && !self.state.ways.lock().unwrap().refuses_pcm =>
            {
                true
            }
            format if *format == json!({"type": "audio/pcmu"}) && !self.state.ways.lock().unwrap().refuses_pcmu => {
                false
            }
            format => {
                let words = format!("Invalid value: {format}. It is not supported here.");
                return refuse("invalid_value", "session.audio.input.format", words);
            }
        };
        self.send(json!({"type": "session.updated", "session": session})).await;
        Ok(())
    }

    pub fn bytes_per_ms(&self) -> usize {
        if self.wide { 48 } else { 8 }
    }

    async fn commit(&mut self) -> Outcome {
        let ms = self.buffer.len() / self.bytes_per_ms();
        if ms < 100 {
            let words = format!(
                "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has {ms}ms of audio."
            );
            return refuse("input_audio_buffer_commit_empty", "", words);
        }
        self.turn.audio.append(&mut self.buffer);
        let item_id = self.item(format!("user: {ms} ms"), None);
        self.send(json!({"type": "input_audio_buffer.committed", "item_id": item_id}))
            .await;
        let hears = self.state.hears.lock().unwrap().clone().filter(|_| self.transcribes);
        let heard = hears.map(|hears| hears(self.heard, &item_id)).unwrap_or_default();
        for event in heard {
            self.send(event).await;
        }
        self.heard += 1;
        Ok(())
    }

    pub fn item(&mut self, what: String, sound_ms: Option<u64>) -> String {
        self.items_made += 1;
        let id = format!("item_{}", self.items_made);
        self.add(id.clone(), what, sound_ms);
        id
    }

    fn add(&mut self, id: String, what: String, sound_ms: Option<u64>) {
        let is_cut = false;
        self.items.push(Item {
            id,
            what,
            sound_ms,
            is_cut,
        });
    }

    pub fn spoken(&mut self, id: &str) -> Option<&mut Item> {
        self.items
            .iter_mut()
            .find(|item| item.id == id && item.sound_ms.is_some())
    }

    /// What the model knows when it is asked.
    pub fn conversation(&self) -> Vec<String> {
        self.items.iter().map(Item::told).collect()
    }

    fn delete(&mut self, id: &str) -> Outcome {
        let Some(place) = self.items.iter().position(|item| item.id == id) else {
            return refuse("item_delete_invalid_item_id", "item_id", "The item does not exist.");
        };
        self.items.remove(place);
        // A call that was never made needs no output.
        self.calls.retain(|(_, item)| item != id);
        Ok(())
    }

    async fn create_item(&mut self, item: &Value) -> Outcome {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let content = &item["content"][0];
        let what = match (
            text(&item["type"]).as_str(),
            text(&item["role"]).as_str(),
            text(&content["type"]).as_str(),
        ) {
            ("message", "user", "input_text") => {
                self.turn.texts.push(text(&content["text"]));
                format!("user: {}", text(&content["text"]))
            }
            ("message", "assistant", "output_text") => format!("agent: {}", text(&content["text"])),
            ("function_call_output", ..) => {
                let id = text(&item["call_id"]);
                let Some(place) = self.calls.iter().position(|(call, _)| *call == id) else {
                    return refuse(
                        "invalid_tool_call_id",
                        "item.call_id",
                        format!("No call '{id}' waits for an output."),
                    );
                };
                self.calls.remove(place);
                self.turn.outputs.push((id, text(&item["output"])));
                format!("output: {}", text(&item["output"]))
            }
            _ => return refuse("invalid_value", "item", "Not an item."),
        };
        let id = match item["id"].as_str() {
            Some(own) if self.items.iter().any(|item| item.id == own) => {
                return refuse("item_create_invalid_item_id", "item.id", "The item exists.");
            }
            Some(own) => {
                self.add(own.to_owned(), what, None);
                own.to_owned()
            }
            None => self.item(what, None),
        };
        self.send(json!({"type": "conversation.item.added", "item": {"id": id, "type": item["type"]}}))
            .await;
        Ok(())
    }

    async fn truncate(&mut self, ask: &Value) -> Outcome {
        let id = ask["item_id"].as_str().unwrap_or_default();
        let (Some(item), Some(end), Some(0)) = (
            self.spoken(id),
            ask["audio_end_ms"].as_u64(),
            ask["content_index"].as_u64(),
        ) else {
            return refuse(
                "unsupported_content_type",
                "item_id",
                "Only model output audio messages can be truncated",
            );
        };
        let ms = item.sound_ms.unwrap_or_default();
        if end > ms {
            let words = format!("Audio content of {ms}ms is already shorter than {end}ms");
            return refuse("invalid_value", "audio_end_ms", words);
        }
        (item.sound_ms, item.is_cut) = (Some(end), true);
        self.send(json!({"type": "conversation.item.truncated", "item_id": id, "audio_end_ms": end}))
            .await;
        Ok(())
    }

    async fn cancel(&mut self) -> Outcome {
        let Some((response, item)) = self.running.clone() else {
            return refuse(
                "response_cancel_not_active",
                "",
                "Cancellation failed: no active response found",
            );
        };
        if !item.is_empty() {
            // Sound that was on its way already.
            for _ in 0..300 {
                self.delta("response.output_audio.delta", &response, &item, "//8=")
                    .await;
            }
            self.repeat(
                json!({"id": item, "type": "message", "status": "incomplete", "role": "assistant",
                "content": [{"type": "output_audio", "transcript": "And then"}]}),
            );
        }
        self.done("cancelled", json!({"type": "cancelled", "reason": "client_cancelled"}))
            .await;
        Ok(())
    }
}
