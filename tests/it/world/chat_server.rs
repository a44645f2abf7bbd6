//! A real local provider of chat completions. Speaks HTTP/1.1 and the protocol with its own few lines, not with the service's.
//!
//! What it sends is cut into pieces of five bytes, so that lines, events and letters end anywhere.
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
};

/// What it answers. A request without `stream: true` gets the same as one whole completion.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Streamed, a few letters at a time.
    Words(String),
    /// Names and arguments, in fragments by index.
    Calls(Vec<(String, String)>),
    WordsAndCalls(String, Vec<(String, String)>),
    /// A JSON body, whatever was asked for.
    Whole(Value),
    /// An error body with this message. 429 and 503 also ask to come again at once.
    Status(u16, String),
    /// An error object in the middle of a stream.
    StreamError(String),
    /// A page for people.
    Garbage,
    /// The connection is reset without an answer.
    Reset,
    /// Words, then the connection is reset.
    CutOff(String),
    /// Words, then a proper end of the body, but not of the answer.
    Unfinished(String),
    /// Words, then silence until the client goes.
    Stall(String),
    /// No answer at all until the client goes.
    Hang,
    /// An empty list, to one client only when the other end says so.
    Late(Arc<Mutex<Option<oneshot::Receiver<()>>>>),
    /// Words, as one whole completion, once the gate is open.
    Gated(watch::Receiver<bool>, String),
    /// One letter every 10 ms.
    Drip(String),
    /// A word at a time: the first so late, each other one so long after the one before.
    Paced {
        first: Duration,
        each: Duration,
        words: String,
    },
    /// Words among comments, events and fields that nobody knows, with CRLF.
    UnknownEvents(String),
    /// A body of this content type.
    Raw(&'static str, String),
    /// This much of an event stream, then silence until the client goes.
    Open(String),
}

pub fn calls<const N: usize>(calls: [(&str, &str); N]) -> Vec<(String, String)> {
    calls
        .map(|(name, arguments)| (name.to_owned(), arguments.to_owned()))
        .into()
}

type Decide = dyn Fn(&Value, usize) -> Answer + Send + Sync;

struct State {
    decide: Box<Decide>,
    /// To whoever asks for the models.
    models: Mutex<Answer>,
    requests: Mutex<Vec<(Value, Option<String>)>>,
    /// Connections that ended before the whole answer was there.
    abandoned: watch::Sender<usize>,
}

pub struct ChatServer {
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

impl ChatServer {
    /// Says back what it hears.
    pub async fn start() -> Self {
        Self::start_with(|request, _| {
            let messages = request["messages"].as_array().unwrap();
            let last = messages.iter().rev().find(|message| message["role"] == "user");
            let heard = last
                .and_then(|message| message["content"].as_str())
                .unwrap_or("nothing");
            Answer::Words(format!("You said: {heard}"))
        })
        .await
    }

    /// The closure decides, from the request and from how many came before it.
    pub async fn start_with(decide: impl Fn(&Value, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            decide: Box::new(decide),
            models: Mutex::new(Answer::Whole(
                json!({ "object": "list", "data": [{ "id": "local", "object": "model" }] }),
            )),
            requests: Mutex::default(),
            abandoned: watch::Sender::new(0),
        });
        let serving = tokio::spawn(serve(listener, state.clone()));
        ChatServer {
            address,
            state,
            serving,
        }
    }

    /// What it answers from now on when it is asked for its models.
    pub fn answer_models(&self, answer: Answer) {
        *self.state.models.lock().unwrap() = answer;
    }

    /// Who asks next for its models waits until it is told to go on.
    pub fn hold_models(&self) -> oneshot::Sender<()> {
        let (go_on, when) = oneshot::channel();
        self.answer_models(Answer::Late(Arc::new(Mutex::new(Some(when)))));
        go_on
    }

    /// The base of its addresses.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies that came, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.state
            .requests
            .lock()
            .unwrap()
            .iter()
            .map(|(body, _)| body.clone())
            .collect()
    }

    /// Their `Authorization` headers.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.state
            .requests
            .lock()
            .unwrap()
            .iter()
            .map(|(_, header)| header.clone())
            .collect()
    }

    /// Waits until that many connections have ended before the whole answer was there: by the client, or by a reset.
    pub async fn abandoned(&self, clients: usize) {
        let mut abandoned = self.state.abandoned.subscribe();
        abandoned.wait_for(|gone| *gone >= clients).await.unwrap();
    }
}

impl Drop for ChatServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    // Dropped with this task, and its connections with it.
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(converse(stream, state.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, with as many requests as the client likes.
async fn converse(stream: TcpStream, state: Arc<State>) {
    let mut stream = BufReader::new(stream);
    while let Some((body, authorization)) = receive(&mut stream).await {
        if body.is_null() {
            let answer = state.models.lock().unwrap().clone();
            if !perform(&mut stream, answer, false).await {
                return;
            }
            continue;
        }
        let nth = {
            let mut requests = state.requests.lock().unwrap();
            requests.push((body.clone(), authorization));
            requests.len() - 1
        };
        let answer = (state.decide)(&body, nth);
        let streamed = body["stream"] == true;
        if !perform(&mut stream, answer, streamed).await {
            state.abandoned.send_modify(|gone| *gone += 1);
            return;
        }
    }
}

/// `None`: the client has no more to ask. `null` is a `GET /v1/models`; what is no `POST /v1/chat/completions` with JSON either is
/// a fault of the test.
async fn receive(stream: &mut BufReader<TcpStream>) -> Option<(Value, Option<String>)> {
    let mut line = String::new();
    if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
        return None;
    }
    let is_for_models = line.trim_end() == "GET /v1/models HTTP/1.1";
    if !is_for_models {
        assert_eq!(line.trim_end(), "POST /v1/chat/completions HTTP/1.1");
    }
    let (mut length, mut authorization) = (0, None);
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    if is_for_models {
        return Some((Value::Null, authorization));
    }
    assert!(length <= 8 * 1024 * 1024, "a body of {length} bytes");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((serde_json::from_slice(&body).unwrap(), authorization))
}

/// Can the connection go on? `false`: the client went away.
async fn perform(stream: &mut BufReader<TcpStream>, answer: Answer, streamed: bool) -> bool {
    match answer {
        Answer::Whole(body) => whole(stream, 200, &body).await,
        Answer::Status(status, message) => whole(stream, status, &json!({ "error": { "message": message } })).await,
        Answer::Raw(kind, body) => stream_all(stream, kind, &body).await && end(stream).await,
        Answer::Open(body) => stream_all(stream, EVENTS, &body).await && gone(stream).await,
        Answer::Garbage => stream_all(stream, "text/html", "<html><b>It works!</b></html>").await && end(stream).await,
        Answer::Hang => gone(stream).await,
        Answer::Late(when) => {
            let when = when.lock().unwrap().take();
            if let Some(when) = when {
                // It may have lost its interest.
                let _ = when.await;
            }
            whole(stream, 200, &json!({ "object": "list", "data": [] })).await
        }
        Answer::Gated(mut gate, words) => {
            // A test that is over needs no answer.
            let _ = gate.wait_for(|is_open| *is_open).await;
            whole(stream, 200, &completion(&words, &[])).await
        }
        Answer::Reset => reset(stream),
        Answer::CutOff(words) => stream_all(stream, EVENTS, &deltas(&words)).await && reset(stream),
        Answer::Stall(words) => stream_all(stream, EVENTS, &deltas(&words)).await && gone(stream).await,
        Answer::Unfinished(words) => stream_all(stream, EVENTS, &deltas(&words)).await && end(stream).await,
        Answer::StreamError(message) if streamed => {
            let body = deltas("Let me ") + &event(&json!({ "error": { "message": message } }));
            stream_all(stream, EVENTS, &body).await && end(stream).await
        }
        Answer::StreamError(message) => whole(stream, 200, &json!({ "error": { "message": message } })).await,
        Answer::Words(words) | Answer::Drip(words) | Answer::Paced { words, .. } | Answer::UnknownEvents(words)
            if !streamed =>
        {
            whole(stream, 200, &completion(&words, &[])).await
        }
        Answer::Calls(calls) if !streamed => whole(stream, 200, &completion("", &calls)).await,
        Answer::WordsAndCalls(words, calls) if !streamed => whole(stream, 200, &completion(&words, &calls)).await,
        Answer::Words(words) => {
            stream_all(stream, EVENTS, &(deltas(&words) + &done("stop"))).await && end(stream).await
        }
        Answer::Calls(calls) => {
            stream_all(stream, EVENTS, &(fragments(&calls) + &done("tool_calls"))).await && end(stream).await
        }
        Answer::WordsAndCalls(words, calls) => {
            let body = deltas(&words) + &fragments(&calls) + &done("tool_calls");
            stream_all(stream, EVENTS, &body).await && end(stream).await
        }
        Answer::Drip(words) => drip(stream, &words).await && end(stream).await,
        Answer::Paced { first, each, words } => paced(stream, [first, each], &words).await && end(stream).await,
        Answer::UnknownEvents(words) => {
            let body = format!(
                "\u{feff}: hello\n\nretry: 5\nid: 7\n\nevent: ping\ndata: not JSON\n\n{}{}{}: bye\n",
                event(&json!({ "object": "new.thing", "choices": [], "usage": { "total_tokens": 3 }, "novelty": [1] })),
                deltas(&words),
                done("stop"),
            );
            stream_all(stream, EVENTS, &body.replace('\n', "\r\n")).await && end(stream).await
        }
    }
}

const EVENTS: &str = "text/event-stream";

fn event(body: &Value) -> String {
    format!("data: {body}\n\n")
}

fn delta(delta: &Value) -> String {
    event(
        &json!({ "id": "c1", "object": "chat.completion.chunk", "model": "local", "choices": [
        { "index": 0, "delta": delta, "finish_reason": null, "logprobs": null },
    ] }),
    )
}

/// A few letters per event.
fn deltas(words: &str) -> String {
    let letters: Vec<char> = words.chars().collect();
    let texts = letters
        .chunks(3)
        .map(|few| delta(&json!({ "content": few.iter().collect::<String>() })));
    delta(&json!({ "role": "assistant", "content": "" })) + &texts.collect::<String>()
}

/// The id and half of the name, the other half, then the arguments a few letters at a time.
fn fragments(calls: &[(String, String)]) -> String {
    let call = |(index, (name, arguments)): (usize, &(String, String))| {
        let (first, second) = name.split_at(name.floor_char_boundary(name.len() / 2));
        let piece = |function: Value| delta(&json!({ "tool_calls": [{ "index": index, "function": function }] }));
        let letters: Vec<char> = arguments.chars().collect();
        let texts = letters
            .chunks(4)
            .map(|few| piece(json!({ "arguments": few.iter().collect::<String>() })));
        let head =
            json!({ "index": index, "id": format!("id_{index}"), "type": "function", "function": { "name": first } });
        delta(&json!({ "tool_calls": [head] })) + &piece(json!({ "name": second })) + &texts.collect::<String>()
    };
    calls.iter().enumerate().map(call).collect()
}

fn done(reason: &str) -> String {
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    event(&last) + "data: [DONE]\n\n"
}

fn completion(words: &str, calls: &[(String, String)]) -> Value {
    let numbered = calls.iter().enumerate();
    let calls: Vec<Value> = numbered
        .map(|(index, (name, arguments))| {
            json!({ "id": format!("id_{index}"), "type": "function", "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    let content = if words.is_empty() { Value::Null } else { words.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({ "id": "c1", "object": "chat.completion", "model": "local", "choices": [
        { "index": 0, "message": message, "finish_reason": "stop" },
    ] })
}

async fn whole(stream: &mut BufReader<TcpStream>, status: u16, body: &Value) -> bool {
    let body = body.to_string();
    let again = if matches!(status, 429 | 503) {
        "retry-after: 0\r\n"
    } else {
        ""
    };
    let head = format!(
        "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\n{again}content-length: {}\r\n\r\n",
        body.len()
    );
    send(stream, (head + &body).as_bytes()).await
}

/// The head, and this much of a body, which has no end yet.
async fn stream_all(stream: &mut BufReader<TcpStream>, kind: &str, body: &str) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut bytes = head.into_bytes();
    // Larger pieces for what is only there to be too large.
    for piece in body.as_bytes().chunks(5.max(body.len() / 20_000)) {
        bytes.extend(
            format!("{:x}\r\n", piece.len())
                .bytes()
                .chain(piece.iter().copied())
                .chain(*b"\r\n"),
        );
    }
    send(stream, &bytes).await
}

async fn drip(stream: &mut BufReader<TcpStream>, words: &str) -> bool {
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    if !stream_all(stream, EVENTS, "").await {
        return false;
    }
    let letters = words
        .chars()
        .map(|letter| delta(&json!({ "content": letter.to_string() })));
    for event in letters.chain([done("stop")]) {
        pace.tick().await;
        if !send(stream, format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await {
            return false;
        }
    }
    true
}

async fn paced(stream: &mut BufReader<TcpStream>, [first, each]: [Duration; 2], words: &str) -> bool {
    let mut due = tokio::time::Instant::now() + first;
    until(due).await;
    if !stream_all(stream, EVENTS, "").await {
        return false;
    }
    let tokens = words
        .split_inclusive(' ')
        .map(|word| delta(&json!({ "content": word })));
    for event in tokens.chain([done("stop")]) {
        until(due).await;
        if !send(stream, format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await {
            return false;
        }
        due += each;
    }
    true
}

async fn until(due: tokio::time::Instant) {
    // That is all that it is to do.
    let _ = tokio::time::timeout_at(due, std::future::pending::<()>()).await;
}

async fn end(stream: &mut BufReader<TcpStream>) -> bool {
    send(stream, b"0\r\n\r\n").await
}

async fn send(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> bool {
    stream.write_all(bytes).await.is_ok()
}

fn reset(stream: &BufReader<TcpStream>) -> bool {
    stream.get_ref().set_zero_linger().unwrap();
    false
}

/// Waits until the client goes.
async fn gone(stream: &mut BufReader<TcpStream>) -> bool {
    while let Ok(1..) = stream.read(&mut [0; 64]).await {}
    false
}
