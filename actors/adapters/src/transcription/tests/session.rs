//! Connections that break at the worst moment.
use super::*;
use crate::transcription::{
    Ask,
    hosted::{Hosted, Protocol},
    link::Link,
};

/// 100 ms.
fn sound() -> Hear {
    Hear::Sound(Pcm::new(HEARING, vec![1_000; 1_600]))
}

fn session() -> Session {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let patience = Patience::default();
    let hosted = Hosted::new(Protocol::Flux, "ws://127.0.0.1:1", None, "", patience).unwrap();
    let (_, input) = mpsc::channel(1);
    let (events, _) = mpsc::channel(1);
    Session::new(hosted.wire(&Ask::default()), patience, input, events)
}

fn connect(session: &mut Session) -> mpsc::Receiver<Message> {
    let (link, sent) = Link::loose();
    session.step(Step::Opened(Ok(link)));
    sent
}

/// What a connection got: samples, and texts.
fn got(mut sent: mpsc::Receiver<Message>) -> (usize, Vec<String>) {
    let (mut samples, mut texts) = (0, Vec::new());
    while let Ok(message) = sent.try_recv() {
        match message {
            Message::Binary(sound) => samples += sound.len() / 2,
            other => texts.push(other.into_text().unwrap().to_string()),
        }
    }
    (samples, texts)
}

fn end_of_turn(session: &mut Session, words: &str, to: f64) {
    let event = format!(
        r#"{{"type":"TurnInfo","event":"EndOfTurn","turn_index":0,"audio_window_start":0.0,"audio_window_end":{to},"transcript":"{words}"}}"#
    );
    session.step(Step::Read(Ok(event.into())));
    session.settle();
}

/// What is answered.
fn answers(session: &mut Session) -> Vec<String> {
    let told = std::iter::from_fn(|| session.outbox.pop());
    let answers = told.filter_map(|told| match told {
        Transcribed::Final(words) => Some(words),
        Transcribed::Failed(failure) => Some(format!("! {}", failure.name())),
        _ => None,
    });
    answers.collect()
}

#[tokio::test]
async fn a_question_that_meets_a_broken_connection_is_asked_of_the_next() {
    let mut session = session();
    let sent = connect(&mut session);
    session.take(Hear::Begin(1));
    session.take(sound());
    // The rest of it cannot be sent.
    drop(sent);
    session.take(Hear::Finalize);
    assert!(matches!(session.way, Way::Closed) && session.book.is_asked());

    let sent = connect(&mut session);
    assert_eq!(got(sent), (1_600, vec![r#"{"type":"ForceEndTurn"}"#.to_owned()]));
    end_of_turn(&mut session, "Yes.", 0.1);
    assert_eq!(answers(&mut session), ["Yes."], "one question, one answer");
}

#[tokio::test]
async fn what_is_answered_is_not_sent_again() {
    let mut session = session();
    let sent = connect(&mut session);
    session.take(Hear::Begin(1));
    session.take(sound());
    session.take(Hear::Finalize);
    assert_eq!(got(sent).0, 1_600);
    end_of_turn(&mut session, "Yes,", 0.1);
    assert_eq!(answers(&mut session), ["Yes,"]);
    session.step(Step::Read(Err(SpeechError::Closed)));
    session.settle();
    assert!(matches!(session.way, Way::Closed), "nobody needs one");
    session.take(Hear::Finalize);
    session.settle();
    assert_eq!(answers(&mut session), ["Yes,"]);

    // What is said later is added.
    session.take(sound());
    session.take(Hear::Finalize);
    assert_eq!(got(connect(&mut session)).0, 1_600);
    end_of_turn(&mut session, "please.", 0.1);
    assert_eq!(answers(&mut session), ["Yes, please."]);
}
