//! Rooms at once: everybody joins, talks and is talked to, and leaves. What a room costs in CPU time and memory, how long joining
//! takes, and whether everybody was heard.
//!
//! The service is a process of its own; the people are threads of this one. Each says a sentence every few seconds and cuts in on
//! the agent with it, so both directions, the ear, and captions are at work all the time. Nothing is transcribed: a caption of what a person said is `[speech]`.
use super::{
    guests::{EVERY, Guest, leave, packets, report_joining, report_sound, talk},
    process::{Memory, Process, binary},
    service::{Api, client, name_of},
};
use futures_util::{StreamExt, stream};
use media::webrtc::{
    Codec, Media, MediaSettings,
    peer::{Peer, View},
};
use runtime::clock::Clock;
use serde_json::{Value, json};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

/// The agent's words, longer than anybody lets it speak.
const HELLO: &str = "Hello, this is Ann from Northwind. Let me tell you about our new offer, which is better than anything that \
    you have seen before, and about the one after that, which is better still; then about the conditions, of which there \
    are seven, and about the seven exceptions from each of them. Is this a good time for you?";
const ANSWER: &str = "Wonderful, then I will write that down. While I do that, let me tell you about our other new offer, which \
    is better than anything that you have seen before, and comes with a warranty of two years that we extend at no cost.";
/// How long the service has for its end of everything.
const PATIENCE: Duration = Duration::from_secs(20);
/// Then the memory of rooms that are over has been given back, as far as it is.
const REST: Duration = Duration::from_secs(10);

pub struct Plan {
    pub database: String,
    pub rooms: usize,
    /// Of talk that is measured.
    pub seconds: u64,
    /// So many are joining at any moment.
    pub at_once: usize,
    /// The agent's: a value of the setting `voice`.
    pub voice: String,
    pub codec: Codec,
}

pub fn codec(name: Option<&str>) -> Codec {
    match name {
        None | Some("opus") => Codec::Opus,
        Some("pcmu") => Codec::Pcmu,
        Some("pcma") => Codec::Pcma,
        Some(other) => panic!("`{other}` is not a codec: use opus, pcmu or pcma"),
    }
}

/// What a window of time cost.
struct Spent {
    seconds: f64,
    /// Of the service, in seconds.
    cpu: f64,
    /// Share of all cores that anybody used.
    machine: f64,
}

impl Plan {
    pub async fn run(self) {
        println!(
            "{}: {} rooms at once, {:?}, voice `{}`",
            name_of(&self.database),
            self.rooms,
            self.codec,
            self.voice
        );
        println!("{}", std::path::Path::new(&binary()).display());
        offers(self.codec);
        let more = [
            ("CALLBOARD_MAX_CONCURRENCY", self.rooms.to_string()),
            ("CALLBOARD_CALL_PRICE_CENTS_PER_MINUTE", "0".into()),
            ("CALLBOARD_VOICE", self.voice.clone()),
            ("CALLBOARD_LOG", "warn,callboard=info".into()),
        ];
        let service = Process::start(&self.database, &more);
        let api = service.api();
        api.patch("/v1/concurrency", json!({ "limit": self.rooms })).await;
        let agent = agent(&api).await;
        let window = Duration::from_secs(self.seconds);
        // What the first room loads once is no room's cost.
        let first = self.join(rooms(&api, &agent, 1).await).await;
        talk(&first, EVERY, || {}).await;
        leave(&first).await;
        pause(REST).await;
        let before = service.memory();
        let idle = spent(&service, pause(window)).await;
        let guests = self.join(rooms(&api, &agent, self.rooms).await).await;
        report_joining(&guests);
        // Everybody says a sentence; from then on it is measured.
        talk(&guests, EVERY, || {}).await;
        let (began, came, mut most) = (Instant::now(), packets(&guests), Memory::default());
        let talking = talk(&guests, window, || most = most.most(service.memory()));
        let talked = spent(&service, talking).await;
        let late = [
            service
                .metric("callboard_media_late_seconds{kind=\"room\",quantile=\"0.5\"}")
                .await,
            service
                .metric("callboard_media_late_seconds{kind=\"room\",quantile=\"0.99\"}")
                .await,
        ];
        let views: Vec<View> = guests.iter().map(|guest| guest.peer.view()).collect();
        let came = packets(&guests) - came;
        self.report_cost(&idle, &talked);
        report_sound(&views, began, came, late);
        still_open(&api, &guests).await;
        leave(&guests).await;
        pause(REST).await;
        let after = service.memory();
        // What grows again with the same number of rooms is not given back.
        let again = self.join(rooms(&api, &agent, self.rooms).await).await;
        let mut most_again = Memory::default();
        talk(&again, EVERY, || most_again = most_again.most(service.memory())).await;
        leave(&again).await;
        self.report_memory(before, most, after, most_again);
        let all: Vec<Guest> = first.into_iter().chain(guests).chain(again).collect();
        over(&service, &api, &all).await;
        service.stop();
    }

    async fn join(&self, rooms: Vec<Value>) -> Vec<Guest> {
        // Their offers are made before, on this thread, which watches all of them join.
        let offers: Vec<_> = rooms.into_iter().map(|room| (room, Peer::offer(self.codec))).collect();
        let client = client();
        stream::iter(offers)
            .map(|(room, (peer, offer))| Guest::join(&client, room, peer, offer))
            .buffer_unordered(self.at_once.max(1))
            .collect()
            .await
    }

    fn report_cost(&self, idle: &Spent, talked: &Spent) {
        let (resting, busy) = (idle.cpu / idle.seconds, talked.cpu / talked.seconds);
        let of_machine = |spent: &Spent| format!("all cores in use {:.0} %", spent.machine * 100.0);
        println!();
        row(
            "CPU time per second, no room",
            format!("{:.1} ms   ({})", resting * 1e3, of_machine(idle)),
        );
        row(
            "… all rooms talk",
            format!("{:.1} ms   ({})", busy * 1e3, of_machine(talked)),
        );
        let each = (busy - resting) * 1e3 / self.rooms as f64;
        row("… per room", format!("{each:.2} ms"));
    }

    fn report_memory(&self, before: Memory, most: Memory, after: Memory, again: Memory) {
        let all = |memory: Memory| format!("{:.1} MiB   (without files {:.1})", memory.resident, memory.own);
        let each = |before: f64, most: f64| (most - before) * 1024.0 / self.rooms as f64;
        let [resident, own] = [each(before.resident, most.resident), each(before.own, most.own)];
        println!();
        row("resident memory, no room", all(before));
        row("… all rooms talk, at most", all(most));
        row("… per room", format!("{resident:.0} KiB   (without files {own:.0})"));
        row(&format!("… {} s after the last has left", REST.as_secs()), all(after));
        row("… as many rooms again, at most", all(again));
    }
}

/// With words for more than ten minutes.
pub async fn agent(api: &Api) -> Value {
    let replies = vec![json!({ "say": ANSWER }); 100];
    let agent = json!({
        "name": "Ann",
        "prompt": "x",
        "first_message": HELLO,
        "brain": { "mode": "scripted", "replies": replies },
        "recording": { "enabled": false },
        "max_duration_seconds": 7200,
    });
    api.post("/v1/agents", agent).await["id"].clone()
}

pub async fn rooms(api: &Api, agent: &Value, count: usize) -> Vec<Value> {
    let mut rooms = Vec::new();
    for _ in 0..count {
        rooms.push(api.post("/v1/rooms", json!({ "agent_id": agent })).await);
        under_the_limit().await;
    }
    rooms
}

/// Nobody has left yet: a room that is over has ended by itself, and says why.
async fn still_open(api: &Api, guests: &[Guest]) {
    let mut over = Vec::new();
    for guest in guests {
        let room = api.get(&format!("/v1/rooms/{}", guest.room)).await;
        under_the_limit().await;
        if room["status"] == "joined" {
            continue;
        }
        let session = api.get(&format!("/v1/sessions/{}", guest.session)).await;
        under_the_limit().await;
        over.push(format!(
            "{} {} after {} s: {} by {}; its guest is {:?}",
            room["status"],
            room["error"],
            room["duration_seconds"],
            session["end_reason"],
            session["ended_by"],
            guest.peer.view().state
        ));
    }
    assert!(over.is_empty(), "rooms ended by themselves: {over:#?}");
}

/// What must be so when everybody has left.
async fn over(service: &Process, api: &Api, guests: &[Guest]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let live = service.metric("callboard_calls_live").await;
        let connections = service.metric("callboard_media_connections").await;
        let in_use = api.get("/v1/concurrency").await["in_use"].as_f64();
        // A binary that is older than a measure does not have it.
        let is_none = |count: Option<f64>| count.is_none_or(|count| count == 0.0);
        if is_none(live) && is_none(connections) && in_use == Some(0.0) {
            let connections = connections.map_or("not told".to_owned(), |count| count.to_string());
            println!();
            row("connections, slots in use", format!("{connections}, 0"));
            break;
        }
        assert!(
            Instant::now() < until,
            "connections, calls, slots are left: {connections:?}, {live:?}, {in_use:?}"
        );
        pause(Duration::from_millis(100)).await;
    }
    let (mut completed, mut closed, mut cut_in) = (0, 0, 0);
    for guest in guests {
        let room = api.get(&format!("/v1/rooms/{}", guest.room)).await;
        completed += usize::from(room["status"] == "completed");
        under_the_limit().await;
        let path = format!("/v1/sessions/{}", guest.session);
        let session = api.get(&path).await;
        closed += usize::from(session["status"] == "completed" && session["ended_at"].is_string());
        under_the_limit().await;
        let transcript = api.get(&format!("{path}/transcript.json")).await;
        let turns = transcript["turns"].as_array().expect("turns");
        let is_cut = |turn: &&Value| turn["role"] == "agent" && turn["content"] != HELLO && turn["content"] != ANSWER;
        cut_in += turns.iter().filter(is_cut).count();
        under_the_limit().await;
    }
    let all = guests.len();
    row(
        "rooms completed, sessions closed",
        format!("{completed}, {closed} of {all}"),
    );
    row("times that somebody cut in on the agent", cut_in.to_string());
    assert_eq!((completed, closed), (all, all), "not every room is over");
}

pub fn row(what: &str, value: String) {
    println!("  {what:<42}{value}");
}

/// What answering an offer costs, in this process, which may be built otherwise than the service.
fn offers(codec: Codec) {
    let settings = MediaSettings {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        addresses: Vec::new(),
    };
    let media = Media::start(settings).expect("a port");
    let (_peer, offer) = Peer::offer(codec);
    let took = (0..200).map(|_| {
        let started = Instant::now();
        let offered = media.offer(&offer).map(drop);
        assert!(offered.is_ok(), "{offered:?}");
        started.elapsed().as_secs_f64() * 1e3
    });
    let [p50, p99] = percentiles(took.collect());
    let build = if cfg!(debug_assertions) { "a debug" } else { "a release" };
    row(
        "answering an offer, p50, p99",
        format!("{p50:.2}, {p99:.2} ms   (here: {build} build, one thread)"),
    );
}

async fn spent(service: &Process, work: impl Future<Output = ()>) -> Spent {
    let (cpu, machine, started) = (service.cpu_seconds(), machine(), Instant::now());
    work.await;
    let (busy, all) = machine_since(machine);
    Spent {
        seconds: started.elapsed().as_secs_f64(),
        cpu: service.cpu_seconds() - cpu,
        machine: busy / all.max(1.0),
    }
}

/// Ticks of all cores since the start of the machine: in use, and all.
fn machine() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are counted in the first two.
    let all: f64 = ticks.iter().take(8).sum();
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

fn machine_since((busy, all): (f64, f64)) -> (f64, f64) {
    let now = machine();
    (now.0 - busy, now.1 - all)
}

/// The 50th and the 99th.
pub fn percentiles(mut all: Vec<f64>) -> [f64; 2] {
    all.sort_by(f64::total_cmp);
    [50, 99].map(|percent| {
        all.get((all.len() * percent / 100).min(all.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    })
}

/// A key may ask 50 times a second.
async fn under_the_limit() {
    pause(Duration::from_millis(25)).await;
}

pub async fn pause(duration: Duration) {
    let _busy = Clock::wall().sleep(duration).await;
}
