//! A quiet workspace, first alone and then beside a noisy one that does at once all that is expensive. Fails if the quiet one's
//! requests fail, or if its 99th percentile is more than three times what it was.
//!
//! The service is a process of its own, and so is the noise: of the lowest priority, for its clients are other people's machines
//! and what they compute must not count as the service's delay.
mod noise;

pub use noise::make as make_noise;

use super::{
    process::{Memory, Process},
    rooms::{pause, percentiles, row},
    service::{Api, name_of},
};
use noise::Noise;
use serde_json::json;
use std::{
    rc::Rc,
    time::{Duration, Instant},
};

/// Requests of the quiet workspace per second; every third is a write. A key may ask 50 times.
const PER_SECOND: u64 = 30;
/// What the noise may cost the others.
const MOST: f64 = 3.0;
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
        let keys = self.keys.max(noise::OWN_KEYS + 1);
        let service = Process::start_with(&self.database, &[], &[1, keys]);
        let lists = self.lists(&service.api_of(1, 0)).await;
        let quiet = draft(&service.api(), 1).await;
        // The first connections and statements are nobody's latency.
        self.quiet(&service, &quiet, 3, 0).await;
        let (alone, idle) = self.quiet(&service, &quiet, self.seconds, 1).await;

        let noise = Noise::start(&json!({
            "url": service.url(),
            "keys": service.keys_of(1),
            "looked_at": lists[..LOOKED_AT],
            "canceled": lists[LOOKED_AT..],
            "bodies": self.bodies,
        }));
        pause(Duration::from_secs(2)).await;
        let (beside, busy) = self.quiet(&service, &quiet, self.seconds, 2).await;
        noise.end();
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
