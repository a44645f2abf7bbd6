//! Cartesia's contexts: the pieces of a turn are one, and the words of each are timed.
use super::{
    cartesia_server::{CartesiaServer, Say},
    *,
};
use cartesia::{Cartesia, Endpoint};
use serde_json::{Value, json};

fn cartesia(server: &CartesiaServer, limits: Limits) -> Cartesia {
    Cartesia::new(Endpoint::new(&server.url, key(), "sonic-3.5", limits).unwrap())
}

/// Of so many milliseconds.
fn sound(ms: usize) -> Say {
    Say::Sound(vec![1; ms * 24 * 2])
}

fn flushed() -> Say {
    Say::Event(json!({ "type": "flush_done", "flush_done": true }))
}

fn words(words: &[(&str, f64, f64)]) -> Say {
    let of = |field: fn(&(&str, f64, f64)) -> Value| words.iter().map(field).collect::<Vec<Value>>();
    let timed = json!({ "words": of(|word| json!(word.0)), "start": of(|word| json!(word.1)), "end": of(|word| json!(word.2)) });
    Say::Event(json!({ "type": "timestamps", "word_timestamps": timed }))
}

/// Says what was asked, in a tenth of a second for each letter.
fn speaks(ask: &Value) -> Vec<Say> {
    let text = ask["transcript"].as_str().unwrap().trim();
    match (text.is_empty(), ask["continue"] == true) {
        (false, true) => vec![sound(100 * text.len()), flushed()],
        (false, false) => vec![sound(100 * text.len()), Say::Done],
        // A flush, and the end.
        (true, true) => Vec::new(),
        (true, false) => vec![Say::Done],
    }
}

/// Milliseconds of it.
async fn ms(stream: SpeechStream) -> Result<usize, (SpeechError, usize)> {
    heard(stream).await.map(|samples| samples.len() / 24)
}

#[tokio::test]
async fn the_pieces_of_a_turn_are_one_context() {
    let server = CartesiaServer::start_with(|ask, _| speaks(ask)).await;
    let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
    let pieces = ["One,", "two.", "Three!"].map(|text| talk.speak(asked_in(&turn, text)));
    drop(turn);
    for (piece, expected) in pieces.into_iter().zip([400, 400, 600]) {
        assert_eq!(ms(piece).await, Ok(expected));
    }
    assert_eq!(ms(talk.speak(asked("Four."))).await, Ok(500));
    let asks = server.until("transcript", 6).await;
    let told: Vec<_> = asks
        .iter()
        .map(|ask| {
            let text = ask["transcript"].as_str().unwrap();
            (
                ask["context_id"].as_str().unwrap(),
                text,
                ask["continue"] == true,
                ask["flush"] == true,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("turn-1", "One, ", true, false),
            ("turn-1", "", true, true),
            ("turn-1", "two. ", true, false),
            ("turn-1", "", true, true),
            ("turn-1", "Three!", false, false),
            ("turn-2", "Four.", false, false),
        ]
    );
    let fields = [
        "model_id",
        "voice",
        "language",
        "output_format",
        "add_timestamps",
        "max_buffer_delay_ms",
    ];
    assert!(
        fields
            .iter()
            .all(|field| asks[1..].iter().all(|ask| ask[field] == asks[0][field]))
    );
    assert!(server.with("cancel").is_empty(), "what was said is not called off");
}

#[tokio::test]
async fn the_first_piece_waits_for_no_second_and_the_end_is_asked_for_when_it_is_known() {
    let server = CartesiaServer::start_with(|ask, _| match ask["transcript"].as_str().unwrap() {
        // Nothing tells that it is over.
        "One, " => vec![sound(400)],
        _ => speaks(ask),
    })
    .await;
    let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
    let mut first = talk.speak(asked_in(&turn, "One,"));
    assert_eq!(first.next().await.map(|piece| piece.unwrap().len()), Some(9_600));
    drop(turn);
    assert!(first.next().await.is_none());
    let asks = server.until("transcript", 3).await;
    assert_eq!(
        (&asks[2]["transcript"], &asks[2]["continue"]),
        (&json!(""), &json!(false))
    );
}

/// Nothing follows for so long that the context would expire: it is finished, and what comes later is another one.
#[tokio::test]
async fn a_context_that_would_expire_is_followed_by_another_one() {
    let server = CartesiaServer::start_with(|ask, _| speaks(ask)).await;
    let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
    assert_eq!(ms(talk.speak(asked_in(&turn, "One,"))).await, Ok(400));
    let asks = server.until("transcript", 3).await;
    assert_eq!(
        (&asks[2]["transcript"], &asks[2]["continue"]),
        (&json!(""), &json!(false))
    );
    assert_eq!(ms(talk.speak(asked_in(&turn, "two."))).await, Ok(400));
    assert_eq!(server.until("transcript", 4).await[3]["context_id"], "turn-2");
    assert!(server.with("cancel").is_empty());
}

/// It expired while a piece was on its way: that is no failure, and the piece is said once.
#[tokio::test]
async fn a_piece_that_comes_too_late_for_its_context_is_said_in_another_one() {
    let server = CartesiaServer::start_with(|ask, nth| match nth {
        2 => vec![Say::Done],
        _ => speaks(ask),
    })
    .await;
    let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
    let pieces = ["One,", "two."].map(|text| talk.speak(asked_in(&turn, text)));
    for piece in pieces {
        assert_eq!(ms(piece).await, Ok(400));
    }
    drop(turn);
    let asks = server.until("transcript", 5).await;
    let texts: Vec<_> = asks.iter().filter(|ask| ask["transcript"] == "two. ").collect();
    assert_eq!((texts.len(), &texts[1]["context_id"]), (2, &json!("turn-2")));
}

#[tokio::test]
async fn whoever_cuts_in_calls_the_whole_turn_off() {
    let server = CartesiaServer::start_with(|ask, nth| match nth {
        0 => vec![sound(100)],
        _ => speaks(ask),
    })
    .await;
    let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
    let mut pieces = ["One,", "two."].map(|text| talk.speak(asked_in(&turn, text)));
    assert!(pieces[0].next().await.unwrap().is_ok());
    drop((pieces, turn));
    assert_eq!(
        server.until("cancel", 1).await,
        [json!({ "context_id": "turn-1", "cancel": true })]
    );
    assert_eq!(ms(talk.speak(asked("Yes?"))).await, Ok(400));
    let texts = server.with("transcript");
    assert!(
        !texts.iter().any(|ask| ask["transcript"] == "two. "),
        "nobody asks for it any more"
    );
}

#[tokio::test]
async fn words_are_timed_by_the_piece_or_by_the_whole_context() {
    for from in [0.0, 1.0] {
        let server = CartesiaServer::start_with(move |ask, _| match ask["transcript"].as_str().unwrap() {
            "One two, " => vec![words(&[("One", 0.0, 0.3), ("two,", 0.4, 0.9)]), sound(1_000), flushed()],
            "three four." => {
                let third = words(&[("three", from, from + 0.5)]);
                vec![
                    sound(500),
                    third,
                    words(&[("four.", from + 0.6, from + 0.8)]),
                    sound(500),
                    Say::Done,
                ]
            }
            _ => Vec::new(),
        })
        .await;
        let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
        let pieces = ["One two,", "three four."].map(|text| talk.speak(asked_in(&turn, text)));
        drop(turn);
        let timings = [0, 1].map(|place| pieces[place].timings.clone());
        for piece in pieces {
            assert_eq!(ms(piece).await, Ok(1_000));
        }
        let letters = |place: usize, ms: u64| timings[place].at(ms).unwrap().end.letters;
        assert_eq!([299, 300, 899, 900].map(|ms| letters(0, ms)), [0, 3, 3, 8], "{from}");
        assert_eq!([499, 500, 799, 800].map(|ms| letters(1, ms)), [0, 5, 5, 11], "{from}");
    }
}

#[tokio::test]
async fn wrong_times_take_nothing_from_the_sound() {
    let timed = |timed: Value| Say::Event(json!({ "type": "timestamps", "word_timestamps": timed }));
    for wrong in [
        json!("soon"),
        json!({ "words": ["One"], "start": ["x"], "end": [1] }),
        json!({ "words": ["One"], "start": [], "end": [] }),
        json!({ "words": ["Nine"], "start": [0.0], "end": [0.1] }),
        json!({ "words": ["One"], "start": [0.0], "end": [1e300] }),
    ] {
        let event = timed(wrong.clone());
        let server = CartesiaServer::start_with(move |_, _| vec![event.clone(), sound(400), Say::Done]).await;
        let stream = cartesia(&server, LIMITS).speak(asked("One."));
        let timings = stream.timings.clone();
        assert_eq!(ms(stream).await, Ok(400), "{wrong}");
        assert_eq!(timings.at(400), None, "{wrong}");
    }
    // Backwards: what was said before stands.
    let says = vec![
        words(&[("One", 0.2, 0.3)]),
        words(&[("two.", 0.0, 0.1)]),
        sound(400),
        Say::Done,
    ];
    let server = CartesiaServer::start_with(move |_, _| says.clone()).await;
    let stream = cartesia(&server, LIMITS).speak(asked("One two."));
    let timings = stream.timings.clone();
    assert_eq!(ms(stream).await, Ok(400));
    assert_eq!(
        [100, 299, 300, 400].map(|ms| timings.at(ms).unwrap().end.letters),
        [0, 0, 3, 3]
    );
}

/// Those that wait fail with the one that is said: none of them is waited for.
#[tokio::test]
async fn a_failure_in_the_middle_of_a_turn_is_that_of_all_its_pieces() {
    for (says, expected) in [
        (vec![sound(100), Say::Break], SpeechError::Closed),
        (vec![sound(100), Say::Text("sorry".into())], SpeechError::Garbage),
        (
            vec![sound(100), Say::Event(json!({ "type": "error", "status_code": 429 }))],
            SpeechError::Limited { retry_after: None },
        ),
        (
            vec![sound(100), Say::Event(json!({ "type": "chunk", "data": "!" }))],
            SpeechError::Garbage,
        ),
    ] {
        let server = CartesiaServer::start_with(move |_, _| says.clone()).await;
        let (talk, turn) = (cartesia(&server, LIMITS), Turn::default());
        let [first, second] = ["One,", "two."].map(|text| talk.speak(asked_in(&turn, text)));
        assert_eq!(heard(first).await, Err((expected, 2_400)));
        assert_eq!(heard(second).await, Err((expected, 0)));
        // Whoever follows begins anew.
        let again = heard(talk.speak(asked_in(&turn, "three."))).await;
        assert_eq!(again.unwrap_err().1, 2_400);
    }
}

/// Nothing is counted against a piece while others are said before it.
#[tokio::test]
async fn a_piece_has_its_time_from_its_turn_on() {
    let server = CartesiaServer::start_with(|ask, nth| match nth {
        0 => vec![sound(100)],
        _ => speaks(ask),
    })
    .await;
    let (talk, turn) = (cartesia(&server, SHORT), Turn::default());
    let [first, second] = ["One,", "two."].map(|text| talk.speak(asked_in(&turn, text)));
    let its_turn = second.its_turn.clone().unwrap();
    // The first is silent in the middle for longer than the second could wait.
    let (first, second) = tokio::join!(heard(first), heard(second));
    assert_eq!(first, Err((SpeechError::Stalled, 2_400)));
    assert_eq!(second.map(|samples| samples.len()), Ok(9_600));
    assert!(its_turn.await <= tokio::time::Instant::now());
}
