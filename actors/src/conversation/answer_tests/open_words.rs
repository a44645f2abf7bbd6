//! Words that may go on, and words that nobody listened to: what is told and screened of them, and when.
use super::*;

fn settling() -> (oneshot::Sender<bool>, Option<Settling>) {
    let (settle, is_over) = oneshot::channel();
    (settle, Some(Settling::new(async move { is_over.await.unwrap() })))
}

/// It is thought about, and its answer's sound is there; nothing else has happened.
#[tokio::test]
async fn nothing_is_heard_told_or_called_before_it_is_settled() {
    for is_over in [true, false] {
        let mut stage = stage(Some(true), says, 3);
        stage.done();
        let (settle, settling) = settling();
        stage.hear("I would like to book", settling);
        stage.say("Sure.");
        stage.call("end_call");
        stage.done();
        stage.bench.log.until("asked Sure.").await;
        settled().await;
        assert_eq!(stage.bench.log.count("begins"), 0);
        assert!(!stage.talk.is_finished(), "nothing is called");
        settle.send(is_over).unwrap();
        if is_over {
            let (said, phase) = stage.end().await;
            assert_eq!(said, ["I would like to book", "Sure."]);
            assert!(phase.contains("by: Agent"), "it hangs up: {phase}");
            continue;
        }
        stage.bench.log.until("retracts").await;
        stage.hear("I would like to book a table.", None);
        stage.bench.log.until("hears I would like to book a table.").await;
        stage.say("Which day?");
        stage.bench.log.until("begins Which day?").await;
        stage.done();
        let log = stage.bench.log.clone();
        assert_eq!(stage.end().await.0, ["I would like to book a table.", "Which day?"]);
        assert_eq!((log.count("begins Sure."), log.count("retracts")), (0, 1));
    }
}

/// A wish counts when it has been said to its end, and not before.
#[tokio::test]
async fn only_what_is_settled_is_screened() {
    let mut stage = stage(Some(true), says, 3);
    stage.done();
    let (settle, open) = settling();
    stage.hear("Do not call me again", open);
    stage.bench.log.until("hears Do not call me again").await;
    settled().await;
    assert!(!stage.talk.is_finished());
    settle.send(false).unwrap();
    stage.done();
    stage.bench.log.until("retracts").await;
    let (settle, open) = settling();
    stage.hear("Please stop calling me.", open);
    settle.send(true).unwrap();
    let (said, phase) = stage.end().await;
    assert_eq!((said.len(), said[0].as_str()), (2, "Please stop calling me."));
    assert!(phase.contains("OptOut"), "{phase}");
}

/// What was said during the agent's words and answers nothing counts before the next of them, before what the brain wants done,
/// and during the goodbye.
#[tokio::test]
async fn what_nobody_listened_to_is_screened() {
    let aside = |stage: &Stage| {
        let words = words("Please stop calling me.", None);
        stage.bench.asides.send(words).unwrap();
    };
    let mut next = stage(Some(true), says, 1);
    next.say("Good morning to you.");
    next.say("How are you?");
    next.bench.log.until("begins Good").await;
    aside(&next);
    next.done();
    let log = next.bench.log.clone();
    let (said, phase) = next.end().await;
    assert_eq!(said[..2], ["Good morning to you.", "Please stop calling me."]);
    assert!(phase.contains("OptOut") && log.count("begins How") == 0, "{phase}");
    let mut call = stage(Some(true), says, 1);
    settled().await;
    aside(&call);
    call.call("end_call");
    call.done();
    let (said, phase) = call.end().await;
    assert_eq!(said[0], "Please stop calling me.");
    assert!(phase.contains("OptOut"), "{phase}");
    let mut failing = stage(Some(true), says, 1);
    failing.act(Err(Failure::Provider("it broke".into())));
    failing.done();
    failing.bench.log.until("begins").await;
    aside(&failing);
    let (said, phase) = failing.end().await;
    assert_eq!(said[1], "Please stop calling me.");
    assert!(phase.contains("OptOut"), "{phase}");
}

/// Of an aside that goes on the rest is told with it, once.
#[tokio::test]
async fn an_aside_that_was_not_all_is_not_told() {
    let mut stage = stage(Some(true), says, 1);
    stage.done();
    let (settle, open) = settling();
    stage.bench.events.send(Event::Aside(words("Do not", open))).unwrap();
    settle.send(false).unwrap();
    let all = words("Do not worry.", None);
    stage.bench.events.send(Event::Aside(all)).unwrap();
    assert_eq!(stage.end().await.0, ["Do not worry."]);
}
