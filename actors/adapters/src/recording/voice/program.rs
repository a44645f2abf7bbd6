//! A speech program of the machine: one process per utterance, of which nothing is believed.
//!
//! The text goes to its standard input, so no text can be an argument or reach a shell. Its environment is bare: what it
//! inherits from us could hold secrets.
use super::{Speaker, wave};
use entities::boxed;
use runtime::supervise::join_text;
use std::{
    env, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    sync::Semaphore,
    time::timeout,
};

/// Processes at once.
const PLACES: usize = 2;
/// And so many more for those who wait for the words: recordings never hold them up.
const LIVE_PLACES: usize = 4;
/// Utterances that may wait for a place.
const WAITING: usize = 256;
/// Then a process is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a process's output.
const OUTPUT_LIMIT: u64 = 10 * 1024 * 1024;

#[derive(Debug)]
pub struct Program {
    pub kind: Kind,
    path: PathBuf,
    places: Semaphore,
    live_places: Semaphore,
    /// Those at work and those that wait.
    line: Semaphore,
    pub patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    EspeakNg,
    Flite,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::EspeakNg => "espeak-ng",
            Kind::Flite => "flite",
        }
    }

    /// Samples per second that its usual voices have.
    pub fn rate(self) -> u32 {
        match self {
            Kind::EspeakNg => 22_050,
            Kind::Flite => 16_000,
        }
    }
}

impl Program {
    pub fn new(kind: Kind, path: PathBuf) -> Self {
        Program {
            kind,
            path,
            places: Semaphore::new(PLACES),
            live_places: Semaphore::new(LIVE_PLACES),
            line: Semaphore::new(PLACES + LIVE_PLACES + WAITING),
            patience: PATIENCE,
        }
    }

    /// At `rate` samples per second. `live`: somebody waits for the words. Fails with a reason for the log.
    #[boxed]
    pub async fn speak(
        &self,
        text: &str,
        language: &str,
        who: Speaker,
        live: bool,
        rate: u32,
    ) -> Result<Vec<i16>, String> {
        let in_line = self.line.try_acquire();
        let _in_line = in_line.map_err(|_| format!("{WAITING} utterances wait for it already"))?;
        let wav = {
            let places = if live { &self.live_places } else { &self.places };
            let place = places.acquire().await;
            let _place = place.map_err(|_| "it is closed".to_owned())?;
            match self.kind {
                Kind::EspeakNg => self.espeak(text, language, who).await?,
                Kind::Flite => self.flite(text, who).await?,
            }
        };
        let parsed = tokio::task::spawn_blocking(move || wave::parse(&wav, rate)).await;
        parsed.map_err(join_text)?
    }

    async fn espeak(&self, text: &str, language: &str, who: Speaker) -> Result<Vec<u8>, String> {
        let (pitch, pace) = match who {
            Speaker::Agent => ("35", "165"),
            Speaker::User => ("75", "175"),
        };
        let mut command = self.command();
        // `-b 1`: the input is UTF-8, whatever the environment says.
        command.args([
            "--stdin",
            "--stdout",
            "-b",
            "1",
            "-v",
            espeak_voice(language),
            "-p",
            pitch,
            "-s",
            pace,
        ]);
        self.run(command, text).await
    }

    /// It writes into files only: with a pipe it waits for ever.
    async fn flite(&self, text: &str, who: Speaker) -> Result<Vec<u8>, String> {
        let voice = match who {
            Speaker::Agent => "slt",
            Speaker::User => "rms",
        };
        let file = Scratch::new().map_err(|error| format!("no file can be made for its output: {error}"))?;
        let mut command = self.command();
        command.args(["-voice", voice, "-f", "-", "-o"]).arg(&file.0);
        self.run(command, text).await?;
        let wav = tokio::fs::File::open(&file.0)
            .await
            .map_err(|error| error.to_string())?;
        read(wav).await
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .envs(["PATH", "ESPEAK_DATA_PATH"].iter().filter_map(|name| Some((name, env::var_os(name)?))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Whoever gives up waiting for the words ends the process too.
            .kill_on_drop(true);
        command
    }

    /// The process's standard output.
    async fn run(&self, mut command: Command, text: &str) -> Result<Vec<u8>, String> {
        let mut child = command.spawn().map_err(|error| format!("it does not start: {error}"))?;
        let outcome = match timeout(self.patience, converse(&mut child, text)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("it took longer than {} s", self.patience.as_secs())),
        };
        if outcome.is_err() {
            // Waits for its end as well; that it has ended already is no failure.
            let _ = child.kill().await;
        }
        outcome
    }
}

async fn converse(child: &mut Child, text: &str) -> Result<Vec<u8>, String> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("it has no pipes".to_owned());
    };
    let tell = async move {
        // It may stop reading when it has heard enough; whether it did well, its end says.
        let _ = stdin.write_all(text.as_bytes()).await;
        let _ = stdin.write_all(b"\n").await;
        drop(stdin);
    };
    let ((), output) = tokio::join!(tell, read(stdout));
    let output = output?;
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() {
        Ok(output)
    } else {
        Err(format!("it ended with {status}"))
    }
}

async fn read(from: impl tokio::io::AsyncRead + Unpin) -> Result<Vec<u8>, String> {
    let mut output = Vec::new();
    let read = from.take(OUTPUT_LIMIT + 1).read_to_end(&mut output).await;
    read.map_err(|error| format!("its output cannot be read: {error}"))?;
    if output.len() as u64 > OUTPUT_LIMIT {
        return Err(format!("its output is longer than {OUTPUT_LIMIT} bytes"));
    }
    Ok(output)
}

/// A file for one utterance, which goes with it. Only we can read it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("{LEFTOVER}{:032x}.wav", rand::random::<u128>()));
        create(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is gone, or the system clears it away.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn create(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Languages that espeak-ng 1.51 calls as BCP 47 does.
const SAME: &[&str] = &[
    "af", "am", "ar", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "el", "eo", "es", "et", "eu", "fa",
    "fi", "ga", "gu", "he", "hi", "hr", "hu", "hy", "id", "is", "it", "ja", "ka", "kk", "kn", "ko", "lt", "lv", "mk",
    "ml", "mr", "ms", "mt", "nb", "ne", "nl", "pa", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "sw", "ta",
    "te", "th", "tr", "uk", "ur", "uz", "vi", "yue",
];

/// The espeak-ng voice of a BCP 47 tag: the country's where there is one, else the language's, else English.
pub fn espeak_voice(language: &str) -> &'static str {
    let tag = language.trim().to_ascii_lowercase().replace('_', "-");
    let mut parts = tag.split('-');
    let primary = parts.next().unwrap_or_default();
    let country = parts.find(|part| part.len() == 2 || (part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit())));
    match (primary, country) {
        ("en", Some("us")) => "en-us",
        ("en", Some("gb")) => "en-gb",
        ("pt", Some("br")) => "pt-br",
        ("fr", Some("be")) => "fr-be",
        ("fr", Some("ch")) => "fr-ch",
        ("fr", _) => "fr-fr",
        ("es", None | Some("es")) => "es",
        ("es", Some(_)) => "es-419",
        ("zh", Some("hk")) => "yue",
        ("zh" | "cmn", _) => "cmn",
        ("no" | "nn", _) => "nb",
        ("iw", _) => "he",
        ("in", _) => "id",
        _ => SAME.iter().find(|&&same| same == primary).copied().unwrap_or("en"),
    }
}

/// How the files begin that a program speaks into.
const LEFTOVER: &str = "callboard-speech-";

/// Removes what a crash has left of them: somebody's words. Those of a service that runs beside this one are younger.
pub fn sweep() {
    let old = Duration::from_secs(60);
    for entry in std::fs::read_dir(env::temp_dir()).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(LEFTOVER);
        let age = entry
            .metadata()
            .and_then(|about| about.modified())
            .ok()
            .and_then(|at| at.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > old) {
            // Somebody else may have been faster.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
