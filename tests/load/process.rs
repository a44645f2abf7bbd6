//! The service as a process of its own: what it costs is measured without its clients.
use super::{
    plot,
    rooms::pause,
    service::{Api, client, memory_mib, times},
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

/// Killed if it is dropped before it was stopped.
pub struct Process {
    child: Child,
    /// Of each workspace.
    keys: Vec<Vec<String>>,
    complaints: Arc<Mutex<Complaints>>,
    // What the process stands on goes last.
    place: Place,
}

/// What outlives a process that is killed: its folder, address, database and settings.
struct Place {
    folder: tempfile::TempDir,
    bind: String,
    database: String,
    secret: String,
    more: Vec<(String, String)>,
}

/// What the log said of faults.
#[derive(Clone, Debug, Default)]
pub struct Complaints {
    pub panics: usize,
    pub errors: usize,
    /// The first of them.
    pub first: Vec<String>,
}

impl Complaints {
    /// Lines that are kept.
    const KEPT: usize = 10;

    fn read(&mut self, line: &str) {
        let panicked = line.contains("panicked");
        if !panicked && !line.contains("ERROR") {
            return;
        }
        self.panics += usize::from(panicked);
        self.errors += usize::from(!panicked);
        if self.first.len() < Self::KEPT {
            self.first.push(line.trim_end().chars().take(300).collect());
        }
    }
}

/// Of a process, in MiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub resident: f64,
    /// Without the pages of files: program and database.
    pub own: f64,
}

impl Memory {
    pub fn most(self, other: Memory) -> Memory {
        Memory {
            resident: self.resident.max(other.resident),
            own: self.own.max(other.own),
        }
    }
}

/// `CALLBOARD_LOAD_BINARY`, or the binary that was built with this one.
pub fn binary() -> OsString {
    std::env::var_os("CALLBOARD_LOAD_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_callboard").into())
}

/// An address that stays free while its process is dead: the system gives out none below 32,768 for the near end of
/// somebody else's connection.
fn own_address() -> String {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap_or(0);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..32_768).find(is_free).expect("a port");
    format!("127.0.0.1:{port}")
}

impl Place {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command
            // Speech programs are looked for in it.
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("CALLBOARD_DATABASE_URL", &self.database)
            .env("CALLBOARD_BIND", &self.bind)
            .env("CALLBOARD_SECRET_KEY", &self.secret)
            .env("CALLBOARD_DEV", "true")
            .envs(self.more.iter().map(|(name, value)| (name, value)));
        command
    }

    fn serve(&self, complaints: &Arc<Mutex<Complaints>>) -> (Child, Starting) {
        let mut serve = self.command(&["serve"]);
        let mut child = serve
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut log = BufReader::new(child.stderr.take().expect("its log"));
        let (tell, told) = mpsc::channel();
        let complaints = complaints.clone();
        let (address, process) = (self.bind.clone(), child.id());
        std::thread::spawn(move || {
            let mut said = String::new();
            while !said.contains("Callboard is ready") {
                if log.read_line(&mut said).expect("its log") == 0 {
                    let _ = tell.send(Err(said));
                    return;
                }
            }
            let _ = tell.send(Ok(()));
            plot::watch(&address, Some(process));
            // The rest of the log is read away, so that the process never waits for us.
            for line in log.lines().map_while(Result::ok) {
                complaints.lock().unwrap_or_else(PoisonError::into_inner).read(&line);
            }
        });
        (child, Starting(told))
    }
}

/// A process that has not said yet that it is ready.
pub struct Starting(mpsc::Receiver<Result<(), String>>);

impl Starting {
    /// Others go on meanwhile: it may wait for what one of them holds.
    pub async fn ready(self) {
        loop {
            match self.0.try_recv() {
                Err(mpsc::TryRecvError::Empty) => pause(Duration::from_millis(20)).await,
                told => break Self::check(told.expect("a thread that reads its log")),
            }
        }
    }

    fn check(told: Result<(), String>) {
        told.unwrap_or_else(|said| panic!("serve ended before it was ready:\n{said}"));
    }
}

impl Process {
    /// Serves, with settings of its own, and has a workspace with a test key.
    pub fn start(database: &str, more: &[(&str, String)]) -> Self {
        Self::start_with(database, more, &[1])
    }

    /// The same with as many workspaces as numbers, and that many keys in each.
    pub fn start_with(database: &str, more: &[(&str, String)], workspaces: &[usize]) -> Self {
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let place = Place {
            folder: tempfile::tempdir().expect("a temporary folder"),
            bind: own_address(),
            database: database.to_owned(),
            secret: runtime::keyring::Keyring::generate(),
            more: more.collect(),
        };
        let command = |arguments: &[&str]| place.command(arguments);
        let keys = workspaces.iter().enumerate();
        let keys = keys.map(|(n, keys)| workspace(&command, n, *keys)).collect();
        let complaints = Arc::default();
        let (child, starting) = place.serve(&complaints);
        Starting::check(starting.0.recv().expect("a thread that reads its log"));
        Process {
            child,
            keys,
            complaints,
            place,
        }
    }

    /// kill -9; nothing serves until `start_again`.
    pub fn kill(&mut self) {
        self.child.kill().expect("it was there to be killed");
        self.child.wait().expect("its end");
    }

    pub fn start_again(&mut self) -> Starting {
        let (child, starting) = self.place.serve(&self.complaints);
        self.child = child;
        starting
    }

    /// Runs a command beside it, and hands on each line of its output.
    pub fn each_line(&self, arguments: &[&str], mut take: impl FnMut(&str)) {
        let mut command = self.place.command(arguments);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        output.lines().map_while(Result::ok).for_each(|line| take(&line));
        let ended = child.wait().expect("its end");
        assert!(ended.success(), "{arguments:?} ended with {ended}");
    }

    /// A file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place.folder.path().join(name)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.place.bind)
    }

    pub fn key(&self) -> &str {
        &self.keys[0][0]
    }

    pub fn complaints(&self) -> Complaints {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Files and connections that it has open.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// UDP sockets that it has open.
    pub fn udp_sockets(&self) -> usize {
        let process = format!("/proc/{}", self.child.id());
        let mut known = String::new();
        for table in ["udp", "udp6"] {
            known += &std::fs::read_to_string(format!("{process}/net/{table}")).unwrap_or_default();
        }
        // The tenth column names the socket.
        let known: BTreeSet<&str> = known
            .lines()
            .filter_map(|line| line.split_whitespace().nth(9))
            .collect();
        let open = std::fs::read_dir(format!("{process}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        let names = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        names
            .filter_map(|name| Some(name.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
            .filter(|name| known.contains(&**name))
            .count()
    }

    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).map_or(0, Iterator::count)
    }

    pub fn api(&self) -> Api {
        self.api_of(0, 0)
    }

    /// Of a workspace by its number, with a key by its.
    pub fn api_of(&self, workspace: usize, key: usize) -> Api {
        Api::new(self.url(), self.keys[workspace][key].clone())
    }

    pub fn keys_of(&self, workspace: usize) -> &[String] {
        &self.keys[workspace]
    }

    /// User and system time so far, that of its speech programs included.
    pub fn cpu_seconds(&self) -> f64 {
        times(&self.child.id().to_string()).iter().sum()
    }

    pub fn memory(&self) -> Memory {
        let of = |line| memory_mib(&self.child.id().to_string(), line);
        Memory {
            resident: of("VmRSS"),
            own: of("RssAnon"),
        }
    }

    /// A line of `/metrics` by its beginning, as `callboard_calls_live`; `None`: the binary does not measure that.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let answer = client().get(format!("{}/metrics", self.url())).send().await;
        let text = answer.expect("an answer").text().await.expect("a text");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        value.parse().ok()
    }

    /// Ends it in order, and serves again with these settings changed.
    pub async fn restart_with(&mut self, changed: &[(&str, String)]) {
        self.end();
        for (name, value) in changed {
            self.place.more.retain(|(known, _)| known != name);
            self.place.more.push(((*name).to_owned(), value.clone()));
        }
        self.start_again().ready().await;
    }

    /// SIGTERM, and a clean end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(told.is_ok_and(|status| status.success()), "it was there to be told");
        let ended = self.child.wait().expect("its end");
        assert!(ended.success(), "it ends in order: {ended}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The keys of a new workspace.
fn workspace(command: &impl Fn(&[&str]) -> Command, number: usize, keys: usize) -> Vec<String> {
    let answer = |arguments: &[&str], input: &str| {
        let mut command = command(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", Path::new(&binary()).display()));
        let mut stdin = child.stdin.take().expect("an input");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("an output");
        assert!(output.status.success(), "{arguments:?} failed");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let slug = format!("load-{number}");
    let create = format!(
        "--json workspace create --slug {slug} --name Load --owner-email {slug}@example.com --owner-password-stdin"
    );
    answer(&create.split(' ').collect::<Vec<_>>(), "correct horse battery\n");
    let create = format!("--json keys create --workspace {slug} --env test --name load");
    let key = |_| {
        let key = answer(&create.split(' ').collect::<Vec<_>>(), "");
        key["plaintext"].as_str().expect("a key").to_owned()
    };
    (0..keys).map(key).collect()
}
