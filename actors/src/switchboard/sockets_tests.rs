//! Real sockets on loopback, with peers that are sockets, too.
use super::*;
use crate::switchboard::table::Arrival;
use entities::ids::{TenantId, TrunkId};
use rustls::RootCertStore;
use std::time::Instant;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// So that nobody waits as long as a real peer may take.
const WHOLE_WITHIN: Duration = Duration::from_millis(400);

/// A trunk, of that workspace.
fn of_workspace(workspace: u128, trunk: u128) -> (TenantId, TrunkId) {
    (
        TenantId(uuid::Uuid::from_u128(workspace)),
        TrunkId(uuid::Uuid::from_u128(trunk)),
    )
}

const PEER: [u8; 4] = [127, 0, 0, 2];
const STRANGER: [u8; 4] = [127, 0, 0, 3];

struct Bench {
    sockets: OpenSockets,
    served: Served,
    arriving: mpsc::Receiver<Incoming>,
}

fn bench() -> Bench {
    let options = SipOptions {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls: None,
        address: None,
        rtp_ports: 20_000..=20_009,
    };
    let (inbox, arriving) = mpsc::channel(INBOX);
    let served = Served {
        calls: CallTable::default(),
        sources: SourceTable::default(),
        inbox,
        whole_within: WHOLE_WITHIN,
    };
    let sockets = OpenSockets::open(&options, served.clone()).unwrap();
    let tls = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    sockets.start(&Handle::current(), Arc::new(tls)).unwrap();
    Bench {
        sockets,
        served,
        arriving,
    }
}

fn target(address: SocketAddr, transport: Transport) -> Target {
    Target {
        address,
        transport,
        name: "127.0.0.1".into(),
    }
}

const OPTIONS: &str = "OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP b;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\n\
     Call-ID: x\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n";

impl Bench {
    async fn connected_from(&self, address: [u8; 4]) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((address, 0))).unwrap();
        socket.connect(self.sockets.tcp.bound()).await.unwrap()
    }

    /// Is a ping answered?
    async fn is_served(&self, address: [u8; 4]) -> bool {
        let mut stream = self.connected_from(address).await;
        let mut read = [0; 2];
        let sent = stream.write_all(b"\r\n\r\n").await;
        sent.is_ok() && timeout(PATIENCE, stream.read_exact(&mut read)).await.unwrap().is_ok()
    }
}

async fn is_closed(stream: &mut TcpStream) {
    let read = timeout(PATIENCE, stream.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

async fn next(bench: &mut Bench) -> Incoming {
    timeout(PATIENCE, bench.arriving.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_strangers_datagram_is_not_even_read() {
    let mut bench = bench();
    let _peer = bench.served.sources.speak_with(PEER.into());
    for from in [STRANGER, PEER] {
        let socket = UdpSocket::bind(SocketAddr::from((from, 0))).unwrap();
        socket.send_to(b"hello", bench.sockets.udp.bound()).unwrap();
    }
    let incoming = next(&mut bench).await;
    assert_eq!(incoming.source.address.ip(), IpAddr::from(PEER));
    assert!(matches!(incoming.what, What::Datagram(bytes) if &bytes[..] == b"hello"));
}

#[tokio::test]
async fn what_goes_to_one_peer_goes_over_one_connection_and_its_answers_come_back_by_it() {
    let mut bench = bench();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let _peer = bench.served.sources.speak_with(address.ip());
    let (target, call_id) = (target(address, Transport::Tcp), Arc::from("x"));
    for _ in 0..2 {
        bench
            .sockets
            .send(Bytes::from_static(b"ping!"), &target, &call_id)
            .unwrap();
    }
    let (mut stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut read = [0; 10];
    timeout(PATIENCE, stream.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"ping!ping!");
    stream.write_all(OPTIONS.as_bytes()).await.unwrap();
    let incoming = next(&mut bench).await;
    assert_eq!(
        (incoming.source.address, incoming.source.transport),
        (address, Transport::Tcp)
    );
    assert!(matches!(incoming.what, What::Message(Message::Request(_))));
    // A ping is answered on the same connection.
    stream.write_all(b"\r\n\r\n").await.unwrap();
    timeout(PATIENCE, stream.read_exact(&mut read[..2]))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&read[..2], b"\r\n");
}

#[tokio::test]
async fn who_sends_over_a_connection_that_cannot_be_made_is_told() {
    let bench = bench();
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut mailbox = bench.served.calls.register("x").unwrap();
    let call_id = mailbox.call_id().clone();
    let target = target(address, Transport::Tcp);
    bench.sockets.send(Bytes::from_static(b"x"), &target, &call_id).unwrap();
    let arrival = timeout(PATIENCE, mailbox.arrived()).await.unwrap();
    assert!(matches!(arrival, Arrival::Undelivered));
}

#[tokio::test]
async fn one_peer_does_not_take_the_connections_of_all() {
    let bench = bench();
    let _peer = bench.served.sources.speak_with(PEER.into());
    let mut streams = Vec::new();
    for _ in 0..=stream::MOST_OF_ONE {
        streams.push(bench.connected_from(PEER).await);
    }
    is_closed(&mut streams.pop().unwrap()).await;
    // One that has ended gives its place to another.
    drop(streams.pop());
    let began = Instant::now();
    while !bench.is_served(PEER).await {
        assert!(began.elapsed() < PATIENCE, "the place is not given back");
    }
}

/// However many addresses a trunk has; and another trunk's peer finds room beside it.
#[tokio::test]
async fn one_trunk_does_not_take_the_connections_of_all() {
    let bench = bench();
    let [one, other] = [of_workspace(7, 1), of_workspace(8, 2)];
    bench.served.sources.set(one, vec!["127.0.1.0/24".parse().unwrap()]);
    bench.served.sources.set(other, vec!["127.0.2.1/32".parse().unwrap()]);
    let mut streams = Vec::new();
    for n in 0..=stream::MOST_OF_ONE {
        let last = u8::try_from(n % 200 + 1).unwrap();
        streams.push(bench.connected_from([127, 0, 1, last]).await);
    }
    is_closed(&mut streams.pop().unwrap()).await;
    assert!(bench.is_served([127, 0, 2, 1]).await);
    // A carrier of both: the other's calls still come over it.
    let carrier: ipnet::IpNet = "127.0.3.0/24".parse().unwrap();
    let sources = &bench.served.sources;
    sources.set(one, vec!["127.0.1.0/24".parse().unwrap(), carrier]);
    sources.set(other, vec!["127.0.2.1/32".parse().unwrap(), carrier]);
    assert!(bench.is_served([127, 0, 3, 1]).await);
}

/// However many trunks it has; and another workspace's peer finds room beside them.
#[tokio::test]
async fn one_workspace_does_not_take_the_connections_of_all() {
    let bench = bench();
    let sources = &bench.served.sources;
    let network = |n: u8| format!("127.0.{n}.1/32").parse::<ipnet::IpNet>().unwrap();
    let shared = network(9);
    for (workspace, trunk) in [(7, 1), (7, 2), (8, 3)] {
        sources.set(of_workspace(workspace, trunk.into()), vec![network(trunk), shared]);
    }
    let admit = |n: u8, port: u16| {
        bench.sockets.streams.admit(Source {
            address: SocketAddr::from(([127, 0, n, 1], port)),
            transport: Transport::Tcp,
        })
    };
    let ports = 1..=u16::try_from(stream::MOST_OF_WORKSPACE).unwrap();
    let places: Vec<_> = ports
        .map(|port| admit(if port % 2 == 0 { 1 } else { 2 }, port))
        .collect();
    assert!(places.iter().all(Option::is_some));
    assert!(admit(1, 9_001).is_none() && admit(2, 9_001).is_none());
    assert!(admit(3, 9_001).is_some(), "the other workspace's own");
    assert!(admit(9, 9_001).is_some(), "a carrier of both");
    drop(places);
    assert!(admit(1, 9_001).is_some());
}

/// Byte by byte; and one who begins no end of headers. Who is silent between two messages is not.
#[tokio::test]
async fn who_never_comes_to_an_end_is_let_go() {
    let mut bench = bench();
    let _peer = bench.served.sources.speak_with(PEER.into());
    let mut patient = bench.connected_from(PEER).await;
    patient.write_all(OPTIONS.as_bytes()).await.unwrap();
    next(&mut bench).await;
    let (mut dripping, began) = (bench.connected_from(PEER).await, Instant::now());
    dripping.write_all(b"OPTIONS sip:a@b SIP/2.0\r\nX: ").await.unwrap();
    loop {
        let read = timeout(Duration::from_millis(20), dripping.read(&mut [0; 1])).await;
        if matches!(read, Ok(Ok(0) | Err(_))) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "it may drip for ever");
        // Closed between the look and this.
        let _ = dripping.write_all(b"a").await;
    }
    assert!(began.elapsed() >= WHOLE_WITHIN, "{:?}", began.elapsed());
    let mut endless = bench.connected_from(PEER).await;
    endless.write_all(b"OPTIONS sip:a@b SIP/2.0\r\n").await.unwrap();
    for _ in 0..70 {
        let _ = endless
            .write_all(format!("X: {}\r\n", "a".repeat(1_000)).as_bytes())
            .await;
    }
    is_closed(&mut endless).await;
    // Both took longer than a message may.
    let (first, rest) = OPTIONS.split_at(40);
    for piece in [first, rest] {
        patient.write_all(piece.as_bytes()).await.unwrap();
    }
    next(&mut bench).await;
}

#[tokio::test]
async fn a_stranger_who_connects_is_let_go_at_once() {
    let bench = bench();
    is_closed(&mut bench.connected_from(STRANGER).await).await;
}
