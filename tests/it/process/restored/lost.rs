//! A drill: a backup is made beside a service that calls, that service is lost a while later, and the backup is put into a new place.
//! Nothing that was acknowledged before the backup is missing, and nobody is called again because of the restore, or by a consent that was
//! taken back meanwhile unless the operator was told.
use super::{assert_refused, refused_to_resume, run};
use crate::{
    audit::{Evidence, check, report},
    process::{
        Calls, Place,
        agreed::Agreed,
        json_of, on_disk, pause, serve, stderr, terminate,
        written::{millis, sha256},
    },
    world::{Backend, TestDatabase},
};
use entities::values::Moment;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const CONTACTS: usize = 160;
const LIMIT: usize = 30;
/// They have agreed to be called, and the law binds the campaigns to them.
const PEOPLE: usize = 8;
/// Which of them takes it back after the backup.
const TAKEN_BACK: usize = 4;

/// Whom its carrier was asked to call.
fn called(place: &Place) -> Vec<Value> {
    let mut called = place.carried();
    called.retain(|line| line["what"] == "placed");
    called
}

fn numbers(called: &[Value]) -> BTreeSet<&str> {
    called.iter().map(|line| line["to"].as_str().unwrap()).collect()
}

/// The log of the carrier as the backup can know it: of calls that it knows, and those that it has lost end there.
fn carried(place: &Place, dump: &[Value], backed_up_at: i64) -> Vec<Value> {
    let mut carried = Vec::new();
    let log = place.carried();
    // What was dialled after the backup is a call of the lost service alone.
    let dialled = |line: &&Value| line["kind"] == "session" && !line["intent_seq"].is_null();
    for session in dump.iter().filter(dialled) {
        let is_lost = session["end_reason"] == "node_lost";
        for line in log.iter().filter(|line| line["session"] == session["id"]) {
            if line["what"] == "placed" && is_lost {
                let mut ended = line.clone();
                (ended["what"], ended["at"]) = ("ended".into(), (backed_up_at * 1_000).into());
                carried.extend([line.clone(), ended]);
            } else if !is_lost {
                carried.push(line.clone());
            }
        }
    }
    carried.sort_by_key(|line| line["at"].as_i64());
    carried
}

fn a_restore_loses_nothing_and_calls_nobody_again(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let environment = |place: &Place| {
            let log = place.carrier_log().to_str().unwrap().to_owned();
            vec![
                ("CALLBOARD_SANDBOX_SPEED", "20".to_owned()),
                ("CALLBOARD_SANDBOX_LOG", log),
                // As it comes with the service.
                ("CALLBOARD_LAW_FILE", String::new()),
            ]
        };
        let key = place.workspace();
        let mut serving = serve(&place, &environment(&place));
        let api = Calls::to(&place, key.clone());
        api.limit_concurrency(LIMIT).await;
        let agent = json!({ "name": "Ann", "prompt": "x", "recording": { "enabled": true } });
        let agent = api.post("/v1/agents", agent).await;
        // Half of those who have agreed are called before the backup.
        let caller = api.post("/v1/agents", json!({ "name": "Bea", "prompt": "x" })).await;
        let agreed = Agreed::record(&place, &api, &caller["id"], PEOPLE).await;
        let bound = agreed.run(&api, 0..PEOPLE / 2, 2.0).await;
        api.until(&bound, |campaign| campaign["status"] == "completed").await;
        let digits = [0, 1, 0, 2, 0, 9, 0, 3];
        let contacts: Vec<_> = (0..CONTACTS)
            .map(|n| json!({ "phone_number": format!("+15002{n:05}{}", digits[n % digits.len()]) }))
            .collect();
        let campaign = json!({
            "name": "Half", "agent_id": agent["id"], "contacts": contacts, "pacing": { "calls_per_second": 10 },
            "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
            "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] },
        });
        let campaign = api.post("/v1/campaigns/run", campaign).await;
        let draft = json!({ "name": "Prepared", "agent_id": agent["id"] });
        let draft = api.post("/v1/campaigns", draft).await;
        let prepared = format!("/v1/campaigns/{}", draft["id"].as_str().unwrap());
        let contacts = json!({ "contacts": [{ "phone_number": "+15002990000" }] });
        api.post(&format!("{prepared}/contacts"), contacts).await;
        let now = runtime::clock::Clock::wall().now();
        let (soon, later) = (now.plus_seconds(20), now.plus_seconds(7_200));
        let armed = async |at: Moment, number: &str| {
            let plan = json!({ "name": number, "agent_id": agent["id"], "schedule": { "starts_at": at.to_string() } });
            let path = format!(
                "/v1/campaigns/{}",
                api.post("/v1/campaigns", plan).await["id"].as_str().unwrap()
            );
            let contacts = json!({ "contacts": [{ "phone_number": number }] });
            api.post(&format!("{path}/contacts"), contacts).await;
            api.post(&format!("{path}/start"), json!({})).await;
            path
        };
        let to_start = (armed(soon, "+15002996000").await, armed(later, "+15002997000").await);
        let scheduled = async |at: Moment, number: &str| {
            let call = json!({ "to_number": number, "agent_id": agent["id"], "scheduled_at": at.to_string() });
            api.post("/v1/sessions", call).await
        };
        let written = async |path: &str, at: Moment, mut message: Value| {
            message["scheduled_at"] = at.to_string().into();
            let made = api.post(path, message).await;
            format!("{path}/{}", made["id"].as_str().unwrap())
        };
        let sms = |number: &str| json!({ "to_number": number, "body": "Hello" });
        let email = json!({ "to": "zoe@example.com", "subject": "Hello", "text": "Hello" });
        let due = [
            written("/v1/sms_messages", soon, sms("+15002994000")).await,
            written("/v1/email_messages", soon, email).await,
        ];
        let not_due = written("/v1/sms_messages", later, sms("+15002995000")).await;
        let (soon, later) = (
            scheduled(soon, "+15002991000").await,
            scheduled(later, "+15002992000").await,
        );
        let entry = api.post("/v1/dnc", json!({ "phone_number": "+15002000050" })).await;
        let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
        let reached = |campaign: &Value, at_least: i64| {
            let counts = &campaign["counts"];
            CONTACTS as i64 - counts["pending"].as_i64().unwrap() >= at_least
        };
        api.until(&path, |campaign| reached(campaign, 40)).await;
        let recording = stored_recording(&api).await;
        let mut acknowledged = vec![
            json!({ "kind": "campaign", "id": campaign["id"] }),
            json!({ "kind": "campaign", "id": draft["id"] }),
            json!({ "kind": "session", "id": soon["id"] }),
            json!({ "kind": "session", "id": later["id"] }),
            json!({ "kind": "dnc", "id": entry["id"], "number": "+15002000050" }),
        ];
        let kept = (0..PEOPLE).filter(|n| *n != TAKEN_BACK).map(|n| &agreed.consents[n]);
        acknowledged.extend(kept.map(|id| json!({ "kind": "consent", "id": id, "revoked_at": null })));

        // Beside it.
        let file = place.folder.path().join("backup");
        let file = file.to_str().unwrap();
        let made = run(&place, &["--json", "backup", file]);
        assert!(made.status.success(), "{}", stderr(&made));
        let (made, backed_up_at) = (json_of(&made), millis());
        assert_eq!(
            made["manifest"]["database"],
            match backend {
                Backend::Sqlite => "sqlite",
                Backend::Postgres => "postgres",
            },
            "{made}"
        );
        assert!(made["manifest"]["recordings"]["files"].as_u64() > Some(0), "{made}");
        assert!(stderr(&place.run(&["backup", file])).contains("exists; name a new file"));
        // Only the lost service will have known.
        agreed.take_back(&api, TAKEN_BACK).await;
        api.until(&path, |campaign| reached(campaign, 90)).await;
        for _ in 0..600 {
            if numbers(&called(&place)).contains("+15002991000") {
                break;
            }
            pause(100).await;
        }
        serving.kill().unwrap();
        serving.wait().unwrap();
        let before = called(&place);
        assert!(numbers(&before).contains("+15002991000"));
        let newest = place.dump();
        let newest = newest.iter().filter_map(|line| line["seq"].as_i64()).max().unwrap();

        // Into another place, by whoever has the key.
        let Some(database) = TestDatabase::on_disk(backend).await else {
            return;
        };
        let mut other = Place::with(database);
        assert_refused(&other, file, &["--as-of", "now"], "sealed with key");
        other.key.clone_from(&place.key);
        assert_refused(&other, file, &[], "--as-of");
        assert_refused(
            &other,
            file,
            &["--as-of", "2020-01-01T00:00:00Z"],
            "before the backup was made",
        );
        assert_refused(&other, file, &["--as-of", "yesterday"], "is not a time");
        let half = std::fs::read(file).unwrap();
        let broken = place.folder.path().join("broken");
        std::fs::write(&broken, &half[..half.len() / 2]).unwrap();
        assert_refused(
            &other,
            broken.to_str().unwrap(),
            &["--as-of", "now"],
            "is not a whole backup",
        );
        let restored = run(&other, &["--json", "restore", file, "--as-of", "now"]);
        assert!(restored.status.success(), "{}", stderr(&restored));
        let restored = json_of(&restored);
        assert_eq!(restored["may_have_run"]["workspaces"], 1, "{restored}");
        assert_eq!(restored["may_have_run"]["consents"], PEOPLE, "{restored}");
        assert!(
            restored["may_have_run"]["contacts"].as_i64().unwrap() > 50,
            "{restored}"
        );
        assert_refused(
            &other,
            file,
            &["--as-of", "now"],
            match backend {
                Backend::Sqlite => "exists; move it away",
                Backend::Postgres => "has tables",
            },
        );

        // Nothing leaves before all is put away, whatever the operator says.
        let early = other.run(&["dispatch", "resume", "--opt-outs-entered"]);
        assert!(stderr(&early).contains("not yet put away"), "{}", stderr(&early));
        let mut serving = serve(&other, &environment(&other));
        let api = Calls::to(&other, key);
        assert_plays(&api, &recording).await;
        let refused = refused_to_resume(&other).await;
        // Nor before the operator was told what the backup does not know: that consent stands again, and all others do.
        assert!(refused.contains("opted out or taken a consent back since"), "{refused}");
        assert_eq!(api.get("/readyz").await["dispatch"], "paused");
        let findings = json_of(&other.run(&["--json", "doctor", "--offline"]));
        let mut findings = findings.as_array().unwrap().iter();
        let paused = findings.find(|finding| finding["what"] == "dispatch").unwrap();
        assert!(
            paused["advice"].as_str().unwrap().contains("--opt-outs-entered"),
            "{paused}"
        );
        for id in &agreed.consents {
            let consent = api.get(&format!("/v1/consents/{id}")).await;
            assert_eq!(consent["standing"], json!(["phone"]), "{consent}");
        }
        acknowledged.push(agreed.take_back(&api, TAKEN_BACK).await);
        let resumed = other.run(&["dispatch", "resume", "--opt-outs-entered"]);
        assert!(resumed.status.success(), "{}", stderr(&resumed));
        // It is asked once.
        let again = other.run(&["dispatch", "resume"]);
        assert!(again.status.success(), "{}", stderr(&again));
        assert_eq!(api.get(&path).await["status"], "paused");
        api.post(&format!("{path}/resume"), json!({})).await;
        let done = api.until(&path, |campaign| campaign["status"] == "completed").await;
        assert!(done["counts"]["canceled"].as_i64().unwrap() > 50, "{done}");
        // Whoever starts what has been prepared calls nobody either: it may have been started since.
        let started = api.try_post(&format!("{prepared}/start")).await;
        let call = api
            .get(&format!("/v1/sessions/{}", later["id"].as_str().unwrap()))
            .await;
        assert_eq!(call["phase"], "scheduled", "{call}");
        let call = api.get(&format!("/v1/sessions/{}", soon["id"].as_str().unwrap())).await;
        assert_eq!(
            (&call["status"], &call["end_reason"]),
            (&json!("failed"), &json!("canceled")),
            "{call}"
        );
        for message in &due {
            assert_eq!(api.get(message).await["status"], "canceled", "{message}");
        }
        assert_eq!(api.get(&not_due).await["status"], "scheduled");
        // One was to start before the loss; the other's start may have been moved.
        let begun = api.get(&to_start.0).await;
        assert_eq!(
            (&begun["status"], &begun["counts"]["canceled"]),
            (&json!("paused"), &json!(1)),
            "{begun}"
        );
        let to_come = api.get(&to_start.1).await;
        assert_eq!(
            (&to_come["status"], &to_come["counts"]["canceled"]),
            (&json!("draft"), &json!(1)),
            "{to_come}"
        );
        assert_eq!(called(&other), Vec::<Value>::new(), "started: {started}");
        // What is asked for anew goes on as ever, and its places come after all that the lost service gave.
        let again = api
            .post(
                "/v1/sessions",
                json!({ "to_number": "+15002993000", "agent_id": agent["id"] }),
            )
            .await;
        api.until(&format!("/v1/sessions/{}", again["id"].as_str().unwrap()), |call| {
            call["phase"] == "ended"
        })
        .await;
        assert_eq!(called(&other).len(), 1);
        // The consents from before the backup carry calls.
        let bound = agreed.run(&api, PEOPLE / 2..PEOPLE, 2.0).await;
        let done = api.until(&bound, |campaign| campaign["status"] == "completed").await;
        assert_eq!(done["counts"]["skipped"], 1, "{done}");
        let since = called(&other);
        let since = numbers(&since);
        for (n, number) in agreed.numbers.iter().enumerate().skip(PEOPLE / 2) {
            assert_eq!(since.contains(number.as_str()), n != TAKEN_BACK, "{number}");
        }
        let newest_event = api.get("/v1/events?limit=1").await["data"][0].clone();
        let dump = other.dump();
        let placed = |line: &&Value| line["kind"] == "event" && line["id"] == newest_event["id"];
        assert!(dump.iter().find(placed).unwrap()["seq"].as_i64().unwrap() > newest);
        terminate(&mut serving);

        let mut carrier = carried(&place, &dump, backed_up_at);
        carrier.extend(other.carried());
        let evidence = Evidence {
            dump,
            carrier,
            provider: Vec::new(),
            acknowledged,
            files: None,
            taken_at: Some(millis()),
            kills: Vec::new(),
            limit: LIMIT,
            rate: 20.0,
            burst: 20.0,
            settled: false,
        };
        let breaches = check(&evidence);
        assert!(breaches.is_empty(), "{}", report(&breaches));
    });
}

/// The first that can be heard.
async fn stored_recording(api: &Calls) -> Value {
    let path = "/v1/recordings?status=completed&order=asc&limit=1";
    let list = api.until(path, |list| list["data"][0]["sha256"].is_string()).await;
    list["data"][0].clone()
}

/// It is the same sound, and there is something to hear.
async fn assert_plays(api: &Calls, recording: &Value) {
    let url = format!("{}/v1/recordings/{}/audio", api.url, recording["id"].as_str().unwrap());
    let answer = api.client.get(url).bearer_auth(&api.key).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200, "{recording}");
    let file = answer.bytes().await.unwrap();
    assert_eq!(recording["sha256"], sha256(&file));
    let mut sound = hound::WavReader::new(&file[..]).unwrap();
    let loud = sound
        .samples::<i16>()
        .filter(|sample| sample.as_ref().unwrap().unsigned_abs() > 500);
    assert!(loud.count() > 100, "{recording}");
}

#[test]
fn a_restore_loses_nothing_and_calls_nobody_again_on_sqlite() {
    a_restore_loses_nothing_and_calls_nobody_again(Backend::Sqlite);
}
#[test]
fn a_restore_loses_nothing_and_calls_nobody_again_on_postgres() {
    a_restore_loses_nothing_and_calls_nobody_again(Backend::Postgres);
}
