//! What a contact does, line by line; then what holds for every contact, however its calls go.
use super::*;
use entities::{
    campaign::{Channel, RetryRule},
    ids::{CampaignId, ContactId, SessionId, TenantId},
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
        campaign_id: CampaignId(Uuid::from_u128(3)), external_id: None, channel: Channel::Phone,
        address: "+15002345670".into(), phone_number: "+15002345670".into(),
        email: None, first_name: Some("Ada".into()), last_name: None, variables: Variables::default(),
        timezone: None, region: None, consent_id: None, zone: "America/New_York".into(), not_before: None, priority: 0,
        status: Status::Pending, wait_reason: None, attempts: 0, last_row_id: None, attempt_limit: None,
        next_attempt_at: None, skip_reason: None, skip_rule: None, disposition_code: None, version: 1, created_at: at(0),
    }
}

fn times(count: i64) -> Bounded<1, 10> {
    Bounded::new(count).unwrap()
}
fn minutes(count: i64) -> Bounded<0, 10_080> {
    Bounded::new(count).unwrap()
}

fn retry(max_attempts: i64, min_gap_minutes: i64, rules: &[(RetryOutcome, RetryRule)]) -> Retry {
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
fn call(nth: u128) -> DeliveryRowId {
    DeliveryRowId(Uuid::from_u128(100 + nth))
}

/// As the events tell it.
fn session(nth: u128) -> Option<SessionId> {
    Some(SessionId(call(nth).0))
}

fn dispatch_as(row: DeliveryRowId) -> Command {
    Command::Dispatch { row }
}
fn defer_to(minutes: i64, reason: WaitReason) -> Command {
    let until = at(minutes);
    Command::Defer { until, reason }
}
fn retry_at(minutes: i64) -> Command {
    let not_before = at(minutes);
    Command::Retry { not_before }
}

/// How a call can end; all that the session machine tells.
type End = (Ended, EndReason);
const TALKED: End = (Ended::Completed, EndReason::Completed);
const BUSY: End = (Ended::Busy, EndReason::Busy);
const NO_ANSWER: End = (Ended::NoAnswer, EndReason::NoAnswer);
const VOICEMAIL: End = (Ended::Voicemail, EndReason::Voicemail);
const REJECTED: End = (Ended::Failed, EndReason::CarrierRejected);
const NO_SUCH_NUMBER: End = (Ended::Failed, EndReason::InvalidNumber);
const CANCELED: End = (Ended::Failed, EndReason::Canceled);
const LOST: End = (Ended::Failed, EndReason::NodeLost);
const DECLINED: End = (Ended::NoAnswer, EndReason::Declined);
/// A message was left on a machine: a talk only where that counts as one.
const MESSAGE_LEFT: End = (Ended::Voicemail, EndReason::VoicemailLeft);
const OPTED_OUT: End = (Ended::Completed, EndReason::OptOut);
const REFUSED_CONSENT: End = (Ended::Completed, EndReason::ConsentRefused);
const TRANSFERRED: End = (Ended::Completed, EndReason::Transferred);
const AGENT_FAILED: End = (Ended::Failed, EndReason::AgentError);
const TOO_LONG: End = (Ended::Completed, EndReason::MaxDuration);
const SHUT_DOWN: End = (Ended::Completed, EndReason::Canceled);
#[rustfmt::skip]
const ENDINGS: [End; 16] = [
    TALKED, BUSY, NO_ANSWER, VOICEMAIL, REJECTED, NO_SUCH_NUMBER, CANCELED, LOST, TOO_LONG, SHUT_DOWN,
    DECLINED, MESSAGE_LEFT, OPTED_OUT, REFUSED_CONSENT, TRANSFERRED, AGENT_FAILED,
];

fn finish(row: DeliveryRowId, ending: End) -> Command {
    Command::Finish(attempt(row, ending))
}
fn finish_with(row: DeliveryRowId, ending: End, code: &str) -> Command {
    Command::Finish(Attempt {
        disposition_code: Some(code.to_owned()),
        ..attempt(row, ending)
    })
}
/// A message left that counts as a talk.
fn reached(row: DeliveryRowId) -> Command {
    Command::Finish(Attempt {
        reached: true,
        ..attempt(row, MESSAGE_LEFT)
    })
}
fn attempt(row: DeliveryRowId, (status, reason): End) -> Attempt {
    Attempt {
        row,
        dialed_at: Some(at(0)),
        answered: matches!(status, Ended::Completed | Ended::Voicemail),
        ending: Ending::Call(status, reason),
        reached: status == Ended::Completed,
        disposition_code: None,
        duration_seconds: 30,
        actual_cost_cents: Cents(7),
    }
}

fn after(contact: Contact, command: Command) -> Contact {
    transition(contact, command, &twice(), at(0)).unwrap().0
}

/// A call that the service itself cut off: at once once more, as the same attempt, also where there is only one.
#[test]
fn a_call_that_is_given_back_spends_no_attempt() {
    let once = retry(1, 30, &[]);
    let step = |contact, command| transition(contact, command, &once, at(5)).unwrap();
    let given_back = |row| Attempt {
        ending: Ending::GivenBack,
        answered: false,
        reached: false,
        ..attempt(row, CANCELED)
    };
    let mut contact = pending();
    for nth in 1..=5 {
        contact = step(contact, dispatch_as(call(nth))).0;
        assert_eq!((contact.attempts, contact.last_row_id), (1, Some(call(nth))));
        let (after, told) = step(contact, Command::Finish(given_back(call(nth))));
        assert_eq!(
            (after.status, after.attempts, after.attempt_limit),
            (Status::Waiting, 0, None)
        );
        assert_eq!((after.next_attempt_at, told), (Some(at(5)), Vec::new()));
        contact = after;
    }
    // It was dispatched: it is never told as skipped, not after a retry by hand either.
    let (failed, told) = step(contact.clone(), Command::Skip(SkipReason::DncBlocked, None));
    assert_eq!(
        (failed.status, told.len(), told[0].event_type()),
        (Status::Failed, 1, "campaign.contact_failed")
    );
    assert_eq!(step(failed, retry_at(9)).0.status, Status::Waiting);
    // And then it has its one attempt.
    let dispatched = step(contact, dispatch_as(call(6))).0;
    let (busy, _) = step(dispatched, finish(call(6), BUSY));
    assert_eq!((busy.status, busy.attempts), (Status::Failed, 1));
}

/// A message's end: what becomes of its contact, under these rules, as the nth attempt.
#[test]
fn a_message_that_ends_moves_its_contact() {
    let ends = |ending: Ending, retry: &Retry, nth: u32| {
        let mut contact = Contact {
            channel: Channel::Sms,
            ..pending()
        };
        for n in 1..=nth {
            let row = call(n.into());
            contact = transition(contact, dispatch_as(row), retry, at(0)).unwrap().0;
            let attempt = Attempt {
                ending: if n == nth { ending } else { Ending::NotArrived },
                reached: n == nth && ending == Ending::Arrived,
                duration_seconds: 0,
                ..attempt(row, TALKED)
            };
            let (after, events) = transition(contact, Command::Finish(attempt), retry, at(0)).unwrap();
            if n == nth {
                let told = events.first().map(|event| serde_json::to_value(event).unwrap());
                return (after.status, after.next_attempt_at, told);
            }
            contact = after;
        }
        unreachable!("there is an nth attempt")
    };
    let never = retry(
        3,
        30,
        &[(
            RetryOutcome::Failed,
            RetryRule {
                never: true,
                ..RetryRule::default()
            },
        )],
    );
    let (status, _, told) = ends(Ending::Arrived, &twice(), 1);
    assert_eq!(status, Status::Completed);
    let told = told.unwrap();
    assert_eq!(
        (
            &told["session_id"],
            &told["duration_seconds"],
            &told["actual_cost_cents"]
        ),
        (&serde_json::Value::Null, &0.into(), &7.into())
    );
    assert_eq!(
        ends(Ending::NotArrived, &twice(), 1),
        (Status::Waiting, Some(at(30)), None)
    );
    assert_eq!(
        ends(Ending::NotArrived, &twice(), 2).0,
        Status::Failed,
        "that was the last attempt"
    );
    assert_eq!(ends(Ending::NotArrived, &never, 1).0, Status::Failed);
    assert_eq!(ends(Ending::Final, &twice(), 1).0, Status::Failed, "never again");
    assert_eq!(ends(Ending::Arrived, &twice(), 2).0, Status::Completed);
    let completed = [Ending::Arrived, Ending::NotArrived, Ending::Final].map(Ending::is_completed);
    assert_eq!(completed, [true, false, false]);
}

#[rustfmt::skip]
const STATES: [&str; 11] = [
    "pending", "deferred", "dispatched", "waiting", "put off", "again", "completed", "failed", "skipped", "canceled",
    "canceled while waiting",
];

fn state(name: &str) -> Contact {
    match name {
        "pending" => pending(),
        "deferred" => after(pending(), defer_to(90, WaitReason::Cap)),
        "dispatched" => after(pending(), dispatch_as(call(1))),
        "waiting" => after(state("dispatched"), finish(call(1), BUSY)),
        "put off" => after(state("waiting"), defer_to(90, WaitReason::Cap)),
        "again" => after(state("waiting"), dispatch_as(call(2))),
        "completed" => after(state("dispatched"), finish(call(1), TALKED)),
        "failed" => after(state("again"), finish(call(2), BUSY)),
        "skipped" => after(pending(), skip_by_law(SkipReason::DncBlocked)),
        "canceled" => after(pending(), Command::Cancel),
        "canceled while waiting" => after(state("waiting"), Command::Cancel),
        "erased" => after(state("failed"), Command::Erase),
        _ => panic!("no sample of {name}"),
    }
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use Command::*;
    let next = |command: &Command| Some(match command {
        Dispatch { .. } => finish(call(1), BUSY), Finish(_) => Skip(SkipReason::Invalid, None),
        Skip(..) => defer_to(90, WaitReason::Cap), Defer { .. } => retry_at(60), Retry { .. } => Cancel,
        Cancel => review_of(BUSY), Review { .. } => Erase, Erase => return None,
    });
    std::iter::successors(Some(dispatch_as(call(9))), next).collect()
}

/// Of the law.
const RULE: &str = "us.consent.voice";

fn skip_by_law(reason: SkipReason) -> Command {
    Command::Skip(reason, Some(RULE.to_owned()))
}

#[rustfmt::skip]
const SKIP_REASONS: [SkipReason; 6] = [
    SkipReason::Invalid, SkipReason::DncBlocked, SkipReason::DailyCapReached,
    SkipReason::QuietHoursExpired, SkipReason::ConcurrencyFull, SkipReason::TenantSuspended,
];
const WAIT_REASONS: [WaitReason; 3] = [WaitReason::Retry, WaitReason::NotBefore, WaitReason::Cap];

#[derive(Clone, Copy, Debug)]
enum Expected {
    To(Status, &'static [&'static str]),
    Unchanged,
    Refused,
}
use Expected::{Refused, To, Unchanged};

/// (states, command, expected), at 60
type Line = (&'static [&'static str], Command, Expected);

#[rustfmt::skip]
fn table() -> Vec<Line> {
    use Status::*;
    const UNCALLED: &[&str] = &["pending", "deferred"];
    const CANCELED_ONES: &[&str] = &["canceled", "canceled while waiting"];
    vec![
        // pending, waiting -> dispatched, told for every attempt
        (UNCALLED, dispatch_as(call(1)), To(Dispatched, &["campaign.contact_dispatched"])),
        (&["waiting"], dispatch_as(call(2)), To(Dispatched, &["campaign.contact_dispatched"])),

        // dispatched -> completed | waiting | failed
        (&["dispatched"], finish(call(1), TALKED), To(Completed, &["campaign.contact_completed"])),
        (&["dispatched"], finish(call(1), TOO_LONG), To(Completed, &["campaign.contact_completed"])),
        (&["dispatched"], finish(call(1), SHUT_DOWN), To(Completed, &["campaign.contact_completed"])),
        (&["dispatched"], finish(call(1), BUSY), To(Waiting, &[])),
        (&["dispatched"], finish(call(1), NO_ANSWER), To(Waiting, &[])),
        (&["dispatched"], finish(call(1), VOICEMAIL), To(Waiting, &[])),
        (&["dispatched"], finish(call(1), REJECTED), To(Waiting, &[])),
        (&["dispatched"], finish(call(1), AGENT_FAILED), To(Waiting, &[])),
        // who wanted no more calls or no recording was talked with
        (&["dispatched"], finish(call(1), OPTED_OUT), To(Completed, &["campaign.contact_completed"])),
        (&["dispatched"], finish(call(1), REFUSED_CONSENT), To(Completed, &["campaign.contact_completed"])),
        (&["dispatched"], finish(call(1), TRANSFERRED), To(Completed, &["campaign.contact_completed"])),
        // a message on a machine is as good as a talk where the campaign says so
        (&["dispatched"], reached(call(1)), To(Completed, &["campaign.contact_completed"])),
        (&["dispatched"], finish(call(1), MESSAGE_LEFT), To(Waiting, &[])),
        (&["again"], finish(call(2), MESSAGE_LEFT), To(Failed, &["campaign.contact_failed"])),
        (&["again"], finish(call(2), TALKED), To(Completed, &["campaign.contact_completed"])),
        (&["again"], finish(call(2), BUSY), To(Failed, &["campaign.contact_failed"])), // that was the last attempt
        // no retry: the number does not exist, somebody wanted it so, the person turned it down, or may have talked
        (&["dispatched"], finish(call(1), DECLINED), To(Failed, &["campaign.contact_failed"])),
        (&["dispatched"], finish(call(1), NO_SUCH_NUMBER), To(Failed, &["campaign.contact_failed"])),
        (&["dispatched"], finish(call(1), CANCELED), To(Failed, &["campaign.contact_failed"])),
        (&["dispatched"], finish(call(1), LOST), To(Failed, &["campaign.contact_failed"])),

        // pending -> skipped, only before the first attempt
        (UNCALLED, Command::Skip(SkipReason::Invalid, None), To(Skipped, &["campaign.contact_skipped"])),
        (UNCALLED, skip_by_law(SkipReason::DncBlocked), To(Skipped, &["campaign.contact_skipped"])),
        (&["skipped"], Command::Skip(SkipReason::DncBlocked, None), Unchanged),
        (&["waiting"], skip_by_law(SkipReason::DncBlocked), To(Failed, &["campaign.contact_failed"])),

        // pending, waiting: not before then
        (UNCALLED, defer_to(90, WaitReason::NotBefore), To(Pending, &[])),
        (&["waiting"], defer_to(90, WaitReason::Cap), To(Waiting, &[])),

        // pending, waiting -> canceled with their campaign; no event: the catalogue has none
        (UNCALLED, Command::Cancel, To(Canceled, &[])),
        (&["waiting"], Command::Cancel, To(Canceled, &[])),
        (CANCELED_ONES, Command::Cancel, Unchanged),

        // failed, skipped, canceled -> once more, by hand
        (&["failed"], retry_at(60), To(Waiting, &[])),
        (&["canceled while waiting"], retry_at(60), To(Waiting, &[])),
        (&["skipped"], retry_at(60), To(Pending, &[])),
        (&["canceled"], retry_at(60), To(Pending, &[])),

        // the rules have changed: a cap is asked anew, a retry is due as they say; all else stands
        (&["pending"], review_of(BUSY), Unchanged),
        (&["deferred"], review_of(BUSY), To(Pending, &[])),
        (&["waiting"], review_of(BUSY), Unchanged),
        (&["put off"], review_of(BUSY), To(Waiting, &[])),
        (&["dispatched", "again", "completed", "failed", "skipped"], review_of(BUSY), Unchanged),
        (CANCELED_ONES, review_of(BUSY), Unchanged),

        // who it was is erased: it counts as what it was, and is not called any more
        (UNCALLED, Command::Erase, To(Canceled, &[])),
        (&["waiting", "put off"], Command::Erase, To(Canceled, &[])),
        (&["dispatched", "again"], Command::Erase, Refused),
        (&["completed"], Command::Erase, To(Completed, &[])),
        (&["failed"], Command::Erase, To(Failed, &[])),
        (&["skipped"], Command::Erase, To(Skipped, &[])),
        (CANCELED_ONES, Command::Erase, To(Canceled, &[])),
        (&["erased"], Command::Erase, Unchanged),
        (&["erased"], retry_at(60), Refused),

        // a call's end that is told again, or late, moves nothing
        (&["again"], finish(call(1), TALKED), Unchanged),
        (UNCALLED, finish(call(1), TALKED), Unchanged),
        (&["waiting"], finish(call(1), BUSY), Unchanged),
        (&["completed"], finish(call(1), TALKED), Unchanged),
        (&["failed"], finish(call(2), BUSY), Unchanged),
        (&["skipped"], finish(call(1), BUSY), Unchanged),
        (CANCELED_ONES, finish(call(1), BUSY), Unchanged),
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
    let mut known = Vec::new();
    for (states, command, expected) in table() {
        for contact in states.iter().map(|name| state(name)) {
            known.push((contact.status, of(&command)));
            check(contact, command.clone(), expected);
        }
    }
    for contact in STATES.map(state) {
        for command in commands() {
            if !known.contains(&(contact.status, of(&command))) {
                check(contact.clone(), command, Refused);
            }
        }
    }
}

/// At 0, so.
fn review_of((status, reason): End) -> Command {
    let (ending, ended_at) = (Ending::Call(status, reason), at(0));
    Command::Review {
        last: Some(Last { ending, ended_at }),
    }
}

#[test]
fn new_rules_are_for_those_who_wait() {
    let never = |outcome| {
        let rule = RetryRule {
            never: true,
            ..RetryRule::default()
        };
        retry(5, 30, &[(outcome, rule)])
    };
    let waiting = || state("waiting");
    let capped = || state("put off");
    let opening = || after(waiting(), defer_to(90, WaitReason::Retry));
    let by_hand = || after(state("failed"), retry_at(200));
    let given_back = || Contact {
        attempts: 0,
        ..opening()
    };
    for (name, contact, rules, ending, expected) in [
        ("sooner", waiting(), retry(2, 10, &[]), BUSY, Some(10)),
        ("later", waiting(), retry(2, 500, &[]), BUSY, Some(500)),
        ("too often", waiting(), retry(1, 30, &[]), BUSY, None),
        ("not after that", waiting(), never(RetryOutcome::Busy), BUSY, None),
        (
            "after another",
            waiting(),
            never(RetryOutcome::Busy),
            NO_ANSWER,
            Some(30),
        ),
        ("the cap is asked anew", capped(), twice(), BUSY, Some(30)),
        ("capped, and too often", capped(), retry(1, 30, &[]), BUSY, None),
        ("the hours are asked anew", opening(), twice(), BUSY, Some(30)),
        ("given back", given_back(), retry(1, 30, &[]), CANCELED, Some(0)),
        ("by hand", by_hand(), retry(1, 30, &[]), BUSY, Some(30)),
        (
            "by hand, whatever came before",
            by_hand(),
            retry(1, 45, &[]),
            DECLINED,
            Some(45),
        ),
        (
            "by hand, and put off",
            after(by_hand(), defer_to(300, WaitReason::Cap)),
            twice(),
            BUSY,
            Some(30),
        ),
    ] {
        let (found, events) = transition(contact, review_of(ending), &rules, at(60)).unwrap();
        match expected {
            Some(due) => {
                assert_eq!(found.status, Status::Waiting, "{name}");
                let found = (found.next_attempt_at, found.wait_reason);
                assert_eq!(
                    (found, events.len()),
                    ((Some(at(due)), Some(WaitReason::Retry)), 0),
                    "{name}"
                );
            }
            None => assert_eq!(
                (found.status, kinds(&events)),
                (Status::Failed, vec!["campaign.contact_failed"]),
                "{name}"
            ),
        }
    }
    // Its row is gone, or says nothing yet.
    let (found, _) = transition(waiting(), Command::Review { last: None }, &retry(1, 30, &[]), at(60)).unwrap();
    assert_eq!(found, waiting());
}

#[test]
fn who_was_never_called_goes_on_waiting_for_its_own_time_only() {
    let not_before = |minutes| Contact {
        not_before: Some(at(minutes)),
        ..state("deferred")
    };
    for (name, contact, expected) in [
        ("a cap", state("deferred"), None),
        (
            "a cap, and its own time",
            not_before(80),
            Some((at(80), WaitReason::NotBefore)),
        ),
        ("its own time has come", not_before(50), None),
    ] {
        let review = Command::Review { last: None };
        let (found, events) = transition(contact, review, &twice(), at(60)).unwrap();
        let waits = found.next_attempt_at.zip(found.wait_reason);
        assert_eq!(
            (found.status, waits, events.len()),
            (Status::Pending, expected, 0),
            "{name}"
        );
    }
}

#[test]
fn a_skip_keeps_and_tells_its_reason_and_keeps_its_rule() {
    for reason in SKIP_REASONS {
        for rule in [None, Some(RULE.to_owned())] {
            let skip = Command::Skip(reason, rule.clone());
            let (contact, events) = transition(pending(), skip, &twice(), at(0)).unwrap();
            let [Event::CampaignContactSkipped(told)] = &events[..] else {
                panic!("{events:?}")
            };
            assert_eq!((contact.skip_reason, told.skip_reason), (Some(reason), reason));
            assert_eq!(contact.skip_rule, rule);
        }
    }
}

#[test]
fn who_was_called_in_vain_is_not_skipped_but_fails_with_the_last_call() {
    for reason in SKIP_REASONS {
        let (contact, events) = transition(state("waiting"), skip_by_law(reason), &twice(), at(0)).unwrap();
        let [Event::CampaignContactFailed(told)] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(
            (told.session_id, told.duration_seconds, told.actual_cost_cents),
            (session(1), 0, Cents(0))
        );
        assert_eq!(
            (contact.status, contact.skip_reason, contact.skip_rule),
            (Status::Failed, None, None)
        );
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
        (session(1), 30, Cents(7))
    );
}

#[test]
fn the_last_disposition_is_kept_through_calls_that_have_none() {
    let mut contact = state("dispatched");
    let mut known = Vec::new();
    let plan = retry(5, 30, &[]);
    for (nth, command) in [
        (1, finish(call(1), BUSY)),
        (2, finish_with(call(2), AGENT_FAILED, "call_back")),
        (3, finish(call(3), NO_ANSWER)),
        (4, finish_with(call(4), TALKED, "sold")),
    ] {
        contact = transition(contact, command, &plan, at(nth)).unwrap().0;
        known.push(contact.disposition_code.clone());
        if contact.status == Status::Waiting {
            let next = dispatch_as(call(u128::try_from(nth + 1).unwrap()));
            contact = transition(contact, next, &plan, at(nth)).unwrap().0;
        }
    }
    let code = |code: &str| Some(code.to_owned());
    assert_eq!(known, [None, code("call_back"), code("call_back"), code("sold")]);
    assert_eq!(contact.status, Status::Completed);
    // An end that is told late says nothing any more.
    let late = transition(contact.clone(), finish_with(call(3), NO_ANSWER, "lost"), &plan, at(9)).unwrap();
    assert_eq!(late, (contact, Vec::new()));
}

#[test]
fn who_turned_the_call_down_is_not_called_again_whatever_the_plan_says() {
    let every_minute = RetryRule {
        delays_minutes: vec![minutes(1)],
        ..RetryRule::default()
    };
    let plan = retry(10, 0, &[(RetryOutcome::NoAnswer, every_minute)]);
    assert_eq!(gaps(&plan, NO_ANSWER).len(), 9);
    assert!(gaps(&plan, DECLINED).is_empty());
    // Somebody may still ask for it by hand.
    let failed = transition(state("dispatched"), finish(call(1), DECLINED), &plan, at(0))
        .unwrap()
        .0;
    assert_eq!(
        transition(failed, retry_at(5), &plan, at(5)).unwrap().0.status,
        Status::Waiting
    );
}

#[test]
fn who_is_put_off_keeps_its_status_and_says_until_when_and_why() {
    for name in ["pending", "deferred", "waiting"] {
        for reason in WAIT_REASONS {
            let before = state(name);
            let deferred = after(before.clone(), defer_to(77, reason));
            let wanted = Contact {
                next_attempt_at: Some(at(77)),
                wait_reason: Some(reason),
                version: before.version + 1,
                ..before
            };
            assert_eq!(deferred, wanted, "{name}");
            // The call ends the wait.
            let called = after(deferred, dispatch_as(call(5)));
            assert_eq!((called.next_attempt_at, called.wait_reason), (None, None), "{name}");
        }
    }
}

/// Called in vain for as long as the plan allows; minutes from the end of each attempt to the next.
fn call_in_vain(mut contact: Contact, retry: &Retry, ending: End) -> (Contact, Vec<i64>) {
    let mut gaps = Vec::new();
    while matches!(contact.status, Status::Pending | Status::Waiting) {
        let nth = call(u128::try_from(contact.attempts + 1).unwrap());
        contact = transition(contact, dispatch_as(nth), retry, at(0)).unwrap().0;
        contact = transition(contact, finish(nth, ending), retry, at(0)).unwrap().0;
        gaps.extend(contact.next_attempt_at.map(|due| due.millis() / 60_000));
    }
    (contact, gaps)
}

fn gaps(retry: &Retry, ending: End) -> Vec<i64> {
    call_in_vain(pending(), retry, ending).1
}

#[test]
fn the_retry_plan_decides_when_and_how_often() {
    let delays_minutes = vec![minutes(5), minutes(60), minutes(90)];
    let busy = RetryRule {
        delays_minutes,
        ..RetryRule::default()
    };
    let slowly = [(RetryOutcome::Busy, busy.clone())];
    // The first is raised to the least gap, the last one repeats; other outcomes wait for the least gap.
    assert_eq!(gaps(&retry(6, 30, &slowly), BUSY), [30, 60, 90, 90, 90]);
    assert_eq!(gaps(&retry(4, 30, &slowly), NO_ANSWER), [30, 30, 30]);
    // A rule lowers the number of attempts, and never raises it.
    for (max_attempts, of_the_rule) in [(4, 2), (2, 9)] {
        let rule = RetryRule {
            max_attempts: Some(times(of_the_rule)),
            ..RetryRule::default()
        };
        let plan = retry(max_attempts, 10, &[(RetryOutcome::Voicemail, rule)]);
        assert_eq!(gaps(&plan, VOICEMAIL), [10]);
    }
    let never = RetryRule { never: true, ..busy };
    assert!(gaps(&retry(4, 10, &[(RetryOutcome::Failed, never)]), REJECTED).is_empty());
    // Unless the plan says otherwise, a contact is called once.
    assert!(gaps(&Retry::default(), BUSY).is_empty());
}

#[test]
fn each_retry_by_hand_grants_one_attempt_more() {
    for max_attempts in 1..=10 {
        let plan = retry(max_attempts, 30, &[]);
        let (mut contact, _) = call_in_vain(pending(), &plan, BUSY);
        for granted in 1..=3 {
            contact = transition(contact, retry_at(5), &plan, at(5)).unwrap().0;
            assert_eq!(
                (contact.status, contact.next_attempt_at),
                (Status::Waiting, Some(at(5)))
            );
            contact = call_in_vain(contact, &plan, BUSY).0;
            let attempts = plan.max_attempts.get() + granted;
            assert_eq!((contact.attempts, contact.attempt_limit), (attempts, Some(attempts)));
        }
    }
}

#[test]
fn a_retry_by_hand_is_one_attempt_whatever_the_plan_would_have_left() {
    let plan = retry(5, 30, &[]);
    let early = call_in_vain(pending(), &plan, NO_SUCH_NUMBER).0;
    assert_eq!((early.status, early.attempts), (Status::Failed, 1));
    let again = transition(early, retry_at(5), &plan, at(5)).unwrap().0;
    assert_eq!(call_in_vain(again, &plan, BUSY).0.attempts, 2);
    let spent = call_in_vain(pending(), &plan, BUSY).0;
    // The plan allows less than before: what was asked for by hand stands nevertheless.
    let fewer = retry(2, 30, &[]);
    let again = transition(spent, retry_at(5), &fewer, at(5)).unwrap().0;
    let spent = call_in_vain(again, &fewer, BUSY).0;
    assert_eq!((spent.attempts, spent.attempt_limit), (6, Some(6)));
    // It allows more again: still one.
    let again = transition(spent, retry_at(5), &plan, at(5)).unwrap().0;
    assert_eq!(call_in_vain(again, &plan, BUSY).0.attempts, 7);
}

#[test]
fn who_was_never_called_is_pending_again_for_one_attempt() {
    for name in ["skipped", "canceled"] {
        let contact = after(state(name), retry_at(0));
        let wanted = Contact {
            version: 3,
            // Of the plan's two.
            attempt_limit: Some(1),
            ..pending()
        };
        assert_eq!(contact, wanted, "{name}");
        assert_eq!(call_in_vain(contact, &twice(), BUSY).0.attempts, 1, "{name}");
        // Its own time is kept.
        let not_before = Some(at(90));
        let later = Contact {
            not_before,
            ..state(name)
        };
        let contact = after(later, retry_at(0));
        let waits = (contact.status, contact.next_attempt_at, contact.wait_reason);
        assert_eq!(
            waits,
            (Status::Pending, not_before, Some(WaitReason::NotBefore)),
            "{name}"
        );
    }
}

/// What can happen to a contact, in the order of its calls.
#[derive(Clone, Debug)]
enum Step {
    Dispatch,
    /// The end of its last call, or of the one before.
    Finish {
        late: bool,
        ending: End,
    },
    Skip(SkipReason),
    /// So many minutes on.
    Defer(i64, WaitReason),
    Retry,
    Cancel,
}

/// One step that was not refused: the state before, the state after, and what was told.
struct Move {
    before: Contact,
    after: Contact,
    told: Vec<Event>,
    /// Somebody wanted it called again.
    reopened: bool,
}

/// Everything that happened to a contact, a minute apart.
fn life(steps: &[Step], retry: &Retry) -> Vec<Move> {
    life_of(pending(), steps, retry)
}

fn life_of(mut contact: Contact, steps: &[Step], retry: &Retry) -> Vec<Move> {
    let mut moves = Vec::new();
    for (minutes, step) in (1..).zip(steps) {
        let nth = u128::try_from(contact.attempts).unwrap();
        let command = match step {
            Step::Dispatch => dispatch_as(call(nth + 1)),
            Step::Finish { late, ending } => finish(call(nth.saturating_sub(u128::from(*late))), *ending),
            Step::Skip(reason) => skip_by_law(*reason),
            Step::Defer(on, reason) => defer_to(minutes + on, *reason),
            Step::Retry => retry_at(minutes),
            Step::Cancel => Command::Cancel,
        };
        let before = contact.clone();
        if let Ok((after, told)) = transition(before.clone(), command, retry, at(minutes)) {
            contact = after.clone();
            moves.push(Move {
                before,
                after,
                told,
                reopened: matches!(step, Step::Retry),
            });
        }
    }
    moves
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ending = || prop::sample::select(ENDINGS.to_vec());
    let unreached = prop::sample::select(vec![BUSY, NO_ANSWER, VOICEMAIL, REJECTED, MESSAGE_LEFT]);
    let step = prop_oneof![
        8 => Just(Step::Dispatch),
        8 => unreached.prop_map(|ending| Step::Finish { late: false, ending }),
        2 => (any::<bool>(), ending()).prop_map(|(late, ending)| Step::Finish { late, ending }),
        1 => prop::sample::select(SKIP_REASONS.to_vec()).prop_map(Step::Skip),
        2 => (1..50_i64, prop::sample::select(WAIT_REASONS.to_vec())).prop_map(|(on, reason)| Step::Defer(on, reason)),
        2 => Just(Step::Retry),
        1 => Just(Step::Cancel),
    ];
    prop::collection::vec(step, 0..40)
}

fn plans() -> impl Strategy<Value = Retry> {
    use RetryOutcome::*;
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

/// The event that tells the end of a contact; a canceled one has none.
fn end_event(status: Status) -> Option<&'static str> {
    match status {
        Status::Completed => Some("campaign.contact_completed"),
        Status::Failed => Some("campaign.contact_failed"),
        Status::Skipped => Some("campaign.contact_skipped"),
        Status::Pending | Status::Waiting | Status::Dispatched | Status::Canceled => None,
    }
}

fn is_over(contact: &Contact) -> bool {
    end_event(contact.status).is_some() || contact.status == Status::Canceled
}

/// What a contact tells about a person.
fn person(contact: &Contact) -> Contact {
    Contact {
        address: "+12025550123".into(),
        phone_number: "+12025550123".into(),
        zone: "America/New_York".into(),
        email: Some("ada@example.com".into()),
        first_name: Some("Ada".into()),
        last_name: Some("Lovelace".into()),
        external_id: Some("crm-1".into()),
        timezone: Some("America/New_York".parse().unwrap()),
        variables: serde_json::from_value(serde_json::json!({ "pet": "a goose" })).unwrap(),
        ..contact.clone()
    }
}

proptest! {
    #[test]
    fn nobody_is_named_anew_but_by_being_erased(steps in steps(), plan in plans()) {
        for step in life(&steps, &plan).iter().filter(|step| !step.after.is_erased()) {
            prop_assert_eq!(step.after.names(), pending().names());
        }
    }

    #[test]
    fn whoever_is_erased_is_not_known_and_not_called_any_more(steps in steps(), more in steps(), plan in plans()) {
        let now = person(&life(&steps, &plan).pop().map_or_else(pending, |step| step.after));
        let is_called = now.status == Status::Dispatched;
        let erased = transition(now.clone(), Command::Erase, &plan, at(5_000));
        prop_assert_eq!(erased.is_err(), is_called);
        let Ok((erased, told)) = erased else { return Ok(()) };
        prop_assert!(told.is_empty() && is_over(&erased));
        prop_assert_eq!(erased.status == now.status, is_over(&now));
        prop_assert_eq!(erased.reachable_at(), None);
        let left = format!("{erased:?}");
        for what in ["2025550123", "ada@", "Ada", "Lovelace", "crm-1", "New_York", "goose"] {
            prop_assert!(!left.contains(what), "{} in {}", what, left);
        }
        for Move { after, told, .. } in life_of(erased.clone(), &more, &plan) {
            prop_assert_eq!(after, erased.clone());
            prop_assert!(told.is_empty());
        }
    }

    #[test]
    fn attempts_never_exceed_the_plan_and_what_was_granted_and_each_is_told(steps in steps(), plan in plans()) {
        let moves = life(&steps, &plan);
        for step in &moves {
            prop_assert!(step.after.attempts <= step.after.attempt_limit.unwrap_or(plan.max_attempts.get()));
        }
        let told = moves.iter().flat_map(|step| kinds(&step.told));
        let dispatched = told.filter(|kind| *kind == "campaign.contact_dispatched").count();
        let attempts = moves.last().map_or(0, |step| step.after.attempts);
        prop_assert_eq!(i32::try_from(dispatched).unwrap(), attempts);
    }

    #[test]
    fn only_a_retry_by_hand_opens_what_is_over_and_never_what_completed(steps in steps(), plan in plans()) {
        for step in life(&steps, &plan) {
            let opened = is_over(&step.before) && !is_over(&step.after);
            prop_assert_eq!(opened, step.reopened);
            prop_assert!(!is_over(&step.before) || opened || step.before == step.after);
            prop_assert!(step.before.status != Status::Completed || step.before == step.after);
        }
    }

    #[test]
    fn its_end_is_told_once_between_two_reopenings(steps in steps(), plan in plans()) {
        let mut ends_told = 0;
        for step in life(&steps, &plan) {
            ends_told = if step.reopened { 0 } else { ends_told };
            let moved = step.before.status != step.after.status;
            let end = end_event(step.after.status).filter(|_| moved);
            let dispatched = (moved && step.after.status == Status::Dispatched).then_some("campaign.contact_dispatched");
            let wanted: Vec<_> = end.or(dispatched).into_iter().collect();
            prop_assert_eq!(kinds(&step.told), wanted);
            ends_told += usize::from(end.is_some());
            prop_assert_eq!(ends_told, usize::from(end_event(step.after.status).is_some()));
        }
    }

    #[test]
    fn skipped_means_never_called(steps in steps(), plan in plans()) {
        for Move { after: contact, .. } in life(&steps, &plan) {
            prop_assert_eq!(contact.status == Status::Skipped, contact.skip_reason.is_some());
            prop_assert_eq!(contact.skip_rule.is_some(), contact.skip_reason.is_some());
            prop_assert!(contact.status != Status::Skipped || contact.attempts == 0);
            prop_assert_eq!(contact.attempts == 0, contact.last_row_id.is_none());
        }
    }

    #[test]
    fn a_retry_by_hand_leaves_exactly_one_attempt(steps in steps(), plan in plans()) {
        for step in life(&steps, &plan) {
            let limit = if step.reopened { Some(step.before.attempts + 1) } else { step.before.attempt_limit };
            prop_assert_eq!(step.after.attempt_limit, limit);
        }
    }

    #[test]
    fn a_review_by_the_same_rules_moves_nobody_who_waits_for_a_retry(steps in steps(), plan in plans()) {
        let called = life(&steps, &plan).into_iter().map(|step| step.after);
        let called = called.filter(|contact| contact.status == Status::Dispatched);
        for (contact, (status, reason)) in called.flat_map(|contact| ENDINGS.map(|ending| (contact.clone(), ending))) {
            let last = contact.last_row_id.unwrap();
            let (ended, _) = transition(contact, finish(last, (status, reason)), &plan, at(5_000)).unwrap();
            let last = Last { ending: Ending::Call(status, reason), ended_at: at(5_000) };
            let (judged, told) = transition(ended.clone(), Command::Review { last: Some(last) }, &plan, at(5_001)).unwrap();
            prop_assert_eq!((judged, told), (ended, Vec::new()));
        }
    }

    #[test]
    fn a_retry_never_comes_before_the_least_gap(steps in steps(), plan in plans()) {
        let gap = i64::from(plan.min_gap_minutes.get());
        let called = life(&steps, &plan).into_iter().map(|step| step.after);
        let called = called.filter(|contact| contact.status == Status::Dispatched);
        for (contact, ending) in called.flat_map(|contact| ENDINGS.map(|ending| (contact.clone(), ending))) {
            let last = contact.last_row_id.unwrap();
            let (next, _) = transition(contact, finish(last, ending), &plan, at(5_000)).unwrap();
            prop_assert!(next.next_attempt_at.is_none_or(|due| due >= at(5_000 + gap)));
            prop_assert_eq!(next.next_attempt_at.is_some(), next.status == Status::Waiting);
        }
    }

    #[test]
    fn it_has_a_next_attempt_only_while_it_may_be_called_and_always_while_it_waits(steps in steps(), plan in plans()) {
        for Move { after: contact, .. } in life(&steps, &plan) {
            let waits = contact.next_attempt_at.is_some();
            prop_assert_eq!(waits, contact.wait_reason.is_some());
            prop_assert!(!waits || matches!(contact.status, Status::Pending | Status::Waiting));
            prop_assert!(waits || contact.status != Status::Waiting);
        }
    }

    #[test]
    fn each_change_is_the_next_version(steps in steps(), plan in plans()) {
        for Move { before, after, .. } in life(&steps, &plan) {
            prop_assert_eq!(after.version, before.version + i32::from(before != after));
        }
    }
}
