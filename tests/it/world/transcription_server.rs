//! A real local provider of transcriptions: `POST /v1/audio/transcriptions`. Speaks HTTP/1.1 and reads forms with its own few
//! lines, not with the service's.
use super::{http_head::Head, local_listener::listen};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
};

/// What it answers.
#[derive(Clone, Debug)]
pub enum Answer {
    Words(String),
    /// The same once the gate is open.
    Gated(watch::Receiver<bool>, String),
    /// That status, with an error that repeats these words.
    Status(u16, String),
    /// A page for people.
    Garbage,
    /// Any body, as JSON.
    Raw(String),
    /// The connection is reset without an answer.
    Reset,
    /// No answer until the client goes.
    Hang,
}

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    pub path: String,
    pub authorization: Option<String>,
    /// Name and content type of the file, and the whole of it.
    pub file: (String, String, Vec<u8>),
    /// The other fields, by name.
    pub fields: Vec<(String, String)>,
}

impl Asked {
    /// Samples of its WAV.
    pub fn samples(&self) -> usize {
        self.file.2.len().saturating_sub(44) / 2
    }
}

type Decide = dyn Fn(&Asked, usize) -> Answer + Send + Sync;

struct State {
    decide: Box<Decide>,
    asked: Mutex<Vec<Asked>>,
}

/// Dropping it ends all its connections.
pub struct TranscriptionServer {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl TranscriptionServer {
    /// The closure decides, from the request and from how many came before it.
    pub async fn start_with(decide: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static) -> Self {
        let state = Arc::new(State {
            decide: Box::new(decide),
            asked: Mutex::default(),
        });
        let serving = state.clone();
        let (address, _tasks) = listen(move |stream| serve(stream, serving.clone()));
        TranscriptionServer { address, state, _tasks }
    }

    /// These words, one after the other.
    pub async fn understanding(words: &[&str]) -> Self {
        let words: Vec<String> = words.iter().map(|words| (*words).to_owned()).collect();
        Self::start_with(move |_, before| words.get(before).cloned().map_or(Answer::Garbage, Answer::Words)).await
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }
}

async fn serve(socket: TcpStream, state: Arc<State>) {
    // A client that goes away is none of its business.
    let _ = answer(socket, &state).await;
}

async fn answer(socket: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(socket);
    let Some(head) = Head::read(&mut reader).await? else {
        return Ok(());
    };
    let mut body = vec![0; head.length()];
    reader.read_exact(&mut body).await?;
    let boundary = head.header("content-type").unwrap();
    let (kind, boundary) = boundary.split_once("; boundary=").unwrap();
    assert_eq!(kind, "multipart/form-data");
    let asked = Asked {
        path: head.line.clone(),
        authorization: head.header("authorization").map(str::to_owned),
        ..form(&body, boundary.trim_matches('"'))
    };
    let decided = {
        let mut all = state.asked.lock().unwrap();
        all.push(asked.clone());
        (state.decide)(&asked, all.len() - 1)
    };
    let mut socket = reader.into_inner();
    let (status, body) = match decided {
        Answer::Words(text) => (200, serde_json::json!({ "text": text }).to_string()),
        Answer::Gated(mut gate, text) => {
            // A test that is over needs no answer.
            let _ = gate.wait_for(|is_open| *is_open).await;
            (200, serde_json::json!({ "text": text }).to_string())
        }
        Answer::Status(status, message) => (
            status,
            serde_json::json!({ "error": { "message": message } }).to_string(),
        ),
        Answer::Garbage => (200, "<html>Hello!</html>".to_owned()),
        Answer::Raw(body) => (200, body),
        Answer::Reset => {
            socket.set_zero_linger()?;
            return Ok(());
        }
        Answer::Hang => {
            let _ = socket.read(&mut [0]).await;
            return Ok(());
        }
    };
    let head = format!(
        "HTTP/1.1 {status} So\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await
}

/// The parts of a multipart form.
fn form(body: &[u8], boundary: &str) -> Asked {
    let mut asked = Asked::default();
    let delimiter = format!("--{boundary}");
    let mut rest = &body[delimiter.len()..];
    while let Some(end) = find(rest, format!("\r\n{delimiter}").as_bytes()) {
        let part = &rest[..end];
        let middle = find(part, b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&part[..middle]).into_owned();
        let content = &part[middle + 4..];
        let quoted = |name: &str| {
            let (_, after) = head.split_once(&format!("{name}=\""))?;
            after.split('"').next().map(str::to_owned)
        };
        match quoted("filename") {
            Some(name) => {
                let kind = head
                    .lines()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-type: ").map(str::to_owned));
                asked.file = (name, kind.unwrap_or_default(), content.to_vec());
            }
            None => asked.fields.push((
                quoted("; name").or_else(|| quoted("name")).unwrap(),
                String::from_utf8(content.to_vec()).unwrap(),
            )),
        }
        rest = &rest[end + 2 + delimiter.len()..];
    }
    asked
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
