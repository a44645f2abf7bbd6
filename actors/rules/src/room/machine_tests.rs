//! What a room does, line by line; what its ends tell; what its row says; and what holds whatever happens to it.
use super::*;
use crate::{
    effect::{Fact, Work},
    event::Event,
};
use Command::*;
use entities::{
    ids::{AgentId, SessionId, TenantId},
    session::{EndReason, Status as SessionStatus},
    values::Env,
};
use proptest::prelude::*;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

const ANN: ParticipantId = ParticipantId(Uuid::from_u128(11));
const BOB: ParticipantId = ParticipantId(Uuid::from_u128(12));

/// Made at 0, for 600 seconds.
fn row() -> Row {
    Row {
        session_id: SessionId(Uuid::from_u128(3)),
        agent_id: AgentId(Uuid::from_u128(4)),
        expires_at: at(600),
        ..Row::new(
            (TenantId(Uuid::from_u128(2)), Env::Test),
            RoomId(Uuid::from_u128(1)),
            "00".repeat(16),
            at(0),
        )
    }
}

fn open() -> Room {
    Room::created(row(), "https://callboard.test/r/1".into()).0
}
fn after(room: Room, command: Command, seconds: i64) -> Room {
    transition(room, command, at(seconds)).unwrap().0
}
fn viewed() -> Room {
    after(open(), View, 10)
}
/// Until 35.
fn connecting() -> Room {
    after(viewed(), first(ANN), 20)
}
fn joined() -> Room {
    after(connecting(), Connect(ANN), 21)
}
/// Until 130.
fn lost() -> Room {
    after(joined(), Lose(ANN), 100)
}
fn completed() -> Room {
    after(joined(), ended(SessionStatus::Completed, EndReason::Completed, 81), 82)
}
fn expired() -> Room {
    after(viewed(), Tick, 600)
}
fn failed() -> Room {
    after(connecting(), Tick, 35)
}

fn first(participant: ParticipantId) -> Command {
    Join {
        participant,
        again_as: None,
    }
}
fn again(participant: ParticipantId) -> Command {
    Join {
        participant: BOB,
        again_as: Some(participant),
    }
}
fn full() -> Command {
    Fail {
        code: ErrorCode::ConcurrencyFull,
        message: "full".into(),
    }
}
fn ended(status: SessionStatus, reason: EndReason, seconds: i64) -> Command {
    let owner = (TenantId(Uuid::from_u128(2)), Env::Test);
    let agent = (AgentId(Uuid::from_u128(4)), 1);
    Follow(Box::new(session::Model {
        status,
        end_reason: Some(reason),
        ended_at: Some(at(seconds)),
        error_message: (status == SessionStatus::Failed).then(|| "no answer from the provider".into()),
        ..session::Model::of_room(owner, SessionId(Uuid::from_u128(3)), agent, at(0))
    }))
}
fn well() -> Command {
    ended(SessionStatus::Completed, EndReason::MaxDuration, 90)
}

/// The state as its status and what is peculiar to it.
fn shown(room: &Room) -> String {
    match &room.phase {
        Phase::Open => format!("{:?}", room.status()),
        Phase::Connecting { .. } => "Connecting".into(),
        Phase::Joined { lost_at: None, .. } => "Joined".into(),
        Phase::Joined { .. } => "Lost".into(),
        Phase::Ended { outcome, .. } => match outcome {
            RoomOutcome::Completed => "Completed".into(),
            RoomOutcome::Expired => "Expired".into(),
            RoomOutcome::Failed { code, .. } => format!("Failed {code:?}"),
        },
    }
}

/// `room.expired`, and what the session is told.
fn told(effects: &[Effect]) -> String {
    let words = effects.iter().map(|effect| match effect {
        Effect::Fact(Fact::Emit(event)) => event.event_type().to_owned(),
        Effect::Work(Work::TellSession(_, SessionCommand::Abandon(abandoned))) => {
            format!(
                "abandon {:?} {:?} {:?}",
                abandoned.status, abandoned.reason, abandoned.by
            )
        }
        Effect::Work(Work::TellSession(_, SessionCommand::Break { reason, .. })) => format!("break {reason:?}"),
        Effect::Work(Work::TellSession(_, SessionCommand::UserSpeaking { .. })) => "attend".to_owned(),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A command, the state after it, and what is told.
type Line = (Command, &'static str, &'static str);

const NO: &str = "refused";
const GONE: &str = "not found";

/// The specification, line by line; `""`: nothing is told. At 50, before anything is over, but for the ticks.
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Room, Vec<Line>)> {
    let expire = "room.expired, abandon NoAnswer RoomExpired Api";
    let fail = "room.failed, abandon Failed Canceled System";
    let same = |room: &'static str| vec![
        (Tick, room, ""), (View, room, ""), (Connect(ANN), room, ""), (Lose(ANN), room, ""), (Regain(ANN), room, ""), (full(), room, ""),
        (Expire, room, ""), (well(), room, ""), (Delete, room, ""), (first(BOB), GONE, ""), (again(ANN), GONE, ""), (Withdraw(ANN), room, ""),
    ];
    vec![
        ("created", open(), vec![
            (Tick, "Created", ""), (View, "Viewed", "room.landing_viewed"), (first(ANN), "Connecting", ""), (again(ANN), "Connecting", ""),
            (Withdraw(ANN), "Created", ""), (Connect(ANN), "Created", ""), (Lose(ANN), "Created", ""), (Regain(ANN), "Created", ""), (full(), "Failed ConcurrencyFull", fail),
            (Expire, "Expired", expire), (well(), "Completed", "room.completed"), (Delete, NO, ""),
        ]),
        ("viewed", viewed(), vec![
            (Tick, "Viewed", ""), (View, "Viewed", ""), (first(ANN), "Connecting", ""), (again(ANN), "Connecting", ""),
            (Withdraw(ANN), "Viewed", ""), (Connect(ANN), "Viewed", ""), (Lose(ANN), "Viewed", ""), (Regain(ANN), "Viewed", ""), (full(), "Failed ConcurrencyFull", fail),
            (Expire, "Expired", expire), (well(), "Completed", "room.completed"), (Delete, NO, ""),
        ]),
        ("connecting", after(viewed(), first(ANN), 40), vec![
            (Tick, "Connecting", ""), (View, "Connecting", ""), (first(BOB), NO, ""), (again(ANN), "Connecting", ""), (again(BOB), NO, ""),
            (Withdraw(ANN), "Viewed", ""), (Withdraw(BOB), "Connecting", ""), (Connect(ANN), "Joined", "room.joined"), (Connect(BOB), "Connecting", ""), (Lose(ANN), "Connecting", ""), (Regain(ANN), "Connecting", ""),
            (full(), "Failed ConcurrencyFull", fail), (Expire, "Expired", expire), (well(), "Completed", "room.completed"), (Delete, NO, ""),
        ]),
        ("joined", joined(), vec![
            (Tick, "Joined", ""), (View, "Joined", ""), (first(BOB), NO, ""), (again(ANN), "Joined", ""), (again(BOB), NO, ""),
            (Withdraw(ANN), "Joined", ""), (Connect(ANN), "Joined", ""), (Connect(BOB), "Joined", ""), (Lose(ANN), "Lost", "attend"), (Lose(BOB), "Joined", ""), (Regain(ANN), "Joined", ""),
            (full(), "Joined", ""), (Expire, NO, ""), (well(), "Completed", "room.completed"), (Delete, NO, ""),
        ]),
        ("lost", after(joined(), Lose(ANN), 40), vec![
            (Tick, "Lost", ""), (View, "Lost", ""), (first(BOB), NO, ""), (again(ANN), "Lost", ""), (again(BOB), NO, ""),
            (Withdraw(ANN), "Lost", ""), (Connect(ANN), "Joined", ""), (Connect(BOB), "Lost", ""), (Lose(ANN), "Lost", ""), (Regain(ANN), "Joined", ""), (Regain(BOB), "Lost", ""),
            (full(), "Lost", ""), (Expire, NO, ""), (well(), "Completed", "room.completed"), (Delete, NO, ""),
        ]),
        ("completed", completed(), same("Completed")),
        ("expired", expired(), same("Expired")),
        ("failed", failed(), same("Failed IceFailed")),
    ]
}

#[test]
fn every_state_meets_every_command() {
    for (name, room, lines) in table() {
        for (command, expected, events) in lines {
            let what = format!("{name}, {command:?}");
            match transition(room.clone(), command, at(50)) {
                Ok((after, effects)) => {
                    assert_eq!(
                        (shown(&after).as_str(), told(&effects).as_str()),
                        (expected, events),
                        "{what}"
                    );
                }
                Err(Error::InvalidState { .. }) => assert_eq!(expected, NO, "{what}"),
                Err(Error::NotFound(_)) => assert_eq!(expected, GONE, "{what}"),
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
}

#[test]
fn each_deadline_is_kept_to_the_second() {
    for (room, deadline, expected, events) in [
        (
            open(),
            600,
            "Expired",
            "room.expired, abandon NoAnswer RoomExpired System",
        ),
        (
            viewed(),
            600,
            "Expired",
            "room.expired, abandon NoAnswer RoomExpired System",
        ),
        (
            connecting(),
            35,
            "Failed IceFailed",
            "room.failed, abandon Failed Unreachable System",
        ),
        (lost(), 130, "Failed MediaTimeout", "room.failed, break MediaTimeout"),
    ] {
        assert_eq!(next_deadline(&room), Some(at(deadline)));
        let early = Moment::from_millis(deadline * 1000 - 1);
        assert_eq!(transition(room.clone(), Tick, early).unwrap(), (room.clone(), vec![]));
        let (after, effects) = transition(room, Tick, at(deadline)).unwrap();
        assert_eq!((shown(&after).as_str(), told(&effects).as_str()), (expected, events));
        assert_eq!(next_deadline(&after), None);
    }
    assert_eq!(next_deadline(&joined()), None);
    // The link is dead at its last moment, whoever looks first.
    let (late, _) = transition(open(), first(ANN), at(600)).unwrap();
    assert_eq!(shown(&late), "Expired");
}

#[test]
fn it_follows_its_session() {
    use {EndReason as R, SessionStatus as S};
    for (room, status, reason, expected) in [
        (joined(), S::Completed, R::Completed, "Completed"),
        (joined(), S::Completed, R::OptOut, "Completed"),
        (lost(), S::Completed, R::SilenceTimeout, "Completed"),
        (joined(), S::Failed, R::ProviderError, "Failed AgentUnreachable"),
        (joined(), S::Failed, R::AgentError, "Failed AgentUnreachable"),
        (joined(), S::Failed, R::NodeLost, "Failed InternalError"),
        (lost(), S::Failed, R::MediaTimeout, "Failed MediaTimeout"),
        (connecting(), S::Failed, R::NodeLost, "Failed InternalError"),
        (connecting(), S::Failed, R::Unreachable, "Failed IceFailed"),
        (open(), S::Failed, R::CreditsDepleted, "Failed InsufficientCredits"),
        (connecting(), S::Failed, R::Canceled, "Failed InternalError"),
        (joined(), S::Failed, R::Canceled, "Failed InternalError"),
        (viewed(), S::NoAnswer, R::RoomExpired, "Expired"),
    ] {
        let (after, effects) = transition(room, ended(status, reason, 90), at(95)).unwrap();
        assert_eq!(shown(&after), expected, "{status:?} {reason:?}");
        assert!(matches!(&after.phase, Phase::Ended { at: ended_at, .. } if *ended_at == at(90)));
        assert!(
            matches!(effects[..], [Effect::Fact(Fact::Emit(_))]),
            "its session is not told what it said"
        );
    }
}

#[test]
fn completed_tells_from_joining_to_the_end() {
    let (room, effects) = transition(joined(), well(), at(95)).unwrap();
    let Effect::Fact(Fact::Emit(Event::RoomCompleted(event))) = &effects[0] else {
        panic!("{effects:?}")
    };
    assert_eq!((event.completed_at, event.duration_seconds), (at(90), 69));
    assert_eq!(room.row().ended_at, Some(at(90)));
}

#[test]
fn its_row_says_all_of_it() {
    for (_, room, _) in table() {
        let row = room.row();
        assert_eq!(
            row.wake_at.is_some(),
            row.ended_at.is_none(),
            "an open room is found again"
        );
        assert_eq!(Room::from_row(row.clone()).unwrap().row(), row);
        let again = Room::from_row(row).unwrap();
        assert_eq!(
            (again.phase.clone(), again.viewed_at),
            (room.phase.clone(), room.viewed_at)
        );
        assert_eq!(room.parting().is_some(), again.parting().is_some());
    }
}

fn any_command() -> impl Strategy<Value = Command> {
    let who = prop_oneof![Just(ANN), Just(BOB)];
    prop_oneof![
        Just(Tick),
        Just(View),
        who.clone().prop_map(first),
        who.clone().prop_map(again),
        who.clone().prop_map(Withdraw),
        who.clone().prop_map(Connect),
        who.clone().prop_map(Lose),
        who.prop_map(Regain),
        Just(full()),
        Just(Expire),
        Just(well()),
        Just(Delete),
    ]
}

proptest! {
    /// One landing_viewed, one joined and one last event at most; nothing after the last; one participant.
    #[test]
    fn whatever_happens(steps in proptest::collection::vec((any_command(), 0..40_i64), 0..40)) {
        let (mut room, mut now) = (open(), 0);
        let mut events: Vec<&str> = Vec::new();
        let mut participant = None;
        for (command, seconds) in steps {
            now += seconds;
            let before = room.clone();
            let Ok((after, effects)) = transition(room.clone(), command, at(now)) else { continue };
            for effect in &effects {
                if let Effect::Fact(Fact::Emit(event)) = effect {
                    events.push(event.event_type());
                }
            }
            if let Phase::Joined { participant: who, .. } = &after.phase {
                prop_assert_eq!(*participant.get_or_insert(*who), *who);
            }
            let again = transition(after.clone(), Tick, at(now)).unwrap();
            let twice = transition(again.0.clone(), Tick, at(now)).unwrap();
            prop_assert_eq!(twice, (again.0.clone(), vec![]), "two ticks equal one");
            prop_assert!(!matches!(before.phase, Phase::Ended { .. }) || after.phase == before.phase, "ended is final");
            prop_assert!(Room::from_row(after.row()).unwrap().phase == after.phase);
            room = after;
        }
        for once in ["room.landing_viewed", "room.joined"] {
            prop_assert!(events.iter().filter(|event| **event == once).count() <= 1);
        }
        let last = ["room.completed", "room.expired", "room.failed"];
        let ends = events.iter().filter(|event| last.contains(event)).count();
        prop_assert_eq!(ends, usize::from(matches!(room.phase, Phase::Ended { .. })));
        prop_assert!(ends == 0 || last.contains(events.last().unwrap()));
    }

    /// A tick at the deadline always changes something.
    #[test]
    fn no_deadline_is_in_vain(steps in proptest::collection::vec((any_command(), 0..40_i64), 0..20)) {
        let (mut room, mut now) = (open(), 0);
        for (command, seconds) in steps {
            now += seconds;
            if let Ok((after, _)) = transition(room.clone(), command, at(now)) {
                room = after;
            }
        }
        if let Some(deadline) = next_deadline(&room) {
            let (after, _) = transition(room.clone(), Tick, deadline.max(at(now))).unwrap();
            prop_assert_ne!(after, room);
        }
    }
}
