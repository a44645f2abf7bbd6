//! Two processes that both believe they own a database: one of them writes nothing more, and does nothing more outside.
use super::{Calls, on, own_address, signal, terminate, written::lines};
use crate::world::Backend;
use sea_orm::{ConnectionTrait, Database};
use serde_json::json;
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

/// One is stopped in the middle of its calls, its lock is cut, another takes over: when the first goes on, it ends before its
/// next call and its next webhook.
#[test]
fn who_has_lost_the_database_does_nothing_more() {
    on(Backend::Postgres, async |place| {
        let receiver = crate::world::Receiver::start();
        let logs = ["first.log", "second.log"].map(|name| place.folder.path().join(name));
        let log = |n: usize| {
            [
                ("CALLBOARD_SANDBOX_LOG", logs[n].to_str().unwrap()),
                ("CALLBOARD_SANDBOX_SPEED", "20"),
            ]
        };
        let mut first = place.serve(&log(0));
        let mut api = Calls::to(&place, place.workspace());
        let endpoint = json!({ "url": receiver.url, "event_types": ["*"] });
        let secret = api.post("/v1/webhook_endpoints", endpoint).await["secret"].clone();
        receiver.expect_signatures_of(secret.as_str().unwrap());
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let contacts: Vec<_> = (0..60)
            .map(|n| json!({ "phone_number": format!("+15002{n:05}0") }))
            .collect();
        let plan = json!({ "name": "Handed over", "agent_id": agent["id"], "contacts": contacts, "pacing": { "calls_per_second": 10 } });
        let campaign = api.post("/v1/campaigns/run", plan).await;
        let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
        api.until(&path, |campaign| campaign["counts"]["completed"].as_i64() > Some(3))
            .await;

        signal(first.id(), "-STOP");
        let outside = Database::connect(&place.database.url).await.unwrap();
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'callboard lock' AND datname = current_database()";
        outside.execute_unprepared(cut).await.unwrap();
        outside.close().await.unwrap();
        let bind = own_address();
        let mut command = place.command(&["serve", "--bind", &bind]);
        // On another machine: one folder of spools serves one process, even one that stands still.
        let mut second = command
            .envs(log(1))
            .env("CALLBOARD_RECORDINGS_SPOOL", "another-spool")
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(second.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Callboard is ready") {
            assert!(told.read_line(&mut said).unwrap() > 0, "{said}");
        }
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));

        let placed = std::fs::read_to_string(&logs[0]).unwrap();
        signal(first.id(), "-CONT");
        assert!(!first.wait().unwrap().success(), "it ends with a failure");
        let since = std::fs::read_to_string(&logs[0]).unwrap();
        let more: Vec<_> = since[placed.len()..]
            .lines()
            .filter(|line| line.contains("\"placed\""))
            .collect();
        assert!(more.is_empty(), "it placed {more:?}");

        api.url = format!("http://{bind}");
        let done = api.until(&path, |campaign| campaign["status"] == "completed").await;
        assert_eq!(done["counts"]["total"], 60);
        let both = since + &std::fs::read_to_string(&logs[1]).unwrap();
        let mut sessions: Vec<String> = lines(&both)
            .iter()
            .filter(|line| line["what"] == "placed")
            .map(|line| line["session"].as_str().unwrap().to_owned())
            .collect();
        let placed = sessions.len();
        sessions.sort();
        sessions.dedup();
        assert_eq!(sessions.len(), placed, "a session is dialled once");
        terminate(&mut second);
    });
}

/// Whatever the database's file is called, and whatever became of files beside it.
#[test]
fn one_process_per_file_by_whatever_name() {
    on(Backend::Sqlite, async |place| {
        let mut first = place.serve(&[]);
        let file = place.database.url.trim_start_matches("sqlite://").to_owned();
        let link = place.folder.path().join("link.db");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let hard = format!("{file}.hard");
        std::fs::hard_link(&file, &hard).unwrap();
        for entry in std::fs::read_dir(std::path::Path::new(&file).parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "lock") {
                std::fs::remove_file(path).unwrap();
            }
        }
        for name in [file.as_str(), link.to_str().unwrap(), hard.as_str()] {
            place.refuses_a_second(&[("CALLBOARD_DATABASE_URL", &format!("sqlite://{name}"))]);
        }
        terminate(&mut first);
    });
}
