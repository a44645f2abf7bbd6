//! Sandbox calls at once, at the pace of people: what one costs in memory and time, and how fast their recordings are made.
use super::service::{Service, cpu_seconds, name_of, resident_mib};
use serde_json::{Value, json};
use std::time::Instant;

/// What each agent says in its turns, so that a talk lasts about half a minute.
const TURN: &str = "Let me tell you about our new offer, which is better than anything that you have seen before.";

pub async fn run(database: &str, calls: usize) {
    let more = [
        ("sandbox_speed", "1".to_owned()),
        ("max_concurrency", calls.to_string()),
    ];
    let service = Service::start_with(database, &more).await;
    let (_, api) = service.tenant().await;
    println!(
        "{}: {calls} sandbox calls at once, at the pace of people",
        name_of(database)
    );
    for recorded in [false, true] {
        let replies: Vec<Value> = (0..3).map(|_| json!({ "say": TURN })).collect();
        let agent = json!({
            "name": "Ann",
            "prompt": "x",
            "brain": { "mode": "scripted", "replies": replies },
            "recording": { "enabled": recorded },
        });
        let agent = api.post("/v1/agents", agent).await["id"].clone();
        let first = if recorded { 300_000 } else { 200_000 };
        let contacts: Vec<Value> = (0..calls)
            .map(|n| json!({ "phone_number": format!("+1500{}0", first + n) }))
            .collect();
        let before = resident_mib();
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let campaign =
            json!({ "name": "Load", "agent_id": agent, "contacts": contacts, "pacing": { "calls_per_second": 500 } });
        let id = api.post("/v1/campaigns/run", campaign).await["id"].clone();
        let path = format!("/v1/campaigns/{}", id.as_str().expect("an id"));
        let mut most_live: u64 = 0;
        let mut most_mib: f64 = before;
        // Until the last call has ended.
        while api.get(&path).await["status"] != "completed" {
            let live = api.get("/v1/concurrency").await["in_use"].as_u64().expect("a count");
            most_live = most_live.max(live);
            most_mib = most_mib.max(resident_mib());
            service.pause(250).await;
        }
        let (talked, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        println!("\n  {}", if recorded { "recorded" } else { "not recorded" });
        println!("  calls live at once, at most               {most_live:>10}");
        println!("  resident memory before, at most           {before:>10.0} {most_mib:>6.0} MiB");
        println!(
            "  memory per live call                      {:>10.1} KiB",
            (most_mib - before) * 1024.0 / most_live.max(1) as f64
        );
        println!("  from the first dial to the last end       {talked:>10.1} s");
        println!(
            "  CPU seconds per 1,000 calls               {:>10.2}",
            cpu * 1000.0 / calls as f64
        );
        if recorded {
            let (cpu, started) = (cpu_seconds(), Instant::now());
            let mut most_mib = resident_mib();
            while api.get("/v1/recordings?limit=1&status=processing").await["data"] != json!([]) {
                most_mib = most_mib.max(resident_mib());
                service.pause(100).await;
            }
            println!(
                "  until the last recording was stored       {:>10.1} s more",
                started.elapsed().as_secs_f64()
            );
            println!(
                "  CPU seconds for it                        {:>10.2}",
                cpu_seconds() - cpu
            );
            println!("  resident memory meanwhile, at most        {most_mib:>10.0} MiB");
        }
    }
    service.stop().await;
}
