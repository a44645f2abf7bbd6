//! What is dialled over a trunk follows from what is noted of it.
use super::*;
use std::time::Duration;
use uuid::Uuid;

const TRUNK: TrunkId = TrunkId(Uuid::from_u128(7));

fn at(millis: i64) -> Moment {
    Moment::from_millis(millis)
}

#[test]
fn a_trunk_that_nobody_has_heard_of_takes_calls() {
    let board = TrunkBoard::default();
    assert!(board.is_up(TRUNK));
    assert_eq!(board.state(TRUNK), None);
    board.rest(TRUNK, at(5));
    assert!(board.is_up(TRUNK));
    assert_eq!(board.seen(TRUNK).paused_until, Some(at(5)));
}

#[test]
fn only_what_changes_the_dialling_is_told_of() {
    let board = TrunkBoard::default();
    let refused = Refused {
        sip_code: 403,
        reason: "Forbidden".into(),
    };
    let up = TrunkState::default();
    // What is set: whether it changes anything, and whether calls are placed then.
    for (state, changes, takes_calls) in [
        (up.clone(), false, true),
        (
            TrunkState {
                registered: Some(Binding::new(Instant::now(), Instant::now(), at(9))),
                ..up.clone()
            },
            false,
            true,
        ),
        (
            TrunkState {
                up: false,
                ..up.clone()
            },
            true,
            false,
        ),
        (
            TrunkState {
                up: false,
                refused: Some(refused.clone()),
                ..up.clone()
            },
            false,
            false,
        ),
        (
            TrunkState {
                refused: Some(refused),
                ..up.clone()
            },
            false,
            false,
        ),
        (up.clone(), true, true),
        (
            TrunkState {
                paused_until: Some(at(9)),
                ..up.clone()
            },
            true,
            true,
        ),
        // A rest is not cut short.
        (up, false, true),
    ] {
        assert_eq!(board.set(TRUNK, state.clone()), changes, "{state:?}");
        assert_eq!(board.is_up(TRUNK), takes_calls, "{state:?}");
    }
    assert_eq!(board.seen(TRUNK).paused_until, Some(at(9)));
    board.rest(TRUNK, at(8));
    assert_eq!(board.seen(TRUNK).paused_until, Some(at(9)));
}

/// What the registrar was told counts on, whatever becomes of our time.
#[test]
fn a_binding_does_not_leap_with_the_clock() {
    let (start, hour) = (Instant::now(), Duration::from_secs(3600));
    let binding = Binding::new(start + hour, start, at(100_000));
    let minute = start + Duration::from_secs(60);
    let forty_days = 40 * 24 * 3_600_000;
    for (now, expected) in [
        (160_000, 3_700_000),
        (163_000, 3_700_000),
        (160_000 + forty_days, 3_700_000 + forty_days),
        // Led back at half speed.
        (130_000, 3_670_000),
    ] {
        assert_eq!(binding.until(minute, at(now)), at(expected));
    }
}

#[test]
fn an_address_that_failed_is_tried_after_the_others() {
    let (board, now) = (TrunkBoard::default(), Instant::now());
    let address = |last: u8| SocketAddr::from(([192, 0, 2, last], 5061));
    let peer = |lasts: &[u8]| {
        let addresses = lasts.iter().map(|last| address(*last)).collect();
        Some((Transport::Tls, "sip.example.com".into(), addresses))
    };
    let next = |tried: &[SocketAddr]| Some(board.next_target(TRUNK, tried, now)?.address);
    assert_eq!(next(&[]), None);
    board.leads_to(TRUNK, peer(&[1, 2]));
    board.target_failed(TRUNK, address(1), now);
    assert_eq!((next(&[]), next(&[address(2)])), (Some(address(2)), Some(address(1))));
    board.leads_to(TRUNK, peer(&[1, 3]));
    assert_eq!(next(&[]), Some(address(3)), "what rests does so over a new look-up");
    board.set(TRUNK, TrunkState::default());
    let shown: Vec<_> = board.state(TRUNK).unwrap().targets;
    assert_eq!(shown.iter().map(|target| target.up).collect::<Vec<_>>(), [false, true]);
    board.target_answered(TRUNK, address(1));
    assert_eq!(next(&[]), Some(address(1)));
    board.leads_to(TRUNK, None);
    assert_eq!(next(&[]), None);
}

#[test]
fn refused_calls_are_not_dialled_until_the_settings_change() {
    let board = TrunkBoard::default();
    let refused = Refused {
        sip_code: 401,
        reason: "Unauthorized".into(),
    };
    assert!(board.refuse_calls(TRUNK, refused.clone()));
    assert!(!board.refuse_calls(TRUNK, refused.clone()));
    board.set(TRUNK, TrunkState::default());
    assert!(!board.is_up(TRUNK), "its registration says nothing of its calls");
    assert_eq!(board.state(TRUNK).unwrap().refused, Some(refused));
    assert!(board.try_calls_again(TRUNK));
    assert!(!board.try_calls_again(TRUNK));
    assert!(board.is_up(TRUNK));
}

#[test]
fn a_second_leg_takes_a_channel_until_it_ends_whatever_becomes_of_its_trunk() {
    let board = TrunkBoard::default();
    let legs = [board.second_leg(TRUNK), board.second_leg(TRUNK)];
    assert_eq!(board.seen(TRUNK).more_legs, 2);
    board.forget(TRUNK);
    assert_eq!(board.seen(TRUNK).more_legs, 2);
    drop(legs);
    assert_eq!(board.seen(TRUNK).more_legs, 0);
    board.paced(TRUNK, 2.5);
    assert_eq!(board.calls_per_second(TRUNK), Some(2.5));
    board.unpaced([TRUNK].iter());
    assert_eq!(board.calls_per_second(TRUNK), None);
    assert!(board.lock().is_empty());
    board.paced(TRUNK, 2.5);
    board.forget(TRUNK);
    assert!(board.lock().is_empty());
}
