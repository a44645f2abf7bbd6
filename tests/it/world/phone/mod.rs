//! The other ends of telephone calls: real SIP peers that are not ours, and one that is, for what a real one would never do.
//!
//! `tests/run` brings sipp, kamailio, PJSIP and tshark. Without them the tests that need them are skipped, and with `CI` set they fail.
pub mod byte_peer;
pub mod dialog;
pub mod ear;
pub mod kamailio;
pub mod likeness;
pub mod pjsip;
pub mod ports;
pub mod sipp;
pub mod sound;
pub mod tshark;

use std::{
    env,
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    time::Duration,
};

/// What never comes within this time never will; the longest wait of RFC 3261 is 32 s.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A peer that a test cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Sipp,
    Pjsip,
    Kamailio,
    Tshark,
}

impl Need {
    /// How it is named by the environment, else looked for in `PATH`; PJSIP is a Python that knows it.
    fn program(self) -> Option<PathBuf> {
        let (variable, name) = match self {
            Need::Sipp => ("CALLBOARD_TEST_SIPP", "sipp"),
            Need::Kamailio => ("CALLBOARD_TEST_KAMAILIO", "kamailio"),
            Need::Tshark => ("CALLBOARD_TEST_TSHARK", "tshark"),
            Need::Pjsip => return env::var_os("CALLBOARD_TEST_PJSIP").map(PathBuf::from),
        };
        if let Some(named) = env::var_os(variable) {
            return Some(named.into());
        }
        let path = env::var_os("PATH").unwrap_or_default();
        // Debian keeps servers where only root looks.
        let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        folders.map(|folder| folder.join(name)).find(|file| file.is_file())
    }

    fn command(self) -> Command {
        Command::new(
            self.program()
                .unwrap_or_else(|| panic!("{self:?} was there a moment ago")),
        )
    }
}

/// Whether all of them are at hand; else it says which is not.
pub fn at_hand(needs: &[Need]) -> bool {
    let missing: Vec<_> = needs.iter().filter(|need| need.program().is_none()).collect();
    if !missing.is_empty() {
        assert!(
            env::var_os("CI").is_none(),
            "{missing:?} is needed to test telephone calls"
        );
        eprintln!("SKIPPED: no {missing:?} (run `bash tests/run`)");
    }
    missing.is_empty()
}

/// A process that does not outlive its test, however that ends.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Process(
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{command:?} does not start: {error}")),
        )
    }

    /// Waits for its own end.
    async fn end(&mut self) -> ExitStatus {
        let began = std::time::Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < 2 * PATIENCE, "a peer does not end: {:?}", self.0);
            pause(20).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal, such as `-USR1`.
pub fn signal(process: u32, signal: &str) {
    let told = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(told.unwrap().success(), "it was there to be told");
}

pub async fn pause(ms: u64) {
    let _busy = runtime::clock::Clock::wall().sleep(Duration::from_millis(ms)).await;
}

/// Looks until it is so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "it did not come to this: {what}");
        pause(10).await;
    }
}
