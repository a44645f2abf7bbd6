//! What a contact does, line by line; then what holds for every contact, however its calls go.
use super::*;
use entities::{
    campaign::RetryRule,
    ids::{CampaignId, ContactId, TenantId},
    session::Status as Ended,
    values::{Bounded, Env, Variables},
};
use proptest::prelude::*;
use uuid::Uuid;

fn at(minutes: i64) -> Moment {
    Moment::from_millis(minutes * 60_000)
}

#[rustfmt::skip]
fn pending() -> Contact {
    Contact {
        id: ContactId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        campaign_id: CampaignId(Uuid::from_u128(3)), external_id: None, phone_number: "+15002345670".into(),
        email: None, first_name: Some("Ada".into()), last_name: None, variables: Variables::default(), priority: 0,
        status: Status::Pending, wait_reason: None, attempts: 0, last_session_id: None, next_attempt_at: None,
        skip_reason: None, version: 1, created_at: at(0),
    }
}

fn times(count: i64) -> Bounded<1, 10> {
    Bounded::new(count).unwrap()
}
fn minutes(count: i64) -> Bounded<0, 10_080> {
    Bounded::new(count).unwrap()
}

fn retry(max_attempts: i64, min_gap_minutes: i64, rules: &[(Outcome, RetryRule)]) -> Retry {
    let (max_attempts, min_gap_minutes) = (times(max_attempts), minutes(min_gap_minutes));
    let rules = rules.iter().cloned().collect();
    Retry {
        max_attempts,
        min_gap_minutes,
        rules,
    }
}

/// The samples' contact is called twice at most, half an hour apart.
fn twice() -> Retry {
    retry(2, 30, &[])
}

/// The session of the nth attempt.
fn call(nth: u128) -> SessionId {
    SessionId(Uuid::from_u128(100 + nth))
}

fn dispatch_as(session_id: SessionId) -> Command {
    Command::Dispatch { session_id }
}

/// How a call can end; all that the session machine tells.
type Ending = (Ended, EndReason);
const TALKED: Ending = (Ended::Completed, EndReason::Completed);
const BUSY: Ending = (Ended::Busy, EndReason::Busy);
const NO_ANSWER: Ending = (Ended::NoAnswer, EndReason::NoAnswer);
const VOICEMAIL: Ending = (Ended::Voicemail, EndReason::Voicemail);
const REJECTED: Ending = (Ended::Failed, EndReason::CarrierRejected);
const NO_SUCH_NUMBER: Ending = (Ended::Failed, EndReason::InvalidNumber);
const CANCELED: Ending = (Ended::Failed, EndReason::Canceled);
const LOST: Ending = (Ended::Failed, EndReason::NodeLost);
const TOO_LONG: Ending = (Ended::Completed, EndReason::MaxDuration);
const SHUT_DOWN: Ending = (Ended::Completed, EndReason::Canceled);
#[rustfmt::skip]
const ENDINGS: [Ending; 10] =
    [TALKED, BUSY, NO_ANSWER, VOICEMAIL, REJECTED, NO_SUCH_NUMBER, CANCELED, LOST, TOO_LONG, SHUT_DOWN];

fn finish(session_id: SessionId, (status, reason): Ending) -> Command {
    Command::Finish(Attempt {
        session_id,
        status,
        reason,
        duration_seconds: 30,
        actual_cost_cents: Cents(7),
    })
}

fn after(contact: Contact, command: Command) -> Contact {
    transition(contact, command, &twice(), at(0)).unwrap().0
}

#[rustfmt::skip]
const STATES: [&str; 8] =
    ["pending", "dispatched", "waiting", "again", "completed", "failed", "skipped", "canceled"];

fn state(name: &str) -> Contact {
    match name {
        "pending" => pending(),
        "dispatched" => after(pending(), dispatch_as(call(1))),
        "waiting" => after(state("dispatched"), finish(call(1), BUSY)),
        "again" => after(state("waiting"), dispatch_as(call(2))),
        "completed" => after(state("dispatched"), finish(call(1), TALKED)),
        "failed" => after(state("again"), finish(call(2), BUSY)),
        "skipped" => after(pending(), Command::Skip(SkipReason::Invalid)),
        "canceled" => after(pending(), Command::Cancel),
        _ => panic!("no sample of {name}"),
    }
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use Command::*;
    let next = |command: &Command| Some(match command {
        Dispatch { .. } => finish(call(1), BUSY), Finish(_) => Skip(SkipReason::Invalid), Skip(_) => Cancel,
        Cancel => return None,
    });
    std::iter::successors(Some(dispatch_as(call(9))), next).collect()
}

#[rustfmt::skip]
const SKIP_REASONS: [SkipReason; 6] = [
    SkipReason::Invalid, SkipReason::DncBlocked, SkipReason::DailyCapReached,
    SkipReason::QuietHoursExpired, SkipReason::ConcurrencyFull, SkipReason::TenantSuspended,
];

#[derive(Clone, Copy, Debug)]
enum Expected {
    To(Status, &'static [&'static str]),
    Unchanged,
    Refused,
}
use Expected::{Refused, To, Unchanged};

/// (state, command, expected)
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Command, Expected)> {
    use Status::*;
    vec![
        // pending, waiting -> dispatched, told for every attempt
        ("pending", dispatch_as(call(1)), To(Dispatched, &["campaign.contact_dispatched"])),
        ("waiting", dispatch_as(call(2)), To(Dispatched, &["campaign.contact_dispatched"])),

        // dispatched -> completed | waiting | failed
        ("dispatched", finish(call(1), TALKED), To(Completed, &["campaign.contact_completed"])),
        ("dispatched", finish(call(1), TOO_LONG), To(Completed, &["campaign.contact_completed"])),
        ("dispatched", finish(call(1), SHUT_DOWN), To(Completed, &["campaign.contact_completed"])),
        ("dispatched", finish(call(1), BUSY), To(Waiting, &[])),
        ("dispatched", finish(call(1), NO_ANSWER), To(Waiting, &[])),
        ("dispatched", finish(call(1), VOICEMAIL), To(Waiting, &[])),
        ("dispatched", finish(call(1), REJECTED), To(Waiting, &[])),
        ("again", finish(call(2), TALKED), To(Completed, &["campaign.contact_completed"])),
        ("again", finish(call(2), BUSY), To(Failed, &["campaign.contact_failed"])), // that was the last attempt
        // no retry: the number does not exist, somebody wanted it so, or the person may have talked
        ("dispatched", finish(call(1), NO_SUCH_NUMBER), To(Failed, &["campaign.contact_failed"])),
        ("dispatched", finish(call(1), CANCELED), To(Failed, &["campaign.contact_failed"])),
        ("dispatched", finish(call(1), LOST), To(Failed, &["campaign.contact_failed"])),

        // pending -> skipped, only before the first attempt
        ("pending", Command::Skip(SkipReason::Invalid), To(Skipped, &["campaign.contact_skipped"])),
        ("skipped", Command::Skip(SkipReason::DncBlocked), Unchanged),
        ("waiting", Command::Skip(SkipReason::DncBlocked), To(Failed, &["campaign.contact_failed"])),

        // pending, waiting -> canceled with their campaign; no event: the catalogue has none
        ("pending", Command::Cancel, To(Canceled, &[])),
        ("waiting", Command::Cancel, To(Canceled, &[])),
        ("canceled", Command::Cancel, Unchanged),

        // a call's end that is told again, or late, moves nothing
        ("again", finish(call(1), TALKED), Unchanged),
        ("pending", finish(call(1), TALKED), Unchanged),
        ("waiting", finish(call(1), BUSY), Unchanged),
        ("completed", finish(call(1), TALKED), Unchanged),
        ("failed", finish(call(2), BUSY), Unchanged),
        ("skipped", finish(call(1), BUSY), Unchanged),
        ("canceled", finish(call(1), BUSY), Unchanged),
    ]
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::event_type).collect()
}

fn check(contact: Contact, command: Command, expected: Expected) {
    let line = format!("{:?} + {command:?}", contact.status);
    match (transition(contact.clone(), command, &twice(), at(60)), expected) {
        (Ok((after, events)), To(status, wanted)) => {
            assert_eq!((after.status, kinds(&events)), (status, wanted.to_vec()), "{line}");
            assert_eq!(after.version, contact.version + 1, "{line}");
        }
        (Ok(unchanged), Unchanged) => assert_eq!(unchanged, (contact, Vec::new()), "{line}"),
        (Err(Error::InvalidState { kind: "contact", .. }), Refused) => {}
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    use std::mem::discriminant as of;
    for (name, command, expected) in table() {
        check(state(name), command, expected);
    }
    let in_table = |contact: &Contact, command: &Command| {
        let is_it = |name: &str, known: &Command| state(name).status == contact.status && of(known) == of(command);
        table().iter().any(|(name, known, _)| is_it(name, known))
    };
    for contact in STATES.map(state) {
        for command in commands().into_iter().filter(|command| !in_table(&contact, command)) {
            check(contact.clone(), command, Refused);
        }
    }
}

#[test]
fn a_skip_keeps_and_tells_its_reason() {
    for reason in SKIP_REASONS {
        let (contact, events) = transition(pending(), Command::Skip(reason), &twice(), at(0)).unwrap();
        let [Event::CampaignContactSkipped(told)] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((contact.skip_reason, told.skip_reason), (Some(reason), reason));
    }
}

#[test]
fn a_dispatch_and_an_end_tell_the_session_they_are_about() {
    let (contact, events) = transition(pending(), dispatch_as(call(1)), &twice(), at(0)).unwrap();
    let [Event::CampaignContactDispatched(told)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (told.delivery_row_id, told.first_name.as_deref()),
        (call(1).0, Some("Ada"))
    );
    let (_, events) = transition(contact, finish(call(1), TALKED), &twice(), at(0)).unwrap();
    let [Event::CampaignContactCompleted(told)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (told.session_id, told.duration_seconds, told.actual_cost_cents),
        (call(1), 30, Cents(7))
    );
}

/// Minutes from the end of each attempt to the next, when every call ends so.
fn gaps(retry: &Retry, ending: Ending) -> Vec<i64> {
    let mut contact = pending();
    let mut gaps = Vec::new();
    for nth in 1..=20 {
        contact = transition(contact, dispatch_as(call(nth)), retry, at(0)).unwrap().0;
        contact = transition(contact, finish(call(nth), ending), retry, at(0)).unwrap().0;
        let Some(due) = contact.next_attempt_at else { break };
        gaps.push(due.millis() / 60_000);
    }
    gaps
}

#[test]
fn the_retry_plan_decides_when_and_how_often() {
    let delays_minutes = vec![minutes(5), minutes(60), minutes(90)];
    let busy = RetryRule {
        delays_minutes,
        ..RetryRule::default()
    };
    let slowly = [(Outcome::Busy, busy.clone())];
    // The first is raised to the least gap, the last one repeats; other outcomes wait for the least gap.
    assert_eq!(gaps(&retry(6, 30, &slowly), BUSY), [30, 60, 90, 90, 90]);
    assert_eq!(gaps(&retry(4, 30, &slowly), NO_ANSWER), [30, 30, 30]);
    // A rule lowers the number of attempts, and never raises it.
    for (max_attempts, of_the_rule) in [(4, 2), (2, 9)] {
        let rule = RetryRule {
            max_attempts: Some(times(of_the_rule)),
            ..RetryRule::default()
        };
        assert_eq!(
            gaps(&retry(max_attempts, 10, &[(Outcome::Voicemail, rule)]), VOICEMAIL),
            [10]
        );
    }
    let never = RetryRule { never: true, ..busy };
    assert!(gaps(&retry(4, 10, &[(Outcome::Failed, never)]), REJECTED).is_empty());
    // Unless the plan says otherwise, a contact is called once.
    assert!(gaps(&Retry::default(), BUSY).is_empty());
}

/// What can happen to a contact, in the order of its calls.
#[derive(Clone, Debug)]
enum Step {
    Dispatch,
    /// The end of its last call, or of the one before.
    Finish {
        late: bool,
        ending: Ending,
    },
    Skip(SkipReason),
    Cancel,
}

/// Every state a contact was in, and all that was told.
fn life(steps: &[Step], retry: &Retry) -> (Vec<Contact>, Vec<Event>) {
    let (mut states, mut events) = (vec![pending()], Vec::new());
    for (minutes, step) in (1..).zip(steps) {
        let contact = states.last().unwrap().clone();
        let nth = u128::try_from(contact.attempts).unwrap();
        let command = match step {
            Step::Dispatch => dispatch_as(call(nth + 1)),
            Step::Finish { late, ending } => finish(call(nth.saturating_sub(u128::from(*late))), *ending),
            Step::Skip(reason) => Command::Skip(*reason),
            Step::Cancel => Command::Cancel,
        };
        if let Ok((next, told)) = transition(contact, command, retry, at(minutes)) {
            states.push(next);
            events.extend(told);
        }
    }
    (states, events)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ending = || prop::sample::select(ENDINGS.to_vec());
    let unreached = prop::sample::select(vec![BUSY, NO_ANSWER, VOICEMAIL, REJECTED]);
    let step = prop_oneof![
        8 => Just(Step::Dispatch),
        8 => unreached.prop_map(|ending| Step::Finish { late: false, ending }),
        2 => (any::<bool>(), ending()).prop_map(|(late, ending)| Step::Finish { late, ending }),
        1 => prop::sample::select(SKIP_REASONS.to_vec()).prop_map(Step::Skip),
        1 => Just(Step::Cancel),
    ];
    prop::collection::vec(step, 0..40)
}

fn plans() -> impl Strategy<Value = Retry> {
    use Outcome::*;
    let outcome = prop::sample::select(vec![Busy, NoAnswer, Voicemail, Failed]);
    let delays = prop::collection::vec((0..=10_080_i64).prop_map(minutes), 0..4);
    let max = prop::option::of((1..=10_i64).prop_map(times));
    let rule = (delays, max, prop::bool::weighted(0.1)).prop_map(|(delays_minutes, max_attempts, never)| RetryRule {
        delays_minutes,
        max_attempts,
        never,
    });
    let rules = prop::collection::vec((outcome, rule), 0..4);
    (1..=10_i64, 0..=10_080_i64, rules).prop_map(|(max, gap, rules)| retry(max, gap, &rules))
}

fn count(events: &[Event], event_type: &str) -> i32 {
    i32::try_from(kinds(events).iter().filter(|kind| **kind == event_type).count()).unwrap()
}

proptest! {
    #[test]
    fn attempts_never_exceed_the_plan_and_each_is_told(steps in steps(), plan in plans()) {
        let (states, events) = life(&steps, &plan);
        let attempts = states.last().unwrap().attempts;
        prop_assert!(attempts <= plan.max_attempts.get());
        prop_assert_eq!(count(&events, "campaign.contact_dispatched"), attempts);
    }

    #[test]
    fn its_end_is_final_and_told_once(steps in steps(), plan in plans()) {
        let (states, events) = life(&steps, &plan);
        let over = [Status::Completed, Status::Failed, Status::Skipped, Status::Canceled];
        for pair in states.windows(2) {
            prop_assert!(!over.contains(&pair[0].status) || pair[0] == pair[1]);
        }
        let end = states.last().unwrap().status;
        for (status, event_type) in [
            (Status::Completed, "campaign.contact_completed"),
            (Status::Failed, "campaign.contact_failed"),
            (Status::Skipped, "campaign.contact_skipped"),
        ] {
            prop_assert_eq!(count(&events, event_type), i32::from(end == status));
        }
    }

    #[test]
    fn skipped_means_never_called(steps in steps(), plan in plans()) {
        let (states, events) = life(&steps, &plan);
        let contact = states.last().unwrap();
        prop_assert_eq!(contact.status == Status::Skipped, contact.skip_reason.is_some());
        if contact.status == Status::Skipped {
            prop_assert_eq!((contact.attempts, kinds(&events)), (0, vec!["campaign.contact_skipped"]));
        }
    }

    #[test]
    fn a_retry_never_comes_before_the_least_gap(steps in steps(), plan in plans()) {
        let gap = i64::from(plan.min_gap_minutes.get());
        let called = life(&steps, &plan).0.into_iter().filter(|contact| contact.status == Status::Dispatched);
        for (contact, ending) in called.flat_map(|contact| ENDINGS.map(|ending| (contact.clone(), ending))) {
            let last = contact.last_session_id.unwrap();
            let (next, _) = transition(contact, finish(last, ending), &plan, at(5_000)).unwrap();
            prop_assert!(next.next_attempt_at.is_none_or(|due| due >= at(5_000 + gap)));
        }
    }

    #[test]
    fn it_has_a_next_attempt_if_and_only_if_it_waits(steps in steps(), plan in plans()) {
        for contact in life(&steps, &plan).0 {
            let waits = contact.status == Status::Waiting;
            prop_assert_eq!((contact.next_attempt_at.is_some(), contact.wait_reason.is_some()), (waits, waits));
        }
    }
}
