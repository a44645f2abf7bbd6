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

/// A campaign's call: waits for 300 s, rings for 30 s, talks for at most 600 s; a minute costs 10 cents.
#[rustfmt::skip]
fn call() -> Row {
    Row {
        id: SessionId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        version: 1, created_at: at(0), status: Status::Queued, phase: StoredPhase::Queued,
        end_reason: None, ended_by: None, answered_by: None,
        agent_id: AgentId(Uuid::from_u128(3)), agent_version: 1, voice_id: None,
        from_number: None, to_number: "+15002345670".parse().unwrap(), email: None, first_name: None, last_name: None,
        campaign_id: Some(CampaignId(Uuid::from_u128(4))), contact_id: Some(ContactId(Uuid::from_u128(5))), attempt: 2,
        client_reference_id: None, variables: Variables::default(), metadata: Metadata::default(),
        ring_timeout_seconds: 30, max_duration_seconds: 600, scheduled_at: None, queue_ttl_seconds: 300,
        timezone: None, price_cents_per_minute: 10, queued_until: None, dialed_at: None, started_at: None,
        ended_at: None, duration_seconds: 0, actual_cost_cents: Cents(0), error_code: None, error_message: None,
    }
}

fn api_call() -> Row {
    Row {
        campaign_id: None,
        contact_id: None,
        attempt: 1,
        ..call()
    }
}

fn call_at(seconds: i64) -> Row {
    Row {
        scheduled_at: Some(at(seconds)),
        ..api_call()
    }
}

fn url() -> Arc<str> {
    "https://callboard.test".into()
}

fn after(session: Session, command: Command, seconds: i64) -> Session {
    transition(session, command, at(seconds)).unwrap().0
}

const STATES: [&str; 7] = [
    "scheduled",
    "queued",
    "dialing",
    "ringing",
    "conversing",
    "talking",
    "ended",
];

/// Waits for its time until 200; waits for a slot until 300; or is dialled at 0, given up at 30, answered at 10 and
/// ended by 610.
fn state(name: &str) -> Session {
    match name {
        "scheduled" => Session::queued(call_at(200), url(), at(0)).0,
        "queued" => Session::queued(call(), url(), at(0)).0,
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
fn dispatch_at(seconds: i64) -> Command {
    Command::Dispatch { at: at(seconds) }
}
fn postpone_to(seconds: i64) -> Command {
    Command::Postpone { until: at(seconds) }
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use {Command::*, Refusal::*, super::Bar::*};
    let next = |command: &Command| Some(match command {
        Tick => dispatch_at(15), Dispatch { .. } => postpone_to(400), Postpone { .. } => Bar(OnDnc),
        Bar(OnDnc) => Bar(CapReached), Bar(CapReached) => Bar(OutsideHours), Bar(OutsideHours) => Bar(CampaignOver), Bar(CampaignOver) => Ring,
        Ring => Answer, Answer => AnswerByMachine, AnswerByMachine => Refuse(Busy),
        Refuse(Busy) => Refuse(NoAnswer), Refuse(NoAnswer) => Refuse(InvalidNumber("not assigned".into())),
        Refuse(InvalidNumber(_)) => Refuse(Rejected("trunk refused".into())), Refuse(Rejected(_)) => Refuse(Congested),
        Refuse(Congested) => said(), Utter(..) => HangUp(EndedBy::Caller), HangUp(_) => End, End => Shutdown,
        Shutdown => Lose, Lose => return None,
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
/// A call that no contact asked for.
const FORGOTTEN: &str = "session.failed, SlotFreed";
/// Whoever places calls hears that there is no room before it hears of a free slot and a waiting call.
const SENT_BACK: &str = "HangUp, TrunkCongested, SlotFreed, SessionQueued";

/// (state, command, at which second, expected)
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Command, i64, Expected)> {
    use {Command::*, Refusal::*, super::Bar::*};
    vec![
        // waits for its time
        ("scheduled", Tick, 199, Unchanged),
        ("scheduled", Tick, 200, To("queued", "SessionQueued")),
        ("scheduled", End, 20, To("Failed, Canceled by Api", FORGOTTEN)),
        ("scheduled", dispatch_at(15), 15, Unchanged),
        ("scheduled", postpone_to(400), 20, Unchanged),
        ("scheduled", Bar(OnDnc), 20, Unchanged),
        ("scheduled", Shutdown, 20, Unchanged),
        ("scheduled", Lose, 20, Unchanged),

        // queued -> dialled, put off, or given up
        ("queued", Tick, 299, Unchanged),
        ("queued", Tick, 300, To("Failed, CarrierRejected by System", UNDIALLED)), // a campaign's: sent back by a full trunk
        ("queued", Ring, 20, Unchanged),
        ("queued", Refuse(Congested), 20, Unchanged),
        ("queued", dispatch_at(21), 20, To("dialing", "")),
        ("queued", postpone_to(400), 20, To("scheduled", "")),
        ("queued", postpone_to(20), 20, Unchanged), // the hours are open by now
        ("queued", Bar(OnDnc), 20, To("Failed, Canceled by System", UNDIALLED)),
        ("queued", Bar(CapReached), 20, To("Failed, Canceled by System", UNDIALLED)),
        ("queued", Bar(OutsideHours), 20, To("Failed, Canceled by System", UNDIALLED)),
        ("queued", Bar(CampaignOver), 20, To("Failed, Canceled by System", UNDIALLED)),
        ("queued", End, 20, To("Failed, Canceled by Api", UNDIALLED)),
        ("queued", Shutdown, 20, Unchanged),
        ("queued", Lose, 20, Unchanged),

        // dialled -> answered by a person
        ("dialing", Ring, 5, To("ringing", "")),
        ("ringing", Ring, 6, Unchanged),
        ("dialing", Answer, 10, To("conversing", "session.started")),
        ("ringing", Answer, 10, To("conversing", "session.started")),

        // dialled -> queued: the trunk never took the call
        ("dialing", Refuse(Congested), 2, To("queued", SENT_BACK)),
        ("ringing", Refuse(Congested), 6, To("queued", SENT_BACK)),

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

        // what was decided for a call in the queue comes too late for one that is on its way; a carrier repeats itself
        ("dialing", dispatch_at(1), 1, Unchanged),
        ("dialing", postpone_to(400), 1, Unchanged),
        ("dialing", Bar(OnDnc), 1, Unchanged),
        ("conversing", dispatch_at(40), 40, Unchanged),
        ("conversing", postpone_to(400), 40, Unchanged),
        ("conversing", Bar(CapReached), 40, Unchanged),
        ("conversing", Ring, 40, Unchanged),
        ("conversing", Answer, 40, Unchanged),

        // carriers repeat themselves and are late: what comes after the end changes nothing
        ("ended", Tick, 9_999, Unchanged),
        ("ended", dispatch_at(50), 50, Unchanged),
        ("ended", postpone_to(400), 50, Unchanged),
        ("ended", Bar(OutsideHours), 50, Unchanged),
        ("ended", Ring, 50, Unchanged),
        ("ended", Answer, 50, Unchanged),
        ("ended", AnswerByMachine, 50, Unchanged),
        ("ended", Refuse(Busy), 50, Unchanged),
        ("ended", Refuse(Congested), 50, Unchanged),
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
        Phase::Scheduled { .. } => "scheduled".into(),
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
fn a_session_is_born_scheduled_queued_or_dialled_and_says_so_first() {
    let now = at(100);
    for (call, wanted) in [
        (call_at(101), Phase::Scheduled { at: at(101) }),
        (call_at(100), Phase::Queued { until: at(400) }), // its time has come
        (
            Row {
                created_at: now,
                ..api_call()
            },
            Phase::Queued { until: at(400) },
        ),
        // Who does not want to wait gets a moment to find the slot that is free.
        (
            Row {
                queue_ttl_seconds: 0,
                created_at: now,
                ..api_call()
            },
            Phase::Queued { until: at(105) },
        ),
    ] {
        let (session, effects) = Session::queued(call, url(), now);
        assert_eq!(session.phase, wanted);
        assert_eq!(
            (kinds(&effects), session.is_live()),
            (vec!["session.created".into(), "SessionQueued".into()], false)
        );
    }
    let (session, effects) = Session::dialed(call(), url(), now);
    assert_eq!(
        (kinds(&effects), session.is_live()),
        (vec!["session.created".to_owned()], true)
    );
}

#[test]
fn a_dispatched_call_rings_from_the_moment_it_is_placed() {
    let placed = after(state("queued"), dispatch_at(25), 20);
    let (dialed_at, give_up_at) = (at(25), at(55));
    assert_eq!(
        placed.phase,
        Phase::Dialing {
            dialed_at,
            give_up_at,
            ringing: false
        }
    );
}

#[test]
fn a_congested_trunk_sends_the_call_back_for_the_same_attempt() {
    let (sent_back, effects) = transition(state("ringing"), Command::Refuse(Refusal::Congested), at(7)).unwrap();
    let (tenant_id, session_id, session) = (call().tenant_id, call().id, call().key());
    assert_eq!(
        effects,
        [
            Effect::HangUp { session },
            Effect::TrunkCongested {
                tenant_id,
                env: Env::Test
            },
            Effect::SlotFreed { tenant_id, session_id },
            Effect::SessionQueued(tenant_id),
        ]
    );
    assert_eq!(sent_back.phase, Phase::Queued { until: at(300) });
    let row = sent_back.row();
    assert_eq!((row.attempt, row.dialed_at, row.queued_until), (2, None, Some(at(300))));
    // It waits for its turn as before, and is not told a second time.
    let again = after(sent_back, dispatch_at(60), 60);
    let (talk, effects) = transition(again, Command::Answer, at(70)).unwrap();
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
    // It has its whole time in the queue again.
    assert_eq!(
        after(put_off, Command::Tick, 900).phase,
        Phase::Queued { until: at(1_200) }
    );
}

#[test]
fn who_is_barred_is_told_why() {
    for (bar, why) in [
        (Bar::OnDnc, "do-not-call"),
        (Bar::CapReached, "too often"),
        (Bar::OutsideHours, "calling hours"),
    ] {
        let row = after(state("queued"), Command::Bar(bar), 20).row();
        assert_eq!((row.error_code.as_deref(), row.dialed_at), (Some("canceled"), None));
        assert!(row.error_message.unwrap().contains(why));
    }
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
    let times = (
        told.started_at,
        told.ended_at,
        told.duration_seconds,
        told.actual_cost_cents,
    );
    assert_eq!(times, (Some(at(10)), at(40), 30, Cents(5)));
    let Effect::FinishAttempt { attempt, .. } = &effects[2] else {
        panic!("{effects:?}")
    };
    let wanted = Attempt {
        session_id: told.session_id,
        dialed_at: Some(at(0)),
        answered: true,
        status: told.status,
        reason: told.end_reason,
        duration_seconds: 30,
        actual_cost_cents: Cents(5),
    };
    assert_eq!(attempt, &wanted);
}

#[test]
fn a_machine_that_picks_up_is_an_answer_and_no_talk() {
    let row = after(state("ringing"), Command::AnswerByMachine, 20).row();
    assert_eq!((row.answered_by, row.started_at), (Some(AnsweredBy::Voicemail), None));
    assert_eq!(
        (row.dialed_at, row.duration_seconds, row.actual_cost_cents),
        (Some(at(0)), 0, Cents(0))
    );
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
    lacking("conversing", "dialed_at", |row| row.dialed_at = None);
    lacking("conversing", "started_at", |row| row.started_at = None);
    lacking("ended", "ended_at", |row| row.ended_at = None);
    lacking("ended", "end_reason", |row| row.end_reason = None);
    lacking("ended", "ended_by", |row| row.ended_by = None);
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
    fn end(&self) -> &End {
        let Phase::Ended(end) = &self.last().phase else {
            panic!("it has no alarm left")
        };
        end
    }
    fn count(&self, kind: &str) -> usize {
        kinds(&self.effects).iter().filter(|known| *known == kind).count()
    }
    /// How often it went from one such state to the other.
    fn moves(&self, from: fn(&Session) -> bool, to: fn(&Session) -> bool) -> usize {
        self.states
            .windows(2)
            .filter(|pair| from(&pair[0]) && to(&pair[1]))
            .count()
    }
}

fn is_queued(session: &Session) -> bool {
    matches!(session.phase, Phase::Queued { .. })
}

fn born() -> impl Strategy<Value = (Session, Vec<Effect>)> {
    let row = prop::sample::select(vec![call(), api_call(), call_at(100)]);
    (row, -5..40_i32, any::<bool>()).prop_map(|(row, price_cents_per_minute, waits)| {
        let row = Row {
            price_cents_per_minute,
            ..row
        };
        match waits {
            true => Session::queued(row, url(), at(0)),
            false => Session::dialed(row, url(), at(0)),
        }
    })
}

/// Any command, the ways of a call that is answered more often.
fn steps() -> impl Strategy<Value = Vec<(Command, i64)>> {
    use Command::*;
    let usual = prop::sample::select(vec![Tick, dispatch_at(15), Ring, Answer, said()]);
    let of_the_queue = prop_oneof![(0..900_i64).prop_map(dispatch_at), (0..900_i64).prop_map(postpone_to)];
    let command = prop_oneof![
        6 => usual,
        2 => of_the_queue,
        1 => Just(Refuse(Refusal::Congested)),
        2 => prop::sample::select(commands()),
    ];
    prop::collection::vec((command, prop_oneof![4 => 0..20_i64, 1 => 0..700_i64]), 0..25)
}

#[test]
fn a_direct_call_that_found_no_slot_was_canceled_and_a_campaigns_was_refused_by_the_trunk() {
    for (call, reason) in [(api_call(), EndReason::Canceled), (call(), EndReason::CarrierRejected)] {
        let (session, _) = Session::queued(call, url(), at(0));
        let Phase::Ended(end) = after(session, Command::Tick, 300).phase else {
            panic!("it waits on");
        };
        assert_eq!(end.reason, reason);
    }
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
        prop_assert_eq!(life.count("session.created"), 1);
        prop_assert_eq!(life.count("session.started"), usize::from(life.end().started_at.is_some()));
        prop_assert_eq!(life.count("session.ended") + life.count("session.failed"), 1);
        let told: Vec<_> = kinds(&life.effects).into_iter().filter(|kind| kind.starts_with("session.")).collect();
        prop_assert_eq!(told.first().map(String::as_str), Some("session.created"));
        prop_assert!(["session.ended", "session.failed"].contains(&told.last().unwrap().as_str()));
    }

    #[test]
    fn every_placed_call_is_hung_up_and_every_slot_freed(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let sent_back = life.moves(Session::is_live, is_queued);
        prop_assert_eq!(life.count("HangUp"), life.moves(Session::is_live, |session| !session.is_live()));
        prop_assert_eq!(life.count("SlotFreed"), sent_back + 1);
        prop_assert_eq!(life.count("TrunkCongested"), sent_back);
    }

    #[test]
    fn whoever_waits_for_a_slot_has_said_so(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        // A birth says it too, even to one that waits for its time yet.
        let born_waiting = usize::from(!life.states[0].is_live());
        prop_assert_eq!(life.count("SessionQueued"), born_waiting + life.moves(|session| !is_queued(session), is_queued));
    }

    #[test]
    fn whom_it_calls_and_for_which_attempt_never_changes(born in born(), steps in steps()) {
        let call = born.0.call.clone();
        let life = Life::of(born, &steps).until_the_end();
        let said = |row: &Row| (row.id, row.to_number.clone(), row.from_number.clone(), row.contact_id, row.attempt);
        prop_assert!(life.states.iter().all(|session| said(&session.call) == said(&call) && said(&session.row()) == said(&call)));
        prop_assert_eq!(life.count("FinishAttempt"), usize::from(call.contact_id.is_some()));
    }

    #[test]
    fn session_ended_is_told_if_and_only_if_completed(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let end = life.end();
        prop_assert_eq!(life.count("session.ended") == 1, end.status == Status::Completed);
        // A human conversation ran, and was not cut off by a crash.
        let talked = end.started_at.is_some() && end.reason != EndReason::NodeLost;
        prop_assert_eq!(end.status == Status::Completed, talked);
    }

    #[test]
    fn event_contact_and_row_tell_the_same_end_and_nobody_pays_for_no_answer(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let (end, row) = (life.end(), life.last().row());
        let told = life.effects.iter().find_map(|effect| match effect {
            Effect::Emit(Event::SessionEnded(told)) => Some((told.status, told.duration_seconds, told.actual_cost_cents)),
            Effect::Emit(Event::SessionFailed(told)) => Some((told.status, told.duration_seconds, told.actual_cost_cents)),
            _ => None,
        });
        prop_assert_eq!(told, Some((row.status, row.duration_seconds, row.actual_cost_cents)));
        for effect in &life.effects {
            if let Effect::FinishAttempt { attempt, .. } = effect {
                let same = (attempt.status, attempt.duration_seconds, attempt.actual_cost_cents);
                prop_assert_eq!(Some(same), told);
                let how = (attempt.dialed_at, attempt.answered, attempt.reason);
                prop_assert_eq!(how, (row.dialed_at, row.answered_by.is_some(), end.reason));
            }
        }
        prop_assert!(row.actual_cost_cents >= Cents(0));
        prop_assert!(row.started_at.is_some() || row.actual_cost_cents == Cents(0));
    }

    #[test]
    fn the_cost_is_the_least_number_of_cents_that_covers_the_talk(price in any::<i32>(), seconds in any::<i32>()) {
        let Cents(cents) = cost(price, seconds);
        let sixtieths = i128::from(price.max(0)) * i128::from(seconds.max(0));
        prop_assert!(cents >= 0 && i128::from(cents) * 60 >= sixtieths && (i128::from(cents) - 1) * 60 < sixtieths);
    }

    #[test]
    fn its_row_says_every_state(born in born(), steps in steps()) {
        for session in Life::of(born, &steps).until_the_end().states {
            let row = session.row();
            let read = Session::from_row(row.clone(), url()).unwrap();
            prop_assert_eq!((&read.phase, read.version), (&session.phase, session.version));
            prop_assert_eq!(row.queued_until.is_some(), is_queued(&session));
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
            prop_assert_eq!(session.row().queued_until.is_some(), is_queued(&session));
        }
        prop_assert_eq!(session.phase, kept.last().phase.clone());
    }
}
