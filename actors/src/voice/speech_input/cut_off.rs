//! The talk is over, whatever has ended it: words and keys that are known here and nowhere else are not lost.
use super::{INPUTS, Screen, SpeechInput};
use crate::conversation::transport::pressed;
use futures_util::FutureExt;
use media::mic::MicEvent;

impl SpeechInput {
    /// What nobody has taken when the talk is cut off is screened by that.
    pub fn screened_by(&self, screen: Screen) {
        self.last_words.screened_by(screen);
    }
}

impl Drop for SpeechInput {
    fn drop(&mut self) {
        // What has come by now counts, and no more than could have waited.
        for _ in 0..INPUTS {
            let Some(told) = self.ears.next().now_or_never() else {
                break;
            };
            self.learn(told);
        }
        self.last_words.keep(self.outbox.words());
        // What seems to be over was given already.
        if self.current.as_ref().is_some_and(|turn| turn.settle.is_none()) {
            self.last_words.keep([self.machine.so_far()]);
        }
        // Who opts out by a key may ring off at once.
        self.heard.close();
        while let Ok(heard) = self.heard.try_recv() {
            match heard {
                // The talk may be gone, and nobody be there to take it.
                MicEvent::Dtmf(keys) if self.opt_out.is(&keys) => self.last_words.keep([pressed(&keys).as_str()]),
                MicEvent::Dtmf(keys) => self.outbox.press(keys),
                MicEvent::SpeechStarted { .. } | MicEvent::Sound(_) | MicEvent::SpeechEnded(_) => {}
            }
        }
        let keys: Vec<String> = self.outbox.keys().map(pressed).collect();
        self.last_words.keep(keys.iter().map(String::as_str));
    }
}
