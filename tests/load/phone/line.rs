//! A service with three carriers, and what is asked of it while it telephones.
use super::Plan;
use crate::{peers::ports::Ports, process::Process, rooms::pause, service::Api};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    net::SocketAddr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Our numbers, one for each carrier.
pub const OURS: [&str; 3] = ["+12025551000", "+12025551001", "+12025551002"];
const HELLO: &str = "Hello, this is Ann from Northwind. Let me tell you about our new offer, which is better than anything that \
    you have seen before, and about the one after that, which is better still. Is this a good time for you?";
/// Contacts that are sent at a time.
const PART: usize = 1_000;
/// What is to happen has happened by then.
const PATIENCE: Duration = Duration::from_secs(120);

/// Each carrier has a number: one for many calls, one for the call that is looked at, one that calls.
pub struct Line {
    pub service: Process,
    pub api: Api,
    /// It speaks for long; and one whose turn is over soon.
    pub agent: Value,
    pub brief: Value,
    pub sip: SocketAddr,
    pub carriers: [SocketAddr; 3],
    /// Nobody is called by two campaigns.
    called: Cell<usize>,
}

impl Line {
    /// With these settings beside its own.
    pub async fn open(plan: &Plan, database: &str, more: &[(&'static str, String)]) -> Self {
        let mut ports = Ports::new();
        let mut address = || SocketAddr::from(([127, 0, 0, 1], *ports.range(2).start()));
        let (sip, carriers) = (address(), [address(), address(), address()]);
        let most = (plan.calls + 50).max(200);
        let mut settings = vec![
            ("CALLBOARD_SIP_BIND", sip.to_string()),
            ("CALLBOARD_RTP_PORTS", "24000-27999".into()),
            ("CALLBOARD_MAX_CONCURRENCY", most.to_string()),
            ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "0".into()),
            ("CALLBOARD_NUMBER_CAP_24H", "0".into()),
            ("CALLBOARD_NUMBER_CAP_7D", "0".into()),
            ("CALLBOARD_VOICE", "tones".into()),
            ("CALLBOARD_LOG", "warn,callboard=info".into()),
        ];
        settings.extend_from_slice(more);
        let service = Process::start(database, &settings);
        let mut printed = String::new();
        let create = "--json keys create --workspace load-0 --env live --name phone";
        service.each_line(&create.split(' ').collect::<Vec<_>>(), |line| printed += line);
        let key: Value = serde_json::from_str(&printed).expect("a key");
        let api = Api::new(service.url(), key["plaintext"].as_str().expect("a key").to_owned());
        api.patch("/v1/concurrency", json!({ "limit": most })).await;
        let agent = agent(&api, HELLO, HELLO).await;
        let brief = self::agent(&api, "Hello, this is Ann.", "I write that down.").await;
        for (carrier, number) in carriers.iter().zip(OURS) {
            let claim = ["workspace", "claim-number", "--workspace", "load-0", "--number", number];
            service.each_line(&claim, |_| {});
            let trunk = json!({ "name": number, "host": carrier.to_string(), "max_calls_per_second": 200, "options_interval_seconds": 0 });
            let trunk = api.post("/v1/sip_trunks", trunk).await;
            let number = json!({ "phone_number": number, "trunk_id": trunk["id"], "agent_id": agent });
            api.post("/v1/numbers", number).await;
            knows_its_peer(&api, &trunk).await;
        }
        Line {
            service,
            api,
            agent,
            brief,
            sip,
            carriers,
            called: Cell::new(0),
        }
    }

    /// Contacts where it is noon, called once; answers the campaign's path once it runs.
    pub async fn campaign(&self, calls: usize, rate: usize) -> String {
        let plan = json!({ "name": "Load", "agent_id": self.agent, "from_numbers": [OURS[0]], "retry": { "max_attempts": 1 },
            "pacing": { "calls_per_second": rate }, "voicemail": { "detection": "off" },
            "schedule": { "windows": [{ "start": "00:00", "end": "24:00" }] } });
        let path = format!(
            "/v1/campaigns/{}",
            self.api.post("/v1/campaigns", plan).await["id"]
                .as_str()
                .expect("an id")
        );
        let first = self.called.replace(self.called.get() + calls);
        let numbers: Vec<usize> = (first..first + calls).collect();
        for part in numbers.chunks(PART) {
            let contact = |n: &usize| json!({ "phone_number": format!("+1202{}", 5_600_000 + n), "timezone": noon() });
            let contacts: Vec<_> = part.iter().map(contact).collect();
            self.api
                .post(&format!("{path}/contacts"), json!({ "contacts": contacts }))
                .await;
        }
        self.api.post(&format!("{path}/start"), json!({})).await;
        path
    }

    pub async fn in_use(&self) -> usize {
        let shown = self.api.get("/v1/concurrency").await;
        usize::try_from(shown["in_use"].as_u64().expect("a count")).expect("a count")
    }

    pub async fn until(&self, what: &str, so: impl Fn(usize) -> bool) {
        let began = Instant::now();
        loop {
            let in_use = self.in_use().await;
            if so(in_use) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {in_use} are in use");
            pause(Duration::from_millis(200)).await;
        }
    }

    /// All that the campaign has placed, under the rate of a key.
    pub async fn end_all(&self, campaign: &str) {
        let (id, began) = (campaign.rsplit('/').next().unwrap_or_default(), Instant::now());
        loop {
            let path = format!("/v1/sessions?campaign_id={id}&status=in_progress&limit=100");
            let live = self.api.get(&path).await;
            let live = live["data"].as_array().expect("sessions");
            if live.is_empty() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{} do not end", live.len());
            for session in live {
                let path = format!("/v1/sessions/{}/end", session["id"].as_str().unwrap_or_default());
                self.api.status(&path, Some(json!({}))).await;
                pause(Duration::from_millis(25)).await;
            }
        }
    }

    /// Of a live line nothing is missing: a measure that is not there is no number.
    pub async fn metric(&self, name: &str) -> f64 {
        self.service.metric(name).await.unwrap_or(f64::NAN)
    }
}

/// With words for more than ten minutes. It waits while nobody speaks.
async fn agent(api: &Api, hello: &str, reply: &str) -> Value {
    let replies = vec![json!({ "say": reply }); 100];
    let agent = json!({ "name": "Ann", "prompt": "x", "first_message": hello, "max_duration_seconds": 7200,
        "silence": { "hangup_after_seconds": 600 }, "recording": { "enabled": false },
        "brain": { "mode": "scripted", "replies": replies } });
    api.post("/v1/agents", agent).await["id"].clone()
}

/// It is a stranger, and unheard, until the trunk's actor has looked it up.
async fn knows_its_peer(api: &Api, trunk: &Value) {
    let (path, began) = (
        format!("/v1/sip_trunks/{}", trunk["id"].as_str().expect("an id")),
        Instant::now(),
    );
    loop {
        let shown = api.get(&path).await;
        if shown["state"]["targets"].as_array().is_some_and(|all| !all.is_empty()) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "nobody looks it up: {shown}");
        pause(Duration::from_millis(100)).await;
    }
}

/// A zone in which it is about noon now: live calls keep hours.
pub fn noon() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ahead = 12 - (now.as_secs() / 3_600 % 24) as i64;
    match ahead {
        0 => "Etc/GMT".to_owned(),
        1.. => format!("Etc/GMT-{ahead}"),
        _ => format!("Etc/GMT+{}", -ahead),
    }
}
