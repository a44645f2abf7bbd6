//! A provider that hears while one speaks, and knows one sentence: Deepgram's `/v1/listen`, and Flux's `/v2/listen`.
//!
//! Where somebody speaks is found in the sound that comes, by its loudness. A word is known so long after the sound of it has come, and
//! with the last word also that the sentence is over: `Finalize` gives what is known by then, and is answered no sooner.
use super::servers::{Pace, local_listener::listen};
use crate::{guests::SENTENCE, rooms::pause};
use adapters::sound::Pcm;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Listen,
    Flux,
}

/// Samples per millisecond of what comes, and in 10 ms.
const KHZ: usize = 16;
const TEN_MS: usize = 10 * KHZ;
/// The root of the mean square of 10 ms of sound, 40 dB below full scale: as loud as what people measure.
const LOUD: f64 = 328.0;
/// After so long without a voice the sentence is said anew.
const ANEW: Duration = Duration::from_secs(1);
/// From the end of speech to Flux's end of a turn; that it may be over it says with the last word. Source: Deepgram, "about 260 ms".
const END_OF_TURN: Duration = Duration::from_millis(260);

/// Dropping it ends its connections.
pub struct HearingServer {
    /// `ws://` and the address.
    pub url: String,
    voices: Voices,
    _tasks: JoinSet<()>,
}

/// When each 10 ms with a voice came.
type Voices = Arc<Mutex<Vec<Instant>>>;

impl HearingServer {
    /// `words`: what is understood of the sentence.
    pub fn start(protocol: Protocol, words: &'static str, pace: Pace) -> Self {
        let sentence = Sentence::of(words);
        let voices = Voices::default();
        let heard = voices.clone();
        let (address, _tasks) = listen(move |stream| {
            let hearing = Hearing::new(protocol, sentence.clone(), pace.clone(), heard.clone());
            serve(stream, hearing)
        });
        HearingServer {
            url: format!("ws://{address}"),
            voices,
            _tasks,
        }
    }

    pub fn voices(&self) -> Vec<Instant> {
        self.voices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(stream: TcpStream, mut hearing: Hearing) {
    let Ok(mut socket) = accept_async(stream).await else {
        return;
    };
    // A client that goes away is none of its business.
    while hearing.step(&mut socket).await.is_some() {}
}

#[derive(Clone)]
struct Sentence {
    words: Vec<&'static str>,
    /// From its first loud 10 ms to its last.
    spoken_ms: usize,
}

impl Sentence {
    fn of(words: &'static str) -> Self {
        let sound = Pcm::of_mu_law(SENTENCE).at(16_000);
        let loud: Vec<bool> = sound.samples.chunks(TEN_MS).map(is_loud).collect();
        let first = loud.iter().position(|loud| *loud).expect("a voice");
        let last = loud.iter().rposition(|loud| *loud).expect("a voice");
        Sentence {
            words: words.split(' ').collect(),
            spoken_ms: (last + 1 - first) * 10,
        }
    }

    /// How many words so many milliseconds of it have.
    fn spoken_in(&self, ms: usize) -> usize {
        (self.words.len() * ms / self.spoken_ms.max(1)).min(self.words.len())
    }
}

/// One connection.
struct Hearing {
    protocol: Protocol,
    sentence: Sentence,
    pace: Pace,
    voices: Voices,
    /// Less than 10 ms of sound.
    rest: Vec<i16>,
    /// Of all that came.
    samples: usize,
    /// Where the sentence that is said began.
    onset: Option<usize>,
    /// When the last of its voice came, and how many of its words.
    voice_at: Option<Instant>,
    words: usize,
    /// What is known and is not said yet, in its order.
    due: VecDeque<(Instant, Value)>,
    /// Of what is said for good, or will be: words of the sentence, and sound.
    done: (usize, usize),
    turns: usize,
    /// Flux: a turn goes on.
    is_open: bool,
}

impl Hearing {
    fn new(protocol: Protocol, sentence: Sentence, pace: Pace, voices: Voices) -> Self {
        Hearing {
            protocol,
            sentence,
            pace,
            voices,
            rest: Vec::new(),
            samples: 0,
            onset: None,
            voice_at: None,
            words: 0,
            due: VecDeque::new(),
            done: (0, 0),
            turns: 0,
            is_open: false,
        }
    }

    /// Hears, or says what is due; none once the client is gone.
    async fn step(&mut self, socket: &mut WebSocketStream<TcpStream>) -> Option<()> {
        let due = self
            .due
            .front()
            .map(|(at, _)| at.saturating_duration_since(Instant::now()));
        tokio::select! {
            biased;
            () = pause(due.unwrap_or_default()), if due.is_some() => {
                let (_, event) = self.due.pop_front()?;
                socket.send(Message::text(event.to_string())).await.ok()
            }
            message = socket.next() => {
                match message?.ok()? {
                    Message::Binary(sound) => self.hear(&sound),
                    Message::Text(text) => self.read(&text),
                    _ => {}
                }
                Some(())
            }
        }
    }

    fn hear(&mut self, sound: &[u8]) {
        let samples = sound.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
        self.rest.extend(samples);
        let all = std::mem::take(&mut self.rest);
        let (tens, rest) = all.split_at(all.len() / TEN_MS * TEN_MS);
        self.rest = rest.to_vec();
        for ten in tens.chunks(TEN_MS) {
            self.hear_ten(is_loud(ten));
        }
    }

    fn hear_ten(&mut self, is_loud: bool) {
        let now = Instant::now();
        if is_loud {
            if self.voice_at.is_none_or(|at| now.duration_since(at) > ANEW) {
                (self.onset, self.words, self.done.0) = (Some(self.samples), 0, 0);
                self.is_open = true;
                self.turn("StartOfTurn", now);
            }
            self.voice_at = Some(now);
            self.voices.lock().unwrap_or_else(PoisonError::into_inner).push(now);
        }
        self.samples += TEN_MS;
        let Some(onset) = self.onset else { return };
        let words = self.sentence.spoken_in((self.samples - onset) / KHZ);
        if words == self.words {
            return;
        }
        self.words = words;
        let known_at = now + self.pace.get().stt;
        self.say_words(known_at, false);
        if self.protocol == Protocol::Flux && words == self.sentence.words.len() {
            self.turn("EagerEndOfTurn", known_at);
            self.turn("EndOfTurn", known_at.max(now + END_OF_TURN));
        }
    }

    fn read(&mut self, text: &str) {
        let asked: Value = serde_json::from_str(text).unwrap_or_default();
        match asked["type"].as_str().unwrap_or_default() {
            "Finalize" => self.say_words(Instant::now(), true),
            "ForceEndTurn" => self.turn("EndOfTurn", Instant::now()),
            _ => {}
        }
    }

    fn say_words(&mut self, at: Instant, is_done: bool) {
        if self.protocol == Protocol::Flux {
            return self.turn("Update", at);
        }
        let (from, start) = self.done;
        let result = json!({
            "type": "Results",
            "start": seconds(start),
            "duration": seconds(self.samples.saturating_sub(start)),
            "is_final": is_done,
            "speech_final": false,
            "from_finalize": is_done,
            "channel": { "alternatives": [{ "transcript": self.text(from), "confidence": 0.9, "words": [] }] },
        });
        if is_done {
            self.done = (self.words, self.samples);
        }
        self.push(at, result);
    }

    /// An event of Flux, unless its turn has ended.
    fn turn(&mut self, event: &'static str, at: Instant) {
        if self.protocol != Protocol::Flux || !self.is_open {
            return;
        }
        let (from, start) = self.done;
        let info = json!({
            "type": "TurnInfo",
            "event": event,
            "turn_index": self.turns,
            "audio_window_start": seconds(start),
            "audio_window_end": seconds(self.samples),
            "transcript": self.text(from),
            "words": [],
            "end_of_turn_confidence": 0.8,
        });
        if event == "EndOfTurn" {
            self.turns += 1;
            self.is_open = false;
            self.done = (self.words, self.samples);
        }
        self.push(at, info);
    }

    /// At that moment, or after what comes before it.
    fn push(&mut self, at: Instant, event: Value) {
        let at = self.due.back().map_or(at, |(before, _)| at.max(*before));
        self.due.push_back((at, event));
    }

    /// The words that are known behind so many of them.
    fn text(&self, from: usize) -> String {
        let words = self.sentence.words.get(from..self.words).unwrap_or_default();
        words.join(" ")
    }
}

fn is_loud(samples: &[i16]) -> bool {
    let power: f64 = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    !samples.is_empty() && power >= LOUD * LOUD * samples.len() as f64
}

fn seconds(samples: usize) -> f64 {
    samples as f64 / (KHZ * 1_000) as f64
}
