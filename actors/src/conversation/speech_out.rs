//! How the agent speaks, and how the session learns what was said.
use super::{
    known::{Known, Later},
    line::{Begun, Line},
    session_link::SessionLink,
    tally::Tally,
    transport::{CallTransport, Said, Saying, Words, spoken_ms},
};
use adapters::sound::{Pcm, PcmStream, Sound};
use bytes::Bytes;
use entities::{Result, transcript::Speaker, values::E164};
use futures_util::StreamExt;
use rules::{
    conversation::{claims, guard},
    session::{command::Command, log::Utterance},
};
use std::pin::pin;

/// The talk has ended, or the agent has left it.
#[derive(Debug)]
pub struct Over;

/// Whose words are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The service's own; `whole`: the other side cannot cut in.
    Service {
        whole: bool,
    },
    Brain,
}

/// How far some words came.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) said: String,
    pub(super) ms: u64,
    /// The other side cut in.
    pub(super) is_cut: bool,
    /// The voice said no more of it.
    pub(super) broke_off: bool,
    /// No voice has said any of it.
    pub(super) is_silent: bool,
    /// Whoever speaks by itself said, or was about to say, that it is human, in these words: it was stopped.
    pub(super) claim: Option<String>,
    /// All of it was heard, and more of its words may become known.
    pub(super) later: Option<Later>,
}

impl Spoken {
    /// If it says this, nobody has ended it but us.
    fn claiming(self, claim: Option<String>) -> Self {
        match claim {
            Some(_) => Spoken {
                claim,
                is_cut: false,
                broke_off: false,
                is_silent: false,
                ..self
            },
            None => self,
        }
    }
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
    /// The call may be recorded, and has no line that is: the session is told how what the agent says by itself sounds.
    pub keeps_sound: bool,
    /// Nobody has taken over, or the other side is back from holding us, since the last reminder of who speaks.
    pub(super) has_returned: bool,
    /// Whoever speaks by itself must not say that it is human; in which language the agent speaks.
    pub(super) watched: Option<String>,
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
            has_returned: false,
            watched: None,
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
        let sound = match (audio, self.transport.voice()) {
            (Some(own), _) => Some(Sound::Whole(own)),
            (None, Some(voice)) => Some(voice.speak(text.clone(), whole, None).await),
            (None, None) => None,
        };
        self.deliver(Line::of(&text, sound), Whose::Service { whole }).await
    }

    /// Words with their sound, which may still be being made: the first of it is heard before the last is there, and before all
    /// words are known.
    pub(super) async fn deliver(&mut self, line: Line, whose: Whose) -> Spoken {
        let whole = whose == Whose::Service { whole: true };
        if !whole && self.transport.is_spoken_over() {
            return Spoken {
                is_cut: true,
                ..Spoken::default()
            };
        }
        let Begun {
            parts,
            sound,
            words,
            is_live,
            // Given back when all of it was said.
            permit: _permit,
        } = line.begin();
        // Who only tells how long something takes must know it before.
        let sound = match self.transport.voice() {
            Some(_) => sound,
            None => gathered(sound).await,
        };
        let mut known = Known::of(&parts, words, is_live, self.turns);
        if is_live && self.claims(&known.text) {
            return Spoken {
                claim: Some(known.text),
                ..Spoken::default()
            };
        }
        let mut ms = match &sound {
            Some(Sound::Whole(sound)) => sound.ms(),
            Some(Sound::Stream(_)) | None => spoken_ms(&known.text),
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
        self.utter(Utterance {
            role: Speaker::Agent,
            is_own: whose == Whose::Brain,
            content: known.text.clone(),
            ms: self.transport.real_ms(ms),
            ago_ms: None,
            is_open,
            audio,
        });
        self.last_said.clone_from(&known.text);
        let said = self.play(sound, (ms, whole), (&mut known, is_live)).await;
        let content = known.news();
        self.last_said.clone_from(&known.text);
        if let Some(tally) = tally {
            ms = self.tell_spoken(known.place, (&tally, content), said);
        }
        let claim = (is_live && self.claims(&known.text)).then(|| known.text.clone());
        self.spoken(known, said, ms).claiming(claim)
    }

    /// Whoever speaks by itself says there what it must not.
    pub(super) fn claims(&self, text: &str) -> bool {
        claims_in(self.watched.is_some(), text)
    }

    /// Says it; words that become known meanwhile are told. `is_live`: they are looked at too, and end it if they must not be said.
    async fn play(
        &mut self,
        sound: Option<Sound>,
        (ms, whole): (u64, bool),
        (known, is_live): (&mut Known, bool),
    ) -> Said {
        let text = known.text.clone();
        let (stop, mut is_stopped) = (self.transport.stop(), false);
        let saying = Saying {
            text: &text,
            ms,
            sound,
            whole,
        };
        let mut saying = pin!(self.transport.say(saying));
        loop {
            tokio::select! {
                biased;
                said = &mut saying => return said,
                () = known.changed() => {
                    if is_live && !is_stopped && claims_in(self.watched.is_some(), &known.text) {
                        is_stopped = true;
                        stop();
                    }
                    if let Some(content) = known.enough_news() {
                        let place = known.place;
                        self.session_link.tell(Command::Saying { place, content });
                    }
                }
            }
        }
    }

    /// What was still being made is known now: the session is told. Answers how long it was, as far as it came.
    fn tell_spoken(&mut self, place: usize, (tally, content): (&Tally, Option<String>), said: Said) -> u64 {
        let counted = tally.take();
        let took_ms = match said {
            Said::Whole => counted.ms,
            Said::CutInAfter(played) => played,
        };
        self.tell(Command::Spoken {
            place,
            ms: self.transport.real_ms(took_ms),
            audio: counted.audio,
            content,
        });
        took_ms
    }

    /// How far words came that take so long.
    fn spoken(&mut self, known: Known, said: Said, ms: u64) -> Spoken {
        let (played, is_cut) = match said {
            Said::Whole => (ms, false),
            Said::CutInAfter(played) => (played, true),
        };
        self.session_link.pass(played);
        let broke_off = !is_cut && known.parts.broke_off();
        if !is_cut && !broke_off {
            return Spoken {
                said: known.text.clone(),
                ms,
                later: known.later(),
                ..Spoken::default()
            };
        }
        let said = known.parts.heard(if is_cut { played } else { u64::MAX });
        self.tell(Command::Interrupt {
            said: said.clone(),
            played_ms: played,
        });
        Spoken {
            said,
            ms: played,
            is_cut,
            broke_off,
            is_silent: broke_off && known.parts.is_silent(),
            claim: None,
            later: None,
        }
    }

    /// Words that were known only after they had been heard.
    pub(super) fn tell_later(&mut self, later: Later) {
        let place = later.place;
        if let Some(content) = later.news() {
            self.tell(Command::Saying { place, content });
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
            is_own: false,
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
                self.has_returned = true;
                self.say(nobody, None).await;
                Ok(())
            }
        }
    }
}

/// Nobody who is not watched claims anything.
fn claims_in(is_watched: bool, text: &str) -> bool {
    is_watched && claims::claims_to_be_human(text)
}

/// What of a sound is gathered for a transport that carries none: five minutes.
const LONGEST_SECONDS: usize = 300;

/// Waits for all of it.
async fn gathered(sound: Option<Sound>) -> Option<Sound> {
    let Some(Sound::Stream(PcmStream { rate, mut chunks, .. })) = sound else {
        return sound;
    };
    let mut samples = Vec::new();
    while let Some(piece) = chunks.next().await {
        if samples.len() < LONGEST_SECONDS * rate as usize {
            samples.extend(piece);
        }
    }
    Some(Sound::Whole(Pcm::new(rate, samples)))
}

#[cfg(test)]
#[path = "speech_out_tests.rs"]
mod tests;
