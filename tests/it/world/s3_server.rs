//! A real local object store that speaks as much of S3 as recordings need: PUT, GET with a range, HEAD, DELETE and
//! uploads in parts, by path (`/bucket/key`). It holds its objects in memory and shows them to the test.
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

pub const ACCESS_KEY_ID: &str = "AKIDLOCALTEST";
pub const SECRET_ACCESS_KEY: &str = "local+secret/key";
pub const BUCKET: &str = "recordings";

/// A body that the server takes; recordings come in parts of 8 MiB.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

pub struct S3Server {
    /// `http://127.0.0.1:PORT`
    pub endpoint: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    uploads: Mutex<HashMap<String, BTreeMap<u32, Vec<u8>>>>,
    answers: Mutex<VecDeque<(u16, String)>>,
    requests: Mutex<Vec<String>>,
    holds_puts: watch::Sender<bool>,
}

struct Request {
    method: String,
    key: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl S3Server {
    pub async fn start() -> S3Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let task = tokio::spawn(accept(listener, state.clone()));
        S3Server { endpoint, state, task }
    }

    /// An object as it is stored, under its key in the bucket.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.state.objects.lock().unwrap().get(key).cloned()
    }

    /// Puts an object behind everybody's back.
    pub fn set(&self, key: &str, object: Vec<u8>) {
        self.state.objects.lock().unwrap().insert(key.to_owned(), object);
    }

    pub fn keys(&self) -> Vec<String> {
        self.state.objects.lock().unwrap().keys().cloned().collect()
    }

    /// Uploads in parts that were neither completed nor aborted.
    pub fn open_uploads(&self) -> usize {
        self.state.uploads.lock().unwrap().len()
    }

    /// The next requests get these answers, whatever they ask; the body may name what the request carried:
    /// `{authorization}`.
    pub fn answer_next(&self, answers: Vec<(u16, &str)>) {
        let answers = answers.into_iter().map(|(status, body)| (status, body.to_owned()));
        self.state.answers.lock().unwrap().extend(answers);
    }

    /// From now on what is put waits, once it has come, until it is held no longer.
    pub fn hold_puts(&self, is_held: bool) {
        self.state.holds_puts.send_replace(is_held);
    }

    /// `METHOD key` of each request, and ` range` of those with one; taken, so that a test sees each once.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let state = state.clone();
                // A client may hang up whenever it likes.
                conversations.spawn(async move { let _ = converse(BufReader::new(stream), &state).await; });
            }
            Some(ended) = conversations.join_next() => ended.unwrap(),
        }
    }
}

async fn converse(mut peer: BufReader<TcpStream>, state: &State) -> io::Result<()> {
    while let Some(request) = read(&mut peer).await? {
        let range = request.headers.get("range").map(|range| format!(" {range}"));
        let line = format!("{} {}{}", request.method, request.key, range.unwrap_or_default());
        state.requests.lock().unwrap().push(line);
        if request.method == "PUT" {
            let mut held = state.holds_puts.subscribe();
            let _ = held.wait_for(|is_held| !*is_held).await;
        }
        let ordered = state.answers.lock().unwrap().pop_front();
        let answer = match ordered {
            Some((status, body)) => {
                let shown = request.headers.get("authorization").cloned().unwrap_or_default();
                Answer::new(status, body.replace("{authorization}", &shown))
            }
            None if !signed(&request) => Answer::error(403, "AccessDenied"),
            None => answer(state, &request),
        };
        let mut head = format!("HTTP/1.1 {} x\r\n", answer.status);
        let length = ("content-length", answer.body.len().to_string());
        let given = answer.headers.iter().any(|(name, _)| *name == length.0);
        for (name, value) in answer.headers.iter().chain((!given).then_some(&length)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        peer.write_all(format!("{head}\r\n").as_bytes()).await?;
        // An answer to HEAD ends with its head, also when it is an error: bytes after it would break the next request.
        if request.method != "HEAD" {
            peer.write_all(&answer.body).await?;
        }
        peer.flush().await?;
    }
    Ok(())
}

/// None when the client has hung up between requests.
async fn read(peer: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if peer.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap().to_owned(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = path.strip_prefix(&format!("/{BUCKET}/")).unwrap_or_default().to_owned();
    let query = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        peer.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    assert!(length <= BODY_LIMIT, "a body of {length} bytes");
    let mut body = vec![0; length];
    peer.read_exact(&mut body).await?;
    Ok(Some(Request {
        method,
        key,
        query,
        headers,
        body,
    }))
}

/// Signed by our access key; the signature itself is taken on trust.
fn signed(request: &Request) -> bool {
    let signature = request.headers.get("authorization");
    signature.is_some_and(|text| {
        text.starts_with(&format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/")) && text.contains("Signature=")
    })
}

fn answer(state: &State, request: &Request) -> Answer {
    let mut objects = state.objects.lock().unwrap();
    let mut uploads = state.uploads.lock().unwrap();
    let upload = request.query.get("uploadId").cloned();
    match (request.method.as_str(), upload) {
        _ if request.key.is_empty() => Answer::error(404, "NoSuchBucket"),
        ("POST", None) if request.query.contains_key("uploads") => {
            let id = format!("upload-{}", uploads.len() + 1);
            uploads.insert(id.clone(), BTreeMap::new());
            let key = &request.key;
            Answer::new(
                200,
                format!(
                    "<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                ),
            )
        }
        ("PUT", Some(id)) => match uploads.get_mut(&id) {
            Some(parts) => {
                let number = request.query["partNumber"].parse().unwrap();
                parts.insert(number, request.body.clone());
                Answer::new(200, "").with("etag", format!("\"part-{number}\""))
            }
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("POST", Some(id)) => match uploads.remove(&id) {
            Some(parts) => {
                objects.insert(request.key.clone(), parts.into_values().flatten().collect());
                Answer::new(
                    200,
                    "<CompleteMultipartUploadResult><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>",
                )
            }
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("DELETE", Some(id)) => match uploads.remove(&id) {
            Some(_) => Answer::new(204, ""),
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("PUT", None) => {
            objects.insert(request.key.clone(), request.body.clone());
            Answer::new(200, "").with("etag", "\"whole\"".to_owned())
        }
        ("DELETE", None) => {
            objects.remove(&request.key);
            Answer::new(204, "")
        }
        ("GET" | "HEAD", None) => match objects.get(&request.key) {
            Some(object) => give(object, request),
            None => Answer::error(404, "NoSuchKey"),
        },
        _ => Answer::error(405, "MethodNotAllowed"),
    }
}

fn give(object: &[u8], request: &Request) -> Answer {
    let range = request.headers.get("range").map(|range| {
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (
            first.parse::<usize>().unwrap(),
            last.parse::<usize>().unwrap_or(usize::MAX),
        )
    });
    let answer = match range {
        Some((first, _)) if first >= object.len() => return Answer::error(416, "InvalidRange"),
        Some((first, last)) => {
            let last = last.min(object.len() - 1);
            let shown = format!("bytes {first}-{last}/{}", object.len());
            Answer::new(206, &object[first..=last]).with("content-range", shown)
        }
        None => Answer::new(200, object),
    };
    let mut answer = answer
        .with("etag", "\"whole\"".to_owned())
        .with("last-modified", "Wed, 21 Oct 2026 07:28:00 GMT".to_owned());
    if request.method == "HEAD" {
        answer.headers.push(("content-length", object.len().to_string()));
        answer.body.clear();
    }
    answer
}

impl Answer {
    fn new(status: u16, body: impl AsRef<[u8]>) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: body.as_ref().to_vec(),
        }
    }

    fn with(mut self, name: &'static str, value: String) -> Answer {
        self.headers.push((name, value));
        self
    }

    fn error(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<Error><Code>{code}</Code></Error>"))
    }
}
