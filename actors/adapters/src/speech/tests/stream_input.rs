//! ElevenLabs' `stream-input`: the pieces of a turn go into one websocket, and each sound tells its letters.
use super::{
    elevenlabs_server::{ElevenlabsServer, Say, spoken},
    *,
};
use elevenlabs::{Elevenlabs, Endpoint};
use serde_json::{Value, json};
use std::sync::Arc;

fn elevenlabs(url: &str, limits: Limits) -> Elevenlabs {
    Elevenlabs::new(Arc::new(
        Endpoint::new(url, key(), "eleven_flash_v2_5", limits).unwrap(),
    ))
}

/// Milliseconds of it.
async fn ms(stream: SpeechStream) -> Result<usize, (SpeechError, usize)> {
    heard(stream).await.map(|samples| samples.len() / 24)
}

/// 100 ms of sound, and whatever is told of it.
fn sound(alignment: Value) -> Say {
    Say::Sound(vec![1; 4_800], alignment)
}

#[tokio::test]
async fn the_pieces_of_a_turn_go_into_one_socket_and_the_next_is_open_before_it_is_needed() {
    let server = ElevenlabsServer::start_with(|text, _| vec![spoken(text, 100)]).await;
    let talk = elevenlabs(&server.url, LIMITS);
    talk.warm("ann", "de-AT").await;
    let connected = server.until("connected", 1).await;
    let query =
        "model_id=eleven_flash_v2_5&output_format=pcm_24000&auto_mode=true&sync_alignment=true&inactivity_timeout=180";
    let path = format!("/v1/text-to-speech/ann/stream-input?{query}&language_code=de");
    assert_eq!(connected, [json!({ "connected": path, "key": KEY })]);

    let turn = Turn::default();
    let pieces = ["One,", "two.", "Three!"].map(|text| talk.speak(asked_in(&turn, text)));
    drop(turn);
    for (piece, expected) in pieces.into_iter().zip([400, 400, 600]) {
        assert_eq!(ms(piece).await, Ok(expected));
    }
    assert_eq!(server.texts(5).await, [" ", "One, ", "two. ", "Three! ", ""]);
    let flushed = server.with("flush");
    assert!(flushed.len() == 3 && flushed.iter().all(|ask| ask["flush"] == true));
    server.until("closed", 1).await;

    // The next socket was opened meanwhile, and waits.
    server.until("connected", 2).await;
    assert_eq!(ms(talk.speak(asked("Four."))).await, Ok(500));
    assert_eq!(server.texts(8).await[5..], [" ", "Four. ", ""]);
    server.until("connected", 3).await;
    drop(talk);
    server.until("closed", 3).await;
}

/// An answer that is thrown away is followed at once by another one, which must find its socket open.
#[tokio::test]
async fn the_next_socket_is_opened_as_soon_as_one_is_used() {
    let server = ElevenlabsServer::start_with(|_, _| vec![spoken("One", 100)]).await;
    let (talk, turn) = (elevenlabs(&server.url, LIMITS), Turn::default());
    talk.warm("ann", "de-AT").await;
    let mut piece = talk.speak(asked_in(&turn, "One two,"));
    assert!(piece.next().await.unwrap().is_ok());
    server.until("connected", 2).await;
    assert!(server.with("closed").is_empty(), "the first is still used");
    drop((piece, turn));
    server.until("closed", 1).await;
}

/// Nobody waits for a second piece.
#[tokio::test]
async fn the_first_piece_is_heard_before_there_is_another_one() {
    let server = ElevenlabsServer::start_with(|text, _| vec![spoken(text, 100)]).await;
    let (talk, turn) = (elevenlabs(&server.url, LIMITS), Turn::default());
    // Its letters tell where it ends.
    assert_eq!(ms(talk.speak(asked_in(&turn, "One,"))).await, Ok(400));
    assert_eq!(ms(talk.speak(asked_in(&turn, "two."))).await, Ok(400));
    assert_eq!(server.texts(3).await, [" ", "One, ", "two. "]);
    drop(turn);
    assert_eq!(server.texts(4).await[3], "");
    assert_eq!(
        server.with("connected").len(),
        1,
        "where nothing was warmed nothing is kept"
    );
}

#[tokio::test]
async fn letters_tell_when_words_are_heard_over_all_messages() {
    let server = ElevenlabsServer::start_with(|_, _| {
        let camel = json!({ "chars": ["O", "n", "e", " ", "t"], "charStartTimesMs": [0, 10, 20, 50, 60], "charDurationsMs": [10, 10, 30, 10, 40] });
        let snake = json!({ "chars": ["w", "o", "."], "char_start_times_ms": [0, 20, 60], "char_durations_ms": [20, 40, 40] });
        vec![sound(camel), sound(snake)]
    })
    .await;
    let stream = elevenlabs(&server.url, LIMITS).speak(asked("One two."));
    let timings = stream.timings.clone();
    assert_eq!(ms(stream).await, Ok(200));
    assert_eq!(
        [49, 50, 159, 160].map(|ms| timings.at(ms).unwrap().end.letters),
        [0, 3, 3, 8]
    );
}

#[tokio::test]
async fn wrong_times_take_nothing_from_the_sound() {
    for (wrong, expected) in [
        (json!("soon"), None),
        (json!({ "chars": ["O"] }), None),
        (
            json!({ "chars": ["O", "n", "e"], "charStartTimesMs": ["a", "b", "c"], "charDurationsMs": [1, 1, 1] }),
            None,
        ),
        (
            json!({ "chars": ["O", "n", "e"], "charStartTimesMs": [], "charDurationsMs": [] }),
            None,
        ),
        // Backwards, before the beginning and far behind the end: no word ends outside its sound.
        (
            json!({ "chars": ["O", "n", "e", "."], "charStartTimesMs": [90, 50, 10, 0], "charDurationsMs": [10, 10, 10, 10] }),
            Some(20),
        ),
        (
            json!({ "chars": ["O", "n", "e", "."], "charStartTimesMs": [-90, -90, -90, -90], "charDurationsMs": [1, 1, 1, 1] }),
            Some(0),
        ),
        (
            json!({ "chars": ["O", "n", "e", "."], "charStartTimesMs": [0, 0, 1e300, 0], "charDurationsMs": [1, 1, 1e300, 1] }),
            Some(100),
        ),
    ] {
        let alignment = wrong.clone();
        let server = ElevenlabsServer::start_with(move |_, _| vec![sound(alignment.clone())]).await;
        let stream = elevenlabs(&server.url, LIMITS).speak(asked("One."));
        let timings = stream.timings.clone();
        assert_eq!(ms(stream).await, Ok(100), "{wrong}");
        assert_eq!(timings.at(100).map(|said| said.end.ms), expected, "{wrong}");
    }
}

/// Where no letters are told, a piece ends with its generation, and each has one of its own.
#[tokio::test]
async fn without_letters_each_piece_is_a_generation() {
    let server = ElevenlabsServer::start_with(|_, _| vec![sound(Value::Null)]).await;
    let (talk, turn) = (elevenlabs(&server.url, LIMITS), Turn::default());
    let pieces = ["One,", "two."].map(|text| talk.speak(asked_in(&turn, text)));
    for piece in pieces {
        assert_eq!(ms(piece).await, Ok(100));
    }
    drop(turn);
    assert_eq!(server.texts(6).await, [" ", "One, ", "", " ", "two. ", ""]);
}

/// Its letters end before its text: whether that was all is asked.
#[tokio::test]
async fn a_piece_whose_end_is_not_told_is_ended() {
    let server = ElevenlabsServer::start_with(|text, nth| match nth {
        0 => vec![spoken("One", 100)],
        _ => vec![spoken(text, 100)],
    })
    .await;
    let (talk, turn) = (elevenlabs(&server.url, LIMITS), Turn::default());
    let pieces = ["One two,", "three."].map(|text| talk.speak(asked_in(&turn, text)));
    let [first, second] = pieces;
    assert_eq!((ms(first).await, ms(second).await), (Ok(300), Ok(600)));
    drop(turn);
    assert_eq!(server.texts(6).await, [" ", "One two, ", "", " ", "three. ", ""]);
}

#[tokio::test]
async fn whoever_cuts_in_closes_the_socket() {
    let server = ElevenlabsServer::start_with(|_, _| vec![spoken("One", 100)]).await;
    let (talk, turn) = (elevenlabs(&server.url, LIMITS), Turn::default());
    let mut pieces = ["One two,", "three."].map(|text| talk.speak(asked_in(&turn, text)));
    assert!(pieces[0].next().await.unwrap().is_ok());
    drop((pieces, turn));
    server.until("closed", 1).await;
    assert!(!server.texts(2).await.contains(&"three. ".to_owned()));
}

#[tokio::test]
async fn each_failure_has_its_name() {
    let error = |name: &str| Say::Event(json!({ "error": name, "message": KEY, "code": 1008 }));
    let first = || sound(json!({ "chars": ["H"], "charStartTimesMs": [0], "charDurationsMs": [50] }));
    let limited = SpeechError::Limited { retry_after: None };
    for (why, says, expected) in [
        ("nothing", vec![], (SpeechError::Garbage, 0)),
        (
            "a wrong key",
            vec![error("invalid_api_key")],
            (SpeechError::Refused { status: 401 }, 0),
        ),
        (
            "no credit",
            vec![error("quota_exceeded")],
            (SpeechError::Refused { status: 402 }, 0),
        ),
        (
            "no such voice",
            vec![error("voice_not_found")],
            (SpeechError::Refused { status: 404 }, 0),
        ),
        ("too many", vec![error("too_many_concurrent_requests")], (limited, 0)),
        ("busy", vec![first(), error("system_busy")], (limited, 2_400)),
        (
            "another one",
            vec![error("oops")],
            (SpeechError::Refused { status: 500 }, 0),
        ),
        (
            "a status",
            vec![Say::Event(json!({ "error": "no", "code": 429 }))],
            (limited, 0),
        ),
        (
            "a close for a reason",
            vec![Say::Policy("You have exceeded your quota")],
            (SpeechError::Refused { status: 402 }, 0),
        ),
        ("no JSON", vec![Say::Text("sorry".into())], (SpeechError::Garbage, 0)),
        (
            "no base64",
            vec![Say::Event(json!({ "audio": "!" }))],
            (SpeechError::Garbage, 0),
        ),
        (
            "another frame",
            vec![first(), Say::Binary],
            (SpeechError::Garbage, 2_400),
        ),
        (
            "too much at once",
            vec![Say::Text(" ".repeat(2_000_000))],
            (SpeechError::Garbage, 0),
        ),
        ("a close", vec![first(), Say::Close], (SpeechError::Closed, 2_400)),
        ("a break", vec![first(), Say::Break], (SpeechError::Closed, 2_400)),
    ] {
        let server = ElevenlabsServer::start_with(move |_, _| says.clone()).await;
        let outcome = heard(elevenlabs(&server.url, LIMITS).speak(asked("Hello"))).await;
        assert_eq!(outcome, Err(expected), "{why}");
    }
}

/// A piece of a turn, whose end is not asked for.
#[tokio::test]
async fn silence_has_its_name() {
    for (says, limits, expected) in [
        (vec![], SHORT, (SpeechError::Timeout, 0)),
        (vec![spoken("He", 100)], SHORT_PAUSES, (SpeechError::Stalled, 4_800)),
    ] {
        let server = ElevenlabsServer::start_with(move |_, _| says.clone()).await;
        let (talk, turn) = (elevenlabs(&server.url, limits), Turn::default());
        assert_eq!(heard(talk.speak(asked_in(&turn, "Hello"))).await, Err(expected));
        server.until("closed", 1).await;
    }
}

#[tokio::test]
async fn a_flood_is_not_taken() {
    let server = ElevenlabsServer::start_with(|_, _| vec![Say::Sound(vec![0; 600_000], Value::Null); 60]).await;
    let (error, samples) = heard(elevenlabs(&server.url, LIMITS).speak(asked("Hello")))
        .await
        .unwrap_err();
    assert_eq!(error, SpeechError::TooLong);
    assert!(samples <= 600 * 24_000);
}

/// It was open, and nobody spoke when it was closed: another one is opened, and nothing has failed.
#[tokio::test]
async fn a_socket_that_was_closed_meanwhile_is_no_failure() {
    let server = ElevenlabsServer::start_with(|text, nth| match nth {
        0 => vec![Say::Break],
        _ => vec![spoken(text, 100)],
    })
    .await;
    let talk = elevenlabs(&server.url, LIMITS);
    talk.warm("ann", "de").await;
    let stream = talk.speak(Utterance {
        language: "de".into(),
        ..asked("One.")
    });
    assert_eq!(ms(stream).await, Ok(400));
    let texts = server.texts(5).await;
    assert_eq!(texts.iter().filter(|text| *text == "One. ").count(), 2);
}

/// Words are said by a request, and so is all that follows in the talk; that the socket failed is told once.
#[tokio::test]
async fn where_no_socket_can_be_opened_requests_say_it() {
    for (status, expected) in [
        (403, SpeechError::Refused { status: 403 }),
        (429, SpeechError::Limited { retry_after: None }),
    ] {
        let server = SpeechServer::start_with(move |asked, _| match asked.line.starts_with("POST") {
            true => Answer::samples(&[5, 6, 7], 3),
            false => Answer::status(status, KEY),
        })
        .await;
        let (talk, turn) = (elevenlabs(&server.url(), LIMITS), Turn::default());
        let mut detours = Vec::new();
        for text in ["One,", "two.", "three."] {
            let mut stream = talk.speak(asked_in(&turn, text));
            let mut samples = Vec::new();
            while let Some(piece) = stream.next().await {
                samples.extend(piece.unwrap());
                detours.extend(stream.detour());
            }
            assert_eq!(samples, [5, 6, 7]);
            assert_eq!(stream.timings.at(1_000), None, "of these nothing is timed");
        }
        assert_eq!(detours, [("elevenlabs stream-input", expected)]);
        let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
        assert_eq!(
            lines.iter().filter(|line| line.starts_with("GET")).count(),
            1,
            "{lines:?}"
        );
    }
    // Nobody is there at all: the request tells why.
    let nobody = elevenlabs("http://127.0.0.1:1", LIMITS);
    assert_eq!(heard(nobody.speak(asked("Hello"))).await, Err((SpeechError::Absent, 0)));
}

#[tokio::test]
async fn the_newest_model_has_no_socket() {
    let server = SpeechServer::answering(Answer::samples(&[1], 2)).await;
    let endpoint = Endpoint::new(&server.url(), key(), "eleven_v3", LIMITS).unwrap();
    let talk = Elevenlabs::new(Arc::new(endpoint));
    let stream = talk.speak(asked("Hello"));
    assert!(stream.detour().is_none());
    assert_eq!(heard(stream).await, Ok(vec![1]));
    assert_eq!(server.asked().len(), 1);
}
