//! What a key's limits leave, line by line.
use super::*;
use crate::{
    ids::TenantId,
    values::{Env, Scopes},
};
use uuid::Uuid;

fn key(spend: Option<i32>, calls: Option<i32>) -> api_key::Model {
    api_key::Model {
        id: ApiKeyId(Uuid::from_u128(1)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        name: "k".into(),
        key_prefix: "vk_test_".into(),
        key_hash: String::new(),
        env: Env::Test,
        scopes: Scopes::all(),
        max_spend_cents_per_day: spend,
        max_calls_per_minute: calls,
        expires_at: None,
        created_at: noon(),
        last_used_at: None,
        revoked_at: None,
    }
}

fn noon() -> Moment {
    Moment::from_millis(20_000 * DAY_MS + DAY_MS / 2)
}

#[test]
fn what_a_key_may_do() {
    let day_ends = noon().plus_millis(DAY_MS / 2);
    let spend = Some(KeyFull::Spend { until: day_ends });
    let calls = |seconds| {
        Some(KeyFull::Calls {
            until: noon().plus_seconds(seconds),
        })
    };
    // Spend a day, calls a minute; spent, dialled so many seconds ago, what one more can cost: what keeps it.
    type Row<'a> = (Option<i32>, Option<i32>, i64, &'a [i64], i64, Option<KeyFull>);
    let table: [Row<'_>; 12] = [
        (None, None, 1_000_000, &[1, 1, 1], 1_000, None),
        (Some(100), None, 40, &[], 60, None),
        (Some(100), None, 41, &[], 60, spend),
        (Some(100), None, 0, &[], 101, spend),
        // What is free is never too dear.
        (Some(0), None, 0, &[], 0, None),
        (Some(0), None, 0, &[], 1, spend),
        (None, Some(2), 0, &[30], 1, None),
        (None, Some(2), 0, &[60, 30], 1, None),
        (None, Some(2), 0, &[59, 30], 1, calls(1)),
        (None, Some(2), 0, &[59, 50, 30], 1, calls(10)),
        // Those that are about to be dialled count, too.
        (None, Some(1), 0, &[-2], 1, calls(62)),
        // The longer wait is named.
        (Some(100), Some(1), 100, &[30], 1, spend),
    ];
    for (spend, calls, spent, ago, most, expected) in table {
        let key = key(spend, calls);
        let mut used = KeyUse::none(noon());
        assert_eq!(used.day_ends, day_ends);
        for seconds in ago {
            used.add(Cents(0), noon().plus_seconds(-seconds));
        }
        used.spent = Cents(spent);
        let found = used.is_full(&key, Cents(most), noon());
        assert_eq!(found, expected, "{spend:?} {calls:?} {spent} {ago:?} {most}");
        assert_eq!(key.counted().is_some(), spend.is_some() || calls.is_some());
    }
}

#[test]
fn calls_are_kept_in_the_order_of_their_moments() {
    let mut used = KeyUse::none(noon());
    for seconds in [5, 1, 3, 3, -1] {
        used.add(Cents(2), noon().plus_seconds(seconds));
    }
    assert!(used.dialed.is_sorted());
    assert_eq!((used.spent, used.dialed.len()), (Cents(10), 5));
}
