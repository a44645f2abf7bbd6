//! How soon an answer is sent, and what is none.
use super::*;
use crate::conversation::latency::tests::{Told, noting};

fn timed(transport: VoiceTransport, bench: &Bench) -> (VoiceTransport, Stopwatch, Told) {
    let (stopwatch, told) = noting(&bench.clock);
    let first_frame = stopwatch.clone();
    bench.bridge.on_first_frame(move || first_frame.packet());
    (transport.timed_by(stopwatch.clone()), stopwatch, told)
}

/// By what was listened to and what was taken of the answer; its sound may come whole or piece by piece.
#[tokio::test]
async fn an_answer_is_measured_when_the_first_of_it_is_taken() {
    let (transport, mut bench) = bench();
    let (mut transport, stopwatch, told) = timed(transport, &bench);
    for number in [1, 2] {
        stopwatch.ended(number, Duration::from_millis(600));
        bench.speak(500).await;
        assert!(matches!(transport.listen().await, Event::Words(_)));
        bench.clock.set(bench.clock.now().plus_millis(100));
        let voice = transport.voice().unwrap();
        drop(voice.speak("Hm.".into(), false, None).await);
        if number == 1 {
            both(transport.say(say(40, false)), bench.play(2)).await;
            continue;
        }
        let (saying, make) = say_what_comes(false);
        both(transport.say(saying), async {
            make.send(vec![1; 320]).unwrap();
            drop(make);
            bench.play(1).await
        })
        .await;
    }
    let whole = "endpoint 600 ms, sound 700 ms, packet 700 ms";
    assert_eq!(*told.lock().unwrap(), [whole; 2]);
}

/// A moment that is asked for before the words is none of the answer, whoever asks for it.
#[tokio::test]
async fn who_asks_for_a_moment_has_not_answered() {
    let (transport, mut bench) = bench();
    let (mut transport, stopwatch, told) = timed(transport, &bench);
    stopwatch.ended(1, Duration::from_millis(600));
    bench.speak(500).await;
    assert!(matches!(transport.listen().await, Event::Words(_)));
    // The brain takes its time, and then the voice.
    stopwatch.fill(true);
    both(transport.say(say(40, false)), bench.play(2)).await;
    stopwatch.fill(false);
    let (saying, make) = say_what_comes(false);
    if let Some(Sound::Stream(stream)) = &saying.sound {
        stream.lead.store(640, Ordering::Relaxed);
    }
    both(transport.say(saying), async {
        make.send(vec![1; 640]).unwrap();
        bench.play(2).await;
        assert!(told.lock().unwrap().is_empty());
        bench.clock.set(bench.clock.now().plus_millis(900));
        make.send(vec![2; 320]).unwrap();
        drop(make);
        while told.lock().unwrap().is_empty() {
            bench.play(1).await;
            // Until it has come there is a pause, which is played as well.
            tokio::task::yield_now().await;
        }
    })
    .await;
    let answered = "endpoint 600 ms, sound 1500 ms, packet 1500 ms";
    assert_eq!(*told.lock().unwrap(), [answered]);
}
