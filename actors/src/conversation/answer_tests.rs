//! A brain that hands over what the test sends, on a line on which as much time passes as the test lets pass.
#[path = "answer_tests/disclosures.rs"]
mod disclosures;
#[path = "answer_tests/fillers.rs"]
mod fillers;
#[path = "answer_tests/open_words.rs"]
mod open_words;

use super::*;
use crate::conversation::{
    Caller, SessionLink,
    bench_tests::answered,
    latency::tests::noting,
    transport::{Due, Event, Overheard, Said, Saying, Voice},
};
use adapters::{
    brain::{Brain, Speech},
    sound::{Pcm, PcmStream, Sound},
};
use entities::{agent::Definition, campaign::AgentSnapshot, ids::AgentId, session::Options, values::E164};
use futures_util::{
    future::{join, ready},
    stream,
};
use rules::conversation::tools::ToolSet;
use runtime::clock::Clock;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, mpsc, oneshot, watch},
    task::{JoinHandle, yield_now},
};
use uuid::Uuid;

/// What has happened, in its order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn count(&self, what: &str) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.starts_with(what))
            .count()
    }

    async fn until(&self, what: &str) {
        while self.count(what) == 0 {
            yield_now().await;
        }
    }
}

/// Whatever can happen without the test has happened.
async fn settled() {
    for _ in 0..200 {
        yield_now().await;
    }
}

type Acts = mpsc::UnboundedReceiver<Result<Act, Failure>>;

struct Mind {
    answers: VecDeque<Acts>,
    log: Log,
}

impl Brain for Mind {
    fn think(&mut self, heard: Heard) -> BoxStream<'_, Result<Act, Failure>> {
        self.log.note(match heard {
            Heard::Opening => "opens".into(),
            Heard::Words(speech) => format!("hears {}", speech.text),
            Heard::Answered { speech, answer } => format!("hears {} after {answer}", speech.text),
            Heard::Results(results) => format!("gets {}", results.len()),
        });
        let Some(acts) = self.answers.pop_front() else {
            return stream::empty().boxed();
        };
        let log = &self.log;
        stream::unfold(acts, move |mut acts| async move {
            let act = acts.recv().await?;
            log.note("hands over".into());
            Some((act, acts))
        })
        .boxed()
    }

    fn interrupted<'a>(&'a mut self, said: &'a str, played_ms: u64) -> BoxFuture<'a, ()> {
        self.log.note(format!("interrupted {said} {played_ms}"));
        ready(()).boxed()
    }

    fn corrected<'a>(&'a mut self, said: &'a str) -> BoxFuture<'a, ()> {
        self.log.note(format!("corrected {said}"));
        ready(()).boxed()
    }

    fn spoken_for<'a>(&'a mut self, words: &'a str) -> BoxFuture<'a, ()> {
        self.log.note(format!("spoken for {words}"));
        ready(()).boxed()
    }

    fn retract(&mut self) -> BoxFuture<'_, ()> {
        self.log.note("retracts".into());
        ready(()).boxed()
    }
}

/// What becomes of each text.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Says,
    /// After so many milliseconds.
    Breaks(usize),
    Nothing,
    /// Nothing, and that for ever.
    Waits,
}

/// Says 50 ms a letter, in tenths of a second; its sound has 1 kHz: a sample is a millisecond.
struct Throat {
    is_streamed: bool,
    does: fn(&str) -> Does,
    log: Log,
}

impl Voice for Throat {
    fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    fn speak(&self, text: String, _: bool, _: Option<Due>) -> BoxFuture<'static, Sound> {
        self.log.note(format!("asked {}", text.trim()));
        let samples = vec![1; 50 * text.trim().chars().count()];
        let does = (self.does)(&text);
        if does == Does::Waits {
            return pending().boxed();
        }
        let length = match does {
            Does::Says => samples.len(),
            Does::Breaks(ms) => ms,
            Does::Nothing | Does::Waits => 0,
        };
        let sound = match self.is_streamed {
            false => Sound::Whole(Pcm::new(1_000, samples)),
            true => {
                let chunks: Vec<Vec<i16>> = samples[..length].chunks(100).map(<[i16]>::to_vec).collect();
                let stream = PcmStream::new(1_000, stream::iter(chunks).boxed());
                stream.broke_off.store(does != Does::Says, Ordering::Relaxed);
                Sound::Stream(stream)
            }
        };
        ready(sound).boxed()
    }
}

struct Line {
    voice: Option<Arc<Throat>>,
    log: Log,
    /// Milliseconds that may pass.
    time: Arc<Semaphore>,
    cut: Arc<Notify>,
    events: mpsc::UnboundedReceiver<Event>,
    asides: mpsc::UnboundedReceiver<Words>,
    stopwatch: Stopwatch,
}

impl Line {
    async fn pass(&self, ms: u64) {
        let ms = u32::try_from(ms).unwrap();
        self.time.acquire_many(ms).await.unwrap().forget();
    }

    async fn play(&self, sound: Option<Sound>, guess: u64, played: &mut u64) {
        match sound {
            None => self.pass(guess).await,
            Some(Sound::Whole(sound)) => self.pass(sound.ms()).await,
            Some(Sound::Stream(mut sound)) => {
                while let Some(samples) = sound.chunks.next().await {
                    self.pass(samples.len() as u64).await;
                    *played += samples.len() as u64;
                }
            }
        }
    }
}

impl CallTransport for Line {
    fn stopwatch(&self) -> Stopwatch {
        self.stopwatch.clone()
    }
    fn voice(&self) -> Option<Arc<dyn Voice>> {
        let voice = self.voice.clone()?;
        Some(voice)
    }
    fn stop(&self) -> Box<dyn Fn() + Send> {
        let cut = self.cut.clone();
        Box::new(move || cut.notify_one())
    }
    fn overheard(&mut self, _: bool) -> Option<Overheard> {
        self.asides.try_recv().ok().map(Overheard::Words)
    }
    fn say<'a>(&'a mut self, saying: Saying<'a>) -> BoxFuture<'a, Said> {
        async move {
            self.log.note(format!("begins {}", saying.text));
            self.stopwatch.sound();
            self.stopwatch.packet();
            let mut played = 0;
            tokio::select! {
                biased;
                () = self.cut.notified() => {}
                () = self.play(saying.sound, saying.ms, &mut played) => return Said::Whole,
            }
            Said::CutInAfter(played)
        }
        .boxed()
    }
    fn listen(&mut self) -> BoxFuture<'_, Event> {
        async { self.events.recv().await.unwrap_or(Event::HungUp) }.boxed()
    }
    fn wanted(&mut self) -> BoxFuture<'_, E164> {
        pending().boxed()
    }
    /// Nobody ever takes over.
    fn hand_over<'a>(&'a mut self, _: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        ready(Err("busy".to_owned())).boxed()
    }
    fn dawdle(&mut self, _: u64) -> BoxFuture<'_, Option<(E164, u64)>> {
        pending().boxed()
    }
}

/// Everything but the talk.
struct Bench {
    log: Log,
    time: Arc<Semaphore>,
    cut: Arc<Notify>,
    clock: Clock,
    events: mpsc::UnboundedSender<Event>,
    /// What is said while nobody listens.
    asides: mpsc::UnboundedSender<Words>,
    /// To each answer of the brain; what is dropped is over.
    answers: VecDeque<mpsc::UnboundedSender<Result<Act, Failure>>>,
}

/// `streamed`: None on a line without sound.
fn bench(streamed: Option<bool>, does: fn(&str) -> Does, answers: usize) -> (Conversation<Line>, Bench) {
    bench_of(Options::default(), streamed, does, answers)
}

fn bench_of(
    options: Options,
    streamed: Option<bool>,
    does: fn(&str) -> Does,
    answers: usize,
) -> (Conversation<Line>, Bench) {
    let (log, time, cut) = (Log::default(), Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (events, heard) = mpsc::unbounded_channel();
    let (asides, overheard) = mpsc::unbounded_channel();
    let (senders, receivers): (VecDeque<_>, VecDeque<_>) = (0..answers).map(|_| mpsc::unbounded_channel()).unzip();
    let line = Line {
        voice: streamed.map(|is_streamed| {
            let log = log.clone();
            Arc::new(Throat { is_streamed, does, log })
        }),
        log: log.clone(),
        time: time.clone(),
        cut: cut.clone(),
        events: heard,
        asides: overheard,
        stopwatch: Stopwatch::default(),
    };
    let mind = Mind {
        answers: receivers,
        log: log.clone(),
    };
    let definition: Definition = serde_json::from_value(serde_json::json!({ "name": "Ann", "prompt": "x" })).unwrap();
    let tool_set = ToolSet::new(&definition, Vec::new(), &[], None);
    let agent = AgentSnapshot {
        id: AgentId(Uuid::from_u128(3)),
        version: 1,
        definition,
    };
    let session_link = answered(options);
    let SessionLink::Dry(session, now) = &session_link else {
        unreachable!()
    };
    let (call, clock) = (session.call.clone(), Clock::manual(*now));
    let speech_out = SpeechOut::new(session_link, line);
    let caller = Caller::Stubbed(BTreeMap::new());
    let mut talk = Conversation::new(speech_out, Box::new(mind), call, Arc::new(agent), tool_set, caller);
    talk.moments = Moments::new(Some(clock.clone()));
    let bench = Bench {
        log,
        time,
        cut,
        clock,
        events,
        asides,
        answers: senders,
    };
    (talk, bench)
}

fn words(text: &str, settling: Option<Settling>) -> Words {
    Words {
        speech: Speech {
            text: text.to_owned(),
            audio: None,
        },
        settling,
        ..Words::now(String::new())
    }
}

/// The talk is held.
struct Stage {
    bench: Bench,
    talk: JoinHandle<SpeechOut<Line>>,
}

fn says(_: &str) -> Does {
    Does::Says
}

fn stage(streamed: Option<bool>, does: fn(&str) -> Does, answers: usize) -> Stage {
    let (talk, bench) = bench(streamed, does, answers);
    let talk = tokio::spawn(talk.hold());
    Stage { bench, talk }
}

impl Stage {
    /// In the answer of the moment.
    fn act(&self, act: Result<Act, Failure>) {
        self.bench.answers[0].send(act).unwrap();
    }

    fn say(&self, text: &str) {
        let text = text.to_owned();
        self.act(Ok(Act::Say { text, audio: None }));
    }

    fn call(&self, name: &str) {
        let (id, name, arguments) = ("call_1".to_owned(), name.to_owned(), "{}".to_owned());
        self.act(Ok(Act::Call { id, name, arguments }));
    }

    /// The brain has nothing more to say to what it heard.
    fn done(&mut self) {
        self.bench.answers.pop_front();
    }

    fn hear(&self, text: &str, settling: Option<Settling>) {
        self.bench.events.send(Event::Words(words(text, settling))).unwrap();
    }

    fn pass(&self, ms: usize) {
        self.bench.time.add_permits(ms);
    }

    /// Until all of the time that may pass has passed; then somebody cuts in.
    async fn cut_in(&self) {
        settled().await;
        assert_eq!(self.bench.time.available_permits(), 0);
        self.bench.cut.notify_one();
    }

    /// The other side hangs up, and all is said that is being said. Answers the transcript, and how it ended.
    async fn end(self) -> (Vec<String>, String) {
        let Stage { bench, talk } = self;
        bench.time.add_permits(1_000_000);
        drop((bench.events, bench.answers));
        let speech_out = talk.await.unwrap();
        let SessionLink::Dry(session, _) = speech_out.session_link else {
            unreachable!()
        };
        let said = session.log.turns.iter().filter_map(|turn| turn.content.clone());
        (said.collect(), format!("{:?}", session.phase))
    }
}

#[tokio::test]
async fn what_follows_is_made_while_the_first_is_heard() {
    let mut stage = stage(Some(true), says, 1);
    stage.say("Good morning to you.");
    stage.say("How are you?");
    stage.bench.log.until("asked How are you?").await;
    assert_eq!(stage.bench.log.count("begins Good morning to you."), 1);
    settled().await;
    assert_eq!(stage.bench.log.count("begins How"), 0, "one after the other");
    stage.pass(1_000);
    stage.bench.log.until("begins How are you?").await;
    stage.done();
    assert_eq!(stage.end().await.0, ["Good morning to you.", "How are you?"]);
}

/// A flood of words is taken as it is said, and no further ahead than a few sentences.
#[tokio::test]
async fn only_so_much_is_asked_for_ahead() {
    let stage = stage(Some(true), says, 1);
    for nth in 0..12 {
        stage.say(&format!("This is sentence {nth}."));
    }
    settled().await;
    let count = |what: &str| stage.bench.log.count(what);
    assert_eq!((count("hands over"), count("asked"), count("begins")), (5, 3, 1));
    // 19 letters.
    stage.pass(950);
    stage.bench.log.until("begins This is sentence 1.").await;
    settled().await;
    assert_eq!((count("hands over"), count("asked"), count("begins")), (6, 4, 2));
    assert_eq!(stage.end().await.0.len(), 12, "all of it is said");
}

#[tokio::test]
async fn a_clause_is_heard_before_its_sentence_is_known_and_both_are_one_utterance() {
    let mut stage = stage(Some(true), says, 1);
    stage.say("I can certainly do that today,");
    stage.bench.log.until("begins I can certainly do that today,").await;
    stage.pass(1_500);
    settled().await;
    stage.say("if you tell me your name.");
    stage.bench.log.until("asked if you tell me your name.").await;
    stage.say("Who are you?");
    stage.done();
    let log = stage.bench.log.clone();
    let (said, _) = stage.end().await;
    assert_eq!(
        said,
        [
            "I can certainly do that today, if you tell me your name.",
            "Who are you?"
        ]
    );
    assert_eq!(log.count("begins"), 2);
}

/// Nothing would be gained: their sound is made at once, or there is none.
#[tokio::test]
async fn a_clause_waits_for_its_sentence_where_sound_is_not_streamed() {
    for streamed in [Some(false), None] {
        let mut stage = stage(streamed, says, 1);
        stage.say("I can certainly do that today,");
        settled().await;
        assert_eq!(stage.bench.log.count("asked") + stage.bench.log.count("begins"), 0);
        stage.say("if you tell me your name.");
        stage
            .bench
            .log
            .until("begins I can certainly do that today, if you tell")
            .await;
        stage.done();
        assert_eq!(
            stage.end().await.0,
            ["I can certainly do that today, if you tell me your name."]
        );
    }
    // One that nothing follows is said.
    let mut stage = stage(None, says, 1);
    stage.say("I can certainly do that today,");
    stage.done();
    assert_eq!(stage.end().await.0, ["I can certainly do that today,"]);
}

#[tokio::test]
async fn a_long_text_is_asked_for_in_pieces_and_stays_one_utterance() {
    let text =
        "I can certainly do that today, if I may. Yes. No. Then we need your name, and your number. That is all.";
    let mut stage = stage(Some(true), says, 1);
    stage.say(text);
    stage.done();
    let log = stage.bench.log.clone();
    assert_eq!(stage.end().await.0, [text]);
    for asked in [
        "asked I can certainly do that today,",
        "asked if I may. Yes. No. Then we need your name, and your number. That is all.",
    ] {
        assert_eq!(log.count(asked), 1, "{asked}");
    }
    assert_eq!((log.count("asked"), log.count("begins")), (2, 1));
}

/// Over all pieces of an utterance; what was made ahead is thrown away.
#[tokio::test]
async fn who_cuts_in_heard_so_much_and_nothing_of_what_follows() {
    let stage = stage(Some(true), says, 1);
    stage.say("I can certainly do that today,");
    stage.say("if you tell me your name.");
    stage.say("Who are you?");
    stage.call("end_call");
    stage.act(Err(Failure::Provider("it broke".into())));
    stage.pass(2_100);
    stage.cut_in().await;
    let heard = "I can certainly do that today, if you tel";
    stage.bench.log.until(&format!("interrupted {heard} 2100")).await;
    stage.hear("Wait!", None);
    stage.bench.log.until("hears Wait!").await;
    let (said, phase) = stage.end().await;
    assert_eq!(said, [heard, "Wait!"]);
    assert!(
        !phase.contains("ProviderError"),
        "it was not there yet when they cut in: {phase}"
    );
}

#[tokio::test]
async fn a_failure_comes_after_the_words_that_are_ready() {
    let stage = stage(Some(true), says, 1);
    stage.say("Good morning to you.");
    stage.say("How are you?");
    stage.act(Err(Failure::Provider("it broke".into())));
    settled().await;
    assert_eq!(stage.bench.log.count("begins"), 1);
    let (said, phase) = stage.end().await;
    assert_eq!(said[..2], ["Good morning to you.", "How are you?"]);
    assert_eq!((said.len(), said[2].contains("technical problem")), (3, true));
    assert!(phase.contains("ProviderError"), "{phase}");
}

#[tokio::test]
async fn a_voice_that_breaks_off_has_said_what_was_heard() {
    let does = |text: &str| match text.starts_with("Good") {
        true => Does::Breaks(1_000),
        false => Does::Says,
    };
    let mut stage = stage(Some(true), does, 1);
    stage.say("Good morning to you my friend.");
    stage.say("How are you?");
    stage.done();
    let log = stage.bench.log.clone();
    // 30 letters, which would have taken 1,650 ms by a guess.
    assert_eq!(stage.end().await.0, ["Good morning to yo", "How are you?"]);
    assert_eq!(log.count("interrupted Good morning to yo How are you? 1600"), 1);
}

#[tokio::test]
async fn a_talk_that_nobody_can_speak_in_ends() {
    let mut stage = stage(Some(true), |_| Does::Nothing, 1);
    stage.say("Good morning to you.");
    stage.say("How are you?");
    stage.done();
    let log = stage.bench.log.clone();
    let (_, phase) = stage.end().await;
    assert!(phase.contains("ProviderError"), "{phase}");
    assert_eq!(log.count("begins How"), 0);
}

/// Sound of a brain that speaks by itself, and what is known of its words.
fn live() -> (mpsc::UnboundedSender<Vec<i16>>, watch::Sender<String>, Act) {
    let (make, made) = mpsc::unbounded_channel();
    let (tell, words) = watch::channel(String::new());
    let chunks = stream::unfold(made, |mut made: mpsc::UnboundedReceiver<Vec<i16>>| async move {
        Some((made.recv().await?, made))
    });
    let sound = PcmStream::new(1_000, chunks.boxed());
    (make, tell, Act::Speak { sound, words })
}

#[tokio::test]
async fn who_speaks_by_itself_is_heard_as_it_comes_and_asked_for_more() {
    let mut stage = stage(Some(true), says, 1);
    let (make, tell, act) = live();
    stage.act(Ok(act));
    stage.bench.log.until("begins").await;
    for nth in 0..8 {
        stage.say(&format!("This is sentence {nth}."));
    }
    settled().await;
    assert_eq!(
        stage.bench.log.count("hands over"),
        9,
        "more of the first comes only so"
    );
    make.send(vec![1; 300]).unwrap();
    stage.pass(300);
    tell.send_replace("It is noon.".into());
    drop((make, tell));
    stage.bench.log.until("begins This is sentence 0.").await;
    stage.done();
    let (said, _) = stage.end().await;
    assert_eq!((said.len(), said[0].as_str()), (9, "It is noon."));
}

#[tokio::test]
async fn words_that_are_known_after_their_sound_take_their_place() {
    for (words, content) in [("It is noon.", "It is noon."), ("", "[speech]")] {
        let mut stage = stage(Some(true), says, 1);
        let (make, tell, act) = live();
        stage.act(Ok(act));
        make.send(vec![1; 300]).unwrap();
        drop(make);
        stage.pass(300);
        stage.say("Good.");
        stage.bench.log.until("begins Good.").await;
        tell.send_replace(words.into());
        drop(tell);
        stage.done();
        assert_eq!(stage.end().await.0, [content, "Good."]);
    }
}

#[tokio::test]
async fn who_cuts_in_on_one_that_speaks_by_itself_heard_so_much_of_its_words() {
    let stage = stage(Some(true), says, 1);
    let (make, tell, act) = live();
    stage.act(Ok(act));
    tell.send_replace("It takes exactly four weeks.".into());
    for _ in 0..10 {
        make.send(vec![1; 100]).unwrap();
    }
    stage.pass(700);
    stage.cut_in().await;
    // 28 letters, 1,540 ms by a guess.
    stage.bench.log.until("interrupted It takes exa 700").await;
    settled().await;
    assert!(make.is_closed(), "nobody waits for more");
    assert_eq!(stage.end().await.0, ["It takes exa"]);
}
