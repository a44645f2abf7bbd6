//! What is said goes out while it is spoken, and exactly once.
use super::*;
use crate::brain::LIVE_KEPT_FREE;

/// A tone of a microphone.
fn heard(ms: usize) -> Pcm {
    Pcm::new(16_000, tone(ms, 16_000))
}

/// The words of such a tone.
pub(super) fn over(ms: usize) -> Heard {
    Heard::Words(Speech {
        text: "heard".into(),
        audio: Some(heard(ms)),
    })
}

fn pieces(ms: usize) -> Vec<LiveSound> {
    let sound = heard(ms);
    let pieces = sound.samples.chunks(320);
    pieces
        .map(|piece| LiveSound::Piece(Pcm::new(16_000, piece.to_vec())))
        .collect()
}

async fn say_live(live: &mpsc::Sender<LiveSound>, sounds: Vec<LiveSound>) {
    for sound in sounds {
        live.send(sound).await.unwrap();
    }
}

/// All of it, and that it is over.
pub(super) async fn speak(live: &mpsc::Sender<LiveSound>, ms: usize) {
    say_live(live, pieces(ms)).await;
    live.send(LiveSound::End).await.unwrap();
}

fn answering() -> (RealtimeServer, Turns) {
    noting(|_, _| Reply::Say("Fine.".into()))
}

/// What it heard for its last answer, in bytes of mu-law.
fn bytes(turns: &Turns) -> usize {
    turns.lock().unwrap().last().unwrap().audio.len()
}

#[tokio::test]
async fn what_was_sent_while_it_was_spoken_is_not_sent_again() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    brain.reach().await.unwrap();
    speak(&live, 500).await;
    server.received("input_audio_buffer.commit", 1).await;
    assert_eq!(turn(&mut brain, over(500)).await.unwrap(), [say("Fine.")]);
    let sent = vec!["input_audio_buffer.append"; 25];
    let rest = ["input_audio_buffer.commit", "response.create"];
    assert_eq!(asks(&server), [&sent[..], &rest].concat());
    assert_eq!(bytes(&turns), 500 * 8);

    // What it is said to be may be without the pause that ended it.
    speak(&live, 900).await;
    turn(&mut brain, over(300)).await.unwrap();
    assert_eq!(bytes(&turns), 900 * 8);
    assert_eq!(known(&turns), ["user: 500 ms", "agent: Fine.", "user: 900 ms"]);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_wide_session_gets_it_wide() {
    let (server, turns) = answering();
    let settings = RealtimeSettings { pcm: true, model: None };
    let mut brain = brain_at(&server.url, settings);
    let live = brain.live_sound().unwrap();
    speak(&live, 400).await;
    turn(&mut brain, over(400)).await.unwrap();
    assert_eq!(bytes(&turns), 400 * 48);
    assert_eq!(server.events_of("input_audio_buffer.append").len(), 20);
}

#[tokio::test]
async fn it_is_sent_while_the_agent_speaks() {
    let (server, turns) = noting(|_, nth| match nth {
        0 => Reply::SayAndHang("I have a long story.".into()),
        _ => Reply::Say("Fine.".into()),
    });
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    let mut listening = Listening::to(&mut brain, Heard::Opening);
    listening.play_ms(1_240).await;
    speak(&live, 300).await;
    // Nobody polls the answer meanwhile.
    server.received("input_audio_buffer.commit", 1).await;
    drop(listening);
    brain.interrupted("I have", 300).await;
    assert_eq!(turn(&mut brain, over(300)).await.unwrap(), [say("Fine.")]);
    assert_eq!(
        known(&turns),
        ["agent: I have a long story., cut after 300 ms", "user: 300 ms"]
    );
    assert_eq!(server.events_of("input_audio_buffer.append").len(), 15);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

#[tokio::test]
async fn what_was_no_speech_leaves_nothing() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    say_live(&live, pieces(200)).await;
    live.send(LiveSound::Discard).await.unwrap();
    // Of nothing nothing is left either.
    for nothing in [LiveSound::Discard, LiveSound::End] {
        live.send(nothing).await.unwrap();
    }
    speak(&live, 300).await;
    turn(&mut brain, over(300)).await.unwrap();
    assert_eq!(known(&turns), ["user: 300 ms"]);
    assert_eq!(server.events_of("input_audio_buffer.clear").len(), 1);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_short_word_is_long_enough_for_the_provider() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    speak(&live, 60).await;
    turn(&mut brain, over(60)).await.unwrap();
    assert_eq!(known(&turns), ["user: 100 ms"]);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

/// Nobody takes it before the socket is open.
#[tokio::test]
async fn of_what_found_no_room_the_whole_counts() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    let lost = pieces(8_000)
        .into_iter()
        .filter(|piece| live.try_send(piece.clone()).is_err());
    assert_eq!(lost.count(), 400 - LIVE_PIECES);
    assert!(live.try_send(LiveSound::End).is_err());
    turn(&mut brain, over(8_000)).await.unwrap();
    assert_eq!(bytes(&turns), 8_000 * 8);

    // What comes next is not told from what was lost: it counts as a whole too.
    speak(&live, 200).await;
    turn(&mut brain, over(200)).await.unwrap();
    // And then all is well again.
    let before = server.events_of("input_audio_buffer.append").len();
    for (nth, ms) in [300, 400].into_iter().enumerate() {
        speak(&live, ms).await;
        turn(&mut brain, over(ms)).await.unwrap();
        assert_eq!(bytes(&turns), ms * 8, "{nth}");
    }
    assert_eq!(server.events_of("input_audio_buffer.append").len() - before, 35);
    let users: Vec<String> = known(&turns)
        .into_iter()
        .filter(|item| item.starts_with("user"))
        .collect();
    assert_eq!(users, ["user: 8000 ms", "user: 200 ms", "user: 300 ms", "user: 400 ms"]);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

/// Whoever leads sound here keeps room for its ends: what finds only that is missing as well.
#[tokio::test]
async fn of_what_left_room_for_the_ends_only_the_whole_counts() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    for piece in pieces(6_040) {
        if live.capacity() > LIVE_KEPT_FREE {
            live.try_send(piece).unwrap();
        }
    }
    live.try_send(LiveSound::End).unwrap();
    // Without the pause at its end it would be as long as what came.
    turn(&mut brain, over(5_100)).await.unwrap();
    assert_eq!(bytes(&turns), 5_100 * 8);
    assert_eq!(known(&turns), ["user: 5100 ms"]);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

#[tokio::test]
async fn what_belongs_to_more_than_was_sent_is_replaced_by_the_whole() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    speak(&live, 300).await;
    turn(&mut brain, over(1_000)).await.unwrap();
    assert_eq!(known(&turns), ["user: 1000 ms"]);
    assert_eq!(server.events_of("conversation.item.delete").len(), 1);

    // Two utterances may be what was said at once.
    speak(&live, 300).await;
    speak(&live, 400).await;
    turn(&mut brain, over(700)).await.unwrap();
    assert_eq!(
        known(&turns),
        ["user: 1000 ms", "agent: Fine.", "user: 300 ms", "user: 400 ms"]
    );
    assert_eq!(server.events_of("conversation.item.delete").len(), 1);
    assert_eq!(server.errors(), Vec::<Value>::new());
}

#[tokio::test]
async fn the_next_words_may_begin_before_the_last_are_answered() {
    let (server, turns) = answering();
    let mut brain = brain(&server);
    let live = brain.live_sound().unwrap();
    speak(&live, 300).await;
    say_live(&live, pieces(100)).await;
    turn(&mut brain, over(300)).await.unwrap();
    assert_eq!(known(&turns), ["user: 300 ms"]);
    speak(&live, 100).await;
    turn(&mut brain, over(200)).await.unwrap();
    assert_eq!(known(&turns), ["user: 300 ms", "agent: Fine.", "user: 200 ms"]);
    assert_eq!(server.events_of("input_audio_buffer.append").len(), 25);
    assert_eq!(server.events_of("input_audio_buffer.clear").len(), 0);
}

#[tokio::test]
async fn it_ends_with_its_brain() {
    let (server, _turns) = answering();
    let mut open = brain(&server);
    let live = open.live_sound().unwrap();
    assert!(open.live_sound().unwrap().same_channel(&live), "there is one");
    open.reach().await.unwrap();
    speak(&live, 100).await;
    drop(open);
    live.closed().await;
    server.received("closed", 1).await;

    let server = RealtimeServer::start_with(|_, _| Reply::Close);
    let mut lost = brain(&server);
    let live = lost.live_sound().unwrap();
    turn(&mut lost, words("hello")).await.unwrap_err();
    live.closed().await;
    assert!(lost.live_sound().is_none(), "there is nobody who could hear it");
}
