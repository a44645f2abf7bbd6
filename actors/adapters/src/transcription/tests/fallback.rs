//! A second provider, for what the first does not understand.
use super::{
    batch::asked,
    transcription_server::{Answer, TranscriptionServer},
    *,
};
use crate::speech::SpeechError;
use tokio::sync::watch;

fn batch(server: &TranscriptionServer, patience: Patience) -> Provider {
    provider_with(Kind::Openai, &server.url(), patience)
}

/// Hears the turns one after the other, and says how long all are that it has heard.
async fn hearing() -> HearingServer {
    HearingServer::start_with(Protocol::Listen, |asked| match asked.came {
        Came::Flush => some(&format!("{} ms", asked.ms)),
        _ => Vec::new(),
    })
    .await
}

fn deepgram(server: &HearingServer) -> Provider {
    provider_with(Kind::Deepgram, &server.url, Patience::default())
}

#[tokio::test]
async fn what_the_first_does_not_understand_the_second_does() {
    let server = TranscriptionServer::start_with(|_, before| match before {
        1 => Answer::Words("Two.".into()),
        _ => Answer::Status(401, "no".into()),
    })
    .await;
    let second = hearing().await;
    let provider = batch(&server, Patience::default()).with_fallback(deepgram(&second));
    let mut talk = Talk::open(&provider);
    for (ms, expected) in [(300, "300 ms"), (200, "Two."), (400, "700 ms")] {
        talk.turn(ms).await;
        assert_eq!(talk.words().await, Ok(expected.into()));
    }
    assert_eq!(second.log.with("connected").len(), 1, "once it was needed");
}

#[tokio::test]
async fn who_cannot_be_used_is_not_asked_for_ever() {
    let server = TranscriptionServer::start_with(|_, _| Answer::Status(401, "no".into())).await;
    let second = HearingServer::start_with(Protocol::Listen, |asked| match (asked.came, asked.ms) {
        (Came::Sound, 200) if asked.connection == 1 => vec![Say::Partial("While".into())],
        (Came::Flush, _) => some(&format!("{} ms", asked.ms)),
        _ => Vec::new(),
    })
    .await;
    let provider = batch(&server, Patience::default()).with_fallback(deepgram(&second));
    let mut talk = Talk::open(&provider);
    for expected in ["300 ms", "600 ms"] {
        talk.turn(300).await;
        assert_eq!(talk.words().await, Ok(expected.into()));
    }
    talk.begin().await;
    talk.speak(300).await;
    let words = "While".into();
    assert_eq!(talk.next().await, Transcribed::Partial { turn: 3, words });
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("300 ms".into()), "on a connection of its own");
    assert_eq!(server.asked().len(), 2);
    assert_eq!(talk.transcript.provider, "openai");
}

#[tokio::test]
async fn where_both_fail_it_is_told_once_and_in_time() {
    let server = TranscriptionServer::start_with(|_, _| Answer::Status(401, "no".into())).await;
    for (answer, turns) in [(Answer::Status(404, "no".into()), 3), (Answer::Hang, 1)] {
        let second = TranscriptionServer::start_with(move |_, _| answer.clone()).await;
        let provider = batch(&server, short()).with_fallback(batch(&second, Patience::default()));
        let mut talk = Talk::open(&provider);
        for _ in 0..turns {
            talk.turn(200).await;
            let failed = Transcribed::Failed(Failure(SpeechError::Refused { status: 401 }));
            assert_eq!(talk.next().await, failed, "the first one's");
        }
        assert_eq!(second.asked().len(), turns);
    }
}

#[tokio::test]
async fn answers_keep_their_order_and_what_is_forgotten_has_no_words() {
    let server = TranscriptionServer::start_with(|_, before| match before {
        0 | 2 => Answer::Status(401, "no".into()),
        _ => Answer::Words("Two.".into()),
    })
    .await;
    let (open, gate) = watch::channel(false);
    let second = TranscriptionServer::start_with(move |_, before| match before {
        0 => Answer::Gated(gate.clone(), "One.".into()),
        _ => Answer::Hang,
    })
    .await;
    let first = batch(&server, Patience::default());
    let mut talk = Talk::open(&first.with_fallback(batch(&second, Patience::default())));
    talk.turn(200).await;
    asked(&second, 1).await;
    for count in [2, 3] {
        talk.turn(200).await;
        asked(&server, count).await;
    }
    talk.tell(Hear::Discard).await;
    open.send_replace(true);
    for expected in ["One.", "Two.", ""] {
        assert_eq!(talk.words().await, Ok(expected.into()));
    }
}

/// Nothing is kept of it, and nobody is asked twice.
#[tokio::test]
async fn what_the_first_understands_is_its_own() {
    let server = TranscriptionServer::understanding(&["One.", "Two."]).await;
    let second = TranscriptionServer::understanding(&["Three."]).await;
    let first = batch(&server, Patience::default());
    let mut talk = Talk::open(&first.with_fallback(batch(&second, Patience::default())));
    talk.turn(200).await;
    assert_eq!(talk.words().await, Ok("One.".into()));
    talk.speak(100).await;
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("Two.".into()));
    talk.tell(Hear::Discard).await;
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok(String::new()));
    assert!(second.asked().is_empty());
}
