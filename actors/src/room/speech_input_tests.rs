#[path = "../../../tests/it/world/http_head.rs"]
mod http_head;
#[path = "../../../tests/it/world/local_listener.rs"]
mod local_listener;
#[expect(dead_code, reason = "the rest of it is used by others")]
#[path = "../../../tests/it/world/transcription_server.rs"]
mod transcription_server;

use super::*;
use adapters::{
    brain::Speech,
    speech::SpeechError,
    transcription::{Ask, Failure, Hear, Kind, Provider, Transcribed},
};
use futures_util::FutureExt;
use rules::turn::vocabulary;
use std::sync::Mutex;
use transcription_server::{Answer, TranscriptionServer};

fn start() -> Moment {
    Moment::from_millis(1_000_000)
}

struct Bench {
    clock: Clock,
    heard: mpsc::Sender<MicEvent>,
    user: UserInputs,
    told: Arc<Mutex<Vec<Command>>>,
}

fn settings() -> Settings {
    Settings {
        by_provider: false,
        silence_ms: 500,
        unfinished_ms: 1_400,
        eager: true,
        min_voice_ms: 200,
        min_words: 0,
        margin_db: 20.0,
        resumes: true,
        vocabulary: vocabulary::of("de"),
    }
}

/// The speech input runs beside the test until it is over; the agent listens.
fn bench(transcript: Option<Transcript>) -> Bench {
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
    let (speech_input, user) = SpeechInput::new(clock.clone(), settings(), source, tell);
    user.listens.store(true, Ordering::Relaxed);
    tokio::spawn(speech_input.run());
    Bench {
        clock,
        heard,
        user,
        told,
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
}

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

/// Who tells words, by hand.
fn teller() -> (Transcript, mpsc::Receiver<Hear>, mpsc::Sender<Transcribed>) {
    let (input, asked) = mpsc::channel(1_024);
    let (tell, events) = mpsc::channel(16);
    let provider = "teller";
    let transcript = Transcript {
        provider,
        input,
        events,
    };
    (transcript, asked, tell)
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
    let (speech_input, mut user) = SpeechInput::new(Clock::manual(start()), settings(), source, tell);
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
