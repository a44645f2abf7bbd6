//! Words that somebody tells: what they make of the agent's own, and when they come.
use super::*;

/// Waits until the words are wanted.
async fn wanted(asked: &mut mpsc::Receiver<Hear>) {
    while asked.recv().await.unwrap() != Hear::Finalize {}
}

#[tokio::test]
async fn what_turns_out_to_be_nothing_does_not_stop_the_agent() {
    let (transcript, mut asked, tell) = teller();
    let (mut transport, mut bench) = bench_with(Some(transcript));
    let numbered: Vec<i16> = (1..=16_000).collect();
    let saying = Saying {
        sound: Some(Sound::Whole(Pcm::new(16_000, numbered.clone()))),
        ..say(0, false)
    };
    let (said, played) = both(transport.say(saying), async {
        let mut played = bench.play(10).await;
        bench.begin(304).await;
        bench.until(|speaking| speaking.begun == 1).await;
        // It is noticed a moment later.
        while let Some(frame) = bench.bridge.next_frame() {
            played.extend(frame.samples);
            tokio::task::yield_now().await;
        }
        bench.pause(128).await;
        wanted(&mut asked).await;
        tell.send(Transcribed::Final("Uh-huh.".into())).await.unwrap();
        bench.until(|speaking| speaking.nothing == 1).await;
        let rest = 50 - played.len() / 320;
        played.extend(bench.play(rest).await);
        bench.pause(512).await;
        played
    })
    .await;
    assert_eq!(said, Said::Whole);
    assert_eq!(played, numbered, "not a sample is lost");
    assert!(!transport.is_spoken_over());
    let Event::Aside(aside) = transport.listen().await else {
        panic!("it answers nothing")
    };
    assert_eq!((aside.speech.text.as_str(), aside.ms), ("Uh-huh.", 304 + 96));
}

/// Words that sound finished come before it is known whether they were all; those of the whole turn follow.
#[tokio::test]
async fn words_are_given_before_the_turn_is_over_and_again_if_it_goes_on() {
    let (transcript, mut asked, tell) = teller();
    let (mut transport, bench) = bench_with(Some(transcript));
    assert!(transport.listen().now_or_never().is_none());
    transport.user.listens.store(true, Ordering::Relaxed);
    bench.begin(800).await;
    bench.pause(128).await;
    wanted(&mut asked).await;
    tell.send(Transcribed::Final("On Friday.".into())).await.unwrap();
    let Event::Words(first) = transport.listen().await else {
        panic!()
    };
    let settling = first.settling.unwrap();
    assert_eq!((first.speech.text.as_str(), first.ms), ("On Friday.", 896));
    assert!(settling.clone().is_over().now_or_never().is_none());
    bench.voice(480).await;
    assert!(!settling.is_over().await);
    assert!(transport.is_spoken_over());
    bench.pause(128).await;
    wanted(&mut asked).await;
    tell.send(Transcribed::Final("On Friday. At ten.".into()))
        .await
        .unwrap();
    let Event::Words(all) = transport.listen().await else {
        panic!()
    };
    assert_eq!(
        (all.speech.text.as_str(), all.ms),
        ("On Friday. At ten.", 800 + 128 + 480 + 96)
    );
    assert_eq!(all.speech.audio.map(|sound| sound.ms()), Some(1_504));
    bench.pause(384).await;
    assert!(all.settling.unwrap().is_over().await);
    assert!(!transport.is_spoken_over());
}

/// Somebody speaks while the agent thinks, and the talk is cut off.
#[tokio::test]
async fn what_was_not_listened_to_when_a_talk_is_cut_off_is_screened() {
    let (transcript, mut asked, tell) = teller();
    let (transport, bench) = bench_with(Some(transcript));
    let screened: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = screened.clone();
    let screen = move |_: &str, said: &[String]| into.lock().unwrap().extend_from_slice(said);
    transport.user.last_words.screened_by(Box::new(screen));
    bench.begin(800).await;
    bench.end(0).await;
    wanted(&mut asked).await;
    let words = "Please stop calling me.";
    tell.send(Transcribed::Final(words.into())).await.unwrap();
    while transport.user.inputs.is_empty() {
        tokio::task::yield_now().await;
    }
    drop(transport);
    assert!(
        screened.lock().unwrap().is_empty(),
        "more may be known by who listens to the line"
    );
    drop(bench);
    while screened.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*screened.lock().unwrap(), [words]);
}
