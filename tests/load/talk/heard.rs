//! What a person hears: the room's page in Chromium, whose microphone plays the sentence over and over.
//!
//! Microphone and agent are looked at side by side in the page, as blocks of 512 samples by one clock: its audio context's. So the figure
//! has all that the browser adds (its encoder, its network, its jitter buffer, its decoder), but not the card that plays it.
use crate::guests::SENTENCE;
use adapters::sound::Pcm;
use browser::{Browser, DESKTOP, Microphone, PHONE, Page, Screen};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

#[expect(dead_code, clippy::unwrap_used, reason = "the tests of the page need all of it")]
#[path = "../../it/world/browser/mod.rs"]
mod browser;

/// What the browser's module stands on in the tests.
mod database {
    pub fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }
}

/// Before the sentence, and behind it: the agent has said its answer by then, a function of two seconds included.
const BEFORE_SECONDS: usize = 4;
const BEHIND_SECONDS: usize = 6;

/// `window.measured.turns` has, for each sentence that did not cut in on the agent, milliseconds from the end of its last loud block
/// to the beginning of the agent's first. A block is loud from 40 dB below full scale on.
const MEASURE: &str = "(async () => {
    const connection = window.connections.at(-1);
    const context = new AudioContext();
    const merger = context.createChannelMerger(2);
    const ends = [connection.getSenders(), connection.getReceivers()];
    const sources = ends.map((all, input) => {
        const { track } = all.find((one) => one.track?.kind === 'audio');
        const source = context.createMediaStreamSource(new MediaStream([track]));
        source.connect(merger, 0, input);
        return source;
    });
    const length = 512;
    const blocks = context.createScriptProcessor(length, 2, 1);
    merger.connect(blocks);
    blocks.connect(context.destination);
    const measured = { turns: [], sources, merger, blocks, context };
    const isLoud = (buffer, channel) => {
        const power = buffer.getChannelData(channel).reduce((sum, sample) => sum + sample * sample, 0);
        return power >= length * 0.01 ** 2;
    };
    let spokeAt = null;
    let cutIn = false;
    blocks.onaudioprocess = ({ inputBuffer, playbackTime }) => {
        const [mine, theirs] = [isLoud(inputBuffer, 0), isLoud(inputBuffer, 1)];
        if (mine) {
            cutIn = theirs || (cutIn && spokeAt !== null);
            spokeAt = playbackTime + inputBuffer.duration;
        } else if (theirs && spokeAt !== null) {
            const after = (playbackTime - spokeAt) * 1000;
            // No turn is over so soon: the agent was speaking.
            if (after < 150) {
                cutIn = true;
                return;
            }
            if (!cutIn) measured.turns.push(after);
            spokeAt = null;
        }
    };
    window.measured = measured;
    await context.resume();
    return context.state;
})()";

/// Ends with this value.
pub struct Chromium {
    browser: Browser,
    screen: Screen,
    _sounds: TempDir,
}

impl Chromium {
    /// `screen`: `desktop` or `phone`.
    pub async fn start(screen: &str) -> Self {
        let screen = match screen {
            "desktop" => DESKTOP,
            "phone" => PHONE,
            other => panic!("--browser: desktop or phone, not `{other}`"),
        };
        let sounds = database::folder();
        let file = sounds.path().join("microphone.wav");
        record(&file);
        let browser = Browser::start(Microphone::Plays(&file)).await;
        Chromium {
            browser: browser.expect("--browser needs Chromium: apt-get install chromium"),
            screen,
            _sounds: sounds,
        }
    }

    /// Joins the room and stays for so many turns; answers how long each took until the agent was heard, in milliseconds.
    pub async fn talk(&self, room: &Value, turns: usize) -> Vec<f64> {
        let page: Page = self.browser.open(self.screen).await;
        let link = room["room_url"].as_str().expect("a link");
        page.microphone(link, "granted").await;
        page.go(link).await;
        page.state("ready").await;
        page.click("#join").await;
        page.state("talking").await;
        let state = page.value(MEASURE).await;
        assert_eq!(state, "running", "the page's sound does not run");
        for turn in 1..=turns {
            page.until(&format!("window.measured.turns.length >= {turn}")).await;
        }
        let measured = page.value("window.measured.turns").await;
        page.click("#hang-up").await;
        page.state("ended").await;
        assert!(page.complaints().is_empty(), "{:?}", page.complaints());
        page.close().await;
        let turns = measured.as_array().into_iter().flatten().take(turns);
        turns.filter_map(Value::as_f64).collect()
    }
}

/// The sentence, with the silence around it, as the browser takes it for a microphone.
fn record(file: &Path) {
    let sentence = Pcm::of_mu_law(SENTENCE);
    let format = hound::WavSpec {
        channels: 1,
        sample_rate: sentence.rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let silence = |seconds: usize| vec![0_i16; seconds * 8_000];
    let (before, behind) = (silence(BEFORE_SECONDS), silence(BEHIND_SECONDS));
    let mut wav = hound::WavWriter::create(file, format).expect("a file");
    for sample in before.iter().chain(sentence.samples.iter()).chain(&behind) {
        wav.write_sample(*sample).expect("it is written");
    }
    wav.finalize().expect("it is written");
}
