//! What a session does, line by line; then what holds for every session, whatever happens to it.
use super::*;
use crate::event::Event;
use entities::session::Phase as StoredPhase;
use entities::{
    ids::{AgentId, CampaignId, ContactId, TenantId},
    values::{Env, Metadata, Variables},
};
use proptest::prelude::*;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

/// A campaign's call: rings for 30 s, talks for at most 600 s.
#[rustfmt::skip]
fn call() -> Row {
    Row {
        id: SessionId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        version: 1, created_at: at(0), status: Status::Queued, phase: StoredPhase::Queued,
        end_reason: None, ended_by: None, answered_by: None,
        agent_id: AgentId(Uuid::from_u128(3)), agent_version: 1, voice_id: None,
        from_number: None, to_number: "+15002345670".parse().unwrap(), email: None, first_name: None, last_name: None,
        campaign_id: Some(CampaignId(Uuid::from_u128(4))), contact_id: Some(ContactId(Uuid::from_u128(5))), attempt: 1,
        client_reference_id: None, variables: Variables::default(), metadata: Metadata::default(),
        ring_timeout_seconds: 30, max_duration_seconds: 600, queued_until: None, dialed_at: None, started_at: None,
        ended_at: None, duration_seconds: 0, actual_cost_cents: Cents(0), error_code: None, error_message: None,
    }
}

fn api_call() -> Row {
    Row {
        campaign_id: None,
        contact_id: None,
        ..call()
    }
}

fn url() -> Arc<str> {
    "https://callboard.test".into()
}

fn after(session: Session, command: Command, seconds: i64) -> Session {
    transition(session, command, at(seconds)).unwrap().0
}

const STATES: [&str; 6] = ["queued", "dialing", "ringing", "conversing", "talking", "ended"];

/// Waits for a slot until 300; or is dialled at 0, given up at 30, answered at 10 and ended by 610.
fn state(name: &str) -> Session {
    match name {
        "queued" => Session::queued(call(), url(), at(300)).0,
        "dialing" => Session::dialed(call(), url(), at(0)).0,
        "ringing" => after(state("dialing"), Command::Ring, 5),
        "conversing" => after(state("dialing"), Command::Answer, 10),
        "talking" => after(state("conversing"), said(), 12),
        "ended" => after(state("talking"), Command::HangUp(EndedBy::Agent), 20),
        _ => panic!("no sample of {name}"),
    }
}

fn said() -> Command {
    Command::Utter(Speaker::User, "Hello?".into())
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use {Command::*, Refusal::*};
    let next = |command: &Command| Some(match command {
        Tick => Dispatch, Dispatch => Ring, Ring => Answer, Answer => AnswerByMachine, AnswerByMachine => Refuse(Busy),
        Refuse(Busy) => Refuse(NoAnswer), Refuse(NoAnswer) => Refuse(InvalidNumber("not assigned".into())),
        Refuse(InvalidNumber(_)) => Refuse(Rejected("trunk refused".into())), Refuse(Rejected(_)) => said(),
        Utter(..) => HangUp(EndedBy::Caller), HangUp(_) => End, End => Shutdown, Shutdown => Lose, Lose => return None,
    });
    std::iter::successors(Some(Tick), next).collect()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Another state, described, and the effects in their order.
    To(&'static str, &'static str),
    Unchanged,
    Refused,
}
use Expected::{Refused, To, Unchanged};

/// An end's effects in the documented order: facts (what was said, how it ended, the contact's move), work, hints.
/// The slot too: the dispatcher may have given it one at that very moment.
const UNDIALLED: &str = "session.failed, FinishAttempt, SlotFreed";
const UNANSWERED: &str = "session.failed, FinishAttempt, HangUp, SlotFreed";
const SILENT: &str = "session.ended, FinishAttempt, HangUp, SlotFreed";
const TALKED: &str = "SaveTranscript, session.ended, FinishAttempt, HangUp, SlotFreed";
const LOST: &str = "SaveTranscript, session.failed, FinishAttempt, HangUp, SlotFreed";

/// (state, command, at which second, expected)
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Command, i64, Expected)> {
    use {Command::*, Refusal::*};
    vec![
        // queued -> dialled, or given up
        ("queued", Tick, 299, Unchanged),
        ("queued", Tick, 300, To("Failed, Canceled by System", UNDIALLED)),
        ("queued", Dispatch, 20, To("dialing", "PlaceCall")),
        ("queued", End, 20, To("Failed, Canceled by Api", UNDIALLED)),
        ("queued", Shutdown, 20, Unchanged),
        ("queued", Lose, 20, Unchanged),

        // dialled -> answered by a person
        ("dialing", Ring, 5, To("ringing", "")),
        ("ringing", Ring, 6, Unchanged),
        ("dialing", Answer, 10, To("conversing", "session.started")),
        ("ringing", Answer, 10, To("conversing", "session.started")),
        ("dialing", Dispatch, 1, Unchanged),

        // dialled -> ended without a conversation
        ("dialing", AnswerByMachine, 10, To("Voicemail, Voicemail by System", UNANSWERED)),
        ("dialing", Refuse(Busy), 2, To("Busy, Busy by System", UNANSWERED)),
        ("dialing", Refuse(NoAnswer), 2, To("NoAnswer, NoAnswer by System", UNANSWERED)),
        ("dialing", Refuse(InvalidNumber("not assigned".into())), 2, To("Failed, InvalidNumber by System", UNANSWERED)),
        ("dialing", Refuse(Rejected("trunk refused".into())), 2, To("Failed, CarrierRejected by System", UNANSWERED)),
        ("dialing", Tick, 29, Unchanged),
        ("dialing", Tick, 30, To("NoAnswer, NoAnswer by System", UNANSWERED)),
        ("ringing", Tick, 30, To("NoAnswer, NoAnswer by System", UNANSWERED)),
        ("dialing", HangUp(EndedBy::Caller), 2, To("Failed, Canceled by Caller", UNANSWERED)),
        ("dialing", End, 2, To("Failed, Canceled by Api", UNANSWERED)),
        ("dialing", Shutdown, 2, To("Failed, Canceled by System", UNANSWERED)),
        ("dialing", Lose, 2, To("Failed, NodeLost by System", UNANSWERED)),

        // a conversation, and its end
        ("conversing", said(), 12, To("conversing", "")),
        ("talking", HangUp(EndedBy::Caller), 40, To("Completed, Completed by Caller", TALKED)),
        ("talking", HangUp(EndedBy::Agent), 40, To("Completed, Completed by Agent", TALKED)),
        ("conversing", HangUp(EndedBy::Caller), 40, To("Completed, Completed by Caller", SILENT)),
        ("talking", End, 40, To("Completed, Completed by Api", TALKED)),
        ("talking", Tick, 609, Unchanged),
        ("talking", Tick, 610, To("Completed, MaxDuration by System", TALKED)),
        ("talking", Shutdown, 40, To("Completed, Canceled by System", TALKED)),
        ("talking", Lose, 40, To("Failed, NodeLost by System", LOST)),
        ("conversing", Dispatch, 40, Unchanged),
        ("conversing", Ring, 40, Unchanged),
        ("conversing", Answer, 40, Unchanged),

        // carriers repeat themselves and are late: what comes after the end changes nothing
        ("ended", Tick, 9_999, Unchanged),
        ("ended", Dispatch, 50, Unchanged),
        ("ended", Ring, 50, Unchanged),
        ("ended", Answer, 50, Unchanged),
        ("ended", AnswerByMachine, 50, Unchanged),
        ("ended", Refuse(Busy), 50, Unchanged),
        ("ended", said(), 50, Unchanged),
        ("ended", HangUp(EndedBy::Caller), 50, Unchanged),
        ("ended", Shutdown, 50, Unchanged),
        ("ended", Lose, 50, Unchanged),
        // but who asks for an end is told that it came before
        ("ended", End, 50, Refused),
    ]
}

fn describe(session: &Session) -> String {
    match &session.phase {
        Phase::Queued { .. } => "queued".into(),
        Phase::Dialing { ringing: false, .. } => "dialing".into(),
        Phase::Dialing { ringing: true, .. } => "ringing".into(),
        Phase::Conversing { .. } => "conversing".into(),
        Phase::Ended(End { status, reason, by, .. }) => format!("{status:?}, {reason:?} by {by:?}"),
    }
}

fn kinds(effects: &[Effect]) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Emit(event) => event.event_type().to_owned(),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    };
    effects.iter().map(kind).collect()
}

fn check(session: Session, command: Command, now: Moment, expected: Expected) {
    let line = format!("{} + {command:?} at {now}", describe(&session));
    match (transition(session.clone(), command, now), expected) {
        (Ok((after, effects)), To(state, wanted)) => {
            assert_ne!(after, session, "{line}");
            let came = (describe(&after), kinds(&effects).join(", "));
            assert_eq!(came, (state.to_owned(), wanted.to_owned()), "{line}");
        }
        (Ok(unchanged), Unchanged) => assert_eq!(unchanged, (session, Vec::new()), "{line}"),
        (Err(Error::InvalidState { kind: "session", .. }), Refused) => {}
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    use std::mem::discriminant as of;
    for (name, command, seconds, expected) in table() {
        check(state(name), command, at(seconds), expected);
    }
    let in_table = |session: &Session, command: &Command| {
        let is_it =
            |name: &str, known: &Command| of(&state(name).phase) == of(&session.phase) && of(known) == of(command);
        table().iter().any(|(name, known, ..)| is_it(name, known))
    };
    for session in STATES.map(state) {
        for command in commands().into_iter().filter(|command| !in_table(&session, command)) {
            check(session.clone(), command, at(15), Refused);
        }
    }
}

#[test]
fn a_session_is_born_queued_or_dialled_and_says_so_first() {
    let (_, effects) = Session::queued(call(), url(), at(300));
    assert_eq!(kinds(&effects), ["session.created", "SessionQueued"]);
    let (_, effects) = Session::dialed(call(), url(), at(0));
    assert_eq!(kinds(&effects), ["session.created", "PlaceCall"]);
}

#[test]
fn an_ended_call_tells_how_it_went() {
    let (_, effects) = transition(state("talking"), Command::HangUp(EndedBy::Caller), at(40)).unwrap();
    let (Effect::SaveTranscript { turns, .. }, Effect::Emit(Event::SessionEnded(told))) = (&effects[0], &effects[1])
    else {
        panic!("{effects:?}")
    };
    assert_eq!((turns[0].t, turns.len(), &told.transcript), (2.0, 1, turns));
    let address = format!("https://callboard.test/v1/sessions/{}/transcript.json", told.session_id);
    assert_eq!(told.transcript_url, Some(address));
    let times = (told.started_at, told.ended_at, told.duration_seconds);
    assert_eq!(times, (Some(at(10)), at(40), 30));
    let Effect::FinishAttempt { attempt, .. } = &effects[2] else {
        panic!("{effects:?}")
    };
    assert_eq!((attempt.status, attempt.duration_seconds), (told.status, 30));
}

#[test]
fn an_api_call_has_no_contact_to_move() {
    let session = Session::dialed(api_call(), url(), at(0)).0;
    let (_, effects) = transition(session, Command::Refuse(Refusal::Busy), at(2)).unwrap();
    assert_eq!(kinds(&effects), ["session.failed", "HangUp", "SlotFreed"]);
}

#[test]
fn a_talk_keeps_its_first_2000_turns() {
    let talked = (0..MAX_TURNS + 1).fold(state("conversing"), |session, _| after(session, said(), 11));
    assert_eq!(talked.turns.len(), 2_000);
}

/// A session's life: every state it was in, and everything it caused.
struct Life {
    states: Vec<Session>,
    effects: Vec<Effect>,
}

impl Life {
    /// Each step is a command, some seconds after the one before. A refused command leaves the session as it was.
    fn of((born, effects): (Session, Vec<Effect>), steps: &[(Command, i64)]) -> Life {
        let states = vec![born];
        let (mut life, mut now) = (Life { states, effects }, at(0));
        for (command, pause) in steps {
            now = now.plus_seconds(*pause);
            life.step(command.clone(), now);
        }
        life
    }
    fn step(&mut self, command: Command, now: Moment) {
        if let Ok((next, effects)) = transition(self.last().clone(), command, now) {
            self.states.push(next);
            self.effects.extend(effects);
        }
    }
    fn last(&self) -> &Session {
        self.states.last().unwrap()
    }
    /// On, by nothing but its alarms.
    fn until_the_end(mut self) -> Life {
        for _ in 0..3 {
            if let Some(due) = next_deadline(self.last()) {
                self.step(Command::Tick, due);
            }
        }
        self
    }
    fn count(&self, event_type: &str) -> usize {
        kinds(&self.effects).iter().filter(|kind| *kind == event_type).count()
    }
}

fn born() -> impl Strategy<Value = (Session, Vec<Effect>)> {
    let row = prop::sample::select(vec![call(), api_call()]);
    (row, any::<bool>()).prop_map(|(row, waits)| match waits {
        true => Session::queued(row, url(), at(300)),
        false => Session::dialed(row, url(), at(0)),
    })
}

/// Any command, the ways of a call that is answered more often.
fn steps() -> impl Strategy<Value = Vec<(Command, i64)>> {
    use Command::*;
    let usual = prop::sample::select(vec![Tick, Dispatch, Ring, Answer, said()]);
    let command = prop_oneof![3 => usual, 1 => prop::sample::select(commands())];
    prop::collection::vec((command, prop_oneof![4 => 0..20_i64, 1 => 0..700_i64]), 0..25)
}

proptest! {
    #[test]
    fn ended_is_final(born in born(), steps in steps()) {
        let life = Life::of(born, &steps);
        for pair in life.states.windows(2) {
            prop_assert!(!matches!(pair[0].phase, Phase::Ended(_)) || pair[0] == pair[1]);
        }
    }

    #[test]
    fn two_ticks_equal_one(born in born(), steps in steps(), now in 0..2_000_i64) {
        for session in Life::of(born, &steps).states {
            let once = after(session, Command::Tick, now);
            prop_assert_eq!(transition(once.clone(), Command::Tick, at(now)).unwrap(), (once, Vec::new()));
        }
    }

    #[test]
    fn a_tick_at_next_deadline_always_changes_something_and_none_before(born in born(), steps in steps()) {
        for session in Life::of(born, &steps).states {
            let Some(due) = next_deadline(&session) else {
                prop_assert!(matches!(session.phase, Phase::Ended(_)));
                continue;
            };
            let (on_time, effects) = transition(session.clone(), Command::Tick, due).unwrap();
            prop_assert!(on_time != session && !effects.is_empty());
            let early = transition(session.clone(), Command::Tick, due.plus_millis(-1)).unwrap();
            prop_assert_eq!(early, (session, Vec::new()));
        }
    }

    #[test]
    fn created_once_started_at_most_once_and_ended_exactly_once(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let started = matches!(life.last().phase, Phase::Ended(End { started_at: Some(_), .. }));
        prop_assert_eq!(life.count("session.created"), 1);
        prop_assert_eq!(life.count("session.started"), usize::from(started));
        prop_assert_eq!(life.count("session.ended") + life.count("session.failed"), 1);
        let told: Vec<_> = kinds(&life.effects).into_iter().filter(|kind| kind.starts_with("session.")).collect();
        prop_assert_eq!(told.first().map(String::as_str), Some("session.created"));
        prop_assert!(["session.ended", "session.failed"].contains(&told.last().unwrap().as_str()));
    }

    #[test]
    fn a_call_is_placed_at_most_once_and_its_slot_freed_once(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        prop_assert!(life.count("PlaceCall") <= 1);
        prop_assert_eq!(life.count("SlotFreed"), 1);
        prop_assert_eq!(life.count("HangUp"), life.count("PlaceCall"));
        let with_contact = life.last().call.contact_id.is_some();
        prop_assert_eq!(life.count("FinishAttempt"), usize::from(with_contact));
    }

    #[test]
    fn session_ended_is_told_if_and_only_if_completed(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let Phase::Ended(end) = &life.last().phase else { panic!("it has no alarm left") };
        prop_assert_eq!(life.count("session.ended") == 1, end.status == Status::Completed);
        // A human conversation ran, and was not cut off by a crash.
        let talked = end.started_at.is_some() && end.reason != EndReason::NodeLost;
        prop_assert_eq!(end.status == Status::Completed, talked);
    }

    #[test]
    fn its_row_says_every_state(born in born(), steps in steps()) {
        for session in Life::of(born, &steps).until_the_end().states {
            let row = session.row();
            let read = Session::from_row(row.clone(), url()).unwrap();
            prop_assert_eq!((&read.phase, read.version), (&session.phase, session.version));
            prop_assert_eq!((row.status, read.row()), (session.status(), row));
        }
    }

    #[test]
    fn read_back_between_any_two_commands_it_ends_the_same(born in born(), steps in steps()) {
        let kept = Life::of(born.clone(), &steps);
        let mut session = born.0;
        let mut now = at(0);
        for (command, pause) in steps {
            now = now.plus_seconds(pause);
            let read = Session::from_row(session.row(), url()).unwrap();
            session = transition(read.clone(), command, now).map_or(read, |(next, _)| next);
        }
        prop_assert_eq!(session.row(), kept.last().row());
    }
}
