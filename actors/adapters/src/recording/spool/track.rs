//! A line's end of its spool.
use super::{line::Line, message::Message, piece::Side};
use std::{
    sync::{Arc, mpsc::SyncSender},
    time::Instant,
};

/// Where the sound of a line is written to. Dropping it ends the recording.
pub struct Track {
    pub(super) line: Arc<Line>,
    pub(super) to: SyncSender<Message>,
}

impl Track {
    /// The place of that moment: samples of 16 kHz since it began.
    pub fn place(&self, at: Instant) -> u64 {
        self.line.place(at)
    }

    /// A second of sound at most, of so many samples a second, at its place. Never waits. `false`: there was no room for it.
    pub fn write(&self, side: Side, at: u64, rate: u32, samples: &[i16]) -> bool {
        if at > self.line.most || !self.line.takes_sound() {
            return true;
        }
        let (line, samples) = (self.line.clone(), samples.into());
        let sound = Message::Sound {
            line,
            side,
            at,
            rate,
            samples,
        };
        self.to.try_send(sound).is_ok()
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        self.line.end(Instant::now());
    }
}
