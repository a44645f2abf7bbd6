//! What is taken back: an answer that is called off, words that nobody heard, and words that were not said to their end.
use super::{
    Realtime, State,
    items::ItemRef,
    protocol::{Ask, Event, NewItem, Text, named},
};
use crate::brain::Failure;
use tokio::time::Instant;

impl Realtime {
    /// Calls the running answer off, if there is one: at once, for it may be called from a drop.
    pub(super) fn call_off(&mut self) {
        let State::Open(link) = &self.state else { return };
        if let Some(running) = &mut self.running
            && !running.canceled
        {
            running.canceled = link.send_now(named(&format!("cancel-{}", self.turn), Ask::Stop));
        }
    }

    /// Cuts what was said to what was heard; what was not heard at all is removed.
    pub(super) async fn cut(&mut self, said: &str, played_ms: u64) -> Result<(), Failure> {
        let aside = format!("aside-{}", self.turn);
        let heard = self.answer.settle();
        let silent = heard.iter().all(|spoken| spoken.sound_ms() == 0);
        let (mut left, last) = (played_ms, heard.len().saturating_sub(1));
        for (n, spoken) in heard.iter().enumerate() {
            let (item_id, played) = (spoken.id.as_str(), left.min(spoken.sound_ms()));
            left -= played;
            let ask = match played {
                0 if silent || spoken.sound_ms() > 0 => Ask::Remove { item_id },
                0 => continue,
                // Longer than the sound would be an error.
                whole if whole == spoken.sound_ms() && n < last => continue,
                audio_end_ms => Ask::Cut {
                    item_id,
                    content_index: 0,
                    audio_end_ms,
                },
            };
            self.put(&aside, ask).await?;
        }
        if silent && !heard.is_empty() && !said.is_empty() {
            self.add_spoken(said).await?;
        }
        Ok(())
    }

    /// Adds words to what the model has said.
    pub(super) async fn add_spoken(&mut self, words: &str) -> Result<(), Failure> {
        let content = [Text::OutputText { text: words }];
        let item = NewItem::Message {
            id: None,
            role: "assistant",
            content,
        };
        self.put(&format!("aside-{}", self.turn), Ask::Add { item }).await
    }

    /// The provider works at one answer at a time: the last one is called off and waited for.
    pub(super) async fn end_last_answer(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + self.patience.first;
        while self.running.is_some() {
            self.call_off();
            let event = self
                .event(until, "it does not end an answer that was called off")
                .await?;
            self.overhear(event);
        }
        Ok(())
    }

    /// What the last turn left behind when it was dropped.
    pub(super) async fn clear_away(&mut self) -> Result<(), Failure> {
        let aside = format!("aside-{}", self.turn);
        if std::mem::take(&mut self.answer.is_retracted) {
            let items = self.answer.give_up();
            self.unwanted.extend(items.into_iter().map(ItemRef::Id));
        }
        // Nobody can have heard what was not passed on.
        while let Some(place) = self.answer.spoken.iter().position(|spoken| !spoken.passed_on) {
            let unheard = self.answer.spoken.remove(place);
            self.put(&aside, Ask::Remove { item_id: &unheard.id }).await?;
        }
        self.remove_unwanted().await
    }

    /// Removes what the other side is not taken to have said.
    pub(super) async fn remove_unwanted(&mut self) -> Result<(), Failure> {
        let aside = format!("aside-{}", self.turn);
        while let Some(unwanted) = self.unwanted.first().cloned() {
            let item = match unwanted {
                ItemRef::Id(id) => Some(id),
                ItemRef::Commit(number) => self.item_of(number).await?,
            };
            if let Some(item_id) = item {
                self.put(&aside, Ask::Remove { item_id: &item_id }).await?;
            }
            self.unwanted.remove(0);
        }
        Ok(())
    }

    /// The item that a commit became; `None`: it was refused, or the provider does not tell.
    async fn item_of(&mut self, commit: u64) -> Result<Option<String>, Failure> {
        let until = Instant::now() + self.patience.committed;
        while !self.commits.is_answered(commit) {
            match self.event(until, "it does not say what it has heard").await {
                Ok(event) => self.overhear(event),
                Err(failure) if matches!(self.state, State::Lost(_)) => return Err(failure),
                Err(failure) => {
                    tracing::debug!(%failure, "what was not said to its end stays in the conversation");
                    return Ok(None);
                }
            }
        }
        Ok(self.commits.id(commit).map(str::to_owned))
    }

    /// Nobody listens to the answer any more: what waits of it is only noted, so that what follows can be read.
    pub(super) fn fall_silent(&mut self) {
        self.call_off();
        self.answer.fall_silent();
        if let State::Open(link) = &self.state {
            link.set_listening(false);
        }
        while let State::Open(link) = &mut self.state
            && let Some(event) = link.event_now()
        {
            match event {
                Ok(event) => {
                    self.note(&event);
                    self.overhear(event);
                }
                Err(why) => self.state = State::Lost(self.provider.clean(&why)),
            }
        }
    }

    /// An event of an answer that nobody listens to. Only its calls matter, and its end; its faults do not.
    fn overhear(&mut self, event: Event) {
        match event {
            Event::Error { error } => {
                let (canceled, created) = (format!("cancel-{}", self.turn), format!("create-{}", self.turn));
                let own = |name: &str| name == canceled || name == created;
                let is_over = match error.event_id.as_deref() {
                    Some(name) => own(name),
                    None => error.is_not_running(),
                };
                if is_over {
                    self.running = None;
                }
            }
            event if self.is_stale(&event) => {}
            event => {
                if let Err(failure) = self.hear(event) {
                    tracing::debug!(%failure, "an answer that was called off is faulty");
                }
            }
        }
    }

    /// The last words were not said to their end.
    pub(super) fn take_back(&mut self) {
        if std::mem::take(&mut self.is_asked) {
            self.answer.is_retracted = true;
        }
        self.unwanted.append(&mut self.said);
        if std::mem::take(&mut self.has_heard)
            && let Some(ear) = &self.ear
        {
            ear.take_back();
        }
    }
}
