//! What the record of attempts keeps of a call's end.
use super::*;
use crate::{
    law::record::{Closing, OutcomeBody},
    session::sip_answer::SipReason,
};
use entities::ids::AttemptId;

/// What the end says, and whether it may never have been dialled.
fn outcome(effects: &[Effect]) -> Option<(OutcomeBody, bool)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Fact(Fact::CloseAttempt(Closing::Outcome {
            attempt_id,
            campaign_id,
            unless_undialled,
            body,
        })) => {
            assert_eq!(
                (*attempt_id, *campaign_id),
                (AttemptId(call().id.0), call().campaign_id)
            );
            Some(((**body).clone(), unless_undialled.is_some()))
        }
        _ => None,
    })
}

fn ended(name: &str, command: Command) -> (OutcomeBody, bool) {
    outcome(&transition(state(name), command, at(25)).unwrap().1).unwrap()
}

#[test]
fn a_talk_is_recorded_as_it_went() {
    let talked = after(state("talking"), dispose("sold"), 20);
    let (body, may_be_undialled) =
        outcome(&transition(talked, Command::HangUp(EndedBy::Caller), at(25)).unwrap().1).unwrap();
    assert!(!may_be_undialled);
    assert_eq!(
        (body.status.as_str(), body.reason.as_deref()),
        ("completed", Some("completed"))
    );
    assert_eq!(
        (body.dialed_at, body.started_at, body.ended_at),
        (Some(at(0)), Some(at(10)), Some(at(25)))
    );
    assert_eq!((body.rang_ms, body.duration_seconds), (Some(10_000), 15));
    assert_eq!(
        (body.answered_by, body.ended_by),
        (Some(AnsweredBy::Human), Some(EndedBy::Caller))
    );
    assert_eq!(
        (body.disposition.as_deref(), body.recorded, body.recording),
        (Some("sold"), false, None)
    );
    // Short, for it is written for each call.
    let text = serde_json::to_string(&body).unwrap();
    assert!(text.len() < 500, "{text}");
    assert_eq!(serde_json::from_str::<OutcomeBody>(&text).unwrap(), body);
}

/// What the service says for the law is none of them.
#[test]
fn when_the_agent_itself_begins_to_speak_is_recorded() {
    let own = |content: &str| match utter(Speaker::Agent, content, 1_000) {
        Command::Utter(utterance) => Command::Utter(Utterance {
            is_own: true,
            ..utterance
        }),
        other => other,
    };
    let first_words_ms = |session: Session| {
        let (_, effects) = transition(session, Command::HangUp(EndedBy::Caller), at(25)).unwrap();
        outcome(&effects).unwrap().0.first_words_ms
    };
    let opened = after(
        state("answered"),
        utter(Speaker::Agent, "This is the AI assistant of Acme.", 2_000),
        12,
    );
    assert_eq!(first_words_ms(opened.clone()), None);
    let talked = after(after(opened, own("Good morning!"), 14), own("Are you there?"), 18);
    assert_eq!(first_words_ms(talked), Some(4_000));
}

#[test]
fn whoever_does_not_answer_rang_until_the_end() {
    let (body, may_be_undialled) = ended("ringing", refuse(Refusal::NoAnswer));
    assert_eq!(
        (body.status.as_str(), body.reason.as_deref(), body.rang_ms),
        ("no_answer", Some("no_answer"), Some(25_000))
    );
    assert_eq!((body.answered_by, may_be_undialled), (None, false));
    let fax = outcome(
        &transition(state("ringing"), answer_by(AnsweredBy::Fax), at(25))
            .unwrap()
            .1,
    )
    .unwrap()
    .0;
    assert_eq!(
        (fax.status.as_str(), fax.answered_by),
        ("voicemail", Some(AnsweredBy::Fax))
    );
}

#[test]
fn a_wish_a_consent_and_who_took_over_are_on_record() {
    let (body, _) = ended("opting out, recorded", Command::HangUp(EndedBy::Agent));
    assert!(body.opted_out_at.is_some() && body.recorded);
    assert_eq!(body.recording, Some(Consent::NotRequired));
    let (body, _) = ended("refusing", Command::HangUp(EndedBy::Agent));
    assert_eq!((body.recording, body.recorded), (Some(Consent::Refused), false));
    let (body, _) = ended("bridged", Command::BridgeEnded);
    assert!(body.transferred_to.is_some() && body.bridged_at.is_some());
    assert_eq!(body.reason.as_deref(), Some("transferred"));
}

/// 603+, by a carrier that repeats whom it was to call, and has signed the call before it rang.
#[test]
fn a_block_is_on_record_in_the_words_of_the_network_without_the_number() {
    let called = call().to_number.unwrap();
    let reason = SipReason {
        protocol: "SIP".into(),
        cause: Some(603),
        location: Some("LN".into()),
        text: Some("v=analytics1;url=https://block.example/r".into()),
    };
    let answer = SipAnswer {
        code: 603,
        reason: format!("Network Blocked {called}"),
        q850: None,
        reasons: vec![reason.clone()],
        jcard_url: Some("https://block.example/c".into()),
    };
    let refusal = Refusal::Blocked("analytics".into());
    let sip = Some(answer);
    let ringing = after(state("ringing"), signed(), 7);
    let (body, _) = outcome(&transition(ringing, Command::Refuse { refusal, sip }, at(8)).unwrap().1).unwrap();
    assert_eq!(
        (body.sip_code, body.blocked, body.attestation),
        (Some(603), true, Some(Attestation::A))
    );
    assert_eq!(
        (&body.sip_reasons, body.jcard_url.as_deref()),
        (&vec![reason], Some("https://block.example/c"))
    );
    let text = serde_json::to_string(&body).unwrap();
    assert!(
        text.contains("Network Blocked +***") && !text.contains(&called.as_str()[1..]),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<OutcomeBody>(&text).unwrap(), body);
}

#[test]
fn a_talk_says_how_its_call_was_signed_and_no_call_that_was_sent_back_does() {
    let signed_talk = after(state("talking"), signed(), 20);
    let hung_up = transition(signed_talk, Command::HangUp(EndedBy::Caller), at(25)).unwrap();
    assert_eq!(outcome(&hung_up.1).unwrap().0.attestation, Some(Attestation::A));
    let sent_back = after(after(state("dialing"), signed(), 1), refuse(Refusal::Congested), 2);
    let (_, effects) = transition(sent_back, Command::End, at(25)).unwrap();
    assert_eq!(outcome(&effects).unwrap().0.attestation, None);
}

/// What was written before more was kept is read as ever, and what was never said is not written.
#[test]
fn rows_that_know_nothing_of_it_stay_as_they_are() {
    let old = r#"{"status":"no_answer","reason":"declined","sip_code":603}"#;
    let body: OutcomeBody = serde_json::from_str(old).unwrap();
    assert_eq!(
        (body.blocked, body.attestation, body.sip_reasons.len()),
        (false, None, 0)
    );
    assert_eq!(serde_json::to_string(&body).unwrap(), old);
}

/// A trunk may have sent it back before.
#[test]
fn a_call_that_ends_in_the_queue_may_have_been_dialled() {
    for name in ["queued", "scheduled"] {
        let (_, effects) = transition(state(name), Command::End, at(25)).unwrap();
        let may_be_undialled = effects.iter().any(|effect| {
            matches!(
                effect,
                Effect::Fact(Fact::CloseAttempt(Closing::Outcome {
                    unless_undialled: Some(_),
                    ..
                }))
            )
        });
        assert!(may_be_undialled, "{name}");
    }
}

#[test]
fn who_calls_us_and_who_joins_a_room_was_not_called() {
    for name in ["taken in", "in a room", "incoming"] {
        let (_, effects) = transition(state(name), Command::HangUp(EndedBy::Caller), at(25)).unwrap();
        assert_eq!(outcome(&effects), None, "{name}");
    }
}

#[test]
fn a_classification_is_on_record_once_for_each_change() {
    let recorded = |session: &Session, by| {
        let (next, effects) = transition(session.clone(), evaluated("sold", by), at(50)).unwrap();
        let told = effects.iter().filter_map(|effect| match effect {
            Effect::Fact(Fact::CloseAttempt(Closing::Disposition { body, .. })) => Some((body.code.clone(), body.by)),
            _ => None,
        });
        (next, told.collect::<Vec<_>>())
    };
    let (session, told) = recorded(&state("ended"), Evaluator::Llm);
    assert_eq!(told, [("sold".to_owned(), Evaluator::Llm)]);
    let (_, again) = recorded(&session, Evaluator::Human);
    assert_eq!(again, [], "nothing has changed");
}
