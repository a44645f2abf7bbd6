//! When the alarm about calls that nobody takes rings.
use super::*;

fn counts(answered: i64, abandoned: i64) -> Counts {
    Counts {
        answered,
        abandoned,
        ..Counts::default()
    }
}

#[test]
fn rings_once_until_it_was_well_again_and_a_day_has_passed() {
    let now = Moment::from_millis(1_700_000_000_000);
    let fresh = alarm::Model {
        number_id: NumberId(uuid::Uuid::nil()),
        env: Env::Test,
        armed: true,
        alarmed_at: None,
    };
    assert!(!alarmed(&fresh, counts(0, 0), now).1, "no calls");
    assert!(!alarmed(&fresh, counts(10, 9), now).1, "too few calls");
    assert!(!alarmed(&fresh, counts(16, 4), now).1, "exactly 0.80");
    let (rung, rings) = alarmed(&fresh, counts(15, 5), now);
    assert!(rings && !rung.armed);
    let soon = now.plus_seconds(3600);
    assert!(!alarmed(&rung, counts(10, 10), soon).1, "still low");
    let next_day = now.plus_seconds(WINDOW_SECONDS);
    assert!(!alarmed(&rung, counts(10, 10), next_day).1, "was not well meanwhile");
    let (well, _) = alarmed(&rung, counts(17, 3), soon);
    assert!(well.armed);
    assert!(!alarmed(&well, counts(10, 10), soon.plus_seconds(1)).1, "one a day");
    assert!(alarmed(&well, counts(10, 10), next_day).1);
}
