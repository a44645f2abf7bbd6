//! What the local Realtime provider answers: the test's script, as the events of the protocol.
use super::{
    realtime_server::Answer,
    realtime_session::{Outcome, Session, refuse},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

impl Session {
    pub async fn answer(&mut self, ask: &Value) -> Outcome {
        if self.running.is_some() {
            let words = "Conversation already has an active response in progress.";
            return refuse("conversation_already_has_active_response", "", words);
        }
        if !self.calls.is_empty() {
            return refuse("missing_output", "", "A call has no output.");
        }
        self.turn.conversation = self.conversation();
        self.turn.instructions = ask["response"]["instructions"].as_str().map(str::to_owned);
        let turn = std::mem::take(&mut self.turn);
        let answer = (self.state.script)(&turn, self.answers);
        self.answers += 1;
        let response = format!("resp_{}", self.answers);
        match answer {
            Answer::Error(words) => return refuse("server_error", "", words),
            Answer::Close => {
                let _ = self.socket.close(None).await;
                self.open = false;
                return Ok(());
            }
            Answer::Ignore => return Ok(()),
            Answer::Garbage => {
                let _ = self.socket.send(Message::text("<html>502</html>")).await;
                return Ok(());
            }
            _ => {}
        }
        self.running = Some((response.clone(), String::new()));
        self.send(json!({"type": "response.created", "response": {"id": response, "status": "in_progress"}}))
            .await;
        match answer {
            Answer::Say(words) => self.say(&response, &words).await,
            Answer::Calls(calls) => self.call(&response, calls).await,
            Answer::SayAndCalls(words, calls) => {
                self.say(&response, &words).await;
                self.call(&response, calls).await;
            }
            Answer::UnknownEvents(words) => {
                let odd =
                    json!({"type": "response.mood.delta", "response_id": response, "delta": {"joy": [1]}, "item": 7});
                self.send(odd.clone()).await;
                self.say(&response, &words).await;
                self.send(odd).await;
            }
            Answer::Raw(events) => {
                for mut event in events {
                    if event.get("response_id").is_none() {
                        event["response_id"] = json!(response);
                    }
                    self.send(event).await;
                }
            }
            Answer::SayGated(words, mut gate) => {
                let item = self.begin(&response, &words).await;
                self.sound(&response, &item, 20).await;
                // A test that is over needs no answer.
                let _ = gate.wait_for(|is_open| *is_open).await;
                self.sound(&response, &item, 60 * words.chars().count() - 20).await;
                self.end(&response, &item, &words).await;
            }
            Answer::SayAndBreak(words, broken) => {
                let item = self.begin(&response, &words).await;
                self.sound(&response, &item, 60 * words.chars().count()).await;
                match broken {
                    Some(garbage) => {
                        let _ = self.socket.send(Message::text(garbage)).await;
                    }
                    None => {
                        let _ = self.socket.close(None).await;
                        self.open = false;
                    }
                }
                return Ok(());
            }
            Answer::SayAndHang(words) => {
                self.say(&response, &words).await;
                let item = self.item("agent: And then".into(), Some(0));
                self.added(&response, &item).await;
                self.sound(&response, &item, 40).await;
                self.running = Some((response, item));
                return Ok(());
            }
            Answer::Hang => return Ok(()),
            Answer::Fail(words) => {
                self.done(
                    "failed",
                    json!({"type": "failed", "error": {"type": "server_error", "message": words}}),
                )
                .await;
                return Ok(());
            }
            Answer::Error(_) | Answer::Close | Answer::Garbage | Answer::Ignore => {}
        }
        self.done("completed", Value::Null).await;
        Ok(())
    }

    async fn added(&mut self, response: &str, item: &str) {
        let item = json!({"id": item, "type": "message", "status": "in_progress", "role": "assistant", "content": []});
        self.send(json!({"type": "response.output_item.added", "response_id": response, "item": item, "extra": {}}))
            .await;
    }

    async fn say(&mut self, response: &str, words: &str) {
        let item = self.begin(response, words).await;
        self.sound(response, &item, 60 * words.chars().count()).await;
        self.end(response, &item, words).await;
    }

    /// An item, and its words.
    async fn begin(&mut self, response: &str, words: &str) -> String {
        let item = self.item(format!("agent: {words}"), Some(0));
        self.added(response, &item).await;
        for word in words.split_inclusive(' ') {
            self.delta("response.output_audio_transcript.delta", response, &item, word)
                .await;
        }
        item
    }

    async fn end(&mut self, response: &str, item: &str, words: &str) {
        let event = json!({"response_id": response, "item_id": item, "transcript": words});
        for kind in ["response.output_audio.done", "response.output_audio_transcript.done"] {
            let mut event = event.clone();
            event["type"] = json!(kind);
            self.send(event).await;
        }
        let content = json!([{"type": "output_audio", "transcript": words}]);
        let item =
            json!({"id": item, "type": "message", "status": "completed", "role": "assistant", "content": content});
        self.repeat(item.clone());
        self.send(json!({"type": "response.output_item.done", "response_id": response, "item": item}))
            .await;
    }

    /// A tone, 20 ms in each event.
    async fn sound(&mut self, response: &str, item: &str, ms: usize) {
        let samples = tone(ms, if self.wide { 24_000 } else { 8_000 });
        let bytes: Vec<u8> = match self.wide {
            true => samples.iter().flat_map(|sample| sample.to_le_bytes()).collect(),
            false => samples.into_iter().map(mu_law).collect(),
        };
        for frame in bytes.chunks(20 * self.bytes_per_ms()) {
            self.delta("response.output_audio.delta", response, item, &BASE64.encode(frame))
                .await;
        }
        let item = self.spoken(item).unwrap();
        item.sound_ms = item.sound_ms.map(|before| before + ms as u64);
    }

    pub async fn delta(&mut self, kind: &str, response: &str, item: &str, delta: &str) {
        let event = json!({"type": kind, "response_id": response, "item_id": item, "content_index": 0, "delta": delta});
        self.send(event).await;
    }

    async fn call(&mut self, response: &str, calls: Vec<(String, String)>) {
        for (name, arguments) in calls {
            self.calls_made += 1;
            let (item_id, call_id) = (
                self.item(format!("call: {name}"), None),
                format!("call_{}", self.calls_made),
            );
            self.calls.push((call_id.clone(), item_id.clone()));
            self.send(
                json!({"type": "response.function_call_arguments.done", "response_id": response,
                "item_id": item_id, "call_id": call_id, "name": name, "arguments": arguments}),
            )
            .await;
            let item = json!({"id": item_id, "type": "function_call", "status": "completed", "call_id": call_id,
                "name": name, "arguments": arguments});
            self.repeat(item.clone());
            self.send(json!({"type": "response.output_item.done", "response_id": response, "item": item}))
                .await;
        }
    }

    /// The answer's end tells of that item again.
    pub fn repeat(&mut self, item: Value) {
        self.output.push(item);
    }

    pub async fn done(&mut self, status: &str, details: Value) {
        let Some((response, _)) = self.running.take() else {
            return;
        };
        let mut output = std::mem::take(&mut self.output);
        if self.state.ways.lock().unwrap().repeats_nothing {
            output.clear();
        }
        let response = json!({"id": response, "status": status, "status_details": details, "output": output});
        self.send(json!({"type": "response.done", "response": response})).await;
        let _ = self.socket.send(Message::Ping("still there?".into())).await;
    }
}

/// 440 Hz at that many samples a second.
pub fn tone(ms: usize, rate: usize) -> Vec<i16> {
    let angle = |n: usize| 2.0 * std::f32::consts::PI * 440.0 * n as f32 / rate as f32;
    (0..ms * rate / 1000)
        .map(|n| (8_000.0 * angle(n).sin()) as i16)
        .collect()
}

/// G.711 mu-law by its definition: the nearest of the 256 values.
pub fn mu_law(sample: i16) -> u8 {
    let value = |byte: u8| {
        let (exponent, mantissa) = ((!byte >> 4) & 7, i32::from(!byte & 15));
        let magnitude = ((2 * mantissa + 33) << (exponent + 2)) - 132;
        if byte & 0x80 == 0 { -magnitude } else { magnitude }
    };
    (0..=255)
        .min_by_key(|byte| (value(*byte) - i32::from(sample)).abs())
        .unwrap()
}
