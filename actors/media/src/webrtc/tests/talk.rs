//! Sound and words, both ways.
use super::*;
use entities::transcript::Speaker;
use serde_json::json;

async fn speaks_and_hears(codec: Codec) {
    let media = media();
    let mut call = Call::new(&media, codec).await;
    let played = call.play(&tone(600.0, 1_500));
    assert_eq!(played.await, Ok(Played::Whole));
    let view = call
        .peer
        .until("it has heard the tone and its silence", |view| view.packets >= 75)
        .await;
    assert!(view.energy > 0.01 * 16_000.0, "{}", view.energy);
    let purity = purest(&call.peer.heard(), 600.0);
    assert!(purity > 0.9, "{codec:?}: {purity}");

    call.peer.say(SENTENCE);
    let said = call.said().await;
    let spoken_ms = SENTENCE.len() as u64 / 8;
    assert!(
        (spoken_ms - 500..spoken_ms + 400).contains(&said.ms()),
        "{} of {spoken_ms} ms",
        said.ms()
    );
    // A steady deep tone is a voice to the detector, which is how it can be measured at this end.
    call.peer.say([tone(440.0, 1_500), vec![0xff; 8_000]].concat());
    let said = call.said().await;
    assert_eq!(said.rate, 16_000);
    let purity = purest(&said.samples, 440.0);
    assert!(purity > 0.9, "{codec:?}: {purity}");
}

/// A voice of 24 kHz, whose words leave while the next are still being made.
#[tokio::test]
async fn opus_carries_what_a_telephone_cannot() {
    let media = media();
    let call = Call::new(&media, Codec::Opus).await;
    let angle = |n: usize| std::f64::consts::TAU * 6_000.0 * n as f64 / 24_000.0;
    let voice: Vec<i16> = (0..24_000).map(|n| (8_000.0 * angle(n).sin()) as i16).collect();
    let (mut feed, played) = call.bridge.play(24_000);
    assert!(feed.push_all(&voice).await);
    call.peer
        .until("it hears the beginning", |view| view.packets >= 10)
        .await;
    assert!(feed.push_all(&voice).await);
    feed.finish();
    assert_eq!(played.await, Ok(Played::Whole));
    call.peer.until("it hears the rest", |view| view.packets >= 100).await;
    let purity = purest(&call.peer.heard(), 6_000.0);
    assert!(purity > 0.9, "{purity}");
}

#[tokio::test]
async fn opus_carries_sound_both_ways() {
    speaks_and_hears(Codec::Opus).await;
}

#[tokio::test]
async fn mu_law_carries_sound_both_ways() {
    speaks_and_hears(Codec::Pcmu).await;
}

#[tokio::test]
async fn a_law_carries_sound_both_ways() {
    speaks_and_hears(Codec::Pcma).await;
}

#[tokio::test]
async fn a_pause_is_a_pause_in_the_stream_s_time_and_costs_no_packets() {
    let media = media();
    let call = Call::new(&media, Codec::Pcmu).await;
    let spurt = || call.play(&tone(500.0, 400));
    assert_eq!(spurt().await, Ok(Played::Whole));
    call.peer
        .until("the first spurt is heard", |view| view.packets >= 20)
        .await;
    // Somebody else's connection passes the time.
    let other = Call::new(&media, Codec::Pcmu).await;
    other.is_alive(300.0).await;
    // 20 frames and 10 of silence, fewer if the machine was busy then.
    let first = call.peer.view().packets;
    assert!((20..=30).contains(&first), "{first}");
    assert_eq!(spurt().await, Ok(Played::Whole));
    let view = call
        .peer
        .until("the second spurt is heard", |view| view.packets >= first + 20)
        .await;
    assert!(view.packets <= first + 30, "{}", view.packets);
    let times: Vec<u64> = view.times.iter().map(|(ms, _)| *ms).collect();
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| step % 20 == 0 && *step > 0), "{steps:?}");
    let pause = usize::try_from(first).unwrap() - 1;
    assert!(steps[pause] > 100, "{steps:?}");
}

#[tokio::test]
async fn the_page_is_told_everything_and_presses_keys() {
    let media = media();
    let (bridge, heard) = MediaBridge::new();
    bridge.caption(0, Speaker::Agent, "Before the page came".into());
    let mut call = Call::on(&media, Codec::Opus, bridge).await;
    call.heard = Some(heard);
    let long = "word ".repeat(2_000);
    call.bridge.caption(1, Speaker::User, long.clone());
    let view = call
        .peer
        .until("it has both captions", |view| view.notes.len() == 2)
        .await;
    assert_eq!(
        view.notes,
        [
            json!({ "type": "caption", "place": 0, "role": "agent", "text": "Before the page came" }),
            json!({ "type": "caption", "place": 1, "role": "user", "text": long }),
        ]
    );

    let bad = [
        "{".to_string(),
        r#"{"type":"keys","digits":""}"#.into(),
        r#"{"type":"keys","digits":"5a"}"#.into(),
        r#"{"type":"keys"}"#.into(),
        r#"{"type":"words","text":"5"}"#.into(),
        format!(r#"{{"type":"keys","digits":"{}"}}"#, "1".repeat(33)),
        format!(r#"{{"type":"keys","digits":"7","more":"{}"}}"#, "x".repeat(1_100)),
    ];
    for message in bad {
        call.peer.send(message);
    }
    call.peer.press("5");
    assert_eq!(call.pressed().await, "5");
    call.peer.press("0123456789*#");
    assert_eq!(call.pressed().await, "0123456789*#");
}

#[tokio::test]
async fn a_page_that_floods_is_heard_no_more_than_twenty_times_a_second() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcmu).await;
    for _ in 0..60 {
        call.peer.press("1");
    }
    // It comes after them all, and is heard once a second has passed.
    let mut count = 0;
    while call.heard.as_mut().unwrap().try_recv().is_ok() {
        count += 1;
    }
    call.is_alive(440.0).await;
    call.is_alive(440.0).await;
    call.is_alive(440.0).await;
    while call.heard.as_mut().unwrap().try_recv().is_ok() {
        count += 1;
    }
    assert!((20..60).contains(&count), "{count}");
}

#[tokio::test]
async fn the_end_of_the_talk_ends_the_connection_after_the_page_knows() {
    let media = media();
    let mut call = Call::new(&media, Codec::Pcmu).await;
    call.bridge.caption(0, Speaker::Agent, "Goodbye".into());
    call.bridge.close("completed");
    let connection = call.connection.take().unwrap();
    connection.finish().await;
    call.peer.closed().await;
    let last = call.peer.view().notes.pop();
    assert_eq!(last, Some(json!({ "type": "ended", "reason": "completed" })));
    // What the owner does itself it is not told.
    assert_eq!(call.change().await, None);
    assert_eq!(media.connections(), 0);
}

#[tokio::test]
async fn two_pages_talk_at_once_on_the_one_port() {
    let media = media();
    let mut first = Call::new(&media, Codec::Opus).await;
    let mut second = Call::new(&media, Codec::Pcmu).await;
    assert_eq!(media.connections(), 2);
    drop((first.play(&tone(500.0, 2_000)), second.play(&tone(900.0, 2_000))));
    first.peer.press("1");
    second.peer.press("2");
    assert_eq!(
        (first.pressed().await, second.pressed().await),
        ("1".into(), "2".into())
    );
    for (call, own, other) in [(&first, 500.0, 900.0), (&second, 900.0, 500.0)] {
        call.peer.until("it hears", |view| view.packets >= 60).await;
        let heard = call.peer.heard();
        assert!(purest(&heard, own) > 0.9 && purest(&heard, other) < 0.1);
    }
}

#[tokio::test]
async fn a_page_that_comes_again_hears_on_from_where_it_stopped() {
    let media = media();
    let first = Call::new(&media, Codec::Pcmu).await;
    let bridge = first.bridge.clone();
    let played = first.play(&[tone(500.0, 2_000), tone(900.0, 1_000)].concat());
    bridge.caption(0, Speaker::Agent, "Hello".into());
    first
        .peer
        .until("it hears the beginning", |view| view.packets >= 25)
        .await;
    drop(first.connection);
    first.peer.closed().await;
    let taken = first.peer.view().packets;
    let second = Call::on(&media, Codec::Opus, bridge).await;
    assert_eq!(played.await, Ok(Played::Whole));
    // All of it and the silence after it, but for what was on its way when the first was closed.
    let rest = 150_u64.saturating_sub(taken);
    let view = second
        .peer
        .until("it has the rest", |view| view.packets >= rest && view.notes.len() == 1)
        .await;
    assert!(view.packets <= 160, "{}", view.packets);
    let heard = second.peer.heard();
    assert!(purest(&heard, 500.0) > 0.9 && purest(&heard, 900.0) > 0.9);
}
