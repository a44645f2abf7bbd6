//! What the service says for the law: before the brain's first word, over whoever talks over it, and against what a brain claims.
#[path = "last_words.rs"]
mod last_words;

use super::*;
use crate::call::leg::Control;
use entities::{
    agent::{Channels, ConsentMode},
    law::DisclosureKind::{self, Ai, Name, OptOut, Recording},
    session::{CallLegal, Disclose, Recorded},
};
use rules::session::machine::Session;

const WHO: &str = "This is the AI assistant of Acme.";
const OFFER: &str = "Say stop or press 9 at any time and you will not be called again.";
const REMINDER: &str = "A reminder: you are speaking with the AI assistant of Acme.";
const TRUTH: &str = "I am the AI assistant of Acme, not a human being.";

/// A call for Acme in which that is disclosed, and again after a minute.
fn lawful(kinds: &[DisclosureKind]) -> Options {
    Options {
        legal: Some(CallLegal {
            name: Some("Acme".into()),
            staffed: Some("+12025550123".parse().unwrap()),
            disclose: Some(Disclose {
                kinds: kinds.to_vec(),
                repeat_minutes: Some(1),
            }),
            ..CallLegal::default()
        }),
        ..Options::default()
    }
}

fn lawful_stage(options: Options, answers: usize) -> Stage {
    let (talk, bench) = bench_of(options, Some(true), says, answers);
    let talk = tokio::spawn(talk.hold());
    Stage { bench, talk }
}

impl Log {
    /// Of what begins so, what follows it, in its order.
    fn all(&self, what: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines
            .iter()
            .filter_map(|line| line.strip_prefix(what).map(str::to_owned))
            .collect()
    }
}

impl Stage {
    /// The other side says that, when all time that may pass has passed, while the agent speaks.
    async fn cut_in_with(&self, text: &str) {
        self.cut_in().await;
        self.hear(text, None);
        settled().await;
    }

    /// As [`Stage::end`]; answers the session.
    async fn close(self) -> Session {
        let Stage { bench, talk } = self;
        bench.time.add_permits(1_000_000);
        drop((bench.events, bench.answers));
        let speech_out = talk.await.unwrap();
        let SessionLink::Dry(session, _) = speech_out.session_link else {
            unreachable!()
        };
        *session
    }
}

/// What was told of each utterance: its kinds, and whether it was cut off.
fn told(session: &Session) -> Vec<(Vec<DisclosureKind>, bool)> {
    let disclosures = session.call.disclosures().iter();
    disclosures
        .map(|disclosure| (disclosure.kinds.clone(), disclosure.is_cut_off))
        .collect()
}

fn notes(session: &Session, kind: &str) -> Vec<String> {
    let entries = session.log.timeline.iter().filter(|entry| entry.kind == kind);
    entries.map(|entry| entry.detail.clone().unwrap_or_default()).collect()
}

#[tokio::test]
async fn who_speaks_is_said_before_consent_is_asked_and_before_the_brains_first_word() {
    let mut options = lawful(&[Ai, Name, OptOut, Recording]);
    options.recording = Some(Recorded {
        channels: Channels::Dual,
        consent: ConsentMode::Verbal,
        retention_days: None,
        transfers: false,
    });
    let mut stage = lawful_stage(options, 1);
    let log = stage.bench.log.clone();
    stage.bench.log.until("begins This is").await;
    assert_eq!(log.count("opens"), 0, "the brain is not asked before");
    stage.pass(10_000);
    stage.bench.log.until("begins Before we begin").await;
    stage.hear("Yes, that is fine.", None);
    stage.bench.log.until("opens").await;
    stage.say("Good morning to you.");
    stage.done();
    let session = stage.close().await;
    let question = "Before we begin: may I record this call?";
    assert_eq!(
        log.all("begins "),
        [format!("{WHO} {OFFER}").as_str(), question, "Good morning to you."]
    );
    assert_eq!(
        told(&session),
        [(vec![Ai, Name, OptOut], false), (vec![Recording], false)]
    );
    let said = &session.call.disclosures()[0];
    // 99 letters at 50 ms.
    assert_eq!(
        (said.started_ms, said.completed_ms, said.language.as_str()),
        (0, 4_950, "en-US")
    );
    assert_eq!(
        said.text_sha256,
        rules::digest::sha256(format!("{WHO} {OFFER}").as_bytes())
    );
    let told_ms = session.call.disclosures()[1].completed_ms;
    let first_words_ms = session.log.first_words_ms.map(i64::from);
    assert!(
        first_words_ms.is_some_and(|ms| ms >= told_ms),
        "{first_words_ms:?}, and it was told by {told_ms}"
    );
    let asked = session.call.consent_asked().unwrap();
    assert_eq!((asked.basis, asked.answer), (ConsentMode::Verbal, Some(true)));
    assert!(asked.asked_ms >= 4_950 && asked.answered_ms.unwrap() >= asked.asked_ms);
}

#[tokio::test]
async fn what_is_talked_over_is_said_again_when_the_other_side_has_finished() {
    let mut stage = lawful_stage(lawful(&[Ai, Name, OptOut]), 1);
    let log = stage.bench.log.clone();
    log.until("begins This is").await;
    stage.pass(500);
    stage.cut_in().await;
    settled().await;
    assert_eq!(log.count("begins"), 1, "nobody is spoken over");
    stage.hear("Hello? Who is this?", None);
    settled().await;
    assert_eq!(log.count("begins"), 2);
    // The first sentence and a little of the second, at 55 ms a letter by a guess.
    stage.pass(2_400);
    stage.cut_in_with("Go on.").await;
    assert_eq!(log.all("begins ")[2], OFFER, "what was heard is not said again");
    stage.pass(10_000);
    log.until("opens").await;
    stage.say("Good morning to you.");
    stage.done();
    let session = stage.close().await;
    assert_eq!(
        told(&session),
        [
            (vec![Ai, Name, OptOut], true),
            (vec![Ai, Name], false),
            (vec![OptOut], true),
            (vec![OptOut], false)
        ]
    );
    let heard = session.log.turns.iter().filter_map(|turn| turn.content.as_deref());
    assert!(heard.into_iter().any(|words| words == "Hello? Who is this?"));
    assert_eq!(log.count("hears"), 0, "the brain is not asked about it");
}

#[tokio::test]
async fn who_talks_over_it_again_and_again_hears_its_shortest_form_to_its_end() {
    let mut stage = lawful_stage(lawful(&[Ai, Name, OptOut]), 1);
    let log = stage.bench.log.clone();
    log.until("begins This is").await;
    for text in ["Hello?", "Yes?", "What?"] {
        stage.pass(200);
        stage.cut_in_with(text).await;
    }
    log.until("begins AI assistant of Acme. Say stop or press 9 for no more calls.")
        .await;
    stage.pass(10_000);
    log.until("opens").await;
    stage.done();
    let session = stage.close().await;
    let outcomes: Vec<bool> = told(&session).into_iter().map(|(_, is_cut_off)| is_cut_off).collect();
    assert_eq!(outcomes, [true, true, true, false]);
}

/// Nobody is talked to who was not told that a machine speaks.
#[tokio::test]
async fn a_voice_that_does_not_get_through_the_opening_ends_the_talk() {
    let breaks = |text: &str| match text.starts_with("This is the AI") {
        true => Does::Breaks(100),
        false => Does::Says,
    };
    let (talk, bench) = bench_of(lawful(&[Ai, Name, OptOut]), Some(true), breaks, 1);
    let log = bench.log.clone();
    bench.time.add_permits(1_000_000);
    let speech_out = talk.hold().await;
    let SessionLink::Dry(session, _) = speech_out.session_link else {
        unreachable!()
    };
    assert_eq!((log.count("begins This is"), log.count("opens")), (3, 0));
    assert_eq!(told(&session), vec![(vec![Ai, Name, OptOut], true); 3]);
    let phase = format!("{:?}", session.phase);
    assert!(phase.contains("ProviderError"), "{phase}");
    drop(bench);
}

#[tokio::test]
async fn somebody_opts_out_over_the_opening() {
    for words in ["Stop.", "Please stop calling me!"] {
        let stage = lawful_stage(lawful(&[Ai, Name, OptOut]), 0);
        stage.bench.log.until("begins This is").await;
        stage.pass(500);
        stage.cut_in_with(words).await;
        let session = stage.close().await;
        let phase = format!("{:?}", session.phase);
        assert!(
            phase.contains("OptOut") && session.call.opted_out_at.is_some(),
            "{words}: {phase}"
        );
    }
}

/// It was offered, so it counts whatever the agent says; without the offer an agent is asked.
#[tokio::test]
async fn the_key_that_was_offered_opts_out() {
    for (options, opts_out) in [
        (lawful(&[Ai, OptOut]), true),
        (lawful(&[Ai]), false),
        (Options::default(), false),
    ] {
        let mut stage = lawful_stage(options, 1);
        stage.pass(10_000);
        stage.bench.log.until("opens").await;
        stage.done();
        settled().await;
        stage.bench.events.send(Event::Pressed("9".into())).unwrap();
        settled().await;
        let session = stage.close().await;
        assert_eq!(session.call.opted_out_at.is_some(), opts_out);
    }
}

#[tokio::test]
async fn a_long_talk_is_reminded_when_the_agent_has_finished() {
    let mut stage = lawful_stage(lawful(&[Ai, Name]), 3);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.done();
    for (text, reminders) in [("Well.", 0), ("Hm.", 1)] {
        settled().await;
        let ms = 50_000;
        let words = Words {
            ms,
            ..words(text, None)
        };
        stage.bench.events.send(Event::Words(words)).unwrap();
        log.until(&format!("hears {text}")).await;
        stage.say("That is so.");
        stage.done();
        settled().await;
        assert_eq!(log.all(&format!("begins {REMINDER}")).len(), reminders, "{text}");
    }
    let begun = log.all("begins ");
    assert_eq!(
        begun[begun.len() - 2..],
        ["That is so.".to_owned(), REMINDER.to_owned()]
    );
    assert_eq!(log.all("spoken for "), [REMINDER]);
    assert_eq!(told(&stage.close().await).len(), 2);
}

#[tokio::test]
async fn whoever_is_back_is_reminded() {
    let mut stage = lawful_stage(lawful(&[Ai, Name]), 1);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.done();
    settled().await;
    stage.bench.events.send(Event::Control(Control::Resume)).unwrap();
    log.until(&format!("begins {REMINDER}")).await;
    assert_eq!(told(&stage.close().await).len(), 2);
}

/// From a transfer: who was to take over is busy. The agent says so, and then who speaks.
#[tokio::test]
async fn whom_nobody_takes_over_is_reminded() {
    const NOBODY: &str = "I am sorry, nobody is available right now.";
    let to: E164 = "+12025550177".parse().unwrap();
    let (mut talk, bench) = bench_of(lawful(&[Ai, Name]), Some(true), says, 1);
    let wanted = Command::Transfer { to: to.clone() };
    talk.speech_out.session_link.ask(wanted).await.unwrap();
    let talk = tokio::spawn(talk.hold());
    let mut stage = Stage { bench, talk };
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.done();
    settled().await;
    stage.bench.events.send(Event::Control(Control::Transfer(to))).unwrap();
    log.until(&format!("begins {REMINDER}")).await;
    let session = stage.close().await;
    assert_eq!(log.all("begins ")[1..], [NOBODY, REMINDER]);
    assert_eq!(log.all("spoken for "), [REMINDER], "the brain is told");
    assert_eq!(notes(&session, "transfer_failed"), ["busy"]);
    assert_eq!(told(&session).len(), 2);
}

#[tokio::test]
async fn who_asks_whether_a_machine_speaks_gets_the_truth_from_the_service() {
    for (question, answer) in [
        ("Are you a robot?", format!("Yes. {TRUTH}")),
        ("Are you a real person?", format!("No. {TRUTH}")),
    ] {
        let mut stage = lawful_stage(lawful(&[Ai, Name]), 2);
        let log = stage.bench.log.clone();
        stage.pass(100_000);
        log.until("opens").await;
        stage.done();
        settled().await;
        stage.hear(question, None);
        log.until(&format!("hears {question} after {answer}")).await;
        stage.say("No, of course not.");
        stage.say("Shall we go on?");
        stage.done();
        let session = stage.close().await;
        let begun = log.all("begins ");
        assert_eq!(begun[1..], [answer, "Shall we go on?".into()], "{question}");
        assert_eq!(notes(&session, "asked_if_ai"), [question]);
    }
}

/// Nothing is thought about a question before it is known that it is all.
#[tokio::test]
async fn a_question_that_may_go_on_is_answered_when_it_does_not() {
    let mut stage = lawful_stage(lawful(&[Ai, Name]), 2);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.done();
    settled().await;
    let (settle, settled_so) = oneshot::channel();
    let settling = Settling::new(async move { settled_so.await.unwrap_or(false) });
    stage.hear("Are you a robot?", Some(settling));
    settled().await;
    assert_eq!(log.count("hears"), 0);
    settle.send(true).unwrap();
    log.until("hears Are you a robot? after Yes.").await;
    assert_eq!(notes(&stage.close().await, "asked_if_ai").len(), 1);
}

#[tokio::test]
async fn a_model_that_says_it_is_human_says_the_truth() {
    let mut stage = lawful_stage(lawful(&[Ai, Name]), 1);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.say("Good morning.");
    stage.say("I am a real person. A real person will call you back, too.");
    stage.done();
    let session = stage.close().await;
    let said = format!("{TRUTH} A real person will call you back, too.");
    assert_eq!(log.all("begins ")[1..], ["Good morning.".to_owned(), said.clone()]);
    assert_eq!(log.all("corrected "), [format!("Good morning. {said}")]);
    assert_eq!(notes(&session, "claim_replaced"), ["I am a real person."]);
}

/// The same without a law that wants anything: nobody looks at it.
#[tokio::test]
async fn of_a_call_of_the_sandbox_nothing_is_changed() {
    let mut stage = stage(Some(true), says, 1);
    let log = stage.bench.log.clone();
    stage.say("I am a real person.");
    stage.done();
    assert_eq!(stage.end().await.0, ["I am a real person."]);
    assert_eq!(log.count("corrected") + log.count("spoken for"), 0);
}

/// Its sound is ahead of its words, or behind: it is stopped as soon as they are known, and what is heard next is the truth.
#[tokio::test]
async fn who_speaks_by_itself_is_stopped_when_it_says_that_it_is_human() {
    let mut stage = lawful_stage(lawful(&[Ai, Name]), 1);
    let log = stage.bench.log.clone();
    stage.pass(WHO.len() * 50);
    log.until("opens").await;
    let (make, tell, act) = live();
    stage.act(Ok(act));
    for _ in 0..30 {
        make.send(vec![1; 100]).unwrap();
    }
    stage.pass(500);
    settled().await;
    tell.send_replace("Don't worry, I am a real".into());
    settled().await;
    assert_eq!(log.count(&format!("begins {TRUTH}")), 0);
    tell.send_replace("Don't worry, I am a real person".into());
    log.until(&format!("begins {TRUTH}")).await;
    assert!(make.is_closed(), "nobody waits for more");
    stage.pass(10_000);
    log.until("spoken for").await;
    stage.done();
    let session = stage.close().await;
    assert_eq!(log.count("interrupted"), 1);
    assert_eq!(notes(&session, "claim_replaced").len(), 1);
    assert_eq!(told(&session), [(vec![Ai, Name], false), (vec![Ai, Name], false)]);
}

/// What was heard cannot be taken back: the truth follows.
#[tokio::test]
async fn a_claim_that_is_known_too_late_is_followed_by_the_truth() {
    let mut stage = lawful_stage(lawful(&[Ai, Name]), 1);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    let (make, tell, act) = live();
    stage.act(Ok(act));
    make.send(vec![1; 300]).unwrap();
    drop(make);
    settled().await;
    tell.send_replace("I am human.".into());
    drop(tell);
    stage.done();
    log.until(&format!("begins {TRUTH}")).await;
    assert_eq!(notes(&stage.close().await, "claim_replaced"), ["I am human."]);
}
