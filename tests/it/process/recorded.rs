//! kill -9 over calls that are recorded, refused, handed over and opted out of; then over sounds that are being stored and
//! erased. What was written down by service, carrier, receiver and disk is put side by side, and nothing may contradict.
use super::{
    Calls, Place, number, on_disk, pause, serve, terminate,
    written::{count, millis, sha256},
};
use crate::{
    audit::{Evidence, check, report},
    world::{
        Backend, Receiver,
        functions::{FunctionServer, Reply},
    },
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Child,
};

const LIMIT: usize = 40;
/// Calls a second of each campaign.
const RATE: f64 = 20.0;
/// From an opt-out to the purge, milliseconds.
const GRACE: i64 = 3_000;

/// A service with all that a talk can need, and everybody who watches it.
struct Stage {
    place: Place,
    api: Calls,
    serving: Child,
    receiver: Receiver,
    environment: Vec<(&'static str, String)>,
    acknowledged: Vec<Value>,
    killed: Vec<i64>,
    /// Agents: one asks before it records, one says that it does.
    agents: [String; 2],
    _functions: FunctionServer,
}

impl Stage {
    async fn set(place: Place) -> Self {
        let recordings = place.folder.path().join("recordings");
        let environment = vec![
            ("CALLBOARD_SANDBOX_SPEED", "20".to_owned()),
            (
                "CALLBOARD_SANDBOX_LOG",
                place.carrier_log().to_str().unwrap().to_owned(),
            ),
            ("CALLBOARD_RECORDINGS", recordings.to_str().unwrap().to_owned()),
            ("CALLBOARD_VOICE", "tones".to_owned()),
            ("CALLBOARD_OPT_OUT_PURGE_GRACE", format!("{}s", GRACE / 1_000)),
            ("CALLBOARD_WEBHOOK_RETRY_SCHEDULE", ["1"; 15].join(",")),
        ];
        let key = place.workspace();
        let serving = serve(&place, &environment);
        let api = Calls::to(&place, key);
        api.limit_concurrency(LIMIT).await;
        let receiver = Receiver::start();
        let endpoint = json!({ "url": receiver.url, "event_types": ["*"], "max_concurrency": 16 });
        let endpoint = api.post("/v1/webhook_endpoints", endpoint).await;
        receiver.expect_signatures_of(endpoint["secret"].as_str().unwrap());
        let functions = FunctionServer::start(|_| Reply::Json(json!({ "fine": true })));
        let function = json!({ "name": "look_up", "description": "Looks it up.", "url": functions.url,
            "parameters": { "type": "object", "properties": {} }, "timeout_ms": 2_000 });
        let function = api.post("/v1/functions", function).await;
        let mut agents = Vec::new();
        for recording in [
            json!({ "enabled": true, "consent": "verbal" }),
            json!({ "enabled": true, "consent": "notice", "retention_days": 30 }),
        ] {
            let replies =
                json!([{ "say": "Let me see.", "call": { "name": "look_up", "arguments": {} } }, { "say": "Fine." }]);
            let agent = json!({ "name": "Ann", "prompt": "x", "recording": recording, "function_ids": [function["id"]],
                "dispositions": [{ "code": "interested" }, { "code": "not_interested" }],
                "questions": [{ "key": "fine", "text": "Is that fine?", "type": "boolean" }],
                "brain": { "mode": "scripted", "replies": replies } });
            agents.push(api.post("/v1/agents", agent).await["id"].as_str().unwrap().to_owned());
        }
        Stage {
            api,
            serving,
            receiver,
            environment,
            acknowledged: Vec::new(),
            killed: Vec::new(),
            agents: agents.try_into().unwrap(),
            _functions: functions,
            place,
        }
    }

    /// Calls `count` numbers that end with these digits in turn. Answers the campaign's path.
    async fn campaign(&mut self, agent: usize, prefix: &str, digits: &[u8], count: usize) -> String {
        let digit = |n: usize| digits[n % digits.len()];
        let contacts: Vec<_> = (0..count)
            .map(|n| json!({ "phone_number": format!("{prefix}{n:05}{}", digit(n)) }))
            .collect();
        let campaign = json!({ "name": prefix, "agent_id": self.agents[agent], "contacts": contacts,
            "pacing": { "calls_per_second": RATE }, "retry": { "max_attempts": 2, "min_gap_minutes": 0 },
            "caps": { "per_number_24h": 3, "on_cap": "skip" } });
        let campaign = self.api.post("/v1/campaigns/run", campaign).await;
        self.acknowledged
            .push(json!({ "kind": "campaign", "id": campaign["id"] }));
        format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap())
    }

    fn kill(&mut self) {
        self.serving.kill().unwrap();
        self.serving.wait().unwrap();
        self.killed.push(millis());
    }

    fn serve_again(&mut self) {
        self.serving = serve(&self.place, &self.environment);
    }

    fn folder(&self) -> std::path::PathBuf {
        self.place.folder.path().join("recordings")
    }

    /// Left in peace; and once more started when all that is to be purged is due, for a purge may wait half a minute for
    /// the next look otherwise.
    async fn rest(&mut self) -> Vec<Value> {
        let stored = self.place.quiet(is_done).await;
        let due = stored.iter().filter(|line| line["purge_reason"] == "opt_out");
        let due = due.filter_map(|line| line["purge_after"].as_str().and_then(crate::audit::read::millis));
        let left = due.max().map_or(0, |due| (due - millis()).max(0) + 1);
        pause(left.try_into().unwrap()).await;
        terminate(&mut self.serving);
        self.serve_again();
        let is_purged = |line: &Value| is_done(line) && line["state"] != "pending_purge";
        self.place.quiet(is_purged).await
    }

    /// Nothing that was written down contradicts.
    fn checked(&self, dump: Vec<Value>, campaigns: f64) -> Vec<Value> {
        let evidence = Evidence {
            dump,
            carrier: self.place.carried(),
            provider: Vec::new(),
            acknowledged: self.acknowledged.clone(),
            files: Some(files(&self.folder())),
            taken_at: Some(millis()),
            kills: self.killed.clone(),
            limit: LIMIT,
            rate: RATE * campaigns,
            burst: campaigns * f64::from(rules::dispatch::pace::burst(RATE).get()),
            settled: true,
        };
        let breaches = check(&evidence);
        assert!(breaches.is_empty(), "{}", report(&breaches));
        self.received(&evidence.dump);
        evidence.dump
    }

    /// Every event has arrived, signed, with the bytes that are stored, and nothing else.
    fn received(&self, dump: &[Value]) {
        let events = dump.iter().filter(|line| line["kind"] == "event");
        let events: BTreeMap<&str, &str> = events
            .map(|event| (event["id"].as_str().unwrap(), event["sha256"].as_str().unwrap()))
            .collect();
        let mut arrived = BTreeSet::new();
        for request in self.receiver.requests() {
            assert_eq!(request.verified, Some(true));
            let sha256 = sha256(&request.raw);
            assert_eq!(events.get(request.id()), Some(&&*sha256), "{}", request.event);
            arrived.insert(request.id().to_owned());
        }
        let missing = events.keys().filter(|id| !arrived.contains(**id)).count();
        assert_eq!(missing, 0, "events never arrived");
    }
}

/// Is there nothing to be done about it any more? A recording may still be kept until its purge.
fn is_done(line: &Value) -> bool {
    let state = line["state"].as_str().unwrap_or_default();
    match line["kind"].as_str().unwrap() {
        "session" => !line["ended_at"].is_null(),
        "recording" => state != "processing",
        "evaluation" => state != "pending",
        "delivery" => state == "succeeded",
        "campaign" => line["status"] == "completed",
        _ => true,
    }
}

/// The files in the recordings' folder, as `<tenant>/<file>`.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for tenant in std::fs::read_dir(folder).into_iter().flatten() {
        let tenant = tenant.unwrap();
        if !tenant.path().is_dir() {
            found.push(tenant.file_name().into_string().unwrap());
        }
        for file in std::fs::read_dir(tenant.path()).into_iter().flatten() {
            let (tenant, file) = (tenant.file_name(), file.unwrap().file_name());
            found.push(format!("{}/{}", tenant.to_str().unwrap(), file.to_str().unwrap()));
        }
    }
    found.sort();
    found
}

fn figures(kills: usize, dump: &[Value]) {
    let recordings: Vec<_> = dump.iter().filter(|line| line["kind"] == "recording").collect();
    let are = |state: &str| recordings.iter().filter(|line| line["state"] == state).count();
    eprintln!(
        "{kills} kills: {} sessions, {} cut off, {} opt-outs, {} refusals, {} transfers, {} timeouts, {} dispositions, \
         {} recordings ({} kept, {} purged, {} never made), {} events: nothing contradicts",
        count(dump, "kind", "session"),
        count(dump, "end_reason", "node_lost"),
        count(dump, "type", "session.opt_out_detected"),
        count(dump, "type", "session.consent_refused"),
        count(dump, "type", "session.transfer_initiated"),
        count(dump, "type", "function.timeout"),
        count(dump, "type", "session.disposition_set"),
        recordings.len(),
        are("completed"),
        are("purged"),
        are("failed"),
        count(dump, "kind", "event"),
    );
}

/// By hand with more: `CALLBOARD_TEST_KILLS=30`.
fn killed_while_it_records(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 4);
        let mut stage = Stage::set(place).await;
        let number = json!({ "phone_number": "+15002990000", "agent_id": stage.agents[1] });
        stage.api.post("/v1/numbers", number).await;
        let digits = [0, 5, 6, 7, 8, 0, 5, 3];
        let asked = stage.campaign(0, "+15002", &digits, 16 * kills).await;
        let told = stage.campaign(1, "+15003", &digits, 16 * kills).await;
        // Who waits in both opts out of both.
        stage.campaign(1, "+15002", &[5], kills).await;
        let outcomes = ["opt_out", "talk", "transfer", "function_timeout", "consent_refused"];
        for kill in 0..kills {
            for n in 0..4 {
                // One in four hides the number.
                let from = (n > 0).then(|| format!("+1500288{kill:03}{n}"));
                let call =
                    json!({ "to_number": "+15002990000", "from_number": from, "outcome": outcomes[(kill + n) % 5] });
                let call = stage.api.post("/v1/_sandbox/inbound_calls", call).await;
                if let Some(session) = call["session"]["id"].as_str() {
                    stage
                        .acknowledged
                        .push(json!({ "kind": "session", "id": session, "direction": "inbound" }));
                }
                pause(60 + 75 * ((kill * 7 + n * 3) as u64 % 5)).await;
            }
            stage.kill();
            stage.serve_again();
        }
        // Nobody cuts these off: on a slow machine the kills may have left nothing else to look at.
        let last = stage.campaign(0, "+15004", &digits, digits.len()).await;
        stage.campaign(1, "+15006", &digits, digits.len()).await;
        for campaign in [&asked, &told, &last] {
            for contact in stage.api.all(&format!("{campaign}/contacts")).await {
                let (id, number) = (&contact["id"], &contact["phone_number"]);
                stage
                    .acknowledged
                    .push(json!({ "kind": "contact", "id": id, "number": number }));
            }
        }
        let dump = stage.rest().await;
        let dump = stage.checked(dump, 5.0);
        terminate(&mut stage.serving);
        figures(kills, &dump);
        for kind in [
            "session.recording_completed",
            "session.opt_out_recording_purged",
            "session.consent_refused",
            "session.transfer_initiated",
            "function.timeout",
            "session.disposition_set",
        ] {
            assert!(count(&dump, "type", kind) > 0, "there was no {kind} to look at");
        }
        assert!(count(&dump, "direction", "inbound") > 0, "nobody called");
    });
}
#[test]
fn killed_while_it_records_on_sqlite() {
    killed_while_it_records(Backend::Sqlite);
}
#[test]
fn killed_while_it_records_on_postgres() {
    killed_while_it_records(Backend::Postgres);
}

/// Kills after which others are called: by then most sounds are gone.
const ROUND: usize = 5;

/// Killed at the moment at which another sound appears in the folder, or one is gone.
fn killed_while_it_stores_and_erases(backend: Backend) {
    on_disk(backend, async |place: Place| {
        let kills = number("CALLBOARD_TEST_KILLS", 5);
        let mut stage = Stage::set(place).await;
        let folder = stage.folder();
        let mut at_work = 0;
        for kill in 0..kills {
            if kill % ROUND == 0 {
                if kill > 0 {
                    stage.kill();
                    stage.serve_again();
                }
                // They are all called at once, and so they end at once.
                let prefix = format!("+1500{}", 2 + kill / ROUND % 8);
                stage.campaign(1, &prefix, &[5], LIMIT).await;
            }
            at_work += usize::from(watch(&folder).await);
            pause([0, 3, 9, 1, 5][kill % 5]).await;
            stage.kill();
            if kill % 2 == 1 {
                // Late enough for what was stored to be due.
                pause(GRACE.try_into().unwrap()).await;
            }
            // Not waited for: a start is when all that is due is done.
            stage.serving = start(&stage);
        }
        stage.kill();
        stage.serve_again();
        let dump = stage.rest().await;
        let dump = stage.checked(dump, kills.div_ceil(ROUND) as f64);
        terminate(&mut stage.serving);
        figures(stage.killed.len(), &dump);
        eprintln!("{at_work} of them while sounds were stored or erased");
        assert!(at_work > 0, "no kill came while there was work");
        let purged = count(&dump, "type", "session.opt_out_recording_purged");
        let opted_out = count(&dump, "type", "session.opt_out_recording_pending_purge");
        assert!(purged == opted_out && purged > 0, "{purged} purges of {opted_out}");
        assert!(files(&folder).is_empty(), "nothing is left: {:?}", files(&folder));
    });
}

/// Starts it without waiting until it is ready.
fn start(stage: &Stage) -> Child {
    let mut command = stage.place.command(&["serve"]);
    command
        .envs(stage.environment.iter().map(|(name, value)| (name, value)))
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    command.spawn().unwrap()
}

/// Waits until the folder holds something else; false if it does not for some seconds.
async fn watch(folder: &Path) -> bool {
    let before = files(folder);
    for _ in 0..3_000 {
        if files(folder) != before {
            return true;
        }
        pause(1).await;
    }
    false
}

#[test]
fn killed_while_it_stores_and_erases_on_sqlite() {
    killed_while_it_stores_and_erases(Backend::Sqlite);
}
#[test]
fn killed_while_it_stores_and_erases_on_postgres() {
    killed_while_it_stores_and_erases(Backend::Postgres);
}
