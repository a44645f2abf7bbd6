//! A mind that hears and speaks by itself: a model behind an OpenAI-Realtime-compatible websocket, turn by turn.
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
mod link;
mod protocol;
mod provider;
pub mod sound;
#[cfg(test)]
mod tests;
mod turn;

pub use provider::Provider;

use super::{Act, Brain, Briefing, Failure, Heard};
use answer::Answer;
use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{self, BoxStream, StreamExt},
};
use link::Link;
use protocol::{Ask, Event, Named, NewItem, Problem, Text};
use sound::Format;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use turn::Turn;

/// Bytes of one message of the provider.
const MESSAGE_LIMIT: usize = 1024 * 1024;

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
    /// For a whole answer.
    answer: Duration,
}

const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(5),
    first: Duration::from_secs(10),
    silence: Duration::from_secs(15),
    answer: Duration::from_secs(120),
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
    /// Sound was put in and not committed.
    uncommitted: bool,
}

impl Realtime {
    pub fn new(provider: Provider, settings: RealtimeSettings, briefing: Briefing) -> Self {
        let format = if settings.pcm { Format::Pcm } else { Format::MuLaw };
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
            uncommitted: false,
        }
    }

    /// A session, opened if there was none yet. One that cannot be opened is tried again at the next turn.
    async fn open(&mut self) -> Result<(), Failure> {
        match &self.state {
            State::Open(_) => return Ok(()),
            State::Lost(why) => return Err(self.failure(&format!("the conversation is lost: {why}"))),
            State::Fresh => {}
        }
        let connecting = self.provider.connect(self.settings.model.as_deref());
        let socket = match timeout(self.patience.connect, connecting).await {
            Ok(socket) => socket.map_err(|why| self.failure(&why))?,
            Err(_) => return Err(self.failure("no connection in time")),
        };
        let mut link = Link::over(socket);
        match timeout(self.patience.connect, self.settle(&mut link)).await {
            Ok(settled) => settled.map_err(|why| self.failure(&why))?,
            Err(_) => return Err(self.failure("it did not confirm the session in time")),
        }
        self.state = State::Open(link);
        Ok(())
    }

    async fn settle(&mut self, link: &mut Link) -> Result<(), String> {
        let wanted = self.format;
        loop {
            match link.event().await? {
                Event::SessionCreated => break,
                Event::Error { error } => return Err(format!("it refused the session: {}", error.words())),
                _ => {}
            }
        }
        self.propose(link).await;
        loop {
            match link.event().await? {
                Event::SessionUpdated { session } => match session.pointer("/audio/output/format/type") {
                    // It says yes to everything and speaks as it likes.
                    Some(format) if format != self.format.name() => {
                        self.fall_back(link, wanted, &format.to_string()).await?
                    }
                    _ => return Ok(()),
                },
                Event::Error { error } if error.names_the_format() => {
                    self.fall_back(link, wanted, error.words()).await?
                }
                Event::Error { error } => return Err(format!("it refused the session: {}", error.words())),
                _ => {}
            }
        }
    }

    async fn propose(&self, link: &Link) {
        let session = protocol::session(&self.briefing, self.format);
        // If the link is gone, its last event says why.
        link.send(named("session", Ask::Settle { session })).await;
    }

    /// From the format that was wanted to the other; there is no third.
    async fn fall_back(&mut self, link: &Link, wanted: Format, why: &str) -> Result<(), String> {
        if self.format != wanted {
            return Err(format!("it refused the sound's format: {why}"));
        }
        self.format = wanted.other();
        tracing::debug!(
            refused = wanted.name(),
            asked = self.format.name(),
            "a provider's sound is of another format"
        );
        self.propose(link).await;
        Ok(())
    }

    /// Fails when the provider does not take it.
    async fn put(&mut self, name: &str, ask: Ask<'_>) -> Result<(), Failure> {
        let State::Open(link) = &self.state else {
            return Err(self.failure("the conversation is lost"));
        };
        match timeout(self.patience.first, link.send(named(name, ask))).await {
            Ok(true) => Ok(()),
            Ok(false) => loop {
                self.event(Instant::now() + self.patience.first, "the connection is gone")
                    .await?;
            },
            Err(_) => Err(self.failure("it takes nothing in")),
        }
    }

    /// The next event, or why there is none.
    async fn event(&mut self, until: Instant, late: &str) -> Result<Event, Failure> {
        let State::Open(link) = &mut self.state else {
            return Err(self.failure("the conversation is lost"));
        };
        match timeout_at(until, link.event()).await {
            Ok(Ok(event)) => Ok(event),
            Ok(Err(why)) => {
                let failure = self.failure(&why);
                self.state = State::Lost(self.provider.clean(&why));
                Err(failure)
            }
            Err(_) => Err(self.failure(late)),
        }
    }

    /// Calls the running answer off, if there is one: at once, for it may be called from a drop.
    fn call_off(&mut self) {
        let State::Open(link) = &self.state else { return };
        if let Some(running) = &mut self.running
            && !running.canceled
        {
            running.canceled = link.send_now(named(&format!("cancel-{}", self.turn), Ask::Stop));
        }
    }

    /// Cuts what was said to what was heard; what was not heard at all is removed.
    async fn cut(&mut self, said: &str, played_ms: u64) -> Result<(), Failure> {
        let aside = format!("aside-{}", self.turn);
        let heard = self.answer.settle();
        let silent = heard.iter().all(|spoken| spoken.sound_ms == 0);
        let (mut left, last) = (played_ms, heard.len().saturating_sub(1));
        for (n, spoken) in heard.iter().enumerate() {
            let (item_id, played) = (spoken.id.as_str(), left.min(spoken.sound_ms));
            left -= played;
            let ask = match played {
                0 if silent || spoken.sound_ms > 0 => Ask::Remove { item_id },
                0 => continue,
                // Longer than the sound would be an error.
                whole if whole == spoken.sound_ms && n < last => continue,
                audio_end_ms => Ask::Cut {
                    item_id,
                    content_index: 0,
                    audio_end_ms,
                },
            };
            self.put(&aside, ask).await?;
        }
        if silent && !heard.is_empty() && !said.is_empty() {
            let content = [Text::OutputText { text: said }];
            let item = NewItem::Message {
                role: "assistant",
                content,
            };
            self.put(&aside, Ask::Add { item }).await?;
        }
        Ok(())
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

    /// The answer is called off, and what was made of it removed. What was heard stays at the provider.
    fn retract(&mut self) -> BoxFuture<'_, ()> {
        self.interrupted("", 0)
    }
}

/// An ask as it is sent.
fn named(event_id: &str, ask: Ask<'_>) -> String {
    // Strings and numbers only: there is nothing in it that could fail.
    serde_json::to_string(&Named { event_id, ask }).unwrap_or_default()
}
