//! sipp: plays one scenario, written in XML, and writes down every message.
use super::{Need, PATIENCE, Process, pause};
use std::{fs, net::SocketAddr, process::Stdio};
use tempfile::TempDir;

/// What is played, and where.
pub struct Scenario {
    text: String,
    port: u16,
    arguments: Vec<String>,
    remote: Option<SocketAddr>,
    calls: usize,
}

impl Scenario {
    /// One call at 127.0.0.1 on that port, over UDP. Names between @ in the text are filled in by `with`, or have a default.
    pub fn new(text: &str, port: u16) -> Self {
        Scenario {
            text: text.to_owned(),
            port,
            arguments: Vec::new(),
            remote: None,
            calls: 1,
        }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.text = self.text.replace(&format!("@{name}@"), &value.to_string());
        self
    }

    /// What stands between `each` and `end` is there once for each of these codes.
    pub fn each(mut self, codes: impl IntoIterator<Item = u16> + Clone) -> Self {
        while let Some((before, rest)) = self.text.split_once("<!-- each -->") {
            let (part, after) = rest.split_once("<!-- end -->").unwrap();
            let parts = codes
                .clone()
                .into_iter()
                .map(|code| part.replace("@code@", &code.to_string()));
            self.text = format!("{before}{}{after}", parts.collect::<String>());
        }
        self
    }

    /// It calls that number there, instead of waiting to be called.
    pub fn calling(mut self, remote: SocketAddr, number: &str) -> Self {
        self.remote = Some(remote);
        self.and(&["-s", number])
    }

    pub fn times(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Further arguments; the last of several wins.
    pub fn and(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub async fn start(self) -> Sipp {
        let is_server = self.remote.is_none();
        let port = self.port;
        let mut text = self.text;
        for (name, value) in [
            ("ring", "100"),
            ("talk", "1000"),
            ("headers", ""),
            ("elsewhere", "9"),
            ("rtp", "9"),
        ] {
            text = text.replace(&format!("@{name}@"), value);
        }
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("scenario.xml"), text).unwrap();
        let mut command = Need::Sipp.command();
        command
            .args(self.remote.map(|remote| remote.to_string()))
            .arg("-sf")
            .arg(file("scenario.xml"))
            .args(["-i", "127.0.0.1", "-p", &port.to_string(), "-nostdin", "-skip_rlimit"])
            // Its own port for commands; several of them run at once.
            .args(["-cp", &(port + 1).to_string(), "-m", &self.calls.to_string()])
            .args(["-timeout", "150s", "-timeout_error", "-trace_msg", "-message_file"])
            .arg(file("messages"))
            .args(["-trace_err", "-error_file"])
            .arg(file("errors"))
            .args(self.arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(fs::File::create(file("screen")).unwrap())
            .stderr(fs::File::create(file("stderr")).unwrap());
        let mut sipp = Sipp {
            process: Process::start(&mut command),
            folder,
        };
        if is_server {
            sipp.listens_on(port).await;
        }
        sipp
    }
}

/// It does not outlive its test.
pub struct Sipp {
    process: Process,
    folder: TempDir,
}

/// As it stood on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// By sipp.
    pub is_sent: bool,
    /// Of the day, in ms; for how much time lies between two.
    pub at_ms: i64,
    pub text: String,
}

impl Message {
    /// `INVITE sip:… SIP/2.0`, `SIP/2.0 200 OK`.
    pub fn line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// A method, or a code.
    pub fn is(&self, what: &str) -> bool {
        let mut words = self.line().split(' ');
        words.next() == Some(what) || words.next() == Some(what) && self.line().starts_with("SIP/2.0 ")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        super::byte_peer::header(&self.text, name)
    }
}

impl Sipp {
    /// The system's list of sockets says so; to try the port would take it from sipp for a moment.
    async fn listens_on(&mut self, port: u16) {
        let began = std::time::Instant::now();
        let is_open = |kind: &str| {
            let sockets = fs::read_to_string(format!("/proc/net/{kind}")).unwrap_or_default();
            sockets.lines().any(|line| {
                line.split_whitespace()
                    .nth(1)
                    .is_some_and(|local| local.ends_with(&format!(":{port:04X}")))
            })
        };
        while !is_open("udp") && !is_open("tcp") {
            if let Some(status) = self.process.0.try_wait().unwrap() {
                panic!("sipp ended with {status} at once: {}", self.complaints());
            }
            assert!(began.elapsed() < PATIENCE, "sipp does not listen");
            pause(10).await;
        }
    }

    /// What it has sent and got so far, in order.
    pub fn messages(&self) -> Vec<Message> {
        let text = fs::read(self.folder.path().join("messages")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
        let parts = text.split("-----------------------------------------------").skip(1);
        parts.filter_map(message).collect()
    }

    /// The messages of that method or code that came in.
    pub fn got(&self, what: &str) -> Vec<Message> {
        let mut all = self.messages();
        all.retain(|message| !message.is_sent && message.is(what));
        all
    }

    /// Waits until that many have come in.
    pub async fn hears(&mut self, what: &str, times: usize) {
        let began = std::time::Instant::now();
        while self.got(what).len() < times {
            assert!(began.elapsed() < PATIENCE, "no {what} came, but {:#?}", self.messages());
            pause(20).await;
        }
    }

    /// Waits until it has played to its end, and everything was as its scenario wants it.
    pub async fn succeeds(&mut self) {
        let status = self.process.end().await;
        assert!(
            status.success(),
            "sipp: {status}, {}\n{:#?}",
            self.complaints(),
            self.messages()
        );
    }

    /// Waits for its end, whatever it thinks of what it saw.
    pub async fn ends(&mut self) {
        self.process.end().await;
    }

    /// Its process.
    #[allow(dead_code, reason = "load runs keep it to a core")]
    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    fn complaints(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        format!("{}{}", read("stderr"), read("errors"))
    }
}

/// One part of its log: `2026-11-26 23:15:12.785306`, a line that says in which direction and how long, then the message.
fn message(part: &str) -> Option<Message> {
    let (head, text) = part.split_once("\n\n")?;
    let time = head.lines().next()?.split_whitespace().nth(1)?;
    let mut numbers = time.split([':', '.']).map(|number| number.parse::<i64>());
    let mut number = || numbers.next()?.ok();
    let at_ms = number()? * 3_600_000 + number()? * 60_000 + number()? * 1_000 + number()? / 1_000;
    Some(Message {
        is_sent: head.contains(" sent "),
        at_ms,
        text: text.trim_end().to_owned(),
    })
}
