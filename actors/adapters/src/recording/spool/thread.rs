//! The one thread that writes spools. Whoever waits for a disk, it is not the media's threads.
use super::{
    failure::{Cause, Unrecorded},
    file::Writer,
    folder,
    line::Line,
    message::Message,
    space::Space,
};
use crate::recording::vault::seal::{HEADER, Keys};
use runtime::supervise::panic_text;
use std::{
    collections::{HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// What waits in memory is written after that.
const FLUSHED_AFTER: Duration = Duration::from_secs(1);

pub struct Thread {
    pub folder: PathBuf,
    pub keys: Arc<Keys>,
    pub space: Space,
    pub open: HashMap<String, (Arc<Line>, Writer)>,
}

/// True until this is dropped: with the thread, however that ends.
pub struct Alive(pub Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
        if std::thread::panicking() {
            tracing::error!(
                "the thread that spools sound has ended: no line is recorded until the service is restarted"
            );
        }
    }
}

impl Thread {
    /// Until nobody can send any more.
    pub fn run(mut self, inbox: &Receiver<Message>) {
        let mut flush_at = Instant::now();
        loop {
            // While nothing is recorded nothing wakes it.
            let next = match self.open.is_empty() {
                true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => inbox.recv_timeout(flush_at.saturating_duration_since(Instant::now())),
            };
            match next {
                Ok(message) => self.guarded(message.line(), |thread| thread.take(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            let now = Instant::now();
            if now >= flush_at {
                self.flush();
                flush_at = now + FLUSHED_AFTER;
            }
        }
    }

    /// A panic costs the line that it was about, and nobody else anything.
    fn guarded(&mut self, line: Option<Arc<Line>>, work: impl FnOnce(&mut Self)) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(self))) else {
            return;
        };
        let panic = panic_text(&*panic);
        tracing::error!(panic, "the thread that spools sound panicked and goes on");
        if let Some(line) = line {
            self.fail(&line, format!("a panic: {panic}").into());
        }
    }

    fn take(&mut self, message: Message) {
        // Whoever asked may be gone.
        match message {
            Message::Sound {
                line,
                side,
                at,
                rate,
                samples,
            } => {
                if !line.is_over.load(Ordering::Relaxed) {
                    self.work(&line, |writer| writer.add(side, at, rate, &samples));
                }
            }
            Message::Close(line, reply) => drop(reply.send(self.close(&line))),
            Message::Remove(name, reply) => drop(reply.send(self.remove(&name))),
            Message::Flush(reply) => {
                self.flush();
                let _ = reply.send(());
            }
        }
    }

    /// Does something to a line's spool, which is made if there is none, and writes what is enough for a chunk.
    fn work(&mut self, line: &Arc<Line>, work: impl FnOnce(&mut Writer) -> Result<(), Cause>) {
        let outcome = self.writer(line).and_then(work).and_then(|()| self.write(line, false));
        if let Err(cause) = outcome {
            self.fail(line, cause);
        }
    }

    fn writer(&mut self, line: &Arc<Line>) -> Result<&mut Writer, Cause> {
        match self.open.entry(line.name.clone()) {
            Entry::Occupied(open) => Ok(&mut open.into_mut().1),
            Entry::Vacant(place) => {
                let writer = Writer::create(&self.folder.join(&line.name), &self.keys, &line.name)?;
                self.space.take(&line.name, HEADER as u64);
                Ok(&mut place.insert((line.clone(), writer)).1)
            }
        }
    }

    fn write(&mut self, line: &Line, all: bool) -> Result<(), Cause> {
        if let Some((_, writer)) = self.open.get_mut(&line.name)
            && (all || writer.is_full())
        {
            let took = writer.flush(self.space.room(&line.name))?;
            self.space.take(&line.name, took);
        }
        Ok(())
    }

    fn flush(&mut self) {
        let lines: Vec<_> = self.open.values().map(|(line, _)| line.clone()).collect();
        for line in lines {
            self.guarded(Some(line.clone()), |thread| thread.write_all(&line));
        }
    }

    fn write_all(&mut self, line: &Line) {
        if let Err(cause) = self.write(line, true) {
            self.fail(line, cause);
        }
    }

    /// Costs the recording, and nothing else. What there is of it is removed: others may need the room.
    fn fail(&mut self, line: &Line, Cause { means, why }: Cause) {
        tracing::warn!(
            spool = line.name,
            why,
            "the sound of a call could not be spooled: it is not recorded"
        );
        if let Err(why) = self.remove(&line.name) {
            tracing::warn!(spool = line.name, why, "what was spooled of it could not be removed");
        }
        line.fail(means);
    }

    fn close(&mut self, line: &Arc<Line>) -> Result<(), Unrecorded> {
        if !line.is_over.load(Ordering::Relaxed) {
            let end = line.length();
            self.work(line, |writer| {
                writer.end(end);
                Ok(())
            });
            self.write_all(line);
        }
        line.is_over.store(true, Ordering::Relaxed);
        self.open.remove(&line.name);
        line.failure().map_or(Ok(()), Err)
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        self.open.remove(name);
        folder::remove(&self.folder.join(name)).map_err(|error| error.to_string())?;
        self.space.free(name);
        Ok(())
    }
}
