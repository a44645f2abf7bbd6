//! What happens in a talk: consent, the wish to be left alone, functions, a hand-over, and silence.
use super::*;
use crate::{barred::Whom, event::Event};
use entities::session::Latency;

fn talk(session: &Session) -> &ActiveCall {
    match &session.phase {
        Phase::Conversing(talk) => talk,
        phase => panic!("{phase:?}"),
    }
}

fn does(session: Session, command: Command, seconds: i64) -> Vec<Effect> {
    transition(session, command, at(seconds)).unwrap().1
}

fn timeline(session: &Session) -> Vec<&str> {
    session.log.timeline.iter().map(|entry| entry.kind.as_str()).collect()
}

#[test]
fn who_wants_no_more_calls_is_barred_told_and_the_recording_doomed_at_once() {
    let (phone_number, session_id, purge_after) = (call().to_number.unwrap(), call().id, at(700_000));
    let add_to_dnc = Effect::Fact(Fact::AddToDnc {
        whom: Whom::Number(phone_number.clone()),
        session_id,
    });
    let detected = SessionOptOutDetected {
        session_id,
        phone_number,
        detected_at: at(16),
    };
    let pending = SessionOptOutRecordingPendingPurge {
        session_id,
        recording_id: recording_id(),
        purge_after,
    };
    let (add_to_dnc, detected) = (add_to_dnc, Effect::Fact(Fact::Emit(detected.into())));
    assert_eq!(
        does(state("answered"), opt_out(), 16),
        [add_to_dnc.clone(), detected.clone()]
    );
    assert_eq!(
        does(state("granted"), opt_out(), 16),
        [add_to_dnc, detected, Effect::Fact(Fact::Emit(pending.into()))]
    );

    let leaving = after(state("granted"), opt_out(), 16);
    let wanted = CallMode::Leaving {
        reason: EndReason::OptOut,
        by: at(31),
    };
    assert_eq!(talk(&leaving).mode, wanted);
    let row = leaving.row();
    assert_eq!((row.opted_out_at, row.purge_after), (Some(at(16)), Some(purge_after)));
    // Nothing was recorded: there is nothing to announce, and nothing to erase.
    assert_eq!(after(state("asked"), opt_out(), 16).row().purge_after, None);
}

/// Source: Telemarketing and Research Calls Industry Standard 2017, s. 7 (two seconds); RCW 80.36.390 (ten).
#[test]
fn after_an_opt_out_the_line_is_free_when_the_law_wants_it() {
    for (hang_up_ms, by) in [
        (None, at(31)),
        (Some(2_000), at(18)),
        (Some(10_000), at(26)),
        (Some(60_000), at(31)),
    ] {
        let mut session = state("answered");
        let legal = entities::session::CallLegal {
            hang_up_ms,
            ..Default::default()
        };
        Arc::make_mut(&mut session.call).options.legal = Some(legal);
        let reason = EndReason::OptOut;
        assert_eq!(
            talk(&after(session.clone(), opt_out(), 16)).mode,
            CallMode::Leaving { reason, by },
            "{hang_up_ms:?}"
        );
        // An objection to being recorded is no opt-out.
        let refused = after(session, Command::Consent(false), 16);
        let reason = EndReason::ConsentRefused;
        assert_eq!(talk(&refused).mode, CallMode::Leaving { reason, by: at(31) });
    }
}

/// The model answers when the call is over: the wish is obeyed, how the call ended stands.
#[test]
fn a_wish_that_is_understood_after_the_end_is_obeyed_once() {
    let key = TenantScoped::new(call().tenant_id, call().env, recording_id());
    let purge = |keep_until| {
        Effect::Fact(Fact::PurgeRecording {
            recording: key,
            keep_until,
        })
    };
    let ended = |name| after(state(name), Command::HangUp(EndedBy::Caller), 20);

    let (opted_out, effects) = transition(ended("granted"), opt_out(), at(22)).unwrap();
    assert_eq!(
        kinds(&effects),
        ["AddToDnc", "session.opt_out_detected", "PurgeRecording"]
    );
    assert_eq!(effects[2], purge(Some(at(700_000))));
    assert_eq!(opted_out.call.opted_out_at, Some(at(20)), "it was said by then");
    assert_eq!(opted_out.phase, ended("granted").phase);
    for again in [opt_out(), Command::Consent(false)] {
        assert!(does(opted_out.clone(), again, 23).is_empty());
    }

    let (refused, effects) = transition(ended("granted"), Command::Consent(false), at(22)).unwrap();
    assert_eq!(
        kinds(&effects),
        ["session.consent_refused", "PurgeRecording", "EraseSound"]
    );
    assert_eq!(effects[1], purge(None));
    assert_eq!(refused.call.consent, Consent::Refused);
    assert!(does(refused.clone(), Command::Consent(false), 23).is_empty());
    // Both may have been said.
    assert_eq!(kinds(&does(refused, opt_out(), 23))[0], "AddToDnc");

    // Whoever was never talked with has said nothing, and a machine wishes nothing.
    let declined = after(state("ringing"), refuse(Refusal::Declined), 20);
    for nobody in [declined, ended("with a machine")] {
        for wish in [opt_out(), Command::Consent(false)] {
            assert!(does(nobody.clone(), wish, 22).is_empty());
        }
    }
    for name in ["opting out", "opting out, recorded"] {
        assert!(does(ended(name), opt_out(), 22).is_empty(), "{name}");
    }
}

#[test]
fn who_called_in_and_wants_no_calls_is_barred_by_the_number_that_called() {
    let effects = does(state("taken in"), opt_out(), 16);
    let Effect::Fact(Fact::AddToDnc { whom, .. }) = &effects[0] else {
        panic!("{effects:?}")
    };
    assert_eq!(*whom, Whom::Number(incoming().from_number.unwrap()));
}

#[test]
fn who_has_no_number_is_barred_by_the_address() {
    let opted_out = |email: Option<&str>| {
        let mut session = state("taken in");
        let call = Arc::make_mut(&mut session.call);
        call.from_number = None;
        call.email = email.map(str::to_owned);
        does(session, opt_out(), 16)
            .into_iter()
            .find_map(|effect| match effect {
                Effect::Fact(Fact::AddToDnc { whom, .. }) => Some(whom),
                _ => None,
            })
    };
    assert_eq!(
        opted_out(Some("Ada@Example.com")),
        Some(Whom::Email("ada@example.com".into()))
    );
    assert_eq!(opted_out(Some("nobody")), None);
    assert_eq!(opted_out(None), None);
}

#[test]
fn consent_is_asked_where_it_is_wanted_and_recording_begins_with_the_yes() {
    for (mode, consent, recorded_from) in [
        (ConsentMode::None, Consent::NotRequired, Some(at(10))),
        (ConsentMode::Notice, Consent::NotRequired, Some(at(10))),
        (ConsentMode::Verbal, Consent::Pending, None),
    ] {
        let session = talk_of(recorded(mode));
        assert_eq!(
            (session.call.consent, talk(&session).recorded_from),
            (consent, recorded_from),
            "{mode:?}"
        );
        assert_eq!(session.call.recording_id, Some(recording_id()), "{mode:?}");
    }
    let session = talk_of(call());
    let untouched = (
        session.call.consent,
        session.call.recording_id,
        talk(&session).recorded_from,
    );
    assert_eq!(untouched, (Consent::NotRequired, None, None));

    let granted = after(state("asked"), Command::Consent(true), 17);
    assert_eq!(
        (granted.call.consent, talk(&granted).recorded_from),
        (Consent::Granted, Some(at(17)))
    );
    assert_eq!(timeline(&granted), ["consent_granted"]);
}

/// A line that carries sound is recorded while it may be, and no longer.
#[test]
fn whoever_records_the_line_is_told_when_it_may_be() {
    let answered = |row| {
        let (dialed, _) = Session::dialed(row, url(), at(0));
        let (_, effects) = transition(dialed, answer_by(AnsweredBy::Human), at(10)).unwrap();
        kinds(&effects)
    };
    assert_eq!(answered(call()), ["session.started"]);
    assert_eq!(
        answered(recorded(ConsentMode::Verbal)),
        ["session.started"],
        "it is asked first"
    );
    for mode in [ConsentMode::None, ConsentMode::Notice] {
        assert_eq!(
            answered(recorded(mode)),
            ["session.started", "BeginRecording"],
            "{mode:?}"
        );
    }
    let effects = does(state("asked"), Command::Consent(true), 17);
    let [Effect::Work(Work::BeginRecording(call))] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(
        (call.consent, call.recording_id),
        (Consent::Granted, Some(recording_id()))
    );
    assert!(does(state("granted"), Command::Consent(true), 17).is_empty(), "once");
    // A grant that overtakes the end of the longest talk.
    assert!(does(state("asked"), Command::Consent(true), 610).is_empty());

    let objected = does(state("granted"), Command::Consent(false), 17);
    assert_eq!(objected[1], Effect::Work(Work::EraseSpool(state("granted").key())));
    assert_eq!(
        kinds(&does(state("asked"), Command::Consent(false), 17)),
        ["session.consent_refused"]
    );
}

#[test]
fn a_no_to_being_recorded_is_told_and_ends_the_call() {
    let (session, effects) = transition(state("asked"), Command::Consent(false), at(17)).unwrap();
    let refused = SessionConsentRefused {
        session_id: session.call.id,
        refused_at: at(17),
    };
    assert_eq!(effects, [Effect::Fact(Fact::Emit(refused.into()))]);
    let wanted = CallMode::Leaving {
        reason: EndReason::ConsentRefused,
        by: at(32),
    };
    assert_eq!(
        (session.call.consent, &talk(&session).mode),
        (Consent::Refused, &wanted)
    );
    assert_eq!(talk(&session).recorded_from, None);
    assert_eq!(next_deadline(&session), Some(at(32)));
}

#[test]
fn a_good_bye_ends_with_the_call_at_the_latest() {
    let mut session = state("opting out");
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.end_by = at(20);
    }
    assert_eq!(next_deadline(&session), Some(at(20)));
    assert!(matches!(after(session, Command::Tick, 20).phase, Phase::Ended(_)));
}

#[test]
fn machines_are_talked_to_as_the_call_wants_and_never_recorded() {
    for (action, wanted) in [
        (VoicemailAction::Continue, CallMode::Talking),
        (VoicemailAction::LeaveMessage, CallMode::LeavingMessage),
    ] {
        let mut row = recorded(ConsentMode::Verbal);
        row.options.voicemail.action = action;
        let session = answered(row, AnsweredBy::Voicemail);
        assert_eq!(talk(&session).mode, wanted);
        assert_eq!(
            (talk(&session).answered_by, talk(&session).recorded_from),
            (AnsweredBy::Voicemail, None)
        );
        assert_eq!(
            (session.call.consent, session.call.recording_id),
            (Consent::NotRequired, None)
        );
    }
}

#[test]
fn a_hand_over_names_the_number_and_lasts_45_seconds() {
    let to = number("+14155550199");
    let (session, effects) = transition(state("answered"), transfer_to_sales(), at(20)).unwrap();
    let initiated = SessionTransferInitiated {
        session_id: session.call.id,
        to_number: session.call.to_number.clone().unwrap(),
        from_number: None,
        transfer_number: to.clone(),
        transferred_at: at(20),
    };
    let (key, until) = (session.key(), at(65));
    assert_eq!(
        effects,
        [
            Effect::Fact(Fact::Emit(initiated.into())),
            Effect::Work(Work::Transfer {
                session: key,
                to: to.clone()
            })
        ]
    );
    assert_eq!(talk(&session).mode, CallMode::Transferring { to, until });
    assert_eq!(session.status(), Status::InProgress);
    assert_eq!(next_deadline(&session), Some(until), "silence does not count meanwhile");
}

#[test]
fn a_hand_over_that_fails_gives_the_talk_back_to_its_agent() {
    let session = state("transferring").key();
    for (command, seconds, why, wanted) in [
        // The line itself has reported it: only a time that is up is news to it.
        (nobody_there(), 20, "busy", vec![]),
        (
            Command::Tick,
            60,
            "nobody answered in time",
            vec![Effect::Work(Work::TransferEnded { session })],
        ),
    ] {
        let (session, effects) = transition(state("transferring"), command, at(seconds)).unwrap();
        assert_eq!(effects, wanted, "{why}");
        let back = talk(&session);
        assert_eq!((&back.mode, back.quiet_from), (&CallMode::Talking, at(seconds)));
        assert_eq!(
            next_deadline(&session),
            Some(at(seconds + 30)),
            "silence counts from there"
        );
        let last = session.log.timeline.last().unwrap();
        assert_eq!(
            (last.kind.as_str(), last.detail.as_deref()),
            ("transfer_failed", Some(why))
        );
        // The other one picks up after all: too late. And it may be tried again.
        assert_eq!(after(session.clone(), Command::Transferred, seconds), session);
        assert!(matches!(
            talk(&after(session, transfer_to_sales(), seconds)).mode,
            CallMode::Transferring { .. }
        ));
    }
}

#[test]
fn nobody_on_hold_is_silent() {
    let held = after(state("talking"), Command::Hold(true), 20);
    assert_eq!(next_deadline(&held), Some(at(610)));
    assert_eq!(
        after(held.clone(), Command::Hold(true), 25),
        held,
        "held twice is held once"
    );
    let back = after(held, Command::Hold(false), 300);
    assert_eq!(next_deadline(&back), Some(at(330)), "silence counts from there");
    assert_eq!(timeline(&back), ["held", "resumed"]);
}

#[test]
fn the_first_sound_after_the_greeting_is_told_once() {
    let first = after(state("answered"), first_sound(), 11);
    let again = after(
        first.clone(),
        Command::FirstSound {
            ms: 9_000,
            greeted: false,
        },
        12,
    );
    assert_eq!(again, first);
    let told = first.log.timeline.last().unwrap();
    assert_eq!(
        (told.kind.as_str(), told.detail.as_deref()),
        ("first_sound", Some("740 ms after the greeting"))
    );
    let nobody_greeted = after(state("answered"), Command::FirstSound { ms: 90, greeted: false }, 11);
    let told = nobody_greeted.log.timeline.last().unwrap();
    assert_eq!(told.detail.as_deref(), Some("90 ms after the pick-up"));
}

#[test]
fn whoever_has_taken_over_is_in_the_row_and_the_agent_hears_no_more() {
    let bridged = state("bridged");
    let to = number("+14155550199");
    assert_eq!(talk(&bridged).mode, CallMode::Bridged { to, since: at(15) });
    assert_eq!(bridged.status(), Status::InProgress);
    assert_eq!(timeline(&bridged), ["transfer_initiated", "bridged"]);
    // Later than it may last at all: the next look at the time ends it.
    let late = after(state("transferring"), bridge_to_sales(), 700);
    assert_eq!(
        (late.row().bridged_at, next_deadline(&late)),
        (Some(at(610)), Some(at(610)))
    );
    // A commit in doubt stood: read anew, it is still bridged, and lasts no longer.
    let mut read = Session::from_row(bridged.row(), url()).unwrap();
    read.carry_over(&state("transferring"));
    assert_eq!(
        (next_deadline(&read), describe(&read)),
        (next_deadline(&bridged), "bridged".to_owned())
    );
    // What is set aside for it is used up as soon as if nothing had been in doubt.
    let held = Row {
        hold_cents: Cents(10),
        ..call()
    };
    let transferring = after(talk_of(held), transfer_to_sales(), 15);
    let bridged = after(transferring.clone(), bridge_to_sales(), 20);
    let mut read = Session::from_row(bridged.row(), url()).unwrap();
    read.carry_over(&transferring);
    assert_eq!(next_deadline(&read), Some(at(45)));
    assert_eq!(next_deadline(&bridged), Some(at(45)));
}

/// Said to the agent, and understood when somebody else had taken over.
#[test]
fn a_wish_that_is_understood_after_a_take_over_is_obeyed_once_and_the_call_goes_on() {
    let recorded = talk_of(recorded(ConsentMode::Notice));
    let bridged = after(after(recorded, transfer_to_sales(), 15), bridge_to_sales(), 15);
    let (barred, effects) = transition(bridged.clone(), opt_out(), at(16)).unwrap();
    let told = [
        "AddToDnc",
        "session.opt_out_detected",
        "session.opt_out_recording_pending_purge",
    ];
    assert_eq!(kinds(&effects), told);
    let (objected, effects) = transition(bridged, Command::Consent(false), at(16)).unwrap();
    assert_eq!(kinds(&effects), ["session.consent_refused", "EraseSpool"]);
    for session in [barred, objected] {
        assert_eq!(describe(&session), "bridged");
        assert_eq!(describe(&Session::from_row(session.row(), url()).unwrap()), "bridged");
        for again in [opt_out(), Command::Consent(false)] {
            let is_other = session.call.opted_out_at.is_none() && matches!(again, Command::OptOut { .. });
            let (_, effects) = transition(session.clone(), again.clone(), at(17)).unwrap();
            assert_eq!(effects.is_empty(), !is_other, "{again:?}");
        }
        let (ended, effects) = transition(session, Command::BridgeEnded, at(30)).unwrap();
        assert_eq!(ended.row().end_reason, Some(EndReason::Transferred));
        let is_kept = kinds(&effects).contains(&"SaveRecording".to_owned());
        assert_eq!(is_kept, ended.call.opted_out_at.is_some());
    }
}

#[test]
fn a_call_that_reaches_its_longest_ends_in_the_middle_of_a_hand_over() {
    let handed_over = (0..20).fold(state("answered"), |session, nth| after(session, said(), 20 + nth * 29));
    let handed_over = after(handed_over, transfer_to_sales(), 590);
    assert_eq!(next_deadline(&handed_over), Some(at(610)));
    let row = after(handed_over, Command::Tick, 610).row();
    assert_eq!(
        (row.status, row.end_reason),
        (Status::Completed, Some(EndReason::MaxDuration))
    );
}

#[test]
fn a_function_is_in_the_transcript_with_its_answer_and_in_the_last_event() {
    let called = after(state("answered"), look_up(25), 15);
    let answered = after(called.clone(), found(false), 18);
    let turns = &answered.log.turns;
    assert_eq!(
        (turns[0].role, turns[0].t, turns[0].content.as_deref()),
        (Speaker::Agent, 5.0, None)
    );
    assert_eq!(turns[0].tool_calls[0].name, "look_up");
    assert_eq!(
        (turns[1].role, turns[1].t, turns[1].content.as_deref()),
        (Speaker::Tool, 8.0, Some("null"))
    );
    assert_eq!(turns[1].tool_call_id.as_deref(), Some("call_1"));

    let invocations = |session: Session| match &does(session, Command::HangUp(EndedBy::Caller), 20)[1] {
        Effect::Fact(Fact::Emit(Event::SessionEnded(told))) => told.function_invocations.clone(),
        effect => panic!("{effect:?}"),
    };
    let of = |status, duration_ms| Invocation {
        name: "look_up".into(),
        status,
        duration_ms,
    };
    assert_eq!(invocations(answered), [of(InvocationStatus::Succeeded, 5_000)]);
    assert_eq!(
        invocations(called),
        [of(InvocationStatus::Canceled, 5_000)],
        "the call ended first"
    );
}

#[test]
fn a_function_that_takes_too_long_is_told_and_the_talk_goes_on() {
    let called = after(state("answered"), look_up(20), 15);
    let (session, effects) = transition(called, found(true), at(20)).unwrap();
    let timeout = FunctionTimeout {
        session_id: session.call.id,
        function_id: FunctionId(Uuid::from_u128(8)),
        name: "look_up".into(),
        timeout_ms: 5_000,
    };
    assert_eq!(effects[0], Effect::Fact(Fact::Emit(timeout.into())));
    assert_eq!(talk(&session).mode, CallMode::Talking);
    assert_eq!(session.log.invocations[0].status, InvocationStatus::TimedOut);
    assert_eq!(timeline(&session), ["tool_called", "function_timed_out"]);
}

#[test]
fn who_listens_hears_each_turn_as_it_is_said() {
    let mut session = state("answered");
    for place in 0..3 {
        let (next, effects) = transition(session, said(), at(12)).unwrap();
        let (session_id, turn) = (next.call.id, next.log.turns[place].clone());
        let heard = Effect::Hint(Hint::Overheard {
            session_id,
            place,
            turn,
        });
        assert_eq!(effects, [heard]);
        session = next;
    }
}

/// Words may be known after their answer has begun: they stand where they were said, and nothing else moves.
#[test]
fn words_that_are_known_later_stand_where_they_were_said() {
    let heard = after(state("answered"), utter(Speaker::User, "[speech]", 1_000), 12);
    let answered = after(heard, utter(Speaker::Agent, "It is noon.", 1_000), 14);
    let (known, effects) = transition(answered.clone(), understood(), at(15)).unwrap();
    let turn = known.log.turns[0].clone();
    assert_eq!(turn.content.as_deref(), Some("Hello, who is there?"));
    let (before, place) = (&answered.log.turns[0], 0);
    assert_eq!((turn.t, turn.end_t), (before.t, before.end_t));
    assert_eq!(known.log.turns[1], answered.log.turns[1]);
    assert_eq!(talk(&known).quiet_from, talk(&answered).quiet_from);
    let session_id = known.call.id;
    let told = Effect::Hint(Hint::Understood {
        session_id,
        place,
        turn,
    });
    assert_eq!(effects, [told]);
    // The agent's words are its own, and there is no such turn.
    for place in [1, 2] {
        let words = "Hello?".to_owned();
        let unchanged = transition(known.clone(), Command::Understood { place, words }, at(16)).unwrap();
        assert_eq!(unchanged, (known.clone(), Vec::new()));
    }
}

#[test]
fn of_words_that_were_cut_in_on_only_what_was_heard_is_kept() {
    let spoken = after(
        state("answered"),
        utter(Speaker::Agent, "Hello, this is Mia.", 2_000),
        12,
    );
    let cut = after(spoken, interrupt(), 13);
    let turn = &cut.log.turns[0];
    assert_eq!(
        (turn.content.as_deref(), turn.t, turn.end_t),
        (Some("Hel"), 2.0, Some(3.0))
    );
    assert_eq!(talk(&cut).quiet_from, at(13));
}

/// They began as a guess of two seconds.
#[test]
fn words_that_were_still_being_made_take_as_long_as_they_took() {
    let said = |name| after(state(name), utter(Speaker::Agent, "Hello, this is Mia.", 2_000), 12);
    for (what, ms, at_second, end_t, quiet_from) in [
        ("shorter than was thought", 1_000, 13, 3.0, at(13)),
        ("longer", 5_000, 17, 7.0, at(17)),
        ("as by a clock that stands still", 5_000, 12, 7.0, at(17)),
        ("a line that stood still in the middle", 1_000, 18, 8.0, at(18)),
        ("without an end", u64::MAX, 13, 602.0, at(612)),
    ] {
        let ended = after(said("answered"), spoken(0, ms, None), at_second);
        let turn = &ended.log.turns[0];
        assert_eq!((turn.t, turn.end_t), (2.0, Some(end_t)), "{what}");
        assert_eq!(talk(&ended).quiet_from, quiet_from, "{what}");
        let content = turn.content.as_deref();
        assert_eq!(content, Some("Hello, this is Mia."), "{what}");
    }
    // Their sound is kept as that of all others is: where it is recorded, once, and as far as it was heard.
    let sound = bytes::Bytes::from(vec![0xff; 8_000]);
    for (name, kept) in [("answered", vec![]), ("recorded", vec![(0, 8_000)])] {
        let lengths = |session: &Session| -> Vec<(usize, usize)> {
            let sounds = session.log.sounds.iter();
            sounds.map(|(place, sound)| (*place, sound.len())).collect()
        };
        let ended = after(said(name), spoken(0, 1_000, Some(sound.clone())), 13);
        assert_eq!(lengths(&ended), kept, "{name}");
        let again = after(ended.clone(), spoken(0, 1_000, Some(sound.clone())), 13);
        assert_eq!(lengths(&again), kept, "{name}");
        let cut: Vec<_> = kept.iter().map(|(place, _)| (*place, 2_400)).collect();
        assert_eq!(lengths(&after(ended, interrupt(), 13)), cut, "{name}");
    }
    // There is no such turn, or it is somebody else's.
    let heard = after(said("recorded"), utter(Speaker::User, "Hm?", 500), 14);
    for place in [1, 2, usize::MAX] {
        let unchanged = after(heard.clone(), spoken(place, 900, Some(sound.clone())), 15);
        assert_eq!(unchanged, heard);
    }
}

/// What is said is known a little later than it is heard: the turn gets its words, and nothing else moves.
#[test]
fn what_the_agent_says_may_be_known_while_it_is_said() {
    let begun = after(state("answered"), utter(Speaker::Agent, "", 2_000), 12);
    let (known, effects) = transition(begun.clone(), saying(0), at(13)).unwrap();
    let (place, session_id, turn) = (0, known.call.id, known.log.turns[0].clone());
    assert_eq!(turn.content.as_deref(), Some("Hello, this is Mia."));
    assert_eq!((turn.t, turn.end_t), (begun.log.turns[0].t, begun.log.turns[0].end_t));
    assert_eq!(talk(&known).quiet_from, talk(&begun).quiet_from);
    let told = Effect::Hint(Hint::Understood {
        session_id,
        place,
        turn,
    });
    assert_eq!(effects, [told]);
    // It is told once, and only of what the agent said.
    let again = transition(known.clone(), saying(0), at(14)).unwrap();
    assert_eq!(again, (known.clone(), Vec::new()));
    let heard = after(known, utter(Speaker::User, "Hm?", 500), 14);
    for place in [1, 2, usize::MAX] {
        assert_eq!(
            transition(heard.clone(), saying(place), at(15)).unwrap(),
            (heard.clone(), Vec::new())
        );
    }
    // With its end come the words that are known by then.
    let end = |content: &str| Command::Spoken {
        place: 0,
        ms: 1_000,
        audio: None,
        content: Some(content.to_owned()),
    };
    let (ended, effects) = transition(begun, end("Hello."), at(13)).unwrap();
    let turn = &ended.log.turns[0];
    assert_eq!((turn.content.as_deref(), turn.end_t), (Some("Hello."), Some(3.0)));
    assert!(
        matches!(&effects[..], [Effect::Hint(Hint::Understood { place: 0, .. })]),
        "{effects:?}"
    );
}

/// However long they take, nobody is silent while they are made; then silence counts from their end.
#[test]
fn words_that_are_still_being_made_are_no_silence() {
    let Command::Utter(utterance) = utter(Speaker::Agent, "Hello.", 600) else {
        unreachable!()
    };
    let open = Command::Utter(Utterance {
        is_open: true,
        ..utterance
    });
    let begun = after(state("answered"), open, 12);
    let silent_at = |session: &Session| next_deadline(session);
    assert!(silent_at(&begun) > silent_at(&after(state("answered"), utter(Speaker::Agent, "Hello.", 100_000), 12)));
    let said = after(begun, spoken(0, 45_000, None), 57);
    let known = after(state("answered"), utter(Speaker::Agent, "Hello.", 45_000), 12);
    assert_eq!(silent_at(&said), silent_at(&known));
}

/// Words that are known when they have ended.
fn heard(ms: u64, ago_ms: u64) -> Command {
    Command::Utter(Utterance {
        role: Speaker::User,
        is_own: false,
        content: "Well.".into(),
        ms,
        ago_ms: Some(ago_ms),
        is_open: false,
        audio: Some(bytes::Bytes::from(vec![0xff; 800])),
    })
}

#[test]
fn words_that_are_known_when_they_have_ended_stand_where_they_began() {
    // Answered at 10, and the agent speaks from 12 to 14.
    let spoken = after(state("answered"), utter(Speaker::Agent, "Hello.", 2_000), 12);
    for (what, ms, ago_ms, times) in [
        ("after the agent", 3_000, 4_000, (6.0, 9.0)),
        ("still in the agent's words", 1_000, 7_500, (2.5, 3.5)),
        ("before them, which were said meanwhile", 1_000, 9_000, (2.0, 3.0)),
        ("before the call", 1_000, u64::MAX, (2.0, 3.0)),
        ("of which it is not known when it began", 1_000, 0, (9.0, 10.0)),
    ] {
        let session = after(spoken.clone(), heard(ms, ago_ms), 20);
        let turn = &session.log.turns[1];
        assert_eq!((turn.t, turn.end_t), (times.0, Some(times.1)), "{what}");
    }
}

#[test]
fn the_sound_of_what_is_not_recorded_is_kept_nowhere() {
    for (name, is_kept) in [
        ("answered", false),
        ("asked", false),
        ("granted", true),
        ("recorded", true),
    ] {
        let session = after(state(name), heard(100, 0), 20);
        assert_eq!(!session.log.sounds.is_empty(), is_kept, "{name}");
    }
}

#[test]
fn silence_begins_when_the_last_word_is_spoken() {
    for (what, session, silent_at) in [
        ("nobody says anything", state("answered"), 40),
        (
            "words take their time",
            after(state("answered"), utter(Speaker::Agent, "…", 8_000), 12),
            50,
        ),
        (
            "shorter words meanwhile",
            after(
                after(state("answered"), utter(Speaker::Agent, "…", 8_000), 12),
                said(),
                13,
            ),
            50,
        ),
        ("a function is awaited", after(state("answered"), look_up(100), 15), 130),
        (
            "it has answered",
            after(after(state("answered"), look_up(100), 15), found(false), 18),
            48,
        ),
        (
            "it has answered while somebody speaks",
            after(
                after(
                    after(state("answered"), utter(Speaker::User, "…", 9_000), 12),
                    look_up(100),
                    15,
                ),
                found(false),
                18,
            ),
            51,
        ),
        (
            "cut in on",
            after(
                after(state("answered"), utter(Speaker::Agent, "…", 60_000), 12),
                interrupt(),
                14,
            ),
            44,
        ),
        ("listened to", after(state("answered"), user_speaking(60), 15), 90),
        (
            "heard out",
            after(after(state("answered"), user_speaking(60), 15), heard(4_000, 5_000), 20),
            50,
        ),
        (
            "cut in on by somebody who speaks on",
            after(
                after(
                    after(state("answered"), utter(Speaker::Agent, "…", 60_000), 12),
                    user_speaking(59),
                    14,
                ),
                interrupt(),
                14,
            ),
            89,
        ),
        (
            "the agent's words are over while somebody speaks",
            after(
                after(
                    after(state("answered"), utter(Speaker::Agent, "…", 60_000), 12),
                    user_speaking(59),
                    14,
                ),
                spoken(0, 2_000, None),
                14,
            ),
            89,
        ),
        (
            "a function has answered while somebody speaks",
            after(
                after(after(state("answered"), look_up(100), 15), user_speaking(60), 16),
                found(false),
                18,
            ),
            90,
        ),
        (
            "who was heard out has begun again",
            after(
                after(after(state("answered"), user_speaking(60), 15), user_speaking(64), 19),
                heard(2_000, 5_000),
                20,
            ),
            94,
        ),
        (
            "nobody speaks without a breath",
            after(state("answered"), utter(Speaker::User, "…", u64::MAX), 12),
            610,
        ),
    ] {
        assert_eq!(next_deadline(&session), Some(at(silent_at)), "{what}");
        let early = transition(session.clone(), Command::Tick, at(silent_at).plus_millis(-1)).unwrap();
        assert_eq!(early, (session.clone(), Vec::new()), "{what}");
        assert!(
            matches!(after(session, Command::Tick, silent_at).phase, Phase::Ended(_)),
            "{what}"
        );
    }
    let patient = talk_of(call_with(|options| options.silence_seconds = 0));
    assert_eq!(
        next_deadline(&patient),
        Some(at(610)),
        "it is never hung up on for silence"
    );
}

#[test]
fn a_talk_that_reaches_its_longest_ends_whatever_is_being_said() {
    let talked = (0..25).fold(state("answered"), |session, nth| after(session, said(), 11 + nth * 24));
    assert_eq!(next_deadline(&talked), Some(at(610)));
    let Phase::Ended(end) = after(talked, Command::Tick, 610).phase else {
        panic!("it talks on")
    };
    assert_eq!(
        (end.status, end.reason, end.by),
        (Status::Completed, EndReason::MaxDuration, EndedBy::System)
    );
    assert_eq!(end.duration_seconds(), 600);
}

#[test]
fn a_disposition_and_an_answer_may_change_during_the_talk() {
    let changed = after(after(state("talking"), dispose("open"), 14), dispose("sold"), 15);
    let row = changed.row();
    assert_eq!(
        (row.disposition_code.as_deref(), row.disposition_by),
        (Some("sold"), Some(Evaluator::Agent))
    );
    let other = Command::NoteAnswer(answer_to("seats", 4));
    let answered = after(
        after(after(changed, note_answer("seats"), 16), note_answer("colour"), 17),
        other,
        18,
    );
    assert_eq!(answered.log.answers, [answer_to("colour", 3), answer_to("seats", 4)]);
}

#[test]
fn a_talk_keeps_its_first_2000_turns_and_tells_no_more() {
    let mut talked = state("talking");
    talked.log.turns = vec![talked.log.turns[0].clone(); 1_999];
    let (full, effects) = transition(talked, said(), at(14)).unwrap();
    assert_eq!(
        (full.log.turns.len(), kinds(&effects)),
        (2_000, vec!["Overheard".to_owned()])
    );
    for command in [said(), look_up(60), found(false)] {
        let (session, effects) = transition(full.clone(), command, at(15)).unwrap();
        assert_eq!((session.log.turns.len(), effects), (2_000, Vec::new()));
    }
}

#[test]
fn how_soon_it_answers_stands_in_its_row_and_in_its_timeline() {
    let latency = |session: &Session| session.row().latency;
    let of = |turns, p50_ms, p95_ms| Some(Latency { turns, p50_ms, p95_ms });
    assert_eq!(latency(&state("answered")), None);
    let once = after(state("answered"), answered_after(700), 12);
    let twice = after(once, answered_after(1_900), 14);
    assert_eq!(latency(&twice), of(2, 700, 1_900));
    assert_eq!(timeline(&twice), ["turn_latency"; 2]);
    let told = twice.log.timeline[0].detail.as_deref();
    assert_eq!(told, Some("endpoint 600 ms, packet 700 ms"));
    // A commit that failed costs nothing of it, and what follows is counted on.
    let mut read_again = Session::from_row(twice.row(), url()).unwrap();
    read_again.carry_over(&twice);
    assert_eq!(latency(&after(read_again, answered_after(800), 16)), of(3, 800, 1_900));
    // After the end it is as it was, also for whoever reads the row.
    let (ended, effects) = transition(twice, Command::HangUp(EndedBy::Caller), at(20)).unwrap();
    assert_eq!(latency(&ended), of(2, 700, 1_900));
    assert_eq!(kinds(&effects)[0], "SaveTranscript");
    let late = after(ended.clone(), answered_after(900), 21);
    assert_eq!(latency(&late), of(2, 700, 1_900));
    let read = Session::from_row(ended.row(), url()).unwrap();
    assert_eq!(read.row(), ended.row());
}
