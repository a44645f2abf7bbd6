//! The command against a server and a receiver in miniature.
use super::*;
use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    dev::ServerHandle,
    web::{self, Data},
};
use std::{
    net::TcpListener,
    sync::{Mutex, PoisonError},
};

const IDS: [&str; 3] = [
    "01a1fa94-5aa9-734c-8dd9-8983a0dd6d24",
    "01a1fa94-5aa9-734c-8dd9-8983a0dd6d25",
    "01a1fa94-5aa9-734c-8dd9-8983a0dd6d26",
];

/// Both ends at once: `/v1/..` is Callboard, `/hook` the receiver, `/answer/{status}` answers so.
#[derive(Default)]
struct Both {
    /// What the stream is to bring, one text per connection.
    connections: Mutex<Vec<String>>,
    newest: Mutex<Option<&'static str>>,
    /// `Last-Event-ID` of each connection.
    resumed: Mutex<Vec<String>>,
    received: Mutex<Vec<Received>>,
}

/// The headers and the body of a request that the receiver saw.
type Received = (Vec<(String, String)>, String);

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn list(both: Data<Both>) -> HttpResponse {
    let data: Vec<_> = held(&both.newest)
        .iter()
        .map(|id| serde_json::json!({ "id": id }))
        .collect();
    HttpResponse::Ok().json(serde_json::json!({ "data": data, "has_more": false, "next_cursor": null }))
}

async fn stream(both: Data<Both>, request: HttpRequest) -> HttpResponse {
    let header = |name: &str| request.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("authorization"), "Bearer vk_test");
    let last = header("last-event-id");
    held(&both.resumed).push(last);
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .body(held(&both.connections).remove(0))
}

async fn hook(both: Data<Both>, request: HttpRequest, body: String) -> HttpResponse {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    held(&both.received).push((headers.collect(), body));
    HttpResponse::NoContent().finish()
}

async fn answer(status: web::Path<u16>) -> HttpResponse {
    let mut answer = HttpResponse::build(status.into_inner().try_into().unwrap());
    answer
        .insert_header(("Location", "/hook"))
        .json(serde_json::json!({ "error": { "code": "x", "message": "so it is" } }))
}

fn start() -> (Data<Both>, String, ServerHandle) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let both = Data::new(Both::default());
    let data = both.clone();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/v1/events", web::get().to(list))
            .route("/v1/events/stream", web::get().to(stream))
            .route("/v1/events/{id}", web::get().to(async || envelope(0)))
            .route("/hook", web::post().to(hook))
            .route("/answer/{status}", web::post().to(answer))
            .route("/answer/{status}/v1/events/stream", web::get().to(answer))
    });
    let server = server.workers(1).disable_signals().listen(listener).unwrap().run();
    let handle = server.handle();
    actix_rt::spawn(server);
    (both, url, handle)
}

fn envelope(number: usize) -> String {
    // Blanks and order are not what a second serialisation would write.
    format!(
        r#"{{"id":"{}", "type":"session.ended","data":{{"b":1.0,"a":"ü"}}}}"#,
        IDS[number]
    )
}

fn frame(number: usize, event_type: &str) -> String {
    format!(
        "id: {}\nevent: {event_type}\ndata: {}\n\n",
        IDS[number],
        envelope(number)
    )
}

fn secret() -> String {
    format!("whsec_{}=", "A".repeat(43))
}

fn forward(url: &str) -> Forward {
    let url = http_url(url).unwrap();
    Forward::new(url, secret(), Clock::wall()).unwrap()
}

fn server(url: &str) -> Server {
    Server::new(http_url(url).unwrap(), " vk_test\n").unwrap()
}

fn tail(url: &str, patterns: &[&str]) -> Tail {
    Tail {
        server: server(url),
        forward: forward(&format!("{url}/hook")),
        patterns: Patterns(patterns.iter().map(|&pattern| pattern.to_owned()).collect()),
        json: true,
        last: None,
        wait: LONGEST_WAIT,
    }
}

#[actix_web::test]
async fn events_are_forwarded_as_deliveries_and_a_cut_stream_is_resumed_where_it_was() {
    let (both, url, handle) = start();
    *held(&both.newest) = Some(IDS[0]);
    let connected = ": connected\n\n";
    // The first is cut in the middle of an event; the second brings one that nobody asked for.
    *held(&both.connections) = vec![
        format!("{connected}{}id: {}\nda", frame(1, "session.ended"), IDS[2]),
        format!("{connected}{}", frame(2, "campaign.created")),
        connected.to_owned(),
    ];
    let mut tail = tail(&url, &["session.*"]);
    for _ in 0..3 {
        tail.connection().await.unwrap();
        assert_eq!(
            tail.wait, FIRST_WAIT,
            "a connection that brought something starts the waits anew"
        );
    }
    assert_eq!(
        *held(&both.resumed),
        IDS,
        "the newest at the start, then the last that was dealt with"
    );

    let received = std::mem::take(&mut *held(&both.received));
    assert_eq!(received.len(), 1);
    let (headers, body) = &received[0];
    assert_eq!(*body, envelope(1), "byte for byte");
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    assert_eq!(header("content-type"), "application/json");
    assert_eq!((header("x-webhook-id"), header("webhook-id")), (IDS[1], IDS[1]));
    assert_eq!(header("x-webhook-event"), "session.ended");
    assert_eq!(header("x-webhook-replay"), "");
    let time = header("x-webhook-timestamp");
    assert_eq!(time, header("webhook-timestamp"));
    let time = time.parse().unwrap();
    let signature = header("x-webhook-signature");
    assert_eq!(
        signature::verify(&secret(), signature, time, body.as_bytes(), time),
        Ok(())
    );
    let standard = signature::sign_standard(&secret(), IDS[1], time, body.as_bytes());
    assert_eq!(header("webhook-signature"), standard);
    handle.stop(false).await;
}

#[actix_web::test]
async fn where_there_is_no_event_yet_the_stream_starts_before_all() {
    let (both, url, handle) = start();
    *held(&both.connections) = vec![String::new()];
    tail(&url, &["*"]).connection().await.unwrap();
    assert_eq!(*held(&both.resumed), [uuid::Uuid::nil().to_string()]);
    handle.stop(false).await;
}

#[actix_web::test]
async fn an_oversized_event_ends_the_command() {
    let (both, url, handle) = start();
    *held(&both.connections) = vec![format!("data: {}", "x".repeat(frames::MAX_FRAME_BYTES))];
    let refusal = tail(&url, &["*"]).connection().await.unwrap_err();
    assert!(matches!(refusal, Refusal::Final(error) if error.0.contains("more than 4194304 bytes")));
    handle.stop(false).await;
}

#[actix_web::test]
async fn a_replay_is_marked_and_carries_the_same_bytes() {
    let (both, url, handle) = start();
    let id = IDS[0].parse().unwrap();
    replay(&server(&url), &forward(&format!("{url}/hook")), id, true)
        .await
        .unwrap();
    let (headers, body) = held(&both.received).remove(0);
    assert_eq!(body, envelope(0));
    assert!(headers.contains(&("x-webhook-replay".into(), "true".into())));
    let refused = replay(&server(&url), &forward(&format!("{url}/answer/500")), id, true).await;
    assert!(refused.unwrap_err().0.contains("the receiver answered 500"));
    handle.stop(false).await;
}

#[actix_web::test]
async fn what_the_server_refuses_says_what_to_do() {
    let (_, url, handle) = start();
    for (status, advice) in [
        (401, "give a valid key with --key or CALLBOARD_KEY"),
        (403, "the key needs the scope webhooks:read"),
        (404, "is --server the address of Callboard itself?"),
        (501, "answered 501: so it is"),
        (302, "give --server the final address"),
        (422, "answered 422: so it is"),
    ] {
        // A path and a slash at its end belong to the address.
        let server = server(&format!("{url}/answer/{status}/"));
        match server.stream(IDS[0].parse().unwrap()).await {
            Err(Refusal::Final(error)) => assert!(error.0.contains(advice), "{status}: {error}"),
            other => panic!("{status}: {:?}", other.err()),
        }
    }
    for status in [429, 500, 503] {
        let server = server(&format!("{url}/answer/{status}"));
        let refusal = server.stream(IDS[0].parse().unwrap()).await.err();
        assert!(
            matches!(&refusal, Some(Refusal::Passing(why)) if why.contains("so it is")),
            "{status}: {refusal:?}"
        );
    }
    handle.stop(false).await;
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let refusal = server(&format!("http://{closed}")).newest().await.err();
    assert!(
        matches!(&refusal, Some(Refusal::Passing(why)) if why.contains("refused")),
        "{refusal:?}"
    );
}

#[actix_web::test]
async fn what_the_receiver_does_stands_in_the_line() {
    let (_, url, handle) = start();
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let nobody = format!("http://{closed}/hook");
    let event = Event {
        id: IDS[0].parse().unwrap(),
        event_type: "session.ended".into(),
        body: envelope(0).into(),
    };
    for (target, status, words) in [
        (format!("{url}/hook"), 204, "204 in ".to_owned()),
        (
            format!("{url}/answer/401"),
            401,
            "does it use the secret of this command?".into(),
        ),
        (format!("{url}/answer/302"), 302, "redirects are not followed".into()),
        (nobody.clone(), 0, format!("nothing listens at {nobody}")),
    ] {
        let line = forward(&target).send(&event, false).await;
        assert_eq!(line.status, status, "{line:?}");
        let text = line.text();
        assert!(text.contains(&words), "{text}");
        assert!(text.contains("session.ended") && text.contains(IDS[0]), "{text}");
        assert_eq!(text.contains("not tried again, --replay"), status != 204, "{text}");
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!(json["type"], "session.ended");
        assert_eq!(json["error"].is_null(), status == 204);
    }
    handle.stop(false).await;
}

#[test]
fn the_command_line_refuses_what_cannot_be_and_names_the_flag() {
    use clap::Parser;
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        listen: Listen,
    }
    let parse = |arguments: &[&str]| Line::try_parse_from([&["listen", "--key", "vk_test"], arguments].concat());
    for (arguments, words) in [
        (&["--forward-to", "localhost:9000"][..], "--forward-to"),
        (
            &["--forward-to", "ftp://localhost/"],
            "must start with http:// or https://",
        ),
        (&["--forward-to", "/hook"], "--forward-to"),
        (
            &["--forward-to", "http://me:word@localhost/"],
            "must not carry a user name",
        ),
        (
            &["--forward-to", "http://localhost", "--events", "session.end"],
            "session.ended",
        ),
        (&["--forward-to", "http://localhost", "--replay", "7"], "--replay"),
    ] {
        let error = parse(arguments).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
    let Line { listen } = parse(&[
        "--forward-to",
        "http://localhost:9000",
        "--events",
        "session.*, campaign.completed",
    ])
    .unwrap();
    assert_eq!(listen.events, ["session.*", "campaign.completed"]);
    assert_eq!(
        parse(&["--forward-to", "http://[::1]:9000/x"]).unwrap().listen.events,
        ["*"]
    );
}
