//! A local server of the Twilio shape: it keeps what it is handed, answers as it is told, and signs its callbacks with its own
//! few lines.
use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha1::Sha1;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

pub const ACCOUNT: &str = "AC0123456789";
pub const TOKEN: &str = "a-token-of-ours";

/// What it does with a request.
#[derive(Clone)]
pub enum Reply {
    Taken,
    /// Status, `Retry-After`, body.
    Status(u16, Option<&'static str>, Value),
    /// Takes it, and closes the connection instead of saying so.
    HangUp,
    /// No answer at all.
    Hang,
}

impl Reply {
    /// As the service words an error.
    pub fn error(status: u16, code: i64) -> Reply {
        Reply::Status(
            status,
            None,
            json!({ "code": code, "message": "said by the provider", "status": status }),
        )
    }
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub authorization: String,
    pub fields: BTreeMap<String, String>,
    /// It is told that the message was not taken.
    pub not_taken: bool,
}

#[derive(Default)]
struct State {
    asked: Mutex<Vec<Asked>>,
    replies: Mutex<VecDeque<Reply>>,
    arrived: Notify,
}

pub struct Twilio {
    pub url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Drop for Twilio {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Twilio {
    pub async fn start() -> Twilio {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let serving = state.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let state = serving.clone();
                // A client may hang up whenever it likes.
                tokio::spawn(async move { converse(stream, &state).await });
            }
        });
        Twilio { url, state, task }
    }

    /// The requests so far, oldest first.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// What the next requests are answered with; after them each is taken.
    pub fn answer_next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.replies.lock().unwrap().extend(replies);
    }

    /// Waits until so many requests have come.
    pub async fn arrived(&self, count: usize) {
        while self.asked().len() < count {
            self.state.arrived.notified().await;
        }
    }
}

async fn converse(mut stream: TcpStream, state: &State) -> Option<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = header(head, "content-length")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        if body.len() >= length {
            break (head.to_owned(), body.to_owned());
        }
    };
    let fields = url::form_urlencoded::parse(body.as_bytes());
    let (nth, reply) = {
        let mut asked = state.asked.lock().unwrap();
        let reply = state.replies.lock().unwrap().pop_front().unwrap_or(Reply::Taken);
        asked.push(Asked {
            not_taken: matches!(reply, Reply::Status(..)),
            path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
            authorization: header(&head, "authorization").unwrap_or_default(),
            fields: fields
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        });
        (asked.len(), reply)
    };
    state.arrived.notify_one();
    let (status, retry_after, body) = match reply {
        Reply::Taken => (201, None, json!({ "sid": format!("SM{nth}"), "status": "queued" })),
        Reply::Status(status, retry_after, body) => (status, retry_after, body),
        Reply::HangUp => return None,
        Reply::Hang => {
            // Until the client goes.
            let _ = stream.read(&mut [0; 1]).await;
            return None;
        }
    };
    let retry_after = retry_after
        .map(|text| format!("Retry-After: {text}\r\n"))
        .unwrap_or_default();
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{retry_after}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.ok()
}

fn header(head: &str, name: &str) -> Option<String> {
    let found = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim().to_owned())
}

/// The signature of a callback, as the service's documentation has it.
pub fn signature(token: &str, url: &str, fields: &[(&str, &str)]) -> String {
    let mut sorted = fields.to_vec();
    sorted.sort();
    let text = sorted
        .iter()
        .fold(url.to_owned(), |text, (name, value)| text + name + value);
    let mut mac = Hmac::<Sha1>::new_from_slice(token.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

/// Posts a form as the service does; answers status and body.
pub async fn call_back(url: &str, fields: &[(&str, &str)], signature: &str) -> (u16, String) {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let response = super::client()
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("X-Twilio-Signature", signature)
        .body(body)
        .send()
        .await
        .unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}
