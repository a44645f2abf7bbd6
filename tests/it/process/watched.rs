//! What a service shows to those who watch it, and what `doctor` says of it.
use super::{Calls, Place, json_of, on, on_disk, own_address, stderr, terminate};
use crate::world::{
    Backend, TestDatabase, client,
    name_server::{Data, NameServer},
};
use sea_orm::{ConnectOptions, ConnectionTrait, Database};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{TcpListener, UdpSocket},
    path::Path,
    process::{Command, Output},
};

async fn status(request: reqwest::RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

#[test]
fn metrics_are_for_those_who_watch_and_for_nobody_else() {
    on(Backend::Sqlite, async |place| {
        let watched = own_address();
        let mut serving = place.serve(&[("CALLBOARD_METRICS_BIND", &watched)]);
        let api = format!("http://{}", place.bind);
        client().get(format!("{api}/v1/me")).send().await.unwrap();
        let metrics = client().get(format!("http://{watched}/metrics")).send().await.unwrap();
        assert_eq!(metrics.status().as_u16(), 200);
        let metrics = metrics.text().await.unwrap();
        for line in [
            "# HELP callboard_http_seconds Requests to the API",
            "# TYPE callboard_http_seconds summary",
            "callboard_build_info{version=\"",
            "\",database=\"sqlite\"} 1",
            "method=\"GET\",route=\"/v1/me\",status=\"4\"",
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
            "process_open_fds ",
        ] {
            assert!(metrics.contains(line), "{line}:\n{metrics}");
        }
        assert_eq!(status(client().get(format!("{api}/metrics"))).await, 404);
        for path in ["/healthz", "/readyz"] {
            assert_eq!(
                status(client().get(format!("http://{watched}{path}"))).await,
                200,
                "{path}"
            );
        }
        // The API is not there.
        assert_eq!(status(client().get(format!("http://{watched}/v1/me"))).await, 404);
        terminate(&mut serving);

        // Without an address of its own.
        let mut serving = place.serve(&[]);
        let metrics = || client().get(format!("{api}/metrics"));
        assert_eq!(status(metrics()).await, 200);
        assert_eq!(status(metrics().header("x-forwarded-for", "203.0.113.7")).await, 404);
        assert_eq!(status(metrics().header("forwarded", "for=203.0.113.7")).await, 404);
        assert_eq!(status(metrics().header("host", "calls.example.com")).await, 404);
        terminate(&mut serving);
    });
}

#[test]
fn a_log_that_goes_to_a_file_is_plain_and_one_event_a_line() {
    on(Backend::Sqlite, async |place| {
        let read = |format: &str| {
            let file = place.folder.path().join(format);
            let log = std::fs::File::create(&file).unwrap();
            let starting = place.start(&[("CALLBOARD_LOG_FORMAT", format)]);
            terminate(&mut starting.ready_into(log));
            (file, format.to_owned())
        };
        for (file, format) in [read("text"), read("json")] {
            let mut said = String::new();
            for _ in 0..200 {
                said = std::fs::read_to_string(&file).unwrap();
                if said.contains("stopped") {
                    break;
                }
                let _busy = runtime::clock::Clock::wall()
                    .sleep(std::time::Duration::from_millis(20))
                    .await;
            }
            assert!(said.contains("stopped") && said.contains("/setup#token="), "{said}");
            assert!(!said.contains('\u{1b}'), "{format}: {said}");
            if format == "json" {
                let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                let link = lines.iter().find_map(|line| line["fields"]["set_up_link"].as_str());
                assert!(link.is_some_and(|link| link.starts_with("http://")), "{said}");
            }
        }
    });
}

/// Whoever reads the log by machine reads also why there is no service.
#[test]
fn a_start_that_fails_is_an_event_of_a_json_log() {
    on(Backend::Sqlite, async |place| {
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let taken = taken.local_addr().unwrap().to_string();
        let fails = |environment: &[(&str, &str)], words: &str| {
            let mut command = place.command(&["serve"]);
            let output = command.envs(environment.iter().copied()).output().unwrap();
            assert!(!output.status.success(), "{environment:?}");
            let said = stderr(&output);
            let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let last = lines.last().unwrap();
            let message = last["fields"]["message"].as_str().unwrap();
            assert!(
                last["level"] == "ERROR" && message.contains(words),
                "{environment:?}: {said}"
            );
        };
        let json = ("CALLBOARD_LOG_FORMAT", "json");
        fails(&[json, ("CALLBOARD_BIND", "8080")], "bind");
        fails(&[json, ("CALLBOARD_BIND", &taken)], "bind");
        fails(&[json, ("CALLBOARD_SANDBOX_SPEED", "fast")], "sandbox_speed");
        let file = place.folder.path().join("callboard.toml");
        std::fs::write(&file, "log_format = \"json\"\nmax_concurency = 5").unwrap();
        fails(&[], "max_concurency");
        std::fs::write(&file, "no settings").unwrap();
        fails(&[json], "is not valid TOML");
    });
}

/// Not even the key that the first start makes, and no log beside a database that nobody serves.
#[test]
fn the_doctor_makes_no_file() {
    on(Backend::Sqlite, async |place| {
        let empty = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/callboard.db", empty.path().display());
        let fresh = [("CALLBOARD_DATABASE_URL", &*url), ("CALLBOARD_SECRET_KEY", "")];
        for arguments in [&["--offline"][..], &[]] {
            let looked = asking(&place, arguments, &fresh)
                .current_dir(empty.path())
                .output()
                .unwrap();
            assert!(looked.status.success(), "{looked:?}");
            assert_found(&looked, "settings", "warning", "dev is on");
        }
        assert_eq!(files(empty.path()), Vec::<String>::new());

        let mut serving = place.serve(&[]);
        terminate(&mut serving);
        let database = Path::new(place.database.url.strip_prefix("sqlite://").unwrap());
        let all = || [database.parent().unwrap(), place.folder.path()].map(files);
        let before = all();
        let looked = doctor(&place, &["--offline"], &[]);
        assert_found(&looked, "database", "ok", "is up to date");
        assert_eq!(all(), before);
    });
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn asking(place: &Place, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let arguments: Vec<&str> = ["--json", "doctor"].iter().chain(arguments).copied().collect();
    let mut command = place.command(&arguments);
    command
        .env("CALLBOARD_VOICE", "tones")
        .env("CALLBOARD_SPEECH_PROVIDER", "")
        .envs(environment.iter().copied());
    command
}

fn doctor(place: &Place, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    asking(place, arguments, environment).output().unwrap()
}

/// While servers of this test answer it.
async fn doctor_meanwhile(place: &Place, environment: &[(&str, &str)]) -> Output {
    let mut command = asking(place, &[], environment);
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    ended.await.unwrap()
}

/// What it found of one thing: its verdict, and what it said.
fn found(output: &Output, what: &str) -> (String, String) {
    let all = json_of(output);
    let mut of_that = all.as_array().unwrap().iter().filter(|one| one["what"] == what);
    let one = of_that
        .clone()
        .find(|one| one["verdict"] != "ok")
        .or_else(|| of_that.next());
    let one = one.unwrap_or_else(|| panic!("nothing of {what}: {all}"));
    let text = |name: &str| one[name].as_str().unwrap().to_owned();
    if text("verdict") != "ok" {
        assert!(!text("advice").is_empty(), "{one}");
    }
    (text("verdict"), text("said"))
}

fn assert_found(output: &Output, what: &str, verdict: &str, said: &str) {
    let found = found(output, what);
    assert!(found.0 == verdict && found.1.contains(said), "{what}: {found:?}");
    assert_eq!(
        output.status.success(),
        !stderr(output).contains("mended"),
        "{}",
        stderr(output)
    );
}

/// On a server that keeps what it acknowledges: the other one is found out.
fn the_doctor_finds_what_is_wrong(backend: Backend) {
    on_disk(backend, async |place| {
        let well = doctor(&place, &["--offline"], &[]);
        assert!(well.status.success(), "{well:?}");
        assert_found(&well, "port, bind", "ok", "is free");
        let mut serving = place.serve(&[]);
        let base_url = format!("http://{}", place.bind);
        let live = doctor(&place, &[], &[("CALLBOARD_BASE_URL", &base_url)]);
        assert!(live.status.success(), "{live:?}");
        assert_found(&live, "port, bind", "ok", "in use, and the service runs");
        assert_found(&live, "database", "ok", "is up to date");
        assert_found(&live, "secret key", "ok", "opens what is stored");
        assert_found(&live, "base URL", "ok", "leads here");
        if matches!(backend, Backend::Postgres) {
            assert_found(&live, "clock", "ok", "agrees");
        }

        let key = runtime::keyring::Keyring::generate();
        let wrong = doctor(&place, &["--offline"], &[("CALLBOARD_SECRET_KEY", &key)]);
        assert_found(&wrong, "secret key", "failure", "does not open");
        assert!(!wrong.status.success());
        let wrong = doctor(
            &place,
            &["--offline"],
            &[("CALLBOARD_METRICS_BIND", "203.0.113.7:9464")],
        );
        assert_found(&wrong, "port, metrics_bind", "failure", "cannot be opened");
        let wrong = doctor(&place, &["--offline"], &[("CALLBOARD_RETRIES", "5")]);
        assert_found(&wrong, "settings", "warning", "is not a setting");
        // Nobody is there.
        let sip_bind = own_address();
        let silent = [
            ("CALLBOARD_BASE_URL", "http://127.0.0.1:1"),
            ("CALLBOARD_SMTP_URL", "smtp://127.0.0.1:1"),
            ("CALLBOARD_MAIL_FROM", "a@example.com"),
            ("CALLBOARD_CHAT_URL", "http://127.0.0.1:1/v1"),
            ("CALLBOARD_REASSIGNED_URL", "http://127.0.0.1:1/query"),
            ("CALLBOARD_REGISTER_URLS", "uk_tps=http://127.0.0.1:1/query"),
            ("CALLBOARD_TURN_URLS", "turn:127.0.0.1:1"),
            ("CALLBOARD_TURN_SECRET", "x"),
            ("CALLBOARD_SIP_BIND", &sip_bind),
        ];
        let api = Calls::to(&place, place.workspace());
        let trunk = json!({ "name": "Carrier", "host": own_address(), "transport": "tcp" });
        api.post("/v1/sip_trunks", trunk).await;
        let paused = place.run(&["dispatch", "pause"]);
        assert!(paused.status.success());
        let wrong = doctor(&place, &[], &silent);
        assert_found(&wrong, "base URL", "failure", "does not answer");
        assert_found(&wrong, "mail server", "failure", "");
        assert_found(&wrong, "provider, chat_url", "failure", "does not answer");
        assert_found(&wrong, "provider, reassigned_url", "failure", "does not answer");
        assert_found(&wrong, "provider, register_urls", "failure", "does not answer");
        assert_found(&wrong, "relay, turn_urls", "warning", "turn:127.0.0.1:1");
        assert_found(&wrong, "trunk, Carrier", "warning", "");
        assert_found(&wrong, "dispatch", "warning", "is paused since");
        for line in json_of(&wrong).as_array().unwrap() {
            super::assert_in_our_words(line["said"].as_str().unwrap());
        }
        terminate(&mut serving);
        let moved = doctor(
            &place,
            &["--offline"],
            &[("CALLBOARD_DATABASE_URL", "sqlite:///nowhere/at/all.db")],
        );
        assert_found(&moved, "database", "failure", "/nowhere/at is not there");
    });
}

#[test]
fn the_doctor_finds_what_is_wrong_on_sqlite() {
    the_doctor_finds_what_is_wrong(Backend::Sqlite);
}
#[test]
fn the_doctor_finds_what_is_wrong_on_postgres() {
    the_doctor_finds_what_is_wrong(Backend::Postgres);
}

/// A proxy that leads to the wrong one, as after a move or a copy.
#[test]
fn the_doctor_tells_one_callboard_from_another() {
    on(Backend::Sqlite, async |place| {
        let Some(database) = TestDatabase::new(Backend::Sqlite).await else {
            return;
        };
        let other = Place::with(database);
        let (mut serving, mut other_serving) = (place.serve(&[]), other.serve(&[]));
        let leading_to = |place: &Place| format!("http://{}", place.bind);
        let well = doctor(&place, &[], &[("CALLBOARD_BASE_URL", &leading_to(&place))]);
        assert_found(&well, "base URL", "ok", "leads here");
        let astray = doctor(&place, &[], &[("CALLBOARD_BASE_URL", &leading_to(&other))]);
        assert_found(&astray, "base URL", "failure", "leads to another Callboard");
        terminate(&mut other_serving);
        terminate(&mut serving);
    });
}

/// Answers one request, with a time that has passed.
fn stopped_clock() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let answer = b"HTTP/1.1 200 OK\r\ndate: Tue, 15 Nov 1994 08:12:31 GMT\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).unwrap();
    });
    url
}

#[test]
fn the_doctor_compares_clocks_and_says_when_one_holds_everything() {
    on(Backend::Sqlite, async |place| {
        let mut serving = place.serve(&[]);
        terminate(&mut serving);
        let wrong = doctor(&place, &[], &[("CALLBOARD_CHAT_URL", &stopped_clock())]);
        assert_found(&wrong, "provider, chat_url", "ok", "answers (200)");
        assert_found(&wrong, "clock", "warning", "1 of 1");
        assert!(says_nothing_of(&wrong, "dispatch"));

        // As a service notes it that sees its clock step.
        let now = runtime::clock::Clock::wall().now();
        let doubt = runtime::clock::Doubt {
            since: now,
            step_ms: 90_000,
            believed_at: now.plus_seconds(600),
        };
        let status = actors::holds::ClockStatus {
            now,
            wall_clock: now.plus_seconds(90),
            gap_ms: 90_000,
            doubt: Some(doubt),
        };
        let database = Database::connect(ConnectOptions::new(&place.database.url))
            .await
            .unwrap();
        let set = format!("UPDATE meta SET value = '{}' WHERE key = 'clock'", status.text());
        assert_eq!(database.execute_unprepared(&set).await.unwrap().rows_affected(), 1);
        let held = doctor(&place, &["--offline"], &[]);
        assert_found(&held, "dispatch", "warning", "is held since");
        let set = format!("INSERT INTO meta (key, value) VALUES ('clock_accepted', '{now}')");
        database.execute_unprepared(&set).await.unwrap();
        assert!(says_nothing_of(&doctor(&place, &["--offline"], &[]), "dispatch"));
        database.close().await.unwrap();
    });
}

fn says_nothing_of(output: &Output, what: &str) -> bool {
    let all = json_of(output);
    all.as_array().unwrap().iter().all(|one| one["what"] != what)
}

/// Those of trunks by SRV records of a real name server; the settings' by this machine's own resolver, which knows `localhost`.
fn the_doctor_asks_for_names(backend: Backend) {
    on_disk(backend, async |place| {
        let srv = |port, target| Data::Srv {
            priority: 0,
            port,
            target,
        };
        let zone = [
            ("_sip._udp.carrier.test", srv(65_000, "localhost")),
            ("_sip._udp.none.test", srv(0, ".")),
        ];
        let servers = NameServer::start(&zone).await;
        let (asked, sip_bind) = (servers.address.to_string(), own_address());
        let mut serving = place.serve(&[]);
        let api = Calls::to(&place, place.workspace());
        let elsewhere = own_address();
        for (name, host) in [
            ("Carrier", "carrier.test"),
            ("None", "none.test"),
            ("Address", &*elsewhere),
        ] {
            api.post("/v1/sip_trunks", json!({ "name": name, "host": host })).await;
        }
        terminate(&mut serving);
        let settings = [
            ("CALLBOARD_SIP_BIND", &*sip_bind),
            ("CALLBOARD_SIP_DNS", &*asked),
            ("CALLBOARD_SMTP_URL", "smtp://localhost:1"),
            ("CALLBOARD_MAIL_FROM", "a@example.com"),
            ("CALLBOARD_BASE_URL", "https://localhost:1"),
        ];
        let with = |more: &[(&'static str, &'static str)]| [&settings[..], more].concat();

        let well = doctor_meanwhile(&place, &settings).await;
        assert_found(&well, "DNS", "ok", "1 of 1; the slowest, localhost, in ");
        assert_found(&well, "DNS, trunks", "ok", "2 of 2; the slowest, ");
        assert_found(&well, "DNS, trunk None", "warning", "has no SIP service");
        for what in ["DNS, base_url, smtp_url", "DNS, trunk Carrier", "DNS, trunk Address"] {
            assert!(says_nothing_of(&well, what), "{what}: {well:?}");
        }
        // Nobody is asked who was not named, nor without leave.
        let offline = doctor(&place, &["--offline"], &settings);
        assert!(says_nothing_of(&offline, "DNS") && says_nothing_of(&offline, "DNS, trunks"));

        let live = with(&[
            ("CALLBOARD_DEV", "false"),
            ("CALLBOARD_CHAT_URL", "https://nobody.invalid/v1"),
        ]);
        let wrong = doctor_meanwhile(&place, &live).await;
        assert_found(&wrong, "DNS", "ok", " of 2; ");
        assert_found(&wrong, "DNS, base_url, smtp_url", "warning", "which is not public");
        assert_found(&wrong, "DNS, chat_url", "failure", "nobody.invalid");
        assert_found(&wrong, "DNS, trunk Carrier", "warning", "which is not public");

        // It is there, and says nothing.
        let silent = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let at = silent.local_addr().unwrap().to_string();
        let asking_it = [&settings[..], &[("CALLBOARD_SIP_DNS", &*at)][..]].concat();
        let unanswered = doctor_meanwhile(&place, &asking_it).await;
        assert_found(&unanswered, "DNS, trunks", "warning", "no name server answers for ");
        assert!(says_nothing_of(&unanswered, "DNS, trunk Carrier"));
        for output in [&well, &wrong, &unanswered] {
            for line in json_of(output).as_array().unwrap() {
                super::assert_in_our_words(line["said"].as_str().unwrap());
            }
        }
    });
}

#[test]
fn the_doctor_asks_for_names_on_sqlite() {
    the_doctor_asks_for_names(Backend::Sqlite);
}
#[test]
fn the_doctor_asks_for_names_on_postgres() {
    the_doctor_asks_for_names(Backend::Postgres);
}
