//! A real browser: Debian's Chromium without a window, driven over the DevTools protocol, with a microphone that is not one.
mod link;
mod page;

pub use page::{DESKTOP, PHONE, Page, Screen};

use super::database;
use link::Link;
use serde_json::json;
use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// What the browser takes for a microphone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Microphone<'a> {
    /// Chromium's own: a short beep every second.
    Beeps,
    /// That WAV file over and over.
    Plays(&'a Path),
    /// There is none.
    Missing,
}

/// One process with a profile of its own. It and all its children end with this value.
pub struct Browser {
    process: Child,
    profile: TempDir,
    link: Link,
}

/// Names by which browsers that speak the protocol are known.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser of `CALLBOARD_TEST_CHROMIUM`, else the first one in PATH.
fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CALLBOARD_TEST_CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| {
        env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    };
    NAMES.iter().find_map(|name| found(name))
}

impl Browser {
    /// `None` when there is no Chromium to test with; `tests/run` brings one.
    pub async fn start(microphone: Microphone<'_>) -> Option<Self> {
        let Some(program) = program() else {
            assert!(env::var_os("CI").is_none(), "Chromium is needed to test in a browser");
            eprintln!("SKIPPED: no Chromium (none of {NAMES:?} is in PATH; run `bash tests/run`)");
            return None;
        };
        let profile = database::folder();
        let mut command = Command::new(program);
        command
            .args(flags(microphone))
            .arg("--remote-debugging-port=0")
            .arg("about:blank");
        command
            .arg(option("--user-data-dir=", profile.path()))
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut process = command.spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let start = said.len();
            assert!(log.read_line(&mut said).unwrap() > 0, "Chromium ended at once:\n{said}");
            if let Some(url) = said[start..].trim().strip_prefix("DevTools listening on ") {
                break url.to_owned();
            }
        };
        // The rest of the log is read away, so that the process never waits for us.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let link = Link::connect(&url).await;
        Some(Browser { process, profile, link })
    }

    /// A tab that shares nothing with others.
    pub async fn open(&self, screen: Screen) -> Page {
        let created = self.link.send(None, "Target.createBrowserContext", json!({})).await;
        let context = created["browserContextId"].as_str().unwrap();
        Page::open(&self.link, context, screen).await
    }
}

fn flags(microphone: Microphone<'_>) -> Vec<OsString> {
    let mut flags: Vec<OsString> = [
        "--headless",
        // Chromium refuses its sandbox to root, who runs tests in containers.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-breakpad",
        "--disable-component-update",
        "--disable-sync",
        "--disable-background-timer-throttling",
        "--disable-renderer-backgrounding",
        "--disable-backgrounding-occluded-windows",
        "--hide-scrollbars",
        "--no-first-run",
        "--mute-audio",
        // A host that is no loopback: what a page may not do without TLS is seen there.
        "--host-resolver-rules=MAP room.example 127.0.0.1",
    ]
    .map(OsString::from)
    .into();
    if microphone != Microphone::Missing {
        flags.push("--use-fake-device-for-media-stream".into());
    }
    if let Microphone::Plays(file) = microphone {
        flags.push(option("--use-file-for-fake-audio-capture=", file));
    }
    flags
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        if killed.is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
        // A child that has just died may hold a file a moment longer; the folder is temporary anyway.
        let _ = std::fs::remove_dir_all(self.profile.path());
    }
}
