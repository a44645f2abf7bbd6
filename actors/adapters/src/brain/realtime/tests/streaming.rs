//! An answer is heard while it is being made.
use super::*;
use crate::speech::watermark::for_tests;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

fn sound(item: &str, bytes: &[u8]) -> Value {
    json!({"type": "response.output_audio.delta", "item_id": item, "delta": BASE64.encode(bytes)})
}

#[tokio::test]
async fn its_first_sound_does_not_wait_for_the_rest() {
    let (gate, closed) = watch::channel(false);
    let server = RealtimeServer::start_with(move |_, _| Reply::SayGated("Good day.".into(), closed.clone()));
    let mut brain = brain(&server);
    let mut listening = Listening::to(&mut brain, Heard::Opening);
    listening.play_ms(20).await;
    assert_eq!(*listening.voices[0].words.borrow(), "Good day.", "words come with it");
    assert_eq!(listening.played_ms, 20, "the rest is not made yet");
    gate.send(true).unwrap();
    let (did, failure) = listening.all().await;
    let [Did::Spoke(words, sound)] = &did[..] else {
        panic!("{did:?}")
    };
    assert_eq!((words.as_str(), sound.ms(), failure), ("Good day.", 540, None));
}

#[tokio::test]
async fn what_came_before_a_failure_is_heard() {
    for (broken, why) in [
        (
            Some("<html>"),
            "it sent a frame that is not a JSON event of the protocol",
        ),
        (None, "it closed the connection"),
    ] {
        let server = RealtimeServer::start_with(move |_, _| Reply::SayAndBreak("Half of".into(), broken));
        let mut brain = brain(&server);
        let heard = Listening::to(&mut brain, Heard::Opening).all().await;
        assert_eq!(heard, (vec![say("Half of")], Some(Failure::Provider(why.into()))));
    }
}

/// More than waits for a slow listener at once. Calls come after the sound.
#[tokio::test]
async fn a_long_answer_is_heard_to_its_end() {
    let book = json!({"id": "b", "type": "function_call", "call_id": "c", "name": "book", "arguments": "{}"});
    let mut events = vec![sound("a", &[SILENCE; 20 * 8_000]); 3];
    events.push(json!({"type": "response.output_item.done", "item": book}));
    let server = RealtimeServer::start_with(move |_, _| Reply::Raw(events.clone()));
    let mut brain = brain(&server);
    let did = turn(&mut brain, Heard::Opening).await.unwrap();
    let [Did::Spoke(_, spoken), Did::Called(..)] = &did[..] else {
        panic!("{did:?}")
    };
    assert_eq!(spoken.ms(), 60_000);
}

#[tokio::test]
async fn one_item_is_spoken_after_the_other() {
    let events = vec![
        sound("a", &[SILENCE; 80]),
        sound("b", &[SILENCE; 160]),
        sound("a", &[SILENCE; 240]),
        sound("b", &[SILENCE; 320]),
    ];
    let server = RealtimeServer::start_with(move |_, _| Reply::Raw(events.clone()));
    let did = turn(&mut brain(&server), Heard::Opening).await.unwrap();
    let spoke = |bytes: usize| Did::Spoke(String::new(), Pcm::of_mu_law(&vec![SILENCE; bytes]));
    assert_eq!(
        did,
        [spoke(80), spoke(480)],
        "what comes late of the first is not heard"
    );
}

/// As what the service's own voices say does.
#[tokio::test]
async fn its_sound_passes_the_watermark_once_and_as_it_comes() {
    let events = vec![sound("a", &[1, 0, 2, 0]), sound("a", &[3, 0]), sound("b", &[5, 0])];
    let server = RealtimeServer::start_with(move |_, _| Reply::Raw(events.clone()));
    let settings = RealtimeSettings { pcm: true, model: None };
    let spoke = |samples: Vec<i16>| Did::Spoke(String::new(), Pcm::new(24_000, samples));
    let plain = turn(&mut brain_at(&server.url, settings.clone()), Heard::Opening).await;
    assert_eq!(plain, Ok(vec![spoke(vec![1, 2, 3]), spoke(vec![5])]), "there is none");
    let _filter = for_tests::put_in();
    let marked = turn(&mut brain_at(&server.url, settings), Heard::Opening).await;
    assert_eq!(marked, Ok(vec![spoke(vec![2, 4, 6]), spoke(vec![6])]));
}

#[tokio::test]
async fn a_sample_may_come_in_two_pieces() {
    let events = vec![sound("a", &[1, 0, 2]), sound("a", &[0, 3]), sound("a", &[0, 4])];
    let server = RealtimeServer::start_with(move |_, _| Reply::Raw(events.clone()));
    let settings = RealtimeSettings { pcm: true, model: None };
    let did = turn(&mut brain_at(&server.url, settings), Heard::Opening)
        .await
        .unwrap();
    assert_eq!(did, [Did::Spoke(String::new(), Pcm::new(24_000, vec![1, 2, 3]))]);
}
