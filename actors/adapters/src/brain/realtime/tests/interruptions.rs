//! The other side cuts in, or the talk goes on without waiting.
use super::*;

/// A server that speaks twice at its first turn and does not end; then says what it heard.
fn hanging() -> RealtimeServer {
    RealtimeServer::start_with(|turn, nth| match nth {
        0 => Reply::SayAndHang("I have a long story.".into()),
        _ => Reply::Say(turn.texts.join(" ")),
    })
}

#[tokio::test]
async fn what_was_not_heard_is_cut_off() {
    // What was played, of 1,200 ms; what the provider is told.
    for (played_ms, cut) in [(500, Some(500)), (1_200, Some(1_200)), (99_000, Some(1_200)), (0, None)] {
        let server = RealtimeServer::start_with(|_, _| Reply::Say("I have a long story.".into()));
        let mut brain = brain(&server);
        turn(&mut brain, Heard::Opening).await.unwrap();
        brain.interrupted("I have", played_ms).await;
        // A second time is too late to matter.
        brain.interrupted("I have", played_ms).await;
        turn(&mut brain, words("stop")).await.unwrap();
        let cuts = server.events_of("conversation.item.truncate");
        let cuts: Vec<_> = cuts.iter().map(|event| event["audio_end_ms"].as_u64()).collect();
        assert_eq!(cuts, cut.map(Some).into_iter().collect::<Vec<_>>(), "{played_ms}");
        assert_eq!(
            server.events_of("conversation.item.delete").len(),
            usize::from(cut.is_none()),
            "{played_ms}"
        );
        assert!(server.events_of("response.cancel").is_empty(), "it was over");
        assert!(server.errors().is_empty(), "{:?}", server.errors());
    }
}

/// When it ends, a provider tells of everything that was in an answer again: also of what was cut meanwhile. The model knows
/// afterwards what was heard of it, as it was heard.
#[tokio::test]
async fn what_was_heard_stays_in_the_conversation_when_the_answer_ends_after_the_cut() {
    let whole = "agent: I have a long story.";
    let cut = "agent: I have a long story., cut after 500 ms";
    for (played_ms, expected) in [
        (500, &[cut, "user: stop", whole, "user: thanks"][..]),
        (0, &["user: stop", whole, "user: thanks"]),
    ] {
        let (server, turns) = noting(|_, _| Reply::Say("I have a long story.".into()));
        let mut brain = brain(&server);
        let mut listening = Listening::to(&mut brain, Heard::Opening);
        listening.play_ms(600).await;
        drop(listening);
        brain.interrupted("I have", played_ms).await;
        for text in ["stop", "thanks"] {
            turn(&mut brain, words(text)).await.unwrap();
        }
        assert_eq!(known(&turns), expected, "{played_ms}");
        assert_eq!(refusals(&server), Vec::<Value>::new(), "{played_ms}");
    }
}

/// The same while the answer is still being made: the end that follows repeats what was cut.
#[tokio::test]
async fn what_was_heard_stays_in_the_conversation_when_the_answer_was_not_made_to_its_end() {
    let (server, turns) = noting(|turn, nth| match nth {
        0 => Reply::SayAndHang("I have a long story.".into()),
        _ => Reply::Say(turn.texts.join(" ")),
    });
    let mut brain = brain(&server);
    let mut listening = Listening::to(&mut brain, Heard::Opening);
    listening.play_ms(1_240).await;
    drop(listening);
    brain.interrupted("I have a long story.", 1_220).await;
    assert_eq!(turn(&mut brain, words("stop")).await.unwrap(), [say("stop")]);
    assert_eq!(
        known(&turns),
        [
            "agent: I have a long story.",
            "agent: And then, cut after 20 ms",
            "user: stop"
        ]
    );
    assert_eq!(refusals(&server), Vec::<Value>::new());
}

/// One that was cut in on, and has answered since.
async fn cut_in_on(server: &RealtimeServer) -> Realtime {
    let mut brain = brain(server);
    let mut listening = Listening::to(&mut brain, Heard::Opening);
    listening.play_ms(1_240).await;
    drop(listening);
    brain.interrupted("I have", 300).await;
    assert_eq!(turn(&mut brain, words("stop")).await.unwrap(), [say("stop")]);
    brain
}

/// A provider that repeats nothing is understood as well.
#[tokio::test]
async fn an_answer_is_known_without_what_its_end_repeats() {
    let server = hanging().repeat_nothing();
    let _brain = cut_in_on(&server).await;
    assert_eq!(server.events_of("conversation.item.truncate").len(), 1);
    assert_eq!(
        server.events_of("conversation.item.delete").len(),
        1,
        "what nobody heard"
    );
    assert!(server.errors().is_empty(), "{:?}", server.errors());
}

#[tokio::test]
async fn an_answer_of_two_items_is_cut_where_its_sound_stopped() {
    let sound = |item: &str| json!({"type": "response.output_audio.delta", "item_id": item, "delta": "/////////////////////////////////////////w=="});
    let (cut, removed) = ("conversation.item.truncate", "conversation.item.delete");
    for (played_ms, expected) in [
        (2, vec![(cut, "a", Some(2)), (removed, "b", None)]),
        (3, vec![(removed, "b", None)]),
        (4, vec![(cut, "b", Some(1))]),
    ] {
        let server = RealtimeServer::start_with(move |_, _| Reply::Raw(vec![sound("a"), sound("b")]));
        let mut brain = brain(&server);
        let acts = turn(&mut brain, Heard::Opening).await.unwrap();
        // 31 bytes are 3 ms and a bit; what is not whole does not count.
        let sound = Pcm::of_mu_law(&[255; 31]);
        assert_eq!(acts, vec![Did::Spoke(String::new(), sound); 2]);
        brain.interrupted("", played_ms).await;
        server.received(expected[expected.len() - 1].0, 1).await;
        let events = server.events();
        let told = events.iter().filter_map(|event| {
            let item = event["item_id"].as_str()?;
            Some((event["type"].as_str()?, item, event["audio_end_ms"].as_u64()))
        });
        assert_eq!(told.collect::<Vec<_>>(), expected, "{played_ms}");
    }
}

#[tokio::test]
async fn an_answer_dropped_early_is_called_off_and_forgotten() {
    let server = hanging();
    let mut brain = cut_in_on(&server).await;
    assert_eq!(turn(&mut brain, words("thanks")).await.unwrap(), [say("thanks")]);
    let deleted = [
        "conversation.item.delete",
        "conversation.item.create",
        "response.create",
    ];
    let begin = ["response.create", "response.cancel", "conversation.item.truncate"];
    let last = ["conversation.item.create", "response.create"];
    assert_eq!(asks(&server), [&begin[..], &deleted, &last].concat());
    assert_eq!(server.events_of("conversation.item.truncate")[0]["audio_end_ms"], 300);
    assert!(server.errors().is_empty(), "{:?}", server.errors());
}

#[tokio::test]
async fn a_brain_dropped_at_any_moment_is_usable_at_the_next_turn() {
    // The stream is polled a number of times, then dropped: before, while and after it connects, asks and listens.
    for polls in 0.. {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let seen = heard.clone();
        let server = RealtimeServer::start_with(move |turn, nth| {
            seen.lock().unwrap().push(turn.audio.len());
            let said = if turn.texts.is_empty() {
                "I have a long story.".into()
            } else {
                turn.texts.join(" ")
            };
            if nth == 0 {
                Reply::SayAndHang(said)
            } else {
                Reply::Say(said)
            }
        });
        let mut brain = brain(&server);
        let mut stream = brain.think(spoken(speech(300)));
        let mut spoke = false;
        for _ in 0..polls {
            spoke = stream.next().now_or_never().is_some();
            if spoke {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(stream);
        for text in ["stop", "thanks"] {
            assert_eq!(first(&mut brain, words(text)).await, say(text), "{polls}");
        }
        assert_eq!(refusals(&server), Vec::<Value>::new(), "{polls}");
        // The speech came in whole, or not at all.
        let heard: usize = heard.lock().unwrap().iter().sum();
        assert!([0, 300 * 8].contains(&heard), "{polls}: {heard}");
        if spoke {
            return;
        }
    }
}

#[tokio::test]
async fn a_dropped_answer_is_called_off_at_once_and_its_rest_does_not_clog_the_line() {
    let server = hanging();
    let mut brain = brain(&server);
    assert_eq!(first(&mut brain, Heard::Opening).await, say("I have a long story."));
    // Nobody thinks; its last sounds, more than the line holds, come before the ping.
    server.received("response.cancel", 1).await;
    server.received("pong", 1).await;
    assert_eq!(turn(&mut brain, words("stop")).await.unwrap(), [say("stop")]);
}

#[tokio::test]
async fn speech_that_was_only_half_put_in_is_not_heard() {
    let server = RealtimeServer::start_with(|turn, _| Reply::Say(format!("{} bytes", turn.audio.len())));
    let mut brain = brain(&server);
    let mut stream = brain.think(spoken(vec![SILENCE; 200 * 8_000]));
    tokio::select! {
        act = stream.next() => panic!("{act:?} to half a speech"),
        () = server.received("input_audio_buffer.append", 1) => {}
    }
    drop(stream);
    assert_eq!(turn(&mut brain, spoken(speech(100))).await.unwrap(), [say("800 bytes")]);
    assert_eq!(server.events_of("input_audio_buffer.clear").len(), 1);
}

#[tokio::test]
async fn stragglers_of_an_earlier_answer_are_not_the_new_ones() {
    let text = |words: &str| json!({"type": "response.output_text.done", "item_id": words, "text": words});
    let mut late = text("too late");
    late["response_id"] = json!("resp_1");
    let server = RealtimeServer::start_with(move |_, _| Reply::Raw(vec![late.clone(), text("in time")]));
    let mut brain = brain(&server);
    turn(&mut brain, Heard::Opening).await.unwrap();
    let acts = turn(&mut brain, words("well?")).await.unwrap();
    assert_eq!(acts, [Did::Wrote("in time".into())]);
}

#[tokio::test]
async fn calls_of_an_answer_that_was_called_off_are_answered() {
    let server = RealtimeServer::start_with(|turn, nth| match nth {
        0 => Reply::SayAndCalls("One moment.".into(), calls(1)),
        _ => Reply::Say(format!("{:?}", turn.outputs)),
    });
    let mut brain = brain(&server);
    assert_eq!(first(&mut brain, words("book")).await, say("One moment."));
    let said = say(&format!("{:?}", [("call_1", r#"{"error":"canceled"}"#)]));
    assert_eq!(turn(&mut brain, words("never mind")).await.unwrap(), [said]);
}

#[tokio::test]
async fn text_that_was_cut_off_is_replaced_by_what_was_heard() {
    let server = RealtimeServer::start_with(|_, _| {
        Reply::Raw(vec![
            json!({"type": "response.output_text.done", "item_id": "a", "text": "A long story."}),
        ])
    });
    let mut brain = brain(&server);
    turn(&mut brain, Heard::Opening).await.unwrap();
    brain.interrupted("A long", 400).await;
    server.received("conversation.item.create", 1).await;
    assert_eq!(server.events_of("conversation.item.delete")[0]["item_id"], "a");
    let item = &server.events_of("conversation.item.create")[0]["item"];
    assert_eq!(
        (&item["role"], &item["content"][0]["text"]),
        (&json!("assistant"), &json!("A long"))
    );
}

#[tokio::test]
async fn an_interruption_before_the_first_turn_is_nothing() {
    let server = hanging();
    brain(&server).interrupted("", 0).await;
    assert!(server.events().is_empty());
}
