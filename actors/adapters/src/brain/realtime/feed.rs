//! One thing that is said, on its way to whoever plays it: its sound piece by piece, and its words so far.
use crate::{brain::Act, sound::PcmStream, speech::watermark::put_into_sound};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Sound that waits to be played: providers speak three times as fast as people hear, and faster. At 24 kHz it is 1.4 MB.
pub const HELD_SECONDS: u32 = 30;

/// The end of whoever speaks. Dropping it is the end of the sound.
#[derive(Debug)]
pub struct Feed {
    rate: u32,
    /// A permit for each sample that may still wait.
    room: Arc<Semaphore>,
    /// Holds no more than there is room for.
    pieces: mpsc::UnboundedSender<Piece>,
    words: watch::Sender<String>,
}

#[derive(Debug)]
struct Piece {
    samples: Vec<i16>,
    /// Given back when it is taken.
    _room: OwnedSemaphorePermit,
}

/// The end of whoever hears it.
#[derive(Debug)]
pub struct Listener {
    rate: u32,
    pieces: mpsc::UnboundedReceiver<Piece>,
    words: watch::Receiver<String>,
}

impl Feed {
    /// `rate`: samples per second.
    pub fn new(rate: u32) -> (Self, Listener) {
        let (sender, pieces) = mpsc::unbounded_channel();
        let (told, words) = watch::channel(String::new());
        let feed = Feed {
            rate,
            room: Arc::new(Semaphore::new((rate * HELD_SECONDS) as usize)),
            pieces: sender,
            words: told,
        };
        (feed, Listener { rate, pieces, words })
    }

    /// Waits while its listener is far behind. `false`: there is none any more.
    pub async fn push(&self, samples: &[i16]) -> bool {
        // A second at a time: for more than there is room for, it would wait for ever.
        for samples in samples.chunks(self.rate.max(1) as usize) {
            let room = self.room.clone().acquire_many_owned(samples.len() as u32);
            let room = tokio::select! {
                room = room => room,
                () = self.pieces.closed() => return false,
            };
            // Nobody closes it.
            let Ok(room) = room else { return false };
            let piece = Piece {
                samples: samples.to_vec(),
                _room: room,
            };
            if self.pieces.send(piece).is_err() {
                return false;
            }
        }
        true
    }

    /// All its words so far.
    pub fn tell(&self, words: &str) {
        self.words.send_replace(words.to_owned());
    }
}

impl Listener {
    pub fn act(self) -> Act {
        Act::Speak {
            sound: PcmStream::new(self.rate, put_into_sound(self.rate, chunks(self.pieces))),
            words: self.words,
        }
    }
}

fn chunks(pieces: mpsc::UnboundedReceiver<Piece>) -> BoxStream<'static, Vec<i16>> {
    let next = |mut pieces: mpsc::UnboundedReceiver<Piece>| async move {
        let Piece { samples, .. } = pieces.recv().await?;
        Some((samples, pieces))
    };
    stream::unfold(pieces, next).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn sound(listener: Listener) -> BoxStream<'static, Vec<i16>> {
        chunks(listener.pieces)
    }

    #[tokio::test]
    async fn a_slow_listener_is_waited_for_and_misses_nothing() {
        let (feed, listener) = Feed::new(1_000);
        let all: Vec<i16> = (0..31_500).collect();
        let mut sound = sound(listener);
        let mut heard = Vec::new();
        {
            let mut pushing = std::pin::pin!(feed.push(&all));
            assert_eq!((&mut pushing).now_or_never(), None, "30 s wait already");
            heard.extend(sound.next().await.unwrap());
            assert_eq!(
                (&mut pushing).now_or_never(),
                None,
                "there is room for one second of one and a half"
            );
            heard.extend(sound.next().await.unwrap());
            assert_eq!((&mut pushing).now_or_never(), Some(true));
        }
        drop(feed);
        while let Some(piece) = sound.next().await {
            heard.extend(piece);
        }
        assert_eq!(heard, all);
    }

    #[tokio::test]
    async fn a_listener_that_goes_away_holds_nobody_up() {
        let (feed, listener) = Feed::new(1_000);
        assert!(feed.push(&[0; 30_000]).await);
        let pushing = feed.push(&[0; 1_000]);
        let going = async { drop(listener) };
        let (is_heard, ()) = tokio::join!(pushing, going);
        assert!(!is_heard);
    }

    #[tokio::test]
    async fn words_are_there_with_their_sound() {
        let (feed, listener) = Feed::new(1_000);
        let words = listener.words.clone();
        feed.tell("Good");
        assert_eq!(*words.borrow(), "Good");
        feed.tell("Good day.");
        drop(feed);
        assert_eq!(*words.borrow(), "Good day.", "also when its sound has ended");
        assert_eq!(sound(listener).next().await, None);
    }
}
