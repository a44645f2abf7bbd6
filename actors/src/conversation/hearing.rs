//! How the talk listens: what the other side says and presses, and what the API wants meanwhile.
use super::{
    Conversation,
    judge::{Judge, No},
    late_words::LateWords,
    speech_out::{Over, SpeechOut},
    transport::{CallTransport, Event, Overheard, Settling, Words, pressed},
    wishes::{no_in, opts_out_by},
};
use crate::{call::leg::Control, voice::speech_input::UNKNOWN};
use adapters::brain::{Heard, Speech};
use entities::{Result, agent::Definition, session::EndedBy};
use rules::session::command::Command;

/// What there is to answer.
pub(super) enum Input {
    Heard(Heard),
    /// They may go on: until that is settled they are neither told nor screened.
    Open(Words, Settling),
}

/// Notes what was said, and listens for a wish in it; where its words follow, when they do.
pub(super) async fn take_in<L: CallTransport>(
    speech_out: &mut SpeechOut<L>,
    (late_words, judge): (&mut LateWords, &mut Judge),
    definition: &Definition,
    words: Words,
) -> Option<No> {
    judge.settled();
    let place = speech_out.hear(&words).await;
    if let Some(later) = words.later {
        late_words.follow(later, place, speech_out.last_said.clone());
        return None;
    }
    let has_sound = words.speech.audio.as_ref().is_some_and(|audio| !audio.is_empty());
    if has_sound && words.speech.text == UNKNOWN && late_words.follow_own(place, &speech_out.last_said) {
        return None;
    }
    // The wish to be left alone, and the wish not to be recorded, are nothing that a brain decides about. Where the phrases hear
    // neither, a model may.
    let no = no_in(&words.speech.text, definition);
    if no.is_none() {
        judge.hear(&speech_out.last_said, &words.speech.text);
    }
    no
}

pub(super) fn keys_pressed(digits: String) -> Command {
    Command::Note {
        kind: "keys_pressed",
        detail: digits,
    }
}

/// Notes what was said and was not listened to, and listens for a wish in it; see [`CallTransport::overheard`]. May be dropped.
pub(super) async fn overhear<L: CallTransport>(
    speech_out: &mut SpeechOut<L>,
    (late_words, judge): (&mut LateWords, &mut Judge),
    definition: &Definition,
    all: bool,
) -> Option<No> {
    let mut no = None;
    while let Some(overheard) = speech_out.transport.overheard(all) {
        let found = match overheard {
            Overheard::Words(words) => take_in(speech_out, (&mut *late_words, &mut *judge), definition, words).await,
            Overheard::Pressed(digits) => {
                let opts_out = opts_out_by(&digits, definition);
                speech_out.tell(keys_pressed(digits));
                opts_out.then_some(No::Calls)
            }
        };
        // Who is not to be called again is not recorded either.
        no = if no == Some(No::Calls) { no } else { found.or(no) };
    }
    no
}

impl<L: CallTransport> Conversation<L> {
    pub(super) async fn overhear(&mut self, all: bool) -> Option<No> {
        let screens = (&mut self.late_words, &mut self.judge);
        overhear(&mut self.speech_out, screens, &self.agent.definition, all).await
    }

    /// The wish in what was said and is not screened yet, for what must not be done before it is known. Seconds at most.
    pub(super) async fn last_wish(&mut self, all: bool) -> Option<No> {
        match self.overhear(all).await {
            Some(no) => Some(no),
            None => self.late_words.last(&self.agent.definition, &mut self.judge).await,
        }
    }

    async fn take_in(&mut self, words: Words) -> Result<Speech, Over> {
        let speech = words.speech.clone();
        let screens = (&mut self.late_words, &mut self.judge);
        match take_in(&mut self.speech_out, screens, &self.agent.definition, words).await {
            Some(no) => Err(self.heed(no).await),
            None => Ok(speech),
        }
    }

    /// Waits for the other side to have said something to its end.
    pub(super) async fn listen(&mut self) -> Result<Heard, Over> {
        loop {
            match self.next_input().await? {
                Input::Heard(heard) => return Ok(heard),
                Input::Open(words, settling) => {
                    self.leave_open(&words);
                    if self.is_over(settling).await? {
                        return Ok(Heard::Words(self.take_in(words).await?));
                    }
                }
            }
        }
    }

    fn leave_open(&mut self, words: &Words) {
        let text = words.speech.text.as_str();
        let no = no_in(text, &self.agent.definition);
        self.judge.leave_open(no, &self.speech_out.last_said, text);
    }

    async fn is_over(&mut self, settling: Settling) -> Result<bool, Over> {
        let no = tokio::select! {
            biased;
            no = self.judge.no() => no,
            is_over = settling.is_over() => return Ok(is_over),
        };
        Err(self.obey(no).await)
    }

    /// Waits for the other side's words, and does what the API wants meanwhile.
    pub(super) async fn next_input(&mut self) -> Result<Input, Over> {
        self.speech_out.transport.stopwatch().listening();
        loop {
            let event = tokio::select! {
                biased;
                no = self.judge.no() => return Err(self.obey(no).await),
                late = self.late_words.next() => {
                    if let Some(no) = self.late_words.take(&late, &self.agent.definition, &mut self.judge) {
                        return Err(self.heed(no).await);
                    }
                    continue;
                }
                event = self.speech_out.transport.listen() => event,
            };
            match event {
                Event::Words(mut words) => {
                    if let Some(settling) = words.settling.take() {
                        return Ok(Input::Open(words, settling));
                    }
                    let speech = self.take_in(words).await?;
                    if self.speech_out.transport.wants_slow_function() {
                        self.slow_function().await?;
                    }
                    return Ok(Input::Heard(Heard::Words(speech)));
                }
                Event::Aside(mut words) => {
                    // What goes on is told with the rest of it.
                    if let Some(settling) = words.settling.take()
                        && !self.is_over(settling).await?
                    {
                        continue;
                    }
                    self.take_in(words).await?;
                }
                Event::Pressed(digits) => {
                    let text = pressed(&digits);
                    let opts_out = opts_out_by(&digits, &self.agent.definition);
                    self.speech_out.tell(keys_pressed(digits));
                    if opts_out {
                        return Err(self.heed(No::Calls).await);
                    }
                    return Ok(Input::Heard(Heard::Words(Speech { text, audio: None })));
                }
                Event::HungUp => return Err(self.end_with(Command::HangUp(EndedBy::Caller)).await),
                Event::Control(control) => self.do_what_is_wanted(control).await?,
            }
        }
    }

    /// By the API.
    async fn do_what_is_wanted(&mut self, control: Control) -> Result<(), Over> {
        match control {
            Control::Say(words) => {
                let enough = self.late_words.no(&self.agent.definition, &mut self.judge);
                if let (_, Some(no)) = self.speech_out.say_until(&words, None, enough).await {
                    return Err(self.heed(no).await);
                }
            }
            Control::Press(digits) => {
                self.speech_out.transport.press(&digits);
                self.speech_out.tell(Command::Note {
                    kind: "keys_sent",
                    detail: digits,
                });
            }
            Control::Transfer(to) => self.hand_over(&to).await?,
            Control::TakeBack => {}
        }
        Ok(())
    }
}
