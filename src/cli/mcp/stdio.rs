//! One message a line, in and out. Several are answered at once, so that a long one holds no other up; more wait, and can be canceled.
//! Whatever runs, the next line is read.
use super::lines::{self, Line, MAX_LINE};
use crate::{
    error::CannotStart,
    mcp::{
        api::Api,
        message::{self, Fault, INTERNAL_ERROR, Incoming, Message},
        server,
        version::Version,
    },
};
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, LocalBoxFuture},
    stream::FuturesUnordered,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{self, Write},
    time::Duration,
};
use tokio::sync::mpsc;

/// Messages that are being answered.
const AT_ONCE: usize = 8;
/// Those that wait for that; what is more is refused.
const MAX_WAITING: usize = 64;
/// After the end of the input: what was asked is answered until then. A client that waits for our end then ends us itself.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

type Done = (u64, Option<Value>);

/// Answers until the input ends.
pub async fn serve(api: &dyn Api) -> Result<(), CannotStart> {
    let mut lines = input();
    let mut talk = Talk::new(api, Box::new(io::stdout()));
    while let Some(line) = talk.next(&mut lines).await? {
        talk.take(line)?;
    }
    let rest = async {
        while let Some(done) = talk.work.next().await {
            talk.finish(done)?;
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
    out: Box<dyn Write + 'a>,
    work: FuturesUnordered<LocalBoxFuture<'a, Done>>,
    /// Requests that are being answered, so that they can be canceled.
    running: Vec<Running>,
    waiting: VecDeque<Waiting<'a>>,
    next_number: u64,
}

struct Waiting<'a> {
    id: Value,
    work: LocalBoxFuture<'a, Option<Value>>,
}

struct Running {
    number: u64,
    id: Value,
    abort: AbortHandle,
}

impl<'a> Talk<'a> {
    fn new(api: &'a dyn Api, out: Box<dyn Write + 'a>) -> Self {
        Talk {
            api,
            version: Version::LATEST,
            out,
            work: FuturesUnordered::new(),
            running: Vec::new(),
            waiting: VecDeque::new(),
            next_number: 0,
        }
    }

    /// The next line. Answers are written meanwhile.
    async fn next(&mut self, lines: &mut mpsc::Receiver<io::Result<Line>>) -> Result<Option<Line>, CannotStart> {
        loop {
            tokio::select! {
                line = lines.recv() => {
                    let broken = |error| CannotStart(format!("standard input: {error}"));
                    return line.transpose().map_err(broken);
                }
                Some(done) = self.work.next() => self.finish(done)?,
            }
        }
    }

    fn take(&mut self, line: Line) -> Result<(), CannotStart> {
        let incoming = match line {
            // Between messages it means nothing.
            Line::Text(text) if text.trim_ascii().is_empty() => return Ok(()),
            Line::Text(text) => message::read(&text, self.version),
            Line::TooLong => Incoming::too_long(MAX_LINE),
        };
        match incoming {
            Incoming::One(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(params.get("requestId").unwrap_or(&Value::Null));
                }
                Ok(())
            }
            Incoming::One(Message::Response) => Ok(()),
            // Whether we are there is no question that waits for others.
            Incoming::One(Message::Request { id, method, .. }) if method == "ping" => {
                self.write(&message::response(id, Ok(json!({}))))
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
                self.begin(id, Box::pin(async move { server::answer(api, version, message).await }))
            }
            Incoming::Batch(messages) => {
                let (api, version) = (self.api, self.version);
                let work = async move {
                    let mut answers = Vec::new();
                    for message in messages {
                        answers.extend(server::answer(api, version, message).await);
                    }
                    (!answers.is_empty()).then(|| Value::from(answers))
                };
                self.begin(Value::Null, Box::pin(work))
            }
        }
    }

    /// At once, or when there is room.
    fn begin(&mut self, id: Value, work: LocalBoxFuture<'a, Option<Value>>) -> Result<(), CannotStart> {
        let waiting = Waiting { id, work };
        if self.work.len() < AT_ONCE {
            self.start(waiting);
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(waiting);
        } else {
            let why = format!("{MAX_WAITING} requests wait already; send this one again when they are answered");
            return self.write(&message::response(waiting.id, Err(Fault::new(INTERNAL_ERROR, why))));
        }
        Ok(())
    }

    fn start(&mut self, Waiting { id, work }: Waiting<'a>) {
        let (abort, registration) = AbortHandle::new_pair();
        let number = self.next_number;
        self.next_number += 1;
        self.running.push(Running { number, id, abort });
        let work = Abortable::new(work, registration);
        // To what was canceled nothing goes back. Source: specification, "Cancellation".
        self.work
            .push(Box::pin(async move { (number, work.await.ok().flatten()) }));
    }

    fn finish(&mut self, (number, answer): Done) -> Result<(), CannotStart> {
        self.running.retain(|running| running.number != number);
        if let Some(waiting) = self.waiting.pop_front() {
            self.start(waiting);
        }
        answer.map_or(Ok(()), |answer| self.write(&answer))
    }

    fn cancel(&mut self, id: &Value) {
        if id.is_null() {
            return;
        }
        match self.running.iter().find(|running| running.id == *id) {
            Some(running) => running.abort.abort(),
            None => self.waiting.retain(|waiting| waiting.id != *id),
        }
    }

    fn write(&mut self, answer: &Value) -> Result<(), CannotStart> {
        // A text of JSON on one line; line ends inside it are escaped.
        let written = writeln!(self.out, "{answer}").and_then(|()| self.out.flush());
        written.map_err(|error| CannotStart(format!("standard output: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::api::{ApiAnswer, ApiRequest};
    use futures_util::FutureExt;
    use std::{cell::RefCell, rc::Rc};

    /// A server that never answers.
    struct Silent;

    impl Api for Silent {
        fn send<'a>(&'a self, _: &'a ApiRequest) -> LocalBoxFuture<'a, Result<ApiAnswer, String>> {
            Box::pin(std::future::pending())
        }
    }

    #[derive(Clone, Default)]
    struct Output(Rc<RefCell<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output {
        /// What was said since it was asked last.
        fn said(&self) -> Vec<Value> {
            let bytes = std::mem::take(&mut *self.0.borrow_mut());
            let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
        }
    }

    /// All that can be done without the server.
    fn work(talk: &mut Talk<'_>) {
        while let Some(Some(done)) = talk.work.next().now_or_never() {
            talk.finish(done).unwrap();
        }
    }

    #[test]
    fn while_requests_run_and_wait_pings_are_answered_and_each_can_be_canceled() {
        let out = Output::default();
        let mut talk = Talk::new(&Silent, Box::new(out.clone()));
        let mut say = |message: Value| {
            talk.take(Line::Text(message.to_string().into_bytes())).unwrap();
            work(&mut talk);
            (talk.work.len(), talk.waiting.len())
        };
        let call = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "get_credits" } });
        let cancel =
            |id: usize| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        for id in 1..=AT_ONCE + MAX_WAITING {
            assert_eq!(say(call(id)), (id.min(AT_ONCE), id.saturating_sub(AT_ONCE)));
        }
        assert_eq!(out.said(), Vec::<Value>::new());
        assert_eq!(say(call(100)), (AT_ONCE, MAX_WAITING));
        let refused = out.said();
        assert_eq!(
            (refused.len(), &refused[0]["id"], &refused[0]["error"]["code"]),
            (1, &json!(100), &json!(INTERNAL_ERROR))
        );
        say(json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
        assert_eq!(out.said(), [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })]);
        assert_eq!(say(cancel(40)), (AT_ONCE, MAX_WAITING - 1), "one that waits");
        assert_eq!(
            say(cancel(1)),
            (AT_ONCE, MAX_WAITING - 2),
            "one that runs makes room for one that waits"
        );
        assert_eq!(say(cancel(1)), (AT_ONCE, MAX_WAITING - 2));
        assert_eq!(
            out.said(),
            Vec::<Value>::new(),
            "to what was canceled nothing goes back"
        );
    }
}
