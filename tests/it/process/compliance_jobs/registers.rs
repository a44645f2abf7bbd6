//! A register: verdicts are given by the file before or by the one that is uploaded, and by all of it.
use super::Rows;
use crate::{
    process::{Calls, Place, on_disk, terminate},
    world::{Backend, awaited, minutes, number},
};
use callboard::{app::App, settings::Settings};
use futures_util::{StreamExt, stream};
use runtime::clock::Clock;
use std::fs;
use tokio::{sync::oneshot, task::JoinHandle};

/// Numbers of one file: three transactions.
const LISTED: usize = 160_000;
/// Rows that they are: 4,096 numbers each.
const CHUNKS: i64 = 40;
/// Of a transaction. Source: `registers/upload.rs`.
const CHUNKS_AT_ONCE: i64 = 16;
/// What no register has.
const LEFT: &str = "register_chunks WHERE file_id NOT IN (SELECT file_id FROM registers)";

/// The first number of a file, without its area code. No two files that follow each other have one in common.
fn first(file: usize) -> usize {
    2_000_000 + file % 20 * 300_000
}

fn listing(file: usize) -> String {
    (0..LISTED).map(|n| format!("646,{}\n", first(file) + n)).collect()
}

/// The first half of a file, and then nothing more; says when the rest of it is waited for.
fn half(file: &str) -> (reqwest::Body, oneshot::Receiver<()>) {
    let (is_waited_for, rest) = oneshot::channel();
    let half = file[..file.len() / 2].to_owned();
    let never = stream::once(async move {
        let _ = is_waited_for.send(());
        std::future::pending::<Result<String, std::io::Error>>().await
    });
    let body = stream::once(async move { Ok(half) }).chain(never);
    (reqwest::Body::wrap_stream(body), rest)
}

/// Uploads a file, and waits for no answer.
fn send(api: &Calls, path: &str, body: impl Into<reqwest::Body>) -> JoinHandle<reqwest::Result<reqwest::Response>> {
    let request = api.client.post(format!("{}{path}", api.url)).bearer_auth(&api.key);
    let request = request.header("content-type", "text/csv").body(body);
    actix_rt::spawn(request.send())
}

async fn is_listed(api: &Calls, number: usize) -> bool {
    let checked = api
        .get(&format!("/v1/compliance/check?to=%2B1646{number}&purpose=marketing"))
        .await;
    let rules = checked["rules"].as_array().unwrap_or_else(|| panic!("{checked}"));
    let asked = rules.iter().find(|asked| asked["rule"] == "us.dnc");
    match asked.and_then(|asked| asked["verdict"].as_str()) {
        Some("never") => true,
        Some("yes") => false,
        other => panic!("{other:?} of {number}: {checked}"),
    }
}

/// By which of two files verdicts are given: one of them, and all of it.
async fn in_force(api: &Calls, files: [usize; 2]) -> usize {
    let register = api.get("/v1/registers/us_dnc").await;
    assert_eq!(register["numbers"], LISTED, "{register}");
    let mut listed = Vec::new();
    for n in [5_000, 45_000, 95_000, 145_000] {
        let of_either = [
            is_listed(api, first(files[0]) + n).await,
            is_listed(api, first(files[1]) + n).await,
        ];
        listed.push(of_either);
    }
    let at = listed[0].iter().position(|is_listed| *is_listed);
    let is_one = listed[0][0] != listed[0][1] && listed.iter().all(|others| *others == listed[0]);
    assert!(is_one, "verdicts by parts of two files: {listed:?}");
    files[at.unwrap()]
}

/// The database a day later, when nobody uploads any more.
async fn a_day_later(place: &Place) {
    let path = |name: &str| place.folder.path().join(name).to_str().unwrap().to_owned();
    let settings = [
        ("dev", "true".to_owned()),
        ("bind", place.bind.clone()),
        ("http_threads", "2".to_owned()),
        ("database_url", place.database.url.clone()),
        ("secret_key", place.key.clone()),
        ("mail_folder", path("mails")),
        ("recordings", path("recordings")),
        ("recordings_spool", path("callboard-spool")),
        ("voice", "tones".to_owned()),
    ];
    let clock = Clock::manual(Clock::wall().now().plus_seconds(25 * 3600));
    let app = App::build(Settings::load(None, &settings).unwrap(), clock.clone())
        .await
        .unwrap();
    clock.settle().await;
    clock.advance(minutes(16)).await;
    app.abandon().await;
}

/// By hand with more: `CALLBOARD_TEST_KILLS=60`.
fn killed_while_a_register_is_uploaded(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 3);
        // As it comes with the service.
        let environment = [("CALLBOARD_LAW_FILE", "")];
        let key = place.workspace();
        let mut serving = place.serve(&environment);
        let (api, rows) = (Calls::to(&place, key), Rows::of(&place).await);
        let today = Clock::wall().now().to_string();
        let path = format!("/v1/registers/us_dnc/files?fetched_at={}", &today[..10]);
        api.upload(&path, listing(0)).await;
        let (mut kill, mut cut_off) = (0, 0);
        // On a busy machine a file may be stored before the kill: then another one is to be cut off.
        while kill < kills || (cut_off == 0 && kill < 5 * kills) {
            let (old, new) = (kill, kill + 1);
            let left = rows.count(LEFT).await;
            let sending = if kill % 3 == 0 {
                let (body, rest) = half(&listing(new));
                let sending = send(&api, &path, body);
                rest.await.unwrap();
                sending
            } else {
                // When one transaction of it stands, or two.
                let goal = left + CHUNKS_AT_ONCE * i64::try_from(kill % 3).unwrap();
                let sending = send(&api, &path, listing(new));
                let is_there = async || (sending.is_finished() || rows.count(LEFT).await >= goal).then_some(());
                awaited("some of the file is stored", is_there).await;
                sending
            };
            serving.kill().unwrap();
            serving.wait().unwrap();
            sending.abort();
            let is_cut = rows.count(LEFT).await > left;
            serving = place.serve(&environment);
            let found = in_force(&api, [old, new]).await;
            cut_off += usize::from(is_cut && found == old);
            // Sent once more it is as if nothing had been.
            api.upload(&path, listing(new)).await;
            assert_eq!(in_force(&api, [old, new]).await, new);
            kill += 1;
        }
        assert!(cut_off > 0, "no kill fell into the middle of an upload");
        terminate(&mut serving);
        let spools = fs::read_dir(place.folder.path().join("callboard-spool")).unwrap();
        let spools: Vec<_> = spools.map(|entry| entry.unwrap().file_name()).collect();
        assert!(spools.iter().all(|name| name == ".lock"), "{spools:?}");
        let left = rows.count(LEFT).await;
        a_day_later(&place).await;
        let all = (rows.count(LEFT).await, rows.count("register_chunks").await);
        assert_eq!(all, (0, CHUNKS), "the one file that its register has");
        eprintln!("{kill} kills: {cut_off} in the middle of a file, of which {left} rows were left for a day");
    });
}

#[test]
fn killed_while_a_register_is_uploaded_on_sqlite() {
    killed_while_a_register_is_uploaded(Backend::Sqlite);
}
#[test]
fn killed_while_a_register_is_uploaded_on_postgres() {
    killed_while_a_register_is_uploaded(Backend::Postgres);
}
