//! What a top-up does, line by line; then what holds for every top-up, whatever its processor tells and in whatever order.
use super::*;
use entities::ledger::What;
use proptest::prelude::*;
use uuid::Uuid;

const AMOUNT: i64 = 2_500;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

/// Born at 0, for 25 dollars, with live keys.
fn new() -> Topup {
    let asked = NewTopup {
        id: Uuid::from_u128(7).into(),
        owner: (Uuid::from_u128(1).into(), Env::Live),
        amount_cents: Cents(AMOUNT),
        currency: "USD".into(),
        success_url: None,
        cancel_url: None,
    };
    born(asked, at(0))
}

fn payment() -> Payment {
    Payment {
        intent_id: "pi_1".into(),
        cents: Cents(AMOUNT),
        currency: "usd".into(),
    }
}
fn told(news: News) -> Command {
    Command::Told {
        session_id: Some("cs_1".into()),
        news,
    }
}
fn opened() -> Command {
    Command::Opened {
        session_id: "cs_1".into(),
        checkout_url: "https://pay.example/cs_1".into(),
    }
}
fn paid() -> Command {
    told(News::Paid(payment()))
}
fn refunded(total: i64) -> Command {
    refunded_at(total, 0)
}
/// At that second, by the processor's clock.
fn refunded_at(total: i64, seconds: i64) -> Command {
    let news = News::Refunded {
        payment: payment(),
        total: Cents(total),
        at: at(seconds),
    };
    Command::Told { session_id: None, news }
}
fn failed_refund(id: &str, cents: i64, seconds: i64) -> Command {
    let news = News::RefundFailed {
        refund_id: id.into(),
        intent_id: "pi_1".into(),
        cents: Cents(cents),
        at: at(seconds),
    };
    Command::Told { session_id: None, news }
}

const STATES: [&str; 8] = [
    "new",
    "pending",
    "failed",
    "expired",
    "succeeded",
    "partly refunded",
    "refunded",
    "come back",
];

fn after(row: Topup, command: Command, seconds: i64) -> Topup {
    transition(row, command, at(seconds)).unwrap().0
}

fn state(name: &str) -> Topup {
    match name {
        "new" => new(),
        "pending" => after(new(), opened(), 1),
        "failed" => after(state("pending"), told(News::Failed), 10),
        "expired" => after(state("pending"), told(News::Expired), 23 * HOUR),
        "succeeded" => after(state("pending"), paid(), 10),
        "partly refunded" => after(state("succeeded"), refunded(700), 20),
        "refunded" => after(state("succeeded"), refunded(AMOUNT), 20),
        "come back" => after(state("partly refunded"), failed_refund("re_1", 700, 5), 30),
        _ => panic!("no sample of {name}"),
    }
}

/// Every command; a new one makes the compiler ask for its place here.
fn commands() -> Vec<Command> {
    let next = |command: &Command| {
        Some(match command {
            Command::Tick => opened(),
            Command::Opened { .. } => Command::Refused,
            Command::Refused => paid(),
            Command::Told { news, .. } => match news {
                News::Paid(_) => told(News::Failed),
                News::Failed => told(News::Expired),
                News::Expired => refunded(700),
                News::Refunded { .. } => failed_refund("re_9", 100, 9),
                News::RefundFailed { .. } => return None,
            },
        })
    };
    std::iter::successors(Some(Command::Tick), next).collect()
}

#[derive(Clone, Debug)]
enum Expected {
    /// Its status, when the processor is asked, and the effects in their order.
    To(Status, Option<i64>, &'static str),
    Unchanged,
    /// For what is told later.
    Noted,
}
use Expected::{Noted, To, Unchanged};

/// (states, command, at which second, expected)
type Line = (&'static [&'static str], Command, i64, Expected);

#[rustfmt::skip]
fn table() -> Vec<Line> {
    use {Command::{Refused, Tick}, Status::*};
    const WAITS: &[&str] = &["new", "pending"];
    const UNPAID: &[&str] = &["failed", "expired"];
    const PAID: &[&str] = &["succeeded", "partly refunded", "refunded", "come back"];
    let failed = || told(News::Failed);
    let expired = || told(News::Expired);
    vec![
        // pending: the processor is asked after 15 minutes, then whenever the age has doubled, and once when the page has closed
        (WAITS, Tick, 899, Unchanged),
        (&["pending"], Tick, 900, To(Pending, Some(1_800), "ask cs_1")),
        (&["pending"], Tick, 5 * HOUR, To(Pending, Some(10 * HOUR), "ask cs_1")),
        (&["pending"], Tick, 22 * HOUR, To(Pending, Some(23 * HOUR + 300), "ask cs_1")),
        (&["pending"], Tick, 24 * HOUR, To(Pending, Some(2 * DAY), "ask cs_1")),
        (&["pending"], Tick, 10 * DAY, To(Pending, Some(11 * DAY), "ask cs_1")),
        (&["pending"], Tick, 31 * DAY, To(Expired, None, "")),
        // one whose page nobody has seen is not asked for, and fails when it would have closed
        (&["new"], Tick, 900, To(Pending, Some(23 * HOUR), "")),
        (&["new"], Tick, 23 * HOUR, To(Failed, None, "")),

        // pending: its page
        (&["new"], opened(), 1, To(Pending, Some(900), "")),
        (&["pending"], opened(), 2, Unchanged),
        (WAITS, Refused, 2, To(Failed, None, "")),

        // pending -> succeeded | failed | expired
        (WAITS, paid(), 10, To(Succeeded, None, "top up 2500 by pi_1")),
        (WAITS, failed(), 10, To(Failed, None, "")),
        (WAITS, expired(), 23 * HOUR, To(Expired, None, "")),
        // a refund that came first: paid, then paid back
        (WAITS, refunded(700), 10, To(Succeeded, None, "top up 2500 by pi_1, refund 700")),
        (WAITS, refunded(AMOUNT), 10, To(Succeeded, None, "top up 2500 by pi_1, refund 2500")),
        (WAITS, refunded(9_999), 10, To(Succeeded, None, "top up 2500 by pi_1, refund 2500")),

        // failed, expired: paid after all
        (UNPAID, paid(), 2 * DAY, To(Succeeded, None, "top up 2500 by pi_1")),
        (UNPAID, refunded(700), 2 * DAY, To(Succeeded, None, "top up 2500 by pi_1, refund 700")),
        (UNPAID, failed(), 2 * DAY, Unchanged),
        (UNPAID, expired(), 2 * DAY, Unchanged),
        (UNPAID, opened(), 2 * DAY, Unchanged),
        (UNPAID, Refused, 2 * DAY, Unchanged),
        (UNPAID, Tick, 40 * DAY, Unchanged),

        // succeeded: final but for refunds, of which each tells the sum
        (PAID, paid(), 2 * DAY, Unchanged),
        (PAID, failed(), 2 * DAY, Unchanged),
        (PAID, expired(), 2 * DAY, Unchanged),
        (PAID, opened(), 2 * DAY, Unchanged),
        (PAID, Refused, 2 * DAY, Unchanged),
        (PAID, Tick, 40 * DAY, Unchanged),
        (&["succeeded"], refunded(700), 2 * DAY, To(Succeeded, None, "refund 700")),
        (&["partly refunded"], refunded(700), 2 * DAY, Unchanged),
        (&["partly refunded"], refunded(699), 2 * DAY, Unchanged),
        (&["partly refunded"], refunded(1_000), 2 * DAY, To(Succeeded, None, "refund 300")),
        (&["partly refunded"], refunded(9_999), 2 * DAY, To(Succeeded, None, "refund 1800")),
        (&["refunded"], refunded(700), 2 * DAY, Unchanged),
        (&["refunded"], refunded(9_999), 2 * DAY, Unchanged),
        (&["succeeded"], refunded(0), 2 * DAY, Noted),
        (&["partly refunded", "refunded", "come back"], refunded(0), 2 * DAY, Unchanged),

        // a refund that failed: what it took comes back, once
        (&["partly refunded"], failed_refund("re_1", 700, 5), 2 * DAY, To(Succeeded, None, "refund failed 700")),
        (&["partly refunded"], failed_refund("re_1", 300, 5), 2 * DAY, To(Succeeded, None, "refund failed 300")),
        (&["partly refunded"], failed_refund("re_1", 9_999, 5), 2 * DAY, To(Succeeded, None, "refund failed 700")),
        (&["refunded"], failed_refund("re_1", 700, 5), 2 * DAY, To(Succeeded, None, "refund failed 700")),
        (&["come back"], failed_refund("re_1", 700, 5), 2 * DAY, Unchanged),
        (&["come back"], refunded(700), 2 * DAY, Unchanged), // an older sum, told late
        (&["come back"], refunded_at(700, 9), 2 * DAY, To(Succeeded, None, "refund 700")), // another refund
        // of one whose sum was not told yet it is noted, and counts with that
        (WAITS, failed_refund("re_1", 700, 5), 10, Noted),
        (UNPAID, failed_refund("re_1", 700, 5), 2 * DAY, Noted),
        (&["succeeded"], failed_refund("re_1", 700, 5), 2 * DAY, Noted),
    ]
}

fn named(effect: &Effect) -> String {
    match effect {
        Effect::Ask { session_id } => format!("ask {session_id}"),
        Effect::Move(movement) => match &movement.what {
            What::TopUp {
                cents,
                payment_intent_id,
                ..
            } => format!("top up {} by {payment_intent_id}", cents.0),
            What::Refund { cents, .. } => format!("refund {}", cents.0),
            What::RefundFailed { cents, .. } => format!("refund failed {}", cents.0),
            other => panic!("a top-up does not move {other:?}"),
        },
    }
}

#[test]
fn every_line_of_the_table() {
    for (states, command, seconds, expected) in table() {
        for name in states {
            let before = state(name);
            let (row, effects) = transition(before.clone(), command.clone(), at(seconds)).unwrap();
            let line = format!("{name}, {command:?} at {seconds}");
            let effects: Vec<_> = effects.iter().map(named).collect();
            match expected {
                Unchanged => assert_eq!((row, effects.len()), (before, 0), "{line}"),
                Noted => {
                    assert_ne!(row, before, "{line}");
                    let refunds = before.refunds.clone();
                    assert_eq!((Topup { refunds, ..row }, effects.len()), (before, 0), "{line}");
                }
                To(status, ask_at, expected) => {
                    assert_eq!(
                        (row.status, row.ask_at, effects.join(", ").as_str()),
                        (status, ask_at.map(at), expected),
                        "{line}"
                    );
                    assert_eq!(row.settled_at.is_some(), status == Status::Succeeded, "{line}");
                    assert_eq!(
                        row.error.is_some(),
                        matches!(status, Status::Failed | Status::Expired),
                        "{line}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_table_knows_every_state_and_command() {
    let kind = |command: &Command| match command {
        Command::Told { news, .. } => format!(
            "{:?}{:?}",
            std::mem::discriminant(command),
            std::mem::discriminant(news)
        ),
        other => format!("{:?}", std::mem::discriminant(other)),
    };
    let table = table();
    for name in STATES {
        for command in commands() {
            let known = table
                .iter()
                .any(|(states, known, ..)| states.contains(&name) && kind(known) == kind(&command));
            assert!(known, "{name}, {command:?}");
        }
    }
}

#[test]
fn what_does_not_fit_moves_nothing() {
    let other = |change: fn(&mut Payment)| {
        let mut payment = payment();
        change(&mut payment);
        payment
    };
    let amounts = [
        other(|payment| payment.cents = Cents(AMOUNT - 1)),
        other(|payment| payment.cents = Cents(AMOUNT + 1)),
        other(|payment| payment.cents = Cents(0)),
        other(|payment| payment.currency = "eur".into()),
        other(|payment| payment.currency = String::new()),
    ];
    for name in STATES {
        for payment in amounts.clone() {
            let total = Cents(700);
            for news in [
                News::Paid(payment.clone()),
                News::Refunded {
                    payment: payment.clone(),
                    total,
                    at: at(99),
                },
            ] {
                assert_eq!(
                    transition(state(name), told(news), at(99)),
                    Err(Misfit::Amount),
                    "{name} {payment:?}"
                );
            }
        }
        let elsewhere = |news| Command::Told {
            session_id: Some("cs_2".into()),
            news,
        };
        if name != "new" {
            for news in [News::Paid(payment()), News::Failed, News::Expired] {
                assert_eq!(
                    transition(state(name), elsewhere(news), at(99)),
                    Err(Misfit::Session),
                    "{name}"
                );
            }
        }
    }
    let second = other(|payment| payment.intent_id = "pi_2".into());
    for name in ["succeeded", "partly refunded", "refunded"] {
        let total = Cents(AMOUNT);
        for news in [
            News::Paid(second.clone()),
            News::Refunded {
                payment: second.clone(),
                total,
                at: at(99),
            },
            News::RefundFailed {
                refund_id: "re_1".into(),
                intent_id: "pi_2".into(),
                cents: total,
                at: at(99),
            },
        ] {
            assert_eq!(
                transition(state(name), told(news), at(99)),
                Err(Misfit::Payment),
                "{name}"
            );
        }
    }
    let page = Command::Opened {
        session_id: "cs_2".into(),
        checkout_url: "https://pay.example/cs_2".into(),
    };
    assert_eq!(transition(state("pending"), page, at(2)), Err(Misfit::Session));
}

#[test]
fn a_page_that_a_crash_lost_is_the_first_one_told_of() {
    let row = after(new(), paid(), 10);
    assert_eq!(row.processor_session_id.as_deref(), Some("cs_1"));
}

#[test]
fn the_sandbox_pays_all_but_amounts_that_end_in_02() {
    for (cents, expected) in [
        (100, Status::Succeeded),
        (1_002, Status::Failed),
        (10_200, Status::Succeeded),
        (102, Status::Failed),
    ] {
        let row = Topup {
            amount_cents: Cents(cents),
            processor: Processor::Sandbox,
            ..new()
        };
        let command = sandbox(&row);
        let (row, effects) = transition(row, command, at(0)).unwrap();
        assert_eq!(
            (row.status, effects.len()),
            (expected, usize::from(expected == Status::Succeeded)),
            "{cents}"
        );
        assert!(row.processor_session_id.is_none() && row.ask_at.is_none());
    }
    let asked = NewTopup {
        id: Uuid::from_u128(7).into(),
        owner: (Uuid::from_u128(1).into(), Env::Test),
        amount_cents: Cents(100),
        currency: "USD".into(),
        success_url: None,
        cancel_url: None,
    };
    let row = born(asked, at(0));
    assert_eq!(
        (row.processor, row.ask_at, row.expires_at),
        (Processor::Sandbox, None, None)
    );
}

// What holds for every top-up.

fn any_command() -> impl Strategy<Value = Command> {
    let payments = prop_oneof![
        8 => Just(payment()),
        1 => (0..5_000_i64).prop_map(|cents| Payment { cents: Cents(cents), ..payment() }),
        1 => Just(Payment { currency: "eur".into(), ..payment() }),
        1 => Just(Payment { intent_id: "pi_2".into(), ..payment() }),
    ];
    let sessions = prop_oneof![2 => Just(None), 4 => Just(Some("cs_1".to_owned())), 1 => Just(Some("cs_2".to_owned()))];
    let news = (payments, 0..5_000_i64, 0..20_i64, 0..6_u8).prop_map(|(payment, cents, seconds, kind)| match kind {
        0 => News::Paid(payment),
        1 => News::Failed,
        2 => News::Expired,
        3 => News::RefundFailed {
            refund_id: format!("re_{}", cents % 5),
            intent_id: payment.intent_id,
            cents: Cents(cents),
            at: at(seconds),
        },
        _ => News::Refunded {
            payment,
            total: Cents(cents),
            at: at(seconds),
        },
    });
    prop_oneof![
        1 => Just(Command::Tick),
        1 => Just(opened()),
        1 => Just(Command::Refused),
        6 => (sessions, news).prop_map(|(session_id, news)| Command::Told { session_id, news }),
    ]
}

/// A whole life: each step's row, and all movements. Time goes on by up to three days a step.
fn life(steps: &[(Command, i64)]) -> (Vec<Topup>, Vec<What>) {
    let (mut row, mut now, mut rows, mut moved) = (new(), 0, Vec::new(), Vec::new());
    for (command, by) in steps {
        now += by;
        if let Ok((next, effects)) = transition(row.clone(), command.clone(), at(now)) {
            row = next;
            moved.extend(effects.into_iter().filter_map(|effect| match effect {
                Effect::Move(movement) => Some(movement.what),
                Effect::Ask { .. } => None,
            }));
        }
        rows.push(row.clone());
    }
    (rows, moved)
}

fn sums(moved: &[What]) -> (usize, i64, i64) {
    moved.iter().fold((0, 0, 0), |(count, paid, back), what| match what {
        What::TopUp { cents, .. } => (count + 1, paid + cents.0, back),
        What::Refund { cents, .. } => (count, paid, back + cents.0),
        What::RefundFailed { cents, .. } => (count, paid, back - cents.0),
        other => panic!("a top-up does not move {other:?}"),
    })
}

fn steps() -> impl Strategy<Value = Vec<(Command, i64)>> {
    prop::collection::vec((any_command(), 0..3 * DAY), 0..40)
}

proptest! {
    #[test]
    fn it_is_credited_once_at_most_and_exactly_when_it_succeeded(steps in steps()) {
        let (rows, moved) = life(&steps);
        let (count, paid, _) = sums(&moved);
        let succeeded = rows.last().is_some_and(|row| row.status == Status::Succeeded);
        prop_assert_eq!((count, paid), if succeeded { (1, AMOUNT) } else { (0, 0) });
    }

    #[test]
    fn what_was_paid_back_is_what_the_row_says_and_never_more_than_was_paid(steps in steps()) {
        let (rows, moved) = life(&steps);
        let (_, paid, back) = sums(&moved);
        prop_assert!((0..=paid).contains(&back));
        prop_assert_eq!(back, rows.last().map_or(0, |row| row.refunded_cents.0));
        let moves_something = |what: &What| !matches!(what, What::Refund { cents, .. } | What::RefundFailed { cents, .. } if cents.0 <= 0);
        prop_assert!(moved.iter().all(moves_something));
    }

    /// Two refunds, of which the first failed: told in any order, the second is what was paid back.
    #[test]
    fn refunds_and_their_failures_may_be_told_in_any_order(
        shuffled in Just([0_usize, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let notices = [
            paid(), refunded_at(700, 1), failed_refund("re_1", 700, 2), refunded_at(500, 3), failed_refund("re_1", 700, 2),
        ];
        let row = shuffled.iter().fold(state("pending"), |row, nth| after(row, notices[*nth].clone(), 20));
        prop_assert_eq!((row.status, row.refunded_cents), (Status::Succeeded, Cents(500)));
    }

    /// From before the times of sums were kept: a larger one is later.
    #[test]
    fn an_old_sum_that_is_told_again_moves_nothing(total in 0..700_i64, seconds in 0..99_i64) {
        let before = state("partly refunded");
        let refunds = Refunds { told_cents: Cents(700), ..Refunds::default() };
        let before = Topup { refunds, ..before };
        let (row, effects) = transition(before.clone(), refunded_at(total, seconds), at(2 * DAY)).unwrap();
        prop_assert_eq!((row, effects.len()), (before, 0));
    }

    /// Notices that fit, in any order and with any repeats: the same end.
    #[test]
    fn order_and_repeats_make_no_difference(
        order in prop::collection::vec(0..5_usize, 0..30),
        shuffled in Just([0_usize, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let notices = [paid(), told(News::Failed), told(News::Expired), refunded(700), refunded(1_500)];
        let steps: Vec<_> = order.into_iter().chain(shuffled).map(|n| (notices[n].clone(), 1)).collect();
        let (rows, moved) = life(&steps);
        prop_assert_eq!(sums(&moved), (1, AMOUNT, 1_500));
        let last = rows.last().unwrap();
        prop_assert_eq!((last.status, last.refunded_cents), (Status::Succeeded, Cents(1_500)));
    }

    #[test]
    fn the_same_twice_equals_once(steps in steps(), command in any_command()) {
        let (rows, _) = life(&steps);
        let row = rows.last().cloned().unwrap_or_else(new);
        if let Ok((once, _)) = transition(row, command.clone(), at(200 * DAY)) {
            let twice = transition(once.clone(), command, at(200 * DAY));
            prop_assert_eq!(twice, Ok((once, Vec::new())));
        }
    }

    /// Whatever is pending is looked at again some day, and in the end it is over.
    #[test]
    fn nothing_is_pending_for_ever(steps in steps()) {
        let (rows, _) = life(&steps);
        for row in &rows {
            prop_assert_eq!(row.ask_at.is_some(), row.status == Status::Pending);
        }
        let mut row = rows.last().cloned().unwrap_or_else(new);
        for questions in 0.. {
            let Some(due) = row.ask_at else { break };
            prop_assert!(questions < 60, "{row:?}");
            let (next, _) = transition(row, Command::Tick, due).unwrap();
            prop_assert!(next.ask_at.is_none_or(|at| at > due), "a tick at its time changes something");
            row = next;
        }
        prop_assert_ne!(row.status, Status::Pending);
    }
}
