//! Which addresses are open, in production and in development.
use super::*;

fn allows(policy: &Policy, url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| policy.check(&url).is_ok())
}

#[test]
fn only_https_and_public_addresses_are_open() {
    let policy = Policy::default();
    assert!(allows(&policy, "https://hooks.example.com/x"));
    assert!(allows(&policy, "https://8.8.8.8/"));
    assert!(allows(&policy, "https://[2606:4700::1111]/"));
    let closed = "http://hooks.example.com/ https://127.0.0.1/ https://127.1/ https://0x7f000001/ https://2130706433/ https://0177.0.0.1/ \
            https://0/ https://10.0.0.1/ https://172.16.0.1/ https://192.168.1.1/ https://169.254.169.254/ https://100.64.0.1/ https://192.0.0.1/ \
            https://198.18.0.1/ https://224.0.0.1/ https://255.255.255.255/ https://[::1]/ https://[::]/ https://[::ffff:127.0.0.1]/ \
            https://[64:ff9b::7f00:1]/ https://[::127.0.0.1]/ https://[2002:7f00:1::]/ https://[2001::1]/ https://[fc00::1]/ https://[fe80::1]/ \
            https://[ff02::1]/ https://[2001:db8::1]/ https://１２７.0.0.1/";
    for url in closed.split_whitespace() {
        assert!(!allows(&policy, url), "{url}");
    }
}

#[test]
fn what_can_never_be_delivered_is_closed() {
    let policy = Policy::default();
    let names = "https://localhost/ https://LOCALHOST./ https://a.localhost/ https://printer.local/ https://db.internal/ \
            https://a.test/ https://a.example/ https://example/ https://a.invalid/ https://a.onion/ https://home.arpa/ \
            https://nas.home.arpa/ https://intranet/ https://intranet./";
    let ports = "https://hooks.example.com:22/ https://hooks.example.com:25/ https://hooks.example.com:80/ https://8.8.8.8:1023/";
    for url in names.split_whitespace().chain(ports.split_whitespace()) {
        assert!(!allows(&policy, url), "{url}");
    }
    let open = "https://hooks.example.com:1024/ https://hooks.example.com:8443/ https://localhost.example.com/ \
            https://mylocal.com/ https://notinternal.dev/ https://hooks.example.com./ https://home.arpa.example.org/";
    for url in open.split_whitespace() {
        assert!(allows(&policy, url), "{url}");
    }
    let opened = Policy {
        ports: vec![25],
        allowed: vec!["10.0.0.0/8".parse().unwrap(), "hooks.onion:22".parse().unwrap()],
        ..Policy::default()
    };
    assert!(allows(&opened, "https://hooks.example.com:25/") && !allows(&opened, "https://hooks.example.com:26/"));
    assert!(
        allows(&opened, "https://a.svc.cluster.local/"),
        "it may lead into the network that was opened"
    );
    assert!(allows(&opened, "http://hooks.onion:22/"), "opened by its name");
    assert!(!allows(&opened, "https://a.invalid/"));
    let dev = Policy {
        dev: true,
        ..Policy::default()
    };
    assert!(allows(&dev, "http://localhost:80/") && allows(&dev, "http://receiver:25/"));
}

#[test]
fn dev_opens_loopback_and_the_operator_opens_targets_but_never_metadata() {
    let dev = Policy {
        dev: true,
        ..Policy::default()
    };
    assert!(allows(&dev, "http://127.0.0.1:9000/hook"));
    assert!(!allows(&dev, "http://10.0.0.1/"));
    let opened = Policy {
        dev: false,
        ports: Vec::new(),
        allowed: vec![
            "10.1.0.0/16".parse().unwrap(),
            "hooks.internal:8443".parse().unwrap(),
            "0.0.0.0/0".parse().unwrap(),
        ],
    };
    assert!(allows(&opened, "https://10.1.2.3/"));
    assert!(allows(&opened, "http://hooks.internal:8443/"));
    assert!(!allows(&opened, "http://hooks.internal:8444/"));
    assert!(
        !allows(&opened, "https://hooks.internal:8444/"),
        "another port of an opened host"
    );
    assert!(!allows(&opened, "https://168.63.129.16/"));
    assert!(!allows(&opened, "https://169.254.169.254/latest/meta-data"));
    assert!(!allows(&opened, "https://[::ffff:169.254.169.254]/"));
}
