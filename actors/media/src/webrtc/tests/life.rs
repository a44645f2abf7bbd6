//! Connections come and go.
use super::*;

#[tokio::test]
async fn a_page_that_vanishes_is_lost_and_comes_back() {
    let media = media();
    let mut call = Call::new(&media, Codec::Opus).await;
    call.peer.say(SENTENCE);
    assert!(matches!(call.heard().await, MicEvent::SpeechStarted { .. }));
    call.peer.vanish();
    // What it was saying ends there.
    while !matches!(call.heard().await, MicEvent::SpeechEnded(_)) {}
    assert_eq!(call.change().await, Some(Change::Lost));
    // The agent's words wait meanwhile.
    let mut played = call.play(&tone(600.0, 500));
    assert_eq!(media.connections(), 1);
    assert!(played.try_recv().is_err());
    call.peer.come_back();
    assert_eq!(call.change().await, Some(Change::Back));
    call.peer.until("it hears what waited", |view| view.packets >= 25).await;
    assert!(purest(&call.peer.heard(), 600.0) > 0.9);
    call.peer.press("3");
    assert_eq!(call.pressed().await, "3");
}

/// What is sent says nothing of who is there.
#[tokio::test]
async fn a_page_that_vanishes_while_the_agent_speaks_is_lost_too() {
    let media = media();
    let mut call = Call::new(&media, Codec::Opus).await;
    let mut played = call.play(&tone(600.0, 8_000));
    call.peer.until("it hears the agent", |view| view.packets >= 10).await;
    call.peer.vanish();
    assert_eq!(call.change().await, Some(Change::Lost));
    assert!(played.try_recv().is_err(), "the rest waits for it");
}

#[tokio::test]
async fn a_page_that_closes_is_lost_at_once_and_for_good() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcmu).await;
    call.peer.close();
    assert_eq!(call.change().await, Some(Change::Lost));
    assert_eq!(call.change().await, None);
    assert_eq!(media.connections(), 0);
}

#[tokio::test]
async fn dropping_a_connection_tells_the_page_and_frees_everything() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcma).await;
    drop(call.connection.take());
    call.peer.closed().await;
    assert_eq!(call.change().await, None);
    assert_eq!(media.connections(), 0);
    assert_eq!(Arc::strong_count(&call.bridge), 1);
}

#[tokio::test]
async fn what_is_not_connected_leaves_nothing() {
    let media = media();
    let (_peer, sdp) = Peer::offer(Codec::Opus);
    drop(media.offer(&sdp).unwrap());
    assert_eq!(media.connections(), 0);
    let (bridge, _heard) = MediaBridge::new();
    let (tell, mut changes) = changes();
    let nobody_comes = media.offer(&sdp).unwrap().connect(bridge, tell);
    assert_eq!(media.connections(), 1);
    drop(nobody_comes);
    assert_eq!(changes.recv().await, None);
    assert_eq!(media.connections(), 0);
}

#[tokio::test]
async fn a_talk_that_ends_before_its_page_comes_does_not_wait_for_it() {
    let media = media();
    let (_peer, sdp) = Peer::offer(Codec::Opus);
    let (bridge, _heard) = MediaBridge::new();
    let (tell, mut changes) = changes();
    let _connection = media.offer(&sdp).unwrap().connect(bridge.clone(), tell);
    bridge.close("completed");
    assert_eq!(changes.recv().await, None);
    assert_eq!(media.connections(), 0);
}

#[tokio::test]
async fn a_page_may_change_its_network() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcmu).await;
    call.is_alive(440.0).await;
    call.peer.move_on();
    call.peer.press("7");
    assert_eq!(call.pressed().await, "7");
    call.is_alive(440.0).await;
}

#[tokio::test]
async fn the_end_of_media_ends_its_connections() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcmu).await;
    drop(media);
    assert_eq!(call.change().await, Some(Change::Lost));
    assert_eq!(call.change().await, None);
    assert_ne!(call.peer.view().state, State::New);
}
