//! What the end of a call tells: everybody the same, in one order; and what is found out after it.
use super::*;
use crate::event::Event;
use bytes::Bytes;
use entities::answer::Source;

const DAY: i64 = 86_400;

/// Ended by its caller, with what that caused.
fn hung_up(session: Session, seconds: i64) -> (Session, Vec<Effect>) {
    transition(session, Command::HangUp(EndedBy::Caller), at(seconds)).unwrap()
}

fn causes(session: Session, command: Command, seconds: i64) -> Vec<String> {
    kinds(&transition(session, command, at(seconds)).unwrap().1)
}

fn attempt_of(effects: &[Effect]) -> Attempt {
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Fact(Fact::FinishAttempt { attempt, .. }) => Some(attempt.clone()),
        _ => None,
    });
    told.unwrap()
}

fn recording_of(effects: &[Effect]) -> Option<recording::Model> {
    effects.iter().find_map(|effect| match effect {
        Effect::Fact(Fact::SaveRecording(row)) => Some(row.clone()),
        _ => None,
    })
}

#[test]
fn an_end_with_everything_in_it_is_told_in_this_order() {
    let mut row = recorded(ConsentMode::Notice);
    (row.options.has_dispositions, row.options.has_questions) = (true, true);
    let spoken = after(talk_of(row), said(), 12);
    let asked = after(spoken, note_answer("seats"), 14);
    let (session, effects) = hung_up(asked, 20);
    assert_eq!(
        kinds(&effects),
        [
            "SaveTranscript", // facts: what was said, how it ended, the contact's move,
            "session.ended",
            "Settle",       // what it cost,
            "CountCall",    // that it was,
            "CloseAttempt", // what the record keeps of it,
            "FinishAttempt",
            "SaveAnswers", // what was answered, what is to be found out, what was recorded;
            "SaveEvaluation",
            "Evaluate",
            "SaveRecording",
            "KeepSounds",
            "HangUp",    // work for the outside;
            "SlotFreed", // hints
            "OverheardEnd",
        ]
    );
    assert_eq!(session.log, Log::default(), "it is stored: memory is free of it");
    let Effect::Fact(Fact::SaveAnswers { answers, source, .. }) = &effects[6] else {
        panic!("{effects:?}")
    };
    assert_eq!(
        (answers.as_slice(), *source),
        (&[answer_to("seats", 3)][..], Source::Agent)
    );
}

#[test]
fn event_contact_and_transcript_tell_how_it_went() {
    let (_, effects) = hung_up(after(state("talking"), dispose("sold"), 30), 40);
    let [
        Effect::Fact(Fact::SaveTranscript(stored)),
        Effect::Fact(Fact::Emit(Event::SessionEnded(told))),
        ..,
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(stored.turns.0, told.transcript);
    let said = |turn: &Turn| (turn.role, turn.content.clone(), turn.t, turn.end_t);
    let hello = (Speaker::User, Some("Hello?".to_owned()), 2.0, Some(3.0));
    assert_eq!(told.transcript.iter().map(said).collect::<Vec<_>>(), [hello]);
    let address = format!("https://callboard.test/v1/sessions/{}/transcript.json", told.session_id);
    assert_eq!(told.transcript_url, Some(address));
    let times = (
        told.started_at,
        told.ended_at,
        told.duration_seconds,
        told.actual_cost_cents,
    );
    assert_eq!(times, (at(10), at(40), 30, Cents(5)));
    assert_eq!(
        (told.phone_number.clone(), told.first_name.as_deref()),
        (call().to_number, Some("Ada"))
    );
    let wanted = Attempt {
        row: DeliveryRowId(told.session_id.0),
        dialed_at: Some(at(0)),
        answered: true,
        ending: Ending::Call(told.status, told.end_reason),
        reached: true,
        disposition_code: Some("sold".into()),
        duration_seconds: 30,
        actual_cost_cents: Cents(5),
    };
    assert_eq!(attempt_of(&effects), wanted);
}

#[test]
fn a_call_in_which_nothing_was_said_has_no_transcript_to_read() {
    let (_, effects) = transition(state("ringing"), refuse(Refusal::Busy), at(8)).unwrap();
    let Effect::Fact(Fact::Emit(Event::SessionFailed(told))) = &effects[0] else {
        panic!("{effects:?}")
    };
    assert_eq!((told.transcript.len(), told.transcript_url.as_deref()), (0, None));
    assert_eq!(
        (told.started_at, told.duration_seconds, told.actual_cost_cents),
        (None, 0, Cents(0))
    );
}

#[test]
fn a_call_that_came_in_tells_its_caller_as_the_other_party() {
    let (_, effects) = hung_up(state("taken in"), 20);
    let Effect::Fact(Fact::Emit(Event::SessionEnded(told))) = &effects[0] else {
        panic!("{effects:?}")
    };
    assert_eq!(told.phone_number, incoming().from_number);
    assert_eq!(told.to_number, incoming().to_number);
}

#[test]
fn a_call_that_came_in_is_counted_once_as_it_went() {
    use inbound_call::InboundOutcome::{Abandoned, Answered};
    let counted = |effects: &[Effect]| -> Vec<_> {
        let outcome = |effect: &Effect| match effect {
            Effect::Fact(Fact::CountInbound { outcome, .. }) => Some(*outcome),
            _ => None,
        };
        effects.iter().filter_map(outcome).collect()
    };
    let after = |name: &str, command: Command| counted(&transition(state(name), command, at(20)).unwrap().1);
    assert_eq!(after("incoming", answer_by(AnsweredBy::Human)), [Answered]);
    assert!(
        after("taken in", Command::HangUp(EndedBy::Caller)).is_empty(),
        "it was counted when it was answered"
    );
    for unanswered in [
        Command::HangUp(EndedBy::Caller),
        Command::End,
        Command::Shutdown,
        lose_at(20),
    ] {
        assert_eq!(after("incoming", unanswered.clone()), [Abandoned], "{unanswered:?}");
    }
    assert!(
        after("ringing", Command::HangUp(EndedBy::Caller)).is_empty(),
        "a call of ours"
    );
}

/// A restart spends nobody's attempt: whom nobody but the service kept from answering is called again.
#[test]
fn a_call_cut_off_while_it_rang_gives_its_attempt_back() {
    for (sample, command, given_back) in [
        ("dialing", Command::Shutdown, true),
        ("ringing", Command::Shutdown, true),
        ("ringing", Command::End, false),
        // Somebody had picked up: it was an attempt.
        ("picked up", Command::Shutdown, false),
        ("ringing", lose_at(20), false),
        ("ringing", refuse(Refusal::NoAnswer), false),
        ("ringing", refuse(Refusal::Declined), false),
        ("answered", Command::Shutdown, false),
        ("talking", Command::Shutdown, false),
        ("bridged", Command::Shutdown, false),
    ] {
        let (_, effects) = transition(state(sample), command.clone(), at(20)).unwrap();
        let ending = attempt_of(&effects).ending;
        assert_eq!(ending == Ending::GivenBack, given_back, "{sample}, {command:?}");
    }
}

/// Asynchronous classification is for campaign calls with dispositions that the agent has not chosen from.
/// Source: specification, "session.disposition_set".
#[test]
fn a_talk_is_classified_unless_there_is_nothing_to_find_out() {
    let to_ask = || call_with(|options| options.has_questions = true);
    let spoken = |row: Row| after(talk_of(row), said(), 12);
    let disposed = |row: Row| after(spoken(row), dispose("sold"), 13);
    let of_the_api = |row: Row| Row {
        campaign_id: None,
        contact_id: None,
        ..row
    };
    let with_both = || {
        let mut row = to_classify();
        row.options.has_questions = true;
        row
    };
    for (what, session, is_wanted) in [
        ("a campaign's call", spoken(to_classify()), true),
        ("the agent has nothing to choose from", spoken(call()), false),
        ("no campaign", spoken(of_the_api(to_classify())), false),
        ("the agent has chosen", disposed(to_classify()), false),
        ("nothing was said", talk_of(to_classify()), false),
        ("questions are open", spoken(to_ask()), true),
        ("questions of the API's call", spoken(of_the_api(to_ask())), true),
        (
            "the agent has chosen, and questions are open",
            disposed(with_both()),
            true,
        ),
    ] {
        let (_, effects) = hung_up(session, 20);
        assert_eq!(kinds(&effects).contains(&"Evaluate".to_owned()), is_wanted, "{what}");
    }
    // Only talks with people that came to their end.
    let mut to_a_machine = for_machines(VoicemailAction::Continue);
    to_a_machine.options.has_dispositions = true;
    let machine = after(answered(to_a_machine, AnsweredBy::Voicemail), said(), 12);
    assert!(!causes(machine, Command::HangUp(EndedBy::Agent), 20).contains(&"Evaluate".to_owned()));
    for cut_off in [lose_at(20), fault()] {
        assert!(!causes(spoken(to_classify()), cut_off, 20).contains(&"Evaluate".to_owned()));
    }
}

#[test]
fn a_classification_has_two_minutes() {
    let (_, effects) = hung_up(after(talk_of(to_classify()), said(), 12), 20);
    let job = effects.iter().find_map(|effect| match effect {
        Effect::Work(Work::Evaluate(job)) => Some((job.status, job.tries, job.created_at, job.give_up_at)),
        _ => None,
    });
    assert_eq!(job, Some((evaluation::Status::Pending, 0, at(20), at(140))));
}

#[test]
fn a_recording_begins_where_it_was_allowed_and_is_kept_as_long_as_it_may() {
    let kept = |days| {
        let mut row = recorded(ConsentMode::None);
        row.options.recording.as_mut().unwrap().retention_days = days;
        talk_of(row)
    };
    let opted_out = |session| after(session, opt_out(), 15);
    let reason = |reason| Some(reason);
    for (session, from_ms, purge_after, purge_reason) in [
        (state("recorded"), 0, None, None),
        (state("granted"), 5_000, None, None), // from the yes on
        (kept(None), 0, None, None),
        (kept(Some(3)), 0, Some(at(20 + 3 * DAY)), reason(PurgeReason::Retention)),
        (opted_out(kept(None)), 0, Some(at(700_000)), reason(PurgeReason::OptOut)),
        (
            opted_out(kept(Some(3))),
            0,
            Some(at(15 + 3 * DAY)),
            reason(PurgeReason::OptOut),
        ),
        (
            opted_out(kept(Some(3_650))),
            0,
            Some(at(700_000)),
            reason(PurgeReason::OptOut),
        ),
    ] {
        let (ended, effects) = hung_up(session, 20);
        let row = recording_of(&effects).unwrap();
        assert_eq!(
            (row.id, row.session_id, row.status),
            (recording_id(), call().id, recording::Status::Processing)
        );
        assert_eq!(
            (row.from_ms, row.purge_after, row.purge_reason),
            (from_ms, purge_after, purge_reason)
        );
        assert_eq!(
            (row.wake_at, row.tries, row.channels),
            (Some(at(20)), 0, Channels::Dual)
        );
        assert_eq!(ended.row().recording_id, Some(row.id));
    }
}

#[test]
fn nothing_is_recorded_without_a_yes_where_one_is_asked_for_nor_of_machines() {
    let voicemail = || {
        let mut row = recorded(ConsentMode::None);
        row.options.voicemail.action = VoicemailAction::Continue;
        answered(row, AnsweredBy::Voicemail)
    };
    let declined_late = after(state("opting out"), Command::Consent(true), 16);
    for (what, session) in [
        ("not wanted", state("talking")),
        ("asked, no answer yet", state("asked")),
        ("asked, and refused", state("refusing")),
        ("a yes after the wish to be left alone", declined_late),
        ("a machine", voicemail()),
    ] {
        assert_eq!(recording_of(&hung_up(session, 20).1), None, "{what}");
    }
}

#[test]
fn the_sounds_of_an_agent_that_speaks_by_itself_go_with_the_recording() {
    let sound = Bytes::from_static(&[0xff; 800]);
    let spoken = Command::Utter(Utterance {
        role: Speaker::Agent,
        is_own: true,
        content: "Good morning!".into(),
        ms: 100,
        ago_ms: None,
        is_open: false,
        audio: Some(sound.clone()),
    });
    let (_, effects) = hung_up(after(state("recorded"), spoken, 12), 20);
    let sounds = effects.iter().find_map(|effect| match effect {
        Effect::Work(Work::KeepSounds { sounds, .. }) => Some(sounds.clone()),
        _ => None,
    });
    assert_eq!(sounds, Some(vec![(0, sound)]));
}

#[test]
fn of_a_call_that_was_lost_there_is_no_sound_but_a_promise_to_erase_it_stands() {
    for (name, wake_at, reason) in [
        ("recorded", None, None),
        ("opting out, recorded", Some(at(700_000)), Some(PurgeReason::OptOut)),
    ] {
        let (_, effects) = transition(state(name), lose_at(20), at(20)).unwrap();
        let row = recording_of(&effects).unwrap();
        assert_eq!(
            (row.status, row.wake_at),
            (recording::Status::Failed, wake_at),
            "{name}"
        );
        assert_eq!((row.purge_after, row.purge_reason), (wake_at, reason), "{name}");
        assert_eq!(row.error.as_deref(), Some(LOST), "{name}");
    }
    let (_, effects) = transition(state("asked"), lose_at(20), at(20)).unwrap();
    assert_eq!(recording_of(&effects), None, "nobody had said yes");
}

/// What the line of a room has carried until then is spooled: whoever makes the recording looks for it.
#[test]
fn of_a_room_that_was_lost_there_may_be_sound() {
    let mut row = in_a_room();
    row.options.recording = recorded(ConsentMode::Notice).options.recording;
    let joining = after(Session::awaiting(row, url()).0, dispatch_at(0), 0);
    let talk = after(joining, answer_by(AnsweredBy::Human), 10);
    let (_, effects) = transition(talk, lose_at(20), at(20)).unwrap();
    let row = recording_of(&effects).unwrap();
    let is = (row.status, row.wake_at, row.error);
    assert_eq!(is, (recording::Status::Processing, Some(at(20)), None));
    assert!(kinds(&effects).contains(&"KeepSounds".to_owned()), "its actor is woken");
}

#[test]
fn who_was_talked_with_is_reached_and_whom_a_message_was_left_if_that_counts() {
    let leave_message = |counts| {
        let mut row = for_machines(VoicemailAction::LeaveMessage);
        row.options.voicemail.counts_as_reached = counts;
        answered(row, AnsweredBy::Voicemail)
    };
    for (what, session, command, reached) in [
        ("a talk", state("talking"), Command::HangUp(EndedBy::Caller), true),
        (
            "no more calls",
            state("opting out"),
            Command::HangUp(EndedBy::Agent),
            true,
        ),
        ("no recording", state("refusing"), Command::HangUp(EndedBy::Agent), true),
        ("handed over", state("transferring"), Command::Transferred, true),
        ("taken over", state("bridged"), Command::BridgeEnded, true),
        ("a fax", state("ringing"), answer_by(AnsweredBy::Fax), false),
        (
            "nobody knows whom",
            state("picked up"),
            Command::HangUp(EndedBy::Caller),
            false,
        ),
        ("a message", leave_message(false), Command::MessageLeft, false),
        ("a message that counts", leave_message(true), Command::MessageLeft, true),
        (
            "half a message",
            leave_message(true),
            Command::HangUp(EndedBy::Caller),
            false,
        ),
        ("a machine", state("ringing"), answer_by(AnsweredBy::Voicemail), false),
        ("busy", state("ringing"), refuse(Refusal::Busy), false),
        ("lost", state("talking"), lose_at(20), false),
    ] {
        let (_, effects) = transition(session, command, at(20)).unwrap();
        assert_eq!(attempt_of(&effects).reached, reached, "{what}");
    }
}

#[test]
fn a_machine_that_picks_up_is_an_answer_and_no_talk() {
    let row = after(state("ringing"), answer_by(AnsweredBy::Voicemail), 20).row();
    assert_eq!((row.answered_by, row.started_at), (Some(AnsweredBy::Voicemail), None));
    let costs = (row.dialed_at, row.duration_seconds, row.actual_cost_cents);
    assert_eq!(costs, (Some(at(0)), 0, Cents(0)));
}

#[test]
fn a_fax_is_a_machine_that_nothing_is_said_to() {
    for action in [
        VoicemailAction::Hangup,
        VoicemailAction::LeaveMessage,
        VoicemailAction::Continue,
    ] {
        let picked_up = after(
            Session::dialed(for_machines(action), url(), at(0)).0,
            Command::PickUp,
            8,
        );
        let row = after(picked_up, answer_by(AnsweredBy::Fax), 10).row();
        assert_eq!(
            (row.status, row.end_reason),
            (Status::Voicemail, Some(EndReason::Voicemail)),
            "{action:?}"
        );
        let who = (row.answered_by, row.picked_up_at, row.started_at, row.actual_cost_cents);
        assert_eq!(who, (Some(AnsweredBy::Fax), Some(at(8)), None, Cents(0)), "{action:?}");
    }
}

/// The carrier bills from its 200, so the talk is told, and paid for, from then on; what is said and recorded begins later.
#[test]
fn a_talk_has_begun_when_it_was_picked_up() {
    let dialed = Session::dialed(recorded(ConsentMode::Notice), url(), at(0)).0;
    let picked_up = after(dialed, Command::PickUp, 10);
    assert_eq!(picked_up.row().picked_up_at, Some(at(10)));
    let (talk, effects) = transition(picked_up, answer_by(AnsweredBy::Unknown), at(14)).unwrap();
    let started = SessionStarted {
        session_id: call().id,
        started_at: at(10),
    };
    assert_eq!(effects[0], Effect::Fact(Fact::Emit(started.into())));
    assert_eq!(
        next_deadline(&talk),
        Some(at(44)),
        "who has just been asked is not silent yet"
    );
    let (ended, effects) = hung_up(after(talk, said(), 15), 40);
    let row = ended.row();
    assert_eq!(
        (row.started_at, row.duration_seconds, row.actual_cost_cents),
        (Some(at(10)), 30, Cents(5))
    );
    assert_eq!(
        (row.status, row.answered_by),
        (Status::Completed, Some(AnsweredBy::Unknown))
    );
    assert_eq!(recording_of(&effects).unwrap().from_ms, 4_000);
}

#[test]
fn who_answers_at_once_has_been_picked_up_then_and_nobody_picks_up_in_a_room() {
    assert_eq!(state("answered").row().picked_up_at, Some(at(10)));
    assert_eq!(state("in a room").row().picked_up_at, None);
}

/// Ten cents a minute, from 10 on; from 15 on twice as much.
#[test]
fn both_legs_of_a_bridge_cost_and_what_is_left_of_the_call_is_halved() {
    let (ended, effects) = transition(state("bridged"), Command::BridgeEnded, at(45)).unwrap();
    let row = ended.row();
    assert_eq!(
        (row.duration_seconds, row.bridged_at, row.actual_cost_cents),
        (35, Some(at(15)), Cents(11))
    );
    assert_eq!(attempt_of(&effects).actual_cost_cents, Cents(11));
    assert!(effects.contains(&ended.settled(Cents(11)).unwrap()), "{effects:?}");
    // Read anew it costs the same.
    let read = Session::from_row(row.clone(), url()).unwrap();
    assert_eq!(after(read, label(), 50).row().actual_cost_cents, Cents(11));
    // At its longest it costs what its longest duration does.
    let longest = after(state("bridged"), Command::Tick, 9_999).row();
    assert_eq!(longest.ended_at, Some(Moment::from_millis(312_500)));
    assert_eq!(
        (longest.status, longest.end_reason),
        (Status::Completed, Some(EndReason::Transferred))
    );
    let most = cost(call().price_cents_per_minute, call().max_duration_seconds);
    assert!(longest.actual_cost_cents <= most && longest.actual_cost_cents >= Cents(most.0 - 1));
}

#[test]
fn what_is_set_aside_is_used_up_twice_as_fast_by_two_legs() {
    let held = |cents| Row {
        hold_cents: Cents(cents),
        ..call()
    };
    let bridged = |cents, seconds| {
        let transferring = after(talk_of(held(cents)), transfer_to_sales(), 15);
        after(transferring, bridge_to_sales(), seconds)
    };
    // Ten cents last until 70: 60 s after the answer.
    assert_eq!(next_deadline(&bridged(10, 20)), Some(at(45)));
    // They were used up before, and more was asked for.
    assert_eq!(next_deadline(&bridged(1, 20)), Some(at(50)));
    // All that it can cost is set aside.
    assert_eq!(next_deadline(&bridged(100, 20)), Some(at(315)));
    // Never before it is used up: one cent of seven a minute lasts for 8,571 ms, of which 5,000 were one leg's.
    let odd = Row {
        price_cents_per_minute: 7,
        ..held(1)
    };
    let transferring = after(talk_of(odd), transfer_to_sales(), 15);
    let asks_at = next_deadline(&after(transferring, bridge_to_sales(), 15));
    assert_eq!(asks_at, Some(Moment::from_millis(15_000 + 1_786)));
}

#[test]
fn a_carriers_answer_stands_in_the_row_and_in_the_timeline() {
    for (refusal, answer, message) in [
        (Refusal::Busy, (486, "Busy Here", Some(17)), "486 Busy Here (Q.850 17)"),
        (Refusal::NoAnswer, (480, "", None), "480"),
        (
            Refusal::Rejected("no such trunk".into()),
            (403, "Forbidden", None),
            "no such trunk",
        ),
        (
            Refusal::Blocked("analytics".into()),
            (608, "Rejected", Some(21)),
            "analytics",
        ),
    ] {
        let (code, _, q850) = answer;
        let (ended, effects) = transition(state("ringing"), refuse_with(refusal.clone(), answer), at(8)).unwrap();
        let row = ended.row();
        assert_eq!(
            (row.sip_code, row.q850),
            (Some(i32::from(code)), q850.map(i32::from)),
            "{refusal:?}"
        );
        assert_eq!(row.error_message.as_deref(), Some(message), "{refusal:?}");
        let Effect::Fact(Fact::SaveTranscript(stored)) = &effects[0] else {
            panic!("{effects:?}")
        };
        assert_eq!(stored.timeline.0[0].kind, "carrier_answered");
        let is_blocked = stored.timeline.0.iter().any(|entry| entry.kind == "blocked");
        assert_eq!(is_blocked, matches!(refusal, Refusal::Blocked(_)));
    }
    // Of what was sent back no answer stands, for the call goes on.
    let answer = (503, "CPS limit", None);
    let sent_back = after(state("dialing"), refuse_with(Refusal::Congested, answer), 2);
    assert_eq!((sent_back.row().sip_code, sent_back.log.timeline.len()), (None, 1));
}

#[test]
fn how_well_somebody_was_heard_is_told_once_at_the_end() {
    let better = Command::Quality(Quality::of((0, 800), 8, Some(70)));
    let session = after(after(state("talking"), heard_well(), 20), better, 30);
    assert_eq!(
        session.row().quality.map(|heard| heard.jitter_ms),
        Some(8),
        "while it lasts too"
    );
    let (ended, effects) = hung_up(session, 40);
    assert_eq!(ended.row().quality, Some(Quality::of((0, 800), 8, Some(70))));
    let Effect::Fact(Fact::SaveTranscript(stored)) = &effects[0] else {
        panic!("{effects:?}")
    };
    let told: Vec<_> = stored
        .timeline
        .0
        .iter()
        .filter(|entry| entry.kind == "quality")
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].detail.as_deref(),
        Some("loss 0 %, jitter 8 ms, round trip 70 ms")
    );
}

#[test]
fn who_waited_in_vain_is_told_why() {
    for (reason, why) in [
        (RejectReason::OnDnc, "do-not-call"),
        (RejectReason::AgainstTheLaw, "the law"),
        (RejectReason::CapReached, "too often"),
        (RejectReason::OutsideHours, "calling hours"),
        (RejectReason::CampaignOver, "campaign was over"),
        (RejectReason::MayHaveRun, "came back from a backup"),
        (RejectReason::OutOfReach, "the number's country"),
    ] {
        let row = after(state("queued"), Command::Reject(reason), 20).row();
        assert_eq!((row.error_code.as_deref(), row.dialed_at), (Some("canceled"), None));
        assert!(row.error_message.unwrap().contains(why), "{reason:?}");
    }
    for (call, reason, why) in [
        (api_call(), EndReason::Canceled, "no slot"),
        (call(), EndReason::CarrierRejected, "its turn"),
    ] {
        let row = after(Session::queued(call, url(), at(0)).0, Command::Tick, 300).row();
        assert_eq!(row.end_reason, Some(reason));
        assert!(row.error_message.unwrap().contains(why), "{reason:?}");
    }
}

#[test]
#[rustfmt::skip]
fn a_begun_cent_is_a_whole_one_and_no_talk_costs_nothing() {
    for (price, seconds, cents) in [
        (10, 0, 0), (10, 1, 1), (10, 6, 1), (10, 7, 2), (10, 30, 5), (10, 60, 10), (10, 61, 11), (1, 60, 1), (1, 61, 2),
        (0, 600, 0), (-10, 600, 0), (10, -600, 0), (i32::MAX, i32::MAX, 76_861_433_568_873_677),
    ] {
        assert_eq!(cost(price, seconds), Cents(cents), "{seconds} s at {price} a minute");
    }
}

/// Who had decided before, who decides now: does it count, and is the event told?
#[test]
fn a_person_overrules_everybody_a_machine_nobody_and_the_event_comes_once() {
    use Evaluator::{Agent, Human, Llm, Rules};
    for (before, by, counts, is_told) in [
        (None, Llm, true, true),
        (None, Rules, true, true),
        (None, Human, true, true),
        (Some(Agent), Llm, false, false), // the specification's skip: supplied inline
        (Some(Agent), Rules, false, false),
        (Some(Agent), Human, true, false),
        (Some(Llm), Llm, false, false), // worked off once more after a crash
        (Some(Rules), Llm, false, false),
        (Some(Llm), Human, true, false),
        (Some(Rules), Human, true, false),
        (Some(Human), Human, true, false),
        (Some(Human), Llm, false, false),
    ] {
        let mut ended = state("ended");
        Arc::make_mut(&mut ended.call).disposition_by = before;
        Arc::make_mut(&mut ended.call).disposition_code = before.map(|_| "open".into());
        let (session, effects) = transition(ended, evaluated("sold", by), at(50)).unwrap();
        let wanted: &[&str] = match (counts, is_told) {
            (true, true) => &["DisposeContact", "session.disposition_set", "CloseAttempt"],
            (true, false) => &["DisposeContact", "CloseAttempt"],
            (false, _) => &[],
        };
        assert_eq!(kinds(&effects), wanted, "{before:?}, then {by:?}");
        let (code, decided_by) = if counts { ("sold", Some(by)) } else { ("open", before) };
        let row = session.row();
        assert_eq!(
            (row.disposition_code.as_deref(), row.disposition_by),
            (Some(code), decided_by),
            "{before:?}, then {by:?}"
        );
    }
}

#[test]
fn what_was_found_out_is_told_with_who_found_it() {
    let found = Evaluated {
        disposition: Some(Disposition {
            code: "sold".into(),
            note: "wants three".into(),
        }),
        model: Some("judge-1".into()),
        ..nothing_found()
    };
    let (_, effects) = transition(state("ended"), Command::Evaluate(found), at(50)).unwrap();
    let [
        Effect::Fact(Fact::DisposeContact {
            contact_id,
            session_id,
            code,
        }),
        Effect::Fact(Fact::Emit(Event::SessionDispositionSet(told))),
        ..,
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    let whose = (call().contact_id, call().id);
    assert_eq!((Some(*contact_id), *session_id), whose);
    assert_eq!((Some(told.contact_id), told.session_id), whose);
    assert_eq!(
        (
            code.as_str(),
            told.disposition_code.as_str(),
            told.disposition_note.as_str()
        ),
        ("sold", "sold", "wants three")
    );
    assert_eq!(
        (told.evaluator, told.model.as_deref(), told.evaluated_at),
        (Evaluator::Llm, Some("judge-1"), at(50))
    );
    // Without dispositions to choose from there is no event, even if a person says how it went.
    let ended = hung_up(state("talking"), 20).0;
    let (session, effects) = transition(ended, evaluated("sold", Evaluator::Human), at(50)).unwrap();
    assert_eq!(kinds(&effects), ["DisposeContact", "CloseAttempt"]);
    assert_eq!(session.row().disposition_code.as_deref(), Some("sold"));
    // A call that no campaign made keeps what was found out, and the catalogue has no event for it.
    let of_the_api = Row {
        campaign_id: None,
        contact_id: None,
        ..to_classify()
    };
    let ended = after(talk_of(of_the_api), Command::HangUp(EndedBy::Agent), 20);
    let (session, effects) = transition(ended, evaluated("sold", Evaluator::Human), at(50)).unwrap();
    assert_eq!(
        (
            kinds(&effects).join(", ").as_str(),
            session.row().disposition_code.as_deref()
        ),
        ("CloseAttempt", Some("sold"))
    );
}

#[test]
fn answers_and_the_job_are_kept_whoever_found_them() {
    for (by, wanted) in [
        (Evaluator::Llm, Source::Llm),
        (Evaluator::Rules, Source::Rules),
        (Evaluator::Human, Source::Human),
    ] {
        let (_, effects) = hung_up(
            after(talk_of(call_with(|options| options.has_questions = true)), said(), 12),
            20,
        );
        let job = effects.into_iter().find_map(|effect| match effect {
            Effect::Work(Work::Evaluate(job)) => Some(job),
            _ => None,
        });
        let found = Evaluated {
            answers: vec![answer_to("seats", 3)],
            by,
            job,
            ..nothing_found()
        };
        let (session, effects) = transition(state("ended"), Command::Evaluate(found), at(50)).unwrap();
        let [
            Effect::Fact(Fact::SaveAnswers { answers, source, .. }),
            Effect::Fact(Fact::SaveEvaluation(_)),
        ] = &effects[..]
        else {
            panic!("{effects:?}")
        };
        assert_eq!((answers.len(), *source), (1, wanted));
        assert_eq!(session, state("ended"), "the session itself is as it was");
    }
}

#[test]
fn what_was_said_and_who_it_was_is_forgotten_and_the_rest_stays() {
    let mut row = recorded(ConsentMode::Notice);
    (row.email, row.last_name) = (Some("ada@example.com".into()), Some("L".into()));
    row.client_reference_id = Some("order 7".into());
    let labelled = after(talk_of(row), label(), 11);
    let (ended, _) = hung_up(after(labelled, dispose("sold"), 12), 20);
    let before = ended.row();
    let (gone, effects) = transition(ended, Command::Delete, at(50)).unwrap();
    let recording = Some(recording_id());
    assert_eq!(
        effects,
        [Effect::Fact(Fact::Forget {
            session: gone.key(),
            recording
        })]
    );
    let row = gone.row();
    assert_eq!((&row.email, &row.first_name, &row.last_name), (&None, &None, &None));
    assert_eq!((&row.client_reference_id, &row.disposition_note), (&None, &None));
    assert_eq!((row.metadata.clone(), row.variables.clone()), Default::default());
    assert_eq!(row.deleted_at, Some(at(50)));
    let kept = |row: &Row| {
        (
            row.status,
            row.end_reason,
            row.started_at,
            row.ended_at,
            row.actual_cost_cents,
            row.disposition_code.clone(),
        )
    };
    assert_eq!(kept(&row), kept(&before));
}
