//! How the agent speaks, and how the session learns what was said.
use super::{
    desk::Desk,
    line::{Line, Said, Saying, Words, spoken_ms},
};
use bytes::Bytes;
use entities::{Result, transcript::Speaker, values::E164};
use rules::{
    conversation::guard,
    session::{command::Command, log::Utterance},
};

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
pub struct Mouth<L> {
    pub desk: Desk,
    pub line: L,
    /// Turns told so far, and the last of the other side's.
    pub(super) turns: usize,
    pub(super) last_heard: Option<usize>,
    /// The agent's last words.
    pub(super) last_said: String,
}

impl<L: Line> Mouth<L> {
    pub fn new(desk: Desk, line: L) -> Self {
        Mouth {
            desk,
            line,
            turns: 0,
            last_heard: None,
            last_said: String::new(),
        }
    }

    pub fn tell(&mut self, command: Command) {
        self.desk.tell(command);
    }

    /// The other side may cut in.
    pub(super) async fn say(&mut self, text: &str, audio: Option<Bytes>) -> Spoken {
        self.speak(text, audio, false).await
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
            None => self.line.voice(&text).await,
        };
        if !whole && self.line.is_spoken_over() {
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
            ms: self.line.real_ms(ms),
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
        match self.line.say(saying).await {
            Said::Whole => {
                self.desk.pass(ms);
                Spoken {
                    said: text,
                    ms,
                    is_cut: false,
                }
            }
            Said::CutInAfter(played) => {
                self.desk.pass(played);
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

    pub(super) async fn hear(&mut self, words: &Words) {
        self.last_heard = Some(self.turns);
        self.utter(Utterance {
            role: Speaker::User,
            content: words.speech.text.clone(),
            ms: self.line.real_ms(words.ms),
            ago_ms: words.ago_ms,
            audio: words.speech.audio.clone(),
        });
        self.line.hear(words.ms).await;
        self.desk.pass(words.ms);
    }

    pub(super) fn utter(&mut self, utterance: Utterance) {
        self.turns += 1;
        self.tell(Command::Utter(utterance));
    }

    /// Somebody else takes over, or the agent says that nobody does and goes on.
    pub(super) async fn hand_over(&mut self, to: &E164, nobody: &str) -> Result<(), Over> {
        match self.line.hand_over(to).await {
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
