//! What any message does, line by line: the same tests, and one table, for SMS and for e-mails. Beside it: what only one of them
//! does.
#[path = "machine_tests/emails.rs"]
mod emails;
#[path = "machine_tests/sms.rs"]
mod sms;

use super::*;
use crate::message::OPTED_OUT;
use entities::{
    dnc::DncChannel,
    email_message::Model as Email,
    ids::{CampaignId, ContactId, TenantId},
    law::MessageLegal,
    ledger::What,
    sms_message::Model as Sms,
    values::Env,
};
use proptest::prelude::*;

/// Rows of one kind, and what is expected of them.
trait Sample: Outgoing + Debug {
    /// As the table calls it.
    const NAME: &'static str;
    const TO: (&'static str, DncChannel);
    const PRICE: Cents;
    /// Where it waits for another try; how many there are in all.
    const WAITS: Self::Phase;
    const TRIES: i32;
    const BLOCKED_HOURS: i64;
    /// It has yet to end.
    const OPEN: &'static [Self::Phase];
    /// Nothing follows.
    const LAST: &'static [Self::Phase];
    /// Seconds, at most, between two steps of a life.
    const PAUSE: i64;

    fn of(phase: Self::Phase) -> Self;
    /// One that was not taken at first.
    fn tried() -> Self;
    /// One in each state, and those of which more counts.
    fn all() -> Vec<(&'static str, Self)>;
    /// A campaign's.
    fn written(self) -> Self;
    /// Nobody's.
    fn alone(self) -> Self;
    fn own_commands() -> Vec<(&'static str, Command<Self::Own>)>;
    fn own_ends() -> Vec<(Self, Command<Self::Own>, Option<Ending>)>;
}

fn now() -> Moment {
    Moment::from_millis(1_000_000)
}

fn fault() -> Fault {
    Fault::new("code", "words")
}

fn busy<Own>() -> Command<Own> {
    Command::Busy {
        retry_after: None,
        why: fault(),
    }
}

fn lost<Own>() -> Command<Own> {
    Command::Lost { why: "gone".into() }
}

fn code<M: Outgoing>(row: &M) -> Option<String> {
    let mut row = row.clone();
    row.moved().error_code.take()
}

/// One of each kind, as the table calls it.
fn commands<M: Sample>() -> Vec<(&'static str, Command<M::Own>)> {
    let mut all = vec![
        ("Tick", Command::Tick),
        ("Begin", Command::Begin(None)),
        ("Bar", Command::Bar(MessageRejectReason::Dnc)),
        ("Bar", Command::Bar(MessageRejectReason::NotConfigured)),
        ("Bar", Command::Bar(MessageRejectReason::CampaignOver)),
        ("Bar", Command::Bar(MessageRejectReason::TooLate)),
        ("Bar", Command::Bar(MessageRejectReason::Sender)),
        ("Wait", Command::Wait(Block::Credits)),
        ("Wait", Command::Wait(Block::Suspension)),
        ("Wait", Command::Wait(Block::Pause)),
        ("Taken", Command::Taken(Some("SM1".into()))),
        ("Busy", busy()),
        ("Refused", Command::Refused(fault())),
        ("Refused", Command::Refused(Fault::new(OPTED_OUT, ""))),
        ("Lost", lost()),
        ("Cancel", Command::Cancel),
        ("Delete", Command::Delete),
    ];
    all.extend(M::own_commands());
    all
}

/// For whom, from where, by what, to where; `!`: it is refused. Where there is no line, nothing moves and nothing is done. `Tried`
/// is queued and was not taken at first; `Unknown` has failed, and nobody knows.
#[rustfmt::skip]
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("both",  "Scheduled Queued",                            "Tick",        "Queued"),
    ("sms",   "Tried",                                       "Tick",        "Queued"),
    ("email", "Deferred",                                    "Tick",        "Deferred"),
    ("both",  "Sending",                                     "Tick",        "Failed"),

    ("both",  "Queued",                                      "Begin",       "Sending"),
    ("sms",   "Tried",                                       "Begin",       "Sending"),
    ("email", "Deferred",                                    "Begin",       "Sending"),
    ("both",  "Scheduled Sending Sent Failed Canceled",      "Begin",       "!"),
    ("sms",   "Delivered Undelivered Unknown Received",      "Begin",       "!"),
    ("email", "Bounced",                                     "Begin",       "!"),

    ("both",  "Scheduled Queued",                            "Bar",         "Failed"),
    ("sms",   "Tried",                                       "Bar",         "Failed"),
    ("email", "Deferred",                                    "Bar",         "Failed"),
    ("both",  "Queued",                                      "Wait",        "Queued"),
    ("sms",   "Tried",                                       "Wait",        "Queued"),
    ("email", "Deferred",                                    "Wait",        "Deferred"),

    ("both",  "Sending",                                     "Taken",       "Sent"),
    ("sms",   "Sending",                                     "Busy",        "Queued"),
    ("email", "Sending",                                     "Busy",        "Deferred"),
    ("both",  "Sending",                                     "Refused",     "Failed"),
    ("sms",   "Sending",                                     "Lost",        "Sending"),
    ("email", "Sending",                                     "Lost",        "Failed"),
    // Only the provider's id is noted.
    ("sms",   "Sent",                                        "Taken",       "Sent"),
    ("sms",   "Delivered",                                   "Taken",       "Delivered"),
    ("sms",   "Undelivered",                                 "Taken",       "Undelivered"),
    ("sms",   "Failed Unknown",                              "Taken",       "Failed"),

    ("sms",   "Sending Tried Sent Unknown",                  "OnItsWay",    "Sent"),
    ("sms",   "Sending Tried Sent Unknown",                  "Delivered",   "Delivered"),
    ("sms",   "Sending Tried Sent Unknown",                  "Undelivered", "Undelivered"),
    ("sms",   "Sending Tried Sent Unknown",                  "GivenUp",     "Failed"),
    ("email", "Queued Deferred Sending",                     "Unbuilt",     "Failed"),
    ("email", "Sending",                                     "Bounced",     "Bounced"),

    ("both",  "Scheduled Queued",                            "Cancel",      "Canceled"),
    ("sms",   "Tried",                                       "Cancel",      "Canceled"),
    ("email", "Deferred",                                    "Cancel",      "Canceled"),
    ("both",  "Sending Sent Failed",                         "Cancel",      "!"),
    ("sms",   "Delivered Undelivered Unknown Received",      "Cancel",      "!"),
    ("email", "Bounced",                                     "Cancel",      "!"),

    ("both",  "Sent",                                        "Delete",      "Sent"),
    ("both",  "Failed",                                      "Delete",      "Failed"),
    ("both",  "Canceled",                                    "Delete",      "Canceled"),
    ("sms",   "Delivered",                                   "Delete",      "Delivered"),
    ("sms",   "Undelivered",                                 "Delete",      "Undelivered"),
    ("sms",   "Unknown",                                     "Delete",      "Failed"),
    ("sms",   "Received",                                    "Delete",      "Received"),
    ("email", "Bounced",                                     "Delete",      "Bounced"),
    ("both",  "Scheduled Queued Sending",                    "Delete",      "!"),
    ("sms",   "Tried",                                       "Delete",      "!"),
    ("email", "Deferred",                                    "Delete",      "!"),
];

fn lines<M: Sample>() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str, &'static str)> {
    TABLE.iter().filter(|(who, ..)| *who == "both" || *who == M::NAME)
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other == name)
}

/// Every state and every command.
fn every_line<M: Sample>() {
    for (from, row) in M::all() {
        for (by, command) in commands::<M>() {
            let mut lines = lines::<M>().filter(|(_, froms, bys, _)| has(froms, from) && has(bys, by));
            let to = lines.next().map(|(.., to)| *to);
            let what = format!("{} {from} {command:?}", M::NAME);
            assert!(lines.next().is_none(), "{what}: two lines");
            match (transition(row.clone(), command, now()), to) {
                (Err(Error::InvalidState { .. }), Some("!")) => {}
                (Ok((after, effects)), None) => {
                    assert_eq!(after, row, "{what}");
                    assert!(effects.is_empty(), "{what}: {effects:?}");
                }
                (Ok((after, _)), Some(to)) => {
                    assert_eq!(format!("{:?}", after.seen().phase), to, "{what}");
                    assert_ne!(after, row, "{what}");
                }
                (Err(error), to) => panic!("{what}: {error}, not {to:?}"),
            }
        }
    }
    // No line speaks of what there is not.
    for (_, froms, bys, _) in lines::<M>() {
        for from in froms.split(' ') {
            assert!(M::all().iter().any(|(name, _)| *name == from), "{} {from}", M::NAME);
        }
        for by in bys.split(' ') {
            assert!(commands::<M>().iter().any(|(name, _)| *name == by), "{} {by}", M::NAME);
        }
    }
}

#[test]
fn every_state_and_every_command() {
    every_line::<Sms>();
    every_line::<Email>();
}

fn intent<M: Sample>() {
    let (after, effects) = transition(M::of(M::QUEUED), Command::Begin(None), now()).unwrap();
    let [
        Effect::Fact(Fact::Require(Guard::Reachable(person))),
        Effect::Fact(Fact::SaveSend(send)),
        Effect::Fact(Fact::Move(hold)),
    ] = effects.as_slice()
    else {
        panic!("{effects:?}")
    };
    assert_eq!((person.address.as_str(), person.channel), M::TO);
    assert_eq!((send.address.as_str(), send.channel.dnc()), M::TO);
    let id: Uuid = after.seen().key.id.into();
    assert_eq!((send.n, send.message_id, send.sent_at), (1, id, now()));
    assert!(matches!(&hold.what, What::Hold { cents, .. } if *cents == M::PRICE));
    assert_eq!(after.seen().wake_at, Some(now().plus_seconds(UNKNOWN_AFTER_SECONDS)));
    // Tried again: the hold is there already.
    let (_, effects) = transition(M::tried(), Command::Begin(None), now()).unwrap();
    let is_move = |effect: &Effect| matches!(effect, Effect::Fact(Fact::Move(_)));
    assert!(!effects.iter().any(is_move), "{effects:?}");
    let is_second = |effect: &Effect| matches!(effect, Effect::Fact(Fact::SaveSend(send)) if send.n == 2);
    assert!(effects.iter().any(is_second), "{effects:?}");
}

#[test]
fn the_intent_comes_with_everything_that_it_stands_by() {
    intent::<Sms>();
    intent::<Email>();
}

fn plan<M: Sample>() {
    let (mut row, mut at) = (M::of(M::QUEUED), now());
    for delay in M::DELAYS {
        row = transition(row, Command::Begin(None), at).unwrap().0;
        row = transition(row, busy(), at).unwrap().0;
        at = at.plus(*delay);
        assert_eq!((row.seen().phase, row.seen().wake_at), (M::WAITS, Some(at)));
    }
    row = transition(row, Command::Begin(None), at).unwrap().0;
    let (row, effects) = transition(row, busy(), at).unwrap();
    assert_eq!((row.seen().phase, row.seen().attempts), (M::FAILED, M::TRIES));
    assert!(
        matches!(&effects[..], [Effect::Fact(Fact::Move(back)), Effect::Fact(Fact::CloseAttempt(_))] if matches!(back.what, What::Settle { cost: Cents(0), .. }))
    );
}

#[test]
fn refusals_that_pass_follow_the_plan() {
    plan::<Sms>();
    plan::<Email>();
}

fn blocked<M: Sample>() {
    for (block, why) in [
        (Block::Credits, "insufficient_credits"),
        (Block::Suspension, "plan_limit"),
        (Block::Pause, "campaign_paused"),
    ] {
        let wait = || Command::Wait(block);
        let (row, effects) = transition(M::of(M::QUEUED).written(), wait(), now()).unwrap();
        assert_eq!(
            (row.seen().phase, row.seen().wake_at),
            (M::QUEUED, Some(now().plus_seconds(60)))
        );
        assert_eq!((code(&row).as_deref(), told(&effects)), (Some(why), None));
        let late = now().plus_seconds(M::BLOCKED_HOURS * 3600);
        let (row, effects) = transition(row, wait(), late.plus_seconds(-1)).unwrap();
        assert_eq!((row.seen().phase, told(&effects)), (M::QUEUED, None));
        let (row, effects) = transition(row, wait(), late).unwrap();
        assert_eq!(
            (row.seen().phase, told(&effects).unwrap().ending),
            (M::FAILED, Ending::NotArrived)
        );
    }
}

#[test]
fn a_blocked_workspaces_or_a_paused_campaigns_message_waits_for_a_while() {
    blocked::<Sms>();
    blocked::<Email>();
}

/// What its contact is told. With it its campaign is told that a message has ended, and that who was not reached may wait; nobody
/// is told anything else.
fn told(effects: &[Effect]) -> Option<Attempt> {
    let (tenant, env) = (TenantId(Uuid::from_u128(2)), Env::Live);
    let contact = TenantScoped::new(tenant, env, ContactId(Uuid::from_u128(9)));
    let campaign = TenantScoped::new(tenant, env, CampaignId(Uuid::from_u128(8)));
    let (mut attempts, mut hints) = (Vec::new(), Vec::new());
    for effect in effects {
        match effect {
            Effect::Fact(Fact::FinishAttempt { contact, attempt }) => attempts.push((*contact, attempt.clone())),
            Effect::Hint(hint) => hints.push(hint.clone()),
            Effect::Fact(_) | Effect::Work(_) => {}
        }
    }
    assert!(attempts.len() <= 1, "told twice: {effects:?}");
    let attempt = attempts.pop().map(|(who, attempt)| {
        assert_eq!(who, contact);
        attempt
    });
    let expected = match attempt.as_ref().map(|attempt| attempt.ending) {
        None => vec![],
        Some(Ending::Arrived) => vec![Hint::MessageEnded(campaign)],
        Some(_) => vec![Hint::ContactWaits(contact), Hint::MessageEnded(campaign)],
    };
    assert_eq!(hints, expected, "{effects:?}");
    attempt
}

/// Of a campaign's: what comes, and how its contact is told that it has ended, if it has.
fn ends<M: Sample>() -> Vec<(M, Command<M::Own>, Option<Ending>)> {
    let refused = |code| Command::Refused(Fault::new(code, "words"));
    let sending = || M::of(M::SENDING);
    let mut table = vec![
        (sending(), refused("provider_rejected"), Some(Ending::NotArrived)),
        (sending(), refused("invalid_number"), Some(Ending::Final)),
        (sending(), Command::Tick, Some(Ending::Final)),
        (sending(), busy(), None),
    ];
    for waiting in [M::of(M::QUEUED), M::tried()] {
        for (command, ending) in [
            (Command::Bar(MessageRejectReason::Dnc), Some(Ending::Final)),
            (Command::Bar(MessageRejectReason::CampaignOver), Some(Ending::Final)),
            (Command::Bar(MessageRejectReason::TooLate), Some(Ending::NotArrived)),
            (Command::Bar(MessageRejectReason::Sender), Some(Ending::NotArrived)),
            (
                Command::Bar(MessageRejectReason::NotConfigured),
                Some(Ending::NotArrived),
            ),
            (Command::Cancel, Some(Ending::Final)),
            (Command::Begin(None), None),
            (Command::Wait(Block::Pause), None),
        ] {
            table.push((waiting.clone(), command, ending));
        }
    }
    table.extend(M::own_ends());
    table
}

fn every_end<M: Sample>() {
    for (row, command, ending) in ends::<M>() {
        let row = row.written();
        let what = format!("{} {:?} {command:?}", M::NAME, row.seen().phase);
        let (after, effects) = transition(row.clone(), command.clone(), now()).unwrap();
        let attempt = told(&effects);
        assert_eq!(attempt.as_ref().map(|attempt| attempt.ending), ending, "{what}");
        let is_over = ending.is_some() || next_deadline(&row).is_none();
        assert_eq!(next_deadline(&after).is_none(), is_over, "{what}");
        if let Some(attempt) = attempt {
            let (id, arrived): (Uuid, _) = (row.seen().key.id.into(), attempt.ending == Ending::Arrived);
            assert_eq!(
                (attempt.row.0, attempt.reached, attempt.answered),
                (id, arrived, arrived),
                "{what}"
            );
        }
        let (_, effects) = transition(row.alone(), command, now()).unwrap();
        assert_eq!(told(&effects), None, "{what}: a message of its own tells nobody");
    }
}

#[test]
fn its_end_is_its_contacts_attempt() {
    every_end::<Sms>();
    every_end::<Email>();
}

fn runs<M: Sample>() {
    let runs = |row| {
        let (_, effects) = transition::<M>(row, Command::Begin(None), now()).unwrap();
        effects
            .into_iter()
            .filter(|effect| matches!(effect, Effect::Fact(Fact::Require(Guard::Runs(_)))))
            .collect::<Vec<_>>()
    };
    let row = M::of(M::QUEUED).written();
    let campaign = row.seen().campaign_id.unwrap();
    assert_eq!(runs(row.clone()), [Effect::Fact(Fact::Require(Guard::Runs(campaign)))]);
    assert_eq!(runs(row.alone()), []);
}

#[test]
fn a_campaigns_next_attempt_stands_only_while_it_runs() {
    runs::<Sms>();
    runs::<Email>();
}

fn lives<M: Sample>() -> impl Strategy<Value = Vec<(Command<M::Own>, i64)>> {
    let commands: Vec<_> = commands::<M>().into_iter().map(|(_, command)| command).collect();
    prop::collection::vec((prop::sample::select(commands), 0..M::PAUSE), 1..60)
}

/// Whatever happens in whatever order: settled at most once and by what was held; never handed over while it may have been
/// taken; a last word stands.
fn any_life<M: Sample>(steps: Vec<(Command<M::Own>, i64)>) -> Result<(), TestCaseError> {
    let (mut row, mut at) = (M::of(M::QUEUED), now());
    let (mut held, mut charged, mut settled, mut may_have_left) = (0, 0, 0, false);
    for (command, seconds) in steps {
        at = at.plus_seconds(seconds);
        let Ok((after, effects)) = transition(row.clone(), command.clone(), at) else {
            continue;
        };
        for effect in &effects {
            match effect {
                Effect::Fact(Fact::Move(movement)) => match movement.what {
                    What::Hold { cents, .. } => held += cents.0,
                    What::Settle { held: by, cost, .. } => {
                        settled += 1;
                        prop_assert_eq!(by.0, held);
                        charged += cost.0;
                    }
                    _ => prop_assert!(false, "{:?}", movement),
                },
                Effect::Fact(Fact::SaveSend(_)) => {
                    prop_assert!(!may_have_left, "handed over again");
                    may_have_left = true;
                }
                _ => {}
            }
        }
        if matches!(command, Command::Busy { .. }) && row.stage() == Stage::Sending {
            may_have_left = false;
        }
        let (before, seen) = (row.seen(), after.seen());
        prop_assert!(held <= M::PRICE.0 && settled <= 1);
        prop_assert_eq!(seen.cost_cents.0, charged);
        if M::LAST.contains(&before.phase) {
            prop_assert_eq!(seen.phase, before.phase);
        }
        let open = M::OPEN.contains(&seen.phase);
        prop_assert_eq!(seen.wake_at.is_some(), open, "{:?}", seen.phase);
        prop_assert!(open || held == 0 || settled == 1, "a hold is left open");
        prop_assert_eq!(next_deadline(&after).is_some(), open);
        row = after;
    }
    Ok(())
}

/// Its contact is told once that it has ended, and then it is at an end, or as good as that.
fn told_once<M: Sample>(steps: Vec<(Command<M::Own>, i64)>) -> Result<(), TestCaseError> {
    let (mut row, mut at, mut ends) = (M::of(M::QUEUED).written(), now(), 0);
    for (command, seconds) in steps {
        at = at.plus_seconds(seconds);
        let Ok((after, effects)) = transition(row.clone(), command, at) else {
            continue;
        };
        ends += usize::from(told(&effects).is_some());
        row = after;
        prop_assert!(ends <= 1);
        prop_assert_eq!(next_deadline(&row).is_none(), ends == 1, "{:?}", row.seen().phase);
    }
    Ok(())
}

/// Whatever happens after that: nothing that was said, or said about it, comes back, and it is not sent any more.
fn forgotten<M: Sample>(steps: Vec<(Command<M::Own>, i64)>, ends: usize) -> Result<(), TestCaseError> {
    let over = M::all().into_iter().map(|(_, row)| row);
    let over: Vec<M> = over
        .filter(|row| transition(row.clone(), Command::Delete, now()).is_ok())
        .collect();
    let (mut row, _) = transition(over[ends % over.len()].clone(), Command::Delete, now()).unwrap();
    let mut at = now();
    for (command, seconds) in steps {
        at = at.plus_seconds(seconds);
        let Ok((after, effects)) = transition(row.clone(), command, at) else {
            continue;
        };
        let sends = |effect: &Effect| matches!(effect, Effect::Work(_) | Effect::Fact(Fact::SaveSend(_)));
        prop_assert!(!effects.iter().any(sends), "{:?}", effects);
        row = after;
        let left = format!("{row:?}");
        for said in ["Hello", "words", "gone"] {
            prop_assert!(!left.contains(said), "{} in {}", said, left);
        }
        prop_assert!(row.seen().deleted_at.is_some());
    }
    Ok(())
}

fn two_ticks<M: Sample>(seconds: i64) -> Result<(), TestCaseError> {
    let at = now().plus_seconds(seconds);
    for (_, row) in M::all() {
        let (once, _) = transition(row, Command::Tick, at).unwrap();
        let (twice, effects) = transition(once.clone(), Command::Tick, at).unwrap();
        prop_assert_eq!(once, twice);
        prop_assert!(effects.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_life_of_an_sms(steps in lives::<Sms>()) {
        any_life::<Sms>(steps)?;
    }

    #[test]
    fn any_life_of_an_email(steps in lives::<Email>()) {
        any_life::<Email>(steps)?;
    }

    #[test]
    fn its_contact_is_told_once_by_sms(steps in lives::<Sms>()) {
        told_once::<Sms>(steps)?;
    }

    #[test]
    fn its_contact_is_told_once_by_email(steps in lives::<Email>()) {
        told_once::<Email>(steps)?;
    }

    #[test]
    fn what_is_erased_does_not_come_back(sms in lives::<Sms>(), email in lives::<Email>(), ends in 0..20_usize) {
        forgotten::<Sms>(sms, ends)?;
        forgotten::<Email>(email, ends)?;
    }

    #[test]
    fn two_ticks_are_one(seconds in 0..2000i64) {
        two_ticks::<Sms>(seconds)?;
        two_ticks::<Email>(seconds)?;
    }
}
