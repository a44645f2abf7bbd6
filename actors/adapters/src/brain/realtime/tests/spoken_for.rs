//! What the service says in a model's place.
use super::*;

#[tokio::test]
async fn the_conversation_says_what_was_said_in_the_models_place() {
    let (server, turns) = noting(|_, _| Reply::Say("Good morning.".into()));
    let mut brain = brain(&server);
    brain.spoken_for("Before there is a session nothing is noted.").await;
    turn(&mut brain, words("Hello")).await.unwrap();
    brain.spoken_for("I am an AI.").await;
    let speech = Speech {
        text: "Are you a robot?".into(),
        audio: None,
    };
    let answer = "Yes.".to_owned();
    turn(&mut brain, Heard::Answered { speech, answer }).await.unwrap();
    assert_eq!(
        known(&turns),
        [
            "user: Hello",
            "agent: Good morning.",
            "agent: I am an AI.",
            "user: Are you a robot?",
            "user: [you have just answered this: \"Yes.\" Do not answer it again; go on]",
        ]
    );
    assert_eq!(refusals(&server), Vec::<Value>::new());
}
