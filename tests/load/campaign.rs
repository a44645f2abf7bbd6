//! A sandbox campaign at full speed, and paced: contacts per second with all their events delivered.
use super::{
    receiver::Receiver,
    service::{Api, Service, cpu_seconds, name_of, raw_limit, resident_mib},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub async fn run(contacts: usize, database: String) {
    let receiver = Receiver::start();
    let raw = raw_limit(&receiver, 1).await;
    println!("raw limit of this client and receiver       {raw:>10.0} posts/s");
    let service = Service::start(&database).await;
    let (_, api) = service.tenant().await;
    api.post(
        "/v1/webhook_endpoints",
        json!({ "url": receiver.hook(0), "event_types": ["*"], "max_concurrency": 64 }),
    )
    .await;
    let agent = api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await["id"].clone();

    let name = name_of(&database);
    println!("\n{name}: {contacts} contacts at full speed");
    let campaign = draft(&api, &agent, contacts, 10_000.0).await;
    let (cpu, started) = (cpu_seconds(), Instant::now());
    receiver.reset().await;
    api.post(&format!("{campaign}/start"), json!({})).await;
    finished(&service, &api, &campaign).await;
    let dispatched = started.elapsed().as_secs_f64();
    // created, started and completed of the campaign, and five events for each contact.
    let events = 5 * contacts + 2;
    arrived(&service, &receiver, events).await;
    let elapsed = started.elapsed().as_secs_f64();
    println!(
        "  contacts through their calls              {:>10.0} /s",
        contacts as f64 / dispatched
    );
    println!(
        "  contacts, all five events delivered       {:>10.0} /s",
        contacts as f64 / elapsed
    );
    println!(
        "  events committed, delivered, logged       {:>10.0} /s   ({:.0} % of the raw limit)",
        events as f64 / elapsed,
        100.0 * events as f64 / elapsed / raw
    );
    println!(
        "  CPU seconds per 1,000 contacts            {:>10.2}",
        (cpu_seconds() - cpu) * 1000.0 / contacts as f64
    );
    println!(
        "  resident memory                           {:>10.0} MiB",
        resident_mib()
    );

    let calls = 500;
    println!("\n{name}: {calls} contacts at 50 calls/s");
    let campaign = draft(&api, &agent, calls, 50.0).await;
    let started = Instant::now();
    api.post(&format!("{campaign}/start"), json!({})).await;
    finished(&service, &api, &campaign).await;
    let elapsed = started.elapsed().as_secs_f64();
    println!(
        "  achieved rate                             {:>10.1} /s",
        (calls - 1) as f64 / elapsed
    );
    service.stop().await;
}

/// A campaign with its contacts, not started; answers its path.
async fn draft(api: &Api, agent: &Value, contacts: usize, calls_per_second: f64) -> String {
    let campaign = json!({ "name": "Load", "agent_id": agent, "pacing": { "calls_per_second": calls_per_second } });
    let path = format!(
        "/v1/campaigns/{}",
        api.post("/v1/campaigns", campaign).await["id"].as_str().expect("an id")
    );
    let all: Vec<Value> = (0..contacts)
        .map(|n| json!({ "phone_number": format!("+1500{}0", 200_000 + n) }))
        .collect();
    for slice in all.chunks(1000) {
        api.post(&format!("{path}/contacts"), json!({ "contacts": slice }))
            .await;
    }
    path
}

async fn finished(service: &Service, api: &Api, campaign: &str) {
    while api.get(campaign).await["status"] != "completed" {
        service.pause(50).await;
    }
}

async fn arrived(service: &Service, receiver: &Receiver, events: usize) {
    let until = Instant::now() + Duration::from_secs(600);
    loop {
        let count = receiver.count().await;
        if count >= events {
            return;
        }
        assert!(Instant::now() < until, "only {count} of {events} events arrived");
        service.pause(20).await;
    }
}
