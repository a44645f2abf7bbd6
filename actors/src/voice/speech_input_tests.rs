#[path = "../../../tests/it/world/http_head.rs"]
mod http_head;
#[path = "../../../tests/it/world/local_listener.rs"]
mod local_listener;
#[expect(dead_code, reason = "the rest of it is used by others")]
#[path = "../../../tests/it/world/transcription_server.rs"]
mod transcription_server;

use super::*;
use crate::voice::bench_tests::{settings, teller};
use adapters::{
    brain::Speech,
    speech::SpeechError,
    transcription::{Ask, Failure, Hear, Kind, Provider, Transcribed},
};
use futures_util::FutureExt;
use std::sync::Mutex;
use tokio::task::JoinHandle;
use transcription_server::{Answer, TranscriptionServer};

fn start() -> Moment {
    Moment::from_millis(1_000_000)
}

struct Bench {
    clock: Clock,
    heard: mpsc::Sender<MicEvent>,
    user: UserInputs,
    told: Arc<Mutex<Vec<Command>>>,
    running: JoinHandle<()>,
}

/// The speech input runs beside the test until it is over; the agent listens.
fn bench(transcript: Option<Transcript>) -> Bench {
    bench_with(transcript, None)
}

/// By that key somebody opts out.
fn bench_with(transcript: Option<Transcript>, key: Option<&str>) -> Bench {
    let clock = Clock::manual(start());
    let (bridge, _) = MediaBridge::new();
    let (heard, listen) = mpsc::channel(1_024);
    let told: Arc<Mutex<Vec<Command>>> = Arc::default();
    let into = told.clone();
    let tell: Tell = Arc::new(move |command| into.lock().unwrap().push(command));
    let source = Source {
        heard: listen,
        bridge,
        transcript,
    };
    let (speech_input, user) = SpeechInput::new(clock.clone(), settings("de"), source, tell);
    let speech_input = speech_input.opting_out_by(key);
    user.listens.store(true, Ordering::Relaxed);
    let running = tokio::spawn(speech_input.run());
    Bench {
        clock,
        heard,
        user,
        told,
        running,
    }
}

impl Bench {
    async fn hear(&self, heard: MicEvent) {
        self.heard.send(heard).await.unwrap();
    }
    /// So long a voice, or a pause.
    async fn sound(&self, ms: usize, voice_db: Option<f32>) {
        for _ in 0..ms / 16 {
            let sound = sound(16);
            self.hear(MicEvent::Sound(Piece { sound, voice_db })).await;
        }
    }
    async fn next(&mut self) -> UserInput {
        self.user.inputs.recv().await.unwrap()
    }
    /// Waits until so many have begun.
    async fn begun(&mut self, begun: u64) -> (u64, u64) {
        let speaking = self.user.speaking.wait_for(|speaking| speaking.begun >= begun).await;
        let Speaking { begun, over, .. } = *speaking.unwrap();
        (begun, over)
    }
    fn notes(&self) -> Vec<(&'static str, String)> {
        let told = self.told.lock().unwrap();
        let notes = told.iter().filter_map(|command| match command {
            Command::Note { kind, detail } => Some((*kind, detail.clone())),
            _ => None,
        });
        notes.collect()
    }
    /// What is screened when the talk is cut off, after the agent's "Guten Tag.".
    fn screened(&self) -> Arc<Mutex<Screened>> {
        let screened: Arc<Mutex<Screened>> = Arc::default();
        let into = screened.clone();
        let screen = move |agent: &str, said: &[String]| into.lock().unwrap().push((agent.to_owned(), said.to_vec()));
        self.user.last_words.screened_by(Box::new(screen));
        self.user.last_words.after("Guten Tag.");
        screened
    }
}

/// What the agent had said, and what was said to it.
type Screened = Vec<(String, Vec<String>)>;

fn sound(ms: usize) -> Pcm {
    Pcm::new(16_000, vec![1_000; ms * 16])
}

fn spoke(number: u64, began: Moment, text: &str, sound: Pcm) -> UserInput {
    let said = Said {
        began,
        ms: sound.ms(),
        speech: Speech {
            text: text.to_owned(),
            audio: Some(sound),
        },
    };
    UserInput::Speech {
        number,
        said,
        later: None,
        unsettled: None,
    }
}

fn understanding(server: &TranscriptionServer) -> Option<Transcript> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let provider = Provider::new(Kind::Openai, &server.url(), None, "ear").unwrap();
    let ask = Ask {
        language: "de-DE".into(),
        names: Vec::new(),
    };
    Some(provider.open(ask))
}

fn partial(turn: u64, words: &str) -> Transcribed {
    let words = words.to_owned();
    Transcribed::Partial { turn, words }
}

#[tokio::test]
async fn somebody_begins_speaks_and_is_heard() {
    let mut bench = bench(None);
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
    assert_eq!(bench.begun(1).await, (1, 0));
    assert_eq!(
        *bench.told.lock().unwrap(),
        [Command::UserSpeaking {
            until: start().plus_seconds(45)
        }]
    );
    bench.clock.set(start().plus_seconds(3));
    bench.hear(MicEvent::SpeechEnded(sound(2_000))).await;
    assert_eq!(bench.next().await, spoke(1, start(), UNKNOWN, sound(2_000)));
    assert_eq!(bench.begun(1).await, (1, 1));
    bench.hear(MicEvent::Dtmf("5#".into())).await;
    assert_eq!(bench.next().await, UserInput::Dtmf("5#".into()));
}

/// Not when that was noticed, and not where the sound begins that is kept from before it: to the millisecond.
#[tokio::test]
async fn an_utterance_began_where_its_voice_did() {
    let mut bench = bench(None);
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 160 }).await;
    assert_eq!(bench.begun(1).await, (1, 0));
    bench.sound(192, None).await;
    bench.sound(1_504, Some(-30.0)).await;
    bench.clock.set(start().plus_seconds(2));
    bench.sound(512, None).await;
    let UserInput::Speech {
        said, unsettled: None, ..
    } = bench.next().await
    else {
        panic!("it is over")
    };
    assert_eq!((said.began, said.ms), (start().plus_millis(-160), 1_504 + 96));
    assert_eq!(said.speech.audio.map(|sound| sound.ms()), Some(192 + 1_504 + 96));
}

/// Before the talk whoever has picked up is listened to, for who that is: nothing of it is answered.
#[tokio::test]
async fn the_words_of_a_greeting_are_told_as_they_become_known() {
    let (transcript, mut asked, tell) = teller();
    let (bridge, _) = MediaBridge::new();
    let (heard, listen) = mpsc::channel(1_024);
    let source = Source {
        heard: listen,
        bridge,
        transcript: Some(transcript),
    };
    let silent: Tell = Arc::new(|_| {});
    let (mut speech_input, mut user) = SpeechInput::new(Clock::manual(start()), settings("de"), source, silent);
    assert!(speech_input.understands());
    let begins = |number| MicEvent::SpeechStarted { number, ago_ms: 160 };
    heard.send(begins(1)).await.unwrap();
    for _ in 0..1_600 / 16 {
        let voice_db = Some(-30.0);
        let sound = sound(16);
        heard.send(MicEvent::Sound(Piece { sound, voice_db })).await.unwrap();
    }
    let is_asked = async {
        assert_eq!(asked.recv().await, Some(Hear::Begin(1)));
        while asked.recv().await.unwrap() != Hear::Finalize {}
    };
    tokio::select! {
        biased;
        early = speech_input.greeting() => panic!("{early:?}"),
        () = is_asked => {}
    }
    tell.send(partial(1, "Für den Verkauf")).await.unwrap();
    let words = |words: &str| Early::Words(words.to_owned());
    assert_eq!(speech_input.greeting().await, words("Für den Verkauf"));
    let all = "Für den Verkauf drücken Sie die Eins.";
    tell.send(Transcribed::Final(all.into())).await.unwrap();
    assert_eq!(speech_input.greeting().await, words(all));
    speech_input.forget();
    let mut last = None;
    while let Ok(hear) = asked.try_recv() {
        last = Some(hear);
    }
    assert_eq!(last, Some(Hear::Discard));
    // What is said in the talk is another turn.
    tokio::spawn(speech_input.run());
    heard.send(begins(2)).await.unwrap();
    assert_eq!(asked.recv().await, Some(Hear::Begin(2)));
    assert!(user.inputs.try_recv().is_err());
}

/// By the one key it is: before there is an agent, and while it is judged who is there, whether words are understood or not. Other
/// keys of that time are forgotten.
#[tokio::test]
async fn who_opts_out_before_the_talk_has_opted_out() {
    for is_judged in [true, false] {
        let (bridge, listen) = MediaBridge::new();
        let source = Source {
            heard: listen,
            bridge: bridge.clone(),
            transcript: None,
        };
        let tell: Tell = Arc::new(|_| {});
        let (speech_input, mut user) = SpeechInput::new(Clock::manual(start()), settings("de"), source, tell);
        let mut speech_input = speech_input.opting_out_by(Some("9"));
        for keys in ["5", "9", "7"] {
            bridge.press(keys.to_owned());
        }
        if is_judged {
            assert_eq!(speech_input.greeting().await, Early::OptedOut);
        }
        speech_input.forget();
        assert_eq!(user.opted_out.try_recv().as_deref(), Ok("9"), "{is_judged}");
        tokio::spawn(speech_input.run());
        bridge.press("1".to_owned());
        assert_eq!(
            user.inputs.recv().await,
            Some(UserInput::Dtmf("1".into())),
            "the others answer nothing"
        );
    }
}

/// A turn that is over is over for the detector too: the next voice begins anew.
#[tokio::test]
async fn the_detector_is_told_when_a_turn_is_over() {
    let (bridge, listen) = MediaBridge::new();
    let tell: Tell = Arc::new(|_| {});
    let source = Source {
        heard: listen,
        bridge: bridge.clone(),
        transcript: None,
    };
    let (speech_input, mut user) = SpeechInput::new(Clock::manual(start()), settings("de"), source, tell);
    user.listens.store(true, Ordering::Relaxed);
    tokio::spawn(speech_input.run());
    // A steady deep tone is a voice to it.
    let tone: Vec<i16> = (0..16_000)
        .map(|at| ((f64::from(at) / 16_000.0 * 440.0 * std::f64::consts::TAU).sin() * 8_000.0) as i16)
        .collect();
    for number in 1..=3 {
        for piece in [&tone[..], &[0; 16_000]].concat().chunks(320) {
            bridge.hear(piece);
            tokio::task::yield_now().await;
        }
        let UserInput::Speech { number: of, said, .. } = user.inputs.recv().await.unwrap() else {
            panic!("a tone presses no keys")
        };
        assert_eq!(of, number);
        assert!((800..1_200).contains(&said.ms), "{}", said.ms);
    }
}

/// For an agent that hears by itself: the sound is there while somebody else still listens for the words.
#[tokio::test]
async fn sound_that_is_wanted_first_comes_before_its_words() {
    let (open, gate) = watch::channel(false);
    let server = TranscriptionServer::start_with(move |_, before| match before {
        0 => Answer::Gated(gate.clone(), "Ja.".into()),
        1 => Answer::Words(String::new()),
        _ => Answer::Status(400, "no".into()),
    })
    .await;
    let mut bench = bench(understanding(&server));
    bench.user.sound_first.store(true, Ordering::Relaxed);
    let mut later = Vec::new();
    for number in 1..=3 {
        bench.hear(MicEvent::SpeechEnded(sound(100))).await;
        let UserInput::Speech {
            number: of,
            said,
            later: Some(words),
            ..
        } = bench.next().await
        else {
            panic!("it waits for its words")
        };
        assert_eq!(
            (of, said.speech.text.as_str(), said.speech.audio),
            (number, UNKNOWN, Some(sound(100)))
        );
        later.push(words);
    }
    assert!(later[0].clone().known().now_or_never().is_none());
    open.send(true).unwrap();
    let mut words = Vec::new();
    for later in later {
        words.push(later.known().await.words);
    }
    assert_eq!(words, ["Ja.", "", UNKNOWN]);
}

/// And while it is spoken, where the agent wants it so.
#[tokio::test]
async fn sound_that_is_wanted_live_flows_while_it_is_spoken() {
    let mut bench = bench(None);
    let (listener, mut live) = mpsc::channel(64);
    bench.user.live.lead_to(listener);
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 160 }).await;
    bench.sound(320, Some(-30.0)).await;
    for _ in 0..20 {
        assert_eq!(live.recv().await, Some(LiveSound::Piece(sound(16))));
    }
    bench.hear(MicEvent::SpeechEnded(sound(0))).await;
    assert_eq!(live.recv().await, Some(LiveSound::End));
    assert!(matches!(bench.next().await, UserInput::Speech { number: 1, .. }));
    // What answers nothing is taken back.
    bench.user.listens.store(false, Ordering::Relaxed);
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 160 }).await;
    bench.sound(176, Some(-30.0)).await;
    bench.sound(512, None).await;
    let mut last = live.recv().await;
    while matches!(last, Some(LiveSound::Piece(_))) {
        last = live.recv().await;
    }
    assert_eq!(last, Some(LiveSound::Discard));
    // What nobody takes is not kept for ever, but for its end.
    bench.user.listens.store(true, Ordering::Relaxed);
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 160 }).await;
    bench.sound(3_200, Some(-30.0)).await;
    bench.hear(MicEvent::SpeechEnded(sound(0))).await;
    bench.next().await;
    let mut all = Vec::new();
    while let Ok(sound) = live.try_recv() {
        all.push(sound);
    }
    assert_eq!(
        (all.len(), all.last()),
        (64 - LIVE_KEPT_FREE + 1, Some(&LiveSound::End))
    );
}

/// What is heard goes to whoever understands it while it is spoken: in pieces that he takes, all of it, before it is asked for.
#[tokio::test]
async fn sound_is_given_while_it_is_spoken() {
    let (transcript, mut asked, tell) = teller();
    let mut bench = bench(Some(transcript));
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 160 }).await;
    bench.sound(192, None).await;
    bench.sound(480, Some(-30.0)).await;
    bench.sound(112, None).await;
    assert_eq!(asked.recv().await, Some(Hear::Begin(1)));
    let mut ms = 0;
    loop {
        match asked.recv().await.unwrap() {
            Hear::Sound(sound) => {
                assert!(sound.rate == 16_000 && (16..=100).contains(&sound.ms()), "{sound:?}");
                ms += sound.ms();
            }
            Hear::Finalize => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ms, 192 + 480 + 112);
    tell.send(partial(1, "Ja")).await.unwrap();
    tell.send(Transcribed::Final("Ja, bitte.".into())).await.unwrap();
    let UserInput::Speech {
        said,
        unsettled: Some(unsettled),
        ..
    } = bench.next().await
    else {
        panic!("nobody knows yet whether it is over")
    };
    assert_eq!(said.speech.text, "Ja, bitte.");
    bench.sound(400, None).await;
    assert!(unsettled.is_over().await);
    // Of a noise nobody needs the words: while the agent speaks it is forgotten.
    bench.user.listens.store(false, Ordering::Relaxed);
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 160 }).await;
    bench.sound(176, Some(-30.0)).await;
    bench.sound(112, None).await;
    while asked.recv().await.unwrap() != Hear::Finalize {}
    tell.send(Transcribed::Final(String::new())).await.unwrap();
    bench.sound(400, None).await;
    while asked.recv().await.unwrap() != Hear::Discard {}
    assert!(bench.user.inputs.try_recv().is_err());
}

/// What a provider says too late, of the turn before, is none of the turn that is under way.
#[tokio::test]
async fn words_of_another_turn_are_passed_over() {
    let (transcript, mut asked, tell) = teller();
    let mut bench = bench(Some(transcript));
    for turn in 1..=2 {
        bench
            .hear(MicEvent::SpeechStarted {
                number: turn,
                ago_ms: 0,
            })
            .await;
        bench.sound(160, Some(-30.0)).await;
        while asked.recv().await.unwrap() != Hear::Begin(turn) {}
        tell.send(partial(1, "Nie wieder anrufen")).await.unwrap();
        bench.hear(MicEvent::SpeechEnded(sound(0))).await;
        while asked.recv().await.unwrap() != Hear::Finalize {}
        tell.send(Transcribed::Failed(Failure(SpeechError::Timeout)))
            .await
            .unwrap();
        let UserInput::Speech { said, .. } = bench.next().await else {
            panic!("somebody spoke")
        };
        let words = if turn == 1 { "Nie wieder anrufen" } else { UNKNOWN };
        assert_eq!(said.speech.text, words, "{turn}");
    }
}

/// Words that were told while they were spoken stand, if nobody says more.
#[tokio::test]
async fn a_provider_that_goes_leaves_what_it_has_told() {
    for sound_first in [false, true] {
        let (transcript, mut asked, tell) = teller();
        let mut bench = bench(Some(transcript));
        bench.user.sound_first.store(sound_first, Ordering::Relaxed);
        bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
        bench.sound(480, Some(-30.0)).await;
        while asked.recv().await.unwrap() != Hear::Begin(1) {}
        tell.send(partial(1, "Nie wieder anrufen")).await.unwrap();
        // The next one does not wait for the words of this one.
        while tell.capacity() < tell.max_capacity() {
            tokio::task::yield_now().await;
        }
        bench.hear(MicEvent::SpeechStarted { number: 2, ago_ms: 0 }).await;
        while asked.recv().await.unwrap() != Hear::Begin(2) {}
        drop((asked, tell));
        let UserInput::Speech { said, later, .. } = bench.next().await else {
            panic!("somebody spoke")
        };
        let words = match later {
            Some(later) => later.known().await.words,
            None => said.speech.text,
        };
        assert_eq!(words, "Nie wieder anrufen");
    }
}

/// Nobody answers a noise: whoever hears by himself forgets it, unless the agent fell silent for it.
#[tokio::test]
async fn a_noise_is_taken_back_unless_it_cut_in() {
    for cut_in in [0, 1] {
        let (transcript, mut asked, tell) = teller();
        let mut bench = bench(Some(transcript));
        let (listener, mut live) = mpsc::channel(64);
        bench.user.live.lead_to(listener);
        bench.user.cut_in.store(cut_in, Ordering::Relaxed);
        bench.hear(MicEvent::SpeechEnded(sound(320))).await;
        while asked.recv().await.unwrap() != Hear::Finalize {}
        tell.send(Transcribed::Final(String::new())).await.unwrap();
        assert!(matches!(bench.next().await, UserInput::Speech { number: 1, .. }));
        let mut last = live.recv().await;
        while matches!(last, Some(LiveSound::Piece(_))) {
            last = live.recv().await;
        }
        let expected = if cut_in == 1 {
            LiveSound::End
        } else {
            LiveSound::Discard
        };
        assert_eq!(last, Some(expected));
    }
}

/// A provider that goes, or that takes nothing in, costs the words.
#[tokio::test]
async fn who_tells_no_words_any_more_ends_nothing() {
    let (transcript, asked, tell) = teller();
    let mut gone = bench(Some(transcript));
    gone.hear(MicEvent::SpeechEnded(sound(500))).await;
    gone.begun(1).await;
    drop((asked, tell));
    let began = start().plus_millis(-500);
    assert_eq!(gone.next().await, spoke(1, began, UNKNOWN, sound(500)));
    gone.hear(MicEvent::SpeechEnded(sound(500))).await;
    assert_eq!(gone.next().await, spoke(2, began, UNKNOWN, sound(500)));
    assert_eq!(gone.notes()[0].0, "transcription_failed");

    let (input, _full) = mpsc::channel(1);
    let (_tell, events) = mpsc::channel(1);
    let mut full = bench(Some(Transcript {
        provider: "full",
        input,
        events,
    }));
    full.hear(MicEvent::SpeechEnded(sound(500))).await;
    assert_eq!(full.next().await, spoke(1, began, UNKNOWN, sound(500)));
}

/// A bridge drops what nobody takes in: beginnings and ends may be missing.
#[tokio::test]
async fn a_beginning_or_an_end_that_is_missing_holds_nothing_up() {
    let mut bench = bench(None);
    bench.hear(MicEvent::SpeechEnded(sound(500))).await;
    let began = start().plus_millis(-500);
    assert_eq!(bench.next().await, spoke(1, began, UNKNOWN, sound(500)));
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
    bench.begun(2).await;
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
    assert_eq!(bench.begun(3).await, (3, 2));
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    // The one before had no sound.
    let UserInput::Speech { number: 2, said, .. } = bench.next().await else {
        panic!("in their order")
    };
    assert_eq!((said.ms, said.speech.text.as_str()), (0, ""));
    assert_eq!(bench.next().await, spoke(3, start(), UNKNOWN, sound(100)));
}

#[tokio::test]
async fn words_come_in_their_order_and_a_beginning_at_once() {
    let server = TranscriptionServer::start_with(|asked, _| match asked.samples() {
        1_600 => Answer::Words("Ja.".into()),
        _ => Answer::Words(String::new()),
    })
    .await;
    let mut bench = bench(understanding(&server));
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
    assert_eq!(bench.begun(2).await.0, 2, "whatever became of the words before");
    bench.hear(MicEvent::Dtmf("1".into())).await;
    bench.hear(MicEvent::SpeechEnded(sound(200))).await;
    assert_eq!(bench.next().await, spoke(1, start(), "Ja.", sound(100)));
    assert_eq!(bench.next().await, UserInput::Dtmf("1".into()));
    assert_eq!(bench.next().await, spoke(2, start(), "", sound(200)), "no word in it");
    assert_eq!(
        server.asked()[0]
            .fields
            .iter()
            .find(|(name, _)| name == "language")
            .unwrap()
            .1,
        "de"
    );
}

#[tokio::test]
async fn a_provider_that_fails_costs_the_words_and_not_the_talk() {
    let server = TranscriptionServer::start_with(|_, before| match before {
        0 => Answer::Status(400, "I heard something private".into()),
        _ => Answer::Words("Hallo?".into()),
    })
    .await;
    let mut bench = bench(understanding(&server));
    let began = start().plus_millis(-100);
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    assert_eq!(bench.next().await, spoke(1, began, UNKNOWN, sound(100)));
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    assert_eq!(bench.next().await, spoke(2, began, "Hallo?", sound(100)));
    let notes = bench.notes();
    assert_eq!((notes.len(), notes[0].0), (1, "transcription_failed"));
    assert!(!notes[0].1.contains("private"), "{notes:?}");
}

#[tokio::test]
async fn keys_that_nobody_listens_to_leave_room_for_words() {
    let mut bench = bench(None);
    for _ in 0..500 {
        bench.hear(MicEvent::Dtmf("1".into())).await;
        tokio::task::yield_now().await;
    }
    bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
    assert_eq!(bench.begun(1).await.0, 1);
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    let mut keys = 0;
    while let UserInput::Dtmf(_) = bench.next().await {
        keys += 1;
    }
    assert!(keys <= INPUTS, "{keys}");
}

/// However many wait before it, and whether anybody takes them or not.
#[tokio::test]
async fn the_key_by_which_somebody_opts_out_is_never_left_out() {
    let mut bench = bench_with(None, Some("9"));
    for keys in std::iter::repeat_n("1", 500).chain(["9", "9"]) {
        bench.hear(MicEvent::Dtmf(keys.into())).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.user.opted_out.recv().await.as_deref(), Some("9"));
    // The talk is cut off before anybody has looked at it.
    let bench = bench_with(None, Some("9"));
    let screened = bench.screened();
    for keys in std::iter::repeat_n("1", 30).chain(["9"]) {
        bench.hear(MicEvent::Dtmf(keys.into())).await;
    }
    bench.running.abort();
    assert!(bench.running.await.unwrap_err().is_cancelled());
    drop(bench.user);
    let screened = std::mem::take(&mut *screened.lock().unwrap());
    assert_eq!(screened.len(), 1, "{screened:?}");
    assert!(screened[0].1.iter().any(|keys| keys == "[pressed 9]"), "{screened:?}");
}

/// Whatever is known by then of a turn that goes on, once.
#[tokio::test]
async fn what_is_known_when_a_talk_is_cut_off_is_screened() {
    let unfinished = Transcribed::Final("Rufen Sie mich nie wieder an und".into());
    let finished = Transcribed::Final("Rufen Sie mich nie wieder an.".into());
    for (told, pause_ms, kept) in [
        (
            vec![partial(1, "Rufen Sie"), partial(1, "Rufen Sie mich")],
            0,
            &["Rufen Sie mich"][..],
        ),
        (vec![unfinished], 128, &["Rufen Sie mich nie wieder an und"]),
        // It was given to the talk, which keeps it until it is settled.
        (vec![finished], 128, &[]),
        (Vec::new(), 128, &[]),
    ] {
        let (transcript, mut asked, tell) = teller();
        let mut bench = bench(Some(transcript));
        let screened = bench.screened();
        bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
        bench.sound(800, Some(-30.0)).await;
        bench.sound(pause_ms, None).await;
        bench.begun(1).await;
        if pause_ms > 0 {
            while asked.recv().await.unwrap() != Hear::Finalize {}
        }
        let is_given = kept.is_empty() && !told.is_empty();
        for told in told {
            tell.send(told).await.unwrap();
        }
        if is_given {
            bench.next().await;
        }
        bench.running.abort();
        assert!(bench.running.await.unwrap_err().is_cancelled());
        assert!(screened.lock().unwrap().is_empty(), "the talk may have some too");
        drop(bench.user);
        let screened = std::mem::take(&mut *screened.lock().unwrap());
        match kept {
            [] => assert!(screened.is_empty(), "{screened:?}"),
            kept => {
                let kept: Vec<String> = kept.iter().map(|words| words.to_string()).collect();
                assert_eq!(screened, [("Guten Tag.".to_owned(), kept)]);
            }
        }
    }
}

/// It is no word, but it may be the one by which somebody opts out.
#[tokio::test]
async fn a_key_that_is_pressed_right_before_the_end_is_screened() {
    // Nobody has looked at it yet; or it waits behind words that are still to come.
    for waits in [false, true] {
        let (transcript, _asked, _tell) = teller();
        let mut bench = bench(Some(transcript));
        let screened = bench.screened();
        if waits {
            bench.hear(MicEvent::SpeechStarted { number: 1, ago_ms: 0 }).await;
            bench.hear(MicEvent::SpeechEnded(sound(100))).await;
            bench.hear(MicEvent::SpeechStarted { number: 2, ago_ms: 0 }).await;
            assert_eq!(bench.begun(2).await.0, 2);
        }
        bench.hear(MicEvent::Dtmf("9".into())).await;
        while waits && bench.heard.capacity() < bench.heard.max_capacity() {
            tokio::task::yield_now().await;
        }
        bench.running.abort();
        assert!(bench.running.await.unwrap_err().is_cancelled());
        drop(bench.user);
        let screened = std::mem::take(&mut *screened.lock().unwrap());
        let pressed = vec!["[pressed 9]".to_owned()];
        assert_eq!(screened, [("Guten Tag.".to_owned(), pressed)], "{waits}");
    }
}
