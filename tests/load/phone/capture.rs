//! When packets pass the loopback, by the kernel's clock: whoever listens in a process of its own is woken late on a busy machine.
use crate::{peers::ear::Packet, rooms::pause};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// One packet of RTP.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// In ms, by some clock.
    pub at_ms: f64,
    pub sequence: u16,
}

/// tshark, which listens until it is asked what it has seen, or is dropped.
pub struct Capture {
    tshark: Child,
    file: PathBuf,
    port: u16,
}

impl Capture {
    /// Of what goes to that port. `None`: there is no tshark, or it may not listen.
    pub async fn start(file: &Path, port: u16) -> Option<Self> {
        // Of a capture before this one.
        let _ = std::fs::remove_file(file);
        let mut command = tshark();
        command
            .args(["-q", "-i", "lo", "-f", &format!("udp dst port {port}"), "-w"])
            .arg(file);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut capture = Capture {
            tshark: quiet.spawn().ok()?,
            file: file.to_owned(),
            port,
        };
        // It writes the head of its file as soon as it listens.
        for _ in 0..100 {
            pause(Duration::from_millis(100)).await;
            if capture.tshark.try_wait().ok()?.is_some() {
                return None;
            }
            if file.metadata().is_ok_and(|file| file.len() > 0) {
                return Some(capture);
            }
        }
        None
    }

    pub fn seen(mut self) -> Vec<Passed> {
        let told = Command::new("kill")
            .args(["-INT", &self.tshark.id().to_string()])
            .status();
        assert!(told.is_ok_and(|status| status.success()), "it was there to be told");
        self.tshark.wait().expect("its end");
        let output = tshark()
            .arg("-r")
            .arg(&self.file)
            .args(["-d", &format!("udp.port=={},rtp", self.port), "-Y", "rtp"])
            .args(["-T", "fields", "-e", "frame.time_epoch", "-e", "rtp.seq"])
            .stderr(Stdio::null())
            .output()
            .expect("tshark");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.lines().filter_map(passed).collect()
    }
}

/// Where `tests/run` looks for it, too.
fn tshark() -> Command {
    Command::new(std::env::var_os("CALLBOARD_TEST_TSHARK").unwrap_or_else(|| "tshark".into()))
}

impl Drop for Capture {
    fn drop(&mut self) {
        // One that was asked is gone already.
        let _ = self.tshark.kill();
        let _ = self.tshark.wait();
    }
}

fn passed(line: &str) -> Option<Passed> {
    let (time, sequence) = line.split_once('\t')?;
    // Seconds since 1970 have too many digits for their fractions to be exact in a float.
    let (seconds, fraction) = time.split_once('.')?;
    let seconds = seconds.parse::<u64>().ok()? % 1_000_000;
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    Some(Passed {
        at_ms: (seconds as f64 + fraction) * 1e3,
        sequence: sequence.trim().parse().ok()?,
    })
}

/// The same, as a process has heard it.
pub fn heard(packets: &[Packet]) -> Vec<Passed> {
    let Some(first) = packets.first() else {
        return Vec::new();
    };
    let of = |packet: &Packet| Passed {
        at_ms: (packet.at - first.at).as_secs_f64() * 1e3,
        sequence: packet.sequence,
    };
    packets.iter().map(of).collect()
}
