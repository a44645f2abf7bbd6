//! What the service says last, for the law: where people answer.
use super::*;
use crate::conversation::Standby;
use entities::law::DisclosureKind::Human;

const CLOSING: &str = "This was an AI assistant. To speak with a person, call +1 2 0 2 5 5 5 0 1 2 3.";

/// Source: Cal. AB 3030. It is the service that says it, behind whatever the agent has said last, and nobody cuts in.
#[tokio::test]
async fn where_people_answer_is_said_last_when_the_agent_ends_the_talk() {
    let mut stage = lawful_stage(lawful(&[Ai, Name, Human]), 1);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.say("Goodbye.");
    stage.call("end_call");
    stage.done();
    log.until(&format!("begins {CLOSING}")).await;
    let session = stage.close().await;
    assert_eq!(log.all("begins "), [WHO, "Goodbye.", CLOSING]);
    assert_eq!(told(&session), [(vec![Ai, Name], false), (vec![Ai, Human], false)]);
    let phase = format!("{:?}", session.phase);
    assert!(phase.contains("Completed"), "{phase}");
}

/// And when the service does: for somebody who wants no more of it, and when the brain has failed.
#[tokio::test]
async fn where_people_answer_is_said_behind_the_services_own_goodbye() {
    for opts_out in [true, false] {
        let mut stage = lawful_stage(lawful(&[Ai, Name, Human]), 2);
        let log = stage.bench.log.clone();
        stage.pass(100_000);
        log.until("opens").await;
        if opts_out {
            stage.done();
            settled().await;
            stage.hear("Please stop calling me!", None);
        } else {
            stage.act(Err(Failure::Provider("it broke".into())));
            stage.done();
        }
        log.until(&format!("begins {CLOSING}")).await;
        let session = stage.close().await;
        let said = log.all("begins ");
        assert_eq!((said.len(), said[2].as_str()), (3, CLOSING), "{said:?}");
        assert_eq!(session.call.opted_out_at.is_some(), opts_out);
    }
}

#[tokio::test]
async fn whoever_hangs_up_hears_no_last_words() {
    let mut stage = lawful_stage(lawful(&[Ai, Name, Human]), 1);
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.done();
    let session = stage.close().await;
    assert_eq!(log.all("begins "), [WHO]);
    assert_eq!(told(&session), [(vec![Ai, Name], false)]);
}

#[tokio::test]
async fn a_message_to_a_machine_ends_with_where_people_answer() {
    let (mut talk, bench) = bench_of(lawful(&[Ai, Name, Human]), Some(true), says, 0);
    bench.time.add_permits(1_000_000);
    talk.say_message("Your appointment is on Monday.").await;
    assert_eq!(
        bench.log.all("begins "),
        [WHO, "Your appointment is on Monday.", CLOSING]
    );
}

/// Source: 47 CFR 64.1200(a)(7)(i)(A): that message is limited to what it says. Nor has an assistant spoken.
#[tokio::test]
async fn nothing_follows_the_message_for_whom_no_agent_takes() {
    let message = "This was a telemarketing call by Acme.";
    let (mut talk, bench) = bench_of(lawful(&[Ai, Name, Human]), Some(true), says, 1);
    talk.standby = Some(Standby {
        text: message.into(),
        sound: None,
    });
    let talk = tokio::spawn(talk.hold());
    let mut stage = Stage { bench, talk };
    let log = stage.bench.log.clone();
    stage.pass(100_000);
    log.until("opens").await;
    stage.act(Err(Failure::Provider("it broke".into())));
    stage.done();
    log.until(&format!("begins {message}")).await;
    let session = stage.close().await;
    assert_eq!(log.all("begins "), [WHO, message]);
    assert_eq!(told(&session), [(vec![Ai, Name], false)]);
}
