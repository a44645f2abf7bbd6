//! The talk's side of whoever understands it: what it gives, and what it is told when it has time for that.
use super::{Hear, Transcribed, outbox::Outbox};
use tokio::sync::mpsc;

pub struct Talk {
    input: mpsc::Receiver<Hear>,
    events: mpsc::Sender<Transcribed>,
}

impl Talk {
    pub fn new(input: mpsc::Receiver<Hear>, events: mpsc::Sender<Transcribed>) -> Self {
        Talk { input, events }
    }

    /// What it gives next, if there is room for it; meanwhile it is told what waits. None: one of its ends is dropped. May be dropped and
    /// called again.
    pub async fn next(&mut self, outbox: &mut Outbox, has_room: bool) -> Option<Hear> {
        loop {
            tokio::select! {
                hear = self.input.recv(), if has_room && outbox.has_room() => return hear,
                permit = self.events.reserve(), if !outbox.is_empty() => match (permit, outbox.pop()) {
                    (Ok(permit), Some(event)) => permit.send(event),
                    _ => return None,
                },
                () = self.events.closed() => return None,
            }
        }
    }
}
