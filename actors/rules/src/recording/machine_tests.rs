//! What a recording does, line by line; then what holds for every recording, whatever its store does.
use super::*;
use crate::{effect::Fact, event::Event};
use entities::{
    agent::Channels,
    ids::{AgentId, RecordingId, SessionId, TenantId},
    recording::{Sound, SyntheticVoice, VoiceKind},
    session::{Consent, Direction, Options, Phase},
    values::{Cents, Env, Metadata, Variables},
};
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

/// A campaign's call from 0 to 95 s, recorded from its 5th second on.
#[rustfmt::skip]
fn call() -> session::Model {
    session::Model {
        id: SessionId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        version: 4, created_at: at(-9), status: session::Status::Completed, phase: Phase::Ended, direction: Direction::Outbound,
        end_reason: Some(session::EndReason::Completed), ended_by: Some(session::EndedBy::Agent),
        answered_by: Some(session::AnsweredBy::Human), agent_id: AgentId(Uuid::from_u128(3)), agent_version: 1, voice_id: None,
        from_number: None, to_number: Some("+15002345670".parse().unwrap()), email: None, first_name: Some("Ada".into()),
        last_name: None, campaign_id: None, contact_id: None, room_id: None, trunk_id: None, api_key_id: None, attempt: 1, client_reference_id: None,
        variables: Variables::default(), metadata: Metadata::default(), ring_timeout_seconds: 30, max_duration_seconds: 600,
        scheduled_at: None, queue_ttl_seconds: 300, timezone: None, price_cents_per_minute: 10, hold_cents: Cents(0), queued_until: None,
        dialed_at: Some(at(-5)), picked_up_at: Some(at(0)), started_at: Some(at(0)), bridged_at: None, ended_at: Some(at(95)), duration_seconds: 95, latency: None, quality: None,
        actual_cost_cents: Cents(16), error_code: None, error_message: None, sip_code: None, q850: None, consent: Consent::Granted,
        options: Options::default(), disposition_code: None, disposition_note: None, disposition_by: None,
        recording_id: Some(RecordingId(Uuid::from_u128(7))), opted_out_at: None, purge_after: None, deleted_at: None, first_sound_ms: None, abandoned: None,
    }
}

/// Born with its call's end at 100; kept for ever, or until it is erased at `purge_after` for that reason.
fn born(purge: Option<(i64, PurgeReason)>) -> Recording {
    Recording {
        id: RecordingId(Uuid::from_u128(7)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        env: Env::Test,
        session_id: SessionId(Uuid::from_u128(1)),
        status: Status::Processing,
        channels: Channels::Dual,
        from_ms: 5_000,
        tries: 0,
        wake_at: Some(at(100)),
        duration_ms: None,
        bytes: None,
        sha256: None,
        synthetic: None,
        purge_after: purge.map(|(seconds, _)| at(seconds)),
        purge_reason: purge.map(|(_, reason)| reason),
        error: None,
        completed_at: None,
        purged_at: None,
        version: 1,
        created_at: at(100),
    }
}

fn synthetic() -> Synthetic {
    Synthetic {
        synthetic: true,
        channels: BTreeMap::from([("mono".into(), Sound::Everybody)]),
        voice: SyntheticVoice {
            id: "builtin:tones".into(),
            kind: VoiceKind::Builtin,
            provider: "tones".into(),
            model: None,
            watermark: false,
        },
        service_voice: None,
    }
}

fn stored() -> Command {
    Command::Stored(Box::new(Stored {
        call: Arc::new(call()),
        recording_url: "https://callboard.test/v1/recordings/7/audio".into(),
        duration_ms: 90_400,
        bytes: 1_440_044,
        sha256: "ab".repeat(32),
        synthetic: synthetic(),
    }))
}
fn store_failed() -> Command {
    let (why, spooled) = ("the disk is full".to_owned(), false);
    Command::StoreFailed { why, spooled }
}
/// Of what was heard on a line.
fn spool_kept() -> Command {
    let (why, spooled) = ("the store is away".to_owned(), true);
    Command::StoreFailed { why, spooled }
}
fn no_sound() -> Command {
    let why = "the disk was full".to_owned();
    Command::NoSound { why }
}
fn erase_failed() -> Command {
    let why = "access denied".to_owned();
    Command::EraseFailed { why }
}

fn kept() -> Command {
    let until = at(2_000 * DAY);
    Command::Kept { until }
}

/// Understood after the call: kept for a week.
fn opt_out() -> Command {
    let purge_after = at(7 * DAY);
    Command::OptOut { purge_after }
}

fn after(row: Recording, command: Command, seconds: i64) -> Recording {
    transition(row, command, at(seconds)).0
}

/// So many tries, each a minute after it was due.
fn failed_to_store(row: Recording, times: usize) -> Recording {
    (0..times).fold(row, |row, _| {
        let due = row.wake_at.unwrap();
        let tried = transition(row, Command::Tick, due).0;
        transition(tried, store_failed(), due).0
    })
}

const DAY: i64 = 86_400;
const THREE_DAYS: Duration = Duration::from_secs(259_200);
#[rustfmt::skip]
const STATES: [&str; 11] = [
    "processing", "processing, opted out", "processing, deleted", "completed", "completed, for 30 days",
    "stored, deleted", "opted out", "failed", "failed, opted out", "purged", "purged after an opt-out",
];

/// Stored at 110; after an opt-out it is erased in a week, by its agent's settings in 30 days.
fn state(name: &str) -> Recording {
    let (opted_out, retained) = ((7 * DAY, PurgeReason::OptOut), (30 * DAY, PurgeReason::Retention));
    match name {
        "processing" => born(None),
        "processing, opted out" => born(Some(opted_out)),
        "processing, deleted" => after(born(None), Command::Delete, 105),
        "completed" => after(born(None), stored(), 110),
        "completed, for 30 days" => after(born(Some(retained)), stored(), 110),
        "stored, deleted" => after(state("processing, deleted"), stored(), 110),
        "opted out" => after(born(Some(opted_out)), stored(), 110),
        "failed" => failed_to_store(born(None), 6),
        "failed, opted out" => failed_to_store(born(Some(opted_out)), 6),
        "purged" => after(state("completed, for 30 days"), Command::Erased, 30 * DAY),
        "purged after an opt-out" => after(state("opted out"), Command::Erased, 7 * DAY),
        _ => panic!("no sample of {name}"),
    }
}

/// Every command; a new one makes the compiler ask for its place here.
fn commands() -> Vec<Command> {
    use Command::*;
    let next = |command: &Command| {
        Some(match command {
            Tick => stored(),
            Stored(_) => store_failed(),
            StoreFailed { .. } => no_sound(),
            NoSound { .. } => Erased,
            Erased => erase_failed(),
            EraseFailed { .. } => kept(),
            Kept { .. } => Delete,
            Delete => opt_out(),
            OptOut { .. } => return None,
        })
    };
    std::iter::successors(Some(Tick), next).collect()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Its status, when it is to be looked at again, and the effects in their order.
    To(Status, Option<i64>, &'static str),
    Unchanged,
}
use Expected::{To, Unchanged};

/// (states, command, at which second, expected)
type Line = (&'static [&'static str], Command, i64, Expected);

#[rustfmt::skip]
fn table() -> Vec<Line> {
    use {Command::*, Status::*};
    const WAITS: &[&str] = &["processing", "processing, opted out", "processing, deleted"];
    const PENDING: &str = "session.opt_out_recording_pending_purge";
    const STORED: &str = "session.recording_completed, EraseSpool";
    const PURGED: &[&str] = &["purged", "purged after an opt-out"];
    const KEPT: &[&str] =
        &["completed", "completed, for 30 days", "stored, deleted", "opted out", "failed", "failed, opted out"];
    vec![
        // processing: stored when it is due, and again if nobody reports
        (WAITS, Tick, 99, Unchanged),
        (WAITS, Tick, 100, To(Processing, Some(400), "StoreSound")),

        // processing -> completed, or pending_purge after an opt-out; a deleted one is erased at once, and
        // once more if nobody reports
        (&["processing"], stored(), 110, To(Completed, None, STORED)),
        (&["processing, opted out"], stored(), 110, To(PendingPurge, Some(7 * DAY), STORED)),
        (&["processing, deleted"], stored(), 110, To(Completed, Some(410), "EraseSound")),
        (&["stored, deleted"], Tick, 409, Unchanged),
        (&["stored, deleted"], Tick, 410, To(Completed, Some(710), "EraseSound")),

        // processing: tried again, of the only copy for three days; one that is to be erased by now is given up
        (&["processing", "processing, opted out"], store_failed(), 110, To(Processing, Some(120), "")),
        (&["processing, deleted"], store_failed(), 110, To(Failed, Some(105), "EraseSpool")),
        (&["processing", "processing, opted out"], spool_kept(), 100 + 3 * DAY - 1, To(Processing, Some(109 + 3 * DAY), "")),
        (&["processing"], spool_kept(), 100 + 3 * DAY, To(Failed, None, "EraseSpool")),
        (&["processing, opted out"], spool_kept(), 100 + 3 * DAY, To(Failed, Some(7 * DAY), "EraseSpool")),
        (&["processing, deleted"], spool_kept(), 110, To(Failed, Some(105), "EraseSpool")),

        // processing -> failed: of what is not there nothing comes by trying again
        (&["processing"], no_sound(), 110, To(Failed, None, "EraseSpool")),
        (&["processing, opted out"], no_sound(), 110, To(Failed, Some(7 * DAY), "EraseSpool")),
        (&["processing, deleted"], no_sound(), 110, To(Failed, Some(105), "EraseSpool")),

        // completed, pending_purge, failed: erased when its time has come, and again if nobody reports
        (&["completed", "failed"], Tick, 999 * DAY, Unchanged),
        (&["completed, for 30 days"], Tick, 30 * DAY - 1, Unchanged),
        (&["completed, for 30 days"], Tick, 30 * DAY, To(Completed, Some(30 * DAY + 300), "EraseSound")),
        (&["opted out"], Tick, 7 * DAY - 1, Unchanged),
        (&["opted out"], Tick, 7 * DAY, To(PendingPurge, Some(7 * DAY + 300), "EraseSound")),
        (&["failed, opted out"], Tick, 7 * DAY, To(Failed, Some(7 * DAY + 300), "EraseSound")),
        (KEPT, erase_failed(), 40 * DAY, To(Failed, Some(40 * DAY + 10), "")), // the status is as it was: see `check`

        // what proves a consent is kept with it; the status is as it was, too
        (KEPT, kept(), 40 * DAY, To(Failed, Some(2_000 * DAY), "")),
        (WAITS, kept(), 110, Unchanged),
        (PURGED, kept(), 999 * DAY, Unchanged),

        // -> purged; told only after an opt-out
        (&["completed", "completed, for 30 days", "stored, deleted", "failed"], Erased, 40 * DAY, To(Purged, None, "")),
        (&["opted out", "failed, opted out"], Erased, 8 * DAY, To(Purged, None, "session.opt_out_recording_purged")),

        // deleted: what is being stored is erased after that, everything else now
        (&["processing", "processing, opted out"], Delete, 105, To(Processing, Some(100), "")),
        (&["completed", "completed, for 30 days", "stored, deleted"], Delete, 200, To(Completed, Some(500), "EraseSound")),
        (&["opted out"], Delete, 200, To(PendingPurge, Some(500), "EraseSound")),
        (&["failed", "failed, opted out"], Delete, 200, To(Failed, Some(500), "EraseSound")),

        // an opt-out that is understood late: once, and not of what is not kept anyway
        (&["processing"], opt_out(), 105, To(Processing, Some(100), PENDING)),
        (&["completed", "completed, for 30 days"], opt_out(), 200, To(PendingPurge, Some(7 * DAY), PENDING)),
        (&["processing, opted out", "processing, deleted"], opt_out(), 105, Unchanged),
        (&["stored, deleted", "opted out", "failed", "failed, opted out"], opt_out(), 200, Unchanged),

        // work that was done twice reports twice
        (WAITS, Erased, 110, Unchanged),
        (WAITS, erase_failed(), 110, Unchanged),
        (KEPT, stored(), 200, Unchanged),
        (KEPT, store_failed(), 200, Unchanged),
        (KEPT, spool_kept(), 200, Unchanged),
        (KEPT, no_sound(), 200, Unchanged),
        (&["processing, deleted"], Delete, 106, Unchanged),

        // purged is final
        (PURGED, Tick, 999 * DAY, Unchanged),
        (PURGED, stored(), 999 * DAY, Unchanged),
        (PURGED, store_failed(), 999 * DAY, Unchanged),
        (PURGED, spool_kept(), 999 * DAY, Unchanged),
        (PURGED, no_sound(), 999 * DAY, Unchanged),
        (PURGED, Erased, 999 * DAY, Unchanged),
        (PURGED, erase_failed(), 999 * DAY, Unchanged),
        (PURGED, Delete, 999 * DAY, Unchanged),
        (PURGED, opt_out(), 999 * DAY, Unchanged),
    ]
}

fn kinds(effects: &[Effect]) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Fact(Fact::Emit(event)) => event.event_type().to_owned(),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    };
    effects.iter().map(kind).collect()
}

fn check(row: Recording, command: Command, now: Moment, expected: Expected) {
    let line = format!("{:?} + {command:?} at {now}", row.status);
    let stays = matches!(command, Command::EraseFailed { .. } | Command::Kept { .. });
    let (after, effects) = transition(row.clone(), command, now);
    match expected {
        To(status, wake_at, wanted) => {
            let status = if stays { row.status } else { status };
            let came = (after.status, after.wake_at, kinds(&effects).join(", "));
            assert_eq!(came, (status, wake_at.map(at), wanted.to_owned()), "{line}");
            assert_ne!(after, row, "{line}");
        }
        Unchanged => assert_eq!((after, effects), (row, Vec::new()), "{line}"),
    }
}

#[test]
fn every_transition_of_the_contract() {
    use std::mem::discriminant as of;
    let mut known = Vec::new();
    for (names, command, seconds, expected) in table() {
        for name in names {
            known.push((*name, of(&command)));
            check(state(name), command.clone(), at(seconds), expected);
        }
    }
    // Nothing is refused: every pair has its line.
    for name in STATES {
        for command in commands() {
            assert!(
                known.contains(&(name, of(&command))),
                "{name} + {command:?} has no line"
            );
        }
    }
}

#[test]
fn what_was_stored_is_told_with_whose_it_is() {
    let (row, effects) = transition(born(None), stored(), at(110));
    let [
        Effect::Fact(Fact::Emit(Event::SessionRecordingCompleted(told))),
        Effect::Work(Work::EraseSpool(spool)),
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(*spool, call().key(), "what it was made of is not needed any more");
    assert_eq!(
        (told.session_id, told.recording_id, told.status),
        (call().id, row.id, Status::Completed)
    );
    assert_eq!(
        (told.phone_number.as_ref(), told.first_name.as_deref()),
        (call().to_number.as_ref(), Some("Ada"))
    );
    assert_eq!(
        (told.started_at, told.ended_at, told.duration_seconds),
        (Some(at(0)), Some(at(95)), Some(90))
    );
    assert_eq!(told.recording_url, "https://callboard.test/v1/recordings/7/audio");
    assert_eq!(
        (row.duration_ms, row.bytes, row.completed_at),
        (Some(90_400), Some(1_440_044), Some(at(110)))
    );
    assert_eq!((row.sha256, row.tries, row.error), (Some("ab".repeat(32)), 0, None));
}

/// What goes sooner by its agent's settings still does, and says so.
#[test]
fn an_opt_out_keeps_nothing_for_longer() {
    let row = after(born(Some((3 * DAY, PurgeReason::Retention))), stored(), 110);
    let (row, effects) = transition(row, opt_out(), at(200));
    let told = SessionOptOutRecordingPendingPurge {
        session_id: row.session_id,
        recording_id: row.id,
        purge_after: at(3 * DAY),
    };
    assert_eq!(effects, [Effect::Fact(Fact::Emit(told.into()))]);
    let is = (row.status, row.purge_after, row.purge_reason, row.wake_at);
    let due = Some(at(3 * DAY));
    assert_eq!(is, (Status::PendingPurge, due, Some(PurgeReason::OptOut), due));
    // One that is being stored gets there with its sound.
    let stored = after(after(born(None), opt_out(), 105), stored(), 110);
    assert_eq!(
        (stored.status, stored.wake_at),
        (Status::PendingPurge, Some(at(7 * DAY)))
    );
}

#[test]
fn a_purge_after_an_opt_out_is_told_when_it_is_done() {
    let (row, effects) = transition(state("opted out"), Command::Erased, at(8 * DAY));
    let told = SessionOptOutRecordingPurged {
        session_id: row.session_id,
        recording_id: row.id,
        purged_at: at(8 * DAY),
    };
    assert_eq!(effects, [Effect::Fact(Fact::Emit(told.into()))]);
    assert_eq!(
        (row.status, row.purged_at, row.wake_at),
        (Status::Purged, Some(at(8 * DAY)), None)
    );
}

#[test]
fn of_a_sound_that_was_deleted_while_it_was_stored_nothing_is_kept_or_told() {
    let (row, effects) = transition(state("processing, deleted"), stored(), at(110));
    assert_eq!(effects, [Effect::Work(Work::EraseSound(row.key()))]);
    assert_eq!((row.duration_ms, row.bytes, row.completed_at), (None, None, None));
    assert_eq!((row.sha256, row.purge_reason), (None, Some(PurgeReason::Deleted)));
}

#[test]
fn what_went_wrong_with_a_sound_is_nothing_any_more_when_it_is_gone() {
    for name in ["stored, deleted", "opted out", "failed", "failed, opted out"] {
        let failed = after(state(name), erase_failed(), 40 * DAY);
        assert_eq!(failed.error.as_deref(), Some("access denied"), "{name}");
        assert_eq!(after(failed, Command::Erased, 41 * DAY).error, None, "{name}");
    }
}

#[test]
fn a_store_that_fails_is_tried_six_times_ever_more_slowly() {
    let mut row = born(None);
    let mut gaps = Vec::new();
    while row.status == Status::Processing {
        let due = row.wake_at.unwrap();
        assert_eq!(next_deadline(&row), Some(due));
        let (tried, effects) = transition(row, Command::Tick, due);
        assert_eq!(kinds(&effects), ["StoreSound"]);
        row = transition(tried, store_failed(), due).0;
        gaps.extend(row.wake_at.map(|next| next.since(due).as_secs()));
    }
    assert_eq!(gaps, [10, 20, 40, 80, 160]);
    let last = failed_to_store(born(None), 5);
    let (_, effects) = transition(last, store_failed(), at(500));
    assert_eq!(kinds(&effects), ["EraseSpool"], "nothing more is made of it");
    assert_eq!(
        (row.status, row.error.as_deref(), row.wake_at),
        (Status::Failed, Some("the disk is full"), None)
    );
    // What there was to erase is still erased in time.
    let doomed = state("failed, opted out");
    assert_eq!((doomed.status, doomed.wake_at), (Status::Failed, Some(at(7 * DAY))));
}

/// Minutes of an outage of the store must not cost the only copy of what was heard.
#[test]
fn what_was_spooled_is_tried_for_three_days_an_hour_apart_at_most() {
    let mut row = born(None);
    let mut gaps = Vec::new();
    while row.status == Status::Processing {
        let due = row.wake_at.unwrap();
        let (tried, effects) = transition(row, Command::Tick, due);
        assert_eq!(kinds(&effects), ["StoreSound"]);
        row = transition(tried, spool_kept(), due).0;
        gaps.extend(row.wake_at.map(|next| next.since(due).as_secs()));
    }
    assert_eq!(gaps[..10], [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
    assert!(gaps[10..].iter().all(|gap| *gap == 3_600));
    let tried_for = gaps.iter().sum::<u64>();
    assert!((259_200..=259_200 + 3_600).contains(&tried_for), "{tried_for}");
    assert_eq!(row.error.as_deref(), Some("the store is away"));
    // Six tries and more: the first success counts.
    let tried = (0..20).fold(born(None), |row, _| {
        let due = row.wake_at.unwrap();
        transition(row, spool_kept(), due).0
    });
    assert_eq!(
        (tried.tries, after(tried, stored(), 50_000).status),
        (20, Status::Completed)
    );
}

/// What is to be erased meanwhile does not wait for the next try.
#[test]
fn a_try_that_comes_too_late_is_not_waited_for() {
    let tried = |row: Recording| (0..12).fold(row, |row, _| after(row, spool_kept(), 10_000));
    let kept = tried(born(Some((11_000, PurgeReason::Retention))));
    assert_eq!(kept.wake_at, Some(at(11_000)));
    assert_eq!(after(kept, spool_kept(), 11_000).status, Status::Failed);
    let unlimited = tried(born(None));
    assert_eq!(unlimited.wake_at, Some(at(13_600)));
    let deleted = after(unlimited, Command::Delete, 10_500);
    assert_eq!(
        (deleted.status, deleted.wake_at),
        (Status::Processing, Some(at(10_500)))
    );
}

#[test]
fn an_erasure_is_tried_for_ever_an_hour_apart_at_most() {
    let mut row = state("opted out");
    let mut gaps = Vec::new();
    for _ in 0..100 {
        let due = row.wake_at.unwrap();
        let (tried, effects) = transition(row, Command::Tick, due);
        assert_eq!(kinds(&effects), ["EraseSound"]);
        row = transition(tried, erase_failed(), due).0;
        gaps.push(row.wake_at.unwrap().since(due).as_secs());
    }
    assert_eq!(gaps[..10], [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
    assert!(gaps[10..].iter().all(|gap| *gap == 3_600));
    assert_eq!(
        (row.status, row.error.as_deref()),
        (Status::PendingPurge, Some("access denied"))
    );
    assert_eq!(after(row, Command::Erased, 9 * DAY).status, Status::Purged);
}

#[test]
fn a_deletion_is_no_opt_out_but_an_opt_out_stays_one() {
    for (name, purge_after, reason) in [
        ("processing", 200, PurgeReason::Deleted),
        ("completed", 200, PurgeReason::Deleted),
        ("completed, for 30 days", 200, PurgeReason::Deleted),
        ("failed", 200, PurgeReason::Deleted),
        ("processing, opted out", 200, PurgeReason::OptOut),
        ("opted out", 200, PurgeReason::OptOut),
    ] {
        let row = after(state(name), Command::Delete, 200);
        assert_eq!(
            (row.purge_after, row.purge_reason),
            (Some(at(purge_after)), Some(reason)),
            "{name}"
        );
        // It is not put off by being asked for again.
        let again = after(row.clone(), Command::Delete, 300);
        assert_eq!(
            (again.purge_after, again.purge_reason),
            (row.purge_after, row.purge_reason),
            "{name}"
        );
    }
}

/// Days are nothing to keep an actor for: the row says when one is needed.
#[test]
fn only_what_is_being_stored_keeps_its_actor() {
    for name in STATES {
        let row = state(name);
        let wanted = row.wake_at.filter(|_| row.status == Status::Processing);
        assert_eq!(next_deadline(&row), wanted, "{name}");
        assert!(row.status != Status::Processing || wanted.is_some(), "{name}");
    }
}

/// What happens to a recording: commands, some seconds apart.
fn steps() -> impl Strategy<Value = Vec<(Command, i64)>> {
    let command = prop_oneof![
        6 => Just(Command::Tick),
        3 => Just(store_failed()),
        1 => Just(spool_kept()),
        3 => Just(erase_failed()),
        1 => prop::sample::select(commands()),
    ];
    prop::collection::vec((command, prop_oneof![4 => 0..400_i64, 1 => 0..9 * DAY]), 0..60)
}

fn births() -> impl Strategy<Value = Recording> {
    let reason = prop::sample::select(vec![PurgeReason::OptOut, PurgeReason::Retention]);
    prop::option::of((100..9 * DAY, reason)).prop_map(born)
}

/// One step: the state before and after, and what it caused.
struct Move {
    now: Moment,
    command: Command,
    before: Recording,
    after: Recording,
    effects: Vec<String>,
}

fn life(mut row: Recording, steps: Vec<(Command, i64)>) -> Vec<Move> {
    let mut now = at(100);
    let mut moves = Vec::new();
    for (command, pause) in steps {
        now = now.plus_seconds(pause);
        let before = row.clone();
        let (after, effects) = transition(row, command.clone(), now);
        row = after.clone();
        let effects = kinds(&effects);
        moves.push(Move {
            now,
            command,
            before,
            after,
            effects,
        });
    }
    moves
}

fn count(moves: &[Move], kind: &str) -> usize {
    moves
        .iter()
        .flat_map(|step| &step.effects)
        .filter(|known| *known == kind)
        .count()
}

proptest! {
    #[test]
    fn purged_is_final_and_nothing_is_stored_twice(row in births(), steps in steps()) {
        for step in life(row, steps) {
            prop_assert!(step.before.status != Status::Purged || (step.before == step.after && step.effects.is_empty()));
            let is_back = step.before.status != Status::Processing && step.after.status == Status::Processing;
            prop_assert!(!is_back, "{:?}", step.command);
        }
    }

    #[test]
    fn completed_is_told_once_at_most_and_a_purge_exactly_once_after_an_opt_out(row in births(), steps in steps()) {
        let was_opted_out = row.purge_reason == Some(PurgeReason::OptOut);
        let moves = life(row.clone(), steps);
        let last = moves.last().map_or(&row, |step| &step.after);
        let opted_out = last.purge_reason == Some(PurgeReason::OptOut);
        let announced = count(&moves, "session.opt_out_recording_pending_purge");
        prop_assert_eq!(announced, usize::from(opted_out && !was_opted_out));
        prop_assert_eq!(count(&moves, "session.recording_completed"), usize::from(last.completed_at.is_some()));
        let purged = last.status == Status::Purged;
        prop_assert_eq!(count(&moves, "session.opt_out_recording_purged"), usize::from(purged && opted_out));
        prop_assert_eq!(last.purged_at.is_some(), purged);
        prop_assert!(!purged || last.error.is_none());
        for step in moves.iter().filter(|step| step.before.purge_reason == Some(PurgeReason::Deleted)) {
            prop_assert!(!step.effects.iter().any(|kind| kind == "session.recording_completed"), "{:?}", step.command);
        }
    }

    #[test]
    fn whoever_opted_out_stays_opted_out_and_no_purge_is_put_off(row in births(), steps in steps()) {
        let opted_out = |row: &Recording| row.purge_reason == Some(PurgeReason::OptOut);
        for Move { command, before, after, .. } in life(row, steps) {
            let opts_out = matches!(command, Command::OptOut { .. });
            prop_assert!(opted_out(&after) == opted_out(&before) || (opts_out && opted_out(&after)));
            // But for one that proves a consent which the law wants kept.
            let is_kept = matches!(command, Command::Kept { .. });
            prop_assert!(is_kept || before.purge_after.is_none_or(|at| after.purge_after.is_some_and(|later| later <= at)));
        }
    }

    #[test]
    fn it_is_given_up_when_its_tries_or_its_time_are_over_and_never_before(row in births(), steps in steps()) {
        let mut failures = 0;
        for Move { now, command, before, after, .. } in life(row, steps) {
            let is_waiting = before.status == Status::Processing;
            failures += usize::from(is_waiting && matches!(command, Command::StoreFailed { .. }));
            let is_doomed = before.purge_after.is_some_and(|at| at <= now);
            let is_hopeless = match command {
                Command::NoSound { .. } => true,
                Command::StoreFailed { spooled: false, .. } => is_doomed || failures >= 6,
                Command::StoreFailed { spooled: true, .. } => is_doomed || now.since(before.created_at) >= THREE_DAYS,
                _ => false,
            };
            prop_assert_eq!(is_waiting && after.status == Status::Failed, is_waiting && is_hopeless);
        }
    }

    #[test]
    fn what_is_to_be_erased_is_always_due_some_day(row in births(), steps in steps()) {
        for Move { after, .. } in life(row, steps) {
            let is_doomed = after.purge_after.is_some() && after.status != Status::Purged;
            prop_assert!(!is_doomed || after.wake_at.is_some());
            prop_assert!(after.status != Status::Processing || after.wake_at.is_some());
        }
    }

    #[test]
    fn two_ticks_equal_one_and_one_that_is_due_always_changes_something(row in births(), steps in steps()) {
        for Move { after: row, .. } in life(row, steps) {
            let Some(due) = row.wake_at else {
                prop_assert_eq!(transition(row.clone(), Command::Tick, at(999 * DAY)), (row, Vec::new()));
                continue;
            };
            prop_assert_eq!(transition(row.clone(), Command::Tick, due.plus_millis(-1)), (row.clone(), Vec::new()));
            let (once, effects) = transition(row.clone(), Command::Tick, due);
            prop_assert!(once != row && effects.len() == 1);
            prop_assert_eq!(transition(once.clone(), Command::Tick, due), (once, Vec::new()));
        }
    }
}
