//! Whether a session that waits has its turn, and whether it may be called then: line by line.
use super::*;
use crate::{
    credits::terms::Terms as Credits,
    dispatch::{
        concurrency::Concurrency,
        fair::RoundRobin,
        funds::{Funds, LOOK_SECONDS, Purse},
        key_limits::KeyLimits,
        pace::{Pace, planned_from},
        route::Route,
        samples::{TENANT, key, noon},
        trunk::{Trunk, Trunks},
    },
};
use entities::{
    dispatch_block::{Model as Block, Reason},
    ids::{AgentId, CampaignId, SessionId, TrunkId},
    session::KeyUse,
    values::{Bounded, Env},
};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// A call of the API's that costs 6 cents a minute.
fn row() -> Row {
    let id = SessionId(Uuid::from_u128(2));
    let agent = (AgentId(Uuid::from_u128(3)), 1);
    Row {
        price_cents_per_minute: 6,
        max_duration_seconds: 600,
        ring_timeout_seconds: 30,
        ..Row::new((TENANT, Env::Test), id, agent, "+15002345670".parse().unwrap(), noon())
    }
}

fn snapshot() -> Snapshot {
    let purse = Purse::new(Cents(1_000), Cents(1_000));
    Snapshot {
        concurrency: Concurrency { limit: 2, reserve: 0 },
        terms: Credits::default(),
        pace: Pace::new(1.0),
        trunks: trunks(),
        blocks: Vec::new(),
        funds: Funds::new(|_| purse),
        keys: KeyLimits::default(),
        campaigns: BTreeMap::new(),
        ring: RoundRobin::default(),
        live: HashMap::new(),
    }
}

const TRUNK: TrunkId = TrunkId(Uuid::from_u128(70));

fn trunks() -> Trunks {
    let mut trunks = Trunks::new(100.0);
    trunks.live.insert(TRUNK, Trunk::new(100.0));
    trunks
}

fn live(snapshot: &mut Snapshot, n: u128, env: Env) {
    let id = SessionId(Uuid::from_u128(n));
    snapshot.live.insert(id, Slot::outbound(env, None, None));
}

#[test]
fn a_turn_needs_a_slot_a_token_and_credits() {
    type Made = fn(&mut Snapshot, &mut Begun, &mut Row);
    let turn = |hold| Admission::Turn {
        at: noon(),
        hold: Cents(hold),
    };
    let soon = Some(noon().plus_seconds(LOOK_SECONDS));
    // What is so: what is answered, and when to look again.
    let table: [(&str, Made, Admission, Option<Moment>); 12] = [
        ("nothing in its way", |_, _, _| {}, turn(6), None),
        (
            "one that has its hold",
            |_, _, row| row.hold_cents = Cents(5),
            turn(0),
            None,
        ),
        (
            "its campaign is paused",
            |_, _, row| row.campaign_id = Some(CampaignId(Uuid::from_u128(9))),
            Admission::WithItsCampaign,
            None,
        ),
        (
            "it is live",
            |snapshot, _, _| live(snapshot, 2, Env::Test),
            Admission::Stays,
            None,
        ),
        (
            "no slot",
            |_, begun, _| {
                begun.slots.take(Slot::outbound(Env::Test, None, None));
                begun.slots.take(Slot::outbound(Env::Test, None, None));
            },
            Admission::Stays,
            None,
        ),
        (
            "the other env's slots",
            |_, begun, _| {
                begun.slots.take(Slot::outbound(Env::Live, None, None));
                begun.slots.take(Slot::outbound(Env::Live, None, None));
            },
            turn(6),
            None,
        ),
        (
            "no credits",
            |snapshot, _, _| snapshot.funds = Funds::new(|_| Purse::new(Cents(0), Cents(1_000))),
            Admission::Stays,
            soon,
        ),
        (
            "a block",
            |snapshot, _, _| {
                snapshot.blocks.push(Block {
                    tenant_id: TENANT,
                    env: Env::Test,
                    reason: Reason::Suspension,
                    since: noon(),
                });
            },
            Admission::Stays,
            None,
        ),
        (
            "the other env's block",
            |snapshot, _, _| {
                snapshot.blocks.push(Block {
                    tenant_id: TENANT,
                    env: Env::Live,
                    reason: Reason::Suspension,
                    since: noon(),
                });
            },
            turn(6),
            None,
        ),
        (
            "a round that is full",
            |_, begun, _| begun.turns = ROUND,
            Admission::Stays,
            None,
        ),
        (
            "no token for a second",
            |snapshot, _, _| assert!(snapshot.spend(Some(Route::Sandbox), noon())),
            Admission::NoToken,
            Some(planned_from(noon().plus_seconds(1))),
        ),
        (
            "a token soon enough to plan for",
            |snapshot, _, _| {
                snapshot.pace = Pace::new(20.0);
                assert!(snapshot.spend(Some(Route::Sandbox), noon()));
            },
            Admission::Turn {
                at: noon().plus_millis(50),
                hold: Cents(6),
            },
            None,
        ),
    ];
    for (what, made, expected, wake_at) in table {
        let (mut snapshot, mut row) = (snapshot(), row());
        let mut begun = Begun::new(&snapshot, WakeAt::default());
        made(&mut snapshot, &mut begun, &mut row);
        let found = admit(&mut snapshot, &mut begun, &row, false, noon());
        assert_eq!((found, begun.wake_at.0), (expected, wake_at), "{what}");
    }
    let mut snapshot = snapshot();
    let mut begun = Begun::new(&snapshot, WakeAt::default());
    let found = admit(&mut snapshot, &mut begun, &row(), true, noon());
    assert_eq!(found, Admission::Stays, "it was sent back a moment ago");
}

/// What one trunk does not take keeps nobody behind it who goes over another.
#[test]
fn a_turn_needs_a_trunk_that_takes_it() {
    type Made = fn(&mut Snapshot, &mut Begun);
    let over = |route: Route| Row {
        env: if route == Route::Sandbox { Env::Test } else { Env::Live },
        trunk_id: route.trunk(),
        ..row()
    };
    let turn = |millis| Admission::Turn {
        at: noon().plus_millis(millis),
        hold: Cents(6),
    };
    let (ours, other) = (Route::Trunk(TRUNK), Route::Trunk(TrunkId(Uuid::from_u128(71))));
    // What is so, what the call goes over: what is answered, and when to look again.
    let table: [(&str, Made, Route, Admission, Option<Moment>); 9] = [
        ("nothing in its way", |_, _| {}, ours, turn(0), None),
        ("a trunk that is gone", |_, _| {}, other, Admission::NoTrunk, None),
        ("no trunk", |_, _| {}, Route::Nowhere, Admission::Nowhere, None),
        (
            "the sandbox needs none",
            |snapshot, _| snapshot.trunks.live.clear(),
            Route::Sandbox,
            turn(0),
            None,
        ),
        (
            "it is down",
            |snapshot, _| snapshot.trunks.live.values_mut().for_each(|trunk| trunk.is_up = false),
            ours,
            Admission::NoTrunk,
            None,
        ),
        (
            "its one channel is taken",
            |snapshot, begun| {
                snapshot
                    .trunks
                    .live
                    .values_mut()
                    .for_each(|trunk| trunk.set(100.0, Some(1), 1));
                // By a call that came in, which takes none of the outbound slots.
                begun.slots.take(Slot {
                    direction: Direction::Inbound,
                    ..Slot::outbound(Env::Live, None, Some(TRUNK))
                });
            },
            ours,
            Admission::NoTrunk,
            None,
        ),
        (
            "it rests for a second",
            |snapshot, _| {
                let rests = |trunk: &mut Trunk| trunk.paused_until = Some(noon().plus_seconds(1));
                snapshot.trunks.live.values_mut().for_each(rests);
            },
            ours,
            Admission::NoTrunk,
            Some(planned_from(noon().plus_seconds(1))),
        ),
        (
            "it rests for a moment that can be planned for",
            |snapshot, _| {
                let rests = |trunk: &mut Trunk| trunk.paused_until = Some(noon().plus_millis(50));
                snapshot.trunks.live.values_mut().for_each(rests);
            },
            ours,
            turn(50),
            None,
        ),
        (
            "the tenant has no token",
            |snapshot, _| assert!(snapshot.pace.spend(noon())),
            ours,
            Admission::NoToken,
            Some(planned_from(noon().plus_seconds(1))),
        ),
    ];
    for (what, made, route, expected, wake_at) in table {
        let mut snapshot = snapshot();
        let mut begun = Begun::new(&snapshot, WakeAt::default());
        made(&mut snapshot, &mut begun);
        let found = admit(&mut snapshot, &mut begun, &over(route), false, noon());
        assert_eq!((found, begun.wake_at.0), (expected, wake_at), "{what}");
        assert_eq!(begun.closed.has(route), found == Admission::NoTrunk, "{what}");
    }
}

#[test]
fn a_turn_takes_what_it_needs_once() {
    let (mut snapshot, row) = (snapshot(), row());
    let mut begun = Begun::new(&snapshot, WakeAt::default());
    assert!(take(&mut snapshot, &mut begun, &row, (noon(), Cents(6))));
    assert_eq!(begun.turns, 1);
    assert_eq!(begun.slots.used(Env::Test, None), 1);
    assert_eq!(snapshot.funds.available(Env::Test), Cents(994));
    assert!(!take(&mut snapshot, &mut begun, &row, (noon(), Cents(6))), "no token");
    assert_eq!(begun.turns, 1);
}

#[test]
fn the_rules_are_asked_once_more() {
    let record = |has_number, is_barred, recent: &[i64]| ContactRecord {
        has_number,
        is_barred,
        recent: recent.iter().map(|hours| noon().plus_seconds(-3600 * hours)).collect(),
        ..ContactRecord::default()
    };
    let direct = Caps {
        per_number_24h: Bounded::new(2).ok(),
        per_number_7d: Bounded::new(3).ok(),
        ..Caps::default()
    };
    // Zurich at noon is open; New York, at seven in the morning, is not, for live calls.
    let table = [
        ("+41443456789", record(true, false, &[]), None, None),
        (
            "+41443456789",
            record(false, false, &[]),
            None,
            Some(Command::Reject(RejectReason::OutOfReach)),
        ),
        (
            "+41443456789",
            record(true, true, &[]),
            None,
            Some(Command::Reject(RejectReason::OnDnc)),
        ),
        ("+41443456789", record(true, false, &[30, 2]), None, None),
        (
            "+41443456789",
            record(true, false, &[3, 2]),
            None,
            Some(Command::Reject(RejectReason::CapReached)),
        ),
        (
            "+41443456789",
            record(true, false, &[80, 50, 30]),
            None,
            Some(Command::Reject(RejectReason::CapReached)),
        ),
        (
            "+12125550100",
            record(true, false, &[]),
            None,
            Some(Command::Reject(RejectReason::OutsideHours)),
        ),
        (
            "+12125550100",
            record(true, false, &[]),
            Some(noon()),
            Some(Command::Postpone {
                until: noon().plus_seconds(3600),
            }),
        ),
    ];
    for (number, record, scheduled_at, expected) in table {
        let row = Row {
            env: Env::Live,
            to_number: Some(number.parse().unwrap()),
            scheduled_at,
            ..row()
        };
        let guards = Guards {
            queue: None,
            direct: &direct,
            zone: Zone::NEW_YORK,
            behind_ms: 0,
            law: None,
        };
        let found = ruling(&guards, &row, &record, noon()).unwrap();
        match (found, expected) {
            (Ruling::Call(hours), None) => {
                let (first, last) = hours.ours;
                assert!(first <= noon() && noon() <= last);
            }
            (Ruling::Tell(command), Some(expected)) => {
                assert_eq!(format!("{command:?}"), format!("{expected:?}"), "{number}");
            }
            (found, expected) => panic!("{number}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_call_whose_key_has_no_room_lets_those_of_others_pass() {
    // Spend a day, calls a minute, of 60 cents at most each: may it leave?
    for (spend, calls, may) in [
        (Some(60), Some(1), true),
        (Some(59), None, false),
        (None, Some(1), true),
    ] {
        let (mut snapshot, key) = (snapshot(), key(spend, calls));
        let row = Row {
            api_key_id: Some(key.id),
            ..row()
        };
        snapshot.keys.learn(key, KeyUse::none(noon()));
        let mut begun = Begun::new(&snapshot, WakeAt::default());
        let first = admit(&mut snapshot, &mut begun, &row, false, noon());
        assert_eq!(
            matches!(first, Admission::Turn { .. }),
            may,
            "{spend:?} {calls:?}: {first:?}"
        );
        if let Admission::Turn { at, hold } = first {
            assert!(take(&mut snapshot, &mut begun, &row, (at, hold)));
        }
        let next = admit(&mut snapshot, &mut begun, &row, false, noon());
        assert_eq!(next, Admission::KeyIsFull);
        assert!(begun.wake_at.0 > Some(noon()));
        assert_eq!(begun.closed.passed().api_keys, [row.api_key_id.unwrap()]);
        let of_nobody = Row {
            api_key_id: None,
            ..row
        };
        let other = admit(&mut snapshot, &mut begun, &of_nobody, false, noon());
        assert_ne!(other, Admission::KeyIsFull);
    }
}
