//! The threads of all sound, of rooms and of phones: nothing else may delay it.
//!
//! A room's connection is a task of its own, woken by what comes. Phones send fifty times a second whatever comes; so each thread
//! has one beat of 10 ms, at which it looks at all legs that were given to it: one timer instead of hundreds, and no waking for
//! every packet.
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::Notify,
};

/// Threads at most; one core carries dozens of rooms, and a thread more than needed is woken by every packet to find
/// that there is nothing to do.
const MOST_THREADS: usize = 4;
/// Between two beats.
const BEAT: Duration = Duration::from_millis(10);
/// Beats that are made up for when the machine was late; the legs themselves know the time.
const CATCH_UP: u32 = 2;
/// Bytes that a leg may use during its turn, shared by all legs of a beat.
const BUFFER: usize = 2_048;
/// Beats between two looks at how late they were (1 s), and those that one half of the numbers is made of (5 s).
const LOOK: u32 = 100;
const HALF: u32 = 500;
/// Lateness is counted by the millisecond, up to so many.
const MOST_MS: usize = 200;

/// What is looked at with every beat, in two turns: all speak before anybody is heard. Listening takes many times as long as sending, and
/// not always the same; what is sent behind it would be uneven by all that came for the others.
pub trait Ticked: Send {
    /// Sends what is due. `false`: it is over, and dropped. It must not wait. `beat`: when the beat was due, not when it came. Otherwise
    /// a packet that is due at the same moment would sometimes wait for the next beat.
    fn speak(&mut self, beat: Instant) -> bool;

    /// Takes what has come. It must not wait.
    fn take_in(&mut self, now: Instant, buffer: &mut [u8]);
}

/// All of the process.
pub struct MediaThreads {
    /// There until they are stopped.
    runtime: Mutex<Option<Runtime>>,
    beats: Vec<Arc<Beat>>,
}

impl MediaThreads {
    /// Fails with what to do about it.
    pub fn start() -> Result<Arc<Self>, String> {
        let count = available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, MOST_THREADS));
        let runtime = Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name("media")
            .enable_all()
            .build()
            .map_err(|error| format!("the threads for media cannot be started: {error}"))?;
        let beats: Vec<Arc<Beat>> = (0..count).map(|_| Arc::default()).collect();
        for beat in &beats {
            runtime.spawn(beat.clone().run());
        }
        Ok(Arc::new(MediaThreads {
            runtime: Mutex::new(Some(runtime)),
            beats,
        }))
    }

    fn runtime(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For tasks; `None`: they were stopped.
    pub fn handle(&self) -> Option<Handle> {
        self.runtime().as_ref().map(Runtime::handle).cloned()
    }

    /// On the beat that has the fewest. `false`: they were stopped.
    pub fn join(&self, leg: Box<dyn Ticked>) -> bool {
        let is_running = self.runtime().is_some();
        let beat = self.beats.iter().min_by_key(|beat| beat.legs.load(Ordering::Relaxed));
        let Some(beat) = beat.filter(|_| is_running) else {
            return false;
        };
        beat.legs.fetch_add(1, Ordering::Relaxed);
        beat.lock().push(leg);
        beat.joined.notify_one();
        true
    }

    /// On all beats.
    pub fn legs(&self) -> usize {
        self.beats.iter().map(|beat| beat.legs.load(Ordering::Relaxed)).sum()
    }

    /// Of the last five to ten seconds, on the worst thread: how late 99 of 100 beats were at most. Callers of a machine that is
    /// late by more than 40 ms hear it: no more calls should be taken then.
    pub fn late_p99(&self) -> Duration {
        let late = self.beats.iter().map(|beat| beat.late_ms.load(Ordering::Relaxed)).max();
        Duration::from_millis(u64::from(late.unwrap_or(0)))
    }

    /// Ends everything on them, without a word to anybody.
    pub fn stop(&self) {
        if let Some(runtime) = self.runtime().take() {
            // It may be called on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

impl Drop for MediaThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

#[derive(Default)]
struct Beat {
    new: Mutex<Vec<Box<dyn Ticked>>>,
    joined: Notify,
    /// New ones too.
    legs: AtomicUsize,
    late_ms: AtomicU32,
}

impl Beat {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<dyn Ticked>>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the runtime ends. Without a leg it sleeps.
    async fn run(self: Arc<Self>) {
        let (mut legs, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        loop {
            self.joined.notified().await;
            let (mut due, mut lateness) = (Instant::now(), Lateness::default());
            loop {
                legs.append(&mut self.lock());
                if legs.is_empty() {
                    break;
                }
                until(due).await;
                let now = Instant::now();
                let late = now.saturating_duration_since(due);
                metrics::histogram!("callboard_media_late_seconds", "kind" => "phone").record(late.as_secs_f64());
                if let Some(p99_ms) = lateness.add(late) {
                    self.late_ms.store(p99_ms, Ordering::Relaxed);
                }
                let before = legs.len();
                legs.retain_mut(|leg| survives(|| leg.speak(due)));
                legs.retain_mut(|leg| survives(|| took_in(leg, now, &mut buffer)));
                self.legs.fetch_sub(before - legs.len(), Ordering::Relaxed);
                due += BEAT;
                let skipped = now.saturating_duration_since(due).as_millis() / BEAT.as_millis();
                due += BEAT * u32::try_from(skipped).unwrap_or(u32::MAX).saturating_sub(CATCH_UP);
            }
            self.late_ms.store(0, Ordering::Relaxed);
        }
    }
}

fn took_in(leg: &mut Box<dyn Ticked>, now: Instant, buffer: &mut [u8]) -> bool {
    leg.take_in(now, buffer);
    true
}

/// One that panics is over; the others of its beat go on.
fn survives(turn: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| {
        tracing::error!("the media of a call panicked; the call loses its sound");
        false
    })
}

/// How late the last beats were: two halves, of which the older one is forgotten as a whole.
struct Lateness {
    counts: [[u32; MOST_MS + 1]; 2],
    beats: u32,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness {
            counts: [[0; MOST_MS + 1]; 2],
            beats: 0,
        }
    }
}

impl Lateness {
    /// Now and then, 99 of 100 were no later than so many milliseconds.
    fn add(&mut self, late: Duration) -> Option<u32> {
        if self.beats.is_multiple_of(HALF) {
            self.counts.swap(0, 1);
            self.counts[0] = [0; MOST_MS + 1];
        }
        self.beats = self.beats.wrapping_add(1);
        let ms = usize::try_from(late.as_millis()).unwrap_or(MOST_MS);
        self.counts[0][ms.min(MOST_MS)] += 1;
        self.beats.is_multiple_of(LOOK).then(|| self.p99())
    }

    fn p99(&self) -> u32 {
        let [new, old] = &self.counts;
        let all: u32 = new.iter().chain(old).sum();
        let mut later = all / 100;
        for ms in (0..=MOST_MS).rev() {
            match later.checked_sub(new[ms] + old[ms]) {
                Some(rest) => later = rest,
                None => return ms as u32,
            }
        }
        0
    }
}

/// The time of sound is the machine's, whatever the service's clock says.
#[expect(
    clippy::disallowed_methods,
    reason = "sound and the protocols that carry it run in real time"
)]
pub(crate) async fn until(due: Instant) {
    tokio::time::sleep_until(due.into()).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    struct Leg {
        left: u32,
        told: mpsc::UnboundedSender<Instant>,
    }

    impl Ticked for Leg {
        fn speak(&mut self, now: Instant) -> bool {
            let _ = self.told.send(now);
            self.left = self.left.saturating_sub(1);
            self.left > 0
        }

        fn take_in(&mut self, _: Instant, buffer: &mut [u8]) {
            assert!(buffer.len() >= 2_000);
            assert!(self.left != 6, "this one stumbles");
        }
    }

    /// A hundred beats take a second, whatever another leg does; and nothing beats when all are gone.
    #[tokio::test]
    async fn legs_are_looked_at_every_10_ms_until_they_are_over() {
        let threads = MediaThreads::start().unwrap();
        let (told, mut beats) = mpsc::unbounded_channel();
        let (other, mut stumbles) = mpsc::unbounded_channel();
        assert!(threads.join(Box::new(Leg { left: 100 + 107, told })));
        assert!(threads.join(Box::new(Leg { left: 10, told: other })));
        let mut moments = Vec::new();
        while moments.len() < 101 {
            moments.push(beats.recv().await.unwrap());
        }
        let mut seen = 0;
        while stumbles.recv().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, 4, "and its channel is closed");
        let took = moments[100] - moments[0];
        assert!(took >= Duration::from_millis(800), "{took:?}");
        let is_even = |pair: &[Instant]| (pair[1] - pair[0]).as_nanos().is_multiple_of(BEAT.as_nanos());
        assert!(moments.windows(2).all(is_even), "however late each was: {moments:?}");
        threads.stop();
        let (told, _beats) = mpsc::unbounded_channel();
        assert!(!threads.join(Box::new(Leg { left: 1, told })));
        assert!(threads.handle().is_none());
    }

    #[test]
    fn the_latest_of_a_hundred_are_told() {
        let mut lateness = Lateness::default();
        let told: Vec<u32> = (0..1_000_u64)
            .filter_map(|beat| lateness.add(Duration::from_millis(if beat % 50 == 0 { 45 } else { 1 })))
            .collect();
        assert_eq!(told, [45; 10]);
        // One of two hundred is none of the ninety-nine; and what was long ago is forgotten.
        let told: Vec<u32> = (0..1_000_u64)
            .filter_map(|beat| lateness.add(Duration::from_millis(if beat % 200 == 0 { 45 } else { 2 })))
            .collect();
        assert_eq!(told[9], 2);
        assert_eq!(Lateness::default().add(Duration::from_secs(9_000)), None);
    }
}
