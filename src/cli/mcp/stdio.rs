//! One message a line, in and out. Several are answered at once, so that a long one holds no other up.
use super::lines::{self, Line, MAX_LINE};
use crate::{
    error::CannotStart,
    mcp::{
        api::Api,
        message::{self, Incoming, Message},
        server,
        version::Version,
    },
};
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, LocalBoxFuture},
    stream::FuturesUnordered,
};
use serde_json::Value;
use std::{
    io::{self, Write},
    time::Duration,
};
use tokio::sync::mpsc;

/// Messages that are being answered. Whoever sends more is not read until one is done.
const AT_ONCE: usize = 8;
/// After the end of the input: what was asked is answered until then. A client that waits for our end then ends us itself.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

type Work<'a> = LocalBoxFuture<'a, (u64, Option<Value>)>;

/// Answers until the input ends.
pub async fn serve(api: &dyn Api) -> Result<(), CannotStart> {
    let mut lines = input();
    let mut talk = Talk::new(api);
    while let Some(line) = talk.next(&mut lines).await? {
        talk.take(line);
    }
    let rest = async {
        while let Some(done) = talk.work.next().await {
            talk.running.retain(|running| running.number != done.0);
            write(done.1)?;
        }
        Ok(())
    };
    // What takes longer has nobody who waits for it.
    tokio::time::timeout(LAST_ANSWERS, rest).await.unwrap_or(Ok(()))
}

/// A thread of its own: a read of standard input cannot be broken off.
fn input() -> mpsc::Receiver<io::Result<Line>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(line) = lines::next(&mut input, MAX_LINE).transpose() {
            let is_broken = line.is_err();
            if sender.blocking_send(line).is_err() || is_broken {
                return;
            }
        }
    });
    receiver
}

struct Talk<'a> {
    api: &'a dyn Api,
    version: Version,
    work: FuturesUnordered<Work<'a>>,
    /// Requests that are being answered, so that they can be canceled.
    running: Vec<Running>,
    next_number: u64,
}

struct Running {
    number: u64,
    id: Value,
    abort: AbortHandle,
}

impl<'a> Talk<'a> {
    fn new(api: &'a dyn Api) -> Self {
        Talk {
            api,
            version: Version::LATEST,
            work: FuturesUnordered::new(),
            running: Vec::new(),
            next_number: 0,
        }
    }

    /// The next line, when there is room for it. Answers are written meanwhile.
    async fn next(&mut self, lines: &mut mpsc::Receiver<io::Result<Line>>) -> Result<Option<Line>, CannotStart> {
        loop {
            let has_room = self.work.len() < AT_ONCE;
            tokio::select! {
                line = lines.recv(), if has_room => {
                    let broken = |error| CannotStart(format!("standard input: {error}"));
                    return line.transpose().map_err(broken);
                }
                Some((number, answer)) = self.work.next() => {
                    self.running.retain(|running| running.number != number);
                    write(answer)?;
                }
            }
        }
    }

    fn take(&mut self, line: Line) {
        let incoming = match line {
            // Between messages it means nothing.
            Line::Text(text) if text.trim_ascii().is_empty() => return,
            Line::Text(text) => message::read(&text, self.version),
            Line::TooLong => Incoming::too_long(MAX_LINE),
        };
        match incoming {
            Incoming::One(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(params.get("requestId").unwrap_or(&Value::Null));
                }
            }
            Incoming::One(message) => {
                let id = match &message {
                    Message::Request { id, method, params } => {
                        if method == "initialize" {
                            self.version = server::negotiated(params);
                        }
                        id.clone()
                    }
                    _ => Value::Null,
                };
                let (api, version) = (self.api, self.version);
                self.begin(id, async move { server::answer(api, version, message).await });
            }
            Incoming::Batch(messages) => {
                let (api, version) = (self.api, self.version);
                self.begin(Value::Null, async move {
                    let mut answers = Vec::new();
                    for message in messages {
                        answers.extend(server::answer(api, version, message).await);
                    }
                    (!answers.is_empty()).then(|| answers.into())
                });
            }
        }
    }

    fn begin(&mut self, id: Value, work: impl Future<Output = Option<Value>> + 'a) {
        let (abort, registration) = AbortHandle::new_pair();
        let number = self.next_number;
        self.next_number += 1;
        self.running.push(Running { number, id, abort });
        let work = Abortable::new(work, registration);
        // To what was canceled nothing goes back. Source: specification, "Cancellation".
        self.work
            .push(Box::pin(async move { (number, work.await.ok().flatten()) }));
    }

    fn cancel(&mut self, id: &Value) {
        let of_it = |running: &&Running| !id.is_null() && running.id == *id;
        if let Some(running) = self.running.iter().find(of_it) {
            running.abort.abort();
        }
    }
}

fn write(answer: Option<Value>) -> Result<(), CannotStart> {
    let Some(answer) = answer else { return Ok(()) };
    let mut out = io::stdout().lock();
    // A text of JSON on one line; line ends inside it are escaped.
    let written = writeln!(out, "{answer}").and_then(|()| out.flush());
    written.map_err(|error| CannotStart(format!("standard output: {error}")))
}
