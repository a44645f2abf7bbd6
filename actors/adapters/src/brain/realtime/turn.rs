//! One turn: what was heard goes in, one answer comes out.
use super::{
    Realtime, Running, State,
    answer::Answer,
    items::ItemRef,
    protocol::{Ask, Event, NewItem, Problem, Text, Wish, commit_name, commit_number},
};
use crate::{
    brain::{Act, Failure, Heard, Speech, ToolResult, answered_note},
    sound::Pcm,
};
use entities::boxed;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The output of a call that nobody answered.
const CANCELED: &str = r#"{"error":"canceled"}"#;

/// Dropped early, it calls the answer off.
pub struct Turn<'a> {
    brain: &'a mut Realtime,
    heard: Option<Heard>,
    /// When the answer was asked for.
    asked_at: Instant,
    /// The next event is due by then.
    due_at: Instant,
    over: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.brain.fall_silent();
        if let Some(ear) = self.brain.ear.as_ref().filter(|_| self.brain.has_heard) {
            // What is not put in by now never is.
            ear.put_in(&[]);
        }
    }
}

impl<'a> Turn<'a> {
    pub fn new(brain: &'a mut Realtime, heard: Heard) -> Self {
        let now = Instant::now();
        brain.said.clear();
        brain.is_asked = false;
        brain.expect_words(&heard, now);
        Turn {
            brain,
            heard: Some(heard),
            asked_at: now,
            due_at: now,
            over: false,
        }
    }

    #[boxed]
    pub async fn next(&mut self) -> Option<Result<Act, Failure>> {
        if let Some(heard) = self.heard.take() {
            if let Err(failure) = self.brain.ask(heard).await {
                return self.fail(failure);
            }
            self.asked_at = Instant::now();
            self.due_at = self.asked_at + self.brain.patience.first;
        }
        while !self.over {
            if let Some(act) = self.brain.answer.next_act() {
                return Some(Ok(act));
            }
            self.play().await;
            if self.brain.answer.over {
                self.over = true;
            } else if let Err(failure) = self.listen().await {
                return self.fail(failure);
            }
        }
        None
    }

    /// While its listener is behind, the provider is not waited for.
    async fn play(&mut self) {
        let began = Instant::now();
        self.brain.answer.play().await;
        let waited = began.elapsed();
        self.asked_at += waited;
        self.due_at += waited;
    }

    /// What has come is heard to its end.
    fn fail(&mut self, failure: Failure) -> Option<Result<Act, Failure>> {
        self.over = true;
        self.brain.answer.fall_silent();
        Some(Err(failure))
    }

    async fn listen(&mut self) -> Result<(), Failure> {
        let brain = &mut *self.brain;
        let end = self.asked_at + brain.patience.answer;
        let late = if end < self.due_at {
            "its answer takes too long"
        } else {
            "it does not answer"
        };
        let event = brain.event(self.due_at.min(end), late).await?;
        if brain.is_stale(&event) {
            return Ok(());
        }
        if let Event::Error { error } = event {
            return brain.refused(&error);
        }
        brain.hear(event)?;
        self.due_at = Instant::now() + brain.patience.silence;
        Ok(())
    }
}

impl Realtime {
    /// Words of it will be known, if it has sound.
    fn expect_words(&mut self, heard: &Heard, now: Instant) {
        self.has_heard = match heard {
            Heard::Words(speech) | Heard::Answered { speech, .. } => {
                speech.audio.as_ref().is_some_and(|audio| !audio.is_empty())
            }
            Heard::Opening | Heard::Results(_) => false,
        };
        if let Some(ear) = self.ear.as_ref().filter(|_| self.has_heard) {
            ear.begin(now + self.patience.words);
        }
    }

    /// Puts in what was heard and asks for an answer.
    async fn ask(&mut self, heard: Heard) -> Result<(), Failure> {
        self.open().await?;
        self.pass_live_sound();
        self.end_last_answer().await?;
        self.turn += 1;
        self.clear_away().await?;
        let mut response = None;
        match heard {
            Heard::Opening => {
                response = self.briefing.first_message.as_deref().map(|message| Wish {
                    instructions: format!("Say exactly this, word for word, and nothing else:\n{message}"),
                });
                self.settle_calls(&[]).await?;
            }
            Heard::Words(speech) => {
                self.settle_calls(&[]).await?;
                self.put_in(speech).await?;
            }
            Heard::Answered { speech, answer } => {
                self.settle_calls(&[]).await?;
                self.put_in(speech).await?;
                let note = answered_note(&answer);
                let item = NewItem::Message {
                    id: None,
                    role: "user",
                    content: [Text::InputText { text: &note }],
                };
                self.put(&format!("aside-{}", self.turn), Ask::Add { item }).await?;
            }
            Heard::Results(results) => self.settle_calls(&results).await?,
        }
        if let State::Open(link) = &self.state {
            link.set_listening(true);
        }
        self.put(&format!("create-{}", self.turn), Ask::Answer { response })
            .await?;
        self.previous = self.answer.id.take().or(self.previous.take());
        self.answer = Answer::new(self.format);
        self.running = Some(Running { canceled: false });
        self.is_asked = true;
        Ok(())
    }

    /// Every call of the last answer gets an output.
    async fn settle_calls(&mut self, results: &[ToolResult]) -> Result<(), Failure> {
        let name = format!("turn-{}", self.turn);
        while let Some(call_id) = self.answer.calls.first().map(|call| call.id.clone()) {
            let result = results.iter().find(|result| result.call_id == call_id);
            let output = result.map_or(CANCELED, |result| &result.output);
            let item = NewItem::FunctionCallOutput {
                call_id: &call_id,
                output,
            };
            self.put(&name, Ask::Add { item }).await?;
            self.answer.calls.remove(0);
        }
        Ok(())
    }

    async fn put_in(&mut self, speech: Speech) -> Result<(), Failure> {
        if let Some(sound) = speech.audio.filter(|audio| !audio.is_empty()) {
            return self.put_in_sound(sound).await;
        }
        if speech.text.is_empty() {
            return Ok(()); // nothing was said: it is asked to go on
        }
        let id = format!("said_{}", self.turn);
        let item = NewItem::Message {
            id: Some(&id),
            role: "user",
            content: [Text::InputText { text: &speech.text }],
        };
        self.put(&format!("turn-{}", self.turn), Ask::Add { item }).await?;
        self.said.push(ItemRef::Id(id));
        Ok(())
    }

    /// What was sent while it was spoken is there already.
    async fn put_in_sound(&mut self, sound: Pcm) -> Result<(), Failure> {
        let State::Open(link) = &self.state else {
            return Err(self.failure("the conversation is lost"));
        };
        // Who takes it in more slowly than it was spoken is too slow.
        let patience = self.patience.first + Duration::from_millis(sound.ms());
        let speaking = link.speak(sound, self.format, format!("turn-{}", self.turn));
        let put_in = match timeout(patience, speaking).await {
            Ok(Some(put_in)) => put_in,
            Ok(None) => return Err(self.why_gone().await),
            Err(_) => return Err(self.failure("it takes nothing in")),
        };
        if let Some(ear) = &self.ear {
            ear.put_in(&put_in.commits);
        }
        self.said.extend(put_in.commits.into_iter().map(ItemRef::Commit));
        self.unwanted.extend(put_in.replaced.into_iter().map(ItemRef::Commit));
        self.remove_unwanted().await
    }

    /// Takes an event of the answer.
    pub(super) fn hear(&mut self, event: Event) -> Result<(), Failure> {
        let heard = self.answer.hear(event);
        if self.answer.over {
            self.running = None;
        }
        heard.map_err(|why| self.failure(&why))
    }

    /// Does it belong to an answer before this one?
    pub(super) fn is_stale(&self, event: &Event) -> bool {
        let previous = event.response().is_some() && event.response() == self.previous.as_deref();
        previous || self.answer.is_foreign(event)
    }

    /// An error: ours only if it is not about an earlier turn or something that may fail.
    fn refused(&mut self, error: &Problem) -> Result<(), Failure> {
        // It has been noted as the answer to that.
        let commit = self.commits.last().filter(|_| error.refuses_some_commit());
        let commit = commit.map(commit_name);
        let about = error.event_id.as_deref().or(commit.as_deref());
        let create = format!("create-{}", self.turn);
        let is_said = |about: &str| {
            let number = commit_number(about).map(ItemRef::Commit);
            number.is_some_and(|number| self.said.contains(&number))
        };
        let own = about.is_none_or(|about| about == create || about == format!("turn-{}", self.turn) || is_said(about));
        if !own || error.is_not_running() {
            tracing::debug!(
                problem = self.provider.clean(error.words()),
                "the provider refused an aside"
            );
            return Ok(());
        }
        if about == Some(create.as_str()) && error.code.as_deref() != Some("conversation_already_has_active_response") {
            self.running = None;
        }
        Err(self.failure(&format!("it refused: {}", error.words())))
    }
}
