//! Talks with a mail server that says what it is told to.
use super::*;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// A server that says no at one step of the talk, and yes at all others.
async fn refusing(step: &'static str, no: &'static str) -> Result<String, Failure> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = BufReader::new(stream);
        let mut verb = "hello".to_owned();
        loop {
            let yes = match verb.as_str() {
                "hello" => "220 here",
                "ehlo" => "250-here\r\n250 AUTH PLAIN",
                "auth" => "235 welcome",
                "data" => "354 go on",
                _ => "250 ok",
            };
            let said = if verb == step { no } else { yes };
            let in_data = said.starts_with("354");
            if peer.write_all(format!("{said}\r\n").as_bytes()).await.is_err() {
                return;
            }
            loop {
                let mut line = String::new();
                if peer.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return;
                }
                if in_data && line == ".\r\n" {
                    verb = "end".into();
                    break;
                }
                if !in_data {
                    verb = line.split([' ', '\r']).next().unwrap_or_default().to_lowercase();
                    break;
                }
            }
        }
    });
    let server = Server::parse(&format!("smtp://u:p@{address}")).unwrap();
    let mail = Message::builder()
        .from("us@example.com".parse().unwrap())
        .to("ann@example.com".parse().unwrap())
        .body("Hello".to_owned())
        .unwrap();
    let said = server.hand_over(&mail).await;
    serve.abort();
    said
}

#[tokio::test]
async fn only_a_recipient_bounces_and_what_is_about_us_passes() {
    for (step, no, expected) in [
        ("hello", "554 no service for you", "passing"),
        ("hello", "421 busy", "passing"),
        ("ehlo", "550 bad name", "passing"),
        ("auth", "535 wrong password", "passing"),
        ("auth", "554 account locked", "passing"),
        ("mail", "550 sender is not ours", "passing"),
        ("mail", "530 login first", "passing"),
        ("mail", "451 later", "passing"),
        ("rcpt", "550 nobody here", "bounced"),
        ("rcpt", "530 login first", "passing"),
        ("rcpt", "554 5.7.1 <ann@example.com>: Relay access denied", "passing"),
        ("rcpt", "550 relaying denied", "passing"),
        (
            "rcpt",
            "550 5.1.1 <bob@example.com>: User unknown in relay recipient table",
            "bounced",
        ),
        (
            "rcpt",
            "550 5.1.1 <x@privaterelay.example.com>: no such user",
            "bounced",
        ),
        ("rcpt", "450 later", "passing"),
        ("data", "554 no valid mail", "refused"),
        ("data", "451 later", "passing"),
        ("end", "554 looks like spam", "refused"),
        ("end", "452 full", "passing"),
        ("never", "", "taken"),
    ] {
        let found = match refusing(step, no).await {
            Ok(_) => "taken",
            Err(Failure::Passing(_)) => "passing",
            Err(Failure::Bounced(_)) => "bounced",
            Err(Failure::Refused(_)) => "refused",
            Err(Failure::Unknown(_)) => "unknown",
        };
        assert_eq!(found, expected, "{step}: {no}");
    }
}

#[test]
fn addresses_of_servers() {
    for (url, port) in [
        ("smtp://127.0.0.1", 25),
        ("smtp://mail.example.com", 587),
        ("smtps://u:p%40+w@mail.example.com", 465),
        ("smtp://u:p@mail.example.com:2525", 2525),
        ("smtp://mail.example.com?tls=required", 587),
    ] {
        let server = Server::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
        assert_eq!(server.0.port, port, "{url}");
        let required = matches!(server.0.tls, Tls::Required(_) | Tls::Wrapped(_));
        assert!(
            required || server.0.credentials.is_none(),
            "{url}: a password goes over TLS only"
        );
    }
    for url in [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://h?tls=maybe",
    ] {
        assert!(Server::parse(url).is_err(), "{url}");
    }
}
