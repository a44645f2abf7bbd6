//! The relays that browsers are given: is there one, and does it speak STUN?
use super::Findings;
use crate::settings::Settings;
use adapters::outbound::trouble;
use futures_util::{StreamExt, stream};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    net::{TcpStream, UdpSocket, lookup_host},
    time::timeout,
};

/// The longest wait for an address, and for a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packets get lost.
const TRIES: usize = 3;
const BETWEEN: Duration = Duration::from_secs(1);
/// Relays that are asked at once.
const AT_ONCE: usize = 8;

pub(super) async fn look(settings: &Settings, found: &mut Findings) {
    let relays = settings.turn_urls.split(',').map(str::trim);
    let asked = relays
        .filter(|url| !url.is_empty())
        .map(|url| async move { (url, ask(url).await) });
    let heard: Vec<(&str, Result<(), String>)> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    for (url, heard) in heard {
        match heard {
            Ok(()) => found.ok("relay, turn_urls", format!("{url} answers")),
            // Rooms work without it, for most people.
            Err(why) => found.warning(
                "relay, turn_urls",
                format!("{url}: {why}"),
                "see that it runs and that its port is open: whoever is behind a strict firewall hears nothing without it",
            ),
        }
    }
}

/// Where a relay is, and how it is asked.
#[derive(Debug, PartialEq, Eq)]
struct Relay<'a> {
    host: &'a str,
    port: u16,
    /// Then we only see whether somebody listens: to say more would take TLS, or a login.
    is_tcp: bool,
}

impl<'a> Relay<'a> {
    /// Source: RFC 7064 and 7065.
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once(':')?;
        let (at, query) = rest.split_once('?').unwrap_or((rest, ""));
        let is_secure = scheme == "turns";
        let (host, port) = match at.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                (host, port.strip_prefix(':'))
            }
            None => match at.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (at, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok()?,
            None if is_secure => 5349,
            None => 3478,
        };
        let is_tcp = is_secure || query == "transport=tcp";
        (!host.is_empty()).then_some(Relay { host, port, is_tcp })
    }
}

async fn ask(url: &str) -> Result<(), String> {
    let relay = Relay::parse(url).ok_or("is no address of a relay; write turn:turn.example.com:3478")?;
    let host = relay.host;
    let addresses = match timeout(PATIENCE, lookup_host((host, relay.port))).await {
        Err(_) => return Err(format!("{host} cannot be looked up: no name server answers")),
        Ok(addresses) => addresses.map_err(|error| trouble::unknown(host, &error))?,
    };
    let mut last = format!("{host} has no address");
    for address in addresses.take(2) {
        let asked = match relay.is_tcp {
            true => connect(address).await,
            false => binding(address).await,
        };
        match asked {
            Ok(true) => return Ok(()),
            Ok(false) => "does not answer".clone_into(&mut last),
            Err(error) => last = trouble::unnamed(&error),
        }
    }
    Err(last)
}

async fn connect(at: SocketAddr) -> io::Result<bool> {
    match timeout(PATIENCE, TcpStream::connect(at)).await {
        Ok(connected) => connected.map(|_| true),
        Err(_) => Ok(false),
    }
}

/// Asks for a binding, which takes no login.
async fn binding(at: SocketAddr) -> io::Result<bool> {
    let any = match at {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(at).await?;
    let request = request(rand::random());
    let mut answer = [0; 1500];
    for _ in 0..TRIES {
        socket.send(&request).await?;
        if let Ok(received) = timeout(BETWEEN, socket.recv(&mut answer)).await
            && is_answer(&request, &answer[..received?])
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A binding request without attributes. Source: RFC 8489, section 5.
fn request(transaction: [u8; 12]) -> [u8; 20] {
    let mut request = [0; 20];
    request[1] = 0x01;
    request[4..8].copy_from_slice(&[0x21, 0x12, 0xa4, 0x42]);
    request[8..].copy_from_slice(&transaction);
    request
}

/// A success, or a refusal, which shows as well that it is there.
fn is_answer(request: &[u8; 20], answer: &[u8]) -> bool {
    answer.len() >= 20 && answer[4..20] == request[4..20] && matches!(answer[..2], [0x01, 0x01 | 0x11])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relays_address_says_how_it_is_asked() {
        let relay = |host, port, is_tcp| Some(Relay { host, port, is_tcp });
        for (url, expected) in [
            ("stun:stun.example.com", relay("stun.example.com", 3478, false)),
            ("turn:192.0.2.7:3479", relay("192.0.2.7", 3479, false)),
            ("turn:t.example.com?transport=udp", relay("t.example.com", 3478, false)),
            ("turn:t.example.com:80?transport=tcp", relay("t.example.com", 80, true)),
            ("turns:t.example.com", relay("t.example.com", 5349, true)),
            ("turn:[2001:db8::1]:3478", relay("2001:db8::1", 3478, false)),
            ("turn:", None),
            ("turn:t.example.com:x", None),
            ("turn:[2001:db8::1", None),
        ] {
            assert_eq!(Relay::parse(url), expected, "{url}");
        }
    }

    /// On a real socket: it refuses, as a relay does that wants a login for everything.
    #[actix_web::test]
    async fn whoever_answers_is_there_and_whoever_is_silent_is_not() {
        let server = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
        let at = server.local_addr().unwrap();
        let serve = async {
            let mut packet = [0; 64];
            let (length, from) = server.recv_from(&mut packet).await.unwrap();
            assert_eq!((length, &packet[..2]), (20, &[0, 1][..]));
            // Of somebody else's question.
            let mut answer = packet;
            answer[..2].copy_from_slice(&[0x01, 0x11]);
            answer[19] ^= 1;
            server.send_to(&answer[..20], from).await.unwrap();
            let (_, from) = server.recv_from(&mut packet).await.unwrap();
            answer[..20].copy_from_slice(&packet[..20]);
            answer[..2].copy_from_slice(&[0x01, 0x11]);
            server.send_to(&answer[..20], from).await.unwrap();
        };
        let url = format!("turn:{at}");
        let (answered, ()) = tokio::join!(ask(&url), serve);
        assert_eq!(answered, Ok(()));
        drop(server);
        assert!(ask(&url).await.is_err());
        assert!(ask(&format!("turn:{at}?transport=tcp")).await.is_err());
    }
}
