//! What a campaign does, line by line; then what holds for every campaign, whatever it is told, and when.
use super::*;
use crate::{
    effect::Fact,
    event::{CampaignCompleted, CampaignPausedQuietHours, CampaignStarted, Event},
};
use entities::{
    campaign::{Channel, Model as Row, PauseReason, SessionType, Status},
    changes::Guard,
    ids::{AgentId, TenantId},
    values::Env,
};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

fn key() -> TenantScoped<CampaignId> {
    TenantScoped::new(TenantId(Uuid::from_u128(1)), Env::Test, CampaignId(Uuid::from_u128(2)))
}

fn plan() -> Plan {
    serde_json::from_value(json!({ "name": "Spring", "session_type": "phone", "agent_id": Uuid::from_u128(3) }))
        .unwrap()
}

/// The same plan, to be worked on between these seconds.
fn between(starts_at: Option<i64>, ends_at: Option<i64>) -> Plan {
    let mut plan = plan();
    plan.schedule.starts_at = starts_at.map(at);
    plan.schedule.ends_at = ends_at.map(at);
    plan
}

/// Every rule is another one; who calls, and how, is the same.
fn other_rules() -> Plan {
    let other = json!({
        "name": "Autumn", "session_type": "phone",
        "agent_id": Uuid::from_u128(3),
        "variables": { "offer": "a free lamp" },
        "metadata": { "team": "north" },
        "consent_basis": "They asked for it.",
        "schedule": { "starts_at": at(150), "ends_at": at(500), "timezone": "Europe/Berlin", "timezone_mode": "fixed" },
        "pacing": { "calls_per_second": 5.0, "weight": 20 },
        "retry": { "max_attempts": 3 },
        "caps": { "per_number_24h": null },
    });
    serde_json::from_value(other).unwrap()
}

fn agent() -> AgentSnapshot {
    let definition = serde_json::from_value(json!({ "name": "Ada", "prompt": "Ask how it went." })).unwrap();
    AgentSnapshot {
        id: AgentId(Uuid::from_u128(3)),
        version: 1,
        definition,
    }
}

fn born(plan: Plan) -> (Campaign, Vec<Effect>) {
    Campaign::draft(key(), plan, at(0))
}

fn after(campaign: Campaign, command: Command, seconds: i64) -> Campaign {
    transition(campaign, command, at(seconds)).unwrap().0
}

#[rustfmt::skip]
const STATES: [&str; 18] = [
    "draft", "draft for later", "draft too late", "armed", "running", "running until 200", "paused", "paused until 200",
    "resting", "resting until 200", "in review", "in review, paused", "canceling", "canceling a draft", "ending", "completed", "canceled", "ended",
];

/// Started at 10, paused at 20, in everybody's quiet hours until 100, closed at 30 or at 200, over at 40 or at 210.
#[rustfmt::skip]
fn state(name: &str) -> Campaign {
    match name {
        "draft" => born(plan()).0,
        "draft for later" => born(between(Some(100), Some(200))).0,
        "draft too late" => born(between(None, Some(40))).0,
        "armed" => after(state("draft for later"), start_with(3), 10),
        "running" => after(state("draft"), start_with(3), 10),
        "running until 200" => after(born(between(None, Some(200))).0, start_with(3), 10),
        "paused" => after(state("running"), Command::Pause, 20),
        "paused until 200" => after(state("running until 200"), Command::Pause, 20),
        "resting" => after(state("running"), rest_until(100), 20),
        "resting until 200" => after(state("running until 200"), rest_until(300), 20),
        "in review" => after(state("running"), change(other_rules()), 20),
        "in review, paused" => after(state("in review"), Command::Pause, 30),
        "canceling" => after(state("running"), Command::Cancel, 30),
        "canceling a draft" => after(state("draft"), Command::Cancel, 30),
        "ending" => after(state("running until 200"), Command::Tick, 200),
        "completed" => after(state("running"), Command::Drained(done()), 40),
        "canceled" => after(state("canceling"), Command::Drained(done()), 40),
        "ended" => after(state("ending"), Command::Drained(done()), 210),
        _ => panic!("no sample of {name}"),
    }
}

fn start_with(contacts: i64) -> Command {
    Command::Start {
        agent: Some(Box::new(agent())),
        contacts,
        api_key_id: None,
    }
}

fn rest_until(seconds: i64) -> Command {
    Command::Rest {
        next_open_at: at(seconds),
        total: 3,
        waiting: 2,
        version: 1,
    }
}

fn awake_from(seconds: i64) -> Command {
    Command::Awake { from: at(seconds) }
}

fn reviewed(of: i32) -> Command {
    Command::Reviewed { of }
}

/// To these settings, all of them.
fn change(plan: Plan) -> Command {
    let mut settings = serde_json::to_value(plan).unwrap();
    settings.as_object_mut().unwrap().remove("session_type");
    Command::Change(Box::new(Patch::new(settings)))
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
        Tick => start_with(3), Start { .. } => change(other_rules()), Change(_) => Pause, Pause => Resume,
        Resume => rest_until(100), Rest { .. } => Reconsider, Reconsider => awake_from(50),
        Awake { .. } => reviewed(1), Reviewed { .. } => Cancel, Cancel => Drained(done()),
        Drained(_) => Delete, Delete => return None,
    });
    std::iter::successors(Some(Tick), next).collect()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Another state, described, or another plan in the same; and the effects in their order.
    To(&'static str, &'static str),
    /// The same state, and these effects.
    Stays(&'static str),
    Refused,
}
use Expected::{Refused, Stays, To};
const UNCHANGED: Expected = Stays("");

/// Effects in the documented order: conditions, events, work, hints.
const STARTED: &str = "campaign.started, CampaignsChanged, CheckDrained";
const PAUSED: &str = "campaign.paused, CampaignsChanged";
const RESTED: &str = "Require, campaign.paused_quiet_hours, CampaignsChanged";
const RESUMED: &str = "CampaignsChanged, CheckDrained";
const CHANGED: &str = "CampaignsChanged, ReviewContacts";
const CLOSED: &str = "CampaignsChanged, PutAwayContacts";
const COMPLETED: &str = "Require, campaign.completed, CampaignsChanged";

/// (states, command, at which second, expected)
type Line = (&'static [&'static str], Command, i64, Expected);

#[rustfmt::skip]
fn table() -> Vec<Line> {
    use Command::*;
    const DRAFTS: &[&str] = &["draft", "draft for later", "draft too late"];
    const AT_WORK: &[&str] = &["running", "running until 200"];
    const PAUSES: &[&str] = &["paused", "paused until 200"];
    const RESTS: &[&str] = &["resting", "resting until 200"];
    const CLOSING: &[&str] = &["canceling", "canceling a draft", "ending"];
    const OVER: &[&str] = &["completed", "canceled", "ended"];
    vec![
        // draft -> running
        (&["draft"], start_with(1), 10, To("running", STARTED)),
        (DRAFTS, start_with(0), 10, Refused), // nobody to call
        (&["draft too late"], start_with(1), 39, To("running", STARTED)),
        (&["draft too late"], start_with(1), 40, Refused),
        (AT_WORK, start_with(1), 50, UNCHANGED),
        // draft -> armed -> running, by the time
        (&["draft for later"], start_with(1), 99, To("armed", "")),
        (&["draft for later"], start_with(1), 100, To("running", STARTED)),
        (&["draft for later"], start_with(1), 200, Refused),
        (&["armed"], start_with(1), 50, UNCHANGED),
        (&["armed"], Tick, 99, UNCHANGED),
        (&["armed"], Tick, 100, To("running", STARTED)),

        // other settings: a draft's are all free, the rules are until it completes
        (DRAFTS, change(other_rules()), 50, To("draft", "")),
        (&["armed"], change(other_rules()), 50, To("armed", "CampaignsChanged")),
        (&["running"], change(plan()), 50, Stays("CampaignsChanged")),
        // who waits is judged by the new ones
        (AT_WORK, change(other_rules()), 50, To("running, in review", CHANGED)),
        (PAUSES, change(other_rules()), 50, To("paused, in review", CHANGED)),
        (RESTS, change(other_rules()), 50, To("running, in review", "CampaignsChanged, ReviewContacts, CheckDrained")), // the hours may be others
        (&["in review"], change(other_rules()), 50, Stays("CampaignsChanged")),
        (&["in review", "in review, paused"], reviewed(0), 50, UNCHANGED), // of an earlier change
        (&["in review"], reviewed(1), 50, To("running", RESUMED)),
        (&["in review, paused"], reviewed(1), 50, To("paused", RESUMED)),
        (DRAFTS, reviewed(1), 50, UNCHANGED),
        (&["armed"], reviewed(1), 50, UNCHANGED),
        (AT_WORK, reviewed(1), 50, UNCHANGED),
        (PAUSES, reviewed(1), 50, UNCHANGED),
        (RESTS, reviewed(1), 50, UNCHANGED),
        (CLOSING, reviewed(1), 50, UNCHANGED),
        (OVER, reviewed(1), 50, UNCHANGED),

        // running -> paused, by hand, and back
        (AT_WORK, Pause, 50, To("paused", PAUSED)),
        (PAUSES, Pause, 50, UNCHANGED),
        (PAUSES, Resume, 50, To("running", RESUMED)),
        (AT_WORK, Resume, 50, UNCHANGED),

        // running -> paused for the quiet hours of everybody who is left, and back by itself
        (AT_WORK, rest_until(51), 50, To("resting", RESTED)),
        (AT_WORK, rest_until(50), 50, UNCHANGED), // they are over already
        (&["resting"], Tick, 99, UNCHANGED),
        (&["resting"], Tick, 100, To("running", RESUMED)),
        (RESTS, Reconsider, 50, To("running", RESUMED)),
        (RESTS, Pause, 50, To("paused", PAUSED)), // overrides it
        (RESTS, Resume, 50, Refused), // nobody may be called
        // nobody else is at rest, and no answer that comes late is an error
        (RESTS, rest_until(400), 50, UNCHANGED),
        (DRAFTS, rest_until(400), 50, UNCHANGED),
        (&["armed"], rest_until(400), 50, UNCHANGED),
        (PAUSES, rest_until(400), 50, UNCHANGED),
        (CLOSING, rest_until(400), 50, UNCHANGED),
        (OVER, rest_until(400), 50, UNCHANGED),
        (DRAFTS, Reconsider, 50, UNCHANGED),
        (&["armed"], Reconsider, 50, UNCHANGED),
        (AT_WORK, Reconsider, 50, UNCHANGED),
        (PAUSES, Reconsider, 50, UNCHANGED),
        (CLOSING, Reconsider, 50, UNCHANGED),
        (OVER, Reconsider, 50, UNCHANGED),
        // somebody who was being reached then is awake
        (RESTS, awake_from(50), 50, To("running", RESUMED)),
        (&["resting"], awake_from(60), 50, To("resting", "")), // until then, and not until 100
        (&["resting"], awake_from(100), 50, UNCHANGED),
        (DRAFTS, awake_from(50), 50, UNCHANGED),
        (&["armed"], awake_from(50), 50, UNCHANGED),
        (AT_WORK, awake_from(50), 50, UNCHANGED),
        (PAUSES, awake_from(50), 50, UNCHANGED),
        (CLOSING, awake_from(50), 50, UNCHANGED),
        (OVER, awake_from(50), 50, UNCHANGED),

        // running -> completed, once every contact has reached a terminal state
        (AT_WORK, Drained(done()), 50, To("completed, Finished", COMPLETED)),
        (AT_WORK, Drained(open(1, 0, 0)), 50, UNCHANGED),
        (AT_WORK, Drained(open(0, 1, 0)), 50, UNCHANGED),
        (AT_WORK, Drained(open(0, 0, 1)), 50, UNCHANGED),
        (PAUSES, Drained(done()), 50, UNCHANGED), // it looks again when it is resumed
        (RESTS, Drained(done()), 50, UNCHANGED),
        (DRAFTS, Drained(done()), 50, UNCHANGED),
        (&["armed"], Drained(done()), 50, UNCHANGED),
        (OVER, Drained(done()), 50, UNCHANGED),

        // canceled: no more calls, then completed when those in flight have ended
        (DRAFTS, Cancel, 50, To("closing, Canceled", CLOSED)),
        (&["armed"], Cancel, 50, To("closing, Canceled", CLOSED)),
        (AT_WORK, Cancel, 50, To("closing, Canceled", CLOSED)),
        (PAUSES, Cancel, 50, To("closing, Canceled", CLOSED)),
        (RESTS, Cancel, 50, To("closing, Canceled", CLOSED)),
        (CLOSING, Cancel, 50, UNCHANGED), // what is ending stays so
        // `ends_at`: the same, by the time
        (&["running until 200", "paused until 200", "resting until 200"], Tick, 199, UNCHANGED),
        (&["running until 200", "paused until 200", "resting until 200"], Tick, 200, To("closing, Ended", CLOSED)),
        (&["resting until 200"], Tick, 300, To("closing, Ended", CLOSED)), // not resumed: it is over
        (CLOSING, Tick, 50, Stays("PutAwayContacts")), // found after a crash: goes on
        (CLOSING, Drained(open(0, 0, 1)), 50, UNCHANGED),
        (&["canceling", "canceling a draft"], Drained(done()), 50, To("completed, Canceled", COMPLETED)),
        (&["ending"], Drained(done()), 210, To("completed, Ended", COMPLETED)),

        // no other state waits for the time
        (DRAFTS, Tick, 9_999, UNCHANGED),
        (AT_WORK, Tick, 50, UNCHANGED),
        (PAUSES, Tick, 50, UNCHANGED),
        (OVER, Tick, 9_999, UNCHANGED),

        // deleted: before it was started, or when it is over
        (DRAFTS, Delete, 50, To("draft, deleted", "")),
        (&["completed"], Delete, 50, To("completed, Finished, deleted", "")),
        (&["canceled"], Delete, 50, To("completed, Canceled, deleted", "")),
        (&["ended"], Delete, 250, To("completed, Ended, deleted", "")),
    ]
}

/// The state's name, as an error tells it too.
fn place(campaign: &Campaign) -> &'static str {
    match &campaign.phase {
        Phase::Draft => "draft",
        Phase::Armed { .. } => "armed",
        Phase::Running { .. } => "running",
        Phase::Paused { .. } => "paused",
        Phase::Closing { .. } => "closing",
        Phase::Completed { .. } => "completed",
    }
}

fn describe(campaign: &Campaign) -> String {
    let mut words = course(campaign);
    if campaign.review_of.is_some() {
        words.push_str(", in review");
    }
    if campaign.deleted_at.is_some() {
        words.push_str(", deleted");
    }
    words
}

fn course(campaign: &Campaign) -> String {
    match &campaign.phase {
        Phase::Paused { cause, .. } if *cause != Cause::Manual => "resting".to_owned(),
        Phase::Closing { reason, .. } | Phase::Completed { reason, .. } => format!("{}, {reason:?}", place(campaign)),
        _ => place(campaign).to_owned(),
    }
}

fn kinds(effects: &[Effect]) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Fact(Fact::Emit(event)) => event.event_type().to_owned(),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    };
    effects.iter().map(kind).collect()
}

fn check(campaign: Campaign, command: Command, seconds: i64, expected: Expected) {
    let line = format!("{} + {command:?} at {seconds}", describe(&campaign));
    match (transition(campaign.clone(), command, at(seconds)), expected) {
        (Ok((after, effects)), To(state, wanted)) => {
            assert_ne!(after, campaign, "{line}");
            let came = (describe(&after), kinds(&effects).join(", "));
            assert_eq!(came, (state.to_owned(), wanted.to_owned()), "{line}");
        }
        (Ok((after, effects)), Stays(wanted)) => {
            let came = (after, kinds(&effects).join(", "));
            assert_eq!(came, (campaign, wanted.to_owned()), "{line}");
        }
        (Err(error), Refused) => {
            let says_so = |error| matches!(error, Error::InvalidState { kind: "campaign", state, .. } if state == place(&campaign));
            assert!(says_so(error), "{line}");
        }
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    use std::mem::discriminant as of;
    let pair = |campaign: &Campaign, command: &Command| (course(campaign), of(command));
    let mut known = Vec::new();
    for (states, command, seconds, expected) in table() {
        for campaign in states.iter().map(|name| state(name)) {
            known.push(pair(&campaign, &command));
            check(campaign, command.clone(), seconds, expected);
        }
    }
    for campaign in STATES.map(state) {
        for command in commands() {
            if !known.contains(&pair(&campaign, &command)) {
                check(campaign.clone(), command, 50, Refused);
            }
        }
    }
}

/// Each was written when the settings were those at the beginning.
#[test]
fn of_two_changes_at_once_each_keeps_what_the_other_has_changed() {
    let patches = [
        json!({ "caps": { "per_number_24h": 7 } }),
        json!({ "pacing": { "calls_per_second": 3 } }),
        json!({ "caps": { "per_number_7d": null } }),
    ];
    let changed = patches.into_iter().fold(state("running"), |campaign, patch| {
        after(campaign, Command::Change(Box::new(Patch::new(patch))), 50)
    });
    let settings = serde_json::to_value(&*changed.plan).unwrap();
    assert_eq!(settings["caps"]["per_number_24h"], 7);
    assert_eq!(settings["caps"]["per_number_7d"], json!(null));
    assert_eq!(settings["pacing"]["calls_per_second"], 3.0);
    let bad = Command::Change(Box::new(Patch::new(json!({ "caps": { "per_number_24h": "x" } }))));
    let refused = transition(changed, bad, at(60)).unwrap_err();
    assert!(matches!(refused, Error::Invalid { field, .. } if field == "caps.per_number_24h"));
}

#[test]
fn a_campaign_is_born_a_draft_and_says_so() {
    let (campaign, effects) = born(plan());
    let seen = (describe(&campaign), campaign.is_dispatching(), next_deadline(&campaign));
    assert_eq!(seen, ("draft".to_owned(), false, None));
    assert_eq!(kinds(&effects), ["campaign.created"]);
}

#[test]
fn a_start_keeps_the_agent_as_it_is() {
    assert_eq!(state("draft").agent, None);
    for name in ["armed", "running", "paused", "resting", "completed"] {
        assert_eq!(state(name).agent.as_deref(), Some(&agent()), "{name}");
    }
}

#[test]
fn an_armed_campaign_starts_when_its_time_comes_not_when_it_was_asked() {
    let (running, effects) = transition(state("armed"), Command::Tick, at(101)).unwrap();
    let started = CampaignStarted {
        campaign_id: key().id,
        started_at: at(101),
    };
    assert_eq!(effects[0], Effect::Fact(Fact::Emit(started.into())));
    assert_eq!(running.row().started_at, Some(at(101)));
    // A later start puts it off; without one there is nothing to wait for.
    let put_off = after(state("armed"), change(between(Some(150), None)), 50);
    assert_eq!(next_deadline(&put_off), Some(at(150)));
    assert_eq!(describe(&after(put_off.clone(), Command::Tick, 149)), "armed");
    let at_once = after(put_off, change(plan()), 60);
    assert_eq!(describe(&after(at_once, Command::Tick, 60)), "running");
}

#[test]
fn a_rest_tells_when_it_ends_and_holds_only_if_nobody_was_added() {
    let (resting, effects) = transition(state("running"), rest_until(100), at(20)).unwrap();
    let (campaign_id, next_open_at) = (key().id, at(100));
    let guard = Guard::Counted {
        campaign_id,
        total: 3,
        waiting: 2,
    };
    assert_eq!(effects[0], Effect::Fact(Fact::Require(guard)));
    let told = CampaignPausedQuietHours {
        campaign_id,
        paused_at: at(20),
        next_open_at,
    };
    assert_eq!(effects[1], Effect::Fact(Fact::Emit(told.into())));
    let row = resting.row();
    let said = (row.pause_reason, row.paused_at, row.next_open_at);
    assert_eq!(said, (Some(PauseReason::QuietHours), Some(at(20)), Some(next_open_at)));
    // A manual pause overrides it, and knows no such moment.
    assert_eq!(after(resting, Command::Pause, 30).row().next_open_at, None);
}

#[test]
fn the_end_tells_the_counts_and_holds_only_if_no_contact_was_added() {
    let (_, effects) = transition(state("running"), Command::Drained(done()), at(40)).unwrap();
    let guard = Guard::Drained {
        campaign_id: key().id,
        total: 3,
    };
    assert_eq!(effects[0], Effect::Fact(Fact::Require(guard)));
    let told = CampaignCompleted {
        campaign_id: key().id,
        completed_at: at(40),
        total_contacts: 3,
        completed_sessions: 2,
        failed_sessions: 2,
    };
    assert_eq!(effects[1], Effect::Fact(Fact::Emit(Event::CampaignCompleted(told))));
}

/// Its channel can change as long as nobody is in it: contacts are read by it.
#[test]
fn a_drafts_channel_changes_before_its_first_contact() {
    let mut other = plan();
    other.channel = Channel::Email;
    other.session_type = Some(SessionType::None);
    let (changed, effects) = transition(state("draft"), change(other.clone()), at(5)).unwrap();
    let nobody = Guard::Counted {
        campaign_id: key().id,
        total: 0,
        waiting: 0,
    };
    assert_eq!(
        (&*changed.plan, &effects[..]),
        (&other, &[Effect::Fact(Fact::Require(nobody))][..])
    );
    assert_eq!(transition(changed, change(other), at(6)).unwrap().1, []);
}

/// One change of each field that the start fixes; `session_type` follows from `channel`.
fn fixed_fields() -> [(&'static str, Plan); 5] {
    let mut others = ["agent_id", "voice_id", "from_numbers", "channel", "template"].map(|field| (field, plan()));
    others[3].1.channel = Channel::Sms;
    others[3].1.session_type = Some(SessionType::None);
    others[4].1.template = Some(serde_json::from_value(json!({ "body": "Hi" })).unwrap());
    others[0].1.agent_id = Some(AgentId(Uuid::from_u128(9)));
    others[1].1.voice_id = Some(serde_json::from_value(json!("deep")).unwrap());
    others[2].1.from_numbers = vec!["+15002345670".parse().unwrap()];
    others
}

#[test]
fn who_calls_and_how_is_fixed_by_the_start() {
    for (field, plan) in fixed_fields() {
        let changed = after(state("draft"), change(plan.clone()), 5);
        assert_eq!(*changed.plan, plan, "a draft's {field} is free");
        for name in ["armed", "running", "paused", "resting"] {
            match transition(state(name), change(plan.clone()), at(50)) {
                Err(Error::Invalid { field: named, .. }) => assert_eq!(named, field, "{name}"),
                outcome => panic!("{name}, {field}: {outcome:?}"),
            }
        }
    }
    for name in ["draft", "armed", "running", "paused", "resting"] {
        let changed = after(state(name), change(other_rules()), 50);
        assert_eq!(*changed.plan, other_rules(), "a {name} campaign's rules are free");
    }
}

#[test]
fn a_row_that_lacks_its_states_columns_is_named_not_guessed() {
    let lacking = |name: &str, column: &'static str, remove: fn(&mut Row)| {
        let mut row = state(name).row();
        remove(&mut row);
        let error = Campaign::from_row(row).unwrap_err();
        let is_named = matches!(error, Error::Corrupt { table: "campaigns", column: named, .. } if named == column);
        assert!(is_named, "{name} without {column}: {error:?}");
    };
    lacking("running", "started_at", |row| row.started_at = None);
    lacking("paused", "started_at", |row| row.started_at = None);
    lacking("paused", "paused_at", |row| row.paused_at = None);
    lacking("paused", "pause_reason", |row| row.pause_reason = None);
    lacking("resting", "next_open_at", |row| row.next_open_at = None);
    lacking("completed", "completed_at", |row| row.completed_at = None);
    lacking("completed", "completed_reason", |row| row.completed_reason = None);
}

#[test]
fn its_row_says_every_state_in_the_specifications_words() {
    for name in STATES {
        let campaign = state(name);
        let row = campaign.row();
        let status = match &campaign.phase {
            Phase::Draft | Phase::Armed { .. } => Status::Draft,
            Phase::Running { .. } | Phase::Closing { .. } => Status::Running,
            Phase::Paused { .. } => Status::Paused,
            Phase::Completed { .. } => Status::Completed,
        };
        let said = (row.status, row.armed_at.is_some(), row.wake_at);
        assert_eq!(said, (status, name == "armed", next_deadline(&campaign)), "{name}");
        assert_eq!(Campaign::from_row(row).unwrap(), campaign, "{name}");
    }
}

/// Every state a campaign was in, and everything it caused.
struct Life {
    states: Vec<Campaign>,
    effects: Vec<Effect>,
}

impl Life {
    /// Each step is a command, some seconds after the one before. A refused one leaves the campaign as it was; one that
    /// was deleted is told nothing more.
    fn of((plan, steps): &(Plan, Vec<(Command, i64)>)) -> Life {
        let (draft, effects) = born(plan.clone());
        let states = vec![draft];
        let (mut life, mut now) = (Life { states, effects }, at(0));
        for (command, pause) in steps {
            now = now.plus_seconds(*pause);
            let campaign = life.last().clone();
            if campaign.deleted_at.is_some() {
                break;
            }
            if let Ok((next, caused)) = transition(campaign, command.clone(), now) {
                life.states.push(next);
                life.effects.extend(caused);
            }
        }
        life
    }
    fn last(&self) -> &Campaign {
        self.states.last().unwrap()
    }
    fn moves(&self) -> impl Iterator<Item = (&Campaign, &Campaign)> {
        self.states.iter().zip(&self.states[1..])
    }
    fn told(&self, event_type: &str) -> usize {
        kinds(&self.effects).iter().filter(|kind| *kind == event_type).count()
    }
}

fn tally() -> impl Strategy<Value = Tally> {
    prop_oneof![
        Just(done()),
        (0..2_i64, 0..2_i64, 0..2_i64).prop_map(|(a, b, c)| open(a, b, c))
    ]
}

/// Any of the rules, at times another voice.
fn plans() -> impl Strategy<Value = Plan> {
    let moment = |last| prop::option::of(0..last);
    (moment(60_i64), moment(120_i64), prop::bool::weighted(0.1)).prop_map(|(starts_at, ends_at, other_voice)| {
        let plan = between(starts_at, ends_at);
        let voice_id = if other_voice {
            fixed_fields()[1].1.voice_id.clone()
        } else {
            None
        };
        Plan { voice_id, ..plan }
    })
}

fn lives() -> impl Strategy<Value = (Plan, Vec<(Command, i64)>)> {
    use Command::*;
    let command = prop_oneof![
        3 => Just(Tick),
        4 => prop::sample::select(vec![start_with(3), Pause, Resume, Reconsider]),
        2 => (0..120_i64).prop_map(rest_until),
        2 => (0..120_i64).prop_map(awake_from),
        1 => (0..2_i64).prop_map(start_with),
        1 => tally().prop_map(Drained),
        1 => plans().prop_map(change),
        1 => prop::sample::select(commands()),
    ];
    (plans(), prop::collection::vec((command, 0..12_i64), 0..25))
}

proptest! {
    #[test]
    fn completed_comes_at_most_once_and_is_final(life in lives()) {
        let life = Life::of(&life);
        for (before, now) in life.moves() {
            let is_over = matches!(before.phase, Phase::Completed { .. });
            prop_assert!(!is_over || (&before.phase, &before.plan) == (&now.phase, &now.plan), "{:?}", life.states);
        }
        let is_over = matches!(life.last().phase, Phase::Completed { .. });
        prop_assert_eq!(life.told("campaign.completed"), usize::from(is_over));
    }

    #[test]
    fn its_start_is_told_exactly_once_and_remembered(life in lives()) {
        let life = Life::of(&life);
        prop_assert_eq!(life.told("campaign.created"), 1);
        prop_assert_eq!(life.told("campaign.started"), usize::from(life.last().row().started_at.is_some()));
        for (before, now) in life.moves() {
            let [before, now] = [before, now].map(|campaign| campaign.row().started_at);
            prop_assert!(before.is_none() || before == now);
        }
    }

    #[test]
    fn each_of_its_pauses_is_told_once(life in lives()) {
        let life = Life::of(&life);
        let entered = |wanted: &str| life.moves().filter(|(was, is)| course(was) != wanted && course(is) == wanted).count();
        prop_assert_eq!(life.told("campaign.paused"), entered("paused"));
        prop_assert_eq!(life.told("campaign.paused_quiet_hours"), entered("resting"));
    }

    #[test]
    fn a_campaign_that_is_not_running_is_not_dispatching(life in lives()) {
        for campaign in Life::of(&life).states {
            let row = campaign.row();
            let runs = row.status == Status::Running && row.cancel_requested_at.is_none();
            prop_assert_eq!(campaign.is_dispatching(), runs);
            prop_assert!(!runs || (campaign.agent.is_some() && row.deleted_at.is_none()));
        }
    }

    #[test]
    fn what_is_closed_never_dispatches_again(life in lives()) {
        let states = Life::of(&life).states;
        for campaign in states.iter().skip_while(|campaign| campaign.row().cancel_requested_at.is_none()) {
            prop_assert!(!campaign.is_dispatching() && campaign.row().cancel_requested_at.is_some());
        }
    }

    #[test]
    fn every_quiet_hours_pause_ends_after_it_began(life in lives()) {
        for campaign in Life::of(&life).states {
            let row = campaign.row();
            prop_assert_eq!(row.next_open_at.is_some(), row.pause_reason == Some(PauseReason::QuietHours));
            prop_assert!(row.next_open_at.is_none() || row.next_open_at > row.paused_at);
        }
    }

    #[test]
    fn two_ticks_equal_one(life in lives(), now in 0..300_i64) {
        for campaign in Life::of(&life).states {
            let once = after(campaign, Command::Tick, now);
            let (twice, effects) = transition(once.clone(), Command::Tick, at(now)).unwrap();
            // What is closing goes on with it, as often as it is looked at.
            let goes_on = if matches!(once.phase, Phase::Closing { .. }) { "PutAwayContacts" } else { "" };
            prop_assert_eq!((twice, kinds(&effects).join(", ")), (once, goes_on.to_owned()));
        }
    }

    #[test]
    fn a_tick_at_next_deadline_always_changes_something_and_none_before(life in lives()) {
        for campaign in Life::of(&life).states {
            let Some(due) = next_deadline(&campaign) else {
                let waits = matches!(campaign.phase, Phase::Armed { .. }) || describe(&campaign) == "resting";
                prop_assert!(!waits);
                continue;
            };
            let (on_time, effects) = transition(campaign.clone(), Command::Tick, due).unwrap();
            prop_assert!(on_time != campaign && !effects.is_empty());
            let early = transition(campaign.clone(), Command::Tick, due.plus_millis(-1)).unwrap();
            prop_assert_eq!(early, (campaign, Vec::new()));
        }
    }

    #[test]
    fn it_never_runs_past_its_end_once_somebody_looked(life in lives(), now in 0..300_i64) {
        for campaign in Life::of(&life).states {
            let campaign = after(campaign, Command::Tick, now);
            let is_open = matches!(campaign.phase, Phase::Running { .. } | Phase::Paused { .. });
            prop_assert!(!is_open || campaign.plan.schedule.ends_at.is_none_or(|end| end > at(now)));
        }
    }

    #[test]
    fn who_calls_and_how_never_changes_after_the_start(life in lives()) {
        for (before, now) in Life::of(&life).moves() {
            let fixed = |campaign: &Campaign| {
                let plan = &campaign.plan;
                let who = (plan.agent_id, plan.voice_id.clone(), plan.from_numbers.clone(), campaign.agent.clone());
                (plan.channel, plan.session_type(), plan.template.clone(), who)
            };
            prop_assert!(matches!(before.phase, Phase::Draft) || fixed(before) == fixed(now));
        }
    }

    #[test]
    fn it_completes_only_when_no_contact_is_left(tally in tally(), name in prop::sample::select(STATES.to_vec())) {
        let before = state(name);
        let may = matches!(before.phase, Phase::Running { .. } | Phase::Closing { .. } | Phase::Completed { .. });
        let was_over = matches!(before.phase, Phase::Completed { .. });
        let completed = matches!(after(before, Command::Drained(tally.clone()), 50).phase, Phase::Completed { .. });
        prop_assert_eq!(completed, may && (was_over || tally.pending + tally.waiting + tally.dispatched == 0));
    }

    #[test]
    fn its_row_says_every_state(life in lives()) {
        for campaign in Life::of(&life).states {
            let row = campaign.row();
            prop_assert_eq!(row.wake_at, next_deadline(&campaign));
            prop_assert_eq!(Campaign::from_row(row).unwrap(), campaign);
        }
    }
}
