//! How the agent speaks, and how the session learns what was said.
use super::{
    session_link::SessionLink,
    tally::Tally,
    transport::{CallTransport, Said, Saying, Words, spoken_ms},
};
use adapters::sound::{Pcm, Sound};
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
    /// The call may be recorded: the session is told how what was said sounded.
    pub keeps_sound: bool,
}

impl<L: CallTransport> SpeechOut<L> {
    pub fn new(session_link: SessionLink, transport: L) -> Self {
        SpeechOut {
            session_link,
            transport,
            turns: 0,
            last_heard: None,
            last_said: String::new(),
            keeps_sound: false,
        }
    }

    pub fn tell(&mut self, command: Command) {
        self.session_link.tell(command);
    }

    /// The other side may cut in.
    pub(super) async fn say(&mut self, text: &str, audio: Option<Pcm>) -> Spoken {
        self.speak(text, audio, false).await
    }

    /// The same, until `enough` comes: what that was.
    pub(super) async fn say_until<T>(
        &mut self,
        text: &str,
        audio: Option<Pcm>,
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

    pub(super) async fn speak(&mut self, text: &str, audio: Option<Pcm>, whole: bool) -> Spoken {
        let text = guard::clean(text.trim(), guard::MAX_WORDS);
        if text.is_empty() {
            return Spoken::default();
        }
        let sound = match audio {
            Some(own) => Some(Sound::Whole(own)),
            None => self.transport.voice(&text, whole).await,
        };
        self.speak_sound(text, sound, whole).await
    }

    /// Words with their sound, which may still be being made: the first of it is heard before the last is there.
    async fn speak_sound(&mut self, text: String, sound: Option<Sound>, whole: bool) -> Spoken {
        if !whole && self.transport.is_spoken_over() {
            return Spoken {
                is_cut: true,
                ..Spoken::default()
            };
        }
        let mut ms = match &sound {
            Some(Sound::Whole(sound)) => sound.ms(),
            Some(Sound::Stream(_)) | None => spoken_ms(&text),
        };
        let audio = match &sound {
            Some(Sound::Whole(sound)) => self.kept(sound),
            // What has come of it is told when it has been said.
            Some(Sound::Stream(_)) => self.keeps_sound.then(Bytes::new),
            None => None,
        };
        let is_open = matches!(sound, Some(Sound::Stream(_)));
        let (sound, tally) = match sound {
            Some(Sound::Stream(stream)) => {
                let (stream, tally) = Tally::of(stream, self.keeps_sound);
                (Some(Sound::Stream(stream)), Some(tally))
            }
            sound => (sound, None),
        };
        let place = self.turns;
        self.utter(Utterance {
            role: Speaker::Agent,
            content: text.clone(),
            ms: self.transport.real_ms(ms),
            ago_ms: None,
            is_open,
            audio,
        });
        self.last_said.clone_from(&text);
        let saying = Saying {
            text: &text,
            ms,
            sound,
            whole,
        };
        let mut lead_ms = 0;
        let said = self.transport.say(saying).await;
        if let Some(tally) = tally {
            ms = self.tell_spoken(place, &tally, said, ms);
            lead_ms = tally.lead_ms();
        }
        self.spoken(text, said, ms, lead_ms)
    }

    /// What was still being made is known now: the session is told. Answers how long all of it takes, as far as is known.
    fn tell_spoken(&mut self, place: usize, tally: &Tally, said: Said, guessed_ms: u64) -> u64 {
        let counted = tally.take();
        let (took_ms, ms) = match said {
            Said::Whole => (counted.ms, counted.ms),
            Said::CutInAfter(played) if counted.is_all => (played, counted.ms),
            // Nobody knows what else was to come: at least what has come, and usually as long as such words take.
            Said::CutInAfter(played) => (played, counted.ms.max(guessed_ms)),
        };
        self.tell(Command::Spoken {
            place,
            ms: self.transport.real_ms(took_ms),
            audio: counted.audio,
        });
        ms
    }

    /// How far words came that take so long, with what was heard before they began.
    fn spoken(&mut self, text: String, said: Said, ms: u64, lead_ms: u64) -> Spoken {
        match said {
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
                let letters =
                    text.chars().count() as u64 * played.saturating_sub(lead_ms) / ms.saturating_sub(lead_ms).max(1);
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

    /// As a session keeps it for a recording: an eighth of what it is in a room, and all that a recording has.
    fn kept(&self, sound: &Pcm) -> Option<Bytes> {
        self.keeps_sound.then(|| sound.to_mu_law())
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
            is_open: false,
            // Its sound begins before its voice, which is what is stamped.
            audio: words
                .speech
                .audio
                .as_ref()
                .and_then(|sound| self.kept(&sound.last_ms(words.ms))),
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

#[cfg(test)]
#[path = "speech_out_tests.rs"]
mod tests;
