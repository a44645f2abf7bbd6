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
/// Something waits that costs so much.
fn short(cents: i64) -> Movement {
    Movement::short(OWNER, Cents(cents))
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
            (-100, 0),
            Movement::refund_failed(OWNER, Uuid::from_u128(9), Cents(200)),
            vec![(Kind::RefundFailed, Processor, Available, 200)],
            (100, 0),
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
        ((500, 0), short(501), vec![], (500, 0)),
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

/// What a movement makes of an account that is in funds (`true`) or depleted.
#[test]
fn every_line_of_the_table_about_depletion() {
    const IN_FUNDS: bool = true;
    const DEPLETED: bool = false;
    // Before: in funds or not, balance and held; the movement; in funds afterwards, and whether that is told.
    let table = [
        // it falls to zero, or below
        ((IN_FUNDS, 500, 0), settle(0, 499), IN_FUNDS, false),
        ((IN_FUNDS, 500, 0), settle(0, 500), DEPLETED, true),
        ((IN_FUNDS, 500, 60), settle(60, 600), DEPLETED, true),
        ((IN_FUNDS, 500, 0), adjust(-500), DEPLETED, true),
        ((IN_FUNDS, 500, 0), refund(700), DEPLETED, true),
        // also with calls under way: nothing of what they hold is the tenant's any more
        ((IN_FUNDS, 500, 400), settle(100, 500), DEPLETED, true),
        // what is set aside is there still
        ((IN_FUNDS, 500, 400), hold(100), IN_FUNDS, false),
        // one that never had anything
        ((IN_FUNDS, 0, 0), adjust(-50), DEPLETED, true),
        ((IN_FUNDS, 0, 0), settle(0, 20), DEPLETED, true),
        ((IN_FUNDS, 0, 0), settle(0, 0), IN_FUNDS, false),
        ((IN_FUNDS, 0, 0), short(1), DEPLETED, true),
        // something waits that all of it does not cover
        ((IN_FUNDS, 599, 0), short(600), DEPLETED, true),
        ((IN_FUNDS, 600, 0), short(600), IN_FUNDS, false),
        // what is held may come back
        ((IN_FUNDS, 600, 600), short(600), IN_FUNDS, false),
        ((IN_FUNDS, 599, 599), short(600), DEPLETED, true),
        // money comes in
        ((DEPLETED, 0, 0), top_up(1), IN_FUNDS, false),
        ((DEPLETED, -5, 0), top_up(6), IN_FUNDS, false),
        ((DEPLETED, -5, 0), top_up(5), DEPLETED, false),
        ((DEPLETED, 599, 0), top_up(1), IN_FUNDS, false),
        ((DEPLETED, 599, 0), adjust(1), IN_FUNDS, false),
        // what live calls give back is no money that comes in, and no fall is told twice
        ((DEPLETED, 599, 400), settle(400, 0), DEPLETED, false),
        ((DEPLETED, 599, 400), settle(400, 700), DEPLETED, false),
        ((DEPLETED, 599, 0), short(700), DEPLETED, false),
        ((DEPLETED, 599, 0), adjust(-599), DEPLETED, false),
        ((DEPLETED, 0, 0), Movement::warn(OWNER, None), DEPLETED, false),
    ];
    for (row, ((is_in_funds, balance, held), movement, expected, told)) in table.into_iter().enumerate() {
        let before = Account {
            depleted_at: (!is_in_funds).then(|| Moment::from_millis(7)),
            ..account(balance, held)
        };
        let after = posted(before.clone(), movement);
        let turn = match (is_in_funds, expected) {
            (IN_FUNDS, DEPLETED) => Some(Turn::Depleted),
            (DEPLETED, IN_FUNDS) => Some(Turn::Refilled),
            _ => None,
        };
        let since = match turn {
            Some(Turn::Depleted) => Some(now()),
            Some(Turn::Refilled) => None,
            None => before.depleted_at,
        };
        assert_eq!((after.turn, after.account.depleted_at), (turn, since), "row {row}");
        let count = after.events.iter().filter(is_depletion).count();
        assert_eq!(count, usize::from(told), "row {row}");
    }
}

/// The workspace of 599 cents whose calls hold 600: it is told, pays one cent, and goes on.
#[test]
fn whoever_pays_because_of_the_event_goes_on_and_is_told_if_it_was_not_enough() {
    let told = posted(account(598, 0), short(600));
    assert!(told.events.iter().any(|event| is_depletion(&event)));
    let one_more = posted(told.account, top_up(1));
    assert_eq!(one_more.turn, Some(Turn::Refilled));
    let again = posted(one_more.account, short(600));
    assert!(
        again.events.iter().any(|event| is_depletion(&event)),
        "599 are not enough"
    );
    let enough = posted(again.account, top_up(1));
    let goes = posted(enough.account, short(600));
    assert_eq!((goes.turn, goes.events.len()), (None, 0));
    assert!(post(goes.account, &hold(600), &terms(), now()).is_ok());
}

fn is_depletion(event: &&Event) -> bool {
    event.event_type() == "credits.depleted"
}

#[derive(Clone, Debug)]
enum Act {
    TopUp(i64),
    /// Wants to hold so much: with a strict hold all of it or nothing, else what there is.
    Dial(i64, bool),
    /// So much more, if there is, for one of the open calls.
    Extend(usize, i64),
    /// Ends one of the open calls, at that cost.
    End(usize, i64),
    Adjust(i64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        1 => (1..600i64).prop_map(Act::TopUp),
        4 => (0..300i64, any::<bool>()).prop_map(|(cents, strict)| Act::Dial(cents, strict)),
        2 => (0..20usize, 1..100i64).prop_map(|(which, cents)| Act::Extend(which, cents)),
        4 => (0..20usize, 0..400i64).prop_map(|(which, cost)| Act::End(which, cost)),
        1 => (-50..200i64).prop_map(Act::Adjust),
    ];
    proptest::collection::vec(act, 1..80)
}

/// What a dispatcher and its calls do to an account: who wants to dial is held up while the account is depleted, sets aside
/// what there is, and says when even the whole balance is not enough.
#[derive(Default)]
struct Life {
    open: Vec<i64>,
    entries: Vec<Entry>,
    lows: usize,
    /// Told of a fall to zero, and of something that costs more than all there is.
    falls: usize,
    shorts: usize,
}

impl Life {
    fn act(&mut self, account: &Account, act: Act) -> Option<Movement> {
        let available = account.available().0;
        match act {
            Act::TopUp(cents) => Some(top_up(cents)),
            Act::Adjust(cents) => (cents >= 0 || available >= -cents).then(|| adjust(cents)),
            Act::Dial(..) if account.depleted_at.is_some() => None,
            Act::Dial(wanted, strict) => {
                let terms = Terms {
                    hold_seconds: if strict { 0 } else { 60 },
                    ..terms()
                };
                match terms.set_aside(Cents(wanted), account.available()) {
                    Some(Cents(cents)) => {
                        self.open.push(cents);
                        Some(hold(cents))
                    }
                    None => Some(short(terms.least(Cents(wanted)).0)),
                }
            }
            Act::Extend(which, cents) => {
                let by = cents.min(available);
                let count = self.open.len().max(1);
                let call = self.open.get_mut(which % count).filter(|_| by > 0)?;
                *call += by;
                Some(hold(by))
            }
            Act::End(which, cost) => {
                if self.open.is_empty() {
                    return None;
                }
                let held = self.open.remove(which % self.open.len());
                Some(settle(held, cost))
            }
        }
    }
}

proptest! {
    /// All books together are zero, the account is the sum of its entries, holds close once; nothing is dialled that is not
    /// covered, nor while the account is depleted; each fall is told once, and those to zero follow from the entries alone.
    #[test]
    fn the_ledger_adds_up_and_each_fall_is_told_once(acts in acts()) {
        let (mut account, mut life) = (account(0, 0), Life::default());
        let mut given = 0;
        for act in acts {
            let Some(movement) = life.act(&account, act) else { continue };
            // What is free is covered always.
            let is_hold = matches!(movement.what, What::Hold { cents, .. } if cents.0 > 0);
            let before = account.clone();
            let after = post(account, &movement, &terms(), now());
            prop_assert!(after.is_ok(), "{movement:?} of {before:?}");
            let after = after.unwrap();
            if let What::TopUp { cents, .. } | What::Adjust { cents, .. } = movement.what {
                given += cents.0;
            }
            life.lows += after.events.iter().filter(|event| event.event_type() == "credits.low_balance").count();
            let told = after.events.iter().filter(is_depletion).count();
            prop_assert_eq!(told, usize::from(before.depleted_at.is_none() && after.account.depleted_at.is_some()));
            match movement.what {
                What::Short { .. } => life.shorts += told,
                _ => life.falls += told,
            }
            life.entries.extend(after.entries);
            account = after.account;
            prop_assert!(!is_hold || account.available().0 >= 0, "a hold is covered");
            prop_assert!(account.balance_cents.0 > 0 || life.entries.is_empty() || account.depleted_at.is_some());
            prop_assert_eq!(account.held_cents.0, life.open.iter().sum::<i64>());
        }
        let charged: i64 = life.entries.iter().filter(|entry| entry.kind == Kind::Charge).map(|entry| entry.cents.0).sum();
        prop_assert_eq!(account.balance_cents.0, given - charged);
        let (mut before, mut lows, mut crossings, mut is_above) = (0, 0, 0, true);
        for entry in &life.entries {
            let after = entry.balance_after.0;
            lows += usize::from(before >= 100 && after < 100);
            crossings += usize::from(is_above && after <= 0);
            (before, is_above) = (after, after > 0);
        }
        prop_assert_eq!(life.lows, lows);
        // One that was told of already is not told of again when it comes to zero too.
        prop_assert!(life.falls <= crossings && crossings <= life.falls + life.shorts, "{} of {crossings}", life.falls);
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
