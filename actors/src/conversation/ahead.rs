//! Sound that is asked for before it is needed: while one piece is heard, the next ones are made and wait.
use super::transport::{Due, Voice};
use adapters::{
    sound::{PcmStream, Sound},
    speech::Turn,
};
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, pending},
    stream::{self, FuturesUnordered},
};
use std::{collections::VecDeque, convert::Infallible, sync::Arc};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::Instant,
};

/// Pieces that are made at once: the one that is heard, and those after it.
const AT_ONCE: usize = 3;
/// What of one piece waits to be heard: ten seconds, in tenths. More of it is not taken from whoever makes it.
const WAITING: usize = 100;
const TENTHS: u32 = 10;

/// Asks for pieces in their order.
pub struct Ahead {
    voice: Arc<dyn Voice>,
    /// What the pieces belong to, until no other can follow.
    turn: Option<Turn>,
    is_finished: bool,
    /// As many as the texts of an answer that wait have.
    waiting: VecDeque<Asked>,
    permits: Arc<Semaphore>,
    running: FuturesUnordered<BoxFuture<'static, ()>>,
}

struct Asked {
    text: String,
    due: Due,
    tell: oneshot::Sender<Fetched>,
}

/// A sound that is there, or begins to be. It is one of so many as long as it is kept.
pub struct Fetched {
    pub sound: Sound,
    pub permit: Option<OwnedSemaphorePermit>,
}

/// One that was asked for. Dropping it calls it off.
pub struct Piece {
    due: Option<oneshot::Sender<Instant>>,
    sound: Awaited,
}

enum Awaited {
    Coming(oneshot::Receiver<Fetched>),
    There(Fetched),
    Gone,
}

impl Piece {
    /// From then on nothing else is heard.
    pub fn need(&mut self, from: Instant) {
        if let Some(due) = self.due.take() {
            // Nobody may make it any more.
            let _ = due.send(from);
        }
    }

    /// Waits until its sound begins to be made. May be dropped and called again.
    pub async fn arrive(&mut self) {
        if let Awaited::Coming(coming) = &mut self.sound {
            self.sound = match coming.await {
                Ok(fetched) => Awaited::There(fetched),
                Err(_) => Awaited::Gone,
            };
        }
    }

    /// Its sound, if it has arrived.
    pub fn take(self) -> Option<Fetched> {
        match self.sound {
            Awaited::There(fetched) => Some(fetched),
            Awaited::Coming(_) | Awaited::Gone => None,
        }
    }
}

impl Ahead {
    pub fn new(voice: Arc<dyn Voice>) -> Self {
        Ahead {
            voice,
            turn: None,
            is_finished: false,
            waiting: VecDeque::new(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            running: FuturesUnordered::new(),
        }
    }

    pub fn is_streamed(&self) -> bool {
        self.voice.is_streamed()
    }

    /// It is made as soon as there is room, while [`run`](Self::run) is polled.
    pub fn ask(&mut self, text: &str) -> Piece {
        let ((needed, due), (tell, coming)) = (oneshot::channel(), oneshot::channel());
        self.waiting.push_back(Asked {
            text: text.to_owned(),
            due,
            tell,
        });
        Piece {
            due: Some(needed),
            sound: Awaited::Coming(coming),
        }
    }

    /// Nothing more is asked for.
    pub fn finish(&mut self) {
        self.is_finished = true;
        if self.waiting.is_empty() {
            self.turn = None;
        }
    }

    /// Makes what was asked for. May be dropped and called again.
    pub async fn run(&mut self) -> Infallible {
        loop {
            tokio::select! {
                biased;
                Some(()) = self.running.next() => {}
                Ok(permit) = self.permits.clone().acquire_owned(), if !self.waiting.is_empty() => {
                    if let Some(asked) = self.waiting.pop_front() {
                        let turn = self.turn.take().unwrap_or_default();
                        if !(self.is_finished && self.waiting.is_empty()) {
                            self.turn = Some(turn.clone());
                        }
                        self.running.push(fetch(self.voice.clone(), turn, asked, permit).boxed());
                    }
                }
                else => pending().await,
            }
        }
    }
}

/// To its end, or until nobody wants it any more.
async fn fetch(voice: Arc<dyn Voice>, turn: Turn, asked: Asked, permit: OwnedSemaphorePermit) {
    let Asked { text, due, mut tell } = asked;
    let sound = tokio::select! {
        biased;
        () = tell.closed() => return,
        sound = voice.speak_in(&turn, text, due) => sound,
    };
    // It has its place in it: whether another piece follows is none of its business.
    drop(turn);
    let permit = Some(permit);
    let PcmStream {
        rate,
        mut chunks,
        lead,
        broke_off,
        timings,
    } = match sound {
        Sound::Stream(stream) => stream,
        whole => {
            // Whoever wanted it may be gone.
            let _ = tell.send(Fetched { sound: whole, permit });
            return;
        }
    };
    let (sender, waiting) = mpsc::channel(WAITING);
    let waiting = stream::unfold(waiting, |mut waiting: mpsc::Receiver<Vec<i16>>| async move {
        Some((waiting.recv().await?, waiting))
    });
    let sound = Sound::Stream(PcmStream {
        rate,
        chunks: waiting.boxed(),
        lead,
        broke_off,
        timings,
    });
    if tell.send(Fetched { sound, permit }).is_err() {
        return;
    }
    let tenth = usize::try_from(rate / TENTHS).unwrap_or(usize::MAX).max(1);
    loop {
        let next = tokio::select! {
            biased;
            () = sender.closed() => return,
            next = chunks.next() => next,
        };
        let Some(samples) = next else { return };
        for samples in samples.chunks(tenth) {
            if sender.send(samples.to_vec()).await.is_err() {
                return;
            }
        }
    }
}
