//! A session, from the first connection to a format that both sides take, and without what the provider refuses.
use super::{
    Realtime, State,
    link::Link,
    protocol::{self, Ask, Event, named},
    sound::Format,
};
use crate::brain::Failure;
use tokio::time::timeout;

impl Realtime {
    /// A session, opened if there was none yet. One that cannot be opened is tried again at the next turn.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
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
        let mut link = Link::over(socket, self.ear.clone());
        match timeout(self.patience.connect, self.settle(&mut link)).await {
            Ok(settled) => settled.map_err(|why| self.failure(&why))?,
            Err(_) => return Err(self.failure("it did not confirm the session in time")),
        }
        self.state = State::Open(link);
        self.pass_live_sound();
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
                // Who refuses it does not always say that it is that.
                Event::Error { error }
                    if self.transcription.is_some()
                        && (error.names_the_transcription() || !error.names_the_format()) =>
                {
                    tracing::debug!(
                        problem = self.provider.clean(error.words()),
                        "a provider writes nothing down"
                    );
                    self.transcription = None;
                    if let Some(ear) = &self.ear {
                        ear.end();
                    }
                    self.propose(link).await;
                }
                Event::Error { error } if error.names_the_format() => {
                    self.fall_back(link, wanted, error.words()).await?
                }
                Event::Error { error } => return Err(format!("it refused the session: {}", error.words())),
                _ => {}
            }
        }
    }

    async fn propose(&self, link: &Link) {
        let session = protocol::session(&self.briefing, self.format, self.transcription.as_ref());
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
}
