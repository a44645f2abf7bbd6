//! Who guesses is slowed down, and keeps nobody else out.
use super::*;
use entities::values::Moment;
use std::net::Ipv4Addr;

fn clock() -> Clock {
    Clock::manual(Moment::parse("2027-03-02T13:00:00Z").unwrap())
}

fn pass_time(clock: &Clock, seconds: i64) {
    clock.set(clock.now().plus_seconds(seconds));
}

fn network(n: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + n).into()
}

#[test]
fn a_guesser_keeps_nobody_out_in_another_network() {
    let limits = RateLimits::new(&clock());
    let allowed = |n: u32, email: &str| limits.sign_in(network(n), email).is_ok();
    assert_eq!((0..100).filter(|_| allowed(1, "ann@example.com")).count(), 20);
    assert!(allowed(2, " ANN@example.com"), "the owner is elsewhere");
    assert!(allowed(1, "bob@example.com"), "and so is bob's password");
}

#[test]
fn guessing_from_many_networks_is_slowed_down_but_for_known_devices() {
    let clock = clock();
    let limits = RateLimits::new(&clock);
    let guessed = |n: u32| limits.sign_in(network(n), "ann@example.com").is_ok();
    assert_eq!((0..10_000).filter(|n| guessed(*n)).count(), 5_000);
    assert_eq!((0..30).filter(|_| limits.known_device(Uuid::from_u128(1))).count(), 20);
    assert!(limits.known_device(Uuid::from_u128(2)));
    pass_time(&clock, 60);
    assert_eq!((0..10_000).filter(|n| guessed(*n)).count(), 600);
}

#[test]
fn an_unknown_key_is_refused_as_such_while_others_guess_from_the_same_address() {
    let limits = RateLimits::new(&clock());
    let proxy = network(1);
    assert_eq!(
        (0..500)
            .filter(|_| limits.unknown_key(proxy, "vk_test_a").is_ok())
            .count(),
        60
    );
    assert!(limits.unknown_key(proxy, "vk_test_b").is_ok());
    let guessed = |n: u32| limits.unknown_key(proxy, &format!("vk_test_{n}")).is_ok();
    assert_eq!(
        (0..1_000).filter(|n| guessed(*n)).count(),
        539,
        "600 of an address in all"
    );
    assert!(limits.unknown_key(network(2), "vk_test_b").is_ok());
}

#[test]
fn many_keys_bring_a_workspace_no_more_than_four() {
    let limits = RateLimits::new(&clock());
    let tenant = TenantId::from(Uuid::from_u128(1));
    let mut left = None;
    let mut allowed = 0;
    for n in 0..900 {
        let key = ApiKeyId::from(Uuid::from_u128(n % 10));
        allowed += u32::from(limits.request(key, tenant, &mut left).is_ok());
    }
    assert_eq!(allowed, 400);
    assert_eq!(left, Some(WORKSPACE.left(0)));
    let other = TenantId::from(Uuid::from_u128(2));
    let key = ApiKeyId::from(Uuid::from_u128(99));
    assert!(limits.request(key, other, &mut left).is_ok());
    let expected = Left {
        burst: 100,
        remaining: 99,
        reset: 1,
    };
    assert_eq!(left, Some(expected), "the key's is used up first");
}
