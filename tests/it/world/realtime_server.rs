//! A real local provider of speech to speech: the server's side of the Realtime protocol, as strict as the known one.
//!
//! It refuses the beta's names, sound that is too short, cuts beyond a sound's end and asks out of order, each with an
//! `error` event that repeats the ask's name. What it answers, the test decides. After every answer it pings.
//! This is the door; behind it each connection is a `Session`.
use super::{local_listener::listen, realtime_session::Session};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpStream, sync::watch, task::JoinSet};
use tokio_tungstenite::{
    accept_hdr_async,
    tungstenite::{
        handshake::server::{ErrorResponse, Request, Response},
        http,
    },
};

/// What came in since the last answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub texts: Vec<String>,
    /// As it was committed: mu-law, or 24 kHz PCM.
    pub audio: Vec<u8>,
    /// Call id and output.
    pub outputs: Vec<(String, String)>,
    /// Of this answer only.
    pub instructions: Option<String>,
    /// The whole conversation, as the model knows it: `user: words`, `user: 300 ms`, `agent: words, cut after 500 ms`, ..
    pub conversation: Vec<String>,
}

/// What the provider does when it is asked for an answer. A call is name and arguments; its id is `call_1` and so on.
pub enum Answer {
    /// Speaks, 60 ms for each character.
    Say(String),
    Calls(Vec<(String, String)>),
    SayAndCalls(String, Vec<(String, String)>),
    /// The answer begins, and fails with these words.
    Fail(String),
    /// An `error` event in place of an answer.
    Error(String),
    Close,
    Garbage,
    /// Does not even begin.
    Ignore,
    /// The answer begins, and nothing follows until it is called off.
    Hang,
    /// Speaks, begins to speak again, and goes on with that when it is called off, just before it ends.
    SayAndHang(String),
    /// Speaks; the first 20 ms of it, and the rest once the gate is open.
    SayGated(String, watch::Receiver<bool>),
    /// Speaks, and before that ends sends this, or closes.
    SayAndBreak(String, Option<&'static str>),
    /// Speaks, among events that nobody knows.
    UnknownEvents(String),
    /// These between the answer's begin and its end, with `response_id` put in where it is missing.
    Raw(Vec<Value>),
}

/// How it differs from the usual provider.
#[derive(Default)]
pub struct Ways {
    pub refuses_pcmu: bool,
    pub refuses_pcm: bool,
    pub says_nothing: bool,
    /// The end of an answer tells nothing of its items. The known one repeats them.
    pub repeats_nothing: bool,
    /// Its errors do not say what they are about.
    pub names_no_asks: bool,
    pub refuses_transcription: bool,
    key: Option<String>,
}

/// What is answered to a turn; the number counts the answers of a connection from 0.
type Script = dyn Fn(&Turn, usize) -> Answer + Send + Sync;

/// The events that tell what was understood of an item; the number counts those of a connection from 0.
pub type Hears = dyn Fn(usize, &str) -> Vec<Value> + Send + Sync;

pub struct State {
    pub script: Box<Script>,
    pub ways: Mutex<Ways>,
    pub hears: Mutex<Option<Arc<Hears>>>,
    /// Everything that came in, and `{"type": "connected" | "error" | "pong" | "closed"}`.
    events: watch::Sender<Vec<Value>>,
}

/// Dropping it ends all its connections.
pub struct RealtimeServer {
    pub url: String,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl RealtimeServer {
    /// `nth` counts the answers of a connection from 0.
    pub fn start_with(script: impl Fn(&Turn, usize) -> Answer + Send + Sync + 'static) -> Self {
        let state = Arc::new(State {
            script: Box::new(script),
            ways: Mutex::default(),
            hears: Mutex::default(),
            events: watch::Sender::default(),
        });
        let serving = state.clone();
        let (address, tasks) = listen(move |stream| serve(stream, serving.clone()));
        let url = format!("ws://{address}/v1/realtime");
        RealtimeServer {
            url,
            state,
            _tasks: tasks,
        }
    }

    pub fn refuse_pcmu(self) -> Self {
        self.state.ways.lock().unwrap().refuses_pcmu = true;
        self
    }

    pub fn refuse_pcm(self) -> Self {
        self.state.ways.lock().unwrap().refuses_pcm = true;
        self
    }

    /// Others are refused with 401.
    pub fn only_for_key(self, key: &str) -> Self {
        self.state.ways.lock().unwrap().key = Some(key.to_owned());
        self
    }

    /// Ends its answers without a word of what was in them.
    pub fn repeat_nothing(self) -> Self {
        self.state.ways.lock().unwrap().repeats_nothing = true;
        self
    }

    /// Its errors do not say what they are about.
    pub fn name_no_asks(self) -> Self {
        self.state.ways.lock().unwrap().names_no_asks = true;
        self
    }

    pub fn refuse_transcription(self) -> Self {
        self.state.ways.lock().unwrap().refuses_transcription = true;
        self
    }

    /// What is told of the words of each item that was said, where a transcription is wanted: of the nth, from 0.
    pub fn understand(self, hears: impl Fn(usize, &str) -> Vec<Value> + Send + Sync + 'static) -> Self {
        *self.state.hears.lock().unwrap() = Some(Arc::new(hears));
        self
    }

    /// Accepts connections and stays silent.
    pub fn say_nothing(self) -> Self {
        self.state.ways.lock().unwrap().says_nothing = true;
        self
    }

    /// Everything received, of all connections, in order.
    pub fn events(&self) -> Vec<Value> {
        self.state.events.borrow().clone()
    }

    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["type"] == kind)
            .collect()
    }

    /// Asks that were refused, with the refusal's words.
    pub fn errors(&self) -> Vec<Value> {
        self.events_of("error")
    }

    /// Waits until that many of a kind have come.
    pub async fn received(&self, kind: &str, count: usize) {
        let enough = |events: &Vec<Value>| events.iter().filter(|event| event["type"] == kind).count() >= count;
        let (mut events, limit) = (self.state.events.subscribe(), Duration::from_secs(60));
        if tokio::time::timeout(limit, events.wait_for(enough)).await.is_err() {
            panic!("{count} {kind} did not come within {limit:?}");
        }
    }
}

impl State {
    pub fn note(&self, event: Value) {
        self.events.send_modify(|events| events.push(event));
    }

    #[expect(clippy::result_large_err, reason = "the handshake's own type")]
    fn admit(&self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let header = |name: &str| {
            request
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let bearer = header("authorization");
        self.note(json!({"type": "connected", "uri": request.uri().to_string(), "authorization": bearer}));
        let refuse = |status: u16, words: String| {
            let body = json!({"error": {"message": words}}).to_string();
            Err(http::Response::builder().status(status).body(Some(body)).unwrap())
        };
        match &self.ways.lock().unwrap().key {
            Some(key) if bearer != Some(format!("Bearer {key}")) => {
                return refuse(
                    401,
                    format!("Incorrect API key provided: {}", bearer.unwrap_or_default()),
                );
            }
            _ if header("openai-beta").is_some() => return refuse(400, "The beta has ended.".into()),
            _ => {}
        }
        let model = request.uri().query().is_some_and(|query| query.contains("model="));
        if request.uri().path() != "/v1/realtime" || !model {
            return refuse(404, "Not found.".into());
        }
        Ok(response)
    }
}

#[expect(clippy::result_large_err, reason = "the handshake's own type")]
async fn serve(stream: TcpStream, state: Arc<State>) {
    let Ok(socket) = accept_hdr_async(stream, |request: &Request, response| state.admit(request, response)).await
    else {
        return;
    };
    Session::over(socket, state.clone()).run().await;
    state.note(json!({"type": "closed"}));
}
