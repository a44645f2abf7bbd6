//! What is said before the talk begins, by whoever has picked up: it answers nothing, and only tells who that is. The key by which
//! somebody opts out counts then as it does later.
use super::SpeechInput;
use crate::voice::ears::Told;
use adapters::sound::Pcm;
use entities::boxed;
use futures_util::future::pending;
use media::mic::{MicEvent, Piece};

/// Sound of a greeting after which its words are asked for, and asked for again. A person has said hello by then, and costs no
/// question.
const ASKED_EVERY_MS: u64 = 1_500;

/// What is noticed of whoever has picked up.
#[derive(Debug, PartialEq, Eq)]
pub enum Early {
    /// More words of a greeting: all of one utterance so far.
    Words(String),
    /// By a key, which the talk finds when it begins.
    OptedOut,
}

impl SpeechInput {
    /// Somebody tells words.
    pub fn understands(&self) -> bool {
        self.ears.are_there()
    }

    /// What comes next. May be dropped and called again.
    #[boxed]
    pub async fn greeting(&mut self) -> Early {
        loop {
            tokio::select! {
                biased;
                told = self.ears.next() => match told {
                    Told::Partial(words)
                    | Told::EagerEnd(words)
                    | Told::TurnEnd(words)
                    | Told::Words { words: Ok(words), .. } => return Early::Words(words),
                    Told::Words { words: Err(_), .. } | Told::Resumed | Told::Gone(_) => {}
                },
                heard = self.heard.recv() => match heard {
                    Some(MicEvent::Dtmf(keys)) => if self.opt_out.take(&keys) {
                        return Early::OptedOut;
                    },
                    Some(heard) => self.greeted(heard),
                    None => return pending().await,
                },
            }
        }
    }

    /// The talk begins. What was said and pressed before there was somebody to hear it is not heard: it answers nothing.
    pub fn forget(&mut self) {
        while let Ok(heard) = self.heard.try_recv() {
            if let MicEvent::Dtmf(keys) = heard {
                self.opt_out.take(&keys);
            }
        }
        self.ears.discard();
    }

    fn greeted(&mut self, heard: MicEvent) {
        match heard {
            MicEvent::SpeechStarted { .. } => {
                // Its number is no later turn's: what is still told of it then is passed over.
                self.turns += 1;
                self.ears.begin(self.turns);
                self.unasked_ms = 0;
            }
            MicEvent::Sound(Piece { sound, .. }) => self.greeted_on(&sound),
            MicEvent::SpeechEnded(rest) if !rest.is_empty() => self.greeted_on(&rest),
            MicEvent::SpeechEnded(_) | MicEvent::Dtmf(_) => {}
        }
    }

    fn greeted_on(&mut self, sound: &Pcm) {
        self.ears.hear(sound);
        self.unasked_ms += sound.ms();
        if self.unasked_ms >= ASKED_EVERY_MS {
            self.unasked_ms = 0;
            // One that is too far behind is asked again.
            self.ears.ask(self.turns);
        }
    }
}
