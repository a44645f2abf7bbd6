//! The service as a process of its own: what it costs is measured without its clients.
use super::service::{Api, client, memory_mib, times};
use serde_json::Value;
use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

/// Killed if it is dropped before it was stopped.
pub struct Process {
    child: Child,
    url: String,
    /// Of each workspace.
    keys: Vec<Vec<String>>,
    // What the process stands on goes last.
    _folder: tempfile::TempDir,
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

impl Process {
    /// Serves, with settings of its own, and has a workspace with a test key.
    pub fn start(database: &str, more: &[(&str, String)]) -> Self {
        Self::start_with(database, more, &[1])
    }

    /// The same with as many workspaces as numbers, and that many keys in each.
    pub fn start_with(database: &str, more: &[(&str, String)], workspaces: &[usize]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let bind = free.local_addr().expect("its address").to_string();
        drop(free);
        let secret = actors::keyring::Keyring::generate();
        let command = |arguments: &[&str]| {
            let mut command = Command::new(binary());
            command.args(arguments).current_dir(folder.path()).env_clear();
            command
                // Speech programs are looked for in it.
                .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
                .env("CALLBOARD_DATABASE_URL", database)
                .env("CALLBOARD_BIND", &bind)
                .env("CALLBOARD_SECRET_KEY", &secret)
                .env("CALLBOARD_DEV", "true")
                .envs(more.iter().map(|(name, value)| (*name, value)));
            command
        };
        let keys = workspaces.iter().enumerate();
        let keys = keys.map(|(n, keys)| workspace(&command, n, *keys)).collect();
        let mut serve = command(&["serve"]);
        let mut child = serve
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut log = BufReader::new(child.stderr.take().expect("its log"));
        let mut said = String::new();
        while !said.contains("Callboard is ready") {
            let read = log.read_line(&mut said).expect("its log");
            assert!(read > 0, "serve ended before it was ready:\n{said}");
        }
        // The rest of the log is read away, so that the process never waits for us.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Process {
            child,
            url: format!("http://{bind}"),
            keys,
            _folder: folder,
        }
    }

    pub fn api(&self) -> Api {
        self.api_of(0, 0)
    }

    /// Of a workspace by its number, with a key by its.
    pub fn api_of(&self, workspace: usize, key: usize) -> Api {
        Api::new(self.url.clone(), self.keys[workspace][key].clone())
    }

    /// Files and connections that it has open.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
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
        let answer = client().get(format!("{}/metrics", self.url)).send().await;
        let text = answer.expect("an answer").text().await.expect("a text");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        value.parse().ok()
    }

    /// SIGTERM, and a clean end.
    pub fn stop(mut self) {
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
