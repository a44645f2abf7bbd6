//! What a campaign does, line by line; then what holds for every campaign, whatever it is told.
use super::*;
use crate::event::Event;
use entities::{ids::TenantId, values::Env};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

fn key() -> Owned<CampaignId> {
    Owned::new(TenantId(Uuid::from_u128(1)), Env::Test, CampaignId(Uuid::from_u128(2)))
}

fn plan() -> Plan {
    serde_json::from_value(json!({ "name": "Spring" })).unwrap()
}

fn agent() -> AgentSnapshot {
    let definition = serde_json::from_value(json!({ "name": "Ada", "prompt": "Ask how it went." })).unwrap();
    let id = entities::ids::AgentId(Uuid::from_u128(3));
    AgentSnapshot {
        id,
        version: 1,
        definition,
    }
}

fn born() -> (Campaign, Vec<Effect>) {
    Campaign::draft(key(), plan(), at(0))
}

fn after(campaign: Campaign, command: Command, seconds: i64) -> Campaign {
    transition(campaign, command, at(seconds)).unwrap().0
}

#[rustfmt::skip]
const STATES: [&str; 7] = ["draft", "running", "paused", "canceling", "canceling a draft", "completed", "canceled"];

fn state(name: &str) -> Campaign {
    match name {
        "draft" => born().0,
        "running" => after(state("draft"), start_with(3), 10),
        "paused" => after(state("running"), Command::Pause, 20),
        "canceling" => after(state("running"), Command::Cancel, 30),
        "canceling a draft" => after(state("draft"), Command::Cancel, 30),
        "completed" => after(state("running"), Command::Drained(done()), 40),
        "canceled" => after(state("canceling"), Command::Drained(done()), 40),
        _ => panic!("no sample of {name}"),
    }
}

fn start_with(contacts: i64) -> Command {
    Command::Start {
        agent: Box::new(agent()),
        contacts,
    }
}

/// All three contacts reached their end, in four calls.
fn done() -> Tally {
    Tally {
        total: 3,
        completed: 2,
        failed: 1,
        completed_sessions: 2,
        failed_sessions: 2,
        ..Tally::new(key().id)
    }
}
/// As many contacts, of which each of these has not.
fn open(pending: i64, waiting: i64, dispatched: i64) -> Tally {
    let completed = 3 - pending - waiting - dispatched;
    Tally {
        total: 3,
        pending,
        waiting,
        dispatched,
        completed,
        ..Tally::new(key().id)
    }
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use Command::*;
    let next = |command: &Command| Some(match command {
        Tick => start_with(3), Start { .. } => Pause, Pause => Resume, Resume => Cancel, Cancel => Drained(done()),
        Drained(_) => return None,
    });
    std::iter::successors(Some(Tick), next).collect()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Another state, described, and the effects in their order.
    To(&'static str, &'static str),
    /// The same state, and these effects.
    Stays(&'static str),
    Refused,
}
use Expected::{Refused, Stays, To};
const UNCHANGED: Expected = Stays("");

/// `complete`'s effects in the documented order: the condition, the event, the hint.
const COMPLETED: &str = "Require, campaign.completed, CampaignsChanged";

/// (state, command, expected)
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Command, Expected)> {
    use Command::*;
    vec![
        // draft -> running
        ("draft", start_with(1), To("running", "campaign.started, CampaignsChanged")),
        ("draft", start_with(0), Refused), // nobody to call
        ("running", start_with(1), UNCHANGED),

        // running -> paused, by hand, and back
        ("running", Pause, To("paused", "campaign.paused, CampaignsChanged")),
        ("paused", Pause, UNCHANGED),
        ("paused", Resume, To("running", "CampaignsChanged, CheckDrained")),
        ("running", Resume, UNCHANGED),

        // running -> completed, once every contact has reached a terminal state
        ("running", Drained(done()), To("completed, Finished", COMPLETED)),
        ("running", Drained(open(1, 0, 0)), UNCHANGED),
        ("running", Drained(open(0, 1, 0)), UNCHANGED),
        ("running", Drained(open(0, 0, 1)), UNCHANGED),
        ("paused", Drained(done()), UNCHANGED), // it looks again when it is resumed
        ("draft", Drained(done()), UNCHANGED),
        ("completed", Drained(done()), UNCHANGED),
        ("canceled", Drained(done()), UNCHANGED),

        // canceled: no more calls, then completed when those in flight have ended
        ("draft", Cancel, To("canceling", "CampaignsChanged, CancelContacts")),
        ("running", Cancel, To("canceling", "CampaignsChanged, CancelContacts")),
        ("paused", Cancel, To("canceling", "CampaignsChanged, CancelContacts")),
        ("canceling", Cancel, UNCHANGED),
        ("canceling", Tick, Stays("CancelContacts")), // found after a crash: goes on
        ("canceling", Drained(open(0, 0, 1)), UNCHANGED),
        ("canceling", Drained(done()), To("completed, Canceled", COMPLETED)),
        ("canceling a draft", Drained(done()), To("completed, Canceled", COMPLETED)),

        // no other state waits for the time
        ("draft", Tick, UNCHANGED),
        ("running", Tick, UNCHANGED),
        ("paused", Tick, UNCHANGED),
        ("completed", Tick, UNCHANGED),
    ]
}

fn describe(campaign: &Campaign) -> String {
    match &campaign.phase {
        Phase::Draft => "draft".into(),
        Phase::Running { .. } => "running".into(),
        Phase::Paused { .. } => "paused".into(),
        Phase::Canceling { .. } => "canceling".into(),
        Phase::Completed { reason, .. } => format!("completed, {reason:?}"),
    }
}

fn kinds(effects: &[Effect]) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Emit(event) => event.event_type().to_owned(),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    };
    effects.iter().map(kind).collect()
}

fn check(campaign: Campaign, command: Command, expected: Expected) {
    let line = format!("{} + {command:?}", describe(&campaign));
    match (transition(campaign.clone(), command, at(50)), expected) {
        (Ok((after, effects)), To(state, wanted)) => {
            let came = (describe(&after), kinds(&effects).join(", "));
            assert_eq!(came, (state.to_owned(), wanted.to_owned()), "{line}");
        }
        (Ok((after, effects)), Stays(wanted)) => {
            assert_eq!(
                (after, kinds(&effects).join(", ")),
                (campaign, wanted.to_owned()),
                "{line}"
            );
        }
        (Err(Error::InvalidState { kind: "campaign", .. }), Refused) => {}
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    use std::mem::discriminant as of;
    for (name, command, expected) in table() {
        check(state(name), command, expected);
    }
    let in_table = |campaign: &Campaign, command: &Command| {
        let is_it =
            |name: &str, known: &Command| of(&state(name).phase) == of(&campaign.phase) && of(known) == of(command);
        table().iter().any(|(name, known, _)| is_it(name, known))
    };
    for campaign in STATES.map(state) {
        for command in commands().into_iter().filter(|command| !in_table(&campaign, command)) {
            check(campaign.clone(), command, Refused);
        }
    }
}

#[test]
fn a_campaign_is_born_a_draft_and_says_so() {
    let (campaign, effects) = born();
    assert_eq!(
        (describe(&campaign).as_str(), campaign.is_dispatching()),
        ("draft", false)
    );
    assert_eq!(kinds(&effects), ["campaign.created"]);
}

#[test]
fn a_start_keeps_the_agent_as_it_is() {
    assert_eq!(state("draft").agent, None);
    assert_eq!(state("running").agent.as_deref(), Some(&agent()));
}

#[test]
fn the_end_tells_the_counts_and_holds_only_if_no_contact_was_added() {
    let (_, effects) = transition(state("running"), Command::Drained(done()), at(40)).unwrap();
    let guard = Guard::Drained {
        campaign_id: key().id,
        total: 3,
    };
    assert_eq!(effects[0], Effect::Require(guard));
    let told = CampaignCompleted {
        campaign_id: key().id,
        completed_at: at(40),
        total_contacts: 3,
        completed_sessions: 2,
        failed_sessions: 2,
    };
    assert_eq!(effects[1], Effect::Emit(Event::CampaignCompleted(told)));
}

#[test]
fn a_row_that_lacks_its_states_columns_is_named_not_guessed() {
    let (running, completed) = (state("running").row(), state("completed").row());
    let no_start = Row {
        started_at: None,
        ..running
    };
    let no_reason = Row {
        completed_reason: None,
        ..completed
    };
    for (row, lacking) in [(no_start, "started_at"), (no_reason, "completed_reason")] {
        let error = Campaign::from_row(row).unwrap_err();
        assert!(matches!(error, Error::Corrupt { table: "campaigns", column, .. } if column == lacking));
    }
}

/// Every state a campaign was in, and everything it caused. Each command comes a second after the one before; a
/// refused one leaves the campaign as it was.
fn life(steps: &[Command]) -> (Vec<Campaign>, Vec<Effect>) {
    let (campaign, mut effects) = born();
    let mut states = vec![campaign];
    for (seconds, command) in (1..).zip(steps) {
        if let Ok((next, caused)) = transition(states.last().unwrap().clone(), command.clone(), at(seconds)) {
            states.push(next);
            effects.extend(caused);
        }
    }
    (states, effects)
}

fn tally() -> impl Strategy<Value = Tally> {
    prop_oneof![
        Just(done()),
        (0..2_i64, 0..2_i64, 0..2_i64).prop_map(|(a, b, c)| open(a, b, c))
    ]
}

fn steps() -> impl Strategy<Value = Vec<Command>> {
    let command = prop_oneof![
        4 => prop::sample::select(commands()),
        1 => (0..2_i64).prop_map(start_with),
        1 => tally().prop_map(Command::Drained),
    ];
    prop::collection::vec(command, 0..20)
}

proptest! {
    #[test]
    fn completed_is_final(steps in steps()) {
        for pair in life(&steps).0.windows(2) {
            prop_assert!(!matches!(pair[0].phase, Phase::Completed { .. }) || pair[0] == pair[1], "{:?}", pair);
        }
    }

    #[test]
    fn a_canceled_campaign_never_dispatches_again(steps in steps()) {
        let (states, _) = life(&steps);
        let canceled = states.iter().skip_while(|campaign| campaign.row().cancel_requested_at.is_none());
        for campaign in canceled {
            prop_assert!(!campaign.is_dispatching() && campaign.row().cancel_requested_at.is_some());
        }
    }

    #[test]
    fn two_ticks_equal_one(steps in steps()) {
        for campaign in life(&steps).0 {
            let once = transition(campaign.clone(), Command::Tick, at(99)).unwrap();
            prop_assert_eq!(&once.0, &campaign);
            prop_assert_eq!(transition(once.0.clone(), Command::Tick, at(99)).unwrap(), once);
            prop_assert_eq!(next_deadline(&campaign), None);
        }
    }

    #[test]
    fn each_of_its_moves_is_told_once(steps in steps()) {
        let (states, effects) = life(&steps);
        let names: Vec<_> = states.iter().map(describe).collect();
        let moves: Vec<_> = names.windows(2).filter(|pair| pair[0] != pair[1]).map(|pair| &pair[1]).collect();
        let entered = |wanted: &str| moves.iter().filter(|name| name.starts_with(wanted)).count();
        let told = |event_type: &str| kinds(&effects).iter().filter(|kind| *kind == event_type).count();
        prop_assert_eq!(told("campaign.created"), 1);
        prop_assert_eq!(told("campaign.started"), usize::from(states.last().unwrap().row().started_at.is_some()));
        prop_assert_eq!(told("campaign.paused"), entered("paused"));
        prop_assert_eq!(told("campaign.completed"), entered("completed"));
        prop_assert!(told("campaign.completed") <= 1);
    }

    #[test]
    fn it_completes_only_when_no_contact_is_left(tally in tally(), canceled in any::<bool>()) {
        let before = state(if canceled { "canceling" } else { "running" });
        let completed = matches!(after(before, Command::Drained(tally.clone()), 50).phase, Phase::Completed { .. });
        prop_assert_eq!(completed, tally.pending + tally.waiting + tally.dispatched == 0);
    }

    #[test]
    fn its_start_is_remembered(steps in steps()) {
        for pair in life(&steps).0.windows(2) {
            let [before, now] = [pair[0].row().started_at, pair[1].row().started_at];
            prop_assert!(before.is_none() || before == now);
        }
    }

    #[test]
    fn its_row_says_every_state(steps in steps()) {
        for campaign in life(&steps).0 {
            prop_assert_eq!(Campaign::from_row(campaign.row()).unwrap(), campaign);
        }
    }
}
