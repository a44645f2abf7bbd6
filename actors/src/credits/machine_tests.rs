use super::*;
use crate::credits::chain;
use entities::{
    ids::{LedgerEntryId, TenantId},
    ledger::Model,
    values::Env,
};
use proptest::prelude::*;

const OWNER: (TenantId, Env) = (TenantId(Uuid::from_u128(1)), Env::Live);
const SUBJECT: Uuid = Uuid::from_u128(7);

fn now() -> Moment {
    Moment::from_millis(1_800_000_000_000)
}
fn terms() -> Terms {
    Terms {
        warning_threshold: Some(Cents(100)),
        ..Terms::default()
    }
}
fn account(balance: i64, held: i64) -> Account {
    Account {
        balance_cents: Cents(balance),
        held_cents: Cents(held),
        ..terms().opening(OWNER.0, OWNER.1)
    }
}
fn posted(account: Account, movement: Movement) -> Posted {
    post(account, &movement, &terms(), now()).unwrap()
}
fn top_up(cents: i64) -> Movement {
    Movement::top_up(OWNER, SUBJECT, Cents(cents), "pi_1".into())
}
fn hold(cents: i64) -> Movement {
    Movement::hold(OWNER, SUBJECT, Cents(cents))
}
fn settle(held: i64, cost: i64) -> Movement {
    Movement::settle(OWNER, SUBJECT, Cents(held), Cents(cost))
}
fn adjust(cents: i64) -> Movement {
    Movement::adjust(OWNER, Cents(cents), "a word".into())
}
fn refund(cents: i64) -> Movement {
    Movement::refund(OWNER, SUBJECT, Cents(cents))
}

#[test]
fn every_movement_books_what_the_table_says() {
    use Book::{Available, Held, Operator, Processor, Revenue};
    // Balance and held before; the movement; its entries; balance and held after.
    type Row = ((i64, i64), Movement, Vec<(Kind, Book, Book, i64)>, (i64, i64));
    let table: Vec<Row> = vec![
        (
            (0, 0),
            top_up(500),
            vec![(Kind::Topup, Processor, Available, 500)],
            (500, 0),
        ),
        (
            (500, 100),
            hold(400),
            vec![(Kind::Hold, Available, Held, 400)],
            (500, 500),
        ),
        ((500, 500), hold(0), vec![], (500, 500)),
        ((-5, 0), hold(0), vec![], (-5, 0)),
        (
            (500, 400),
            settle(400, 150),
            vec![
                (Kind::Charge, Held, Revenue, 150),
                (Kind::Release, Held, Available, 250),
            ],
            (350, 0),
        ),
        (
            (500, 400),
            settle(400, 400),
            vec![(Kind::Charge, Held, Revenue, 400)],
            (100, 0),
        ),
        (
            (500, 400),
            settle(400, 0),
            vec![(Kind::Release, Held, Available, 400)],
            (500, 0),
        ),
        (
            (500, 60),
            settle(60, 600),
            vec![
                (Kind::Charge, Held, Revenue, 60),
                (Kind::Charge, Available, Revenue, 540),
            ],
            (-100, 0),
        ),
        (
            (500, 0),
            settle(0, 20),
            vec![(Kind::Charge, Available, Revenue, 20)],
            (480, 0),
        ),
        ((500, 0), settle(0, 0), vec![], (500, 0)),
        (
            (500, 0),
            refund(200),
            vec![(Kind::Refund, Available, Processor, 200)],
            (300, 0),
        ),
        (
            (500, 0),
            adjust(50),
            vec![(Kind::Adjustment, Operator, Available, 50)],
            (550, 0),
        ),
        (
            (500, 0),
            adjust(-50),
            vec![(Kind::Adjustment, Available, Operator, 50)],
            (450, 0),
        ),
        ((500, 0), Movement::warn(OWNER, None), vec![], (500, 0)),
    ];
    for (row, ((balance, held), movement, entries, after)) in table.into_iter().enumerate() {
        let posted = posted(account(balance, held), movement);
        let found: Vec<_> = posted
            .entries
            .iter()
            .map(|entry| (entry.kind, entry.from, entry.to, entry.cents.0))
            .collect();
        assert_eq!(found, entries, "row {row}");
        let stands = (posted.account.balance_cents.0, posted.account.held_cents.0);
        assert_eq!(stands, after, "row {row}");
    }
}

#[test]
fn a_hold_above_what_is_available_is_refused() {
    assert!(post(account(500, 100), &hold(401), &terms(), now()).is_err());
    assert!(post(account(0, 0), &hold(1), &terms(), now()).is_err());
}

#[test]
fn it_is_told_once_per_drop() {
    let types = |posted: &Posted| posted.events.iter().map(Event::event_type).collect::<Vec<_>>();
    let low = posted(account(100, 0), settle(0, 1));
    assert_eq!((types(&low), low.turn), (vec!["credits.low_balance"], None));
    let lower = posted(low.account, settle(0, 1));
    assert_eq!((types(&lower), lower.turn), (vec![], None));
    let gone = posted(lower.account, settle(0, 98));
    assert_eq!(
        (types(&gone), gone.turn),
        (vec!["credits.depleted"], Some(Turn::Depleted))
    );
    assert_eq!(gone.account.depleted_at, Some(now()));
    let worse = posted(gone.account, settle(0, 10));
    assert_eq!((types(&worse), worse.turn), (vec![], None));
    let part = posted(worse.account, top_up(10));
    assert_eq!((types(&part), part.turn), (vec!["credits.topup_succeeded"], None));
    let back = posted(part.account, top_up(500));
    assert_eq!(
        (types(&back), back.turn),
        (vec!["credits.topup_succeeded"], Some(Turn::Refilled))
    );
    assert_eq!(back.account.depleted_at, None);
    let both = posted(back.account, adjust(-500));
    assert_eq!(types(&both), ["credits.low_balance", "credits.depleted"]);
    let quiet = posted(
        posted(account(500, 0), Movement::warn(OWNER, None)).account,
        settle(0, 450),
    );
    assert_eq!(types(&quiet), Vec::<&str>::new());
}

#[derive(Clone, Debug)]
enum Act {
    TopUp(i64),
    Dial(i64),
    /// Ends one of the open calls, at that part of its hold in percent.
    End(usize, i64),
    Adjust(i64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (1..2000i64).prop_map(Act::TopUp),
        (0..300i64).prop_map(Act::Dial),
        (0..20usize, 0..=100i64).prop_map(|(which, part)| Act::End(which, part)),
        (-50..200i64).prop_map(Act::Adjust),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    /// All books together are zero, the account is the sum of its entries, holds close once, and calls whose hold is their
    /// longest cost take no balance below zero.
    #[test]
    fn the_ledger_adds_up(acts in acts()) {
        let (mut account, mut open, mut entries) = (account(0, 0), Vec::new(), Vec::<Entry>::new());
        let mut given = 0;
        let (mut lows, mut depletions) = (0, 0);
        for act in acts {
            let movement = match act {
                Act::TopUp(cents) => top_up(cents),
                Act::Dial(cents) => hold(cents),
                Act::End(which, part) => {
                    if open.is_empty() { continue }
                    let held: i64 = open.remove(which % open.len());
                    settle(held, held * part / 100)
                }
                Act::Adjust(cents) if cents < 0 && account.available().0 < -cents => continue,
                Act::Adjust(cents) => adjust(cents),
            };
            let available = account.available().0;
            let Ok(after) = post(account.clone(), &movement, &terms(), now()) else {
                let too_much = matches!(movement.what, What::Hold { cents, .. } if cents.0 > available);
                prop_assert!(too_much);
                continue;
            };
            match movement.what {
                What::Hold { cents, .. } => open.push(cents.0),
                What::TopUp { cents, .. } | What::Adjust { cents, .. } => given += cents.0,
                _ => {}
            }
            lows += after.events.iter().filter(|event| event.event_type() == "credits.low_balance").count();
            depletions += after.events.iter().filter(|event| event.event_type() == "credits.depleted").count();
            entries.extend(after.entries);
            account = after.account;
            prop_assert!(account.available().0 >= 0);
            prop_assert_eq!(account.held_cents.0, open.iter().sum::<i64>());
        }
        let charged: i64 = entries.iter().filter(|entry| entry.kind == Kind::Charge).map(|entry| entry.cents.0).sum();
        prop_assert_eq!(account.balance_cents.0, given - charged);
        let mut before = 0;
        let (mut expected_lows, mut expected_depletions) = (0, 0);
        for entry in &entries {
            let after = entry.balance_after.0;
            expected_lows += usize::from(before >= 100 && after < 100);
            expected_depletions += usize::from(before > 0 && after <= 0);
            before = after;
        }
        prop_assert_eq!((lows, depletions), (expected_lows, expected_depletions));
    }
}

fn chained(count: i64) -> Vec<Model> {
    let mut before = String::new();
    (1..=count)
        .map(|n| {
            let mut entry = Model {
                tenant_id: OWNER.0,
                env: OWNER.1,
                n,
                id: LedgerEntryId(Uuid::from_u128(n as u128)),
                kind: Kind::Topup,
                from_book: Book::Processor,
                to_book: Book::Available,
                cents: Cents(n * 10),
                subject_id: None,
                note: Some("pi_1".into()),
                balance_after_cents: Cents(n * 10),
                held_after_cents: Cents(0),
                hash: String::new(),
                seq: n,
                created_at: now(),
            };
            entry.hash = chain::hash(&before, &entry);
            before.clone_from(&entry.hash);
            entry
        })
        .collect()
}

#[test]
fn a_changed_entry_is_found() {
    assert_eq!(chain::first_broken(&chained(5)), None);
    let mut changed = chained(5);
    changed[2].cents = Cents(31);
    assert_eq!(chain::first_broken(&changed), Some(3));
    let mut missing = chained(5);
    missing.remove(1);
    assert_eq!(chain::first_broken(&missing), Some(3));
    let mut added = chained(5);
    let extra = added[4].clone();
    added.push(Model { n: 6, ..extra });
    assert_eq!(chain::first_broken(&added), Some(6));
}
