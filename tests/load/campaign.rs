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
    let agent = agent_that_tells(&api, &receiver).await;

    let name = name_of(&database);
    println!("\n{name}: {contacts} contacts at full speed");
    let campaign = draft(&api, json!({ "agent_id": agent }), (0..contacts).map(somebody)).await;
    let speed = at_full_speed(&service, &receiver, &api, &campaign, contacts).await;
    println!(
        "  contacts through their calls              {:>10.0} /s",
        speed.dispatched_per_second
    );
    println!(
        "  contacts, all five events delivered       {:>10.0} /s",
        speed.contacts_per_second
    );
    println!(
        "  events committed, delivered, logged       {:>10.0} /s   ({:.0} % of the raw limit)",
        speed.events_per_second,
        100.0 * speed.events_per_second / raw
    );
    println!(
        "  CPU seconds per 1,000 contacts            {:>10.2}",
        speed.cpu_per_thousand
    );
    println!(
        "  resident memory                           {:>10.0} MiB",
        resident_mib()
    );

    let calls = 500;
    println!("\n{name}: {calls} contacts at 50 calls/s");
    let plan = json!({ "agent_id": agent, "pacing": { "calls_per_second": 50 } });
    let campaign = draft(&api, plan, (0..calls).map(somebody)).await;
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

/// Has the receiver told of all that happens in that workspace; answers the id of an agent that calls for it.
pub async fn agent_that_tells(api: &Api, receiver: &Receiver) -> Value {
    let endpoint = json!({ "url": receiver.hook(0), "event_types": ["*"], "max_concurrency": 64 });
    api.post("/v1/webhook_endpoints", endpoint).await;
    api.post("/v1/agents", json!({ "name": "Ann", "prompt": "x" })).await["id"].clone()
}

/// Somebody of whom nothing but a number is known; `n` is below 100,000.
fn somebody(n: usize) -> Value {
    json!({ "phone_number": format!("+1500{}0", 200_000 + n) })
}

/// A campaign with its contacts, as fast as can be if nothing else is said, not started; answers its path.
pub async fn draft(api: &Api, more: Value, people: impl Iterator<Item = Value>) -> String {
    let mut plan = json!({ "name": "Load", "pacing": { "calls_per_second": 10_000 } });
    for (name, value) in more.as_object().expect("fields") {
        plan[name] = value.clone();
    }
    let path = format!(
        "/v1/campaigns/{}",
        api.post("/v1/campaigns", plan).await["id"].as_str().expect("an id")
    );
    let all: Vec<Value> = people.collect();
    for slice in all.chunks(1000) {
        api.post(&format!("{path}/contacts"), json!({ "contacts": slice }))
            .await;
    }
    path
}

/// How fast a campaign went, until its last event was there.
pub struct Speed {
    pub dispatched_per_second: f64,
    pub contacts_per_second: f64,
    pub events_per_second: f64,
    pub cpu_per_thousand: f64,
}

/// Starts a campaign of so many contacts, and waits for its end and all its events.
pub async fn at_full_speed(
    service: &Service,
    receiver: &Receiver,
    api: &Api,
    campaign: &str,
    contacts: usize,
) -> Speed {
    receiver.reset().await;
    let (cpu, started) = (cpu_seconds(), Instant::now());
    api.post(&format!("{campaign}/start"), json!({})).await;
    finished(service, api, campaign).await;
    let dispatched = started.elapsed().as_secs_f64();
    // started and completed of the campaign, and five events for each contact.
    let events = 5 * contacts + 2;
    arrived(service, receiver, events).await;
    let elapsed = started.elapsed().as_secs_f64();
    Speed {
        dispatched_per_second: contacts as f64 / dispatched,
        contacts_per_second: contacts as f64 / elapsed,
        events_per_second: events as f64 / elapsed,
        cpu_per_thousand: (cpu_seconds() - cpu) * 1000.0 / contacts as f64,
    }
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
