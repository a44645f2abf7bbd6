//! What the model's own transcription understands is handed out beside its answers.
use super::{
    live::{over, speak},
    *,
};

fn told(kind: &str, item: &str, field: &str, words: &str) -> Value {
    let kind = format!("conversation.item.input_audio_transcription.{kind}");
    json!({"type": kind, "item_id": item, field: words})
}

fn completed(item: &str, words: &str) -> Value {
    told("completed", item, "transcript", words)
}

fn writing(server: &RealtimeServer) -> Realtime {
    let provider = Provider::new(&server.url, KEY, "gpt-realtime").unwrap();
    let provider = provider.with_transcription("gpt-live-transcribe");
    Realtime::new(provider, RealtimeSettings::default(), briefing())
}

async fn next(words: &mut mpsc::Receiver<OwnWords>) -> String {
    let next = timeout(Duration::from_secs(30), words.recv());
    next.await.expect("in time").expect("it goes on").words
}

#[tokio::test]
async fn words_come_in_the_order_of_what_was_said() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Fine.".into())).understand(|nth, item| match nth {
        0 => Vec::new(),
        // Late, and in any order.
        _ => vec![completed(item, " Two. \u{7}"), completed("item_1", "One.")],
    });
    let mut brain = writing(&server);
    let mut words = brain.own_words().unwrap();
    assert!(brain.own_words().is_none(), "they are told once");
    turn(&mut brain, Heard::Opening).await.unwrap();
    server.received("response.create", 1).await;
    let session = server.events_of("session.update")[0]["session"].clone();
    assert_eq!(
        session["audio"]["input"]["transcription"],
        json!({"model": "gpt-live-transcribe", "language": "en"})
    );
    // What is written was not heard.
    turn(&mut brain, super::words("hello")).await.unwrap();
    let mut brain = writing(&server);
    let mut others = brain.own_words().unwrap();
    turn(&mut brain, over(300)).await.unwrap();
    turn(&mut brain, over(400)).await.unwrap();
    assert_eq!(next(&mut others).await, "One.");
    assert_eq!(next(&mut others).await, "Two.");
    assert!(words.try_recv().is_err());
}

#[tokio::test]
async fn what_was_said_at_once_has_its_words_together() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Fine.".into()))
        .understand(|nth, item| vec![completed(item, ["One.", "Two."][nth])]);
    let mut brain = writing(&server);
    let mut words = brain.own_words().unwrap();
    let live = brain.live_sound().unwrap();
    speak(&live, 300).await;
    speak(&live, 400).await;
    turn(&mut brain, over(700)).await.unwrap();
    assert_eq!(next(&mut words).await, "One. Two.");
}

#[tokio::test]
async fn what_is_not_understood_has_no_words_and_nobody_waits_for_long() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Fine.".into())).understand(|nth, item| match nth {
        0 => vec![told("failed", item, "why", "noise")],
        1 => vec![
            told("delta", item, "delta", "No "),
            told("delta", item, "delta", "more"),
        ],
        2 => Vec::new(),
        _ => vec![completed(item, "Bye.")],
    });
    let mut brain = writing(&server);
    let mut words = brain.own_words().unwrap();
    turn(&mut brain, over(300)).await.unwrap();
    assert_eq!(next(&mut words).await, "");
    for expected in ["No more", ""] {
        brain.patience.words = Duration::from_secs(3);
        turn(&mut brain, over(300)).await.unwrap();
        assert_eq!(next(&mut words).await, expected);
    }
    brain.patience.words = PATIENCE.words;
    turn(&mut brain, over(300)).await.unwrap();
    assert_eq!(next(&mut words).await, "Bye.");
}

#[tokio::test]
async fn who_refuses_to_write_is_asked_without() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Fine.".into())).refuse_transcription();
    let mut brain = writing(&server);
    let mut words = brain.own_words().unwrap();
    assert_eq!(turn(&mut brain, over(300)).await.unwrap(), [say("Fine.")]);
    let sessions = server.events_of("session.update");
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[1]["session"]["audio"]["input"].get("transcription"), None);
    let since = Instant::now();
    assert_eq!(next(&mut words).await, "");
    assert!(since.elapsed() < PATIENCE.words, "nothing is waited for");
}

#[tokio::test]
async fn what_is_lost_with_the_connection_has_no_words() {
    let server = RealtimeServer::start_with(|_, _| Reply::Close);
    let mut brain = writing(&server);
    let mut words = brain.own_words().unwrap();
    turn(&mut brain, over(300)).await.unwrap_err();
    let since = Instant::now();
    assert_eq!(next(&mut words).await, "");
    assert!(since.elapsed() < PATIENCE.words, "nothing is waited for");
}

#[tokio::test]
async fn nobody_writes_unless_it_is_wanted() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Fine.".into()))
        .understand(|_, item| vec![completed(item, "One.")]);
    let mut brain = brain(&server);
    assert!(brain.own_words().is_none());
    turn(&mut brain, over(300)).await.unwrap();
    let session = server.events_of("session.update")[0]["session"].clone();
    assert_eq!(session["audio"]["input"].get("transcription"), None);
}
