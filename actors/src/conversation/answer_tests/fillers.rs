//! A moment is asked for while the brain thinks, and while a function works.
use super::*;

#[tokio::test]
async fn a_brain_that_thinks_for_long_is_bridged_once() {
    let mut stage = stage(Some(true), says, 2);
    stage.done();
    stage.hear("What time is it?", None);
    stage.bench.log.until("hears What time is it?").await;
    settled().await;
    let clock = stage.bench.clock.clone();
    clock.advance(Duration::from_millis(1_499)).await;
    settled().await;
    assert_eq!(stage.bench.log.count("begins"), 0);
    clock.advance(Duration::from_millis(1)).await;
    stage.bench.log.until("begins One moment, please.").await;
    stage.pass(950);
    clock.advance(Duration::from_secs(60)).await;
    settled().await;
    assert_eq!(stage.bench.log.count("begins"), 1);
    stage.say("It is noon.");
    stage.done();
    let log = stage.bench.log.clone();
    assert_eq!(
        stage.end().await.0,
        ["What time is it?", "One moment, please.", "It is noon."]
    );
    assert_eq!(log.count("interrupted"), 0);
}

/// Who would ask for a moment may be slow, too.
#[tokio::test]
async fn an_answer_does_not_wait_for_who_asks_for_a_moment() {
    let does = |text: &str| match text.starts_with("One moment") {
        true => Does::Waits,
        false => Does::Says,
    };
    let mut stage = stage(Some(true), does, 2);
    stage.done();
    stage.hear("What time is it?", None);
    stage.bench.log.until("hears What time is it?").await;
    settled().await;
    stage.bench.clock.advance(Duration::from_millis(1_500)).await;
    stage.bench.log.until("asked One moment").await;
    stage.say("It is noon.");
    stage.done();
    assert_eq!(stage.end().await.0, ["What time is it?", "It is noon."]);
}

#[tokio::test]
async fn while_a_function_works_a_moment_is_asked_for() {
    let (mut talk, bench) = bench(Some(true), says, 0);
    bench.time.add_permits(1_000_000);
    let (finish, work) = oneshot::channel();
    let functions = async {
        for (ms, moments) in [(549, 0), (1, 1), (7_999, 1), (1, 2)] {
            settled().await;
            bench.clock.advance(Duration::from_millis(ms)).await;
            settled().await;
            assert_eq!(bench.log.count("begins"), moments, "after {ms} ms");
        }
        finish.send(7).unwrap();
    };
    let (done, ()) = join(talk.beside(work), functions).await;
    assert_eq!(done.unwrap(), Ok(7));
    let log = &bench.log;
    assert_eq!(
        (
            log.count("begins One moment, please."),
            log.count("begins I am still working")
        ),
        (1, 1)
    );
    // One that is fast is not commented on.
    let done = join(talk.beside(ready(8)), settled()).await.0;
    assert_eq!((done.unwrap(), log.count("begins")), (8, 2));
}

/// What is said while a function works answers nothing: the first word after it does.
#[tokio::test]
async fn a_filler_while_a_function_works_is_not_measured() {
    let (mut talk, bench) = bench(Some(true), says, 0);
    bench.time.add_permits(1_000_000);
    let (stopwatch, told) = noting(&bench.clock);
    talk.speech_out.transport.stopwatch = stopwatch.clone();
    stopwatch.ended(1, Duration::from_millis(600));
    stopwatch.answering(1);
    let (finish, work) = oneshot::channel();
    let function = async {
        for (ms, fillers) in [(600, 1), (8_000, 2)] {
            settled().await;
            bench.clock.advance(Duration::from_millis(ms)).await;
            settled().await;
            assert_eq!(bench.log.count("begins"), fillers);
        }
        finish.send(7).unwrap();
    };
    let (done, ()) = join(talk.beside(work), function).await;
    assert_eq!((done.unwrap(), told.lock().unwrap().len()), (Ok(7), 0));
    talk.speech_out.say("It is booked.", None).await;
    assert_eq!(
        *told.lock().unwrap(),
        ["endpoint 600 ms, sound 9200 ms, packet 9200 ms"]
    );
}
