//! A clock that stands still but for what each test moves.
use super::*;
use entities::values::Moment;

struct Bench {
    stopwatch: Stopwatch,
    clock: Clock,
    told: Told,
}

/// What was measured, in words.
pub(crate) type Told = Arc<Mutex<Vec<String>>>;

pub(crate) fn noting(clock: &Clock) -> (Stopwatch, Told) {
    let told = Told::default();
    let into = told.clone();
    let names = Names {
        transcription: Some("openai"),
        brain: "chat",
    };
    let stopwatch = Stopwatch::new(clock.clone(), names, move |command| match command {
        Command::Measure(marks) => into.lock().unwrap().push(marks.to_string()),
        other => panic!("{other:?}"),
    });
    (stopwatch, told)
}

fn bench() -> Bench {
    let clock = Clock::manual(Moment::from_millis(1_000_000));
    let (stopwatch, told) = noting(&clock);
    Bench { stopwatch, clock, told }
}

impl Bench {
    async fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms)).await;
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn each_stage_is_marked_once_and_the_first_packet_tells_all_of_them() {
    let bench = bench();
    let watch = &bench.stopwatch;
    watch.ended(1, Duration::from_millis(592));
    bench.pass(150).await;
    watch.understood(1);
    watch.answering(1);
    bench.pass(350).await;
    watch.token();
    bench.pass(100).await;
    watch.clause();
    watch.voice("piper");
    bench.pass(90).await;
    watch.sound();
    bench.pass(10).await;
    assert_eq!(bench.told(), [""; 0]);
    for _ in 0..3 {
        watch.packet();
        bench.pass(20).await;
        watch.clause();
        watch.sound();
    }
    let whole = "endpoint 592 ms, text 742 ms, token 1092 ms, clause 1192 ms, sound 1282 ms, packet 1292 ms";
    assert_eq!(bench.told(), [whole], "the answer's other sentences are none of it");
}

#[tokio::test]
async fn whoever_tells_nothing_of_its_first_token_has_begun_with_its_first_words() {
    let bench = bench();
    let watch = &bench.stopwatch;
    watch.ended(1, Duration::from_millis(600));
    watch.answering(1);
    bench.pass(300).await;
    watch.clause();
    watch.sound();
    watch.packet();
    // Words that are known later are no part of it any more.
    watch.understood(1);
    let whole = "endpoint 600 ms, token 900 ms, clause 900 ms, sound 900 ms, packet 900 ms";
    assert_eq!(bench.told(), [whole]);
}

#[tokio::test]
async fn what_is_not_answered_is_not_measured() {
    let bench = bench();
    let watch = &bench.stopwatch;
    let quiet = Duration::from_millis(600);
    // Nobody has spoken: the agent greets, or says what the API wants.
    watch.clause();
    watch.packet();
    // It was listened to, and nothing was said to it.
    watch.ended(1, quiet);
    watch.answering(1);
    watch.listening();
    bench.pass(5_000).await;
    watch.packet();
    // Keys were pressed, or somebody spoke of whom nobody knows when the end was.
    watch.answering(2);
    watch.packet();
    assert_eq!(bench.told(), [""; 0]);
    // Somebody went on before anything was heard of the answer.
    watch.ended(3, quiet);
    watch.answering(3);
    watch.clause();
    bench.pass(1_000).await;
    watch.ended(4, quiet);
    watch.answering(4);
    bench.pass(50).await;
    watch.clause();
    watch.packet();
    assert_eq!(
        bench.told(),
        ["endpoint 600 ms, token 650 ms, clause 650 ms, packet 650 ms"]
    );
}

/// A pause that seemed to be the end: what counts is the real one.
#[tokio::test]
async fn a_turn_that_goes_on_ends_anew() {
    let bench = bench();
    let watch = &bench.stopwatch;
    watch.ended(1, Duration::from_millis(300));
    watch.answering(1);
    watch.clause();
    bench.pass(2_000).await;
    watch.ended(1, Duration::from_millis(500));
    watch.packet();
    assert_eq!(
        bench.told(),
        ["endpoint 500 ms, packet 500 ms"],
        "what was thought before it is not believed"
    );
}

#[tokio::test]
async fn many_turns_that_nobody_answers_are_forgotten() {
    let bench = bench();
    let watch = &bench.stopwatch;
    for number in 1..=100 {
        watch.ended(number, Duration::from_millis(600));
    }
    assert_eq!(watch.0.as_ref().unwrap().turns().heard.len(), HEARD);
    watch.answering(1);
    watch.packet();
    assert_eq!(bench.told(), [""; 0]);
    watch.answering(99);
    watch.packet();
    assert_eq!(bench.told(), ["endpoint 600 ms, packet 600 ms"]);
    let left = |watch: &Stopwatch| watch.0.as_ref().unwrap().turns().heard.len();
    assert_eq!(left(watch), 1, "what is older is answered with it");
}

/// Whatever the wall clock does, time passes as it passes.
#[tokio::test]
async fn a_wall_clock_that_is_set_changes_nothing() {
    for step_ms in [-3_600_000, 3_600_000, 90_000] {
        let bench = bench();
        let watch = &bench.stopwatch;
        watch.ended(1, Duration::from_millis(600));
        watch.answering(1);
        bench.clock.step_wall(step_ms);
        bench.pass(100).await;
        watch.packet();
        assert_eq!(bench.told(), ["endpoint 600 ms, packet 700 ms"], "{step_ms}");
    }
    let bench = bench();
    let watch = &bench.stopwatch;
    watch.ended(1, Duration::from_millis(600));
    watch.answering(1);
    bench.pass(120_000).await;
    watch.packet();
    assert_eq!(bench.told(), [""; 0], "nobody waited for that");
}

#[test]
fn a_line_that_carries_no_sound_measures_nothing() {
    let watch = Stopwatch::default();
    watch.ended(1, Duration::ZERO);
    watch.answering(1);
    watch.packet();
    assert!(watch.0.is_none());
}
