//! The provider's buffer of sound: what is put into it while it is spoken, and what of it becomes an item.
//!
//! Exactly once: an utterance that came in whole, live, is committed when it is over, and its `Heard::Words` adds nothing. Of any
//! other nothing stays, neither in the buffer nor as an item, and what `Heard::Words` brings is put in as a whole.
use super::{
    protocol::{Ask, commit_name, named},
    sound::Format,
};
use crate::{
    brain::LiveSound,
    sound::{HEARING, Pcm, Resampler, ms_of},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

/// Of one message, where the whole sound is there.
const FRAME_MS: usize = 20;
/// The provider takes no less than 100 ms.
const FEWEST_FRAMES: usize = 5;
/// Five minutes; of a longer speech the end counts.
const SPEECH_MAX_MS: u64 = 5 * 60 * 1_000;
/// Utterances that are over, and whose words have not been heard.
const MOST_UNHEARD: usize = 16;
/// What came live may be shorter by this than what it is said to be: nobody hears one piece's edge.
const MAY_LACK_MS: u64 = 120;
/// And longer by this: the pause that ended it is not always part of what was said.
const MAY_EXCEED_MS: u64 = 3_500;
/// The name of what nobody waits for.
const LIVE: &str = "live";

/// An utterance that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The number of its commit; `None`: it did not come in whole, and is not in the conversation.
    pub commit: Option<u64>,
    pub ms: u64,
}

/// The utterance that is coming.
#[derive(Default)]
struct Coming {
    resampler: Option<Resampler>,
    /// Of 16 kHz, that it has.
    samples: u64,
    /// Bytes of it in the buffer.
    bytes: usize,
    /// Something of it is missing, so that nothing of it is used.
    is_spoilt: bool,
}

pub struct Input {
    format: Format,
    coming: Coming,
    unheard: Vec<Over>,
    commits: u64,
    /// So many of the next pieces stand near one that found no room.
    doubtful: usize,
}

impl Input {
    pub fn new(format: Format) -> Self {
        Input {
            format,
            coming: Coming::default(),
            unheard: Vec::new(),
            commits: 0,
            doubtful: 0,
        }
    }

    /// The way to here holds so many pieces and was full: one that came after them may be lost.
    pub fn was_full(&mut self, room: usize) {
        self.doubtful = room + 1;
    }

    /// What is asked of the provider when this comes.
    pub fn take(&mut self, sound: LiveSound) -> Vec<String> {
        self.coming.is_spoilt |= self.doubtful > 0;
        self.doubtful = self.doubtful.saturating_sub(1);
        match sound {
            LiveSound::Piece(piece) => self.append(&piece).into_iter().collect(),
            LiveSound::End => self.end(),
            LiveSound::Discard => {
                let discarded = std::mem::take(&mut self.coming);
                (discarded.bytes > 0).then(clear).into_iter().collect()
            }
        }
    }

    fn append(&mut self, piece: &Pcm) -> Option<String> {
        let piece = piece.at(HEARING);
        let (format, coming) = (self.format, &mut self.coming);
        coming.samples += piece.samples.len() as u64;
        coming.is_spoilt |= ms_of(coming.samples, HEARING) > SPEECH_MAX_MS;
        if coming.is_spoilt {
            return None;
        }
        if coming.resampler.is_none() {
            coming.resampler = Resampler::new(HEARING, format.rate()).ok();
        }
        let Some(resampler) = &mut coming.resampler else {
            coming.is_spoilt = true;
            return None;
        };
        let sound = format.bytes(&resampler.resample(&piece.samples));
        coming.bytes += sound.len();
        (!sound.is_empty()).then(|| append(LIVE, &sound))
    }

    fn end(&mut self) -> Vec<String> {
        let over = std::mem::take(&mut self.coming);
        if over.samples == 0 {
            return Vec::new();
        }
        let (mut asks, mut commit) = (Vec::new(), None);
        if over.is_spoilt {
            asks.extend((over.bytes > 0).then(clear));
        } else {
            let lacking = self.fewest().saturating_sub(over.bytes);
            if lacking > 0 {
                asks.push(append(LIVE, &vec![self.format.silence(); lacking]));
            }
            let (number, ask) = self.commit();
            asks.push(ask);
            commit = Some(number);
        }
        if self.unheard.len() == MOST_UNHEARD {
            self.unheard.remove(0);
        }
        let ms = ms_of(over.samples, HEARING);
        self.unheard.push(Over { commit, ms });
        asks
    }

    /// The utterances that are over since words were heard last.
    pub fn take_unheard(&mut self) -> Vec<Over> {
        std::mem::take(&mut self.unheard)
    }

    /// Nobody has heard of these.
    pub fn put_back(&mut self, unheard: Vec<Over>) {
        self.unheard = unheard;
    }

    /// Makes room for a whole sound. Of an utterance that is coming nothing is used then.
    pub fn make_room(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.coming.bytes);
        self.coming.is_spoilt |= self.coming.samples > 0;
        (bytes > 0).then(clear)
    }

    /// A whole sound as it is put in: so many bytes at a time.
    pub fn frames(&self, sound: &Pcm) -> (Vec<u8>, usize) {
        let mut sound = self.format.encode(&sound.last_ms(SPEECH_MAX_MS));
        let whole = sound.len().next_multiple_of(self.frame()).max(self.fewest());
        sound.resize(whole, self.format.silence());
        (sound, self.frame())
    }

    pub fn commit(&mut self) -> (u64, String) {
        let number = self.commits;
        self.commits += 1;
        (number, named(&commit_name(number), Ask::Commit))
    }

    fn frame(&self) -> usize {
        FRAME_MS * self.format.bytes_per_ms()
    }

    fn fewest(&self) -> usize {
        FEWEST_FRAMES * self.frame()
    }
}

/// Did all that was said come in live? Then the numbers of its commits.
pub fn is_all_there(unheard: &[Over], sound: &Pcm) -> Option<Vec<u64>> {
    let ms: u64 = unheard.iter().map(|over| over.ms).sum();
    let fits = ms + MAY_LACK_MS >= sound.ms() && ms <= sound.ms() + MAY_EXCEED_MS;
    let commits: Option<Vec<u64>> = unheard.iter().map(|over| over.commit).collect();
    commits.filter(|commits| fits && !commits.is_empty())
}

pub fn append(name: &str, sound: &[u8]) -> String {
    let audio = BASE64.encode(sound);
    named(name, Ask::Append { audio })
}

pub fn clear() -> String {
    named(LIVE, Ask::Clear)
}
