//! Exports of the record, and the erasure of people who are in it: what was cut off is completed, and proves itself.
use super::Rows;
use crate::{
    process::{Calls, Place, json_of, on_disk, pause, serve, stderr, terminate},
    world::{
        Backend, awaited, number,
        s3_server::{ACCESS_KEY_ID, BUCKET, S3Server, SECRET_ACCESS_KEY},
    },
};
use serde_json::{Value, json};
use std::{fs, process::Child};

/// People who are erased at once.
const AT_ONCE: usize = 2;
const OPENINGS: &str = "attempt_records WHERE kind = 'attempt'";

/// A service that has called and texted some people, and whose exports lie in a store that can be held.
struct Record {
    place: Place,
    environment: Vec<(&'static str, String)>,
    serving: Child,
    api: Calls,
    rows: Rows,
    store: S3Server,
    people: Vec<String>,
}

impl Record {
    async fn of(place: Place, people: usize) -> Self {
        let store = S3Server::start().await;
        let environment = vec![
            ("CALLBOARD_SANDBOX_SPEED", "40".to_owned()),
            ("CALLBOARD_RECORDINGS", format!("s3://{BUCKET}")),
            ("CALLBOARD_RECORDINGS_S3_ENDPOINT", store.endpoint.clone()),
            ("CALLBOARD_RECORDINGS_S3_ACCESS_KEY_ID", ACCESS_KEY_ID.to_owned()),
            (
                "CALLBOARD_RECORDINGS_S3_SECRET_ACCESS_KEY",
                SECRET_ACCESS_KEY.to_owned(),
            ),
        ];
        let key = place.workspace();
        let serving = serve(&place, &environment);
        let record = Record {
            api: Calls::to(&place, key),
            rows: Rows::of(&place).await,
            people: (0..people).map(|n| format!("+15002{n:05}0")).collect(),
            place,
            environment,
            serving,
            store,
        };
        record.reach_all().await;
        record
    }

    /// A call and a text to each of them.
    async fn reach_all(&self) {
        let api = &self.api;
        api.limit_concurrency(50).await;
        let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await;
        let contacts: Vec<Value> = self
            .people
            .iter()
            .map(|number| json!({ "phone_number": number, "first_name": "Zoe" }))
            .collect();
        let plan = json!({
            "name": "All", "agent_id": agent["id"], "contacts": contacts, "pacing": { "calls_per_second": 50 },
            "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] },
        });
        let campaign = api.post("/v1/campaigns/run", plan).await;
        for number in &self.people {
            let text = json!({ "to_number": number, "body": "Zoe, your table is ready." });
            api.post("/v1/sms_messages", text).await;
            // Under the rate limit of a key.
            pause(21).await;
        }
        let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
        api.until(&path, |campaign| campaign["status"] == "completed").await;
        let open = "sms_messages WHERE phase IN ('scheduled', 'queued', 'sending')";
        self.rows.until(open, |count| count == 0).await;
    }

    async fn attempts(&self, number: &str) -> Vec<Value> {
        let path = format!("/v1/compliance/attempts?phone_number={}", number.replace('+', "%2B"));
        self.api.get(&path).await["data"].as_array().unwrap().clone()
    }

    /// An export whose file is on its way to the store, and does not arrive. Answers its path, and the file's name there.
    async fn export_under_way(&self) -> (String, String) {
        self.store.hold_puts(true);
        self.store.take_requests();
        let export = self.api.post("/v1/compliance/exports", json!({})).await;
        let path = format!("/v1/compliance/exports/{}", export["id"].as_str().unwrap());
        let name = awaited("a file is on its way to the store", async || {
            let requests = self.store.take_requests();
            requests
                .iter()
                .find_map(|request| request.strip_prefix("PUT ").map(str::to_owned))
        })
        .await;
        let export = self.api.get(&path).await;
        assert_eq!((&export["status"], &export["files"]), (&json!("running"), &json!([])));
        (path, name)
    }

    /// Begins to erase people, and waits until the last of them is on the way out. Answers the jobs' paths.
    async fn erasing(&self, people: &[String], round: usize) -> Vec<String> {
        let mut jobs = Vec::new();
        for number in people {
            let path = format!("/v1/people?phone_number={}", number.replace('+', "%2B"));
            let job = self.api.delete(&path).await;
            jobs.push(format!("/v1/people/erasures/{}", job["id"].as_str().unwrap()));
        }
        let last = people.last().unwrap();
        match round % 3 {
            0 => {
                let waits = format!("erasures WHERE phone_number = '{last}' AND status = 'queued'");
                self.rows.until(&waits, |count| count == 0).await;
            }
            1 => {
                let gone = format!("sms_messages WHERE to_number = '{last}' AND deleted_at IS NOT NULL");
                self.rows.until(&gone, |count| count > 0).await;
            }
            _ => {}
        }
        jobs
    }

    fn kill(&mut self) {
        self.serving.kill().unwrap();
        self.serving.wait().unwrap();
    }

    /// What was on its way to the store arrives there before anything else.
    async fn serve_again(&mut self, on_its_way: &str) {
        self.store.hold_puts(false);
        let arrived = async || self.store.object(on_its_way).map(drop);
        awaited("the file of the service that was killed arrives", arrived).await;
        self.serving = serve(&self.place, &self.environment);
    }

    async fn text(&self, path: &str) -> String {
        let request = self.api.client.get(format!("{}{path}", self.api.url));
        let answer = request.bearer_auth(&self.api.key).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        answer.text().await.unwrap()
    }

    /// Its files are those that were signed, and each row follows from the one before. Answers what was found, and all rows.
    async fn verified(&self, path: &str) -> (Value, String) {
        let export = self.api.until(path, |export| export["status"] != "running").await;
        assert_eq!(export["status"], "completed", "{export}");
        let store = |name: String, text: &str| {
            let file = self.place.folder.path().join(name);
            fs::write(&file, text).unwrap();
            file.to_str().unwrap().to_owned()
        };
        let manifest = self.text(&format!("{path}/manifest")).await;
        let manifest = store("manifest.json".to_owned(), &manifest);
        let (mut files, mut rows) = (Vec::new(), String::new());
        for part in 1..=export["files"].as_array().unwrap().len() {
            let text = self.text(&format!("{path}/files/{part}")).await;
            files.push(store(format!("{part}.jsonl"), &text));
            rows += &text;
        }
        let mut arguments = vec!["--json", "compliance", "verify", "--manifest", &manifest];
        arguments.extend(files.iter().map(String::as_str));
        let output = self.place.run(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let found = json_of(&output);
        let of = |name: &str| found[name].clone();
        let expected = (export["rows"].clone(), json!(0), json!(true));
        assert_eq!((of("rows"), of("gaps"), of("is_signed")), expected, "{found}");
        (found, rows)
    }

    /// The erasure has ended, and says all that stays; of the person nothing is left that names it.
    async fn check_erased(&self, number: &str, job: &str, attempts: usize) {
        let is_over = |job: &Value| job["status"] == "done" || job["status"] == "failed";
        let report = self.api.until(job, is_over).await;
        let is_clean = report["status"] == "done" && report["error"].is_null() && report["waits_for"].is_null();
        assert!(is_clean && report["phone_number"].is_null(), "{report:#}");
        for (what, expected) in [("attempts", attempts), ("calls", 1), ("messages", 1)] {
            let kept = report["kept"].as_array().unwrap().iter();
            let kept = kept.filter(|kept| kept["what"] == what);
            let counts: Vec<&Value> = kept.map(|kept| &kept["count"]).collect();
            assert_eq!(counts, [&json!(expected)], "{what}: {report:#}");
        }
        let left = self.attempts(number).await;
        let is_blank = |one: &Value| one["is_erased"] == true && one["phone_number"].is_null();
        assert!(left.len() == attempts && left.iter().all(is_blank), "{left:#?}");
        let path = format!("/v1/people/file?phone_number={}", number.replace('+', "%2B"));
        let file = self.api.get(&path).await;
        for part in ["calls", "messages", "contacts"] {
            assert_eq!(file[part], json!([]), "{part} of {number}");
        }
    }
}

/// By hand with more: `CALLBOARD_TEST_KILLS=30`.
fn killed_while_it_exports_and_erases(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 4);
        // Two stay.
        let mut record = Record::of(place, kills / 2 * AT_ONCE + 2).await;
        let openings = record.rows.count(OPENINGS).await;
        let (mut erased, mut cut_off, mut fetched) = (Vec::new(), 0, 0);
        for kill in 0..kills {
            let (export, file) = record.export_under_way().await;
            // Every other time people go meanwhile.
            let going = match kill % 2 {
                0 => Vec::new(),
                _ => record.people[erased.len()..][..AT_ONCE].to_vec(),
            };
            let mut attempts = Vec::new();
            for number in &going {
                attempts.push(record.attempts(number).await.len());
            }
            let jobs = match going.is_empty() {
                true => Vec::new(),
                false => record.erasing(&going, kill / 2).await,
            };
            record.kill();
            let open = record
                .rows
                .count("erasures WHERE status IN ('queued', 'running')")
                .await;
            cut_off += usize::from(open > 0);
            record.serve_again(&file).await;
            for ((number, job), attempts) in going.iter().zip(&jobs).zip(attempts) {
                record.check_erased(number, job, attempts).await;
            }
            erased.extend(going);
            let ended = record.api.until(&export, |export| export["status"] != "running").await;
            if ended["error"]["code"] == "not_found" {
                assert!(
                    !jobs.is_empty(),
                    "only an export that names somebody who was erased goes"
                );
            } else {
                let (_, rows) = record.verified(&export).await;
                assert!(erased.iter().all(|number| !rows.contains(number)), "{rows}");
                fetched += 1;
            }
        }
        assert!(fetched > 0, "no export that was cut off was completed");
        assert!(cut_off > 0 || kills < 2, "no kill fell into the middle of an erasure");
        let last = record.api.post("/v1/compliance/exports", json!({})).await;
        let last = format!("/v1/compliance/exports/{}", last["id"].as_str().unwrap());
        let (found, rows) = record.verified(&last).await;
        assert_eq!(found["blanked_without_erasure"], 0, "{found}");
        let named = record.people.iter().filter(|number| rows.contains(*number)).count();
        assert_eq!(named, record.people.len() - erased.len());
        assert_eq!(record.rows.count(OPENINGS).await, openings, "the record of it stays");
        let lines = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let exported = lines.filter(|row| row["kind"] == "attempt").count();
        assert_eq!(i64::try_from(exported), Ok(openings));
        terminate(&mut record.serving);
        eprintln!(
            "{kills} kills in the middle of exports, {cut_off} in that of erasures: {} people erased, {fetched} exports verified",
            erased.len()
        );
    });
}

#[test]
fn killed_while_it_exports_and_erases_on_sqlite() {
    killed_while_it_exports_and_erases(Backend::Sqlite);
}
#[test]
fn killed_while_it_exports_and_erases_on_postgres() {
    killed_while_it_exports_and_erases(Backend::Postgres);
}
