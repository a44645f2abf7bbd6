//! The one client for users' addresses against every strange receiver of the zoo.
//!
//! Not here: proxies of the environment, for a test cannot set a variable of its own process safely.
mod names;

use crate::world::{
    mcp_server::{McpServer, Reply},
    zoo::{Animal, Authority, TlsFault, Zoo, authority, gzip_bomb},
};
use adapters::outbound::{BODY_LIMIT, Exchange, Lookup, Note, Options, Outbound, Policy, SystemLookup};
use bytes::Bytes;
use entities::ids::TenantId;
use futures_util::future::{self, BoxFuture};
use reqwest::{Method, Url, header::HeaderMap};
use rules::delivery::failure::Failure;
use std::{
    collections::VecDeque,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// For those who would never end.
const SHORT: Duration = Duration::from_millis(400);
/// A busy machine may notice a timeout so much later.
const LATE: Duration = Duration::from_secs(10);
/// For those who have no reason to use it up.
const LONG: Duration = Duration::from_secs(10);
/// What the sockets' buffers may take beyond what the client reads.
const BUFFERS: usize = 2 * 1024 * 1024;

/// A name service that answers by a script and then repeats the last answer.
struct Script {
    answers: Mutex<VecDeque<Result<Vec<IpAddr>, io::ErrorKind>>>,
    asked: AtomicUsize,
}

impl Script {
    fn of(answers: impl IntoIterator<Item = Result<Vec<IpAddr>, io::ErrorKind>>) -> Arc<Script> {
        Arc::new(Script {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: AtomicUsize::new(0),
        })
    }
    fn always(addresses: &[&str]) -> Arc<Script> {
        Script::of([Ok(ips(addresses))])
    }
    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

impl Lookup for Script {
    fn lookup(&self, _host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        Box::pin(future::ready(answer.map_err(io::Error::from)))
    }
}

/// A name service that never answers.
struct Silence;
impl Lookup for Silence {
    fn lookup(&self, _host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(future::pending())
    }
}

fn ips(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

fn dev() -> Policy {
    Policy {
        dev: true,
        ..Policy::default()
    }
}

/// A client that trusts the tests' authority.
fn client(policy: Policy, lookup: Arc<dyn Lookup>) -> Outbound {
    client_trusting(authority().pem.clone().into_bytes(), policy, lookup)
}

fn client_trusting(root: Vec<u8>, policy: Policy, lookup: Arc<dyn Lookup>) -> Outbound {
    // Several TLS stacks are linked; the first of many tests chooses.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Handle::current();
    let options = Options {
        lookup,
        extra_roots: Some(root),
        ..Options::on(runtime)
    };
    Outbound::new(policy, options).unwrap()
}

/// One POST, and what holds for each, whoever answers.
async fn post(client: &Outbound, url: &str, timeout: Duration) -> Exchange {
    post_bytes(client, url, timeout, Bytes::from_static(b"{\"id\":1}")).await
}

async fn post_bytes(client: &Outbound, url: &str, timeout: Duration, body: Bytes) -> Exchange {
    let url = Url::parse(url).unwrap();
    let begun = Instant::now();
    let posting = client.post(&url, HeaderMap::new(), body, timeout);
    let exchange = tokio::time::timeout(timeout + LATE, posting)
        .await
        .unwrap_or_else(|_| panic!("{url}: still not done long after its timeout"));
    let took = begun.elapsed();
    assert!(took < timeout + LATE, "{url}: took {took:?}");
    assert!(exchange.body.len() <= BODY_LIMIT, "{url}: kept {}", exchange.body.len());
    let timings = &exchange.timings;
    assert!(u128::from(timings.total_us) <= took.as_micros(), "{url}: {timings:?}");
    let parts = [
        timings.dns_us,
        timings.connect_us,
        timings.tls_us,
        timings.first_byte_us,
    ];
    assert!(
        parts.into_iter().flatten().all(|part| part <= timings.total_us),
        "{url}: {timings:?}"
    );
    exchange
}

/// The status or the failure's code.
fn outcome(exchange: &Exchange) -> String {
    match &exchange.outcome {
        Ok(status) => status.to_string(),
        Err(failure) => failure.code().to_owned(),
    }
}

fn status(status: u16, header: Option<(&'static str, &str)>) -> Animal {
    let headers = header.map(|(name, value)| (name, value.to_owned()));
    Animal::Status(status, headers.into_iter().collect())
}

/// Each animal and what its visitor reports; two words where it depends on which packet comes first.
#[rustfmt::skip]
const TABLE: &[(Animal, &[&str])] = &[
    (Animal::Refuses,                 &["connect_failed"]),
    (Animal::BlackHole,               &["timeout"]),
    (Animal::NeverReads,              &["timeout"]),
    (Animal::HangBeforeHeaders,       &["timeout"]),
    (Animal::HangInHeaders,           &["timeout"]),
    (Animal::HangInBody,              &["timeout"]),
    (Animal::Drip,                    &["timeout"]),
    (Animal::DripHeaders,             &["timeout"]),
    (Animal::Reset,                   &["bad_answer"]),
    (Animal::ResetBeforeRequest,      &["bad_answer", "connect_failed"]),
    (Animal::HalfClosed,              &["bad_answer"]),
    (Animal::CloseInHeaders,          &["bad_answer"]),
    (Animal::CloseInBody,             &["bad_answer"]),
    (Animal::GarbageStatusLine,       &["bad_answer"]),
    (Animal::GarbageBytes,            &["bad_answer"]),
    (Animal::HttpTwoPreface,          &["bad_answer"]),
    (Animal::EndlessHeaders,          &["bad_answer"]),
    (Animal::EndlessHeader,           &["bad_answer"]),
    (Animal::ManyInterim,             &["200"]),
    (Animal::EndlessInterim,          &["timeout"]),
    (Animal::HugeBody,                &["200"]),
    (Animal::HugeChunked,             &["200"]),
    (Animal::GzipBomb,                &["200"]),
    (Animal::WrongContentLengthShort, &["200"]),
    (Animal::WrongContentLengthLong,  &["bad_answer"]),
    (Animal::TwoContentLengths,       &["bad_answer"]),
    (Animal::NegativeContentLength,   &["bad_answer"]),
    (Animal::BodyOn204,               &["204"]),
    (Animal::LeavesAfterAnswer,       &["200"]),
    (Animal::Tls(TlsFault::Good),           &["200"]),
    (Animal::Tls(TlsFault::GoodOnce),       &["200"]),
    (Animal::Tls(TlsFault::WrongName),      &["tls_failed"]),
    (Animal::Tls(TlsFault::Expired),        &["tls_failed"]),
    (Animal::Tls(TlsFault::SelfSigned),     &["tls_failed"]),
    (Animal::Tls(TlsFault::PlainHttp),      &["tls_failed"]),
    (Animal::Tls(TlsFault::HandshakeHang),  &["timeout"]),
    (Animal::Tls(TlsFault::HandshakeClose), &["tls_failed"]),
];

#[tokio::test]
async fn whoever_answers_the_attempt_ends_in_time_and_small() {
    let client = client(dev(), Script::always(&["127.0.0.1"]));
    // Each in its task, so that every animal that surprises is named and not only the first.
    let visits = TABLE.iter().map(|row| tokio::spawn(visit(client.clone(), row)));
    let ended = future::join_all(visits.collect::<Vec<_>>()).await;
    assert!(ended.into_iter().all(|visit| visit.is_ok()), "see above");
}

async fn visit(client: Outbound, (animal, expected): &(Animal, &[&str])) {
    let zoo = Zoo::of(animal.clone());
    let endless = expected.contains(&"timeout");
    let begun = Instant::now();
    let exchange = post(&client, &zoo.url, if endless { SHORT } else { LONG }).await;
    assert!(
        expected.contains(&&*outcome(&exchange)),
        "{animal:?}: {:?} {:?}",
        exchange.outcome,
        exchange.timings
    );
    if endless {
        assert!(begun.elapsed() >= SHORT, "{animal:?}: gave up early");
    }
    if let Err(failure) = &exchange.outcome {
        assert!(!format!("{failure:?}").contains("os error"), "{animal:?}: {failure:?}");
    }
    if matches!(animal, Animal::Refuses) {
        let words = format!("nothing listens on {} (connection refused)", zoo.address);
        assert_eq!(exchange.outcome, Err(Failure::Connect(words)));
    }
    assert!(zoo.connections() <= 1, "{animal:?}: tried again by itself");
    if exchange.outcome.is_err() && !matches!(animal, Animal::NeverReads) {
        assert!(zoo.is_left().await, "{animal:?}: its connection is left open");
    }
    match animal {
        Animal::HugeBody | Animal::HugeChunked | Animal::GzipBomb => {
            assert!(zoo.is_left().await, "{animal:?}: neither read nor left");
            assert!(
                zoo.bytes_sent() < BUFFERS,
                "{animal:?}: {} bytes taken",
                zoo.bytes_sent()
            );
            assert_eq!(exchange.body.len(), BODY_LIMIT, "{animal:?}");
        }
        Animal::EndlessHeaders | Animal::EndlessHeader => {
            assert!(
                zoo.bytes_sent() < BUFFERS,
                "{animal:?}: {} bytes taken",
                zoo.bytes_sent()
            );
        }
        Animal::Tls(_) if exchange.outcome.is_err() => {
            assert_eq!((zoo.requests(), exchange.timings.tls_us), (0, None), "{animal:?}");
        }
        Animal::Tls(_) => assert!(exchange.timings.tls_us.is_some(), "{animal:?}"),
        _ => assert_eq!(exchange.timings.tls_us, None, "{animal:?}"),
    }
}

#[tokio::test]
async fn every_status_is_reported_as_it_came() {
    let client = client(dev(), Script::always(&["127.0.0.1"]));
    let (seconds, date) = (("retry-after", "7"), ("retry-after", "Fri, 31 Dec 2027 23:59:59 GMT"));
    let mut statuses: Vec<_> = [
        200, 201, 202, 204, 206, 299, 300, 304, 400, 401, 403, 404, 409, 410, 422, 451, 500, 502, 503, 504, 599, 999,
    ]
    .map(|code| (code, None))
    .to_vec();
    for code in [408, 425, 429, 503] {
        statuses.extend([(code, Some(seconds)), (code, Some(date))]);
    }
    for (code, header) in statuses {
        let zoo = Zoo::of(status(code, header));
        let exchange = post(&client, &zoo.url, LONG).await;
        assert_eq!(exchange.outcome, Ok(code));
        assert_eq!(exchange.remote, Some(zoo.address));
        assert_eq!(
            exchange.body,
            if matches!(code, 204 | 304) { "" } else { "ok" }.as_bytes(),
            "{code}"
        );
        let headers = exchange.headers;
        assert_eq!(
            headers.get("retry-after").map(|value| value.to_str().unwrap()),
            header.map(|(_, value)| value)
        );
        assert_eq!(zoo.requests(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let client = client(dev(), Script::always(&["127.0.0.1"]));
    let target = Zoo::of(status(200, None));
    for code in [301, 302, 303, 307, 308] {
        let zoo = Zoo::of(status(code, Some(("location", &target.url))));
        let exchange = post(&client, &zoo.url, LONG).await;
        assert_eq!(exchange.outcome, Ok(code));
        assert_eq!(exchange.headers["location"], *target.url);
        assert_eq!(zoo.requests(), 1);
    }
    assert_eq!((target.requests(), target.connections()), (0, 0));
}

#[tokio::test]
async fn a_compressed_answer_stays_compressed() {
    let client = client(dev(), Script::always(&["127.0.0.1"]));
    let zoo = Zoo::of(Animal::GzipBomb);
    let exchange = post(&client, &zoo.url, LONG).await;
    assert!(exchange.body == gzip_bomb()[..BODY_LIMIT]);
    assert_eq!(exchange.headers["content-encoding"], "gzip");
}

#[tokio::test]
async fn what_a_receiver_does_not_take_is_waited_for_no_longer_than_the_rest() {
    let client = client(dev(), Script::always(&["127.0.0.1"]));
    let zoo = Zoo::of(Animal::NeverReads);
    let exchange = post_bytes(&client, &zoo.url, SHORT, Bytes::from(vec![b'x'; 64 * 1024 * 1024])).await;
    assert_eq!(outcome(&exchange), "timeout");
    assert_eq!(exchange.timings.first_byte_us, None);
}

#[tokio::test]
async fn a_large_request_arrives_whole() {
    let client = client(dev(), Script::always(&["127.0.0.1"]));
    for animal in [status(200, None), Animal::Tls(TlsFault::Good)] {
        let zoo = Zoo::of(animal);
        let exchange = post_bytes(&client, &zoo.url, LONG, Bytes::from(vec![b'x'; 4 * 1024 * 1024])).await;
        assert_eq!((exchange.outcome, zoo.requests()), (Ok(200), 1));
    }
}

#[tokio::test]
async fn only_a_known_authority_is_trusted() {
    let other = Authority::generate().pem.into_bytes();
    let client = client_trusting(other, dev(), Script::always(&["127.0.0.1"]));
    let zoo = Zoo::of(Animal::Tls(TlsFault::Good));
    let exchange = post(&client, &zoo.url, LONG).await;
    assert_eq!((&*outcome(&exchange), zoo.requests()), ("tls_failed", 0));
}

mod connections {
    use super::*;

    #[tokio::test]
    async fn a_good_one_is_used_again() {
        for animal in [status(200, None), status(500, None), Animal::Tls(TlsFault::Good)] {
            let lookup = Script::always(&["127.0.0.1"]);
            let client = client(dev(), lookup.clone());
            let zoo = Zoo::of(animal.clone());
            // By name, so that there is something to look up.
            let url = zoo.url.replace("127.0.0.1", "localhost");
            let first = post(&client, &url, LONG).await.timings;
            assert!(
                first.dns_us.is_some() && first.connect_us.is_some() && first.first_byte_us.is_some(),
                "{first:?}"
            );
            let second = post(&client, &url, LONG).await.timings;
            assert_eq!(
                (second.dns_us, second.connect_us, second.tls_us),
                (None, None, None),
                "{animal:?}"
            );
            assert!(second.first_byte_us.is_some());
            assert_eq!(
                (zoo.connections(), zoo.requests(), lookup.asked()),
                (1, 2, 1),
                "{animal:?}"
            );
        }
    }

    #[tokio::test]
    async fn one_with_an_unread_or_wrong_rest_is_not() {
        let animals = [
            (Animal::HugeBody, 200),
            (Animal::HugeChunked, 200),
            (Animal::WrongContentLengthShort, 200),
            (Animal::BodyOn204, 204),
        ];
        let client = client(dev(), Script::always(&["127.0.0.1"]));
        for (animal, status) in animals {
            let zoo = Zoo::of(animal.clone());
            for connections in 1..=3 {
                let exchange = post(&client, &zoo.url, LONG).await;
                assert_eq!(
                    (exchange.outcome, zoo.connections()),
                    (Ok(status), connections),
                    "{animal:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn one_that_the_receiver_closed_is_not() {
        let client = client(dev(), Script::always(&["127.0.0.1"]));
        let closing = status(200, Some(("connection", "close")));
        for animal in [closing, Animal::LeavesAfterAnswer, Animal::Tls(TlsFault::GoodOnce)] {
            let zoo = Zoo::of(animal.clone());
            for times in 1..=3 {
                let exchange = post(&client, &zoo.url, LONG).await;
                assert_eq!(exchange.outcome, Ok(200), "{animal:?}");
                assert_eq!((zoo.connections(), zoo.requests()), (times, times), "{animal:?}");
                assert!(zoo.is_left().await);
            }
        }
    }

    #[tokio::test]
    async fn one_that_timed_out_is_not() {
        let client = client(dev(), Script::always(&["127.0.0.1"]));
        let zoo = Zoo::of(Animal::HangBeforeHeaders);
        for connections in 1..=2 {
            let exchange = post(&client, &zoo.url, Duration::from_secs(2)).await;
            assert_eq!((&*outcome(&exchange), zoo.connections()), ("timeout", connections));
            assert_eq!(exchange.timings.first_byte_us, None);
            assert!(
                exchange.timings.connect_us.is_some() && exchange.remote == Some(zoo.address),
                "who hangs can be told"
            );
        }
    }
}

#[actix_web::test]
async fn courtesies_of_one_workspace_leave_room_for_those_of_others() {
    let silent = McpServer::start(false, |_, _| Some(Reply::Hang));
    let client = client(dev(), Arc::new(SystemLookup));
    let url = Url::parse(&silent.url).unwrap();
    for (tenant, errands) in [(1_u128, 12), (2, 3)] {
        for _ in 0..errands {
            let mut headers = HeaderMap::new();
            headers.insert("x-of", tenant.to_string().parse().unwrap());
            let note = Note::new(Method::DELETE, headers, Bytes::new());
            client.send_detached(TenantId(uuid::Uuid::from_u128(tenant)), url.clone(), vec![note], LONG);
        }
    }
    silent.arrived("DELETE", 11).await;
    let heard = silent.heard();
    let of = |tenant: &str| heard.iter().filter(|heard| heard.headers["x-of"] == tenant).count();
    assert_eq!((of("1"), of("2")), (8, 3));
}
