//! Keys. They wait for their turn among what is said, up to a limit; the one by which somebody opts out does not wait, and no limit
//! leaves it out.
use super::SpeechInput;
use tokio::sync::mpsc;

/// The way of that key to the talk.
pub(super) struct OptOutWay {
    /// `None`: no key opts out.
    key: Option<String>,
    pressed: mpsc::Sender<String>,
}

impl OptOutWay {
    pub fn new() -> (Self, mpsc::Receiver<String>) {
        // Once is enough.
        let (pressed, receiver) = mpsc::channel(1);
        (OptOutWay { key: None, pressed }, receiver)
    }

    /// These keys are that one.
    pub fn is(&self, keys: &str) -> bool {
        self.key.as_deref() == Some(keys)
    }

    /// Gives it to the talk; `false`: these are other keys.
    pub fn take(&self, keys: &str) -> bool {
        let is_it = self.is(keys);
        if is_it {
            // One that waits already says the same.
            let _ = self.pressed.try_send(keys.to_owned());
        }
        is_it
    }
}

impl SpeechInput {
    /// By that key somebody opts out.
    pub fn opting_out_by(mut self, key: Option<&str>) -> Self {
        self.opt_out.key = key.map(str::to_owned);
        self
    }

    pub(super) fn press(&mut self, keys: String) {
        if !self.opt_out.take(&keys) {
            self.outbox.press(keys);
        }
    }
}
