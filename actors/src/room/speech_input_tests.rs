#[expect(dead_code, reason = "the rest of it is used by others")]
#[path = "../../../tests/it/world/transcription_server.rs"]
mod transcription_server;

use super::*;
use adapters::transcription::Kind;
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

/// The speech input runs beside the test until it is over.
fn bench(transcription: Option<Provider>) -> Bench {
    let clock = Clock::manual(start());
    let (heard, listen) = mpsc::channel(64);
    let told: Arc<Mutex<Vec<Command>>> = Arc::default();
    let into = told.clone();
    let tell: Tell = Arc::new(move |command| into.lock().unwrap().push(command));
    let (speech_input, user) = SpeechInput::new(clock.clone(), transcription, "de-DE", tell, listen);
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
    async fn next(&mut self) -> UserInput {
        self.user.inputs.recv().await.unwrap()
    }
    /// Waits until so many have begun.
    async fn begun(&mut self, begun: u64) -> Speaking {
        *self
            .user
            .speaking
            .wait_for(|speaking| speaking.begun >= begun)
            .await
            .unwrap()
    }
}

fn sound(ms: usize) -> Pcm {
    Pcm::new(16_000, vec![1_000; ms * 16])
}

fn spoke(number: u64, began: Moment, text: &str, sound: Pcm) -> UserInput {
    let speech = speech(text.to_owned(), sound);
    let later = None;
    UserInput::Speech {
        number,
        began,
        speech,
        later,
    }
}

async fn understanding(server: &TranscriptionServer) -> Option<Provider> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Some(Provider::new(Kind::Openai, &server.url(), None, "ear").unwrap())
}

#[tokio::test]
async fn somebody_begins_speaks_and_is_heard() {
    let mut bench = bench(None);
    bench.hear(MicEvent::SpeechStarted { ago_ms: 0 }).await;
    assert_eq!(bench.begun(1).await, Speaking { begun: 1, over: 0 });
    assert_eq!(
        *bench.told.lock().unwrap(),
        [Command::UserSpeaking {
            until: start().plus_seconds(45)
        }]
    );
    bench.clock.set(start().plus_seconds(3));
    bench.hear(MicEvent::SpeechEnded(sound(2_000))).await;
    assert_eq!(bench.next().await, spoke(1, start(), UNKNOWN, sound(2_000)));
    assert_eq!(bench.begun(1).await, Speaking { begun: 1, over: 1 });
    bench.hear(MicEvent::Dtmf("5#".into())).await;
    assert_eq!(bench.next().await, UserInput::Dtmf("5#".into()));
}

/// Its sound is older than the notice: a stamp of its own time would put what is said after what it cut in on.
#[tokio::test]
async fn an_utterance_began_when_its_sound_did() {
    let mut bench = bench(None);
    bench.hear(MicEvent::SpeechStarted { ago_ms: 352 }).await;
    assert_eq!(bench.begun(1).await, Speaking { begun: 1, over: 0 });
    let until = start().plus_seconds(45);
    assert_eq!(*bench.told.lock().unwrap(), [Command::UserSpeaking { until }]);
    bench.clock.set(start().plus_seconds(2));
    bench.hear(MicEvent::SpeechEnded(sound(1_500))).await;
    let began = start().plus_millis(-352);
    assert_eq!(bench.next().await, spoke(1, began, UNKNOWN, sound(1_500)));
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
    let mut bench = bench(understanding(&server).await);
    bench.user.sound_first.store(true, Ordering::Relaxed);
    let mut later = Vec::new();
    for number in 1..=3 {
        bench.hear(MicEvent::SpeechEnded(sound(100))).await;
        let UserInput::Speech {
            number: of,
            speech,
            later: Some(words),
            ..
        } = bench.next().await
        else {
            panic!("it waits for its words")
        };
        assert_eq!(
            (of, speech.text.as_str(), speech.audio),
            (number, UNKNOWN, Some(sound(100)))
        );
        while server.asked().len() < usize::try_from(number).unwrap() {
            tokio::task::yield_now().await;
        }
        later.push(words);
    }
    assert!(later[0].clone().known().now_or_never().is_none());
    // The others do not wait for the first.
    assert_eq!(later[1].clone().known().await.words, "");
    assert_eq!(later[2].clone().known().await.words, UNKNOWN);
    open.send(true).unwrap();
    assert_eq!(later[0].clone().known().await.words, "Ja.");
}

/// A bridge drops what nobody takes in: beginnings and ends may be missing.
#[tokio::test]
async fn a_beginning_or_an_end_that_is_missing_holds_nothing_up() {
    let mut bench = bench(None);
    bench.hear(MicEvent::SpeechEnded(sound(500))).await;
    let began = start().plus_millis(-500);
    assert_eq!(bench.next().await, spoke(1, began, UNKNOWN, sound(500)));
    bench.hear(MicEvent::SpeechStarted { ago_ms: 0 }).await;
    bench.begun(2).await;
    bench.hear(MicEvent::SpeechStarted { ago_ms: 0 }).await;
    assert_eq!(bench.begun(3).await, Speaking { begun: 3, over: 2 });
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    assert_eq!(bench.next().await, spoke(3, start(), UNKNOWN, sound(100)));
}

#[tokio::test]
async fn words_come_in_their_order_and_a_beginning_at_once() {
    let server = TranscriptionServer::start_with(|asked, _| match asked.samples() {
        1_600 => Answer::Words("Ja.".into()),
        _ => Answer::Words(String::new()),
    })
    .await;
    let mut bench = bench(understanding(&server).await);
    bench.hear(MicEvent::SpeechStarted { ago_ms: 0 }).await;
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    bench.hear(MicEvent::Dtmf("1".into())).await;
    bench.hear(MicEvent::SpeechStarted { ago_ms: 0 }).await;
    assert_eq!(bench.begun(2).await.begun, 2, "whatever became of the words before");
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
    let mut bench = bench(understanding(&server).await);
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    assert_eq!(
        bench.next().await,
        spoke(1, start().plus_millis(-100), UNKNOWN, sound(100))
    );
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    assert_eq!(
        bench.next().await,
        spoke(2, start().plus_millis(-100), "Hallo?", sound(100))
    );
    let notes: Vec<_> = bench
        .told
        .lock()
        .unwrap()
        .iter()
        .filter_map(|command| match command {
            Command::Note { kind, detail } => Some((*kind, detail.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        notes,
        [(
            "transcription_failed",
            "the provider failed: it answered 400".to_owned()
        )]
    );
}

#[tokio::test]
async fn keys_that_nobody_listens_to_leave_room_for_words() {
    let mut bench = bench(None);
    for _ in 0..500 {
        bench.hear(MicEvent::Dtmf("1".into())).await;
        tokio::task::yield_now().await;
    }
    bench.hear(MicEvent::SpeechStarted { ago_ms: 0 }).await;
    assert_eq!(bench.begun(1).await.begun, 1);
    bench.hear(MicEvent::SpeechEnded(sound(100))).await;
    let mut keys = 0;
    while let UserInput::Dtmf(_) = bench.next().await {
        keys += 1;
    }
    assert!(keys <= INPUTS, "{keys}");
}
