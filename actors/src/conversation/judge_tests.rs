//! Against a real local server that speaks the protocol.
#[expect(dead_code, reason = "the rest of it is used by others")]
#[path = "../../../tests/it/world/chat_server.rs"]
mod chat_server;

use super::*;
use chat_server::{Answer, ChatServer};

/// One that waits for its answer.
fn judge(server: &ChatServer) -> Judge {
    judge_within(server, Duration::from_secs(60))
}

fn judge_within(server: &ChatServer, limit: Duration) -> Judge {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Judge::new(Some(Asks {
        provider: chat::Provider::new(&server.url(), None, "small").unwrap(),
        runtime: Handle::current(),
        clock: Clock::wall(),
        limit,
        wanted: Wanted {
            calls: true,
            recording: true,
        },
        judgements: Judgements::default(),
    }))
}

fn found(calls: bool, recording: bool) -> Answer {
    Answer::Words(json!({ "no_more_calls": calls, "no_recording": recording }).to_string())
}

/// What each question was about.
fn asked(server: &ChatServer) -> Vec<Vec<(String, String)>> {
    let said = |request: &Value| {
        let said: Vec<Value> = serde_json::from_str(request["messages"][1]["content"].as_str().unwrap()).unwrap();
        let text = |said: &Value, name: &str| said[name].as_str().unwrap().to_owned();
        said.iter()
            .map(|said| (text(said, "agent"), text(said, "caller")))
            .collect()
    };
    server.requests().iter().map(said).collect()
}

#[test]
fn only_a_plain_true_is_a_no_and_only_where_it_has_an_effect() {
    let wanted = |calls, recording| Wanted { calls, recording };
    for (found, both, calls_only, recording_only) in [
        (
            json!({ "no_more_calls": true, "no_recording": false }),
            Some(No::Calls),
            Some(No::Calls),
            None,
        ),
        (
            json!({ "no_more_calls": false, "no_recording": true }),
            Some(No::Recording),
            None,
            Some(No::Recording),
        ),
        (
            json!({ "no_more_calls": true, "no_recording": true }),
            Some(No::Calls),
            Some(No::Calls),
            Some(No::Recording),
        ),
        (
            json!({ "no_more_calls": false, "no_recording": false }),
            None,
            None,
            None,
        ),
        (json!({ "no_more_calls": "true", "no_recording": 1 }), None, None, None),
        (json!({ "no_more_calls": null }), None, None, None),
        (json!([true]), None, None, None),
        (json!("true"), None, None, None),
    ] {
        assert_eq!(wanted(true, true).of(&found), both, "{found}");
        assert_eq!(wanted(true, false).of(&found), calls_only, "{found}");
        assert_eq!(wanted(false, true).of(&found), recording_only, "{found}");
    }
}

#[tokio::test]
async fn one_question_at_a_time_and_what_is_said_meanwhile_comes_with_the_next() {
    let server = ChatServer::start_with(|_, before| found(before > 0, false)).await;
    let mut judge = judge(&server);
    judge.hear("Good morning.", "Who is it?");
    judge.hear("It is Ann.", "Oh no.");
    judge.hear("How are you?", "You people again.");
    assert_eq!(judge.no().await, No::Calls);
    let pair = |agent: &str, caller: &str| (agent.to_owned(), caller.to_owned());
    assert_eq!(
        asked(&server),
        [
            vec![pair("Good morning.", "Who is it?")],
            vec![pair("It is Ann.", "Oh no."), pair("How are you?", "You people again.")],
        ]
    );
}

/// The question before it hangs: what was said last is asked about all the same.
#[tokio::test]
async fn the_last_words_wait_for_nothing() {
    let server = ChatServer::start_with(|_, before| match before {
        0 => Answer::Hang,
        _ => found(true, false),
    })
    .await;
    let mut judge = judge(&server);
    judge.hear("", "First.");
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    judge.hear("", "And last.");
    assert_eq!(judge.heard(), None);
    assert_eq!(judge.last().await, Some(No::Calls));
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let server = ChatServer::start_with(|_, _| found(false, false)).await;
    let mut judge = judge(&server);
    judge.hear("", "First.");
    for n in 0..1_000 {
        judge.hear("", &format!("Word {n}."));
    }
    assert_eq!(judge.last().await, None);
    let asked = asked(&server);
    assert_eq!(asked.len(), 2);
    let letters: usize = asked[1].iter().map(|(_, caller)| caller.len()).sum();
    assert!((WAITING - 20..=WAITING).contains(&letters), "{letters}");
    assert_eq!(asked[1].last().unwrap().1, "Word 999.", "the newest is kept");
}

#[tokio::test]
async fn a_model_that_fails_has_said_nothing() {
    for answer in [
        Answer::Status(500, "broken".into()),
        Answer::Garbage,
        Answer::Reset,
        Answer::Words("Yes, they want no more calls.".into()),
        Answer::Hang,
    ] {
        let server = ChatServer::start_with(move |_, _| answer.clone()).await;
        let mut judge = judge_within(&server, Duration::from_millis(500));
        judge.hear("", "Enough of this.");
        assert_eq!(judge.last().await, None);
        assert!(!server.requests().is_empty());
    }
}

/// A talk is cut off before it is known whether somebody goes on: then they have said all.
#[tokio::test]
async fn words_that_are_open_at_the_end_are_screened() {
    let server = ChatServer::start_with(|_, _| found(true, false)).await;
    let mut judge = judge(&server);
    judge.leave_open(Some(No::Calls), "Hello?", "Never call me again.");
    assert_eq!((judge.cut_off(), judge.last().await), (Some(No::Calls), None));
    judge.leave_open(None, "Hello?", "I have had enough of you.");
    assert_eq!((judge.cut_off(), judge.last().await), (None, Some(No::Calls)));
    assert_eq!(
        asked(&server),
        [[("Hello?".to_owned(), "I have had enough of you.".to_owned())]]
    );
    judge.leave_open(Some(No::Calls), "Hello?", "Never call me again.");
    judge.settled();
    assert_eq!((judge.cut_off(), judge.last().await), (None, None));
}

#[tokio::test]
async fn what_has_no_words_is_not_asked_about() {
    let server = ChatServer::start_with(|_, _| found(true, true)).await;
    let mut judge = judge(&server);
    for words in [UNKNOWN, "", "…", "1 2 3"] {
        judge.hear("", words);
    }
    assert_eq!(judge.last().await, None);
    assert_eq!(server.requests().len(), 0);
    let mut nobody = Judge::none();
    nobody.hear("", "Enough of this.");
    assert_eq!(nobody.last().await, None);
}
