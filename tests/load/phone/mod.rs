//! Telephone calls at once and one after the other, over SIP and RTP, beside a sipp that is kept to one core: what a call costs, how
//! evenly sound is sent, how soon a caller is answered, how fast calls are set up, and what is left of them. The table stands beside
//! the goals; above one it fails.
//!
//! Both ends share this machine, so the figures are good for it alone, and only if nothing else runs.
mod capture;
mod flood;
mod line;
mod one_call;
mod table;

use super::{
    guests::{Guest, leave},
    peers::{
        self, Need,
        sipp::{Scenario, Sipp},
        sound::SENTENCE,
    },
    process::Memory,
    rooms::{pause, row},
    service::{client, name_of},
    talk::{self, Ears, Servers},
};
use flood::Flood;
use line::{Line, OURS};
use media::webrtc::{Codec, peer::Peer};
use one_call::{Answers, OneCall, Turn};
use serde_json::{Value, json};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use table::{Table, between, of_invite, percentiles};

const TALKS: &str = include_str!("talks.xml");
const HANGS_UP: &str = include_str!("../../it/phone/sipp/hangs_up.xml");
const CALLS: &str = include_str!("../../it/phone/sipp/calls.xml");
/// The core of sipp; the service takes what it gets.
const CORE: &str = "1";
/// Then what calls had is given back, as far as it is.
const REST: Duration = Duration::from_secs(40);
/// At so many calls sound is to be sent evenly.
const EVEN: usize = 100;
/// Sentences that are to be answered.
const TURNS: usize = 8;
/// Calls before those whose memory is counted.
const WARM: usize = 2_000;
/// INVITEs of a stranger each second, less what the clock of a busy machine takes.
const FLOOD: f64 = 19_000.0;
/// Calls that come in, and how many a second.
const COME_IN: usize = 300;
const COME_IN_RATE: &str = "20";

pub struct Plan {
    pub database: String,
    /// At once.
    pub calls: usize,
    /// Set-ups a second.
    pub rate: usize,
    /// Of talk, and of set-ups.
    pub seconds: usize,
    /// One after the other, at least.
    pub set_ups: usize,
    /// The other end dies in the middle of all calls.
    pub kills_the_peer: bool,
}

impl Plan {
    pub async fn run(self) -> bool {
        assert!(peers::at_hand(&[Need::Sipp]), "sipp is needed for this run");
        println!(
            "{}: {} calls at once, then {} a second",
            name_of(&self.database),
            self.calls,
            self.rate
        );
        let mut table = Table::default();
        self.both_ways(&mut table).await;
        let line = Line::open(&self, &self.database, &[]).await;
        let quiet = self.answers(&line, &mut table).await;
        // The ports of the first call have rested by then.
        pause(Duration::from_secs(10)).await;
        let before = Held::by(&line);
        let mut sipp = self.carrier(&line).await;
        pin(&sipp);
        self.talk(&line, &mut table, (&mut sipp, before.memory), &quiet).await;
        if !self.kills_the_peer {
            sipp.succeeds().await;
            drop(sipp);
            pause(REST).await;
            // Caches of the database, and the like, are full then.
            self.in_a_row(&line, WARM).await;
            self.calls_in(&line).await;
            pause(REST).await;
            let warm = line.service.memory();
            self.set_up(&line, &mut table).await;
            self.come_in(&line, &mut table).await;
            pause(REST).await;
            let grown = line.service.memory().own - warm.own;
            table.at_most("memory after all set-ups", grown, 10.0, "MiB more than before them");
        } else {
            pause(REST).await;
        }
        left(&line, &mut table, &before).await;
        line.service.stop();
        table.broken == 0
    }

    /// Everybody who is called for the talks says a sentence every few seconds.
    async fn carrier(&self, line: &Line) -> Sipp {
        let file = line.service.file("speech.ulaw");
        let mut speech = SENTENCE.to_vec();
        speech.extend([0xff; 24_000]);
        std::fs::write(&file, speech).expect("a file");
        let scenario = Scenario::new(TALKS, line.carriers[0].port()).with("speech", file.display());
        let timeout = format!("{}s", 900 + 4 * self.seconds);
        let media = ["-mi", "127.0.0.1", "-mp", "28000", "-timeout", &timeout];
        scenario.times(self.calls).and(&media).start().await
    }

    /// How soon somebody is answered who calls alone, beside somebody in a room.
    async fn answers(&self, line: &Line, table: &mut Table) -> Answers {
        let api = line.service.api();
        let room = api.post("/v1/rooms", json!({ "agent_id": line.brief })).await;
        let (peer, offer) = Peer::offer(Codec::Opus);
        let guest = [Guest::join(&client(), room, peer, offer).await];
        let call = OneCall::place(line, &line.brief).await;
        let (phone, room) = tokio::join!(call.talks(line, TURNS), talk::talk(&guest[0].peer, TURNS));
        leave(&guest).await;
        call.end(line).await;
        line.until("the only call ends", |in_use| in_use == 0).await;
        let ([phone_p50, _], [room_p50, _]) = (percentiles(phone.outside.clone()), percentiles(room));
        println!();
        row(
            "silence -> first packet, p50: phone, room",
            format!("{phone_p50:.0}, {room_p50:.0} ms"),
        );
        table.at_most("… the phone is later by", phone_p50 - room_p50, 20.0, "ms");
        on_the_way(table, &phone);
        phone
    }

    /// Both ways apart, with another service: what comes in is seen by a provider that hears, and what goes out is given by one that
    /// speaks. It has a database of its own, of which sound knows nothing.
    async fn both_ways(&self, table: &mut Table) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = format!("sqlite://{}", folder.path().join("load.db").display());
        let servers = Servers::start().await;
        let mut providers = servers.settings();
        providers.extend(servers.transcription(Ears::Listen));
        let line = Line::open(self, &database, &providers).await;
        // An answer that is begun early has its sound before it may be heard.
        let agent = format!("/v1/agents/{}", line.brief.as_str().expect("an id"));
        line.api
            .patch(&agent, json!({ "turn_detection": { "eager": false } }))
            .await;
        let call = OneCall::place(&line, &line.brief).await;
        let turns = call.talks(&line, TURNS).await.turns;
        call.end(&line).await;
        line.service.stop();
        let (voices, spoken) = (servers.voices(), servers.spoken());
        let last =
            |of: &[Instant], turn: &Turn| of.iter().rfind(|at| (turn.ended..turn.answered).contains(*at)).copied();
        let way_in = turns.iter().map(|turn| Some(last(&voices, turn)? - turn.ended));
        let way_out = turns.iter().map(|turn| Some(turn.answered - last(&spoken, turn)?));
        // What did not come meets no goal.
        let most = |way: Vec<Option<Duration>>| {
            let ms = way
                .iter()
                .map(|took| took.map_or(f64::INFINITY, |took| took.as_secs_f64() * 1e3));
            ms.fold(f64::NAN, f64::max)
        };
        println!();
        table.at_most(
            "mouth to a provider that hears, most",
            most(way_in.collect()),
            80.0,
            "ms",
        );
        table.at_most("a provider's sound to ear, most", most(way_out.collect()), 30.0, "ms");
    }

    async fn talk(&self, line: &Line, table: &mut Table, (sipp, before): (&mut Sipp, Memory), quiet: &Answers) {
        let (window, idle) = (Duration::from_secs(self.seconds as u64), line.service.cpu_seconds());
        pause(Duration::from_secs(10)).await;
        let resting = (line.service.cpu_seconds() - idle) / 10.0;
        let even = EVEN.min(self.calls);
        let mut campaigns = vec![line.campaign(even, 20).await];
        line.until("the first talk", |in_use| in_use >= even).await;
        self.evenly(line, table, quiet).await;
        if self.calls > even {
            campaigns.push(line.campaign(self.calls - even, 20).await);
        }
        line.until("all talk", |in_use| in_use >= self.calls).await;
        let one = OneCall::place(line, &line.agent).await;
        one.is_quiet();
        pause(Duration::from_secs(5)).await;
        let (cpu, began) = (line.service.cpu_seconds(), Instant::now());
        let spacing = one.spacing(line, window).await;
        let spent = (line.service.cpu_seconds() - cpu) / began.elapsed().as_secs_f64() - resting;
        let (talking, in_use) = (line.service.memory(), line.in_use().await);
        println!();
        table.at_least("calls at once", in_use as f64 - 1.0, self.calls as f64, "");
        table.at_most("CPU per call", spent * 100.0 / in_use as f64, 0.4, "% of a core");
        let each = (talking.own - before.own) / in_use as f64;
        table.at_most("memory per call", each, 0.6, "MiB");
        spacing.tell();
        let late = line
            .metric("callboard_media_late_seconds{kind=\"phone\",quantile=\"0.99\"}")
            .await;
        row("beats of sound are late, p99", format!("{:.2} ms", late * 1e3));
        if self.kills_the_peer {
            peers::signal(sipp.id(), "-KILL");
        }
        one.end(line).await;
        if !self.kills_the_peer {
            for campaign in &campaigns {
                line.end_all(campaign).await;
            }
        }
        line.until("all are over", |in_use| in_use == 0).await;
    }

    /// One call more, that is looked at and answered, beside as many as the goals of sound are for.
    async fn evenly(&self, line: &Line, table: &mut Table, quiet: &Answers) {
        let one = OneCall::place(line, &line.brief).await;
        let window = Duration::from_secs(self.seconds.min(60) as u64);
        let (spacing, answers) = tokio::join!(one.spacing(line, window), one.talks(line, TURNS));
        let calls = line.in_use().await;
        println!("\n  beside {} calls", calls.saturating_sub(1));
        spacing.check(table);
        let ([p50, _], [alone, _]) = (percentiles(answers.outside.clone()), percentiles(quiet.outside.clone()));
        row(
            "silence -> first packet, p50; alone",
            format!("{p50:.0}, {alone:.0} ms"),
        );
        on_the_way(table, &answers);
        one.is_quiet();
        let flood = Flood::start(line.sip);
        let flooded = one.spacing(line, Duration::from_secs(10)).await;
        let sent = flood.end();
        one.end(line).await;
        let beside = (spacing.gap, flooded.gap);
        table.at_least("INVITEs of a stranger", sent.each_second, FLOOD, "a second");
        table.at_most("… bytes that come back", sent.bytes_back as f64, 0.0, "");
        table.at_most(
            "… p99 of the gaps beside them",
            beside.1 / beside.0,
            1.2,
            "times as long",
        );
    }

    /// So many calls, placed at a tenth above the rate; how long that took, and what the campaign counted.
    async fn in_a_row(&self, line: &Line, calls: usize) -> (Sipp, f64, Value) {
        let rate = self.rate + self.rate.div_ceil(10);
        let timeout = format!("{}s", 900 + 4 * calls / rate);
        let scenario = Scenario::new(HANGS_UP, line.carriers[0].port()).with("talk", 300);
        let mut sipp = scenario.times(calls).and(&["-timeout", &timeout]).start().await;
        pin(&sipp);
        let path = line.campaign(calls, rate).await;
        let began = Instant::now();
        let longest = Duration::from_secs(120 + 4 * (calls / rate) as u64);
        while line.api.get(&path).await["status"] != "completed" {
            assert!(began.elapsed() < longest, "the campaign of {calls} calls does not end");
            pause(Duration::from_millis(500)).await;
        }
        let took = began.elapsed().as_secs_f64();
        let stats = line.api.get(&format!("{path}/stats")).await;
        sipp.ends().await;
        (sipp, took, stats)
    }

    async fn set_up(&self, line: &Line, table: &mut Table) {
        // A tenth above the goal, so that the first and the last second, in which less happens, do not decide.
        let rate = self.rate + self.rate.div_ceil(10);
        let calls = (rate * self.seconds).max(self.set_ups);
        let (sipp, took, stats) = self.in_a_row(line, calls).await;
        println!();
        let each_second = calls as f64 / took;
        table.at_least("set-ups a second, durable", each_second, self.rate as f64, "");
        let count = |name: &str| stats[name].as_f64().unwrap_or(f64::NAN);
        table.at_least(
            "calls that were completed",
            count("completed_sessions"),
            calls as f64,
            "",
        );
        table.at_most("calls that failed", count("failed_sessions"), 0.0, "");
        let acked = between(
            &sipp.messages(),
            |message| message.is_sent && message.is("200") && of_invite(message),
            |message| message.is("ACK"),
        );
        table.at_least("calls that were acknowledged", acked.len() as f64, calls as f64, "");
        let [_, p99] = percentiles(acked);
        table.at_most("200 -> ACK, p99", p99, 5.0, "ms");
    }

    /// Calls that come in, and are over when it returns.
    async fn calls_in(&self, line: &Line) -> Sipp {
        let scenario = Scenario::new(CALLS, line.carriers[2].port())
            .with("talk", 300)
            .times(COME_IN);
        let pace = ["-r", COME_IN_RATE, "-l", "100"];
        let mut sipp = scenario.calling(line.sip, OURS[2]).and(&pace).start().await;
        pin(&sipp);
        sipp.succeeds().await;
        sipp
    }

    async fn come_in(&self, line: &Line, table: &mut Table) {
        let sipp = self.calls_in(line).await;
        let rang = between(
            &sipp.messages(),
            |message| message.is("INVITE"),
            |message| message.is("180"),
        );
        println!();
        table.at_least("calls that came in and rang", rang.len() as f64, COME_IN as f64, "");
        let [_, p99] = percentiles(rang);
        table.at_most("INVITE -> 180, p99", p99, 20.0, "ms");
    }
}

/// What the service has of the machine.
struct Held {
    memory: Memory,
    files: usize,
    udp_sockets: usize,
}

impl Held {
    fn by(line: &Line) -> Self {
        Held {
            memory: line.service.memory(),
            files: line.service.open_files(),
            udp_sockets: line.service.udp_sockets(),
        }
    }
}

/// Some time after the last call.
async fn left(line: &Line, table: &mut Table, before: &Held) {
    let now = Held::by(line);
    println!();
    // Of which the most are caches, filled once: what calls leave is the figure above.
    let grown = now.memory.own - before.memory.own;
    row(
        "memory after the last call",
        format!("{grown:.0} MiB more than at the start"),
    );
    for (what, name) in [
        ("calls that are left", "callboard_calls_live"),
        ("dialogs that are left", "callboard_sip_legs"),
        ("ports for sound that are left", "callboard_rtp_ports_in_use"),
    ] {
        table.at_most(what, line.metric(name).await, 0.0, "");
    }
    let more = |now: usize, before: usize| now as f64 - before as f64;
    table.at_most(
        "UDP sockets that are left",
        more(now.udp_sockets, before.udp_sockets),
        0.0,
        "",
    );
    // The database keeps as many connections as it once needed at a time.
    table.at_most(
        "files and sockets that are left",
        more(now.files, before.files),
        40.0,
        "",
    );
    let complaints = line.service.complaints();
    let all = (complaints.panics + complaints.errors) as f64;
    table.at_most("panics and errors in the log", all, 0.0, "");
    complaints.first.iter().for_each(|line| println!("    {line}"));
}

/// How long sound is on its way inside the service. Goal: 80 ms to the detector and 30 ms to the socket.
fn on_the_way(table: &mut Table, answers: &Answers) {
    let most = answers.on_the_way.iter().copied().fold(f64::NAN, f64::max);
    table.at_most("mouth to ear inside us, in and out, most", most, 110.0, "ms");
}

/// Keeps it to its core.
fn pin(sipp: &Sipp) {
    let pinned = Command::new("taskset")
        .args(["-a", "-c", "-p", CORE, &sipp.id().to_string()])
        .output();
    assert!(
        pinned.is_ok_and(|output| output.status.success()),
        "sipp could not be kept to one core"
    );
}
