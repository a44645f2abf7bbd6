//! The dispatcher: how exactly it paces, how fairly it shares, and what a long list and many campaigns cost.
use super::service::{Api, Service, cpu_seconds, name_of, resident_mib};
use entities::values::Moment;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, process::Command, time::Instant};

/// Moments of the calls in the carrier's log, in microseconds.
fn placed(log: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(log).expect("the carrier's log");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut calls: Vec<f64> = lines
        .filter(|line| line["what"] == "placed")
        .filter_map(|line| line["at"].as_f64())
        .collect();
    calls.sort_by(f64::total_cmp);
    calls
}

async fn draft(api: &Api, agent: &Value, more: Value) -> String {
    let mut campaign = json!({ "name": "Load", "agent_id": agent });
    for (name, value) in more.as_object().expect("fields") {
        campaign[name] = value.clone();
    }
    let id = api.post("/v1/campaigns", campaign).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    format!("/v1/campaigns/{id}")
}

/// Reads so many contacts in from files, each as large as one may be; answers the seconds it took.
async fn import(service: &Service, api: &Api, campaign: &str, contacts: usize) -> f64 {
    const ROWS: usize = 700_000;
    let started = Instant::now();
    for first in (0..contacts).step_by(ROWS) {
        let rows = first..(first + ROWS).min(contacts);
        let file: String = std::iter::once("phone_number\n".to_owned())
            .chain(rows.map(|n| format!("+1500{}\n", 2_000_000 + n)))
            .collect();
        let job = api.upload(&format!("{campaign}/contacts/import"), file).await;
        let path = format!("/v1/imports/{}", job["id"].as_str().expect("an id"));
        while api.get(&path).await["status"] == "running" {
            service.pause(200).await;
        }
    }
    started.elapsed().as_secs_f64()
}

async fn agent(api: &Api) -> Value {
    api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await["id"].clone()
}

/// Calls at fixed rates: the most in any second, the spread of the intervals, the rate that was achieved.
pub async fn pacing(database: &str, seconds: usize) {
    println!("{}: pacing over {seconds} s", name_of(database));
    for rate in [5.0, 50.0, 500.0] {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("carrier.log");
        let service = Service::start_with(database, &[("sandbox_log", log.display().to_string())]).await;
        let (_, api) = service.tenant().await;
        let agent = agent(&api).await;
        let path = draft(&api, &agent, json!({ "pacing": { "calls_per_second": rate } })).await;
        let calls = rate as usize * seconds;
        import(&service, &api, &path, calls).await;
        api.post(&format!("{path}/start"), json!({})).await;
        while api.get(&path).await["status"] != "completed" {
            service.pause(200).await;
        }
        service.stop().await;
        let calls = placed(&log);
        let mut jitter: Vec<f64> = calls
            .windows(2)
            .map(|pair| ((pair[1] - pair[0]) / 1000.0 - 1000.0 / rate).abs())
            .collect();
        jitter.sort_by(f64::total_cmp);
        let p99 = jitter.get(jitter.len() * 99 / 100).copied().unwrap_or(0.0);
        let (mut first, mut most) = (0, 0);
        for (n, at) in calls.iter().enumerate() {
            while calls[first] <= at - 1e6 {
                first += 1;
            }
            most = most.max(n - first + 1);
        }
        let span = (calls[calls.len() - 1] - calls[0]) / 1e6;
        println!(
            "  {rate:>5} calls/s: at most {most} in any second (rate + burst {:.0}), interval jitter p50 {:.2} ms p99 {p99:.2} ms, achieved {:.2} % of the rate",
            rate + f64::from(rules::dispatch::pace::burst(rate).get()),
            jitter[jitter.len() / 2],
            100.0 * (calls.len() - 1) as f64 / span / rate,
        );
    }
}

/// A long list: how fast it is read in, what it takes in memory, and what a call costs beside it.
pub async fn long_list(database: &str, contacts: usize) {
    println!("{}: a list of {contacts} contacts", name_of(database));
    let service = Service::start(database).await;
    let (_, api) = service.tenant().await;
    let agent = agent(&api).await;
    let before = resident_mib();
    let plan = json!({ "pacing": { "calls_per_second": 200 } });
    let short = draft(&api, &agent, plan.clone()).await;
    import(&service, &api, &short, 1_000).await;
    let long = draft(&api, &agent, plan).await;
    let seconds = import(&service, &api, &long, contacts).await;
    println!(
        "  rows read in                              {:>10.0} /s",
        contacts as f64 / seconds
    );
    println!(
        "  resident memory                           {before:>10.0} -> {:.0} MiB",
        resident_mib()
    );
    for (what, path, calls) in [("1,000", &short, 1_000.0), ("all", &long, 1_000.0)] {
        api.post(&format!("{path}/start"), json!({})).await;
        let (cpu, started) = (cpu_seconds(), Instant::now());
        loop {
            let counts = api.get(path).await["counts"].clone();
            let ended = counts["completed"].as_f64().unwrap_or(0.0) + counts["failed"].as_f64().unwrap_or(0.0);
            if ended >= calls {
                break;
            }
            service.pause(100).await;
        }
        println!(
            "  {what:>6} contacts at 200 calls/s: {:.2} CPU seconds for 1,000 calls in {:.1} s",
            cpu_seconds() - cpu,
            started.elapsed().as_secs_f64()
        );
    }
    let (started, path) = (Instant::now(), format!("{long}/preflight"));
    let look = api.post(&path, json!({})).await;
    println!(
        "  preflight of {} contacts in {:.2} s",
        look["contacts"],
        started.elapsed().as_secs_f64()
    );
    api.post(&format!("{long}/pause"), json!({})).await;
    println!(
        "  resident memory at the end                {:>10.0} MiB",
        resident_mib()
    );
    service.stop().await;
}

/// Many workspaces with ten campaigns each, at a rate that is too small for all: who gets what share of it.
pub async fn fair(database: &str, tenants: usize, seconds: u64) {
    const RATE: f64 = 10.0;
    println!(
        "{}: {tenants} workspaces, ten campaigns each of weights 10 to 100, {RATE} calls/s a workspace, {seconds} s",
        name_of(database)
    );
    let service = Service::start_with(database, &[("max_calls_per_second", RATE.to_string())]).await;
    let mut started = Vec::new();
    for _ in 0..tenants {
        let (_, api) = service.tenant().await;
        let agent = agent(&api).await;
        let mut campaigns = Vec::new();
        for n in 1..=10_usize {
            let plan = json!({ "pacing": { "calls_per_second": RATE, "weight": n * 10 } });
            let path = draft(&api, &agent, plan).await;
            let contacts: Vec<_> = (0..seconds as usize * 2 + 10)
                .map(|c| json!({ "phone_number": format!("+1500{}1", 200_000 + n * 10_000 + c) }))
                .collect();
            api.post(&format!("{path}/contacts"), json!({ "contacts": contacts }))
                .await;
            campaigns.push((n * 10, path));
        }
        started.push((api, campaigns));
    }
    for (api, campaigns) in &started {
        for (_, path) in campaigns {
            api.post(&format!("{path}/start"), json!({})).await;
        }
    }
    // The first second or two, in which not all had begun, are left out.
    let counts = async || {
        let mut counts: BTreeMap<(usize, usize), i64> = BTreeMap::new();
        for (tenant, (api, campaigns)) in started.iter().enumerate() {
            for (weight, path) in campaigns {
                let counted = api.get(path).await["counts"].clone();
                let left = counted["pending"].as_i64().unwrap_or(0);
                counts.insert((tenant, *weight), left);
            }
        }
        counts
    };
    service.pause(2000).await;
    let (before, clock) = (counts().await, service.clock.now());
    let until: Moment = clock.plus_seconds(i64::try_from(seconds).expect("some seconds"));
    let _busy = service.clock.sleep_until(until).await;
    let after = counts().await;
    let mut by_weight: BTreeMap<usize, i64> = BTreeMap::new();
    for ((tenant, weight), left) in &before {
        *by_weight.entry(*weight).or_default() += left - after[&(*tenant, *weight)];
    }
    let all: i64 = by_weight.values().sum();
    let worst = by_weight
        .iter()
        .map(|(weight, calls)| (*calls as f64 / (all as f64 * *weight as f64 / 550.0) - 1.0).abs())
        .fold(0.0, f64::max);
    println!(
        "  {all} calls; the share of a weight differs from what it should be by at most {:.1} %",
        worst * 100.0
    );
    service.stop().await;
}

/// What campaigns cost that sleep: in memory, and in time per second, each in a process of its own.
pub async fn asleep(database: &str, campaigns: usize) {
    let measure = || {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["asleep-process", "--database", database])
            .output()
            .expect("a process");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    println!(
        "{}: the idle service without campaigns: {}",
        name_of(database),
        measure()
    );
    let service = Service::start(database).await;
    for _ in 0..campaigns.div_ceil(100) {
        let (_, api) = service.tenant().await;
        let agent = agent(&api).await;
        // Open one minute a day, at a time that is not now in the workspace's zone; half of them are paused by hand.
        let hour = (service.clock.now().millis() / 3_600_000 + 6) % 24;
        let window = json!({ "windows": [{ "start": format!("{hour:02}:00"), "end": format!("{hour:02}:05") }] });
        for n in 0..100 {
            let plan = json!({ "name": "Asleep", "agent_id": agent, "schedule": window, "contacts": [{ "phone_number": "+15002340001" }] });
            let campaign = api.post("/v1/campaigns/run", plan).await;
            if n == 50 {
                // Under the rate limit of a key.
                service.pause(800).await;
            }
            if n % 2 == 0 {
                let path = format!("/v1/campaigns/{}/pause", campaign["id"].as_str().expect("an id"));
                api.post(&path, json!({})).await;
            }
        }
        service.pause(50).await;
    }
    service.pause(2000).await;
    service.stop().await;
    println!(
        "  with {campaigns} paused ones, half by hand and half for quiet hours: {}",
        measure()
    );
}

/// Starts the service on what is there, and says what it takes.
pub async fn asleep_process(database: &str) {
    let service = Service::start(database).await;
    service.pause(5000).await;
    let cpu = cpu_seconds();
    service.pause(60_000).await;
    println!(
        "{:.0} MiB, {:.2} CPU seconds in a minute",
        resident_mib(),
        cpu_seconds() - cpu
    );
    service.stop().await;
}
