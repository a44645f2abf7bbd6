//! Names and addresses: what is looked up, what is refused, and when.
use super::*;

/// Not in development; the operator opened loopback alone.
fn loopback_opened() -> Policy {
    Policy {
        allowed: vec!["127.0.0.1/32".parse().unwrap()],
        ..Policy::default()
    }
}

#[tokio::test]
async fn a_name_is_checked_at_every_connect() {
    let lookup = Script::of([Ok(ips(&["127.0.0.1"])), Ok(ips(&["10.0.0.1"]))]);
    let client = client(loopback_opened(), lookup.clone());
    let zoo = Zoo::of(Animal::Tls(TlsFault::GoodOnce));
    let good = post(&client, &zoo.url, LONG).await;
    assert_eq!((good.outcome, zoo.requests()), (Ok(200), 1));
    assert_eq!(
        lookup.asked(),
        1,
        "a second look-up for one connect could answer otherwise than what was checked"
    );
    assert!(zoo.is_left().await);
    let rebound = post(&client, &zoo.url, LONG).await;
    assert_eq!((&*outcome(&rebound), rebound.remote), ("blocked_target", None));
    assert_eq!((zoo.requests(), zoo.connections(), lookup.asked()), (1, 1, 2));
}

#[tokio::test]
async fn one_inner_address_blocks_all() {
    for answer in [
        &["127.0.0.1", "10.0.0.1"],
        &["10.0.0.1", "127.0.0.1"],
        &["127.0.0.1", "::1"],
        &["127.0.0.1", "127.0.0.2"],
    ] {
        let client = client(loopback_opened(), Script::always(answer));
        let zoo = Zoo::of(Animal::Tls(TlsFault::Good));
        let exchange = post(&client, &zoo.url, LONG).await;
        assert_eq!(
            (&*outcome(&exchange), zoo.connections()),
            ("blocked_target", 0),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn inner_addresses_in_every_dress_even_in_development() {
    let zoo = Zoo::of(status(200, None));
    let url = zoo.url.replace("127.0.0.1", "hooks.example.com");
    let inner = "10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 0.0.0.0 255.255.255.255 224.0.0.1 :: ::ffff:10.0.0.1 ::10.0.0.1 \
        64:ff9b::a00:1 2002:a00:1:: fc00::1 ff02::1 2001:db8::1 169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe \
        2002:a9fe:a9fe:: 168.63.129.16 fe80::1 fd00:ec2::254";
    for address in inner.split_whitespace() {
        let client = client(dev(), Script::always(&[address]));
        let exchange = post(&client, &url, SHORT).await;
        assert_eq!(
            (&*outcome(&exchange), exchange.remote),
            ("blocked_target", None),
            "{address}"
        );
    }
    let everything_opened = Policy {
        dev: true,
        allowed: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        ..Policy::default()
    };
    for address in [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "168.63.129.16",
        "fe80::1",
        "fd00:ec2::254",
    ] {
        let client = client(everything_opened.clone(), Script::always(&[address]));
        let exchange = post(&client, &url, SHORT).await;
        assert_eq!(outcome(&exchange), "blocked_target", "{address}");
    }
    assert_eq!(zoo.connections(), 0);
}

#[tokio::test]
async fn literal_addresses_are_checked_without_a_look_up() {
    let lookup = Script::always(&["127.0.0.1"]);
    let client = client(dev(), lookup.clone());
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:a00:1]/",
        "https://0xa000001/",
        "https://10.1/",
    ] {
        let exchange = post(&client, url, SHORT).await;
        assert_eq!(
            (&*outcome(&exchange), exchange.timings.connect_us),
            ("blocked_target", None),
            "{url}"
        );
    }
    let zoo = Zoo::of(status(200, None));
    let exchange = post(&client, &zoo.url, LONG).await;
    assert_eq!(
        (exchange.outcome, exchange.timings.dns_us, lookup.asked()),
        (Ok(200), None, 0)
    );
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failed_look_up() {
    let zoo = Zoo::of(status(200, None));
    let url = zoo.url.replace("127.0.0.1", "localhost");
    for answer in [
        Ok(Vec::new()),
        Err(io::ErrorKind::NotFound),
        Err(io::ErrorKind::TimedOut),
    ] {
        let client = client(dev(), Script::of([answer.clone()]));
        let exchange = post(&client, &url, LONG).await;
        assert_eq!(
            (&*outcome(&exchange), exchange.remote),
            ("dns_failed", None),
            "{answer:?}"
        );
    }
    assert_eq!(zoo.connections(), 0);
}

#[tokio::test]
async fn a_silent_name_service_costs_no_more_than_the_timeout() {
    let client = client(dev(), Arc::new(Silence));
    let exchange = post(&client, "http://localhost:9/hook", SHORT).await;
    assert_eq!(outcome(&exchange), "timeout");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let client = client(dev(), Script::always(&["::1", "127.0.0.1"]));
    let zoo = Zoo::of(Animal::Tls(TlsFault::Good));
    let exchange = post(&client, &zoo.url, LONG).await;
    assert_eq!((exchange.outcome, exchange.remote), (Ok(200), Some(zoo.address)));
}

#[tokio::test]
async fn the_system_knows_localhost() {
    let client = client(dev(), Arc::new(SystemLookup));
    let zoo = Zoo::of(Animal::Tls(TlsFault::Good));
    assert_eq!(post(&client, &zoo.url, LONG).await.outcome, Ok(200));
}
