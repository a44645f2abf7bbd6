//! Delivery by itself: how fast, how late, how isolated, and at what cost.
use super::{
    plot,
    receiver::{Arrivals, Receiver, micros_now},
    service::{Service, cpu_seconds, name_of, raw_limit, resident_mib},
};
use actors::{deps::Deps, leases::Of};
use entities::{
    campaign::{Channel, SessionType},
    delivery,
    ids::{TenantId, TenantScoped},
    values::Env,
};
use rules::{
    commit::Commit,
    event::{CampaignCreated, Event},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    net::TcpListener,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

pub struct Plan {
    pub database: String,
    pub events: usize,
    /// Tasks that hand them in, each awaiting its commit.
    pub producers: usize,
    /// Of each paced part.
    pub seconds: usize,
    /// `speed`, `latency`, `isolation` or `backlog`; all without.
    pub only: Option<String>,
}

impl Plan {
    pub async fn run(&self) {
        let wanted = |part: &str| self.only.as_deref().is_none_or(|only| only == part);
        println!("{}", name_of(&self.database));
        if wanted("speed") {
            self.speed(1, self.events).await;
            self.speed(10, self.events / 5).await;
        }
        if wanted("latency") {
            for rate in [50, 200] {
                self.latency(rate).await;
            }
        }
        if wanted("isolation") {
            self.isolation().await;
        }
        if wanted("backlog") {
            self.backlog().await;
        }
    }

    /// Events committed, answered 200, and their attempts logged, as fast as it goes.
    async fn speed(&self, endpoints: usize, events: usize) {
        let receiver = Receiver::start();
        let raw = raw_limit(&receiver, endpoints).await;
        let service = Service::start(&self.database).await;
        let tenant = tenant_with(&service, &receiver, 0..endpoints).await;
        receiver.reset().await;
        let (cpu, started) = (cpu_seconds(), Instant::now());
        produce(service.deps(), tenant, events, self.producers).await;
        let committed = started.elapsed().as_secs_f64();
        settled(&service).await;
        let elapsed = started.elapsed().as_secs_f64();
        let deliveries = (events * endpoints) as f64;
        let report = receiver.report().await;
        assert_eq!(
            report.values().map(|arrivals| arrivals.count).sum::<usize>(),
            events * endpoints
        );
        println!("\n{events} events of 1 KiB to {endpoints} endpoint(s), as fast as it goes");
        println!("  raw limit                      {raw:>8.0} posts/s");
        println!("  events committed               {:>8.0} /s", events as f64 / committed);
        println!(
            "  delivered and logged           {:>8.0} /s   ({:.0} % of the raw limit)",
            deliveries / elapsed,
            100.0 * deliveries / elapsed / raw
        );
        println!(
            "  hand-in to arrival             {}",
            worst(&format!("{endpoints} endpoint(s), as fast as it goes"), &report)
        );
        println!(
            "  CPU seconds per 1,000          {:>8.3}",
            (cpu_seconds() - cpu) * 1000.0 / deliveries
        );
        println!("  resident memory                {:>8.0} MiB", resident_mib());
        service.stop().await;
    }

    async fn latency(&self, rate: usize) {
        let receiver = Receiver::start();
        let service = Service::start(&self.database).await;
        let tenant = tenant_with(&service, &receiver, 0..1).await;
        // The first connection and the first statements are nobody's latency.
        pace(service.deps(), tenant, rate, 2).await;
        settled(&service).await;
        receiver.reset().await;
        pace(service.deps(), tenant, rate, self.seconds).await;
        settled(&service).await;
        println!(
            "\n{rate} events/s to one endpoint: hand-in to arrival {}",
            worst(&format!("{rate} events/s"), &receiver.report().await)
        );
        service.stop().await;
    }

    /// Nine endpoints of one tenant, first with a tenth that answers, then with one that hangs, then with another tenant's.
    async fn isolation(&self) {
        const RATE: usize = 20;
        println!("\n{RATE} events/s to ten endpoints: hand-in to arrival at the nine that answer");
        for (what, own, foreign) in [
            ("all ten answer", false, false),
            ("the tenth hangs", true, false),
            ("another tenant's hangs", false, true),
            ("all ten answer, again", false, false),
        ] {
            let receiver = Receiver::start();
            let hanging = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
            let hangs = format!("http://{}/hook", hanging.local_addr().expect("its address"));
            let service = Service::start(&self.database).await;
            let (tenant, api) = service.tenant().await;
            for n in 0..10 {
                let url = if n == 9 && own { hangs.clone() } else { receiver.hook(n) };
                let settings = json!({ "url": url, "event_types": ["*"], "timeout_ms": 3000 });
                api.post("/v1/webhook_endpoints", settings).await;
            }
            let mut others = Vec::new();
            if foreign {
                let (other, api) = service.tenant().await;
                let settings = json!({ "url": hangs, "event_types": ["*"], "timeout_ms": 3000, "max_concurrency": 64 });
                api.post("/v1/webhook_endpoints", settings).await;
                others.push(other);
            }
            let deps = service.deps();
            pace(deps, tenant, RATE, 2).await;
            receiver.reset().await;
            let theirs =
                futures_util::future::join_all(others.iter().map(|other| pace(deps, *other, RATE, self.seconds)));
            futures_util::future::join(pace(deps, tenant, RATE, self.seconds), theirs).await;
            service.pause(300).await;
            let mut report = receiver.report().await;
            report.remove(&9);
            println!("  {what:<24} {}", worst(what, &report));
            service.stop().await;
        }
    }

    /// What a backlog costs in memory.
    async fn backlog(&self) {
        let hanging = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let hangs = format!("http://{}/hook", hanging.local_addr().expect("its address"));
        let service = Service::start(&self.database).await;
        let (tenant, api) = service.tenant().await;
        api.post("/v1/webhook_endpoints", json!({ "url": hangs, "event_types": ["*"] }))
            .await;
        let before = resident_mib();
        produce(service.deps(), tenant, 100_000, self.producers).await;
        service.pause(2000).await;
        let open = delivery::count_open(&service.deps().db.read).await.expect("a count");
        println!(
            "\n{open} undelivered events of 1 KiB: resident memory {before:.0} -> {:.0} MiB",
            resident_mib()
        );
        service.stop().await;
    }
}

/// The memory of a service that has so many endpoints and nothing to do, in a process of its own.
pub async fn idle(database: &str, endpoints: usize) {
    let measure = || {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["idle-process", "--database", database])
            .output()
            .expect("a process");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let none = measure();
    let service = Service::start(database).await;
    for _ in 0..endpoints.div_ceil(100) {
        let (_, api) = service.tenant().await;
        let requests = (0..100).map(|n| {
            let url = format!("http://127.0.0.1:9/hook/{n}");
            api.post(
                "/v1/webhook_endpoints",
                json!({ "url": url, "event_types": ["session.*", "campaign.completed"] }),
            )
        });
        futures_util::future::join_all(requests).await;
    }
    service.stop().await;
    println!(
        "{}: resident memory of the idle service: {none} MiB without endpoints, {} MiB with {endpoints}",
        name_of(database),
        measure()
    );
}

/// Starts the service on what is there, and says what it holds.
pub async fn idle_process(database: &str) {
    let service = Service::start(database).await;
    service.pause(3000).await;
    println!("{:.0}", resident_mib());
    service.stop().await;
}

/// A workspace with an endpoint at each of these paths.
pub async fn tenant_with(service: &Service, receiver: &Receiver, paths: std::ops::Range<usize>) -> TenantId {
    let (tenant, api) = service.tenant().await;
    for n in paths {
        let settings = json!({ "url": receiver.hook(n), "event_types": ["*"], "max_concurrency": 64 });
        api.post("/v1/webhook_endpoints", settings).await;
    }
    tenant
}

/// An event of 1 KiB, with the time at which it was handed in.
fn event(deps: &Deps, tenant: TenantId) -> Commit {
    let event = Event::from(CampaignCreated {
        campaign_id: deps.ids.next(),
        name: format!("t={} {}", micros_now(), "x".repeat(720)),
        channel: Channel::Phone,
        session_type: SessionType::Phone,
    });
    let mut commit = Commit::default();
    commit
        .events
        .push(event.draft(TenantScoped::new(tenant, Env::Test, ())));
    commit
}

/// Hands events in from many tasks, each awaiting its commit.
async fn produce(deps: &Deps, tenant: TenantId, events: usize, producers: usize) {
    let left = Arc::new(AtomicUsize::new(events));
    let tasks: Vec<_> = (0..producers)
        .map(|_| {
            let (deps, left) = (deps.clone(), left.clone());
            let runtime = deps.runtime.clone();
            runtime.spawn(async move {
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    deps.writer
                        .commit(Of::Anybody, event(&deps, tenant))
                        .await
                        .expect("a commit");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Hands in so many a second, each at its time, whether or not the one before is committed.
pub async fn pace(deps: &Deps, tenant: TenantId, rate: usize, seconds: usize) {
    let started = deps.clock.now();
    let mut tasks = Vec::new();
    for n in 0..rate * seconds {
        let due = started.plus(Duration::from_micros(n as u64 * 1_000_000 / rate as u64));
        let _busy = deps.clock.sleep_until(due).await;
        let deps = deps.clone();
        tasks.push(deps.runtime.clone().spawn(async move {
            deps.writer
                .commit(Of::Anybody, event(&deps, tenant))
                .await
                .expect("a commit");
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Until every outcome is in its row.
pub async fn settled(service: &Service) {
    let until = Instant::now() + Duration::from_secs(600);
    while delivery::count_open(&service.deps().db.read).await.expect("a count") > 0 {
        assert!(Instant::now() < until, "deliveries are left");
        service.pause(10).await;
    }
}

/// The greatest median and 99th percentile of all paths. `part`: of the run.
pub fn worst(part: &str, report: &BTreeMap<usize, Arrivals>) -> String {
    let greatest = |of: fn(&Arrivals) -> u64| report.values().map(of).max().unwrap_or(0) as f64 / 1000.0;
    let latest = report.values().max_by_key(|arrivals| arrivals.p99_us);
    if let Some(latest) = latest {
        plot::latencies(part, &latest.percentiles_us);
    }
    format!(
        "p50 {:.2} ms, p99 {:.2} ms",
        greatest(|arrivals| arrivals.p50_us),
        greatest(|arrivals| arrivals.p99_us)
    )
}
