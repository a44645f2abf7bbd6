//! What the machine did wrong once.
use super::*;

fn ended(session: Session, command: Command, seconds: i64) -> (Status, EndReason, Vec<Effect>) {
    let (session, effects) = transition(session, command, at(seconds)).unwrap();
    match session.phase {
        Phase::Ended(end) => (end.status, end.reason, effects),
        phase => panic!("{phase:?}"),
    }
}

fn is_recorded(effects: &[Effect]) -> bool {
    kinds(effects).contains(&"SaveRecording".to_owned())
}

/// Opt-out and consent refusal end `completed` with that reason and are never retried. Source: CONTRACT §4.
#[test]
fn who_wants_no_more_calls_or_no_recording_ends_so_whatever_happens_during_the_good_bye() {
    for (name, reason) in [
        ("opting out", EndReason::OptOut),
        ("opting out, recorded", EndReason::OptOut),
        ("refusing", EndReason::ConsentRefused),
    ] {
        for command in [Command::Shutdown, fault()] {
            let (status, why, _) = ended(state(name), command.clone(), 20);
            assert_eq!((status, why), (Status::Completed, reason), "{name} + {command:?}");
        }
        let mut session = state(name);
        if let Phase::Conversing(talk) = &mut session.phase {
            talk.end_by = at(20);
        }
        let (status, why, _) = ended(session, Command::Tick, 20);
        assert_eq!((status, why), (Status::Completed, reason), "{name} at its longest");
    }
}

/// `completed` if and only if a human conversation ran. Source: CONTRACT §4.
#[test]
fn a_machine_that_is_handed_over_stays_a_machine() {
    let handed_over = after(state("with a machine"), transfer_to_sales(), 15);
    let (status, reason, _) = ended(handed_over, Command::Transferred, 20);
    assert_eq!((status, reason), (Status::Voicemail, EndReason::Transferred));
}

#[test]
fn of_a_talk_whose_recording_was_refused_nothing_is_kept() {
    for name in ["recorded", "granted", "asked"] {
        let refused = after(state(name), Command::Consent(false), 16);
        assert_eq!(refused.row().recording_id, None, "{name}");
        let read = Session::from_row(refused.row(), url()).unwrap();
        let (_, _, effects) = ended(read, lose_at(20), 20);
        assert!(!is_recorded(&effects), "{name}, lost");
        let (_, _, effects) = ended(refused, Command::HangUp(EndedBy::Agent), 20);
        assert!(!is_recorded(&effects), "{name}");
    }
}

#[test]
fn a_recording_that_never_began_has_no_id_at_the_end() {
    let row = after(state("asked"), Command::HangUp(EndedBy::Caller), 20).row();
    assert_eq!(row.recording_id, None);
}

/// There is no number to bar and to tell of, but a recording to erase.
#[test]
fn a_caller_without_a_number_can_opt_out_too() {
    let mut row = incoming();
    row.from_number = None;
    row.options.recording = recorded(ConsentMode::Notice).options.recording;
    let (session, effects) = transition(talk_of(row), opt_out(), at(16)).unwrap();
    assert_eq!(kinds(&effects), ["session.opt_out_recording_pending_purge"]);
    assert_eq!(session.row().purge_after, Some(at(700_000)));
}

/// A commit that was in doubt stood: the command is decided once more, over the row.
#[test]
fn a_wish_that_stands_in_the_row_is_not_told_again() {
    for (name, command) in [
        ("opting out, recorded", opt_out()),
        ("refusing", Command::Consent(false)),
    ] {
        let read = Session::from_row(state(name).row(), url()).unwrap();
        let again = transition(read.clone(), command, at(17)).unwrap();
        assert_eq!(again, (read, Vec::new()), "{name}");
    }
    let read = Session::from_row(state("opting out").row(), url()).unwrap();
    let (_, reason, _) = ended(read, Command::HangUp(EndedBy::Agent), 20);
    assert_eq!(reason, EndReason::OptOut);
}

#[test]
fn what_is_forgotten_stays_forgotten() {
    let gone = after(state("ended"), Command::Delete, 50);
    let found = Evaluated {
        disposition: Some(Disposition {
            code: "sold".into(),
            note: "wants three, said Ada".into(),
        }),
        answers: vec![answer_to("seats", 3)],
        ..nothing_found()
    };
    for command in [Command::Evaluate(found), label(), Command::Delete] {
        let again = transition(gone.clone(), command.clone(), at(60)).unwrap();
        assert_eq!(again, (gone.clone(), Vec::new()), "{command:?}");
    }
}

#[test]
fn a_cut_puts_no_words_into_a_call_of_a_function() {
    let spoken = after(
        state("answered"),
        utter(Speaker::Agent, "Hello, this is Mia.", 2_000),
        12,
    );
    let cut = after(after(spoken, look_up(25), 13), interrupt(), 13);
    let contents: Vec<_> = cut.log.turns.iter().map(|turn| turn.content.as_deref()).collect();
    assert_eq!(contents, [Some("Hel"), None]);
}

#[test]
fn no_words_are_spoken_beyond_the_end_of_the_call() {
    let spoken = after(state("answered"), utter(Speaker::Agent, "One moment.", 9_000), 12);
    let worked = after(after(spoken, look_up(25), 13), found(false), 14);
    let (_, _, effects) = ended(worked, Command::End, 15);
    let Effect::Fact(Fact::SaveTranscript(stored)) = &effects[0] else {
        panic!("{effects:?}")
    };
    assert_eq!(stored.turns.0[0].end_t, Some(5.0));
}
