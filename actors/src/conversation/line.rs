//! An utterance that waits, and how it begins to be heard.
use super::{
    ahead::{Fetched, Piece},
    chain::chain,
    parts::Parts,
};
use adapters::sound::{PcmStream, Sound};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::Instant,
};

/// An utterance.
pub struct Line {
    parts: Parts,
    source: Source,
    /// All its words so far, if more of them may come.
    words: Option<watch::Receiver<String>>,
    is_live: bool,
}

enum Source {
    /// None on a transport that needs none.
    There(Option<Sound>),
    Coming {
        first: Piece,
        /// As many as a text has pieces, which has a limit.
        more: mpsc::UnboundedReceiver<Piece>,
    },
}

/// One that begins to be heard.
pub struct Begun {
    pub parts: Parts,
    pub sound: Option<Sound>,
    pub words: Option<watch::Receiver<String>>,
    /// Its words may come later than its sound.
    pub is_live: bool,
    /// Kept while it is heard.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Line {
    /// Words whose sound is there, or begins to be.
    pub fn of(text: &str, sound: Option<Sound>) -> Self {
        Line {
            parts: Parts::of(text),
            source: Source::There(sound),
            words: None,
            is_live: false,
        }
    }

    /// Words of a voice, in these pieces: the first, and those that follow. `words`: all of them so far, if more may come.
    pub fn coming(
        parts: Parts,
        (first, more): (Piece, mpsc::UnboundedReceiver<Piece>),
        words: Option<watch::Receiver<String>>,
    ) -> Self {
        Line {
            parts,
            source: Source::Coming { first, more },
            words,
            is_live: false,
        }
    }

    /// What a brain says by itself, as it comes.
    pub fn live(sound: PcmStream, words: watch::Receiver<String>) -> Self {
        Line {
            words: Some(words),
            is_live: true,
            ..Line::of("", Some(Sound::Stream(sound)))
        }
    }

    /// A brain that speaks by itself must be asked for more while this is heard.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Nothing else is heard before it.
    pub fn need(&mut self) {
        if let Source::Coming { first, .. } = &mut self.source {
            first.need(Instant::now());
        }
    }

    /// Waits until its sound begins to be made. May be dropped and called again.
    pub async fn arrive(&mut self) {
        if let Source::Coming { first, .. } = &mut self.source {
            first.arrive().await;
        }
    }

    pub fn begin(self) -> Begun {
        let Line {
            parts,
            source,
            words,
            is_live,
        } = self;
        let (sound, permit) = match source {
            Source::There(None) => (None, None),
            Source::There(Some(sound)) => begun(Fetched { sound, permit: None }, None, &parts),
            Source::Coming { first, more } => match first.take() {
                Some(first) => begun(first, Some(more), &parts),
                None => {
                    parts.ended(0, true);
                    (None, None)
                }
            },
        };
        Begun {
            parts,
            sound,
            words,
            is_live,
            permit,
        }
    }
}

type Sounding = (Option<Sound>, Option<OwnedSemaphorePermit>);

/// A sound that is there is played as it is, if nothing follows it.
fn begun(first: Fetched, more: Option<mpsc::UnboundedReceiver<Piece>>, parts: &Parts) -> Sounding {
    let more = more.filter(|more| !(more.is_closed() && more.is_empty()));
    match (first, more) {
        (
            Fetched {
                sound: Sound::Whole(sound),
                permit,
            },
            None,
        ) => {
            parts.set_sound(&sound);
            (Some(Sound::Whole(sound)), permit)
        }
        (first, more) => (Some(Sound::Stream(chain(first, more, parts.clone()))), None),
    }
}
