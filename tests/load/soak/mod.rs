//! A whole machine for hours: campaigns of every channel, single messages and rooms, with receivers that die and hang, kills and
//! a database that stalls. Then the checker of the promises reads what was written down, and each measure is told level or rising.
//!
//! Kills fall in the first third: the other two are one process, whose memory can be compared with itself. Everything else that
//! goes wrong goes wrong all the time.
mod deliveries;
mod faults;
mod series;
mod traffic;

use crate::{
    audit::{Breach, Evidence, check, report},
    process::Process,
    receiver::Receiver,
    rooms::{pause, percentiles, row},
    service::name_of,
};
use deliveries::Deliveries;
use faults::{Dying, Hanging, Outside};
use futures_util::future::{join, join3, join5};
use serde_json::{Value, json};
use series::{Trend, verdict};
use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use traffic::{Channel, Client};

/// Calls at once. What a room takes counts too.
const LIMIT: usize = 60;
/// Longer runs would outlive their own events, which are kept for a day at least: a checker that finds none says so.
const LONGEST: Duration = Duration::from_secs(23 * 3600);
/// For what is under way when the time is over.
const PATIENCE: Duration = Duration::from_secs(240);

pub struct Plan {
    /// A new SQLite file without; or a new database of the server that `CALLBOARD_TEST_POSTGRES_URL` names.
    pub database: Option<String>,
    pub duration: Duration,
    /// Contacts a second, of each of the three channels.
    pub rate: f64,
}

/// What everybody who takes part knows and adds to.
pub struct Notes {
    until: Instant,
    acknowledged: RefCell<Vec<Value>>,
    faults: RefCell<Vec<String>>,
    reads_ms: RefCell<Vec<f64>>,
    /// Unix milliseconds.
    kills: RefCell<Vec<i64>>,
    stalls: Cell<usize>,
    people: Cell<usize>,
}

/// Faults that are kept: after a few the rest says nothing new.
const MOST_FAULTS: usize = 100;

impl Notes {
    fn new(duration: Duration) -> Self {
        Notes {
            until: Instant::now() + duration,
            acknowledged: RefCell::default(),
            faults: RefCell::default(),
            reads_ms: RefCell::default(),
            kills: RefCell::default(),
            stalls: Cell::default(),
            people: Cell::default(),
        }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Even what was under way should have ended.
    pub fn is_late(&self) -> bool {
        Instant::now() >= self.until + PATIENCE
    }

    /// Until then, or until it is over.
    pub async fn rest(&self, duration: Duration) {
        pause(duration.min(self.until.saturating_duration_since(Instant::now()))).await;
    }

    pub fn acknowledge(&self, fact: Value) {
        self.acknowledged.borrow_mut().push(fact);
    }

    pub fn fault(&self, what: String) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < MOST_FAULTS {
            faults.push(what);
        }
    }

    pub fn read_took(&self, time: Duration) {
        self.reads_ms.borrow_mut().push(time.as_secs_f64() * 1e3);
    }

    /// Somebody whom nobody has called yet.
    pub fn next(&self) -> usize {
        self.people.replace(self.people.get() + 1)
    }
}

/// The workspace that is soaked: endpoints that answer, die and hang.
struct Stage {
    client: Client,
    agent: Value,
    endpoints: [String; 3],
}

impl Plan {
    /// Answers whether all was sound.
    pub async fn run(self) -> bool {
        assert!(
            self.duration <= LONGEST,
            "at most 23 hours: events are kept for a day at least, and what is pruned cannot be checked"
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = std::env::var("CALLBOARD_TEST_POSTGRES_URL").ok();
        let own = self.database.is_none();
        let database = match (self.database.clone(), &server) {
            (Some(database), _) => database,
            (None, Some(server)) => faults::new_postgres(server).await,
            (None, None) => format!("sqlite://{}", folder.path().join("soak.db").display()),
        };
        let sound = self.soak(&database).await;
        if let (true, Some(server)) = (own, &server) {
            faults::drop_postgres(server).await;
        }
        sound
    }

    async fn soak(&self, database: &str) -> bool {
        let minutes = self.duration.as_secs_f64() / 60.0;
        println!(
            "{}: a soak of {minutes:.0} minutes, {} contacts/s on each of three channels",
            name_of(database),
            self.rate
        );
        let (receiver, dying, hanging) = (Receiver::start(), Dying::start(), Hanging::start());
        let process = start(database, self.rate);
        let urls = [receiver.hook(0), dying.url.clone(), hanging.url.clone()];
        let stage = Stage::set(&process, urls).await;
        let process = RefCell::new(process);
        let outside = [Outside::open(database).await, Outside::open(database).await];
        let [staller, eyes] = &outside;
        let (notes, began) = (Notes::new(self.duration), Instant::now());
        let campaigns =
            |channel| traffic::campaigns(&stage.client, &notes, channel, &stage.agent, self.rate, self.lap());
        let rooms = || traffic::rooms(&stage.client, &notes, &stage.agent);
        let work = join5(
            join(campaigns(Channel::Phone), campaigns(Channel::Sms)),
            campaigns(Channel::Email),
            traffic::messages(&stage.client, &notes),
            join(rooms(), rooms()),
            traffic::reads(&stage.client, &notes),
        );
        let trouble = join(
            join(self.kill(&process, &notes, began), self.stall(staller, &notes)),
            traffic::enables(&stage.client, &notes, &stage.endpoints, self.lap()),
        );
        let samples = self.sample(&process, &stage, eyes, database, &notes, began);
        let (_, _, samples) = join3(work, trouble, samples).await;
        let settled = settle(&stage, eyes, &notes).await;
        let sound = self.conclude(&process.borrow(), &stage, &notes, settled);
        samples.report();
        process.into_inner().stop();
        sound
    }

    /// A campaign takes about so long, and other things recur in it.
    fn lap(&self) -> Duration {
        (self.duration / 6).clamp(Duration::from_secs(8), Duration::from_secs(60))
    }

    /// kill -9 at moments that nobody foresees, in the first third.
    async fn kill(&self, process: &RefCell<Process>, notes: &Notes, began: Instant) {
        let third = self.duration / 3;
        let mean = (third / 4).clamp(Duration::from_secs(5), Duration::from_secs(60));
        loop {
            pause(mean.mul_f64(rand::random_range(0.5..1.5))).await;
            if began.elapsed() >= third {
                return;
            }
            process.borrow_mut().kill();
            notes.kills.borrow_mut().push(millis());
            let starting = process.borrow_mut().start_again();
            starting.ready().await;
        }
    }

    /// Somebody else keeps the writers out, or reads for long, by turns.
    async fn stall(&self, outside: &Outside, notes: &Notes) {
        let every = (self.duration / 12).clamp(Duration::from_secs(6), Duration::from_secs(120));
        for turn in 0_u64.. {
            notes.rest(every.mul_f64(rand::random_range(0.5..1.5))).await;
            if notes.is_over() {
                return;
            }
            // Longer than a writer of the service waits, every third time.
            let seconds = [2, 4, 8][usize::try_from(turn % 3).unwrap_or(0)];
            let stalled = match turn % 2 {
                0 => outside.keep_writers_out(Duration::from_secs(seconds)).await,
                _ => outside.read_for_long(Duration::from_secs(seconds * 4)).await,
            };
            // One that came to nothing, for the service was faster each time, is not counted.
            notes.stalls.set(notes.stalls.get() + usize::from(stalled.is_ok()));
        }
    }

    async fn sample(
        &self,
        process: &RefCell<Process>,
        stage: &Stage,
        eyes: &Outside,
        database: &str,
        notes: &Notes,
        began: Instant,
    ) -> Samples {
        let every = (self.duration / 24).clamp(Duration::from_secs(2), Duration::from_secs(30));
        let (mut samples, mut before) = (Samples::default(), Counts::NONE);
        let mut looked = began;
        while !notes.is_over() {
            notes.rest(every).await;
            let at = began.elapsed().as_secs_f64();
            let seconds = looked.elapsed().as_secs_f64();
            looked = Instant::now();
            let counts = Counts::now(stage, eyes).await;
            let rate = |of: fn(&Counts) -> Option<f64>| {
                // A process that was killed meanwhile has begun at nought.
                let (now, then) = (of(&counts)?, of(&before)?);
                let grown = if now >= then { now - then } else { now };
                Some(grown / seconds)
            };
            let (memory, files, threads) = {
                let process = process.borrow();
                (process.memory(), process.open_files(), process.threads())
            };
            let reads = std::mem::take(&mut *notes.reads_ms.borrow_mut());
            let p99 = (!reads.is_empty()).then(|| percentiles(reads)[1]);
            let values = [
                Some(memory.resident),
                Some(memory.own),
                Some(files as f64),
                Some(threads as f64),
                eyes.size(database).await,
                rate(|counts| counts.events),
                rate(|counts| counts.contacts),
                rate(|counts| counts.deliveries),
                p99,
            ];
            samples.add(at, values);
            before = counts;
        }
        samples
    }

    /// Reads what was written down, says what is wrong with it, and answers whether nothing is.
    fn conclude(&self, process: &Process, stage: &Stage, notes: &Notes, settled: bool) -> bool {
        let mut deliveries = Deliveries::default();
        let mut dump = Vec::new();
        process.each_line(&["audit", "dump"], |line| match serde_json::from_str(line) {
            Ok(fact) => deliveries.read(fact, &mut dump),
            Err(error) => notes.fault(format!("a line of the dump cannot be read: {error}")),
        });
        let carrier = std::fs::read_to_string(process.file("carrier.log")).unwrap_or_default();
        let evidence = Evidence {
            dump,
            // A kill may leave half a line.
            carrier: carrier
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            provider: Vec::new(),
            acknowledged: notes.acknowledged.take(),
            files: None,
            taken_at: Some(millis()),
            kills: notes.kills.borrow().clone(),
            limit: LIMIT,
            rate: of_workspace(self.rate),
            burst: f64::from(rules::dispatch::pace::burst(of_workspace(self.rate)).get()),
            settled,
        };
        let mut breaches: Vec<Breach> = check(&evidence);
        let of_deliveries = deliveries.breaches(&stage.endpoints, settled).into_iter();
        breaches.extend(of_deliveries.map(|what| Breach { invariant: "I3", what }));
        let complaints = process.complaints();
        println!();
        row(
            "kills, stalls of the database",
            format!("{}, {}", evidence.kills.len(), notes.stalls.get()),
        );
        let kinds = ["campaign", "contact", "session", "room", "sms", "email", "event"];
        let of = |kind: &str| evidence.dump.iter().filter(|line| line["kind"] == kind).count();
        row(
            "rows of the dump",
            kinds.map(|kind| format!("{} {kind}s", of(kind))).join(", "),
        );
        row("acknowledged, and looked for", evidence.acknowledged.len().to_string());
        row(
            "errors in the log, panics",
            format!("{}, {}", complaints.errors, complaints.panics),
        );
        complaints.first.iter().for_each(|line| println!("    {line}"));
        let faults = notes.faults.borrow();
        row("answers that must not be", faults.len().to_string());
        faults.iter().take(20).for_each(|fault| println!("    {fault}"));
        row("promises", report(&breaches));
        if !settled {
            row(
                "it did not come to rest",
                "what must hold after quiet was not asked".into(),
            );
        }
        breaches.is_empty() && faults.is_empty() && complaints.panics == 0 && settled
    }
}

/// What the workspace may start in a second, of calls and messages together: three campaigns run at once.
fn of_workspace(rate: f64) -> f64 {
    3.0 * rate
}

fn start(database: &str, rate: f64) -> Process {
    // Beside the database's own folder nothing is left: the carrier's log is relative to the process's.
    let more = [
        ("CALLBOARD_MAX_CALLS_PER_SECOND", of_workspace(rate).to_string()),
        ("CALLBOARD_SANDBOX_SPEED", "20".to_owned()),
        ("CALLBOARD_SANDBOX_LOG", "carrier.log".into()),
        ("CALLBOARD_WEBHOOK_RETRY_SCHEDULE", "1,2,4,8,8,8,8,8,8".into()),
        ("CALLBOARD_EVENT_RETENTION_DAYS", "1".into()),
        ("CALLBOARD_NUMBER_CAP_24H", "0".into()),
        ("CALLBOARD_NUMBER_CAP_7D", "0".into()),
        ("CALLBOARD_VOICE", "tones".into()),
        ("CALLBOARD_LOG", "warn,callboard=info".into()),
    ];
    Process::start(database, &more)
}

impl Stage {
    async fn set(process: &Process, urls: [String; 3]) -> Self {
        let api = process.api();
        api.patch("/v1/concurrency", json!({ "limit": LIMIT })).await;
        let mut endpoints = Vec::new();
        for url in urls {
            let endpoint = json!({ "url": url, "event_types": ["*"], "timeout_ms": 2000, "max_concurrency": 16 });
            let endpoint = api.post("/v1/webhook_endpoints", endpoint).await;
            endpoints.push(endpoint["id"].as_str().expect("an id").to_owned());
        }
        let replies = vec![json!({ "say": "Fine. And what else can I do for you?" }); 20];
        let agent = json!({ "name": "Ann", "prompt": "x", "brain": { "mode": "scripted", "replies": replies },
            "recording": { "enabled": false } });
        Stage {
            agent: api.post("/v1/agents", agent).await["id"].clone(),
            client: Client::new(process.url(), process.key().to_owned()),
            endpoints: endpoints.try_into().expect("three"),
        }
    }
}

/// Waits until nothing is under way any more: nobody to be reached, no call, no delivery to the receiver that answers, and nothing
/// told since the last look. The dump is read table by table: what moves meanwhile would be found in one and missing in another.
async fn settle(stage: &Stage, eyes: &Outside, notes: &Notes) -> bool {
    let path = format!("/v1/webhook_endpoints/{}/stats", stage.endpoints[0]);
    let mut seen = None;
    while !notes.is_late() {
        let open = eyes
            .number("SELECT COUNT(*) FROM sessions WHERE ended_at IS NULL")
            .await;
        let wanted = eyes
            .number("SELECT COUNT(*) FROM contacts WHERE status IN ('pending', 'waiting')")
            .await;
        let last_seq = eyes.number("SELECT COALESCE(MAX(seq), 0) FROM events").await;
        let is_still = last_seq.is_some() && std::mem::replace(&mut seen, last_seq) == last_seq;
        let stats = stage.client.get(&path).await.unwrap_or_default();
        let waiting = ["pending", "retrying"].map(|status| stats["open"][status].as_i64());
        if open == Some(0) && wanted == Some(0) && waiting == [Some(0); 2] && is_still {
            return true;
        }
        pause(Duration::from_secs(3)).await;
    }
    false
}

fn millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292,000,000")
}

/// What has been counted since the process began, contacts since the run did.
#[derive(Clone, Copy, Debug)]
struct Counts {
    events: Option<f64>,
    contacts: Option<f64>,
    deliveries: Option<f64>,
}

impl Counts {
    const NONE: Counts = Counts {
        events: Some(0.0),
        contacts: Some(0.0),
        deliveries: Some(0.0),
    };

    async fn now(stage: &Stage, eyes: &Outside) -> Self {
        let metrics = stage.client.metrics().await.unwrap_or_default();
        let metric = |name: &str| {
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.trim().parse().ok()
        };
        let ended =
            "SELECT CAST(COALESCE(SUM(completed + failed + skipped + canceled), 0) AS BIGINT) FROM campaign_tallies";
        Counts {
            events: metric("callboard_events_total"),
            contacts: eyes.number(ended).await.map(|count| count as f64),
            deliveries: metric("callboard_deliveries_total{status=\"succeeded\"}"),
        }
    }
}

/// The measures, by name.
const MEASURES: [&str; 9] = [
    "resident memory, MiB",
    "… without files, MiB",
    "open files",
    "threads",
    "database with its log, MiB",
    "events committed /s",
    "contacts ended /s",
    "deliveries that arrived /s",
    "small API read, p99, ms",
];

#[derive(Default)]
struct Samples([Vec<(f64, f64)>; MEASURES.len()]);

impl Samples {
    /// What could not be measured at that moment is left out.
    fn add(&mut self, at: f64, values: [Option<f64>; MEASURES.len()]) {
        for (series, value) in self.0.iter_mut().zip(values) {
            series.extend(value.map(|value| (at, value)));
        }
    }

    fn report(&self) {
        println!(
            "\n  {:<30}{:>10}{:>10}{:>10}{:>10}   of the last two thirds",
            "", "first", "last", "most", "mean"
        );
        for (name, series) in MEASURES.iter().zip(&self.0) {
            let [first, last] = [series.first(), series.last()].map(|sample| sample.map_or(0.0, |sample| sample.1));
            let most = series.iter().map(|sample| sample.1).fold(0.0, f64::max);
            let verdict = verdict(series);
            let trend = match verdict.trend {
                Trend::Level => "level",
                Trend::Rising => "RISING",
                Trend::Falling => "falling",
                Trend::Unknown => "too few samples",
            };
            let (mean, change) = (verdict.mean, verdict.change * 100.0);
            println!("  {name:<30}{first:>10.1}{last:>10.1}{most:>10.1}{mean:>10.1}   {trend} ({change:+.1} %)");
        }
        println!("  The database keeps sessions, contacts, messages and ledgers for ever: it rises by design.");
    }
}
