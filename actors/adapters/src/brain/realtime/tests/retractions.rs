//! Words that were not said to their end are taken back, and with them what was made of them.
use super::*;

fn asking() -> (RealtimeServer, Turns) {
    noting(|_, nth| match nth {
        0 => Reply::SayAndCalls("For how many?".into(), calls(2)),
        _ => Reply::Say("Done.".into()),
    })
}

#[tokio::test]
async fn the_model_has_never_heard_them() {
    // Before anything of the answer was there, in its middle, and when all of it was.
    for played_ms in [0, 20, 780] {
        let (server, turns) = asking();
        let mut brain = brain(&server);
        let mut listening = Listening::to(&mut brain, words("I would like"));
        listening.play_ms(played_ms).await;
        while played_ms == 780 && listening.step().await {}
        drop(listening);
        brain.retract().await;
        // Twice is once.
        brain.retract().await;
        let did = turn(&mut brain, words("I would like a table")).await;
        let expected = match played_ms {
            // It was not even asked.
            0 => vec![say("For how many?"), call(1), call(2)],
            _ => vec![say("Done.")],
        };
        assert_eq!(did.unwrap(), expected, "{played_ms}");
        assert_eq!(known(&turns), ["user: I would like a table"], "{played_ms}");
        assert_eq!(refusals(&server), Vec::<Value>::new(), "{played_ms}");
    }
}

#[tokio::test]
async fn their_sound_is_taken_back_too() {
    let (server, turns) = asking();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    let whole = |ms: usize| {
        let audio = Some(Pcm::new(16_000, tone(ms, 16_000)));
        let text = "heard".into();
        Heard::Words(Speech { text, audio })
    };
    for ms in [300, 600] {
        let piece = LiveSound::Piece(Pcm::new(16_000, tone(ms, 16_000)));
        for sound in [piece, LiveSound::End] {
            live.send(sound).await.unwrap();
        }
        if ms == 300 {
            let mut listening = Listening::to(&mut brain, whole(300));
            listening.play_ms(20).await;
            drop(listening);
            brain.retract().await;
        }
    }
    // Both parts are in these words.
    assert_eq!(turn(&mut brain, whole(900)).await.unwrap(), [say("Done.")]);
    assert_eq!(known(&turns), ["user: 900 ms"]);
    assert_eq!(refusals(&server), Vec::<Value>::new());
}

/// Of words that nobody has begun to answer there is nothing to take back, least of all the answer before them.
#[tokio::test]
async fn what_was_said_before_them_stays() {
    let (server, turns) = noting(|_, _| Reply::Say("Done.".into()));
    let mut brain = brain(&server);
    turn(&mut brain, words("hello")).await.unwrap();
    drop(brain.think(words("I would")));
    brain.retract().await;
    turn(&mut brain, words("thanks")).await.unwrap();
    assert_eq!(known(&turns), ["user: hello", "agent: Done.", "user: thanks"]);
    assert_eq!(refusals(&server), Vec::<Value>::new());
}
