//! kamailio: a registrar and proxy between the service and telephones.
use super::{Need, byte_peer::ask, until};
use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// It and its children end with this value.
pub struct Kamailio {
    process: Option<Child>,
    folder: TempDir,
    settings: Settings,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub port: u16,
    pub password: &'static str,
    /// `MD5` or `SHA-256`.
    pub algorithm: &'static str,
    /// How long a nonce is good, in seconds.
    pub nonce_seconds: u32,
    /// Whether INVITEs need credentials, too.
    pub challenges_calls: bool,
    /// The port of the one telephone that all calls go to; else they go to who is registered.
    pub behind: Option<u16>,
}

impl Settings {
    pub fn at(port: u16) -> Self {
        Settings {
            port,
            password: "secret",
            algorithm: "MD5",
            nonce_seconds: 300,
            challenges_calls: false,
            behind: None,
        }
    }
}

impl Kamailio {
    pub async fn start(settings: Settings) -> Self {
        let mut kamailio = Kamailio {
            process: None,
            folder: tempfile::tempdir().unwrap(),
            settings,
        };
        kamailio.comes_back().await;
        kamailio
    }

    /// As if its machine had lost power: what it knew of registrations is gone.
    pub fn goes_away(&mut self) {
        if let Some(mut process) = self.process.take() {
            let group = format!("-{}", process.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = process.wait();
        }
    }

    pub async fn comes_back(&mut self) {
        let settings = &self.settings;
        let text = include_str!("kamailio.cfg")
            .replace("@port@", &settings.port.to_string())
            .replace("@realm@", "127.0.0.1")
            .replace("@password@", settings.password)
            .replace("@algorithm@", settings.algorithm)
            .replace("@behind@", &settings.behind.unwrap_or(0).to_string())
            .replace("@nonce@", &settings.nonce_seconds.to_string())
            .replace("@challenge@", if settings.challenges_calls { "1" } else { "0" });
        let file = |name: &str| self.folder.path().join(name);
        fs::write(file("kamailio.cfg"), text).unwrap();
        let mut command = Need::Kamailio.command();
        command
            .arg("-f")
            .arg(file("kamailio.cfg"))
            // In the foreground, with a log of its own, and little memory.
            .args(["-DD", "-E", "-m", "32", "-M", "4", "-Y"])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(file("log")).unwrap())
            .process_group(0);
        self.process = Some(command.spawn().unwrap());
        let port = settings.port;
        until("kamailio answers", || ask(port, "OPTIONS").is_some()).await;
    }
}

impl Drop for Kamailio {
    fn drop(&mut self) {
        self.goes_away();
    }
}
