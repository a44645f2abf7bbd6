//! Servers that are absent, slow, wrong or full.
use super::*;
use tokio::sync::watch;

async fn outcome(answer: Answer) -> Result<Vec<i16>, (SpeechError, usize)> {
    outcome_within(SHORT_PAUSES, answer).await
}

async fn outcome_within(limits: Limits, answer: Answer) -> Result<Vec<i16>, (SpeechError, usize)> {
    let server = SpeechServer::answering(answer).await;
    heard(openai(&server, limits).speak(asked("Hello"))).await
}

fn piece() -> Step {
    Step::Bytes(vec![1, 0, 2, 0])
}

#[tokio::test]
async fn each_failure_has_its_name() {
    let html = Answer {
        headers: vec![("content-type", "text/html".into())],
        ..Answer::samples(&[1], 2)
    };
    let mp3 = Answer {
        headers: vec![("content-type", "audio/mpeg".into())],
        ..Answer::samples(&[1], 2)
    };
    let slow_head = Answer {
        before: vec![Step::Hang],
        ..Answer::samples(&[1], 2)
    };
    let reset_head = Answer {
        before: vec![Step::Reset],
        ..Answer::samples(&[1], 2)
    };
    for (why, answer, expected) in [
        ("no head", slow_head, (SpeechError::Timeout, 0)),
        (
            "no first piece",
            Answer::sound(vec![Step::Hang]),
            (SpeechError::Timeout, 0),
        ),
        (
            "half a sample",
            Answer::sound(vec![Step::Bytes(vec![1]), Step::Hang]),
            (SpeechError::Timeout, 0),
        ),
        (
            "silence in the middle",
            Answer::sound(vec![piece(), Step::Hang]),
            (SpeechError::Stalled, 2),
        ),
        ("a reset", reset_head, (SpeechError::Closed, 0)),
        (
            "a reset in the middle",
            Answer::sound(vec![piece(), Step::Reset]),
            (SpeechError::Closed, 2),
        ),
        ("nothing", Answer::sound(vec![]), (SpeechError::Garbage, 0)),
        ("a page", html, (SpeechError::Garbage, 0)),
        ("another form", mp3, (SpeechError::Garbage, 0)),
        (
            "a wrong key",
            Answer::status(401, KEY),
            (SpeechError::Refused { status: 401 }, 0),
        ),
        (
            "its fault",
            Answer::status(503, "busy"),
            (SpeechError::Refused { status: 503 }, 0),
        ),
        (
            "a redirect",
            Answer::status(302, "moved"),
            (SpeechError::Refused { status: 302 }, 0),
        ),
        (
            "a limit",
            Answer::status(429, "slowly"),
            (SpeechError::Limited { retry_after: None }, 0),
        ),
    ] {
        let is_silent = expected.0 == SpeechError::Timeout;
        let limits = if is_silent { SHORT } else { SHORT_PAUSES };
        assert_eq!(outcome_within(limits, answer).await, Err(expected), "{why}");
    }
}

#[tokio::test]
async fn a_limit_says_until_when() {
    for (header, expected) in [("7", Some(7)), ("86400", Some(3_600)), ("tomorrow", None)] {
        let mut answer = Answer::status(429, "slowly");
        answer.headers.push(("retry-after", header.into()));
        let retry_after = expected.map(Duration::from_secs);
        assert_eq!(
            outcome(answer).await,
            Err((SpeechError::Limited { retry_after }, 0)),
            "{header}"
        );
    }
}

#[tokio::test]
async fn who_is_not_there_is_absent() {
    key();
    let nobody = openai::Openai::new("http://127.0.0.1:1/v1", None, "m", LIMITS).unwrap();
    nobody.warm("ann", "de").await;
    assert_eq!(heard(nobody.speak(asked("Hello"))).await, Err((SpeechError::Absent, 0)));
}

#[tokio::test]
async fn sound_is_handed_on_before_the_next_comes() {
    let (open, gate) = watch::channel(false);
    let server = SpeechServer::answering(Answer::sound(vec![piece(), Step::Gate(gate), piece()])).await;
    let mut stream = openai(&server, LIMITS).speak(asked("Hello"));
    assert_eq!(
        stream.next().await,
        Some(Ok(vec![1, 2])),
        "while the server waits for us"
    );
    open.send_replace(true);
    assert_eq!(stream.next().await, Some(Ok(vec![1, 2])));
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.next().await, None, "however often it is asked");
}

#[tokio::test]
async fn nothing_is_asked_before_sound_is_wanted() {
    let server = SpeechServer::answering(Answer::samples(&[1], 2)).await;
    drop(openai(&server, LIMITS).speak(asked("Hello")));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn whoever_stops_listening_ends_the_request() {
    let server = SpeechServer::answering(Answer::sound(vec![piece(), Step::Hang])).await;
    let openai = openai(&server, LIMITS);
    let mut stream = openai.speak(asked("Hello"));
    stream.next().await.unwrap().unwrap();
    drop(stream);
    server.clients_gone(1).await;

    let silent = SpeechServer::answering(Answer {
        before: vec![Step::Hang],
        ..Answer::samples(&[1], 2)
    })
    .await;
    let mut stream = super::openai(&silent, LIMITS).speak(asked("Hello"));
    let waited = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
    assert!(waited.is_err(), "before its head");
    drop(stream);
    silent.clients_gone(1).await;
}

#[tokio::test]
async fn sound_without_end_is_not_taken() {
    let minute = Step::Bytes(vec![0; 60 * 2 * 24_000]);
    let error = outcome(Answer::sound(vec![minute; 11])).await.unwrap_err();
    assert_eq!(error.0, SpeechError::TooLong);
    assert!(error.1 <= 600 * 24_000);
}

#[tokio::test]
async fn piper_without_a_wav_is_garbage() {
    for body in [&b"sorry"[..], b"RIFF\0\0\0\0WAVE"] {
        let server = SpeechServer::answering(Answer::sound(vec![Step::Bytes(body.to_vec())])).await;
        let piper = piper::Piper::new(&server.url(), key(), SHORT_PAUSES).unwrap();
        assert_eq!(heard(piper.speak(asked("Hello"))).await, Err((SpeechError::Garbage, 0)));
    }
}

#[test]
fn an_error_says_nothing_of_the_provider() {
    key();
    for (error, name, words) in [
        (SpeechError::Absent, "absent", "cannot be reached"),
        (SpeechError::Refused { status: 402 }, "refused", "answered 402"),
        (
            SpeechError::Limited { retry_after: None },
            "limited",
            "has reached its limit",
        ),
    ] {
        assert_eq!((error.name(), &*error.to_string()), (name, words));
    }
    assert!(!format!("{:?}", Provider::new(Kind::Openai, "", Some(KEY), "")).contains(KEY));
}
