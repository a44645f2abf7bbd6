//! A quiet workspace, first alone and then beside a noisy one that does at once all that is expensive. Fails if the quiet one's
//! requests fail, or if its 99th percentile is more than three times what it was.
//!
//! The service is a process of its own. The quiet workspace is a thread of this one, so that its times are not those of the noise.
use super::{
    process::{Memory, Process},
    rooms::{pause, percentiles, row},
    service::{Api, client, name_of},
};
use actix_rt::task::JoinHandle;
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Requests of the quiet workspace per second; every third is a write. A key may ask 50 times.
const PER_SECOND: u64 = 30;
/// What the noise may cost the others.
const MOST: f64 = 3.0;
/// Keys for each kind of noise but the flood, which has the rest.
const OWN_KEYS: usize = 3;
/// Campaigns that are looked at all the time, and ones that are canceled one after the other.
const LOOKED_AT: usize = 2;
const CANCELED: usize = 3;

pub struct Plan {
    pub database: String,
    /// Of each long list.
    pub contacts: usize,
    /// Of the noisy workspace.
    pub keys: usize,
    /// Bodies that are sent by half.
    pub bodies: usize,
    /// Of each part.
    pub seconds: u64,
}

/// What the noise was answered, by kind and status; 0: no answer.
type Tally = Rc<RefCell<BTreeMap<(&'static str, u16), usize>>>;

/// Milliseconds.
struct Times {
    reads: Vec<f64>,
    writes: Vec<f64>,
    failed: usize,
}

#[derive(Default)]
struct Most {
    memory: Memory,
    files: usize,
}

impl Plan {
    pub async fn run(self) {
        println!(
            "{}: {} contacts a list, {} noisy keys, {} half-sent bodies, {} s each",
            name_of(&self.database),
            self.contacts,
            self.keys,
            self.bodies,
            self.seconds
        );
        let keys = self.keys.max(OWN_KEYS + 1);
        let service = Process::start_with(&self.database, &[], &[1, keys]);
        let lists = self.lists(&service.api_of(1, 0)).await;
        let quiet = draft(&service.api(), 1).await;
        // The first connections and statements are nobody's latency.
        self.quiet(&service, &quiet, 3, 0).await;
        let (alone, idle) = self.quiet(&service, &quiet, self.seconds, 1).await;

        let tally = Tally::default();
        let noise = self.noise(&service, lists, &tally).await;
        pause(Duration::from_secs(2)).await;
        let (beside, busy) = self.quiet(&service, &quiet, self.seconds, 2).await;
        noise.iter().for_each(JoinHandle::abort);

        for ((what, status), count) in tally.borrow().iter() {
            row(&format!("{what}, answered {status}"), count.to_string());
        }
        println!();
        for (when, most) in [("alone", idle), ("beside the noise", busy)] {
            let Most { memory, files } = most;
            let own = memory.own;
            row(
                &format!("memory, open files at most, {when}"),
                format!("{:.0} MiB (without files {own:.0}), {files}", memory.resident),
            );
        }
        println!();
        let reads = told("reads", &alone.reads, &beside.reads);
        let writes = told("writes", &alone.writes, &beside.writes);
        assert_eq!(
            (alone.failed, beside.failed),
            (0, 0),
            "requests of the quiet workspace failed"
        );
        assert!(
            reads.max(writes) <= MOST,
            "beside the noise the quiet workspace's p99 is {:.1} times what it was; {MOST} is allowed",
            reads.max(writes)
        );
        service.stop();
    }

    /// The quiet workspace for a while, and the most that the service took meanwhile.
    async fn quiet(&self, service: &Process, campaign: &str, seconds: u64, part: u64) -> (Times, Most) {
        let (api, path) = (service.api(), campaign.to_owned());
        let thread = std::thread::spawn(move || actix_rt::System::new().block_on(ask(api, path, seconds, part)));
        let mut most = Most::default();
        while !thread.is_finished() {
            most.memory = most.memory.most(service.memory());
            most.files = most.files.max(service.open_files());
            pause(Duration::from_millis(200)).await;
        }
        (thread.join().expect("no panic"), most)
    }

    /// The noisy workspace's long lists: paths of campaigns.
    async fn lists(&self, api: &Api) -> Vec<String> {
        let mut lists = Vec::new();
        for _ in 0..LOOKED_AT + CANCELED {
            lists.push(draft(api, self.contacts).await);
        }
        lists
    }

    async fn noise(&self, service: &Process, mut lists: Vec<String>, tally: &Tally) -> Vec<JoinHandle<()>> {
        let canceled = lists.split_off(LOOKED_AT);
        let api = |key: usize| Rc::new(service.api_of(1, key));
        let mut noise = Vec::new();
        for n in 0..8 {
            let path = format!("{}/preflight", lists[n % lists.len()]);
            noise.push(again(&api(0), tally, "preflight", path, json!({})));
        }
        let test = silent_function(&api(1)).await;
        for _ in 0..20 {
            noise.push(again(
                &api(1),
                tally,
                "function test",
                test.clone(),
                json!({ "arguments": {} }),
            ));
        }
        for _ in 0..self.bodies {
            noise.push(half_sent(&api(2), tally, format!("{}/contacts/import", lists[0])));
        }
        for key in OWN_KEYS..self.keys.max(OWN_KEYS + 1) {
            noise.push(flood(api(key), tally.clone(), key));
        }
        for _ in 0..4 {
            noise.push(sign_in(api(0).address().to_owned(), tally.clone()));
        }
        noise.push(cancel(api(0), tally.clone(), canceled));
        noise
    }
}

/// Asks at a steady pace, whether it was answered or not.
async fn ask(api: Api, campaign: String, seconds: u64, part: u64) -> Times {
    let (api, started) = (Rc::new(api), Instant::now());
    let mut asked = Vec::new();
    for n in 0..seconds * PER_SECOND {
        let due = started + Duration::from_secs(n) / u32::try_from(PER_SECOND).expect("a small number");
        pause(due.saturating_duration_since(Instant::now())).await;
        let (api, campaign) = (api.clone(), campaign.clone());
        asked.push(actix_rt::spawn(async move {
            let begun = Instant::now();
            let writes = n % 3 == 2;
            let status = if writes {
                let number = format!("+1500{}{n:06}", 2 + part);
                api.status("/v1/dnc", Some(json!({ "phone_number": number }))).await
            } else {
                api.status(&campaign, None).await
            };
            (writes, status, begun.elapsed().as_secs_f64() * 1e3)
        }));
    }
    let mut times = Times {
        reads: Vec::new(),
        writes: Vec::new(),
        failed: 0,
    };
    for asked in asked {
        let (writes, status, took) = asked.await.expect("no panic");
        times.failed += usize::from(!(200..300).contains(&status));
        if writes {
            times.writes.push(took);
        } else {
            times.reads.push(took);
        }
    }
    times
}

/// Prints a line for each part; answers how much larger the 99th percentile has become.
fn told(what: &str, alone: &[f64], beside: &[f64]) -> f64 {
    let ([quiet50, quiet99], [noisy50, noisy99]) = (percentiles(alone.to_vec()), percentiles(beside.to_vec()));
    row(
        &format!("{what} alone, p50, p99"),
        format!("{quiet50:.1}, {quiet99:.1} ms"),
    );
    row(
        &format!("{what} beside the noise, p50, p99"),
        format!("{noisy50:.1}, {noisy99:.1} ms"),
    );
    let ratio = noisy99 / quiet99.max(0.1);
    row(&format!("{what}, p99 beside to alone"), format!("{ratio:.2}"));
    ratio
}

/// A campaign over so many contacts; answers its path.
async fn draft(api: &Api, contacts: usize) -> String {
    let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await["id"].clone();
    let draft = api
        .post("/v1/campaigns", json!({ "name": "Load", "agent_id": agent }))
        .await;
    let path = format!("/v1/campaigns/{}", draft["id"].as_str().expect("an id"));
    let file: String = std::iter::once("phone_number\n".to_owned())
        .chain((0..contacts).map(|n| format!("+1500{}\n", 2_000_000 + n)))
        .collect();
    let job = api.upload(&format!("{path}/contacts/import"), file).await;
    let job = format!("/v1/imports/{}", job["id"].as_str().expect("an id"));
    while api.get(&job).await["status"] == "running" {
        pause(Duration::from_millis(200)).await;
    }
    path
}

fn count(tally: &Tally, what: &'static str, status: u16) {
    *tally.borrow_mut().entry((what, status)).or_default() += 1;
}

/// Posts the same as soon as it was answered; what was refused is tried again a little later.
fn again(api: &Rc<Api>, tally: &Tally, what: &'static str, path: String, body: Value) -> JoinHandle<()> {
    let (api, tally) = (api.clone(), tally.clone());
    actix_rt::spawn(async move {
        loop {
            let status = api.status(&path, Some(body.clone())).await;
            count(&tally, what, status);
            if !(200..300).contains(&status) {
                pause(Duration::from_millis(100)).await;
            }
        }
    })
}

/// A function whose receiver takes every call and never answers; answers the path of its test.
async fn silent_function(api: &Api) -> String {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("its address"));
    actix_rt::spawn(async move {
        let mut held = Vec::new();
        while let Ok((call, _)) = silent.accept().await {
            held.push(call);
        }
    });
    let function = json!({
        "name": "wait",
        "description": "Never answers.",
        "parameters": { "type": "object" },
        "url": url,
        "timeout_ms": 120_000,
    });
    let function = api.post("/v1/functions", function).await;
    format!("/v1/functions/{}/test", function["id"].as_str().expect("an id"))
}

/// Half of the largest body that a list may have, and then nothing more, until the service has enough of it.
fn half_sent(api: &Rc<Api>, tally: &Tally, path: String) -> JoinHandle<()> {
    const WHOLE: usize = 10 * 1024 * 1024;
    let (api, tally) = (api.clone(), tally.clone());
    actix_rt::spawn(async move {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: text/csv\r\nContent-Length: {WHOLE}\r\n\r\n",
            api.address(),
            api.key()
        );
        let half = vec![b'1'; WHOLE / 2];
        loop {
            let status = match TcpStream::connect(api.address()).await {
                Ok(connection) => send_half(connection, head.as_bytes(), &half).await,
                Err(_) => 0,
            };
            count(&tally, "half-sent body", status);
            pause(Duration::from_millis(100)).await;
        }
    })
}

/// The status of the answer that came, 0 without one.
async fn send_half(mut connection: TcpStream, head: &[u8], half: &[u8]) -> u16 {
    // Whoever refuses may close before all of it was sent.
    let sent = async {
        connection.write_all(head).await?;
        connection.write_all(half).await
    };
    let _ = sent.await;
    let mut answer = [0; 12];
    match connection.read_exact(&mut answer).await {
        Ok(_) => std::str::from_utf8(&answer[9..]).map_or(0, |text| text.parse().unwrap_or(0)),
        Err(_) => 0,
    }
}

/// A key somewhat above its limit, with reads and writes.
fn flood(api: Rc<Api>, tally: Tally, key: usize) -> JoinHandle<()> {
    actix_rt::spawn(async move {
        for n in 0_usize.. {
            let status = if n.is_multiple_of(2) {
                api.status("/v1/campaigns?limit=100", None).await
            } else {
                let number = format!("+1500{}{:05}", 20 + key % 80, n % 100_000);
                api.status("/v1/dnc", Some(json!({ "phone_number": number }))).await
            };
            count(&tally, "flood", status);
            pause(Duration::from_millis(15)).await;
        }
    })
}

/// Sign-ins of an e-mail address as large as a body may be.
fn sign_in(address: String, tally: Tally) -> JoinHandle<()> {
    actix_rt::spawn(async move {
        let body =
            json!({ "email": format!("{}@example.com", "x".repeat(900_000)), "password": "correct horse battery" });
        let url = format!("http://{address}/v1/_internal/login");
        let client = client();
        loop {
            let answer = client.post(&url).json(&body).send().await;
            count(&tally, "sign-in", answer.map_or(0, |answer| answer.status().as_u16()));
            pause(Duration::from_millis(100)).await;
        }
    })
}

/// One long list after the other.
fn cancel(api: Rc<Api>, tally: Tally, campaigns: Vec<String>) -> JoinHandle<()> {
    actix_rt::spawn(async move {
        for path in campaigns {
            let status = loop {
                let status = api.status(&format!("{path}/cancel"), Some(json!({}))).await;
                if status != 429 {
                    break status;
                }
                pause(Duration::from_millis(100)).await;
            };
            count(&tally, "cancel", status);
            // The answer may be a refusal, of which nobody knows how far it is.
            while api.get(&path).await["status"] != "completed" {
                pause(Duration::from_millis(500)).await;
            }
        }
    })
}
