//! How the agent speaks, and how the session learns what was said.
use super::{
    session_link::SessionLink,
    transport::{CallTransport, Said, Saying, Words, spoken_ms},
};
use bytes::Bytes;
use entities::{Result, transcript::Speaker, values::E164};
use rules::{
    conversation::guard,
    session::{command::Command, log::Utterance},
};
use std::pin::pin;

/// The talk has ended, or the agent has left it.
#[derive(Debug)]
pub struct Over;

/// How far some words came.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) said: String,
    pub(super) ms: u64,
    /// The other side cut in.
    pub(super) is_cut: bool,
}

/// What the agent says goes out here, and every step is told.
pub struct SpeechOut<L> {
    pub session_link: SessionLink,
    pub transport: L,
    /// Turns told so far, and the last of the other side's.
    pub(super) turns: usize,
    pub(super) last_heard: Option<usize>,
    /// The agent's last words.
    pub(super) last_said: String,
}

impl<L: CallTransport> SpeechOut<L> {
    pub fn new(session_link: SessionLink, transport: L) -> Self {
        SpeechOut {
            session_link,
            transport,
            turns: 0,
            last_heard: None,
            last_said: String::new(),
        }
    }

    pub fn tell(&mut self, command: Command) {
        self.session_link.tell(command);
    }

    /// The other side may cut in.
    pub(super) async fn say(&mut self, text: &str, audio: Option<Bytes>) -> Spoken {
        self.speak(text, audio, false).await
    }

    /// The same, until `enough` comes: what that was.
    pub(super) async fn say_until<T>(
        &mut self,
        text: &str,
        audio: Option<Bytes>,
        enough: impl Future<Output = T>,
    ) -> (Spoken, Option<T>) {
        let hush = self.transport.hush();
        let mut enough = pin!(enough);
        let mut saying = pin!(self.say(text, audio));
        let came = tokio::select! {
            biased;
            spoken = &mut saying => return (spoken, None),
            came = &mut enough => came,
        };
        hush();
        (saying.await, Some(came))
    }

    /// What must be heard: about consent, and the last words.
    pub(super) async fn say_whole(&mut self, text: &str) {
        self.speak(text, None, true).await;
    }

    pub(super) async fn speak(&mut self, text: &str, audio: Option<Bytes>, whole: bool) -> Spoken {
        let text = guard::clean(text.trim(), guard::MAX_WORDS);
        if text.is_empty() {
            return Spoken::default();
        }
        let sound = match audio {
            Some(own) => Some(own),
            None => self.transport.voice(&text).await,
        };
        if !whole && self.transport.is_spoken_over() {
            return Spoken {
                is_cut: true,
                ..Spoken::default()
            };
        }
        // A byte of mu-law is an eighth of a millisecond.
        let ms = sound
            .as_ref()
            .map_or_else(|| spoken_ms(&text), |sound| sound.len() as u64 / 8);
        self.utter(Utterance {
            role: Speaker::Agent,
            content: text.clone(),
            ms: self.transport.real_ms(ms),
            ago_ms: None,
            audio: sound.clone(),
        });
        self.last_said.clone_from(&text);
        let saying = Saying {
            text: &text,
            ms,
            sound,
            whole,
        };
        match self.transport.say(saying).await {
            Said::Whole => {
                self.session_link.pass(ms);
                Spoken {
                    said: text,
                    ms,
                    is_cut: false,
                }
            }
            Said::CutInAfter(played) => {
                self.session_link.pass(played);
                let letters = text.chars().count() as u64 * played / ms.max(1);
                let said: String = text
                    .chars()
                    .take(usize::try_from(letters).unwrap_or(usize::MAX))
                    .collect();
                self.tell(Command::Interrupt {
                    said: said.clone(),
                    played_ms: played,
                });
                Spoken {
                    said,
                    ms: played,
                    is_cut: true,
                }
            }
        }
    }

    /// Answers the place of the turn.
    pub(super) async fn hear(&mut self, words: &Words) -> usize {
        let place = self.turns;
        self.last_heard = Some(place);
        self.utter(Utterance {
            role: Speaker::User,
            content: words.speech.text.clone(),
            ms: self.transport.real_ms(words.ms),
            ago_ms: words.ago_ms,
            audio: words.speech.audio.clone(),
        });
        self.transport.hear(words.ms).await;
        self.session_link.pass(words.ms);
        place
    }

    pub(super) fn utter(&mut self, utterance: Utterance) {
        self.turns += 1;
        self.tell(Command::Utter(utterance));
    }

    /// Somebody else takes over, or the agent says that nobody does and goes on.
    pub(super) async fn hand_over(&mut self, to: &E164, nobody: &str) -> Result<(), Over> {
        match self.transport.hand_over(to).await {
            Ok(()) => {
                self.tell(Command::Transferred);
                Err(Over)
            }
            Err(why) => {
                self.tell(Command::TransferFailed { why });
                self.say(nobody, None).await;
                Ok(())
            }
        }
    }
}
