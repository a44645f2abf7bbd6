//! One turn: what was heard goes in, one answer comes out.
use super::{Answer, Ask, Event, Instant, NewItem, Problem, Realtime, Running, State, Text, protocol::Wish};
use crate::brain::{Act, Failure, Heard, Speech, ToolResult};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use entities::boxed;

/// Of one message.
const FRAME_MS: usize = 20;
/// The provider takes no less than 100 ms.
const FEWEST_FRAMES: usize = 5;
/// Five minutes; of a longer speech the end counts.
const SPEECH_MAX_MS: u64 = 5 * 60 * 1_000;
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
        self.brain.call_off();
        if let State::Open(link) = &self.brain.state {
            link.set_listening(false);
        }
    }
}

impl<'a> Turn<'a> {
    pub fn new(brain: &'a mut Realtime, heard: Heard) -> Self {
        let now = Instant::now();
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
            if self.brain.answer.over {
                self.over = true;
            } else if let Err(failure) = self.listen().await {
                return self.fail(failure);
            }
        }
        None
    }

    fn fail(&mut self, failure: Failure) -> Option<Result<Act, Failure>> {
        self.over = true;
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
    /// Puts in what was heard and asks for an answer.
    async fn ask(&mut self, heard: Heard) -> Result<(), Failure> {
        self.open().await?;
        if let State::Open(link) = &self.state {
            link.set_listening(true);
        }
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
            Heard::Results(results) => self.settle_calls(&results).await?,
        }
        self.put(&format!("create-{}", self.turn), Ask::Answer { response })
            .await?;
        self.previous = self.answer.id.take().or(self.previous.take());
        self.answer = Answer::new(self.format);
        self.running = Some(Running { canceled: false });
        Ok(())
    }

    /// The provider works at one answer at a time: the last one is called off and waited for.
    async fn end_last_answer(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + self.patience.first;
        while self.running.is_some() {
            self.call_off();
            let event = self
                .event(until, "it does not end an answer that was called off")
                .await?;
            match event {
                Event::Error { error } => {
                    let (canceled, created) = (format!("cancel-{}", self.turn), format!("create-{}", self.turn));
                    let own = |name: &str| name == canceled || name == created;
                    if error.event_id.as_deref().map_or_else(|| is_not_running(&error), own) {
                        self.running = None;
                    }
                }
                event if self.is_stale(&event) => {}
                event => {
                    // Only its calls matter now; its faults do not.
                    if let Err(failure) = self.hear(event) {
                        tracing::debug!(%failure, "an answer that was called off is faulty");
                    }
                }
            }
        }
        Ok(())
    }

    /// What the last turn left behind when it was dropped.
    async fn clear_away(&mut self) -> Result<(), Failure> {
        let aside = format!("aside-{}", self.turn);
        // Nobody can have heard what was not passed on.
        while let Some(place) = self.answer.spoken.iter().position(|spoken| !spoken.passed_on) {
            let unheard = self.answer.spoken.remove(place);
            self.put(&aside, Ask::Remove { item_id: &unheard.id }).await?;
        }
        if self.uncommitted {
            self.put(&aside, Ask::Clear).await?;
            self.uncommitted = false;
        }
        Ok(())
    }

    /// Every call of the last answer gets an output.
    async fn settle_calls(&mut self, results: &[ToolResult]) -> Result<(), Failure> {
        let name = format!("turn-{}", self.turn);
        while let Some(call_id) = self.answer.calls.first().cloned() {
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
        let name = format!("turn-{}", self.turn);
        let Some(audio) = speech.audio.filter(|audio| !audio.is_empty()) else {
            if speech.text.is_empty() {
                return Ok(()); // nothing was said: it is asked to go on
            }
            let content = [Text::InputText { text: &speech.text }];
            let item = NewItem::Message { role: "user", content };
            return self.put(&name, Ask::Add { item }).await;
        };
        let mut sound = self.format.encode(&audio.last_ms(SPEECH_MAX_MS));
        let frame = FRAME_MS * self.format.bytes_per_ms();
        let whole = sound.len().next_multiple_of(frame).max(FEWEST_FRAMES * frame);
        sound.resize(whole, self.format.silence());
        self.uncommitted = true;
        for frame in sound.chunks(frame) {
            let audio = BASE64.encode(frame);
            self.put(&name, Ask::Append { audio }).await?;
        }
        self.put(&name, Ask::Commit).await?;
        self.uncommitted = false;
        Ok(())
    }

    /// Takes an event of the answer.
    fn hear(&mut self, event: Event) -> Result<(), Failure> {
        let heard = self.answer.hear(event);
        if self.answer.over {
            self.running = None;
        }
        heard.map_err(|why| self.failure(&why))
    }

    /// Does it belong to an answer before this one?
    fn is_stale(&self, event: &Event) -> bool {
        let previous = event.response().is_some() && event.response() == self.previous.as_deref();
        previous || self.answer.is_foreign(event)
    }

    /// An error: ours only if it is not about an earlier turn or something that may fail.
    fn refused(&mut self, error: &Problem) -> Result<(), Failure> {
        let about = error.event_id.as_deref();
        let create = format!("create-{}", self.turn);
        let own = about.is_none_or(|about| about == create || about == format!("turn-{}", self.turn));
        if !own || is_not_running(error) {
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

/// There was nothing to call off any more.
fn is_not_running(error: &Problem) -> bool {
    error.code.as_deref() == Some("response_cancel_not_active")
}
