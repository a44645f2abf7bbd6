//! Turn by turn, behind an OpenAI-compatible `/v1/audio/transcriptions`: a turn's sound is posted as a whole when its words are
//! wanted, and anew when more was said.
//!
//! Source: platform.openai.com, "Create transcription": a multipart form with a file, a model and a language.
use super::{Ask, Failure, Hear, LONGEST_SECONDS, MOST_TURNS, MOST_WAITING, Transcribed, outbox::Outbox, talk::Talk};
use crate::{
    provider_http::{self, ApiKey, Limits},
    sound::{HEARING, wav},
    speech::{SpeechError, http},
};
use futures_util::future::{BoxFuture, FutureExt, pending};
use reqwest::{
    Client,
    multipart::{Form, Part},
};
use rules::conversation::guard;
use serde::Deserialize;
use std::{collections::VecDeque, future::poll_fn, sync::Arc, task::Poll, time::Duration};
use tokio::{sync::mpsc, time::timeout};
use url::Url;

/// Bytes of an answer.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// Before the second and last try, unless the provider names another pause.
const PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);
const LONGEST: usize = LONGEST_SECONDS * HEARING as usize;

#[derive(Debug)]
pub struct Batch {
    url: Url,
    /// Servers of one's own ask for none.
    api_key: Option<ApiKey>,
    model: String,
    http: Client,
    limits: Limits,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

impl Batch {
    /// `url`: the base, as `https://host/v1`; `https://host` means the same. Fails in words for an operator.
    pub fn new(url: &str, api_key: Option<ApiKey>, model: &str, limits: Limits) -> Result<Self, String> {
        let mut url = provider_http::base_url(url, "https://host/v1")?;
        let version: &[&str] = if url.path() == "/" { &["v1"] } else { &[] };
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(version).extend(["audio", "transcriptions"]);
        }
        Ok(Batch {
            url,
            api_key,
            model: model.to_owned(),
            http: provider_http::client(|builder| builder)?,
            limits,
        })
    }

    /// The words of a turn. A second try if the first was bad luck.
    async fn words(&self, sound: &[i16], told: &Told) -> Result<String, SpeechError> {
        // At its own rate: what is above 4 kHz tells an f from an s.
        let wav = wav(sound, HEARING).map_err(|_| SpeechError::Garbage)?;
        let trying = async {
            match self.post(&wav, told).await {
                Err(error) => match pause(error) {
                    Some(pause) => {
                        // What stands behind never comes: this is a pause.
                        let _ = timeout(pause, pending::<()>()).await;
                        self.post(&wav, told).await
                    }
                    None => Err(error),
                },
                body => body,
            }
        };
        let body = timeout(self.limits.whole, trying)
            .await
            .unwrap_or(Err(SpeechError::Timeout))?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| SpeechError::Garbage)?;
        Ok(guard::clean(&answer.text, guard::MAX_WORDS).trim().to_owned())
    }

    async fn post(&self, wav: &[u8], told: &Told) -> Result<Vec<u8>, SpeechError> {
        // A content type that can be read, so there is nothing that could fail.
        let part = || Part::bytes(wav.to_vec()).file_name("speech.wav");
        let part = part().mime_str("audio/wav").unwrap_or_else(|_| part());
        let mut form = Form::new().part("file", part).text("model", self.model.clone());
        form = form.text("response_format", "json");
        for (name, value) in [("language", &told.language), ("prompt", &told.prompt)] {
            if let Some(value) = value {
                form = form.text(name, value.clone());
            }
        }
        let mut request = self.http.post(self.url.clone()).multipart(form);
        if let Some(key) = &self.api_key {
            request = request.bearer_auth(key.expose());
        }
        http::body(request, self.limits, MAX_BODY).await
    }
}

/// Before another try; `None`: it would fail as well.
fn pause(error: SpeechError) -> Option<Duration> {
    match error {
        SpeechError::Limited { retry_after } => Some(retry_after.unwrap_or(PAUSE).min(MAX_PAUSE)),
        SpeechError::Absent | SpeechError::Closed => Some(PAUSE),
        SpeechError::Refused {
            status: 408 | 500..=599,
        } => Some(PAUSE),
        SpeechError::Refused { .. }
        | SpeechError::Timeout
        | SpeechError::Stalled
        | SpeechError::Garbage
        | SpeechError::TooLong => None,
    }
}

/// What it is told beside the sound.
#[derive(Debug)]
struct Told {
    language: Option<String>,
    prompt: Option<String>,
}

type Words = Result<String, SpeechError>;

#[derive(Default)]
struct Turn {
    sound: Vec<i16>,
    /// `Finalize`s without an answer.
    asked: usize,
    work: Option<BoxFuture<'static, Words>>,
    /// Of all that was posted.
    words: Option<Words>,
    /// More was said since.
    has_more: bool,
}

struct Session {
    batch: Arc<Batch>,
    told: Arc<Told>,
    outbox: Outbox,
    /// Those that are not over: before the last, they wait for their words.
    turns: VecDeque<Turn>,
    /// The last one may go on.
    is_open: bool,
}

/// Begins at once, in a task of its own.
pub fn start(batch: Arc<Batch>, ask: &Ask, input: mpsc::Receiver<Hear>, events: mpsc::Sender<Transcribed>) {
    let names = ask.expected();
    let told = Told {
        language: ask.language_code(),
        prompt: (!names.is_empty()).then(|| names.join(", ")),
    };
    let session = Session {
        batch,
        told: Arc::new(told),
        outbox: Outbox::default(),
        turns: VecDeque::new(),
        is_open: false,
    };
    tokio::spawn(session.run(Talk::new(input, events)));
}

impl Session {
    /// Until one of the talk's ends is dropped.
    async fn run(mut self, mut talk: Talk) {
        loop {
            self.settle();
            let waiting: usize = self.turns.iter().map(|turn| turn.asked).sum();
            tokio::select! {
                hear = talk.next(&mut self.outbox, waiting < MOST_WAITING) => match hear {
                    Some(hear) => self.take(hear),
                    None => return,
                },
                () = understood(&mut self.turns) => {}
            }
        }
    }

    fn take(&mut self, hear: Hear) {
        match hear {
            Hear::Begin(_) => self.begin(),
            Hear::Sound(sound) => {
                if let Some(turn) = self.turns.back_mut().filter(|_| self.is_open) {
                    turn.sound.extend_from_slice(&sound.at(HEARING).samples);
                    turn.has_more = true;
                    // Seldom, for all of it is moved.
                    if turn.sound.len() > LONGEST + HEARING as usize {
                        turn.sound.drain(..turn.sound.len() - LONGEST);
                    }
                }
            }
            Hear::Finalize => self.finalize(),
            Hear::Discard => {
                if let Some(turn) = self.turns.back_mut().filter(|_| self.is_open) {
                    *turn = Turn {
                        asked: turn.asked,
                        words: Some(Ok(String::new())),
                        ..Turn::default()
                    };
                }
                self.is_open = false;
            }
        }
    }

    fn begin(&mut self) {
        if let Some(before) = self.turns.back_mut() {
            // It is in its request.
            before.sound = Vec::new();
        }
        if self.turns.len() >= MOST_TURNS
            && let Some(oldest) = self.turns.front_mut()
        {
            oldest.work = None;
            oldest.words = Some(Err(SpeechError::Timeout));
        }
        self.turns.push_back(Turn::default());
        self.is_open = true;
    }

    fn finalize(&mut self) {
        if !self.is_open {
            // Of nothing; but the answers before it come first.
            self.turns.push_back(Turn::default());
        }
        let (batch, told) = (self.batch.clone(), self.told.clone());
        let Some(turn) = self.turns.back_mut() else { return };
        turn.asked += 1;
        if turn.sound.is_empty() {
            turn.words = Some(Ok(String::new()));
        } else if turn.has_more || matches!(turn.words, Some(Err(_))) {
            let sound = turn.sound.clone();
            turn.has_more = false;
            turn.words = None;
            // What was asked before knows less: it is called off.
            turn.work = Some(async move { batch.words(&sound, &told).await }.boxed());
        }
    }

    /// Answers all that can be answered, in order.
    fn settle(&mut self) {
        while let Some(turn) = self.turns.front_mut() {
            if turn.asked > 0 {
                let Some(words) = turn.words.clone() else { return };
                for _ in 0..turn.asked {
                    self.outbox.push(match words.clone() {
                        Ok(words) => Transcribed::Final(words),
                        Err(error) => Transcribed::Failed(Failure(error)),
                    });
                }
                turn.asked = 0;
            }
            if self.is_open && self.turns.len() == 1 {
                return;
            }
            self.turns.pop_front();
        }
    }
}

/// Until the words of at least one of them are there.
async fn understood(turns: &mut VecDeque<Turn>) {
    poll_fn(|context| {
        let mut is_any = false;
        for turn in turns.iter_mut() {
            if let Some(work) = &mut turn.work
                && let Poll::Ready(words) = work.poll_unpin(context)
            {
                turn.work = None;
                turn.words = Some(words);
                is_any = true;
            }
        }
        if is_any { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
