//! A real local speech server: whatever is asked over HTTP, the test decides what comes, piece by piece. Keeps its connections.
//! Speaks HTTP/1.1 with its own few lines, not with the service's.
use super::{
    http_head::{Head, header},
    local_listener::listen,
};
use serde_json::Value;
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
};

/// What comes of an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// A piece of the body, by itself.
    Bytes(Vec<u8>),
    /// Nothing, until the gate is open.
    Gate(watch::Receiver<bool>),
    /// Nothing, until the client goes; that is counted.
    Hang,
    /// The connection is reset.
    Reset,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    /// These come before the head of the answer.
    pub before: Vec<Step>,
    pub body: Vec<Step>,
}

impl Answer {
    pub fn sound(body: Vec<Step>) -> Self {
        Answer {
            status: 200,
            headers: vec![("content-type", "audio/pcm".into())],
            before: Vec::new(),
            body,
        }
    }

    /// Little endian, in pieces of so many bytes.
    pub fn samples(samples: &[i16], piece: usize) -> Self {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        Answer::sound(bytes.chunks(piece).map(|piece| Step::Bytes(piece.to_vec())).collect())
    }

    pub fn status(status: u16, words: &str) -> Self {
        Answer {
            status,
            headers: vec![("content-type", "application/json".into())],
            before: Vec::new(),
            body: vec![Step::Bytes(words.as_bytes().to_vec())],
        }
    }
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// As `POST /v1/audio/speech`.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// Which of the connections it came over.
    pub connection: usize,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

type Decide = dyn Fn(&Asked, usize) -> Answer + Send + Sync;

struct State {
    decide: Box<Decide>,
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
    gone: watch::Sender<usize>,
}

/// Dropping it ends all its connections.
pub struct SpeechServer {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl SpeechServer {
    /// The closure decides, from the request and from how many came before it.
    pub async fn start_with(decide: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static) -> Self {
        let state = Arc::new(State {
            decide: Box::new(decide),
            asked: Mutex::default(),
            connections: AtomicUsize::new(0),
            gone: watch::Sender::default(),
        });
        let serving = state.clone();
        let (address, _tasks) = listen(move |stream| serve(stream, serving.clone()));
        SpeechServer { address, state, _tasks }
    }

    /// The same answer to everything.
    pub async fn answering(answer: Answer) -> Self {
        Self::start_with(move |_, _| answer.clone()).await
    }

    /// Without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Returns when so many clients have gone while they were kept waiting.
    pub async fn clients_gone(&self, count: usize) {
        let mut gone = self.state.gone.subscribe();
        gone.wait_for(|gone| *gone >= count).await.unwrap();
    }
}

async fn serve(socket: TcpStream, state: Arc<State>) {
    let connection = state.connections.fetch_add(1, Ordering::Relaxed);
    let mut socket = BufReader::new(socket);
    // A client that goes away is none of its business.
    while let Ok(Some(asked)) = request(&mut socket, connection).await {
        let answer = {
            let mut all = state.asked.lock().unwrap();
            all.push(asked.clone());
            (state.decide)(&asked, all.len() - 1)
        };
        match respond(socket.get_mut(), answer, &state).await {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
    }
}

async fn request(socket: &mut BufReader<TcpStream>, connection: usize) -> std::io::Result<Option<Asked>> {
    let Some(head) = Head::read(socket).await? else {
        return Ok(None);
    };
    let mut body = vec![0; head.length()];
    socket.read_exact(&mut body).await?;
    let Head { line, headers } = head;
    Ok(Some(Asked {
        line,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        connection,
    }))
}

/// `true`: the connection can be used again.
async fn respond(socket: &mut TcpStream, answer: Answer, state: &State) -> std::io::Result<bool> {
    for step in answer.before {
        if !take(socket, step, state, false).await? {
            return Ok(false);
        }
    }
    let mut head = format!("HTTP/1.1 {} So\r\ntransfer-encoding: chunked\r\n", answer.status);
    for (name, value) in answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    socket.write_all((head + "\r\n").as_bytes()).await?;
    for step in answer.body {
        if !take(socket, step, state, true).await? {
            return Ok(false);
        }
    }
    socket.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

/// `false`: that was the end of the connection.
async fn take(socket: &mut TcpStream, step: Step, state: &State, chunked: bool) -> std::io::Result<bool> {
    match step {
        Step::Bytes(bytes) if chunked => {
            let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
            socket.write_all(&chunk).await?;
            socket.flush().await?;
        }
        Step::Bytes(bytes) => socket.write_all(&bytes).await?,
        Step::Gate(mut gate) => {
            // A test that is over needs no answer.
            let _ = gate.wait_for(|is_open| *is_open).await;
        }
        Step::Hang => {
            // It goes, or it breaks the connection off: both are an end.
            let _ = socket.read(&mut [0]).await;
            state.gone.send_modify(|gone| *gone += 1);
            return Ok(false);
        }
        Step::Reset => {
            socket.set_zero_linger()?;
            return Ok(false);
        }
    }
    Ok(true)
}
