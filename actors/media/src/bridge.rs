//! What goes between a room's talk and the page's connection: sound both ways, words and keys.
//!
//! A bridge outlives a connection: a page that is reloaded finds the same talk, the captions so far, and the agent's words from
//! where they stopped. Sound on it is PCM of 16 bits, mono: 16 kHz of the microphone, and the agent's at its voice's own rate.
use super::vad::SpeechDetector;
use crate::{
    feed::{Feed, Playing},
    mic::MicEvent,
    playout::{Played, SoundFrame},
    tap::Tap,
};
use adapters::recording::spool::Track;
use entities::transcript::Speaker;
use serde::Serialize;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// What is heard and not yet listened to, 8 s of sound; what comes beyond is not heard.
const HEARD: usize = 512;
/// Captions that a page that was reloaded is shown again; older ones are gone.
const CAPTIONS: usize = 200;

/// What the page is told, as JSON in its data channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Note {
    /// The agent is there.
    Joined,
    /// A turn of the transcript begins.
    Caption { place: usize, role: Speaker, text: String },
    /// The talk is over.
    Ended { reason: &'static str },
}

/// Shared by the talk and the connection of the moment.
pub struct MediaBridge {
    playing: Mutex<Option<Playing>>,
    /// Whom it concerns that the first of some words went out.
    first_frame: OnceLock<Box<dyn Fn() + Send + Sync>>,
    detector: Mutex<SpeechDetector>,
    /// While the line is recorded.
    tap: Mutex<Option<Tap>>,
    heard: mpsc::Sender<MicEvent>,
    notes: Mutex<Notes>,
    /// Wakes a connection that sleeps while the agent is silent.
    begun: Notify,
    /// Counts the notes: wakes a connection that has told all of them.
    told: watch::Sender<usize>,
}

#[derive(Default)]
struct Notes {
    /// All of them, also those that are not kept any more.
    count: usize,
    /// Each with its place.
    kept: VecDeque<(usize, Note)>,
    over: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MediaBridge {
    /// And what the talk listens to.
    pub fn new() -> (Arc<Self>, mpsc::Receiver<MicEvent>) {
        let (heard, listen) = mpsc::channel(HEARD);
        let bridge = MediaBridge {
            playing: Mutex::default(),
            first_frame: OnceLock::new(),
            detector: Mutex::default(),
            tap: Mutex::default(),
            heard,
            begun: Notify::new(),
            notes: Mutex::default(),
            told: watch::Sender::new(0),
        };
        (Arc::new(bridge), listen)
    }

    // The talk's end.

    /// Calls it whenever the first of some words has been taken to be sent, on the connection's thread: it must not wait. What
    /// [leads](Feed::lead) is none of them. Once for a bridge; a second one is not called.
    pub fn on_first_frame(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = self.first_frame.set(Box::new(tell));
    }

    /// Says next what will come by the feed, at that many samples a second; what was being said is stopped.
    pub fn play(&self, rate: u32) -> (Feed, oneshot::Receiver<Played>) {
        let (playing, feed, played) = Playing::fed(rate);
        self.replace(Some(playing));
        (feed, played)
    }

    /// Says this next; what was being said is stopped.
    pub fn play_whole(&self, rate: u32, samples: impl Into<Arc<[i16]>>) -> oneshot::Receiver<Played> {
        let (playing, played) = Playing::whole(rate, samples.into());
        self.replace(Some(playing));
        played
    }

    /// Says no more of what is being said.
    pub fn stop(&self) {
        self.replace(None);
    }

    /// Falls silent in the middle of what is being said, until [`resume`](Self::resume): nothing of it is lost.
    pub fn pause(&self) {
        if let Some(playing) = &*lock(&self.playing) {
            playing.pause();
        }
    }

    /// Goes on where it fell silent.
    pub fn resume(&self) {
        if let Some(playing) = &*lock(&self.playing) {
            playing.resume();
        }
    }

    fn replace(&self, next: Option<Playing>) {
        let begins = next.is_some();
        let before = std::mem::replace(&mut *lock(&self.playing), next);
        if let Some(before) = before {
            before.stop();
        }
        if begins {
            self.begun.notify_one();
        }
    }

    /// What is said is over after so much silence, unless it is [ended](Self::end_turn) before.
    pub fn wait(&self, ms: u32) {
        lock(&self.detector).wait(ms);
    }

    /// The utterance of that number is over: what is heard from now on begins anew. Whoever says so may lag behind; if another one
    /// has begun meanwhile, that goes on.
    pub fn end_turn(&self, number: u64) {
        let ended = lock(&self.detector).end_turn(number);
        ended.into_iter().for_each(|ended| self.tell(ended));
    }

    /// The talk begins. What was begun to be said before is not heard.
    pub fn join(&self) {
        let _ = lock(&self.detector).end();
        self.note(Note::Joined);
    }

    pub fn caption(&self, place: usize, role: Speaker, text: String) {
        self.note(Note::Caption { place, role, text });
    }

    /// What goes over the line is recorded from now on.
    pub fn record(&self, track: Track) {
        *lock(&self.tap) = Some(Tap::new(track));
    }

    /// The talk is over: the page is told why, and its connection ends.
    pub fn close(&self, reason: &'static str) {
        self.stop();
        // Dropping it ends the recording.
        *lock(&self.tap) = None;
        self.note(Note::Ended { reason });
    }

    fn note(&self, note: Note) {
        let mut notes = lock(&self.notes);
        if notes.over {
            return;
        }
        notes.over = matches!(note, Note::Ended { .. });
        // Words that come piece by piece would leave no room for those before them.
        if let (Some((_, Note::Caption { place: last, .. })), Note::Caption { place, .. }) = (notes.kept.back(), &note)
            && last == place
        {
            notes.kept.pop_back();
        }
        let place = notes.count;
        notes.kept.push_back((place, note));
        notes.count += 1;
        if notes.kept.len() > CAPTIONS {
            notes.kept.pop_front();
        }
        self.told.send_replace(notes.count);
    }

    // The connection's end.

    /// The next 20 ms of the agent's words, padded with silence at their end; `None`: it is silent.
    pub fn next_frame(&self) -> Option<SoundFrame> {
        self.next_frame_at(Instant::now())
    }

    /// The same, for one that is sent by a clock of its own: it goes out from that moment on.
    pub fn next_frame_at(&self, due: Instant) -> Option<SoundFrame> {
        let frame = self.frame()?;
        self.record_said(&frame, due);
        Some(frame)
    }

    /// Whoever says it: the other side hears it from that moment on. Nothing, unless the line is recorded.
    pub fn record_said(&self, frame: &SoundFrame, due: Instant) {
        if let Some(tap) = lock(&self.tap).as_mut() {
            tap.said(frame, due);
        }
    }

    /// Whoever hears it: the other side has said it, until that moment; 16 kHz.
    pub fn record_heard(&self, samples: &[i16], came_at: Instant) {
        if let Some(tap) = lock(&self.tap).as_mut() {
            tap.heard(samples, came_at);
        }
    }

    fn frame(&self) -> Option<SoundFrame> {
        let (frame, begins) = {
            let mut playing = lock(&self.playing);
            let current = playing.as_ref()?;
            let (frame, begins) = (current.next_frame(), current.begins());
            if current.is_over() {
                *playing = None;
            }
            (frame, begins)
        };
        if let Some(tell) = self.first_frame.get().filter(|_| begins) {
            tell();
        }
        frame
    }

    /// Something is being said, or will be as soon as it comes.
    pub fn is_playing(&self) -> bool {
        lock(&self.playing).is_some()
    }

    /// Something begins to be said. Of one connection.
    pub async fn begun(&self) {
        self.begun.notified().await;
    }

    /// Sound of the microphone: 16 bits, 16 kHz, mono.
    pub fn hear(&self, samples: &[i16]) {
        self.hear_at(samples, Instant::now());
    }

    /// The same, of sound that came at that moment.
    pub fn hear_at(&self, samples: &[i16], came_at: Instant) {
        self.record_heard(samples, came_at);
        let heard = lock(&self.detector).hear(samples);
        heard.into_iter().for_each(|heard| self.tell(heard));
    }

    /// The microphone is gone: what was being said ends here.
    pub fn hear_no_more(&self) {
        let heard = lock(&self.detector).end();
        heard.into_iter().for_each(|heard| self.tell(heard));
    }

    pub fn press(&self, keys: String) {
        self.tell(MicEvent::Dtmf(keys));
    }

    fn tell(&self, heard: MicEvent) {
        if self.heard.try_send(heard).is_err() {
            metrics::counter!("callboard_media_unheard_total").increment(1);
        }
    }

    /// Wakes whenever there are new notes.
    pub fn notes(&self) -> watch::Receiver<usize> {
        self.told.subscribe()
    }

    /// No more notes come.
    pub fn is_over(&self) -> bool {
        lock(&self.notes).over
    }

    /// The notes from that place on, and the place after them.
    pub fn notes_from(&self, place: usize) -> (Vec<Note>, usize) {
        let notes = lock(&self.notes);
        let first = notes.kept.partition_point(|(at, _)| *at < place);
        let news = notes.kept.iter().skip(first).map(|(_, note)| note.clone());
        (news.collect(), notes.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn says_one_thing_at_a_time_and_tells_how_far_it_came() {
        let (bridge, _heard) = MediaBridge::new();
        assert_eq!(bridge.next_frame(), None);
        let frame = |sample| SoundFrame {
            rate: 8_000,
            samples: vec![sample; 160],
        };
        let first = bridge.play_whole(8_000, vec![1; 400]);
        assert_eq!(bridge.next_frame(), Some(frame(1)));
        let second = bridge.play_whole(8_000, vec![2; 170]);
        assert_eq!(first.await, Ok(Played::StoppedAfter(20)));
        assert_eq!(bridge.next_frame(), Some(frame(2)));
        let rest = bridge.next_frame().unwrap().samples;
        assert_eq!((&rest[..10], &rest[10..]), (&[2; 10][..], &[0; 150][..]));
        assert_eq!(second.await, Ok(Played::Whole));
        assert_eq!(bridge.next_frame(), None);
        let third = bridge.play_whole(8_000, vec![3; 400]);
        bridge.stop();
        assert_eq!(third.await, Ok(Played::StoppedAfter(0)));
    }

    /// By the frame, not by what is put in: of words that are stopped before, and of nothing, nothing went out.
    #[test]
    fn it_is_told_once_when_the_first_of_some_words_goes_out() {
        let (bridge, _heard) = MediaBridge::new();
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        bridge.on_first_frame(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let (mut feed, _played) = bridge.play(8_000);
        assert_eq!(bridge.next_frame(), None);
        feed.push(&[1; 480]);
        let frames = |count: usize| {
            (0..count).for_each(|_| drop(bridge.next_frame()));
            told.load(Ordering::Relaxed)
        };
        assert_eq!([frames(0), frames(1), frames(5)], [0, 1, 1]);
        drop(bridge.play_whole(8_000, vec![2; 160]));
        assert_eq!([frames(0), frames(1), frames(1)], [1, 2, 2]);
        drop(bridge.play_whole(8_000, vec![3; 160]));
        bridge.stop();
        drop(bridge.play_whole(8_000, Vec::new()));
        assert_eq!(frames(3), 2);
        // Whoever is asked to wait has not heard the words yet.
        let (mut feed, _played) = bridge.play(8_000);
        feed.lead(400);
        feed.push(&[1; 400]);
        assert_eq!([frames(1), frames(2), frames(2)], [2; 3]);
        feed.push(&[2; 160]);
        assert_eq!([frames(1), frames(1)], [3; 2]);
    }

    #[tokio::test]
    async fn falls_silent_and_goes_on_to_the_sample() {
        let (bridge, _heard) = MediaBridge::new();
        let numbered: Vec<i16> = (1..=800).collect();
        let mut played = bridge.play_whole(16_000, numbered.clone());
        let mut heard = bridge.next_frame().unwrap().samples;
        bridge.pause();
        for _ in 0..50 {
            assert_eq!(bridge.next_frame(), None);
        }
        assert!(played.try_recv().is_err() && bridge.is_playing(), "it is not over");
        bridge.resume();
        heard.extend(bridge.next_frame().unwrap().samples);
        heard.extend(bridge.next_frame().unwrap().samples);
        assert_eq!((&heard[..800], &heard[800..]), (&numbered[..], &[0; 160][..]));
        assert_eq!(played.await, Ok(Played::Whole));
        assert!(!bridge.is_playing());
        // Who is stopped while it is silent has been heard so far; and what comes next is heard.
        let stopped = bridge.play_whole(16_000, numbered.clone());
        bridge.next_frame();
        bridge.pause();
        bridge.stop();
        assert_eq!(stopped.await, Ok(Played::StoppedAfter(20)));
        let _next = bridge.play_whole(16_000, numbered);
        assert!(bridge.next_frame().is_some());
    }

    #[test]
    fn a_page_that_comes_back_is_told_what_it_missed() {
        let (bridge, _heard) = MediaBridge::new();
        let news = bridge.notes();
        for place in 0..CAPTIONS + 5 {
            bridge.caption(place, Speaker::Agent, place.to_string());
        }
        assert!(news.has_changed().unwrap());
        let (all, next) = bridge.notes_from(0);
        assert_eq!((all.len(), next), (CAPTIONS, CAPTIONS + 5));
        assert!(matches!(&all[0], Note::Caption { place: 5, .. }));
        bridge.close("completed");
        bridge.caption(0, Speaker::User, "too late".into());
        assert_eq!(
            bridge.notes_from(next),
            (vec![Note::Ended { reason: "completed" }], next + 1)
        );
        let told = serde_json::to_value(&all[0]).unwrap();
        assert_eq!(
            told,
            serde_json::json!({ "type": "caption", "place": 5, "role": "agent", "text": "5" })
        );
    }

    /// What is told of an utterance while it grows takes the place of what was told of it before.
    #[test]
    fn words_that_grow_keep_those_before_them() {
        let (bridge, _heard) = MediaBridge::new();
        bridge.caption(0, Speaker::User, "Hello?".into());
        bridge.caption(1, Speaker::Agent, "0".into());
        let (_, seen) = bridge.notes_from(0);
        for words in 1..=CAPTIONS {
            bridge.caption(1, Speaker::Agent, words.to_string());
        }
        let texts = |notes: Vec<Note>| {
            let text = |note: Note| match note {
                Note::Caption { text, .. } => text,
                other => panic!("{other:?}"),
            };
            notes.into_iter().map(text).collect::<Vec<_>>()
        };
        let last = CAPTIONS.to_string();
        assert_eq!(texts(bridge.notes_from(0).0), ["Hello?", &last]);
        // Who has seen the first of it is told the last.
        let (news, next) = bridge.notes_from(seen);
        assert_eq!(texts(news), [last]);
        bridge.caption(2, Speaker::User, "Fine.".into());
        assert_eq!(texts(bridge.notes_from(next).0), ["Fine."]);
    }

    #[test]
    fn what_nobody_listens_to_does_not_pile_up() {
        let (bridge, mut heard) = MediaBridge::new();
        for _ in 0..HEARD + 10 {
            bridge.press("1".into());
        }
        let mut count = 0;
        while heard.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, HEARD);
    }
}
