//! How a session is born, waits, and stands in its row.
use super::*;
use crate::dispatch::route::Route;

#[test]
fn a_session_is_born_scheduled_queued_or_dialled_and_says_so_first() {
    let now = at(100);
    let made_now = || Row {
        created_at: now,
        ..api_call()
    };
    // Who does not want to wait gets a moment to find the slot that is free.
    let impatient = Row {
        queue_ttl_seconds: 0,
        ..made_now()
    };
    for (call, wanted) in [
        (call_at(101), Phase::Scheduled { at: at(101) }),
        (call_at(100), Phase::Queued { until: at(400) }), // its time has come
        (made_now(), Phase::Queued { until: at(400) }),
        (impatient, Phase::Queued { until: at(105) }),
    ] {
        let (session, effects) = Session::queued(call, url(), now);
        assert_eq!((session.phase.clone(), session.is_live()), (wanted, false));
        assert_eq!(kinds(&effects), ["session.created", "SessionQueued"]);
    }
    for (session, effects) in [
        Session::dialed(call(), url(), now),
        Session::received(incoming(), url(), now),
    ] {
        assert_eq!(
            (kinds(&effects), session.is_live()),
            (vec!["session.created".to_owned()], true)
        );
        assert_eq!(next_deadline(&session), Some(at(130)));
    }
    let (received, _) = Session::received(incoming(), url(), now);
    assert_eq!(received.row().phase, StoredPhase::Ringing);
}

#[test]
fn a_dispatched_call_rings_from_the_moment_it_is_placed() {
    let placed = after(state("queued"), dispatch_at(25), 20);
    let (dialed_at, give_up_at, ringing) = (at(25), at(55), false);
    let wanted = Phase::Dialing {
        dialed_at,
        give_up_at,
        ringing,
    };
    assert_eq!(placed.phase, wanted);
}

#[test]
fn a_congested_trunk_sends_the_call_back_for_the_same_attempt() {
    let (sent_back, effects) = transition(state("ringing"), refuse(Refusal::Congested), at(7)).unwrap();
    let (tenant_id, session_id, session) = (call().tenant_id, call().id, call().key());
    let route = Route::Sandbox;
    assert_eq!(
        effects,
        [
            Effect::Work(Work::HangUp { session }),
            Effect::Hint(Hint::TrunkCongested { tenant_id, route }),
            Effect::Hint(Hint::SlotFreed { tenant_id, session_id }),
            Effect::Hint(Hint::SessionQueued(tenant_id)),
        ]
    );
    // It waits for its turn as before, no longer than before, and is not told a second time.
    assert_eq!(sent_back.phase, Phase::Queued { until: at(300) });
    let row = sent_back.row();
    assert_eq!((row.attempt, row.dialed_at, row.queued_until), (2, None, Some(at(300))));
    let again = after(sent_back, dispatch_at(60), 60);
    let (talk, effects) = transition(again, answer_by(AnsweredBy::Human), at(70)).unwrap();
    assert_eq!(
        (kinds(&effects), talk.call.attempt),
        (vec!["session.started".to_owned()], 2)
    );
}

#[test]
fn a_call_that_was_put_off_is_scheduled_anew() {
    let queued = after(state("scheduled"), Command::Tick, 200);
    assert_eq!(queued.phase, Phase::Queued { until: at(500) });
    let put_off = after(queued, postpone_to(900), 210);
    let row = put_off.row();
    assert_eq!((row.phase, row.status), (StoredPhase::Scheduled, Status::Queued));
    assert_eq!((row.scheduled_at, row.queued_until), (Some(at(900)), None));
    assert_eq!(
        Session::from_row(row, url()).unwrap().phase,
        Phase::Scheduled { at: at(900) }
    );
    // It has its whole time in the queue again; and a moment even if the service was down at its time.
    assert_eq!(
        after(put_off.clone(), Command::Tick, 900).phase,
        Phase::Queued { until: at(1_200) }
    );
    assert_eq!(
        after(put_off, Command::Tick, 2_000).phase,
        Phase::Queued { until: at(2_005) }
    );
}

#[test]
fn each_state_stands_in_the_row_by_its_name() {
    use StoredPhase::*;
    for (name, phase, status) in [
        ("scheduled", Scheduled, Status::Queued),
        ("awaiting", Scheduled, Status::Queued),
        ("joining", Dialing, Status::Queued),
        ("queued", Queued, Status::Queued),
        ("dialing", Dialing, Status::Queued),
        ("ringing", Ringing, Status::Queued),
        ("incoming", Ringing, Status::Queued),
        ("picked up", Answered, Status::Queued),
        ("talking", Conversing, Status::InProgress),
        ("with a machine", Conversing, Status::InProgress),
        ("leaving a message", Answered, Status::InProgress),
        ("transferring", Transferring, Status::InProgress),
        ("bridged", Transferring, Status::InProgress),
        ("opting out", Conversing, Status::InProgress),
        ("ended", Ended, Status::Completed),
    ] {
        let row = state(name).row();
        assert_eq!((row.phase, row.status), (phase, status), "{name}");
    }
}

#[test]
fn a_row_that_lacks_its_states_columns_is_named_not_guessed() {
    let lacking = |name: &str, column: &'static str, remove: fn(&mut Row)| {
        let mut row = state(name).row();
        remove(&mut row);
        let error = Session::from_row(row, url()).unwrap_err();
        let is_named = matches!(error, Error::Corrupt { table: "sessions", column: named, .. } if named == column);
        assert!(is_named, "{name} without {column}: {error:?}");
    };
    lacking("scheduled", "scheduled_at", |row| row.scheduled_at = None);
    lacking("queued", "queued_until", |row| row.queued_until = None);
    lacking("dialing", "dialed_at", |row| row.dialed_at = None);
    lacking("ringing", "dialed_at", |row| row.dialed_at = None);
    lacking("picked up", "dialed_at", |row| row.dialed_at = None);
    lacking("picked up", "picked_up_at", |row| row.picked_up_at = None);
    for name in ["talking", "leaving a message", "transferring", "bridged"] {
        lacking(name, "dialed_at", |row| row.dialed_at = None);
        lacking(name, "started_at", |row| row.started_at = None);
    }
    lacking("ended", "ended_at", |row| row.ended_at = None);
    lacking("ended", "end_reason", |row| row.end_reason = None);
    lacking("ended", "ended_by", |row| row.ended_by = None);
}

#[test]
fn a_call_that_a_crash_cut_off_ends_when_it_was_last_seen() {
    // Dialled at 0, answered at 10; the service is back an hour later.
    for (name, last_seen, ended_at, seconds) in [
        ("talking", 25, 25, 15),
        // It was answered after the last beat.
        ("talking", 4, 10, 0),
        ("dialing", 25, 25, 0),
        ("picked up", 25, 25, 0),
        ("picked up", 4, 6, 0),
        // Somebody had taken over after the last beat.
        ("bridged", 12, 15, 5),
        ("bridged", 25, 25, 15),
        // The clock was ahead then: not longer than a call may last, and not in the future.
        ("talking", 9_999, 610, 600),
        ("dialing", 9_999, 3_610, 0),
    ] {
        let read = Session::from_row(state(name).row(), url()).unwrap();
        let (lost, _) = transition(read, lose_at(last_seen), at(3_610)).unwrap();
        let row = lost.row();
        let found = (row.ended_at, row.duration_seconds);
        assert_eq!(found, (Some(at(ended_at)), seconds), "{name}, {last_seen}");
    }
}

/// A talk lives in memory; a crash leaves its row, which is good for one thing: to end it.
#[test]
fn a_talk_that_a_crash_cut_off_ends_as_lost_with_what_its_row_knows() {
    for name in [
        "talking",
        "granted",
        "with a machine",
        "leaving a message",
        "transferring",
        "bridged",
        "opting out, recorded",
    ] {
        let before = state(name);
        let read = Session::from_row(before.row(), url()).unwrap();
        assert!(read.is_live(), "{name}");
        let (lost, effects) = transition(read, lose_at(50), at(50)).unwrap();
        let wanted = transition(before, lose_at(50), at(50)).unwrap();
        assert_eq!(lost.phase, wanted.0.phase, "{name}");
        // The words are gone; everything else is told as if they were not.
        let of_memory = |kind: &String| *kind != "SaveTranscript";
        let wanted: Vec<_> = kinds(&wanted.1).into_iter().filter(of_memory).collect();
        assert_eq!(kinds(&effects), wanted, "{name}");
    }
}
