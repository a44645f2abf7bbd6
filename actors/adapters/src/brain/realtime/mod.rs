//! A mind that hears and speaks by itself: a model behind an OpenAI-Realtime-compatible websocket, turn by turn.
//!
//! Its answer is played as it comes (`feed`), and sound goes to it while it is spoken (`input`, `writer`): both while somebody
//! thinks and while nobody does, for the socket is in a task of its own (`link`).
//!
//! Where the provider writes down what it hears, these words are handed out beside (`own_words`).
//!
//! Whose turn it is, is decided by the talk and not by the provider, so its own turn detection is off: each turn puts in
//! what was heard and asks for one answer. The socket is opened at the first turn, or before it where
//! somebody asks whether the provider can be reached, and stays until the brain is dropped,
//! for the conversation lives at the provider; when it breaks, the brain has forgotten everything and stays silent.
//!
//! A turn may be dropped at any moment. What was on its way then is called off, and cleared away before the next turn:
//! the old answer is waited for and thrown away, what nobody can have heard is removed from the conversation, and calls
//! that have no output get one, for without it the provider would wait for them.
mod answer;
mod feed;
mod input;
mod items;
mod link;
mod opening;
mod own_words;
mod protocol;
mod provider;
pub mod sound;
mod spoken;
#[cfg(test)]
mod tests;
mod turn;
mod undo;
mod writer;

pub use provider::Provider;

use super::{Act, Brain, Briefing, Failure, Heard, LiveSound, OwnWords};
use answer::Answer;
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream, StreamExt},
};
use items::{Commits, ItemRef};
use link::Link;
use own_words::Ear;
use protocol::{Ask, Event, is_of_a_commit, named};
use serde_json::Value;
use sound::Format;
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout, timeout_at},
};
use turn::Turn;
use writer::Live;

/// Bytes of one message of the provider.
const MESSAGE_LIMIT: usize = 1024 * 1024;
/// Pieces of sound on their way out: five seconds of 20 ms each.
const LIVE_PIECES: usize = 256;

/// What an agent's settings say about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RealtimeSettings {
    /// Instead of the provider's.
    pub model: Option<String>,
    /// 24 kHz PCM rather than mu-law: where more than a telephone's sound is carried, and for compatibles that refuse
    /// `audio/pcmu`. One that refuses what it is asked for is asked for the other.
    pub pcm: bool,
}

/// How long the provider may take.
#[derive(Clone, Debug)]
struct Patience {
    /// To open the socket; and again to settle the session.
    connect: Duration,
    /// To take a turn's words in; to end an answer that is called off; and to begin one.
    first: Duration,
    /// Between two events of an answer.
    silence: Duration,
    /// For a whole answer, without the time in which its listener is behind.
    answer: Duration,
    /// To say which item something that was said has become.
    committed: Duration,
    /// To say what was understood of it.
    words: Duration,
}

const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(5),
    first: Duration::from_secs(10),
    silence: Duration::from_secs(15),
    answer: Duration::from_secs(120),
    committed: Duration::from_secs(2),
    words: Duration::from_secs(10),
};

#[derive(Debug)]
enum State {
    /// Not connected yet.
    Fresh,
    Open(Link),
    /// It was, and is not any more: why.
    Lost(String),
}

/// An answer that the provider works at.
#[derive(Clone, Copy, Debug)]
struct Running {
    canceled: bool,
}

/// The brain of one call.
#[derive(Debug)]
pub struct Realtime {
    provider: Provider,
    settings: RealtimeSettings,
    briefing: Briefing,
    patience: Patience,
    format: Format,
    state: State,
    /// Counts the turns, so that errors can be told apart.
    turn: u32,
    /// The last one, over or not.
    answer: Answer,
    running: Option<Running>,
    /// The answer before it: its stragglers are not the new one's.
    previous: Option<String>,
    /// It answers what was heard last.
    is_asked: bool,
    /// What was heard last.
    said: Vec<ItemRef>,
    /// What is to be removed before the next answer is asked for.
    unwanted: Vec<ItemRef>,
    commits: Commits,
    /// Where sound goes while it is spoken.
    live: Option<mpsc::Sender<LiveSound>>,
    /// Where it comes from, until the link listens to it.
    unheard: Option<mpsc::Receiver<LiveSound>>,
    /// Who writes down what is said, as it is asked for; `None`: nobody.
    transcription: Option<Value>,
    ear: Option<Ear>,
    /// The last turn was something that was said.
    has_heard: bool,
}

impl Realtime {
    pub fn new(provider: Provider, settings: RealtimeSettings, briefing: Briefing) -> Self {
        let format = if settings.pcm { Format::Pcm } else { Format::MuLaw };
        let transcription = provider.transcription(&briefing.language);
        Realtime {
            provider,
            settings,
            briefing,
            patience: PATIENCE,
            format,
            state: State::Fresh,
            turn: 0,
            answer: Answer::new(format),
            running: None,
            previous: None,
            is_asked: false,
            said: Vec::new(),
            unwanted: Vec::new(),
            commits: Commits::default(),
            live: None,
            unheard: None,
            ear: transcription.is_some().then(Ear::default),
            transcription,
            has_heard: false,
        }
    }

    /// Fails when the provider does not take it.
    async fn put(&mut self, name: &str, ask: Ask<'_>) -> Result<(), Failure> {
        let State::Open(link) = &self.state else {
            return Err(self.failure("the conversation is lost"));
        };
        match timeout(self.patience.first, link.send(named(name, ask))).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.why_gone().await),
            Err(_) => Err(self.failure("it takes nothing in")),
        }
    }

    /// The next event, or why there is none.
    async fn event(&mut self, until: Instant, late: &str) -> Result<Event, Failure> {
        let State::Open(link) = &mut self.state else {
            return Err(self.failure("the conversation is lost"));
        };
        match timeout_at(until, link.event()).await {
            Ok(Ok(event)) => {
                self.note(&event);
                Ok(event)
            }
            Ok(Err(why)) => {
                let failure = self.failure(&why);
                self.state = State::Lost(self.provider.clean(&why));
                Err(failure)
            }
            Err(_) => Err(self.failure(late)),
        }
    }

    /// Nothing is taken any more: what its last event says about that.
    async fn why_gone(&mut self) -> Failure {
        let until = Instant::now() + self.patience.first;
        loop {
            if let Err(failure) = self.event(until, "the connection is gone").await {
                return failure;
            }
        }
    }

    /// What became of something that was said: in their order, whoever reads them.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Committed { item_id } => self.commits.answer(item_id.clone()),
            Event::Error { error } if is_of_a_commit(error) => self.commits.answer(None),
            _ => {}
        }
    }

    /// Lets the link listen to what is spoken, as soon as there is one.
    fn pass_live_sound(&mut self) {
        if let State::Open(link) = &self.state
            && let Some(sounds) = self.unheard.take()
        {
            let format = self.format;
            let refused = link.listen_to(Live { sounds, format });
            self.unheard = refused.map(|live| live.sounds);
        }
    }

    fn failure(&self, words: &str) -> Failure {
        Failure::Provider(self.provider.clean(words))
    }
}

impl Brain for Realtime {
    fn reach(&mut self) -> BoxFuture<'_, Result<(), Failure>> {
        self.open().boxed()
    }

    fn hears(&self) -> bool {
        true
    }

    fn live_sound(&mut self) -> Option<mpsc::Sender<LiveSound>> {
        if let State::Lost(_) = self.state {
            return None;
        }
        if self.live.is_none() {
            let (live, unheard) = mpsc::channel(LIVE_PIECES);
            (self.live, self.unheard) = (Some(live), Some(unheard));
            self.pass_live_sound();
        }
        self.live.clone()
    }

    fn own_words(&mut self) -> Option<mpsc::Receiver<OwnWords>> {
        self.ear.as_ref()?.hand_out()
    }

    fn think(&mut self, heard: Heard) -> BoxStream<'_, Result<Act, Failure>> {
        let turn = Turn::new(self, heard);
        stream::unfold(turn, |mut turn| async { turn.next().await.map(|act| (act, turn)) }).boxed()
    }

    /// `played_ms` counts over all that the last turn said, from its first word.
    fn interrupted<'a>(&'a mut self, said: &'a str, played_ms: u64) -> BoxFuture<'a, ()> {
        async move {
            self.call_off();
            if let State::Open(_) = self.state
                && let Err(failure) = self.cut(said, played_ms).await
            {
                tracing::debug!(%failure, "an interruption was not noted");
            }
        }
        .boxed()
    }

    fn spoken_for<'a>(&'a mut self, words: &'a str) -> BoxFuture<'a, ()> {
        async move {
            if let State::Open(_) = self.state
                && let Err(failure) = self.add_spoken(words).await
            {
                tracing::debug!(%failure, "what was said in a model's place was not noted");
            }
        }
        .boxed()
    }

    /// At once: it is removed before the next answer is asked for.
    fn retract(&mut self) -> BoxFuture<'_, ()> {
        self.take_back();
        ready(()).boxed()
    }
}
