//! Everything that a provider can do wrong.
use super::*;

fn why(result: Result<Vec<Did>, Failure>) -> String {
    let Failure::Provider(why) = result.unwrap_err();
    why
}

/// The failure of a first turn.
async fn fails(reply: fn() -> Reply) -> String {
    let server = RealtimeServer::start_with(move |_, _| reply());
    why(turn(&mut brain(&server), Heard::Opening).await)
}

#[tokio::test]
async fn failures_say_what_is_wrong() {
    type Case = (fn() -> Reply, &'static str);
    let cases: [Case; 5] = [
        (|| Reply::Fail("overloaded".into()), "its answer is failed: overloaded"),
        (|| Reply::Error("no such voice".into()), "it refused: no such voice"),
        (|| Reply::Close, "it closed the connection"),
        (
            || Reply::Garbage,
            "it sent a frame that is not a JSON event of the protocol",
        ),
        (
            || {
                Reply::Raw(vec![
                    json!({"type": "response.audio.delta", "item_id": "a", "delta": "*"}),
                ])
            },
            "its audio is not base64",
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(fails(reply).await, expected);
    }
}

#[tokio::test]
async fn errors_of_any_shape_are_understood() {
    for (error, expected) in [
        (json!("busy"), "it refused: busy"),
        (json!({"code": 503}), "it refused: 503"),
        (json!({"message": "busy", "code": null, "more": []}), "it refused: busy"),
        (Value::Null, "it refused: no reason given"),
    ] {
        let event = json!({"type": "error", "error": error});
        let server = RealtimeServer::start_with(move |_, _| Reply::Raw(vec![event.clone()]));
        assert_eq!(why(turn(&mut brain(&server), Heard::Opening).await), expected);
    }
}

#[tokio::test]
async fn answers_have_limits() {
    let long = fails(|| {
        Reply::Raw(vec![
            json!({"type": "response.text.delta", "item_id": "a", "delta": "a".repeat(8_001)}),
        ])
    });
    assert_eq!(long.await, "its answer is longer than 8000 characters");
    let loud = fails(|| {
        let delta = json!({"type": "response.audio.delta", "item_id": "a", "delta": "////".repeat(60 * 8_000 / 3 + 1)});
        Reply::Raw(vec![delta; 5])
    });
    assert_eq!(loud.await, "its answer has more than 5 minutes of sound");
    let large = fails(|| Reply::Raw(vec![json!({"type": "mood", "mood": "a".repeat(MESSAGE_LIMIT)})]));
    assert!(large.await.starts_with("it sent too much at once"));
    let items = fails(|| {
        let delta = |n: usize| json!({"type": "response.text.delta", "item_id": n.to_string(), "delta": "a"});
        Reply::Raw((0..65).map(delta).collect())
    });
    assert_eq!(items.await, "its answer has more than 64 items");
    let calls = fails(|| Reply::Calls(calls(65)));
    assert_eq!(calls.await, "its answer has more than 64 calls");
}

#[tokio::test]
async fn a_failed_answer_of_which_something_was_said_counts_as_said() {
    let done = json!({"type": "response.done", "response": {"id": "resp_1", "status": "incomplete"}});
    let server = RealtimeServer::start_with(move |_, _| {
        let text = json!({"type": "response.text.delta", "item_id": "a", "delta": "Half a"});
        Reply::Raw(vec![text, done.clone()])
    });
    let acts = turn(&mut brain(&server), Heard::Opening).await.unwrap();
    assert_eq!(acts, [Did::Wrote("Half a".into())]);
}

#[tokio::test]
async fn after_a_refusal_the_talk_goes_on() {
    let server = RealtimeServer::start_with(|turn, nth| match nth {
        0 => Reply::Error("overloaded".into()),
        1 => Reply::Fail("overloaded".into()),
        2 => Reply::Raw(vec![
            json!({"type": "response.audio.delta", "item_id": "a", "delta": "*"}),
        ]),
        _ => Reply::Say(turn.texts.join(" ")),
    });
    let mut brain = brain(&server);
    for _ in 0..3 {
        why(turn(&mut brain, Heard::Opening).await);
    }
    assert_eq!(turn(&mut brain, words("hello")).await.unwrap(), [say("hello")]);
    assert_eq!(server.events_of("connected").len(), 1);
}

#[tokio::test]
async fn a_conversation_that_broke_is_not_begun_anew() {
    let server = RealtimeServer::start_with(|_, _| Reply::Close);
    let mut brain = brain(&server);
    why(turn(&mut brain, Heard::Opening).await);
    let why = why(turn(&mut brain, words("hello")).await);
    assert_eq!(why, "the conversation is lost: it closed the connection");
    brain.interrupted("", 10).await;
    assert_eq!(server.events_of("connected").len(), 1);
}

#[tokio::test]
async fn silence_has_an_end() {
    let short = Duration::from_millis(20);
    let hang = || RealtimeServer::start_with(|_, _| Reply::Hang);

    let server = hang().say_nothing();
    let mut dumb = brain(&server);
    dumb.patience.connect = Duration::from_secs(3);
    assert_eq!(
        why(turn(&mut dumb, Heard::Opening).await),
        "it did not confirm the session in time"
    );

    // Nobody accepts this connection's handshake.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut deaf = brain_at(
        &format!("ws://{}/v1/realtime", listener.local_addr().unwrap()),
        RealtimeSettings::default(),
    );
    deaf.patience.connect = short;
    assert_eq!(why(turn(&mut deaf, Heard::Opening).await), "no connection in time");

    let server = hang();
    let mut hung = brain(&server);
    hung.patience.silence = short;
    assert_eq!(why(turn(&mut hung, Heard::Opening).await), "it does not answer");

    let server = RealtimeServer::start_with(|_, nth| {
        if nth == 0 {
            Reply::Ignore
        } else {
            Reply::Say("Yes?".into())
        }
    });
    let mut ignored = brain(&server);
    ignored.patience.first = short;
    assert_eq!(why(turn(&mut ignored, Heard::Opening).await), "it does not answer");
    ignored.patience = PATIENCE;
    assert_eq!(turn(&mut ignored, words("hello?")).await.unwrap(), [say("Yes?")]);

    let server = hang();
    let mut slow = brain(&server);
    slow.patience.answer = short;
    assert_eq!(why(turn(&mut slow, Heard::Opening).await), "its answer takes too long");
}

#[tokio::test]
async fn the_key_is_in_no_words() {
    // The server repeats the key that it was given.
    let server = RealtimeServer::start_with(|_, _| Reply::Hang).only_for_key("another");
    let mut stranger = brain(&server);
    let words = why(turn(&mut stranger, Heard::Opening).await);
    assert_eq!(
        words,
        "it refused the connection with 401 Unauthorized, is the key right?: Incorrect API key provided: Bearer [key]"
    );
    assert!(!format!("{stranger:?}").contains(KEY));
    assert_eq!(
        fails(|| Reply::Error(format!("{KEY}\nis bad"))).await,
        "it refused: [key] is bad"
    );
    // It was not connected: it may try again.
    why(turn(&mut stranger, Heard::Opening).await);
    assert_eq!(server.events_of("connected").len(), 2);
}

#[tokio::test]
async fn a_wrong_address_is_named() {
    let server = RealtimeServer::start_with(|_, _| Reply::Hang);
    let url = server.url.replace("/v1/realtime", "/v2?a=b&model=c");
    let words = why(turn(&mut brain_at(&url, RealtimeSettings::default()), Heard::Opening).await);
    assert!(
        words.starts_with("it refused the connection with 404 Not Found, are the address and the model `gpt-realtime`")
    );
    assert_eq!(server.events_of("connected")[0]["uri"], "/v2?a=b&model=gpt-realtime");
    let gone = format!(
        "ws://127.0.0.1:{}/",
        std::net::TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
    );
    let words = why(turn(&mut brain_at(&gone, RealtimeSettings::default()), Heard::Opening).await);
    let expected = "no connection to 127.0.0.1: nothing listens on its address (connection refused)";
    assert!(words.starts_with(expected), "{words}");
}

#[test]
fn providers_are_checked() {
    for (url, key, model, expected) in [
        (
            "https://api.example.com/v1/realtime",
            "k",
            "m",
            Some("starts with `https`; write wss:// or ws://"),
        ),
        ("api.example.com", "k", "m", Some("is not a URL")),
        (
            "wss://user:pass@api.example.com/",
            "k",
            "m",
            Some("has a user or password"),
        ),
        ("wss://api.example.com/#a", "k", "m", Some("has a part after `#`")),
        ("wss://api.example.com/", "k\n", "m", Some("has a key with characters")),
        ("wss://api.example.com/", "k", " ", Some("needs a model")),
        ("wss://api.example.com/v1/realtime", "k", "m", None),
        ("ws://127.0.0.1:8000/v1/realtime", "", "m", None),
    ] {
        let error = Provider::new(url, key, model).err();
        match expected {
            Some(expected) => assert!(
                error.as_deref().is_some_and(|error| error.starts_with(expected)),
                "{url}: {error:?}"
            ),
            None => assert_eq!(error, None, "{url}"),
        }
    }
}

/// Some name no ask in their errors: the items of later commits are not taken for those of earlier ones.
#[tokio::test]
async fn a_commit_that_is_refused_without_a_name_shifts_none() {
    let server = RealtimeServer::start_with(|_, _| Reply::Say("Fine.".into())).name_no_asks();
    let mut brain = brain(&server);
    brain.reach().await.unwrap();
    // Nothing was said before it.
    let commit = named(&protocol::commit_name(0), Ask::Commit);
    let State::Open(link) = &brain.state else { panic!() };
    assert!(link.send(commit).await);
    server.received("error", 1).await;
    assert_eq!(turn(&mut brain, words("hello")).await.unwrap(), [say("Fine.")]);
    turn(&mut brain, spoken(speech(300))).await.unwrap();
    assert!(brain.commits.id(0).is_none() && brain.commits.id(1).is_some());
}
