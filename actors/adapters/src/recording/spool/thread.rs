//! The one thread that writes spools. Whoever waits for a disk, it is not the media's threads.
use super::{file::Writer, line::Line, message::Message};
use crate::recording::vault::seal::{HEADER, Keys};
use std::{
    collections::{HashMap, hash_map::Entry},
    io::ErrorKind,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// What waits in memory is written after that.
const FLUSHED_AFTER: Duration = Duration::from_secs(1);

pub struct Thread {
    pub folder: PathBuf,
    pub keys: Arc<Keys>,
    /// Bytes of all spools, and how many they may be.
    pub used: Arc<AtomicU64>,
    pub most: u64,
    pub open: HashMap<String, (Arc<Line>, Writer)>,
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
                Ok(message) => self.take(message),
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
    fn work(&mut self, line: &Arc<Line>, work: impl FnOnce(&mut Writer) -> Result<(), String>) {
        let outcome = self.writer(line).and_then(work).and_then(|()| self.write(line, false));
        if let Err(why) = outcome {
            self.fail(line, why);
        }
    }

    fn writer(&mut self, line: &Arc<Line>) -> Result<&mut Writer, String> {
        match self.open.entry(line.name.clone()) {
            Entry::Occupied(open) => Ok(&mut open.into_mut().1),
            Entry::Vacant(place) => {
                let writer = Writer::create(&self.folder.join(&line.name), &self.keys, &line.name)?;
                self.used.fetch_add(HEADER as u64, Ordering::Relaxed);
                Ok(&mut place.insert((line.clone(), writer)).1)
            }
        }
    }

    fn write(&mut self, line: &Line, all: bool) -> Result<(), String> {
        let room = self.most.saturating_sub(self.used.load(Ordering::Relaxed));
        if let Some((_, writer)) = self.open.get_mut(&line.name)
            && (all || writer.is_full())
        {
            let took = writer.flush(room)?;
            self.used.fetch_add(took, Ordering::Relaxed);
        }
        Ok(())
    }

    fn flush(&mut self) {
        let lines: Vec<_> = self.open.values().map(|(line, _)| line.clone()).collect();
        for line in lines {
            if let Err(why) = self.write(&line, true) {
                self.fail(&line, why);
            }
        }
    }

    /// Costs the recording, and nothing else. What there is of it is removed: others may need the room.
    fn fail(&mut self, line: &Line, why: String) {
        tracing::warn!(
            spool = line.name,
            why,
            "the sound of a call could not be spooled: it is not recorded"
        );
        if let Err(why) = self.remove(&line.name) {
            tracing::warn!(spool = line.name, why, "what was spooled of it could not be removed");
        }
        line.fail(why);
    }

    fn close(&mut self, line: &Arc<Line>) -> Result<(), String> {
        if !line.is_over.load(Ordering::Relaxed) {
            let end = line.length();
            self.work(line, |writer| {
                writer.end(end);
                Ok(())
            });
            if let Err(why) = self.write(line, true) {
                self.fail(line, why);
            }
        }
        line.is_over.store(true, Ordering::Relaxed);
        self.open.remove(&line.name);
        line.failure().map_or(Ok(()), Err)
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        self.open.remove(name);
        let path = self.folder.join(name);
        let size = std::fs::metadata(&path).map_or(0, |known| known.len());
        match std::fs::remove_file(&path) {
            Ok(()) => {
                let used = self.used.load(Ordering::Relaxed).saturating_sub(size);
                self.used.store(used, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
