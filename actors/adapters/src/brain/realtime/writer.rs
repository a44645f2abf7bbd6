//! What goes out: asks in their order, and between them the sound that is being spoken.
use super::{
    input::{self, Input, Over},
    provider::Socket,
    sound::Format,
};
use crate::{
    brain::{LIVE_KEPT_FREE, LiveSound},
    sound::Pcm,
};
use futures_util::{SinkExt, future::pending, stream::SplitSink};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Frames of a whole sound that are sent in one go: a second.
const AT_ONCE: usize = 50;

pub enum Job {
    Send(Message),
    /// From now on this is put in while it is spoken.
    Listen(Live),
    /// All of what was said.
    Speech(Speech),
}

pub struct Live {
    pub sounds: mpsc::Receiver<LiveSound>,
    pub format: Format,
}

pub struct Speech {
    pub sound: Pcm,
    pub format: Format,
    /// Of its asks.
    pub name: String,
    /// If nobody waits for it any more, nothing is put in.
    pub done: oneshot::Sender<PutIn>,
}

/// Where what was said is.
#[derive(Debug, PartialEq)]
pub struct PutIn {
    /// The numbers of the commits that it is.
    pub commits: Vec<u64>,
    /// Of commits that are parts of it, or of what nobody answers: they are to be removed.
    pub replaced: Vec<u64>,
}

pub struct Writer<'a> {
    sink: &'a mut SplitSink<Socket, Message>,
    jobs: mpsc::Receiver<Job>,
    live: Option<mpsc::Receiver<LiveSound>>,
    input: Option<Input>,
}

impl<'a> Writer<'a> {
    pub fn new(sink: &'a mut SplitSink<Socket, Message>, jobs: mpsc::Receiver<Job>) -> Self {
        Writer {
            sink,
            jobs,
            live: None,
            input: None,
        }
    }

    /// Until nobody asks any more, or the socket breaks.
    pub async fn run(&mut self) -> Result<(), Error> {
        loop {
            tokio::select! {
                job = self.jobs.recv() => match job {
                    Some(job) => self.take(job).await?,
                    None => return Ok(()),
                },
                Some(sound) = next(&mut self.live) => self.hear(sound).await?,
            }
            if self.jobs.is_empty() {
                self.sink.flush().await?;
            }
        }
    }

    async fn take(&mut self, job: Job) -> Result<(), Error> {
        match job {
            Job::Send(message) => self.sink.feed(message).await,
            Job::Listen(Live { sounds, format }) => {
                self.live = Some(sounds);
                self.input.get_or_insert_with(|| Input::new(format));
                Ok(())
            }
            Job::Speech(speech) => self.speak(speech).await,
        }
    }

    async fn hear(&mut self, sound: LiveSound) -> Result<(), Error> {
        let (Some(live), Some(input)) = (&self.live, &mut self.input) else {
            return Ok(());
        };
        // With the one that was just taken. What found no room found it so.
        if live.len() + 1 + LIVE_KEPT_FREE >= live.max_capacity() {
            input.was_full(live.max_capacity());
        }
        let asks = input.take(sound);
        self.feed(asks).await
    }

    async fn speak(&mut self, speech: Speech) -> Result<(), Error> {
        // What was said live stands before these words.
        for _ in 0..self.live.as_ref().map_or(0, mpsc::Receiver::len) {
            if let Some(Ok(sound)) = self.live.as_mut().map(mpsc::Receiver::try_recv) {
                self.hear(sound).await?;
            }
        }
        let Speech {
            sound,
            format,
            name,
            done,
        } = speech;
        let input = self.input.get_or_insert_with(|| Input::new(format));
        let mut unheard = input.take_unheard();
        if let Some(commits) = input::is_all_there(&unheard, &sound) {
            let replaced = Vec::new();
            if done.send(PutIn { commits, replaced }).is_err() {
                input.put_back(unheard);
            }
            return Ok(());
        }
        let Some(commit) = self.put_in(&sound, &name, &done).await? else {
            if let Some(input) = &mut self.input {
                input.put_back(unheard);
            }
            return Ok(());
        };
        let put_in = PutIn {
            commits: vec![commit],
            replaced: unheard.iter().filter_map(|over| over.commit).collect(),
        };
        if done.send(put_in).is_err()
            && let Some(input) = &mut self.input
        {
            // Too late to take it back: whoever speaks next replaces it.
            let (commit, ms) = (Some(commit), sound.ms());
            unheard.push(Over { commit, ms });
            input.put_back(unheard);
        }
        Ok(())
    }

    /// The number of its commit; `None`: nobody waited for it to its end.
    async fn put_in(&mut self, sound: &Pcm, name: &str, done: &oneshot::Sender<PutIn>) -> Result<Option<u64>, Error> {
        let Some(input) = &mut self.input else { return Ok(None) };
        if done.is_closed() {
            return Ok(None);
        }
        let room = input.make_room();
        let (sound, frame) = input.frames(sound);
        self.feed(room.into_iter().collect()).await?;
        for frames in sound.chunks(frame * AT_ONCE) {
            let asks = frames.chunks(frame).map(|frame| input::append(name, frame));
            self.feed(asks.collect()).await?;
            self.sink.flush().await?;
            // Whoever waits may go while it is under way.
            tokio::task::yield_now().await;
            if done.is_closed() {
                self.feed(vec![input::clear()]).await?;
                return Ok(None);
            }
        }
        let Some(input) = &mut self.input else { return Ok(None) };
        let (number, ask) = input.commit();
        self.feed(vec![ask]).await?;
        Ok(Some(number))
    }

    async fn feed(&mut self, asks: Vec<String>) -> Result<(), Error> {
        for ask in asks {
            self.sink.feed(Message::text(ask)).await?;
        }
        Ok(())
    }
}

/// The next that is said; never if nobody says anything.
async fn next(live: &mut Option<mpsc::Receiver<LiveSound>>) -> Option<LiveSound> {
    match live {
        Some(live) => live.recv().await,
        None => pending().await,
    }
}
