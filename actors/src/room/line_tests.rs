//! The test is the connection: it takes the frames, and says what is heard.
use super::*;
use crate::room::hearing::{Hearing, Tell};
use entities::values::Moment;
use media::{heard::Heard, wire::FRAME};
use std::future::Future;
use tokio::sync::mpsc;

fn start() -> Moment {
    Moment::from_millis(1_000_000)
}

struct Bench {
    clock: Clock,
    wire: Arc<Wire>,
    heard: mpsc::Sender<Heard>,
    speaking: watch::Receiver<Speaking>,
    api: mpsc::Sender<(Control, Option<Busy>)>,
}

fn bench() -> (RoomLine, Bench) {
    let clock = Clock::manual(start());
    let (wire, _) = Wire::new();
    let (heard, listen) = mpsc::channel(64);
    let (api, inbox) = mpsc::channel(16);
    let tell: Tell = Arc::new(|_| {});
    let (hearing, noticed) = Hearing::new(clock.clone(), None, "en-US", tell, listen);
    tokio::spawn(hearing.run());
    let agent = Sounds {
        voice: Voice::tones(),
        language: "en-US".into(),
        has_ears: false,
    };
    let speaking = noticed.speaking.clone();
    let line = RoomLine::new(clock.clone(), agent, wire.clone(), noticed, inbox);
    let bench = Bench {
        clock,
        wire,
        heard,
        speaking,
        api,
    };
    (line, bench)
}

impl Bench {
    /// Heard, and noticed.
    async fn hear(&mut self, heard: Heard) {
        let begun = self.speaking.borrow().begun;
        let wanted = match heard {
            Heard::Began => Speaking {
                begun: begun + 1,
                over: begun,
            },
            Heard::Spoke(_) | Heard::Pressed(_) => Speaking { begun, over: begun },
        };
        let is_key = matches!(heard, Heard::Pressed(_));
        self.heard.send(heard).await.unwrap();
        if !is_key {
            self.speaking.wait_for(|speaking| *speaking == wanted).await.unwrap();
        }
    }

    async fn speak(&mut self, ms: usize) {
        self.hear(Heard::Began).await;
        self.hear(Heard::Spoke(sound(ms))).await;
    }

    /// The next frames of the agent's words, as soon as there are any.
    async fn play(&self, frames: usize) -> Vec<u8> {
        let mut played = Vec::new();
        while played.len() < frames * FRAME {
            match self.wire.next_frame() {
                Some(frame) => played.extend(frame),
                None => tokio::task::yield_now().await,
            }
        }
        played
    }
}

fn sound(ms: usize) -> Bytes {
    Bytes::from(vec![0x80; ms * 8])
}

fn say(ms: usize, whole: bool) -> Saying<'static> {
    Saying {
        text: "Hello.",
        ms: ms as u64,
        sound: Some(sound(ms)),
        whole,
    }
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
    }
}

async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    futures_util::future::join(one, other).await
}

#[tokio::test]
async fn the_agents_words_are_played_to_their_end() {
    let (mut line, bench) = bench();
    let voice = line.voice("Good morning!").await.unwrap();
    assert!(
        voice.len() > 2_000 && voice.iter().any(|byte| *byte != 0xff),
        "tones of a second"
    );
    assert_eq!(line.voice(" ").await, Some(Bytes::new()));
    let (said, played) = both(line.say(say(60, false)), bench.play(3)).await;
    assert_eq!((said, played), (Said::Whole, vec![0x80; 480]));
    let nothing = Saying {
        text: "…",
        ms: 0,
        sound: Some(Bytes::new()),
        whole: false,
    };
    let (said, ()) = both(line.say(nothing), async {
        // A connection takes a frame whenever it is time.
        bench.play(1).await;
    })
    .await;
    assert_eq!(said, Said::Whole);
}

#[tokio::test]
async fn the_agent_falls_silent_when_somebody_speaks_and_hears_what() {
    let (mut line, mut bench) = bench();
    let (said, ()) = both(line.say(say(1_000, false)), async {
        bench.play(5).await;
        bench.hear(Heard::Began).await;
    })
    .await;
    assert_eq!(said, Said::CutInAfter(100));
    assert_eq!(bench.wire.next_frame(), None, "it is silent");
    assert!(line.is_spoken_over(), "and does not go on with the next sentence");
    bench.clock.set(start().plus_seconds(2));
    bench.hear(Heard::Spoke(sound(1_200))).await;
    assert!(line.is_spoken_over());
    assert_eq!(line.listen().await, Event::Words(words(1_200, 2_000)));
    assert!(!line.is_spoken_over());
    let (said, _) = both(line.say(say(20, false)), bench.play(1)).await;
    assert_eq!(said, Said::Whole);
}

#[tokio::test]
async fn what_is_said_while_the_agent_thinks_comes_before_its_answer() {
    let (mut line, mut bench) = bench();
    bench.speak(300).await;
    assert_eq!(line.listen().await, Event::Words(words(300, 0)));
    bench.speak(400).await;
    assert!(line.is_spoken_over());
    assert_eq!(line.listen().await, Event::Words(words(400, 0)));
    assert!(!line.is_spoken_over());
}

#[tokio::test]
async fn what_must_be_heard_is_heard_and_answered_afterwards() {
    let (mut line, mut bench) = bench();
    let (said, played) = both(line.say(say(200, true)), async {
        let mut played = bench.play(2).await;
        bench.speak(300).await;
        // This one still speaks at the end.
        bench.hear(Heard::Began).await;
        played.extend(bench.play(8).await);
        played.len()
    })
    .await;
    assert_eq!((said, played), (Said::Whole, 1_600));
    bench.hear(Heard::Spoke(sound(700))).await;
    assert_eq!(line.listen().await, Event::Aside(words(300, 0)));
    assert_eq!(line.listen().await, Event::Words(words(700, 0)));
}

#[tokio::test]
async fn an_aside_keeps_the_agent_from_nothing() {
    let (mut line, mut bench) = bench();
    both(line.say(say(20, true)), async {
        bench.speak(300).await;
        bench.play(1).await;
    })
    .await;
    assert!(!line.is_spoken_over());
    let (said, _) = both(line.say(say(40, false)), bench.play(2)).await;
    assert_eq!(said, Said::Whole);
    assert_eq!(line.listen().await, Event::Aside(words(300, 0)));
}

#[tokio::test]
async fn keys_and_what_the_api_wants_come_as_they_are() {
    let (mut line, mut bench) = bench();
    assert!(line.has_keys() && !line.has_ears());
    bench.hear(Heard::Pressed("12#".into())).await;
    assert_eq!(line.listen().await, Event::Pressed("12#".into()));
    bench.api.send((Control::Say("Hello!".into()), None)).await.unwrap();
    assert_eq!(line.listen().await, Event::Control(Control::Say("Hello!".into())));
    line.press("1");
    let nobody = E164::parse("+15002000000", entities::values::Country::US).unwrap();
    assert_eq!(
        line.hand_over(&nobody).await,
        Err("a room has no telephone line".into())
    );
}

#[tokio::test]
async fn one_who_speaks_is_heard_out_before_the_api_is_heeded() {
    let (mut line, mut bench) = bench();
    bench.hear(Heard::Began).await;
    bench.api.send((Control::Say("Hello!".into()), None)).await.unwrap();
    assert!(line.listen().now_or_never().is_none());
    bench.hear(Heard::Spoke(sound(100))).await;
    assert_eq!(line.listen().await, Event::Words(words(100, 0)));
    assert_eq!(line.listen().await, Event::Control(Control::Say("Hello!".into())));
}

/// Of a noise without a word in it nothing is told, unless the agent fell silent for it: then it is asked to go on.
#[tokio::test]
async fn a_noise_is_heard_only_if_it_cut_in() {
    let (mut line, _bench) = bench();
    let noise = |number| Notice::Spoke {
        number,
        began: start(),
        speech: adapters::brain::Speech {
            text: String::new(),
            audio: Some(sound(100)),
        },
    };
    assert_eq!(line.heed(noise(1)), None);
    assert_eq!(line.known(), 1, "the agent may go on");
    line.cut_in = 2;
    assert_eq!(line.heed(noise(2)), Some(Event::Words(words(100, 0))));
}

#[tokio::test]
async fn a_manual_clock_waits_while_the_talk_works_and_not_while_it_listens_or_plays() {
    let (mut line, mut bench) = bench();
    assert!(bench.clock.settle().now_or_never().is_some(), "nobody is there yet");
    line.begin();
    assert!(bench.clock.settle().now_or_never().is_none(), "it begins");
    assert!(line.listen().now_or_never().is_none());
    assert!(bench.clock.settle().now_or_never().is_some(), "it listens");
    bench.speak(100).await;
    line.listen().await;
    assert!(bench.clock.settle().now_or_never().is_none(), "it thinks");
    let mut saying = line.say(say(20, false));
    assert!((&mut saying).now_or_never().is_none());
    assert!(bench.clock.settle().now_or_never().is_some(), "it plays");
    bench.play(1).await;
    saying.await;
    assert!(bench.clock.settle().now_or_never().is_none(), "it goes on");
}
