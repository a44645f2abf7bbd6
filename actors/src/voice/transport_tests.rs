//! The test is the connection: it takes the frames, and says what is heard.
#[path = "corpus_tests.rs"]
mod corpus;
#[path = "transport_tests/latency.rs"]
mod latency;
#[path = "transport_tests/understood.rs"]
mod understood;

use super::*;
use crate::voice::{
    bench_tests::{settings, teller},
    speech_input::{Said as Spoken, Source, SpeechInput, Tell},
};
use adapters::{
    sound::Pcm,
    speech::Speech,
    transcription::{Hear, Transcribed, Transcript},
};
use entities::values::Moment;
use futures_util::stream;
use media::{
    mic::{MicEvent, Piece},
    playout::SoundFrame,
};
use std::{future::Future, sync::Mutex};
use tokio::sync::watch;

fn start() -> Moment {
    Moment::from_millis(1_000_000)
}

struct Bench {
    clock: Clock,
    bridge: Arc<MediaBridge>,
    heard: mpsc::Sender<MicEvent>,
    speaking: watch::Receiver<Speaking>,
    api: mpsc::Sender<(Control, Option<Busy>)>,
}

/// Nobody tells words.
fn bench() -> (VoiceTransport, Bench) {
    bench_with(None)
}

fn bench_with(transcript: Option<Transcript>) -> (VoiceTransport, Bench) {
    let clock = Clock::manual(start());
    let (bridge, _) = MediaBridge::new();
    let (heard, listen) = mpsc::channel(64);
    let (api, inbox) = mpsc::channel(16);
    let tell: Tell = Arc::new(|_| {});
    let source = Source {
        heard: listen,
        bridge: bridge.clone(),
        transcript,
    };
    let (speech_input, user) = SpeechInput::new(clock.clone(), settings("en"), source, tell.clone());
    tokio::spawn(speech_input.opting_out_by(Some("*")).run());
    let agent = Sounds {
        voices: Voices::new(
            Speech::default().cast("builtin:tones", None, "en-US"),
            "en-US",
            tell.clone(),
        ),
        has_ears: false,
    };
    let speaking = user.speaking.clone();
    let transport = VoiceTransport::new(clock.clone(), agent, bridge.clone(), user, inbox);
    let bench = Bench {
        clock,
        bridge,
        heard,
        speaking,
        api,
    };
    (transport, bench)
}

impl Bench {
    async fn hear(&self, heard: MicEvent) {
        self.heard.send(heard).await.unwrap();
    }

    /// Waits until it is so.
    async fn until(&mut self, is_so: impl FnMut(&Speaking) -> bool) {
        self.speaking.wait_for(is_so).await.unwrap();
    }

    /// Begins, and is heard for so long.
    async fn begin(&self, ms: usize) {
        self.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
        self.voice(ms).await;
    }

    async fn voice(&self, ms: usize) {
        for _ in 0..ms / 16 {
            self.piece(Some(-30.0)).await;
        }
    }

    async fn pause(&self, ms: usize) {
        for _ in 0..ms / 16 {
            self.piece(None).await;
        }
    }

    async fn piece(&self, voice_db: Option<f32>) {
        let sound = sound(16);
        self.hear(MicEvent::Sound(Piece { sound, voice_db })).await;
    }

    /// Speaks for so long, loud enough for anybody.
    async fn end(&self, ms: usize) {
        self.hear(MicEvent::SpeechEnded(sound(ms))).await;
    }

    /// All of it.
    async fn speak(&mut self, ms: usize) {
        let over = self.speaking.borrow().over;
        self.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
        self.end(ms).await;
        self.until(|speaking| speaking.over > over).await;
    }

    /// The next frames of the agent's words, as soon as there are any.
    async fn play(&self, frames: usize) -> Vec<i16> {
        let (mut played, mut count) = (Vec::new(), 0);
        while count < frames {
            match self.bridge.next_frame() {
                Some(SoundFrame { samples, .. }) => {
                    played.extend(samples);
                    count += 1;
                }
                None => tokio::task::yield_now().await,
            }
        }
        played
    }
}

fn sound(ms: usize) -> Pcm {
    Pcm::new(16_000, vec![1_000; ms * 16])
}

fn say(ms: usize, whole: bool) -> Saying<'static> {
    Saying {
        text: "Hello.",
        ms: ms as u64,
        sound: Some(Sound::Whole(sound(ms))),
        whole,
    }
}

/// It is still being made: what is sent is what comes next.
fn say_what_comes(whole: bool) -> (Saying<'static>, mpsc::UnboundedSender<Vec<i16>>) {
    let (make, made) = mpsc::unbounded_channel();
    let chunks = stream::unfold(made, |mut made| async move { Some((made.recv().await?, made)) }).boxed();
    let saying = Saying {
        sound: Some(Sound::Stream(PcmStream::new(16_000, chunks))),
        ..say(0, whole)
    };
    (saying, make)
}

/// Of what nobody understands.
fn words(ms: u64, ago_ms: u64) -> Words {
    let speech = adapters::brain::Speech {
        text: UNKNOWN.into(),
        audio: Some(sound(ms as usize)),
    };
    Words {
        speech,
        ms,
        ago_ms: Some(ago_ms),
        later: None,
        settling: None,
    }
}

async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    futures_util::future::join(one, other).await
}

#[tokio::test]
async fn the_agents_words_are_played_to_their_end() {
    let (mut transport, bench) = bench();
    let voices = transport.voice().unwrap();
    let voice = voices.speak("Good morning!".into(), false, None).await;
    let Sound::Whole(voice) = voice else {
        panic!("it is there")
    };
    assert!(
        voice.ms() > 250 && voice.samples.iter().any(|sample| *sample != 0),
        "tones of a second"
    );
    assert!(!voices.is_streamed(), "it is there at once");
    let nothing = voices.speak(" ".into(), false, None).await;
    assert!(matches!(nothing, Sound::Whole(nothing) if nothing.is_empty()));
    let (said, played) = both(transport.say(say(60, false)), bench.play(3)).await;
    assert_eq!((said, played), (Said::Whole, vec![1_000; 3 * 320]));
    let nothing = Saying {
        text: "…",
        ms: 0,
        sound: None,
        whole: false,
    };
    let (said, ()) = both(transport.say(nothing), async {
        // A connection takes a frame whenever it is time.
        bench.play(1).await;
    })
    .await;
    assert_eq!(said, Said::Whole);
}

#[tokio::test]
async fn the_agent_falls_silent_when_somebody_speaks_and_hears_what() {
    let (mut transport, mut bench) = bench();
    let (said, ()) = both(transport.say(say(1_000, false)), async {
        bench.play(5).await;
        bench.begin(208).await;
        bench.until(|speaking| speaking.begun == 1).await;
        while bench.bridge.next_frame().is_some() {
            tokio::task::yield_now().await;
        }
        bench.voice(208).await;
    })
    .await;
    assert!(matches!(said, Said::CutInAfter(100..=400)), "{said:?}");
    assert_eq!(bench.bridge.next_frame(), None, "it is silent");
    assert!(transport.is_spoken_over(), "and does not go on with the next sentence");
    bench.clock.set(start().plus_seconds(2));
    bench.voice(784).await;
    bench.end(0).await;
    assert!(transport.is_spoken_over());
    assert_eq!(transport.listen().await, Event::Words(words(1_200, 2_000)));
    assert!(!transport.is_spoken_over());
    let (said, _) = both(transport.say(say(20, false)), bench.play(1)).await;
    assert_eq!(said, Said::Whole);
}

/// The first of it is heard before the last is there; what is late is a pause, and its end is its end.
#[tokio::test]
async fn words_are_played_while_they_are_still_being_made() {
    let (mut transport, bench) = bench();
    let (saying, make) = say_what_comes(false);
    let (said, played) = both(transport.say(saying), async {
        make.send(vec![1; 640]).unwrap();
        let mut played = bench.play(2).await;
        played.extend(bench.play(1).await);
        make.send(vec![2; 320]).unwrap();
        while !played.contains(&2) {
            tokio::task::yield_now().await;
            played.extend(bench.play(1).await);
        }
        drop(make);
        played
    })
    .await;
    assert_eq!(said, Said::Whole);
    let spoken: Vec<i16> = played.iter().copied().filter(|sample| *sample != 0).collect();
    assert_eq!(spoken, [vec![1; 640], vec![2; 320]].concat());
    assert_eq!(played[640..960], [0; 320], "a pause");
}

#[tokio::test]
async fn who_cuts_in_on_words_that_are_still_being_made_heard_so_much_and_calls_the_rest_off() {
    let (mut transport, mut bench) = bench();
    let (saying, make) = say_what_comes(false);
    let (said, ()) = both(transport.say(saying), async {
        make.send(vec![1; 16_000]).unwrap();
        bench.play(7).await;
        bench.begin(416).await;
        bench.until(|speaking| speaking.sure == 1).await;
    })
    .await;
    assert_eq!(said, Said::CutInAfter(140));
    assert!(make.is_closed(), "nobody waits for more");
    assert_eq!(bench.bridge.next_frame(), None);
    // What must be heard is heard to its end, also if that is not known yet.
    let (saying, make) = say_what_comes(true);
    let (said, ()) = both(transport.say(saying), async {
        make.send(vec![1; 320]).unwrap();
        let mut played = bench.play(1).await;
        bench.end(300).await;
        make.send(vec![1; 160]).unwrap();
        drop(make);
        while played.iter().filter(|sample| **sample != 0).count() < 480 {
            tokio::task::yield_now().await;
            played.extend(bench.play(1).await);
        }
    })
    .await;
    assert_eq!(said, Said::Whole);
}

/// More than is ever kept: it is taken as it is played, and all of it is heard.
#[tokio::test]
async fn a_voice_that_is_far_ahead_waits() {
    let (mut transport, bench) = bench();
    let (taken, seconds) = (Arc::new(AtomicBool::new(false)), 30);
    let is_over = taken.clone();
    let chunks = stream::unfold(0, move |nth| {
        is_over.store(nth == seconds, Ordering::Relaxed);
        ready((nth < seconds).then(|| (vec![1; 16_000], nth + 1)))
    });
    let saying = Saying {
        sound: Some(Sound::Stream(PcmStream::new(16_000, chunks.boxed()))),
        ..say(0, false)
    };
    let (said, ()) = both(transport.say(saying), async {
        let mut heard = bench.play(1).await.len();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!taken.load(Ordering::Relaxed), "it waits");
        while heard < seconds * 16_000 {
            heard += bench.play(1).await.iter().filter(|sample| **sample != 0).count();
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(said, Said::Whole);
}

#[tokio::test]
async fn what_is_said_while_the_agent_thinks_comes_before_its_answer() {
    let (mut transport, mut bench) = bench();
    bench.speak(500).await;
    assert_eq!(transport.listen().await, Event::Words(words(500, 0)));
    bench.speak(600).await;
    assert!(transport.is_spoken_over());
    assert_eq!(transport.listen().await, Event::Words(words(600, 0)));
    assert!(!transport.is_spoken_over());
}

#[tokio::test]
async fn a_cough_after_an_interruption_does_not_undo_it() {
    let (mut transport, mut bench) = bench();
    bench.begin(480).await;
    bench.until(|speaking| speaking.sure == 1).await;
    bench.end(0).await;
    bench.begin(208).await;
    bench.until(|speaking| speaking.begun == 2).await;
    bench.pause(320).await;
    bench.until(|speaking| speaking.nothing == 2).await;
    assert!(transport.is_spoken_over());
    assert_eq!(transport.say(say(1_000, false)).await, Said::CutInAfter(0));
    assert_eq!(transport.listen().await, Event::Words(words(480, 0)));
    assert!(!transport.is_spoken_over());
}

/// It goes on, and stays so: what was begun by somebody who is not heard any more will never be over.
#[tokio::test]
async fn who_is_not_heard_any_more_keeps_the_agent_from_nothing() {
    let (speaking, mut watched) = watch::channel(Speaking {
        begun: 1,
        ..Speaking::default()
    });
    assert_eq!(cue(&mut watched, 0, false).await, Cue::FallSilent);
    drop(speaking);
    assert_eq!(cue(&mut watched, 0, true).await, Cue::GoOn);
    assert_eq!(cue(&mut watched, 0, false).now_or_never(), None);
    let (_, mut interrupted) = watch::channel(Speaking {
        begun: 1,
        sure: 1,
        ..Speaking::default()
    });
    assert_eq!(cue(&mut interrupted, 0, false).await, Cue::Stop);
}

/// Where the agent is about to do something, or to leave: what answers nothing, and in the end all of it.
#[tokio::test]
async fn what_was_said_and_not_listened_to_is_overheard() {
    let (mut transport, mut bench) = bench();
    both(transport.say(say(20, true)), async {
        bench.speak(500).await;
        bench.play(1).await;
    })
    .await;
    bench.hear(MicEvent::Dtmf("1".into())).await;
    bench.speak(600).await;
    while transport.user.inputs.len() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(transport.overheard(false), Some(Overheard::Words(words(500, 0))));
    assert_eq!(transport.overheard(false), None, "keys are listened to");
    assert_eq!(transport.listen().await, Event::Pressed("1".into()));
    assert_eq!(transport.overheard(false), None, "and so is what is to be answered");
    assert!(transport.is_spoken_over());
    bench.hear(MicEvent::Dtmf("9".into())).await;
    while transport.user.inputs.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(transport.overheard(true), Some(Overheard::Words(words(600, 0))));
    assert_eq!(
        transport.overheard(true),
        Some(Overheard::Pressed("9".into())),
        "in the end keys, too"
    );
    assert_eq!(transport.overheard(true), None);
}

/// Whether the agent listens or is about to go on: it is not left standing behind keys and words that are still to be answered.
#[tokio::test]
async fn who_opts_out_by_a_key_is_heeded_before_all_that_waits() {
    for listens in [false, true] {
        let (mut transport, mut bench) = bench();
        bench.hear(MicEvent::Dtmf("5".into())).await;
        bench.speak(500).await;
        bench.hear(MicEvent::Dtmf("*".into())).await;
        while transport.user.opted_out.is_empty() || transport.user.inputs.len() < 2 {
            tokio::task::yield_now().await;
        }
        if listens {
            assert_eq!(transport.listen().await, Event::Pressed("*".into()));
        } else {
            assert_eq!(transport.overheard(false), Some(Overheard::Pressed("*".into())));
            assert_eq!(transport.overheard(false), None, "once");
        }
        assert_eq!(transport.listen().await, Event::Pressed("5".into()));
    }
}

/// What must be heard is heard all the same: the last words are.
#[tokio::test]
async fn a_key_by_which_somebody_opts_out_ends_what_is_being_said() {
    for whole in [false, true] {
        let (mut transport, bench) = bench();
        let (said, ()) = both(transport.say(say(200, whole)), async {
            bench.play(2).await;
            bench.hear(MicEvent::Dtmf("5".into())).await;
            bench.hear(MicEvent::Dtmf("*".into())).await;
            if whole {
                bench.play(8).await;
            }
        })
        .await;
        let is_cut = matches!(said, Said::CutInAfter(_));
        assert_eq!(is_cut, !whole);
        while transport.user.inputs.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(transport.overheard(false), Some(Overheard::Pressed("*".into())));
        assert_eq!(transport.listen().await, Event::Pressed("5".into()));
    }
}

#[tokio::test]
async fn what_must_be_heard_is_heard_and_answered_afterwards() {
    let (mut transport, mut bench) = bench();
    let (said, played) = both(transport.say(say(200, true)), async {
        let mut played = bench.play(2).await;
        bench.speak(500).await;
        // This one still speaks at the end.
        bench.begin(704).await;
        bench.until(|speaking| speaking.sure == 2).await;
        played.extend(bench.play(8).await);
        played.len()
    })
    .await;
    assert_eq!((said, played), (Said::Whole, 10 * 320));
    bench.end(0).await;
    assert_eq!(transport.listen().await, Event::Aside(words(500, 0)));
    assert_eq!(transport.listen().await, Event::Words(words(704, 0)));
}

#[tokio::test]
async fn an_aside_keeps_the_agent_from_nothing() {
    let (mut transport, mut bench) = bench();
    both(transport.say(say(20, true)), async {
        bench.speak(500).await;
        bench.play(1).await;
    })
    .await;
    assert!(!transport.is_spoken_over());
    let (said, _) = both(transport.say(say(40, false)), bench.play(2)).await;
    assert_eq!(said, Said::Whole);
    assert_eq!(transport.listen().await, Event::Aside(words(500, 0)));
}

/// From beside its words, whether they are played already or still being made. What must be heard is heard.
#[tokio::test]
async fn who_is_hushed_says_no_more_but_what_must_be_heard() {
    let (mut transport, bench) = bench();
    let hush = transport.hush();
    let (said, ()) = both(transport.say(say(1_000, false)), async {
        bench.play(5).await;
        hush();
    })
    .await;
    assert_eq!(said, Said::CutInAfter(100));
    assert!(transport.is_spoken_over(), "nothing more of it");
    let (said, played) = both(transport.say(say(40, true)), bench.play(2)).await;
    assert_eq!((said, played.len()), (Said::Whole, 2 * 320));
}

#[tokio::test]
async fn keys_and_what_the_api_wants_come_as_they_are() {
    let (mut transport, bench) = bench();
    assert!(transport.has_keys() && !transport.has_ears());
    bench.hear(MicEvent::Dtmf("12#".into())).await;
    assert_eq!(transport.listen().await, Event::Pressed("12#".into()));
    bench.api.send((Control::Say("Hello!".into()), None)).await.unwrap();
    assert_eq!(transport.listen().await, Event::Control(Control::Say("Hello!".into())));
    transport.press("1");
    let nobody = E164::parse("+15002000000", entities::values::Country::US).unwrap();
    assert_eq!(
        transport.hand_over(&nobody).await,
        Err("a room has no telephone line".into())
    );
}

/// A line, on which everybody takes over.
struct Line;

impl Side for Line {
    fn press(&self, _: &str) {}

    fn hand_over<'a>(&'a self, _: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        ready(Ok(())).boxed()
    }
}

/// Neither what the agent is saying nor somebody who speaks holds it up; what must be heard is heard.
#[tokio::test]
async fn whoever_is_to_take_over_is_called_at_once() {
    let (transport, mut bench) = bench();
    let mut transport = transport.beside(Arc::new(Line));
    let to = E164::parse("+15002000000", entities::values::Country::US).unwrap();
    let wanted = async || bench.api.send((Control::Transfer(to.clone()), None)).await.unwrap();
    bench.api.send((Control::Say("Hello!".into()), None)).await.unwrap();
    let (said, ()) = both(transport.say(say(1_000, false)), async {
        bench.play(5).await;
        wanted().await;
    })
    .await;
    assert_eq!(said, Said::CutInAfter(100));
    assert!(transport.is_spoken_over(), "nothing more of it");
    assert_eq!(transport.listen().await, Event::Control(Control::Transfer(to.clone())));
    assert!(!transport.is_spoken_over());
    assert_eq!(transport.listen().await, Event::Control(Control::Say("Hello!".into())));
    // To its end, but before anything else.
    wanted().await;
    let (said, played) = both(transport.say(say(40, true)), bench.play(2)).await;
    assert_eq!((said, played.len()), (Said::Whole, 2 * 320));
    transport.user.listens.store(true, Ordering::Relaxed);
    bench.begin(96).await;
    bench.speaking.wait_for(|speaking| speaking.sure == 1).await.unwrap();
    assert_eq!(transport.listen().await, Event::Control(Control::Transfer(to.clone())));
    // What was being said meanwhile is not lost.
    bench.end(0).await;
    assert_eq!(transport.listen().await, Event::Words(words(96, 0)));
}

#[tokio::test]
async fn one_who_speaks_is_heard_out_before_the_api_is_heeded() {
    let (mut transport, mut bench) = bench();
    assert!(transport.listen().now_or_never().is_none(), "it listens");
    transport.user.listens.store(true, Ordering::Relaxed);
    bench.begin(96).await;
    bench.until(|speaking| speaking.sure == 1).await;
    bench.api.send((Control::Say("Hello!".into()), None)).await.unwrap();
    assert!(transport.listen().now_or_never().is_none());
    bench.end(0).await;
    assert_eq!(transport.listen().await, Event::Words(words(96, 0)));
    assert_eq!(transport.listen().await, Event::Control(Control::Say("Hello!".into())));
}

/// Of a noise without a word in it nothing is told, unless the agent fell silent for it: then it is asked to go on.
#[tokio::test]
async fn a_noise_is_heard_only_if_it_cut_in() {
    let (mut transport, _bench) = bench();
    let noise = |number| UserInput::Speech {
        number,
        said: Spoken {
            began: start(),
            ms: 100,
            speech: adapters::brain::Speech {
                text: String::new(),
                audio: Some(sound(100)),
            },
        },
        later: None,
        unsettled: None,
    };
    assert_eq!(transport.event_of(noise(1)), None);
    assert_eq!(transport.heard(), 1, "the agent may go on");
    transport.is_cut_in_by(2);
    assert_eq!(transport.event_of(noise(2)), Some(Event::Words(words(100, 0))));
}

#[tokio::test]
async fn a_manual_clock_waits_while_the_talk_works_and_not_while_it_listens_or_plays() {
    let (mut transport, mut bench) = bench();
    assert!(bench.clock.settle().now_or_never().is_some(), "nobody is there yet");
    transport.begin();
    assert!(bench.clock.settle().now_or_never().is_none(), "it begins");
    assert!(transport.listen().now_or_never().is_none());
    assert!(bench.clock.settle().now_or_never().is_some(), "it listens");
    bench.speak(500).await;
    transport.listen().await;
    assert!(bench.clock.settle().now_or_never().is_none(), "it thinks");
    let mut saying = transport.say(say(20, false));
    assert!((&mut saying).now_or_never().is_none());
    assert!(bench.clock.settle().now_or_never().is_some(), "it plays");
    bench.play(1).await;
    saying.await;
    assert!(bench.clock.settle().now_or_never().is_none(), "it goes on");
}
