//! Somebody has answered, and the agent has nothing to say: what it thinks with has failed before its first word, or was too late. Where
//! the law asks for it, a message that stands ready is said then, and a wish not to be called again is listened to for a moment.
use super::{
    Caller, Conversation, Next, hearing,
    judge::No,
    speech_out::Over,
    transport::{CallTransport, Event, Words},
};
use adapters::{brain::Heard, sound::Pcm};
use entities::session::EndReason;
use futures_util::future::{BoxFuture, FutureExt, pending};
use rules::session::command::Command;
use std::{pin::pin, time::Duration};

/// A message that stands ready.
pub struct Standby {
    pub text: String,
    /// `None`: on a line that carries none, and where none could be made ahead.
    pub sound: Option<Pcm>,
}

/// So long the agent has for its own first words when the service has said what the law wants, where a message stands ready: the line hears
/// that, and does not tell that they are missing. Source: ours; twice what the law gives the first sound.
const FIRST_WORDS: Duration = Duration::from_secs(4);
/// Why an agent is given up.
pub(super) const TOO_LATE: &str = "the agent's first words were not there in time";
/// So long whoever has heard it is listened to. Source: ours; long enough for a key, or for a word.
const HEEDED: Duration = Duration::from_secs(5);

impl<L: CallTransport> Conversation<L> {
    /// When `too_late` resolves and nothing of ours has been heard, the agent is given up.
    pub fn give_up_when(&mut self, too_late: BoxFuture<'static, ()>) {
        self.too_late = Some(too_late);
    }

    /// The agent's first words, or what is said in their place.
    pub(super) async fn open(&mut self) -> Result<Next, Over> {
        let too_late = self.too_late.take().unwrap_or_else(|| pending().boxed());
        let opened = tokio::select! {
            biased;
            opened = self.begin() => Some(opened),
            () = too_late => None,
        };
        match opened {
            Some(opened) => opened,
            None => Err(self.give_up().await),
        }
    }

    async fn begin(&mut self) -> Result<Next, Over> {
        self.disclose().await?;
        self.ask_consent().await?;
        if self.brain.hears() {
            self.speech_out.transport.take_sound_first();
        }
        if let Some(listener) = self.brain.live_sound() {
            self.speech_out.transport.lead_sound_to(listener);
        }
        if let Some(words) = self.brain.own_words() {
            self.late_words.listen_to(words);
        }
        self.turn(Heard::Opening, None).await
    }

    async fn give_up(&mut self) -> Over {
        // Words that were to be said, and were not heard.
        if self.speech_out.turns > 0 {
            self.speech_out.tell(Command::Interrupt {
                said: String::new(),
                played_ms: 0,
            });
        }
        self.break_off(EndReason::ProviderError, TOO_LATE.to_owned()).await
    }

    /// Resolves when the agent's words have been thought about for too long: its first ones only.
    pub(super) fn overdue(&self, heard: &Heard) -> BoxFuture<'static, ()> {
        let Caller::Live(deps) = &self.caller else {
            return pending().boxed();
        };
        if self.standby.is_none() || *heard != Heard::Opening {
            return pending().boxed();
        }
        let clock = deps.clock.clone();
        let overdue = async move {
            let _busy = clock.sleep(FIRST_WORDS).await;
        };
        overdue.boxed()
    }

    /// Before the agent has said anything of its own: the message that stands ready, and nothing after it, as the law limits it to what it
    /// says; else an apology. Answers a wish that was heard then.
    pub(super) async fn say_last_words(&mut self) -> Option<No> {
        let standby = self.standby.take().filter(|_| !self.has_spoken);
        if !self.has_spoken {
            self.speech_out.tell(Command::LeftAlone {
                played: standby.is_some(),
            });
        }
        let Some(Standby { text, sound }) = standby else {
            let sorry = self.stock_phrases().sorry;
            self.speech_out.say_whole(sorry).await;
            self.close().await;
            return None;
        };
        self.speech_out.speak(&text, sound, true).await;
        self.heed_for_a_moment().await
    }

    async fn heed_for_a_moment(&mut self) -> Option<No> {
        let Caller::Live(deps) = &self.caller else { return None };
        let clock = deps.clock.clone();
        let mut is_over = pin!(clock.sleep(HEEDED));
        loop {
            let event = tokio::select! {
                biased;
                event = self.speech_out.transport.listen() => event,
                _busy = &mut is_over => return None,
            };
            match event {
                Event::Words(words) | Event::Aside(words) => {
                    let words = Words {
                        settling: None,
                        ..words
                    };
                    let screens = (&mut self.late_words, &mut self.judge);
                    let no = hearing::take_in(&mut self.speech_out, screens, &self.wishes, words).await;
                    if no.is_some() {
                        return no;
                    }
                }
                Event::Pressed(digits) => {
                    let opts_out = self.wishes.opts_out_by(&digits);
                    self.speech_out.tell(hearing::keys_pressed(digits));
                    if opts_out {
                        return Some(No::Calls);
                    }
                }
                Event::HungUp => return None,
                Event::Control(_) => {}
            }
        }
    }
}
